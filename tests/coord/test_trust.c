/*
 * What somebody else left is not believed before it is durable, and what a writer says is durable before it is said:
 * places where a power loss would take back what an answer or a later step relied on. Each was found by planting the
 * defect that it shows (tests/sabotage), which nothing else saw.
 */
#include "coord/audit.h"
#include "coord/branch.h"
#include "coord/intent.h"
#include "coord/recover.h"
#include "die.h"
#include "sweep.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 400u

static const ad_effect move = {.kind = AD_EFFECT_MOVE, .from = "cache/from", .to = "cache/to"};

static pf_sim_disk *prepare(void)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 2);
    pf_file *file = NULL;
    pf_sim_disk *disk = toy_disk(11);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    ASSERT_OK(pf_create(st_graph_volume(graph), move.from, &file, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_sync_dir(st_graph_volume(graph), "cache", &err));
    st_graph_close(graph);
    return disk;
}

static sluice_status branch(st_graph *graph, bool make, sluice_error *err)
{
    co_branch_receipt receipt;
    const co_branch_request request = {.name = "b", .operation = pf_id_new()};
    return make ? co_branch_create(graph, &request, &receipt, err) : co_branch_delete(graph, &request, &receipt, err);
}

/* Runs `act` in a process that dies at call k of it, on a copy of the disk; *ret_done: it came to its end. */
typedef sluice_status act_fn(st_graph *graph, sluice_error *err);
static pf_sim_disk *die_in(const pf_sim_disk *origin, act_fn *act, uint64_t k, bool before, bool *ret_done)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
    st_graph *graph = toy_open(disk);
    pf_sim_crash_at(st_graph_volume(graph), k, before, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    sluice_error ignored = {0};
    (void)act(graph, &ignored);
    *ret_done = !pf_sim_is_dead(st_graph_volume(graph));
    st_graph_close(graph);
    return disk;
}

static sluice_status make_branch(st_graph *graph, sluice_error *err)
{
    return branch(graph, true, err);
}

static void a_branch_that_a_dead_one_made_is_durable_before_a_write_to_it_is_answered(void **state)
{
    (void)state;
    static const int64_t all[] = {1, 2, 50};
    const toy_options on_b = {.branch = "b"};
    pf_sim_disk *origin = prepare();
    unsigned found = 0;
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
        for (unsigned before = 0; before < 2; before++) {
            sluice_error err = {0};
            int64_t keys[8];
            pf_sim_disk *disk = die_in(origin, make_branch, k, before, &done);
            toy_writer toy = toy_of("A", 50, 1);
            st_graph *graph = toy_open(disk);
            bool answered = toy_write(graph, &toy, &on_b, NULL, &err) == SLUICE_OK;
            st_graph_close(graph);
            pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
            if (answered) {
                graph = toy_open(disk);
                assert_int_equal(toy_keys_on(graph, "b", "A", keys, 8), 3);
                assert_memory_equal(keys, all, sizeof all);
                st_graph_close(graph);
                found++;
            }
            pf_sim_disk_free(disk);
        }
        assert_true(k < CALLS_MAX);
    }
    assert_true(found > 2);
    pf_sim_disk_free(origin);
}

static sluice_status move_with_a_commit_on_b(st_graph *graph, sluice_error *err)
{
    const toy_options on_b = {.branch = "b"};
    toy_writer toy = toy_of("A", 50, 1);
    toy.effects[0] = move;
    toy.effect_count = 1;
    return toy_write(graph, &toy, &on_b, NULL, err);
}

static bool is_moved(pf_sim_disk *disk)
{
    pf_stat stat;
    st_graph *graph = toy_open(disk);
    bool there = pf_stat_path(st_graph_volume(graph), move.to, &stat, NULL) == SLUICE_OK;
    assert_int_equal(pf_stat_path(st_graph_volume(graph), move.from, &stat, NULL) == SLUICE_OK, !there);
    st_graph_close(graph);
    return there;
}

static void an_intent_that_was_retired_before_its_branch_went_stays_retired(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare();
    st_graph *graph = toy_open(origin);
    unsigned moved = 0;
    bool done = false;
    ASSERT_OK(branch(graph, true, &err));
    st_graph_close(graph);
    for (uint64_t k = 1; !done; k++) {
        for (unsigned before = 0; before < 2; before++) {
            pf_sim_disk *disk = die_in(origin, move_with_a_commit_on_b, k, before, &done);
            graph = toy_open(disk);
            ASSERT_OK(branch(graph, false, &err));
            st_graph_close(graph);
            bool was = is_moved(disk);
            pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
            die_recover(disk);
            assert_int_equal(is_moved(disk), was);
            moved += was;
            pf_sim_disk_free(disk);
        }
        assert_true(k < CALLS_MAX);
    }
    assert_true(moved > 2);
    pf_sim_disk_free(origin);
}

