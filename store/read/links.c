#include "store/read/links.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

struct st_links {
    const st_type_def *edge, *ends[2]; /* near, far */
    bool in, words_only;
    st_table_reader *reader;
    st_nearby *nearby;
    uint32_t fragments;
    int *far_columns; /* per fragment: where its far ends stand; -1: not looked up yet */
    st_nearby_words words;
    st_nearby_edges edges;
    /* of the question that is being answered */
    st_link_fn *each;
    void *context;
};

static bool is_word(const st_type_def *type)
{
    if (type->key_count == 0)
        return st_key_type_is_exact(ST_ROW_ID);
    return type->key_count == 1 && st_key_type_is_exact(type->properties[type->key[0]].type);
}

sluice_status st_links_open(st_snapshot *snapshot, const st_type_def *edge, st_direction direction,
                            st_links **ret_links, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    sluice_status status;
    PF_ASSERT(edge->edge && direction != ST_BOTH);
    st_links *links = calloc(1, sizeof *links);
    if (!links)
        return pf_fail_memory(err);
    links->edge = edge;
    links->in = direction == ST_IN;
    links->ends[0] = &schema->types[links->in ? edge->to : edge->from];
    links->ends[1] = &schema->types[links->in ? edge->from : edge->to];
    links->words_only = is_word(links->ends[0]) && is_word(links->ends[1]);
    PF_GOTO(status, failed, st_nearby_open(snapshot, edge, &links->nearby, err));
    PF_GOTO(status, failed, st_table_reader_get(snapshot, edge->table, &links->reader, err));
    links->fragments = st_table_reader_fragments(links->reader);
    links->far_columns = malloc(((size_t)links->fragments + 1) * sizeof *links->far_columns);
    if (!links->far_columns) {
        status = pf_fail_memory(err);
        goto failed;
    }
    for (uint32_t i = 0; i < links->fragments; i++)
        links->far_columns[i] = -1;
    *ret_links = links;
    return SLUICE_OK;
failed:
    st_links_close(links);
    return status;
}

void st_links_close(st_links *links)
{
    if (!links)
        return;
    st_nearby_close(links->nearby);
    free(links->far_columns);
    free(links->words.items);
    free(links->edges.items);
    free(links);
}

const st_type_def *st_links_end(const st_links *links, bool far)
{
    return links->ends[far];
}

bool st_links_are_words(const st_links *links)
{
    return links->words_only;
}

/* The far end of an edge, as it stands in its fragment. */
static sluice_status far_end(st_links *links, uint32_t fragment, uint64_t position, st_column *ret_column,
                             uint64_t *ret_row, sluice_error *err)
{
    st_fragment *opened = NULL;
    uint32_t batch = 0;
    int *at = &links->far_columns[fragment];
    PF_TRY(st_table_reader_fragment(links->reader, fragment, &opened, err));
    if (*at < 0)
        *at = st_layout_find(links->edge, opened, links->in ? 0 : 1);
    if (*at < 0)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end",
                       (unsigned long long)links->edge->table);
    st_fragment_locate(opened, position, &batch, ret_row);
    return st_fragment_column(opened, batch, (uint32_t)*at, ret_column, err);
}

/* The word of an integer-like value: as the hash keeps it, widened. */
static uint64_t word_of(const st_column *column, uint64_t row)
{
    uint64_t word = 0;
    PF_ALWAYS(st_key_of_hash(column->type, st_key_hash_row(&column, 1, row), &word, &(st_column){0}));
    return word;
}

static sluice_status take_word(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err)
{
    st_links *links = context;
    st_column far;
    uint64_t row = 0;
    (void)stop;
    PF_TRY(far_end(links, fragment, position, &far, &row, err));
    const st_column *member = far.type == ST_STRUCT ? &far.children[0] : &far;
    PF_TRY(st_nearby_words_reserve(&links->words, 1, err));
    links->words.items[links->words.count++] = word_of(member, row);
    return SLUICE_OK;
}

static sluice_status take_key(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err)
{
    st_links *links = context;
    st_column far;
    uint64_t row = 0;
    (void)stop;
    PF_TRY(far_end(links, fragment, position, &far, &row, err));
    return far.type == ST_STRUCT ? links->each(links->context, far.children, far.child_count, row, err)
                                 : links->each(links->context, &far, 1, row, err);
}

/* The edges of fragments that no adjacency covers. */
static sluice_status match_the_rest(st_links *links, const st_column *near, st_match_fn *take, sluice_error *err)
{
    st_run_use use = links->in ? ST_RUN_TO : ST_RUN_FROM;
    bool stop = false;
    for (uint32_t i = 0; i < links->fragments; i++)
        if (!st_nearby_covers(links->nearby, i))
            PF_TRY(st_table_match_in(links->reader, i, use, 0, &near, 1, 0, take, links, &stop, err));
    return SLUICE_OK;
}

static st_adjacency_direction direction_of(const st_links *links)
{
    return links->in ? ST_ADJACENCY_IN : ST_ADJACENCY_OUT;
}

sluice_status st_links_words(st_links *links, const st_column *near, const uint64_t **ret_words, uint64_t *ret_count,
                             sluice_error *err)
{
    bool all = false;
    uint64_t hash = st_key_hash_row(&near, 1, 0);
    PF_ASSERT(links->words_only);
    while (!all) { /* once more without an index that turns out to be damaged */
        links->words.count = 0;
        PF_TRY(st_nearby_far_words(links->nearby, direction_of(links), hash, &links->words, &all, err));
    }
    PF_TRY(match_the_rest(links, near, take_word, err));
    *ret_words = links->words.items;
    *ret_count = links->words.count;
    return SLUICE_OK;
}

/* Is the near end of an edge that adjacency names the key that is sought, and not only of the same hash? */
static sluice_status is_near(st_links *links, const st_nearby_edge *edge, const st_column *near, bool *ret_near,
                             sluice_error *err)
{
    st_fragment *fragment = NULL;
    st_column found;
    const st_column *end = &found;
    uint32_t batch = 0;
    uint64_t row = 0;
    *ret_near = st_key_hash_is_exact(&near, 1);
    if (*ret_near)
        return SLUICE_OK;
    PF_TRY(st_table_reader_fragment(links->reader, edge->fragment, &fragment, err));
    st_fragment_locate(fragment, edge->position, &batch, &row);
    PF_TRY(st_table_reader_column(links->reader, fragment, batch, links->in ? 1 : 0, &found, err));
    *ret_near = st_key_equal(&end, row, &near, 0, 1);
    return SLUICE_OK;
}

sluice_status st_links_each(st_links *links, const st_column *near, st_link_fn *each, void *context, sluice_error *err)
{
    bool all = false, stop = false;
    uint64_t hash = st_key_hash_row(&near, 1, 0);
    links->each = each;
    links->context = context;
    while (!all) {
        links->edges.count = 0;
        PF_TRY(st_nearby_gather(links->nearby, direction_of(links), &hash, 1, &links->edges, &all, err));
        if (!all && links->edges.count >= ST_NEARBY_EDGES_MAX)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a node has more than %llu edges",
                           (unsigned long long)ST_NEARBY_EDGES_MAX);
    }
    for (uint64_t i = 0; i < links->edges.count; i++) {
        const st_nearby_edge *edge = &links->edges.items[i];
        bool same = false;
        PF_TRY(is_near(links, edge, near, &same, err));
        if (same)
            PF_TRY(take_key(links, edge->fragment, edge->position, &stop, err));
    }
    return match_the_rest(links, near, take_key, err);
}
