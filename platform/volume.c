/*
 * The volume port's front: what every implementation has in common happens here, once, before the work itself.
 *
 * Order of the checks of a changing call: form of the path (an invariant of ours, so INTERNAL), access of the volume
 * (PERMISSION), fence (FENCED), count, failpoint. A refused call is not counted, so counts say what was asked of the
 * machine.
 */
#include "platform/volume_impl.h"

#include "platform/allowance.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include "platform/tally.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- paths ---- */

static bool component_is_good(const char *name, size_t length)
{
    if (length == 0 || length > PF_COMPONENT_MAX)
        return false;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

/* Relative, without "." and "..", without empty components. */
static sluice_status check_path(const char *path, sluice_error *err)
{
    const char *at = path;

    if (strlen(path) >= PF_PATH_MAX)
        return pf_fail(err, SLUICE_INTERNAL, "a path of the volume is too long");
    for (;;) {
        const char *slash = strchr(at, '/');
        size_t part = slash != NULL ? (size_t)(slash - at) : strlen(at);
        if (!component_is_good(at, part))
            return pf_fail(err, SLUICE_INTERNAL, "a path of the volume is malformed");
        if (slash == NULL)
            return SLUICE_OK;
        at = slash + 1;
    }
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool is_root(const char *path)
{
    return path[0] == 0 || (path[0] == '.' && path[1] == 0);
}

/* A folder's path: the root is allowed and becomes "". */
static sluice_status check_folder_path(const char **path, sluice_error *err)
{
    if (is_root(*path)) {
        *path = "";
        return SLUICE_OK;
    }
    return check_path(*path, err);
}

void pf_path_split(const char *path, char ret_folder[PF_PATH_MAX], const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) : 0;

    PF_ALWAYS(length < PF_PATH_MAX);
    memcpy(ret_folder, path, length);
    ret_folder[length] = 0;
    *ret_name = slash != NULL ? slash + 1 : path;
}

sluice_status pf_volume_fail(sluice_error *err, int error_number, const char *doing, const char *path)
{
    char what[192];

    switch (error_number) {
    case ELOOP:
        return pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "%s %s: a symbolic link is in the way", doing, path);
    case EXDEV:
        return pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "%s %s: another mount is in the way", doing, path);
    case ENOTDIR:
        return pf_fail(err, SLUICE_CORRUPT, "%s %s: a file stands where a folder is expected", doing, path);
    case EISDIR:
    case ENXIO:
    case ENODEV:
        return pf_fail(err, SLUICE_CORRUPT, "%s %s: it is not a regular file", doing, path);
    case ENOTEMPTY:
        return pf_fail(err, SLUICE_ALREADY_EXISTS, "%s %s: the folder is not empty", doing, path);
    case ENOSYS:
        return pf_fail(err, SLUICE_UNSUPPORTED_FILESYSTEM, "%s %s: the system cannot do this", doing, path);
    default:
        (void)snprintf(what, sizeof what, "%s %s", doing, path);
        return pf_fail_errno(err, error_number, what);
    }
}

/* ---- what is common to all calls ---- */

static void count(pf_volume *volume, uint64_t *counter)
{
    volume->counters.calls++;
    (*counter)++;
}

static sluice_status allow_change(pf_volume *volume, sluice_error *err)
{
    if (volume->access != PF_WRITE)
        return pf_fail(err, SLUICE_PERMISSION, "the graph is opened for reading only");
    if (volume->allowed != NULL && !volume->allowed(volume->allowed_context) && !PF_SABOTAGE(fence_not_checked))
        return pf_fail(err, SLUICE_FENCED, "this process was fenced: another one may have taken over its work");
    return SLUICE_OK;
}

static sluice_status begin_change(pf_volume *volume, uint64_t *counter, sluice_error *err)
{
    PF_TRY(allow_change(volume, err));
    count(volume, counter);
    return SLUICE_OK;
}

/* ---- the volume ---- */

void pf_volume_close(pf_volume *volume)
{
    if (volume == NULL)
        return;
    PF_ASSERT(volume->open_files == 0);
    volume->ops->close(volume);
}

sluice_status pf_volume_check_identity(pf_volume *volume, sluice_error *err)
{
    count(volume, &volume->counters.stats);
    return volume->ops->check_identity(volume, err);
}

sluice_status pf_volume_sync_name(pf_volume *volume, sluice_error *err)
{
    PF_TRY(begin_change(volume, &volume->counters.directory_syncs, err));
    PF_TRY(PF_FAILPOINT(VOLUME_SYNC_DIR, err));
    pf_tally_add(PF_TALLY_FOLDER_SYNCS, 1);
    return volume->ops->sync_name(volume, err);
}

void pf_volume_set_fence(pf_volume *volume, bool (*allowed)(void *context), void *context)
{
    volume->allowed = allowed;
    volume->allowed_context = context;
}

const pf_counters *pf_volume_counters(const pf_volume *volume)
{
    return &volume->counters;
}

void pf_volume_counters_reset(pf_volume *volume)
{
    volume->counters = (pf_counters){0};
}

