/*
 * A load that dies at any of its calls, or whose power goes there: afterwards the graph is wholly old or wholly new,
 * what was acknowledged is there, recovery and the next load work, and what was left behind can be collected. And a
 * load that meets another writer at any of its calls.
 */
#include "coord/recover.h"
#include "load_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\": {\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"string\", \"n\": "
                             "\"int64?\"}, \"unique\": [[\"n\"]]},"
                             "\"Q\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\"}}},"
                             "\"edges\": {\"K\": {\"from\": \"P\", \"to\": \"Q\", \"properties\": {}, \"key\": []}}}";

/* Every call; with sanitizers, which are slow here, each seventh, another seventh for each fate. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 7u
#else
#define STRIDE 1u
#endif

#define OLD_P "[a][1]\n"
#define NEW_P OLD_P "[b][2]\n[c][3]\n"

static void make_base(load_fixture *f)
{
    load_fixture_make(f, schema);
    load_fixture_text(f, "old.csv", "id,n\na,1\n");
    load_fixture_text(f, "p.csv", "id,n\nb,2\nc,3\n");
    load_fixture_text(f, "q.csv", "id\n7\n");
    load_fixture_text(f, "k.csv", "from,to\na,7\nb,7\n");
    load_fixture_text(f, "next.csv", "id,n\nz,9\n");
    load_fixture_text(f, "same.csv", "id,n\nc,4\n");
    load_fixture_text(f, "tuple.csv", "id,n\nd,3\n");
    assert_int_not_equal(load_fixture_load(f, "P=old.csv"), 0);
}

/* "old" or "new"; anything else fails. */
static bool is_new(load_fixture *f)
{
    char *p = load_fixture_rows(f, "P"), *q = load_fixture_rows(f, "Q"), *k = load_fixture_rows(f, "K");
    bool new = strcmp(p, NEW_P) == 0;
    if (new) {
        assert_string_equal(q, "[7]\n");
        assert_string_equal(k, "[a][7]\n[b][7]\n");
    } else {
        assert_string_equal(p, OLD_P);
        assert_string_equal(q, "");
        assert_string_equal(k, "");
    }
    free(p);
    free(q);
    free(k);
    return new;
}

