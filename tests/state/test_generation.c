/*
 * Generations: golden JSON, groups (P-03, OW-077), row ids (OW-035), forks, receipts, finding, change sets, damage.
 */
#include "store/format/json.h"
#include "store/log/log.h"
#include "tests/support/graph_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make(void **state)
{
    static graph_fixture fixture;
    graph_fixture_make(&fixture, 4711);
    *state = &fixture;
    return 0;
}

static int unmake(void **state)
{
    graph_fixture_free(*state);
    return 0;
}

/* Publishes one commit that adds a fragment of `rows` rows. */
static pf_id add_rows(graph_fixture *fixture, uint64_t table, uint64_t rows)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit_add add = fixture_fake_add(fixture, rows);
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, table, &add);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    pf_id id = delta.commit.id;
    st_delta_free(&delta);
    return id;
}

/* A group of three, each adding 10 rows; their ids. */
static void publish_three(graph_fixture *fixture, pf_id ret_ids[3], pf_id ret_operations[3])
{
    sluice_error err = {0};
    st_delta members[3], *deltas[3] = {&members[0], &members[1], &members[2]};
    for (int i = 0; i < 3; i++) {
        st_edit_add add = fixture_fake_add(fixture, 10);
        fixture_delta(fixture, &members[i]);
        (void)snprintf(members[i].commit.actor, sizeof(members[i].commit.actor), "actor-%d", i);
        fixture_add(fixture, &members[i], PERSON, &add);
        ret_ids[i] = members[i].commit.id;
        ret_operations[i] = members[i].commit.operation;
    }
    ASSERT_OK(fixture_publish(fixture, deltas, 3, &err));
    for (int i = 0; i < 3; i++)
        st_delta_free(&members[i]);
}

static void generation_one_is_empty_and_knows_every_type(void **state)
{
    graph_fixture *fixture = *state;
    st_view *view = fixture_head(fixture);
    assert_int_equal(view->generation, 1);
    assert_int_equal(view->table_count, 4);
    assert_int_equal(view->row_block, ST_ROW_BLOCK);
    assert_int_equal(view->next_row, ST_ROW_BLOCK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(view->tables[i].id, PERSON + i);
        assert_int_equal(view->tables[i].rows, 0);
        assert_true(view->tables[i].live);
    }
    assert_true(view->tables[2].edge && !view->tables[1].edge);
    assert_null(st_view_table(view, 99));
    st_view_free(view);
}

static void each_member_of_a_group_is_a_place_of_its_own(void **state) /* P-03, D-1 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    pf_id ids[3], operations[3], before = add_rows(fixture, PERSON, 5);
    publish_three(fixture, ids, operations);
    (void)add_rows(fixture, PERSON, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t generation = 0;
        uint32_t index = 9;
        st_view *view = NULL;
        st_table_list list = {0};
        bool found = false;
        st_receipt receipt;
        ASSERT_OK(st_commit_find(fixture->graph, fixture->log, &ids[i], &generation, &index, &err));
        assert_int_equal(generation, 3);
        assert_int_equal(index, i);
        ASSERT_OK(st_view_load_at(fixture->graph, fixture->log, generation, index, &view, &err));
        assert_int_equal(st_view_table(view, PERSON)->rows, 15 + 10 * i);
        assert_int_equal(st_view_table(view, PERSON)->bytes, 1500 + 1000 * i);
        assert_true(pf_id_equal(&view->head, &ids[i]));
        assert_int_equal(view->index, i);
        ASSERT_OK(st_table_materialise(fixture->graph, view, PERSON, &list, &err));
        assert_int_equal(list.count, 2 + i);
        assert_int_equal(list.fragments[1 + i].first_row, ST_ROW_BLOCK + 5 + 10 * i);
        assert_true(pf_id_equal(&list.fragments[1 + i].commit, &ids[i]));
        assert_true(pf_id_equal(&list.fragments[0].commit, &before));
        ASSERT_OK(st_receipt_find(fixture->graph, fixture->log, &operations[i], &found, &receipt, &err));
        assert_true(found);
        assert_int_equal(receipt.generation, 3);
        assert_int_equal(receipt.index, i);
        assert_true(pf_id_equal(&receipt.commit, &ids[i]));
        st_table_list_free(&list);
        st_view_free(view);
    }
    st_record record = {0};
    st_generation generation = {0};
    ASSERT_OK(st_log_read(fixture->log, 3, &record, &err));
    ASSERT_OK(st_generation_decode(&record, &generation, &err));
    assert_true(pf_id_equal(&generation.commits[0].parents[0], &before));
    assert_true(pf_id_equal(&generation.commits[1].parents[0], &ids[0]));
    assert_true(pf_id_equal(&generation.commits[2].parents[0], &ids[1]));
    assert_string_equal(generation.commits[1].actor, "actor-1");
    st_generation_free(&generation);
    st_record_free(&record);
    st_view *view = NULL;
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_view_load_at(fixture->graph, fixture->log, 3, 3, &view, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_view_load_at(fixture->graph, fixture->log, 9, ST_INDEX_LAST, &view, &err));
    pf_id unknown = pf_id_new();
    uint64_t number;
    uint32_t index;
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_commit_find(fixture->graph, fixture->log, &unknown, &number, &index, &err));
    memset(&unknown, 0x44, sizeof(unknown)); /* no UUIDv7: no time to look by */
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_commit_find(fixture->graph, fixture->log, &unknown, &number, &index, &err));
}

