/*
 * A graph of people: made, written, read. docs/embedding.md walks through it.
 *
 *   cc people.c $(pkg-config --cflags --libs sluice) -o people && ./people /some/new/folder
 */
#include <inttypes.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "{\"nodes\": {\"Person\": {\"key\": \"id\", \"properties\": "
                             "{\"id\": \"int64\", \"name\": \"string\", \"age\": \"int32?\"}}},"
                             " \"edges\": {\"KNOWS\": {\"from\": \"Person\", \"to\": \"Person\", \"key\": [],"
                             " \"properties\": {}}}}";

static int failed(const sluice_error *err)
{
    fprintf(stderr, "%s: %s\n", sluice_status_name(err->code), err->text);
    if (err->hint[0])
        fprintf(stderr, "%s\n", err->hint);
    return 1;
}

static int write_people(sluice_graph *graph, sluice_error *err)
{
    static const char *const names[] = {"Ada", "Grace", "Katherine"};
    sluice_write_options options = {.message = "first people"};
    sluice_receipt receipt;
    sluice_batch *batch;

    if (sluice_batch_new(&batch, err) != SLUICE_OK)
        return 1;
    for (int64_t i = 0; i < 3; i++) {
        sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
        sluice_batch_int64(batch, SLUICE_SET, "id", i + 1);
        sluice_batch_text(batch, SLUICE_SET, "name", names[i], strlen(names[i]));
        sluice_batch_int64(batch, SLUICE_SET, "age", 36 + 10 * i);
        if (sluice_batch_end(batch, err) != SLUICE_OK)
            break;
    }
    static const char edges[] = "{\"op\": \"insert\", \"edge\": \"KNOWS\", \"from\": 1, \"to\": 2}\n"
                                "{\"op\": \"insert\", \"edge\": \"KNOWS\", \"from\": 2, \"to\": 3}\n";
    sluice_status status = sluice_batch_json(batch, edges, strlen(edges), err);
    if (status == SLUICE_OK)
        status = sluice_commit(graph, batch, &options, &receipt, err);
    sluice_batch_free(batch);
    if (status == SLUICE_OK)
        printf("committed %" PRIu64 " objects as generation %" PRIu64 "\n", receipt.inserted, receipt.generation);
    return status != SLUICE_OK;
}

static bool print_neighbor(void *context, const char *type, const char *key, uint32_t depth)
{
    (void)context;
    printf("  %s %s, %" PRIu32 " away\n", type, key, depth);
    return true;
}

/* The batches of an Arrow C stream; a program would rather hand the stream to a library that knows Arrow. */
static int print_ages(sluice_snapshot *snapshot, sluice_error *err)
{
    static const char *const columns[] = {"id", "age"};
    sluice_scan_options options = {.columns = columns, .column_count = 2, .where = "age >= 40"};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;

    if (sluice_scan(snapshot, "Person", &options, &stream, err) != SLUICE_OK)
        return 1;
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        const int64_t *ids = batch.children[0]->buffers[1];
        const int32_t *ages = batch.children[1]->buffers[1];
        for (int64_t row = 0; row < batch.length; row++)
            printf("  %" PRId64 " is %" PRId32 "\n", ids[row], ages[row]);
        batch.release(&batch);
    }
    stream.release(&stream);
    return 0;
}

static int read_people(sluice_graph *graph, sluice_error *err)
{
    sluice_neighbor_options depth = {.depth = 2};
    sluice_snapshot *snapshot;
    uint64_t rows;
    char *json = NULL;

    if (sluice_snapshot_open(graph, NULL, NULL, &snapshot, err) != SLUICE_OK)
        return 1;
    int result = sluice_count(snapshot, "Person", &rows, err) != SLUICE_OK ||
                 sluice_get(snapshot, "Person", "2", &json, NULL, err) != SLUICE_OK;
    if (result == 0) {
        printf("%" PRIu64 " people; number 2 is %s\n", rows, json ? json : "nobody");
        printf("from number 1:\n");
        result = sluice_neighbors(snapshot, "Person", "1", &depth, print_neighbor, NULL, err) != SLUICE_OK;
    }
    if (result == 0) {
        printf("40 and older:\n");
        result = print_ages(snapshot, err);
    }
    sluice_free(json);
    sluice_snapshot_close(snapshot);
    return result;
}

static bool print_change(void *context, const sluice_change *change)
{
    (void)context;
    if (change->kind == SLUICE_CHANGE_COMMIT)
        printf("  generation %" PRIu64 ": %" PRIu64 " changes\n", change->generation, change->changes);
    else if (change->kind == SLUICE_CHANGE_INSERT)
        printf("  %s %s is new\n", change->type, change->name);
    return true;
}

/* A program would keep the cursor, and go on from it the next time it runs. */
static int print_changes(sluice_graph *graph, char cursor[SLUICE_CURSOR_TEXT], sluice_error *err)
{
    sluice_feed *feed;

    if (sluice_feed_open(graph, NULL, cursor[0] ? cursor : NULL, &feed, err) != SLUICE_OK)
        return 1;
    sluice_status status = sluice_feed_read(feed, print_change, NULL, err);
    sluice_feed_cursor(feed, cursor);
    sluice_feed_close(feed);
    return status != SLUICE_OK;
}

/* What it hears may be logged and sent on: no event has names, keys, values or paths in it. */
static void print_event(void *context, const sluice_event *event)
{
    (void)context;
    fprintf(stderr, "%s: %s", event->name, event->message);
    for (size_t i = 0; i < event->field_count; i++) {
        const sluice_field *field = &event->fields[i];
        if (field->text)
            fprintf(stderr, " %s=%s", field->name, field->text);
        else
            fprintf(stderr, " %s=%" PRIu64, field->name, field->number);
    }
    fprintf(stderr, "\n");
}

/* A bound on what the library takes; a program would rather hand over to its own allocator. */
static size_t allowed = (size_t)1 << 30;

static void *allocate(void *context, size_t size, size_t alignment)
{
    size_t *left = context;
    if (size > *left) /* this example only counts what is asked for */
        return NULL;
    *left -= size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void *reallocate(void *context, void *block, size_t size)
{
    (void)context;
    return realloc(block, size);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

int main(int argc, char **argv)
{
    const sluice_allocator allocator = {&allowed, allocate, reallocate, release};
    char cursor[SLUICE_CURSOR_TEXT] = "";
    sluice_error err = {0};
    sluice_graph *graph;

    if (argc != 2) {
        fprintf(stderr, "usage: people FOLDER\n");
        return 2;
    }
    if (sluice_set_allocator(&allocator, &err) != SLUICE_OK) /* before anything else */
        return failed(&err);
    sluice_set_log(print_event, NULL, SLUICE_LEVEL_WARN);
    if (sluice_create(argv[1], schema, strlen(schema), SLUICE_OPTIMISTIC, &graph, &err) != SLUICE_OK)
        return failed(&err);
    int result = write_people(graph, &err) || read_people(graph, &err) || print_changes(graph, cursor, &err);
    sluice_close(graph);
    return result == 0 ? 0 : failed(&err);
}
