/*
 * Inside of folds: how a generation that is being built takes one.
 */
#ifndef STORE_STATE_FOLD_H
#define STORE_STATE_FOLD_H

#include "store/state/list.h"

/* Applies the published edits at these places to a list (materialise.c). */
sluice_status st_list_apply_places(st_list *list, const st_edit_place *places, uint32_t count, sluice_error *err);
/* The pages and edits that it folded still lead the entry. */
bool st_fold_applies(const st_fold *fold, const st_table_entry *entry);
sluice_status st_fold_apply(const st_fold *fold, st_table_entry *entry, sluice_error *err);

#endif
