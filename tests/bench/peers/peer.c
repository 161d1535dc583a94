#include "peer.h"

#include "files.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITERS_MAX 64u
#define SAMPLES     400000u
#define LOOKUPS     10000u
#define DEEP        1000u
#define REPEATS     5u

void peer_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(1);
}

double peer_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void peer_print(const char *measure, const char *unit, double value)
{
    printf("{\"measure\": \"%s\", \"unit\": \"%s\", \"value\": %.17g}\n", measure, unit, value);
    (void)fflush(stdout);
}

void *peer_allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        peer_fail("there is no memory for %zu bytes", bytes);
    return memory;
}

/* ---- sorting ---- */

/* One pass of a radix sort by 16 bits; both arrays have `count` numbers of edges. */
static void sort_pass(const peer_graph *graph, bool by_to, unsigned shift, const uint32_t *in, uint32_t *out)
{
    static size_t places[65536];
    size_t before = 0;
    memset(places, 0, sizeof places);
    for (size_t i = 0; i < graph->edge_count; i++)
        places[((uint64_t)(by_to ? graph->edges[i].to : graph->edges[i].from) >> shift) & 0xffff]++;
    for (size_t i = 0; i < 65536; i++) {
        size_t here = places[i];
        places[i] = before;
        before += here;
    }
    for (size_t i = 0; i < graph->edge_count; i++) {
        const peer_edge *edge = &graph->edges[in[i]];
        out[places[((uint64_t)(by_to ? edge->to : edge->from) >> shift) & 0xffff]++] = in[i];
    }
}

uint32_t *peer_sorted_edges(const peer_graph *graph, bool by_to)
{
    uint32_t *order = peer_allocate(graph->edge_count * sizeof *order);
    uint32_t *other = peer_allocate(graph->edge_count * sizeof *other);
    for (size_t i = 0; i < graph->edge_count; i++)
        order[i] = (uint32_t)i;
    sort_pass(graph, !by_to, 0, order, other); /* ids have 32 bits at most: the lesser end first */
    sort_pass(graph, !by_to, 16, other, order);
    sort_pass(graph, by_to, 0, order, other);
    sort_pass(graph, by_to, 16, other, order);
    free(other);
    return order;
}

/* ---- load ---- */

static void run_load(char **words)
{
    peer_graph graph;
    double start = peer_now();
    peer_read_files(words[0], words[1], &graph);
    peer_print("parse", "s", peer_now() - start);
    start = peer_now();
    the_peer.load(&graph, words[2]);
    peer_print("store", "s", peer_now() - start);
}

/* ---- commits ---- */

typedef struct shared_state {
    unsigned ready, go, stop;
    uint32_t counts[WRITERS_MAX];
    float us[WRITERS_MAX][SAMPLES];
} shared_state;

typedef struct writer_place {
    shared_state *shared;
    const char *database;
    unsigned seat, writers;
} writer_place;

static void *write_commits(void *context)
{
    const writer_place *me = context;
    void *writer = the_peer.open(me->database);
    __atomic_fetch_add(&me->shared->ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&me->shared->go, __ATOMIC_SEQ_CST))
        (void)usleep(100);
    uint32_t count = 0;
    while (!__atomic_load_n(&me->shared->stop, __ATOMIC_RELAXED) && count < SAMPLES) {
        double start = peer_now();
        the_peer.commit(writer, (int64_t)count * me->writers + me->seat);
        me->shared->us[me->seat][count++] = (float)((peer_now() - start) * 1e6);
    }
    me->shared->counts[me->seat] = count;
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const float *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void print_commits(const shared_state *shared, unsigned writers, double seconds)
{
    size_t total = 0, at = 0;
    uint32_t least = UINT32_MAX, most = 0;
    for (unsigned i = 0; i < writers; i++) {
        total += shared->counts[i];
        least = shared->counts[i] < least ? shared->counts[i] : least;
        most = shared->counts[i] > most ? shared->counts[i] : most;
    }
    if (total == 0)
        peer_fail("not one commit in %.1f s", seconds);
    float *all = peer_allocate(total * sizeof *all);
    for (unsigned i = 0; i < writers; i++)
        for (uint32_t j = 0; j < shared->counts[i]; j++)
            all[at++] = shared->us[i][j];
    qsort(all, total, sizeof *all, by_value);
    peer_print("commits", "/s", (double)total / seconds);
    peer_print("p50", "us", (double)all[total / 2]);
    peer_print("p99", "us", (double)all[total - 1 - total / 100]);
    peer_print("least of one writer", "commits", least);
    peer_print("most of one writer", "commits", most);
    free(all);
}

static void run_commits(char **words)
{
    static writer_place places[WRITERS_MAX];
    static pthread_t threads[WRITERS_MAX];
    unsigned writers = (unsigned)strtoul(words[1], NULL, 10);
    double seconds = strtod(words[2], NULL);
    shared_state *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED || writers == 0 || writers > WRITERS_MAX)
        peer_fail("from 1 to %u writers", WRITERS_MAX);
    the_peer.make(words[0]);
    for (unsigned i = 0; i < writers; i++) {
        places[i] = (writer_place){shared, words[0], i, writers};
        if (the_peer.threads) {
            if (pthread_create(&threads[i], NULL, write_commits, &places[i]) != 0)
                peer_fail("no thread can be started");
        } else {
            pid_t child = fork();
            if (child < 0)
                peer_fail("no process can be started");
            if (child == 0) {
                (void)write_commits(&places[i]);
                _exit(0);
            }
        }
    }
    while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < writers) {
        (void)usleep(1000);
        if (!the_peer.threads && waitpid(-1, NULL, WNOHANG) > 0)
            peer_fail("a writer has ended before it began");
    }
    double start = peer_now();
    __atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
    (void)usleep((useconds_t)(seconds * 1e6));
    __atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
    double elapsed = peer_now() - start;
    for (unsigned i = 0; i < writers; i++) {
        int status = 0;
        if (the_peer.threads ? pthread_join(threads[i], NULL) != 0 : wait(&status) < 0 || status != 0)
            peer_fail("a writer failed");
    }
    print_commits(shared, writers, elapsed);
}

