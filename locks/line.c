/*
 * The line in front of a byte (see locks/line.h).
 *
 * At most two places are held at a time, and for good none: whatever ends the wait lets go of them, and the kernel does
 * it for the dead.
 */
#include "locks/line.h"

#define CHECK_MS 20 /* between two looks at what else may end the wait */

/* Under the door nobody else comes in, and who is in line only moves up: once everything from a place on is free, it
 * stays free. */
static sluice_status take_last_place(lk_lockfile *lockfile, uint64_t byte, uint32_t *ret_place, sluice_error *err)
{
    for (uint32_t place = 1; place <= LK_LINE_PLACES; place++) {
        bool is_free = false;
        PF_TRY(lk_is_free(lockfile, LK_LINE_PLACE(byte, place), LK_LINE_PLACES + 1 - place, &is_free, err));
        if (!is_free)
            continue;
        *ret_place = place;
        return lk_take(lockfile, LK_LINE_PLACE(byte, place), PF_LOCK_EXCLUSIVE, PF_AT_ONCE, err);
    }
    return pf_fail(err, SLUICE_QUEUE_FULL, "%u writers are waiting already", LK_LINE_PLACES);
}

/* *ret_place 0: the byte itself was free, and nobody was waiting for it. */
static sluice_status come_in(lk_lockfile *lockfile, uint64_t byte, pf_deadline deadline, uint32_t *ret_place,
                             sluice_error *err)
{
    uint64_t door = LK_LINE_PLACE(byte, 0);
    bool empty = false;
    PF_TRY(lk_take(lockfile, door, PF_LOCK_EXCLUSIVE, deadline, err));
    sluice_status status = lk_is_free(lockfile, LK_LINE_PLACE(byte, 1), LK_LINE_PLACES, &empty, err);
    if (status == SLUICE_OK) {
        *ret_place = 0;
        status = empty ? lk_take(lockfile, byte, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, err) : SLUICE_LIVE_WRITER_CONTENTION;
        if (status == SLUICE_LIVE_WRITER_CONTENTION)
            status = take_last_place(lockfile, byte, ret_place, err);
    }
    lk_release(lockfile, door);
    return status;
}

/* What is ahead of a place. */
static uint64_t ahead_of(uint64_t byte, uint32_t place)
{
    return place == 1 ? byte : LK_LINE_PLACE(byte, place - 1);
}

/* Waits for what is ahead, in slices. */
static sluice_status move_up(lk_lockfile *lockfile, uint64_t byte, uint32_t place, pf_deadline deadline,
                             lk_line_check_fn *check, void *context, sluice_error *err)
{
    for (;;) {
        pf_deadline slice = pf_deadline_in_ms(CHECK_MS);
        if (slice.monotonic_ns > deadline.monotonic_ns)
            slice = deadline;
        sluice_status status = lk_take(lockfile, ahead_of(byte, place), PF_LOCK_EXCLUSIVE, slice, err);
        if (status != SLUICE_LIVE_WRITER_CONTENTION || pf_deadline_passed(deadline) || !pf_deadline_passed(slice))
            return status;
        PF_TRY(check(context, err));
    }
}

sluice_status lk_line_take(lk_lockfile *lockfile, uint64_t byte, pf_deadline deadline, lk_line_check_fn *check,
                           void *context, sluice_error *err)
{
    uint32_t place = 0;
    lk_will_wait(lockfile, byte);
    PF_TRY(come_in(lockfile, byte, deadline, &place, err));
    sluice_status status = SLUICE_OK;
    while (place > 0 && status == SLUICE_OK) {
        uint64_t left = LK_LINE_PLACE(byte, place);
        status = move_up(lockfile, byte, place, deadline, check, context, err);
        lk_release(lockfile, left);
        place--;
    }
    return status;
}
