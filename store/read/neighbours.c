/*
 * Neighbours (snapshot.h): breadth first. A node is known by its table and the canonical bytes of its key; it is
 * reported once, at its least depth, the start never (so a self-loop leads nowhere new). Memory grows with the nodes
 * reached and is bounded.
 *
 * Each level goes through the fragments of the edge tables in order: those that adjacency covers (nearby.h) by the
 * edges that it names, sorted by where they stand, the others by a scan. So answers and their order are the same with
 * any index and with none. Where a level begins at so many nodes that looking them up costs more than scanning, it
 * scans.
 */
#include "platform/check.h"
#include "store/read/nearby.h"
#include <stdlib.h>
#include <string.h>

#define REACHED_BYTES_MAX (UINT64_C(1) << 30)
#define LOOK_UP_COST      16u /* edges that are scanned in the time of looking one node up, about */

typedef struct reached_node {
    uint64_t hash;
    size_t key; /* offset in the arena */
    uint32_t key_length, depth;
    uint64_t table; /* 0: the slot is free */
} reached_node;

typedef struct frontier_node {
    uint64_t table, hash; /* of its key */
} frontier_node;

typedef struct frontier {
    frontier_node *nodes;
    uint64_t count, room;
} frontier;

typedef struct search {
    st_snapshot *snapshot;
    st_neighbour_fn *each;
    void *context;
    reached_node *nodes; /* open addressing */
    uint64_t room, count;
    pf_buffer arena, key;
    uint32_t depth;     /* of what this level reports */
    frontier from;      /* the nodes of the last level */
    frontier found;     /* of this level */
    st_nearby **nearby; /* per type of the schema, once it was needed */
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

static sluice_status note_found(frontier *found, uint64_t table, uint64_t hash, sluice_error *err)
{
    if (found->count == found->room) {
        uint64_t room = found->room ? found->room * 2 : 64;
        frontier_node *nodes = realloc(found->nodes, room * sizeof(*nodes));
        if (!nodes)
            return pf_fail_memory(err);
        found->nodes = nodes;
        found->room = room;
    }
    found->nodes[found->count++] = (frontier_node){table, hash};
    return SLUICE_OK;
}

/* Adds the node in search->key, whose key hashes to `key_hash`; *ret_new false when it was there. */
static sluice_status reach(search *search_, uint64_t table, uint64_t key_hash, bool *ret_new, sluice_error *err)
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
    return note_found(&search_->found, table, key_hash, err);
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

/* An edge leads from the frontier to the node at its far end. */
static sluice_status arrive(search *search_, const st_type_def *there, const st_column *far, uint64_t row,
                            sluice_error *err)
{
    const st_column *key[ST_KEY_MEMBERS_MAX];
    bool fresh = false;
    PF_TRY(encode_end(search_, far, row, err));
    PF_TRY(reach(search_, there->table, st_key_hash_row(&far, 1, row), &fresh, err));
    if (!fresh)
        return SLUICE_OK;
    uint32_t count = members(far, key);
    return search_->each(search_->context, there, key, count, row, search_->depth, err);
}

/* Follows one edge one way. */
static sluice_status follow(search *search_, const st_type_def *here, const st_column *near, const st_type_def *there,
                            const st_column *far, uint64_t row, sluice_error *err)
{
    PF_TRY(encode_end(search_, near, row, err));
    return is_frontier(search_, here->table) ? arrive(search_, there, far, row, err) : SLUICE_OK;
}

/* ---- one edge table, one level ---- */

typedef struct edge_table {
    const st_type_def *edge, *ends[2]; /* from, to */
    st_direction direction;
    st_table_reader *reader;
    st_nearby *nearby; /* NULL: everything is scanned */
    st_nearby_edges edges;
    uint64_t next; /* of `edges`: the first that was not followed yet */
} edge_table;

static sluice_status scan_fragment(search *search_, const edge_table *table, uint32_t fragment, sluice_error *err)
{
    static const uint32_t ends[2] = {0, 1};
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    PF_TRY(st_scan_open_fragment(search_->snapshot, table->edge, ends, 2, fragment, &scan, err));
    sluice_status status = st_scan_next(scan, &batch, err);
    while (status == SLUICE_OK && batch) {
        const st_column *from = &batch->columns[0], *to = &batch->columns[1];
        for (uint64_t row = 0; row < batch->rows && status == SLUICE_OK; row++) {
            if (table->direction != ST_IN)
                status = follow(search_, table->ends[0], from, table->ends[1], to, row, err);
            if (table->direction != ST_OUT && status == SLUICE_OK)
                status = follow(search_, table->ends[1], to, table->ends[0], from, row, err);
        }
        if (status == SLUICE_OK)
            status = st_scan_next(scan, &batch, err);
    }
    st_scan_close(scan);
    return status;
}

/* An end of an edge that adjacency names: the key that its hash stands for, or as it stands in the fragment. */
static sluice_status take_end(const edge_table *table, const st_nearby_edge *edge, bool to, uint64_t hash,
                              uint64_t *word, st_column *ret_column, uint64_t *ret_row, sluice_error *err)
{
    const st_type_def *type = table->ends[to];
    st_fragment *fragment = NULL;
    uint32_t batch = 0;
    *ret_row = 0;
    if (type->key_count == 0 && st_key_of_hash(ST_ROW_ID, hash, word, ret_column))
        return SLUICE_OK;
    if (type->key_count == 1 && st_key_of_hash(type->properties[type->key[0]].type, hash, word, ret_column))
        return SLUICE_OK;
    PF_TRY(st_table_reader_fragment(table->reader, edge->fragment, &fragment, err));
    int at = st_layout_find(table->edge, fragment, to);
    if (at < 0)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end",
                       (unsigned long long)table->edge->table);
    st_fragment_locate(fragment, edge->position, &batch, ret_row);
    return st_fragment_column(fragment, batch, (uint32_t)at, ret_column, err);
}

