/*
 * Keys and values of the stores of sorted keys (LMDB, RocksDB): a node by its id; an edge twice, by (from, to, number)
 * and by (to, from, number). Numbers are big-endian in keys, so that they sort as numbers. That keys are not repeated
 * and ends exist is checked by this program, since these stores know of neither.
 */
#ifndef TESTS_BENCH_PEERS_SORTED_H
#define TESTS_BENCH_PEERS_SORTED_H

#include "peer.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define SORTED_NAME_MAX 64u

typedef struct sorted_node {
    double score;
    int64_t created_us;
    int32_t age;
    uint32_t name_length;
    char name[SORTED_NAME_MAX];
} sorted_node;

typedef struct __attribute__((packed)) sorted_edge_key {
    uint64_t near, far;
    uint32_t number;
} sorted_edge_key;

typedef struct sorted_edge {
    double weight;
    int64_t since;
} sorted_edge;

static inline size_t sorted_node_of(const peer_node *node, uint64_t *ret_key, sorted_node *ret_value)
{
    *ret_key = htobe64((uint64_t)node->id);
    *ret_value = (sorted_node){.score = node->score, .created_us = node->created_us, .age = node->age};
    ret_value->name_length = node->name_length < SORTED_NAME_MAX ? node->name_length : SORTED_NAME_MAX;
    memcpy(ret_value->name, node->name, ret_value->name_length);
    return offsetof(sorted_node, name) + ret_value->name_length;
}

static inline void sorted_edge_of(const peer_graph *graph, uint32_t number, bool by_to, sorted_edge_key *ret_key,
                                  sorted_edge *ret_value)
{
    const peer_edge *edge = &graph->edges[number];
    *ret_key = (sorted_edge_key){.near = htobe64((uint64_t)(by_to ? edge->to : edge->from)),
                                 .far = htobe64((uint64_t)(by_to ? edge->from : edge->to)),
                                 .number = htobe32(number)};
    *ret_value = (sorted_edge){edge->weight, edge->since};
}

/* Ids ascend, as these stores' fastest way of loading needs, and every end exists. */
static inline void sorted_check(const peer_graph *graph)
{
    for (size_t i = 1; i < graph->node_count; i++)
        if (graph->nodes[i].id <= graph->nodes[i - 1].id)
            peer_fail("ids of nodes do not ascend");
    if (graph->node_count == 0)
        peer_fail("there are no nodes");
    int64_t most = graph->nodes[graph->node_count - 1].id;
    uint8_t *there = calloc((size_t)most / 8 + 1, 1);
    if (!there)
        peer_fail("there is no memory for %lld ids", (long long)most);
    for (size_t i = 0; i < graph->node_count; i++)
        there[graph->nodes[i].id / 8] |= (uint8_t)(1u << (graph->nodes[i].id & 7));
    for (size_t i = 0; i < graph->edge_count; i++) {
        const int64_t ends[2] = {graph->edges[i].from, graph->edges[i].to};
        for (unsigned end = 0; end < 2; end++)
            if (ends[end] > most || !(there[ends[end] / 8] >> (ends[end] & 7) & 1))
                peer_fail("edge %zu has an end that is not there", i);
    }
    free(there);
}

#endif
