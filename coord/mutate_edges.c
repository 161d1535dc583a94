/*
 * Edges and their ends: ends of inserted edges exist, deleted nodes leave no edge behind, counts keep their limits.
 *
 * The edges of a node are those of the base, found by the ends, and those that the file has inserted, which hang on the
 * node's object. All checks are on the net effect; an edge's fault belongs to the record that inserted it, a node's to
 * the one that deleted it.
 */
#include "coord/mutate_job.h"
#include "platform/check.h"

#define KEY_ROOM 160

static mut_type *end_type(mut_job *job, const mut_type *edge, uint32_t end)
{
    return &job->types[end == 0 ? edge->def->from : edge->def->to];
}

sluice_status mut_join_ends(mut_job *job, mut_object *edge, sluice_error *err)
{
    mut_type *type = edge->type;
    for (uint32_t end = 0; end < 2; end++) {
        st_column view;
        if (edge->ends[end]) /* it was here before and comes back */
            continue;
        st_builder_view(type->pool[end], &view);
        PF_TRY(mut_of_end(job, end_type(job, type, end), &view, edge->values[end], &edge->ends[end], err));
        mut_object *node = edge->ends[end];
        if (end == 1 && node == edge->ends[0]) /* a loop hangs on its node once */
            continue;
        edge->next[end] = node->edges;
        node->edges = edge;
    }
    return SLUICE_OK;
}

static mut_object *next_edge(const mut_object *node, const mut_object *edge)
{
    return edge->ends[0] == node ? edge->next[0] : edge->next[1];
}

/* ---- the edges of a node in the base ---- */

typedef sluice_status base_edge_fn(mut_job *job, mut_object *edge, void *context, sluice_error *err);

typedef struct walking {
    mut_job *job;
    mut_type *type;
    base_edge_fn *each;
    void *context;
} walking;

static sluice_status meet(void *context, uint32_t fragment, uint64_t position, bool *stop, sluice_error *err)
{
    walking *walk = context;
    mut_object *edge = NULL;
    (void)stop;
    PF_TRY(mut_of_row(walk->job, walk->type, fragment, position, &edge, err));
    return walk->each(walk->job, edge, walk->context, err);
}

/* Each edge of one type that the base has at this end of the node. */
static sluice_status walk_end(mut_job *job, mut_object *node, mut_type *type, uint32_t end, base_edge_fn *each,
                              void *context, sluice_error *err)
{
    st_table_reader *reader = NULL;
    st_column members[ST_KEY_MEMBERS_MAX], view;
    const st_column *columns[1] = {&view};
    walking walk = {job, type, each, context};
    PF_TRY(mut_reader(job, type, &reader, err));
    mut_end_view(node->type, members, &view);
    return st_table_each_match(reader, end == 0 ? ST_RUN_FROM : ST_RUN_TO, 0, columns, 1, node->key, meet, &walk, err);
}

static sluice_status walk_edges(mut_job *job, mut_object *node, base_edge_fn *each, void *context, sluice_error *err)
{
    for (uint32_t i = 0; i < job->type_count; i++) {
        mut_type *type = &job->types[i];
        for (uint32_t end = 0; end < 2 && type->def->edge; end++)
            if (end_type(job, type, end) == node->type)
                PF_TRY(walk_end(job, node, type, end, each, context, err));
    }
    return SLUICE_OK;
}

/* ---- detach ---- */

static void take_away(mut_job *job, mut_object *edge)
{
    if (!edge->exists)
        return;
    edge->exists = false;
    edge->replaced = edge->existed;
    edge->detached = true;
    edge->record = job->record;
}

static sluice_status take_base_edge(mut_job *job, mut_object *edge, void *context, sluice_error *err)
{
    (void)context;
    (void)err;
    edge->reads_row = true; /* whoever deletes it as well must not be met */
    take_away(job, edge);
    return SLUICE_OK;
}

sluice_status mut_detach(mut_job *job, mut_object *node, sluice_error *err)
{
    for (mut_object *edge = node->edges; edge; edge = next_edge(node, edge))
        take_away(job, edge);
    if (!node->existed)
        return SLUICE_OK;
    node->reads_edges = true; /* also when the node comes back: an edge that came meanwhile would have gone */
    return walk_edges(job, node, take_base_edge, NULL, err);
}

