/*
 * Changes as an Arrow IPC stream: one row per event, of whatever type, with keys and values as JSON.
 */
#ifndef CLI_CHANGES_ARROW_H
#define CLI_CHANGES_ARROW_H

#include "store/read/feed.h"

typedef struct cli_changes_arrow cli_changes_arrow;

/* Appends the schema to `out`, where everything else goes, too. */
sluice_status cli_changes_arrow_begin(pf_buffer *out, cli_changes_arrow **ret_arrow, sluice_error *err);
/* *ret_full: it is time for a batch. */
sluice_status cli_changes_arrow_add(cli_changes_arrow *arrow, const st_feed_event *event, bool *ret_full,
                                    sluice_error *err);
/* What was added since as a batch; nothing when that is nothing. */
sluice_status cli_changes_arrow_batch(cli_changes_arrow *arrow, sluice_error *err);
sluice_status cli_changes_arrow_end(cli_changes_arrow *arrow, sluice_error *err);
void cli_changes_arrow_free(cli_changes_arrow *arrow); /* NULL allowed */

#endif
