/*
 * Intent slots on real files: what a frame says, which frame rules, who may take a slot (coord/intent.h, LESSONS L-005,
 * I-1).
 */
#include "coord/intent.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

typedef struct slots_fixture {
    char *folder;
    pf_volume *volume;
} slots_fixture;

static int setup(void **state)
{
    sluice_error err = {0};
    slots_fixture *fixture = calloc(1, sizeof *fixture);
    pf_file *file = NULL;
    fixture->folder = test_folder_make();
    char *path = test_path(fixture->folder, "g");
    ASSERT_OK(pf_volume_make(path, &fixture->volume, &err));
    free(path);
    ASSERT_OK(pf_create(fixture->volume, ST_INTENTS_FILE, &file, &err));
    ASSERT_OK(pf_zero_fill(file, (uint64_t)CO_SLOTS * CO_SLOT_BYTES, &err));
    ASSERT_OK(pf_close(file, &err));
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    slots_fixture *fixture = *state;
    pf_volume_close(fixture->volume);
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static co_intent sample(void)
{
    co_intent intent = {
        .kind = "load", .version = 1, .branch = "main", .base_generation = 7, .plan_inline = true, .plan_number = 3};
    intent.scope.incarnation = 1;
    intent.scope.operation = pf_id_new();
    intent.scope.commit = pf_id_new();
    intent.scope.attempt = pf_id_new();
    intent.scope.tables[0] = 64;
    intent.scope.tables[1] = 66;
    intent.scope.table_count = 2;
    intent.epoch = pf_id_new();
    intent.delta = pf_sha256_of("delta", 5);
    return intent;
}

static void set_plan(co_intent *intent, const char *text)
{
    sluice_error err = {0};
    intent->plan.length = 0;
    ASSERT_OK(pf_buffer_append_text(&intent->plan, text, &err));
    intent->plan_length = intent->plan.length;
    intent->plan_digest = pf_sha256_of(intent->plan.data, intent->plan.length);
}

static pf_file *intents(const slots_fixture *fixture)
{
    sluice_error err = {0};
    pf_file *file = NULL;
    ASSERT_OK(pf_open(fixture->volume, ST_INTENTS_FILE, PF_WRITE, &file, &err));
    return file;
}

static co_slot_state state_of(const slots_fixture *fixture, uint32_t number, co_intent *ret_intent, bool *ret_scope)
{
    sluice_error err = {0};
    co_slot_state state;
    pf_file *file = intents(fixture);
    ASSERT_OK(co_slot_read(file, number, &state, ret_intent, ret_scope, &err));
    ASSERT_OK(pf_close(file, &err));
    return state;
}

static void expect(const slots_fixture *fixture, uint32_t number, co_slot_state want)
{
    co_intent intent;
    bool scope;
    assert_int_equal(state_of(fixture, number, &intent, &scope), want);
    co_intent_free(&intent);
}

static bool may_be_used(const slots_fixture *fixture, uint32_t number)
{
    sluice_error err = {0};
    bool used = false;
    uint64_t sequence = 0;
    pf_file *file = intents(fixture);
    ASSERT_OK(co_slot_may_be_used(file, number, &used, &sequence, &err));
    ASSERT_OK(pf_close(file, &err));
    return used;
}

/* Flips bits in a slot, past the program. */
static void damage(const slots_fixture *fixture, uint32_t number, uint64_t at, size_t length)
{
    sluice_error err = {0};
    uint8_t bytes[512];
    pf_file *file = intents(fixture);
    assert_true(length <= sizeof bytes);
    ASSERT_OK(pf_read_exact(file, (uint64_t)number * CO_SLOT_BYTES + at, bytes, length, &err));
    for (size_t i = 0; i < length; i++)
        bytes[i] ^= 0x5a;
    ASSERT_OK(pf_write(file, (uint64_t)number * CO_SLOT_BYTES + at, bytes, length, &err));
    ASSERT_OK(pf_close(file, &err));
}

static void a_frame_reads_back_what_was_armed(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot slot = {0};
    co_intent intent = sample(), read;
    bool scope = false;
    set_plan(&intent, "the plan");
    ASSERT_OK(co_slot_take(fixture->volume, &slot, &err));
    assert_int_equal(slot.number, 0);
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err));
    assert_int_equal(state_of(fixture, 0, &read, &scope), CO_SLOT_INTENT);
    assert_true(scope);
    assert_int_equal(read.phase, CO_PHASE_CONFIRMED);
    assert_string_equal(read.kind, "load");
    assert_string_equal(read.branch, "main");
    assert_true(pf_id_equal(&read.scope.operation, &intent.scope.operation));
    assert_true(pf_id_equal(&read.scope.commit, &intent.scope.commit));
    assert_true(pf_id_equal(&read.scope.attempt, &intent.scope.attempt));
    assert_true(pf_sha256_equal(&read.delta, &intent.delta));
    assert_int_equal(read.scope.table_count, 2);
    assert_int_equal(read.base_generation, 7);
    assert_int_equal(read.plan.length, 8);
    assert_memory_equal(read.plan.data, "the plan", 8);
    co_intent_free(&read);
    co_intent_free(&intent);
    co_slot_release(&slot);
}