static void a_manifest_is_the_golden_one(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_record record = {0};
    ASSERT_OK(st_log_read(fixture->log, 1, &record, &err));
    cJSON *document = NULL;
    ASSERT_OK(st_json_parse(record.manifest, record.manifest_length, &document, &err));
    static const char *const names[] = {"format", "incarnation", "number",     "schema",  "head",
                                        "time",   "row_block",   "next_row",   "commits", "pages",
                                        "skips",  "merge",       "attachments"};
    const cJSON *item = document->child;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, item = item->next)
        assert_string_equal(item->string, names[i]);
    assert_null(item);
    static const char page[] =
        "{\"format\":\"sluice-state/1\",\"entries\":["
        "{\"id\":\"64\",\"name\":\"Person\",\"kind\":\"node\",\"state\":\"live\",\"list\":[],\"edits\":[],\"rows\":"
        "\"0\","
        "\"bytes\":\"0\"},"
        "{\"id\":\"65\",\"name\":\"Note\",\"kind\":\"node\",\"state\":\"live\",\"list\":[],\"edits\":[],\"rows\":\"0\","
        "\"bytes\":\"0\"},"
        "{\"id\":\"66\",\"name\":\"KNOWS\",\"kind\":\"edge\",\"state\":\"live\",\"list\":[],\"edits\":[],\"rows\":"
        "\"0\","
        "\"bytes\":\"0\"},"
        "{\"id\":\"67\",\"name\":\"ABOUT\",\"kind\":\"edge\",\"state\":\"live\",\"list\":[],\"edits\":[],\"rows\":"
        "\"0\","
        "\"bytes\":\"0\"}]}\n";
    static const char changes[] = "{\"format\":\"sluice-changes/1\",\"items\":[]}\n";
    assert_memory_equal(record.attachments, changes, sizeof(changes) - 1);
    assert_memory_equal(record.attachments + 64, page, sizeof(page) - 1);
    st_json_free(document);
    st_record_free(&record);
}

static void a_group_that_outgrows_its_block_takes_a_new_one_and_no_id_comes_twice(void **state) /* OW-035 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta huge, *deltas[1] = {&huge};
    fixture_delta(fixture, &huge);
    for (uint64_t left = ST_ROW_BLOCK - 5; left > 0;) { /* nearly the whole block, in fragments of the greatest size */
        uint64_t rows = left < INT32_MAX ? left : INT32_MAX;
        st_edit_add add = fixture_fake_add(fixture, rows);
        fixture_add(fixture, &huge, PERSON, &add);
        left -= rows;
    }
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&huge);
    (void)add_rows(fixture, NOTE, 5); /* fits exactly */
    st_view *view = fixture_head(fixture);
    assert_int_equal(view->row_block, ST_ROW_BLOCK);
    assert_int_equal(view->next_row, 2 * ST_ROW_BLOCK);
    st_view_free(view);
    (void)add_rows(fixture, NOTE, 1);
    view = fixture_head(fixture);
    assert_int_equal(view->row_block, 2 * ST_ROW_BLOCK); /* the next one that control/ gives */
    assert_int_equal(view->next_row, 2 * ST_ROW_BLOCK + 1);
    st_table_list list = {0};
    ASSERT_OK(st_table_materialise(fixture->graph, view, NOTE, &list, &err));
    assert_int_equal(list.fragments[0].first_row, 2 * ST_ROW_BLOCK - 5);
    assert_int_equal(list.fragments[1].first_row, 2 * ST_ROW_BLOCK);
    st_table_list_free(&list);
    st_view_free(view);
}

