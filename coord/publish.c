/*
 * Stage G: the publish (OW-077 to OW-083, LESSONS P-04).
 *
 * One critical section of the branch's publish lock: read the branch's end anew, settle it, look for each member's own
 * commit and operation, judge what came since its D and what goes before it in the group, check that everything named
 * exists, append one record and flush it. A group is what a leader took from the pool's queue (publish_group.c); a
 * write without a queue, or that does not fit there, is a group of one. What takes long (more to judge than the
 * horizon, a new block of row ids) is done outside and the section is entered again.
 *
 * A member's own failure (its arbitration, a staged object that is gone) is its answer and nobody else's. When the
 * generation cannot be built, the first member is tried by itself and the others are asked about again, so that the one
 * whose fault it is meets it alone.
 */
#include "coord/publish.h"
#include "coord/append.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <stdlib.h>
#include <string.h>

static sluice_status check_identity(co_run *run, sluice_error *err)
{
    uint64_t incarnation = 0;
    PF_TRY(pf_volume_check_identity(run->volume, err));
    sluice_error read_error = {0};
    sluice_status status = st_ref_read(run->write.graph, run->request.branch, &incarnation, &read_error);
    if (status == SLUICE_NOT_FOUND ||
        (status == SLUICE_OK && incarnation != run->incarnation && !PF_SABOTAGE(incarnation_not_compared)))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted while the write was prepared");
    if (status != SLUICE_OK && err)
        *err = read_error;
    return status;
}

static void fail_member(co_member *member, sluice_status status, const sluice_error *error)
{
    member->answer.status = status;
    member->answer.error = *error;
}

typedef struct candidates { /* the members that hold so far, in order */
    co_append_part *parts;
    co_member **members;
    uint32_t count;
} candidates;

static void drop_candidate(candidates *group, uint32_t at)
{
    group->count--;
    memmove(group->parts + at, group->parts + at + 1, (group->count - at) * sizeof *group->parts);
    memmove(group->members + at, group->members + at + 1, (group->count - at) * sizeof *group->members);
}

static void judge_member(co_member *member, candidates *group)
{
    co_answer *answer = &member->answer;
    sluice_error error = {0};
    sluice_status status = PF_SABOTAGE(verdict_not_renewed)
                               ? SLUICE_OK
                               : co_arbitrate(&member->claim, CO_HORIZON, &answer->finding, &answer->found, &error);
    if (status == SLUICE_OK && answer->finding == CO_HOLDS) {
        status =
            co_arbitrate_behind(&member->claim, group->parts, group->count, &answer->finding, &answer->found, &error);
        member->again = status == SLUICE_OK && answer->finding == CO_REPEATED;
    }
    answer->verdict = member->claim.verdict;
    answer->seen = member->claim.seen;
    if (status != SLUICE_OK) {
        fail_member(member, status, &error);
    } else if (answer->finding == CO_HOLDS) {
        group->parts[group->count] = (co_append_part){member->delta, &member->digest};
        group->members[group->count++] = member;
    }
}

static void answer_group(const candidates *group, const co_append *append, sluice_status status,
                         const sluice_error *error)
{
    for (uint32_t i = 0; i < group->count; i++) {
        co_answer *answer = &group->members[i]->answer;
        answer->tried = true;
        answer->outcome = append->outcome;
        answer->generation = append->generation;
        answer->index = i;
        answer->time_us = group->members[i]->delta->commit.time_us;
        answer->folded = group->members[i]->delta->folded;
        fail_member(group->members[i], status, error);
    }
}

static void ask_again(candidates *group, uint32_t from)
{
    for (uint32_t i = from; i < group->count; i++)
        group->members[i]->again = true;
    group->count = from;
}

/* Appends what holds, without those that fail before the append is tried. */
static void append_group(co_run *run, candidates *group, bool *ret_block)
{
    while (group->count > 0) {
        sluice_error error = {0};
        co_append append = {.graph = run->write.graph,
                            .log = run->log,
                            .graph_locks = run->graph_locks,
                            .parts = group->parts,
                            .count = group->count,
                            .epoch = &run->write.executor->epoch,
                            .row_block = run->row_block,
                            .deadline = co_run_deadline(run)};
        sluice_status status = co_append_deltas(&append, &error);
        if (append.tried) {
            answer_group(group, &append, status, &error);
            run->row_block = 0; /* it may be used now */
            return;
        }
        if (status == SLUICE_OK) {
            PF_ASSERT(append.needs_block);
            *ret_block = true;
            ask_again(group, 0);
        } else if (append.object_missing || group->count == 1) {
            uint32_t at = append.object_missing ? append.missing : 0;
            fail_member(group->members[at], status, &error);
            drop_candidate(group, at);
        } else {
            ask_again(group, 1);
        }
    }
}