static void arm_confirm_and_retire_are_one_sync_each(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot slot = {0};
    co_intent intent = sample();
    ad_effect effect = {.kind = AD_EFFECT_MOVE, .from = "cache/a", .to = "trash/a"};
    set_plan(&intent, "p");
    intent.effects = malloc(sizeof effect);
    *intent.effects = effect;
    intent.effect_count = 1;
    intent.scope.visible = true;
    ASSERT_OK(co_slot_take(fixture->volume, &slot, &err));
    uint64_t before = pf_volume_counters(fixture->volume)->file_syncs;
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_ARMED, &err));
    assert_int_equal(pf_volume_counters(fixture->volume)->file_syncs, before + 1);
    expect(fixture, 0, CO_SLOT_INTENT);
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err));
    assert_int_equal(pf_volume_counters(fixture->volume)->file_syncs, before + 2);
    ASSERT_OK(co_slot_retire(&slot, &err));
    assert_int_equal(pf_volume_counters(fixture->volume)->file_syncs, before + 3);
    expect(fixture, 0, CO_SLOT_FREE);
    assert_false(may_be_used(fixture, 0));
    co_slot_release(&slot);
    co_intent_free(&intent);
}

/* L-005: the older whole frame rules, whichever frame the newer one was torn in; a torn first arm is not armed. */
static void a_torn_frame_leaves_the_older_one_in_force(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot slot = {0};
    co_intent intent = sample();
    set_plan(&intent, "p");
    ASSERT_OK(co_slot_take(fixture->volume, &slot, &err));
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err)); /* frame 0, the first of this slot */
    damage(fixture, 0, 4096 + 20, 4);
    expect(fixture, 0, CO_SLOT_FREE); /* torn, zeros beside it */
    damage(fixture, 0, 4096 + 20, 4);
    expect(fixture, 0, CO_SLOT_INTENT);
    ASSERT_OK(co_slot_retire(&slot, &err)); /* frame 1 */
    damage(fixture, 0, 16384 + 33, 1);
    expect(fixture, 0, CO_SLOT_INTENT); /* a torn retire: still confirmed */
    damage(fixture, 0, 16384 + 33, 1);
    expect(fixture, 0, CO_SLOT_FREE);
    intent.phase = (co_phase)0;
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err)); /* frame 0 again */
    damage(fixture, 0, 4096 + 300, 8);
    expect(fixture, 0, CO_SLOT_FREE); /* a torn arm: retired as before */
    co_slot_release(&slot);
    co_intent_free(&intent);
}

static void damage_of_both_frames_leaves_the_scope(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot slot = {0};
    co_intent intent = sample(), read;
    bool scope = false;
    set_plan(&intent, "p");
    ASSERT_OK(co_slot_take(fixture->volume, &slot, &err));
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_ARMED, &err));
    ASSERT_OK(co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err));
    damage(fixture, 0, 4096, 64);
    damage(fixture, 0, 16384, 64);
    assert_int_equal(state_of(fixture, 0, &read, &scope), CO_SLOT_UNREADABLE);
    assert_true(scope);
    assert_true(pf_id_equal(&read.scope.commit, &intent.scope.commit));
    assert_int_equal(read.scope.incarnation, 1);
    assert_int_equal(read.scope.table_count, 2);
    damage(fixture, 0, 100, 1);
    assert_int_equal(state_of(fixture, 0, &read, &scope), CO_SLOT_UNREADABLE);
    assert_false(scope);
    assert_true(may_be_used(fixture, 0));
    ASSERT_OK(co_slot_retire(&slot, &err)); /* makes it free whatever stands in it */
    expect(fixture, 0, CO_SLOT_FREE);
    co_slot_release(&slot);
    co_intent_free(&intent);
}

static void a_scope_overlaps_by_branch_and_table(void **state)
{
    (void)state;
    co_scope scope = {.incarnation = 3, .tables = {64, 70}, .table_count = 2};
    const uint64_t other[] = {65, 66}, shared[] = {66, 70};
    assert_true(co_scope_overlaps(&scope, 0, NULL, 0));
    assert_true(co_scope_overlaps(&scope, 3, NULL, 0));
    assert_false(co_scope_overlaps(&scope, 4, NULL, 0));
    assert_false(co_scope_overlaps(&scope, 3, other, 2));
    assert_true(co_scope_overlaps(&scope, 3, shared, 2));
    scope.all = true;
    assert_true(co_scope_overlaps(&scope, 3, other, 2));
    assert_false(co_scope_overlaps(&scope, 4, shared, 2));
}