/* ---- a plan in a side file ---- */

#define MANY 4000u

static void read_many(void *context)
{
    sluice_error err = {0};
    toy_writer *toy = context;
    co_read read = {.kind = CO_READ_KEY_ABSENT, .set = {.table = toy->table, .hash_count = MANY}};
    read.set.hashes = malloc(MANY * sizeof *read.set.hashes);
    assert_non_null(read.set.hashes);
    for (uint64_t i = 0; i < MANY; i++)
        read.set.hashes[i] = (i + 1) * 0x1000193u;
    ASSERT_OK(co_read_set_add(&toy->write->reads, &read, &err));
}

static sluice_status write_with_a_side_file(st_graph *graph, sluice_error *err)
{
    toy_writer toy = toy_of("A", 10, 3);
    toy.after_plan = read_many;
    toy.context = &toy;
    return toy_write(graph, &toy, NULL, NULL, err);
}

static void a_write_whose_plan_is_in_a_file_leaves_old_or_new(void **state)
{
    (void)state;
    static const int64_t old_keys[] = {1, 2}, new_keys[] = {10, 11, 12};
    static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_RANDOM};
    pf_sim_disk *origin = prepare();
    unsigned confirmed = 0;
    bool done = false;
    for (uint64_t k = 1; !done; k++) {
        for (unsigned n = 0; n < 4; n++) {
            pf_sim_disk *disk = die_in(origin, write_with_a_side_file, k, n % 2, &done);
            pf_sim_power_loss(disk, losses[n / 2]);
            die_found found = die_look(disk);
            die_recover(disk);
            bool is_new = die_expect_old_or_new(disk, old_keys, 2, new_keys, 3);
            assert_true(is_new || !found.confirmed);
            confirmed += found.confirmed;
            die_expect_next_write(disk, 100);
            pf_sim_disk_free(disk);
        }
        assert_true(k < CALLS_MAX);
    }
    assert_true(confirmed > 4);
    pf_sim_disk_free(origin);
}

/* ---- recovery ---- */

