/*
 * A load that skips bad rows and dies at any of its calls, or meets another writer there: the graph is wholly old or
 * wholly new, and what was left out is what the state right before the commit says.
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

/* Of the calls of a load, each fate takes other ones; fewer with sanitizers, which are slow here. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 29u
#else
#define STRIDE 5u
#endif

#define INPUTS  "P=p.csv Q=q.csv K=k.csv"
#define OLD_P   "[a][1]\n"
#define NEW_P   OLD_P "[b][2]\n[c][3]\n"
#define NEW_K   "[a][7]\n[b][7]\n"
#define REJECTS 8u

static void make_base(load_fixture *f)
{
    load_fixture_make(f, schema);
    load_fixture_text(f, "old.csv", "id,n\na,1\n");
    load_fixture_text(f, "p.csv", "id,n\nb,2\nc,3\na,9\ne,x\nf,3\n");
    load_fixture_text(f, "q.csv", "id\n7\n7\n");
    load_fixture_text(f, "k.csv", "from,to\na,7\nb,7\nb,7\na,8\nf,7\nd,7\n");
    load_fixture_text(f, "next.csv", "id,n\nz,9\n");
    load_fixture_text(f, "late.csv", "id,n\nd,50\n");
    load_fixture_text(f, "taken.csv", "id,n\nc,30\n");
    load_fixture_text(f, "tuple.csv", "id,n\ng,2\n");
    assert_int_not_equal(load_fixture_load(f, "P=old.csv"), 0);
}

static sluice_status load(load_fixture *f, co_load_result *ret_result, sluice_error *err)
{
    const co_load_options options = {.max_errors = UINT64_MAX, .skip_bad_rows = true};
    return load_fixture_try(f, f->graph, INPUTS, &options, ret_result, err);
}

/* ---- deaths ---- */

static bool is_new(load_fixture *f)
{
    char *p = load_fixture_rows(f, "P");
    bool new = strcmp(p, NEW_P) == 0;

    assert_string_equal(p, new ? NEW_P : OLD_P);
    load_fixture_expect(f, "Q", new ? "[7]\n" : "");
    load_fixture_expect(f, "K", new ? NEW_K : "");
    free(p);
    return new;
}

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
    assert_int_equal(load_fixture_files(f, "tables/64/fragments"), settled ? 3 : 2);
    assert_int_equal(load_fixture_files(f, "tables/64/deletions"), settled ? 1 : 0);
}

typedef struct fate {
    bool before;
    pf_sim_fate fate;
    pf_sim_loss loss;
} fate;
static const fate fates[] = {
    {true, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {false, PF_SIM_DIE, PF_SIM_TEAR_LAST},
    {true, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
};

static bool crash_at(const load_fixture *base, uint64_t k, const fate *how, uint64_t seed)
{
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, seed, &f);
    pf_volume *volume = st_graph_volume(f.graph);
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    sluice_status status = load(&f, &result, &err);
    bool dead = pf_sim_is_dead(volume);
    if (status == SLUICE_OK) {
        assert_int_equal(result.rejected, REJECTS);
        co_load_result_free(&result);
    }
    pf_sim_kill(volume);
    st_graph_close(f.graph);
    settle(&f, status == SLUICE_OK);
    load_fixture_copy_free(&f);
    return dead;
}

static void a_skipping_load_that_dies_at_any_call_is_old_or_new(void **state)
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
        assert_true(k > 40);
    }
    print_message("%u crashes\n", reached);
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* ---- another writer in between ---- */

typedef struct rival {
    const char *inputs;
    bool conflicts;                /* it cannot be loaded behind the skipping load */
    const char *first_p, *first_k; /* what there is when it came first, */
    uint64_t rejected;             /* and what was left out then */
    const char *last_p;            /* when it came last */
} rival;

static bool meet_at(const load_fixture *base, uint64_t k, const rival *with)
{
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, k, &f);
    const co_load_options theirs = {.max_errors = UINT64_MAX};
    load_rival o = {.f = &f, .inputs = with->inputs, .options = &theirs};
    pf_sim_interrupt_at(st_graph_volume(f.graph), k, load_fixture_run_rival, &o);
    ASSERT_OK(load(&f, &result, &err));
    pf_sim_interrupt_at(st_graph_volume(f.graph), 0, NULL, NULL);
    bool came = o.ran && o.status == SLUICE_OK, first = came && o.generation < result.receipt.generation;
    if (o.ran && !came)
        assert_true(o.status == SLUICE_LIVE_WRITER_CONTENTION || with->conflicts);
    assert_int_equal(result.rejected, first ? with->rejected : REJECTS);
    load_fixture_expect(&f, "P", first ? with->first_p : came ? with->last_p : NEW_P);
    load_fixture_expect(&f, "K", first ? with->first_k : NEW_K);
    load_fixture_expect_clean(&f);
    co_load_result_free(&result);
    load_fixture_copy_free(&f);
    return o.ran;
}

