/*
 * The machine's answers: receipts and operation ids, conditional writes, restarts and their budget, cancelling,
 * fencing, write modes. Two processes are two actors of one simulated disk; a race is made by a hook between a write's
 * pin and its plan.
 */
#include "coord/intent.h"
#include "coord/recover.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

typedef struct race_scene {
    pf_sim_disk *disk;
    st_graph *graph, *other;
    toy_writer rival; /* what the hook lets the other process write */
    toy_options rival_options;
    sluice_status rival_status;
    bool once;
    unsigned rival_runs;
} race_scene;

static int setup(void **state)
{
    race_scene *scene = calloc(1, sizeof *scene);
    scene->disk = toy_disk(5);
    scene->graph = toy_open(scene->disk);
    scene->other = toy_open(scene->disk);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    race_scene *scene = *state;
    st_graph_close(scene->graph);
    st_graph_close(scene->other);
    die_expect_settled(scene->disk);
    die_expect_no_litter(scene->disk);
    pf_sim_disk_free(scene->disk);
    pf_sim_world_remove();
    free(scene);
    return 0;
}

/* Where a test has damaged what recovery and collection need. */
static int teardown_roughly(void **state)
{
    race_scene *scene = *state;
    st_graph_close(scene->graph);
    st_graph_close(scene->other);
    pf_sim_disk_free(scene->disk);
    pf_sim_world_remove();
    free(scene);
    return 0;
}

/* The hook: the other process writes, each time another key unless once. */
static void race(void *context)
{
    race_scene *scene = context;
    if (scene->once && scene->rival_runs)
        return;
    scene->rival_runs++;
    scene->rival_status = toy_write(scene->other, &scene->rival, &scene->rival_options, NULL, NULL);
    for (uint32_t i = 0; i < scene->rival.count && !scene->once; i++)
        scene->rival.keys[i] += 100;
}

static toy_writer racing(race_scene *scene, int64_t first, uint32_t count)
{
    toy_writer toy = toy_of("A", first, count);
    toy.before_plan = race;
    toy.context = scene;
    return toy;
}

static uint64_t head_of(st_graph *graph, pf_id *ret_head)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, "main", NULL, &snapshot, &err));
    const st_view *view = st_snapshot_view(snapshot);
    uint64_t generation = view->generation;
    if (ret_head)
        *ret_head = view->head;
    st_snapshot_close(snapshot);
    return generation;
}

/* ---- receipts ---- */

static void a_receipt_names_its_own_commit(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    toy_writer toy = toy_of("A", 1, 3);
    uint64_t before = head_of(scene->graph, NULL);
    pf_id head;
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, &receipt, &err));
    assert_true(receipt.committed && receipt.acknowledged);
    assert_false(receipt.repeated);
    assert_int_equal(receipt.generation, before + 1);
    assert_int_equal(receipt.inserted, 3);
    assert_int_equal(receipt.restarts, 0);
    assert_int_equal(head_of(scene->other, &head), before + 1); /* another process sees it at once */
    assert_true(pf_id_equal(&head, &receipt.commit));
    assert_true(receipt.time_us > 0);
}

static void an_exact_retry_returns_the_first_receipt_and_changes_nothing(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt first, again;
    toy_writer toy = toy_of("A", 1, 3), retry = toy_of("A", 1, 3);
    toy_options options = {.operation = pf_id_new(), .given = true};
    ASSERT_OK(toy_write(scene->graph, &toy, &options, &first, &err));
    for (int64_t i = 0; i < 70; i++) { /* many commits later, in later segments too */
        toy_writer more = toy_of("B", i * 10, 1);
        ASSERT_OK(toy_write(scene->other, &more, NULL, NULL, &err));
    }
    uint64_t digest = pf_sim_digest(scene->disk);
    ASSERT_OK(toy_write(scene->graph, &retry, &options, &again, &err));
    assert_true(again.repeated && again.committed && again.acknowledged);
    assert_true(pf_id_equal(&again.commit, &first.commit));
    assert_int_equal(again.generation, first.generation);
    assert_int_equal(again.time_us, first.time_us);
    assert_int_equal(again.inserted, 3);
    assert_int_equal(retry.payloads, 0); /* nothing was staged */
    assert_true(pf_sim_digest(scene->disk) == digest);
}

