/*
 * Differences between two snapshots: by key and by row id, both ways, against a model over a random history.
 */
#include "rows_fixture.h"
#include "store/read/diff.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make(void **state)
{
    static graph_fixture fixture;
    graph_fixture_make(&fixture, 1234);
    *state = &fixture;
    return 0;
}

static int unmake(void **state)
{
    graph_fixture_free(*state);
    return 0;
}

static uint64_t generation(graph_fixture *fixture)
{
    st_view *view = fixture_head(fixture);
    uint64_t number = view->generation;
    st_view_free(view);
    return number;
}

typedef struct listing {
    char text[8192];
    size_t length;
} listing;

/* "+7 ~8(1,2) -9 ": keys of one integer, or "#n" for row ids less ST_ROW_BLOCK. */
static sluice_status list(void *context, const st_row_change *change, sluice_error *err)
{
    listing *list = context;
    pf_buffer key = {0};
    char number[32];
    if (change->row_id > 0)
        (void)snprintf(number, sizeof number, "#%llu", (unsigned long long)(change->row_id - ST_ROW_BLOCK));
    PF_TRY(pf_buffer_append(&key, number, change->row_id > 0 ? strlen(number) : 0, err));
    for (uint32_t i = 0; i < change->key_count; i++) {
        if (key.length > 0)
            PF_TRY(pf_buffer_append(&key, ":", 1, err));
        PF_TRY(st_value_text(change->key[i], change->key_row, &key, err));
    }
    list->length += (size_t)snprintf(list->text + list->length, sizeof list->text - list->length, "%c%.*s",
                                     "+~-"[change->kind], (int)key.length, (const char *)key.data);
    pf_buffer_free(&key);
    for (uint32_t i = 0; i < change->property_count; i++)
        list->length += (size_t)snprintf(list->text + list->length, sizeof list->text - list->length, "%c%u",
                                         i == 0 ? '(' : ',', change->properties[i]);
    list->length += (size_t)snprintf(list->text + list->length, sizeof list->text - list->length, "%s",
                                     change->property_count > 0 ? ") " : " ");
    assert_true(list->length < sizeof list->text);
    return SLUICE_OK;
}

/* Compared in blocks of one row, of three, and at once: the same changes in the same order. */
static void diff_in_any_memory(st_snapshot *from, st_snapshot *to, uint64_t table, listing *ret_told)
{
    sluice_error err = {0};
    static const char *const ranges[] = {"1", "3", "0"};
    for (unsigned i = 0; i < 3; i++) {
        listing told = {.length = 0};
        setenv("SLUICE_TEST_RANGE", ranges[i], 1);
        ASSERT_OK(st_diff_table(from, to, table, list, &told, &err));
        if (i > 0)
            assert_string_equal(told.text, ret_told->text);
        *ret_told = told;
    }
}

static void assert_diff(graph_fixture *fixture, uint64_t from, uint64_t to, uint64_t table, const char *wanted)
{
    listing told;
    char at[2][24];
    (void)snprintf(at[0], sizeof at[0], "%llu", (unsigned long long)from);
    (void)snprintf(at[1], sizeof at[1], "%llu", (unsigned long long)to);
    st_snapshot *one = rows_open(fixture->graph, at[0]), *two = rows_open(fixture->graph, at[1]);
    diff_in_any_memory(one, two, table, &told);
    assert_string_equal(told.text, wanted);
    st_snapshot_close(one);
    st_snapshot_close(two);
}

static void rows_are_inserted_updated_and_deleted_by_key_whichever_way_one_looks(void **state)
{
    graph_fixture *fixture = *state;
    st_edit_add add = rows_persons(fixture, 1, 4, 2, true);
    (void)rows_publish(fixture, PERSON, &add);
    uint64_t before = generation(fixture);
    uint64_t gone[] = {ST_ROW_BLOCK + 1, ST_ROW_BLOCK + 3};
    (void)rows_delete(fixture, PERSON, gone, 2);
    uint64_t between = generation(fixture);
    add = rows_person(fixture, 2, NULL, 77);
    (void)rows_publish(fixture, PERSON, &add);
    add = rows_person(fixture, 9, "nine", 9);
    (void)rows_publish(fixture, PERSON, &add);
    uint64_t after = generation(fixture);
    assert_diff(fixture, before, before, PERSON, "");
    assert_diff(fixture, before, between, PERSON, "-2 -4 ");
    assert_diff(fixture, between, before, PERSON, "+2 +4 ");
    assert_diff(fixture, before, after, PERSON, "~2(1,2) +9 -4 ");
    assert_diff(fixture, after, before, PERSON, "~2(1,2) +4 -9 ");
    assert_diff(fixture, 1, after, PERSON, "+1 +3 +2 +9 ");
    assert_diff(fixture, before, after, KNOWS, "");
}