typedef struct fate {
    bool before;
    pf_sim_fate fate;
    pf_sim_loss loss;
} fate;
static const fate fates[] = {
    {true, PF_SIM_DIE, PF_SIM_KEEP_ALL},         {false, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {false, PF_SIM_DIE, PF_SIM_TEAR_LAST},       {true, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL}, {false, PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
};

/* Everything that must hold once the dust has settled. */
static void settle(load_fixture *f, bool acknowledged)
{
    sluice_error err;
    co_gc_report report;

    bool seen = is_new(f);
    if (acknowledged)
        assert_true(seen);
    f->graph = load_fixture_open(f);
    ASSERT_OK(co_recover(f->graph, CO_RECOVER_AUTOMATIC, 0, NULL, 0, NULL, NULL, &err));
    bool settled = is_new(f);
    assert_true(settled || !seen);
    assert_int_not_equal(load_fixture_load(f, "P=next.csv"), 0);
    ASSERT_OK(co_gc(f->graph, false, &report, &err));
    load_fixture_expect(f, "P", settled ? NEW_P "[z][9]\n" : OLD_P "[z][9]\n");
    load_fixture_expect_clean(f);
    /* one fragment and its runs for each load that stands; a killed load's staged files are gone */
    assert_int_equal(load_fixture_files(f, "tables/64/fragments"), settled ? 3 : 2);
    assert_int_equal(load_fixture_files(f, "tables/66/fragments"), settled ? 1 : 0);
}

static bool crash_at(const load_fixture *base, uint64_t k, const fate *how, uint64_t seed)
{
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, seed, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    sluice_status status = load_fixture_try(&f, f.graph, "P=p.csv Q=q.csv K=k.csv", NULL, &result, &err);
    bool dead = pf_sim_is_dead(volume);
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    pf_sim_kill(volume);
    st_graph_close(f.graph);
    settle(&f, status == SLUICE_OK);
    load_fixture_copy_free(&f);
    return dead;
}

static void a_load_that_dies_at_any_call_is_old_or_new(void **state)
{
    (void)state;
    load_fixture base;
    unsigned reached = 0;

    make_base(&base);
    st_graph_close(base.graph);
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        uint64_t k = 1 + i % STRIDE;
        for (; crash_at(&base, k, &fates[i], k * 31 + i); k += STRIDE)
            reached++;
        assert_true(k > 20);
    }
    print_message("%u crashes\n", reached);
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* Runs the load with call k failing (0: none); returns how many calls it made. */
static uint64_t fail_at(const load_fixture *base, uint64_t k, int number)
{
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, k, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    uint64_t calls = pf_sim_calls(volume);
    pf_sim_fail_at(volume, k, number, 1);
    sluice_status status = load_fixture_try(&f, f.graph, "P=p.csv Q=q.csv K=k.csv", NULL, &result, &err);
    calls = pf_sim_calls(volume) - calls;
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    else if (err.committed != SLUICE_UNKNOWN)
        assert_int_equal(is_new(&f), err.committed == SLUICE_TRUE);
    st_graph_close(f.graph);
    settle(&f, status == SLUICE_OK);
    load_fixture_copy_free(&f);
    return calls;
}

static void a_call_that_fails_leaves_the_old_state_or_the_new(void **state)
{
    (void)state;
    load_fixture base;
    static const int numbers[] = {28 /* ENOSPC */, 5 /* EIO */};

    make_base(&base);
    st_graph_close(base.graph);
    uint64_t calls = fail_at(&base, 0, 0);
    assert_true(calls > 20);
    for (unsigned n = 0; n < 2; n++)
        for (uint64_t k = 1; k <= calls; k += STRIDE)
            (void)fail_at(&base, k, numbers[n]);
    for (uint64_t k = 1; k <= calls; k += 8 * STRIDE)
        (void)fail_at(&base, k, 122 /* EDQUOT */);
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* The load is asked for again under its operation id, and call k fails. Returns how many calls that made. */
static uint64_t repeat_failing_at(const load_fixture *base, const co_load_options *options, uint64_t k, bool looks)
{
    load_fixture f;
    co_load_result result;
    sluice_error err = {0};

    load_fixture_copy(base, k, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    uint64_t calls = pf_sim_calls(volume);
    (looks ? pf_sim_fail_look_at : pf_sim_fail_at)(volume, k, 122 /* EDQUOT */, 1);
    sluice_status status = load_fixture_try(&f, f.graph, "P=p.csv Q=q.csv K=k.csv", options, &result, &err);
    calls = pf_sim_calls(volume) - calls;
    if (status == SLUICE_OK) {
        assert_true(result.receipt.committed && result.receipt.repeated);
        co_load_result_free(&result);
    } else {
        assert_int_not_equal(err.committed, SLUICE_FALSE);
        assert_true(err.operation_id[0] != '\0');
    }
    load_fixture_copy_free(&f);
    return calls;
}

static void a_repeated_load_that_fails_is_never_said_to_be_undone(void **state)
{
    (void)state;
    load_fixture base;
    co_load_result result;
    sluice_error err;
    co_load_options options = {.operation = pf_id_new()};

    make_base(&base);
    ASSERT_OK(load_fixture_try(&base, base.graph, "P=p.csv Q=q.csv K=k.csv", &options, &result, &err));
    co_load_result_free(&result);
    st_graph_close(base.graph);
    for (unsigned looks = 0; looks < 2; looks++) {
        uint64_t calls = repeat_failing_at(&base, &options, 0, looks);
        assert_true(calls > 5);
        for (uint64_t k = 1; k <= calls; k++)
            (void)repeat_failing_at(&base, &options, k, looks);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* ---- another writer in between ---- */

static bool meet_at(const load_fixture *base, uint64_t k, const char *inputs, bool conflicts)
{
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, k, &f);
    load_rival o = {.f = &f, .inputs = inputs};
    pf_sim_interrupt_at(st_graph_volume(f.graph), k, load_fixture_run_rival, &o);
    sluice_status status = load_fixture_try(&f, f.graph, "P=p.csv Q=q.csv K=k.csv", NULL, &result, &err);
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    pf_sim_interrupt_at(st_graph_volume(f.graph), 0, NULL, NULL);
    if (!o.ran) {
        load_fixture_copy_free(&f);
        return false;
    }
    /* It may have come while the gates or the publish lock were held: then it waited in vain. */
    bool waited = o.status == SLUICE_LIVE_WRITER_CONTENTION;
    if (conflicts) {
        assert_int_equal((status == SLUICE_OK) + (o.status == SLUICE_OK), 1);
        assert_true(status == SLUICE_OK || status == SLUICE_KEY_CONFLICT || status == SLUICE_CONSTRAINT_UNIQUE);
        assert_true(waited || o.status == SLUICE_OK || o.status == SLUICE_KEY_CONFLICT ||
                    o.status == SLUICE_CONSTRAINT_UNIQUE);
        if (status == SLUICE_OK)
            assert_true(is_new(&f));
    } else {
        assert_int_equal(status, SLUICE_OK);
        assert_true(waited || o.status == SLUICE_OK);
        /* P-09: a restarted plan keeps what the rows staged */
        assert_int_equal(load_fixture_files(&f, "tables/64/fragments"), waited ? 2 : 3);
    }
    load_fixture_expect_clean(&f);
    load_fixture_copy_free(&f);
    return true;
}

static void a_writer_in_between_wins_or_loses_by_keys(void **state)
{
    (void)state;
    load_fixture base;
    const struct {
        const char *inputs;
        bool conflicts;
    } others[] = {{"P=next.csv", false}, {"P=same.csv", true}, {"P=tuple.csv", true}};

    make_base(&base);
    st_graph_close(base.graph);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t k = 1;
        while (meet_at(&base, k, others[i].inputs, others[i].conflicts))
            k += STRIDE;
        assert_true(k > 20);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* ---- an input that changes ---- */

static void change_input(void *context)
{
    load_rival *o = context;
    o->ran = true;
    load_fixture_text(o->f, "p.csv", o->inputs);
}

static void an_input_that_changes_while_it_is_read_is_refused(void **state)
{
    (void)state;
    load_fixture base;
    const char *const texts[] = {"id,n\nb,2\n", "id,n\nb,2\nc,3\nd,4\n", "id,n\nb,2\nc,4\n"};

    make_base(&base);
    st_graph_close(base.graph);
    for (unsigned i = 0; i < 3; i++)
        for (uint64_t k = 1; k < 12; k += STRIDE) {
            load_fixture f;
            co_load_result result;
            sluice_error err;
            load_fixture_text(&base, "p.csv", "id,n\nb,2\nc,3\n");
            load_fixture_copy(&base, k, &f);
            load_rival o = {.f = &f, .inputs = texts[i]};
            pf_sim_interrupt_at(st_graph_volume(f.graph), k, change_input, &o);
            ASSERT_FAILS(SLUICE_INPUT_CHANGED, load_fixture_try(&f, f.graph, "P=p.csv Q=q.csv", NULL, &result, &err));
            assert_true(o.ran);
            assert_false(is_new(&f));
            load_fixture_expect_clean(&f);
            load_fixture_copy_free(&f);
        }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_that_dies_at_any_call_is_old_or_new),
        cmocka_unit_test(a_call_that_fails_leaves_the_old_state_or_the_new),
        cmocka_unit_test(a_repeated_load_that_fails_is_never_said_to_be_undone),
        cmocka_unit_test(a_writer_in_between_wins_or_loses_by_keys),
        cmocka_unit_test(an_input_that_changes_while_it_is_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
