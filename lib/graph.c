/*
 * Graphs and their branches: making, opening, closing, listing.
 */
#include "coord/branch.h"
#include "lib/handle.h"
#include "store/state/lineage.h"
#include <stdlib.h>
#include <string.h>

sluice_status sluice_open(const char *path, sluice_access access, sluice_graph **ret_graph, sluice_error *err)
{
    PF_TRY(lib_need(ret_graph, "ret_graph", err));
    *ret_graph = NULL;
    PF_TRY(lib_need(path, "the path", err));
    pf_preflight_without_children();
    sluice_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return pf_fail_memory(err);
    graph->path = strdup(path);
    sluice_status status = graph->path
                               ? st_graph_open(path, access == SLUICE_WRITE ? PF_WRITE : PF_READ, &graph->graph, err)
                               : pf_fail_memory(err);
    if (status != SLUICE_OK) {
        free(graph->path);
        free(graph);
        return status;
    }
    pf_volume_leave_to_parent(st_graph_volume(graph->graph));
    graph->epoch = pf_id_new();
    graph->holds = 1;
    *ret_graph = graph;
    return SLUICE_OK;
}

sluice_status sluice_create(const char *path, const char *schema, size_t length, sluice_mode mode,
                            sluice_graph **ret_graph, sluice_error *err)
{
    static const st_write_mode modes[] = {
        [SLUICE_OPTIMISTIC] = ST_MODE_OPTIMISTIC, [SLUICE_SINGLE] = ST_MODE_SINGLE, [SLUICE_QUEUED] = ST_MODE_QUEUED};
    st_schema *parsed = NULL;
    pf_id id;
    PF_TRY(lib_need(ret_graph, "ret_graph", err));
    *ret_graph = NULL;
    PF_TRY(lib_need(path, "the path", err));
    PF_TRY(lib_need(schema, "the schema", err));
    if ((unsigned)mode >= sizeof modes / sizeof modes[0])
        return pf_fail(err, SLUICE_USAGE, "there is no such mode");
    pf_preflight_without_children();
    PF_TRY(st_schema_parse(schema, length, "schema", &parsed, err));
    sluice_status status = st_graph_init(path, parsed, modes[mode], &id, err);
    st_schema_free(parsed);
    PF_TRY(status);
    status = sluice_open(path, SLUICE_WRITE, ret_graph, err);
    if (status != SLUICE_OK && err) /* it stands, though it could not be opened */
        err->committed = err->acknowledged = SLUICE_TRUE;
    return status;
}

void sluice_close(sluice_graph *graph)
{
    if (graph)
        lib_graph_release(graph);
}

void sluice_graph_id(const sluice_graph *graph, char ret_id[SLUICE_ID_TEXT])
{
    pf_id_text(st_graph_id(graph->graph), ret_id);
}

/* ---- branches ---- */

typedef struct branch_names {
    char **names; /* NULL: unreadable */
    uint64_t *incarnations;
    size_t count, room;
} branch_names;

static sluice_status add_name(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    branch_names *list = context;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        char **names = reallocarray(list->names, room, sizeof *names);
        if (!names)
            return pf_fail_memory(err);
        list->names = names;
        uint64_t *incarnations = reallocarray(list->incarnations, room, sizeof *incarnations);
        if (!incarnations)
            return pf_fail_memory(err);
        list->incarnations = incarnations;
        list->room = room;
    }
    list->names[list->count] = name ? strdup(name) : NULL;
    if (name && !list->names[list->count])
        return pf_fail_memory(err);
    list->incarnations[list->count++] = incarnation;
    return SLUICE_OK;
}

static void free_names(branch_names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    free(list->incarnations);
}

/* *ret_gone: deleted meanwhile. What cannot be read is that branch's matter alone. */
static sluice_status describe(st_graph *graph, uint64_t incarnation, sluice_branch *branch, bool *ret_gone,
                              sluice_error *err)
{
    st_log *log = NULL;
    st_view *view = NULL;
    uint64_t now = 0;
    sluice_error local = {0};
    *ret_gone = false;
    branch->damaged = true;
    if (!branch->name)
        return SLUICE_OK;
    sluice_status status = st_graph_log(graph, incarnation, &log, &local);
    if (status == SLUICE_OK)
        status = st_view_load(graph, log, true, &view, &local);
    if (status == SLUICE_OK) {
        branch->damaged = false;
        branch->generation = view->generation;
        branch->time_us = view->head_time_us;
        pf_id_text(&view->head, branch->head);
        st_view_free(view);
        return SLUICE_OK;
    }
    if (status != SLUICE_CORRUPT && status != SLUICE_NOT_FOUND && status != SLUICE_UNSUPPORTED_FORMAT) {
        if (err)
            *err = local;
        return status;
    }
    *ret_gone = st_ref_read(graph, branch->name, &now, NULL) == SLUICE_NOT_FOUND || now != incarnation;
    return SLUICE_OK;
}

sluice_status sluice_branches(sluice_graph *graph, sluice_branch_fn *each, void *context, sluice_error *err)
{
    branch_names list = {0};
    bool more = true, gone = false;
    sluice_status status;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    PF_GOTO(status, done, st_ref_list(graph->graph, add_name, &list, err));
    for (size_t i = 0; i < list.count && more; i++) {
        sluice_branch branch = {.name = list.names[i]};
        PF_GOTO(status, done, describe(graph->graph, list.incarnations[i], &branch, &gone, err));
        more = gone || each(context, &branch);
    }
done:
    free_names(&list);
    return status;
}

sluice_status sluice_branch_create(sluice_graph *graph, const char *name, const char *from, sluice_error *err)
{
    co_branch_request request = {.name = name, .from = from, .operation = pf_id_new()};
    co_branch_receipt receipt;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(name, "the name", err));
    return co_branch_create(graph->graph, &request, &receipt, err);
}

sluice_status sluice_branch_delete(sluice_graph *graph, const char *name, sluice_error *err)
{
    co_branch_request request = {.name = name, .operation = pf_id_new()};
    co_branch_receipt receipt;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(name, "the name", err));
    return co_branch_delete(graph->graph, &request, &receipt, err);
}

/* ---- commits ---- */

typedef struct log_walk {
    sluice_log_fn *each;
    void *context;
} log_walk;

static sluice_status tell_commit(void *context, const st_generation *generation, uint32_t index, bool *stop,
                                 sluice_error *err)
{
    const log_walk *walk = context;
    const st_commit *commit = &generation->commits[index];
    sluice_commit_info info = {.generation = generation->number,
                               .index = index,
                               .time_us = commit->time_us,
                               .kind = commit->kind,
                               .actor = commit->actor,
                               .message = commit->message,
                               .inserted = commit->inserted,
                               .updated = commit->updated,
                               .deleted = commit->deleted};
    (void)err;
    pf_id_text(&commit->id, info.commit);
    lib_id_text(&commit->parents[0], info.parents[0]);
    lib_id_text(&commit->parents[1], info.parents[1]);
    lib_id_text(&commit->operation, info.operation);
    *stop = !walk->each(walk->context, &info);
    return SLUICE_OK;
}

sluice_status sluice_log(sluice_graph *graph, const char *branch, sluice_log_fn *each, void *context, sluice_error *err)
{
    log_walk walk = {each, context};
    uint64_t incarnation = 0;
    st_log *log = NULL;
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need((const void *)(uintptr_t)each, "the function", err));
    PF_TRY(st_ref_read(graph->graph, branch ? branch : ST_MAIN_BRANCH, &incarnation, err));
    PF_TRY(st_graph_log(graph->graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    return st_lineage_each(graph->graph, log, tell_commit, &walk, err);
}