sluice_status co_publish_members(co_run *run, co_member *members, uint32_t count, bool *ret_block, sluice_error *err)
{
    candidates group = {0};
    sluice_status status;
    *ret_block = false;
    group.parts = calloc((size_t)count + 1, sizeof *group.parts);
    group.members = calloc((size_t)count + 1, sizeof *group.members);
    if (!group.parts || !group.members) {
        status = pf_fail_memory(err);
        goto done;
    }
    PF_GOTO(status, done, check_identity(run, err));
    PF_GOTO(status, done, co_make_reliable(run->write.graph, run->log, err));
    for (uint32_t i = 0; i < count; i++)
        if (members[i].answer.status == SLUICE_OK)
            judge_member(&members[i], &group);
    append_group(run, &group, ret_block);
done:
    free(group.parts);
    free(group.members);
    return status;
}

/* What the append's outcome says about the commit (DESIGN 10): committed is false only when the chain surely lacks it.
 */
static sluice_status answer_append(co_run *run, const co_answer *answer, sluice_error *err)
{
    const st_commit *commit = &run->write.delta.commit;
    run->receipt = (co_receipt){.commit = commit->id,
                                .operation = run->request.operation,
                                .incarnation = run->incarnation,
                                .generation = answer->generation,
                                .index = answer->index,
                                .time_us = answer->time_us,
                                .inserted = commit->inserted,
                                .updated = commit->updated,
                                .deleted = commit->deleted,
                                .restarts = run->restarts};
    switch (answer->outcome) {
    case ST_APPEND_ACKNOWLEDGED:
        run->committed = run->acknowledged = SLUICE_TRUE;
        run->receipt.committed = run->receipt.acknowledged = true;
        if (run->only_folds && answer->folded == run->fold_count) /* all that was staged is named now */
            run->folds.litter = false;
        run->done = true;
        return SLUICE_OK;
    case ST_APPEND_VISIBLE:
        run->committed = SLUICE_TRUE;
        return pf_fail(err, SLUICE_SUSPECT, "the commit is visible, but its last barrier failed");
    case ST_APPEND_UNKNOWN:
        run->committed = run->acknowledged = SLUICE_UNKNOWN;
        return pf_fail(err, SLUICE_CORRUPT, "the branch's log could not be read again after an append failed");
    case ST_APPEND_NOT:
        break;
    }
    PF_ASSERT(answer->status != SLUICE_OK);
    if (err)
        *err = answer->error;
    return answer->status;
}

sluice_status co_publish_take_answer(co_run *run, const co_answer *answer, co_next *ret_next, sluice_error *err)
{
    run->claim.verdict = answer->verdict;
    run->claim.seen = answer->seen;
    run->finding = answer->finding;
    run->found = answer->found;
    *ret_next = CO_GO_ON;
    if (answer->tried) {
        *ret_next = CO_DONE;
        return answer_append(run, answer, err);
    }
    if (answer->status != SLUICE_OK && err)
        *err = answer->error;
    return answer->status;
}

/* *ret_block: nothing was decided. */
static sluice_status publish_once(co_run *run, co_next *ret_next, bool *ret_block, sluice_error *err)
{
    co_member own = {.claim = run->claim, .delta = &run->write.delta, .digest = run->digest};
    PF_TRY(PF_FAILPOINT(PUBLISH_AFTER_LOCK, err));
    PF_TRY(co_publish_members(run, &own, 1, ret_block, err));
    return *ret_block ? SLUICE_OK : co_publish_take_answer(run, &own.answer, ret_next, err);
}

sluice_status co_publish_alone(co_run *run, co_next *ret_next, sluice_error *err)
{
    for (bool block = true; block;) {
        PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
        sluice_status status = publish_once(run, ret_next, &block, err);
        lk_release(run->locks, LK_BYTE_PUBLISH);
        PF_TRY(status);
        if (block)
            PF_TRY(st_control_take_row_block(run->write.graph, co_run_deadline(run), &run->row_block, err));
    }
    return SLUICE_OK;
}

sluice_status co_stage_publish(co_run *run, co_next *ret_next, sluice_error *err)
{
    const wk_executor *executor = run->write.executor;
    for (;;) {
        bool in_line = false;
        *ret_next = CO_GO_ON;
        co_run_enter(run, SLUICE_PHASE_PUBLISH);
        if (executor->allowed && !executor->allowed(executor->context))
            return pf_fail(err, SLUICE_FENCED, "this process was fenced");
        if (run->armed && PF_SABOTAGE(retired_before_publish))
            PF_TRY(co_slot_retire(&run->slot, err));
        if (executor->publisher)
            PF_TRY(co_publish_in_line(run, executor->publisher, &in_line, ret_next, err));
        if (!in_line)
            PF_TRY(co_publish_alone(run, ret_next, err));
        if (*ret_next == CO_DONE)
            return SLUICE_OK;
        if (run->finding != CO_FAR)
            return co_run_judge(run, ret_next, err);
        co_run_enter(run, SLUICE_PHASE_REVALIDATE);
        PF_TRY(co_stage_revalidate(run, ret_next, err));
        if (*ret_next != CO_GO_ON)
            return SLUICE_OK;
    }
}
