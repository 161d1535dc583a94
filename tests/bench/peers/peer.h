/*
 * What every program of a peer does, so that all are measured alike (peer.c has the one main):
 *
 *   PEER load NODES.csv EDGES.csv DATABASE    the graph of graph_files, all of it durable at the end
 *   PEER commits DATABASE WRITERS SECONDS     commits of one small row each, from an empty database
 *   PEER history DATABASE COMMITS             so many of them by one writer: what one costs at depth 100, and at the
 * end PEER read DATABASE NODES                  scan, point reads, 1-hop, 2-hop of what load left
 *
 * What is measured is printed as JSON, a line each: {"measure": ..., "unit": ..., "value": ...}. A peer leaves out what
 * it cannot do (NULL below). Whatever goes wrong ends the program with a message and status 1.
 */
#ifndef TESTS_BENCH_PEERS_PEER_H
#define TESTS_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct peer_node {
    int64_t id;
    const char *name; /* not ended by a zero */
    uint32_t name_length;
    int32_t age;
    double score;
    int64_t created_us;
} peer_node;

typedef struct peer_edge {
    int64_t from, to;
    double weight;
    int64_t since;
} peer_edge;

typedef struct peer_graph { /* both files, parsed */
    peer_node *nodes;
    peer_edge *edges;
    size_t node_count, edge_count;
} peer_graph;

typedef struct peer_hops {
    uint64_t count; /* of paths, each end as often as it is reached */
    int64_t sum;    /* of the ids at their ends: that all peers found the same */
} peer_hops;

typedef struct peer {
    bool threads; /* its writers are threads of one process; else processes */
    void (*load)(const peer_graph *graph, const char *database);
    void (*make)(const char *database);                      /* before the writers: an empty table of nodes */
    void *(*open)(const char *database);                     /* a writer; in its own process or thread */
    void (*commit)(void *writer, int64_t id);                /* inserts one node, durably */
    void *(*open_reader)(const char *database);              /* for reading only */
    double (*scan)(void *reader);                            /* the sum of all edges' weights */
    int64_t (*point)(void *reader, int64_t id);              /* a node by its key: its age */
    peer_hops (*hop)(void *reader, int64_t id);              /* the ends of its edges */
    peer_hops (*hop2)(void *reader, int64_t id);             /* the ends of the edges of those */
    void (*snapshots)(const char *database, unsigned count); /* so many are opened and stay open */
} peer;

/* Each program has one. */
extern const peer the_peer;

void peer_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
double peer_now(void); /* seconds */
void peer_print(const char *measure, const char *unit, double value);
void *peer_allocate(size_t bytes);

#define PEER_NAME "somebody" /* the name of the nodes that are committed one by one */

/* For stores of sorted keys: edge numbers in the order of (from, to, number), or (to, from, number). */
uint32_t *peer_sorted_edges(const peer_graph *graph, bool by_to);

#endif
