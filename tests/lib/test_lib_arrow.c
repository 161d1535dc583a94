/*
 * Rows out and in as Arrow C streams: what a scan gives loads again, chosen columns and rows are those that were asked
 * for, arrays outlive everything that they came from.
 */
#include "lib_fixture.h"
#include "tests/support/folder.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

/* People 0 .. count - 1 from a file, so that they lie in a fragment; age is null for every third. */
static void load_people(lib_fixture *fixture, unsigned count)
{
    sluice_error err = {0};
    sluice_receipt receipt;
    char *path = test_path(fixture->folder, "people.csv");
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fputs("id,name,age\n", file);
    for (unsigned i = 0; i < count; i++) {
        if (i % 3 == 0)
            (void)fprintf(file, "%u,name %u,\n", i, i);
        else
            (void)fprintf(file, "%u,name %u,%u\n", i, i, i % 100);
    }
    assert_int_equal(fclose(file), 0);
    sluice_input input = {.type = "Person", .path = path};
    ASSERT_OK(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_INSERT, NULL, &receipt, &err));
    assert_true(receipt.committed && receipt.acknowledged);
    assert_int_equal(receipt.inserted, count);
    free(path);
}

static sluice_snapshot *snapshot_of(lib_fixture *fixture)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    return snapshot;
}

/* Sums of a scan of id (last column) and its rows. */
static uint64_t sum_ids(sluice_snapshot *snapshot, const sluice_scan_options *options, uint64_t *ret_rows)
{
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    uint64_t sum = 0;
    *ret_rows = 0;
    ASSERT_OK(sluice_scan(snapshot, "Person", options, &stream, &err));
    for (;;) {
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        if (!batch.release)
            break;
        const int64_t *ids = batch.children[batch.n_children - 1]->buffers[1];
        for (int64_t i = 0; i < batch.length; i++)
            sum += (uint64_t)ids[i];
        *ret_rows += (uint64_t)batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    return sum;
}

static void a_scan_gives_the_columns_and_rows_that_are_asked_for(void **state)
{
    lib_fixture *fixture = *state;
    static const char *const id[] = {"id"}, *const all[] = {"_row_id", "name", "id"}, *const twice[] = {"id", "id"},
                             *const behind[] = {"id", "_row_id"}, *const unknown[] = {"nme"};
    sluice_scan_options options = {.columns = id, .column_count = 1};
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    uint64_t rows;
    load_people(fixture, 1000);
    sluice_snapshot *snapshot = snapshot_of(fixture);
    assert_int_equal(sum_ids(snapshot, &options, &rows), 499500);
    assert_int_equal(rows, 1000);
    options.where = "age = null";
    assert_int_equal(sum_ids(snapshot, &options, &rows), 166833);
    assert_int_equal(rows, 334);
    options =
        (sluice_scan_options){.columns = all, .column_count = 3, .where = "age != null and id >= 500", .limit = 2};
    assert_int_equal(sum_ids(snapshot, &options, &rows), 500 + 502);
    options = (sluice_scan_options){.columns = id, .column_count = 1, .limit = 7};
    assert_int_equal(sum_ids(snapshot, &options, &rows), 21);
    assert_int_equal(rows, 7);
    options = (sluice_scan_options){.columns = all, .column_count = 3};
    ASSERT_OK(sluice_scan(snapshot, "Person", &options, &stream, &err));
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_int_equal(schema.n_children, 3);
    assert_string_equal(schema.children[0]->name, "_row_id");
    assert_string_equal(schema.children[1]->format, "u");
    assert_string_equal(schema.children[2]->format, "l");
    schema.release(&schema);
    stream.release(&stream);
    options = (sluice_scan_options){.columns = unknown, .column_count = 1};
    ASSERT_FAILS(SLUICE_USAGE, sluice_scan(snapshot, "Person", &options, &stream, &err));
    assert_null(stream.release);
    options.columns = behind;
    options.column_count = 2;
    ASSERT_FAILS(SLUICE_USAGE, sluice_scan(snapshot, "Person", &options, &stream, &err));
    options.columns = twice; /* once more than there are columns */
    ASSERT_OK(sluice_scan(snapshot, "Person", &options, &stream, &err));
    stream.release(&stream);
    options = (sluice_scan_options){.where = "age >"};
    ASSERT_FAILS(SLUICE_USAGE, sluice_scan(snapshot, "Person", &options, &stream, &err));
    options.where = "nme = 1";
    ASSERT_FAILS(SLUICE_USAGE, sluice_scan(snapshot, "Person", &options, &stream, &err));
    assert_non_null(strstr(err.hint, "name"));
    ASSERT_FAILS(SLUICE_USAGE, sluice_scan(snapshot, "Nobody", NULL, &stream, &err));
    sluice_snapshot_close(snapshot);
}

static void arrays_outlive_stream_snapshot_and_graph(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch, name;
    load_people(fixture, 1000);
    (void)lib_commit(fixture->graph,
                     "{\"op\":\"insert\",\"node\":\"Person\",\"key\":-1,\"set\":{\"name\":\"late\"}}\n");
    sluice_snapshot *snapshot = snapshot_of(fixture);
    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &stream, &err));
    sluice_close(fixture->graph);
    sluice_snapshot_close(snapshot);
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    stream.release(&stream); /* the last that needed the graph */
    ASSERT_OK(sluice_open(fixture->path, SLUICE_WRITE, &fixture->graph, &err));
    assert_int_equal(batch.length, 1000);
    name = *batch.children[1]; /* moved out, as the interface allows */
    batch.children[1]->release = NULL;
    assert_int_equal(((const int64_t *)batch.children[0]->buffers[1])[999], 999);
    assert_int_equal(batch.children[2]->null_count, 334);
    batch.release(&batch);
    const int32_t *offsets = name.buffers[1];
    assert_memory_equal((const char *)name.buffers[2] + offsets[999], "name 999", 8);
    name.release(&name);
}

