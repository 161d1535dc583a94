/*
 * The live probe: does this place do what its kind promises? (F-01, F-02)
 *
 * It works in a folder of its own, PARENT/.sluice-probe-<random>, and with four names in it that are known: `lock`,
 * `one`, `two`, `three`. `lock` is made first and removed last, and is held locked from its making to its removal, so
 * whoever finds the folder can tell a live probe (the lock is busy) from what a killed one left (the lock is free, or
 * there is none and the folder is empty), and take the latter away. A live probe whose folder is taken away before it
 * holds its lock starts again. What is probed is never touched by anybody else, and nothing outside the folder is
 * changed.
 */
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/failpoint.h"
#include "platform/preflight_impl.h"
#include "platform/process.h"
#include "platform/volume_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX       PF_PROBE_PREFIX
#define NAME_SIZE    48u
#define CREATE_TRIES 64u /* a try is lost when another probe sweeps in the moment between folder and lock */
#define CONTENT      4096u
#define CHILD_MS     10000 /* until the forked child holds its locks */
#define RELEASE_MS   1000  /* until the locks of a reaped process must be free */
#define BENEATH      (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)

static const char *const names[] = {"one", "two", "three", "lock"}; /* the lock last */

static struct {
    void (*spoil)(void *context, pf_probe_phase phase, int folder);
    void *context;
} spoiler;

static bool without_children;

typedef struct probe {
    const char *class_name;
    const char *phase;
    int parent, folder, lock;
    int one, two; /* handles of these files, kept over the phases */
    char name[NAME_SIZE];
    uint8_t content[CONTENT], other[CONTENT]; /* of `one` and of `two` */
    uint64_t sync_us;
    sluice_error *err;
} probe;

void pf_preflight_spoil(void (*spoil)(void *context, pf_probe_phase phase, int folder), void *context)
{
    spoiler.spoil = spoil;
    spoiler.context = context;
}

void pf_preflight_without_children(void)
{
    __atomic_store_n(&without_children, true, __ATOMIC_RELAXED);
}

static void spoil(pf_probe_phase phase, int folder)
{
    if (spoiler.spoil != NULL)
        spoiler.spoil(spoiler.context, phase, folder);
}

/* ---- failing ---- */

static sluice_status refuse(const probe *p, const char *cause, const char *what)
{
    return pf_preflight_fail(p->err, p->class_name, p->phase, cause, what);
}

/* The system refused a call: for want of something, which says nothing about the place, or because it cannot do it. */
static sluice_status refused_call(const probe *p, int error_number, const char *what)
{
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EACCES:
    case EPERM:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOLCK:
    case EIO:
        return pf_fail_errno(p->err, error_number, what);
    default:
        return refuse(p, "call", what);
    }
}

/* ---- small helpers ---- */

static int open_in(const probe *p, const char *name, int flags)
{
    return pf_posix_openat2(p->folder, name, flags | O_NOFOLLOW | O_NONBLOCK, BENEATH);
}

static void close_if(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* A lock on one byte of a description; 0, EAGAIN when it is busy, or another errno. */
static int lock_byte(int fd, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? EAGAIN : errno;
}

static bool same_file(int fd, const struct stat *with)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == with->st_dev && st.st_ino == with->st_ino;
}

static bool holds(int fd, const uint8_t *content)
{
    uint8_t got[CONTENT];

    return pread(fd, got, CONTENT, 0) == (ssize_t)CONTENT && memcmp(got, content, CONTENT) == 0;
}

/* Writes a new file's content; *ret_fd stays open. */
static sluice_status make_file(const probe *p, const char *name, const uint8_t *content, int *ret_fd)
{
    *ret_fd = open_in(p, name, O_RDWR | O_CREAT | O_EXCL);
    if (*ret_fd < 0)
        return refused_call(p, errno, "a file could not be created");
    if (pwrite(*ret_fd, content, CONTENT, 0) != (ssize_t)CONTENT)
        return refused_call(p, errno, "a file could not be written");
    return SLUICE_OK;
}

/* ---- residue ---- */

