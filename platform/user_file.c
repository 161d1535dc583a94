/*
 * Inputs: the user's files opened for reading (see platform/user_file.h).
 *
 * An input that changes while it is read is told by size, times and inode; the change time is among them because a
 * program can set the modification time back, but not that one.
 */
#include "platform/user_file.h"

#include "platform/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_ALL_STEP 65536u

struct pf_input {
    int fd;
    bool regular;
    bool nameless;          /* `name` is for messages only: no file has it */
    uint64_t device, inode; /* of what is not regular */
    uint64_t position;      /* of pf_input_read on a regular file */
    char *name;
};

static sluice_status fail_input(int error_number, const char *name, sluice_error *err)
{
    const char *why = strerrordesc_np(error_number);

    switch (error_number) {
    case ENOENT:
    case ENOTDIR:
        return pf_fail_private(err, SLUICE_USAGE, "an input file does not exist", "%s: no such file", name);
    case EISDIR:
        return pf_fail_private(err, SLUICE_USAGE, "an input is a folder", "%s is a folder", name);
    case EACCES:
    case EPERM:
        return pf_fail_private(err, SLUICE_PERMISSION, "an input may not be read", "%s may not be read", name);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return pf_fail_private(err, SLUICE_RESOURCE_LIMIT, "an input could not be opened: a limit of the system",
                               "%s: %s", name, why);
    default:
        return pf_fail_private(err, SLUICE_IO, "reading an input failed", "%s: %s", name, why != NULL ? why : "?");
    }
}

static struct {
    const char *const *names;
    const int *descriptors;
    uint32_t count;
} given;

void pf_inputs_give(const char *const *names, const int *descriptors, uint32_t count)
{
    given.names = names;
    given.descriptors = descriptors;
    given.count = count;
}

/* The descriptor given for a name; -1: none. */
static int find_given(const char *path)
{
    for (uint32_t i = 0; i < given.count; i++) {
        if (strcmp(given.names[i], path) == 0)
            return given.descriptors[i];
    }
    return -1;
}

/* A pipe on standard input is taken as it is: opened again by a name, one whose writer has gone would never end. */
static bool is_standard(const char *path)
{
    struct stat st;

    if (strcmp(path, "-") == 0)
        return true;
    return (strcmp(path, "/dev/stdin") == 0 || strcmp(path, "/dev/fd/0") == 0) && fstat(STDIN_FILENO, &st) == 0 &&
           !S_ISREG(st.st_mode);
}

