/*
 * LMDB: one transaction for a load, appending in the order of the keys; a commit flushes (default durability).
 */
#include "sorted.h"

#include <lmdb.h>
#include <sys/stat.h>

static void check(int result)
{
    if (result != 0)
        peer_fail("lmdb: %s", mdb_strerror(result));
}

static MDB_env *open_folder(const char *path, unsigned flags)
{
    MDB_env *env = NULL;
    check(mdb_env_create(&env));
    check(mdb_env_set_mapsize(env, (size_t)32 << 30));
    check(mdb_env_set_maxdbs(env, 4));
    (void)mkdir(path, 0755);
    check(mdb_env_open(env, path, flags, 0644));
    return env;
}

static void append(MDB_txn *txn, MDB_dbi table, const void *key, size_t key_length, const void *value, size_t length)
{
    MDB_val key_value = {key_length, (void *)key}, data = {length, (void *)value};
    check(mdb_put(txn, table, &key_value, &data, MDB_APPEND));
}

static void load(const peer_graph *graph, const char *path)
{
    static const char *const names[] = {"out", "in"};
    MDB_env *env = open_folder(path, 0);
    MDB_txn *txn = NULL;
    MDB_dbi table;
    sorted_check(graph);
    check(mdb_txn_begin(env, NULL, 0, &txn));
    check(mdb_dbi_open(txn, "nodes", MDB_CREATE, &table));
    for (size_t i = 0; i < graph->node_count; i++) {
        uint64_t key;
        sorted_node value;
        size_t length = sorted_node_of(&graph->nodes[i], &key, &value);
        append(txn, table, &key, sizeof key, &value, length);
    }
    for (unsigned by_to = 0; by_to < 2; by_to++) {
        uint32_t *order = peer_sorted_edges(graph, by_to);
        check(mdb_dbi_open(txn, names[by_to], MDB_CREATE, &table));
        for (size_t i = 0; i < graph->edge_count; i++) {
            sorted_edge_key key;
            sorted_edge value;
            sorted_edge_of(graph, order[i], by_to, &key, &value);
            append(txn, table, &key, sizeof key, &value, sizeof value);
        }
        free(order);
    }
    check(mdb_txn_commit(txn));
    mdb_env_close(env);
}

/* ---- commits ---- */

typedef struct writer {
    MDB_env *env;
    MDB_dbi table;
} writer;

static void *open_writer(const char *path)
{
    writer *opened = peer_allocate(sizeof *opened);
    MDB_txn *txn = NULL;
    opened->env = open_folder(path, 0);
    check(mdb_txn_begin(opened->env, NULL, 0, &txn));
    check(mdb_dbi_open(txn, "nodes", MDB_CREATE, &opened->table));
    check(mdb_txn_commit(txn));
    return opened;
}

static void make(const char *path)
{
    writer *opened = open_writer(path);
    mdb_env_close(opened->env);
    free(opened);
}

static void commit(void *context, int64_t id)
{
    writer *me = context;
    MDB_txn *txn = NULL;
    uint64_t key = htobe64((uint64_t)id);
    MDB_val key_value = {sizeof key, &key}, data = {sizeof PEER_NAME - 1, (void *)PEER_NAME};
    check(mdb_txn_begin(me->env, NULL, 0, &txn));
    check(mdb_put(txn, me->table, &key_value, &data, MDB_NOOVERWRITE));
    check(mdb_txn_commit(txn));
}

/* ---- reads ---- */

typedef struct rows {
    MDB_txn *txn;
    MDB_dbi nodes;
    MDB_cursor *first, *second; /* over "out" */
} rows;

static void *open_reader(const char *path)
{
    rows *opened = peer_allocate(sizeof *opened);
    MDB_dbi out;
    check(mdb_txn_begin(open_folder(path, MDB_RDONLY), NULL, MDB_RDONLY, &opened->txn));
    check(mdb_dbi_open(opened->txn, "nodes", 0, &opened->nodes));
    check(mdb_dbi_open(opened->txn, "out", 0, &out));
    check(mdb_cursor_open(opened->txn, out, &opened->first));
    check(mdb_cursor_open(opened->txn, out, &opened->second));
    return opened;
}

static double scan(void *reader)
{
    rows *me = reader;
    MDB_val key, value;
    sorted_edge edge;
    double sum = 0;
    for (int at = mdb_cursor_get(me->first, &key, &value, MDB_FIRST); at == 0;
         at = mdb_cursor_get(me->first, &key, &value, MDB_NEXT)) {
        memcpy(&edge, value.mv_data, sizeof edge);
        sum += edge.weight;
    }
    return sum;
}

static int64_t point(void *reader, int64_t id)
{
    rows *me = reader;
    uint64_t key = htobe64((uint64_t)id);
    MDB_val key_value = {sizeof key, &key}, value;
    sorted_node node;
    check(mdb_get(me->txn, me->nodes, &key_value, &value));
    memcpy(&node, value.mv_data, offsetof(sorted_node, name));
    return node.age;
}

/* With `deeper`, the edges of the ends are counted, not the ends. */
static peer_hops follow(MDB_cursor *cursor, MDB_cursor *deeper, int64_t id)
{
    sorted_edge_key from = {.near = htobe64((uint64_t)id)}, here;
    MDB_val key = {sizeof from, &from}, value;
    peer_hops found = {0};
    for (int at = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); at == 0;
         at = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        memcpy(&here, key.mv_data, sizeof here);
        if (here.near != from.near)
            break;
        int64_t end = (int64_t)be64toh(here.far);
        peer_hops one = deeper ? follow(deeper, NULL, end) : (peer_hops){1, end};
        found.count += one.count;
        found.sum += one.sum;
    }
    return found;
}

static peer_hops hop(void *reader, int64_t id)
{
    return follow(((rows *)reader)->first, NULL, id);
}

static peer_hops hop2(void *reader, int64_t id)
{
    return follow(((rows *)reader)->first, ((rows *)reader)->second, id);
}

const peer the_peer = {.load = load,
                       .make = make,
                       .open = open_writer,
                       .commit = commit,
                       .open_reader = open_reader,
                       .scan = scan,
                       .point = point,
                       .hop = hop,
                       .hop2 = hop2};
