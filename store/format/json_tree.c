/*
 * Building cJSON's tree of a text that is known to be well formed (json_tree.h).
 *
 * One allocation holds all: the nodes, the root first, and behind them the texts. A text with its end is never longer
 * than what it is written as, quotes included, so the document's own length is room enough for them.
 */
#include "store/format/json_tree.h"

#include "platform/check.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 63u /* characters of one, as in cJSON */
#define EXACT      15u /* digits of an integer that a double surely holds */

typedef struct builder {
    const uint8_t *at, *end;
    cJSON *node; /* the next free one */
    char *text;  /* the next free byte */
    uint32_t depth;
    cJSON *open[ST_JSON_DEPTH], *last[ST_JSON_DEPTH]; /* containers, and the newest child of each */
    uint32_t counts[ST_JSON_DEPTH];
} builder;

static void skip_space(builder *from)
{
    while (from->at < from->end && *from->at <= ' ')
        from->at++;
}

static uint32_t hex4(const uint8_t *digits)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++)
        unit = unit << 4 | (uint32_t)(digits[i] <= '9' ? digits[i] - '0' : (digits[i] | 0x20) - 'a' + 10);
    return unit;
}

/* Behind the backslash. */
static void build_escape(builder *from)
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    uint8_t c = *from->at++;
    if (c != 'u') {
        const char *letter = strchr(letters, c);
        *from->text++ = letter ? meanings[letter - letters] : (char)c;
        return;
    }
    uint32_t point = hex4(from->at);
    from->at += 4;
    if (point >= 0xD800 && point <= 0xDBFF) { /* the other half follows */
        point = 0x10000 + ((point - 0xD800) << 10) + (hex4(from->at + 2) - 0xDC00);
        from->at += 6;
    }
    from->text += st_utf8_put(point, (uint8_t *)from->text);
}

static char *build_text(builder *from)
{
    char *start = from->text;
    for (from->at++;;) {
        size_t plain = st_plain_length(from->at, (size_t)(from->end - from->at));
        memcpy(from->text, from->at, plain);
        from->text += plain;
        from->at += plain;
        if (*from->at == '"')
            break;
        if (*from->at == '\\') {
            from->at++;
            build_escape(from);
        } else { /* of a longer character */
            *from->text++ = (char)*from->at++;
        }
    }
    from->at++;
    *from->text++ = '\0';
    return start;
}

static bool build_number(builder *from, cJSON *node)
{
    char text[NUMBER_MAX + 1];
    const uint8_t *start = from->at;
    uint64_t value = 0;
    bool minus = *start == '-', plain = true;
    from->at += minus;
    for (; from->at < from->end && (strchr("+-.eE", *from->at) || (*from->at >= '0' && *from->at <= '9')); from->at++) {
        plain = plain && *from->at >= '0' && *from->at <= '9';
        value = value * 10 + (uint64_t)(*from->at - '0');
    }
    size_t length = (size_t)(from->at - start);
    node->type = cJSON_Number;
    if (plain && length - minus <= EXACT) {
        node->valuedouble = minus ? -(double)value : (double)value;
    } else {
        if (length > NUMBER_MAX)
            return false;
        memcpy(text, start, length);
        text[length] = '\0';
        node->valuedouble = strtod(text, NULL);
    }
    node->valueint = node->valuedouble >= INT_MAX   ? INT_MAX
                     : node->valuedouble <= INT_MIN ? INT_MIN
                                                    : (int)node->valuedouble;
    return true;
}

/* A scalar, or a container's opening bracket. */
static bool build_value(builder *from, cJSON *node)
{
    switch (*from->at) {
    case '{':
    case '[':
        node->type = *from->at++ == '{' ? cJSON_Object : cJSON_Array;
        PF_ASSERT(from->depth < ST_JSON_DEPTH);
        from->open[from->depth] = node;
        from->last[from->depth] = NULL;
        from->counts[from->depth++] = 0;
        return true;
    case '"':
        node->type = cJSON_String;
        node->valuestring = build_text(from);
        return true;
    case 't':
        node->type = cJSON_True;
        node->valueint = 1;
        from->at += 4;
        return true;
    case 'f':
        node->type = cJSON_False;
        from->at += 5;
        return true;
    case 'n':
        node->type = cJSON_NULL;
        from->at += 4;
        return true;
    default:
        return build_number(from, node);
    }
}

