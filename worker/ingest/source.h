/*
 * A source: the decompressed bytes of one input, to be read at any place by any worker of the job (a plain file as it
 * is; what comes compressed or through a pipe is spooled into the attempt first). Reading is by offset into a caller's
 * buffer and never through a mapping: an input that shrinks under us must be an error, not a signal.
 */
#ifndef WORKER_INGEST_SOURCE_H
#define WORKER_INGEST_SOURCE_H

#include "platform/fail.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wk_source {
    void *context;
    uint64_t size;
    /* Up to `length` bytes at `offset`; *ret_got is less only at the end. */
    sluice_status (*read)(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                          sluice_error *err);
} wk_source;

/* Reads exactly `length` bytes; an input that ends before is INPUT_CHANGED (its size was known). */
sluice_status wk_source_read(const wk_source *source, uint64_t offset, void *bytes, size_t length, sluice_error *err);
/* A source over bytes in memory (which must outlive it): columns given on the command line, tests. */
typedef struct wk_memory_source {
    const void *bytes;
    size_t length;
} wk_memory_source;
wk_source wk_source_of_memory(wk_memory_source *memory);

/* Length of the byte-order mark at the file's start (3 or 0); UTF-16 and UTF-32 marks are INPUT_SYNTAX. */
sluice_status wk_source_skip_mark(const wk_source *source, uint64_t *ret_offset, sluice_error *err);

#endif