static void rows_that_are_not_compressed_are_not_copied(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    char line[512], *mapped = NULL;
    load_people(fixture, 1000);
    sluice_snapshot *snapshot = snapshot_of(fixture);
    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &stream, &err));
    assert_int_equal(stream.get_next(&stream, &batch), 0);
    uintptr_t at = (uintptr_t)batch.children[0]->buffers[1];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && at >= from && at < to)
            mapped = strdup(line);
    }
    (void)fclose(maps);
    assert_non_null(mapped);
    assert_non_null(strstr(mapped, "/fragments/"));
    free(mapped);
    batch.release(&batch);
    stream.release(&stream);
    sluice_snapshot_close(snapshot);
}

static void what_a_scan_gives_loads_again(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    struct ArrowArrayStream people, edges;
    sluice_graph *other = NULL;
    sluice_receipt receipt;
    char *path = test_path(fixture->folder, "other"), *schema = NULL, *json;
    size_t length;
    load_people(fixture, 100);
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"edge\":\"KNOWS\",\"from\":1,\"to\":2,"
                                     "\"set\":{\"since\":\"2026-01-31\"}}\n");
    sluice_snapshot *snapshot = snapshot_of(fixture);
    ASSERT_OK(sluice_snapshot_schema(snapshot, &schema, &length, &err));
    ASSERT_OK(sluice_create(path, schema, length, SLUICE_OPTIMISTIC, &other, &err));
    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &people, &err));
    ASSERT_OK(sluice_scan(snapshot, "KNOWS", NULL, &edges, &err));
    sluice_snapshot_close(snapshot);
    sluice_input inputs[] = {{.type = "KNOWS", .stream = &edges}, {.type = "Person", .stream = &people}};
    ASSERT_OK(sluice_load(other, inputs, 2, SLUICE_LOAD_INSERT, NULL, &receipt, &err));
    assert_null(people.release);
    assert_null(edges.release);
    assert_int_equal(receipt.inserted, 101);
    assert_int_equal(lib_count(other, "Person"), 100);
    assert_int_equal(lib_count(other, "KNOWS"), 1);
    json = lib_get(other, "Person", "7");
    assert_string_equal(json, "{\"id\":7,\"name\":\"name 7\",\"age\":7}");
    sluice_free(json);
    sluice_close(other);
    sluice_free(schema);
    free(path);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void note_progress(void *context, uint64_t rows, uint64_t bytes)
{
    uint64_t *most = context;
    assert_true(rows >= *most);
    assert_true(bytes > 0);
    *most = rows;
}

