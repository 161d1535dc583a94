/*
 * The recovery matrix, power loss: every kind of writer on the simulated disk loses power at every window that it
 * passes (the failpoints, as on real files in test_matrix.py), what was not synced is lost, kept, or torn; then each
 * kind of successor comes. What was there before or after the write stands, what was answered is there, the next write
 * works, the same request again gives the first result or runs now, and nothing is left.
 *
 * A sample of the windows, a loss and a successor in turn for each; all of them with SLUICE_LONG=1.
 */
#include "coord/branch.h"
#include "coord/checkpoint.h"
#include "coord/maintain.h"
#include "coord/merge.h"
#include "coord/mutate.h"
#include "coord/recover.h"
#include "coord/revert.h"
#include "coord/schema_change.h"
#include "load_fixture.h"
#include "platform/failpoint.h"
#include "store/read/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"},"
                             "\"unique\":[[\"name\"]]}},"
                             "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"key\":[]}}}";
static const char wider[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\","
                            "\"age\":{\"type\":\"int32\",\"default\":7}},\"unique\":[[\"name\"]]}},"
                            "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"key\":[]}}}";

/* Each so-many-th window, from another one on for each writer; fewer with sanitizers, slow here. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 16u
#else
#define STRIDE 4u
#endif

/* ---- the writers ---- */

static sluice_status mutate_on(load_fixture *f, st_graph *graph, const char *branch, const pf_id *operation,
                               const char *text, sluice_error *err)
{
    co_mutate_options options = {.path = "m.jsonl", .branch = branch, .operation = *operation};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_mutate_result result = {0};
    (void)f;
    return co_mutate_text(graph, &options, &executor, text, strlen(text), &result, err);
}

static sluice_status mutate(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    return mutate_on(f, graph, NULL, operation,
                     "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":20,\"name\":\"x\"}}\n"
                     "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"name\":\"y\"}}\n"
                     "{\"op\":\"delete\",\"node\":\"P\",\"key\":2,\"detach\":true}\n",
                     err);
}

static sluice_status mutate_staged(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    assert_int_equal(setenv("SLUICE_NO_ATTACH", "1", 1), 0);
    sluice_status status = mutate(f, graph, operation, err);
    assert_int_equal(unsetenv("SLUICE_NO_ATTACH"), 0);
    return status;
}

static sluice_status load_as(load_fixture *f, st_graph *graph, const char *inputs, co_load_options options,
                             sluice_error *err)
{
    co_load_result result;
    options.max_errors = UINT64_MAX;
    sluice_status status = load_fixture_try(f, graph, inputs, &options, &result, err);
    if (status == SLUICE_OK)
        co_load_result_free(&result);
    return status;
}

static sluice_status load(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    return load_as(f, graph, "P=new.csv K=knew.csv", (co_load_options){.operation = *operation}, err);
}

static sluice_status upsert(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    return load_as(f, graph, "P=up.csv", (co_load_options){.operation = *operation, .mode = CO_LOAD_UPSERT}, err);
}

static sluice_status overwrite(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    return load_as(f, graph, "P=new.csv K=knew.csv",
                   (co_load_options){.operation = *operation, .mode = CO_LOAD_OVERWRITE}, err);
}

static sluice_status load_branch(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    return load_as(f, graph, "P=new.csv",
                   (co_load_options){.operation = *operation, .branch = "made", .create_branch = true}, err);
}

static sluice_status merge_as(st_graph *graph, const pf_id *operation, bool deletes, sluice_error *err)
{
    co_merge_options options = {.source = "b", .operation = *operation, .delete_source = deletes};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_merge_result result = {0};
    sluice_status status = co_merge(graph, &options, &executor, &result, err);
    co_merge_result_free(&result);
    return status;
}

static sluice_status merge(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return merge_as(graph, operation, false, err);
}

static sluice_status merge_delete(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return merge_as(graph, operation, true, err);
}

static sluice_status change_schema(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_receipt receipt = {0};
    co_schema_request request = {
        .text = wider, .length = strlen(wider), .file = "wider.json", .operation = *operation, .operation_given = true};
    (void)f;
    return co_schema_apply(graph, &request, &receipt, err);
}

static sluice_status maintain(st_graph *graph, co_maintain_kind kind, const pf_id *operation, sluice_error *err)
{
    co_maintain_options options = {.kind = kind, .operation = *operation};
    co_maintain_result result = {0};
    sluice_status status = co_maintain_inline(graph, &options, &result, err);
    if (status == SLUICE_OK)
        co_maintain_result_free(&result);
    return status;
}

static sluice_status optimize(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return maintain(graph, CO_OPTIMIZE, operation, err);
}

static sluice_status make_index(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return maintain(graph, CO_INDEX, operation, err);
}

static sluice_status revert(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_receipt receipt = {0};
    co_revert_request request = {.to = "early", .operation = *operation, .operation_given = true};
    (void)f;
    return co_revert(graph, &request, &receipt, err);
}

static sluice_status branch_create(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_branch_receipt receipt = {0};
    co_branch_request request = {.name = "made", .operation = *operation, .operation_given = true};
    (void)f;
    return co_branch_create(graph, &request, &receipt, err);
}

static sluice_status branch_delete(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_branch_receipt receipt = {0};
    co_branch_request request = {.name = "b", .operation = *operation, .operation_given = true};
    (void)f;
    return co_branch_delete(graph, &request, &receipt, err);
}

static sluice_status checkpoint_create(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_checkpoint_receipt receipt = {0};
    co_checkpoint_request request = {.name = "made", .operation = *operation, .operation_given = true};
    (void)f;
    return co_checkpoint_create(graph, &request, &receipt, err);
}

static sluice_status checkpoint_delete(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_checkpoint_receipt receipt = {0};
    co_checkpoint_request request = {.name = "early", .operation = *operation, .operation_given = true};
    (void)f;
    return co_checkpoint_delete(graph, &request, &receipt, err);
}

static sluice_status collect(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_gc_report report;
    (void)f;
    (void)operation;
    return co_gc(graph, false, &report, err);
}

static sluice_status recover(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    (void)operation;
    return co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, err);
}

