/*
 * A load that updates rows, with bad rows that are skipped or without, and one that replaces types, dying at their
 * calls: afterwards the graph is wholly old or wholly new, what was acknowledged is there, recovery and the next load
 * work, and what was left behind is collected.
 */
#include "coord/recover.h"
#include "load_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\": {\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"string\", \"n\": "
                             "\"int64?\", \"t\": \"string?\"}, \"unique\": [[\"n\"]]}},"
                             "\"edges\": {\"K\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"w\": \"int64?\"}, "
                             "\"key\": []}}}";

/* Each third call, another third for each fate; every call in the long form; fewer with sanitizers, slow here. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 11u
#else
#define STRIDE 3u
#endif

typedef struct scene {
    const char *name, *inputs;
    co_load_mode mode;
    bool skip;
    const char *old_p, *new_p, *old_k, *new_k;
    unsigned old_fragments, new_fragments; /* of P */
} scene;

static const scene scenes[] = {
    {.name = "upsert",
     .inputs = "P=up.csv K=kup.csv",
     .mode = CO_LOAD_UPSERT,
     .old_p = "[a][1][x]\n[b][2][y]\n[c][3][z]\n",
     .new_p = "[c][3][z]\n[d][5][-]\n[a][2][x]\n[b][1][y]\n", /* a and b have swapped */
     .old_k = "[a][b][1]\n",
     .new_k = "[c][d][3]\n[a][b][2]\n",
     .old_fragments = 1,
     .new_fragments = 3},
    {.name = "upsert, skipping",
     .inputs = "P=skip.csv K=kskip.csv",
     .mode = CO_LOAD_UPSERT,
     .skip = true,
     .old_p = "[a][1][x]\n[b][2][y]\n[c][3][z]\n",
     .new_p = "[a][1][x]\n[b][2][y]\n[c][3][z]\n[d][5][-]\n", /* b falls, so 2 comes back and a falls, too */
     .old_k = "[a][b][1]\n",
     .new_k = "[c][d][3]\n[a][b][2]\n",
     .old_fragments = 1,
     .new_fragments = 2},
    {.name = "overwrite",
     .inputs = "P=over.csv K=kover.csv",
     .mode = CO_LOAD_OVERWRITE,
     .old_p = "[a][1][x]\n[b][2][y]\n[c][3][z]\n",
     .new_p = "[e][1][-]\n[a][7][-]\n",
     .old_k = "[a][b][1]\n",
     .new_k = "[e][a][-]\n",
     .old_fragments = 1,
     .new_fragments = 2},
};

static void make_base(load_fixture *f)
{
    load_fixture_make(f, schema);
    load_fixture_text(f, "p.csv", "id,n,t\na,1,x\nb,2,y\nc,3,z\n");
    load_fixture_text(f, "k.csv", "from,to,w\na,b,1\n");
    load_fixture_text(f, "up.csv", "id,n\na,3\nb,1\nd,5\na,2\nc,3\n");
    load_fixture_text(f, "kup.csv", "from,to,w\na,b,2\nc,d,3\n");
    load_fixture_text(f, "skip.csv", "id,n\na,2\nb,5\nb,3\nd,x\nd,5\n");
    load_fixture_text(f, "kskip.csv", "from,to,w\na,b,2\nc,d,3\nc,e,4\n");
    load_fixture_text(f, "over.csv", "id,n\ne,1\na,7\n");
    load_fixture_text(f, "kover.csv", "from,to\ne,a\n");
    load_fixture_text(f, "next.csv", "id,n\nnext,9\n");
    assert_int_not_equal(load_fixture_load(f, "P=p.csv K=k.csv"), 0);
}

/* Old or new; anything else fails. */
static bool is_new(load_fixture *f, const scene *s)
{
    char *p = load_fixture_rows(f, "P"), *k = load_fixture_rows(f, "K");
    bool new = strcmp(p, s->new_p) == 0;
    assert_string_equal(p, new ? s->new_p : s->old_p);
    assert_string_equal(k, new ? s->new_k : s->old_k);
    free(p);
    free(k);
    return new;
}