static void remove_folder(int parent, const char *name, int folder)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unlinkat(folder, names[i], 0);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Takes one probe folder away unless its probe lives. What fails here is tried again by the next probe. */
static void sweep_one(int parent, const char *name)
{
    struct stat st;
    int lock, folder = pf_posix_openat2(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, BENEATH);

    if (folder < 0)
        return;
    if (fstat(folder, &st) == 0 && st.st_uid == geteuid()) {
        lock = pf_posix_openat2(folder, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK, BENEATH);
        if (lock < 0 && errno == ENOENT)
            (void)unlinkat(parent, name, AT_REMOVEDIR);
        if (lock >= 0 && lock_byte(lock, F_WRLCK, 0) == 0)
            remove_folder(parent, name, folder);
        close_if(&lock);
    }
    (void)close(folder);
}

static void sweep(int parent)
{
    int copy = pf_posix_openat2(parent, ".", O_RDONLY | O_DIRECTORY, BENEATH);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry;

    if (dir == NULL) {
        close_if(&copy);
        return;
    }
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
            sweep_one(parent, entry->d_name);
    (void)closedir(dir);
}

/* ---- phases ---- */

/* One try; *ret_lost: a sweeper took the folder before it was locked. */
static sluice_status create_once(probe *p, bool *ret_lost)
{
    struct stat st;
    int result;

    *ret_lost = false;
    (void)snprintf(p->name, sizeof p->name, PREFIX "%016" PRIx64, pf_random_u64());
    p->folder = pf_posix_make_folder_at(p->parent, p->name);
    if (p->folder < 0) {
        *ret_lost = errno == ENOENT;
        return *ret_lost ? SLUICE_OK : refused_call(p, errno, "a folder could not be made");
    }
    PF_TRY(pf_posix_set_mode(p->folder, PF_FOLDER_MODE, "a folder of the probe", p->err));
    p->lock = open_in(p, "lock", O_RDWR | O_CREAT | O_EXCL);
    if (p->lock < 0) {
        *ret_lost = errno == ENOENT;
        return *ret_lost ? SLUICE_OK : refused_call(p, errno, "a file could not be created");
    }
    result = lock_byte(p->lock, F_WRLCK, 0);
    if (result != 0 && result != EAGAIN)
        return refused_call(p, result, "byte-range locks are refused");
    *ret_lost = result == EAGAIN || fstat(p->lock, &st) != 0 || st.st_nlink != 1;
    return SLUICE_OK;
}

static sluice_status create(probe *p)
{
    bool lost = true;

    for (unsigned i = 0; i < CREATE_TRIES && lost; i++) {
        close_if(&p->lock);
        close_if(&p->folder);
        PF_TRY(create_once(p, &lost));
    }
    if (lost)
        return pf_fail(p->err, SLUICE_IO, "the probe's folder was taken away again and again");
    if (fsync(p->parent) != 0)
        return refused_call(p, errno, "a folder could not be synced");
    return SLUICE_OK;
}

static sluice_status write_content(probe *p)
{
    PF_TRY(make_file(p, "one", p->content, &p->one));
    return holds(p->one, p->content) ? SLUICE_OK : refuse(p, "bytes", "a file does not hold what was written to it");
}

static sluice_status sync_file(probe *p)
{
    struct stat before, after;

    if (fstat(p->one, &before) != 0)
        return refused_call(p, errno, "a file could not be examined");
    p->sync_us = UINT64_MAX;
    for (unsigned i = 0; i < 2; i++) {
        int64_t start;
        uint64_t us;
        if (pwrite(p->one, p->content, CONTENT, 0) != (ssize_t)CONTENT)
            return refused_call(p, errno, "a file could not be written");
        start = pf_monotonic_ns();
        if (fdatasync(p->one) != 0)
            return refused_call(p, errno, "a file could not be synced");
        us = (uint64_t)(pf_monotonic_ns() - start) / 1000;
        p->sync_us = us < p->sync_us ? us : p->sync_us;
    }
    if (fsync(p->one) != 0)
        return refused_call(p, errno, "a file could not be synced");
    spoil(PF_PROBE_FILE_SYNC, p->folder);
    if (fstat(p->one, &after) != 0 || after.st_dev != before.st_dev || after.st_ino != before.st_ino)
        return refuse(p, "identity", "a file changed its identity when it was synced");
    if (after.st_nlink != 1)
        return refuse(p, "links", "a new file has more names than one");
    if (after.st_size != CONTENT)
        return refuse(p, "bytes", "a synced file has another size than what was written");
    return SLUICE_OK;
}

