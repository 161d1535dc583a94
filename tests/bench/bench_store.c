/*
 * How fast rows become columns, fragments and runs, and come back: nanoseconds a row and megabytes a second of each
 * step.
 *
 * bench_store FOLDER [ROWS]: works below FOLDER (on an admitted filesystem), which must be empty.
 */
#include "platform/clock.h"
#include "store/fragment/fragment.h"
#include "store/fragment/key.h"
#include "store/fragment/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TABLE 70u
#define BATCH 65536u

static void demand(sluice_status status, const sluice_error *err)
{
    if (status != SLUICE_OK) {
        fprintf(stderr, "bench_store: %s\n", err->text);
        exit(1);
    }
}

/* Both clocks: on a busy machine only the processor's says what the code costs. */
typedef struct stopwatch {
    int64_t wall;
    clock_t processor;
} stopwatch;

static stopwatch begin(void)
{
    return (stopwatch){pf_monotonic_ns(), clock()};
}

static void report(const char *what, stopwatch since, uint64_t rows, uint64_t bytes)
{
    double wall = (double)(pf_monotonic_ns() - since.wall);
    double processor = (double)(clock() - since.processor) * 1e9 / CLOCKS_PER_SEC;
    printf("%-44s %8.2f ns/row %8.2f of processor %9.0f MB/s of processor\n", what, wall / (double)rows,
           processor / (double)rows, (double)bytes * 1e3 / processor);
}

#define NAME(text) ((char *)(uintptr_t)(text))
static const st_column_spec specs[4] = {{.name = NAME("id"), .type = ST_INT64, .property = 1},
                                        {.name = NAME("name"), .type = ST_STRING, .property = 2},
                                        {.name = NAME("score"), .type = ST_FLOAT64, .nullable = true, .property = 3},
                                        {.name = NAME("flag"), .type = ST_BOOL, .property = 4}};

typedef struct rows {
    st_column_builder *builders[4];
    st_column columns[4];
} rows;

static uint64_t spread(uint64_t i)
{
    return i * 0x9E3779B97F4A7C15u >> 8;
}

static void fill(rows *made, uint64_t first, uint64_t count)
{
    sluice_error err = {0};
    for (int c = 0; c < 4; c++)
        st_builder_truncate(made->builders[c], 0);
    for (uint64_t i = first; i < first + count; i++) {
        static const char text[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        demand(st_append_i64(made->builders[0], (int64_t)spread(i), &err), &err);
        demand(st_append_bytes(made->builders[1], text + i % 16, 8 + i % 12, &err), &err);
        demand(i % 10 ? st_append_f64(made->builders[2], (double)i / 3, &err) : st_append_null(made->builders[2], &err),
               &err);
        demand(st_append_bool(made->builders[3], i % 3 == 0, &err), &err);
    }
    for (int c = 0; c < 4; c++)
        st_builder_view(made->builders[c], &made->columns[c]);
}

static uint64_t size_of(const rows *made)
{
    return made->columns[0].length * 16 + made->columns[0].length / 8 + made->columns[1].length * 4 +
           (uint64_t)made->columns[1].offsets[made->columns[1].length];
}

static void bench_columns(rows *made)
{
    sluice_error err = {0};
    stopwatch start = begin();
    for (int i = 0; i < 20; i++)
        fill(made, (uint64_t)i * BATCH, BATCH);
    report("append a row of four columns", start, 20 * BATCH, 20 * size_of(made));
    st_column_builder *copy;
    demand(st_column_builder_new(&specs[1], &copy, &err), &err);
    start = begin();
    for (int i = 0; i < 100; i++) {
        st_builder_truncate(copy, 0);
        demand(st_append_slice(copy, &made->columns[1], 0, BATCH, &err), &err);
    }
    report("append a slice of texts", start, 100 * BATCH,
           100 * ((uint64_t)made->columns[1].offsets[BATCH] + BATCH * 4));
    st_column_builder_free(copy);
}

static void bench_hashes(const rows *made)
{
    static uint64_t hashes[BATCH];
    const st_column *const key[3][2] = {
        {&made->columns[0]}, {&made->columns[1]}, {&made->columns[0], &made->columns[1]}};
    static const char *const names[] = {"hash one integer", "hash one text", "hash an integer and a text"};
    for (int k = 0; k < 3; k++) {
        stopwatch start = begin();
        for (int i = 0; i < 50; i++)
            st_key_hash_rows(key[k], k == 2 ? 2 : 1, BATCH, hashes);
        report(names[k], start, 50 * BATCH, 50 * BATCH * (k ? 20 : 8));
    }
}

static void bench_runs(pf_volume *volume, uint64_t count)
{
    sluice_error err = {0};
    char what[64], name[32];
    st_run_info info;
    st_run_entry *entries = malloc(count * sizeof *entries);
    demand(entries ? SLUICE_OK : SLUICE_RESOURCE_LIMIT, &err);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < count; i++)
            entries[i] = (st_run_entry){spread(i) * 0xD1B54A32D192ED03u, i};
        stopwatch start = begin();
        if (pass == 0) {
            demand(st_run_sort(entries, count, &err), &err);
            snprintf(what, sizeof what, "sort %llu entries", (unsigned long long)count);
        } else {
            snprintf(name, sizeof name, "%llu.run", (unsigned long long)count);
            demand(st_run_write(volume, TABLE, name, entries, count, &info, &err), &err);
            snprintf(what, sizeof what, "sort, write, sync %llu entries", (unsigned long long)count);
        }
        report(what, start, count, count * sizeof *entries);
    }
    st_run *run;
    st_run_cursor cursor;
    const st_run_entry *entry;
    uint64_t many, seen = 0, found = 0;
    stopwatch start = begin();
    demand(st_run_open(volume, TABLE, &info, &run, &err), &err);
    demand(st_run_seek(run, 0, UINT64_MAX, &cursor, &err), &err);
    do {
        demand(st_run_next_many(&cursor, &entry, &many, &err), &err);
        seen += many;
    } while (many);
    report("  open and check all blocks", start, seen, seen * sizeof *entry);
    start = begin();
    for (uint64_t i = 0; i < 1000000; i++) {
        bool may;
        demand(st_run_may_contain(run, spread(i + count) * 0xD1B54A32D192ED03u, &may, &err), &err);
        found += may;
    }
    report("  ask the filter for absent hashes", start, 1000000, 0);
    start = begin();
    for (uint64_t i = 0; i < 1000000; i++) {
        uint64_t hash = spread(i % count) * 0xD1B54A32D192ED03u;
        demand(st_run_seek(run, hash, hash, &cursor, &err), &err);
        found += cursor.end - cursor.next;
    }
    report("  seek a present hash", start, 1000000, 0);
    printf("  (%llu)\n", (unsigned long long)found);
    st_run_close(run);
    free(entries);
}

