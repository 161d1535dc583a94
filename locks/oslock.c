/*
 * Byte-range locks of one lock file, counted per handle (see locks/oslock.h).
 *
 * The kernel's lock is taken on the first hold of a byte and given back with the last; a shared hold is never upgraded,
 * since two who upgrade wait for each other for ever. The turnstile is what makes polling fair: a waiter for the
 * exclusive mode keeps it while it waits, so neither new shared takers nor the holder that comes back at once overtake
 * it. A try (a deadline that has passed) for the exclusive mode does not wait and so needs no turnstile.
 *
 * Crash rule: none is needed. The kernel gives up the locks of an open file description with its last descriptor, up to
 * 0.1 ms after robust mutexes of the same process: who learns of a death there waits here, bounded, and never tries
 * once.
 */
#include "locks/oslock.h"
#include "locks/line.h"
#include "locks/order.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

typedef enum file_kind { OF_BRANCH, OF_CONTROL, OF_GRAPH, OF_OTHER } file_kind;

typedef struct hold {
    uint64_t byte;
    pf_lock_mode mode;
    uint32_t count; /* 0: let go of, but the kernel did not take it back yet (see release_kernel_lock) */
} hold;

struct lk_lockfile {
    pf_volume *volume; /* the actor of lock order */
    pf_file *file;
    file_kind kind;
    uint64_t incarnation; /* of a branch's file, else 0 */
    hold *holds;
    uint32_t count;
    uint32_t capacity;
    char path[64]; /* empty: longer than that */
};

/* What a byte of this file is in the order of everything lockable; false: it stands outside of it. */
static bool rank_of(const lk_lockfile *lockfile, uint64_t byte, lk_rank *ret_rank, uint64_t *ret_detail)
{
    static const lk_rank branch[] = {[LK_BYTE_SCHEMA] = LK_RANK_SCHEMA_GATE,
                                     [LK_BYTE_BRANCH] = LK_RANK_BRANCH_GATE,
                                     [LK_BYTE_PUBLISH] = LK_RANK_PUBLISH,
                                     [LK_BYTE_ADMISSION] = LK_RANK_ADMISSION};
    static const lk_rank graph[] = {[LK_GRAPH_REFS] = LK_RANK_REFS, [LK_GRAPH_RECLAIM] = LK_RANK_RECLAIM};
    *ret_detail = lockfile->incarnation;
    switch (lockfile->kind) {
    case OF_BRANCH:
        if (byte >= LK_LINE && byte < LK_FOLDER) /* stands for the byte that is waited for: lk_line_take says so */
            return false;
        if (byte >= LK_FOLDER) {
            *ret_rank = LK_RANK_FOLDER;
            *ret_detail = byte - LK_FOLDER;
            return true;
        }
        if (byte >= 64) {
            *ret_rank = LK_RANK_TABLE_GATE;
            *ret_detail = byte;
            return true;
        }
        if (byte >= sizeof branch / sizeof branch[0])
            return false;
        *ret_rank = branch[byte];
        return true;
    case OF_GRAPH:
        if (byte >= sizeof graph / sizeof graph[0])
            return false;
        *ret_rank = graph[byte];
        return true;
    case OF_CONTROL:
        *ret_rank = LK_RANK_CONTROL_PUBLISH;
        return byte == LK_BYTE_PUBLISH;
    case OF_OTHER:
        break;
    }
    return false;
}

static void order_wait(const lk_lockfile *lockfile, uint64_t byte)
{
    lk_rank rank;
    uint64_t detail;
    if (rank_of(lockfile, byte, &rank, &detail))
        lk_order_wait(lockfile->volume, rank, detail);
}

static void order_take(const lk_lockfile *lockfile, uint64_t byte)
{
    lk_rank rank;
    uint64_t detail;
    if (rank_of(lockfile, byte, &rank, &detail))
        lk_order_take(lockfile->volume, rank, detail);
}

