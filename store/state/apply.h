/*
 * What an edit does to a table's entry: the one rule behind building a generation and opening the state between two
 * commits of a group.
 */
#ifndef STORE_STATE_APPLY_H
#define STORE_STATE_APPLY_H

#include "store/state/state.h"

/* A growing array of entries, ascending by id. */
typedef struct st_entries {
    st_table_entry *items;
    uint32_t count;
} st_entries;
void st_entries_free(st_entries *entries);
/* Index of the table, or -1. */
int64_t st_entries_find(const st_entries *entries, uint64_t table);
/* Applies the edit that stands at `place`; makes the entry of a type of the schema that has none yet. *ret_changed is
 * the index of the entry, *ret_made whether it is new. CORRUPT when rows or bytes would fall below nothing, or nobody
 * knows the table. */
sluice_status st_entries_apply(st_entries *entries, const st_schema *schema, const st_edit *edit,
                               const st_edit_place *place, uint32_t *ret_changed, bool *ret_made, sluice_error *err);
/* Entries of all types of the schema, empty. */
sluice_status st_entries_make(st_entries *entries, const st_schema *schema, sluice_error *err);
/* Under another schema: entries of added types are made, of dropped ones tombstoned, of renamed ones renamed, of those
 * that a revert brings back live again. */
sluice_status st_entries_adopt(st_entries *entries, const st_schema *schema, sluice_error *err);
/* Rows and bytes that an edit adds (rows left out by it not counted). False on overflow. */
bool st_edit_added(const st_edit *edit, uint64_t *ret_rows, uint64_t *ret_bytes);

#endif
