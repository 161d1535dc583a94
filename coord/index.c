/*
 * What index does to a table: lost runs are made again, and every fragment of an edge table that is a file gets
 * adjacency in both directions.
 *
 * One pair of files covers fragments of at most EDGES_MAX edges together. A pair that covers half of that is kept as it
 * is while most of its edges are still listed; the fragments of smaller ones are covered anew together with those that
 * are not covered at all. So what is indexed once is left alone, and files stay few.
 */
#include "coord/maintain_job.h"
#include "platform/check.h"
#include "store/fragment/adjacency.h"
#include "store/state/codec.h" /* st_add_copy */
#include "worker/maintain/lost_runs.h"
#include "worker/maintain/neighbourhood.h"
#include <stdlib.h>
#include <string.h>

#define EDGES_MAX (UINT64_C(4) << 20) /* of one file; fewer where there is less memory to make it */
#define NAMES     256u                /* see maintain_names */

/* ---- choosing ---- */

typedef struct pair { /* an index that fragments of the list name */
    const st_index_ref *ref;
    uint64_t listed; /* edges of fragments that it covers and that are listed */
    bool kept;
} pair;

typedef struct choosing {
    maintain_job *job;
    const st_type_def *type;
    const st_table_list *list;
    pair *pairs;
    uint32_t pair_count;
    uint32_t *group;
    uint32_t count;
    uint64_t edges;
    uint32_t groups;
    uint64_t most;  /* edges of one file */
    bool uncovered; /* a candidate that no readable index covers */
} choosing;

static pair *find_pair(choosing *c, const st_index_ref *ref)
{
    for (uint32_t i = 0; i < c->pair_count; i++)
        if (strcmp(c->pairs[i].ref->out.name, ref->out.name) == 0)
            return &c->pairs[i];
    return NULL;
}

/* Both files can be opened. */
static sluice_status is_readable(const choosing *c, const st_index_ref *ref, bool *ret_readable, sluice_error *err)
{
    const st_run_info *files[] = {&ref->out, &ref->in};
    *ret_readable = true;
    for (int i = 0; i < 2 && *ret_readable; i++) {
        st_adjacency *adjacency = NULL;
        sluice_error error = {0};
        sluice_status status = st_adjacency_open(c->job->spool.volume, c->type->table, files[i],
                                                 i == 0 ? ST_ADJACENCY_OUT : ST_ADJACENCY_IN, &adjacency, &error);
        st_adjacency_close(adjacency);
        *ret_readable = status == SLUICE_OK;
        if (status != SLUICE_OK && status != SLUICE_CORRUPT) {
            if (err)
                *err = error;
            return status;
        }
    }
    return SLUICE_OK;
}

static sluice_status find_pairs(choosing *c, sluice_error *err)
{
    c->pairs = calloc((size_t)c->list->count + 1, sizeof *c->pairs);
    if (!c->pairs)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < c->list->count; i++) {
        const st_index_ref *ref = &c->list->fragments[i].index;
        pair *found = ref->present ? find_pair(c, ref) : NULL;
        if (ref->present && !found) {
            found = &c->pairs[c->pair_count++];
            found->ref = ref;
        }
        if (found)
            found->listed += c->list->fragments[i].fragment.rows;
    }
    for (uint32_t i = 0; i < c->pair_count; i++) {
        bool readable = false;
        PF_TRY(is_readable(c, c->pairs[i].ref, &readable, err));
        if (!readable)
            c->pairs[i].listed = 0; /* as if it were not there */
        c->pairs[i].kept = c->pairs[i].listed >= c->most / 2 && c->pairs[i].listed >= c->pairs[i].ref->out.entries / 2;
    }
    return SLUICE_OK;
}

static sluice_status end_group(choosing *c, bool add, sluice_error *err)
{
    maintain_work *work = &c->job->work;
    if (c->count == 0)
        return SLUICE_OK;
    c->groups++;
    if (add) {
        PF_TRY(maintain_work_add(work, c->type->table, MAINTAIN_OUT, c->group, c->count, err));
        PF_TRY(maintain_work_add(work, c->type->table, MAINTAIN_IN, c->group, c->count, err));
    }
    c->count = 0;
    c->edges = 0;
    return SLUICE_OK;
}

/* Goes through the candidates; `add`: puts their groups on the list. */
static sluice_status group_candidates(choosing *c, bool add, sluice_error *err)
{
    c->groups = 0;
    for (uint32_t i = 0; i < c->list->count; i++) {
        const st_edit_add *at = &c->list->fragments[i];
        pair *covered = at->index.present ? find_pair(c, &at->index) : NULL;
        if (at->fragment.attached || (covered && covered->kept))
            continue;
        c->uncovered |= !covered || covered->listed == 0;
        if (c->count > 0 && c->edges + at->fragment.rows > c->most)
            PF_TRY(end_group(c, add, err));
        c->group[c->count++] = i;
        c->edges += at->fragment.rows;
    }
    return end_group(c, add, err);
}

