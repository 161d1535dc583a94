/* Time, deadlines, back-off, and the switch to another world. */
#include "platform/clock.h"
#include "tests/support/test.h"
#include <string.h>

typedef struct made_world {
    int64_t now_ns;
    int64_t slept_until[16];
    unsigned sleeps;
} made_world;

static int64_t made_wall_us(void *context)
{
    return ((made_world *)context)->now_ns / 1000 + 1000000;
}

static int64_t made_monotonic_ns(void *context)
{
    return ((made_world *)context)->now_ns;
}

static void made_sleep_until(void *context, int64_t monotonic_ns)
{
    made_world *world = context;
    world->slept_until[world->sleeps++ % 16] = monotonic_ns;
    if (monotonic_ns > world->now_ns)
        world->now_ns = monotonic_ns;
}

static void made_random_bytes(void *context, void *bytes, size_t length)
{
    (void)context;
    memset(bytes, 0x5A, length);
}

static void the_machine_moves_forward_and_sleeps_long_enough(void **state)
{
    (void)state;
    int64_t before = pf_monotonic_ns();
    pf_sleep_until(before + 2000000);
    assert_true(pf_monotonic_ns() >= before + 2000000);
    pf_sleep_until(INT64_MIN); /* the past: at once */
    assert_true(pf_wall_us() > INT64_C(1600000000000000));
}

static void random_bytes_differ(void **state)
{
    (void)state;
    uint8_t bytes[1000] = {0};
    unsigned zeros = 0;
    pf_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        zeros += bytes[i] == 0;
    assert_true(zeros < 100);
    assert_true(pf_random_u64() != pf_random_u64());
}

static void a_deadline_passes_when_its_time_comes(void **state)
{
    (void)state;
    made_world world = {.now_ns = 5000000000};
    const pf_world table = {&world, made_wall_us, made_monotonic_ns, made_sleep_until, made_random_bytes, NULL, NULL};
    pf_world_set(&table);
    pf_deadline deadline = pf_deadline_in_ms(10);
    assert_int_equal(deadline.monotonic_ns, 5010000000);
    assert_false(pf_deadline_passed(deadline));
    pf_sleep_until(5010000000);
    assert_true(pf_deadline_passed(deadline));
    assert_false(pf_deadline_passed(PF_FOREVER));
    assert_true(pf_deadline_passed(PF_AT_ONCE));
    assert_int_equal(pf_deadline_in_ms(INT64_MAX).monotonic_ns, INT64_MAX);
    assert_int_equal(pf_deadline_in_ms(INT64_MIN).monotonic_ns, INT64_MIN);
    assert_int_equal(pf_wall_us(), 6010000);
    assert_int_equal(pf_random_u64(), UINT64_C(0x5A5A5A5A5A5A5A5A));
    pf_world_set(NULL);
    assert_true(pf_wall_us() > INT64_C(1600000000000000));
}

static void backoff_grows_to_its_bound_and_keeps_the_deadline(void **state)
{
    (void)state;
    made_world world = {.now_ns = 1000};
    const pf_world table = {&world, made_wall_us, made_monotonic_ns, made_sleep_until, made_random_bytes, NULL, NULL};
    static const int64_t spans[] = {50000, 100000, 200000, 400000, 800000, 1600000, 3200000, 5000000, 5000000};
    pf_world_set(&table);
    for (unsigned i = 0; i < 9; i++) {
        int64_t before = world.now_ns;
        pf_backoff(i, PF_FOREVER);
        assert_int_equal(world.now_ns - before, spans[i]);
    }
    int64_t before = world.now_ns;
    pf_backoff(1000000, (pf_deadline){before + 7});
    assert_int_equal(world.now_ns, before + 7);
    pf_world_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_moves_forward_and_sleeps_long_enough),
        cmocka_unit_test(random_bytes_differ),
        cmocka_unit_test(a_deadline_passes_when_its_time_comes),
        cmocka_unit_test(backoff_grows_to_its_bound_and_keeps_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