static void bench_fragment(pf_volume *volume, rows *made, uint64_t batches, bool compress)
{
    sluice_error err = {0};
    st_fragment_writer *writer;
    st_fragment_info info;
    const char *name = compress ? "zstd.arrow" : "plain.arrow";
    uint64_t bytes = batches * size_of(made);

    stopwatch start = begin();
    demand(st_fragment_create(volume, TABLE, name, specs, 4, compress, &writer, &err), &err);
    for (uint64_t b = 0; b < batches; b++)
        demand(st_fragment_write(writer, made->columns, made->columns[0].length, &err), &err);
    report(compress ? "write batches, compressed" : "write batches", start, batches * BATCH, bytes);
    start = begin();
    demand(st_fragment_finish(writer, &info, &err), &err);
    report("  footer and sync", start, batches * BATCH, bytes);
    start = begin();
    st_fragment *fragment;
    for (int i = 0; i < 1000; i++) {
        demand(st_fragment_open(volume, TABLE, &info, &fragment, &err), &err);
        if (i < 999)
            st_fragment_close(fragment);
    }
    report("  open (a row: an opening)", start, 1000, 0);
    start = begin();
    for (uint32_t b = 0; b < batches; b++) {
        for (uint32_t c = 0; c < 4; c++) {
            st_column column;
            demand(st_fragment_column(fragment, b, c, &column, &err), &err);
        }
    }
    report("  check and view all columns", start, batches * BATCH, bytes);
    st_fragment_close(fragment);
}

int main(int argc, char **argv)
{
    static const char *const folders[] = {"tables", "tables/70", "tables/70/fragments", "tables/70/keys"};
    sluice_error err = {0};
    pf_volume *volume;
    rows made;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_store FOLDER\n");
        return 2;
    }
    demand(pf_volume_open(argv[1], PF_WRITE, &volume, &err), &err);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        demand(pf_make_folder(volume, folders[i], &err), &err);
    for (int c = 0; c < 4; c++)
        demand(st_column_builder_new(&specs[c], &made.builders[c], &err), &err);
    bench_columns(&made);
    bench_hashes(&made);
    bench_fragment(volume, &made, 40, false);
    bench_fragment(volume, &made, 40, true);
    bench_runs(volume, 1000);
    bench_runs(volume, 65536);
    bench_runs(volume, 300000);
    bench_runs(volume, 4000000);
    for (int c = 0; c < 4; c++)
        st_column_builder_free(made.builders[c]);
    pf_volume_close(volume);
    return 0;
}