static sluice_status choose_adjacency(choosing *c, sluice_error *err)
{
    uint32_t smaller = 0;
    PF_TRY(find_pairs(c, err));
    PF_TRY(group_candidates(c, false, err));
    for (uint32_t i = 0; i < c->pair_count; i++)
        smaller += !c->pairs[i].kept;
    if (!c->uncovered && smaller <= c->groups)
        return SLUICE_OK;
    return group_candidates(c, true, err);
}

sluice_status index_choose(maintain_job *job, st_snapshot *base, const st_type_def *type, sluice_error *err)
{
    choosing c = {.job = job, .type = type, .most = wk_neighbourhood_edges(EDGES_MAX)};
    st_table_reader *reader = NULL;
    sluice_status status;
    PF_TRY(st_table_reader_get(base, type->table, &reader, err));
    c.list = st_table_reader_list(reader);
    c.group = malloc(((size_t)c.list->count + 1) * sizeof *c.group);
    if (!c.group)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < c.list->count; i++) {
        bool lost = false;
        if (c.list->fragments[i].fragment.attached) /* without runs until a fold moves its rows */
            continue;
        PF_GOTO(status, done, wk_runs_are_lost(job->spool.volume, type, &c.list->fragments[i], &lost, err));
        if (lost)
            PF_GOTO(status, done, maintain_work_add(&job->work, type->table, MAINTAIN_RUNS, &i, 1, err));
    }
    status = type->edge ? choose_adjacency(&c, err) : SLUICE_OK;
done:
    free(c.pairs);
    free(c.group);
    return status;
}

/* ---- the tasks ---- */

static sluice_status rebuild_runs(maintain_job *job, uint32_t number, const st_type_def *type, const st_edit_add *add,
                                  sluice_error *err)
{
    char prefix[48];
    uint64_t first = 0;
    st_edit_add made = {0};
    maintain_names(job, number, prefix, &first);
    PF_TRY(wk_runs_rebuild(job->spool.volume, type, add, prefix, first, NAMES, &made, err));
    made.dead = (st_dead_ref){0}; /* the list keeps its own */
    st_edit edit = {.table = type->table, .adds = &made, .add_count = 1};
    sluice_status status = maintain_put_edit(job, number, &edit, err);
    st_add_free(&made);
    return status;
}

static sluice_status build_adjacency(maintain_job *job, uint32_t number, const st_table_list *list, sluice_error *err)
{
    const maintain_item *item = &job->work.items[number];
    char name[WK_SPOOL_NAME];
    st_run_info info = {0};
    const st_edit_add **fragments = calloc((size_t)item->count + 1, sizeof *fragments);
    wk_neighbourhood work = {.volume = job->spool.volume,
                             .table = item->table,
                             .fragments = fragments,
                             .count = item->count,
                             .direction = item->task == MAINTAIN_OUT ? ST_ADJACENCY_OUT : ST_ADJACENCY_IN,
                             .tries = NAMES,
                             .advance = maintain_advance,
                             .advance_context = job};
    if (!fragments)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < item->count; i++)
        fragments[i] = &list->fragments[job->work.fragments[item->first + i]];
    maintain_names(job, number, work.prefix, &work.number);
    maintain_item_name(job->work.number, number, name);
    sluice_status status = wk_neighbourhood_write(&work, &info, err);
    if (status == SLUICE_OK)
        status = wk_spool_put(&job->spool, name, &info, sizeof info, NULL, err);
    free(fragments);
    return status;
}

sluice_status index_task(maintain_job *job, uint32_t number, sluice_error *err)
{
    const maintain_item *item = &job->work.items[number];
    const st_type_def *type = st_schema_find_table(st_snapshot_view(job->base)->schema, item->table);
    st_table_reader *reader = NULL;
    PF_TRY(st_table_reader_get(job->base, item->table, &reader, err));
    const st_table_list *list = st_table_reader_list(reader);
    for (uint32_t i = 0; i < item->count; i++)
        if (job->work.fragments[item->first + i] >= list->count)
            return pf_fail(err, SLUICE_INTERNAL, "a work list names a fragment that its base does not have");
    if (item->task == MAINTAIN_RUNS)
        return rebuild_runs(job, number, type, &list->fragments[job->work.fragments[item->first]], err);
    return build_adjacency(job, number, list, err);
}

/* ---- the edit ---- */

typedef struct renewal { /* what a fragment of the base gets */
    bool present;
    st_edit runs; /* of one add, or none */
    st_index_ref index;
} renewal;