/* ---- restrict ---- */

static sluice_status refuse_edge(mut_job *job, mut_object *edge, void *context, sluice_error *err)
{
    const mut_object *node = context;
    char key[KEY_ROOM];
    (void)err;
    if (!edge->exists)
        return SLUICE_OK;
    mut_key_text(node, key, sizeof key);
    mut_fault(job, node->record, SLUICE_CONSTRAINT_ENDPOINT, "%s %s still has edges of type %s", node->type->def->name,
              key, edge->type->def->name);
    mut_hint(job, "\"detach\": true deletes them with it");
    return SLUICE_OK;
}

static sluice_status check_deleted(mut_job *job, mut_type *type, sluice_error *err)
{
    uint32_t count = type->object_count; /* edges that are met are of other types */
    for (uint32_t i = 0; i < count; i++) {
        mut_object *node = type->objects[i];
        if (node->existed && !node->exists)
            PF_TRY(walk_edges(job, node, refuse_edge, node, err));
    }
    return SLUICE_OK;
}

/* ---- ends of inserted edges ---- */

static bool is_inserted(const mut_object *object)
{
    return object->exists && !object->existed;
}

static void check_inserted(mut_job *job, const mut_object *edge)
{
    char key[KEY_ROOM];
    for (uint32_t end = 0; end < 2; end++) {
        const mut_object *node = edge->ends[end];
        if (node->exists)
            continue;
        mut_key_text(node, key, sizeof key);
        mut_fault(job, edge->record, SLUICE_CONSTRAINT_ENDPOINT, "column %s: there is no %s %s",
                  edge->type->specs[end].name, node->type->def->name, key);
        mut_hint(job, "insert it first, or by another record of the same file");
    }
}

/* ---- cardinality ---- */

static sluice_status count_edge(mut_job *job, mut_object *edge, void *context, sluice_error *err)
{
    mut_object *node = context;
    (void)job;
    (void)err;
    node->count += edge->exists;
    return SLUICE_OK;
}

static sluice_status check_count(mut_job *job, mut_object *edge, uint32_t end, uint64_t most, sluice_error *err)
{
    mut_object *node = edge->ends[end];
    char key[KEY_ROOM];
    if (node->stamp != job->stamp) {
        node->stamp = job->stamp;
        node->count = 0;
        if (node->existed)
            PF_TRY(walk_end(job, node, edge->type, end, count_edge, node, err));
    }
    if (++node->count <= most)
        return SLUICE_OK;
    mut_key_text(node, key, sizeof key);
    mut_fault(job, edge->record, SLUICE_CONSTRAINT_CARDINALITY, "column %s: %s %s has more than %llu edges of type %s",
              edge->type->specs[end].name, node->type->def->name, key, (unsigned long long)most, edge->type->def->name);
    return SLUICE_OK;
}

static sluice_status check_counts(mut_job *job, mut_type *type, uint32_t end, uint64_t most, sluice_error *err)
{
    job->stamp++;
    if (most == ST_NO_LIMIT)
        return SLUICE_OK;
    for (uint32_t i = 0, count = type->object_count; i < count; i++)
        if (is_inserted(type->objects[i]))
            PF_TRY(check_count(job, type->objects[i], end, most, err));
    return SLUICE_OK;
}

sluice_status mut_check_ends(mut_job *job, sluice_error *err)
{
    for (uint32_t i = 0; i < job->type_count; i++) {
        mut_type *type = &job->types[i];
        if (!type->def->edge) {
            PF_TRY(check_deleted(job, type, err));
            continue;
        }
        for (uint32_t k = 0; k < type->object_count; k++)
            if (is_inserted(type->objects[k]))
                check_inserted(job, type->objects[k]);
        PF_TRY(check_counts(job, type, 0, type->def->max_out, err));
        PF_TRY(check_counts(job, type, 1, type->def->max_in, err));
    }
    return SLUICE_OK;
}
