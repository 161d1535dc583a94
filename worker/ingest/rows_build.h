/*
 * The inside of rows (rows.h), for the formats: a format's `add` appends the values of one record, each by one of
 * these; what no value came for is filled in behind it, and what a bad record has left is taken back.
 */
#ifndef WORKER_INGEST_ROWS_BUILD_H
#define WORKER_INGEST_ROWS_BUILD_H

#include "worker/ingest/rows.h"

struct wk_rows {
    const wk_input *input;
    const wk_columns *columns;
    st_column_spec *specs;
    uint32_t count;
    uint32_t ends; /* columns before the properties: 2 for edges */
    st_column_builder **builders;
    st_column *views;
    wk_check *checks;                              /* per column */
    wk_check (*member_checks)[ST_KEY_MEMBERS_MAX]; /* per member of from and to */
    struct wk_key_group *groups;                   /* only those that can exceed the limit */
    uint32_t group_count;
    uint64_t length, bytes;
    uint64_t row_bytes;          /* what each row takes whatever it holds */
    uint64_t default_bytes;      /* of defaults in the record at hand */
    st_column_builder *names[3]; /* load-local names of rows and ends, as texts; NULL: none */
    struct wk_quick *quick;      /* NULL: there are none that are taken quickly */
    pf_buffer absent;            /* of partial columns: per row, bits of the columns that no value came for */
};

/* Where the values of a target go: for formats whose values have types. Each value is checked behind its append. */
typedef struct wk_slot {
    const st_column_spec *spec;
    st_column_builder *builder;
    const wk_check *check;
} wk_slot;
wk_slot wk_rows_slot(const wk_rows *rows, const wk_target *target);
void wk_rows_check(const wk_slot *slot, const wk_target *target, wk_fault *fault);
/* A value from text, for a column or a member of an end. */
sluice_status wk_rows_text(wk_rows *rows, const wk_target *target, const char *text, size_t length, wk_fault *fault,
                           sluice_error *err);
/* No value: the column's default (if it may be), else null, where that may be. */
sluice_status wk_rows_nothing(wk_rows *rows, const wk_target *target, bool may_default, wk_fault *fault,
                              sluice_error *err);
bool wk_rows_may_be_null(const wk_rows *rows, const wk_target *target);
/* What a column holds that must name the type itself. */
void wk_rows_label(const wk_rows *rows, const wk_target *target, const char *text, size_t length, wk_fault *fault);
void wk_rows_refuse(wk_fault *fault, sluice_status code, const char *name, const char *what);

#endif
