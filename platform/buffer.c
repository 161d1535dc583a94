/*
 * The growable byte buffer of platform/buffer.h: doubles, checks every sum, leaves the buffer as it was on failure.
 */
#include "platform/buffer.h"
#include "platform/check.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256u

sluice_status pf_buffer_reserve(pf_buffer *buffer, size_t more, sluice_error *err)
{
    size_t need;
    PF_ASSERT(buffer->length <= buffer->capacity);
    if (!pf_add_size(buffer->length, more, &need) || need > SIZE_MAX / 2)
        return pf_fail_memory(err);
    if (need <= buffer->capacity)
        return SLUICE_OK;
    size_t capacity = buffer->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : buffer->capacity;
    while (capacity < need)
        capacity *= 2;
    uint8_t *data = realloc(buffer->data, capacity);
    if (!data)
        return pf_fail_memory(err);
    buffer->data = data;
    buffer->capacity = capacity;
    return SLUICE_OK;
}

sluice_status pf_buffer_append(pf_buffer *buffer, const void *bytes, size_t length, sluice_error *err)
{
    if (length == 0)
        return SLUICE_OK;
    PF_TRY(pf_buffer_reserve(buffer, length, err));
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
    return SLUICE_OK;
}

sluice_status pf_buffer_append_text(pf_buffer *buffer, const char *text, sluice_error *err)
{
    return pf_buffer_append(buffer, text, strlen(text), err);
}

sluice_status pf_buffer_append_format(pf_buffer *buffer, sluice_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0)
        return pf_fail(err, SLUICE_INTERNAL, "a text could not be formatted");
    PF_TRY(pf_buffer_reserve(buffer, (size_t)length + 1, err)); /* vsnprintf ends with a zero that is not kept */
    va_start(args, fmt);
    (void)vsnprintf((char *)buffer->data + buffer->length, (size_t)length + 1, fmt, args);
    va_end(args);
    buffer->length += (size_t)length;
    return SLUICE_OK;
}

sluice_status pf_buffer_align(pf_buffer *buffer, size_t boundary, sluice_error *err)
{
    PF_ASSERT(boundary != 0 && (boundary & (boundary - 1)) == 0);
    size_t pad = (boundary - (buffer->length & (boundary - 1))) & (boundary - 1);
    if (pad == 0)
        return SLUICE_OK;
    PF_TRY(pf_buffer_reserve(buffer, pad, err));
    memset(buffer->data + buffer->length, 0, pad);
    buffer->length += pad;
    return SLUICE_OK;
}

void pf_buffer_free(pf_buffer *buffer)
{
    free(buffer->data);
    *buffer = (pf_buffer){0};
}
