/*
 * Differences between two snapshots of one graph, table by table: any two, of one branch or of two.
 *
 * Rows are the same row when they have the same key (nodes with key, keyed edges), else when they have the same row id.
 * What is compared is values: a row that was rewritten and says the same has not changed. A property that only one side
 * knows counts as null on the other (or as what it was added with), so that adding or dropping one changes no row.
 *
 * Cost: fragments that both sides list, with the same deletions, are not opened. Of the others only keys are read, and
 * the values of rows that both have. Memory: about 56 bytes for each row of a fragment that only `to` lists, up to a
 * quarter of the process's share (platform/memory.h) and 224 MiB; where that is not enough for all, the keys of `from`
 * are read once for each part of `to` that is; and a bit for each row of a fragment that only `from` lists. What is
 * compressed stays unpacked for as long as the snapshot's reader has it.
 */
#ifndef STORE_READ_DIFF_H
#define STORE_READ_DIFF_H

#include "store/read/snapshot.h"

typedef enum st_difference { ST_INSERTED, ST_UPDATED, ST_DELETED } st_difference;

typedef struct st_row_place { /* in the table reader of its snapshot */
    uint32_t fragment;
    uint64_t position;
} st_row_place;

typedef struct st_row_change {
    st_difference kind;
    st_row_place from, to;      /* unset where the row is not there */
    const uint32_t *properties; /* updated: which, as indexes into the properties of the type in `to` */
    uint32_t property_count;
    /* What the row is known by, at key_row of each: nodes their key, edges both ends and their own key; and its row id
     * (0 where that is not what it is known by). */
    const st_column *const *key;
    uint32_t key_count;
    uint64_t key_row, row_id;
} st_row_change;

/* `change` is valid during the call. */
typedef sluice_status st_row_change_fn(void *context, const st_row_change *change, sluice_error *err);

/* What leads from one to the other: first inserted and updated rows in the order of `to`, then deleted ones in the
 * order of `from`. A table that one of them lacks has no rows there. */
sluice_status st_diff_table(st_snapshot *from, st_snapshot *to, uint64_t table, st_row_change_fn *each, void *context,
                            sluice_error *err);

#endif
