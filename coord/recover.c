/*
 * Recovery: every intent of a dead owner that overlaps is resolved, one slot after the other (coord/recover.h, DESIGN
 * 8).
 *
 * It is idempotent and may be killed anywhere: each slot is resolved under its own lock, by rows that look at what
 * stands (coord/resolve.c). A live owner's slot is never touched. What cannot be understood goes to quarantine and
 * blocks what it overlaps. A listing that fails is loud; a slot that became free between list and look is fine.
 */
#include "coord/append.h"
#include "coord/audit.h"
#include "coord/board.h"
#include "coord/events.h"
#include "coord/kept_files.h"
#include "coord/quarantine.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include "platform/tally.h"
#include <stdio.h>
#include <string.h>

typedef struct recovery_state {
    st_graph *graph;
    co_recover_mode mode;
    const co_overlap *overlap;
    co_recovered_fn *each;
    void *context;
    co_resolution how;
    pf_file *intents;
    bool blocked; /* by something that stays unresolved and overlaps */
    co_quarantined blocker;
} recovery_state;

static bool overlaps(const co_overlap *overlap, const co_scope *scope)
{
    return co_scope_overlaps(scope, overlap->incarnation, overlap->tables, overlap->table_count);
}

/* Does a quarantined intent stand in the way? One without a readable scope concerns the graph as a whole only (L-036).
 */
static bool blocks(const co_overlap *overlap, const co_quarantined *item)
{
    if (!item->scope_known)
        return overlap->incarnation == 0;
    if (overlap->tables_unknown && !item->scope.all && overlap->incarnation != 0)
        return false;
    return overlaps(overlap, &item->scope);
}

static sluice_status refuse(const co_quarantined *item, sluice_error *err)
{
    sluice_status status = pf_fail(err, SLUICE_RECOVERY_REQUIRED,
                                   "an intent that cannot be resolved is in the way: quarantine/%s", item->name);
    pf_hint(err,
            "`sluice recover GRAPH --probe` shows it. It is a write that was never acknowledged; removing the file "
            "quarantine/%s below the graph gives it up.",
            item->name);
    return status;
}

static sluice_status emit(recovery_state *recovery, const co_recovered *line, sluice_error *err)
{
    return recovery->each ? recovery->each(recovery->context, line, err) : SLUICE_OK;
}

static void describe(co_recovered *line, uint32_t slot, co_slot_state state, const co_intent *intent)
{
    bool readable = state == CO_SLOT_INTENT;
    *line = (co_recovered){.operation = intent->scope.operation, .commit = intent->scope.commit, .slot = slot};
    (void)snprintf(line->kind, sizeof line->kind, "%s", readable ? intent->kind : "unknown");
    (void)snprintf(line->stage, sizeof line->stage, "%s",
                   !readable                             ? "unreadable"
                   : intent->phase == CO_PHASE_CONFIRMED ? "confirmed"
                                                         : "armed");
}

/* What a probe can say without taking a lock or reading a branch: who would act, and on what. */
static void classify_from_outside(co_recovered *line, co_slot_state state, bool orphaned)
{
    const char *classification = !orphaned                 ? "live"
                                 : state != CO_SLOT_INTENT ? "quarantined"
                                 : line->stage[0] == 'c'   ? "confirmed"
                                                           : "unconfirmed";
    const char *action = !orphaned ? "none" : state == CO_SLOT_INTENT ? "resolve" : "quarantine";
    (void)snprintf(line->classification, sizeof line->classification, "%s", classification);
    (void)snprintf(line->action, sizeof line->action, "%s", action);
    (void)snprintf(line->outcome, sizeof line->outcome, "%s", "pending");
}

