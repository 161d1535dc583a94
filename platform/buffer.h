/*
 * A growable byte buffer. Owned by whoever declared it; pf_buffer_free releases it (safe on a zeroed one, and twice).
 * Growing is checked: overflow or no memory is RESOURCE_LIMIT and leaves the buffer as it was.
 */
#ifndef PLATFORM_BUFFER_H
#define PLATFORM_BUFFER_H

#include "platform/fail.h"
#include <stddef.h>
#include <stdint.h>

typedef struct pf_buffer {
    uint8_t *data; /* NULL while empty and never grown */
    size_t length;
    size_t capacity;
} pf_buffer;

/* Makes room for `more` bytes behind length; length itself does not change. */
sluice_status pf_buffer_reserve(pf_buffer *buffer, size_t more, sluice_error *err);
sluice_status pf_buffer_append(pf_buffer *buffer, const void *bytes, size_t length, sluice_error *err);
sluice_status pf_buffer_append_text(pf_buffer *buffer, const char *text, sluice_error *err);
sluice_status pf_buffer_append_format(pf_buffer *buffer, sluice_error *err, const char *fmt, ...) PF_PRINTF(3, 4);
/* Appends zero bytes until length is a multiple of `boundary` (a power of two). */
sluice_status pf_buffer_align(pf_buffer *buffer, size_t boundary, sluice_error *err);
void pf_buffer_free(pf_buffer *buffer);

#endif
