#include "rows_fixture.h"
#include "store/fragment/key.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rows_attached;

typedef struct writing { /* a fragment in the making */
    graph_fixture *fixture;
    uint64_t table;
    st_column_spec *specs;
    uint32_t count;
    st_column_builder *builders[8];
    st_fragment_writer *writer;
    char name[64];
    uint64_t rows;
} writing;

static void begin(writing *w, graph_fixture *fixture, const char *type)
{
    sluice_error err = {0};
    st_view *view = fixture_head(fixture);
    const st_type_def *def = st_schema_find(view->schema, type);
    *w = (writing){.fixture = fixture, .table = def->table};
    ASSERT_OK(st_type_columns(view->schema, def, &w->specs, &w->count, &err));
    for (uint32_t i = 0; i < w->count; i++)
        ASSERT_OK(st_column_builder_new(&w->specs[i], &w->builders[i], &err));
    fixture_name(fixture, ".arrow", w->name, sizeof(w->name));
    ASSERT_OK(st_fragment_create(rows_attached ? NULL : st_graph_volume(fixture->graph), def->table, w->name, w->specs,
                                 w->count, false, &w->writer, &err));
    st_view_free(view);
}

static void flush(writing *w)
{
    sluice_error err = {0};
    st_column columns[8];
    for (uint32_t i = 0; i < w->count; i++) {
        st_builder_view(w->builders[i], &columns[i]);
        w->rows += i == 0 ? columns[i].length : 0;
    }
    ASSERT_OK(st_fragment_write(w->writer, columns, columns[0].length, &err));
    for (uint32_t i = 0; i < w->count; i++)
        st_builder_truncate(w->builders[i], 0);
}

/* One run over a range of columns, read back from the fragment. */
static void add_run(writing *w, st_edit_add *add, st_run_use use, uint32_t first, uint32_t columns)
{
    sluice_error err = {0};
    pf_volume *volume = st_graph_volume(w->fixture->graph);
    st_fragment *fragment = NULL;
    st_run_entry *entries = calloc(w->rows, sizeof(*entries));
    uint64_t at = 0;
    st_run_ref *run = &add->runs[add->run_count++];
    char name[64];
    assert_non_null(entries);
    ASSERT_OK(st_fragment_open(volume, w->table, &add->fragment, &fragment, &err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment); batch++) {
        st_column storage[4];
        const st_column *key[4];
        for (uint32_t i = 0; i < columns; i++) {
            ASSERT_OK(st_fragment_column(fragment, batch, first + i, &storage[i], &err));
            key[i] = &storage[i];
        }
        for (uint64_t row = 0; row < st_fragment_batch_rows(fragment, batch); row++, at++)
            entries[at] = (st_run_entry){.hash = st_key_hash_row(key, columns, row), .position = at};
    }
    st_fragment_close(fragment);
    fixture_name(w->fixture, ".run", name, sizeof(name));
    run->use = use;
    ASSERT_OK(st_run_write(volume, w->table, name, entries, w->rows, &run->info, &err));
    free(entries);
}

static st_edit_add finish(writing *w, bool runs, bool edge, bool keyed)
{
    sluice_error err = {0};
    st_edit_add add = {0};
    if (st_builder_length(w->builders[0]) > 0)
        flush(w);
    ASSERT_OK(st_fragment_finish(w->writer, &add.fragment, &err));
    add.runs = calloc(3, sizeof(st_run_ref));
    assert_non_null(add.runs);
    if (runs && keyed)
        add_run(w, &add, ST_RUN_KEY, 0, edge ? 2 : 1);
    if (runs && edge) {
        add_run(w, &add, ST_RUN_FROM, 0, 1);
        add_run(w, &add, ST_RUN_TO, 1, 1);
    }
    for (uint32_t i = 0; i < w->count; i++)
        st_column_builder_free(w->builders[i]);
    st_type_columns_free(w->specs, w->count);
    return add;
}

st_edit_add rows_persons(graph_fixture *fixture, int64_t first, uint64_t count, uint64_t batch, bool runs)
{
    sluice_error err = {0};
    writing w;
    begin(&w, fixture, "Person");
    for (uint64_t i = 0; i < count; i++) {
        char name[32];
        int64_t id = first + (int64_t)i;
        int length = snprintf(name, sizeof(name), "p%lld", (long long)id);
        ASSERT_OK(st_append_i64(w.builders[0], id, &err));
        if (id % 5 == 0)
            ASSERT_OK(st_append_null(w.builders[1], &err));
        else
            ASSERT_OK(st_append_bytes(w.builders[1], name, (size_t)length, &err));
        ASSERT_OK(st_append_i32(w.builders[2], (int32_t)(id % 100), &err));
        if ((i + 1) % batch == 0)
            flush(&w);
    }
    return finish(&w, runs, false, true);
}

