/*
 * Inside of building generations: what build.c takes from delta.c.
 */
#ifndef STORE_STATE_BUILD_H
#define STORE_STATE_BUILD_H

#include "store/state/change.h"

/* The edits of a delta, for its change set. */
st_edit_source st_delta_edits(const st_delta *delta);
/* Rows of an edit that G numbers. False on overflow. */
bool st_edit_rows_to_number(const st_edit *edit, uint64_t *ret_rows);

#endif