typedef struct matrix_writer {
    const char *name;
    sluice_status (*run)(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err);
    pf_failpoint dead_at;     /* recover, gc: a load that lost its process there came before */
    bool after_dead, settles; /* settles: in the end it is done, whatever happens */
    bool follows;             /* something comes after its commit: without it, it is as new */
    bool unseen;              /* it changes no row, branch or name */
} matrix_writer;

static const matrix_writer writers[] = {
    {.name = "mutate", .run = mutate},
    {.name = "mutate-staged", .run = mutate_staged},
    {.name = "load", .run = load},
    {.name = "upsert", .run = upsert},
    {.name = "overwrite", .run = overwrite},
    {.name = "load-branch", .run = load_branch},
    {.name = "merge", .run = merge},
    {.name = "merge-delete", .run = merge_delete, .follows = true},
    {.name = "schema", .run = change_schema},
    {.name = "optimize", .run = optimize, .unseen = true},
    {.name = "index", .run = make_index, .unseen = true},
    {.name = "revert", .run = revert},
    {.name = "branch-create", .run = branch_create},
    {.name = "branch-delete", .run = branch_delete},
    {.name = "checkpoint-create", .run = checkpoint_create},
    {.name = "checkpoint-delete", .run = checkpoint_delete},
    {.name = "gc", .run = collect, .after_dead = true, .dead_at = PF_FP_LOAD_AFTER_EDITS, .unseen = true},
    {.name = "recover", .run = recover, .after_dead = true, .dead_at = PF_FP_ARM_AFTER, .settles = true},
};

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

/* ---- the graph that all begin with ---- */

static void say(load_fixture *f, const char *branch, const char *text)
{
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    ASSERT_OK(mutate_on(f, f->graph, branch, &operation, text, &err));
}

static void make_base(load_fixture *f)
{
    sluice_error err = {0};
    co_checkpoint_receipt point = {0};
    co_branch_receipt branch = {0};
    load_fixture_make(f, schema);
    load_fixture_text(f, "p.csv", "id,name\n1,a\n2,b\n3,c\n");
    load_fixture_text(f, "k.csv", "from,to\n1,2\n3,1\n");
    load_fixture_text(f, "new.csv", "id,name\n101,n1\n102,n2\n103,n3\n");
    load_fixture_text(f, "knew.csv", "from,to\n101,102\n103,101\n");
    load_fixture_text(f, "up.csv", "id,name\n1,other\n50,fifty\n");
    assert_int_not_equal(load_fixture_load(f, "P=p.csv K=k.csv"), 0);
    ASSERT_OK(co_checkpoint_create(f->graph, &(co_checkpoint_request){.name = "early", .operation = pf_id_new()},
                                   &point, &err));
    load_fixture_text(f, "p.csv", "id,name\n4,d\n");
    load_fixture_text(f, "k.csv", "from,to\n4,4\n");
    assert_int_not_equal(load_fixture_load(f, "P=p.csv K=k.csv"), 0);
    ASSERT_OK(co_branch_create(f->graph, &(co_branch_request){.name = "b", .operation = pf_id_new()}, &branch, &err));
    say(f, "b",
        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":30,\"name\":\"z\"}}\n"
        "{\"op\":\"update\",\"node\":\"P\",\"key\":3,\"set\":{\"name\":\"cc\"}}\n");
    say(f, NULL, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":40,\"name\":\"w\"}}\n");
    st_graph_close(f->graph);
}

static void copy_of(const load_fixture *base, uint64_t seed, load_fixture *ret_copy)
{
    sluice_error err = {0};
    *ret_copy = (load_fixture){.folder = base->folder};
    ASSERT_OK(pf_sim_disk_clone(base->disk, seed, &ret_copy->disk, &err));
}

/* ---- what a reader says ---- */

