/*
 * What has left a table's list by edits that are not folded in yet.
 *
 * Such a fragment still stands in a page or in an edit, and the list is made without looking at it: its file, its runs
 * and its adjacency are needed for this state no more. Its deleted rows are (a substitution compares them), and so is
 * its file when its row ids stand in there. Collection lets go by this, and verify asks for no more.
 */
#ifndef STORE_STATE_GONE_H
#define STORE_STATE_GONE_H

#include "store/state/commit_edit.h"

typedef struct st_gone {
    struct st_gone_name {
        char name[64];
        uint64_t at; /* the newest step that has to do with it: a fragment leaves, or comes in */
        bool leaves;
    } * names; /* ascending, each once, when all edits are seen */
    uint32_t count, room;
    uint64_t steps;
    uint64_t replaced; /* the newest step that took out everything; 0: none */
} st_gone;

/* By all edits of the entry. */
sluice_status st_gone_find(st_edit_reader *reader, const st_table_entry *entry, st_gone *ret_gone, sluice_error *err);
void st_gone_free(st_gone *gone); /* safe on a zeroed one */
/* Can the state do without the files of this fragment, but for its deleted rows? `gone` NULL: no. */
bool st_gone_has(const st_gone *gone, const st_edit_add *add);

#endif
