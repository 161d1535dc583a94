/*
 * Arrow inputs in memory, and all that can be read of them as text: one line per row.
 */
#ifndef TESTS_ARROW_FOREIGN_H
#define TESTS_ARROW_FOREIGN_H

#include "platform/buffer.h"
#include "store/arrow/input.h"

typedef struct foreign_bytes {
    const uint8_t *bytes;
    size_t length;
} foreign_bytes;

st_arrow_source foreign_source(foreign_bytes *bytes);
/* A sample of tests/golden/arrow, to be freed by the caller. */
foreign_bytes foreign_sample(const char *name);
/* A value as text. */
void foreign_value(const st_arrow_array *array, uint64_t row, pf_buffer *text);
/* Appends the rows of one batch from `first` on, in slices of `slice` rows. What is wrong with it is returned. */
sluice_status foreign_batch(const st_arrow_input *input, uint32_t batch, uint64_t first, uint64_t slice,
                            pf_buffer *text, sluice_error *err);
/* Everything; CORRUPT also when only a part of it could be had. */
sluice_status foreign_read(foreign_bytes *bytes, uint64_t slice, pf_buffer *text, sluice_error *err);

#endif
