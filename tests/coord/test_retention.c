/*
 * Letting go of history: what is kept reads as before, what went says so, and a collection that dies at any call leaves
 * everything that is kept; two at once, and one whose claim was taken over.
 */
#include "coord/branch.h"
#include "coord/checkpoint.h"
#include "coord/recover.h"
#include "die.h"
#include "locks/claim.h"
#include "platform/digest.h"
#include "sweep.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define STEP 3 /* the same code at fewer places */
#else
#define STEP 1
#endif

static co_gc_report collect(st_graph *graph, uint64_t keep, bool dry)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    const co_gc_options options = {.dry_run = dry, .keep = keep};
    ASSERT_OK(co_gc_with(graph, &options, &report, &err));
    return report;
}

/* Keys first .. last of A, one commit each: after generation g of main stand the keys below g. */
static void write_keys(st_graph *graph, const char *branch, int64_t first, int64_t last)
{
    sluice_error err = {0};
    const toy_options on = {.branch = branch};
    for (int64_t key = first; key <= last; key++) {
        toy_writer toy = toy_of("A", key, 1);
        ASSERT_OK(toy_write(graph, &toy, &on, NULL, &err));
    }
}

static void make_branch(st_graph *graph, const char *name, const char *at)
{
    sluice_error err = {0};
    co_branch_receipt receipt;
    const co_branch_request request = {.name = name, .at = at, .operation = pf_id_new()};
    ASSERT_OK(co_branch_create(graph, &request, &receipt, &err));
}

static void checkpoint(st_graph *graph, const char *at)
{
    sluice_error err = {0};
    co_checkpoint_receipt receipt;
    const co_checkpoint_request request = {.name = "kept", .at = at, .operation = pf_id_new()};
    ASSERT_OK(co_checkpoint_create(graph, &request, &receipt, &err));
}

static uint32_t rows_of(st_snapshot *snapshot)
{
    sluice_error err = {0};
    const st_type_def *type = NULL;
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    uint32_t rows = 0;
    ASSERT_OK(st_snapshot_type(snapshot, "A", &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        rows += (uint32_t)batch->rows;
    }
    st_scan_close(scan);
    return rows;
}

static uint32_t rows_at(st_graph *graph, const char *branch, const char *at)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, branch, at, &snapshot, &err));
    uint32_t rows = rows_of(snapshot);
    st_snapshot_close(snapshot);
    return rows;
}

static void expect_collected(st_graph *graph, const char *branch, const char *at)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    assert_int_equal(st_snapshot_open(graph, branch, at, &snapshot, &err), SLUICE_NOT_FOUND);
    assert_non_null(strstr(err.message, "was collected"));
    assert_non_null(strstr(err.details, "\"collected\":true"));
    assert_true(err.hint[0] != '\0');
}

static void what_is_kept_reads_as_before_and_the_rest_says_that_it_went(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_snapshot *pinned = NULL;
    const toy_options none = {0};
    pf_sim_disk *disk = toy_disk(5);
    st_graph *graph = toy_open(disk), *reader = toy_open(disk);
    (void)none;
    write_keys(graph, "main", 1, 40);
    checkpoint(graph, "20");
    make_branch(graph, "b", "30");
    write_keys(graph, "b", 1000, 1001);
    write_keys(graph, "main", 41, 110);
    ASSERT_OK(st_snapshot_open(reader, NULL, "70", &pinned, &err));

    co_gc_report report = collect(graph, 3, true);
    assert_true(report.generations > 0 && report.files > 0);
    assert_int_equal(rows_at(graph, NULL, "50"), 49); /* a dry run changes nothing */
    co_gc_report real = collect(graph, 3, false);
    assert_int_equal(real.generations, report.generations);
    assert_int_equal(real.files, report.files);
    assert_int_equal(real.bytes, report.bytes);

    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(rows_at(graph, NULL, NULL), 110);
        assert_int_equal(rows_at(graph, NULL, "109"), 108);
        assert_int_equal(rows_at(graph, NULL, "kept"), 19);
        assert_int_equal(rows_at(graph, NULL, "30"), 29); /* where b begins */
        assert_int_equal(rows_at(graph, "b", NULL), 31);
        assert_int_equal(rows_at(graph, "b", "31"), 30);
        assert_int_equal(rows_of(pinned), 69);
        assert_int_equal(rows_at(reader, NULL, "90"), 89); /* behind a pin everything stays */
        expect_collected(graph, NULL, "50");
        expect_collected(graph, "b", "29");
        die_expect_whole(disk);
        st_graph_close(graph); /* a fresh process sees the same */
        graph = toy_open(disk);
    }
    st_snapshot_close(pinned);
    report = collect(graph, 3, false);
    assert_true(report.generations > 0 && report.files > 0);
    expect_collected(graph, NULL, "70");
    expect_collected(graph, NULL, "108");
    assert_int_equal(rows_at(graph, NULL, "109"), 108);
    die_expect_whole(disk);
    die_expect_no_litter(disk);
    write_keys(graph, "main", 111, 111);
    write_keys(graph, "b", 1002, 1002);
    st_graph_close(graph);
    st_graph_close(reader);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* A commit of a segment that is gone is found by id and by op id, and names its place; `--at` says that it went. */
