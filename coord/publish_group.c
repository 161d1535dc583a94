/*
 * Leading and following at the pool's publish queue (DESIGN 4 "Group publishing", LESSONS P-07 to P-12).
 *
 * Whoever finds its branch without a leader leads: it takes the publish lock, then everything that is ready, decides it
 * as one generation, writes the answers and wakes who waits; and so on until its own write is among them. It then
 * resigns, and the next in line is woken to lead. Nobody waits for a group to grow: it is what came while the one
 * before was written.
 *
 * What fails the leader itself before anything was appended fails nobody else: the others are given back. Crash rules:
 * before the append nothing stands, and what a dead leader had taken is ready again; after it the next leader finds the
 * commits in the chain, makes them acknowledged, and answers so. A write that was taken is never withdrawn: when its
 * owner stops waiting, its outcome is unknown.
 *
 * Locks: the queue's latch is below the publish lock, and held for single steps only.
 */
#include "coord/publish.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <stdlib.h>
#include <string.h>

#define LOOK_AGAIN_MS 5

typedef struct group { /* what a leader has taken */
    uint32_t *slots;
    co_member *members;
    uint32_t count;
} group;

static void group_free(group *taken)
{
    for (uint32_t i = 0; taken->members && i < taken->count; i++)
        co_member_free(&taken->members[i]);
    free(taken->members);
    free(taken->slots);
}

static void open_member(co_run *run, const shm_publisher *me, uint32_t slot, co_member *member)
{
    const uint8_t *bytes;
    size_t length;
    if (slot == me->token.slot) { /* at hand */
        member->claim = run->claim;
        member->delta = &run->write.delta;
        member->digest = run->digest;
        return;
    }
    member->answer.status = shm_publish_offered(me, slot, &bytes, &length)
                                ? co_offer_get(run, bytes, length, member, &member->answer.error)
                                : pf_fail(&member->answer.error, SLUICE_INTERNAL, "a write in the region was changed");
}

static sluice_status take_group(co_run *run, const shm_publisher *me, group *ret_taken, sluice_error *err)
{
    uint32_t room = me->region->config.workers;
    ret_taken->slots = calloc(room, sizeof *ret_taken->slots);
    if (!ret_taken->slots)
        return pf_fail_memory(err);
    PF_TRY(shm_publish_take(me, ret_taken->slots, &ret_taken->count, err));
    ret_taken->members = calloc((size_t)ret_taken->count + 1, sizeof *ret_taken->members);
    if (!ret_taken->members)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < ret_taken->count; i++)
        open_member(run, me, ret_taken->slots[i], &ret_taken->members[i]);
    return PF_FAILPOINT(PUBLISH_AFTER_TAKE, err);
}

/* What the leader itself cannot tell, because it cannot read the chain any more, the next one may. */
static bool is_known(const shm_publisher *me, const group *taken, uint32_t i)
{
    const co_answer *answer = &taken->members[i].answer;
    return taken->slots[i] == me->token.slot || !answer->tried || answer->outcome != ST_APPEND_UNKNOWN;
}

static sluice_status tell(const shm_publisher *me, const group *taken, bool *ret_all, sluice_error *err)
{
    uint32_t slots[SHM_WORKERS_MAX], count = 0;
    bool again[SHM_WORKERS_MAX];
    for (uint32_t i = 0; i < taken->count; i++) {
        const co_member *member = &taken->members[i];
        if (!is_known(me, taken, i))
            continue;
        if (!member->again)
            memcpy(shm_publish_answer_of(me, taken->slots[i]), &member->answer, sizeof member->answer);
        slots[count] = taken->slots[i];
        again[count++] = member->again;
    }
    *ret_all = count == taken->count;
    PF_TRY(shm_publish_decide_all(me, slots, again, count, err));
    return PF_FAILPOINT(PUBLISH_AFTER_DECIDE, err);
}

/* Where this run stands in line. */
typedef struct place {
    co_run *run;
    const shm_publisher *me;
    pf_deadline deadline;
    bool doubtful; /* leading, an append was tried whose answers are not all told */
    bool decided;  /* its own write is */
} place;

/* Under the publish lock. */
static sluice_status decide_group(place *at, bool *ret_block, sluice_error *err)
{
    group taken = {0};
    sluice_status status;
    PF_GOTO(status, done, PF_FAILPOINT(PUBLISH_AFTER_LOCK, err));
    PF_GOTO(status, done, take_group(at->run, at->me, &taken, err));
    PF_GOTO(status, done, co_publish_members(at->run, taken.members, taken.count, ret_block, err));
    at->doubtful = true;
    PF_GOTO(status, done, PF_FAILPOINT(PUBLISH_BEFORE_DECIDE, err));
    bool all = false;
    status = tell(at->me, &taken, &all, err);
    at->doubtful = status != SLUICE_OK || !all;
done:
    group_free(&taken);
    return status;
}

static sluice_status lead(place *at, sluice_error *err)
{
    co_run *run = at->run;
    bool block = false;
    PF_TRY(lk_take(run->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, co_run_deadline(run), err));
    sluice_status status = decide_group(at, &block, err);
    lk_release(run->locks, LK_BYTE_PUBLISH);
    PF_TRY(status);
    return block ? st_control_take_row_block(run->write.graph, co_run_deadline(run), &run->row_block, err) : SLUICE_OK;
}

