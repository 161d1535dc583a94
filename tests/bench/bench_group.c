/*
 * How many small commits a second writers of one pool make on one branch, beside a bare loop of the same kind:
 *
 *   bench_group FOLDER SECONDS RUNS [WRITERS]
 *
 * For 1, 4 and 16 processes, alternating: `sluice`, each process one mutation of one row after the other, keys of its
 * own; `bare`, 256-byte records appended to one preallocated file, one process writing and flushing for all that wait
 * behind a mutex of the region (the bound of any group commit). Prints a line per run: commits a second, the least and
 * the most that one process made, milliseconds of the median and of 99 in 100, and commits per record or flush.
 */
#include "coord/mutate.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITERS_MAX 16u
#define SAMPLES     262144u
#define RECORD      256u
#define FILE_BYTES  (64u << 20)

typedef struct writer_result {
    unsigned ready;
    uint32_t commits;
    uint32_t us[SAMPLES];
} writer_result;

typedef struct shared_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next, durable, end; /* bare: tickets, all below are flushed, where the next record goes */
    bool flushing;
    uint64_t flushes;
    unsigned go, stop;
    writer_result writers[WRITERS_MAX];
} shared_state;

typedef struct job {
    shared_state *shared;
    const char *path;
    uint32_t seat, writers;
} job;

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void start_line(const job *me)
{
    __atomic_store_n(&me->shared->writers[me->seat].ready, 1, __ATOMIC_SEQ_CST);
    test_wait_for(&me->shared->go, 1);
}

static void note(const job *me, int64_t since_us)
{
    writer_result *to = &me->shared->writers[me->seat];
    to->us[to->commits++ % SAMPLES] = (uint32_t)(now_us() - since_us);
}

static int write_mutations(void *context, wk_executor *executor)
{
    const job *me = context;
    sluice_error err = {0};
    st_graph *graph = NULL;
    const co_mutate_options options = {.path = "bench"};
    if (st_graph_open(me->path, PF_WRITE, &graph, &err) != SLUICE_OK)
        return 1;
    start_line(me);
    for (unsigned long long i = 0; !__atomic_load_n(&me->shared->stop, __ATOMIC_RELAXED); i++) {
        char text[128];
        co_mutate_result result;
        int64_t since = now_us();
        int length = snprintf(text, sizeof text, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":%llu,\"n\":1}}\n",
                              i * me->writers + me->seat);
        if (co_mutate_text(graph, &options, executor, text, (size_t)length, &result, &err) != SLUICE_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        note(me, since);
    }
    st_graph_close(graph);
    return 0;
}

/* One record of the bare loop: written in its place, flushed by whoever comes to it first. */
static void append_bare(shared_state *shared, int file, const char *record)
{
    (void)pthread_mutex_lock(&shared->lock);
    uint64_t ticket = shared->next++;
    off_t at = (off_t)(ticket * RECORD % FILE_BYTES);
    if (pwrite(file, record, RECORD, at) != (ssize_t)RECORD)
        abort();
    while (shared->durable <= ticket) {
        if (shared->flushing) {
            (void)pthread_cond_wait(&shared->changed, &shared->lock);
            continue;
        }
        uint64_t upto = shared->next;
        shared->flushing = true;
        (void)pthread_mutex_unlock(&shared->lock);
        if (fdatasync(file) != 0)
            abort();
        (void)pthread_mutex_lock(&shared->lock);
        shared->flushing = false;
        shared->durable = upto;
        shared->flushes++;
        (void)pthread_cond_broadcast(&shared->changed);
    }
    (void)pthread_mutex_unlock(&shared->lock);
}

static int write_bare(void *context)
{
    const job *me = context;
    char record[RECORD];
    int file = open(me->path, O_RDWR);
    memset(record, 'r', sizeof record);
    if (file < 0)
        return 1;
    start_line(me);
    while (!__atomic_load_n(&me->shared->stop, __ATOMIC_RELAXED)) {
        int64_t since = now_us();
        append_bare(me->shared, file, record);
        note(me, since);
    }
    (void)close(file);
    return 0;
}

static void open_shared(shared_state *shared)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    memset(shared, 0, sizeof *shared);
    (void)pthread_mutexattr_init(&mutex);
    (void)pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&shared->lock, &mutex);
    (void)pthread_condattr_init(&condition);
    (void)pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    (void)pthread_cond_init(&shared->changed, &condition);
}

