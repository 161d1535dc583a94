/*
 * The decision what is kept (coord/retention.h). Reads only.
 */
#include "coord/retention.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/sabotage.h"
#include "store/state/ancestry.h"
#include <stdio.h>
#include <stdlib.h>

void co_retention_free(co_retention *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        free(plan->logs[i].ranges);
    free(plan->logs);
    *plan = (co_retention){0};
}

static co_kept *find(const co_retention *plan, uint64_t incarnation)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->logs[i].incarnation == incarnation)
            return &plan->logs[i];
    return NULL;
}

static sluice_status keep(co_kept *log, uint64_t first, uint64_t last, sluice_error *err)
{
    if (log->count == log->room) {
        uint32_t room = log->room ? log->room * 2 : 8;
        st_range *grown = realloc(log->ranges, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        log->ranges = grown;
        log->room = room;
    }
    log->ranges[log->count++] = (st_range){first, last};
    return SLUICE_OK;
}

/* One generation, if its log is among those that something living reaches. */
static sluice_status keep_place(const co_retention *plan, uint64_t incarnation, uint64_t generation, sluice_error *err)
{
    co_kept *log = find(plan, incarnation);
    return log ? keep(log, generation, generation, err) : SLUICE_OK;
}

/* ---- pins and intents ---- */

/* The lowest byte that somebody holds. Pins that are let go of meanwhile lead astray: to a byte that nobody ever held.
 */
static sluice_status lowest_pin(pf_file *pins, uint64_t *ret_lowest, sluice_error *err)
{
    for (;;) {
        uint64_t low = 0, high = INT64_MAX - 1;
        bool is_free = true;
        *ret_lowest = UINT64_MAX;
        PF_TRY(pf_lock_is_free(pins, 0, high + 1, &is_free, err));
        if (is_free)
            return SLUICE_OK;
        while (low < high) { /* of [0, high] not all was free, of [0, low) all was */
            uint64_t middle = low + (high - low) / 2;
            PF_TRY(pf_lock_is_free(pins, 0, middle + 1, &is_free, err));
            if (is_free)
                low = middle + 1;
            else
                high = middle;
        }
        *ret_lowest = low;
        PF_TRY(pf_lock_is_free(pins, low, 1, &is_free, err));
        if (!is_free)
            return SLUICE_OK;
    }
}

typedef struct base_walk {
    uint64_t incarnation, lowest;
} base_walk;

static sluice_status on_base(void *context, uint64_t incarnation, uint64_t base, sluice_error *err)
{
    base_walk *walk = context;
    (void)err;
    if (incarnation == walk->incarnation && base < walk->lowest)
        walk->lowest = base;
    return SLUICE_OK;
}

sluice_status co_retention_floor(st_graph *graph, uint64_t incarnation, uint64_t *ret_floor, sluice_error *err)
{
    char folder[64], path[80];
    pf_file *pins = NULL;
    uint64_t pinned = UINT64_MAX;
    base_walk bases = {incarnation, UINT64_MAX};
    sluice_error local = {0};
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/pins", folder);
    sluice_status status = pf_open(st_graph_volume(graph), path, PF_READ, &pins, &local);
    if (status == SLUICE_OK)
        status = lowest_pin(pins, &pinned, &local);
    (void)pf_close(pins, NULL); /* only looked at */
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = local;
        return status;
    }
    PF_TRY(co_recovery_bases(graph, on_base, &bases, err)); /* after the pins: who arms holds one until then */
    *ret_floor = pinned < bases.lowest && !PF_SABOTAGE(pins_not_looked_at) ? pinned : bases.lowest;
    return SLUICE_OK;
}

/* ---- the limits ---- */

typedef struct limit_walk { /* down a lineage */
    const co_limits *limits;
    int64_t cutoff;
    uint64_t left; /* generations that the count still keeps */
    bool count_done, age_done;
} limit_walk;

/* What the limits keep of one log up to `top`: everything from *ret_low on. */
static sluice_status limit_log(limit_walk *walk, st_log *log, uint64_t top, uint64_t *ret_low, sluice_error *err)
{
    uint64_t first = st_log_first(log), by_count = top + 1, by_age = top + 1;
    if (!walk->limits->keep && !walk->limits->age_given) {
        *ret_low = first;
        return SLUICE_OK;
    }
    if (!walk->count_done && top >= first) {
        uint64_t own = top - first + 1, taken = walk->left < own ? walk->left : own;
        by_count = top - taken + 1;
        walk->left -= taken;
        walk->count_done = walk->left == 0;
    }
    if (!walk->age_done && top >= first) {
        PF_TRY(st_generation_since(log, first, top, walk->cutoff, &by_age, err));
        walk->age_done = by_age > first; /* the one before still stood at that time */
        by_age -= by_age > first ? 1 : 0;
    }
    *ret_low = by_count < by_age ? by_count : by_age;
    return SLUICE_OK;
}