static void order_drop(const lk_lockfile *lockfile, uint64_t byte)
{
    lk_rank rank;
    uint64_t detail;
    if (rank_of(lockfile, byte, &rank, &detail))
        lk_order_drop(lockfile->volume, rank, detail);
}

/* "branches/<incarnation>/locks", "control/locks", "locks/graph"; any other file has no place in the order. */
static void classify(lk_lockfile *lockfile, const char *path)
{
    static const char branches[] = "branches/";
    lockfile->kind = OF_OTHER;
    if (strcmp(path, "locks/graph") == 0) {
        lockfile->kind = OF_GRAPH;
    } else if (strcmp(path, "control/locks") == 0) {
        lockfile->kind = OF_CONTROL;
    } else if (strncmp(path, branches, sizeof branches - 1) == 0) {
        lockfile->kind = OF_BRANCH;
        lockfile->incarnation = strtoull(path + sizeof branches - 1, NULL, 10);
    }
}

sluice_status lk_lockfile_open(pf_volume *volume, const char *path, lk_lockfile **ret_lockfile, sluice_error *err)
{
    lk_lockfile *lockfile = calloc(1, sizeof *lockfile);
    if (!lockfile)
        return pf_fail_memory(err);
    lockfile->volume = volume;
    if (strlen(path) < sizeof lockfile->path)
        memcpy(lockfile->path, path, strlen(path) + 1);
    classify(lockfile, path);
    sluice_status status = pf_open(volume, path, PF_WRITE, &lockfile->file, err);
    if (status != SLUICE_OK) {
        free(lockfile);
        return status;
    }
    *ret_lockfile = lockfile;
    return SLUICE_OK;
}

void lk_lockfile_close(lk_lockfile *lockfile)
{
    if (!lockfile)
        return;
    for (uint32_t i = 0; i < lockfile->count; i++) {
        if (lockfile->holds[i].count > 0)
            order_drop(lockfile, lockfile->holds[i].byte);
    }
    (void)pf_close(lockfile->file, NULL); /* nothing was written through it; the kernel lets go of every lock */
    free(lockfile->holds);
    free(lockfile);
}

/* One that was replaced is not the file of that name any more. */
bool lk_lockfile_is(const lk_lockfile *lockfile, const char *path)
{
    return lockfile->path[0] && strcmp(lockfile->path, path) == 0 &&
           pf_file_check_identity(lockfile->file, NULL) == SLUICE_OK;
}

static hold *find(lk_lockfile *lockfile, uint64_t byte)
{
    for (uint32_t i = 0; i < lockfile->count; i++) {
        if (lockfile->holds[i].byte == byte)
            return &lockfile->holds[i];
    }
    return NULL;
}

/* Room for one more hold, made before the kernel's lock is taken: nothing can fail after it. */
static sluice_status make_room(lk_lockfile *lockfile, sluice_error *err)
{
    if (lockfile->count < lockfile->capacity)
        return SLUICE_OK;
    uint32_t capacity = lockfile->capacity ? lockfile->capacity * 2 : 8;
    hold *holds = realloc(lockfile->holds, capacity * sizeof *holds);
    if (!holds)
        return pf_fail_memory(err);
    lockfile->holds = holds;
    lockfile->capacity = capacity;
    return SLUICE_OK;
}

/* A hold whose kernel lock cannot be given back stays listed with count 0, so that the list keeps telling what the
 * kernel has; the next take of the byte tries again, and closing the file ends it in any case. */
static sluice_status release_kernel_lock(lk_lockfile *lockfile, hold *held, sluice_error *err)
{
    PF_TRY(pf_unlock(lockfile->file, held->byte, 1, err));
    *held = lockfile->holds[--lockfile->count];
    return SLUICE_OK;
}

/* Nobody waits and nobody holds it: the byte alone is taken, without going through the turnstile. Who begins to wait
 * between the look and the take is overtaken this once. */
