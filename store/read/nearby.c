#include "store/read/nearby.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define NOT_LISTED UINT32_MAX

typedef struct pair { /* the two files that cover fragments together */
    const st_index_ref *ref;
    st_adjacency *files[2]; /* by direction; opened when they are needed */
    uint32_t *fragments;    /* per ordinal: which of the list it is */
    uint32_t count;         /* of ordinals */
    bool all_live;          /* every ordinal is of the list, and no edge of it is deleted */
    bool off;               /* damaged */
} pair;

struct st_nearby {
    st_table_reader *reader;
    pair *pairs;
    uint32_t pair_count;
    uint32_t *pair_of; /* per fragment of the list; NOT_LISTED: not covered */
};

static bool indexes_are_off(void)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_NO_INDEXES");
    return text && strcmp(text, "1") == 0;
#else
    return false;
#endif
}

void st_nearby_close(st_nearby *nearby)
{
    if (!nearby)
        return;
    for (uint32_t i = 0; nearby->pairs && i < nearby->pair_count; i++) {
        st_adjacency_close(nearby->pairs[i].files[0]);
        st_adjacency_close(nearby->pairs[i].files[1]);
        free(nearby->pairs[i].fragments);
    }
    free(nearby->pairs);
    free(nearby->pair_of);
    free(nearby);
}

/* Fragments that share files mostly follow each other. */
static uint32_t find_pair(const st_nearby *nearby, const st_index_ref *ref)
{
    for (uint32_t i = nearby->pair_count; i-- > 0;)
        if (nearby->pairs[i].ref && strcmp(nearby->pairs[i].ref->out.name, ref->out.name) == 0)
            return i;
    return NOT_LISTED;
}

sluice_status st_nearby_open(st_snapshot *snapshot, const st_type_def *edge, st_nearby **ret_nearby, sluice_error *err)
{
    st_nearby *nearby = calloc(1, sizeof *nearby);
    sluice_status status;
    if (!nearby)
        return pf_fail_memory(err);
    PF_GOTO(status, failed, st_table_reader_get(snapshot, edge->table, &nearby->reader, err));
    const st_table_list *list = st_table_reader_list(nearby->reader);
    nearby->pairs = calloc((size_t)list->count + 1, sizeof *nearby->pairs);
    nearby->pair_of = malloc(((size_t)list->count + 1) * sizeof *nearby->pair_of);
    if (!nearby->pairs || !nearby->pair_of) {
        status = pf_fail_memory(err);
        goto failed;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const st_index_ref *ref = &list->fragments[i].index;
        nearby->pair_of[i] = NOT_LISTED;
        if (!ref->present || indexes_are_off())
            continue;
        nearby->pair_of[i] = find_pair(nearby, ref);
        if (nearby->pair_of[i] == NOT_LISTED) {
            nearby->pair_of[i] = nearby->pair_count;
            nearby->pairs[nearby->pair_count++].ref = ref;
        }
    }
    *ret_nearby = nearby;
    return SLUICE_OK;
failed:
    st_nearby_close(nearby);
    return status;
}

bool st_nearby_covers(const st_nearby *nearby, uint32_t fragment)
{
    uint32_t covering = nearby->pair_of[fragment];
    return covering != NOT_LISTED && !nearby->pairs[covering].off;
}

uint64_t st_nearby_covered(const st_nearby *nearby)
{
    const st_table_list *list = st_table_reader_list(nearby->reader);
    uint64_t edges = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (st_nearby_covers(nearby, i))
            edges += list->fragments[i].fragment.rows;
    return edges;
}

/* Which fragment of the list each ordinal is; the file must say the same as the list. */
static sluice_status match_fragments(const st_nearby *nearby, pair *covering, const st_adjacency *file,
                                     sluice_error *err)
{
    const st_table_list *list = st_table_reader_list(nearby->reader);
    const st_adjacency_cover *covers = st_adjacency_covers(file, &covering->count);
    uint32_t *fragments = malloc(((size_t)covering->count + 1) * sizeof *fragments);
    if (!fragments)
        return pf_fail_memory(err);
    free(covering->fragments);
    covering->fragments = fragments;
    uint32_t live = 0;
    for (uint32_t i = 0; i < covering->count; i++)
        fragments[i] = NOT_LISTED;
    for (uint32_t i = 0; i < list->count; i++) {
        const st_edit_add *add = &list->fragments[i];
        if (nearby->pair_of[i] == NOT_LISTED || &nearby->pairs[nearby->pair_of[i]] != covering)
            continue;
        uint32_t ordinal = add->index.ordinal;
        if (ordinal >= covering->count || strcmp(covers[ordinal].fragment, add->fragment.name) != 0 ||
            covers[ordinal].rows != add->fragment.rows)
            return pf_fail(err, SLUICE_CORRUPT, "an index covers another fragment than the list says");
        fragments[ordinal] = i;
        live += list->dead_count[i] == 0;
    }
    covering->all_live = live == covering->count;
    return SLUICE_OK;
}

static sluice_status open_file(st_nearby *nearby, pair *covering, st_adjacency_direction direction, sluice_error *err)
{
    st_adjacency **file = &covering->files[direction];
    if (*file)
        return SLUICE_OK;
    PF_TRY(st_adjacency_open(st_graph_volume(nearby->reader->graph), nearby->reader->table,
                             direction == ST_ADJACENCY_OUT ? &covering->ref->out : &covering->ref->in, direction, file,
                             err));
    return match_fragments(nearby, covering, *file, err);
}

