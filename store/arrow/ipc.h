/*
 * Arrow IPC: messages with their bodies, in the file and in the stream format.
 *
 * What is written: format V5, continuation markers, bodies and all buffers in them aligned to 64 bytes (in the file as
 * well), no validity buffer for a column without nulls, zeros in all padding and behind the last bit, buffers
 * optionally compressed one by one with zstd. Equal columns give equal bytes.
 */
#ifndef STORE_ARROW_IPC_H
#define STORE_ARROW_IPC_H

#include "platform/buffer.h"
#include "store/arrow/codec.h"
#include "store/arrow/column.h"
#include "store/arrow/metadata.h"

#define ST_IPC_MAGIC        "ARROW1"
#define ST_IPC_MAGIC_LENGTH 6u
#define ST_IPC_FILE_START   8u /* the magic, padded: where the schema message of a file begins */
#define ST_IPC_PREFIX       8u /* continuation marker and length of the metadata */
#define ST_IPC_ALIGNMENT    64u

/* ---- writing ---- */

typedef enum st_ipc_part { ST_IPC_MESSAGE, ST_IPC_BUFFER, ST_IPC_FOOTER } st_ipc_part;

typedef struct st_ipc_options {
    bool file;     /* with magic and footer; else a stream */
    bool compress; /* zstd */
    void *context;
    sluice_status (*put)(void *context, const void *bytes, size_t length, sluice_error *err);
    /* Sees each message (prefix to padding), each buffer as it is stored (also empty ones) and the footer. NULL
     * allowed. */
    sluice_status (*see)(void *context, st_ipc_part part, const void *bytes, size_t length, sluice_error *err);
} st_ipc_options;

typedef struct st_ipc_writer st_ipc_writer;
/* Puts the magic (file) and the schema. Specs are copied. `metadata` is the schema's own, NULL for none. */
sluice_status st_ipc_writer_new(const st_ipc_options *options, const st_column_spec *specs, uint32_t count,
                                const st_arrow_pairs *metadata, st_ipc_writer **ret_writer, sluice_error *err);
/* Puts one record batch: columns in the order of the specs, each of `rows` values of its type (INTERNAL
 * otherwise). There may be rows without any column. */
sluice_status st_ipc_write(st_ipc_writer *writer, const st_column *columns, uint64_t rows, sluice_error *err);
/* Puts the end of the stream and, for a file, the footer with this custom metadata (NULL for none). */
sluice_status st_ipc_finish(st_ipc_writer *writer, const st_arrow_pairs *metadata, sluice_error *err);
void st_ipc_writer_free(st_ipc_writer *writer); /* NULL allowed */

/* ---- reading ---- */

/* The prefix of a message: how long its metadata is (0: end of the stream). CORRUPT when it is none. */
sluice_status st_ipc_parse_prefix(const uint8_t bytes[ST_IPC_PREFIX], uint32_t *ret_length, sluice_error *err);

/* Memory that columns needed beside their source (decompressed buffers, member structs); freed in one go. */
typedef struct st_ipc_owned {
    void **blocks;
    uint32_t count, capacity;
    st_codec codec;
} st_ipc_owned;
void st_ipc_owned_free(st_ipc_owned *owned); /* safe on a zeroed one */

/* A record batch and where its body lies. */
typedef struct st_ipc_body {
    const uint8_t *bytes; /* aligned to 8 */
    uint64_t length;
    const st_arrow_batch *batch;
    void *context;
    /* Called before the bytes of buffer `i` are used: the place for checksums. NULL allowed. */
    sluice_status (*touch)(void *context, uint32_t i, const uint8_t *bytes, uint64_t length, sluice_error *err);
} st_ipc_body;

/* How many nodes and buffers the columns of a spec have. */
void st_ipc_count(const st_column_spec *spec, uint32_t *ret_nodes, uint32_t *ret_buffers);
/* Every node and buffer of the batch is possible for these columns and lies in the body; CORRUPT else. */
sluice_status st_ipc_check_batch(const st_arrow_batch *batch, uint64_t body_length, const st_column_spec *specs,
                                 uint32_t count, sluice_error *err);
/* The column whose first node and buffer these are, of a batch that passed st_ipc_check_batch; borrowed from the body
 * where possible. All that a reader relies on is checked: lengths, null count, offsets. CORRUPT with a reason else. */
sluice_status st_ipc_column(const st_ipc_body *body, const st_column_spec *spec, uint32_t first_node,
                            uint32_t first_buffer, st_ipc_owned *owned, st_column *ret_column, sluice_error *err);

#endif
