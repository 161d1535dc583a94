/*
 * Time, waiting and randomness. Everything above platform/ takes them from here and from nowhere else, so that a
 * simulation can own all three: pf_world_set installs another source for this process (tests; NULL restores the
 * machine's).
 */
#ifndef PLATFORM_CLOCK_H
#define PLATFORM_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct pf_world {
    void *context;
    int64_t (*wall_us)(void *context);                            /* microseconds since 1970-01-01 UTC */
    int64_t (*monotonic_ns)(void *context);                       /* never goes back within a boot */
    void (*sleep_until)(void *context, int64_t monotonic_ns);     /* returns at or after that time */
    void (*random_bytes)(void *context, void *bytes, size_t len); /* unpredictable, or seeded in a simulation */
    /* Instead of waiting at a word of shared memory, and of waking who waits at any; NULL: the machine's. */
    void (*word_wait)(void *context, int64_t until_ns);
    void (*word_wake)(void *context);
} pf_world;

void pf_world_set(const pf_world *world);
const pf_world *pf_world_now(void);
int64_t pf_wall_us(void);
int64_t pf_monotonic_ns(void);
void pf_sleep_until(int64_t monotonic_ns);
void pf_random_bytes(void *bytes, size_t length);
uint64_t pf_random_u64(void);

/* A point in monotonic time after which a wait gives up; made once and handed down, never restarted on the way. */
typedef struct pf_deadline {
    int64_t monotonic_ns;
} pf_deadline;
#define PF_FOREVER ((pf_deadline){INT64_MAX})
#define PF_AT_ONCE ((pf_deadline){INT64_MIN})
pf_deadline pf_deadline_in_ms(int64_t milliseconds);
int pf_deadline_passed(pf_deadline deadline);
/* Polling waits: sleeps a little, growing from 50 us to 5 ms with `attempt` (0, 1, 2, ...), never past the deadline. */
void pf_backoff(unsigned attempt, pf_deadline deadline);

#endif