static void the_same_operation_with_other_content_is_a_conflict(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 3), other = toy_of("A", 50, 1);
    toy_options options = {.operation = pf_id_new(), .given = true};
    ASSERT_OK(toy_write(scene->graph, &toy, &options, NULL, &err));
    uint64_t digest = pf_sim_digest(scene->disk);
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, toy_write(scene->graph, &other, &options, NULL, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_int_equal(other.payloads, 0);
    assert_true(pf_sim_digest(scene->disk) == digest);
}

static void two_identical_writes_at_once_are_one_commit(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    toy_writer toy = racing(scene, 1, 3);
    toy_options options = {.operation = pf_id_new(), .given = true};
    scene->once = true;
    scene->rival = toy_of("A", 1, 3);
    scene->rival_options = options;
    ASSERT_OK(toy_write(scene->graph, &toy, &options, &receipt, &err));
    assert_int_equal(scene->rival_status, SLUICE_OK);
    assert_true(receipt.repeated);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 3}, 3));
}

static void the_same_operation_with_other_content_at_once_is_a_conflict(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = racing(scene, 50, 1);
    toy_options options = {.operation = pf_id_new(), .given = true};
    scene->once = true;
    scene->rival = toy_of("A", 1, 3);
    scene->rival_options = options;
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, toy_write(scene->graph, &toy, &options, NULL, &err));
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 3}, 3));
}

static void a_refused_write_leaves_no_receipt(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    toy_writer toy = toy_of("A", 1, 3), same = toy_of("A", 3, 1), good = toy_of("A", 4, 1);
    toy_options options = {.operation = pf_id_new(), .given = true};
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, NULL, &err));
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, toy_write(scene->graph, &same, &options, NULL, &err));
    assert_int_equal(err.phase, SLUICE_PHASE_PREPARE);
    assert_int_equal(err.committed, SLUICE_FALSE);
    ASSERT_OK(toy_write(scene->graph, &good, &options, &receipt, &err)); /* the id runs as new */
    assert_false(receipt.repeated);
}

/* ---- conditional writes ---- */

static void a_conditional_write_needs_the_head_that_it_names(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt first;
    toy_writer toy = toy_of("A", 1, 1), good = toy_of("A", 2, 1), late = toy_of("A", 3, 1);
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, &first, &err));
    toy_options options = {.if_head = first.commit};
    ASSERT_OK(toy_write(scene->graph, &good, &options, NULL, &err));
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, toy_write(scene->graph, &late, &options, NULL, &err));
    assert_int_equal(late.payloads, 0);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
}

static void a_head_that_moves_meanwhile_ends_a_conditional_write(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    pf_id head;
    (void)head_of(scene->graph, &head);
    toy_options options = {.if_head = head};
    toy_writer toy = racing(scene, 1, 1);
    scene->rival = toy_of("B", 7, 1); /* another table, yet it moves the head */
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, toy_write(scene->graph, &toy, &options, NULL, &err));
    assert_int_equal(toy.plans, 1); /* terminal, never replayed */
    assert_true(toy_holds(scene->graph, "A", NULL, 0));
}

static void a_write_without_effect_publishes_nothing(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    pf_id head, wrong = pf_id_new();
    toy_writer toy = toy_of("A", 1, 0), conditional = toy_of("A", 1, 0);
    uint64_t before = head_of(scene->graph, &head);
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, &receipt, &err));
    assert_false(receipt.committed);
    assert_int_equal(head_of(scene->graph, NULL), before);
    toy_options options = {.if_head = head};
    ASSERT_OK(toy_write(scene->graph, &conditional, &options, &receipt, &err));
    options.if_head = wrong;
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, toy_write(scene->graph, &conditional, &options, &receipt, &err));
}

/* ---- restarts ---- */

static void a_disjoint_commit_in_between_restarts_nothing(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    toy_writer toy = racing(scene, 1, 3);
    scene->once = true;
    scene->rival = toy_of("A", 10, 2);
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, &receipt, &err));
    assert_int_equal(scene->rival_status, SLUICE_OK);
    assert_int_equal(receipt.restarts, 0);
    assert_int_equal(toy.plans, 1);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 3, 10, 11}, 5));
}