/* Everything that must hold once the dust has settled. */
static void settle(load_fixture *f, const scene *s, bool acknowledged)
{
    sluice_error err;
    co_gc_report report;
    char *rows = NULL;

    bool seen = is_new(f, s);
    if (acknowledged)
        assert_true(seen);
    f->graph = load_fixture_open(f);
    ASSERT_OK(co_recover(f->graph, CO_RECOVER_AUTOMATIC, 0, NULL, 0, NULL, NULL, &err));
    bool settled = is_new(f, s);
    assert_true(settled || !seen);
    assert_int_not_equal(load_fixture_load(f, "P=next.csv"), 0);
    ASSERT_OK(co_gc(f->graph, false, &report, &err));
    assert_true(asprintf(&rows, "%s[next][9][-]\n", settled ? s->new_p : s->old_p) > 0);
    load_fixture_expect(f, "P", rows);
    free(rows);
    load_fixture_expect_clean(f);
    assert_int_equal(load_fixture_files(f, "tables/64/fragments"), 1 + (settled ? s->new_fragments : s->old_fragments));
}

typedef struct fate {
    bool before;
    pf_sim_fate fate;
    pf_sim_loss loss;
} fate;
static const fate fates[] = {
    {true, PF_SIM_DIE, PF_SIM_KEEP_ALL},         {false, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {false, PF_SIM_DIE, PF_SIM_TEAR_LAST},       {true, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL}, {false, PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
};

static bool crash_at(const load_fixture *base, const scene *s, uint64_t k, const fate *how, uint64_t seed)
{
    load_fixture f;
    co_load_result result;
    co_load_options options = {.mode = s->mode, .max_errors = UINT64_MAX, .skip_bad_rows = s->skip};
    sluice_error err;

    load_fixture_copy(base, seed, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    sluice_status status = load_fixture_try(&f, f.graph, s->inputs, &options, &result, &err);
    bool dead = pf_sim_is_dead(volume);
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    pf_sim_kill(volume);
    st_graph_close(f.graph);
    settle(&f, s, status == SLUICE_OK);
    load_fixture_copy_free(&f);
    return dead;
}

static void a_load_that_dies_at_any_call_is_old_or_new(void **state)
{
    (void)state;
    load_fixture base;
    uint64_t stride = getenv("SLUICE_LONG") ? 1 : STRIDE;

    make_base(&base);
    st_graph_close(base.graph);
    for (size_t n = 0; n < sizeof scenes / sizeof *scenes; n++) {
        unsigned reached = 0;
        for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
            uint64_t k = 1 + i % stride;
            for (; crash_at(&base, &scenes[n], k, &fates[i], k * 31 + i); k += stride)
                reached++;
            assert_true(k > 20);
        }
        print_message("%s: %u crashes\n", scenes[n].name, reached);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* Runs the load with call k failing (0: none); returns how many calls it made. */
static uint64_t fail_at(const load_fixture *base, const scene *s, uint64_t k, int number)
{
    load_fixture f;
    co_load_result result;
    co_load_options options = {.mode = s->mode, .max_errors = UINT64_MAX, .skip_bad_rows = s->skip};
    sluice_error err;

    load_fixture_copy(base, k, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    uint64_t calls = pf_sim_calls(volume);
    pf_sim_fail_at(volume, k, number, 1);
    sluice_status status = load_fixture_try(&f, f.graph, s->inputs, &options, &result, &err);
    calls = pf_sim_calls(volume) - calls;
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    else if (err.committed != SLUICE_UNKNOWN)
        assert_int_equal(is_new(&f, s), err.committed == SLUICE_TRUE);
    st_graph_close(f.graph);
    settle(&f, s, status == SLUICE_OK);
    load_fixture_copy_free(&f);
    return calls;
}

static void a_call_that_fails_leaves_the_old_state_or_the_new(void **state)
{
    (void)state;
    load_fixture base;
    uint64_t stride = getenv("SLUICE_LONG") ? 1 : 2 * STRIDE;
    static const int numbers[] = {28 /* ENOSPC */, 5 /* EIO */};

    make_base(&base);
    st_graph_close(base.graph);
    for (size_t n = 0; n < sizeof scenes / sizeof *scenes; n++) {
        uint64_t calls = fail_at(&base, &scenes[n], 0, 0);
        assert_true(calls > 20);
        for (unsigned e = 0; e < 2; e++)
            for (uint64_t k = 1 + e; k <= calls; k += stride)
                (void)fail_at(&base, &scenes[n], k, numbers[e]);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_that_dies_at_any_call_is_old_or_new),
        cmocka_unit_test(a_call_that_fails_leaves_the_old_state_or_the_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
