/*
 * Sluice through its library. Loads are the command's (`sluice load`), so there is none here.
 */
#include "peer.h"

#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(sluice_status status, const sluice_error *err)
{
    if (status != SLUICE_OK)
        peer_fail("sluice: %s", err->text);
}

/* ---- commits ---- */

typedef struct writer {
    sluice_graph *graph;
    sluice_batch *batch;
} writer;

static void make(const char *path)
{
    static const char schema[] =
        "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"}}}}";
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    check(sluice_create(path, schema, sizeof schema - 1, SLUICE_OPTIMISTIC, &graph, &err), &err);
    sluice_close(graph);
}

static void *open_writer(const char *path)
{
    writer *opened = peer_allocate(sizeof *opened);
    sluice_error err = {0};
    check(sluice_open(path, SLUICE_WRITE, &opened->graph, &err), &err);
    check(sluice_batch_new(&opened->batch, &err), &err);
    return opened;
}

static void commit(void *context, int64_t id)
{
    writer *me = context;
    sluice_error err = {0};
    sluice_batch_clear(me->batch);
    sluice_batch_begin(me->batch, SLUICE_INSERT, SLUICE_NODE, "P");
    sluice_batch_int64(me->batch, SLUICE_SET, "id", id);
    sluice_batch_text(me->batch, SLUICE_SET, "name", PEER_NAME, sizeof PEER_NAME - 1);
    check(sluice_batch_end(me->batch, &err), &err);
    check(sluice_commit(me->graph, me->batch, NULL, NULL, &err), &err);
}

/* ---- reads ---- */

typedef struct reader {
    sluice_snapshot *snapshot;
    sluice_rows *rows;
    sluice_links *first, *second;
} reader;

static void *open_reader(const char *path)
{
    static const char *const columns[] = {"age"};
    reader *opened = peer_allocate(sizeof *opened);
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    check(sluice_open(path, SLUICE_READ, &graph, &err), &err);
    check(sluice_snapshot_open(graph, NULL, NULL, &opened->snapshot, &err), &err);
    check(sluice_rows_open(opened->snapshot, "N", columns, 1, &opened->rows, &err), &err);
    check(sluice_links_open(opened->snapshot, "E", SLUICE_OUT, &opened->first, &err), &err);
    check(sluice_links_open(opened->snapshot, "E", SLUICE_OUT, &opened->second, &err), &err);
    return opened;
}

/* Many independent lanes, so that the additions do not wait for each other. */
static double sum_of(const double *values, int64_t count)
{
    enum { LANES = 16 };
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int64_t lane = 0; lane < LANES; lane++)
            lanes[lane] += values[i + lane];
    for (; i < count; i++)
        sum += values[i];
    for (int64_t lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static double scan(void *context)
{
    static const char *const columns[] = {"weight"};
    const sluice_scan_options options = {.columns = columns, .column_count = 1};
    reader *me = context;
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    sluice_error err = {0};
    double sum = 0;
    check(sluice_scan(me->snapshot, "E", &options, &stream, &err), &err);
    for (;;) {
        if (stream.get_next(&stream, &batch) != 0)
            peer_fail("sluice: %s", stream.get_last_error(&stream));
        if (!batch.release)
            break;
        const struct ArrowArray *weights = batch.children[0];
        sum += sum_of((const double *)weights->buffers[1] + weights->offset, weights->length);
        batch.release(&batch);
    }
    stream.release(&stream);
    return sum;
}

static int64_t point(void *context, int64_t id)
{
    reader *me = context;
    const sluice_value key = {.kind = SLUICE_INT64, .int64 = id};
    sluice_value age;
    sluice_error err;
    bool found = false;
    check(sluice_rows_get(me->rows, &key, 1, &age, &found, &err), &err);
    if (!found)
        peer_fail("sluice: node %lld is not there", (long long)id);
    return age.int64;
}

static peer_hops hop(void *context, int64_t id)
{
    reader *me = context;
    peer_hops found = {0};
    const int64_t *ends = NULL;
    size_t count = 0;
    sluice_error err;
    check(sluice_links_get_int64(me->first, id, &ends, &count, &err), &err);
    found.count = count;
    for (size_t i = 0; i < count; i++)
        found.sum += ends[i];
    return found;
}

static peer_hops hop2(void *context, int64_t id)
{
    reader *me = context, deeper = *me;
    peer_hops found = {0};
    const int64_t *ends = NULL;
    size_t count = 0;
    sluice_error err;
    deeper.first = me->second;
    check(sluice_links_get_int64(me->first, id, &ends, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        peer_hops one = hop(&deeper, ends[i]);
        found.count += one.count;
        found.sum += one.sum;
    }
    return found;
}

/* ---- opening ---- */

static void snapshots(const char *path, unsigned count)
{
    double start = peer_now();
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    sluice_snapshot **opened = peer_allocate(count * sizeof(sluice_snapshot *));
    check(sluice_open(path, SLUICE_READ, &graph, &err), &err);
    check(sluice_snapshot_open(graph, NULL, NULL, &opened[0], &err), &err);
    peer_print("open", "us", (peer_now() - start) * 1e6);
    for (unsigned i = 1; i < count; i++)
        check(sluice_snapshot_open(graph, NULL, NULL, &opened[i], &err), &err);
}

const peer the_peer = {.make = make,
                       .open = open_writer,
                       .commit = commit,
                       .open_reader = open_reader,
                       .scan = scan,
                       .point = point,
                       .hop = hop,
                       .hop2 = hop2,
                       .snapshots = snapshots};
