/*
 * Arrow IPC that anybody made, as a file or a stream: what is in it, and its rows in slices.
 *
 * Opening reads the metadata of all messages and no data. A file's footer says where its batches are (its schema may
 * stand there only); a stream is walked to its end, which must be marked: one without the mark was cut off. Format
 * versions V4 and V5, with or without continuation markers; LZ4 and zstd; dictionaries, in streams also replaced, in
 * both also continued by deltas.
 *
 * Nothing in the bytes is believed: every length and offset is checked before it is used. What is damaged is CORRUPT,
 * what is of a kind that is not read UNSUPPORTED_FORMAT or RESOURCE_LIMIT, with a reason that begins with a noun and
 * names no file. Rows that precede the damage can be read.
 */
#ifndef STORE_ARROW_INPUT_H
#define STORE_ARROW_INPUT_H

#include "store/arrow/array.h"

typedef struct st_arrow_source {
    void *context;
    uint64_t size;
    /* Exactly `length` bytes at `offset`, which lie in the source. */
    sluice_status (*read)(void *context, uint64_t offset, void *bytes, size_t length, sluice_error *err);
} st_arrow_source;

/* A column, or a member of a struct, "from.A". */
typedef struct st_arrow_leaf {
    char *name;
    const st_arrow_field *field, *parent; /* parent: the struct, or NULL */
    uint32_t node, buffer, views;         /* its first node and buffer of a batch; columns of views before it */
    uint32_t parent_node, parent_buffer, parent_views;
} st_arrow_leaf;

typedef struct st_arrow_message_place {
    uint64_t offset; /* of the message */
    uint32_t metadata_length, prefix;
    uint64_t body, body_length;
} st_arrow_message_place;

typedef struct st_arrow_batch_place {
    st_arrow_message_place at;
    uint64_t first_row, rows;
    bool compressed;
} st_arrow_batch_place;

typedef struct st_arrow_dictionary_place {
    st_arrow_message_place at;
    uint64_t id;
    bool is_delta;
} st_arrow_dictionary_place;

typedef struct st_arrow_input {
    st_arrow_source source;
    bool is_file, is_v4;
    st_arrow_schema schema;
    st_arrow_leaf *leaves;
    uint32_t leaf_count;
    uint32_t node_count, buffer_count, view_count; /* of a batch; without the buffers that views lie in */
    st_arrow_batch_place *batches;
    uint32_t batch_count;
    uint64_t rows;
    st_arrow_dictionary_place *dictionaries; /* in the order in which they apply */
    uint32_t dictionary_count;
    bool damaged; /* behind the last batch: what is wrong, and where */
    uint64_t damaged_at;
    sluice_error damage;
} st_arrow_input;

sluice_status st_arrow_input_open(const st_arrow_source *source, st_arrow_input **ret_input, sluice_error *err);
void st_arrow_input_close(st_arrow_input *input); /* NULL allowed */

/* ---- rows ---- */

typedef struct st_arrow_reader st_arrow_reader;
/* Reads these leaves, whose fields are flat. The input must outlive it. */
sluice_status st_arrow_reader_new(const st_arrow_input *input, const uint32_t *leaves, uint32_t count,
                                  st_arrow_reader **ret_reader, sluice_error *err);
void st_arrow_reader_free(st_arrow_reader *reader); /* NULL allowed */
/* At least one row of the batch from row `first` on, at most `wanted`: one checked array per leaf, valid until the next
 * call. Fewer come where texts are long, and where damage follows; when row `first` itself is damaged, the call fails
 * and *ret_leaf says in which leaf. */
sluice_status st_arrow_read(st_arrow_reader *reader, uint32_t batch, uint64_t first, uint64_t wanted,
                            const st_arrow_array **ret_arrays, uint64_t *ret_count, uint32_t *ret_leaf,
                            sluice_error *err);

/* ---- inside: shared by the files behind this header ---- */

/* Decodes the message at a place that opening has checked. */
sluice_status st_arrow_message_at(const st_arrow_input *input, const st_arrow_message_place *at,
                                  st_arrow_message *ret_message, sluice_error *err);
/* The nodes, buffers and columns of views that a field has in a batch; false when its kind is unknown. */
typedef struct st_arrow_extent {
    uint32_t nodes, buffers, views;
} st_arrow_extent;
bool st_arrow_field_extent(const st_arrow_field *field, bool is_v4, st_arrow_extent *extent);
/* The numbers of a batch are those of such columns and lie in its body. CORRUPT else. */
sluice_status st_arrow_check_extent(const st_arrow_batch *batch, uint64_t body_length, const st_arrow_extent *extent,
                                    sluice_error *err);

#endif