static void a_row_that_was_written_again_and_says_the_same_has_not_changed(void **state)
{
    graph_fixture *fixture = *state;
    st_edit_add add = rows_persons(fixture, 1, 3, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    uint64_t before = generation(fixture);
    uint64_t gone[] = {ST_ROW_BLOCK, ST_ROW_BLOCK + 1, ST_ROW_BLOCK + 2};
    (void)rows_delete(fixture, PERSON, gone, 3);
    add = rows_persons(fixture, 1, 3, 1, false);
    (void)rows_publish(fixture, PERSON, &add);
    assert_diff(fixture, before, generation(fixture), PERSON, "");
}

static void rows_without_a_key_are_known_by_their_ids_and_edges_by_their_ends(void **state)
{
    graph_fixture *fixture = *state;
    static const int64_t from[] = {1, 1, 2}, to[] = {1, 2, 1};
    st_edit_add add = rows_persons(fixture, 1, 2, 9, true);
    (void)rows_publish(fixture, PERSON, &add);
    add = rows_notes(fixture, 3);
    (void)rows_publish(fixture, NOTE, &add);
    uint64_t before = generation(fixture);
    uint64_t note[] = {ST_ROW_BLOCK + 3};
    (void)rows_delete(fixture, NOTE, note, 1);
    add = rows_notes(fixture, 1);
    (void)rows_publish(fixture, NOTE, &add);
    add = rows_knows(fixture, from, to, 3);
    (void)rows_publish(fixture, KNOWS, &add);
    uint64_t after = generation(fixture);
    assert_diff(fixture, before, after, NOTE, "+#5 -#3 ");
    assert_diff(fixture, before, after, KNOWS, "+1:1 +1:2 +2:1 ");
    assert_diff(fixture, after, before, KNOWS, "-1:1 -1:2 -2:1 ");
}

/* ---- a random history ---- */

#define KEYS  12
#define STEPS 24

typedef struct model { /* of one generation: what each person is, and its row id */
    bool there[KEYS];
    int32_t age[KEYS];
    uint64_t row[KEYS];
} model;

static void assert_model_diff(graph_fixture *fixture, const model *models, const uint64_t *numbers, int a, int b)
{
    listing told;
    char at[2][24], wanted[32];
    size_t expected = 0;
    (void)snprintf(at[0], sizeof at[0], "%llu", (unsigned long long)numbers[a]);
    (void)snprintf(at[1], sizeof at[1], "%llu", (unsigned long long)numbers[b]);
    st_snapshot *one = rows_open(fixture->graph, at[0]), *two = rows_open(fixture->graph, at[1]);
    diff_in_any_memory(one, two, PERSON, &told);
    st_snapshot_close(one);
    st_snapshot_close(two);
    for (int key = 0; key < KEYS; key++) {
        const model *from = &models[a], *to = &models[b];
        if (!from->there[key] && !to->there[key])
            continue;
        if (from->there[key] && to->there[key] && from->age[key] == to->age[key])
            continue;
        bool both = from->there[key] && to->there[key];
        (void)snprintf(wanted, sizeof wanted, "%c%d%s ",
                       both               ? '~'
                       : from->there[key] ? '-'
                                          : '+',
                       key, both ? "(2)" : "");
        expected += strlen(wanted);
        assert_non_null(strstr(told.text, wanted));
    }
    assert_int_equal(told.length, expected);
}

static void any_two_places_of_a_random_history_differ_as_the_model_says(void **state)
{
    graph_fixture *fixture = *state;
    uint64_t seed = 7, next = ST_ROW_BLOCK, numbers[STEPS + 1] = {generation(fixture)};
    model models[STEPS + 1] = {0};
    for (int step = 1; step <= STEPS; step++) {
        model *now = &models[step];
        int key = (int)fixture_below(&seed, KEYS);
        *now = models[step - 1];
        if (now->there[key])
            (void)rows_delete(fixture, PERSON, &now->row[key], 1);
        if (!now->there[key] || fixture_below(&seed, 3) > 0) { /* insert, or the second half of an update */
            now->age[key] = (int32_t)fixture_below(&seed, 3);
            st_edit_add add = rows_person(fixture, key, "x", now->age[key]);
            (void)rows_publish(fixture, PERSON, &add);
            now->there[key] = true;
            now->row[key] = next++;
        } else {
            now->there[key] = false;
        }
        numbers[step] = generation(fixture);
    }
    for (int a = 0; a <= STEPS; a++)
        for (int b = 0; b <= STEPS; b++)
            assert_model_diff(fixture, models, numbers, a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_inserted_updated_and_deleted_by_key_whichever_way_one_looks, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(a_row_that_was_written_again_and_says_the_same_has_not_changed, make, unmake),
        cmocka_unit_test_setup_teardown(rows_without_a_key_are_known_by_their_ids_and_edges_by_their_ends, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(any_two_places_of_a_random_history_differ_as_the_model_says, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
