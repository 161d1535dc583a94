/*
 * What the rows that an upsert updates (worker/ingest/complete.h) take out of the base, as a file of the attempt's
 * folder: which rows, where they stand, and which unique tuples they give up and take. Words as they lie in memory:
 * counts first, then everything that they count.
 */
#ifndef WORKER_INGEST_GONE_H
#define WORKER_INGEST_GONE_H

#include "store/schema/schema.h"
#include "worker/ingest/spool.h"

/* What the updated rows of a slice take out of the base (file "<stem>-gone"). */
typedef struct wk_gone {
    pf_buffer bytes; /* what the rest points into */
    uint64_t count;
    const uint64_t *rows;   /* row ids, ascending */
    const uint64_t *places; /* wk_row_code of where they stand in the base */
    const uint8_t *changed; /* bits of the columns that some of these rows have another value in */
    uint32_t unique_count;
    struct wk_gone_tuples { /* hashes of unique tuples that these rows have no more, and have newly */
        const uint64_t *freed, *set;
        uint64_t freed_count, set_count;
    } * tuples;
} wk_gone;
/* Words of `changed`. */
static inline uint64_t wk_gone_column_words(const st_type_def *type)
{
    return (type->property_count + (type->edge ? 2u : 0u) + 63u) / 64u;
}
/* Leaves the file; `bytes` is not looked at. */
sluice_status wk_gone_put(const wk_spool *spool, const char *stem, const st_type_def *type, const wk_gone *gone,
                          sluice_error *err);
/* No file: nothing is gone. */
sluice_status wk_gone_get(const wk_spool *spool, const char *stem, const st_type_def *type, wk_gone *ret_gone,
                          sluice_error *err);
void wk_gone_free(wk_gone *gone);

#endif
