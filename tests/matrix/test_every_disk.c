/*
 * Every write of the recovery matrix and every control operation, ended at every call, with every disk that this may
 * leave, up to a bound (every_disk.h; O-03, O-04).
 */
#include "every_disk.h"

static void add_up(aftermath_counts *sum, const aftermath_counts *more)
{
    sum->moments += more->moments;
    sum->whole += more->whole;
    sum->tried += more->tried;
    sum->distinct += more->distinct;
}

static void every_act_of(const matrix_writer *acts, unsigned count)
{
    const every_disk_limits limits = every_disk_here();
    every_disk_counts sum = {0};
    load_fixture base;
    matrix_base(&base);
    for (unsigned i = 0; i < count; i++) {
        every_disk_counts counts;
        if (!every_disk_wanted(&acts[i]))
            continue;
        every_disk_of(&base, &acts[i], &limits, &counts);
        every_disk_print(acts[i].name, &counts);
        sum.calls += counts.calls;
        add_up(&sum.act, &counts.act);
        for (unsigned depth = 0; depth < 2; depth++)
            add_up(&sum.recovery[depth], &counts.recovery[depth]);
        sum.judged += counts.judged;
        sum.thoroughly += counts.thoroughly;
    }
    every_disk_print("all", &sum);
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

static void a_writer_that_ends_at_any_call_leaves_old_or_new_on_every_disk(void **state)
{
    (void)state;
    every_act_of(matrix_writers, MATRIX_WRITERS);
}

static void a_special_act_that_ends_at_any_call_leaves_old_or_new_on_every_disk(void **state)
{
    (void)state;
    every_act_of(matrix_more, MATRIX_MORE);
}

int main(void)
{
#if SLUICE_FAILPOINTS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_that_ends_at_any_call_leaves_old_or_new_on_every_disk),
        cmocka_unit_test(a_special_act_that_ends_at_any_call_leaves_old_or_new_on_every_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 77;
#endif
}
