/*
 * The line in front of a byte (see locks/line.h).
 *
 * At most two places are held at a time, and for good none: whatever ends the wait lets go of them, and the kernel does
 * it for the dead.
 */
#include "locks/line.h"

#define CHECK_MS 20 /* between two looks at what else may end the wait */

typedef struct line_wait {
    lk_lockfile *lockfile;
    uint64_t byte;
    pf_deadline deadline;
    lk_line_check_fn *check;
    void *context;
} line_wait;

/* Waits for a byte of the line, in slices. */
static sluice_status wait_for(const line_wait *wait, uint64_t wanted, sluice_error *err)
{
    for (;;) {
        pf_deadline slice = pf_deadline_in_ms(CHECK_MS);
        if (slice.monotonic_ns > wait->deadline.monotonic_ns)
            slice = wait->deadline;
        sluice_status status = lk_take(wait->lockfile, wanted, PF_LOCK_EXCLUSIVE, slice, err);
        if (status != SLUICE_LIVE_WRITER_CONTENTION || pf_deadline_passed(wait->deadline) || !pf_deadline_passed(slice))
            return status;
        PF_TRY(wait->check(wait->context, err));
    }
}

/* Who moves up holds two places for a moment, and is counted twice then. */
static sluice_status all_places_are_held(const line_wait *wait, bool *ret_all, sluice_error *err)
{
    *ret_all = true;
    for (uint32_t place = 1; place <= LK_LINE_PLACES && *ret_all; place++) {
        bool is_free = false;
        PF_TRY(lk_is_free(wait->lockfile, LK_LINE_PLACE(wait->byte, place), 1, &is_free, err));
        *ret_all = !is_free;
    }
    return SLUICE_OK;
}

/* Under the door nobody else comes in, and who is in line only moves up: once everything from a place on is free, it
 * stays free. The end of the line may stand at the last place though few are in it, where it moves up more slowly than
 * newcomers come: then that place is waited for, which becomes free as the gaps close. */
static sluice_status take_last_place(const line_wait *wait, uint32_t *ret_place, sluice_error *err)
{
    bool full = false;
    for (uint32_t place = 1; place <= LK_LINE_PLACES; place++) {
        bool is_free = false;
        PF_TRY(lk_is_free(wait->lockfile, LK_LINE_PLACE(wait->byte, place), LK_LINE_PLACES + 1 - place, &is_free, err));
        if (!is_free)
            continue;
        *ret_place = place;
        return lk_take(wait->lockfile, LK_LINE_PLACE(wait->byte, place), PF_LOCK_EXCLUSIVE, PF_AT_ONCE, err);
    }
    PF_TRY(all_places_are_held(wait, &full, err));
    if (full)
        return pf_fail(err, SLUICE_QUEUE_FULL, "%u writers are waiting already", LK_LINE_PLACES);
    *ret_place = LK_LINE_PLACES;
    return wait_for(wait, LK_LINE_PLACE(wait->byte, LK_LINE_PLACES), err);
}

/* *ret_place 0: the byte itself was free, and nobody was waiting for it. */
static sluice_status come_in(const line_wait *wait, uint32_t *ret_place, sluice_error *err)
{
    uint64_t door = LK_LINE_PLACE(wait->byte, 0);
    bool empty = false;
    PF_TRY(wait_for(wait, door, err));
    sluice_status status = lk_is_free(wait->lockfile, LK_LINE_PLACE(wait->byte, 1), LK_LINE_PLACES, &empty, err);
    if (status == SLUICE_OK) {
        *ret_place = 0;
        status = empty ? lk_take(wait->lockfile, wait->byte, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, err)
                       : SLUICE_LIVE_WRITER_CONTENTION;
        if (status == SLUICE_LIVE_WRITER_CONTENTION)
            status = take_last_place(wait, ret_place, err);
    }
    lk_release(wait->lockfile, door);
    return status;
}

/* What is ahead of a place. */
static uint64_t ahead_of(uint64_t byte, uint32_t place)
{
    return place == 1 ? byte : LK_LINE_PLACE(byte, place - 1);
}

sluice_status lk_line_take(lk_lockfile *lockfile, uint64_t byte, pf_deadline deadline, lk_line_check_fn *check,
                           void *context, sluice_error *err)
{
    const line_wait wait = {lockfile, byte, deadline, check, context};
    uint32_t place = 0;
    lk_will_wait(lockfile, byte);
    PF_TRY(come_in(&wait, &place, err));
    sluice_status status = SLUICE_OK;
    for (; place > 0 && status == SLUICE_OK; place--) {
        status = wait_for(&wait, ahead_of(byte, place), err);
        lk_release(lockfile, LK_LINE_PLACE(byte, place));
    }
    return status;
}
