/*
 * Unpacking an input as a stream: gzip (RFC 1952, any number of members) and zstd (any number of frames), or the bytes
 * as they are. One pass, front to end, in memory that does not depend on the input.
 *
 * An input is taken whole or not at all: one that is cut, whose checksum or length is wrong, or that goes on behind its
 * last member with something else ends in an error, whatever it has given until then.
 */
#ifndef WORKER_INGEST_UNPACK_H
#define WORKER_INGEST_UNPACK_H

#include "worker/ingest/dialect.h"
#include <stddef.h>

/* The window that a zstd frame may ask for, as a power of two: 128 MiB, as the zstd program has it. */
#define WK_UNPACK_WINDOW_LOG 27

typedef struct wk_flow {
    void *context;
    const char *name; /* of the input, for texts on the terminal */
    /* Up to `length` packed bytes, at least one; none only at the end. */
    sluice_status (*take)(void *context, void *bytes, size_t length, size_t *ret_got, sluice_error *err);
    /* The next unpacked bytes, at least one. */
    sluice_status (*give)(void *context, const void *bytes, size_t length, sluice_error *err);
} wk_flow;

/* INPUT_SYNTAX: damaged. UNSUPPORTED_FORMAT: it does not even begin as such a file, or needs a dictionary.
 * RESOURCE_LIMIT: a larger window. */
sluice_status wk_unpack(wk_packing packing, const wk_flow *flow, sluice_error *err);

#endif