st_edit_add rows_person(graph_fixture *fixture, int64_t id, const char *name, int32_t age)
{
    sluice_error err = {0};
    writing w;
    begin(&w, fixture, "Person");
    ASSERT_OK(st_append_i64(w.builders[0], id, &err));
    if (name)
        ASSERT_OK(st_append_bytes(w.builders[1], name, strlen(name), &err));
    else
        ASSERT_OK(st_append_null(w.builders[1], &err));
    ASSERT_OK(st_append_i32(w.builders[2], age, &err));
    return finish(&w, true, false, true);
}

st_edit_add rows_notes(graph_fixture *fixture, uint64_t count)
{
    sluice_error err = {0};
    writing w;
    begin(&w, fixture, "Note");
    for (uint64_t i = 0; i < count; i++)
        ASSERT_OK(st_append_bytes(w.builders[0], "note", 4, &err));
    return finish(&w, true, false, false);
}

st_edit_add rows_knows(graph_fixture *fixture, const int64_t *from, const int64_t *to, uint64_t count)
{
    sluice_error err = {0};
    writing w;
    begin(&w, fixture, "KNOWS");
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_OK(st_append_i64(w.builders[0], from[i], &err));
        ASSERT_OK(st_append_i64(w.builders[1], to[i], &err));
        ASSERT_OK(st_append_null(w.builders[2], &err));
    }
    return finish(&w, true, true, true);
}

st_edit_add rows_about(graph_fixture *fixture, const uint64_t *from, const int64_t *to, uint64_t count)
{
    sluice_error err = {0};
    writing w;
    begin(&w, fixture, "ABOUT");
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_OK(st_append_u64(w.builders[0], from[i], &err));
        ASSERT_OK(st_append_i64(w.builders[1], to[i], &err));
    }
    return finish(&w, true, true, false);
}

static pf_id publish_edit(graph_fixture *fixture, st_edit *edit)
{
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    char stem[32];
    fixture_delta(fixture, &delta);
    fixture_name(fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), &delta, edit, stem, &err));
    ASSERT_OK(fixture_publish(fixture, deltas, 1, &err));
    pf_id id = delta.commit.id;
    st_delta_free(&delta);
    return id;
}

pf_id rows_publish(graph_fixture *fixture, uint64_t table, const st_edit_add *add)
{
    st_edit edit = {.table = table, .adds = malloc(sizeof(*add)), .add_count = 1};
    assert_non_null(edit.adds);
    edit.adds[0] = *add;
    return publish_edit(fixture, &edit);
}

pf_id rows_delete(graph_fixture *fixture, uint64_t table, const uint64_t *rows, uint32_t count)
{
    st_edit edit = {.table = table, .delete_rows = calloc(count, sizeof(*rows)), .delete_count = count};
    assert_non_null(edit.delete_rows);
    memcpy(edit.delete_rows, rows, count * sizeof(*rows));
    return publish_edit(fixture, &edit);
}

st_snapshot *rows_open(st_graph *graph, const char *at)
{
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    ASSERT_OK(st_snapshot_open(graph, "main", at, &snapshot, &err));
    return snapshot;
}

const st_type_def *rows_type(const st_snapshot *snapshot, const char *name)
{
    sluice_error err = {0};
    const st_type_def *type = NULL;
    ASSERT_OK(st_snapshot_type(snapshot, name, &type, &err));
    return type;
}

char *rows_scan(st_snapshot *snapshot, const char *type, const uint32_t *columns, uint32_t count)
{
    sluice_error err = {0};
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    pf_buffer text = {0};
    ASSERT_OK(st_scan_open(snapshot, rows_type(snapshot, type), columns, count, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        assert_true(batch->rows > 0);
        for (uint64_t row = 0; row < batch->rows; row++) {
            ASSERT_OK(pf_buffer_append_format(&text, &err, "%llu:[",
                                              (unsigned long long)(batch->row_ids[row] - ST_ROW_BLOCK)));
            for (uint32_t i = 0; i < batch->column_count; i++) {
                assert_int_equal(batch->columns[i].length, batch->rows);
                if (i > 0)
                    ASSERT_OK(pf_buffer_append_text(&text, ",", &err));
                ASSERT_OK(st_value_json(&batch->columns[i], row, &text, &err));
            }
            ASSERT_OK(pf_buffer_append_text(&text, "]\n", &err));
        }
    }
    st_scan_close(scan);
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    return (char *)text.data;
}

bool rows_has_person(st_snapshot *snapshot, int64_t id)
{
    sluice_error err = {0};
    st_table_reader *reader = NULL;
    st_column column = {.type = ST_INT64, .length = 1, .values = &id};
    const st_column *key[1] = {&column};
    bool found = false;
    uint32_t fragment = 0;
    uint64_t position = 0;
    ASSERT_OK(st_table_reader_get(snapshot, PERSON, &reader, &err));
    ASSERT_OK(st_table_find_key(reader, key, 1, 0, &found, &fragment, &position, &err));
    if (found)
        assert_false(st_table_reader_row_is_dead(reader, fragment, position));
    return found;
}
