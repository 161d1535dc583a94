/*
 * One line of JSON Lines: an object, as fields with names.
 *
 * Fields are slices of the line, in its order: strings without their quotes, escapes not yet resolved
 * (WK_FIELD_REWRITE); numbers and words as written; lists and objects from their first to their last byte, well formed.
 * The members of an object that stands for an end of an edge are fields of their own, called from.A and to.A. Names are
 * decoded.
 */
#ifndef WORKER_INGEST_JSONL_H
#define WORKER_INGEST_JSONL_H

#include "store/schema/schema.h"
#include "worker/ingest/record.h"

typedef struct wk_json_line {
    wk_field *fields;
    uint32_t count, room;
    pf_buffer names; /* of each field: u32 length, then the text */
} wk_json_line;

void wk_json_line_free(wk_json_line *line); /* safe on a zeroed one */
/* What is wrong with the line is a fault; then there are no fields. */
sluice_status wk_json_line_read(wk_json_line *line, const st_type_def *type, const char *text, size_t length,
                                wk_fault *ret_fault, sluice_error *err);

#endif