static void ids_that_the_plan_gave_are_kept_and_take_nothing_from_the_block(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit_add add = fixture_fake_add(fixture, 10);
    add.first_row = 7 * ST_ROW_BLOCK + 3;
    add.first_row_given = true;
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, NOTE, &add);
    uint64_t rows = 99;
    ASSERT_OK(st_delta_rows(deltas, 1, &rows, &err));
    assert_int_equal(rows, 0);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_view *view = fixture_head(fixture);
    st_table_list list = {0};
    ASSERT_OK(st_table_materialise(fixture->graph, view, NOTE, &list, &err));
    assert_int_equal(list.fragments[0].first_row, 7 * ST_ROW_BLOCK + 3);
    assert_int_equal(view->next_row, ST_ROW_BLOCK);
    st_table_list_free(&list);
    st_view_free(view);
}

static void times_never_fall_below_the_parents(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta members[2], *deltas[2] = {&members[0], &members[1]};
    for (int i = 0; i < 2; i++) {
        st_edit_add add = fixture_fake_add(fixture, 1);
        fixture_delta(fixture, &members[i]);
        fixture_add(fixture, &members[i], PERSON, &add);
    }
    members[0].commit.minted_us += 5000000;
    members[1].commit.minted_us = 12;
    ASSERT_OK(fixture_publish(fixture, deltas, 2, &err));
    st_view *view = fixture_head(fixture);
    assert_int_equal(view->head_time_us, members[0].commit.minted_us);
    st_view_free(view);
    st_delta_free(&members[0]);
    st_delta_free(&members[1]);
}

static void a_write_prepared_under_another_schema_is_refused(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit_add add = fixture_fake_add(fixture, 1);
    fixture_delta(fixture, &delta);
    fixture_add(fixture, &delta, PERSON, &add);
    delta.schema_identity.bytes[0] ^= 1;
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
}

static st_run_ref fake_run(graph_fixture *fixture, st_run_use use, uint32_t unique)
{
    st_run_ref run = {.use = use, .unique = unique, .info = {.entries = 3, .bytes = 300}};
    fixture_name(fixture, ".run", run.info.name, sizeof(run.info.name));
    return run;
}

/* An edge edit of three fragments with from, to and key runs, and change sets over them. */
static void make_large_delta(graph_fixture *fixture, st_delta *delta)
{
    sluice_error err = {0};
    st_edit edit = {.table = KNOWS, .adds = calloc(3, sizeof(st_edit_add)), .add_count = 3};
    fixture_delta(fixture, delta);
    assert_non_null(edit.adds);
    for (int i = 0; i < 3; i++) {
        edit.adds[i] = fixture_fake_add(fixture, 3);
        edit.adds[i].runs = calloc(3, sizeof(st_run_ref));
        edit.adds[i].run_count = 3;
        assert_non_null(edit.adds[i].runs);
        edit.adds[i].runs[0] = fake_run(fixture, ST_RUN_KEY, 0);
        edit.adds[i].runs[1] = fake_run(fixture, ST_RUN_FROM, 0);
        edit.adds[i].runs[2] = fake_run(fixture, ST_RUN_TO, 0);
    }
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), delta, &edit, "large", &err));
    const st_edit *added = &delta->edits[0].edit;
    delta->changes.items = calloc(4, sizeof(st_change));
    assert_non_null(delta->changes.items);
    delta->changes.count = 4;
    st_change *ends = &delta->changes.items[0], *keys = &delta->changes.items[1], *odd = &delta->changes.items[2];
    *ends = (st_change){.table = PERSON,
                        .space = ST_SPACE_ENDPOINT_USED,
                        .runs = calloc(6, sizeof(struct st_change_run)),
                        .run_count = 6};
    *keys = (st_change){.table = KNOWS,
                        .space = ST_SPACE_KEY_INSERTED,
                        .runs = calloc(3, sizeof(struct st_change_run)),
                        .run_count = 3};
    *odd = (st_change){.table = KNOWS,
                       .space = ST_SPACE_KEY_INSERTED,
                       .runs = calloc(1, sizeof(struct st_change_run)),
                       .run_count = 1};
    delta->changes.items[3] = (st_change){
        .table = NOTE, .space = ST_SPACE_KEY_DELETED, .hashes = calloc(2, sizeof(uint64_t)), .hash_count = 2};
    assert_true(ends->runs && keys->runs && odd->runs && delta->changes.items[3].hashes);
    delta->changes.items[3].hashes[0] = 7;
    delta->changes.items[3].hashes[1] = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        const st_edit_add *add = &added->adds[i];
        keys->runs[i] = (struct st_change_run){KNOWS, add->runs[0], add->fragment};
        ends->runs[i] = (struct st_change_run){KNOWS, add->runs[1], add->fragment};
        ends->runs[3 + i] = (struct st_change_run){KNOWS, add->runs[2], add->fragment};
    }
    odd->runs[0] = keys->runs[1]; /* not all runs of the use: named one by one */
}

