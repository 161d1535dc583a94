/*
 * Results of tasks: small files in the attempt's folder, whole or absent. A result is written under a name of its own
 * and then renamed, so that a worker that dies leaves nothing that could be believed. Nothing is synced: after a power
 * loss nobody is left who would ask (the attempt is dead, and what it staged is litter).
 */
#ifndef WORKER_INGEST_SPOOL_H
#define WORKER_INGEST_SPOOL_H

#include "platform/buffer.h"
#include "platform/ids.h"
#include "platform/volume.h"
#include <stdbool.h>

#define WK_SPOOL_NAME 64u  /* room for a name */
#define WK_SPOOL_PATH 160u /* room for "attempts/<id>/<name>" */

typedef struct wk_spool {
    pf_volume *volume;
    char folder[64]; /* "attempts/<id>" */
    pf_id attempt;
} wk_spool;

/* A file that is made piece by piece, whole or absent like any other. */
typedef struct wk_spool_file {
    const wk_spool *spool;
    pf_file *file;
    uint64_t length;
    char path[WK_SPOOL_PATH], temporary[WK_SPOOL_PATH + 32];
} wk_spool_file;
sluice_status wk_spool_begin(const wk_spool *spool, const char *name, wk_spool_file *ret_file, sluice_error *err);
sluice_status wk_spool_append(wk_spool_file *file, const void *bytes, size_t length, sluice_error *err);
/* Publishes it; like wk_spool_put. The file is gone in any case. */
sluice_status wk_spool_end(wk_spool_file *file, bool *ret_first, sluice_error *err);
void wk_spool_abandon(wk_spool_file *file); /* gives its space back */
/* Gives back the space of files of this name that were begun and never ended. Whoever still writes one fails to end it.
 */
sluice_status wk_spool_clean(const wk_spool *spool, const char *name, sluice_error *err);

/* Publishes a result. Somebody else's equal work may have been faster: *ret_first tells (NULL allowed); theirs stands.
 */
sluice_status wk_spool_put(const wk_spool *spool, const char *name, const void *bytes, size_t length, bool *ret_first,
                           sluice_error *err);
/* Reads one, whole; *ret_found false when there is none. The buffer is emptied first. */
sluice_status wk_spool_get(const wk_spool *spool, const char *name, pf_buffer *ret_bytes, bool *ret_found,
                           sluice_error *err);
/* A part of one that there must be. The buffer is emptied first. */
sluice_status wk_spool_get_range(const wk_spool *spool, const char *name, uint64_t offset, size_t length,
                                 pf_buffer *ret_bytes, sluice_error *err);
/* Is there one? */
sluice_status wk_spool_has(const wk_spool *spool, const char *name, bool *ret_found, sluice_error *err);
void wk_spool_path(const wk_spool *spool, const char *name, char ret_path[WK_SPOOL_PATH]);

#endif
