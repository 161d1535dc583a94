/*
 * Rows as JSON: an object of a row's columns, and what a changed row is known by.
 */
#ifndef STORE_READ_ROW_JSON_H
#define STORE_READ_ROW_JSON_H

#include "store/format/json.h"
#include "store/read/diff.h"

typedef struct st_row_json { /* what is read into, of one type at one snapshot */
    const st_type_def *type;
    st_column_spec *specs;
    st_column_builder **builders;
    uint32_t count;
    uint64_t row_id;
} st_row_json;

/* Freed by st_row_json_free, also when this fails. */
sluice_status st_row_json_begin(const st_schema *schema, const st_type_def *type, st_row_json *ret_row,
                                sluice_error *err);
void st_row_json_free(st_row_json *row); /* safe on a zeroed one */
/* Reads the row at a place, instead of the one before it. */
sluice_status st_row_json_read(st_row_json *row, st_snapshot *snapshot, const st_row_place *place, sluice_error *err);
/* The value of a column as a member, under `name`. */
sluice_status st_row_json_value(const st_row_json *row, uint32_t column, const char *name, st_json *json,
                                sluice_error *err);
/* The whole row as an object; with _row_id first where `row_id`. */
sluice_status st_row_json_put(const st_row_json *row, bool row_id, st_json *json, sluice_error *err);

/* The members that say which row changed: "key"; of edges "from", "to" and their own key; "_row_id" where that is what
 * it is known by. */
sluice_status st_row_change_name(const st_type_def *type, const st_row_change *change, st_json *json,
                                 sluice_error *err);

/* ---- changed rows ---- */

typedef struct st_change_text { /* of one table between two snapshots; all texts end with a zero byte */
    const st_type_def *type;    /* as the newer has it, else the older; NULL: neither has */
    st_row_json older, newer;
    pf_buffer name;          /* members: st_row_change_name */
    pf_buffer before, after; /* objects; empty: none. Of an update the properties that changed */
} st_change_text;

/* For another table, too. Freed by st_change_text_free, also when this fails. */
sluice_status st_change_text_begin(st_change_text *text, st_snapshot *from, st_snapshot *to, uint64_t table,
                                   sluice_error *err);
/* A change that st_diff_table tells of these snapshots and this table. */
sluice_status st_change_text_put(st_change_text *text, st_snapshot *from, st_snapshot *to, const st_row_change *change,
                                 sluice_error *err);
void st_change_text_clear(st_change_text *text); /* its texts */
void st_change_text_free(st_change_text *text);  /* safe on a zeroed one */

#endif
