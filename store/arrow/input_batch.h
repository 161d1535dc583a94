/*
 * Inside of store/arrow: a batch whose buffers are read piece by piece, and one column of it.
 */
#ifndef STORE_ARROW_INPUT_BATCH_H
#define STORE_ARROW_INPUT_BATCH_H

#include "store/arrow/codec.h"
#include "store/arrow/input.h"

typedef struct st_unpacked {
    uint8_t *bytes;
    uint64_t length;
    bool ready;
} st_unpacked;

typedef struct st_open_batch { /* of rows, or of a dictionary's values */
    const st_arrow_input *input;
    st_arrow_message_place at;
    st_arrow_batch batch;
    st_unpacked *unpacked; /* compressed ones: per buffer, once it was asked for */
    st_codec *codec;       /* borrowed */
} st_open_batch;

sluice_status st_open_batch_begin(const st_arrow_input *input, const st_arrow_message_place *at,
                                  const st_arrow_extent *extent, st_codec *codec, st_open_batch *ret_batch,
                                  sluice_error *err);
void st_open_batch_end(st_open_batch *batch); /* safe on a zeroed one */

/* Where a column has its nodes and buffers. */
typedef struct st_column_place {
    const st_arrow_field *field;
    uint32_t node, buffer, views;
    bool whole;  /* all rows or none, however long the texts are */
    bool member; /* of a struct, whose place is: */
    uint32_t parent_node, parent_buffer, parent_views;
} st_column_place;

/* The memory of one column's slice. */
typedef struct st_column_room {
    pf_buffer validity, parent, values, text;
    st_arrow_part *parts;
    pf_buffer *part_bytes;
    uint32_t part_room;
} st_column_room;
void st_column_room_free(st_column_room *room); /* safe on a zeroed one */

/* Rows [first, first + *count) of a column: *count shrinks to the rows that could be had (see st_arrow_read), at least
 * one. The array has no dictionary yet; indexes are not checked. */
sluice_status st_column_read(st_open_batch *batch, const st_column_place *place, uint64_t first, uint64_t *count,
                             st_column_room *room, st_arrow_array *ret_array, sluice_error *err);

#endif
