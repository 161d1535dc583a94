/*
 * Fragments: immutable Arrow IPC files (.arrow) that hold the rows of one table.
 *
 * File: "ARROW1", schema message, record batches (64-byte aligned buffers, optionally zstd per buffer), footer. Fields
 * carry metadata sluice.property=<decimal id>; the schema carries sluice.format=fragment/1, sluice.table=<id>. The
 * footer's custom metadata carries XXH3-128 of every buffer of every batch (key sluice.checksums: hex, in file order),
 * the same of every message (sluice.messages), and the rows of each batch (sluice.rows). The *footer digest* is the
 * SHA-256 of the footer bytes and stands in the table's edit: it binds everything. pyarrow, polars, DuckDB read the
 * file unchanged.
 *
 * Reading: mapped; a buffer is checked against its XXH3-128 when it is first touched, once per process and open handle;
 * damage is CORRUPT and names the file by its relative path (made of ids only).
 */
#ifndef STORE_FRAGMENT_FRAGMENT_H
#define STORE_FRAGMENT_FRAGMENT_H

#include "platform/buffer.h"
#include "platform/digest.h"
#include "platform/volume.h"
#include "store/arrow/column.h"

/* What an edit records about a fragment. */
typedef struct st_fragment_info {
    char name[64]; /* file name below tables/<id>/fragments/: "<attempt id>-<n>.arrow" */
    uint64_t rows;
    uint64_t bytes;    /* of the file */
    pf_sha256 footer;  /* digest of the footer */
    bool explicit_ids; /* has columns _row_id and _commit (else ids are bound: first id + position) */
    bool attached;     /* no file: it is an attachment of the record that publishes it */
    uint8_t *content;  /* attached: its bytes, the st_edit_add's that this stands in; NULL while not at hand */
} st_fragment_info;

typedef struct st_fragment_writer st_fragment_writer;

/* Starts tables/<table>/fragments/<name> (created exclusively; the folder exists). `specs` are copied. `volume` NULL:
 * one in memory, to be attached; st_fragment_finish then gives its bytes to info.content (malloc'd). */
sluice_status st_fragment_create(pf_volume *volume, uint64_t table, const char *name, const st_column_spec *specs,
                                 uint32_t count, bool compress, st_fragment_writer **ret_writer, sluice_error *err);
/* The same, plain, at a path of the caller's own: for a copy that no edit names. */
sluice_status st_fragment_create_at(pf_volume *volume, const char *path, uint64_t table, const st_column_spec *specs,
                                    uint32_t count, st_fragment_writer **ret_writer, sluice_error *err);
/* Writes one record batch; columns in the order of specs, each of so many rows (0: nothing is written). A type without
 * properties has rows without a column. */
sluice_status st_fragment_write(st_fragment_writer *writer, const st_column *columns, uint64_t rows, sluice_error *err);
/* What its type was when it was written (st_schema_encode_type): for whoever finds it alone. Longer ones are left out.
 */
#define ST_FRAGMENT_TYPE_MAX 65536u
sluice_status st_fragment_describe(st_fragment_writer *writer, const void *type, size_t length, sluice_error *err);
/* Writes the footer and syncs the file (not the folder); the writer is freed in any case, also in memory. */
sluice_status st_fragment_finish(st_fragment_writer *writer, st_fragment_info *ret_info, sluice_error *err);
void st_fragment_abandon(st_fragment_writer *writer); /* closes; the file stays as litter. NULL allowed */

/* What a file says of itself, for when no edit does (salvage): enough to open it, and its type as it was described,
 * appended to `type` (nothing when it was not). CORRUPT when it is no fragment of this table. */
sluice_status st_fragment_look(pf_volume *volume, uint64_t table, const char *name, st_fragment_info *ret_info,
                               pf_buffer *type, sluice_error *err);

typedef struct st_fragment st_fragment;

/* Opens by the footer: checks its digest and what it says (CORRUPT on any mismatch, NOT_FOUND never: a missing file is
 * CORRUPT). */
sluice_status st_fragment_open(pf_volume *volume, uint64_t table, const st_fragment_info *info,
                               st_fragment **ret_fragment, sluice_error *err);
/* The same for one that st_fragment_create_at made. */
sluice_status st_fragment_open_at(pf_volume *volume, const char *path, uint64_t table, const st_fragment_info *info,
                                  st_fragment **ret_fragment, sluice_error *err);
void st_fragment_close(st_fragment *fragment); /* NULL allowed */
/* One more close is needed to end it. Any thread may do that last one, whatever became of the volume: for columns that
 * are handed out as they lie in it. */
void st_fragment_hold(st_fragment *fragment);
/* About how much memory it takes while it is open, beside what it unpacked. */
uint64_t st_fragment_memory(const st_fragment *fragment);
uint32_t st_fragment_batches(const st_fragment *fragment);
uint64_t st_fragment_batch_rows(const st_fragment *fragment, uint32_t batch);
uint32_t st_fragment_columns(const st_fragment *fragment);
const st_column_spec *st_fragment_spec(const st_fragment *fragment, uint32_t column);
/* Is what it holds compressed? Asks its first batch; one without batches is not. */
sluice_status st_fragment_is_compressed(st_fragment *fragment, bool *ret_compressed, sluice_error *err);
/* Column index by stable property id, or by name for the ones of ours; -1 when the fragment does not have it. */
int st_fragment_find_property(const st_fragment *fragment, uint64_t property);
int st_fragment_find_name(const st_fragment *fragment, const char *name);
/* The column of one batch; message and buffers checked on first touch; valid until st_fragment_close. */
sluice_status st_fragment_column(st_fragment *fragment, uint32_t batch, uint32_t column, st_column *ret_column,
                                 sluice_error *err);
/* Which batch and row within it a position is. Positions come from runs and deletions, so they may be anything: one
 * beyond the last row gives a batch for which st_fragment_column answers CORRUPT. */
void st_fragment_locate(const st_fragment *fragment, uint64_t position, uint32_t *ret_batch, uint64_t *ret_row);
/* Checks every byte (verify). */
sluice_status st_fragment_verify(st_fragment *fragment, sluice_error *err);

#endif
