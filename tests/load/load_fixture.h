/*
 * A graph on the simulated disk with a schema of the test's own, input files on the real one, and loads into it by this
 * process alone.
 */
#ifndef TESTS_LOAD_LOAD_FIXTURE_H
#define TESTS_LOAD_LOAD_FIXTURE_H

#include "coord/load.h"
#include "platform/sim.h"
#include "tests/support/test.h"

typedef struct load_fixture {
    pf_sim_disk *disk;
    st_graph *graph;
    char *folder; /* of the input files */
} load_fixture;

void load_fixture_make(load_fixture *fixture, const char *schema);
void load_fixture_free(load_fixture *fixture);
/* A second handle, as another process would have it. Closed by st_graph_close. */
st_graph *load_fixture_open(load_fixture *fixture);
void load_fixture_write(const load_fixture *fixture, const char *name, const void *bytes, size_t length);
void load_fixture_text(const load_fixture *fixture, const char *name, const char *text);

/* `inputs`: "P=a.csv K=b.csv", files of the fixture's folder. `options`: NULL for the defaults; its inputs are ignored.
 */
sluice_status load_fixture_try(load_fixture *fixture, st_graph *graph, const char *inputs,
                               const co_load_options *options, co_load_result *ret_result, sluice_error *err);
/* The load must succeed; returns the generation of its commit, 0 for none. */
uint64_t load_fixture_load(load_fixture *fixture, const char *inputs);
/* It must fail with this code and text; "@" in the text stands for the folder and a slash. */
void load_fixture_refuse(load_fixture *fixture, const char *inputs, sluice_status code, const char *text);
/* All rows of a type as a fresh reader sees them, "[a][b]\n" each, null as [-]; freed by the caller. */
char *load_fixture_rows(load_fixture *fixture, const char *type);
void load_fixture_expect(load_fixture *fixture, const char *type, const char *rows);
/* How many files there are below a folder of the graph, all levels. */
uint64_t load_fixture_files(load_fixture *fixture, const char *folder);
/* verify finds nothing, and no attempt is left. */
void load_fixture_expect_clean(load_fixture *fixture);
uint64_t load_fixture_generation(load_fixture *fixture);

/* The same graph on a copy of the disk, whose chances `seed` gives; the folder of inputs is the first one's. */
void load_fixture_copy(const load_fixture *base, uint64_t seed, load_fixture *ret_copy);
void load_fixture_copy_free(load_fixture *copy);

/* A load by another process in the middle of one: pf_sim_interrupt_at(volume, call, load_fixture_run_rival, &rival). */
typedef struct load_rival {
    load_fixture *f;
    const char *inputs;
    const co_load_options *options;
    bool ran;
    sluice_status status;
    uint64_t generation; /* of its commit, when it made one */
} load_rival;
void load_fixture_run_rival(void *context);

#endif