bool pf_volume_is_sim(const pf_volume *volume)
{
    return volume->simulated;
}

/* ---- names ---- */

sluice_status pf_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    PF_TRY(check_path(path, err));
    PF_TRY(begin_change(volume, &volume->counters.creates, err));
    PF_TRY(PF_FAILPOINT(VOLUME_CREATE, err));
    PF_TRY(volume->ops->create(volume, path, ret_file, err));
    (*ret_file)->counts = pf_allowance_counts(path);
    return SLUICE_OK;
}

sluice_status pf_open(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file, sluice_error *err)
{
    PF_TRY(check_path(path, err));
    if (access == PF_WRITE)
        PF_TRY(allow_change(volume, err));
    count(volume, &volume->counters.opens);
    PF_TRY(PF_FAILPOINT(VOLUME_OPEN, err));
    return volume->ops->open(volume, path, access, ret_file, err);
}

sluice_status pf_publish(pf_volume *volume, const char *from, const char *to, sluice_error *err)
{
    PF_TRY(check_path(from, err));
    PF_TRY(check_path(to, err));
    if (is_below(to, from))
        return pf_fail(err, SLUICE_INTERNAL, "a folder was to be moved into itself");
    PF_TRY(begin_change(volume, &volume->counters.renames, err));
    PF_TRY(PF_FAILPOINT(VOLUME_PUBLISH, err));
    return volume->ops->publish(volume, from, to, err);
}

sluice_status pf_remove(pf_volume *volume, const char *path, sluice_error *err)
{
    PF_TRY(check_path(path, err));
    PF_TRY(begin_change(volume, &volume->counters.removes, err));
    PF_TRY(PF_FAILPOINT(VOLUME_REMOVE, err));
    return volume->ops->remove(volume, path, err);
}

sluice_status pf_make_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    PF_TRY(check_path(path, err));
    PF_TRY(begin_change(volume, &volume->counters.creates, err));
    PF_TRY(PF_FAILPOINT(VOLUME_MAKE_FOLDER, err));
    return volume->ops->make_folder(volume, path, err);
}

sluice_status pf_remove_if_there(pf_volume *volume, const char *path, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = pf_remove(volume, path, &local);
    if (status == SLUICE_OK || status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (err)
        *err = local;
    return status;
}

sluice_status pf_remove_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    PF_TRY(check_path(path, err));
    PF_TRY(begin_change(volume, &volume->counters.removes, err));
    PF_TRY(PF_FAILPOINT(VOLUME_REMOVE_FOLDER, err));
    return volume->ops->remove_folder(volume, path, err);
}

sluice_status pf_sync_dir(pf_volume *volume, const char *path, sluice_error *err)
{
    PF_TRY(check_folder_path(&path, err));
    PF_TRY(begin_change(volume, &volume->counters.directory_syncs, err));
    PF_TRY(PF_FAILPOINT(VOLUME_SYNC_DIR, err));
    pf_tally_add(PF_TALLY_FOLDER_SYNCS, 1);
    return volume->ops->sync_dir(volume, path, err);
}

sluice_status pf_list(pf_volume *volume, const char *path, pf_list_fn *each, void *context, sluice_error *err)
{
    PF_TRY(check_folder_path(&path, err));
    count(volume, &volume->counters.lists);
    return volume->ops->list(volume, path, each, context, err);
}

sluice_status pf_stat_path(pf_volume *volume, const char *path, pf_stat *ret_stat, sluice_error *err)
{
    PF_TRY(check_folder_path(&path, err));
    count(volume, &volume->counters.stats);
    return volume->ops->stat_path(volume, path, ret_stat, err);
}

/* ---- handles ---- */

sluice_status pf_file_init(pf_file *file, pf_volume *volume, const char *path, pf_access access, sluice_error *err)
{
    file->path = strdup(path);
    if (file->path == NULL)
        return pf_fail_memory(err);
    file->volume = volume;
    file->access = access;
    volume->open_files++;
    return SLUICE_OK;
}

void pf_file_drop(pf_file *file)
{
    PF_ASSERT(file->volume->open_files > 0);
    file->volume->open_files--;
    free(file->held);
    free(file->path);
    free(file);
}

/* ---- contents ---- */

static sluice_status begin_file_change(pf_file *file, uint64_t *counter, sluice_error *err)
{
    if (file->access != PF_WRITE)
        return pf_fail(err, SLUICE_INTERNAL, "a file opened for reading was to be written");
    PF_TRY(allow_change(file->volume, err));
    if (file->abandoned)
        return pf_fail(err, SLUICE_IO, "a file whose sync failed is not written again");
    count(file->volume, counter);
    return SLUICE_OK;
}

/* Offsets are off_t in the end; ranges beyond it come from damaged numbers. */
static sluice_status check_range(uint64_t offset, uint64_t length, sluice_error *err)
{
    uint64_t end;

    if (!pf_add_u64(offset, length, &end) || end > INT64_MAX)
        return pf_fail(err, SLUICE_CORRUPT, "a file range lies beyond what a file can hold");
    return SLUICE_OK;
}

