/*
 * The two files of graph_files, as the programs of the peers read them: nothing is quoted, everything is there.
 */
#ifndef TESTS_BENCH_PEERS_FILES_H
#define TESTS_BENCH_PEERS_FILES_H

#include "peer.h"

void peer_read_files(const char *nodes, const char *edges, peer_graph *ret_graph);

#endif
