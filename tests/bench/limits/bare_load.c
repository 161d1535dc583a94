/*
 * The work that any loader of this graph has to do, by hand: bare_load NODES.csv EDGES.csv FOLDER WORKERS. Not a store:
 * processes over shared memory, in step: parse both files, hash the keys of nodes (repeated ones are found), look both
 * ends of every edge up (missing ones are found), sort edges by both ends by counting, write plain columns and flush
 * them. No format, no compression, nothing to recover.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 16u
#define PHASES      7u
#define BURST       32u /* look-ups whose memory is asked for before the first of them is made */

static const char *const phase_names[PHASES] = {"parse nodes", "hash keys",  "parse edges",  "look ends up",
                                                "sum degrees", "sort edges", "write + fsync"};

typedef struct slot {
    uint64_t key;
    uint32_t row, state; /* 0: free, 1: being written, 2: there */
} slot;

typedef struct columns { /* of one worker's share of the rows */
    uint64_t *id, *age;
    double *score;
    int64_t *created;
    uint32_t *name_end;
    char *names;
    uint64_t *key[2]; /* of an edge's ends */
    uint32_t *row[2];
    double *weight;
    int64_t *since;
    uint32_t *degree[2]; /* per node; then where its next edge goes */
    uint64_t node_count, edge_count, name_bytes;
} columns;

typedef struct shared_state {
    pthread_barrier_t barrier;
    columns of[WORKERS_MAX];
    double begun[PHASES + 1];
    bool failed;
} shared_state;

static shared_state *all;
static unsigned workers;
static uint64_t slots, most_nodes;
static slot *table;
static uint32_t *sorted_end[2], *edge_of_in; /* the other end by (from) and by (to); which outgoing edge it is */
static double *sorted_weight;
static int64_t *sorted_since;
static uint32_t *first[2];

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *shared(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

static const char *map_file(const char *path, uint64_t *ret_length)
{
    struct stat stat;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) != 0 || stat.st_size == 0) {
        perror(path);
        exit(1);
    }
    *ret_length = (uint64_t)stat.st_size;
    const char *bytes = mmap(NULL, *ret_length, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    return bytes;
}

/* Where the share of worker `seat` begins: behind the end of a line. */
static const char *share(const char *bytes, uint64_t length, unsigned seat)
{
    uint64_t at = length / workers * seat;
    if (seat >= workers)
        return bytes + length;
    const char *line = memchr(bytes + at, '\n', length - at);
    return line ? line + 1 : bytes + length;
}

static inline uint64_t whole(const char **at)
{
    uint64_t value = 0;
    const char *from = *at;
    for (; (unsigned)(*from - '0') < 10; from++)
        value = value * 10 + (uint64_t)(*from - '0');
    *at = from + 1;
    return value;
}

static inline double fraction(const char **at)
{
    uint64_t before = whole(at);
    return (double)before + (double)whole(at) / 1e6;
}

static inline int64_t timestamp_us(const char **at)
{
    int64_t year = (int64_t)whole(at), month = (int64_t)whole(at), day = (int64_t)whole(at), hour = (int64_t)whole(at);
    int64_t minute = (int64_t)whole(at), second = (int64_t)whole(at);
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000;
}

static inline uint64_t place_of(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return (key ^ key >> 32) & (slots - 1);
}

/* ---- the phases, each of one worker ---- */

static void parse_nodes(columns *to, const char *at, const char *end)
{
    uint64_t row = 0, bytes = 0;
    for (; at < end; row++) {
        to->id[row] = whole(&at);
        while (*at != ',')
            to->names[bytes++] = *at++;
        at++;
        to->name_end[row] = (uint32_t)bytes;
        to->age[row] = whole(&at);
        to->score[row] = fraction(&at);
        to->created[row] = timestamp_us(&at);
    }
    to->node_count = row;
    to->name_bytes = bytes;
}