/* A held slot that was read under its lock. */
static sluice_status resolve_held(recovery_state *recovery, co_slot *slot, co_slot_state state, bool scope_known,
                                  const co_intent *intent, co_recovered *line, sluice_error *err)
{
    if (state == CO_SLOT_INTENT)
        return co_resolve(&recovery->how, slot, intent, line, err);
    (void)snprintf(line->classification, sizeof line->classification, "%s", "quarantined");
    (void)snprintf(line->action, sizeof line->action, "%s", "quarantine");
    (void)snprintf(line->outcome, sizeof line->outcome, "%s", "kept");
    if (scope_known) {
        co_audit_row row = {.operation = intent->scope.operation,
                            .commit = intent->scope.commit,
                            .outcome = CO_OUTCOME_QUARANTINED,
                            .kind = "unknown",
                            .classification = "quarantined",
                            .time_us = pf_wall_us()};
        PF_TRY(co_audit_write(recovery->graph, recovery->how.graph_locks, &row, recovery->how.deadline, err));
    }
    return co_quarantine_put(recovery->graph, recovery->how.graph_locks, slot, scope_known, &intent->scope,
                             recovery->how.deadline, err);
}

static sluice_status take_and_resolve_once(recovery_state *recovery, uint32_t number, co_recovered *line,
                                           bool *ret_mine, sluice_error *err)
{
    co_slot slot = {0};
    co_slot_state state;
    co_intent intent = {0};
    bool live = false, scope_known = false;
    *ret_mine = false;
    PF_TRY(co_slot_take_over(st_graph_volume(recovery->graph), number, recovery->how.deadline, &slot, &live, err));
    if (live) {
        classify_from_outside(line, CO_SLOT_INTENT, false);
        *ret_mine = true;
        return SLUICE_OK;
    }
    sluice_status status = co_slot_read(slot.file, number, &state, &intent, &scope_known, err);
    if (status == SLUICE_OK && state != CO_SLOT_FREE) {
        *ret_mine = true;
        describe(line, number, state, &intent);
        status = resolve_held(recovery, &slot, state, scope_known, &intent, line, err);
    }
    co_intent_free(&intent);
    co_slot_release(&slot);
    return status;
}

/* On a full disk the reserve is let go of, so that recovery can always finish (L-035). */
static sluice_status take_and_resolve(recovery_state *recovery, uint32_t number, co_recovered *line, bool *ret_mine,
                                      sluice_error *err)
{
    sluice_error first = {0};
    sluice_status status = take_and_resolve_once(recovery, number, line, ret_mine, &first);
    if (status == SLUICE_NO_SPACE && st_reserve_release(recovery->graph, NULL) == SLUICE_OK)
        return take_and_resolve_once(recovery, number, line, ret_mine, err);
    if (status != SLUICE_OK && err)
        *err = first;
    return status;
}

static void count_action(const co_recovered *line)
{
    static const char *const actions[] = {"retire", "publish", "discard", "undo", "quarantine"};
    for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(line->action, actions[i]) == 0)
            pf_tally_add((pf_tally)(PF_TALLY_RECOVER_RETIRE + i), 1);
    }
}

static sluice_status recover_slot(recovery_state *recovery, uint32_t number, sluice_error *err)
{
    bool scope_known = false, orphaned = false, mine = true;
    co_slot_state state;
    co_intent intent;
    co_recovered line;
    PF_TRY(co_slot_read(recovery->intents, number, &state, &intent, &scope_known, err));
    bool concerns = state != CO_SLOT_FREE && (scope_known ? overlaps(recovery->overlap, &intent.scope)
                                                          : true); /* unreadable: freed for everybody's sake */
    describe(&line, number, state, &intent);
    co_intent_free(&intent);
    if (!concerns)
        return SLUICE_OK;
    if (recovery->mode == CO_RECOVER_PROBE) {
        PF_TRY(co_slot_is_orphaned(recovery->intents, number, &orphaned, err));
        classify_from_outside(&line, state, orphaned);
    } else {
        if (!recovery->how.graph_locks)
            PF_TRY(lk_lockfile_open(st_graph_volume(recovery->graph), "locks/graph", &recovery->how.graph_locks, err));
        PF_TRY(take_and_resolve(recovery, number, &line, &mine, err));
        if (mine) {
            count_action(&line);
            co_event_recovered(recovery->graph, &line);
        }
    }
    return mine ? emit(recovery, &line, err) : SLUICE_OK;
}

