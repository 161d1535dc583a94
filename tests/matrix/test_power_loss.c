/*
 * The recovery matrix, power loss: every kind of writer on the simulated disk loses power at every window that it
 * passes (the failpoints, as on real files in test_matrix.py), what was not synced is lost, kept, or torn; then each
 * kind of successor comes. What was there before or after the write stands, what was answered is there, the next write
 * works, the same request again gives the first result or runs now, and nothing is left.
 *
 * A sample of the windows, a loss and a successor in turn for each; all of them with SLUICE_LONG=1.
 */
#include "acts.h"
#include "coord/recover.h"
#include <stdlib.h>
#include <string.h>

/* Each so-many-th window, from another one on for each writer; fewer with sanitizers, slow here. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 16u
#else
#define STRIDE 4u
#endif

/* ---- striking ---- */

typedef struct striker {
    pf_failpoint point;
    uint32_t passage; /* 0: only counts */
    uint32_t seen[PF_FAILPOINT_COUNT];
    pf_sim_disk *disk;
    pf_volume *volume; /* the writer's */
    bool dies;         /* its process, instead of a power loss */
    pf_sim_loss loss;
    bool struck;
} striker;

static void on_passage(void *context, pf_failpoint point)
{
    striker *s = context;
    s->seen[point]++;
    if (point != s->point || s->seen[point] != s->passage)
        return;
    s->struck = true;
    if (s->dies)
        pf_sim_kill(s->volume);
    else if (point <= PF_FP_VOLUME_LOCK) /* inside a call: this one, or the next that changes something */
        pf_sim_crash_at(s->volume, 1, true, PF_SIM_POWER_LOSS, s->loss);
    else
        pf_sim_power_loss(s->disk, s->loss);
}

static sluice_status run_watched(load_fixture *f, const matrix_writer *writer, const pf_id *operation, striker *s,
                                 sluice_error *err)
{
    st_graph *graph = load_fixture_open(f);
    s->volume = st_graph_volume(graph);
    pf_failpoints_watch(on_passage, s);
    sluice_status status = writer->run(f, graph, operation, err);
    pf_failpoints_watch(NULL, NULL);
    pf_sim_kill(st_graph_volume(graph));
    st_graph_close(graph);
    return status;
}

/* ---- what a reader says ---- */

typedef struct expected {
    char *before, *after, *halfway; /* halfway: NULL unless the writer follows */
} expected;

typedef enum verdict { OLD, NEW, EITHER } verdict;

static bool is_said(const char *want, const char *said)
{
    return want && strcmp(want, said) == 0;
}

static verdict judge(load_fixture *f, const expected *e)
{
    char *said = matrix_see(f);
    bool is_old = is_said(e->before, said), is_new = is_said(e->after, said) || is_said(e->halfway, said);
    if (!is_old && !is_new)
        print_error("%s is neither\n%s nor\n%s\n", said, e->before, e->after);
    assert_true(is_old || is_new);
    free(said);
    return is_old && is_new ? EITHER : is_new ? NEW : OLD;
}

static sluice_status on_line(void *context, const co_recovered *line, sluice_error *err)
{
    (void)err;
    if (strcmp(line->stage, "confirmed") == 0)
        *(bool *)context = true;
    return SLUICE_OK;
}

static bool has_confirmed(load_fixture *f)
{
    sluice_error err = {0};
    bool confirmed = false;
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(co_recover(graph, CO_RECOVER_PROBE, 0, NULL, 0, on_line, &confirmed, &err));
    st_graph_close(graph);
    return confirmed;
}

/* ---- a cell ---- */

typedef enum successor { BY_WRITER, BY_RECOVER, BY_GC, BY_READER, SUCCESSORS } successor;

