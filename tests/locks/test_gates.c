/* Complete sets of gates: order, joining, all or nothing, hooks, orphan marks, everything off (OW-060 to OW-062). */
#include "locks/gates.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define LOCKS_PATH "branches/1/locks"

typedef struct call {
    char what; /* e, s, l */
    lk_gate_key key;
} call;

typedef struct setting {
    char *folder;
    pf_volume *volumes[2];
    lk_lockfile *files[2];
    call calls[64];
    unsigned count;
    uint64_t fail_table;
    uint64_t orphan_table;
} setting;

static int make(void **state)
{
    sluice_error err;
    pf_file *file;
    setting *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = test_folder_make();
    for (int i = 0; i < 2; i++)
        ASSERT_OK(pf_volume_open(fixture->folder, PF_WRITE, &fixture->volumes[i], &err));
    ASSERT_OK(pf_make_folder(fixture->volumes[0], "branches", &err));
    ASSERT_OK(pf_make_folder(fixture->volumes[0], "branches/1", &err));
    ASSERT_OK(pf_create(fixture->volumes[0], LOCKS_PATH, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(lk_lockfile_open(fixture->volumes[i], LOCKS_PATH, &fixture->files[i], &err));
    *state = fixture;
    return 0;
}

static int unmake(void **state)
{
    setting *fixture = *state;
    for (int i = 0; i < 2; i++) {
        lk_lockfile_close(fixture->files[i]);
        pf_volume_close(fixture->volumes[i]);
    }
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static sluice_status note_enter(void *context, const lk_gate_key *key, const pf_id *operation, pf_deadline deadline,
                                bool *ret_orphaned, pf_id *ret_orphan_operation, sluice_error *err)
{
    setting *fixture = context;
    (void)deadline;
    fixture->calls[fixture->count++] = (call){'e', *key};
    if (key->kind == LK_GATE_TABLE && key->table == fixture->fail_table)
        return pf_fail(err, SLUICE_LIVE_WRITER_CONTENTION, "held");
    *ret_orphaned = key->kind == LK_GATE_TABLE && key->table == fixture->orphan_table;
    *ret_orphan_operation = *operation;
    return SLUICE_OK;
}

static void note_settle(void *context, const lk_gate_key *key)
{
    setting *fixture = context;
    fixture->calls[fixture->count++] = (call){'s', *key};
}

static void note_leave(void *context, const lk_gate_key *key)
{
    setting *fixture = context;
    fixture->calls[fixture->count++] = (call){'l', *key};
}

static lk_gate_key schema_gate(bool exclusive)
{
    return (lk_gate_key){LK_GATE_SCHEMA, 1, 0, exclusive};
}

static lk_gate_key table_gate(uint64_t table, bool exclusive)
{
    return (lk_gate_key){LK_GATE_TABLE, 1, table, exclusive};
}

static sluice_status take(setting *fixture, int handle, const lk_gate_key *keys, uint32_t count, lk_gates **ret_gates,
                          bool *ret_orphaned, sluice_error *err)
{
    const lk_gate_hooks hooks = {fixture, note_enter, note_settle, note_leave};
    static lk_gate_hooks kept; /* the set keeps the address */
    pf_id operation = pf_id_new();
    kept = hooks;
    return lk_gates_take(fixture->files[handle], handle == 0 ? &kept : NULL, keys, count, &operation,
                         pf_deadline_in_ms(5), ret_gates, ret_orphaned, err);
}

static void a_set_is_taken_in_order_and_released_in_reverse(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *gates;
    bool orphaned = true;
    const lk_gate_key keys[] = {
        table_gate(90, false), schema_gate(false), table_gate(70, false), {LK_GATE_BRANCH, 1, 0, false}};
    ASSERT_OK(take(fixture, 0, keys, 4, &gates, &orphaned, &err));
    assert_false(orphaned);
    assert_int_equal(fixture->count, 4);
    assert_int_equal(fixture->calls[0].key.kind, LK_GATE_SCHEMA);
    assert_int_equal(fixture->calls[1].key.kind, LK_GATE_BRANCH);
    assert_int_equal(fixture->calls[2].key.table, 70);
    assert_int_equal(fixture->calls[3].key.table, 90);
    lk_gates_release(gates);
    assert_int_equal(fixture->count, 8);
    assert_int_equal(fixture->calls[4].what, 'l');
    assert_int_equal(fixture->calls[4].key.table, 90);
    assert_int_equal(fixture->calls[7].key.kind, LK_GATE_SCHEMA);
}

static void duplicates_are_joined_to_the_stronger_mode(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *gates;
    bool orphaned;
    const lk_gate_key keys[] = {table_gate(70, false), table_gate(70, true), table_gate(70, false)};
    ASSERT_OK(take(fixture, 0, keys, 3, &gates, &orphaned, &err));
    assert_int_equal(fixture->count, 1);
    assert_true(fixture->calls[0].key.exclusive);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, lk_take(fixture->files[1], 70, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    lk_gates_release(gates);
    ASSERT_OK(lk_take(fixture->files[1], 70, PF_LOCK_SHARED, PF_AT_ONCE, &err));
}

static void keyed_writers_share_and_an_overwrite_waits_for_them(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *first;
    lk_gates *second;
    lk_gates *third = NULL;
    bool orphaned;
    const lk_gate_key shared[] = {schema_gate(false), table_gate(70, false)};
    const lk_gate_key alone[] = {schema_gate(false), table_gate(70, true)};
    ASSERT_OK(take(fixture, 0, shared, 2, &first, &orphaned, &err));
    ASSERT_OK(take(fixture, 1, shared, 2, &second, &orphaned, &err));
    lk_gates_release(second);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, take(fixture, 1, alone, 2, &third, &orphaned, &err));
    assert_null(third);
    lk_gates_release(first);
    ASSERT_OK(take(fixture, 1, alone, 2, &third, &orphaned, &err));
    lk_gates_release(third);
}

/* Whether the pool's entry or the kernel's byte is what cannot be had. */
static void a_set_that_cannot_be_had_leaves_nothing_held(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *gates = NULL;
    bool orphaned;
    const lk_gate_key keys[] = {schema_gate(false), table_gate(70, false), table_gate(71, false)};
    fixture->fail_table = 71;
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, take(fixture, 0, keys, 3, &gates, &orphaned, &err));
    fixture->fail_table = 0;
    ASSERT_OK(lk_take(fixture->files[1], 71, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, take(fixture, 0, keys, 3, &gates, &orphaned, &err));
    lk_release(fixture->files[1], 71);
    assert_null(gates);
    unsigned entered = 0;
    unsigned left = 0;
    for (unsigned i = 0; i < fixture->count; i++) {
        entered += fixture->calls[i].what == 'e';
        left += fixture->calls[i].what == 'l';
    }
    assert_int_equal(entered, 6);
    assert_int_equal(left, 5); /* all but the one that was refused */
    ASSERT_OK(lk_take(fixture->files[1], LK_BYTE_SCHEMA, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(lk_take(fixture->files[1], 70, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(lk_take(fixture->files[1], 71, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
}

static void an_orphaned_gate_says_so_until_it_is_settled(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *gates;
    bool orphaned = false;
    const lk_gate_key keys[] = {table_gate(70, false), table_gate(71, false)};
    fixture->orphan_table = 70;
    ASSERT_OK(take(fixture, 0, keys, 2, &gates, &orphaned, &err));
    assert_true(orphaned);
    lk_gates_settle(gates);
    assert_int_equal(fixture->count, 4);
    assert_int_equal(fixture->calls[2].what, 's');
    assert_int_equal(fixture->calls[2].key.table, 70);
    lk_gates_release(gates);
}

static void with_gates_off_nothing_is_taken(void **state)
{
    setting *fixture = *state;
    sluice_error err;
    lk_gates *gates;
    bool orphaned;
    const lk_gate_key keys[] = {schema_gate(true), table_gate(70, true)};
    assert_int_equal(setenv("SLUICE_NO_GATES", "1", 1), 0);
    ASSERT_OK(take(fixture, 0, keys, 2, &gates, &orphaned, &err));
    assert_int_equal(unsetenv("SLUICE_NO_GATES"), 0);
    assert_int_equal(fixture->count, 0);
    ASSERT_OK(lk_take(fixture->files[1], 70, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    lk_gates_settle(gates);
    lk_gates_release(gates);
    lk_gates_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_is_taken_in_order_and_released_in_reverse, make, unmake),
        cmocka_unit_test_setup_teardown(duplicates_are_joined_to_the_stronger_mode, make, unmake),
        cmocka_unit_test_setup_teardown(keyed_writers_share_and_an_overwrite_waits_for_them, make, unmake),
        cmocka_unit_test_setup_teardown(a_set_that_cannot_be_had_leaves_nothing_held, make, unmake),
        cmocka_unit_test_setup_teardown(an_orphaned_gate_says_so_until_it_is_settled, make, unmake),
        cmocka_unit_test_setup_teardown(with_gates_off_nothing_is_taken, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
