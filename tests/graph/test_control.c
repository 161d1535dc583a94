/*
 * The control state: numbers never come back, changes are whole or not at all, and its log heals like a branch's.
 */
#include "small_graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sluice_status take_incarnation(void *context, st_control *control, sluice_error *err)
{
    (void)err;
    *(uint64_t *)context = control->next_incarnation++;
    return SLUICE_OK;
}

static uint64_t next_incarnation(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_control control;
    st_graph *graph = small_open(disk, PF_READ);
    ASSERT_OK(st_control_read(graph, &control, &err));
    uint64_t next = control.next_incarnation;
    st_control_free(&control);
    st_graph_close(graph);
    return next;
}

static void numbers_are_handed_out_once_over_all_handles_and_segments(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t got, last = 1;
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graphs[2] = {small_open(disk, PF_WRITE), small_open(disk, PF_WRITE)};
    st_graph *reader = small_open(disk, PF_READ);
    st_control control;

    for (unsigned i = 0; i < 300; i++) { /* 4 KiB each: into the third segment */
        ASSERT_OK(st_control_update(graphs[i % 3 % 2], take_incarnation, &got, PF_AT_ONCE, &err));
        assert_int_equal(got, last + 1);
        last = got;
        if (i % 50 == 0) {
            ASSERT_OK(st_control_read(reader, &control, &err));
            assert_int_equal(control.next_incarnation, last + 1);
            st_control_free(&control);
        }
    }
    st_graph_close(graphs[0]);
    st_graph_close(graphs[1]);
    st_graph_close(reader);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(next_incarnation(disk), last + 1);
    pf_sim_disk_free(disk);
}

static sluice_status change_nothing(void *context, st_control *control, sluice_error *err)
{
    (void)context;
    (void)control;
    (void)err;
    return SLUICE_OK;
}

static sluice_status refuse(void *context, st_control *control, sluice_error *err)
{
    (void)context;
    control->next_table += 5;
    return pf_fail(err, SLUICE_RESOURCE_LIMIT, "no");
}

