/*
 * Open-file-description byte-range locks on real files.
 *
 * They belong to one open of the file, so two handles of one process exclude each other as two processes would, closing
 * some other handle of the file drops nothing, and the kernel lets go when the last descriptor of that open is gone.
 * They have no timed wait, so a bounded wait is a polling one. The classic fcntl locks are not used anywhere.
 */
#include "platform/volume_posix.h"

#include <errno.h>
#include <fcntl.h>

static int lock_command(const pf_file *file, int command, short type, uint64_t start, uint64_t length,
                        struct flock *ret_lock)
{
    int result;

    *ret_lock = (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)length, .l_pid = 0};
    do {
        result = fcntl(((const pf_posix_file *)file)->fd, command, ret_lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

static sluice_status fail_lock(int error_number, const pf_file *file, sluice_error *err)
{
    if (error_number == ENOLCK)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "locking %s: the system has no more locks", file->path);
    return pf_volume_fail(err, error_number, "locking", file->path);
}

sluice_status pf_posix_lock_try(pf_file *file, uint64_t start, uint64_t length, pf_lock_mode mode, bool *ret_busy,
                                sluice_error *err)
{
    struct flock lock;

    *ret_busy = false;
    if (lock_command(file, F_OFD_SETLK, mode == PF_LOCK_EXCLUSIVE ? F_WRLCK : F_RDLCK, start, length, &lock) == 0)
        return SLUICE_OK;
    if (errno != EAGAIN && errno != EACCES)
        return fail_lock(errno, file, err);
    *ret_busy = true;
    return SLUICE_OK;
}

bool pf_posix_lock_wait(pf_file *file, unsigned attempt, pf_deadline deadline)
{
    (void)file;
    pf_backoff(attempt, deadline);
    return true;
}

sluice_status pf_posix_unlock(pf_file *file, uint64_t start, uint64_t length, sluice_error *err)
{
    struct flock lock;

    if (lock_command(file, F_OFD_SETLK, F_UNLCK, start, length, &lock) != 0)
        return fail_lock(errno, file, err);
    return SLUICE_OK;
}

sluice_status pf_posix_lock_is_free(pf_file *file, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err)
{
    struct flock lock;

    if (lock_command(file, F_OFD_GETLK, F_WRLCK, start, length, &lock) != 0)
        return fail_lock(errno, file, err);
    *ret_free = lock.l_type == F_UNLCK;
    return SLUICE_OK;
}
