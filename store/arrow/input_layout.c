/*
 * What the columns of an Arrow input are, and where each has its nodes and buffers in a batch.
 */
#include "store/arrow/input.h"

#include <stdlib.h>

/* Depth is at most ST_ARROW_DEPTH_MAX, by how fields are decoded. */
bool st_arrow_field_extent(const st_arrow_field *field, bool is_v4, st_arrow_extent *extent)
{
    extent->nodes++;
    if (field->has_dictionary) { /* indexes; the children are the dictionary's */
        extent->buffers += 2;
        return true;
    }
    switch ((unsigned)field->kind) {
    case ST_ARROW_NULL:
        break;
    case ST_ARROW_RUN_END_ENCODED:
        extent->buffers += is_v4;
        break;
    case ST_ARROW_UNION:
        extent->buffers += (field->unit == 1 ? 2u : 1u) + is_v4;
        break;
    case ST_ARROW_STRUCT:
    case ST_ARROW_FIXED_SIZE_LIST:
        extent->buffers += 1;
        break;
    case ST_ARROW_UTF8_VIEW:
    case ST_ARROW_BINARY_VIEW:
        extent->views++;
        extent->buffers += 2;
        break;
    case ST_ARROW_UTF8:
    case ST_ARROW_BINARY:
    case ST_ARROW_LARGE_UTF8:
    case ST_ARROW_LARGE_BINARY:
    case ST_ARROW_LIST_VIEW:
    case ST_ARROW_LARGE_LIST_VIEW:
        extent->buffers += 3;
        break;
    case ST_ARROW_INT:
    case ST_ARROW_FLOATING_POINT:
    case ST_ARROW_BOOL:
    case ST_ARROW_DECIMAL:
    case ST_ARROW_DATE:
    case ST_ARROW_TIME:
    case ST_ARROW_TIMESTAMP:
    case ST_ARROW_INTERVAL:
    case ST_ARROW_LIST:
    case ST_ARROW_FIXED_SIZE_BINARY:
    case ST_ARROW_MAP:
    case ST_ARROW_DURATION:
    case ST_ARROW_LARGE_LIST:
        extent->buffers += 2;
        break;
    default:
        return false;
    }
    for (uint32_t i = 0; i < field->child_count; i++)
        if (!st_arrow_field_extent(&field->children[i], is_v4, extent))
            return false;
    return true;
}

sluice_status st_arrow_check_extent(const st_arrow_batch *batch, uint64_t body_length, const st_arrow_extent *extent,
                                    sluice_error *err)
{
    uint64_t buffers = extent->buffers;

    if (batch->length > ST_COLUMN_ROWS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a batch of %llu rows is larger than the limit of %llu",
                       (unsigned long long)batch->length, (unsigned long long)ST_COLUMN_ROWS_MAX);
    if (batch->node_count != extent->nodes || batch->variadic_count != extent->views)
        return pf_fail(err, SLUICE_CORRUPT, "a batch does not fit the schema");
    for (uint32_t i = 0; i < batch->variadic_count; i++) {
        if (batch->variadic[i] > batch->buffer_count)
            return pf_fail(err, SLUICE_CORRUPT, "a batch does not fit the schema");
        buffers += batch->variadic[i];
    }
    if (buffers != batch->buffer_count)
        return pf_fail(err, SLUICE_CORRUPT, "a batch does not fit the schema");
    for (uint32_t i = 0; i < batch->buffer_count; i++) {
        const st_arrow_buffer *buffer = &batch->buffers[i];
        if (buffer->offset > body_length || buffer->length > body_length - buffer->offset)
            return pf_fail(err, SLUICE_CORRUPT, "a buffer lies outside of its batch");
    }
    return SLUICE_OK;
}
