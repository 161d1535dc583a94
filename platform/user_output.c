/*
 * Outputs: the user's files opened for writing (see platform/user_file.h).
 *
 * Errors of a write stick: the first one is what every later call answers, so a caller that looks only at the close
 * still learns of it. A new file that is given up is removed; one that was replaced is left as it stands.
 */
#include "platform/user_file.h"

#include "platform/check.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_BUFFER ((size_t)256 * 1024)

struct pf_output {
    int fd;
    bool standard;
    bool made;  /* by us: exclusively created */
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

sluice_status pf_output_open(const char *path, pf_output_mode mode, pf_output **ret_output, sluice_error *err)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (mode == PF_OUTPUT_NEW ? O_EXCL : O_TRUNC);
    pf_output *output = malloc(sizeof *output);
    sluice_status status;

    if (output == NULL)
        return pf_fail_memory(err);
    output->standard = strcmp(path, "-") == 0;
    output->made = !output->standard && mode == PF_OUTPUT_NEW;
    output->failed = 0;
    output->bytes = 0;
    output->used = 0;
    output->name = strdup(output->standard ? "standard output" : path);
    if (output->name == NULL) {
        free(output);
        return pf_fail_memory(err);
    }
    do {
        output->fd = output->standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, flags, 0666);
    } while (output->fd < 0 && errno == EINTR);
    if (output->fd < 0) {
        status = fail_output(errno, output->name, err);
        free(output->name);
        free(output);
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

static void output_free(pf_output *output)
{
    free(output->name);
    free(output);
}

sluice_status pf_output_close(pf_output *output, bool sync, sluice_error *err)
{
    sluice_status status;

    if (output == NULL)
        return SLUICE_OK;
    status = pf_output_flush(output, err);
    if (status == SLUICE_OK && sync)
        status = sync_output(output, err);
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
    output_free(output);
}

uint64_t pf_output_bytes(const pf_output *output)
{
    return output->bytes;
}

sluice_status pf_output_make_folder(const char *path, sluice_error *err)
{
    return mkdir(path, 0777) == 0 ? SLUICE_OK : fail_output(errno, path, err);
}