/* The edges of a covered fragment that lead on from the frontier. */
static sluice_status follow_named(search *search_, edge_table *table, uint32_t fragment, sluice_error *err)
{
    for (; table->next < table->edges.count && table->edges.items[table->next].fragment == fragment; table->next++) {
        const st_nearby_edge *edge = &table->edges.items[table->next];
        st_column near, far;
        uint64_t near_word, far_word, near_row, far_row;
        PF_TRY(take_end(table, edge, edge->in, edge->near, &near_word, &near, &near_row, err));
        PF_TRY(encode_end(search_, &near, near_row, err));
        if (!is_frontier(search_, table->ends[edge->in]->table))
            continue;
        PF_TRY(take_end(table, edge, !edge->in, edge->far, &far_word, &far, &far_row, err));
        PF_TRY(arrive(search_, table->ends[!edge->in], &far, far_row, err));
    }
    return SLUICE_OK;
}

/* ---- the edges at the frontier, by adjacency ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* In the order in which a scan would meet them. */
static int by_place(const void *a, const void *b)
{
    const st_nearby_edge *left = a, *right = b;
    if (left->fragment != right->fragment)
        return left->fragment < right->fragment ? -1 : 1;
    if (left->position != right->position)
        return left->position < right->position ? -1 : 1;
    return (int)left->in - (int)right->in;
}

/* Nodes of the frontier that edges of the table may have at this end. */
static uint64_t count_at(const search *search_, const st_type_def *end)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < search_->from.count; i++)
        count += search_->from.nodes[i].table == end->table;
    return count;
}

static sluice_status gather_at(search *search_, edge_table *table, st_adjacency_direction direction, bool *ret_all,
                               sluice_error *err)
{
    const st_type_def *end = table->ends[direction == ST_ADJACENCY_IN];
    uint64_t count = 0, distinct = 0, *hashes = malloc((search_->from.count + 1) * sizeof(*hashes));
    if (!hashes)
        return pf_fail_memory(err);
    for (uint64_t i = 0; i < search_->from.count; i++)
        if (search_->from.nodes[i].table == end->table)
            hashes[count++] = search_->from.nodes[i].hash;
    qsort(hashes, count, sizeof(*hashes), by_value);
    for (uint64_t i = 0; i < count; i++)
        if (i == 0 || hashes[i] != hashes[distinct - 1])
            hashes[distinct++] = hashes[i];
    sluice_status status = st_nearby_gather(table->nearby, direction, hashes, distinct, &table->edges, ret_all, err);
    free(hashes);
    return status;
}

