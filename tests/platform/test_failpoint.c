/* Failpoints: the rules of SLUICE_FAILPOINT, the counters, and each action on a real process. */
#include "platform/clock.h"
#include "platform/failpoint.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void arm(const char *rules)
{
    sluice_error err;
    assert_int_equal(setenv("SLUICE_FAILPOINT", rules, 1), 0);
    ASSERT_OK(pf_failpoints_init(&err));
}

static int disarm(void **state)
{
    (void)state;
    pf_failpoints_share(NULL);
    pf_failpoints_pool(0);
    (void)unsetenv("SLUICE_FAILPOINT");
    return pf_failpoints_init(NULL) == SLUICE_OK ? 0 : -1;
}

static void names_are_unique_and_dotted(void **state)
{
    (void)state;
    for (int i = 0; i < PF_FAILPOINT_COUNT; i++) {
        assert_non_null(strchr(pf_failpoint_name((pf_failpoint)i), '.'));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(pf_failpoint_name((pf_failpoint)i), pf_failpoint_name((pf_failpoint)j));
    }
    assert_string_equal(pf_failpoint_name(PF_FAILPOINT_COUNT), "none");
}

static void a_star_strikes_at_each_passage_until_the_rules_are_forgotten(void **state)
{
    (void)state;
    sluice_error err;
    arm("volume.sync=error@*");
    for (int i = 0; i < 3; i++)
        ASSERT_FAILS(SLUICE_IO, PF_FAILPOINT(VOLUME_SYNC, &err));
    pf_failpoints_forget();
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    ASSERT_OK(pf_failpoints_init(&err));
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
}

static void nothing_happens_without_a_rule(void **state)
{
    (void)state;
    sluice_error err;
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    arm("");
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
}

static void passages_and_actions_are_traced(void **state)
{
    (void)state;
    sluice_error err;
    char path[] = "failpoint-trace-XXXXXX", text[256];
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(setenv("SLUICE_FAILPOINT_TRACE", path, 1), 0);
    arm("volume.write=error@2");
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    ASSERT_OK(PF_FAILPOINT(VOLUME_WRITE, &err));
    ASSERT_FAILS(SLUICE_IO, PF_FAILPOINT(VOLUME_WRITE, &err));
    ssize_t length = read(file, text, sizeof text - 1);
    assert_true(length > 0);
    text[length] = '\0';
    assert_string_equal(text, "volume.sync 1\nvolume.write 1\nvolume.write 2\nvolume.write 2 error\n");
    assert_int_equal(close(file), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unsetenv("SLUICE_FAILPOINT_TRACE"), 0);
}

static void an_error_strikes_at_its_passage_and_once(void **state)
{
    (void)state;
    sluice_error err;
    arm("volume.sync=error@3,volume.write=error");
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    ASSERT_FAILS(SLUICE_IO, PF_FAILPOINT(VOLUME_SYNC, &err));
    assert_string_equal(err.message, "failpoint volume.sync");
    ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    ASSERT_FAILS(SLUICE_IO, PF_FAILPOINT(VOLUME_WRITE, &err));
    ASSERT_OK(PF_FAILPOINT(VOLUME_WRITE, &err));
}

static void rules_that_are_not_understood_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"volume.sync",
                                        "volume.sync=",
                                        "volume.sync=die",
                                        "volume.nothing=kill",
                                        "volume.sync=kill@0",
                                        "volume.sync=kill@",
                                        "volume.sync=kill@x",
                                        "volume.sync=sleep:",
                                        "volume.sync=sleep:x",
                                        "volume.sync=sleep:9999999999",
                                        "volume.sync=sleep:600001",
                                        ",",
                                        "volume.sync=kill,,volume.sync=kill",
                                        "VOLUME.SYNC=kill",
                                        "volume.sync=kill "};
    sluice_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(setenv("SLUICE_FAILPOINT", wrong[i], 1), 0);
        ASSERT_FAILS(SLUICE_USAGE, pf_failpoints_init(&err));
        ASSERT_OK(PF_FAILPOINT(VOLUME_SYNC, &err));
    }
}

