/*
 * Inside of folds: how a generation that is being built takes one.
 */
#ifndef STORE_STATE_FOLD_H
#define STORE_STATE_FOLD_H

#include "store/state/list.h"

/* Applies the published edits at these places to a list (materialise.c). */
sluice_status st_list_apply_places(st_list *list, const st_edit_place *places, uint32_t count, sluice_error *err);
/* Moves rows of attached fragments, and with `merge` those of small ones at the end, into a fragment of their own that
 * takes their place at the end of the list (fold_rows.c). Fills made, bytes and merged of the fold. */
sluice_status st_fold_rows(st_list *list, const st_schema *schema, bool merge, const char *stem, st_fold *fold,
                           sluice_error *err);
/* The pages and edits that it folded still lead the entry. When it merged, no edit behind them may take fragments out,
 * since these may be the merged ones: whoever applies it sees to that. */
bool st_fold_applies(const st_fold *fold, const st_table_entry *entry);
sluice_status st_fold_apply(const st_fold *fold, st_table_entry *entry, sluice_error *err);

#endif