static void assert_same_changes(const st_changes *a, const st_changes *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        const st_change *x = &a->items[i], *y = &b->items[i];
        assert_int_equal(x->table, y->table);
        assert_int_equal(x->space, y->space);
        assert_int_equal(x->whole, y->whole);
        assert_int_equal(x->hash_count, y->hash_count);
        for (uint64_t h = 0; h < x->hash_count; h++)
            assert_true(x->hashes[h] == y->hashes[h]);
        assert_int_equal(x->run_count, y->run_count);
        for (uint32_t r = 0; r < x->run_count; r++) {
            assert_string_equal(x->runs[r].run.info.name, y->runs[r].run.info.name);
            assert_string_equal(x->runs[r].fragment.name, y->runs[r].fragment.name);
            assert_int_equal(x->runs[r].run.use, y->runs[r].run.use);
        }
    }
}

static void a_change_set_comes_back_as_it_was_and_large_ones_stay_small(void **state) /* K-01 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_record record = {0};
    st_changes changes = {0};
    make_large_delta(fixture, &delta);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    ASSERT_OK(st_log_read(fixture->log, 2, &record, &err));
    ASSERT_OK(st_generation_changes(fixture->graph, &record, 0, &changes, &err));
    assert_same_changes(&changes, &delta.changes);
    static const char by_edit[] = "\"runs\":[{\"edit\":0,\"use\":\"from\"},{\"edit\":0,\"use\":\"to\"}]";
    static const char listed[] = "\"hashes\":\"0000000000000007ffffffffffffffff\"";
    assert_non_null(memmem(record.attachments, record.attachments_length, by_edit, sizeof(by_edit) - 1));
    assert_non_null(memmem(record.attachments, record.attachments_length, listed, sizeof(listed) - 1));
    st_changes_free(&changes);
    st_record_free(&record);
    st_delta_free(&delta);
}

static void a_delta_survives_an_intent_and_its_digest_leaves_slots_out(void **state) /* OW-034 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, again = {0};
    pf_buffer bytes = {0}, second = {0};
    make_large_delta(fixture, &delta);
    delta.commit.message = strdup("why \xC3\xA9");
    ASSERT_OK(st_delta_encode(&delta, &bytes, &err));
    ASSERT_OK(st_delta_decode(bytes.data, bytes.length, &again, &err));
    ASSERT_OK(st_delta_encode(&again, &second, &err));
    assert_int_equal(bytes.length, second.length);
    assert_memory_equal(bytes.data, second.data, bytes.length);
    assert_string_equal(again.commit.message, "why \xC3\xA9");
    pf_sha256 digest = st_delta_digest(&delta), other = st_delta_digest(&again);
    assert_true(pf_sha256_equal(&digest, &other));
    again.commit.time_us = 77; /* slots */
    again.commit.parents[0] = pf_id_new();
    again.edits[0].edit.adds[0].first_row = 99;
    other = st_delta_digest(&again);
    assert_true(pf_sha256_equal(&digest, &other));
    again.commit.deleted++; /* anything else */
    other = st_delta_digest(&again);
    assert_false(pf_sha256_equal(&digest, &other));
    again.commit.deleted--;
    again.edits[0].edit.adds[0].fragment.rows++;
    other = st_delta_digest(&again);
    assert_false(pf_sha256_equal(&digest, &other));
    st_delta broken = {0};
    for (size_t at = 0; at < bytes.length; at += 7) { /* hostile bytes: refused, or another delta */
        bytes.data[at] ^= 0x15;
        if (st_delta_decode(bytes.data, bytes.length, &broken, &err) == SLUICE_OK) {
            other = st_delta_digest(&broken);
            assert_false(pf_sha256_equal(&digest, &other));
            st_delta_free(&broken);
        }
        bytes.data[at] ^= 0x15;
    }
    pf_buffer_free(&bytes);
    pf_buffer_free(&second);
    st_delta_free(&again);
    st_delta_free(&delta);
}

