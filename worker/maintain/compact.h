/*
 * Compaction: the living rows of some fragments of a table become one fragment, in ascending order of their row ids,
 * with the columns _row_id and _commit (unless the list can say them: one stretch of ids, of one commit), in the type's
 * present layout, with all of its runs. What comes of it is a
 * substitution (store/state): it says which deletions it has applied, so that later ones are handed on.
 *
 * Memory: one batch of rows, this process's part for the entries of the new runs (the rest is spilled), and one open
 * fragment for each that overlaps in row ids; not the fragments themselves. Nothing is looked at but what is to be
 * rewritten.
 */
#ifndef WORKER_MAINTAIN_COMPACT_H
#define WORKER_MAINTAIN_COMPACT_H

#include "store/read/snapshot.h"
#include "worker/ingest/spool.h"

typedef struct wk_compaction {
    pf_volume *volume;
    st_snapshot *base;
    const st_type_def *type;
    const uint32_t *fragments; /* numbers in the base's list, ascending */
    uint32_t count;
    char prefix[48]; /* of the files' names */
    uint64_t number; /* the first of WK_SINK_NAMES */
    bool compress;
    const wk_spool *spool; /* where entries of the new runs go that do not fit into memory */
    void (*advance)(void *context, uint64_t rows, uint64_t bytes); /* progress; NULL allowed */
    void *advance_context;
} wk_compaction;

/* Writes and syncs the files, not their folders. The substitution has no addition when no row lives. CORRUPT when row
 * ids do not ascend in a fragment or stand twice. *ret_tried: files of an earlier try are litter. */
sluice_status wk_compact(const wk_compaction *compaction, st_edit *ret_edit, bool *ret_tried, sluice_error *err);

#endif
