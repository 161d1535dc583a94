/*
 * Time, waiting and randomness of the machine, and the switch to another source (see platform/clock.h).
 * The installed world is a pointer of this process; it is set before work starts and inherited over fork.
 */
#include "platform/clock.h"
#include "platform/check.h"
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#define BACKOFF_FIRST_NS INT64_C(50000)   /* 50 us */
#define BACKOFF_LAST_NS  INT64_C(5000000) /* 5 ms */
#define NS_PER_MS        INT64_C(1000000)
#define NS_PER_S         INT64_C(1000000000)

static int64_t machine_wall_us(void *context)
{
    (void)context;
    struct timespec now;
    PF_ALWAYS(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t machine_monotonic_ns(void *context)
{
    (void)context;
    struct timespec now;
    PF_ALWAYS(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void machine_sleep_until(void *context, int64_t monotonic_ns)
{
    (void)context;
    if (monotonic_ns <= 0)
        return;
    struct timespec until = {.tv_sec = (time_t)(monotonic_ns / NS_PER_S), .tv_nsec = (long)(monotonic_ns % NS_PER_S)};
    int status;
    do {
        status = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    } while (status == EINTR);
    PF_ALWAYS(status == 0);
}

static void machine_random_bytes(void *context, void *bytes, size_t length)
{
    (void)context;
    uint8_t *next = bytes;
    while (length > 0) {
        ssize_t got = getrandom(next, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        PF_ALWAYS(got > 0);
        next += got;
        length -= (size_t)got;
    }
}

static const pf_world machine = {.wall_us = machine_wall_us,
                                 .monotonic_ns = machine_monotonic_ns,
                                 .sleep_until = machine_sleep_until,
                                 .random_bytes = machine_random_bytes};
static const pf_world *current = &machine;

void pf_world_set(const pf_world *world)
{
    current = world ? world : &machine;
}

const pf_world *pf_world_now(void)
{
    return current;
}

int64_t pf_wall_us(void)
{
    return current->wall_us(current->context);
}

int64_t pf_monotonic_ns(void)
{
    return current->monotonic_ns(current->context);
}

void pf_sleep_until(int64_t monotonic_ns)
{
    current->sleep_until(current->context, monotonic_ns);
}

void pf_random_bytes(void *bytes, size_t length)
{
    current->random_bytes(current->context, bytes, length);
}

uint64_t pf_random_u64(void)
{
    uint64_t value;
    pf_random_bytes(&value, sizeof value);
    return value;
}

pf_deadline pf_deadline_in_ms(int64_t milliseconds)
{
    int64_t span;
    int64_t at;
    if (__builtin_mul_overflow(milliseconds, NS_PER_MS, &span) || __builtin_add_overflow(pf_monotonic_ns(), span, &at))
        return milliseconds < 0 ? PF_AT_ONCE : PF_FOREVER;
    return (pf_deadline){at};
}

int pf_deadline_passed(pf_deadline deadline)
{
    if (deadline.monotonic_ns == INT64_MAX)
        return 0;
    if (deadline.monotonic_ns == INT64_MIN)
        return 1;
    return pf_monotonic_ns() >= deadline.monotonic_ns;
}

void pf_backoff(unsigned attempt, pf_deadline deadline)
{
    int64_t span = attempt >= 7 ? BACKOFF_LAST_NS : BACKOFF_FIRST_NS << attempt;
    if (span > BACKOFF_LAST_NS)
        span = BACKOFF_LAST_NS;
    int64_t until = pf_monotonic_ns() + span;
    if (until > deadline.monotonic_ns)
        until = deadline.monotonic_ns;
    pf_sleep_until(until);
}
