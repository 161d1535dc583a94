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

#endif