static void a_conflict_restarts_the_plan_and_keeps_the_payload(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_receipt receipt;
    toy_writer toy = racing(scene, 1, 3);
    toy.reads_table = true; /* as an overwrite does: any commit to the table is in its way */
    scene->once = true;
    scene->rival = toy_of("A", 10, 2);
    ASSERT_OK(toy_write(scene->graph, &toy, NULL, &receipt, &err));
    assert_int_equal(receipt.restarts, 1);
    assert_int_equal(toy.plans, 2);
    assert_int_equal(toy.payloads, 1);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 3, 10, 11}, 5));
}

static void a_key_that_somebody_else_inserted_meanwhile_is_a_key_conflict(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = racing(scene, 1, 3);
    scene->once = true;
    scene->rival = toy_of("A", 3, 1);
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, toy_write(scene->graph, &toy, NULL, NULL, &err));
    assert_int_equal(toy.plans, 2); /* only a fresh probe finds it (K-03) */
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){3}, 1));
}

static void a_rival_at_each_restart_exhausts_the_budget(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = racing(scene, 1, 1);
    toy.reads_table = true;
    scene->rival = toy_of("A", 1000, 1);
    ASSERT_FAILS(SLUICE_REBASE_EXHAUSTED, toy_write(scene->graph, &toy, NULL, NULL, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_int_equal(toy.plans, ad_load.retry_budget + 1);
    assert_int_equal(toy.payloads, 1);
    assert_non_null(strstr(err.details, "\"attempts\":17"));
    assert_non_null(strstr(err.details, "\"read\":\"whole-table\""));
    assert_int_equal(scene->rival_runs, ad_load.retry_budget + 1);
}

static void a_writer_that_does_not_replay_is_refused_at_once(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    ad_adapter strict = ad_load;
    toy_writer toy = racing(scene, 1, 1);
    strict.replays = false;
    toy.adapter = &strict;
    toy.reads_table = true;
    scene->rival = toy_of("A", 1000, 1);
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, toy_write(scene->graph, &toy, NULL, NULL, &err));
    assert_int_equal(toy.plans, 1);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1000}, 1));
}

/* ---- cancel and fence ---- */

typedef struct asked_counter {
    unsigned count, limit;
} asked_counter;

static bool is_cancelled(void *context)
{
    asked_counter *asked = context;
    return ++asked->count > asked->limit;
}

static bool is_allowed(void *context)
{
    asked_counter *asked = context;
    return ++asked->count <= asked->limit;
}

static void cancelling_before_it_is_armed_changes_nothing(void **state)
{
    race_scene *scene = *state;
    bool done = false;
    for (unsigned limit = 0; !done; limit++) {
        sluice_error err = {0};
        asked_counter asked = {0, limit};
        wk_executor executor = toy_executor();
        toy_options options = {.executor = &executor};
        toy_writer toy = toy_of("A", 1, 2);
        executor.context = &asked;
        executor.cancelled = is_cancelled;
        uint64_t head = head_of(scene->other, NULL);
        sluice_status status = toy_write(scene->graph, &toy, &options, NULL, &err);
        done = status == SLUICE_OK;
        if (!done) {
            assert_int_equal(status, SLUICE_CANCELLED);
            assert_int_equal(err.committed, SLUICE_FALSE);
            assert_true(err.phase <= SLUICE_PHASE_ARM);
            assert_int_equal(head_of(scene->other, NULL), head);
        } else {
            assert_true(limit >= 4); /* it was asked at every step up to arming, and not later */
            assert_int_equal(asked.count, limit);
        }
    }
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
}