static int arm_and_die(void *context)
{
    slots_fixture *fixture = context;
    sluice_error err = {0};
    pf_volume *volume = NULL;
    co_slot slot = {0};
    co_intent intent = sample();
    char *path = test_path(fixture->folder, "g");
    if (pf_volume_open(path, PF_WRITE, &volume, &err) != SLUICE_OK || co_slot_take(volume, &slot, &err) != SLUICE_OK ||
        co_slot_write(&slot, &intent, CO_PHASE_CONFIRMED, &err) != SLUICE_OK)
        return 1;
    free(path);
    abort();
}

static void only_a_dead_owners_slot_is_taken_over(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot mine = {0}, other = {0};
    co_intent intent = sample();
    bool live = false, orphaned = true;
    set_plan(&intent, "p");
    ASSERT_OK(co_slot_take(fixture->volume, &mine, &err));
    ASSERT_OK(co_slot_write(&mine, &intent, CO_PHASE_CONFIRMED, &err));
    pf_volume *elsewhere = NULL, *third = NULL; /* two more processes, as far as locks go */
    char *path = test_path(fixture->folder, "g");
    ASSERT_OK(pf_volume_open(path, PF_WRITE, &elsewhere, &err));
    ASSERT_OK(pf_volume_open(path, PF_WRITE, &third, &err));
    free(path);
    ASSERT_OK(co_slot_take_over(elsewhere, mine.number, PF_AT_ONCE, &other, &live, &err));
    assert_true(live);
    assert_null(other.file);

    test_child_expect_signal(test_child(arm_and_die, fixture), 6);
    pf_file *file = intents(fixture);
    ASSERT_OK(co_slot_is_orphaned(file, 1, &orphaned, &err));
    assert_true(orphaned);
    ASSERT_OK(co_slot_is_orphaned(file, 0, &orphaned, &err));
    assert_false(orphaned);
    ASSERT_OK(co_slot_take_over(elsewhere, 1, PF_AT_ONCE, &other, &live, &err));
    assert_false(live);
    assert_non_null(other.file);
    ASSERT_OK(co_slot_is_orphaned(file, 1, &orphaned, &err)); /* a recoverer has it: nobody goes on past it */
    assert_true(orphaned);
    ASSERT_OK(pf_close(file, &err));
    co_slot second = {0};
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION,
                 co_slot_take_over(third, 1, PF_AT_ONCE, &second, &live, &err)); /* L-022 */
    ASSERT_OK(co_slot_retire(&other, &err));
    co_slot_release(&other);
    co_slot_release(&mine);
    pf_volume_close(elsewhere);
    pf_volume_close(third);
    co_intent_free(&intent);
}

static void the_last_slot_taken_leaves_none(void **state)
{
    slots_fixture *fixture = *state;
    sluice_error err = {0};
    co_slot slots[CO_SLOTS] = {{0}}, one_more = {0};
    for (uint32_t i = 0; i < CO_SLOTS; i++) {
        ASSERT_OK(co_slot_take(fixture->volume, &slots[i], &err));
        assert_int_equal(slots[i].number, i);
    }
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, co_slot_take(fixture->volume, &one_more, &err)); /* L-034 */
    co_slot_release(&slots[17]);
    ASSERT_OK(co_slot_take(fixture->volume, &one_more, &err));
    assert_int_equal(one_more.number, 17);
    co_slot_release(&one_more);
    for (uint32_t i = 0; i < CO_SLOTS; i++)
        co_slot_release(&slots[i]);
}

static void an_intent_of_another_format_is_unreadable(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer bytes = {0};
    co_intent intent = sample(), read;
    ASSERT_OK(co_intent_encode(&intent, &bytes, &err));
    ASSERT_OK(co_intent_decode(bytes.data, bytes.length, &read, &err));
    co_intent_free(&read);
    char *format = strstr((char *)bytes.data, "sluice-intent/1");
    assert_non_null(format);
    format[14] = '2';
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, co_intent_decode(bytes.data, bytes.length, &read, &err));
    format[14] = '1';
    for (size_t i = 0; i < bytes.length; i++) { /* a changed byte never becomes another intent by decoding leniently */
        pf_buffer again = {0};
        bytes.data[i] ^= 0x20;
        if (co_intent_decode(bytes.data, bytes.length, &read, NULL) == SLUICE_OK) {
            ASSERT_OK(co_intent_encode(&read, &again, &err));
            assert_int_equal(again.length, bytes.length);
            assert_memory_equal(again.data, bytes.data, bytes.length);
            co_intent_free(&read);
        }
        pf_buffer_free(&again);
        bytes.data[i] ^= 0x20;
    }
    pf_buffer_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_frame_reads_back_what_was_armed, setup, teardown),
        cmocka_unit_test_setup_teardown(arm_confirm_and_retire_are_one_sync_each, setup, teardown),
        cmocka_unit_test_setup_teardown(a_torn_frame_leaves_the_older_one_in_force, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_of_both_frames_leaves_the_scope, setup, teardown),
        cmocka_unit_test(a_scope_overlaps_by_branch_and_table),
        cmocka_unit_test_setup_teardown(only_a_dead_owners_slot_is_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_slot_taken_leaves_none, setup, teardown),
        cmocka_unit_test(an_intent_of_another_format_is_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