/* Fills the edges that adjacency names; where it is found damaged, once more without what is. */
static sluice_status gather(search *search_, edge_table *table, sluice_error *err)
{
    for (bool all = false; !all;) {
        table->edges.count = 0;
        all = true;
        if (table->direction != ST_IN)
            PF_TRY(gather_at(search_, table, ST_ADJACENCY_OUT, &all, err));
        if (table->direction != ST_OUT && all)
            PF_TRY(gather_at(search_, table, ST_ADJACENCY_IN, &all, err));
        if (!all && table->edges.count >= ST_NEARBY_EDGES_MAX) { /* too many to keep */
            table->nearby = NULL;
            table->edges.count = 0;
            return SLUICE_OK;
        }
    }
    if (table->edges.count > 1)
        qsort(table->edges.items, table->edges.count, sizeof(*table->edges.items), by_place);
    return SLUICE_OK;
}

static sluice_status find_nearby(search *search_, const st_type_def *edge, st_nearby **ret_nearby, sluice_error *err)
{
    size_t type = (size_t)(edge - search_->snapshot->view->schema->types);
    if (!search_->nearby[type])
        PF_TRY(st_nearby_open(search_->snapshot, edge, &search_->nearby[type], err));
    *ret_nearby = search_->nearby[type];
    return SLUICE_OK;
}

static sluice_status follow_edges(search *search_, const st_type_def *edge, st_direction direction, sluice_error *err)
{
    const st_schema *schema = search_->snapshot->view->schema;
    edge_table table = {
        .edge = edge, .ends = {&schema->types[edge->from], &schema->types[edge->to]}, .direction = direction};
    uint64_t starts = direction != ST_IN ? count_at(search_, table.ends[0]) : 0;
    starts += direction != ST_OUT ? count_at(search_, table.ends[1]) : 0;
    if (starts == 0)
        return SLUICE_OK;
    PF_TRY(st_table_reader_get(search_->snapshot, edge->table, &table.reader, err));
    PF_TRY(find_nearby(search_, edge, &table.nearby, err));
    if (starts > st_nearby_covered(table.nearby) / LOOK_UP_COST)
        table.nearby = NULL;
    sluice_status status = table.nearby ? gather(search_, &table, err) : SLUICE_OK;
    for (uint32_t i = 0; i < st_table_reader_fragments(table.reader) && status == SLUICE_OK; i++)
        status = table.nearby && st_nearby_covers(table.nearby, i) ? follow_named(search_, &table, i, err)
                                                                   : scan_fragment(search_, &table, i, err);
    free(table.edges.items);
    return status;
}

/* What was found is where the next level begins. */
static void step(search *search_)
{
    frontier from = search_->from;
    search_->from = search_->found;
    search_->found = from;
    search_->found.count = 0;
}

sluice_status st_neighbours(st_snapshot *snapshot, const st_type_def *type, const st_column *const *key,
                            uint32_t key_count, const st_type_def *edge, st_direction direction, uint32_t depth,
                            st_neighbour_fn *each, void *context, sluice_error *err)
{
    search search_ = {.snapshot = snapshot, .each = each, .context = context};
    const st_schema *schema = snapshot->view->schema;
    bool fresh = false;
    sluice_status status;
    search_.nearby = calloc((size_t)schema->type_count + 1, sizeof(st_nearby *));
    if (!search_.nearby)
        return pf_fail_memory(err);
    PF_GOTO(status, done, st_key_encode(key, key_count, 0, &search_.key, err));
    PF_GOTO(status, done, reach(&search_, type->table, st_key_hash_row(key, key_count, 0), &fresh, err));
    for (search_.depth = 1; search_.depth <= depth && search_.depth < UINT32_MAX; search_.depth++) {
        step(&search_);
        if (search_.from.count == 0)
            break;
        for (uint32_t i = 0; i < schema->type_count; i++) {
            const st_type_def *one = &schema->types[i];
            if (one->edge && (!edge || edge->table == one->table))
                PF_GOTO(status, done, follow_edges(&search_, one, direction, err));
        }
    }
done:
    for (uint32_t i = 0; i < schema->type_count; i++)
        st_nearby_close(search_.nearby[i]);
    free(search_.nearby);
    free(search_.nodes);
    free(search_.from.nodes);
    free(search_.found.nodes);
    pf_buffer_free(&search_.arena);
    pf_buffer_free(&search_.key);
    return status;
}
