/*
 * What the files of a table say by themselves, for salvage: for when no list names them, or no schema explains them.
 */
#ifndef STORE_READ_SALVAGE_FILES_H
#define STORE_READ_SALVAGE_FILES_H

#include "store/read/salvage.h"
#include "store/state/list.h"

/* A schema of all types that a fragment describes, each as the newest of its table does; *ret_schema NULL: none does.
 */
sluice_status st_files_schema(st_salvage *salvage, st_schema **ret_schema, sluice_error *err);

/* Gives each fragment of a table that lies in its folder and whose name `known` does not know, the newest first: with
 * the deleted positions and row ids of the newest list page that names it, else with row ids that no row has. */
typedef bool st_known_fragment_fn(void *context, const char *name);
sluice_status st_files_each(st_salvage *salvage, uint64_t table, st_known_fragment_fn *known, st_item_fn *each,
                            void *context, sluice_error *err);
#define ST_FILES_NO_ROW (UINT64_C(1) << 63) /* ids from here on are made up */

/* Salvage's own (salvage.c): tells a loss; a guess. */
sluice_status st_salvage_lose(st_salvage *salvage, const char *object, sluice_error *err, const char *fmt, ...)
    PF_PRINTF(4, 5);
sluice_status st_salvage_guess(st_salvage *salvage, const char *object, sluice_error *err, const char *fmt, ...)
    PF_PRINTF(4, 5);
/* Is it a failure of what is read, after which the rest can be gone on with? */
bool st_salvage_is_damage(sluice_status status);

#endif
