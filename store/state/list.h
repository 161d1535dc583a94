/*
 * A table's list in memory: a tree of pages, read as far as it is needed, changed by edits, written back page by
 * changed page.
 *
 * Level 0 pages hold fragments (items), level n pages hold pages of level n - 1. The roots stand in the table's entry,
 * higher levels first. Order of items = order of the list. Appending touches the last page only; a deletion those pages
 * whose row ids it meets; a substitution looks for fragments by name and so reads all pages.
 */
#ifndef STORE_STATE_LIST_H
#define STORE_STATE_LIST_H

#include "store/state/codec.h"
#include "store/state/page.h"

#define ST_LIST_ITEMS_MAX 32u /* fragments in a page of level 0 */
#define ST_LIST_FAN       8u /* pages in a page of a higher level, and roots of one level beyond which they are gathered */
#define ST_LIST_DEAD_MAX  256u /* deleted positions that a page lists itself; more go to a deletion file */

typedef struct st_item { /* a fragment that stands in the list */
    st_edit_add add;     /* bound; dead: the file that holds the positions, while `dead` is not loaded or unchanged */
    uint64_t low, high;  /* its row ids lie in [low, high] */
    uint64_t *dead;      /* ascending positions of deleted rows, once loaded */
    uint64_t dead_count;
    bool dead_loaded;
} st_item;

typedef struct st_list_node {
    st_list_ref ref; /* as last written; file empty: not yet */
    uint32_t level;
    bool loaded, changed;
    struct st_list_node *children; /* level > 0 */
    st_item *items;                /* level 0 */
    uint32_t count, capacity;      /* of children or items */
} st_list_node;

typedef struct st_list {
    st_graph *graph;
    uint64_t table;
    st_list_node root; /* its children are the roots; its level is one above any page */
} st_list;

sluice_status st_list_open(st_graph *graph, uint64_t table, const st_list_ref *pages, uint32_t count, st_list *ret_list,
                           sluice_error *err);
void st_list_free(st_list *list);

/* An edit with its commit, and the id of its first row that is bound in G. */
typedef struct st_bound_edit {
    st_edit edit;
    pf_id commit;
    uint64_t first_row;
} st_bound_edit;
/* Applies it. WRITE_CONFLICT when a substitution does not hold. */
sluice_status st_list_apply(st_list *list, const st_bound_edit *bound, sluice_error *err);
/* Reads all pages that were not read yet. */
sluice_status st_list_load(st_list *list, sluice_error *err);
typedef sluice_status st_item_fn(void *context, st_item *item, sluice_error *err);
/* Each item in order, of a list that is loaded. */
sluice_status st_list_each(st_list *list, st_item_fn *each, void *context, sluice_error *err);
/* Stages what changed as "<stem>-l<n>.json" (and large dead sets as "<stem>-d<n>"), synced with their folders; the
 * roots' references are the result. */
sluice_status st_list_write(st_list *list, const char *stem, st_list_ref **ret_pages, uint32_t *ret_count,
                            sluice_error *err);

/* ---- pages (list_page.c) ---- */

sluice_status st_list_node_read(pf_volume *volume, uint64_t table, st_list_node *node, sluice_error *err);
sluice_status st_list_node_encode(uint64_t table, const st_list_node *node, pf_buffer *buffer, sluice_error *err);
sluice_status st_list_node_decode(uint64_t table, const void *bytes, size_t length, st_list_node *node,
                                  sluice_error *err);
void st_list_node_free(st_list_node *node); /* its insides */
void st_item_free(st_item *item);
/* Reads a staged file of tables/<table>/lists/ and checks its digest (CORRUPT, also when it is missing). */
sluice_status st_list_file_read(pf_volume *volume, uint64_t table, const char *file, const pf_sha256 *digest,
                                pf_buffer *buffer, sluice_error *err);
/* Writes one exclusively and syncs it (not the folder). */
sluice_status st_list_file_write(pf_volume *volume, uint64_t table, const char *file, const pf_buffer *content,
                                 sluice_error *err);

/* ---- row ids of fragments (row_ids.c) ---- */

/* Least and greatest row id of a fragment; with a column _row_id they are read from it. */
sluice_status st_row_ids_bounds(pf_volume *volume, uint64_t table, const st_edit_add *add, uint64_t *ret_low,
                                uint64_t *ret_high, sluice_error *err);
/* The positions in the fragment of those of `rows` that it holds, ascending; NULL when none. */
sluice_status st_row_ids_positions(pf_volume *volume, uint64_t table, const st_item *item, const st_row_set *rows,
                                   uint64_t **ret_positions, uint64_t *ret_count, sluice_error *err);
/* Adds the row ids of positions to a set. */
sluice_status st_row_ids_of(pf_volume *volume, uint64_t table, const st_item *item, const uint64_t *positions,
                            uint64_t count, st_row_set *rows, sluice_error *err);

#endif