/* In the child: locks on a description of its own, then waits to be killed. */
_Noreturn static void hold_locks(const probe *p, int tell)
{
    int fd = open_in(p, "one", O_RDWR);
    char done = (char)(fd >= 0 && lock_byte(fd, F_WRLCK, 0) == 0 && lock_byte(fd, F_RDLCK, 1) == 0);

    if (done)
        spoil(PF_PROBE_LOCK_CHILD, p->folder);
    if (write(tell, &done, 1) != 1)
        _exit(1);
    for (;;)
        (void)pause();
}

/* The child's answer: it holds its locks. */
static bool wait_for_child(int told)
{
    struct pollfd wait = {.fd = told, .events = POLLIN};
    int ready;
    char done = 0;

    do {
        ready = poll(&wait, 1, CHILD_MS);
    } while (ready < 0 && errno == EINTR);
    return ready == 1 && read(told, &done, 1) == 1 && done == 1;
}

/* What others may and may not lock while the child holds byte 0 alone and byte 1 shared. */
static sluice_status check_excluded(const probe *p, int fd)
{
    if (lock_byte(fd, F_RDLCK, 0) != EAGAIN || lock_byte(fd, F_WRLCK, 1) != EAGAIN)
        return refuse(p, "not_excluded", "a lock of another process does not exclude");
    if (lock_byte(fd, F_RDLCK, 1) != 0 || lock_byte(fd, F_WRLCK, 2) != 0)
        return refuse(p, "not_excluded", "a lock excludes more than its range and mode");
    if (lock_byte(fd, F_UNLCK, 1) != 0 || lock_byte(fd, F_UNLCK, 2) != 0)
        return refuse(p, "call", "a lock could not be released");
    return SLUICE_OK;
}

/* A dying process gives its locks up a moment after it was reaped, so this waits, within bounds. */
static sluice_status check_released(const probe *p, int fd)
{
    const pf_deadline deadline = pf_deadline_in_ms(RELEASE_MS);

    for (off_t byte = 0; byte < 2; byte++) {
        int result = lock_byte(fd, F_WRLCK, byte);
        for (unsigned attempt = 0; result == EAGAIN && !pf_deadline_passed(deadline); attempt++) {
            pf_backoff(attempt, deadline);
            result = lock_byte(fd, F_WRLCK, byte);
        }
        if (result != 0)
            return refuse(p, "not_released", "the locks of a killed process are not released");
    }
    return SLUICE_OK;
}

/* Two descriptions of one process exclude each other as those of two do, and closing one is what its death would do. */
static sluice_status lock_against_self(const probe *p)
{
    sluice_status status;
    int fd = open_in(p, "one", O_RDWR), other = open_in(p, "one", O_RDWR);

    if (fd < 0 || other < 0)
        status = refused_call(p, errno, "a file could not be opened");
    else if (lock_byte(other, F_WRLCK, 0) != 0 || lock_byte(other, F_RDLCK, 1) != 0)
        status = refuse(p, "call", "byte-range locks could not be taken");
    else
        status = check_excluded(p, fd);
    close_if(&other);
    if (status == SLUICE_OK)
        status = check_released(p, fd);
    close_if(&fd);
    return status;
}

