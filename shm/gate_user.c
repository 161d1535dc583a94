/*
 * A worker at the gates: waiting in slices until it is its turn, and the hooks through which locks/ uses the region.
 *
 * Waiting ends by entering, at the deadline, on cancellation, or when the token is taken back. Leaving cannot fail in a
 * way that matters: what a fenced worker or a damaged region leaves behind is the supervisor's to clear.
 */
#include "platform/check.h"
#include "shm/gate_table.h"
#include <inttypes.h>

static const char *kind_name(lk_gate_kind kind)
{
    switch (kind) {
    case LK_GATE_SCHEMA:
        return "schema";
    case LK_GATE_BRANCH:
        return "branch";
    case LK_GATE_TABLE:
        break;
    }
    return "table";
}

static sluice_status fail_contention(const lk_gate_key *key, const shm_gate_answer *answer, sluice_error *err)
{
    char holder[PF_ID_TEXT] = "";
    if (!pf_id_is_nil(&answer->holder_operation))
        pf_id_text(&answer->holder_operation, holder);
    sluice_status status = pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "another write of this pool holds the %s gate",
                                   kind_name(key->kind));
    pf_details(err, "{\"gate\":\"%s\",\"table\":\"%" PRIu64 "\",\"holder_operation\":\"%s\"}", kind_name(key->kind),
               key->kind == LK_GATE_TABLE ? key->table : 0, holder);
    return status;
}

static pf_deadline slice_before(pf_deadline deadline)
{
    pf_deadline slice = pf_deadline_in_ms(SHM_WAIT_MS);
    return slice.monotonic_ns < deadline.monotonic_ns ? slice : deadline;
}

static sluice_status wait_and_enter(shm_gate_user *user, const lk_gate_key *key, const pf_id *operation,
                                    pf_deadline deadline, shm_gate_answer *answer, sluice_error *err)
{
    for (;;) {
        PF_TRY(shm_gate_try(user->region, &user->token, key, operation, pf_monotonic_ns(), answer, err));
        if (answer->entered)
            return SLUICE_OK;
        if (shm_region_is_cancelled(user->region))
            return pf_fail(err, SLUICE_CANCELLED, "cancelled while waiting for the %s gate", kind_name(key->kind));
        if (pf_deadline_passed(deadline))
            return fail_contention(key, answer, err);
        shm_wait(answer->sequence, answer->seen, slice_before(deadline));
    }
}

static sluice_status hook_enter(void *context, const lk_gate_key *key, const pf_id *operation, pf_deadline deadline,
                                bool *ret_orphaned, pf_id *ret_orphan_operation, sluice_error *err)
{
    shm_gate_user *user = context;
    shm_gate_answer answer;
    sluice_status status = wait_and_enter(user, key, operation, deadline, &answer, err);
    if (status != SLUICE_OK) {
        (void)shm_gate_give_up(user->region, &user->token, NULL); /* it only fails where the region is lost to us */
        return status;
    }
    *ret_orphaned = answer.orphaned;
    *ret_orphan_operation = answer.orphan_operation;
    return SLUICE_OK;
}

static void hook_settle(void *context, const lk_gate_key *key)
{
    shm_gate_user *user = context;
    (void)shm_gate_settle(user->region, &user->token, key, NULL); /* a mark too many costs its next holder one look */
}

static void hook_leave(void *context, const lk_gate_key *key)
{
    shm_gate_user *user = context;
    sluice_error err;
    sluice_status status = shm_gate_leave(user->region, &user->token, key, &err);
    /* A stuck latch: its holder is killed within the supervisor's bound, so this ends. */
    while (status == SLUICE_TIMEOUT && shm_region_state(user->region) == SHM_READY)
        status = shm_gate_leave(user->region, &user->token, key, &err);
}

lk_gate_hooks shm_gate_hooks(shm_gate_user *user)
{
    return (lk_gate_hooks){.context = user, .enter = hook_enter, .settle = hook_settle, .leave = hook_leave};
}
