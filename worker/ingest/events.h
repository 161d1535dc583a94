/*
 * Lists of refused rows: what one task of a skipping load's probes leaves, as a file of the attempt's folder.
 *
 * A task meets rows in the order of their hashes; whoever needs them asks by item and position. So a list is a sequence
 * of pieces of one size (the last may be shorter), each sorted by (item, position): written with bounded memory, and
 * searched without reading it whole. Entries lie in the file as in memory.
 */
#ifndef WORKER_INGEST_EVENTS_H
#define WORKER_INGEST_EVENTS_H

#include "worker/ingest/probe.h"
#include "worker/ingest/spool.h"

typedef struct wk_events { /* being written */
    wk_spool_file file;
    struct wk_event_entry *entries;
    uint32_t count, room;
} wk_events;

sluice_status wk_events_begin(const wk_spool *spool, const char *name, wk_events *ret_events, sluice_error *err);
sluice_status wk_events_add(wk_events *events, const wk_event *event, sluice_error *err);
/* Publishes the list. It is gone in any case; `events` needs no more. */
sluice_status wk_events_end(wk_events *events, sluice_error *err);
void wk_events_abandon(wk_events *events);

typedef struct wk_event_array { /* in memory; grows as needed */
    wk_event *items;
    uint64_t count, room;
} wk_event_array;
void wk_event_array_free(wk_event_array *array); /* safe on a zeroed one */

/* Calls `each` for all events of a list, in the order of the file. *ret_found false: there is no such list. */
sluice_status wk_events_each(const wk_spool *spool, const char *name, wk_event_fn *each, void *context, bool *ret_found,
                             sluice_error *err);
/* Appends those of an item at positions in [low, high). */
sluice_status wk_events_find(const wk_spool *spool, const char *name, uint32_t item, uint64_t low, uint64_t high,
                             wk_event_array *array, bool *ret_found, sluice_error *err);

#endif
