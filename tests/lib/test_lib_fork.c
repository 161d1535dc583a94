/*
 * A program that forks while it has graphs open: the child is refused, closes what it has without touching the parent's
 * work, and keeps no lock of a parent that died.
 */
#include "lib_fixture.h"
#include "tests/support/child.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A descriptor of this process that is open below the folder; -1: none. */
static int open_below(const char *folder)
{
    DIR *list = opendir("/proc/self/fd");
    int found = -1;
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        char link[64], target[4096];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%.20s", entry->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, folder, strlen(folder)) == 0)
            found = (int)strtol(entry->d_name, NULL, 10);
    }
    if (list)
        (void)closedir(list);
    return found;
}

typedef struct family {
    lib_fixture *fixture;
    sluice_snapshot *snapshot;
    struct ArrowArrayStream stream;
} family;

/* In the child, where assertions of the test's framework do not work: the number of the first thing that is wrong. */
static int use_in_child(void *context)
{
    family *from = context;
    sluice_graph *graph = from->fixture->graph, *own = NULL;
    sluice_snapshot *snapshot = NULL;
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    sluice_error err = {0};
    struct ArrowArray array;
    uint64_t rows = 0;
    char *json = NULL;
    if (open_below(from->fixture->folder) >= 0)
        return 1;
    if (sluice_count(from->snapshot, "Person", &rows, &err) != SLUICE_USAGE ||
        !strstr(err.hint, "open the graph again"))
        return 2;
    if (sluice_snapshot_open(graph, NULL, NULL, &snapshot, &err) != SLUICE_USAGE)
        return 3;
    if (sluice_get(from->snapshot, "Person", "1", &json, NULL, &err) != SLUICE_USAGE)
        return 4;
    if (sluice_branch_create(graph, "child", NULL, &err) != SLUICE_USAGE)
        return 5;
    if (from->stream.get_next(&from->stream, &array) == 0 || array.release)
        return 6;
    if (sluice_batch_new(&batch, &err) != SLUICE_OK ||
        sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}", 29, &err) != SLUICE_OK)
        return 7;
    if (sluice_commit(graph, batch, NULL, &receipt, &err) != SLUICE_USAGE)
        return 8;
    /* a handle of its own works */
    if (sluice_open(from->fixture->path, SLUICE_WRITE, &own, &err) != SLUICE_OK)
        return 9;
    if (sluice_commit(own, batch, NULL, &receipt, &err) != SLUICE_OK || !receipt.committed)
        return 10;
    sluice_close(own);
    sluice_batch_free(batch);
    from->stream.release(&from->stream);
    sluice_snapshot_close(from->snapshot);
    sluice_close(graph);
    return 0;
}

static void a_child_is_refused_and_the_parent_goes_on(void **state)
{
    family all = {.fixture = *state};
    sluice_error err = {0};
    struct ArrowArray array;
    uint64_t rows = 0;
    (void)lib_commit(all.fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":1}\n");
    ASSERT_OK(sluice_snapshot_open(all.fixture->graph, NULL, NULL, &all.snapshot, &err));
    ASSERT_OK(sluice_scan(all.snapshot, "Person", NULL, &all.stream, &err));
    assert_true(open_below(all.fixture->folder) >= 0);
    pid_t child = test_child(use_in_child, &all);
    test_child_expect_exit(child, 0);
    ASSERT_OK(sluice_count(all.snapshot, "Person", &rows, &err));
    assert_int_equal(rows, 1);
    assert_int_equal(all.stream.get_next(&all.stream, &array), 0);
    assert_int_equal(array.length, 1);
    all.stream.release(&all.stream);
    sluice_snapshot_close(all.snapshot);
    array.release(&array);
    (void)lib_commit(all.fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"key\":2}\n");
    assert_int_equal(lib_count(all.fixture->graph, "Person"), 2);
    assert_int_equal(lib_count(all.fixture->graph, "Note"), 1);
}

/* ---- a writer that dies in the middle of a write, with a child of its own alive ---- */

typedef struct doomed {
    const char *path;
    volatile unsigned *stage; /* 1: the writer is inside its write, and its child lives */
} doomed;

static bool fork_inside(void *context)
{
    doomed *writer = context;
    if (*writer->stage > 0)
        return false;
    pid_t child = fork(); /* as a program might that embeds the library and starts something */
    if (child < 0)
        _exit(90);
    if (child == 0) {
        *writer->stage = 1;
        test_wait_for(writer->stage, 2);
        _exit(0);
    }
    test_wait_for(writer->stage, 1);
    (void)kill(getpid(), SIGKILL);
    return false;
}

static int write_and_die(void *context)
{
    doomed *writer = context;
    sluice_write_options options = {.context = context, .cancelled = fork_inside};
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    sluice_error err = {0};
    if (sluice_open(writer->path, SLUICE_WRITE, &graph, &err) != SLUICE_OK ||
        sluice_batch_new(&batch, &err) != SLUICE_OK ||
        sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}", 29, &err) != SLUICE_OK)
        return 1;
    (void)sluice_commit(graph, batch, &options, NULL, &err);
    return 2;
}

static void a_child_of_a_writer_that_died_keeps_nobody_waiting(void **state)
{
    lib_fixture *fixture = *state;
    doomed writer = {.path = fixture->path, .stage = test_shared(sizeof(unsigned))};
    char *path = NULL;
    sluice_error err = {0};
    sluice_graph *single = NULL;
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    /* one writer at a time: whoever comes second is told so at once, for as long as the first one's locks are held */
    assert_true(asprintf(&path, "%s/single", fixture->folder) > 0);
    static const char schema[] = "{\"nodes\":{\"Note\":{\"properties\":{\"text\":\"string?\"}}}}";
    ASSERT_OK(sluice_create(path, schema, sizeof schema - 1, SLUICE_SINGLE, &single, &err));
    writer.path = path;
    pid_t child = test_child(write_and_die, &writer);
    test_child_expect_signal(child, SIGKILL);
    assert_int_equal(*writer.stage, 1); /* the grandchild lives */
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, "{\"op\":\"insert\",\"node\":\"Note\"}", 29, &err));
    sluice_status status =
        SLUICE_WRITER_BUSY; /* the kernel gives the dead one's locks up a moment after it was reaped */
    for (unsigned tries = 0; status == SLUICE_WRITER_BUSY && tries < 1000; tries++) {
        status = sluice_commit(single, batch, NULL, &receipt, &err);
        if (status == SLUICE_WRITER_BUSY)
            (void)usleep(10000);
    }
    ASSERT_OK(status);
    assert_true(receipt.committed);
    *writer.stage = 2;
    sluice_batch_free(batch);
    sluice_close(single);
    free(path);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_GRAPH(a_child_is_refused_and_the_parent_goes_on),
        IN_GRAPH(a_child_of_a_writer_that_died_keeps_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
