/*
 * Read sets and their arbitration (OW-016 to OW-029, LESSONS K-01, P-04): conflict = my reads meet their writes,
 * key-exact.
 */
#ifndef COORD_READ_SET_H
#define COORD_READ_SET_H

#include "store/read/snapshot.h"

typedef enum co_read_kind {
    CO_READ_KEY_ABSENT,     /* meets KEY_INSERTED of that table */
    CO_READ_KEY_PRESENT,    /* an endpoint or target that must stay: meets KEY_DELETED */
    CO_READ_UNIQUE_ABSENT,  /* meets UNIQUE_SET of that table and tuple */
    CO_READ_UNIQUE_PRESENT, /* a tuple that is taken: meets UNIQUE_FREED of that table and tuple */
    CO_READ_EDGES_EMPTY,    /* no incident edges (set.table: the node table): meets ENDPOINT_USED */
    CO_READ_COUNT, /* cardinality of a node in an edge type (set.table: the edge table): meets ENDPOINT_USED of it */
    CO_READ_ROW,   /* a key's row as it stands, or its absence: meets KEY_INSERTED, KEY_DELETED, ROW_UPDATED */
    /* Of the two below a change ends the write (WRITE_CONFLICT) instead of restarting its plan, also when it came
     * between two plans of it. */
    CO_READ_OBJECT,    /* like ROW: an object that is asserted or deleted, or asserted not to be there */
    CO_READ_PROPERTY,  /* a property that is set: meets ROW_UPDATED of it, and KEY_DELETED */
    CO_READ_FRAGMENTS, /* fragments that a substitution takes out (set.hashes: of their names): meets an edit that takes
                        * one of them out for good, or replaces the list; no change of rows */
    CO_READ_WHOLE_TABLE, /* meets everything of that table */
    CO_READ_KIND_COUNT   /* each has a rule in the table of read_set.c; a static assertion counts them */
} co_read_kind;
const char *co_read_kind_name(co_read_kind kind); /* "key-absent", ...; static storage */

typedef struct co_read {
    co_read_kind kind;
    st_change set; /* table, unique tuple, and the hashes or runs that were probed; `space` is not looked at */
} co_read;

typedef struct co_read_set {
    uint64_t incarnation;      /* always a member */
    pf_sha256 schema_identity; /* always a member */
    bool reads_head;           /* --if-head, merge, revert */
    pf_id head;
    co_read *reads;
    uint32_t count;
} co_read_set;
void co_read_set_free(co_read_set *set);
sluice_status co_read_set_add(co_read_set *set, const co_read *read, sluice_error *err); /* takes its insides over */
sluice_status co_read_set_encode(const co_read_set *set, pf_buffer *buffer, sluice_error *err);
sluice_status co_read_set_decode(const void *bytes, size_t length, co_read_set *ret_set, sluice_error *err);
/* Does any read meet these writes? Hash hits are confirmed on the key itself where both sides name fragments. */
sluice_status co_read_set_meets(st_graph *graph, const co_read_set *set, const st_changes *changes, bool *ret_meets,
                                co_read_kind *ret_kind, uint64_t *ret_table, sluice_error *err);
/* Does a change of what was read end the write? */
bool co_read_kind_ends(co_read_kind kind);
/* Moves the reads that end a write into a set of the same identities. */
sluice_status co_read_set_take_ends(co_read_set *set, co_read_set *ret_ends, sluice_error *err);
/* Does this edit take fragments away that the set relies on? */
bool co_read_set_misses(const co_read_set *set, const st_edit *edit);
/* Which use of which table was asked for through this snapshot, and is in none of the set's reads? False: each is. What
 * a plan looked at and did not say, no commit in between can meet (OW-024). Asserted for every plan with
 * SLUICE_CHECK_READS=1 in builds with failpoints, as far as the plan's own process looked. */
bool co_read_set_misses_probe(const co_read_set *set, const st_snapshot *snapshot, uint64_t *ret_table,
                              st_run_use *ret_use);
/* Has it a read of this kind of this table? */
bool co_read_set_has(const co_read_set *set, co_read_kind kind, uint64_t table);
/* Was this table read as a whole? It then meets every commit with an edit of the table, whatever its change sets say.
 */
bool co_read_set_has_whole(const co_read_set *set, uint64_t table);

#endif
