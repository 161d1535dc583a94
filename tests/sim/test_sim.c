/*
 * Histories of several processes on the simulated disk, one for each seed (docs/simulation.md).
 *
 *   SLUICE_SIM_SEED=N       runs that history alone and shows its trace
 *   SLUICE_SIM_HISTORIES=N  so many; SLUICE_SIM_FIRST=N from this seed on
 *   SLUICE_SIM_ALL=1        does not stop at the first that fails
 *   SLUICE_SIM_PLAIN=1      does not make one that fails small
 */
#include "ledger.h"
#include "minimise.h"
#include "tests/support/test.h"
#include <glob.h>
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
#define HISTORIES_LEDGER 2000u

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

/* ---- a failing one ---- */

/* What is wrong with a history, or "". */
static void wrong_with(const sim_plan *plan, char ret_violation[2048])
{
    sim_counts *counts = calloc(1, sizeof *counts);
    assert_non_null(counts);
    (void)sim_history(plan, counts, NULL, ret_violation, NULL);
    free(counts);
}

/* The same invariant, or the same words, whatever numbers and names are among them. */
static bool is_same_fault(const char *one, const char *two)
{
    if (strncmp(one, "invariant ", 10) == 0)
        return strncmp(one, two, 11) == 0;
    while (*one || *two) {
        one += strspn(one, "0123456789abcdef-");
        two += strspn(two, "0123456789abcdef-");
        if (*one != *two)
            return false;
        if (*one == '(' || *one == '\0')
            return true;
        one++, two++;
    }
    return true;
}

static bool fails_the_same(void *context, const sim_plan *plan)
{
    char violation[2048];
    wrong_with(plan, violation);
    return violation[0] && is_same_fault(context, violation);
}

/* As small as it gets, in a file next to the program: to be looked at, and kept in tests/sim/kept. */
static void write_small(const sim_plan *plan, uint64_t seed)
{
    sim_counts *counts = calloc(1, sizeof *counts);
    char violation[2048], name[64];
    static char text[1 << 20];
    sim_plan small;
    assert_non_null(counts);
    (void)sim_history(plan, counts, NULL, violation, &small);
    free(counts);
    uint32_t tries = sim_minimise(&small, fails_the_same, violation, 2000);
    sim_plan_write(&small, text, sizeof text);
    sim_plan_free(&small);
    (void)snprintf(name, sizeof name, "sim-%" PRIu64 ".txt", seed);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "# %s\n%s", violation, text) > 0);
    assert_int_equal(fclose(file), 0);
    print_error("as small as it gets, after %u tries: %s\n", tries, name);
}

static unsigned all_failed; /* with SLUICE_SIM_ALL */

static void run_seed(uint64_t seed, sim_counts *counts)
{
    sim_plan plan;
    char violation[2048];
    say_running(seed);
    sim_plan_make(seed, &plan);
    if (!sim_history(&plan, counts, NULL, violation, NULL)) {
        if (!getenv("SLUICE_SIM_ALL") && !getenv("SLUICE_SIM_PLAIN"))
            write_small(&plan, seed);
        if (!getenv("SLUICE_SIM_ALL"))
            fail_msg("seed %" PRIu64 ": %s", seed, violation);
        print_error("seed %" PRIu64 ": %s\n", seed, violation);
        all_failed++;
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
    if (all_failed > 0)
        fail_msg("%u of %" PRIu64 " histories failed", all_failed, count);
    if (count >= HISTORIES_LEDGER && sim_ledger_print(counts) > 0) { /* fewer need not reach everything, some more do */
        for (uint64_t seed = first + count; seed < first + count + HISTORIES_LEDGER; seed++)
            run_seed(seed, counts);
        assert_int_equal(sim_ledger_print(counts), 0);
    }
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

/* Fails when there is a merge by actor 1, a power loss, and a switch to 2. */
static bool fails_so(void *context, const sim_plan *plan)
{
    bool merges = false, loses = false, switches = false;
    (void)context;
    for (uint32_t i = 0; i < plan->op_count; i++)
        merges = merges || (plan->ops[i].kind == SIM_OP_MERGE && plan->ops[i].actor == 1);
    for (uint32_t i = 0; i < plan->fault_count; i++)
        loses = loses || plan->faults[i].kind == SIM_FAULT_POWER;
    for (uint32_t i = 0; i < plan->turns.count; i++)
        switches = switches || plan->turns.items[i].to == 2;
    return merges && loses && switches;
}

static void what_fails_is_made_small_and_written_and_read(void **state)
{
    char text[1024], again[1024];
    sim_plan plan = {.seed = 7, .actors = 4, .turns = {.listed = true, .one_in = 1}}, read;
    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        plan.ops[plan.op_count++] =
            (sim_op){.actor = i % 4, .kind = (sim_kind)(i % SIM_OP_KINDS), .tries = 1, .salt = i};
    for (uint32_t i = 0; i < 6; i++)
        plan.faults[plan.fault_count++] =
            (sim_fault){.kind = (sim_fault_kind)i, .by_point = i % 2 == 1, .point = PF_FP_ARM_AFTER, .at = i};
    plan.ops[9] = (sim_op){.actor = 1, .kind = SIM_OP_MERGE, .other = 1, .tries = 2, .salt = UINT64_MAX};
    plan.switches = calloc(100, sizeof *plan.switches);
    assert_non_null(plan.switches);
    for (uint32_t i = 0; i < 100; i++)
        plan.switches[i] = (fiber_switch){i, i % 50 == 33 ? 2 : 1};
    plan.turns.items = plan.switches;
    plan.turns.count = 100;
    assert_true(fails_so(NULL, &plan));
    assert_true(sim_minimise(&plan, fails_so, NULL, 1000) < 200);
    assert_int_equal(plan.op_count + plan.fault_count + plan.turns.count, 3);
    sim_plan_write(&plan, text, sizeof text);
    assert_true(sim_plan_read(text, &read));
    sim_plan_write(&read, again, sizeof again);
    assert_string_equal(text, again);
    assert_false(sim_plan_read("seed 1\nnonsense\n", &(sim_plan){0}));
    sim_plan_free(&plan);
    sim_plan_free(&read);
}

/* A history whose turns are listed is the one that they were taken from. */
static void a_listed_history_is_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 21; seed < 25; seed++) {
        pf_buffer traces[2] = {{0}, {0}};
        sim_counts *counts = calloc(1, sizeof *counts);
        char violation[2048];
        sim_plan plan, listed, none;
        assert_non_null(counts);
        sim_plan_make(seed, &plan);
        assert_true(sim_history(&plan, counts, &traces[0], violation, &listed));
        assert_true(sim_history(&listed, counts, &traces[1], violation, &none));
        assert_int_equal(traces[0].length, traces[1].length);
        assert_memory_equal(traces[0].data, traces[1].data, traces[0].length);
        pf_buffer_free(&traces[0]);
        pf_buffer_free(&traces[1]);
        sim_plan_free(&plan);
        sim_plan_free(&listed);
        sim_plan_free(&none);
        free(counts);
    }
}