static void loads_that_fail_change_nothing_and_take_their_streams(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    struct ArrowArrayStream people;
    sluice_receipt receipt;
    uint64_t rows = 0;
    char *path = test_path(fixture->folder, "bad.csv"), *edges = test_path(fixture->folder, "edges.csv");
    load_people(fixture, 100);
    write_file(path, "id,name\n200,x\nsix,y\n");
    write_file(edges, "from,to\n1,999\n");
    sluice_snapshot *snapshot = snapshot_of(fixture);

    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &people, &err));
    sluice_input again = {.type = "Person", .stream = &people};
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, sluice_load(fixture->graph, &again, 1, SLUICE_LOAD_INSERT, NULL, &receipt, &err));
    assert_non_null(strstr(err.text, "stream of Person"));
    assert_null(people.release);

    sluice_input bad = {.type = "Person", .path = path};
    ASSERT_FAILS(SLUICE_CONSTRAINT_TYPE, sluice_load(fixture->graph, &bad, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "bad.csv:3"));
    sluice_input dangling = {.type = "KNOWS", .path = edges};
    ASSERT_FAILS(SLUICE_CONSTRAINT_ENDPOINT,
                 sluice_load(fixture->graph, &dangling, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));

    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &people, &err));
    sluice_input both = {.type = "Person", .path = path, .stream = &people};
    ASSERT_FAILS(SLUICE_USAGE, sluice_load(fixture->graph, &both, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));
    assert_null(people.release);
    sluice_input nothing = {.type = "Person"};
    ASSERT_FAILS(SLUICE_USAGE, sluice_load(fixture->graph, &nothing, 1, SLUICE_LOAD_INSERT, NULL, NULL, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_load(fixture->graph, NULL, 0, SLUICE_LOAD_INSERT, NULL, NULL, &err));

    write_file(path, "id,name\n200,x\n201,y\n");
    sluice_write_options options = {.cancelled = always};
    ASSERT_FAILS(SLUICE_CANCELLED, sluice_load(fixture->graph, &bad, 1, SLUICE_LOAD_INSERT, &options, NULL, &err));
    assert_int_equal(lib_count(fixture->graph, "Person"), 100);
    options = (sluice_write_options){.dry_run = true};
    ASSERT_OK(sluice_load(fixture->graph, &bad, 1, SLUICE_LOAD_INSERT, &options, &receipt, &err));
    assert_false(receipt.committed);
    assert_int_equal(receipt.inserted, 2);
    assert_int_equal(lib_count(fixture->graph, "Person"), 100);
    options = (sluice_write_options){.context = &rows, .progress = note_progress, .message = "more"};
    ASSERT_OK(sluice_load(fixture->graph, &bad, 1, SLUICE_LOAD_UPSERT, &options, &receipt, &err));
    assert_int_equal(rows, 2);
    assert_int_equal(lib_count(fixture->graph, "Person"), 102);
    ASSERT_OK(sluice_load(fixture->graph, &bad, 1, SLUICE_LOAD_OVERWRITE, NULL, &receipt, &err));
    assert_int_equal(lib_count(fixture->graph, "Person"), 2);
    sluice_snapshot_close(snapshot);
    free(path);
    free(edges);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_scan_gives_the_columns_and_rows_that_are_asked_for),
        IN_GRAPH(arrays_outlive_stream_snapshot_and_graph),
        IN_GRAPH(rows_that_are_not_compressed_are_not_copied),
        IN_GRAPH(what_a_scan_gives_loads_again),
        IN_GRAPH(loads_that_fail_change_nothing_and_take_their_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
