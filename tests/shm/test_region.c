/* The region: layout, identity, state, tokens and fences, lines with one writer, edits and poisoning (DESIGN 6, L-025).
 */
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "shm/tasks.h"
#include "tests/support/child.h"
#include "tests/support/test.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make(void **state)
{
    sluice_error err;
    shm_region *region = calloc(1, sizeof *region);
    const shm_config config = {2, 4, 2, 2, 64};
    assert_non_null(region);
    ASSERT_OK(shm_region_make(&config, region, &err));
    *state = region;
    return 0;
}

static int unmake(void **state)
{
    shm_region_free(*state);
    free(*state);
    return 0;
}

static void a_new_region_is_ready_and_whole(void **state)
{
    shm_region *region = *state;
    assert_true(shm_region_check(region));
    assert_int_equal(shm_region_state(region), SHM_READY);
    assert_true(shm_tasks_check(region));
    assert_true(shm_gates_check(region));
    assert_true(shm_publish_check(region));
    assert_int_equal(region->header->supervisor, getpid());
    for (unsigned i = 0; i < SHM_SECTION_COUNT; i++)
        assert_int_equal(region->header->sections[i].offset % SHM_LINE, 0);
}

static void sections_do_not_overlap_and_fill_the_region(void **state)
{
    shm_region *region = *state;
    uint64_t end = sizeof(shm_header);
    for (unsigned i = 0; i < SHM_SECTION_COUNT; i++) {
        const shm_section_entry *entry = &region->header->sections[i];
        assert_int_equal(entry->offset, end);
        assert_int_equal(entry->stride % SHM_LINE, 0);
        end += entry->count * entry->stride;
    }
    assert_int_equal(end, region->header->length);
}

static void a_header_of_another_build_or_size_is_refused(void **state)
{
    shm_region *region = *state;
    shm_header *header = region->header;
    shm_header whole;
    memcpy(&whole, header, sizeof whole);
    header->magic[0] = 'X';
    assert_false(shm_region_check(region));
    memcpy(header, &whole, sizeof whole);
    header->abi++;
    assert_false(shm_region_check(region));
    memcpy(header, &whole, sizeof whole);
    header->layout ^= 1;
    assert_false(shm_region_check(region));
    memcpy(header, &whole, sizeof whole);
    header->length -= 64;
    assert_false(shm_region_check(region));
    memcpy(header, &whole, sizeof whole);
    header->sections[SHM_GATES].offset += 64;
    assert_false(shm_region_check(region));
    memcpy(header, &whole, sizeof whole);
    assert_true(shm_region_check(region));
}

static void each_region_has_an_epoch_of_its_own(void **state)
{
    shm_region *region = *state;
    sluice_error err;
    shm_region other;
    ASSERT_OK(shm_region_make(&region->config, &other, &err));
    assert_false(pf_id_equal(&region->header->epoch, &other.header->epoch));
    assert_false(pf_id_is_nil(&region->header->epoch));
    shm_region_free(&other);
}