/* ---- history ---- */

static double median_of(float *us, size_t count)
{
    qsort(us, count, sizeof *us, by_value);
    return count ? (double)us[count / 2] : 0;
}

static void run_history(char **words)
{
    enum { WINDOW = 201 };
    size_t count = strtoul(words[1], NULL, 10);
    float *us = peer_allocate(count * sizeof *us);
    the_peer.make(words[0]);
    void *writer = the_peer.open(words[0]);
    double start = peer_now();
    for (size_t i = 0; i < count; i++) {
        double before = peer_now();
        the_peer.commit(writer, (int64_t)i);
        us[i] = (float)((peer_now() - before) * 1e6);
    }
    peer_print("total", "s", peer_now() - start);
    size_t window = count < WINDOW ? count : WINDOW;
    peer_print("commit at the end", "us", median_of(us + count - window, window));
    peer_print("commit at depth 100", "us", median_of(us, window));
    free(us);
}

/* ---- reads ---- */

static int by_double(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

typedef struct answer {
    double result, sum;
} answer;
typedef answer read_fn(void *reader, const int64_t *ids);

static answer do_scan(void *reader, const int64_t *ids)
{
    (void)ids;
    return (answer){the_peer.scan(reader), 0};
}

static answer do_points(void *reader, const int64_t *ids)
{
    answer all = {0};
    for (unsigned i = 0; i < LOOKUPS; i++)
        all.result += (double)the_peer.point(reader, ids[i]);
    return all;
}

static answer do_hops(void *reader, const int64_t *ids)
{
    answer all = {0};
    for (unsigned i = 0; i < LOOKUPS; i++) {
        peer_hops one = the_peer.hop(reader, ids[i]);
        all.result += (double)one.count;
        all.sum += (double)one.sum;
    }
    return all;
}

static answer do_hops2(void *reader, const int64_t *ids)
{
    answer all = {0};
    for (unsigned i = 0; i < DEEP; i++) {
        peer_hops one = the_peer.hop2(reader, ids[i]);
        all.result += (double)one.count;
        all.sum += (double)one.sum;
    }
    return all;
}

/* The median of some runs after one that warms up, for each of `calls`; and the answer, which must be every peer's. */
static void repeat(const char *measure, const char *unit, double factor, read_fn *read, void *reader,
                   const int64_t *ids)
{
    double times[REPEATS];
    char label[64];
    answer found = read(reader, ids);
    for (unsigned i = 0; i < REPEATS; i++) {
        double start = peer_now();
        found = read(reader, ids);
        times[i] = (peer_now() - start) * factor;
    }
    qsort(times, REPEATS, sizeof *times, by_double);
    peer_print(measure, unit, times[REPEATS / 2]);
    (void)snprintf(label, sizeof label, "answer of %s", measure);
    peer_print(label, "", found.result);
    if (found.sum != 0) {
        (void)snprintf(label, sizeof label, "sum of %s", measure);
        peer_print(label, "", found.sum);
    }
}

static void run_read(char **words)
{
    static int64_t ids[LOOKUPS];
    uint64_t nodes = strtoull(words[1], NULL, 10);
    double start = peer_now();
    void *reader = the_peer.open_reader(words[0]);
    peer_print("open", "ms", (peer_now() - start) * 1e3);
    for (uint64_t i = 0; i < LOOKUPS; i++)
        ids[i] = (int64_t)((i + 1) * UINT64_C(2654435761) % nodes);
    repeat("scan", "ms", 1e3, do_scan, reader, ids);
    repeat("point", "us", 1e6 / LOOKUPS, do_points, reader, ids);
    repeat("1-hop", "us", 1e6 / LOOKUPS, do_hops, reader, ids);
    repeat("2-hop", "us", 1e6 / DEEP, do_hops2, reader, ids);
}

/* ---- snapshots ---- */

static void run_snapshots(char **words)
{
    unsigned count = (unsigned)strtoul(words[1], NULL, 10);
    double start = peer_now();
    the_peer.snapshots(words[0], count);
    peer_print("snapshot", "us", (peer_now() - start) * 1e6 / count);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    if (strcmp(what, "load") == 0 && argc == 5 && the_peer.load)
        run_load(argv + 2);
    else if (strcmp(what, "commits") == 0 && argc == 5 && the_peer.commit)
        run_commits(argv + 2);
    else if (strcmp(what, "history") == 0 && argc == 4 && the_peer.commit)
        run_history(argv + 2);
    else if (strcmp(what, "read") == 0 && argc == 4 && the_peer.open_reader)
        run_read(argv + 2);
    else if (strcmp(what, "snapshots") == 0 && argc == 4 && the_peer.snapshots)
        run_snapshots(argv + 2);
    else
        peer_fail("usage: PEER load NODES.csv EDGES.csv DATABASE | commits DATABASE WRITERS SECONDS | history DATABASE "
                  "COMMITS | read DATABASE NODES | snapshots DATABASE COUNT; not every peer does all");
    return 0;
}
