/*
 * SQLite: WAL, synchronous FULL; one transaction and prepared statements for a load, then the indexes on both ends;
 * ends of edges are not checked.
 */
#include "peer.h"

#include <sqlite3.h>

static void check(sqlite3 *database, int result, int wanted)
{
    if (result != wanted)
        peer_fail("sqlite: %s", sqlite3_errmsg(database));
}

static void run(sqlite3 *database, const char *text)
{
    check(database, sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *text)
{
    sqlite3_stmt *statement = NULL;
    check(database, sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

static void step(sqlite3 *database, sqlite3_stmt *statement)
{
    check(database, sqlite3_step(statement), SQLITE_DONE);
    check(database, sqlite3_reset(statement), SQLITE_OK);
}

static sqlite3 *open_file(const char *path, int flags)
{
    sqlite3 *database = NULL;
    if (sqlite3_open_v2(path, &database, flags, NULL) != SQLITE_OK)
        peer_fail("sqlite: %s cannot be opened", path);
    check(database, sqlite3_busy_timeout(database, 60000), SQLITE_OK);
    return database;
}

static void load(const peer_graph *graph, const char *path)
{
    sqlite3 *database = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    run(database, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-64000; BEGIN;"
                  "CREATE TABLE nodes(id INTEGER PRIMARY KEY, name TEXT, age INTEGER, score REAL, created INTEGER);"
                  "CREATE TABLE edges(src INTEGER, dst INTEGER, weight REAL, since INTEGER)");
    sqlite3_stmt *insert = prepare(database, "INSERT INTO nodes VALUES(?, ?, ?, ?, ?)");
    for (size_t i = 0; i < graph->node_count; i++) {
        const peer_node *node = &graph->nodes[i];
        (void)sqlite3_bind_int64(insert, 1, node->id);
        (void)sqlite3_bind_text(insert, 2, node->name, (int)node->name_length, SQLITE_STATIC);
        (void)sqlite3_bind_int(insert, 3, node->age);
        (void)sqlite3_bind_double(insert, 4, node->score);
        (void)sqlite3_bind_int64(insert, 5, node->created_us);
        step(database, insert);
    }
    (void)sqlite3_finalize(insert);
    insert = prepare(database, "INSERT INTO edges VALUES(?, ?, ?, ?)");
    for (size_t i = 0; i < graph->edge_count; i++) {
        const peer_edge *edge = &graph->edges[i];
        (void)sqlite3_bind_int64(insert, 1, edge->from);
        (void)sqlite3_bind_int64(insert, 2, edge->to);
        (void)sqlite3_bind_double(insert, 3, edge->weight);
        (void)sqlite3_bind_int64(insert, 4, edge->since);
        step(database, insert);
    }
    (void)sqlite3_finalize(insert);
    run(database, "PRAGMA cache_size=-2000;" /* with it the sorter is fastest */
                  "CREATE INDEX by_src ON edges(src); CREATE INDEX by_dst ON edges(dst); COMMIT;"
                  "PRAGMA wal_checkpoint(TRUNCATE)");
    (void)sqlite3_close(database);
}

/* ---- commits ---- */

typedef struct writer {
    sqlite3 *database;
    sqlite3_stmt *begin, *insert, *commit;
} writer;

static void make(const char *path)
{
    sqlite3 *database = open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    run(database, "PRAGMA journal_mode=WAL; CREATE TABLE nodes(id INTEGER PRIMARY KEY, name TEXT)");
    (void)sqlite3_close(database);
}

static void *open_writer(const char *path)
{
    writer *opened = peer_allocate(sizeof *opened);
    opened->database = open_file(path, SQLITE_OPEN_READWRITE);
    run(opened->database, "PRAGMA synchronous=FULL");
    opened->begin = prepare(opened->database, "BEGIN IMMEDIATE");
    opened->insert = prepare(opened->database, "INSERT INTO nodes VALUES(?, ?)");
    opened->commit = prepare(opened->database, "COMMIT");
    return opened;
}

static void commit(void *context, int64_t id)
{
    writer *me = context;
    step(me->database, me->begin);
    (void)sqlite3_bind_int64(me->insert, 1, id);
    (void)sqlite3_bind_text(me->insert, 2, PEER_NAME, -1, SQLITE_STATIC);
    step(me->database, me->insert);
    step(me->database, me->commit);
}

/* ---- reads ---- */

typedef struct rows {
    sqlite3 *database;
    sqlite3_stmt *scan, *point, *hop, *hop2;
} rows;

static void *open_reader(const char *path)
{
    rows *opened = peer_allocate(sizeof *opened);
    sqlite3 *database = opened->database = open_file(path, SQLITE_OPEN_READONLY);
    run(database, "PRAGMA cache_size=-4000000; PRAGMA mmap_size=17179869184");
    opened->scan = prepare(database, "SELECT sum(weight) FROM edges");
    opened->point = prepare(database, "SELECT * FROM nodes WHERE id = ?");
    opened->hop = prepare(database, "SELECT dst FROM edges WHERE src = ?");
    opened->hop2 =
        prepare(database, "SELECT count(*), sum(b.dst) FROM edges a JOIN edges b ON b.src = a.dst WHERE a.src = ?");
    return opened;
}

static double scan(void *reader)
{
    rows *me = reader;
    check(me->database, sqlite3_step(me->scan), SQLITE_ROW);
    double sum = sqlite3_column_double(me->scan, 0);
    (void)sqlite3_reset(me->scan);
    return sum;
}

static int64_t point(void *reader, int64_t id)
{
    rows *me = reader;
    (void)sqlite3_bind_int64(me->point, 1, id);
    check(me->database, sqlite3_step(me->point), SQLITE_ROW);
    int64_t age = sqlite3_column_int64(me->point, 2);
    (void)sqlite3_reset(me->point);
    return age;
}

static peer_hops hop(void *reader, int64_t id)
{
    rows *me = reader;
    peer_hops found = {0};
    (void)sqlite3_bind_int64(me->hop, 1, id);
    for (; sqlite3_step(me->hop) == SQLITE_ROW; found.count++)
        found.sum += sqlite3_column_int64(me->hop, 0);
    (void)sqlite3_reset(me->hop);
    return found;
}

static peer_hops hop2(void *reader, int64_t id)
{
    rows *me = reader;
    (void)sqlite3_bind_int64(me->hop2, 1, id);
    check(me->database, sqlite3_step(me->hop2), SQLITE_ROW);
    peer_hops found = {(uint64_t)sqlite3_column_int64(me->hop2, 0), sqlite3_column_int64(me->hop2, 1)};
    (void)sqlite3_reset(me->hop2);
    return found;
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
