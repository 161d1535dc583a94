/*
 * Outputs: the user's files opened for writing (see platform/user_file.h).
 *
 * Errors of a write stick: the first one is what every later call answers, so a caller that looks only at the close
 * still learns of it. A new file that is given up is removed; one that was replaced is left as it stands.
 *
 * A swapped output has no name while it is written (O_TMPFILE), so that a killed program leaves nothing; where the
 * system has no such files it has one of its own beside its target. Closing gives it the name by a rename.
 */
#include "platform/user_file.h"

#include "platform/check.h"
#include "platform/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_BUFFER ((size_t)256 * 1024)

struct pf_output {
    int fd;
    bool standard;
    bool made;  /* by us: exclusively created */
    bool swap;  /* takes its name when it is closed; */
    bool named; /* until then it has `temporary` already */
    char *temporary;
    mode_t mode;
    int failed; /* errno of the first failure */
    uint64_t bytes;
    size_t used;
    char *name;
    uint8_t buffer[OUTPUT_BUFFER];
};

static sluice_status fail_output(int error_number, const char *name, sluice_error *err)
{
    const char *why = strerrordesc_np(error_number);

    switch (error_number) {
    case ENOENT:
    case ENOTDIR:
        return pf_fail_private(err, SLUICE_USAGE, "the folder of an output does not exist",
                               "%s: its folder does not exist", name);
    case EISDIR:
        return pf_fail_private(err, SLUICE_USAGE, "an output is a folder", "%s is a folder", name);
    case EEXIST:
        return pf_fail_private(err, SLUICE_ALREADY_EXISTS, "an output exists already", "%s exists already", name);
    case EACCES:
    case EPERM:
    case EROFS:
        return pf_fail_private(err, SLUICE_PERMISSION, "an output may not be written", "%s may not be written", name);
    case ENOSPC:
        return pf_fail_private(err, SLUICE_NO_SPACE, "no space left for an output", "%s: no space left", name);
    case EDQUOT:
        return pf_fail_private(err, SLUICE_QUOTA, "quota of an output's file system used up", "%s: quota used up",
                               name);
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return pf_fail_private(err, SLUICE_RESOURCE_LIMIT, "writing an output met a limit of the system", "%s: %s",
                               name, why);
    default:
        return pf_fail_private(err, SLUICE_IO, "writing an output failed", "%s: %s", name, why != NULL ? why : "?");
    }
}

static void output_free(pf_output *output)
{
    free(output->temporary);
    free(output->name);
    free(output);
}

/* ---- swapped outputs ---- */

static int open_unnamed(pf_output *output, const char *folder)
{
    if (access("/proc/self/fd", X_OK) != 0) { /* it could not be named later */
        errno = EOPNOTSUPP;
        return -1;
    }
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, output->mode);
}

/* A file beside the target; without a name where that can be. */
static int open_beside(pf_output *output)
{
    char *copy = strdup(output->name), *folder;
    int fd = -1;

    if (copy == NULL)
        return -1;
    folder = dirname(copy);
    if (asprintf(&output->temporary, "%s/.sluice-%016" PRIx64 ".part", folder, pf_random_u64()) < 0)
        output->temporary = NULL;
    if (output->temporary) {
        fd = open_unnamed(output, folder);
        if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
            fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, output->mode);
            output->named = fd >= 0;
        }
    } else {
        errno = ENOMEM;
    }
    free(copy);
    return fd;
}