static void an_intent_with_another_content_than_its_commit_is_corruption(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_receipt receipt = {0};
    co_slot slot = {0};
    pf_volume *volume = NULL;
    pf_sim_disk *disk = prepare();
    toy_writer toy = toy_of("A", 10, 1);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, &receipt, &err));
    co_intent intent = {.kind = "load", .branch = "main", .version = 1, .plan_inline = true};
    intent.scope = (co_scope){
        .incarnation = ST_MAIN_INCARNATION, .all = true, .commit = receipt.commit, .operation = receipt.operation};
    intent.delta = pf_sha256_of("another", 7);
    ASSERT_OK(pf_buffer_append_text(&intent.plan, "no plan", &err));
    intent.plan_length = intent.plan.length;
    intent.plan_digest = pf_sha256_of(intent.plan.data, intent.plan.length);
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(co_slot_take(volume, &slot, &err));
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err));
    pf_sim_kill(volume);
    co_slot_release(&slot);
    pf_volume_close(volume);
    for (unsigned i = 0; i < 2; i++) /* everything is kept, so that it is said again */
        ASSERT_FAILS(SLUICE_CORRUPT, co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    assert_true(die_look(disk).confirmed);
    co_intent_free(&intent);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static sluice_status count_row(void *context, const co_audit_row *row, sluice_error *err)
{
    (void)row;
    (void)err;
    ++*(unsigned *)context;
    return SLUICE_OK;
}

static sluice_status recover(st_graph *graph, sluice_error *err)
{
    return co_recover(graph, CO_RECOVER_AUTOMATIC, 0, NULL, 0, NULL, NULL, err);
}

static sluice_status write_new(st_graph *graph, sluice_error *err)
{
    toy_writer toy = toy_of("A", 10, 3);
    return toy_write(graph, &toy, NULL, NULL, err);
}

static void what_recovery_did_is_in_the_audit_before_its_intent_goes(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(), *left = NULL;
    bool done = false;
    for (uint64_t k = 1; !left || !die_look(left).confirmed; k++) {
        pf_sim_disk_free(left);
        left = die_in(origin, write_new, k, false, &done);
        assert_false(done);
    }
    for (uint64_t k = 1; !done; k++) {
        for (unsigned before = 0; before < 2; before++) {
            unsigned rows = 0;
            pf_sim_disk *disk = die_in(left, recover, k, before, &done);
            die_recover(disk);
            st_graph *graph = toy_open(disk);
            ASSERT_OK(co_audit_list(graph, count_row, &rows, &err));
            assert_int_equal(rows, 1);
            st_graph_close(graph);
            pf_sim_disk_free(disk);
        }
        assert_true(k < CALLS_MAX);
    }
    pf_sim_disk_free(left);
    pf_sim_disk_free(origin);
}

/* ---- readers ---- */

static uint32_t rows_of(st_snapshot *snapshot)
{
    sluice_error err = {0};
    const st_type_def *type = NULL;
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    ASSERT_OK(st_snapshot_type(snapshot, "A", &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    ASSERT_OK(st_scan_next(scan, &batch, &err));
    uint32_t rows = batch ? (uint32_t)batch->rows : 0;
    st_scan_close(scan);
    return rows;
}

static uint64_t collect_least(st_graph *graph)
{
    sluice_error err = {0};
    const co_gc_options least = {.keep = 1};
    co_gc_report report = {0};
    ASSERT_OK(co_gc_with(graph, &least, &report, &err));
    return report.files;
}

/* A disk whose generation 2 names a fragment that no later one does. */
static pf_sim_disk *prepare_replaced(void)
{
    sluice_error err = {0};
    pf_sim_disk *disk = prepare();
    st_graph *graph = toy_open(disk);
    ASSERT_OK(sweep_write(graph, "A", SWEEP_REPLACE, NULL, 0, &err));
    ASSERT_OK(write_new(graph, &err));
    st_graph_close(graph);
    return disk;
}

static void a_pinned_state_is_whole_however_little_a_collection_keeps(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = prepare_replaced();
    st_graph *reader = toy_open(disk), *graph = toy_open(disk);
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(reader, NULL, "2", &snapshot, &err));
    (void)collect_least(graph);
    assert_int_equal(rows_of(snapshot), 2);
    st_snapshot_close(snapshot);
    assert_true(collect_least(graph) > 0); /* and then it goes */
    st_graph_close(reader);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

typedef struct late_reader {
    pf_sim_disk *disk;
    st_graph *graph;
    st_snapshot *snapshot;
} late_reader;

static void pin_late(void *context)
{
    late_reader *reader = context;
    sluice_error err = {0};
    reader->graph = toy_open(reader->disk);
    sluice_status status = st_snapshot_open(reader->graph, NULL, "2", &reader->snapshot, &err);
    assert_true(status == SLUICE_OK || status == SLUICE_NOT_FOUND);
}

static void one_who_pins_while_it_is_collected_has_it_whole_or_not_at_all(void **state)
{
    (void)state;
    pf_sim_disk *origin = prepare_replaced();
    unsigned pinned = 0, late = 0;
    for (uint64_t k = 1; late < 5; k++) {
        sluice_error err = {0};
        late_reader reader = {0};
        ASSERT_OK(pf_sim_disk_clone(origin, k, &reader.disk, &err));
        st_graph *graph = toy_open(reader.disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k, pin_late, &reader);
        (void)collect_least(graph);
        if (reader.snapshot)
            assert_int_equal(rows_of(reader.snapshot), 2);
        pinned += reader.snapshot != NULL;
        late += reader.snapshot == NULL;
        st_snapshot_close(reader.snapshot);
        st_graph_close(reader.graph);
        st_graph_close(graph);
        pf_sim_disk_free(reader.disk);
        assert_true(k < CALLS_MAX);
    }
    assert_true(pinned > 2);
    pf_sim_disk_free(origin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_that_a_dead_one_made_is_durable_before_a_write_to_it_is_answered),
        cmocka_unit_test(an_intent_that_was_retired_before_its_branch_went_stays_retired),
        cmocka_unit_test(a_write_whose_plan_is_in_a_file_leaves_old_or_new),
        cmocka_unit_test(an_intent_with_another_content_than_its_commit_is_corruption),
        cmocka_unit_test(what_recovery_did_is_in_the_audit_before_its_intent_goes),
        cmocka_unit_test(a_pinned_state_is_whole_however_little_a_collection_keeps),
        cmocka_unit_test(one_who_pins_while_it_is_collected_has_it_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
