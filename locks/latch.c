/*
 * Robust mutexes with repair (see locks/latch.h).
 *
 * Order on a death: repair, then pthread_mutex_consistent, then the latch is usable. An heir that is killed in between
 * leaves the mutex owner-dead, and the next taker is heir again. Unlocking without consistent would make the mutex
 * unusable for ever; no path here does that.
 */
#include "locks/latch.h"
#include "platform/check.h"
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

_Static_assert(sizeof(lk_latch) % 64 == 0, "a latch fills whole cache lines");

void lk_latch_init(lk_latch *latch)
{
    pthread_mutexattr_t attributes;
    PF_ALWAYS(pthread_mutexattr_init(&attributes) == 0);
    PF_ALWAYS(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    PF_ALWAYS(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    PF_ALWAYS(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
    PF_ALWAYS(pthread_mutex_init(&latch->mutex, &attributes) == 0);
    PF_ALWAYS(pthread_mutexattr_destroy(&attributes) == 0);
    atomic_store(&latch->holds, 0);
}

/* A try is a timed wait whose time has passed, and not pthread_mutex_trylock, which in glibc 2.36 keeps a mutex that it
 * has just called not recoverable. */
static int lock_until(pthread_mutex_t *mutex, pf_deadline deadline)
{
    if (deadline.monotonic_ns == INT64_MAX)
        return pthread_mutex_lock(mutex);
    int64_t at = deadline.monotonic_ns > 0 ? deadline.monotonic_ns : 0;
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

lk_latch_result lk_latch_take(lk_latch *latch, lk_rank rank, pf_deadline deadline, lk_latch_repair_fn *repair,
                              void *table)
{
    lk_order_wait(NULL, rank, 0);
    int error_number = lock_until(&latch->mutex, deadline);
    if (error_number == ETIMEDOUT)
        return LK_TIMEOUT;
    if (error_number == ENOTRECOVERABLE)
        return LK_POISONED;
    PF_ALWAYS(error_number == 0 || error_number == EOWNERDEAD);
    lk_latch_result result = LK_HELD;
    if (error_number == EOWNERDEAD) {
        bool whole = repair(table);
        PF_ALWAYS(pthread_mutex_consistent(&latch->mutex) == 0);
        if (!whole) {
            PF_ALWAYS(pthread_mutex_unlock(&latch->mutex) == 0);
            return LK_POISONED;
        }
        result = LK_HELD_AFTER_DEATH;
    }
    /* counted by the holder alone */
    atomic_store_explicit(&latch->holds, atomic_load_explicit(&latch->holds, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    lk_order_take(NULL, rank, 0);
    return result;
}

void lk_latch_release(lk_latch *latch, lk_rank rank)
{
    lk_order_drop(NULL, rank, 0);
    PF_ALWAYS(pthread_mutex_unlock(&latch->mutex) == 0);
}

/* The first word of the mutex is the robust futex word of the kernel's interface
 * (Documentation/locking/robust-futex-ABI): the owner's thread id in its low 30 bits. Read there, ownership is exact at
 * every instruction, which a word of our own beside the mutex could not be. */
int32_t lk_latch_owner(const lk_latch *latch)
{
    _Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "an atomic word is a plain word");
    const _Atomic uint32_t *word = (const _Atomic uint32_t *)(const void *)&latch->mutex;
    uint32_t value = atomic_load(word);
    return (value & FUTEX_OWNER_DIED) != 0 ? 0 : (int32_t)(value & FUTEX_TID_MASK);
}