static sluice_status lock_against_child(probe *p)
{
    if (__atomic_load_n(&without_children, __ATOMIC_RELAXED))
        return lock_against_self(p);

    pf_child child = {.pid = 0, .pidfd = -1};
    bool in_child = false, ended = false;
    int ends[2] = {-1, -1}, fd = -1, wait_status;
    sluice_status status;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return refused_call(p, errno, "a pipe could not be made");
    fd = open_in(p, "one", O_RDWR);
    if (fd < 0) {
        status = refused_call(p, errno, "a file could not be opened");
        goto done;
    }
    PF_GOTO(status, done, pf_fork(&child, &in_child, p->err));
    if (in_child)
        hold_locks(p, ends[1]);
    close_if(&ends[1]); /* its death ends the wait */
    status = wait_for_child(ends[0]) ? check_excluded(p, fd)
                                     : refuse(p, "call", "another process could not take byte-range locks");
    pf_child_kill(&child);
    if (pf_child_wait(&child, pf_deadline_in_ms(CHILD_MS), &ended, &wait_status, NULL) != SLUICE_OK || !ended)
        status = status != SLUICE_OK ? status : pf_fail(p->err, SLUICE_TIMEOUT, "the probe's child does not end");
    if (status == SLUICE_OK)
        status = check_released(p, fd);
done:
    close_if(&fd);
    close_if(&ends[0]);
    close_if(&ends[1]);
    return status;
}

static bool is_refused_as_there(int result)
{
    return result != 0 && errno == EEXIST;
}

static sluice_status create_exclusively(probe *p)
{
    int again;

    PF_TRY(make_file(p, "two", p->other, &p->two));
    spoil(PF_PROBE_EXCLUSIVE, p->folder);
    again = open_in(p, "two", O_RDWR | O_CREAT | O_EXCL);
    if (again >= 0) {
        (void)close(again);
        return refuse(p, "not_excluded", "a second creator of one name is not refused");
    }
    if (errno != EEXIST)
        return refused_call(p, errno, "a second creator gets another error");
    if (!is_refused_as_there(linkat(p->folder, "one", p->folder, "two", 0)))
        return refuse(p, "not_excluded", "a second creator of one name by link is not refused");
    if (!is_refused_as_there(renameat2(p->folder, "one", p->folder, "two", RENAME_NOREPLACE)))
        return refuse(p, "not_excluded", "renaming without replacing replaces, or is not offered");
    if (!holds(p->two, p->other))
        return refuse(p, "bytes", "a refused creator changed the file");
    if (renameat2(p->folder, "one", p->folder, "three", RENAME_NOREPLACE) != 0)
        return refused_call(p, errno, "renaming without replacing is not offered");
    return SLUICE_OK;
}

/* `three` takes the place of `two`, whose handle goes on naming the old file. */
static sluice_status replace(probe *p)
{
    struct stat old_file, new_file;
    bool good;
    int fd;

    if (fstat(p->two, &old_file) != 0 || fstat(p->one, &new_file) != 0)
        return refused_call(p, errno, "a file could not be examined");
    if (renameat(p->folder, "three", p->folder, "two") != 0)
        return refused_call(p, errno, "a file could not be replaced");
    spoil(PF_PROBE_REPLACED, p->folder);
    if (!same_file(p->two, &old_file) || !holds(p->two, p->other))
        return refuse(p, "replaced", "an open handle does not keep the file that was replaced");
    fd = open_in(p, "two", O_RDONLY);
    good = fd >= 0 && same_file(fd, &new_file) && holds(fd, p->content);
    close_if(&fd);
    return good ? SLUICE_OK : refuse(p, "replaced", "a replaced name does not stand for the new file");
}

static sluice_status sync_folders(probe *p)
{
    if (fsync(p->folder) != 0 || fsync(p->parent) != 0)
        return refused_call(p, errno, "a folder could not be synced");
    return SLUICE_OK;
}

static sluice_status map_file(probe *p)
{
    uint8_t *address = mmap(NULL, CONTENT, PROT_READ, MAP_SHARED, p->one, 0);
    bool equal;

    if (address == MAP_FAILED)
        return refused_call(p, errno, "a file could not be mapped");
    equal = memcmp(address, p->content, CONTENT) == 0;
    (void)munmap(address, CONTENT);
    return equal ? SLUICE_OK : refuse(p, "bytes", "a mapped file shows other bytes than what was written");
}

