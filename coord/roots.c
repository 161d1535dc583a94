/*
 * Finding the roots (coord/roots.h). Changes nothing; whoever may write makes durable what it finds, since he relies on
 * what is not there: a name that went, with a process that died before that was synced, would come back with the next
 * loss of power, to what has been collected since.
 *
 * Order: intents, refs, pins, checkpoints (who makes one holds a pin until it stands). Who makes a ref retires the
 * intent after that; a reader pins, then looks at the ref again, so one whose branch had no ref when they were listed
 * either has its pin by now or will not be let in.
 */
#include "coord/roots.h"
#include "coord/recovery.h"
#include "coord/write.h"
#include "platform/check.h"
#include "store/state/ancestry.h"
#include <stdio.h>
#include <stdlib.h>

#define ROOTS_MAX 65536u

void co_roots_free(co_roots *roots)
{
    free(roots->incarnations);
    *roots = (co_roots){0};
}

bool co_roots_have(const co_roots *roots, uint64_t incarnation)
{
    for (uint32_t i = 0; i < roots->count; i++)
        if (roots->incarnations[i] == incarnation)
            return true;
    return false;
}

bool co_roots_may_be_half_made(const co_roots *roots, uint32_t which)
{
    return which >= roots->made && which < roots->made_end;
}

uint64_t co_settled_end(const st_log *log)
{
    st_log_position end = st_log_end(log);
    return end.number < end.acknowledged ? end.number : end.acknowledged;
}

sluice_status co_settled_view(st_graph *graph, st_log *log, st_view **ret_view, sluice_error *err)
{
    PF_TRY(st_log_refresh(log, err));
    uint64_t settled = co_settled_end(log);
    return settled == st_log_end(log).number ? st_view_load(graph, log, false, ret_view, err)
                                             : st_view_load_kept(graph, log, settled, ret_view, err);
}

static sluice_status add(co_roots *roots, uint64_t incarnation, sluice_error *err)
{
    if (co_roots_have(roots, incarnation))
        return SLUICE_OK;
    if (roots->count == roots->room) {
        uint32_t room = roots->room ? roots->room * 2 : 16;
        if (room > ROOTS_MAX)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a graph of more than %u branches", ROOTS_MAX);
        uint64_t *grown = realloc(roots->incarnations, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        roots->incarnations = grown;
        roots->room = room;
    }
    roots->incarnations[roots->count++] = incarnation;
    return SLUICE_OK;
}

static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    if (!name)
        return pf_fail(err, SLUICE_CORRUPT, "a branch's ref is unreadable, so nothing can be called unnamed");
    return add(context, incarnation, err);
}

/* An intent with an effect that is visible by itself may make its branch: recovery makes the ref then. */
static sluice_status on_scope(void *context, const co_scope *scope, sluice_error *err)
{
    return scope->visible ? add(context, scope->incarnation, err) : SLUICE_OK;
}

static bool has_folder(st_graph *graph, uint64_t incarnation)
{
    char folder[64];
    pf_stat stat;
    st_branch_folder(incarnation, folder);
    return pf_stat_path(st_graph_volume(graph), folder, &stat, NULL) == SLUICE_OK;
}

typedef struct pin_walk {
    st_graph *graph;
    co_roots *roots;
} pin_walk;

static sluice_status on_folder(void *context, uint64_t incarnation, sluice_error *err)
{
    const pin_walk *walk = context;
    char folder[64], path[80];
    pf_file *pins = NULL;
    bool is_free = true;
    sluice_error local = {0};
    if (co_roots_have(walk->roots, incarnation))
        return SLUICE_OK;
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/pins", folder);
    sluice_status status = pf_open(st_graph_volume(walk->graph), path, PF_READ, &pins, &local);
    if (status == SLUICE_NOT_FOUND) /* half made: nobody can have pinned it */
        return SLUICE_OK;
    if (status == SLUICE_OK)
        status = pf_lock_is_free(pins, 0, INT64_MAX, &is_free, &local);
    (void)pf_close(pins, NULL); /* only looked at */
    if (status != SLUICE_OK) {
        if (err)
            *err = local;
        return status;
    }
    return is_free ? SLUICE_OK : add(walk->roots, incarnation, err);
}

