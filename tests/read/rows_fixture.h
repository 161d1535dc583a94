/*
 * Real rows for the tests of store/read: fragments with runs, written the way a load writes them.
 */
#ifndef TESTS_READ_ROWS_FIXTURE_H
#define TESTS_READ_ROWS_FIXTURE_H

#include "store/read/snapshot.h"
#include "tests/support/graph_fixture.h"

/* Rows that follow are attached to their record instead of being staged (they have no runs then). */
extern bool rows_attached;
/* Persons first .. first + count - 1: name "p<id>" (null where id % 5 == 0), age id % 100; in batches of `batch` rows.
 * With a key run unless `runs` is false. */
st_edit_add rows_persons(graph_fixture *fixture, int64_t first, uint64_t count, uint64_t batch, bool runs);
/* One person; `name` NULL: null. */
st_edit_add rows_person(graph_fixture *fixture, int64_t id, const char *name, int32_t age);
/* Notes with a text each. */
st_edit_add rows_notes(graph_fixture *fixture, uint64_t count);
/* KNOWS edges from[i] -> to[i]. */
st_edit_add rows_knows(graph_fixture *fixture, const int64_t *from, const int64_t *to, uint64_t count);
/* ABOUT edges: note row ids to person ids. */
st_edit_add rows_about(graph_fixture *fixture, const uint64_t *from, const int64_t *to, uint64_t count);
/* Publishes one commit with this add (or, with `rows`, a deletion of these row ids); its id. */
pf_id rows_publish(graph_fixture *fixture, uint64_t table, const st_edit_add *add);
pf_id rows_delete(graph_fixture *fixture, uint64_t table, const uint64_t *rows, uint32_t count);

st_snapshot *rows_open(st_graph *graph, const char *at);
const st_type_def *rows_type(const st_snapshot *snapshot, const char *name);
/* All rows of a type as JSON Lines with their row ids less ST_ROW_BLOCK: "0:[1,\"p1\",1]\n...". Freed by the caller. */
char *rows_scan(st_snapshot *snapshot, const char *type, const uint32_t *columns, uint32_t count);
/* Is the person there, by key? */
bool rows_has_person(st_snapshot *snapshot, int64_t id);

#endif