static sluice_status keep_lineage(st_graph *graph, const co_retention *plan, const co_limits *limits,
                                  uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    bool limited = limits->keep || limits->age_given;
    uint64_t top = co_settled_end(log);
    limit_walk walk = {.limits = limits,
                       .cutoff = pf_wall_us() - limits->age_us,
                       .left = limits->keep ? limits->keep : 1, /* the head stays */
                       .age_done = !limits->age_given};
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        co_kept *kept = find(plan, st_log_incarnation(log));
        st_log *parent = NULL;
        uint64_t low = 0;
        uint32_t last;
        PF_TRY(limit_log(&walk, log, top, &low, err));
        if (kept && low <= top)
            PF_TRY(keep(kept, low, forks == 0 ? UINT64_MAX : top, err));
        if (limited && walk.count_done && walk.age_done)
            return SLUICE_OK;
        PF_TRY(st_lineage_parent(graph, log, &parent, &top, &last, err));
        if (!parent)
            return SLUICE_OK;
        log = parent;
        PF_TRY(st_log_refresh(log, err));
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}

/* ---- places ---- */

static sluice_status keep_reaches(st_graph *graph, const co_retention *plan, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_view *view = NULL;
    st_history history = {0};
    sluice_status status;
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    PF_GOTO(status, done, co_settled_view(graph, log, &view, err));
    PF_GOTO(status, done, st_history_of(graph, view, &history, err));
    for (uint32_t i = 0; i < history.count; i++)
        PF_GOTO(status, done, keep_place(plan, history.items[i].incarnation, history.items[i].generation, err));
done:
    st_history_free(&history);
    st_view_free(view);
    return status;
}

static sluice_status keep_fork(st_graph *graph, const co_retention *plan, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_fork fork = {0};
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    PF_TRY(st_log_fork(log, &fork, err));
    return fork.incarnation ? keep_place(plan, fork.incarnation, fork.generation, err) : SLUICE_OK;
}

/* ---- the plan ---- */

