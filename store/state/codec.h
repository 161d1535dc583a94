/*
 * Shorthand for the control documents of store/state: named fields, written and read. Readers fail with CORRUPT.
 */
#ifndef STORE_STATE_CODEC_H
#define STORE_STATE_CODEC_H

#include "store/format/json.h"
#include "store/state/state.h"

static inline void st_put_text(st_json *json, const char *name, const char *text)
{
    st_json_name(json, name);
    st_json_text(json, text);
}
static inline void st_put_u64(st_json *json, const char *name, uint64_t value)
{
    st_json_name(json, name);
    st_json_u64(json, value);
}
/* A number below 2^53 by its nature: an index, a count, a length. */
static inline void st_put_number(st_json *json, const char *name, uint64_t value)
{
    st_json_name(json, name);
    st_json_unsigned(json, value);
}
static inline void st_put_bool(st_json *json, const char *name, bool value)
{
    st_json_name(json, name);
    st_json_bool(json, value);
}
static inline void st_put_sha256(st_json *json, const char *name, const pf_sha256 *digest)
{
    st_json_name(json, name);
    st_json_sha256(json, digest);
}
/* null for the nil id. */
void st_put_id(st_json *json, const char *name, const pf_id *id);
/* Microseconds, which may be before 1970: a decimal string. */
void st_put_time(st_json *json, const char *name, int64_t us);

sluice_status st_take_small(const cJSON *object, const char *name, uint32_t *ret_value, sluice_error *err);
sluice_status st_take_time(const cJSON *object, const char *name, int64_t *ret_us, sluice_error *err);
/* null gives the nil id. */
sluice_status st_take_id(const cJSON *object, const char *name, pf_id *ret_id, sluice_error *err);
/* The field must be there; *ret_item NULL when it is null. */
sluice_status st_take_nullable(const cJSON *object, const char *name, const cJSON **ret_item, sluice_error *err);
/* "rejected" of a commit: there when it is not 0. */
sluice_status st_take_rejected(const cJSON *object, uint64_t *ret_rejected, sluice_error *err);
/* A text of at most room - 1 bytes. */
sluice_status st_take_text(const cJSON *object, const char *name, char *ret_text, size_t room, sluice_error *err);
/* The name of a file below tables/<id>/. */
sluice_status st_take_file(const cJSON *object, const char *name, char *ret_file, size_t room, sluice_error *err);
/* A list, and zeroed room for its items (malloc'd, at least one). */
sluice_status st_take_list(const cJSON *object, const char *name, size_t item_size, const cJSON **ret_list,
                           void **ret_items, sluice_error *err);
/* "word" is the index into `words` (`count` of them). */
sluice_status st_take_word(const cJSON *object, const char *name, const char *const *words, uint32_t count,
                           uint32_t *ret_index, sluice_error *err);

/* Decodes a document: parses, calls `read`, encodes again with `write` and compares. *value is the caller's, to free on
 * failure. */
typedef sluice_status st_read_fn(const cJSON *document, void *value, sluice_error *err);
typedef sluice_status st_write_fn(const void *value, pf_buffer *buffer, sluice_error *err);
sluice_status st_document_decode(const void *bytes, size_t length, st_read_fn *read, st_write_fn *write, void *value,
                                 sluice_error *err);

/* ---- parts of documents that several of them hold ---- */

void st_dead_write(st_json *json, const char *name, const st_dead_ref *dead);
sluice_status st_dead_read(const cJSON *object, const char *name, st_dead_ref *ret_dead, sluice_error *err);
void st_fragment_info_write(st_json *json, const st_fragment_info *info); /* the fields, inside an open object */
sluice_status st_fragment_info_read(const cJSON *object, st_fragment_info *ret_info, sluice_error *err);
void st_run_ref_write(st_json *json, const st_run_ref *run); /* an object */
sluice_status st_run_ref_read(const cJSON *object, st_run_ref *ret_run, sluice_error *err);
void st_runs_write(st_json *json, const st_run_ref *runs, uint32_t count); /* "runs" */
sluice_status st_runs_read(const cJSON *object, st_run_ref **ret_runs, uint32_t *ret_count, sluice_error *err);
void st_edit_write(st_json *json, const st_edit *edit); /* an object */
sluice_status st_edit_read(const cJSON *object, st_edit *ret_edit, sluice_error *err);
void st_index_write(st_json *json, const st_index_ref *index); /* "index"; nothing when there is none */
sluice_status st_index_read(const cJSON *object, st_index_ref *ret_index, sluice_error *err);
/* A copy of what an add says, runs and all. */
sluice_status st_add_copy(const st_edit_add *from, st_edit_add *ret_to, sluice_error *err);
void st_add_free(st_edit_add *add);

/* Hashes as one string of 16 hex digits each, ascending. */
void st_hashes_write(st_json *json, const char *name, const uint64_t *hashes, uint64_t count);
sluice_status st_hashes_read(const cJSON *object, const char *name, uint64_t **ret_hashes, uint64_t *ret_count,
                             sluice_error *err);

#endif