static void run_cell(const load_fixture *base, const matrix_writer *writer, const expected *e, pf_failpoint point,
                     uint32_t passage, pf_sim_loss loss, successor who, uint64_t seed)
{
    load_fixture f;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    matrix_copy(base, seed, &f);
    striker s = {.point = point, .passage = passage, .disk = f.disk, .loss = loss};
    sluice_status status = run_watched(&f, writer, &operation, &s, &err);
    assert_true(s.struck); /* a cell that did not reach its window proves nothing */

    verdict seen = judge(&f, e);
    if (status == SLUICE_OK && !writer->unseen)
        assert_int_not_equal(seen, OLD);
    bool known_new = seen == NEW || has_confirmed(&f);
    if (who == BY_RECOVER)
        matrix_do(&f, matrix_recover);
    if (who == BY_GC)
        matrix_do(&f, matrix_collect);
    verdict now = judge(&f, e);
    if (known_new && (seen == NEW || who == BY_RECOVER || who == BY_GC))
        assert_int_not_equal(now, OLD);
    matrix_do(&f, matrix_next_write);
    matrix_do(&f, matrix_recover); /* a branch of its own is not settled by a write to main */
    verdict settled = judge(&f, e);
    if (known_new || now == NEW || writer->settles)
        assert_int_not_equal(settled, OLD);
    matrix_expect_nothing_left(&f);
    assert_int_equal(judge(&f, e), settled);

    st_graph *graph = load_fixture_open(&f);
    ASSERT_OK(writer->run(&f, graph, &operation, &err)); /* the same request again */
    st_graph_close(graph);
    assert_int_not_equal(judge(&f, e), OLD);
    matrix_expect_nothing_left(&f);
    pf_sim_disk_free(f.disk);
}

/* ---- a writer ---- */

/* What stands before and after; the windows on the way. */
static expected learn(const load_fixture *ready, const matrix_writer *writer, striker *ret_windows)
{
    load_fixture f;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    expected e = {0};
    matrix_copy(ready, 2, &f);
    e.before = matrix_see(&f);
    *ret_windows = (striker){.disk = f.disk};
    ASSERT_OK(run_watched(&f, writer, &operation, ret_windows, &err));
    e.after = matrix_see(&f);
    assert_int_equal(is_said(e.before, e.after), writer->unseen);
    pf_sim_disk_free(f.disk);
    if (writer->follows) {
        matrix_copy(ready, 3, &f);
        matrix_do(&f, matrix_merge);
        e.halfway = matrix_see(&f);
        pf_sim_disk_free(f.disk);
    }
    return e;
}

static unsigned run_writer(const load_fixture *base, const matrix_writer *writer, unsigned turn)
{
    static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_RANDOM, PF_SIM_TEAR_LAST, PF_SIM_KEEP_ALL};
    bool whole = getenv("SLUICE_LONG") != NULL;
    load_fixture ready;
    striker windows;
    unsigned cells = 0, window = turn;
    matrix_prepare(base, writer, &ready);
    expected e = learn(&ready, writer, &windows);
    for (int point = 0; point < PF_FAILPOINT_COUNT; point++) {
        uint32_t count = windows.seen[point];
        for (uint32_t passage = 1, step = whole ? (count + 2) / 3 : count; passage <= count;
             passage = passage < count && passage + step > count ? count : passage + step) {
            if (!whole && window++ % STRIDE != 0)
                continue;
            for (unsigned i = 0; i < (whole ? 16u : 1u); i++, turn++, cells++)
                run_cell(&ready, writer, &e, (pf_failpoint)point, passage, losses[(turn / 4 + turn) % 4],
                         (successor)(turn % SUCCESSORS), turn);
        }
    }
    free(e.before);
    free(e.after);
    free(e.halfway);
    pf_sim_disk_free(ready.disk);
    return cells;
}

static void every_writer_that_loses_power_at_any_window_is_old_or_new(void **state)
{
    (void)state;
    load_fixture base;
    unsigned cells = 0;
    matrix_base(&base);
    for (unsigned i = 0; i < MATRIX_WRITERS; i++) {
        unsigned own = run_writer(&base, &matrix_writers[i], i + cells);
        print_message("%s: %u cells\n", matrix_writers[i].name, own);
        cells += own;
    }
    print_message("%u cells\n", cells);
    base.graph = load_fixture_open(&base);
    load_fixture_free(&base);
}

int main(void)
{
#if SLUICE_FAILPOINTS
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_writer_that_loses_power_at_any_window_is_old_or_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 77;
#endif
}