static void a_change_that_changes_nothing_or_is_refused_writes_nothing(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t block;
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_control_take_row_block(graph, PF_AT_ONCE, &block, &err));
    uint64_t before = pf_sim_calls(st_graph_volume(graph));
    ASSERT_OK(st_control_update(graph, change_nothing, NULL, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, st_control_update(graph, refuse, NULL, PF_AT_ONCE, &err));
    assert_int_equal(pf_sim_calls(st_graph_volume(graph)), before);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static void row_blocks_are_apart(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t first, second;
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_control_take_row_block(graph, PF_AT_ONCE, &first, &err));
    ASSERT_OK(st_control_take_row_block(graph, PF_AT_ONCE, &second, &err));
    assert_true(first == 2 * ST_ROW_BLOCK); /* block 1 is main's */
    assert_true(second == 3 * ST_ROW_BLOCK);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static sluice_status add_many(void *context, st_control *control, sluice_error *err)
{
    (void)context;
    for (unsigned i = 0; i < ST_CONTROL_RECEIPTS_MAX + 10; i++) {
        st_control_receipt receipt = {.incarnation = i + 1, .time_us = 1000 + i, .done = i % 2 == 0};
        pf_id epoch = {{0}};
        receipt.operation.bytes[0] = (uint8_t)(i >> 8);
        receipt.operation.bytes[1] = (uint8_t)i;
        receipt.operation.bytes[15] = 1;
        (void)snprintf(receipt.kind, sizeof(receipt.kind), "branch-create");
        receipt.ref = pf_sha256_of(&i, sizeof(i));
        PF_TRY(st_control_add_receipt(control, &receipt, err));
        epoch.bytes[3] = (uint8_t)i;
        epoch.bytes[2] = (uint8_t)(i >> 8);
        epoch.bytes[14] = 7;
        PF_TRY(st_control_add_voided(control, &epoch, err));
    }
    return SLUICE_OK;
}

static void receipts_and_voided_epochs_are_kept_to_a_bound(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id, wanted = {{0}};
    st_control control;
    unsigned number = 200;
    pf_sha256 ref = pf_sha256_of(&number, sizeof(number));
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_control_update(graph, add_many, NULL, PF_AT_ONCE, &err));
    st_graph_close(graph);
    graph = small_open(disk, PF_READ);
    ASSERT_OK(st_control_read(graph, &control, &err));
    assert_int_equal(control.receipt_count, ST_CONTROL_RECEIPTS_MAX);
    assert_int_equal(control.voided_count, ST_VOIDED_MAX);
    assert_int_equal(control.receipts[0].incarnation, 11); /* the oldest went */
    wanted.bytes[1] = 200;
    wanted.bytes[15] = 1;
    const st_control_receipt *found = st_control_find_receipt(&control, &wanted, &ref);
    assert_non_null(found);
    assert_int_equal(found->incarnation, 201);
    assert_int_equal(found->time_us, 1200);
    assert_true(found->done);
    assert_string_equal(found->kind, "branch-create");
    wanted.bytes[1] = 201; /* an id belongs to its branch */
    assert_null(st_control_find_receipt(&control, &wanted, &ref));
    number = wanted.bytes[1] = 9;
    ref = pf_sha256_of(&number, sizeof(number));
    assert_null(st_control_find_receipt(&control, &wanted, &ref));
    pf_id epoch = {{0}};
    epoch.bytes[3] = (uint8_t)(ST_CONTROL_RECEIPTS_MAX + 9);
    epoch.bytes[2] = (uint8_t)((ST_CONTROL_RECEIPTS_MAX + 9) >> 8);
    epoch.bytes[14] = 7;
    assert_true(st_control_is_voided(&control, &epoch));
    epoch.bytes[14] = 8;
    assert_false(st_control_is_voided(&control, &epoch));
    st_control_free(&control);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

/* ---- crashes ---- */

/* Cut at every call, over a segment switch too: what was answered is never handed out again, and the next change works.
 */
static void a_change_cut_short_is_whole_or_not_at_all(void **state)
{
    (void)state;
    static const struct {
        pf_sim_fate fate;
        pf_sim_loss loss;
    } ends[] = {{PF_SIM_DIE, PF_SIM_LOSE_ALL},
                {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
                {PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
                {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST}};
    pf_id id;
    pf_sim_disk *base = small_disk(1, &id);
    unsigned whole = 0, not_at_all = 0;

    for (unsigned made = 0; made < 64; made += 61) { /* an ordinary record; the one that opens a segment */
        sluice_error err = {0};
        uint64_t got, answered = 0;
        st_graph *graph = small_open(base, PF_WRITE);
        for (unsigned i = 0; i < (made == 0 ? 1 : 61); i++)
            ASSERT_OK(st_control_update(graph, take_incarnation, &answered, PF_AT_ONCE, &err));
        st_graph_close(graph);
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
            for (uint64_t k = 1;; k++) {
                bool died = false;
                for (unsigned seed = 0; seed < 3; seed++) {
                    pf_sim_disk *disk;
                    ASSERT_OK(pf_sim_disk_clone(base, seed, &disk, &err));
                    graph = small_open(disk, PF_WRITE);
                    pf_sim_crash_at(st_graph_volume(graph), k, k % 2 == 0, ends[i].fate, ends[i].loss);
                    uint64_t highest = answered;
                    for (unsigned more = 0; more < 3; more++)
                        if (st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err) == SLUICE_OK) {
                            assert_true(got > highest);
                            highest = got;
                        }
                    died = pf_sim_is_dead(st_graph_volume(graph));
                    st_graph_close(graph);
                    uint64_t next = next_incarnation(disk);
                    assert_in_range(next, highest + 1, highest + 2);
                    whole += died && next == highest + 2;
                    not_at_all += died && next == highest + 1;

                    graph = small_open(disk, PF_WRITE);
                    ASSERT_OK(st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err));
                    assert_true(got >= next);
                    st_graph_close(graph);
                    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
                    assert_int_equal(next_incarnation(disk), got + 1);
                    pf_sim_disk_free(disk);
                }
                if (!died)
                    break;
            }
    }
    assert_true(whole > 0);
    assert_true(not_at_all > 0);
    pf_sim_disk_free(base);
}

/* The medium fails: the change is refused or not acknowledged, reading goes on, the next change heals. */
static void a_failing_medium_is_healed_by_the_next_change(void **state)
{
    (void)state;
    for (uint64_t k = 1; k <= 3; k++) {
        sluice_error err = {0};
        pf_id id;
        uint64_t got = 0, again;
        pf_sim_disk *disk = small_disk(k, &id);
        st_graph *graph = small_open(disk, PF_WRITE);
        uint64_t before = next_incarnation(disk);
        pf_sim_fail_at(st_graph_volume(graph), k, EIO, 1); /* the write, the flush, the mark */
        sluice_status status = st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err);
        assert_int_equal(status == SLUICE_OK, k == 3);
        assert_in_range(next_incarnation(disk), before, before + 1);
        ASSERT_OK(st_control_update(graph, take_incarnation, &again, PF_AT_ONCE, &err));
        if (status == SLUICE_OK)
            assert_true(again > got);
        st_log *log;
        st_graph *other = small_open(disk, PF_READ);
        ASSERT_OK(st_log_open(st_graph_volume(other), "control", 0, PF_READ, &log, &err));
        ASSERT_OK(st_log_check_suspect(log, &err));
        ASSERT_OK(st_log_verify(log, NULL, NULL, &err));
        st_log_close(log);
        st_graph_close(other);
        st_graph_close(graph);
        pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
        assert_int_equal(next_incarnation(disk), again + 1);
        pf_sim_disk_free(disk);
    }
}