static int by_value(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static void race(shared_state *shared, uint32_t writers, double seconds)
{
    for (uint32_t i = 0; i < writers; i++)
        test_wait_for(&shared->writers[i].ready, 1);
    __atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
    (void)usleep((useconds_t)(seconds * 1e6));
    __atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
}

static void report(const char *what, const shared_state *shared, uint32_t writers, double seconds, uint64_t flushes)
{
    static uint32_t all[WRITERS_MAX * SAMPLES];
    uint64_t commits = 0, count = 0;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < writers; i++) {
        const writer_result *from = &shared->writers[i];
        uint32_t kept = from->commits < SAMPLES ? from->commits : SAMPLES;
        memcpy(all + count, from->us, kept * sizeof *all);
        count += kept;
        commits += from->commits;
        least = from->commits < least ? from->commits : least;
        most = from->commits > most ? from->commits : most;
    }
    qsort(all, count, sizeof *all, by_value);
    printf("%-6s %2u writers  %8.0f commits/s  least %u most %u  p50 %.3f ms  p99 %.3f ms  %.2f commits a flush\n",
           what, writers, (double)commits / seconds, least, most, count ? all[count / 2] / 1e3 : 0,
           count ? all[count * 99 / 100] / 1e3 : 0, flushes ? (double)commits / (double)flushes : 0);
    (void)fflush(stdout);
}

static void run_sluice(const char *folder, shared_state *shared, uint32_t writers, double seconds)
{
    static const char schema_text[] =
        "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"n\":\"int32\"}}}}";
    sluice_error err = {0};
    char path[512];
    st_schema *schema = NULL;
    st_graph *graph = NULL;
    st_log *log = NULL;
    pf_volume *volume = NULL;
    pf_id id;
    crew all;
    job jobs[WRITERS_MAX];
    (void)snprintf(path, sizeof path, "%s/graph-%u-%d-%lld", folder, writers, (int)getpid(), (long long)now_us());
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "schema.json", &schema, &err));
    ASSERT_OK(pf_volume_make(path, &volume, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    open_shared(shared);
    crew_make(&all, writers, 32768);
    for (uint32_t i = 0; i < writers; i++) {
        jobs[i] = (job){shared, path, i, writers};
        crew_start(&all, i, write_mutations, &jobs[i], NULL);
    }
    race(shared, writers, seconds);
    crew_end_all(&all);
    crew_free(&all);
    ASSERT_OK(st_graph_open(path, PF_READ, &graph, &err));
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    report("sluice", shared, writers, seconds, st_log_end(log).number - 1);
    st_graph_close(graph);
    st_schema_free(schema);
}

static void run_bare(const char *folder, shared_state *shared, uint32_t writers, double seconds)
{
    char path[512];
    pid_t pids[WRITERS_MAX];
    job jobs[WRITERS_MAX];
    static char zeros[1u << 20];
    (void)snprintf(path, sizeof path, "%s/bare-%d", folder, (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (uint32_t i = 0; i < FILE_BYTES / sizeof zeros; i++)
        if (file < 0 || write(file, zeros, sizeof zeros) != (ssize_t)sizeof zeros)
            abort();
    if (fsync(file) != 0)
        abort();
    (void)close(file);
    open_shared(shared);
    for (uint32_t i = 0; i < writers; i++) {
        jobs[i] = (job){shared, path, i, writers};
        pids[i] = test_child(write_bare, &jobs[i]);
    }
    race(shared, writers, seconds);
    for (uint32_t i = 0; i < writers; i++)
        (void)test_child_wait(pids[i]);
    report("bare", shared, writers, seconds, shared->flushes);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    uint32_t sizes[] = {1, 4, 16}, count = 3;
    if (argc != 4 && argc != 5) {
        (void)fprintf(stderr, "bench_group FOLDER SECONDS RUNS [WRITERS]\n");
        return 2;
    }
    if (argc == 5) {
        sizes[0] = (uint32_t)strtoul(argv[4], NULL, 10);
        count = 1;
    }
    shared_state *shared = test_shared(sizeof *shared);
    double seconds = strtod(argv[2], NULL);
    long runs = strtol(argv[3], NULL, 10);
    for (long run = 0; run < runs; run++)
        for (size_t i = 0; i < count; i++) {
            run_sluice(argv[1], shared, sizes[i], seconds);
            run_bare(argv[1], shared, sizes[i], seconds);
        }
    return 0;
}
