/*
 * Arrow's metadata (format version V5): schemas, record batches and footers as plain structs, and their Flatbuffers.
 *
 * The structs describe any Arrow schema, not only what Sluice writes, so that files and streams of others can be read:
 * what a reader cannot use it refuses by the field's kind. Decoding is safe on hostile bytes; its depth, the number of
 * fields and the memory it takes are bounded. It fails with CORRUPT and a reason that names no file: the caller says
 * which file it was, or that it was somebody's input.
 */
#ifndef STORE_ARROW_METADATA_H
#define STORE_ARROW_METADATA_H

#include "platform/buffer.h"
#include "store/arrow/column.h"

#define ST_ARROW_DEPTH_MAX  16u
#define ST_ARROW_FIELDS_MAX 65536u

/* The members of the Flatbuffers union Type, with its numbers. */
typedef enum st_arrow_kind {
    ST_ARROW_NULL = 1,
    ST_ARROW_INT = 2,
    ST_ARROW_FLOATING_POINT = 3,
    ST_ARROW_BINARY = 4,
    ST_ARROW_UTF8 = 5,
    ST_ARROW_BOOL = 6,
    ST_ARROW_DECIMAL = 7,
    ST_ARROW_DATE = 8,
    ST_ARROW_TIME = 9,
    ST_ARROW_TIMESTAMP = 10,
    ST_ARROW_INTERVAL = 11,
    ST_ARROW_LIST = 12,
    ST_ARROW_STRUCT = 13,
    ST_ARROW_UNION = 14,
    ST_ARROW_FIXED_SIZE_BINARY = 15,
    ST_ARROW_FIXED_SIZE_LIST = 16,
    ST_ARROW_MAP = 17,
    ST_ARROW_DURATION = 18,
    ST_ARROW_LARGE_BINARY = 19,
    ST_ARROW_LARGE_UTF8 = 20,
    ST_ARROW_LARGE_LIST = 21,
    ST_ARROW_RUN_END_ENCODED = 22,
    ST_ARROW_BINARY_VIEW = 23,
    ST_ARROW_UTF8_VIEW = 24,
    ST_ARROW_LIST_VIEW = 25,
    ST_ARROW_LARGE_LIST_VIEW = 26
} st_arrow_kind;

enum { ST_ARROW_HALF, ST_ARROW_SINGLE, ST_ARROW_DOUBLE };                                  /* unit of FloatingPoint */
enum { ST_ARROW_DAY, ST_ARROW_MILLISECONDS_OF_DATE };                                      /* unit of Date */
enum { ST_ARROW_SECOND, ST_ARROW_MILLISECOND, ST_ARROW_MICROSECOND, ST_ARROW_NANOSECOND }; /* unit of Timestamp */

/* One entry of custom metadata. The texts end with a zero byte and may contain others. */
typedef struct st_arrow_pair {
    char *key, *value;
    uint32_t key_length, value_length;
} st_arrow_pair;

typedef struct st_arrow_pairs {
    st_arrow_pair *items;
    uint32_t count;
} st_arrow_pairs;

typedef struct st_arrow_field {
    char *name;
    bool nullable;
    uint8_t kind;        /* an st_arrow_kind, or another number of the union */
    uint32_t width;      /* Int, Decimal: bits; FixedSizeBinary: bytes */
    bool is_signed;      /* Int */
    uint16_t unit;       /* FloatingPoint, Date, Timestamp; Union: 1 is dense */
    int32_t scale;       /* Decimal: digits behind the point */
    char *timezone;      /* Timestamp; NULL: none */
    bool has_dictionary; /* the values are indexes into dictionary `dictionary` */
    uint64_t dictionary;
    uint32_t index_width;
    bool index_signed;
    struct st_arrow_field *children;
    uint32_t child_count;
    st_arrow_pairs metadata;
} st_arrow_field;

typedef struct st_arrow_schema {
    st_arrow_field *fields;
    uint32_t field_count;
    st_arrow_pairs metadata;
} st_arrow_schema;

typedef struct st_arrow_node {
    uint64_t length, nulls;
} st_arrow_node;