/* The file is about to reach `end`. */
static sluice_status take_space(pf_file *file, uint64_t end, sluice_error *err)
{
    if (!file->counts || end <= file->taken_to)
        return SLUICE_OK;
    PF_TRY(pf_allowance_take(end - file->taken_to, err));
    file->taken_to = end;
    return SLUICE_OK;
}

static sluice_status fail_short(const pf_file *file, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "%s is shorter than what it must hold", file->path);
}

sluice_status pf_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got, sluice_error *err)
{
    size_t got = 0;

    PF_TRY(check_range(offset, length, err));
    count(file->volume, &file->volume->counters.reads);
    PF_TRY(file->volume->ops->read(file, offset, bytes, length, &got, err));
    file->volume->counters.bytes_read += got;
    pf_tally_add(PF_TALLY_BYTES_READ, got);
    *ret_got = got;
    return SLUICE_OK;
}

sluice_status pf_read_exact(pf_file *file, uint64_t offset, void *bytes, size_t length, sluice_error *err)
{
    size_t got;

    PF_TRY(pf_read(file, offset, bytes, length, &got, err));
    return got == length ? SLUICE_OK : fail_short(file, err);
}

sluice_status pf_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, sluice_error *err)
{
    size_t got = 0;

    PF_TRY(check_range(offset, length, err));
    count(file->volume, &file->volume->counters.reads);
    PF_TRY(file->volume->ops->read_medium(file, offset, bytes, length, &got, err));
    file->volume->counters.bytes_read += got;
    pf_tally_add(PF_TALLY_BYTES_READ, got);
    return got == length ? SLUICE_OK : fail_short(file, err);
}

sluice_status pf_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, sluice_error *err)
{
    sluice_status status;
    size_t written = 0;

    PF_TRY(check_range(offset, length, err));
    PF_TRY(begin_file_change(file, &file->volume->counters.writes, err));
    PF_TRY(PF_FAILPOINT(VOLUME_WRITE, err));
    PF_TRY(take_space(file, offset + length, err));
    status = file->volume->ops->write(file, offset, bytes, length, &written, err);
    file->volume->counters.bytes_written += written;
    pf_tally_add(PF_TALLY_BYTES_WRITTEN, written);
    return status;
}

sluice_status pf_sync(pf_file *file, sluice_error *err)
{
    sluice_status status;

    PF_TRY(begin_file_change(file, &file->volume->counters.file_syncs, err));
    int64_t clock = pf_tally_clock();
    status = PF_FAILPOINT(VOLUME_SYNC, err);
    if (status == SLUICE_OK)
        status = file->volume->ops->sync(file, err);
    pf_tally_add(PF_TALLY_FILE_SYNCS, 1);
    pf_tally_since(PF_SERIES_SYNC, clock);
    file->abandoned = status != SLUICE_OK;
    return status;
}

void pf_write_behind(pf_file *file, uint64_t offset, uint64_t length)
{
    if (file->access == PF_WRITE && !file->abandoned && length > 0 && check_range(offset, length, NULL) == SLUICE_OK &&
        allow_change(file->volume, NULL) == SLUICE_OK)
        file->volume->ops->write_behind(file, offset, length);
}

sluice_status pf_zero_fill(pf_file *file, uint64_t size, sluice_error *err)
{
    sluice_status status;
    uint64_t written = 0;

    PF_TRY(check_range(size, 0, err));
    PF_TRY(begin_file_change(file, &file->volume->counters.writes, err));
    PF_TRY(PF_FAILPOINT(VOLUME_WRITE, err));
    PF_TRY(take_space(file, size, err));
    status = file->volume->ops->zero_fill(file, size, &written, err);
    file->volume->counters.bytes_written += written;
    pf_tally_add(PF_TALLY_BYTES_WRITTEN, written);
    return status;
}

sluice_status pf_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err)
{
    count(file->volume, &file->volume->counters.stats);
    return file->volume->ops->file_stat(file, ret_stat, err);
}

sluice_status pf_file_check_identity(pf_file *file, sluice_error *err)
{
    count(file->volume, &file->volume->counters.stats);
    return file->volume->ops->file_check_identity(file, err);
}

sluice_status pf_close(pf_file *file, sluice_error *err)
{
    return file != NULL ? file->volume->ops->file_close(file, err) : SLUICE_OK;
}

/* ---- mappings ---- */

void pf_map_init(pf_map *map, const uint8_t *data, size_t length, void (*release)(pf_map *map), void *private_)
{
    *map = (pf_map){.data = data, .length = length, .release_ = release, .private_ = private_};
}

sluice_status pf_map_file(pf_file *file, pf_map *ret_map, sluice_error *err)
{
    count(file->volume, &file->volume->counters.maps);
    return file->volume->ops->map(file, ret_map, err);
}

void pf_unmap(pf_map *map)
{
    if (map->release_ != NULL)
        map->release_(map);
    *map = (pf_map){0};
}
