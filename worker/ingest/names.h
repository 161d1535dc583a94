/*
 * Load-local names of nodes without a key: what an input calls its rows (a column _row_id or :ID), so that edges of the
 * same load can say which they mean. They are not kept.
 *
 * Beside a chunk's fragment its names are staged, as a fragment of one column with a sorted run, which nothing ever
 * adds. Rows that names are given for get their ids from a block of the load's own, before the edges are read.
 */
#ifndef WORKER_INGEST_NAMES_H
#define WORKER_INGEST_NAMES_H

#include "worker/ingest/side.h"
#include "worker/ingest/sink.h"

/* The layout of staged names of a node type. `type` borrows nothing but the table's number. */
typedef struct wk_name_type {
    st_type_def type;
    st_property property;
    st_unique unique;
    uint32_t member;
    st_column_spec spec;
} wk_name_type;
/* Must not be moved afterwards. */
void wk_name_type_make(uint64_t table, wk_name_type *ret_type);

/* The names of one type: one item per item of the load's catalogue, its `add` the staged names, with the ids of the
 * rows given. */
typedef struct wk_names {
    pf_volume *volume;
    const wk_name_type *type;
    const wk_catalogue *catalogue;
} wk_names;
/* The ids of the rows that these texts name; 0 for no row. Of rows that share a name, the first. */
sluice_status wk_names_find(const wk_names *names, const st_column *texts, uint64_t rows, uint64_t *ret_ids,
                            sluice_error *err);

#endif
