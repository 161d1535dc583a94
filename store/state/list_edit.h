/*
 * Inside of lists: what list.c, list_substitute.c and list_write.c share.
 */
#ifndef STORE_STATE_LIST_EDIT_H
#define STORE_STATE_LIST_EDIT_H

#include "store/state/list.h"

sluice_status st_list_node_load(const st_list *list, st_list_node *node, sluice_error *err);
/* Appends behind everything; takes the item over. */
sluice_status st_list_append_item(st_list *list, st_item *item, sluice_error *err);
/* Both take the new one over, also when they fail. */
sluice_status st_list_push_item(st_list_node *leaf, st_item *item, sluice_error *err);
sluice_status st_list_push_child(st_list_node *node, st_list_node *child, sluice_error *err);
sluice_status st_item_load_dead(const st_list *list, st_item *item, sluice_error *err);
/* Deletes those of `rows` that the item holds. */
sluice_status st_item_delete(const st_list *list, st_item *item, const st_row_set *rows, bool *ret_changed,
                             sluice_error *err);
/* The item of an added fragment; its rows without given ids begin at *next_row, which moves on. */
sluice_status st_list_make_item(const st_list *list, const st_edit_add *add, const pf_id *commit, uint64_t *next_row,
                                st_item *ret_item, sluice_error *err);
sluice_status st_list_substitute(st_list *list, const st_bound_edit *bound, sluice_error *err);

#endif