static void hash_keys(unsigned seat)
{
    const columns *from = &all->of[seat];
    uint32_t base = 0;
    for (unsigned i = 0; i < seat; i++)
        base += (uint32_t)all->of[i].node_count;
    for (uint64_t i = 0; i < from->node_count; i++) {
        uint64_t key = from->id[i], at = place_of(key);
        for (;; at = (at + 1) & (slots - 1)) {
            uint32_t free_slot = 0;
            if (__atomic_compare_exchange_n(&table[at].state, &free_slot, 1, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                table[at].key = key;
                table[at].row = base + (uint32_t)i;
                __atomic_store_n(&table[at].state, 2, __ATOMIC_RELEASE);
                break;
            }
            while (__atomic_load_n(&table[at].state, __ATOMIC_ACQUIRE) != 2)
                ;
            if (table[at].key == key) {
                all->failed = true;
                break;
            }
        }
    }
}

static void parse_edges(columns *to, const char *at, const char *end)
{
    uint64_t row = 0;
    for (; at < end; row++) {
        to->key[0][row] = whole(&at);
        to->key[1][row] = whole(&at);
        to->weight[row] = fraction(&at);
        to->since[row] = (int64_t)whole(&at);
    }
    to->edge_count = row;
}

static void look_up(columns *of)
{
    for (uint64_t row = 0; row < of->edge_count; row += BURST) {
        uint64_t count = of->edge_count - row < BURST ? of->edge_count - row : BURST;
        for (uint64_t i = 0; i < count; i++)
            for (unsigned end = 0; end < 2; end++)
                __builtin_prefetch(&table[place_of(of->key[end][row + i])]);
        for (uint64_t i = 0; i < count; i++) {
            for (unsigned end = 0; end < 2; end++) {
                uint64_t key = of->key[end][row + i], at = place_of(key);
                while (table[at].state && table[at].key != key)
                    at = (at + 1) & (slots - 1);
                if (!table[at].state) {
                    all->failed = true;
                    continue;
                }
                of->row[end][row + i] = table[at].row;
                of->degree[end][table[at].row]++;
            }
        }
    }
}

static void sum_degrees(unsigned end, uint64_t nodes)
{
    uint32_t before = 0;
    for (uint64_t node = 0; node < nodes; node++) {
        first[end][node] = before;
        for (unsigned i = 0; i < workers; i++) {
            uint32_t here = all->of[i].degree[end][node];
            all->of[i].degree[end][node] = before;
            before += here;
        }
    }
    first[end][nodes] = before;
}

static void sort_edges(columns *of)
{
    for (uint64_t row = 0; row < of->edge_count; row++) {
        uint32_t out = of->degree[0][of->row[0][row]]++, in = of->degree[1][of->row[1][row]]++;
        sorted_end[0][out] = of->row[1][row];
        sorted_weight[out] = of->weight[row];
        sorted_since[out] = of->since[row];
        sorted_end[1][in] = of->row[0][row];
        edge_of_in[in] = out;
    }
}

static void write_column(const char *folder, const char *name, unsigned seat, const void *bytes, uint64_t length)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.%u", folder, name, seat);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = file >= 0;
    for (uint64_t at = 0; ok && at < length;) {
        ssize_t written = write(file, (const char *)bytes + at, length - at < 8u << 20 ? length - at : 8u << 20);
        ok = written > 0;
        at += ok ? (uint64_t)written : 0;
    }
    if (!ok || fsync(file) != 0) {
        perror(path);
        exit(1);
    }
    (void)close(file);
}

static void write_all(const char *folder, unsigned seat, uint64_t nodes, uint64_t edges)
{
    const columns *of = &all->of[seat];
    uint64_t from = edges * seat / workers, count = edges * (seat + 1) / workers - from;
    write_column(folder, "id", seat, of->id, 8 * of->node_count);
    write_column(folder, "age", seat, of->age, 8 * of->node_count);
    write_column(folder, "score", seat, of->score, 8 * of->node_count);
    write_column(folder, "created", seat, of->created, 8 * of->node_count);
    write_column(folder, "name_end", seat, of->name_end, 4 * of->node_count);
    write_column(folder, "name", seat, of->names, of->name_bytes);
    write_column(folder, "to", seat, sorted_end[0] + from, 4 * count);
    write_column(folder, "weight", seat, sorted_weight + from, 8 * count);
    write_column(folder, "since", seat, sorted_since + from, 8 * count);
    write_column(folder, "from", seat, sorted_end[1] + from, 4 * count);
    write_column(folder, "edge", seat, edge_of_in + from, 4 * count);
    if (seat == 0) {
        write_column(folder, "first_out", seat, first[0], 4 * (nodes + 1));
        write_column(folder, "first_in", seat, first[1], 4 * (nodes + 1));
    }
}