typedef struct st_arrow_buffer {
    uint64_t offset, length; /* within the body */
} st_arrow_buffer;

typedef enum st_arrow_codec { ST_ARROW_PLAIN, ST_ARROW_LZ4, ST_ARROW_ZSTD } st_arrow_codec;

typedef struct st_arrow_batch {
    uint64_t length;
    st_arrow_node *nodes; /* one per field, parents before children */
    uint32_t node_count;
    st_arrow_buffer *buffers;
    uint32_t buffer_count;
    uint64_t *variadic; /* per column of views, depth first: how many buffers its texts lie in */
    uint32_t variadic_count;
    st_arrow_codec codec;
} st_arrow_batch;

typedef struct st_arrow_block { /* where a message of a file is; as in the footer */
    uint64_t offset;
    uint32_t metadata_length; /* with prefix and padding */
    uint64_t body_length;
} st_arrow_block;

typedef struct st_arrow_footer {
    bool is_v4;
    st_arrow_schema schema;
    st_arrow_block *batches;
    uint32_t batch_count;
    st_arrow_block *dictionaries;
    uint32_t dictionary_count;
    st_arrow_pairs metadata;
} st_arrow_footer;

/* The header of a message, the Flatbuffers union MessageHeader with its numbers. */
typedef enum st_arrow_header {
    ST_ARROW_SCHEMA = 1,
    ST_ARROW_DICTIONARY = 2,
    ST_ARROW_RECORD_BATCH = 3
} st_arrow_header;

typedef struct st_arrow_message {
    uint8_t header; /* an st_arrow_header, or another number of the union */
    bool is_v4;     /* of format version V4: unions and run ends have a validity buffer */
    uint64_t body_length;
    st_arrow_schema schema; /* SCHEMA */
    st_arrow_batch batch;   /* RECORD_BATCH, DICTIONARY */
    uint64_t dictionary;    /* DICTIONARY: its id */
    bool is_delta;
} st_arrow_message;

/* Encoding: each appends one Flatbuffer (a multiple of 8 bytes) to `buffer`. */
sluice_status st_arrow_encode_schema(const st_arrow_schema *schema, pf_buffer *buffer, sluice_error *err);
sluice_status st_arrow_encode_batch(const st_arrow_batch *batch, uint64_t body_length, pf_buffer *buffer,
                                    sluice_error *err);
sluice_status st_arrow_encode_footer(const st_arrow_footer *footer, pf_buffer *buffer, sluice_error *err);

/* Decoding. What is filled is to be freed by the functions below, after SLUICE_OK only. */
sluice_status st_arrow_decode_message(const void *bytes, size_t length, st_arrow_message *ret_message,
                                      sluice_error *err);
sluice_status st_arrow_decode_footer(const void *bytes, size_t length, st_arrow_footer *ret_footer, sluice_error *err);

/* All safe on zeroed structs. */
void st_arrow_schema_free(st_arrow_schema *schema);
void st_arrow_batch_free(st_arrow_batch *batch);
void st_arrow_message_free(st_arrow_message *message);
void st_arrow_footer_free(st_arrow_footer *footer);
void st_arrow_pairs_free(st_arrow_pairs *pairs);

sluice_status st_arrow_pairs_add(st_arrow_pairs *pairs, const char *key, const char *value, size_t value_length,
                                 sluice_error *err);
/* The value of the first pair with this key; NULL when there is none. */
const char *st_arrow_pairs_find(const st_arrow_pairs *pairs, const char *key, uint32_t *ret_length);

/* The fields that Sluice writes for columns, and back. A kind that no column type stands for is UNSUPPORTED_FORMAT with
 * the field's name in the terminal text. The property id is metadata "sluice.property". */
sluice_status st_arrow_schema_from_specs(const st_column_spec *specs, uint32_t count, st_arrow_schema *ret_schema,
                                         sluice_error *err);
sluice_status st_arrow_specs_from_schema(const st_arrow_schema *schema, st_column_spec **ret_specs, uint32_t *ret_count,
                                         sluice_error *err);

#endif
