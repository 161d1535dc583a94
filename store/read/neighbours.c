/*
 * Neighbours (snapshot.h): breadth first, one scan of the edge tables for each level. A node is known by its table and
 * the canonical bytes of its key; it is reported once, at its least depth, the start never (so a self-loop leads
 * nowhere new). Memory grows with the nodes reached and is bounded.
 */
#include "platform/check.h"
#include "store/read/reader.h"
#include <stdlib.h>
#include <string.h>

#define REACHED_BYTES_MAX (UINT64_C(1) << 30)

typedef struct reached_node {
    uint64_t hash;
    size_t key; /* offset in the arena */
    uint32_t key_length, depth;
    uint64_t table; /* 0: the slot is free */
} reached_node;

typedef struct search {
    st_snapshot *snapshot;
    st_neighbour_fn *each;
    void *context;
    reached_node *nodes; /* open addressing */
    uint64_t room, count;
    pf_buffer arena, key;
    uint32_t depth; /* of what this level reports */
    uint64_t found; /* in this level */
} search;

static uint64_t hash_node(uint64_t table, const pf_buffer *key)
{
    return pf_xxh64_of(key->data, key->length) ^ (table * UINT64_C(0x9E3779B97F4A7C15));
}

/* The slot of the node in search->key, taken or free. */
static reached_node *find_slot(search *search_, uint64_t table, uint64_t hash)
{
    uint64_t at = hash & (search_->room - 1);
    for (;; at = (at + 1) & (search_->room - 1)) {
        reached_node *node = &search_->nodes[at];
        if (node->table == 0)
            return node;
        if (node->hash == hash && node->table == table && node->key_length == search_->key.length &&
            memcmp(search_->arena.data + node->key, search_->key.data, node->key_length) == 0)
            return node;
    }
}

static sluice_status grow(search *search_, sluice_error *err)
{
    uint64_t room = search_->room ? search_->room * 2 : 1024;
    if (room * sizeof(reached_node) + search_->arena.length > REACHED_BYTES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "more than %llu nodes are reached",
                       (unsigned long long)search_->count);
    reached_node *nodes = calloc(room, sizeof(*nodes)), *old = search_->nodes;
    uint64_t old_room = search_->room;
    if (!nodes)
        return pf_fail_memory(err);
    for (uint64_t i = 0; i < old_room; i++) {
        uint64_t at = old[i].hash & (room - 1);
        if (old[i].table == 0)
            continue;
        while (nodes[at].table != 0)
            at = (at + 1) & (room - 1);
        nodes[at] = old[i];
    }
    free(old);
    search_->nodes = nodes;
    search_->room = room;
    return SLUICE_OK;
}

/* Adds the node in search->key; *ret_new false when it was there. */
static sluice_status reach(search *search_, uint64_t table, bool *ret_new, sluice_error *err)
{
    uint64_t hash = hash_node(table, &search_->key);
    if (search_->count * 2 >= search_->room)
        PF_TRY(grow(search_, err));
    reached_node *node = find_slot(search_, table, hash);
    *ret_new = node->table == 0;
    if (!*ret_new)
        return SLUICE_OK;
    size_t at = search_->arena.length;
    PF_TRY(pf_buffer_append(&search_->arena, search_->key.data, search_->key.length, err));
    *node = (reached_node){
        .hash = hash, .key = at, .key_length = (uint32_t)search_->key.length, .depth = search_->depth, .table = table};
    search_->count++;
    return SLUICE_OK;
}

/* Is the node in search->key one of the last level? */
static bool is_frontier(search *search_, uint64_t table)
{
    const reached_node *node = find_slot(search_, table, hash_node(table, &search_->key));
    return node->table != 0 && node->depth + 1 == search_->depth;
}

/* The members of an end: itself, or the children of a struct. */
static uint32_t members(const st_column *end, const st_column **ret_members)
{
    if (end->type != ST_STRUCT) {
        ret_members[0] = end;
        return 1;
    }
    for (uint32_t i = 0; i < end->child_count; i++)
        ret_members[i] = &end->children[i];
    return end->child_count;
}

static sluice_status encode_end(search *search_, const st_column *end, uint64_t row, sluice_error *err)
{
    search_->key.length = 0;
    return st_key_encode(&end, 1, row, &search_->key, err); /* structs are flattened */
}

/* Follows one edge one way. */
static sluice_status follow(search *search_, const st_type_def *here, const st_column *near, const st_type_def *there,
                            const st_column *far, uint64_t row, sluice_error *err)
{
    const st_column *key[ST_KEY_MEMBERS_MAX];
    bool fresh = false;
    PF_TRY(encode_end(search_, near, row, err));
    if (!is_frontier(search_, here->table))
        return SLUICE_OK;
    PF_TRY(encode_end(search_, far, row, err));
    PF_TRY(reach(search_, there->table, &fresh, err));
    if (!fresh)
        return SLUICE_OK;
    search_->found++;
    uint32_t count = members(far, key);
    return search_->each(search_->context, there, key, count, row, search_->depth, err);
}

static sluice_status scan_edges(search *search_, const st_type_def *edge, st_direction direction, sluice_error *err)
{
    static const uint32_t ends[2] = {0, 1};
    const st_schema *schema = search_->snapshot->view->schema;
    const st_type_def *from = &schema->types[edge->from], *to = &schema->types[edge->to];
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    PF_TRY(st_scan_open(search_->snapshot, edge, ends, 2, &scan, err));
    sluice_status status = st_scan_next(scan, &batch, err);
    while (status == SLUICE_OK && batch) {
        for (uint64_t row = 0; row < batch->rows && status == SLUICE_OK; row++) {
            if (direction != ST_IN)
                status = follow(search_, from, &batch->columns[0], to, &batch->columns[1], row, err);
            if (direction != ST_OUT && status == SLUICE_OK)
                status = follow(search_, to, &batch->columns[1], from, &batch->columns[0], row, err);
        }
        if (status == SLUICE_OK)
            status = st_scan_next(scan, &batch, err);
    }
    st_scan_close(scan);
    return status;
}

sluice_status st_neighbours(st_snapshot *snapshot, const st_type_def *type, const st_column *const *key,
                            uint32_t key_count, const st_type_def *edge, st_direction direction, uint32_t depth,
                            st_neighbour_fn *each, void *context, sluice_error *err)
{
    search search_ = {.snapshot = snapshot, .each = each, .context = context};
    const st_schema *schema = snapshot->view->schema;
    bool fresh = false;
    sluice_status status;
    PF_GOTO(status, done, st_key_encode(key, key_count, 0, &search_.key, err));
    PF_GOTO(status, done, reach(&search_, type->table, &fresh, err));
    for (search_.depth = 1; search_.depth <= depth && search_.depth < UINT32_MAX; search_.depth++) {
        search_.found = 0;
        for (uint32_t i = 0; i < schema->type_count; i++) {
            const st_type_def *one = &schema->types[i];
            if (one->edge && (!edge || edge->table == one->table))
                PF_GOTO(status, done, scan_edges(&search_, one, direction, err));
        }
        if (search_.found == 0)
            break;
    }
done:
    free(search_.nodes);
    pf_buffer_free(&search_.arena);
    pf_buffer_free(&search_.key);
    return status;
}