static sluice_status on_quarantined(void *context, const co_quarantined *item, sluice_error *err)
{
    recovery_state *recovery = context;
    bool concerns = item->scope_known ? overlaps(recovery->overlap, &item->scope) : recovery->overlap->incarnation == 0;
    if (!concerns)
        return SLUICE_OK;
    if (blocks(recovery->overlap, item) && !recovery->blocked) {
        recovery->blocked = true;
        recovery->blocker = *item;
    }
    co_recovered line = {.operation = item->scope.operation, .commit = item->scope.commit, .slot = UINT32_MAX};
    (void)snprintf(line.kind, sizeof line.kind, "%s", "unknown");
    (void)snprintf(line.stage, sizeof line.stage, "%s", "unreadable");
    (void)snprintf(line.classification, sizeof line.classification, "%s", "quarantined");
    (void)snprintf(line.action, sizeof line.action, "%s", "none");
    (void)snprintf(line.outcome, sizeof line.outcome, "%s", "kept");
    return emit(recovery, &line, err);
}

typedef struct quarantine_count {
    co_quarantine_fn *each;
    void *context;
    bool any;
} quarantine_count;

static sluice_status count_quarantined(void *context, const co_quarantined *item, sluice_error *err)
{
    quarantine_count *count = context;
    count->any = true;
    return count->each(count->context, item, err);
}

/* Everything that was put aside. What is surely nothing is not listed. */
static sluice_status each_quarantined(st_graph *graph, pf_file *intents, co_quarantine_fn *each, void *context,
                                      sluice_error *err)
{
    quarantine_count count = {each, context, false};
    bool empty = false;
    PF_TRY(co_board_look_quarantine(graph, intents, &empty, err));
    if (empty)
        return SLUICE_OK;
    PF_TRY(co_quarantine_list(graph, count_quarantined, &count, err));
    if (!count.any)
        co_board_quarantine_is_empty(graph);
    return SLUICE_OK;
}

static sluice_status settle_end(const recovery_state *recovery, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    lk_lockfile *locks = NULL;
    char folder[64], path[96];
    PF_TRY(st_graph_log(recovery->graph, incarnation, &log, err));
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/locks", folder);
    PF_TRY(lk_lockfile_open(st_graph_volume(recovery->graph), path, &locks, err));
    sluice_status status = lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, recovery->how.deadline, err);
    if (status == SLUICE_OK) {
        status = co_make_reliable(recovery->graph, log, err);
        lk_release(locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(locks);
    return status;
}

/* FULL: whatever a dead publisher left at the end of a branch is made reliable, too. One that was deleted meanwhile,
 * perhaps collected, needs it no more. */
static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    const recovery_state *recovery = context;
    sluice_error cause = {0};
    uint64_t now = 0;
    if (incarnation == 0 || (recovery->overlap->incarnation && recovery->overlap->incarnation != incarnation))
        return SLUICE_OK; /* an unreadable ref is that name's damage only */
    sluice_status status = settle_end(recovery, incarnation, &cause);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    sluice_status named = st_ref_read(recovery->graph, name, &now, NULL);
    if (named == SLUICE_NOT_FOUND || (named == SLUICE_OK && now != incarnation))
        return SLUICE_OK;
    if (err)
        *err = cause;
    return status;
}

static sluice_status change_nothing(void *context, st_control *control, sluice_error *err)
{
    (void)context, (void)control, (void)err;
    return SLUICE_OK;
}

