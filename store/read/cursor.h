/*
 * Cursors of a change feed: how far a reader of a branch's changes has come.
 *
 * As text: "sc1" and 64 characters of letters, digits, - and _, which mean nothing to anybody else. A cursor names the
 * branch by its incarnation, so that it never fits another branch that came to have the same name, and the commit by
 * its id, so that it never fits another graph.
 */
#ifndef STORE_READ_CURSOR_H
#define STORE_READ_CURSOR_H

#include "platform/ids.h"
#include <stdbool.h>
#include <stdint.h>

#define ST_CURSOR_TEXT 68 /* with the zero byte */

typedef struct st_cursor {
    uint64_t incarnation; /* of the branch that is read */
    uint64_t generation;  /* the last commit that was told whole */
    uint32_t index;
    pf_id commit;
    uint64_t told; /* changes of the commit behind it that were told */
} st_cursor;

void st_cursor_text(const st_cursor *cursor, char ret_text[ST_CURSOR_TEXT]);
/* Does the text have the form of a cursor? *ret_whole false: it is one that was cut or changed. */
bool st_cursor_parse(const char *text, st_cursor *ret_cursor, bool *ret_whole);

#endif
