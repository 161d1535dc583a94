/*
 * Waiting: what a gate costs that nobody else wants, and how soon after a holder's death the next writer has committed:
 *
 *   bench_gate FOLDER RUNS
 *
 * Prints a line per run: nanoseconds of entering and leaving a gate of the region, and milliseconds from kill -9 of a
 * process that holds a table's gate alone until the answer of a writer of that table who waits for it.
 */
#include "coord/mutate.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 1000000u

typedef struct shared_state {
    unsigned held, waits, go;
    int64_t killed_ns, done_ns, pair_ns;
} shared_state;

typedef struct job {
    shared_state *shared;
    const char *path;
    uint64_t table;
} job;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Enters and leaves a shared gate, in the region alone; then holds the table's gate until it is killed. */
static int hold(void *context, wk_executor *executor)
{
    const job *me = context;
    sluice_error err = {0};
    st_graph *graph = NULL;
    lk_lockfile *locks = NULL;
    lk_gates *gates = NULL;
    lk_gate_key key = {.kind = LK_GATE_TABLE, .incarnation = ST_MAIN_INCARNATION, .table = me->table};
    pf_id operation = pf_id_new(), orphan;
    bool orphaned = false;
    int64_t start = now_ns();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (executor->gates->enter(executor->gates->context, &key, &operation, PF_AT_ONCE, &orphaned, &orphan, &err) !=
            SLUICE_OK)
            return 1;
        executor->gates->leave(executor->gates->context, &key);
    }
    me->shared->pair_ns = (now_ns() - start) / ROUNDS;
    key.exclusive = true;
    if (st_graph_open(me->path, PF_WRITE, &graph, &err) != SLUICE_OK ||
        lk_lockfile_open(st_graph_volume(graph), "branches/1/locks", &locks, &err) != SLUICE_OK ||
        lk_gates_take(locks, executor->gates, &key, 1, &operation, pf_deadline_in_ms(1000), &gates, &orphaned, &err) !=
            SLUICE_OK)
        return 2;
    __atomic_store_n(&me->shared->held, 1, __ATOMIC_SEQ_CST);
    for (;;)
        (void)pause();
}

static int write_next(void *context, wk_executor *executor)
{
    const job *me = context;
    sluice_error err = {0};
    st_graph *graph = NULL;
    co_mutate_result result;
    const co_mutate_options options = {.path = "bench"};
    static const char text[] = "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":1}}\n";
    if (st_graph_open(me->path, PF_WRITE, &graph, &err) != SLUICE_OK)
        return 1;
    test_wait_for(&me->shared->held, 1);
    __atomic_store_n(&me->shared->waits, 1, __ATOMIC_SEQ_CST);
    if (co_mutate_text(graph, &options, executor, text, sizeof text - 1, &result, &err) != SLUICE_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    me->shared->done_ns = now_ns();
    st_graph_close(graph);
    return 0;
}

static void run(const char *folder, shared_state *shared)
{
    static const char schema_text[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}}}";
    sluice_error err = {0};
    char path[512];
    st_schema *schema = NULL;
    pf_volume *volume = NULL;
    pf_id id;
    crew all;
    memset(shared, 0, sizeof *shared);
    (void)snprintf(path, sizeof path, "%s/gate-%d-%lld", folder, (int)getpid(), (long long)now_ns());
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "schema.json", &schema, &err));
    ASSERT_OK(pf_volume_make(path, &volume, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    job one = {shared, path, st_schema_find(schema, "P")->table};
    crew_make(&all, 2, 32768);
    crew_start(&all, 0, hold, &one, NULL);
    crew_start(&all, 1, write_next, &one, NULL);
    test_wait_for(&shared->waits, 1);
    (void)usleep(100000); /* by then it stands at the gate */
    shared->killed_ns = now_ns();
    crew_kill(&all, 0);
    crew_end_all(&all);
    crew_free(&all);
    printf("gate enter + leave %lld ns  death to next commit %.2f ms\n", (long long)shared->pair_ns,
           (double)(shared->done_ns - shared->killed_ns) / 1e6);
    (void)fflush(stdout);
    st_schema_free(schema);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "bench_gate FOLDER RUNS\n");
        return 2;
    }
    shared_state *shared = test_shared(sizeof *shared);
    for (long i = strtol(argv[2], NULL, 10); i > 0; i--)
        run(argv[1], shared);
    return 0;
}