static sluice_status take_free_lock(lk_lockfile *lockfile, uint64_t byte, pf_lock_mode mode, bool *ret_taken,
                                    sluice_error *err)
{
    bool nobody = false;
    sluice_error busy = {0};
    *ret_taken = false;
    PF_TRY(pf_lock_is_free(lockfile->file, LK_TURNSTILE + byte, 1, &nobody, err));
    if (!nobody)
        return SLUICE_OK;
    sluice_status status = pf_lock(lockfile->file, byte, 1, mode, PF_AT_ONCE, &busy);
    *ret_taken = status == SLUICE_OK;
    if (status == SLUICE_OK || status == SLUICE_LIVE_WRITER_CONTENTION)
        return SLUICE_OK;
    if (err)
        *err = busy;
    return status;
}

static sluice_status take_kernel_lock(lk_lockfile *lockfile, uint64_t byte, pf_lock_mode mode, pf_deadline deadline,
                                      sluice_error *err)
{
    bool at_once = pf_deadline_passed(deadline);
    bool turnstile = mode == PF_LOCK_SHARED || !at_once;
    if (!at_once)
        order_wait(lockfile, byte);
    if (turnstile) {
        bool taken = false;
        PF_TRY(take_free_lock(lockfile, byte, mode, &taken, err));
        if (taken)
            return SLUICE_OK;
        PF_TRY(pf_lock(lockfile->file, LK_TURNSTILE + byte, 1, mode, deadline, err));
    }
    sluice_status status = pf_lock(lockfile->file, byte, 1, mode, deadline, err);
    if (turnstile) {
        sluice_status left = pf_unlock(lockfile->file, LK_TURNSTILE + byte, 1, status == SLUICE_OK ? err : NULL);
        if (status == SLUICE_OK && left != SLUICE_OK) {
            (void)pf_unlock(lockfile->file, byte, 1, NULL); /* the error that counts is already there */
            status = left;
        }
    }
    return status;
}

sluice_status lk_take(lk_lockfile *lockfile, uint64_t byte, pf_lock_mode mode, pf_deadline deadline, sluice_error *err)
{
    PF_ASSERT(byte < LK_TURNSTILE);
    hold *held = find(lockfile, byte);
    if (held && held->count == 0) {
        PF_TRY(release_kernel_lock(lockfile, held, err));
        held = NULL;
    }
    if (held) {
        if (held->mode == PF_LOCK_SHARED && mode == PF_LOCK_EXCLUSIVE)
            return pf_fail(err, SLUICE_INTERNAL, "a lock that is held shared is never upgraded");
        held->count++;
        return SLUICE_OK;
    }
    PF_TRY(make_room(lockfile, err));
    PF_TRY(take_kernel_lock(lockfile, byte, mode, deadline, err));
    order_take(lockfile, byte);
    lockfile->holds[lockfile->count++] = (hold){.byte = byte, .mode = mode, .count = 1};
    return SLUICE_OK;
}

sluice_status lk_is_free(lk_lockfile *lockfile, uint64_t first, uint64_t count, bool *ret_free, sluice_error *err)
{
    return pf_lock_is_free(lockfile->file, first, count, ret_free, err);
}

void lk_will_wait(const lk_lockfile *lockfile, uint64_t byte)
{
    order_wait(lockfile, byte);
}

void lk_release(lk_lockfile *lockfile, uint64_t byte)
{
    hold *held = find(lockfile, byte);
    PF_ALWAYS(held && held->count > 0);
    if (--held->count > 0)
        return;
    order_drop(lockfile, byte);
    (void)release_kernel_lock(lockfile, held, NULL); /* on failure it stays listed: see there */
}

bool lk_lockfile_clear(lk_lockfile *lockfile)
{
    for (uint32_t i = lockfile->count; i-- > 0;) { /* the last one takes the place of the one that goes */
        hold *held = &lockfile->holds[i];
        if (held->count > 0)
            order_drop(lockfile, held->byte);
        held->count = 0;
        (void)release_kernel_lock(lockfile, held, NULL); /* on failure it stays listed */
    }
    return lockfile->count == 0;
}
