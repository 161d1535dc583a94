/*
 * The volume port on the simulated disk: contents of files, and byte-range locks per handle.
 */
#include "platform/volume_sim.h"

#include <errno.h>
#include <stdlib.h>

/* ---- contents ---- */

static sluice_status look_at_file(pf_file *file, const char *doing, sluice_error *err)
{
    return pf_sim_begin_look(sim_actor_of(file->volume), doing, file->path, err);
}

sluice_status pf_sim_op_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                             sluice_error *err)
{
    PF_TRY(look_at_file(file, "reading", err));
    *ret_got = pf_sim_content_read(pf_sim_look(sim_actor_of(file->volume)->disk, sim_file_of(file)->slot), offset,
                                   bytes, length);
    return SLUICE_OK;
}

sluice_status pf_sim_op_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                    sluice_error *err)
{
    pf_sim_disk *disk = sim_actor_of(file->volume)->disk;

    PF_TRY(look_at_file(file, "reading past the cache", err));
    pf_sim_content_forget_clean(disk, sim_file_of(file)->slot, offset, length);
    *ret_got = pf_sim_content_read(pf_sim_look(disk, sim_file_of(file)->slot), offset, bytes, length);
    return SLUICE_OK;
}

/* A cut of the range at a page, by the seed: what an interrupted write has written. */
static uint64_t cut_range(pf_sim_disk *disk, uint64_t offset, uint64_t length)
{
    uint64_t first = SIM_PAGE - offset % SIM_PAGE, pages, cut;

    if (length <= first)
        return pf_sim_chance(disk, 1, 2) ? length : 0;
    pages = (length - first + SIM_PAGE - 1) / SIM_PAGE + 1;
    cut = pf_sim_random(disk) % (pages + 1);
    if (cut == 0)
        return 0;
    cut = first + (cut - 1) * SIM_PAGE;
    return cut < length ? cut : length;
}

/* How far a write of this length gets. */
static uint64_t reach(sim_actor *actor, const sim_call *call, uint64_t offset, uint64_t length)
{
    bool killed = call->last && actor->fate == PF_SIM_DIE && actor->loss == PF_SIM_TEAR_LAST;

    return killed || call->error_number != 0 ? cut_range(actor->disk, offset, length) : length;
}

sluice_status pf_sim_op_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, size_t *ret_written,
                              sluice_error *err)
{
    sim_actor *actor = sim_actor_of(file->volume);
    pf_sim_disk *disk = actor->disk;
    sluice_status status = SLUICE_OK;
    uint64_t written = 0;
    sim_call call;

    PF_TRY(pf_sim_begin_change(actor, "writing", file->path, &call, err));
    if (!pf_sim_content_write(disk, sim_file_of(file)->slot, offset, bytes, (size_t)reach(actor, &call, offset, length),
                              ++disk->serial, &written) &&
        call.error_number == 0)
        call.error_number = ENOSPC;
    *ret_written = (size_t)written;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "writing", file->path);
    return pf_sim_end_change(actor, &call, status, err);
}

sluice_status pf_sim_op_zero_fill(pf_file *file, uint64_t size, uint64_t *ret_written, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(file->volume);
    pf_sim_disk *disk = actor->disk;
    sluice_status status = SLUICE_OK;
    uint64_t old;
    sim_call call;

    PF_TRY(pf_sim_begin_change(actor, "filling with zeros", file->path, &call, err));
    old = pf_sim_look(disk, sim_file_of(file)->slot)->size;
    if (size > old)
        size = old + reach(actor, &call, old, size - old);
    if (!pf_sim_content_zero(disk, sim_file_of(file)->slot, size, ++disk->serial, ret_written) &&
        call.error_number == 0)
        call.error_number = ENOSPC;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "filling with zeros", file->path);
    return pf_sim_end_change(actor, &call, status, err);
}

sluice_status pf_sim_op_sync(pf_file *file, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(file->volume);
    sluice_status status = SLUICE_OK;
    sim_call call;

    PF_TRY(pf_sim_begin_change(actor, "syncing", file->path, &call, err));
    if (call.error_number != 0) {
        pf_sim_content_fail_sync(actor->disk, sim_file_of(file)->slot);
        status = pf_volume_fail(err, call.error_number, "syncing", file->path);
    } else {
        pf_sim_content_sync(actor->disk, sim_file_of(file)->slot);
    }
    return pf_sim_end_change(actor, &call, status, err);
}

/* Nothing is promised, so nothing happens: a power loss may keep unsynced sectors anyway. */
void pf_sim_op_write_behind(pf_file *file, uint64_t offset, uint64_t length)
{
    (void)file;
    (void)offset;
    (void)length;
}

sluice_status pf_sim_op_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err)
{
    PF_TRY(look_at_file(file, "examining", err));
    pf_sim_fill_stat(sim_actor_of(file->volume)->disk, sim_file_of(file)->slot, ret_stat);
    return SLUICE_OK;
}