/* The first history that a planted defect spoils (SLUICE_SABOTAGE, a program of tests/sabotage), with its turns listed,
 * is made small: a few operations, faults and turns that still show the same fault, as they stand and written and read;
 * and nothing without the defect. */
static void what_a_planted_defect_spoils_is_made_small(void **state)
{
    const char *defect = getenv("SLUICE_SABOTAGE");
    char violation[2048], said[2048];
    static char text[1 << 20];
    sim_plan plan, small = {0}, read;
    uint64_t seed = number_from("SLUICE_SIM_FIRST", 1), end = seed + 500;
    (void)state;
    if (!defect || !*defect)
        skip();
    for (violation[0] = '\0'; !violation[0] && seed < end; seed++) {
        sim_counts *counts = calloc(1, sizeof *counts);
        assert_non_null(counts);
        say_running(seed);
        sim_plan_make(seed, &plan);
        sim_plan_free(&small);
        (void)sim_history(&plan, counts, NULL, violation, &small);
        sim_plan_free(&plan);
        free(counts);
    }
    assert_true(violation[0] != '\0');
    uint32_t before = small.op_count + small.fault_count + small.turns.count;
    uint32_t tries = sim_minimise(&small, fails_the_same, violation, 500);
    uint32_t after = small.op_count + small.fault_count + small.turns.count;
    print_message("%s: %s: %u parts, %u after %u tries\n", defect, violation, before, after, tries);
    assert_true(small.op_count <= 6 && small.fault_count <= 3 && after <= 20);
    sim_plan_write(&small, text, sizeof text);
    print_message("%s", text);
    assert_true(sim_plan_read(text, &read));
    wrong_with(&read, said);
    assert_true(said[0] && is_same_fault(violation, said));
    assert_int_equal(setenv("SLUICE_SABOTAGE", "", 1), 0);
    wrong_with(&read, said);
    assert_string_equal(said, "");
    sim_plan_free(&small);
    sim_plan_free(&read);
}

/* ---- kept ones ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void what_failed_once_does_not_fail_again(void **state)
{
    glob_t found;
    (void)state;
    assert_int_equal(glob(TEST_GOLDEN_DIR "/../sim/kept/*.txt", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        sim_counts *counts = calloc(1, sizeof *counts);
        char *text = read_file(found.gl_pathv[i]), violation[2048];
        sim_plan plan;
        assert_non_null(counts);
        assert_true(sim_plan_read(text, &plan));
        say_running(plan.seed);
        if (!sim_history(&plan, counts, NULL, violation, NULL))
            fail_msg("%s: %s", found.gl_pathv[i], violation);
        sim_plan_free(&plan);
        free(text);
        free(counts);
    }
    print_message("%zu kept histories\n", (size_t)found.gl_pathc);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_keeps_its_promises),
        cmocka_unit_test(one_seed_is_one_history_byte_for_byte),
        cmocka_unit_test(a_listed_history_is_the_same),
        cmocka_unit_test(what_fails_is_made_small_and_written_and_read),
        cmocka_unit_test(what_a_planted_defect_spoils_is_made_small),
        cmocka_unit_test(what_failed_once_does_not_fail_again),
    };
    (void)signal(SIGABRT, on_abort);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sim_base_free();
    return failed;
}
