/*
 * Backup: a consistent copy of a live graph in another folder, which is an ordinary graph; the second time into the
 * same folder only what is new.
 */
#ifndef COORD_BACKUP_H
#define COORD_BACKUP_H

#include "store/graph/cut.h"

typedef struct co_backup_report {
    bool first;                          /* there was no graph in the folder before */
    uint64_t files, bytes;               /* copied */
    uint64_t reused_files, reused_bytes; /* there already */
    uint64_t removed_files;              /* that the graph has no more */
    uint64_t all_files;                  /* that the copy has in the end, a few small ones aside; known from the first
                                          * call of progress on */
    uint32_t branches;
} co_backup_report;
/* Called after each file; false ends the backup (CANCELLED). */
typedef bool co_backup_progress_fn(void *context, const co_backup_report *so_far);

/* Copies `graph` to `destination`. The graph is open for writing, so that what is copied is acknowledged; where it
 * cannot be (a read-only mount), for reading. ALREADY_EXISTS: the folder holds something else, another graph, or a copy
 * that was written to since; WRITER_BUSY: somebody writes into it; CORRUPT, SUSPECT: the graph, of which then nothing
 * counts as copied. After any error the folder is what it was before for every reader. */
sluice_status co_backup(st_graph *graph, const char *graph_path, const char *destination,
                        co_backup_progress_fn *progress, void *context, co_backup_report *ret_report,
                        sluice_error *err);
/* The same on an open volume, which is taken over; what nothing needs any more stays there. */
sluice_status co_backup_on(st_graph *graph, pf_volume *destination, co_backup_progress_fn *progress, void *context,
                           co_backup_report *ret_report, sluice_error *err);

#endif