static sluice_status check_patience(const place *at, sluice_error *err)
{
    const co_run *run = at->run;
    const wk_executor *executor = run->write.executor;
    if (!run->armed && executor->cancelled && executor->cancelled(executor->context))
        return pf_fail(err, SLUICE_CANCELLED, "cancelled before it was published; nothing has changed");
    if (pf_deadline_passed(at->deadline))
        return pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "the writes before this one were not published in time");
    return SLUICE_OK;
}

static pf_deadline slice_before(pf_deadline deadline)
{
    pf_deadline slice = pf_deadline_in_ms(SHM_WAIT_MS);
    return slice.monotonic_ns < deadline.monotonic_ns ? slice : deadline;
}

/* One turn: leads, or waits. */
static sluice_status take_turn(place *at, sluice_error *err)
{
    shm_publish_answer look;
    PF_TRY(shm_publish_look(at->me, &look, err));
    at->decided = look.state == SHM_PUBLISH_DECIDED;
    if (at->decided)
        return SLUICE_OK;
    if (look.leads)
        return lead(at, err);
    PF_TRY(check_patience(at, err));
    shm_wait(look.sequence, look.seen, slice_before(at->deadline));
    return SLUICE_OK;
}

/* A fenced writer decides nothing any more, but it can read: once nobody else has its write in hand, the chain says
 * what became of it. (What it had armed is recovery's to decide: co_run_give_up.) */
static void learn_by_reading(const place *at)
{
    co_run *run = at->run;
    pf_deadline deadline = co_run_deadline(run);
    st_receipt receipt = {0};
    bool found = false;
    while (shm_publish_is_elsewhere(at->me)) {
        if (pf_deadline_passed(deadline))
            return;
        pf_sleep_until(pf_deadline_in_ms(LOOK_AGAIN_MS).monotonic_ns);
    }
    if (st_log_refresh(run->log, NULL) != SLUICE_OK ||
        st_receipt_find(run->write.graph, run->log, &run->request.operation, &found, &receipt, NULL) != SLUICE_OK)
        return;
    found = found && pf_id_equal(&receipt.commit, &run->receipt.commit);
    run->committed = found ? SLUICE_TRUE : SLUICE_FALSE;
    if (!found)
        run->acknowledged = SLUICE_FALSE;
    else if (receipt.generation <= st_log_end(run->log).acknowledged)
        run->acknowledged = SLUICE_TRUE;
}

/* After a failure, or at the end of patience: out of the line. What somebody has taken is decided by them alone, and
 * unknown here. */
static sluice_status step_out(const place *at, sluice_status status, sluice_error *err)
{
    co_run *run = at->run;
    bool out = false;
    if (shm_publish_withdraw(at->me, true, &out, NULL) == SLUICE_OK && out)
        return status;
    run->committed = run->acknowledged = SLUICE_UNKNOWN;
    run->receipt.commit = run->write.delta.commit.id;
    if (status == SLUICE_FENCED) {
        learn_by_reading(at);
        return status;
    }
    pf_error_clear(err);
    status = pf_fail(err, SLUICE_RECOVERY_REQUIRED, "another writer has this write in hand and has not decided it");
    pf_hint(err, "Ask again with the same --op-id: it tells what became of the write.");
    return status;
}

/* A stuck latch: its holder is killed within the supervisor's bound, so this ends. */
static bool is_stuck(const shm_publisher *me, sluice_status status)
{
    return status == SLUICE_TIMEOUT && shm_region_state(me->region) == SHM_READY;
}

static sluice_status answer_in_line(place *at, sluice_status status, co_next *ret_next, sluice_error *err)
{
    co_answer answer;
    while (is_stuck(at->me, shm_publish_resign(at->me, at->doubtful, NULL)))
        ;
    if (shm_publish_own(at->me) != SHM_PUBLISH_DECIDED)
        return step_out(at, status, err);
    memcpy(&answer, shm_publish_answer_of(at->me, at->me->token.slot), sizeof answer);
    while (is_stuck(at->me, shm_publish_leave(at->me, NULL)))
        ;
    pf_error_clear(err);
    return co_publish_take_answer(at->run, &answer, ret_next, err);
}

sluice_status co_publish_in_line(co_run *run, const shm_publisher *me, bool *ret_in_line, co_next *ret_next,
                                 sluice_error *err)
{
    place at = {.run = run, .me = me, .deadline = co_run_deadline(run)};
    shm_offer offer = {0};
    *ret_in_line = false;
    if (shm_publish_own(me) != SHM_PUBLISH_FREE)
        return SLUICE_OK;
    PF_TRY(co_offer_put(run, me, &offer, err));
    if (offer.length == 0)
        return SLUICE_OK;
    PF_TRY(shm_publish_enter(me, &offer, &run->ticket, err));
    *ret_in_line = true;
    sluice_status status = PF_FAILPOINT(PUBLISH_AFTER_LINE, err);
    while (status == SLUICE_OK && !at.decided)
        status = take_turn(&at, err);
    return answer_in_line(&at, status, ret_next, err);
}