/* A record whose change set is not what its manifest says, as no chain would hold it. */
static void an_unreadable_change_set_counts_as_everything(void **state) /* K-02 */
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_record record = {0};
    st_changes changes = {0};
    (void)add_rows(fixture, PERSON, 3);
    ASSERT_OK(st_log_read(fixture->log, 2, &record, &err));
    uint8_t *found =
        memmem(record.storage, record.attachments + record.attachments_length - record.storage, "sluice-changes/1", 16);
    assert_non_null(found);
    found[3] ^= 1;
    ASSERT_OK(st_generation_changes(fixture->graph, &record, 0, &changes, &err));
    assert_int_equal(changes.count, 1);
    assert_true(changes.items[0].whole);
    assert_int_equal(changes.items[0].space, ST_SPACE_WHOLE_TABLE);
    assert_int_equal(changes.items[0].table, 0);
    st_changes_free(&changes);
    st_record_free(&record);
}

static void a_large_edit_is_staged_and_read_back_checked(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_edit edit = {.table = PERSON, .adds = calloc(1000, sizeof(st_edit_add)), .add_count = 1000};
    st_table_list list = {0};
    assert_non_null(edit.adds);
    for (int i = 0; i < 1000; i++)
        edit.adds[i] = fixture_fake_add(fixture, 2);
    fixture_delta(fixture, &delta);
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), &delta, &edit, "huge", &err));
    assert_true(delta.edits[0].staged);
    assert_string_equal(delta.edits[0].file, "huge-e.json");
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_view *view = fixture_head(fixture);
    ASSERT_OK(st_table_materialise(fixture->graph, view, PERSON, &list, &err));
    assert_int_equal(list.count, 1000);
    assert_int_equal(list.fragments[999].first_row, ST_ROW_BLOCK + 1998);
    st_table_list_free(&list);
    ASSERT_OK(pf_sim_flip(fixture->disk, "g/tables/64/lists/huge-e.json", 500, 1, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, st_table_materialise(fixture->graph, view, PERSON, &list, &err));
    assert_non_null(strstr(err.message, "tables/64/lists/huge-e.json"));
    st_view_free(view);
}

static void a_branch_forked_in_the_middle_of_a_group_has_exactly_that_state(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    pf_id ids[3], operations[3], first = add_rows(fixture, PERSON, 5);
    publish_three(fixture, ids, operations);
    st_view *view = NULL, *head = NULL;
    st_log *fork = NULL, *main_log = fixture->log;
    pf_buffer manifest = {0}, attachments = {0};
    ASSERT_OK(st_view_load_at(fixture->graph, main_log, 3, 1, &view, &err));
    ASSERT_OK(st_opening_build_fork(fixture->graph, view, 2, 9 * ST_ROW_BLOCK, &manifest, &attachments, &err));
    ASSERT_OK(st_branch_make(fixture->graph, 2, view->generation, &view->digest, &manifest, &attachments, &err));
    ASSERT_OK(st_graph_log(fixture->graph, 2, &fork, &err));
    ASSERT_OK(st_view_load(fixture->graph, fork, true, &head, &err));
    assert_int_equal(head->generation, 3);
    assert_int_equal(head->index, 1);
    assert_int_equal(head->incarnation, 2);
    assert_true(pf_id_equal(&head->head, &ids[1]));
    assert_int_equal(st_view_table(head, PERSON)->rows, 25);
    assert_int_equal(head->next_row, 9 * ST_ROW_BLOCK);
    st_view_free(head);

    lk_lockfile *main_locks = fixture->locks; /* go on on the fork */
    ASSERT_OK(lk_lockfile_open(st_graph_volume(fixture->graph), "branches/2/locks", &fixture->locks, &err));
    fixture->log = fork;
    pf_id own = add_rows(fixture, PERSON, 4);
    head = fixture_head(fixture);
    assert_int_equal(head->generation, 4);
    assert_int_equal(st_view_table(head, PERSON)->rows, 29);
    st_table_list list = {0};
    ASSERT_OK(st_table_materialise(fixture->graph, head, PERSON, &list, &err));
    assert_int_equal(list.count, 4);
    assert_int_equal(list.fragments[3].first_row, 9 * ST_ROW_BLOCK);
    st_table_list_free(&list);
    st_view_free(head);

    /* back through the fork: what it has in common with main, and nothing that came to main later */
    uint64_t generation;
    uint32_t index;
    ASSERT_OK(st_commit_find(fixture->graph, fork, &own, &generation, &index, &err));
    assert_int_equal(generation, 4);
    ASSERT_OK(st_commit_find(fixture->graph, fork, &first, &generation, &index, &err));
    assert_int_equal(generation, 2);
    ASSERT_OK(st_commit_find(fixture->graph, fork, &ids[1], &generation, &index, &err));
    assert_int_equal(index, 1);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_commit_find(fixture->graph, fork, &ids[2], &generation, &index, &err));
    ASSERT_OK(st_view_load_at(fixture->graph, fork, 2, 0, &head, &err));
    assert_int_equal(st_view_table(head, PERSON)->rows, 5);
    st_view_free(head);
    ASSERT_OK(st_view_load_at(fixture->graph, fork, 3, 1, &head, &err));
    assert_int_equal(st_view_table(head, PERSON)->rows, 25);
    st_view_free(head);
    ASSERT_OK(st_view_load_at(fixture->graph, fork, 3, ST_INDEX_LAST, &head, &err));
    assert_int_equal(st_view_table(head, PERSON)->rows, 25);
    st_view_free(head);
    ASSERT_OK(st_view_load_at(fixture->graph, fork, 3, 0, &head, &err));
    assert_int_equal(st_view_table(head, PERSON)->rows, 15);
    st_view_free(head);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_view_load_at(fixture->graph, fork, 3, 2, &head, &err));
    bool found;
    st_receipt receipt;
    ASSERT_OK(st_receipt_find(fixture->graph, fork, &operations[0], &found, &receipt, &err));
    assert_false(found); /* operation ids belong to a branch */
    lk_lockfile_close(fixture->locks);
    fixture->locks = main_locks;
    fixture->log = main_log;
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    st_view_free(view);
}