static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    (void)incarnation;
    (void)err;
    (void)fprintf(context, "branch %s\n", name ? name : "?");
    return SLUICE_OK;
}

static char *see(load_fixture *f)
{
    sluice_error err = {0};
    st_control control = {0};
    char *text = NULL, *p = load_fixture_rows(f, "P"), *k = load_fixture_rows(f, "K");
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    st_graph *graph = load_fixture_open(f);
    (void)fprintf(out, "P\n%sK\n%s", p, k);
    ASSERT_OK(st_ref_list(graph, on_ref, out, &err));
    ASSERT_OK(st_control_read(graph, &control, &err));
    for (uint32_t i = 0; i < control.checkpoint_count; i++)
        (void)fprintf(out, "checkpoint %s\n", control.checkpoints[i].name);
    st_control_free(&control);
    st_graph_close(graph);
    assert_int_equal(fclose(out), 0);
    free(p);
    free(k);
    return text;
}

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
    char *said = see(f);
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

static void run_on(load_fixture *f, sluice_status (*run)(load_fixture *, st_graph *, const pf_id *, sluice_error *))
{
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(run(f, graph, &operation, &err));
    st_graph_close(graph);
}

/* One more node and its removal: what is said stays the same. */
static sluice_status next_write(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    pf_id second = pf_id_new();
    PF_TRY(mutate_on(f, graph, NULL, operation, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":900}}\n", err));
    return mutate_on(f, graph, NULL, &second, "{\"op\":\"delete\",\"node\":\"P\",\"key\":900}\n", err);
}

static void expect_nothing_left(load_fixture *f)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    f->graph = load_fixture_open(f);
    ASSERT_OK(co_gc(f->graph, false, &report, &err));
    ASSERT_OK(co_gc(f->graph, true, &report, &err));
    assert_int_equal(report.files + report.attempts, 0);
    assert_int_equal(load_fixture_files(f, "quarantine"), 0);
    load_fixture_expect_clean(f);
    st_graph_close(f->graph);
    f->graph = NULL;
}

static void run_cell(const load_fixture *base, const matrix_writer *writer, const expected *e, pf_failpoint point,
                     uint32_t passage, pf_sim_loss loss, successor who, uint64_t seed)
{
    load_fixture f;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    copy_of(base, seed, &f);
    striker s = {.point = point, .passage = passage, .disk = f.disk, .loss = loss};
    sluice_status status = run_watched(&f, writer, &operation, &s, &err);
    assert_true(s.struck); /* a cell that did not reach its window proves nothing */

    verdict seen = judge(&f, e);
    if (status == SLUICE_OK && !writer->unseen)
        assert_int_not_equal(seen, OLD);
    bool known_new = seen == NEW || has_confirmed(&f);
    if (who == BY_RECOVER)
        run_on(&f, recover);
    if (who == BY_GC)
        run_on(&f, collect);
    verdict now = judge(&f, e);
    if (known_new && (seen == NEW || who == BY_RECOVER || who == BY_GC))
        assert_int_not_equal(now, OLD);
    run_on(&f, next_write);
    run_on(&f, recover); /* a branch of its own is not settled by a write to main */
    verdict settled = judge(&f, e);
    if (known_new || now == NEW || writer->settles)
        assert_int_not_equal(settled, OLD);
    expect_nothing_left(&f);
    assert_int_equal(judge(&f, e), settled);

    st_graph *graph = load_fixture_open(&f);
    ASSERT_OK(writer->run(&f, graph, &operation, &err)); /* the same request again */
    st_graph_close(graph);
    assert_int_not_equal(judge(&f, e), OLD);
    expect_nothing_left(&f);
    pf_sim_disk_free(f.disk);
}

/* ---- a writer ---- */

static void prepare(const load_fixture *base, const matrix_writer *writer, load_fixture *ret_ready)
{
    copy_of(base, 1, ret_ready);
    if (!writer->after_dead)
        return;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    striker s = {.point = writer->dead_at, .passage = 1, .dies = true};
    assert_int_not_equal(run_watched(ret_ready, &(matrix_writer){.run = load}, &operation, &s, &err), SLUICE_OK);
    assert_true(s.struck);
}

/* What stands before and after; the windows on the way. */
static expected learn(const load_fixture *ready, const matrix_writer *writer, striker *ret_windows)
{
    load_fixture f;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    expected e = {0};
    copy_of(ready, 2, &f);
    e.before = see(&f);
    *ret_windows = (striker){.disk = f.disk};
    ASSERT_OK(run_watched(&f, writer, &operation, ret_windows, &err));
    e.after = see(&f);
    assert_int_equal(is_said(e.before, e.after), writer->unseen);
    pf_sim_disk_free(f.disk);
    if (writer->follows) {
        copy_of(ready, 3, &f);
        run_on(&f, merge);
        e.halfway = see(&f);
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
    prepare(base, writer, &ready);
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
    make_base(&base);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        unsigned own = run_writer(&base, &writers[i], (unsigned)i + cells);
        print_message("%s: %u cells\n", writers[i].name, own);
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
