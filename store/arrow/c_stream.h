/*
 * Batches out and in by the Arrow C stream interface.
 *
 * Ownership. A struct whose `release` is not NULL belongs to whoever holds it; release frees everything that it points
 * to and sets `release` to NULL. A struct may be moved (copied, the source's release set to NULL). What get_schema and
 * get_next give out lives on its own: arrays outlive their stream, and children that were moved out of an array outlive
 * the array. A stream is used by one thread at a time.
 *
 * Out: a column is given as it lies where its batch says who keeps it there; each such array holds the keeper until it
 * is released, by whatever thread. Any other is copied. In: a stream is taken over, its arrays are read in place, with
 * their offsets, and each is released before the next one is asked for. Lengths of buffers are not in the interface:
 * what a producer's pointers lead to is trusted, its numbers are not.
 */
#ifndef STORE_ARROW_C_STREAM_H
#define STORE_ARROW_C_STREAM_H

#include "store/arrow/array.h"
#include "store/arrow/c_data.h"

/* ---- out ---- */

typedef struct st_c_batch {   /* valid until the next call */
    const st_column *columns; /* NULL at the end */
    uint64_t rows;
    const bool *kept; /* per column: lies with the keeper; NULL: none does */
    void *keeper;
    void (*hold)(void *keeper);
    void (*let_go)(void *keeper); /* any thread; once for each hold */
} st_c_batch;

typedef struct st_c_batches {
    void *context;
    sluice_status (*next)(void *context, st_c_batch *ret_batch, sluice_error *err);
    void (*close)(void *context); /* with the stream, or when making it fails */
} st_c_batches;

/* A stream of structs, a member for each column. Specs are copied. */
sluice_status st_c_stream_make(const st_column_spec *specs, uint32_t count, const st_c_batches *batches,
                               struct ArrowArrayStream *ret_stream, sluice_error *err);

/* ---- in ---- */

typedef struct st_c_input st_c_input;

/* Takes the stream over, also when it fails: *stream is empty then. UNSUPPORTED_FORMAT when it is no stream of
 * structs, CORRUPT when its schema is malformed, IO when its producer fails. */
sluice_status st_c_input_open(struct ArrowArrayStream *stream, st_c_input **ret_input, sluice_error *err);
void st_c_input_close(st_c_input *input); /* NULL allowed */
/* The columns, members of a struct for themselves ("from.A"), as in store/arrow/input.h: name and field of column i. */
uint32_t st_c_input_columns(const st_c_input *input);
const st_arrow_field *st_c_input_field(const st_c_input *input, uint32_t i, const char **ret_name);
/* One array per column, valid until the next call, and how many rows they have; *ret_arrays NULL at the end. Columns
 * that are not flat are empty arrays. An index that leads out of its dictionary is CORRUPT. */
sluice_status st_c_input_next(st_c_input *input, const st_arrow_array **ret_arrays, uint64_t *ret_rows,
                              sluice_error *err);

#endif
