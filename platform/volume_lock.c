/*
 * Byte-range locks of the volume port: the wait, and the book of what each handle holds.
 *
 * The kernel would turn a held lock of one mode into the other without a word, and would do it in two steps; a caller
 * that asks for that has a bug in its lock order, and could lose data by it, so it is checked against the book in every
 * build. Asking again for what is held in the same mode is harmless and is not counted: one unlock releases it.
 */
#include "platform/volume_impl.h"

#include "platform/check.h"
#include "platform/failpoint.h"

#include <stdlib.h>

static bool overlaps(const pf_held_lock *held, uint64_t start, uint64_t length)
{
    return held->start < start + length && start < held->start + held->length;
}

static void check_mode_is_kept(const pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode)
{
    for (size_t i = 0; i < file->held_count; i++)
        PF_ALWAYS(!overlaps(&file->held[i], start, length) || file->held[i].mode == mode);
}

/* Room in the book before the lock is taken, so that a taken lock is always written down. */
static sluice_status reserve_entry(pf_file *file, sluice_error *err)
{
    size_t capacity = file->held_capacity == 0 ? 4 : file->held_capacity * 2;
    pf_held_lock *held;

    if (file->held_count < file->held_capacity)
        return SLUICE_OK;
    held = realloc(file->held, capacity * sizeof *held);
    if (held == NULL)
        return pf_fail_memory(err);
    file->held = held;
    file->held_capacity = capacity;
    return SLUICE_OK;
}

static void note_held(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode)
{
    for (size_t i = 0; i < file->held_count; i++)
        if (file->held[i].start == start && file->held[i].length == length)
            return;
    file->held[file->held_count++] = (pf_held_lock){.start = start, .length = length, .mode = mode};
}

static void forget_held(pf_file *file, uint64_t start, uint64_t length)
{
    size_t kept = 0;

    for (size_t i = 0; i < file->held_count; i++) {
        const pf_held_lock *held = &file->held[i];
        bool inside = held->start >= start && held->start + held->length <= start + length;
        PF_ALWAYS(inside || !overlaps(held, start, length)); /* half a lock is never given up */
        if (!inside)
            file->held[kept++] = *held;
    }
    file->held_count = kept;
}

static sluice_status check_lock_range(uint64_t start, uint64_t length, sluice_error *err)
{
    if (length == 0 || start > INT64_MAX || length > INT64_MAX - start)
        return pf_fail(err, SLUICE_INTERNAL, "a lock range is malformed");
    return SLUICE_OK;
}

/* Tries until it has the lock, the deadline has passed, or waiting is known to be in vain. */
static sluice_status take(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, pf_deadline deadline,
                          sluice_error *err)
{
    const pf_volume_ops *ops = file->volume->ops;
    bool busy = true;

    for (unsigned attempt = 0;; attempt++) {
        PF_TRY(ops->lock_try(file, start, length, mode, &busy, err));
        if (!busy)
            return SLUICE_OK;
        if (pf_deadline_passed(deadline) || !ops->lock_wait(file, attempt, deadline))
            return pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "a lock is held by a live process");
    }
}

sluice_status pf_lock(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, pf_deadline deadline,
                      sluice_error *err)
{
    pf_volume *volume = file->volume;
    sluice_status status;

    PF_TRY(check_lock_range(start, length, err));
    if (mode == PF_LOCK_EXCLUSIVE && file->access != PF_WRITE)
        return pf_fail(err, SLUICE_INTERNAL, "an exclusive lock needs a handle opened for writing");
    check_mode_is_kept(file, start, length, mode);
    PF_TRY(reserve_entry(file, err));
    if (volume->allowed != NULL && !volume->allowed(volume->allowed_context))
        return pf_fail(err, SLUICE_FENCED, "this process was fenced: it takes no more locks");
    volume->counters.calls++;
    volume->counters.locks++;
    PF_TRY(PF_FAILPOINT(VOLUME_LOCK, err));
    PF_TRY(take(file, start, length, mode, deadline, err));
    note_held(file, start, length, mode);
    status = volume->ops->file_check_identity(file, err);
    if (status != SLUICE_OK)
        (void)pf_unlock(file, start, length, NULL);
    return status;
}

sluice_status pf_unlock(pf_file *file, uint64_t start, uint64_t length, sluice_error *err)
{
    PF_TRY(check_lock_range(start, length, err));
    forget_held(file, start, length);
    return file->volume->ops->unlock(file, start, length, err);
}

sluice_status pf_lock_is_free(pf_file *file, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err)
{
    PF_TRY(check_lock_range(start, length, err));
    file->volume->counters.calls++;
    file->volume->counters.locks++;
    return file->volume->ops->lock_is_free(file, start, length, ret_free, err);
}