/* FULL: likewise names of branches that came or went, and the end of control/. */
static sluice_status settle_names(const recovery_state *recovery, sluice_error *err)
{
    PF_TRY(st_refs_sync(recovery->graph, err));
    return st_control_update(recovery->graph, change_nothing, NULL, recovery->how.deadline, err);
}

sluice_status co_recover_until(st_graph *graph, co_recover_mode mode, const co_overlap *overlap, co_recovered_fn *each,
                               void *context, pf_deadline deadline, sluice_error *err)
{
    recovery_state recovery = {.graph = graph, .mode = mode, .overlap = overlap, .each = each, .context = context};
    recovery.how = (co_resolution){.graph = graph, .deadline = deadline};
    bool changes = mode != CO_RECOVER_PROBE, used[CO_SLOTS];
    if (changes && st_graph_access(graph) != PF_WRITE)
        return pf_fail(err, SLUICE_PERMISSION, "recovery needs a graph that is open for writing");
    sluice_status status;
    PF_GOTO(status, done, co_intents_open(graph, &recovery.intents, err));
    PF_GOTO(status, done, co_board_look(graph, recovery.intents, used, err));
    for (uint32_t i = 0; i < CO_SLOTS; i++)
        if (used[i])
            PF_GOTO(status, done, recover_slot(&recovery, i, err));
    if (mode == CO_RECOVER_FULL) {
        PF_GOTO(status, done, st_ref_list(graph, on_ref, &recovery, err));
        PF_GOTO(status, done, settle_names(&recovery, err));
    }
    PF_GOTO(status, done, each_quarantined(graph, recovery.intents, on_quarantined, &recovery, err));
    if (recovery.blocked && changes)
        status = refuse(&recovery.blocker, err);
done:
    lk_lockfile_close(recovery.how.graph_locks);
    co_intents_close(graph, recovery.intents);
    return status;
}

sluice_status co_recover(st_graph *graph, co_recover_mode mode, uint64_t incarnation, const uint64_t *tables,
                         uint32_t table_count, co_recovered_fn *each, void *context, sluice_error *err)
{
    co_overlap overlap = {.incarnation = incarnation, .tables = tables, .table_count = table_count};
    return co_recover_until(graph, mode, &overlap, each, context, pf_deadline_in_ms(CO_WAIT_MS), err);
}

static sluice_status find_blocker(void *context, const co_quarantined *item, sluice_error *err)
{
    const co_overlap *overlap = context;
    return blocks(overlap, item) ? refuse(item, err) : SLUICE_OK;
}

/* Does the slot hold an intent that overlaps? *ret_sequence tells it from a later one. */
static sluice_status holds_overlapping(pf_file *intents, uint32_t number, const co_overlap *overlap, bool *ret_holds,
                                       uint64_t *ret_sequence, sluice_error *err)
{
    bool scope_known = false;
    co_slot_state state;
    co_intent intent;
    PF_TRY(co_slot_read(intents, number, &state, &intent, &scope_known, err));
    *ret_holds = state != CO_SLOT_FREE && scope_known && overlaps(overlap, &intent.scope);
    *ret_sequence = intent.scope.sequence;
    co_intent_free(&intent);
    return SLUICE_OK;
}

sluice_status co_recovery_is_due(st_graph *graph, const co_overlap *overlap, bool *ret_due, sluice_error *err)
{
    pf_file *intents = NULL;
    *ret_due = false;
    PF_TRY(co_intents_open(graph, &intents, err));
    bool used[CO_SLOTS];
    sluice_status status;
    PF_GOTO(status, done, co_board_look(graph, intents, used, err));
    for (uint32_t i = 0; i < CO_SLOTS && !*ret_due; i++) {
        if (!used[i])
            continue;
        bool holds = false, orphaned = false;
        uint64_t before = 0, after = 0;
        PF_GOTO(status, done, holds_overlapping(intents, i, overlap, &holds, &before, err));
        if (!holds)
            continue;
        PF_GOTO(status, done, co_slot_is_orphaned(intents, i, &orphaned, err));
        if (!orphaned)
            continue;
        /* Its owner may have retired it and gone between the two looks. */
        PF_GOTO(status, done, holds_overlapping(intents, i, overlap, &holds, &after, err));
        *ret_due = holds && before == after;
    }
    if (!*ret_due)
        status = each_quarantined(graph, intents, find_blocker, (void *)(uintptr_t)overlap, err);
done:
    co_intents_close(graph, intents);
    return status;
}

