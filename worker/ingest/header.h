/*
 * What the columns of an input are: from its header (or --columns) to the columns of the type.
 *
 * Plain names are properties; on edges also `from` and `to`, their usual synonyms (src/dst, source/target) where the
 * type has no property of that name, and `from.A` for a member of a key. Headers in the style of neo4j-admin are
 * understood: `name:type`, `x:ID(Space)`, `:START_ID(Space)`, `:END_ID(Space)`, `:LABEL`, `:TYPE`, `:IGNORE`; the type
 * behind the colon must be a known word, and the schema decides. A column without a name is ignored as long as it is
 * empty. No column is taken twice, none silently dropped: a name that the type does not know is a fault unless
 * --ignore-unknown.
 */
#ifndef WORKER_INGEST_HEADER_H
#define WORKER_INGEST_HEADER_H

#include "store/schema/schema.h"
#include "worker/ingest/csv.h"
#include "worker/ingest/fault.h"

typedef enum wk_target_kind {
    WK_TARGET_IGNORE,
    WK_TARGET_COLUMN,  /* a column of the type */
    WK_TARGET_MEMBER,  /* a member of `from` or `to` */
    WK_TARGET_LABEL,   /* must hold the type's name */
    WK_TARGET_NAMELESS /* must be empty */
} wk_target_kind;

/* What a column names, by a load-local name (worker/ingest/names.h); beside what it is. */
typedef enum wk_naming { WK_NAMES_NOTHING, WK_NAMES_ROW, WK_NAMES_FROM, WK_NAMES_TO } wk_naming;

typedef struct wk_target {
    wk_target_kind kind;
    wk_naming names;
    uint32_t column; /* in the type's layout (st_type_columns) */
    uint32_t member;
    char *name; /* as the header has it, for messages (owned) */
} wk_target;

typedef struct wk_mapping {
    wk_target *targets; /* one per column of the input */
    uint32_t field_count;
    bool *present; /* per column of the type: an input column fills it */
} wk_mapping;

/* A name of a header. */
typedef struct wk_name {
    const char *text;
    size_t length;
} wk_name;

/* What a mapping may do without. */
#define WK_MAP_UNKNOWN    1u /* columns that the type does not know are left out */
#define WK_MAP_NAMED_FROM 4u /* nothing: the end is a load-local name */
#define WK_MAP_NAMED_TO   8u
#define WK_MAP_PARTIAL    2u /* columns that are no part of the key may be missing, whatever the type says */
/* A fault of the header is no error of the call: SLUICE_OK with `fault` set (column, code, text), and no mapping. */
sluice_status wk_mapping_make(const st_schema *schema, const st_type_def *type, const wk_name *names, uint32_t count,
                              unsigned allow, wk_mapping *ret_mapping, wk_fault *ret_fault, sluice_error *err);
void wk_mapping_free(wk_mapping *mapping); /* safe on a zeroed one */

/* Reads the header of a text input: its first record. A faulty one as above; a file without a record is a fault. The
 * caller frees *ret_names, whose texts lie in `storage`. */
sluice_status wk_header_read(const wk_lexer *lexer, const wk_source *source, uint64_t offset, pf_buffer *storage,
                             wk_name **ret_names, uint32_t *ret_count, uint64_t *ret_line, wk_fault *ret_fault,
                             sluice_error *err);
/* The names of --columns "a,b,c", or the type's own order when `columns` is NULL; likewise. */
sluice_status wk_columns_given(const st_type_def *type, const char *columns, pf_buffer *storage, wk_name **ret_names,
                               uint32_t *ret_count, sluice_error *err);

#endif