static void a_fenced_process_publishes_retires_and_collects_nothing(void **state)
{
    race_scene *scene = *state;
    bool done = false;
    for (unsigned limit = 0; !done; limit++) {
        sluice_error err = {0};
        asked_counter asked = {0, limit};
        wk_executor executor = toy_executor();
        toy_options options = {.executor = &executor};
        toy_writer toy = toy_of("A", 10 * (int64_t)limit, 2);
        executor.context = &asked;
        executor.allowed = is_allowed;
        uint64_t head = head_of(scene->other, NULL);
        st_graph *graph = toy_open(scene->disk);
        sluice_status status = toy_write(graph, &toy, &options, NULL, &err);
        done = status == SLUICE_OK;
        if (!done) {
            if (err.committed ==
                SLUICE_TRUE) { /* struck between the record's write and its flush: visible, and said so */
                assert_int_equal(status, SLUICE_SUSPECT);
                head++;
            } else {
                assert_string_equal(sluice_status_name(status), "FENCED");
            }
            assert_int_equal(head_of(scene->other, NULL), head);
            uint64_t digest = pf_sim_digest(scene->disk);
            co_gc_report report;
            assert_int_equal(co_gc(graph, false, &report, NULL), SLUICE_FENCED);
            assert_true(pf_sim_digest(scene->disk) == digest);
        }
        st_graph_close(graph);
        ASSERT_OK(co_recover(scene->other, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
        if (!done && err.committed == SLUICE_FALSE) {
            int64_t keys[64];
            uint32_t count = toy_keys(scene->other, "A", keys, 64);
            for (uint32_t i = 0; i < count; i++)
                assert_int_not_equal(keys[i], toy.keys[0]); /* what was answered as not committed never comes */
        }
    }
}

/* ---- what must still be the same in G ---- */

static void remove_the_branch(void *context)
{
    race_scene *scene = context;
    sluice_error err = {0};
    ASSERT_OK(st_ref_remove(scene->other, "main", ST_MAIN_INCARNATION, &err));
}

static void a_branch_that_goes_meanwhile_takes_no_write(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    uint64_t head = head_of(scene->graph, NULL);
    toy_writer toy = toy_of("A", 1, 1);
    toy.after_plan = remove_the_branch;
    toy.context = scene;
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, toy_write(scene->graph, &toy, NULL, NULL, &err)); /* OW-017 */
    assert_int_equal(err.committed, SLUICE_FALSE);
    ASSERT_OK(st_ref_create(scene->other, "main", ST_MAIN_INCARNATION, &err));
    assert_int_equal(head_of(scene->graph, NULL), head);
}

static void make_the_branch_again(void *context)
{
    race_scene *scene = context;
    sluice_error err = {0};
    ASSERT_OK(st_ref_remove(scene->other, "main", ST_MAIN_INCARNATION, &err));
    ASSERT_OK(st_ref_create(scene->other, "main", 77, &err));
}

static void a_branch_made_again_meanwhile_takes_no_write(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 1);
    toy.after_plan = make_the_branch_again;
    toy.context = scene;
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, toy_write(scene->graph, &toy, NULL, NULL, &err));
    ASSERT_OK(st_ref_remove(scene->other, "main", 77, &err));
    ASSERT_OK(st_ref_create(scene->other, "main", ST_MAIN_INCARNATION, &err));
    assert_true(toy_holds(scene->graph, "A", NULL, 0));
}

static void replace_the_lock_file(void *context)
{
    race_scene *scene = context;
    sluice_error err = {0};
    pf_file *file = NULL;
    pf_volume *volume = st_graph_volume(scene->other);
    ASSERT_OK(pf_publish(volume, "branches/1/locks", "cache/locks", &err));
    ASSERT_OK(pf_create(volume, "branches/1/locks", &file, &err));
    ASSERT_OK(pf_close(file, &err));
}

static void a_lock_file_replaced_by_hand_is_noticed(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    uint64_t head = head_of(scene->graph, NULL);
    toy_writer toy = toy_of("A", 1, 1);
    toy.after_plan = replace_the_lock_file;
    toy.context = scene;
    ASSERT_FAILS(SLUICE_FENCED, toy_write(scene->graph, &toy, NULL, NULL, &err)); /* OW-028 */
    assert_int_equal(head_of(scene->other, NULL), head);
}

static void change_the_delta(void *context)
{
    toy_writer *toy = context;
    toy->write->delta.commit.deleted++;
}

