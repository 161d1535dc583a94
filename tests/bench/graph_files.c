/*
 * graph_files FOLDER NODES EDGES [SEED]: nodes.csv and edges.csv of a graph that looks like one of people: the same
 * bytes for the same numbers, on any machine.
 *
 * Nodes (id,name,age,score,created) have the ids 0 .. NODES-1, ascending. Edges (src,dst,weight,since) are R-MAT with
 * the usual weights (57, 19, 19, 5 of 100), so that a few nodes have very many; the ends are then scattered over all
 * ids, so that the popular ones do not lie together. Edges come in no order; loops and repeated ones occur; both ends
 * always exist.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TIME UINT64_C(1262304000) /* 2010-01-01 */
#define TIME_SPAN  UINT64_C(473385600)  /* fifteen years */

static uint64_t state[2];

static uint64_t mix(uint64_t *counter)
{
    uint64_t value = *counter += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* xoroshiro128+ */
static uint64_t next_random(void)
{
    uint64_t a = state[0], b = state[1], result = a + b;
    b ^= a;
    state[0] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
    state[1] = (b << 37) | (b >> 27);
    return result;
}

static uint64_t below(uint64_t bound)
{
    return (next_random() >> 11) % bound;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* "2017-03-09 12:00:59" of seconds since 1970 (Howard Hinnant's days to civil date). */
static void write_time(FILE *file, uint64_t seconds)
{
    uint64_t days = seconds / 86400 + 719468, rest = seconds % 86400;
    uint64_t era = days / 146097, of_era = days % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100), shifted = (5 * of_year + 2) / 153;
    uint64_t day = of_year - (153 * shifted + 2) / 5 + 1, month = shifted < 10 ? shifted + 3 : shifted - 9;

    fprintf(file, "%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64 " %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
            year + era * 400 + (month <= 2), month, day, rest / 3600, rest / 60 % 60, rest % 60);
}

static void write_name(FILE *file)
{
    static const char *const parts[] = {"an", "be", "cor", "da", "el",  "fi", "gor", "ha",
                                        "is", "jo", "kel", "lu", "mar", "no", "or",  "pe"};
    for (unsigned word = 0; word < 2; word++) {
        if (word)
            fputc(' ', file);
        for (uint64_t left = 2 + below(3); left; left--)
            fputs(parts[below(16)], file);
    }
}

static void write_nodes(FILE *file, uint64_t nodes)
{
    fputs("id,name,age,score,created\n", file);
    for (uint64_t id = 0; id < nodes; id++) {
        uint64_t score = below(1000000000);
        fprintf(file, "%" PRIu64 ",", id);
        write_name(file);
        fprintf(file, ",%" PRIu64 ",%" PRIu64 ".%06" PRIu64 ",", 1 + below(99), score / 1000000, score % 1000000);
        write_time(file, FIRST_TIME + below(TIME_SPAN));
        fputc('\n', file);
    }
}

static void write_edges(FILE *file, uint64_t nodes, uint64_t edges)
{
    uint64_t step = nodes * 618 / 1000 + 1;
    unsigned levels = 0;

    while ((UINT64_C(1) << levels) < nodes)
        levels++;
    while (common_divisor(step, nodes) != 1)
        step++;
    fputs("src,dst,weight,since\n", file);
    for (uint64_t i = 0; i < edges; i++) {
        uint64_t from, to;
        do {
            from = to = 0;
            for (unsigned level = 0; level < levels; level++) {
                uint64_t percent = below(100);
                from = from << 1 | (percent >= 76);
                to = to << 1 | ((percent >= 57 && percent < 76) || percent >= 95);
            }
        } while (from >= nodes || to >= nodes);
        fprintf(file, "%" PRIu64 ",%" PRIu64 ",0.%06" PRIu64 ",%" PRIu64 "\n", from * step % nodes, to * step % nodes,
                below(1000000), FIRST_TIME + below(TIME_SPAN));
    }
}

static FILE *open_file(const char *folder, const char *name)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "we") : NULL;
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv)
{
    uint64_t nodes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, edges = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 42;

    if (nodes == 0) {
        fputs("usage: graph_files FOLDER NODES EDGES [SEED]\n", stderr);
        return 2;
    }
    state[0] = mix(&seed);
    state[1] = mix(&seed);
    FILE *file = open_file(argv[1], "nodes.csv");
    write_nodes(file, nodes);
    if (fclose(file) != 0)
        return 1;
    file = open_file(argv[1], "edges.csv");
    write_edges(file, nodes, edges);
    return fclose(file) != 0;
}
