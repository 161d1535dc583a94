/*
 * A side of a join: the fragments of one table, either those that this load has staged or those that stand in the base,
 * with their runs and their keys.
 *
 * Fragments are numbered from 0 within a side: staged ones in the order of the input (argument, then chunk), those of
 * the base in the order of its list. Rows that are dead (deleted in the base, left out by an earlier phase of the load)
 * are not there. As many fragments are held open as there is memory for.
 */
#ifndef WORKER_INGEST_SIDE_H
#define WORKER_INGEST_SIDE_H

#include "store/fragment/key.h"
#include "store/read/snapshot.h"
#include "worker/ingest/sink.h"
#include "worker/ingest/spool.h"
#include "worker/ingest/staged.h"

/* Everything that a load has staged, in order of the input; what was left out later. */
typedef struct wk_catalogue {
    wk_staged *items; /* ascending by (argument, chunk) */
    uint32_t count;
    st_row_set **dead;     /* per item: positions left out by a phase behind the rows; NULL, or entries NULL: none */
    const wk_spool *spool; /* where items have files of their order; NULL: all are in order of the input */
    struct wk_hidden {     /* rows of the base that items replace, as wk_row_code has them */
        uint64_t table;
        st_row_set *rows;
    } * hidden;
    uint32_t hidden_count;
} wk_catalogue;

/* The record in which a row of an item began. */
sluice_status wk_catalogue_record(const wk_catalogue *catalogue, uint32_t item, uint64_t position, uint64_t *ret_record,
                                  sluice_error *err);

typedef struct wk_side wk_side;

sluice_status wk_side_of_load(pf_volume *volume, const st_type_def *type, const wk_catalogue *catalogue,
                              wk_side **ret_side, sluice_error *err);
/* Without the rows that stand in the base and are written anew. */
sluice_status wk_side_of_added(pf_volume *volume, const st_type_def *type, const wk_catalogue *catalogue,
                               wk_side **ret_side, sluice_error *err);
sluice_status wk_side_of_base(st_snapshot *base, const st_type_def *type, wk_side **ret_side, sluice_error *err);
/* Where plain copies of compressed fragments go (worker/ingest/plain.h); without it they are unpacked in memory. */
void wk_side_set_spool(wk_side *side, const wk_spool *spool);
void wk_side_close(wk_side *side); /* NULL allowed */
/* Rows of the base that are to be passed over, by wk_row_code; NULL: none. They must outlive the side. */
void wk_side_hide(wk_side *side, const st_row_set *rows);
/* Rows of a load that are to be passed over, too: positions per item of the catalogue, entries NULL where there are
 * none; NULL: none. They must outlive the side. */
void wk_side_except(wk_side *side, st_row_set *const *rows);
static inline uint64_t wk_row_code(uint32_t fragment, uint64_t position)
{
    PF_ALWAYS(position <= UINT32_MAX);
    return (uint64_t)fragment << 32 | position;
}
/* As wk_catalogue_record, of a side of the load; what it had to read is kept. */
sluice_status wk_side_record(wk_side *side, uint32_t fragment, uint64_t position, uint64_t *ret_record,
                             sluice_error *err);
bool wk_side_is_base(const wk_side *side);
uint32_t wk_side_count(const wk_side *side);
/* The item of the catalogue that a staged fragment is. */
uint32_t wk_side_item(const wk_side *side, uint32_t fragment);
bool wk_side_is_dead(const wk_side *side, uint32_t fragment, uint64_t position);
/* The sorted entries of a fragment for a use: its run, or, where a fragment of the base has none, the entries
 * themselves. */
typedef struct wk_entries {
    st_run *run;
    bool own;                    /* the holder closes the run (the base keeps its own open) */
    const st_run_entry *entries; /* where there is no run */
    uint64_t count;
} wk_entries;
sluice_status wk_side_entries(wk_side *side, uint32_t fragment, st_run_use use, uint32_t unique,
                              wk_entries *ret_entries, sluice_error *err);

/* The members of a key at one row, structs flattened. */
typedef struct wk_key {
    const st_column *columns[ST_KEY_LEAVES_MAX];
    uint32_t count;
    uint64_t row;
    st_column storage[ST_KEY_LEAVES_MAX];
} wk_key;
/* The key that `plan` reads at a row. Valid until the side is closed or WK_SIDE_KEPT other fragments were read. */
#define WK_SIDE_KEPT 8u
sluice_status wk_side_key(wk_side *side, const wk_run_plan *plan, uint32_t fragment, uint64_t position, wk_key *ret_key,
                          sluice_error *err);

#endif
