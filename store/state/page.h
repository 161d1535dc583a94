/*
 * State pages: table entries as canonical JSON ("sluice-state/1"), attached to records. A page is at most
 * ST_STATE_PAGE_MAX bytes, unless one entry alone is more.
 */
#ifndef STORE_STATE_PAGE_H
#define STORE_STATE_PAGE_H

#include "store/state/manifest.h"

#define ST_STATE_PAGE_MAX 16384u

/* Encodes entries [0, *ret_taken) of `count`: as many as fit, at least one. */
sluice_status st_state_page_encode(const st_table_entry *entries, uint32_t count, pf_buffer *buffer,
                                   uint32_t *ret_taken, sluice_error *err);
/* Appends the entries of a page to *entries (realloc'd). Ids must ascend, also across pages. */
sluice_status st_state_page_decode(const void *bytes, size_t length, st_table_entry **entries, uint32_t *count,
                                   sluice_error *err);
void st_table_entry_free(st_table_entry *entry); /* its insides */
sluice_status st_table_entry_copy(const st_table_entry *from, st_table_entry *ret_to, sluice_error *err);
/* References to pages of folded lists: in entries, and in list pages above level 0. */
void st_list_refs_write(st_json *json, const char *name, const st_list_ref *refs, uint32_t count);
sluice_status st_list_refs_read(const cJSON *object, const char *name, st_list_ref **ret_refs, uint32_t *ret_count,
                                sluice_error *err);
bool st_list_refs_equal(const st_list_ref *a, const st_list_ref *b, uint32_t count);
bool st_edit_places_equal(const st_edit_place *a, const st_edit_place *b, uint32_t count);

#define ST_LIST_LEVEL_MAX 12u /* far above what any list reaches: bounds the depth of walks over hostile bytes */

#endif
