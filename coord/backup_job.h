/*
 * Inside of backup: what backup.c (the order of everything) and backup_files.c (copying files and looking at them)
 * share.
 */
#ifndef COORD_BACKUP_JOB_H
#define COORD_BACKUP_JOB_H

#include "coord/backup.h"
#include "coord/objects.h"
#include "locks/claim.h"
#include "locks/oslock.h"

typedef struct co_backup_job {
    st_graph *source;
    st_cut cut;     /* what is copied */
    st_graph *view; /* the source as of it */
    pf_file **pins; /* one per branch of the cut: nothing that it names is collected meanwhile */
    uint32_t pin_count;
    pf_volume *to;
    st_graph *there;    /* the copy that is there; NULL: a first backup. It owns `to` */
    st_cut before;      /* where its logs that will be written on end, and its names */
    bool begun;         /* backup.before stands */
    lk_lockfile **held; /* locks of the folder */
    uint32_t held_count;
    lk_claim *claim;    /* of the folder: no collection there */
    co_objects objects; /* of the source; `named` by what is copied */
    co_objects old;     /* of the folder; `named` by the state before: looked at when they were copied */
    co_backup_progress_fn *progress;
    void *context;
    co_backup_report *report;
} co_backup_job;

/* Copies schemas, audit and the objects below tables/ that the cut names; all synced. */
sluice_status co_backup_copy_files(co_backup_job *job, sluice_error *err);
/* Everything of the copy that the state before did not have, byte by byte. CORRUPT with the first damage; damaged
 * objects are removed, so that the next backup copies them anew. */
sluice_status co_backup_check(co_backup_job *job, sluice_error *err);

#endif
