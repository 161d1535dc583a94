/*
 * A graph as it stood at one moment: which names there were, and where each log ended. Everything else is immutable, so
 * a cut and the files that it leads to are the graph.
 *
 * A cut is taken under the publish locks of all its logs, so it is a state that existed. A graph can be opened as of a
 * cut (st_graph_at), for reading; and a folder into which a backup is being written has the cut of the state before in
 * its file backup.before, which rules while it exists: readers see that state, and the next writer, or backup, puts the
 * folder back to it first. So many logs and names change by one removal of a name.
 *
 *   backup          what the newest backup brought: says whether anybody has written since, nothing else
 *   backup.before   the state before a backup that is not finished
 *   backup.new      instead of FORMAT: a first backup that is not finished; the graph's id
 */
#ifndef STORE_GRAPH_CUT_H
#define STORE_GRAPH_CUT_H

#include "store/graph/graph.h"

#define ST_BACKUP_FILE   "backup"
#define ST_BACKUP_BEFORE "backup.before"
#define ST_BACKUP_NEW    "backup.new"
#define ST_BACKUP_MAX    (64u * 1024u * 1024u)

typedef struct st_cut_ref {
    char *name;
    uint64_t incarnation;
} st_cut_ref;

typedef struct st_cut {
    pf_id graph;
    st_cut_ref *refs;
    uint32_t ref_count;
    st_log_cut *logs; /* incarnation 0: control/ */
    uint32_t log_count;
} st_cut;
void st_cut_free(st_cut *cut); /* its insides; safe on a zeroed one */
sluice_status st_cut_add_ref(st_cut *cut, const char *name, uint64_t incarnation, sluice_error *err);
sluice_status st_cut_add_log(st_cut *cut, const st_log_cut *log, sluice_error *err);
const st_log_cut *st_cut_find_log(const st_cut *cut, uint64_t incarnation); /* NULL: none */
const st_cut_ref *st_cut_find_ref(const st_cut *cut, const char *name);     /* NULL: none */
sluice_status st_cut_encode(const st_cut *cut, pf_buffer *buffer, sluice_error *err);
sluice_status st_cut_decode(const void *bytes, size_t length, st_cut *ret_cut, sluice_error *err);

/* Takes the cut of these branch incarnations (ascending), control/ and all names. The caller keeps refs from changing.
 * A graph open for writing makes every end acknowledged; one open for reading takes what was. SUSPECT, CORRUPT. */
sluice_status st_cut_take(st_graph *graph, const uint64_t *incarnations, uint32_t count, pf_deadline deadline,
                          st_cut *ret_cut, sluice_error *err);
/* What is in the volume as of the cut, for reading. Both stay the caller's; close it before them. */
sluice_status st_graph_at(pf_volume *volume, const st_cut *cut, st_graph **ret_graph, sluice_error *err);
/* ALREADY_EXISTS unless every log of both goes on, in `later` (opened as of a cut), from where it ended before, as far
 * as that is retained. */
sluice_status st_cut_check_continues(st_graph *later, const st_cut *before, sluice_error *err);
/* ALREADY_EXISTS unless the graph's logs end where the newest backup left them. */
sluice_status st_cut_check_untouched(st_graph *graph, const st_cut *stamp, sluice_error *err);
/* Copies the log of a branch (0: control/) as of the cut of `from` (st_log_copy; without `have` its folder is made
 * anew). */
sluice_status st_cut_copy_log(st_graph *from, uint64_t incarnation, pf_volume *to, const st_log_cut *have,
                              st_copied *copied, sluice_error *err);

/* ---- the files (all below: whoever writes holds the backup byte of locks/graph) ---- */

/* NOT_FOUND when there is none. */
sluice_status st_cut_read(pf_volume *volume, const char *file, st_cut *ret_cut, sluice_error *err);
/* Makes the file, or makes it anew; synced with its name. */
sluice_status st_cut_write(pf_volume *volume, const char *file, const st_cut *cut, sluice_error *err);
/* Removes one, if it is there; synced. */
sluice_status st_cut_remove(pf_volume *volume, const char *file, sluice_error *err);
/* Puts logs, names and the file backup back to what backup.before says, and removes it. */
sluice_status st_cut_put_back(pf_volume *volume, const st_cut *before, sluice_error *err);
/* A folder for a first backup of `from`: backup.new must be there already. What an earlier attempt left of logs, names
 * and the like is removed; folders and files of a graph are made, synced, but FORMAT. */
sluice_status st_backup_make_layout(pf_volume *from, pf_volume *to, sluice_error *err);
/* The lock file alone, so that its backup byte can be taken. */
sluice_status st_backup_make_locks(pf_volume *to, sluice_error *err);
/* FORMAT, synced: from here on it is a graph. */
sluice_status st_backup_publish(pf_volume *to, sluice_error *err);
/* The names in refs/ become those of the cut. */
sluice_status st_cut_write_refs(pf_volume *volume, const st_cut *cut, sluice_error *err);

#endif
