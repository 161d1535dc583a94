/*
 * Inside of change sets: their encoding depends on the edits of the same commit, since large sets say "all runs of this
 * use in edit k" instead of naming each run again.
 */
#ifndef STORE_STATE_CHANGE_H
#define STORE_STATE_CHANGE_H

#include "store/state/codec.h"

/* The edits of one commit, as they are asked for; NULL at failure is not allowed: a status says so. */
typedef struct st_edit_source {
    void *context;
    uint32_t count;
    sluice_status (*get)(void *context, uint32_t at, const st_edit **ret_edit, sluice_error *err);
} st_edit_source;

/* {"format":"sluice-changes/1",...}: an object. */
sluice_status st_changes_write(st_json *json, const st_changes *changes, const st_edit_source *edits,
                               sluice_error *err);
sluice_status st_changes_read(const cJSON *object, const st_edit_source *edits, st_changes *ret_changes,
                              sluice_error *err);
sluice_status st_changes_encode(const st_changes *changes, const st_edit_source *edits, pf_buffer *buffer,
                                sluice_error *err);
/* Reads, encodes again, compares. */
sluice_status st_changes_decode(const void *bytes, size_t length, const st_edit_source *edits, st_changes *ret_changes,
                                sluice_error *err);

#endif
