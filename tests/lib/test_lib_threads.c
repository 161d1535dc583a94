/*
 * Handles in several threads at once: writers of one graph, readers beside them, arrays released by another thread.
 */
#include "lib_fixture.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define WRITERS 2u
#define COMMITS 12u

typedef struct worker {
    const char *path;
    unsigned number;
    uint64_t seen;
    sluice_status failed; /* the first that is not OK */
    sluice_error err;
} worker;

static void *write_some(void *context)
{
    worker *own = context;
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    own->failed = sluice_open(own->path, SLUICE_WRITE, &graph, &own->err);
    if (own->failed == SLUICE_OK)
        own->failed = sluice_batch_new(&batch, &own->err);
    for (unsigned i = 0; i < COMMITS && own->failed == SLUICE_OK; i++) {
        sluice_batch_clear(batch);
        sluice_batch_begin(batch, SLUICE_INSERT, SLUICE_NODE, "Person");
        sluice_batch_int64(batch, SLUICE_SET, "id", own->number * 1000 + i);
        own->failed = sluice_batch_end(batch, &own->err);
        if (own->failed == SLUICE_OK)
            own->failed = sluice_commit(graph, batch, NULL, NULL, &own->err);
    }
    sluice_batch_free(batch);
    sluice_close(graph);
    return NULL;
}

static void *read_some(void *context)
{
    worker *own = context;
    sluice_graph *graph = NULL;
    own->failed = sluice_open(own->path, SLUICE_READ, &graph, &own->err);
    while (own->failed == SLUICE_OK && own->seen < (uint64_t)WRITERS * COMMITS) {
        sluice_snapshot *snapshot = NULL;
        struct ArrowArrayStream stream;
        struct ArrowArray batch;
        uint64_t rows = 0;
        own->failed = sluice_snapshot_open(graph, NULL, NULL, &snapshot, &own->err);
        if (own->failed == SLUICE_OK)
            own->failed = sluice_scan(snapshot, "Person", NULL, &stream, &own->err);
        if (own->failed != SLUICE_OK)
            break;
        while (stream.get_next(&stream, &batch) == 0 && batch.release) {
            rows += (uint64_t)batch.length;
            batch.release(&batch);
        }
        if (rows < own->seen) /* what was seen once stays */
            own->failed = SLUICE_INTERNAL;
        own->seen = rows;
        stream.release(&stream);
        sluice_snapshot_close(snapshot);
    }
    sluice_close(graph);
    return NULL;
}

static void handles_in_several_threads_do_not_meet(void **state)
{
    lib_fixture *fixture = *state;
    worker workers[WRITERS + 2] = {{0}};
    pthread_t threads[WRITERS + 2];
    for (unsigned i = 0; i < WRITERS + 2; i++) {
        workers[i] = (worker){.path = fixture->path, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, i < WRITERS ? write_some : read_some, &workers[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS + 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < WRITERS + 2; i++) {
        if (workers[i].failed != SLUICE_OK)
            print_error("thread %u: %s\n", i, workers[i].err.text);
        assert_int_equal(workers[i].failed, SLUICE_OK);
    }
    assert_int_equal(lib_count(fixture->graph, "Person"), WRITERS * COMMITS);
}

static void *release_arrays(void *context)
{
    struct ArrowArray *arrays = context;
    for (int i = 0; i < 2; i++)
        arrays[i].release(&arrays[i]);
    return NULL;
}

static void arrays_are_released_by_any_thread(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    struct ArrowArrayStream stream;
    struct ArrowArray arrays[2];
    pthread_t thread;
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":1}\n");
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":2}\n");
    ASSERT_OK(sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_scan(snapshot, "Person", NULL, &stream, &err));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stream.get_next(&stream, &arrays[i]), 0);
        assert_int_equal(arrays[i].length, 1);
    }
    assert_int_equal(pthread_create(&thread, NULL, release_arrays, arrays), 0);
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":3}\n");
    stream.release(&stream);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sluice_snapshot_close(snapshot);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(handles_in_several_threads_do_not_meet),
        IN_GRAPH(arrays_are_released_by_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