static sluice_status clean_up(probe *p)
{
    if (unlinkat(p->folder, "two", 0) != 0 || unlinkat(p->folder, "lock", 0) != 0)
        return refused_call(p, errno, "a file could not be removed");
    spoil(PF_PROBE_CLEANUP, p->folder);
    /* Without its lock the empty folder looks like a dead probe's: another process may have taken it away by now. */
    if (unlinkat(p->parent, p->name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return refused_call(p, errno, "a folder could not be removed");
    close_if(&p->folder);
    return SLUICE_OK;
}

static const struct {
    const char *name;
    pf_probe_phase phase;
    pf_failpoint failpoint;
    bool spoils_inside; /* the seam is called in the middle of it */
    sluice_status (*run)(probe *p);
} phases[] = {
    {"create", PF_PROBE_CREATE, PF_FP_PREFLIGHT_CREATE, false, create},
    {"write", PF_PROBE_WRITE, PF_FP_PREFLIGHT_WRITE, false, write_content},
    {"file_sync", PF_PROBE_FILE_SYNC, PF_FP_PREFLIGHT_FILE_SYNC, true, sync_file},
    {"lock", PF_PROBE_LOCK, PF_FP_PREFLIGHT_LOCK, false, lock_against_child},
    {"exclusive", PF_PROBE_EXCLUSIVE, PF_FP_PREFLIGHT_EXCLUSIVE, true, create_exclusively},
    {"replace", PF_PROBE_REPLACE, PF_FP_PREFLIGHT_REPLACE, false, replace},
    {"dir_sync", PF_PROBE_DIR_SYNC, PF_FP_PREFLIGHT_DIR_SYNC, false, sync_folders},
    {"map", PF_PROBE_MAP, PF_FP_PREFLIGHT_MAP, false, map_file},
    {"cleanup", PF_PROBE_CLEANUP, PF_FP_PREFLIGHT_CLEANUP, true, clean_up},
};

static sluice_status pass_failpoint(pf_failpoint point, sluice_error *err)
{
#if SLUICE_FAILPOINTS
    return pf_failpoint_hit(point, err);
#else
    (void)point;
    (void)err;
    return SLUICE_OK;
#endif
}

static sluice_status run(probe *p)
{
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        p->phase = phases[i].name;
        if (!phases[i].spoils_inside)
            spoil(phases[i].phase, p->folder);
        PF_TRY(pass_failpoint(phases[i].failpoint, p->err));
        PF_TRY(phases[i].run(p));
    }
    return SLUICE_OK;
}

static sluice_status probe_in(int parent, const pf_place *place, uint64_t *ret_sync_us, sluice_error *err)
{
    probe p = {
        .class_name = place->class_name, .parent = parent, .folder = -1, .lock = -1, .one = -1, .two = -1, .err = err};
    sluice_status status;

    for (size_t i = 0; i < CONTENT; i++) {
        p.content[i] = (uint8_t)(i * 7 + i / 256);
        p.other[i] = (uint8_t)(i * 11 + 1);
    }
    status = run(&p);
    if (status != SLUICE_OK && p.folder >= 0) /* nothing is left all the same */
        remove_folder(parent, p.name, p.folder);
    else if (status != SLUICE_OK && p.name[0] != 0)
        (void)unlinkat(parent, p.name, AT_REMOVEDIR);
    close_if(&p.two);
    close_if(&p.one);
    close_if(&p.lock);
    close_if(&p.folder);
    *ret_sync_us = p.sync_us;
    return status;
}

sluice_status pf_preflight_probe(const char *parent, const char *evidence_folder, sluice_error *err)
{
    uint64_t sync_us;
    sluice_status status;
    pf_place place;
    int fd = pf_posix_openat2(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);

    if (fd < 0)
        return pf_posix_fail_root(errno, parent, err);
    PF_GOTO(status, done, pf_place_of(fd, &place, err));
    sweep(fd);
    if (evidence_folder != NULL && pf_evidence_read(evidence_folder, &place, &sync_us))
        goto done;
    PF_GOTO(status, done, probe_in(fd, &place, &sync_us, err));
    if (evidence_folder != NULL)
        pf_evidence_write(evidence_folder, &place, sync_us);
done:
    (void)close(fd);
    return status;
}
