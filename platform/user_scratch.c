/*
 * Scratch files (see platform/user_file.h): made without a name, or unlinked at once where the file system cannot do
 * that.
 */
#include "platform/check.h"
#include "platform/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pf_scratch {
    int fd;
    uint64_t bytes;
};

static sluice_status fail_scratch(int error_number, sluice_error *err)
{
    const char *why = strerrordesc_np(error_number);
    sluice_status status = error_number == ENOSPC ? SLUICE_NO_SPACE : error_number == EDQUOT ? SLUICE_QUOTA : SLUICE_IO;

    (void)pf_fail(err, status, "a temporary file: %s", why != NULL ? why : "?");
    pf_hint(err, "TMPDIR names the folder for temporary files");
    return status;
}

static int open_named(const char *folder)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/sluice-XXXXXX", folder);

    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

sluice_status pf_scratch_open(pf_scratch **ret_scratch, sluice_error *err)
{
    const char *folder = getenv("TMPDIR");
    pf_scratch *scratch = calloc(1, sizeof *scratch);

    if (scratch == NULL)
        return pf_fail_memory(err);
    if (folder == NULL || folder[0] == '\0')
        folder = "/var/tmp";
    scratch->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (scratch->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        scratch->fd = open_named(folder);
    if (scratch->fd < 0) {
        int error_number = errno;
        free(scratch);
        return fail_scratch(error_number, err);
    }
    *ret_scratch = scratch;
    return SLUICE_OK;
}

sluice_status pf_scratch_append(pf_scratch *scratch, const void *bytes, size_t length, sluice_error *err)
{
    const char *from = bytes;

    while (length > 0) {
        ssize_t n = pwrite(scratch->fd, from, length, (off_t)scratch->bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_scratch(errno, err);
        from += n;
        length -= (size_t)n;
        scratch->bytes += (uint64_t)n;
    }
    return SLUICE_OK;
}

sluice_status pf_scratch_read_at(pf_scratch *scratch, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                 sluice_error *err)
{
    char *to = bytes;
    size_t got = 0;

    while (got < length) {
        ssize_t n = pread(scratch->fd, to + got, length - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_scratch(errno, err);
        if (n == 0)
            break;
        got += (size_t)n;
    }
    *ret_got = got;
    return SLUICE_OK;
}

uint64_t pf_scratch_bytes(const pf_scratch *scratch)
{
    return scratch->bytes;
}

int pf_scratch_descriptor(const pf_scratch *scratch)
{
    return scratch->fd;
}

void pf_scratch_close(pf_scratch *scratch)
{
    if (scratch == NULL)
        return;
    (void)close(scratch->fd);
    free(scratch);
}