static sluice_status read_info(maintain_job *job, uint32_t number, st_run_info *ret_info, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer bytes = {0};
    bool found = false;
    maintain_item_name(job->work.number, number, name);
    sluice_status status = wk_spool_get(&job->spool, name, &bytes, &found, err);
    if (status == SLUICE_OK && (!found || bytes.length != sizeof *ret_info))
        status = pf_fail(err, SLUICE_INTERNAL, "the result of item %u is missing", number);
    if (status == SLUICE_OK)
        memcpy(ret_info, bytes.data, sizeof *ret_info);
    pf_buffer_free(&bytes);
    return status;
}

/* Per fragment of the list's base: what the items [first, end) made for it. */
static sluice_status read_results(maintain_job *job, uint32_t first, uint32_t end, renewal *renewals, sluice_error *err)
{
    const maintain_work *work = &job->work;
    for (uint32_t number = first; number < end; number++) {
        const maintain_item *item = &work->items[number];
        st_run_info info = {0};
        if (item->task == MAINTAIN_RUNS) {
            renewal *into = &renewals[work->fragments[item->first]];
            PF_TRY(maintain_get_edit(job, number, &into->runs, err));
            into->present = into->runs.add_count == 1;
            continue;
        }
        PF_TRY(read_info(job, number, &info, err));
        for (uint32_t i = 0; i < item->count; i++) {
            renewal *into = &renewals[work->fragments[item->first + i]];
            into->present = into->index.present = true;
            into->index.ordinal = i;
            if (item->task == MAINTAIN_OUT)
                into->index.out = info;
            else
                into->index.in = info;
        }
    }
    return SLUICE_OK;
}

/* The fragment by itself, with what is new. */
static sluice_status renew(const st_edit_add *listed, const renewal *fresh, st_edit *edit, sluice_error *err)
{
    st_edit_out *out = &edit->out[edit->out_count++];
    const st_edit_add *with_runs = fresh->runs.add_count ? &fresh->runs.adds[0] : listed;
    memcpy(out->fragment, listed->fragment.name, sizeof out->fragment);
    out->bytes = listed->fragment.bytes;
    st_edit_add *add = &edit->adds[edit->add_count];
    PF_TRY(st_add_copy(listed, add, err));
    free(add->runs);
    add->runs = calloc((size_t)with_runs->run_count + 1, sizeof *add->runs);
    add->run_count = 0;
    edit->add_count++;
    if (!add->runs)
        return pf_fail_memory(err);
    memcpy(add->runs, with_runs->runs, with_runs->run_count * sizeof *add->runs);
    add->run_count = with_runs->run_count;
    add->dead = (st_dead_ref){0}; /* the list keeps its own, and the ids */
    if (fresh->index.present)
        add->index = fresh->index;
    return SLUICE_OK;
}

/* Lists mostly keep their order: the search goes on behind the last one that was found. */
static const renewal *find_renewal(const st_table_list *base, const renewal *renewals, const char *fragment,
                                   uint32_t *next)
{
    for (uint32_t k = 0; k < base->count; k++) {
        uint32_t i = (*next + k) % base->count;
        if (strcmp(base->fragments[i].fragment.name, fragment) != 0)
            continue;
        *next = i + 1;
        return &renewals[i];
    }
    return NULL;
}

/* Of the fragments that stand in the list now. */
static sluice_status make_edit(const st_table_list *base, const st_table_list *now, bool same, const renewal *renewals,
                               st_edit *edit, sluice_error *err)
{
    edit->adds = calloc((size_t)now->count + 1, sizeof *edit->adds);
    edit->out = calloc((size_t)now->count + 1, sizeof *edit->out);
    uint32_t next = 0;
    if (!edit->adds || !edit->out)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < now->count; i++) {
        const renewal *fresh =
            same ? &renewals[i] : find_renewal(base, renewals, now->fragments[i].fragment.name, &next);
        if (fresh && fresh->present)
            PF_TRY(renew(&now->fragments[i], fresh, edit, err));
    }
    return SLUICE_OK;
}

sluice_status index_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, st_edit *ret_edit,
                         sluice_error *err)
{
    st_edit edit = {.table = job->work.items[first].table};
    st_table_reader *base = NULL, *now = NULL;
    sluice_status status;
    PF_TRY(st_table_reader_get(job->base, edit.table, &base, err));
    PF_TRY(st_table_reader_get(write->base, edit.table, &now, err));
    uint32_t count = st_table_reader_fragments(base);
    renewal *renewals = calloc((size_t)count + 1, sizeof *renewals);
    if (!renewals)
        return pf_fail_memory(err);
    PF_GOTO(status, done, read_results(job, first, end, renewals, err));
    bool same = st_snapshot_view(write->base)->generation == job->work.generation;
    PF_GOTO(status, done, make_edit(st_table_reader_list(base), st_table_reader_list(now), same, renewals, &edit, err));
    *ret_edit = edit;
    edit = (st_edit){0};
done:
    for (uint32_t i = 0; i < count; i++)
        st_edit_free(&renewals[i].runs);
    free(renewals);
    st_edit_free(&edit);
    return status;
}
