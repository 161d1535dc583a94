/*
 * Histories of several processes on the simulated disk, one for each seed (docs/simulation.md).
 *
 *   SLUICE_SIM_SEED=N       runs that history alone and shows its trace
 *   SLUICE_SIM_HISTORIES=N  so many; SLUICE_SIM_FIRST=N from this seed on
 *   SLUICE_SIM_ALL=1        does not stop at the first that fails
 */
#include "ledger.h"
#include "tests/support/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HISTORIES 300u
#else
#define HISTORIES 2000u
#endif
#define HISTORIES_LONG   200000u
#define HISTORIES_LEDGER 2000u /* fewer need not reach everything */

static char running[64]; /* which history */
static pf_buffer shown;  /* its trace, when somebody wants to see it */

static void say_running(uint64_t seed)
{
    (void)snprintf(running, sizeof running, "aborted in seed %20" PRIu64 "\n", seed);
}

/* An assertion of the program ends it: say where. */
static void on_abort(int signal_number)
{
    (void)signal_number;
    if (shown.data && write(STDOUT_FILENO, shown.data, shown.length) < 0)
        _exit(1);
    if (write(STDERR_FILENO, running, sizeof running) < 0)
        _exit(1);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void run_seed(uint64_t seed, sim_counts *counts)
{
    sim_plan plan;
    char violation[2048];
    say_running(seed);
    sim_plan_make(seed, &plan);
    if (!sim_history(&plan, counts, NULL, violation, NULL)) {
        if (!getenv("SLUICE_SIM_ALL"))
            fail_msg("seed %" PRIu64 ": %s", seed, violation);
        print_error("seed %" PRIu64 ": %s\n", seed, violation);
    }
    sim_plan_free(&plan);
}

static void show(const sim_plan *plan, sim_counts *counts)
{
    char violation[2048], text[8192];
    sim_plan_write(plan, text, sizeof text);
    bool good = sim_history(plan, counts, &shown, violation, NULL);
    assert_true(printf("%s%.*s", text, (int)shown.length, (const char *)shown.data) > 0);
    pf_buffer_free(&shown);
    if (!good)
        fail_msg("%s", violation);
}

static void every_history_keeps_its_promises(void **state)
{
    sim_counts *counts = calloc(1, sizeof *counts);
    uint64_t first = number_from("SLUICE_SIM_FIRST", 1);
    uint64_t count = number_from("SLUICE_SIM_HISTORIES", getenv("SLUICE_LONG") ? HISTORIES_LONG : HISTORIES);
    (void)state;
    assert_non_null(counts);
    if (getenv("SLUICE_SIM_SEED")) {
        sim_plan plan;
        uint64_t seed = number_from("SLUICE_SIM_SEED", 0);
        say_running(seed);
        sim_plan_make(seed, &plan);
        show(&plan, counts);
        sim_plan_free(&plan);
        count = 0;
    }
    for (uint64_t seed = first; seed < first + count; seed++)
        run_seed(seed, counts);
    uint32_t missing = sim_ledger_print(counts);
    if (count >= HISTORIES_LEDGER)
        assert_int_equal(missing, 0);
    free(counts);
}

static void one_seed_is_one_history_byte_for_byte(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        pf_buffer trace[2] = {{0}, {0}};
        for (unsigned i = 0; i < 2; i++) {
            sim_counts *counts = calloc(1, sizeof *counts);
            char violation[2048];
            sim_plan plan;
            assert_non_null(counts);
            say_running(seed);
            sim_plan_make(seed, &plan);
            assert_true(sim_history(&plan, counts, &trace[i], violation, NULL));
            sim_plan_free(&plan);
            free(counts);
        }
        assert_int_equal(trace[0].length, trace[1].length);
        assert_memory_equal(trace[0].data, trace[1].data, trace[0].length);
        pf_buffer_free(&trace[0]);
        pf_buffer_free(&trace[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_keeps_its_promises),
        cmocka_unit_test(one_seed_is_one_history_byte_for_byte),
    };
    (void)signal(SIGABRT, on_abort);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sim_base_free();
    return failed;
}
