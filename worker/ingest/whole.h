/*
 * The rows of a chunk as they would be after an upsert, each at the position at which it was staged: what the rules of
 * a load that skips bad rows look at (coord/load_whole.c). Nothing of it is ever added to the graph.
 *
 * A row that the base does not have stands as it was staged; one that is there has the values that its record does not
 * give from the base. Where a type has no unique tuples, or the base none of the chunk's rows, the staged fragment
 * serves. Beside it stands, per row, where the base has it and which unique tuples it changes ("<stem>-bases"), and a
 * list of the rows that cannot stand ("<stem>-weak"): new ones without a value that they must have, and completed ones
 * with a unique tuple beyond the limit.
 */
#ifndef WORKER_INGEST_WHOLE_H
#define WORKER_INGEST_WHOLE_H

#include "worker/ingest/events.h"
#include "worker/ingest/match.h"
#include <assert.h>

typedef struct wk_whole {
    const wk_spool *spool;
    const st_schema *schema;
    const st_type_def *type;
    st_snapshot *base;
    const wk_staged *staged; /* of this chunk */
    const char *absent;      /* the file of what its records did not give */
    const char *stem;        /* of the names of the files that it leaves in the attempt's folder */
    const char *weak;        /* the name of the list */
    const char *prefix;      /* of the names of fragment and runs, which have WK_SINK_NAMES numbers from `number` */
    uint64_t number;
    uint32_t item;  /* of the catalogue, in the list */
    uint64_t slice; /* rows that are in memory at a time */
} wk_whole;

sluice_status wk_whole_make(const wk_whole *request, wk_staged *ret_whole, sluice_error *err);

/* Why a row is in the list of the weak: event.probe, about the property or unique tuple event.other_item. */
#define WK_WEAK_LACKS UINT32_MAX       /* a new row has no value of the property */
#define WK_WEAK_LONG  (UINT32_MAX - 1) /* the completed tuple is too long */
void wk_weak_fault(const st_type_def *type, const wk_event *event, wk_fault *ret_fault);

/* ---- where the base has the rows ---- */

typedef struct wk_base {
    uint64_t place;   /* as wk_row_code has it, or WK_MATCH_NONE */
    uint64_t changes; /* bits of the unique tuples, in the order of the type, that the row changes */
} wk_base;
static_assert(ST_SCHEMA_UNIQUES_MAX <= 64, "one word has a bit for each unique tuple");

/* *ret_file NULL: the base has none of the rows. */
sluice_status wk_bases_open(const wk_spool *spool, const char *stem, pf_file **ret_file, sluice_error *err);
/* Of `count` rows from `position` on. */
sluice_status wk_bases_read(pf_file *file, uint64_t position, uint64_t count, wk_base *ret_bases, sluice_error *err);

#endif