static void a_configuration_out_of_range_is_refused(void **state)
{
    (void)state;
    sluice_error err;
    shm_region region;
    const shm_config wrong[] = {
        {0, 4, 2, 2, 1}, {SHM_WORKERS_MAX + 1, 4, 2, 2, 1}, {1, 0, 2, 2, 1}, {1, 4, 0, 2, 1}, {1, 4, 2, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, shm_region_make(&wrong[i], &region, &err));
    shm_config largest = SHM_CONFIG_DEFAULT(SHM_WORKERS_MAX);
    ASSERT_OK(shm_region_make(&largest, &region, &err));
    assert_true(region.header->length < 16u << 20);
    assert_true(shm_region_check(&region));
    shm_region_free(&region);
}

static void generations_never_repeat_and_old_tokens_are_refused(void **state)
{
    shm_region *region = *state;
    shm_token old = shm_slot_assign(region, 0);
    assert_true(shm_token_allowed(region, &old));
    for (int i = 0; i < 100; i++) {
        shm_slot_revoke(region, 0);
        assert_false(shm_token_holds(region, &old));
        shm_token fresh = shm_slot_assign(region, 0);
        assert_true(fresh.generation > old.generation);
        assert_true(shm_token_allowed(region, &fresh));
    }
    assert_int_equal(region->slots[0].deaths, 100);
    assert_int_equal(region->slots[0].refusals, 0);
    assert_false(shm_token_allowed(region, &old));
    assert_int_equal(region->slots[0].refusals, 1); /* each refusal is counted */
    shm_token forged = {.slot = 0, .generation = region->slots[0].generation, .random = 1};
    assert_false(shm_token_allowed(region, &forged));
}

static void in_a_poisoned_region_nobody_is_allowed_anything(void **state)
{
    shm_region *region = *state;
    sluice_error err;
    shm_work work;
    shm_token token = shm_slot_assign(region, 1);
    shm_region_poison(region);
    assert_false(shm_token_allowed(region, &token));
    ASSERT_FAILS(SLUICE_FENCED, shm_tasks_take(region, shm_token_owner(&token), true, &work, &err));
    shm_region_end(region);
    assert_int_equal(shm_region_state(region), SHM_POISONED); /* one way */
}

static void in_an_ending_region_running_work_may_still_end(void **state)
{
    shm_region *region = *state;
    shm_token token = shm_slot_assign(region, 1);
    shm_region_end(region);
    assert_int_equal(shm_region_state(region), SHM_ENDING);
    assert_true(shm_token_allowed(region, &token));
}

static void progress_of_a_lost_task_is_dropped(void **state)
{
    shm_region *region = *state;
    uint64_t rows;
    uint64_t bytes;
    shm_progress_add(region, 0, 10, 100);
    shm_progress_keep(region, 0);
    shm_progress_add(region, 0, 5, 50);
    shm_progress_add(region, 1, 7, 70);
    shm_progress_sum(region, &rows, &bytes);
    assert_int_equal(rows, 22);
    assert_int_equal(bytes, 220);
    shm_progress_drop(region, 0);
    shm_progress_sum(region, &rows, &bytes);
    assert_int_equal(rows, 17);
    assert_int_equal(bytes, 170);
}

static void errors_cross_the_region_with_their_texts_closed(void **state)
{
    shm_region *region = *state;
    sluice_error put;
    sluice_error got;
    (void)pf_fail_private(&put, SLUICE_KEY_CONFLICT, "a key is there already", "people.csv:7: key 'ada' again");
    pf_hint(&put, "use upsert");
    shm_error_put(region, 2, &put);
    shm_error_get(region, 2, SLUICE_KEY_CONFLICT, &got);
    assert_memory_equal(&got, &put, sizeof got);
    memset(&region->errors[0].error, 'x', sizeof region->errors[0].error); /* half of one, or rubbish */
    shm_error_get(region, 0, SLUICE_OK, &got);
    assert_int_equal(got.code, SLUICE_INTERNAL);
    assert_int_equal(strlen(got.message), sizeof got.message - 1);
    assert_int_equal(strlen(got.details), sizeof got.details - 1);
}

static void the_newest_obituary_is_found_when_the_ring_is_full(void **state)
{
    shm_region *region = *state;
    shm_death death = {0};
    assert_int_equal(shm_obituary_last(region, &death), 0);
    for (uint32_t i = 1; i <= SHM_OBITUARIES + 3; i++) {
        death = (shm_death){.slot = i % 2,
                            .generation = i,
                            .pid = 1000 + i,
                            .wait_status = 9,
                            .stage = SHM_TASK,
                            .phase = 3,
                            .index = i};
        shm_obituary_write(region, &death);
    }
    memset(&death, 0, sizeof death);
    assert_int_equal(shm_obituary_last(region, &death), SHM_OBITUARIES + 3);
    assert_int_equal(death.generation, SHM_OBITUARIES + 3);
    assert_int_equal(death.stage, SHM_TASK);
    assert_int_equal(death.phase, 3);
}

static void an_edit_is_undone_newest_first(void **state)
{
    shm_region *region = *state;
    shm_tasks *table = region->tasks;
    shm_edit edit;
    table->run_phase = 5;
    shm_edit_begin(&edit, &table->intent, table, SHM_OP_RUN);
    shm_set(&edit, &table->run_phase, 6);
    shm_set(&edit, &table->run_phase, 7);
    shm_set(&edit, &table->outcome, 8);
    assert_int_equal(table->intent.phase, (uint64_t)SHM_OP_RUN << 32 | 3);
    assert_true(shm_edit_undo(&table->intent, table, sizeof *table));
    assert_int_equal(table->run_phase, 5);
    assert_int_equal(table->outcome, 0);
    assert_int_equal(table->intent.phase, 0);
}

static void an_intent_that_makes_no_sense_is_refused(void **state)
{
    shm_region *region = *state;
    shm_intent *intent = &region->tasks->intent;
    intent->phase = SHM_EDIT_WORDS + 1;
    assert_false(shm_edit_undo(intent, region->tasks, sizeof *region->tasks));
    intent->phase = 1;
    intent->words[0].offset = sizeof *region->tasks;
    assert_false(shm_edit_undo(intent, region->tasks, sizeof *region->tasks));
    intent->words[0].offset = 3;
    assert_false(shm_edit_undo(intent, region->tasks, sizeof *region->tasks));
}

static int die_in_a_damaged_table(void *context)
{
    shm_region *region = context;
    if (shm_latch_take(region, &region->tasks->latch, LK_RANK_LATCH_TASKS, shm_tasks_repair, NULL) != SLUICE_OK)
        return 1;
    region->tasks->run = 77; /* outside of any edit: nothing knows what it was */
    (void)kill(getpid(), SIGKILL);
    return 1;
}

static void damage_that_no_repair_mends_poisons_the_region(void **state)
{
    shm_region *region = *state;
    sluice_error err;
    shm_work work;
    shm_token token = shm_slot_assign(region, 0);
    test_child_expect_signal(test_child(die_in_a_damaged_table, region), SIGKILL);
    ASSERT_FAILS(SLUICE_FENCED, shm_tasks_take(region, shm_token_owner(&token), true, &work, &err));
    assert_int_equal(shm_region_state(region), SHM_POISONED);
    ASSERT_FAILS(SLUICE_FENCED, shm_tasks_take(region, shm_token_owner(&token), true, &work, &err));
}

static int hold_the_latch(void *context)
{
    shm_region *region = context;
    if (shm_latch_take(region, &region->gates->latch, LK_RANK_LATCH_GATES, shm_gates_repair, NULL) != SLUICE_OK)
        return 1;
    region->slots[0].heartbeat = 1;
    (void)kill(getpid(), SIGSTOP);
    return 0;
}

static void the_supervisor_waits_for_no_latch_without_bound(void **state)
{
    shm_region *region = *state;
    sluice_error err;
    pid_t pid = test_child(hold_the_latch, region);
    pf_deadline limit = pf_deadline_in_ms(TEST_WAIT_MS);
    while (region->slots[0].heartbeat == 0 && !pf_deadline_passed(limit))
        pf_backoff(0, limit);
    ASSERT_FAILS(SLUICE_TIMEOUT, shm_gates_bury(region, 1, &err));
    assert_int_equal(lk_latch_owner(&region->gates->latch), pid);
    test_child_kill(pid);
    ASSERT_OK(shm_gates_bury(region, 1, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_region_is_ready_and_whole, make, unmake),
        cmocka_unit_test_setup_teardown(sections_do_not_overlap_and_fill_the_region, make, unmake),
        cmocka_unit_test_setup_teardown(a_header_of_another_build_or_size_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(each_region_has_an_epoch_of_its_own, make, unmake),
        cmocka_unit_test_setup_teardown(a_configuration_out_of_range_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(generations_never_repeat_and_old_tokens_are_refused, make, unmake),
        cmocka_unit_test_setup_teardown(in_a_poisoned_region_nobody_is_allowed_anything, make, unmake),
        cmocka_unit_test_setup_teardown(in_an_ending_region_running_work_may_still_end, make, unmake),
        cmocka_unit_test_setup_teardown(progress_of_a_lost_task_is_dropped, make, unmake),
        cmocka_unit_test_setup_teardown(errors_cross_the_region_with_their_texts_closed, make, unmake),
        cmocka_unit_test_setup_teardown(the_newest_obituary_is_found_when_the_ring_is_full, make, unmake),
        cmocka_unit_test_setup_teardown(an_edit_is_undone_newest_first, make, unmake),
        cmocka_unit_test_setup_teardown(an_intent_that_makes_no_sense_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(damage_that_no_repair_mends_poisons_the_region, make, unmake),
        cmocka_unit_test_setup_teardown(the_supervisor_waits_for_no_latch_without_bound, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