static void sleep_waits_at_least_its_time(void **state)
{
    (void)state;
    sluice_error err;
    arm("gates.after=sleep:5");
    int64_t before = pf_monotonic_ns();
    ASSERT_OK(PF_FAILPOINT(GATES_AFTER, &err));
    assert_true(pf_monotonic_ns() - before >= 5000000);
}

static int hit_twice(void *context)
{
    sluice_error err;
    unsigned *reached = context;
    if (PF_FAILPOINT(ARM_AFTER, &err) != SLUICE_OK)
        return 1;
    __atomic_add_fetch(reached, 1, __ATOMIC_RELEASE);
    if (PF_FAILPOINT(ARM_AFTER, &err) != SLUICE_OK)
        return 1;
    __atomic_add_fetch(reached, 1, __ATOMIC_RELEASE);
    return 0;
}

static void kill_ends_the_process_at_that_place(void **state)
{
    (void)state;
    unsigned *reached = test_shared(sizeof *reached);
    arm("arm.after=kill@2");
    test_child_expect_signal(test_child(hit_twice, reached), SIGKILL);
    assert_int_equal(*reached, 1);
}

static void stop_stops_the_process_until_it_is_continued(void **state)
{
    (void)state;
    unsigned *reached = test_shared(sizeof *reached);
    int status = 0;
    arm("arm.after=stop");
    pid_t pid = test_child(hit_twice, reached);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(*reached, 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    test_child_expect_exit(pid, 0);
    assert_int_equal(*reached, 2);
}

static int wait_for_ever(void *context)
{
    (void)context;
    while (pause() < 0)
        continue;
    return 0;
}

static void killpool_ends_the_supervisor_and_the_process(void **state)
{
    (void)state;
    unsigned *reached = test_shared(sizeof *reached);
    pid_t supervisor = test_child(wait_for_ever, NULL);
    arm("arm.after=killpool");
    pf_failpoints_pool(supervisor);
    test_child_expect_signal(test_child(hit_twice, reached), SIGKILL);
    test_child_expect_signal(supervisor, SIGKILL);
    assert_int_equal(*reached, 0);
}

static void shared_counters_count_over_all_processes(void **state)
{
    (void)state;
    sluice_error err;
    unsigned *reached = test_shared(sizeof *reached);
    uint32_t *cells = test_shared(PF_FAILPOINT_COUNT * sizeof *cells);
    arm("arm.after=error@4");
    ASSERT_OK(PF_FAILPOINT(ARM_AFTER, &err)); /* counted before the cells are there: carried over */
    pf_failpoints_share(cells);
    assert_int_equal(cells[PF_FP_ARM_AFTER], 1);
    test_child_expect_exit(test_child(hit_twice, reached), 0);
    ASSERT_FAILS(SLUICE_IO, PF_FAILPOINT(ARM_AFTER, &err));
    test_child_expect_exit(test_child(hit_twice, reached), 0);
    assert_int_equal(cells[PF_FP_ARM_AFTER], 6);
    pf_failpoints_share(NULL);
    memset(cells, 0xee, PF_FAILPOINT_COUNT * sizeof *cells); /* gone */
    uint32_t *others = test_shared(PF_FAILPOINT_COUNT * sizeof *others);
    pf_failpoints_share(others);
    assert_int_equal(others[PF_FP_ARM_AFTER], 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(names_are_unique_and_dotted, disarm),
        cmocka_unit_test_teardown(a_star_strikes_at_each_passage_until_the_rules_are_forgotten, disarm),
        cmocka_unit_test_teardown(nothing_happens_without_a_rule, disarm),
        cmocka_unit_test_teardown(passages_and_actions_are_traced, disarm),
        cmocka_unit_test_teardown(an_error_strikes_at_its_passage_and_once, disarm),
        cmocka_unit_test_teardown(rules_that_are_not_understood_are_refused, disarm),
        cmocka_unit_test_teardown(sleep_waits_at_least_its_time, disarm),
        cmocka_unit_test_teardown(kill_ends_the_process_at_that_place, disarm),
        cmocka_unit_test_teardown(stop_stops_the_process_until_it_is_continued, disarm),
        cmocka_unit_test_teardown(killpool_ends_the_supervisor_and_the_process, disarm),
        cmocka_unit_test_teardown(shared_counters_count_over_all_processes, disarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