sluice_status pf_sim_op_file_check_identity(pf_file *file, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(file->volume);
    sim_place place;

    PF_TRY(pf_sim_begin_look(actor, "examining", file->path, err));
    if (pf_sim_find_place(actor, file->path, &place) != 0 || place.slot != sim_file_of(file)->slot)
        return pf_fail(err, SLUICE_FENCED, "%s was moved or replaced", file->path);
    return SLUICE_OK;
}

static void release_map(pf_map *map)
{
    free(map->private_);
}

sluice_status pf_sim_op_map(pf_file *file, pf_map *ret_map, sluice_error *err)
{
    const sim_inode *inode;
    uint8_t *copy;

    PF_TRY(look_at_file(file, "mapping", err));
    inode = pf_sim_look(sim_actor_of(file->volume)->disk, sim_file_of(file)->slot);
    if (inode->size == 0) {
        pf_map_init(ret_map, NULL, 0, NULL, NULL);
        return SLUICE_OK;
    }
    copy = pf_sim_grow(NULL, (size_t)inode->size, 1);
    (void)pf_sim_content_read(inode, 0, copy, (size_t)inode->size);
    pf_map_init(ret_map, copy, (size_t)inode->size, release_map, copy);
    return SLUICE_OK;
}

sluice_status pf_sim_op_file_close(pf_file *base, sluice_error *err)
{
    sim_file *file = sim_file_of(base);
    sim_actor *actor = sim_actor_of(base->volume);
    sluice_status status = actor->dead ? pf_sim_fail_dead(err) : SLUICE_OK;
    sim_file **at = &actor->files;

    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    if (file->open) {
        pf_sim_drop_locks(actor->disk, file);
        pf_sim_handle(actor->disk, file->slot, false);
    }
    pf_file_drop(base);
    return status;
}

/* ---- locks ---- */

/* Somebody else's lock that an exclusive (or shared) one on this range would meet. */
static bool meets_other(const pf_sim_disk *disk, const sim_file *file, uint64_t start, uint64_t length,
                        pf_lock_mode mode)
{
    for (size_t i = 0; i < disk->lock_count; i++) {
        const sim_lock *lock = &disk->locks[i];
        if (lock->slot == file->slot && lock->file != file && lock->start < start + length &&
            start < lock->start + lock->length && (mode == PF_LOCK_EXCLUSIVE || lock->mode == PF_LOCK_EXCLUSIVE))
            return true;
    }
    return false;
}

sluice_status pf_sim_op_lock_try(pf_file *base, uint64_t start, uint64_t length, pf_lock_mode mode, bool *ret_busy,
                                 sluice_error *err)
{
    sim_file *file = sim_file_of(base);
    pf_sim_disk *disk = sim_actor_of(base->volume)->disk;

    PF_TRY(look_at_file(base, "locking", err));
    *ret_busy = meets_other(disk, file, start, length, mode);
    if (*ret_busy)
        return SLUICE_OK;
    if (disk->lock_count == disk->lock_capacity) {
        disk->lock_capacity = disk->lock_capacity == 0 ? 16 : disk->lock_capacity * 2;
        disk->locks = pf_sim_grow(disk->locks, disk->lock_capacity, sizeof *disk->locks);
    }
    disk->locks[disk->lock_count++] =
        (sim_lock){.file = file, .slot = file->slot, .start = start, .length = length, .mode = mode};
    return SLUICE_OK;
}

bool pf_sim_op_lock_wait(pf_file *file, unsigned attempt, pf_deadline deadline)
{
    const pf_sim_turns *turns = sim_actor_of(file->volume)->disk->turns;

    (void)attempt;
    if (turns)
        return turns->wait(turns->context, deadline);
    pf_sim_world_pass(deadline);
    return false;
}

sluice_status pf_sim_op_unlock(pf_file *base, uint64_t start, uint64_t length, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(base->volume);
    pf_sim_disk *disk = actor->disk;
    size_t kept = 0, before = disk->lock_count;

    if (actor->dead)
        return pf_sim_fail_dead(err);
    for (size_t i = 0; i < disk->lock_count; i++) {
        const sim_lock *lock = &disk->locks[i];
        if (lock->file != sim_file_of(base) || lock->start < start || lock->start + lock->length > start + length)
            disk->locks[kept++] = *lock;
    }
    disk->lock_count = kept;
    if (kept != before)
        pf_sim_tell_released(disk);
    return SLUICE_OK;
}

sluice_status pf_sim_op_lock_is_free(pf_file *base, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err)
{
    PF_TRY(look_at_file(base, "locking", err));
    *ret_free = !meets_other(sim_actor_of(base->volume)->disk, sim_file_of(base), start, length, PF_LOCK_EXCLUSIVE);
    return SLUICE_OK;
}
