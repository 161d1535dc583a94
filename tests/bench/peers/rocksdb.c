/*
 * RocksDB: a load writes three sorted files and takes them over; a commit syncs its log, shared by the threads that
 * wait.
 */
#include "sorted.h"

#include <rocksdb/c.h>
#include <stdio.h>

#define TABLES 3u

static void check(char *error)
{
    if (error)
        peer_fail("rocksdb: %s", error);
}

static rocksdb_options_t *options_new(void)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    return options;
}

static void put(rocksdb_sstfilewriter_t *file, const void *key, size_t key_length, const void *value, size_t length)
{
    char *error = NULL;
    rocksdb_sstfilewriter_put(file, key, key_length, value, length, &error);
    check(error);
}

static void write_nodes(const peer_graph *graph, rocksdb_sstfilewriter_t *file)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        uint64_t key;
        sorted_node value;
        size_t length = sorted_node_of(&graph->nodes[i], &key, &value);
        put(file, &key, sizeof key, &value, length);
    }
}

static void write_edges(const peer_graph *graph, bool by_to, rocksdb_sstfilewriter_t *file)
{
    uint32_t *order = peer_sorted_edges(graph, by_to);
    for (size_t i = 0; i < graph->edge_count; i++) {
        sorted_edge_key key;
        sorted_edge value;
        sorted_edge_of(graph, order[i], by_to, &key, &value);
        put(file, &key, sizeof key, &value, sizeof value);
    }
    free(order);
}

static void load(const peer_graph *graph, const char *path)
{
    static const char *const names[TABLES + 1] = {"default", "nodes", "out", "in"};
    rocksdb_options_t *options = options_new();
    const rocksdb_options_t *each[TABLES + 1] = {options, options, options, options};
    rocksdb_column_family_handle_t *handles[TABLES + 1];
    rocksdb_ingestexternalfileoptions_t *move = rocksdb_ingestexternalfileoptions_create();
    rocksdb_envoptions_t *env = rocksdb_envoptions_create();
    char *error = NULL, file_path[TABLES][4096];
    sorted_check(graph);
    rocksdb_t *database =
        rocksdb_open_column_families(options, path, TABLES + 1, (const char *const *)names, each, handles, &error);
    check(error);
    rocksdb_ingestexternalfileoptions_set_move_files(move, 1);
    for (unsigned i = 0; i < TABLES; i++) {
        rocksdb_sstfilewriter_t *file = rocksdb_sstfilewriter_create(env, options);
        (void)snprintf(file_path[i], sizeof file_path[i], "%s/%s.sst", path, names[i + 1]);
        rocksdb_sstfilewriter_open(file, file_path[i], &error);
        check(error);
        if (i == 0)
            write_nodes(graph, file);
        else
            write_edges(graph, i == 2, file);
        rocksdb_sstfilewriter_finish(file, &error);
        check(error);
        rocksdb_sstfilewriter_destroy(file);
    }
    for (unsigned i = 0; i < TABLES; i++) {
        const char *list[1] = {file_path[i]};
        rocksdb_ingest_external_file_cf(database, handles[i + 1], list, 1, move, &error);
        check(error);
    }
    for (unsigned i = 0; i <= TABLES; i++)
        rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(database);
}

/* ---- commits: a database belongs to one process ---- */

static rocksdb_t *shared_database;

static void make(const char *path)
{
    char *error = NULL;
    shared_database = rocksdb_open(options_new(), path, &error);
    check(error);
}

static void *open_writer(const char *path)
{
    (void)path;
    rocksdb_writeoptions_t *durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(durable, 1);
    return durable;
}

static void commit(void *writer, int64_t id)
{
    char *error = NULL;
    uint64_t key = htobe64((uint64_t)id);
    rocksdb_put(shared_database, writer, (const char *)&key, sizeof key, PEER_NAME, sizeof PEER_NAME - 1, &error);
    check(error);
}

const peer the_peer = {.threads = true, .load = load, .make = make, .open = open_writer, .commit = commit};