static void what_is_left_out_is_judged_by_the_state_before_the_commit(void **state)
{
    (void)state;
    load_fixture base;
    const rival rivals[] = {
        {"P=late.csv", false, OLD_P "[d][50]\n[b][2]\n[c][3]\n", NEW_K "[d][7]\n", REJECTS - 1, NEW_P "[d][50]\n"},
        {"P=taken.csv", true, OLD_P "[c][30]\n[b][2]\n[f][3]\n", NEW_K "[f][7]\n", REJECTS - 1, NEW_P},
        {"P=tuple.csv", true, OLD_P "[g][2]\n[c][3]\n", "[a][7]\n", REJECTS + 2, NEW_P},
    };

    make_base(&base);
    st_graph_close(base.graph);
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
        uint64_t k = 1 + i;
        while (meet_at(&base, k, &rivals[i]))
            k += STRIDE;
        assert_true(k > 40);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

/* ---- the same of an upsert ---- */

static const char up_schema[] =
    "{\"nodes\": {\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"string\", \"n\": \"int64?\", \"m\": \"int64\"}, "
    "\"unique\": [[\"n\"]]}}}";

static void make_up_base(load_fixture *f)
{
    load_fixture_make(f, up_schema);
    load_fixture_text(f, "old.csv", "id,n,m\na,1,0\ny,7,0\n");
    load_fixture_text(f, "up.csv", "id,n,m\na,2,0\nb,1,0\nc,7,0\n"); /* 7 is taken */
    load_fixture_text(f, "new.csv", "id,n\nd,9\n");                  /* and a new key must have m */
    load_fixture_text(f, "two.csv", "id,n,m\nz,2,5\n");
    load_fixture_text(f, "free.csv", "id,n\ny,8\n");
    load_fixture_text(f, "key.csv", "id,n,m\nd,50,5\n");
    assert_int_not_equal(load_fixture_load(f, "P=old.csv"), 0);
}

typedef struct up_rival {
    const char *inputs;
    co_load_mode mode;
    bool conflicts;
    const char *first; /* what there is when it came first, */
    uint64_t rejected; /* and what was left out then */
    const char *last;
} up_rival;

#define UP_NEW "[y][7][0]\n[b][1][0]\n[a][2][0]\n"

static bool meet_upsert_at(const load_fixture *base, uint64_t k, const up_rival *with)
{
    const co_load_options options = {.mode = CO_LOAD_UPSERT, .max_errors = UINT64_MAX, .skip_bad_rows = true};
    load_fixture f;
    co_load_result result;
    sluice_error err;

    load_fixture_copy(base, k, &f);
    const co_load_options theirs = {.mode = with->mode, .max_errors = UINT64_MAX};
    load_rival o = {.f = &f, .inputs = with->inputs, .options = &theirs};
    pf_sim_interrupt_at(st_graph_volume(f.graph), k, load_fixture_run_rival, &o);
    ASSERT_OK(load_fixture_try(&f, f.graph, "P=up.csv P=new.csv", &options, &result, &err));
    pf_sim_interrupt_at(st_graph_volume(f.graph), 0, NULL, NULL);
    bool came = o.ran && o.status == SLUICE_OK,
         first = came && (!result.receipt.committed || o.generation < result.receipt.generation);
    if (o.ran && !came)
        assert_true(o.status == SLUICE_LIVE_WRITER_CONTENTION || with->conflicts);
    if (result.rejected != (first ? with->rejected : 2))
        fail_msg("%s at %u: %u rejected", with->inputs, (unsigned)k, (unsigned)result.rejected);
    load_fixture_expect(&f, "P", first ? with->first : came ? with->last : UP_NEW);
    load_fixture_expect_clean(&f);
    co_load_result_free(&result);
    load_fixture_copy_free(&f);
    return o.ran;
}

static void what_an_upsert_leaves_out_is_judged_by_the_state_before_the_commit(void **state)
{
    (void)state;
    load_fixture base;
    const up_rival rivals[] = {
        {"P=two.csv", CO_LOAD_INSERT, true, "[a][1][0]\n[y][7][0]\n[z][2][5]\n", 4, UP_NEW},
        {"P=free.csv", CO_LOAD_UPSERT, false, "[y][8][0]\n[b][1][0]\n[c][7][0]\n[a][2][0]\n", 1,
         "[b][1][0]\n[a][2][0]\n[y][8][0]\n"},
        {"P=key.csv", CO_LOAD_INSERT, false, "[y][7][0]\n[b][1][0]\n[a][2][0]\n[d][9][5]\n", 1, UP_NEW "[d][50][5]\n"},
    };

    make_up_base(&base);
    st_graph_close(base.graph);
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
        uint64_t k = 1 + i;
        while (meet_upsert_at(&base, k, &rivals[i]))
            k += STRIDE;
        assert_true(k > 40);
    }
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skipping_load_that_dies_at_any_call_is_old_or_new),
        cmocka_unit_test(what_is_left_out_is_judged_by_the_state_before_the_commit),
        cmocka_unit_test(what_an_upsert_leaves_out_is_judged_by_the_state_before_the_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