/* A named pipe is opened without waiting for its writer, which pf_input_wait does. */
static int open_input(const char *path, int has, bool standard)
{
    int fd;

    do {
        fd = has >= 0   ? fcntl(has, F_DUPFD_CLOEXEC, 3)
             : standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                        : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

sluice_status pf_input_open(const char *path, pf_input **ret_input, sluice_error *err)
{
    pf_input *input = calloc(1, sizeof *input);
    int has = find_given(path);
    bool standard = has < 0 && is_standard(path);
    sluice_status status = SLUICE_OK;
    struct stat st;

    if (input == NULL)
        return pf_fail_memory(err);
    input->fd = -1;
    input->nameless = has >= 0;
    input->name = strdup(strcmp(path, "-") == 0 ? "standard input" : path);
    if (input->name == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    input->fd = open_input(path, has, standard);
    if (input->fd < 0 || fstat(input->fd, &st) != 0) {
        status = fail_input(errno, input->name, err);
        goto done;
    }
    if (S_ISDIR(st.st_mode)) {
        status = fail_input(EISDIR, input->name, err);
        goto done;
    }
    /* Standard input is read from where it stands, by whatever came before us: never by ranges. */
    input->regular = S_ISREG(st.st_mode) && !standard && (has < 0 || lseek(input->fd, 0, SEEK_CUR) == 0);
    input->device = st.st_dev;
    input->inode = st.st_ino;
done:
    if (status != SLUICE_OK)
        pf_input_close(input);
    else
        *ret_input = input;
    return status;
}

sluice_status pf_scratch_input(const pf_scratch *scratch, const char *name, pf_input **ret_input, sluice_error *err)
{
    pf_input *input = calloc(1, sizeof *input);

    *ret_input = NULL;
    if (input == NULL)
        return pf_fail_memory(err);
    input->regular = input->nameless = true;
    input->name = strdup(name);
    input->fd = fcntl(pf_scratch_descriptor(scratch), F_DUPFD_CLOEXEC, 3);
    if (input->name != NULL && input->fd >= 0) {
        *ret_input = input;
        return SLUICE_OK;
    }
    sluice_status status = input->name == NULL ? pf_fail_memory(err) : fail_input(errno, name, err);
    pf_input_close(input);
    return status;
}

void pf_input_close(pf_input *input)
{
    if (input == NULL)
        return;
    if (input->fd >= 0)
        (void)close(input->fd);
    free(input->name);
    free(input);
}

bool pf_input_is_regular(const pf_input *input)
{
    return input->regular;
}

bool pf_input_is_same_stream(const pf_input *a, const pf_input *b)
{
    return !a->regular && !b->regular && a->device == b->device && a->inode == b->inode;
}

const char *pf_input_name(const pf_input *input)
{
    return input->name;
}

int pf_input_descriptor(const pf_input *input)
{
    return input->fd;
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static pf_input_identity identity_of(const struct stat *st)
{
    return (pf_input_identity){
        .device = st->st_dev,
        .inode = st->st_ino,
        .size = (uint64_t)st->st_size,
        .modified_ns = nanoseconds(&st->st_mtim),
        .changed_ns = nanoseconds(&st->st_ctim),
    };
}

static bool same_identity(const pf_input_identity *a, const pf_input_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->modified_ns == b->modified_ns &&
           a->changed_ns == b->changed_ns;
}

bool pf_input_is_file(const pf_input *input, const char *path)
{
    struct stat mine, named;

    return input->regular && fstat(input->fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

sluice_status pf_input_identify(pf_input *input, pf_input_identity *ret_identity, sluice_error *err)
{
    struct stat st;

    *ret_identity = (pf_input_identity){0};
    if (!input->regular)
        return SLUICE_OK;
    if (fstat(input->fd, &st) != 0)
        return fail_input(errno, input->name, err);
    *ret_identity = identity_of(&st);
    return SLUICE_OK;
}

sluice_status pf_input_check(pf_input *input, const pf_input_identity *identity, sluice_error *err)
{
    pf_input_identity opened, named = {0};
    struct stat st;

    if (!input->regular)
        return SLUICE_OK;
    PF_TRY(pf_input_identify(input, &opened, err));
    if (input->nameless)
        named = opened;
    else if (stat(input->name, &st) == 0)
        named = identity_of(&st);
    if (same_identity(identity, &opened) && same_identity(identity, &named))
        return SLUICE_OK;
    return pf_fail_private(err, SLUICE_INPUT_CHANGED, "an input changed while it was read",
                           "%s changed while it was read", input->name);
}

sluice_status pf_input_read_at(pf_input *input, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                               sluice_error *err)
{
    uint8_t *to = bytes;
    uint64_t end;
    size_t got = 0;

    PF_ASSERT(input->regular);
    if (!pf_add_u64(offset, length, &end) || end > INT64_MAX)
        return pf_fail(err, SLUICE_INTERNAL, "an input is read beyond what a file can hold");
    while (got < length) {
        ssize_t n = pread(input->fd, to + got, length - got, (off_t)(offset + got));
        if (n == 0)
            break;
        if (n > 0)
            got += (size_t)n;
        else if (errno != EINTR)
            return fail_input(errno, input->name, err);
    }
    *ret_got = got;
    return SLUICE_OK;
}

/* A named pipe that nobody has written to yet is neither readable nor hung up; one that has lost its writers is. */
sluice_status pf_input_wait(pf_input *input, int timeout_ms, bool *ret_ready, sluice_error *err)
{
    struct pollfd watched = {.fd = input->fd, .events = POLLIN};
    int ready = 1;

    if (!input->regular)
        ready = poll(&watched, 1, timeout_ms);
    *ret_ready = ready > 0;
    if (ready < 0 && errno != EINTR)
        return fail_input(errno, input->name, err);
    return SLUICE_OK;
}

sluice_status pf_input_read(pf_input *input, void *bytes, size_t length, size_t *ret_got, sluice_error *err)
{
    ssize_t n = -1;
    bool ready;

    if (input->regular) {
        PF_TRY(pf_input_read_at(input, input->position, bytes, length, ret_got, err));
        input->position += *ret_got;
        return SLUICE_OK;
    }
    while (n < 0) {
        PF_TRY(pf_input_wait(input, -1, &ready, err));
        if (!ready)
            continue;
        n = read(input->fd, bytes, length);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return fail_input(errno, input->name, err);
    }
    *ret_got = (size_t)n;
    return SLUICE_OK;
}

sluice_status pf_input_read_all(const char *path, size_t limit, pf_buffer *buffer, sluice_error *err)
{
    size_t start = buffer->length, got = 1;
    sluice_status status;
    pf_input *input = NULL;

    PF_TRY(pf_input_open(path, &input, err));
    PF_ASSERT(input != NULL);
    for (;;) {
        PF_GOTO(status, done, pf_buffer_reserve(buffer, READ_ALL_STEP, err));
        PF_GOTO(status, done, pf_input_read(input, buffer->data + buffer->length, READ_ALL_STEP, &got, err));
        if (got == 0)
            break;
        buffer->length += got;
        if (buffer->length - start > limit) {
            status = pf_fail_private(err, SLUICE_RESOURCE_LIMIT, "a file is too large", "%s holds more than %zu bytes",
                                     input->name, limit);
            goto done;
        }
    }
done:
    if (status != SLUICE_OK)
        buffer->length = start;
    pf_input_close(input);
    return status;
}