static sluice_status add_log(st_graph *graph, co_retention *plan, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    uint64_t floor = UINT64_MAX;
    PF_TRY(co_retention_floor(graph, incarnation, &floor, err));
    PF_TRY(st_graph_log(graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    if (plan->count == plan->room) {
        uint32_t room = plan->room ? plan->room * 2 : 16;
        co_kept *grown = realloc(plan->logs, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        plan->logs = grown;
        plan->room = room;
    }
    co_kept *kept = &plan->logs[plan->count++];
    *kept = (co_kept){.incarnation = incarnation, .first = st_log_first(log), .end = co_settled_end(log)};
    if (floor < UINT64_MAX && floor > kept->end + 1)
        floor = kept->end + 1; /* what does not stand yet is never let go of */
    return floor < UINT64_MAX ? keep(kept, floor, UINT64_MAX, err) : SLUICE_OK;
}

typedef struct name_walk {
    uint64_t *incarnations;
    uint32_t count;
} name_walk;

static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    name_walk *names = context;
    if (!name)
        return pf_fail(err, SLUICE_CORRUPT, "a branch's ref is unreadable, so nothing can be called unnamed");
    uint64_t *grown = realloc(names->incarnations, ((size_t)names->count + 1) * sizeof *grown);
    if (!grown)
        return pf_fail_memory(err);
    names->incarnations = grown;
    names->incarnations[names->count++] = incarnation;
    return SLUICE_OK;
}

static int by_first(const void *a, const void *b)
{
    const st_range *one = a, *two = b;
    return (one->first > two->first) - (one->first < two->first);
}

/* Sorted, and apart from each other. */
static void normalise(co_kept *log)
{
    uint32_t count = 0;
    if (log->count == 0)
        return;
    qsort(log->ranges, log->count, sizeof *log->ranges, by_first);
    for (uint32_t i = 1; i < log->count; i++) {
        st_range *last = &log->ranges[count], *next = &log->ranges[i];
        if (last->last == UINT64_MAX || next->first <= last->last + 1)
            last->last = next->last > last->last ? next->last : last->last;
        else
            log->ranges[++count] = *next;
    }
    log->count = count + 1;
}

/* A branch that an intent makes has no name yet, and may not be whole; then its maker's pin holds where it begins. */
static sluice_status plan_roots(st_graph *graph, const co_limits *limits, const co_roots *roots, const name_walk *names,
                                co_retention *plan, sluice_error *err)
{
    sluice_error local = {0};
    for (uint32_t i = 0; i < roots->count; i++) {
        sluice_status status = add_log(graph, plan, roots->incarnations[i], &local);
        if (status != SLUICE_OK && !co_roots_may_be_half_made(roots, i)) {
            if (err)
                *err = local;
            return status;
        }
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        uint64_t incarnation = plan->logs[i].incarnation;
        uint32_t which = 0;
        PF_TRY(keep_fork(graph, plan, incarnation, err));
        while (roots->incarnations[which] != incarnation)
            which++;
        if (co_roots_may_be_half_made(roots, which))
            PF_TRY(keep(&plan->logs[i], 0, UINT64_MAX, err));
    }
    for (uint32_t i = 0; i < names->count; i++) {
        PF_TRY(keep_lineage(graph, plan, limits, names->incarnations[i], err));
        PF_TRY(keep_reaches(graph, plan, names->incarnations[i], err));
    }
    return SLUICE_OK;
}

sluice_status co_retention_plan(st_graph *graph, const co_limits *limits, co_retention *ret_plan, sluice_error *err)
{
    co_roots roots = {0};
    co_retention plan = {0};
    name_walk names = {0};
    sluice_status status;
    PF_GOTO(status, done, co_roots_find(graph, &roots, err));
    PF_GOTO(status, done, st_ref_list(graph, on_ref, &names, err));
    PF_GOTO(status, done, plan_roots(graph, limits, &roots, &names, &plan, err));
    for (uint32_t i = 0; i < plan.count; i++)
        normalise(&plan.logs[i]);
    *ret_plan = plan;
    plan = (co_retention){0};
done:
    free(names.incarnations);
    co_roots_free(&roots);
    co_retention_free(&plan);
    return status;
}

/* ---- into the control state ---- */

/* Generations of [first, end] that the boundary has let go of. */
static uint64_t count_dropped(const st_boundary *boundary, uint64_t first)
{
    if (!boundary || boundary->below <= first)
        return 0;
    uint64_t dropped = boundary->below - first;
    for (uint32_t i = 0; i < boundary->kept_count; i++) {
        uint64_t from = boundary->kept[i].first > first ? boundary->kept[i].first : first;
        if (boundary->kept[i].last >= from)
            dropped -= boundary->kept[i].last - from + 1;
    }
    return dropped;
}

/* Adds what of [first, last] still stands by the old boundary. */
static sluice_status add_standing(co_kept *result, const st_boundary *old, uint64_t first, uint64_t last,
                                  sluice_error *err)
{
    for (uint32_t i = 0; old && i < old->kept_count; i++) {
        uint64_t from = old->kept[i].first > first ? old->kept[i].first : first;
        uint64_t to = old->kept[i].last < last ? old->kept[i].last : last;
        if (from <= to)
            PF_TRY(keep(result, from, to, err));
    }
    uint64_t below = old ? old->below : 0, from = first > below ? first : below;
    return from <= last ? keep(result, from, last, err) : SLUICE_OK;
}

static sluice_status apply_log(const co_kept *log, st_control *control, uint64_t *dropped, sluice_error *err)
{
    const st_boundary *old = st_control_find_boundary(control, log->incarnation);
    co_kept wanted = {.incarnation = log->incarnation}, result = wanted;
    st_boundary boundary = {.incarnation = log->incarnation};
    uint64_t before = count_dropped(old, log->first);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < log->count && status == SLUICE_OK; i++)
        status = keep(&wanted, log->ranges[i].first, log->ranges[i].last, err);
    for (uint32_t i = 0; i < control->checkpoint_count && status == SLUICE_OK; i++)
        if (control->checkpoints[i].incarnation == log->incarnation)
            status = keep(&wanted, control->checkpoints[i].generation, control->checkpoints[i].generation, err);
    normalise(&wanted);
    for (uint32_t i = 0; i < wanted.count && status == SLUICE_OK; i++)
        status = add_standing(&result, old, wanted.ranges[i].first, wanted.ranges[i].last, err);
    if (status != SLUICE_OK)
        goto done;
    normalise(&result);
    boundary.kept = result.ranges;
    boundary.kept_count = result.count;
    boundary.below = log->end + 1;
    if (result.count > 0 && result.ranges[result.count - 1].last == UINT64_MAX)
        boundary.below = result.ranges[--boundary.kept_count].first;
    while (boundary.kept_count > 0 && boundary.kept[boundary.kept_count - 1].last >= boundary.below) {
        st_range *last = &boundary.kept[boundary.kept_count - 1]; /* of a log that nothing follows in */
        last->last = boundary.below - 1;
        if (last->first <= last->last)
            break;
        boundary.kept_count--;
    }
    uint64_t after = count_dropped(&boundary, log->first);
    PF_ASSERT(after >= before);
    if (after > before || (old && boundary.kept_count < old->kept_count))
        status = st_control_set_boundary(control, &boundary, err);
    *dropped += after - before;
done:
    free(wanted.ranges);
    free(result.ranges);
    return status;
}

sluice_status co_retention_apply(st_graph *graph, const co_retention *plan, st_control *control, uint64_t *ret_dropped,
                                 sluice_error *err)
{
    *ret_dropped = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        PF_TRY(apply_log(&plan->logs[i], control, ret_dropped, err));
    for (uint32_t i = control->boundary_count; i-- > 0;) {
        char folder[64];
        pf_stat stat;
        st_branch_folder(control->boundaries[i].incarnation, folder);
        if (!find(plan, control->boundaries[i].incarnation) &&
            pf_stat_path(st_graph_volume(graph), folder, &stat, NULL) == SLUICE_NOT_FOUND)
            st_control_drop_boundary(control, control->boundaries[i].incarnation);
    }
    return SLUICE_OK;
}