sluice_status co_recovery_is_live(st_graph *graph, const co_overlap *overlap, bool *ret_live, sluice_error *err)
{
    pf_file *intents = NULL;
    *ret_live = false;
    PF_TRY(pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, &intents, err));
    bool used[CO_SLOTS];
    sluice_status status = co_board_look(graph, intents, used, err);
    for (uint32_t i = 0; i < CO_SLOTS && !*ret_live && status == SLUICE_OK; i++) {
        if (!used[i])
            continue;
        bool holds = false, orphaned = true;
        uint64_t sequence = 0;
        status = holds_overlapping(intents, i, overlap, &holds, &sequence, err);
        if (status == SLUICE_OK && holds)
            status = co_slot_is_orphaned(intents, i, &orphaned, err);
        *ret_live = !orphaned;
    }
    (void)pf_close(intents, NULL); /* only read */
    return status;
}

typedef struct scope_walk {
    co_scope_fn *each;
    void *context;
    bool unknown;
} scope_walk;

static sluice_status on_quarantined_scope(void *context, const co_quarantined *item, sluice_error *err)
{
    scope_walk *walk = context;
    if (item->scope_known)
        return walk->each(walk->context, &item->scope, err);
    walk->unknown = true;
    return SLUICE_OK;
}

sluice_status co_recovery_scopes(st_graph *graph, co_scope_fn *each, void *context, bool *ret_unknown,
                                 sluice_error *err)
{
    pf_file *intents = NULL;
    scope_walk walk = {each, context, false};
    PF_TRY(pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, &intents, err));
    bool used[CO_SLOTS];
    sluice_status status;
    PF_GOTO(status, done, co_board_look(graph, intents, used, err));
    for (uint32_t i = 0; i < CO_SLOTS; i++) {
        bool scope_known = false;
        co_slot_state state;
        co_intent intent;
        if (!used[i])
            continue;
        PF_GOTO(status, done, co_slot_read(intents, i, &state, &intent, &scope_known, err));
        if (state != CO_SLOT_FREE && scope_known)
            status = each(context, &intent.scope, err);
        else if (state != CO_SLOT_FREE)
            walk.unknown = true;
        co_intent_free(&intent);
        if (status != SLUICE_OK)
            goto done;
    }
    status = each_quarantined(graph, intents, on_quarantined_scope, &walk, err);
done:
    (void)pf_close(intents, NULL); /* only read */
    *ret_unknown = walk.unknown;
    return status;
}

sluice_status co_recovery_bases(st_graph *graph, co_base_fn *each, void *context, sluice_error *err)
{
    pf_file *intents = NULL;
    bool used[CO_SLOTS];
    sluice_status status;
    PF_TRY(pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, &intents, err));
    PF_GOTO(status, done, co_board_look(graph, intents, used, err));
    for (uint32_t i = 0; i < CO_SLOTS && status == SLUICE_OK; i++) {
        bool scope_known = false;
        co_slot_state state;
        co_intent intent;
        if (!used[i])
            continue;
        PF_GOTO(status, done, co_slot_read(intents, i, &state, &intent, &scope_known, err));
        if (state == CO_SLOT_INTENT)
            status = each(context, intent.scope.incarnation, intent.base_generation, err);
        else if (state == CO_SLOT_UNREADABLE && scope_known)
            status = each(context, intent.scope.incarnation, 0, err);
        co_intent_free(&intent);
    }
done:
    (void)pf_close(intents, NULL); /* only read */
    return status;
}
