/*
 * Reading the edits that table entries name by their places. The records of small generations stay at hand with the
 * graph's handle: whoever commits again and again meets the same unfolded edits each time.
 */
#ifndef STORE_STATE_COMMIT_EDIT_H
#define STORE_STATE_COMMIT_EDIT_H

#include "store/state/change.h"
#include "store/state/list.h"
#include "store/state/manifest.h"

typedef struct st_edit_record {   /* a generation, as read and decoded */
    uint64_t incarnation, number; /* number 0: none */
    st_record record;
    st_generation generation;
    st_attachments attachments;
    st_changes *changes; /* per commit, once asked for; NULL: none was */
    bool *has_changes;
} st_edit_record;

typedef struct st_edit_reader {
    st_graph *graph;
    st_edit_record own;          /* one that is too large to be kept */
    const st_commit_edit *named; /* how its commit names the edit that was read last; until the next one */
} st_edit_reader;
/* The edit of `table` at this place, with its ids. The caller frees bound->edit. CORRUPT when it is not there. */
sluice_status st_edit_reader_read(st_edit_reader *reader, const st_edit_place *place, uint64_t table,
                                  st_bound_edit *ret_bound, sluice_error *err);
void st_edit_reader_close(st_edit_reader *reader);

/* A generation that was built for the end of a log, with the bytes of its attachments: kept as if read, once it is
 * published. Takes over its commits and the list of attachments. */
void st_record_built(st_graph *graph, st_generation *generation, st_attachments *attachments, const pf_buffer *bytes);
/* The one that was built last stands in its log now, with this digest (number 0: it does not). */
void st_record_published(st_graph *graph, uint64_t incarnation, uint64_t number, const pf_sha256 *digest);
/* What is kept of the generation that stands under this number in the log; NULL: nothing. Good until the next one is
 * read. */
const st_generation *st_record_kept(st_graph *graph, st_log *log, uint64_t number);
/* A generation of the log with its whole record, from what is kept, or read and then kept; `own`, forgotten before,
 * holds one that is too large for that. *ret_read is good until the next one is read. */
sluice_status st_record_fetch(st_graph *graph, st_log *log, uint64_t number, st_edit_record *own,
                              const st_edit_record **ret_read, sluice_error *err);
void st_record_forget(st_edit_record *own); /* its insides; safe on a zeroed one */

#endif