/* ---- together ---- */

static void in_step(unsigned seat, unsigned phase)
{
    (void)pthread_barrier_wait(&all->barrier);
    if (seat == 0)
        all->begun[phase] = now();
    (void)pthread_barrier_wait(&all->barrier);
}

static void work(unsigned seat, const char *nodes, uint64_t node_bytes, const char *edges, uint64_t edge_bytes,
                 const char *folder)
{
    columns *mine = &all->of[seat];
    uint64_t node_count = 0, edge_count = 0;
    in_step(seat, 0);
    parse_nodes(mine, share(nodes, node_bytes, seat), share(nodes, node_bytes, seat + 1));
    in_step(seat, 1);
    hash_keys(seat);
    in_step(seat, 2);
    parse_edges(mine, share(edges, edge_bytes, seat), share(edges, edge_bytes, seat + 1));
    in_step(seat, 3);
    look_up(mine);
    in_step(seat, 4);
    for (unsigned i = 0; i < workers; i++) {
        node_count += all->of[i].node_count;
        edge_count += all->of[i].edge_count;
    }
    for (unsigned end = seat; end < 2; end += workers)
        sum_degrees(end, node_count);
    in_step(seat, 5);
    sort_edges(mine);
    in_step(seat, 6);
    write_all(folder, seat, node_count, edge_count);
    in_step(seat, 7);
}

static void make_room(uint64_t node_bytes, uint64_t edge_bytes)
{
    uint64_t nodes = node_bytes / 20 / workers + 4096,
             edges = edge_bytes / 12 / workers + 4096; /* no line is shorter */
    most_nodes = nodes * workers;
    for (unsigned i = 0; i < workers; i++) {
        columns *of = &all->of[i];
        of->id = shared(8 * nodes);
        of->age = shared(8 * nodes);
        of->score = shared(8 * nodes);
        of->created = shared(8 * nodes);
        of->name_end = shared(4 * nodes);
        of->names = shared(node_bytes / workers + 4096);
        of->weight = shared(8 * edges);
        of->since = shared(8 * edges);
        for (unsigned end = 0; end < 2; end++) {
            of->key[end] = shared(8 * edges);
            of->row[end] = shared(4 * edges);
            of->degree[end] = shared(4 * most_nodes);
        }
    }
    for (slots = 1; slots < node_bytes / 25; slots *= 2)
        ;
    table = shared(slots * sizeof *table);
    for (unsigned end = 0; end < 2; end++) {
        sorted_end[end] = shared(4 * edges * workers);
        first[end] = shared(4 * (most_nodes + 1));
    }
    edge_of_in = shared(4 * edges * workers);
    sorted_weight = shared(8 * edges * workers);
    sorted_since = shared(8 * edges * workers);
}

int main(int argc, char **argv)
{
    uint64_t node_bytes, edge_bytes;
    pthread_barrierattr_t attributes;
    workers = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    if (workers == 0 || workers > WORKERS_MAX || (mkdir(argv[3], 0700) != 0)) {
        (void)fprintf(stderr, "usage: bare_load NODES.csv EDGES.csv NEW_FOLDER WORKERS (at most %u)\n", WORKERS_MAX);
        return 2;
    }
    const char *nodes = map_file(argv[1], &node_bytes), *edges = map_file(argv[2], &edge_bytes);
    all = shared(sizeof *all);
    (void)pthread_barrierattr_init(&attributes);
    (void)pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&all->barrier, &attributes, workers);
    make_room(node_bytes, edge_bytes);
    for (unsigned seat = 1; seat < workers; seat++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            work(seat, nodes, node_bytes, edges, edge_bytes, argv[3]);
            _exit(0);
        }
    }
    work(0, nodes, node_bytes, edges, edge_bytes, argv[3]);
    for (unsigned seat = 1; seat < workers; seat++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0)
            return 1;
    }
    for (unsigned phase = 0; phase < PHASES; phase++)
        printf("{\"measure\": \"%s\", \"unit\": \"s\", \"value\": %.6f}\n", phase_names[phase],
               all->begun[phase + 1] - all->begun[phase]);
    if (all->failed)
        (void)fputs("a key is repeated, or an end of an edge is not there\n", stderr);
    return all->failed;
}
