/*
 * Checks of single values, as the schema declares them: minimum, maximum, enumeration, length, pattern; and what every
 * key has to keep: no NaN and no infinity (K-04).
 */
#ifndef WORKER_INGEST_CHECK_H
#define WORKER_INGEST_CHECK_H

#include "store/schema/pattern.h"
#include "store/schema/schema.h"
#include "worker/ingest/fault.h"

typedef struct wk_check {
    const st_property *property; /* NULL: only the rule for keys */
    bool is_key;                 /* a member of a node's key, of an end or of an edge's key */
    bool any;                    /* false: nothing to check */
    st_pattern *pattern;
    const st_value **members; /* of the enumeration, sorted */
} wk_check;

/* `property` NULL for an end of an edge; `type` is the column's. */
sluice_status wk_check_make(const st_property *property, st_type type, bool is_key, wk_check *ret_check,
                            sluice_error *err);
void wk_check_free(wk_check *check); /* safe on a zeroed one */
/* Checks row `row` (not null) of a column; false: *fault has code and text, named after `name`. */
bool wk_check_value(const wk_check *check, const char *name, const st_column *column, uint64_t row, wk_fault *fault);

#endif