/* A new child of the innermost container, with its name. */
static void add_child(builder *from, cJSON *node)
{
    uint32_t top = from->depth - 1;
    cJSON *parent = from->open[top], *last = from->last[top];
    if (last)
        last->next = node;
    else
        parent->child = node;
    node->prev = last;
    parent->child->prev = node; /* cJSON's way to the end of a list */
    from->last[top] = node;
    from->counts[top]++;
    if (parent->type != cJSON_Object)
        return;
    skip_space(from);
    node->string = build_text(from);
    skip_space(from);
    from->at++; /* the colon */
    skip_space(from);
}

/* ---- names ---- */

#define FEW 64u

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Equal names begin alike: only those are compared. */
static bool few_are_distinct(const cJSON *object)
{
    uint64_t starts[FEW];
    const char *names[FEW];
    uint32_t count = 0;
    for (const cJSON *child = object->child; child; child = child->next) {
        uint64_t start = 0;
        for (uint32_t i = 0; i < 8 && child->string[i]; i++)
            start |= (uint64_t)(uint8_t)child->string[i] << 8 * i;
        for (uint32_t i = 0; i < count; i++)
            if (starts[i] == start && strcmp(names[i], child->string) == 0)
                return false;
        names[count] = child->string;
        starts[count++] = start;
    }
    return true;
}

static sluice_status check_names(const cJSON *object, uint32_t count, sluice_error *err)
{
    bool distinct = true;
    size_t at = 0;
    if (count <= FEW) {
        distinct = few_are_distinct(object);
    } else {
        const char **names = calloc(count, sizeof(*names));
        if (!names)
            return pf_fail_memory(err);
        for (const cJSON *child = object->child; child; child = child->next)
            names[at++] = child->string;
        qsort(names, count, sizeof(*names), compare_names);
        for (at = 1; at < count && distinct; at++)
            distinct = strcmp(names[at - 1], names[at]) != 0;
        free(names);
    }
    return distinct ? SLUICE_OK : pf_fail(err, SLUICE_CORRUPT, "a JSON object has two members of one name");
}

/* ---- the whole ---- */

/* Closes every container that ends here, and passes the comma to the next value. */
static sluice_status close_ended(builder *from, sluice_error *err)
{
    for (skip_space(from); from->depth > 0 && (*from->at == '}' || *from->at == ']'); skip_space(from)) {
        from->at++;
        from->depth--;
        if (from->open[from->depth]->type == cJSON_Object)
            PF_TRY(check_names(from->open[from->depth], from->counts[from->depth], err));
    }
    if (from->depth > 0 && *from->at == ',')
        from->at++;
    return SLUICE_OK;
}

static sluice_status no_room(sluice_error *err)
{
    return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a JSON document could not be held in memory");
}

sluice_status st_json_build(const uint8_t *bytes, size_t length, size_t values, cJSON **ret_document, sluice_error *err)
{
    size_t nodes, size;
    sluice_status status = SLUICE_OK;
    PF_ASSERT(values > 0);
    if (!pf_mul_size(values, sizeof(cJSON), &nodes) || !pf_add_size(nodes, length, &size))
        return no_room(err);
    cJSON *root = malloc(size);
    if (!root)
        return no_room(err);
    memset(root, 0, nodes);
    builder from = {.at = bytes, .end = bytes + length, .node = root, .text = (char *)root + nodes};
    skip_space(&from);
    do {
        cJSON *node = from.node++;
        PF_ASSERT((size_t)(node - root) < values);
        if (node != root)
            add_child(&from, node);
        if (!build_value(&from, node))
            status = no_room(err);
        else
            status = close_ended(&from, err);
        skip_space(&from);
    } while (status == SLUICE_OK && from.depth > 0);
    if (status == SLUICE_OK)
        *ret_document = root;
    else
        free(root);
    return status;
}

void st_json_free(cJSON *document)
{
    free(document);
}
