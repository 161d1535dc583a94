/*
 * Drawings of the status page as inline SVG (see coord/host/host.h): plots of the last minutes, and the commit graph of
 * a branch. Numbers and words of ours only, and whatever else is said goes through host_put_escaped.
 */
#include "coord/host/host.h"
#include "coord/lanes.h"
#include <math.h>
#include <string.h>

#define PUT(...) (void)pf_buffer_append_format(page, NULL, __VA_ARGS__) /* out of memory: the page is shorter */

void host_put_escaped(pf_buffer *page, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '&')
            PUT("&amp;");
        else if (byte == '<')
            PUT("&lt;");
        else if (byte == '>')
            PUT("&gt;");
        else if (byte == '"')
            PUT("&quot;");
        else if (byte == '\'')
            PUT("&#39;");
        else if (byte < ' ' || byte == 0x7f)
            PUT("\xEF\xBF\xBD"); /* U+FFFD */
        else
            (void)pf_buffer_append(page, &text[i], 1, NULL);
    }
}

void host_put_id(pf_buffer *page, const pf_id *id)
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    PUT("<span class=\"id\" title=\"%s\">%s</span>", text, text + 24); /* the beginning is the time */
}

/* ---- plots ---- */

#define WIDTH  300.0
#define HEIGHT 72.0
#define TOP    6.0

/* The next of 1, 2, 5, 10, …: an axis ends at a number that can be read. */
static double round_up(double most)
{
    static const double steps[] = {1, 2, 5, 10};
    if (most <= 0)
        return 1;
    double power = pow(10, floor(log10(most)));
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (most <= steps[i] * power * 1.0000001)
            return steps[i] * power;
    }
    return 10 * power;
}

static void put_points(pf_buffer *page, const double *values, double most)
{
    for (unsigned i = 0; i < HOST_SAMPLES; i++)
        PUT("%s%.1f,%.1f", i ? " " : "", WIDTH * i / (HOST_SAMPLES - 1), HEIGHT - (HEIGHT - TOP) * values[i] / most);
}

void host_draw_plot(pf_buffer *page, const host_plot *plot)
{
    double most = 0;
    for (uint32_t line = 0; line < plot->lines; line++) {
        for (unsigned i = 0; i < HOST_SAMPLES; i++)
            most = plot->values[line][i] > most ? plot->values[line][i] : most;
    }
    most = round_up(most);
    PUT("<figure class=\"card\"><figcaption><span>%s</span>", plot->title);
    for (uint32_t line = 0; line < plot->lines; line++)
        PUT("<b class=\"v%u\">%.4g<small> %s%s%s</small></b>", line, plot->now[line], plot->unit,
            plot->names[line] ? " " : "", plot->names[line] ? plot->names[line] : "");
    PUT("</figcaption><svg viewBox=\"0 0 340 90\" role=\"img\" aria-label=\"%s over the last %u minutes\">",
        plot->title, HOST_SAMPLES * HOST_SAMPLE_MS / 60000);
    for (unsigned step = 0; step <= 2; step++) {
        double y = HEIGHT - (HEIGHT - TOP) * step / 2;
        PUT("<path class=\"grid\" d=\"M0 %.1fH%.0f\"/><text class=\"tick\" x=\"%.0f\" y=\"%.1f\">%.4g</text>", y, WIDTH,
            WIDTH + 5, y + 3, most * step / 2);
    }
    for (uint32_t line = plot->lines; line-- > 0;) {
        PUT("<polygon class=\"a%u\" points=\"0,%.0f ", line, HEIGHT);
        put_points(page, plot->values[line], most);
        PUT(" %.0f,%.0f\"/><polyline class=\"l%u\" points=\"", WIDTH, HEIGHT, line);
        put_points(page, plot->values[line], most);
        PUT("\"/>");
    }
    PUT("<text class=\"tick\" x=\"0\" y=\"86\">%u min ago</text><text class=\"tick end\" x=\"%.0f\" y=\"86\">now</text>"
        "</svg></figure>\n",
        HOST_SAMPLES * HOST_SAMPLE_MS / 60000, WIDTH);
}

/* ---- the commit graph ---- */

#define ROWS_MAX 60u
#define ROW_TALL 30.0
#define LANE     16.0

typedef struct lineage_rows {
    co_lane_row rows[ROWS_MAX];
    st_tree *trees[ROWS_MAX]; /* what log said of each */
    uint32_t count;
} lineage_rows;

static const char *text_of(const st_node *object, const char *name)
{
    const st_node *node = st_node_member(object, name);
    return node && (node->kind == ST_NODE_STRING || node->kind == ST_NODE_NUMBER) ? node->text : "";
}

