/*
 * Plain copies of the key columns of compressed fragments, for probes that look keys up in the order of their hashes:
 * unpacking a whole column for each of them would take for ever, keeping all columns unpacked would take any memory.
 *
 * A copy is made by whoever needs it first, batch by batch, in the attempt's folder, for everybody who works under the
 * attempt: "plain-<table>-<name of the fragment>" says which file of that folder it is. Nobody names it afterwards, so
 * it goes with the folder.
 */
#ifndef WORKER_INGEST_PLAIN_H
#define WORKER_INGEST_PLAIN_H

#include "store/fragment/fragment.h"
#include "store/schema/schema.h"
#include "worker/ingest/spool.h"

/* The copy of a fragment of this type, open: the columns that its runs are over, where the fragment has them
 * (st_layout_find), in the same rows. */
sluice_status wk_plain_open(const wk_spool *spool, const st_type_def *type, const st_fragment_info *info,
                            st_fragment **ret_copy, sluice_error *err);

#endif
