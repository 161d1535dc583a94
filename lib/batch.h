/*
 * The inside of batches and commits.
 */
#ifndef LIB_BATCH_H
#define LIB_BATCH_H

#include "coord/write.h"
#include "lib/handle.h"

/* The lines of a batch; USAGE while a change of it is being built. */
sluice_status lib_batch_text(const sluice_batch *batch, const char **ret_text, size_t *ret_length, sluice_error *err);
void lib_fill_receipt(const co_receipt *from, sluice_receipt *ret_receipt);

/* For an executor whose context are sluice_write_options. */
bool lib_is_cancelled(void *context);
void lib_advance(void *context, uint64_t rows, uint64_t bytes);

#endif