/* What a branch has merged and main has not: where it met with another one may lie there (LESSONS G-01). Branches that
 * main has merged are not needed for that any more. */
static sluice_status add_merged(st_graph *graph, st_log *log, co_roots *roots, sluice_error *err)
{
    st_view *view = NULL;
    st_history history = {0};
    st_reach *reaches = NULL;
    uint32_t count = 0;
    sluice_status status;
    PF_GOTO(status, done, co_settled_view(graph, log, &view, err));
    if (view->merge == 0)
        goto done;
    PF_GOTO(status, done, st_history_of(graph, view, &history, err));
    PF_GOTO(status, done, st_history_reduce(graph, &history, &reaches, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (has_folder(graph, reaches[i].incarnation)) /* else it went before this branch began to need it */
            PF_GOTO(status, done, add(roots, reaches[i].incarnation, err));
done:
    free(reaches);
    st_history_free(&history);
    st_view_free(view);
    return status;
}

/* Everything that a root was forked from or has merged, until none is new. Who makes a branch keeps the one that it
 * forks from. */
static sluice_status add_parents(st_graph *graph, co_roots *roots, sluice_error *err)
{
    for (uint32_t i = 0; i < roots->count; i++) {
        st_log *log = NULL;
        st_fork fork = {0};
        sluice_error local = {0};
        if (roots->incarnations[i] == ST_MAIN_INCARNATION)
            continue;
        sluice_status status = st_graph_log(graph, roots->incarnations[i], &log, &local);
        if (status == SLUICE_OK)
            status = st_log_fork(log, &fork, &local);
        if (status == SLUICE_OK)
            status = add_merged(graph, log, roots, &local);
        if (status != SLUICE_OK && !co_roots_may_be_half_made(roots, i)) {
            if (err)
                *err = local;
            return status;
        }
        if (status == SLUICE_OK && fork.incarnation)
            PF_TRY(add(roots, fork.incarnation, err));
    }
    return SLUICE_OK;
}

static sluice_status on_control(void *context, st_control *control, sluice_error *err)
{
    for (uint32_t i = 0; i < control->checkpoint_count; i++)
        PF_TRY(add(context, control->checkpoints[i].incarnation, err));
    return SLUICE_OK;
}

static sluice_status add_checkpoints(st_graph *graph, co_roots *roots, sluice_error *err)
{
    st_control control = {0};
    if (st_graph_access(graph) == PF_WRITE) /* no change, but what it sees is settled */
        return st_control_update(graph, on_control, roots, pf_deadline_in_ms(CO_WAIT_MS), err);
    PF_TRY(st_control_read(graph, &control, err));
    sluice_status status = on_control(roots, &control, err);
    st_control_free(&control);
    return status;
}

static sluice_status collect(st_graph *graph, co_roots *roots, co_roots *intents, sluice_error *err)
{
    pin_walk pins = {graph, roots};
    bool unknown = false;
    PF_TRY(co_recovery_scopes(graph, on_scope, intents, &unknown, err));
    PF_TRY(st_ref_list(graph, on_ref, roots, err));
    if (st_graph_access(graph) == PF_WRITE)
        PF_TRY(st_refs_sync(graph, err));
    roots->made = roots->count;
    for (uint32_t i = 0; i < intents->count; i++)
        PF_TRY(add(roots, intents->incarnations[i], err));
    roots->made_end = roots->count;
    PF_TRY(st_branch_list(graph, on_folder, &pins, err));
    PF_TRY(add_checkpoints(graph, roots, err));
    return add_parents(graph, roots, err);
}

sluice_status co_roots_find(st_graph *graph, co_roots *ret_roots, sluice_error *err)
{
    co_roots roots = {0}, intents = {0};
    sluice_status status = collect(graph, &roots, &intents, err);
    co_roots_free(&intents);
    if (status == SLUICE_OK)
        *ret_roots = roots;
    else
        co_roots_free(&roots);
    return status;
}
