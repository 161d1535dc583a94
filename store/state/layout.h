/*
 * Where the columns of a type stand in a fragment, and which of them a run is over.
 */
#ifndef STORE_STATE_LAYOUT_H
#define STORE_STATE_LAYOUT_H

#include "store/schema/schema.h"
#include "store/state/state.h"

/* The columns that a run is over, as indexes into the type's layout; 0 when the type has no such run. `unique`: an
 * id. */
#define ST_RUN_COLUMNS_MAX (ST_KEY_MEMBERS_MAX + 2)
uint32_t st_run_columns(const st_type_def *type, st_run_use use, uint32_t unique,
                        uint32_t ret_columns[ST_RUN_COLUMNS_MAX]);
/* The column of a fragment that holds column `column` of the type's layout; -1 when it has none. */
int st_layout_find(const st_type_def *type, const st_fragment *fragment, uint32_t column);
/* Writes into a fragment what its type is, for whoever finds it without a schema (salvage). */
sluice_status st_layout_describe(const st_schema *schema, const st_type_def *type, st_fragment_writer *writer,
                                 sluice_error *err);

#endif
