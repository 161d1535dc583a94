/* What is done to graphs in the recovery matrix (acts.h). */
#include "acts.h"

#include "coord/backup.h"
#include "coord/branch.h"
#include "coord/checkpoint.h"
#include "coord/epoch.h"
#include "coord/maintain.h"
#include "coord/merge.h"
#include "coord/mutate.h"
#include "coord/recover.h"
#include "coord/revert.h"
#include "coord/schema_change.h"
#include "locks/claim.h"
#include "tests/support/aftermath.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"},"
                             "\"unique\":[[\"name\"]]}},"
                             "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"key\":[]}}}";
static const char wider[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\","
                            "\"age\":{\"type\":\"int32\",\"default\":7}},\"unique\":[[\"name\"]]}},"
                            "\"edges\":{\"K\":{\"from\":\"P\",\"to\":\"P\",\"key\":[]}}}";

/* ---- the writers ---- */

static sluice_status mutate_on(st_graph *graph, const char *branch, const pf_id *operation, const char *text,
                               sluice_error *err)
{
    co_mutate_options options = {.path = "m.jsonl", .branch = branch, .operation = *operation};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_mutate_result result = {0};
    return co_mutate_text(graph, &options, &executor, text, strlen(text), &result, err);
}

sluice_status matrix_mutate(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return mutate_on(graph, NULL, operation,
                     "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":20,\"name\":\"x\"}}\n"
                     "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"name\":\"y\"}}\n"
                     "{\"op\":\"delete\",\"node\":\"P\",\"key\":2,\"detach\":true}\n",
                     err);
}

static sluice_status mutate_staged(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    assert_int_equal(setenv("SLUICE_NO_ATTACH", "1", 1), 0);
    sluice_status status = matrix_mutate(f, graph, operation, err);
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

sluice_status matrix_merge(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
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

sluice_status matrix_collect(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_gc_report report;
    (void)f;
    (void)operation;
    return co_gc(graph, false, &report, err);
}

sluice_status matrix_recover(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    (void)operation;
    return co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, err);
}

const matrix_writer matrix_writers[MATRIX_WRITERS] = {
    {.name = "mutate", .run = matrix_mutate},
    {.name = "mutate-staged", .run = mutate_staged},
    {.name = "load", .run = load},
    {.name = "upsert", .run = upsert},
    {.name = "overwrite", .run = overwrite},
    {.name = "load-branch", .run = load_branch},
    {.name = "merge", .run = matrix_merge},
    {.name = "merge-delete", .run = merge_delete, .follows = true},
    {.name = "schema", .run = change_schema},
    {.name = "optimize", .run = optimize, .unseen = true},
    {.name = "index", .run = make_index, .unseen = true},
    {.name = "revert", .run = revert},
    {.name = "branch-create", .run = branch_create},
    {.name = "branch-delete", .run = branch_delete},
    {.name = "checkpoint-create", .run = checkpoint_create},
    {.name = "checkpoint-delete", .run = checkpoint_delete},
    {.name = "gc", .run = matrix_collect, .after_dead = true, .dead_at = PF_FP_LOAD_AFTER_EDITS, .unseen = true},
    {.name = "recover", .run = matrix_recover, .after_dead = true, .dead_at = PF_FP_ARM_AFTER, .settles = true},
};

/* ---- more of them ---- */

static sluice_status mutate_edges(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    (void)f;
    return mutate_on(graph, NULL, operation,
                     "{\"op\":\"delete\",\"edge\":\"K\",\"from\":1,\"to\":2}\n"
                     "{\"op\":\"insert\",\"edge\":\"K\",\"from\":2,\"to\":3}\n"
                     "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":60,\"name\":\"q\"}}\n"
                     "{\"op\":\"insert\",\"edge\":\"K\",\"from\":60,\"to\":60}\n",
                     err);
}

static sluice_status fast_forward(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    co_merge_options options = {.source = "ahead", .operation = *operation};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_merge_result result = {0};
    sluice_status status = co_merge(graph, &options, &executor, &result, err);
    (void)f;
    co_merge_result_free(&result);
    return status;
}

static void prepare_ahead(load_fixture *f)
{
    sluice_error err = {0};
    co_branch_receipt branch = {0};
    pf_id operation = pf_id_new();
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(co_branch_create(graph, &(co_branch_request){.name = "ahead", .operation = pf_id_new()}, &branch, &err));
    ASSERT_OK(mutate_on(graph, "ahead", &operation,
                        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":70,\"name\":\"h\"}}\n", &err));
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_merge_result would = {0};
    ASSERT_OK(co_merge(graph, &(co_merge_options){.source = "ahead", .dry_run = true}, &executor, &would, &err));
    assert_int_equal(would.outcome, CO_MERGE_FAST_FORWARD);
    co_merge_result_free(&would);
    st_graph_close(graph);
}

static sluice_status collect_keeping(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    const co_gc_options options = {.keep = 1};
    co_gc_report report = {0};
    (void)f, (void)operation;
    return co_gc_with(graph, &options, &report, err);
}

static uint64_t active_segment(st_graph *graph)
{
    sluice_error err = {0};
    st_log *log = NULL;
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    ASSERT_OK(st_log_refresh(log, &err));
    return st_log_end(log).segment;
}

/* Writes until the next one needs a new segment; or, `beyond`, until it has one. */
static void fill_segment(load_fixture *f, bool beyond)
{
    for (;;) {
        load_fixture next;
        matrix_copy(f, 1, &next);
        st_graph *graph = load_fixture_open(&next);
        uint64_t before = active_segment(graph);
        st_graph_close(graph);
        matrix_do(&next, matrix_next_write);
        graph = load_fixture_open(&next);
        bool full = active_segment(graph) != before;
        st_graph_close(graph);
        if (full && !beyond) {
            pf_sim_disk_free(next.disk);
            return;
        }
        pf_sim_disk_free(f->disk);
        f->disk = next.disk;
        if (full)
            return;
    }
}

/* The last one of the two writes may be what does not fit any more. */
static void prepare_full_segment(load_fixture *f)
{
    fill_segment(f, false);
    load_fixture next;
    matrix_copy(f, 1, &next);
    st_graph *graph = load_fixture_open(&next);
    uint64_t before = active_segment(graph);
    st_graph_close(graph);
    matrix_do(&next, matrix_mutate);
    graph = load_fixture_open(&next);
    bool full = active_segment(graph) != before;
    st_graph_close(graph);
    pf_sim_disk_free(next.disk);
    if (full)
        return;
    pf_id operation = pf_id_new();
    sluice_error err = {0};
    graph = load_fixture_open(f);
    ASSERT_OK(mutate_on(graph, NULL, &operation,
                        "{\"op\":\"update\",\"node\":\"P\",\"key\":4,\"set\":{\"name\":\"dd\"}}\n", &err));
    st_graph_close(graph);
}

/* Nothing but the head keeps what lies in the first one. */
static void prepare_two_segments(load_fixture *f)
{
    matrix_do(f, checkpoint_delete);
    matrix_do(f, branch_delete);
    fill_segment(f, true);
    matrix_do(f, matrix_next_write);
}

static void prepare_deleted_branch(load_fixture *f)
{
    matrix_do(f, branch_delete);
}

/* Of a write: the first disk on which its rows can be read, though nothing of it is synced. */
static void prepare_unsettled(load_fixture *f)
{
    sluice_error err = {0};
    recording writes = {0};
    uint64_t before = load_fixture_generation(f);
    st_graph *graph = load_fixture_open(f);
    pf_id operation = pf_id_new();
    recording_begin(&writes, f->disk);
    ASSERT_OK(mutate_on(graph, NULL, &operation,
                        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":80,\"name\":\"u\"}}\n", &err));
    recording_end(&writes);
    st_graph_close(graph);
    for (uint32_t i = 0;; i++) {
        assert_true(i < writes.count);
        load_fixture at = {.folder = f->folder};
        ASSERT_OK(pf_sim_disk_clone(writes.disks[i], 1, &at.disk, &err));
        if (load_fixture_generation(&at) > before) {
            pf_sim_disk_free(f->disk);
            f->disk = at.disk;
            break;
        }
        pf_sim_disk_free(at.disk);
    }
    recording_free(&writes);
}

/* A write whose record stands in the log while its sync has failed: the log is suspect. */
static void prepare_suspect(load_fixture *f, pf_sim_loss outcome)
{
    for (uint64_t k = 1;; k++) {
        sluice_error err = {0};
        load_fixture at;
        pf_id operation = pf_id_new();
        matrix_copy(f, k, &at);
        pf_sim_set_failed_sync(at.disk, outcome);
        st_graph *graph = load_fixture_open(&at);
        pf_sim_fail_at(st_graph_volume(graph), k, EIO, 1);
        sluice_status status = mutate_on(
            graph, NULL, &operation, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":80,\"name\":\"u\"}}\n", &err);
        pf_sim_kill(st_graph_volume(graph));
        st_graph_close(graph);
        if (status == SLUICE_SUSPECT) {
            pf_sim_disk_free(f->disk);
            f->disk = at.disk;
            return;
        }
        pf_sim_disk_free(at.disk);
        assert_int_not_equal(status, SLUICE_OK); /* beyond its last call */
    }
}

static void prepare_suspect_lost(load_fixture *f)
{
    prepare_suspect(f, PF_SIM_LOSE_ALL);
}

static void prepare_suspect_kept(load_fixture *f)
{
    prepare_suspect(f, PF_SIM_KEEP_ALL);
}

/* A write from the region that took the place of one that was given up. */
static const pf_id given_up = {{7, 7, 7}};

static sluice_status void_epoch(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    wk_executor executor = {.workers = 1, .epoch = pf_id_new(), .given_up = &given_up, .given_up_count = 1};
    (void)f, (void)operation;
    return co_epochs_void(graph, &executor, PF_AT_ONCE, err);
}

static sluice_status mutate_voiding(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    static const char text[] = "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":90,\"name\":\"v\"}}\n";
    co_mutate_options options = {.path = "m.jsonl", .operation = *operation};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new(), .given_up = &given_up, .given_up_count = 1};
    co_mutate_result result = {0};
    (void)f;
    return co_mutate_text(graph, &options, &executor, text, strlen(text), &result, err);
}

static sluice_status claim(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    lk_claim *claim = NULL;
    (void)f, (void)operation;
    PF_TRY(lk_claim_take(st_graph_volume(graph), LK_CLAIM_RETENTION, PF_AT_ONCE, &claim, err));
    sluice_status status = lk_claim_check(claim, err);
    lk_claim_release(claim);
    return status;
}

static sluice_status back_up(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    static uint32_t process;
    pf_volume *copy = NULL;
    co_backup_report report = {0};
    (void)operation;
    PF_TRY(pf_sim_actor(f->disk, "copy", &copy, err));
    pf_sim_set_process(copy, ++process);
    pf_sim_set_process(st_graph_volume(graph), process);
    return co_backup_on(graph, copy, NULL, NULL, &report, err);
}

static void prepare_copy_folder(load_fixture *f)
{
    sluice_error err = {0};
    pf_volume *copy = NULL;
    ASSERT_OK(pf_sim_actor(f->disk, "copy", &copy, &err));
    pf_volume_close(copy);
}

static void prepare_older_copy(load_fixture *f)
{
    matrix_do(f, back_up);
    matrix_do(f, matrix_mutate);
    matrix_do(f, branch_delete);
}

static void prepare_unsettled_segments(load_fixture *f)
{
    prepare_two_segments(f);
    prepare_unsettled(f);
}

/* Names that went though nothing of that is synced: the first disk without them. */
static void prepare_by_death(load_fixture *f, matrix_run *run)
{
    sluice_error err = {0};
    recording steps = {0};
    pf_id operation = pf_id_new();
    char *before = matrix_see(f);
    st_graph *graph = load_fixture_open(f);
    recording_begin(&steps, f->disk);
    ASSERT_OK(run(f, graph, &operation, &err));
    recording_end(&steps);
    st_graph_close(graph);
    for (uint32_t i = 0;; i++) {
        assert_true(i < steps.count);
        load_fixture at = {.folder = f->folder};
        ASSERT_OK(pf_sim_disk_clone(steps.disks[i], 1, &at.disk, &err));
        char *now = matrix_see(&at);
        bool gone = strcmp(now, before) != 0;
        free(now);
        if (gone) {
            pf_sim_disk_free(f->disk);
            f->disk = at.disk;
            break;
        }
        pf_sim_disk_free(at.disk);
    }
    free(before);
    recording_free(&steps);
}

static void prepare_dying_deletion(load_fixture *f)
{
    prepare_by_death(f, branch_delete);
}

/* A checkpoint of a branch that is gone. */
static void prepare_dying_checkpoint(load_fixture *f)
{
    sluice_error err = {0};
    co_checkpoint_receipt receipt = {0};
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(co_checkpoint_delete(graph, &(co_checkpoint_request){.name = "early", .operation = pf_id_new()}, &receipt,
                                   &err));
    ASSERT_OK(co_checkpoint_create(
        graph, &(co_checkpoint_request){.name = "early", .branch = "b", .operation = pf_id_new()}, &receipt, &err));
    st_graph_close(graph);
    matrix_do(f, branch_delete);
    prepare_by_death(f, checkpoint_delete);
}

const matrix_writer matrix_more[MATRIX_MORE] = {
    {.name = "mutate-edges", .run = mutate_edges},
    {.name = "fast-forward", .run = fast_forward, .prepare = prepare_ahead},
    {.name = "segment-switch", .run = matrix_mutate, .prepare = prepare_full_segment},
    {.name = "gc-deleted-branch", .run = matrix_collect, .prepare = prepare_deleted_branch, .unseen = true},
    {.name = "gc-keep", .run = collect_keeping, .prepare = prepare_two_segments, .unseen = true},
    {.name = "gc-keep-unsettled",
     .run = collect_keeping,
     .prepare = prepare_unsettled_segments,
     .unsettled = true,
     .unseen = true},
    {.name = "gc-dying-deletion",
     .run = matrix_collect,
     .prepare = prepare_dying_deletion,
     .unsettled = true,
     .unseen = true},
    {.name = "gc-dying-checkpoint",
     .run = matrix_collect,
     .prepare = prepare_dying_checkpoint,
     .unsettled = true,
     .unseen = true},
    {.name = "settle-by-writer", .run = mutate_edges, .prepare = prepare_unsettled, .unsettled = true},
    {.name = "settle", .run = matrix_recover, .prepare = prepare_unsettled, .unsettled = true, .unseen = true},
    {.name = "heal-by-writer", .run = mutate_edges, .prepare = prepare_suspect_kept, .unsettled = true},
    {.name = "heal-kept", .run = matrix_recover, .prepare = prepare_suspect_kept, .unsettled = true, .unseen = true},
    {.name = "heal-lost", .run = matrix_recover, .prepare = prepare_suspect_lost, .unsettled = true, .unseen = true},
    {.name = "epoch-void", .run = mutate_voiding, .halfway = void_epoch},
    {.name = "claim", .run = claim, .unseen = true},
    {.name = "backup", .run = back_up, .prepare = prepare_copy_folder, .copies = true},
    {.name = "backup-again", .run = back_up, .prepare = prepare_older_copy, .copies = true},
};

/* ---- the graph that all begin with ---- */

static void say(load_fixture *f, const char *branch, const char *text)
{
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    ASSERT_OK(mutate_on(f->graph, branch, &operation, text, &err));
}

void matrix_base(load_fixture *f)
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

void matrix_copy(const load_fixture *base, uint64_t seed, load_fixture *ret_copy)
{
    sluice_error err = {0};
    *ret_copy = (load_fixture){.folder = base->folder};
    ASSERT_OK(pf_sim_disk_clone(base->disk, seed, &ret_copy->disk, &err));
}

void matrix_do(load_fixture *f, matrix_run *run)
{
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(run(f, graph, &operation, &err));
    st_graph_close(graph);
}

static void kill_at(void *context, pf_failpoint point)
{
    struct killing {
        pf_failpoint point;
        pf_volume *volume;
    } *killing = context;
    if (point == killing->point)
        pf_sim_kill(killing->volume);
}

void matrix_prepare(const load_fixture *base, const matrix_writer *writer, load_fixture *ret_ready)
{
    matrix_copy(base, 1, ret_ready);
    if (writer->prepare)
        writer->prepare(ret_ready);
    if (!writer->after_dead)
        return;
    sluice_error err = {0};
    pf_id operation = pf_id_new();
    st_graph *graph = load_fixture_open(ret_ready);
    struct {
        pf_failpoint point;
        pf_volume *volume;
    } killing = {writer->dead_at, st_graph_volume(graph)};
    pf_failpoints_watch(kill_at, &killing);
    assert_int_not_equal(load(ret_ready, graph, &operation, &err), SLUICE_OK);
    pf_failpoints_watch(NULL, NULL);
    assert_true(pf_sim_is_dead(killing.volume));
    st_graph_close(graph);
}

sluice_status matrix_next_write(load_fixture *f, st_graph *graph, const pf_id *operation, sluice_error *err)
{
    pf_id second = pf_id_new();
    (void)f;
    PF_TRY(mutate_on(graph, NULL, operation, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":900}}\n", err));
    return mutate_on(graph, NULL, &second, "{\"op\":\"delete\",\"node\":\"P\",\"key\":900}\n", err);
}