/* What a process said: a line that is none is left out. */
static void take_line(lineage_rows *all, const char *line, size_t length)
{
    const char *problem = NULL;
    uint64_t number = 0;
    co_lane_row *row = &all->rows[all->count];
    st_tree *tree = NULL;
    *row = (co_lane_row){0};
    if (st_tree_parse(line, length, HOST_NODES_MAX, &tree, &problem, &number, NULL) != SLUICE_OK)
        return;
    const st_node *root = st_tree_root(tree);
    const st_node *parents = root->kind == ST_NODE_OBJECT ? st_node_member(root, "parents") : NULL;
    if (!parents || parents->kind != ST_NODE_ARRAY || !pf_id_parse(text_of(root, "commit"), &row->commit)) {
        st_tree_free(tree);
        return;
    }
    for (const st_node *item = parents->first; item && row->parent_count < CO_PARENTS_MAX; item = item->next)
        row->parent_count += item->kind == ST_NODE_STRING && pf_id_parse(item->text, &row->parents[row->parent_count]);
    all->trees[all->count++] = tree;
}

static void take_lines(lineage_rows *all, const pf_buffer *text)
{
    const char *at = text->length > 0 ? (const char *)text->data : "", *end = at + text->length;
    all->count = 0;
    while (at < end && all->count < ROWS_MAX) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            return; /* cut off */
        take_line(all, at, (size_t)(stop - at));
        at = stop + 1;
    }
}

static double x_of(uint32_t column)
{
    return 12 + LANE * column;
}

static double y_of(uint32_t row)
{
    return ROW_TALL / 2 + ROW_TALL * row;
}

/* From a commit to its parent: into the line's column, down, and into the parent's; a parent that is not listed: down
 * to the end. */
static void put_line(pf_buffer *page, const lineage_rows *all, uint32_t row, uint32_t which)
{
    const co_lane_row *child = &all->rows[row];
    uint32_t to = row + 1, lane = child->lines[which];
    while (to < all->count && !pf_id_equal(&all->rows[to].commit, &child->parents[which]))
        to++;
    bool listed = to < all->count;
    double x = x_of(child->column), y = y_of(row), bend = x_of(lane),
           x_end = listed ? x_of(all->rows[to].column) : bend;
    double y_end = y_of(to), half = ROW_TALL / 2;
    PUT("<path class=\"k%u%s\" d=\"M%.0f %.0f", lane % 6, listed ? "" : " cut", x, y);
    if (bend != x)
        PUT("C%.0f %.0f %.0f %.0f %.0f %.0f", x, y + half, bend, y + half, bend, y + ROW_TALL);
    if (x_end != bend)
        PUT("V%.0fC%.0f %.0f %.0f %.0f %.0f %.0f", y_end - ROW_TALL > y ? y_end - ROW_TALL : y, bend, y_end - half,
            x_end, y_end - half, x_end, y_end);
    else
        PUT("V%.0f", y_end);
    PUT("\"/>");
}

static void put_row(pf_buffer *page, const lineage_rows *all, uint32_t row, bool names)
{
    const st_node *said = st_tree_root(all->trees[row]);
    const char *words[] = {"generation", "kind", "time"};
    PUT("<tr><td>");
    host_put_id(page, &all->rows[row].commit);
    PUT("</td>");
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *text = text_of(said, words[i]);
        PUT("<td%s>", i == 0 ? " class=\"n\"" : "");
        host_put_escaped(page, text, i == 2 && strlen(text) > 19 ? 19 : strlen(text));
        PUT("</td>");
    }
    if (names) {
        PUT("<td><bdi>");
        host_put_escaped(page, text_of(said, "actor"), strlen(text_of(said, "actor")));
        PUT("</bdi></td><td class=\"wide\"><bdi>");
        host_put_escaped(page, text_of(said, "message"), strlen(text_of(said, "message")));
        PUT("</bdi></td>");
    }
    PUT("</tr>\n");
}

void host_draw_lineage(pf_buffer *page, const pf_buffer *text, bool names)
{
    static lineage_rows all; /* large; there is one thread */
    take_lines(&all, text);
    co_lanes lanes = {0};
    for (uint32_t row = 0; row < all.count; row++)
        co_lanes_next(&lanes, &all.rows[row]);
    double width = x_of(lanes.used > 0 ? lanes.used - 1 : 0) + 12, height = ROW_TALL * all.count;
    PUT("<div class=\"lineage\"><svg class=\"commits\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "role=\"img\" "
        "aria-label=\"commit graph\">",
        width, height, width, height);
    for (uint32_t row = 0; row < all.count; row++) {
        for (uint32_t i = 0; i < all.rows[row].parent_count; i++)
            put_line(page, &all, row, i);
    }
    for (uint32_t row = 0; row < all.count; row++)
        PUT("<circle class=\"k%u%s\" cx=\"%.0f\" cy=\"%.0f\" r=\"%s\"/>", all.rows[row].column % 6,
            all.rows[row].parent_count > 1 ? " merge" : "", x_of(all.rows[row].column), y_of(row),
            all.rows[row].parent_count > 1 ? "5" : "4.5");
    PUT("</svg><table class=\"rows\"><tbody>\n");
    for (uint32_t row = 0; row < all.count; row++)
        put_row(page, &all, row, names);
    PUT("</tbody></table></div>\n");
    for (uint32_t row = 0; row < all.count; row++) {
        st_tree_free(all.trees[row]);
        all.trees[row] = NULL;
    }
}
