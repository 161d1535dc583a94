/*
 * What a program may put under the library: an allocator of its own, and an ear for what happens. Included by
 * sluice/sluice.h. Both are the process's, for all graphs of all threads.
 */
#ifndef SLUICE_HOOKS_H
#define SLUICE_HOOKS_H

#include <sluice/error.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory ---- */

/*
 * Where the library takes all of its memory from: handles, buffers, the texts and Arrow arrays that it gives out. Not
 * covered are mapped files, and what the libraries behind it (zlib, zstd, LZ4, PCRE2, cJSON, CRoaring, libcrypto)
 * allocate for themselves. Called from every thread that calls the library, and from those that release Arrow arrays.
 */
typedef struct sluice_allocator {
    void *context;
    /* `size` is not 0, `alignment` a power of two. NULL: there is none, and the call fails with RESOURCE_LIMIT. */
    void *(*allocate)(void *context, size_t size, size_t alignment);
    /* A block of the usual alignment, larger or smaller. NULL: it stays as it is. */
    void *(*reallocate)(void *context, void *block, size_t size);
    void (*release)(void *context, void *block); /* never NULL */
} sluice_allocator;
/* Once, before any other call of the library (USAGE afterwards); copied, `context` must outlive all of its blocks. */
sluice_status sluice_set_allocator(const sluice_allocator *allocator, sluice_error *err);

/* ---- events ---- */

typedef enum sluice_level { SLUICE_LEVEL_ERROR, SLUICE_LEVEL_WARN, SLUICE_LEVEL_INFO, SLUICE_LEVEL_DEBUG } sluice_level;

typedef struct sluice_field {
    const char *name;
    const char *text; /* an id or a word of the library's; NULL: */
    uint64_t number;
} sluice_field;

/*
 * Something that happened; valid during the call. Like a `message`, it may be logged, stored and sent: it holds ids,
 * counts, codes, phases and durations, and never names, keys, values, paths or host names.
 */
typedef struct sluice_event {
    sluice_level level;
    const char *name;    /* "commit", "restart", "recovered", ...: docs/embedding.md lists them with their fields */
    const char *message; /* the same for people */
    const sluice_field *fields;
    size_t field_count;
} sluice_event;
/* Called in the thread in which it happened, in the midst of work: it must not call the library. */
typedef void sluice_event_fn(void *context, const sluice_event *event);
/* Hears from now on all events of `most` and of the levels before it. `each` NULL: nobody does (as in the beginning).
 * No other thread uses the library meanwhile. */
void sluice_set_log(sluice_event_fn *each, void *context, sluice_level most);

#ifdef __cplusplus
}
#endif
#endif