static void a_damaged_control_log_denies_changes_and_not_reading(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t got, incarnation;
    st_log *log;
    pf_sim_disk *disk = small_disk(1, &id);
    ASSERT_OK(pf_sim_flip(disk, "graph/control/log/1.seg", 4096 + 300, 1, &err));
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_FAILS(SLUICE_CORRUPT, st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err));
    ASSERT_OK(st_ref_read(graph, "main", &incarnation, &err));
    ASSERT_OK(st_graph_log(graph, incarnation, &log, &err));
    assert_int_equal(st_log_end(log).number, 1);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static void a_held_publish_lock_is_contention_and_nothing_moves(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t got;
    pf_file *locks;
    pf_sim_disk *disk = small_disk(1, &id);
    pf_volume *other = small_actor(disk);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(pf_open(other, "control/locks", PF_WRITE, &locks, &err));
    ASSERT_OK(pf_lock(locks, 2, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    uint64_t before = pf_sim_digest(disk);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err));
    assert_true(pf_sim_digest(disk) == before);
    pf_sim_kill(other);
    ASSERT_OK(st_control_update(graph, take_incarnation, &got, PF_AT_ONCE, &err));
    st_graph_close(graph);
    (void)pf_close(locks, NULL);
    pf_volume_close(other);
    pf_sim_disk_free(disk);
}

static void a_branch_is_made_once(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    pf_buffer opening = {0};
    const pf_buffer none = {0};
    pf_sha256 digest = pf_sha256_of("fork", 4);
    pf_stat stat;
    st_log *log;
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(pf_buffer_append_text(&opening, "{}\n", &err));
    ASSERT_OK(st_branch_make(graph, 2, 40, &digest, &opening, &none, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, st_branch_make(graph, 2, 40, &digest, &opening, &none, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    st_graph_close(graph);
    graph = small_open(disk, PF_READ);
    ASSERT_OK(st_graph_log(graph, 2, &log, &err));
    assert_int_equal(st_log_end(log).number, 40);
    assert_int_equal(st_log_incarnation(log), 2);
    ASSERT_OK(pf_stat_path(st_graph_volume(graph), "branches/2/pins", &stat, &err));
    ASSERT_OK(pf_stat_path(st_graph_volume(graph), "branches/2/locks", &stat, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, st_graph_log(graph, 3, &log, &err));
    st_graph_close(graph);
    pf_buffer_free(&opening);
    pf_sim_disk_free(disk);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_handed_out_once_over_all_handles_and_segments),
        cmocka_unit_test(a_change_that_changes_nothing_or_is_refused_writes_nothing),
        cmocka_unit_test(row_blocks_are_apart),
        cmocka_unit_test(receipts_and_voided_epochs_are_kept_to_a_bound),
        cmocka_unit_test(a_change_cut_short_is_whole_or_not_at_all),
        cmocka_unit_test(a_failing_medium_is_healed_by_the_next_change),
        cmocka_unit_test(a_damaged_control_log_denies_changes_and_not_reading),
        cmocka_unit_test(a_held_publish_lock_is_contention_and_nothing_moves),
        cmocka_unit_test(a_branch_is_made_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