static sluice_status push(st_nearby_edges *edges, const st_nearby_edge *edge, sluice_error *err)
{
    if (edges->count == edges->room) {
        uint64_t room = edges->room ? edges->room * 2 : 256;
        st_nearby_edge *items = realloc(edges->items, room * sizeof *items);
        if (!items)
            return pf_fail_memory(err);
        edges->items = items;
        edges->room = room;
    }
    edges->items[edges->count++] = *edge;
    return SLUICE_OK;
}

static sluice_status gather_one(st_nearby *nearby, pair *covering, st_adjacency_direction direction, uint64_t hash,
                                st_nearby_edges *edges, sluice_error *err)
{
    st_adjacency *file = covering->files[direction];
    uint64_t entry = 0, end = 0;
    PF_TRY(st_adjacency_find(file, hash, &entry, &end, err));
    for (; entry < end && edges->count < ST_NEARBY_EDGES_MAX; entry++) {
        st_adjacent found;
        PF_TRY(st_adjacency_get(file, entry, &found, err));
        uint32_t fragment = covering->fragments[found.ordinal];
        if (fragment == NOT_LISTED || st_table_reader_row_is_dead(nearby->reader, fragment, found.position))
            continue;
        st_nearby_edge edge = {.fragment = fragment,
                               .position = found.position,
                               .in = direction == ST_ADJACENCY_IN,
                               .near = hash,
                               .far = found.far};
        PF_TRY(push(edges, &edge, err));
    }
    return SLUICE_OK;
}

static sluice_status gather_from(st_nearby *nearby, pair *covering, st_adjacency_direction direction,
                                 const uint64_t *hashes, uint64_t count, st_nearby_edges *edges, sluice_error *err)
{
    PF_TRY(open_file(nearby, covering, direction, err));
    for (uint64_t i = 0; i < count && edges->count < ST_NEARBY_EDGES_MAX; i++)
        PF_TRY(gather_one(nearby, covering, direction, hashes[i], edges, err));
    return SLUICE_OK;
}

/* ---- words ---- */

sluice_status st_nearby_words_reserve(st_nearby_words *words, uint64_t more, sluice_error *err)
{
    if (more <= words->room - words->count)
        return SLUICE_OK;
    uint64_t room = words->count + more + words->room + 64;
    uint64_t *items = realloc(words->items, room * sizeof *items);
    if (!items)
        return pf_fail_memory(err);
    words->items = items;
    words->room = room;
    return SLUICE_OK;
}

static sluice_status words_of(st_nearby *nearby, pair *covering, st_adjacency_direction direction, uint64_t hash,
                              st_nearby_words *words, sluice_error *err)
{
    enum { STRIDE = sizeof(st_adjacent) / sizeof(uint64_t) };
    uint64_t entry = 0, end = 0;
    const st_adjacent *entries = NULL;
    PF_TRY(open_file(nearby, covering, direction, err));
    st_adjacency *file = covering->files[direction];
    PF_TRY(st_adjacency_find(file, hash, &entry, &end, err));
    if (entry == end)
        return SLUICE_OK;
    PF_TRY(st_nearby_words_reserve(words, end - entry, err));
    if (covering->all_live) {
        PF_TRY(st_adjacency_entries(file, entry, end, &entries, err));
        st_key_words_of_hashes(&entries->far, STRIDE, end - entry, words->items + words->count);
        words->count += end - entry;
        return SLUICE_OK;
    }
    for (; entry < end; entry++) {
        st_adjacent found;
        PF_TRY(st_adjacency_get(file, entry, &found, err));
        uint32_t fragment = covering->fragments[found.ordinal];
        if (fragment == NOT_LISTED || st_table_reader_row_is_dead(nearby->reader, fragment, found.position))
            continue;
        st_key_words_of_hashes(&found.far, 1, 1, words->items + words->count++);
    }
    return SLUICE_OK;
}

/* ---- all pairs ---- */

/* A pair that turns out to be damaged covers nothing from now on: verify says so, here the fragments are read instead.
 */
static sluice_status after(pair *covering, sluice_status status, const sluice_error *error, bool *ret_all,
                           sluice_error *err)
{
    if (status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT) {
        covering->off = true;
        *ret_all = false;
        return SLUICE_OK;
    }
    if (status != SLUICE_OK && err)
        *err = *error;
    return status;
}

sluice_status st_nearby_far_words(st_nearby *nearby, st_adjacency_direction direction, uint64_t hash,
                                  st_nearby_words *words, bool *ret_all, sluice_error *err)
{
    *ret_all = true;
    for (uint32_t i = 0; i < nearby->pair_count; i++) {
        pair *covering = &nearby->pairs[i];
        sluice_error error; /* filled by whoever fails */
        if (!covering->off)
            PF_TRY(after(covering, words_of(nearby, covering, direction, hash, words, &error), &error, ret_all, err));
    }
    return SLUICE_OK;
}

sluice_status st_nearby_gather(st_nearby *nearby, st_adjacency_direction direction, const uint64_t *hashes,
                               uint64_t count, st_nearby_edges *edges, bool *ret_all, sluice_error *err)
{
    *ret_all = true;
    for (uint32_t i = 0; i < nearby->pair_count; i++) {
        pair *covering = &nearby->pairs[i];
        sluice_error error = {0};
        if (!covering->off)
            PF_TRY(after(covering, gather_from(nearby, covering, direction, hashes, count, edges, &error), &error,
                         ret_all, err));
    }
    *ret_all &= edges->count < ST_NEARBY_EDGES_MAX;
    return SLUICE_OK;
}
