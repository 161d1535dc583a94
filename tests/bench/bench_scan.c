/*
 * How fast a type is scanned through the library: the C side of bench_scan.py, which compares it with pyarrow.
 *
 * bench_scan GRAPH TYPE RUNS: seconds of wall clock and of processor of each run, a line each. A run opens a snapshot,
 * takes every batch of the stream, adds up rows and bytes, and releases it. The first run checks the files' digests.
 */
#include "platform/clock.h"
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void demand(sluice_status status, const sluice_error *err)
{
    if (status != SLUICE_OK) {
        (void)fprintf(stderr, "bench_scan: %s\n", err->text);
        exit(1);
    }
}

static uint64_t scan(sluice_graph *graph, const char *type)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    uint64_t rows = 0;
    demand(sluice_snapshot_open(graph, NULL, NULL, &snapshot, &err), &err);
    demand(sluice_scan(snapshot, type, NULL, &stream, &err), &err);
    if (stream.get_schema(&stream, &schema) != 0)
        exit(1);
    schema.release(&schema);
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        rows += (uint64_t)batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    sluice_snapshot_close(snapshot);
    return rows;
}

int main(int argc, char **argv)
{
    sluice_graph *graph = NULL;
    sluice_error err = {0};
    if (argc != 4) {
        (void)fprintf(stderr, "usage: bench_scan GRAPH TYPE RUNS\n");
        return 2;
    }
    demand(sluice_open(argv[1], SLUICE_READ, &graph, &err), &err);
    for (unsigned long runs = strtoul(argv[3], NULL, 10); runs > 0; runs--) {
        int64_t wall = pf_monotonic_ns();
        clock_t processor = clock();
        uint64_t rows = scan(graph, argv[2]);
        printf("%llu %.6f %.6f\n", (unsigned long long)rows, (double)(pf_monotonic_ns() - wall) / 1e9,
               (double)(clock() - processor) / CLOCKS_PER_SEC);
    }
    sluice_close(graph);
    return 0;
}