static void a_delta_that_changed_after_its_preparation_is_refused(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    uint64_t head = head_of(scene->graph, NULL);
    bool refused = false;
    for (uint64_t k = 10; k < 40 && !refused; k++) { /* from somewhere in the staging to behind the end */
        toy_writer toy = toy_of("A", (int64_t)k * 10, 1);
        err = (sluice_error){0};
        pf_sim_interrupt_at(st_graph_volume(scene->graph), k, change_the_delta, &toy);
        toy.write = &(co_write){0};
        sluice_status status = toy_write(scene->graph, &toy, NULL, NULL, &err);
        pf_sim_interrupt_at(st_graph_volume(scene->graph), 0, NULL, NULL);
        refused = status == SLUICE_INTERNAL;
        if (refused) { /* OW-034 */
            assert_int_equal(err.committed, SLUICE_FALSE);
            assert_int_equal(head_of(scene->graph, NULL), head);
        } else {
            ASSERT_OK(status);
            head++;
        }
    }
    assert_true(refused);
}

static void with_all_slots_taken_an_arming_write_is_refused_before_any_effect(void **state)
{
    race_scene *scene = *state;
    sluice_error err = {0};
    co_slot slots[CO_SLOTS] = {{0}};
    ad_adapter authority_first = ad_load;
    toy_writer toy = toy_of("A", 1, 1), small = toy_of("A", 2, 1);
    for (uint32_t i = 0; i < CO_SLOTS; i++)
        ASSERT_OK(co_slot_take(st_graph_volume(scene->other), &slots[i], &err));
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, toy_write(scene->graph, &toy, NULL, NULL, &err)); /* L-034 */
    assert_int_equal(err.phase, SLUICE_PHASE_ARM);
    assert_int_equal(err.committed, SLUICE_FALSE);
    authority_first.arms = false;
    small.adapter = &authority_first;
    ASSERT_OK(toy_write(scene->graph, &small, NULL, NULL, &err)); /* needs none */
    for (uint32_t i = 0; i < CO_SLOTS; i++)
        co_slot_release(&slots[i]);
}

/* ---- write modes ---- */

static void in_single_mode_a_competitor_is_busy_before_it_stages(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    race_scene scene = {.once = true};
    pf_sim_world_install(3);
    ASSERT_OK(pf_sim_disk_new(3, &disk, &err));
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    toy_init(volume, ST_MODE_SINGLE);
    pf_volume_close(volume);
    scene.disk = disk;
    scene.graph = toy_open(disk);
    scene.other = toy_open(disk);
    scene.rival = toy_of("B", 1, 1);
    toy_writer toy = racing(&scene, 1, 1);
    ASSERT_OK(toy_write(scene.graph, &toy, NULL, NULL, &err));
    assert_int_equal(scene.rival_status, SLUICE_WRITER_BUSY);
    assert_int_equal(scene.rival.payloads, 0);
    ASSERT_OK(toy_write(scene.other, &scene.rival, NULL, NULL, &err));
    st_graph_close(scene.graph);
    st_graph_close(scene.other);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_receipt_names_its_own_commit),
        TEST(an_exact_retry_returns_the_first_receipt_and_changes_nothing),
        TEST(the_same_operation_with_other_content_is_a_conflict),
        TEST(two_identical_writes_at_once_are_one_commit),
        TEST(the_same_operation_with_other_content_at_once_is_a_conflict),
        TEST(a_refused_write_leaves_no_receipt),
        TEST(a_conditional_write_needs_the_head_that_it_names),
        TEST(a_head_that_moves_meanwhile_ends_a_conditional_write),
        TEST(a_write_without_effect_publishes_nothing),
        TEST(a_disjoint_commit_in_between_restarts_nothing),
        TEST(a_conflict_restarts_the_plan_and_keeps_the_payload),
        TEST(a_key_that_somebody_else_inserted_meanwhile_is_a_key_conflict),
        TEST(a_rival_at_each_restart_exhausts_the_budget),
        TEST(a_writer_that_does_not_replay_is_refused_at_once),
        TEST(cancelling_before_it_is_armed_changes_nothing),
        TEST(a_fenced_process_publishes_retires_and_collects_nothing),
        TEST(a_branch_that_goes_meanwhile_takes_no_write),
        TEST(a_branch_made_again_meanwhile_takes_no_write),
        cmocka_unit_test_setup_teardown(a_lock_file_replaced_by_hand_is_noticed, setup, teardown_roughly),
        TEST(a_delta_that_changed_after_its_preparation_is_refused),
        TEST(with_all_slots_taken_an_arming_write_is_refused_before_any_effect),
        cmocka_unit_test(in_single_mode_a_competitor_is_busy_before_it_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