static sluice_status note_path(void *context, const char *path, sluice_error *err)
{
    (void)err;
    char *all = context;
    size_t length = strlen(all);
    (void)snprintf(all + length, 8192 - length, "%s\n", path);
    return SLUICE_OK;
}

static void a_record_names_every_object_below_tables(void **state)
{
    graph_fixture *fixture = *state;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_record record = {0};
    static char paths[8192];
    paths[0] = '\0';
    make_large_delta(fixture, &delta);
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    ASSERT_OK(st_log_read(fixture->log, 2, &record, &err));
    ASSERT_OK(st_record_objects(fixture->graph, &record, false, note_path, paths, &err));
    for (int i = 0; i < 3; i++) {
        char path[128];
        const st_edit_add *add = &delta.edits[0].edit.adds[i];
        (void)snprintf(path, sizeof(path), "tables/66/fragments/%s\n", add->fragment.name);
        assert_non_null(strstr(paths, path));
        (void)snprintf(path, sizeof(path), "tables/66/keys/%s\n", add->runs[2].info.name);
        assert_non_null(strstr(paths, path));
    }
    st_record_free(&record);
    st_delta_free(&delta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(generation_one_is_empty_and_knows_every_type, make, unmake),
        cmocka_unit_test_setup_teardown(each_member_of_a_group_is_a_place_of_its_own, make, unmake),
        cmocka_unit_test_setup_teardown(a_manifest_is_the_golden_one, make, unmake),
        cmocka_unit_test_setup_teardown(a_group_that_outgrows_its_block_takes_a_new_one_and_no_id_comes_twice, make,
                                        unmake),
        cmocka_unit_test_setup_teardown(ids_that_the_plan_gave_are_kept_and_take_nothing_from_the_block, make, unmake),
        cmocka_unit_test_setup_teardown(times_never_fall_below_the_parents, make, unmake),
        cmocka_unit_test_setup_teardown(a_write_prepared_under_another_schema_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(a_change_set_comes_back_as_it_was_and_large_ones_stay_small, make, unmake),
        cmocka_unit_test_setup_teardown(a_delta_survives_an_intent_and_its_digest_leaves_slots_out, make, unmake),
        cmocka_unit_test_setup_teardown(an_unreadable_change_set_counts_as_everything, make, unmake),
        cmocka_unit_test_setup_teardown(a_large_edit_is_staged_and_read_back_checked, make, unmake),
        cmocka_unit_test_setup_teardown(a_branch_forked_in_the_middle_of_a_group_has_exactly_that_state, make, unmake),
        cmocka_unit_test_setup_teardown(a_record_names_every_object_below_tables, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
