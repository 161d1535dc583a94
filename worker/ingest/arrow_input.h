/*
 * An Arrow input of a load: opened once in each process, and where in its chunks the rows lie.
 *
 * A batch lies in the chunks that its bytes span, row i of n of its bytes at the i-th n-th of them; of a compressed
 * batch, which can only be had whole, all rows lie where it begins. Damage is a record of its own, behind the last row
 * before it, which cannot be read.
 */
#ifndef WORKER_INGEST_ARROW_INPUT_H
#define WORKER_INGEST_ARROW_INPUT_H

#include "store/arrow/input.h"
#include "worker/ingest/format.h"

typedef struct wk_arrow_state { /* of an input */
    wk_source source;
    st_arrow_input *input; /* NULL: it could not be opened, */
    wk_fault fault;        /* and this is why */
} wk_arrow_state;

/* Opens it when that has not been done. What is wrong with the content is no error. */
sluice_status wk_arrow_state_get(const wk_input *input, wk_arrow_state **ret_state, sluice_error *err);
/* True for what is wrong with the content; `error` then says it as of an input: what is damaged is wrong syntax here,
 * since it is the user's file, and a hint tells what to do. */
bool wk_arrow_is_content(sluice_status status, sluice_error *error);

/* For wk_format_ops. */
void wk_arrow_release(wk_input *input);
void wk_arrow_scan(const wk_input *input, const uint8_t *bytes, size_t length, size_t offset, size_t piece, int next,
                   wk_boundaries *ret_boundaries);
sluice_status wk_arrow_join(const wk_input *input, const wk_boundaries *boundaries, uint32_t count,
                            wk_chunk *ret_chunks, wk_shape *ret_shape, sluice_error *err);

#endif