static void commits_of_segments_that_are_gone_stay_known(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_receipt first = {0}, again = {0};
    const toy_options given = {.operation = pf_id_new(), .given = true};
    toy_writer toy = toy_of("A", 500, 1);
    pf_sim_disk *disk = toy_disk(6);
    st_graph *graph = toy_open(disk);
    toy_options options = given;
    options.operation = pf_id_new();
    ASSERT_OK(toy_write(graph, &toy, &options, &first, &err));
    write_keys(graph, "main", 1, 130);
    co_gc_report report = collect(graph, 1, false);
    assert_true(report.segments >= 1);
    st_graph_close(graph);
    graph = toy_open(disk);
    st_log *log = NULL;
    uint64_t generation = 0;
    uint32_t index = 0;
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    ASSERT_OK(st_commit_find(graph, log, &first.commit, &generation, &index, &err));
    assert_int_equal(generation, first.generation);
    st_record record = {0};
    assert_int_equal(st_log_read(log, generation, &record, &err), SLUICE_NOT_FOUND);
    err = (sluice_error){0};
    ASSERT_OK(st_log_read_lineage(log, generation, &record, &err));
    assert_true(record.collected);
    st_record_free(&record);
    char id[PF_ID_TEXT];
    pf_id_text(&first.commit, id);
    expect_collected(graph, NULL, id);
    toy = toy_of("A", 500, 1);
    ASSERT_OK(toy_write(graph, &toy, &options, &again, &err)); /* an exact retry, long after */
    assert_true(again.repeated && pf_id_equal(&again.commit, &first.commit));
    assert_int_equal(again.inserted, 1);
    die_expect_whole(disk);
    die_expect_no_litter(disk);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

/* ---- deaths ---- */

static const struct {
    pf_sim_fate fate;
    pf_sim_loss loss;
} strikes[] = {{PF_SIM_DIE, PF_SIM_KEEP_ALL},
               {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
               {PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
               {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST}};

#define LAST 74 /* the last key of main; generation LAST + 1 */

/* Two segments, of which the first is needed by generations that the next collection lets go of; a checkpoint and a
 * branch that it keeps. Most of what is old went before. */
static pf_sim_disk *prepare(void)
{
    pf_sim_disk *disk = toy_disk(77);
    st_graph *graph = toy_open(disk);
    write_keys(graph, "main", 1, LAST);
    (void)collect(graph, 15, false);
    checkpoint(graph, "70");
    make_branch(graph, "b", "72");
    write_keys(graph, "b", 1000, 1000);
    st_graph_close(graph);
    return disk;
}

static void expect_kept(pf_sim_disk *disk, uint32_t more)
{
    st_graph *graph = toy_open(disk);
    assert_int_equal(rows_at(graph, NULL, NULL), LAST + more);
    assert_int_equal(rows_at(graph, NULL, "kept"), 69);
    assert_int_equal(rows_at(graph, "b", NULL), 72);
    assert_int_equal(rows_at(graph, "b", "72"), 71);
    st_graph_close(graph);
}

static void a_collection_that_dies_at_any_call_keeps_what_is_kept(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *disk = NULL;
    const co_gc_options options = {.keep = 2};
    bool thorough = getenv("SLUICE_LONG") != NULL;
    bool segments = false;

    for (uint64_t k = 1;; k += thorough ? 1
                               : k < 12 || k > 80
                                   ? STEP
                                   : 5 * STEP) { /* in the middle: moves and deletions, one like the other */
        bool done = false;
        for (unsigned n = 0; n < 8; n++) {
            if (!thorough && n != k % 8 && n != (k + 3) % 8)
                continue;
            co_gc_report report = {0};
            ASSERT_OK(pf_sim_disk_clone(origin, 50 * k + n, &disk, &err));
            st_graph *graph = toy_open(disk);
            pf_sim_crash_at(st_graph_volume(graph), k, n % 2 == 0, strikes[n / 2].fate, strikes[n / 2].loss);
            sluice_status status = co_gc_with(graph, &options, &report, NULL);
            done = status == SLUICE_OK && !pf_sim_is_dead(st_graph_volume(graph));
            st_graph_close(graph);
            expect_kept(disk, 0);
            if (thorough)
                die_expect_whole(disk);
            die_expect_next_write(disk, 100);
            graph = toy_open(disk);
            report = collect(graph, 3, false);
            segments |= report.segments > 0;
            expect_collected(graph, NULL, "65");
            assert_int_equal(collect(graph, 3, false).files, 0); /* nothing is left behind */
            st_graph_close(graph);
            expect_kept(disk, 1);
            die_expect_whole(disk);
            pf_sim_disk_free(disk);
        }
        if (done)
            break;
    }
    assert_true(segments);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- others at the same time ---- */

typedef struct rival {
    pf_sim_disk *disk;
    sluice_status status;
} rival;

static void collect_too(void *context)
{
    rival *other = context;
    co_gc_report report;
    const co_gc_options options = {.keep = 1};
    st_graph *graph = toy_open(other->disk);
    other->status = co_gc_with(graph, &options, &report, NULL);
    st_graph_close(graph);
}

static void two_collections_at_once_exclude_each_other(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *disk = NULL;
    for (uint64_t k = 1; k < 60; k += 19 * STEP) {
        co_gc_report report;
        const co_gc_options options = {.keep = 2};
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        rival other = {.disk = disk};
        st_graph *graph = toy_open(disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k + 2, collect_too, &other); /* the claim is held by then */
        ASSERT_OK(co_gc_with(graph, &options, &report, &err));
        assert_int_equal(other.status, SLUICE_LIVE_WRITER_CONTENTION);
        st_graph_close(graph);
        expect_kept(disk, 0);
        die_expect_whole(disk);
        pf_sim_disk_free(disk);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* As a new owner on another machine state would: the next sequence and term, another token. */
static void take_over(void *context)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    pf_file *file = NULL;
    uint8_t sector[512], other[512];
    ASSERT_OK(pf_sim_actor(context, "graph", &volume, &err));
    ASSERT_OK(pf_open(volume, LK_CLAIMS_FILE, PF_WRITE, &file, &err));
    ASSERT_OK(pf_read_exact(file, 0, other, sizeof other, &err));
    ASSERT_OK(pf_read_exact(file, 2048, sector, sizeof sector, &err));
    bool first = other[16] > sector[16]; /* few takes: one byte of the sequence tells */
    if (first)
        memcpy(sector, other, sizeof sector);
    sector[16]++;
    sector[24]++;
    sector[40] ^= 1;
    uint64_t check = pf_xxh64_of(sector, 504);
    for (unsigned i = 0; i < 8; i++)
        sector[504 + i] = (uint8_t)(check >> (8 * i));
    ASSERT_OK(pf_write(file, first ? 2048 : 0, sector, sizeof sector, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void one_whose_claim_was_taken_over_does_nothing_more(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *disk = NULL;
    for (uint64_t k = 3; k < 60; k += 8 * STEP) {
        co_gc_report report;
        const co_gc_options options = {.keep = 2};
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        st_graph *graph = toy_open(disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k, take_over, disk);
        assert_int_equal(co_gc_with(graph, &options, &report, &err), SLUICE_FENCED);
        st_graph_close(graph);
        expect_kept(disk, 0);
        die_expect_whole(disk);
        graph = toy_open(disk);
        (void)collect(graph, 2, false);
        st_graph_close(graph);
        expect_kept(disk, 0);
        die_expect_no_litter(disk);
        pf_sim_disk_free(disk);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

typedef struct beside {
    pf_sim_disk *disk;
    int64_t key;
    bool optimizes, pins, wrote;
    st_graph *graph;
    st_snapshot *pinned;
} beside;

/* Another process writes, makes a branch and a checkpoint of old commits, reads, optimizes. */
static bool is_fair(sluice_status status) /* one who waits for a lock that the interrupted one holds waits in vain */
{
    return status == SLUICE_OK || status == SLUICE_NOT_FOUND || status == SLUICE_LIVE_WRITER_CONTENTION;
}

static void act_beside(void *context)
{
    beside *other = context;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", other->key, 1);
    st_graph *graph = toy_open(other->disk);
    if (other->optimizes) {
        co_receipt receipt;
        assert_true(is_fair(sweep_maintain(graph, CO_OPTIMIZE, "A", &receipt, &err)));
    }
    sluice_status status = toy_write(graph, &toy, NULL, NULL, &err);
    assert_true(is_fair(status));
    other->wrote = status == SLUICE_OK;
    if (other->pins) {
        other->graph = toy_open(other->disk);
        assert_true(is_fair(st_snapshot_open(other->graph, NULL, "66", &other->pinned, &err)));
        co_checkpoint_receipt receipt;
        const co_checkpoint_request request = {.name = "late", .at = "67", .operation = pf_id_new()};
        assert_true(is_fair(co_checkpoint_create(graph, &request, &receipt, &err)));
    }
    st_graph_close(graph);
}

static void whoever_comes_between_two_of_its_steps_keeps_what_he_got(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *disk = NULL;
    for (uint64_t k = 1; k < 90; k += STEP * (k < 12 ? 2 : 7)) {
        co_gc_report report;
        const co_gc_options options = {.keep = 2};
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        beside other = {.disk = disk, .key = 200, .optimizes = k % 3 == 1, .pins = k % 3 != 1};
        st_graph *graph = toy_open(disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k, act_beside, &other);
        sluice_status status = co_gc_with(graph, &options, &report, &err);
        if (status != SLUICE_OK)
            print_error("k %llu: %s\n", (unsigned long long)k, err.message);
        assert_int_equal(status, SLUICE_OK);
        if (other.pinned)
            assert_int_equal(rows_of(other.pinned), 65);
        st_snapshot *late = NULL;
        status = st_snapshot_open(graph, NULL, "late", &late, &err);
        if (status == SLUICE_OK)
            assert_int_equal(rows_of(late), 66);
        st_snapshot_close(late);
        st_snapshot_close(other.pinned);
        st_graph_close(other.graph);
        (void)collect(graph, 2, false);
        st_graph_close(graph);
        expect_kept(disk, other.wrote ? 1 : 0);
        die_expect_whole(disk);
        die_expect_no_litter(disk);
        pf_sim_disk_free(disk);
    }
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* A pin is the snapshot's own: a lock of the process would fall with the first of the two. */
static void of_two_readers_of_one_generation_each_keeps_it(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_snapshot *first = NULL, *second = NULL;
    pf_sim_disk *disk = toy_disk(8);
    st_graph *graph = toy_open(disk), *reader = toy_open(disk);
    write_keys(graph, "main", 1, 9);
    ASSERT_OK(st_snapshot_open(reader, NULL, NULL, &first, &err));
    ASSERT_OK(st_snapshot_open(reader, NULL, NULL, &second, &err));
    write_keys(graph, "main", 10, 60);
    st_snapshot_close(first);
    (void)collect(graph, 1, false);
    assert_int_equal(rows_of(second), 9);
    st_snapshot_close(second);
    assert_true(collect(graph, 1, false).generations > 0); /* nobody reads it any more */
    expect_collected(graph, NULL, "10");
    st_graph_close(reader);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_reads_as_before_and_the_rest_says_that_it_went),
        cmocka_unit_test(of_two_readers_of_one_generation_each_keeps_it),
        cmocka_unit_test(commits_of_segments_that_are_gone_stay_known),
        cmocka_unit_test(a_collection_that_dies_at_any_call_keeps_what_is_kept),
        cmocka_unit_test(two_collections_at_once_exclude_each_other),
        cmocka_unit_test(one_whose_claim_was_taken_over_does_nothing_more),
        cmocka_unit_test(whoever_comes_between_two_of_its_steps_keeps_what_he_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
