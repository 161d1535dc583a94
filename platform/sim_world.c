/*
 * The simulated world: a clock that moves only when somebody looks at it or sleeps, and seeded random bytes, so that
 * everything which a test does is a function of its seed.
 */
#include "platform/sim_disk.h"

#include "platform/clock.h"

#include <string.h>

#define LOOK_NS  INT64_C(1000)
#define START_US INT64_C(1893456000000000) /* 2030-01-01, so that no simulated time is taken for a real one */

static struct {
    bool installed;
    int64_t now_ns;
    uint64_t random;
    const pf_sim_sleeper *sleeper;
} world;

static int64_t monotonic_ns(void *context)
{
    (void)context;
    if (world.sleeper)
        world.sleeper->look(world.sleeper->context);
    return world.now_ns += LOOK_NS;
}

static int64_t wall_us(void *context)
{
    return START_US + monotonic_ns(context) / 1000;
}

int64_t pf_sim_world_now(void)
{
    return world.now_ns;
}

void pf_sim_world_advance(int64_t until_ns)
{
    if (until_ns > world.now_ns && until_ns != INT64_MAX)
        world.now_ns = until_ns;
}

static void sleep_until(void *context, int64_t until_ns)
{
    (void)context;
    if (world.sleeper)
        world.sleeper->sleep(world.sleeper->context, until_ns);
    else
        pf_sim_world_advance(until_ns);
}

static void word_wait(void *context, int64_t until_ns)
{
    (void)context;
    if (world.sleeper && world.sleeper->word_wait)
        world.sleeper->word_wait(world.sleeper->context, until_ns);
    else
        pf_sim_world_advance(until_ns);
}

static void word_wake(void *context)
{
    (void)context;
    if (world.sleeper && world.sleeper->word_wake)
        world.sleeper->word_wake(world.sleeper->context);
}

static uint64_t next_random(void) /* splitmix64 */
{
    uint64_t z = world.random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void random_bytes(void *context, void *bytes, size_t length)
{
    uint8_t *to = bytes;

    (void)context;
    while (length > 0) {
        uint64_t value = next_random();
        size_t part = length < sizeof value ? length : sizeof value;
        memcpy(to, &value, part);
        to += part;
        length -= part;
    }
}

void pf_sim_world_install(uint64_t seed)
{
    static const pf_world simulated = {NULL, wall_us, monotonic_ns, sleep_until, random_bytes, word_wait, word_wake};

    world.installed = true;
    world.now_ns = 0;
    world.random = seed;
    world.sleeper = NULL;
    pf_world_set(&simulated);
}

void pf_sim_world_set_sleeper(const pf_sim_sleeper *sleeper)
{
    world.sleeper = sleeper;
}

void pf_sim_world_remove(void)
{
    world.sleeper = NULL;
    world.installed = false;
    pf_world_set(NULL);
}

void pf_sim_world_pass(pf_deadline deadline)
{
    if (world.installed)
        pf_sim_world_advance(deadline.monotonic_ns);
}
