/*
 * Edits: how the words under a latch are changed, so that a death in the middle leaves no trace.
 *
 * Beside each latch lies its intent record. An edit opens it with the operation's name, saves each word's value in it
 * before that word changes, and closes it with one store after the last change. While it is open, its values before are
 * what counts: undo puts them back, newest first, and then closes it. So the table is always in the state before the
 * edit or in the one after it, and undo can itself be cut off and run again: what it reads does not change while it
 * runs.
 *
 * One process at a time has an edit of a table, the holder of its latch. No allocation, no call that can fail.
 */
#ifndef SHM_EDIT_H
#define SHM_EDIT_H

#include "shm/layout.h"

typedef enum shm_operation { /* for whoever looks at a region */
                             SHM_OP_TAKE = 1,
                             SHM_OP_FINISH,
                             SHM_OP_RUN,
                             SHM_OP_JOB,
                             SHM_OP_DEATH,
                             SHM_OP_GATE_ENTER,
                             SHM_OP_GATE_LEAVE,
                             SHM_OP_GATE_SETTLE,
                             SHM_OP_GATE_PASS,
                             SHM_OP_PUBLISH_ENTER,
                             SHM_OP_PUBLISH_LEAD,
                             SHM_OP_PUBLISH_TAKE,
                             SHM_OP_PUBLISH_DECIDE,
                             SHM_OP_PUBLISH_LEAVE
} shm_operation;

typedef struct shm_edit {
    shm_intent *intent;
    uint8_t *base; /* of the table */
    uint32_t saved;
    shm_operation operation;
} shm_edit;

void shm_edit_begin(shm_edit *edit, shm_intent *intent, void *base, shm_operation operation);
/* Saves the word's value and stores the new one; a word that has it already costs nothing. */
void shm_set(shm_edit *edit, shm_word *word, uint64_t value);
void shm_edit_commit(shm_edit *edit);
/* Puts an open edit back; `length` bounds the table from `base`. False when the record makes no sense. */
bool shm_edit_undo(shm_intent *intent, void *base, size_t length);

#endif
