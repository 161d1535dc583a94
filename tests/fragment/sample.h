/*
 * Sample rows with a column of every type; row i follows from i alone, so that other programs can know what to expect
 * (tests/interop has the same formulas in Python). Nullable columns are null where i % 7 equals their number % 7.
 */
#ifndef TESTS_FRAGMENT_SAMPLE_H
#define TESTS_FRAGMENT_SAMPLE_H

#include "store/fragment/fragment.h"

#define SAMPLE_COLUMNS 13u

extern const st_column_spec sample_specs[SAMPLE_COLUMNS];

typedef struct sample {
    st_column_builder *builders[SAMPLE_COLUMNS];
} sample;
void sample_begin(sample *rows);
void sample_append(sample *rows, uint64_t i);
void sample_view(const sample *rows, st_column ret_columns[SAMPLE_COLUMNS]);
void sample_clear(sample *rows); /* drops the rows, keeps the builders */
void sample_end(sample *rows);

/* Writes rows [first, first + count) in batches of at most `batch` rows. */
st_fragment_info sample_write(pf_volume *volume, uint64_t table, const char *name, uint64_t first, uint64_t count,
                              uint64_t batch, bool compress);
/* The same with only `count` of the columns, those of these numbers. */
st_fragment_info sample_write_some(pf_volume *volume, uint64_t table, const char *name, const uint32_t *numbers,
                                   uint32_t count, uint64_t rows, uint64_t batch, bool compress);
/* Row `at` of these columns (those of `numbers`; NULL: all) is sample row i; false when anything differs. */
bool sample_row_is(const st_column *columns, const uint32_t *numbers, uint32_t count, uint64_t at, uint64_t i);

/* Writes fragments of many sizes, plain and compressed, below `root`/tables/70/fragments: "plain-<rows>.arrow", ... */
void sample_write_all(const char *root);

#endif