/* Returns the descriptor, or -1 with errno. */
static int open_swap(pf_output *output)
{
    struct stat st;
    char *real;

    if (stat(output->name, &st) != 0) {
        size_t length = strlen(output->name);
        if (errno != ENOENT)
            return -1;
        if (length > 0 && output->name[length - 1] != '/')
            return open_beside(output);
        errno = length > 0 ? EISDIR : ENOENT; /* no name for a file */
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        output->swap = false;
        return open(output->name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (faccessat(AT_FDCWD, output->name, W_OK, AT_EACCESS) != 0 ||
        (real = pf_adopt_text(realpath(output->name, NULL))) == NULL)
        return -1;
    free(output->name);
    output->name = real;
    output->mode = st.st_mode & 07777;
    return open_beside(output);
}

static sluice_status sync_folder_of(const char *name, sluice_error *err);

/* The content is synced already. */
static sluice_status take_name(pf_output *output, sluice_error *err)
{
    char link[40];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", output->fd);
    if (!output->named && linkat(AT_FDCWD, link, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) != 0)
        return fail_output(errno, output->name, err);
    output->named = true;
    if (rename(output->temporary, output->name) != 0)
        return fail_output(errno, output->name, err);
    output->named = false;
    return sync_folder_of(output->name, err);
}

sluice_status pf_path_folder(const char *path, char **ret_folder, sluice_error *err)
{
    const char *slash = strrchr(path, '/');
    char *here = NULL;
    int length;

    *ret_folder = NULL;
    if (path[0] != '/') {
        here = pf_adopt_text(getcwd(NULL, 0));
        if (here == NULL)
            return pf_fail_errno(err, errno, "finding the working folder");
    }
    length =
        asprintf(ret_folder, "%s%s%.*s", here ? here : "", here ? "/" : "", slash ? (int)(slash - path) + 1 : 0, path);
    free(here);
    if (length < 0) {
        *ret_folder = NULL;
        return pf_fail_memory(err);
    }
    return SLUICE_OK;
}

bool pf_path_is_inside(const char *path, const char *folder)
{
    char *copy = strdup(path), *place = copy ? pf_adopt_text(realpath(dirname(copy), NULL)) : NULL,
         *outer = pf_adopt_text(realpath(folder, NULL));
    size_t length = outer ? strlen(outer) : 0;
    bool inside =
        place && outer && strncmp(place, outer, length) == 0 && (place[length] == '\0' || place[length] == '/');

    free(copy);
    free(place);
    free(outer);
    return inside;
}

/* ---- all outputs ---- */

sluice_status pf_output_open(const char *path, pf_output_mode mode, pf_output **ret_output, sluice_error *err)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (mode == PF_OUTPUT_NEW ? O_EXCL : O_TRUNC);
    pf_output *output = malloc(sizeof *output);
    sluice_status status;

    if (output == NULL)
        return pf_fail_memory(err);
    output->standard = strcmp(path, "-") == 0;
    output->made = !output->standard && mode == PF_OUTPUT_NEW;
    output->swap = !output->standard && mode == PF_OUTPUT_SWAP;
    output->named = false;
    output->temporary = NULL;
    output->mode = 0666;
    output->failed = 0;
    output->bytes = 0;
    output->used = 0;
    output->name = strdup(output->standard ? "standard output" : path);
    if (output->name == NULL) {
        free(output);
        return pf_fail_memory(err);
    }
    do {
        output->fd = output->standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                     : output->swap   ? open_swap(output)
                                      : open(path, flags, output->mode);
    } while (output->fd < 0 && errno == EINTR);
    if (output->fd < 0) {
        status = fail_output(errno, output->name, err);
        output_free(output);
        return status;
    }
    *ret_output = output;
    return SLUICE_OK;
}

/* Writes past the buffer. */
static sluice_status write_through(pf_output *output, const uint8_t *bytes, size_t length, sluice_error *err)
{
    while (length > 0 && output->failed == 0) {
        ssize_t n = write(output->fd, bytes, length);
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (n == 0) {
            output->failed = EIO;
        } else if (errno != EINTR) {
            output->failed = errno;
        }
    }
    return output->failed == 0 ? SLUICE_OK : fail_output(output->failed, output->name, err);
}

sluice_status pf_output_flush(pf_output *output, sluice_error *err)
{
    size_t used = output->used;

    output->used = 0;
    return write_through(output, output->buffer, used, err);
}

sluice_status pf_output_write(pf_output *output, const void *bytes, size_t length, sluice_error *err)
{
    if (output->failed != 0)
        return fail_output(output->failed, output->name, err);
    output->bytes += length;
    if (length > OUTPUT_BUFFER - output->used)
        PF_TRY(pf_output_flush(output, err));
    if (length >= OUTPUT_BUFFER)
        return write_through(output, bytes, length, err);
    memcpy(output->buffer + output->used, bytes, length);
    output->used += length;
    return SLUICE_OK;
}

/* The name of a new file becomes durable with its folder. */
static sluice_status sync_folder_of(const char *name, sluice_error *err)
{
    char *copy = strdup(name);
    sluice_status status = SLUICE_OK;
    int fd;

    if (copy == NULL)
        return pf_fail_memory(err);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        status = fail_output(errno, name, err);
    if (fd >= 0)
        (void)close(fd);
    free(copy);
    return status;
}

/* A pipe or a terminal has nothing to sync and says EINVAL. */
static sluice_status sync_output(pf_output *output, sluice_error *err)
{
    if (fsync(output->fd) != 0 && errno != EINVAL && errno != EROFS)
        return fail_output(errno, output->name, err);
    return output->made ? sync_folder_of(output->name, err) : SLUICE_OK;
}

sluice_status pf_output_close(pf_output *output, bool sync, sluice_error *err)
{
    sluice_status status;

    if (output == NULL)
        return SLUICE_OK;
    status = pf_output_flush(output, err);
    if (status == SLUICE_OK && (sync || output->swap))
        status = sync_output(output, err);
    if (status == SLUICE_OK && output->swap)
        status = take_name(output, err);
    if (output->named)
        (void)unlink(output->temporary);
    if (close(output->fd) != 0 && errno != EINTR && status == SLUICE_OK)
        status = fail_output(errno, output->name, err);
    output_free(output);
    return status;
}

void pf_output_discard(pf_output *output)
{
    if (output == NULL)
        return;
    (void)close(output->fd);
    if (output->made)
        (void)unlink(output->name);
    if (output->named)
        (void)unlink(output->temporary);
    output_free(output);
}

uint64_t pf_output_bytes(const pf_output *output)
{
    return output->bytes;
}

int pf_output_descriptor(const pf_output *output)
{
    return output->fd;
}

bool pf_output_is_unread(const pf_output *output)
{
    return output->failed == EPIPE;
}

sluice_status pf_output_make_folder(const char *path, sluice_error *err)
{
    return mkdir(path, 0777) == 0 ? SLUICE_OK : fail_output(errno, path, err);
}
