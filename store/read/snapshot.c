/*
 * Snapshots (snapshot.h): one generation, pinned for as long as it is read.
 *
 * The pin is a shared lock on the generation's byte of branches/<incarnation>/pins, on a descriptor of the snapshot's
 * own, so that two snapshots of one process are two pins (OD-029). Collection takes a byte alone, by try, before it
 * lets a generation go. When it was faster, the snapshot is opened again from CURRENT. The pin is advisory: where there
 * is no pin file, or none can be opened, reading goes on without. The handle keeps the descriptor of the last pin that
 * was let go of, for the next one: no lock is held by it meanwhile.
 */
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/failpoint.h"
#include "store/read/reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIN_TRIES 64u

static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

static bool pins_are_off(void)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_NO_PINS");
    return text && strcmp(text, "1") == 0;
#else
    return false;
#endif
}

typedef struct kept_pins {
    pf_file *file; /* NULL: none, or in use */
    uint64_t incarnation;
} kept_pins;

static void release_pins(void *data)
{
    kept_pins *kept = data;
    (void)pf_close(kept->file, NULL); /* nothing is written through it */
    free(kept);
}

/* NULL without memory: then nothing is kept. */
static kept_pins *pins_of(st_graph *graph)
{
    st_kept *kept = st_graph_kept(graph, ST_KEPT_PINS);
    if (!kept->data) {
        kept->data = calloc(1, sizeof(kept_pins));
        kept->release = release_pins;
    }
    return kept->data;
}

/* Taking the lock tells whether a kept file is still the one of that name. */
static sluice_status open_pins(st_snapshot *snapshot, sluice_error *err)
{
    char folder[64], path[96];
    kept_pins *kept = pins_of(snapshot->graph);
    if (kept && kept->file && kept->incarnation == snapshot->view->incarnation) {
        snapshot->pins = kept->file;
        kept->file = NULL;
        return SLUICE_OK;
    }
    st_branch_folder(snapshot->view->incarnation, folder);
    (void)snprintf(path, sizeof(path), "%s/pins", folder);
    return pf_open(st_graph_volume(snapshot->graph), path, PF_READ, &snapshot->pins, err);
}

static void close_pins(st_snapshot *snapshot)
{
    kept_pins *kept = pins_of(snapshot->graph);
    if (kept && !kept->file && pf_unlock(snapshot->pins, snapshot->view->generation, 1, NULL) == SLUICE_OK)
        *kept = (kept_pins){snapshot->pins, snapshot->view->incarnation};
    else
        (void)pf_close(snapshot->pins, NULL); /* the kernel lets go of the lock */
    snapshot->pins = NULL;
}

/* *ret_late: collection has the generation. */
static sluice_status pin(st_snapshot *snapshot, bool *ret_late, sluice_error *err)
{
    sluice_error probe = {0};
    *ret_late = false;
    if (pins_are_off())
        return SLUICE_OK;
    sluice_status status = open_pins(snapshot, &probe);
    if (status == SLUICE_NOT_FOUND || status == SLUICE_PERMISSION)
        return SLUICE_OK;
    if (status != SLUICE_OK)
        return hand_on(&probe, err);
    status = pf_lock(snapshot->pins, snapshot->view->generation, 1, PF_LOCK_SHARED, PF_AT_ONCE, &probe);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    (void)pf_close(snapshot->pins, NULL);
    snapshot->pins = NULL;
    *ret_late = status == SLUICE_LIVE_WRITER_CONTENTION || status == SLUICE_FENCED;
    return *ret_late ? SLUICE_OK : hand_on(&probe, err);
}

/* After pinning: is the generation still there? Collection may have been between. */
static sluice_status still_there(st_snapshot *snapshot, bool *ret_there, sluice_error *err)
{
    st_log *log = NULL;
    PF_TRY(st_graph_log(snapshot->graph, snapshot->view->incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    uint64_t generation = snapshot->view->generation;
    *ret_there = true;
    if (generation == st_log_end(log).number || generation < st_log_first(log)) /* the place where a branch begins */
        return SLUICE_OK;
    bool collected = false;
    PF_TRY(st_graph_is_collected(snapshot->graph, snapshot->view->incarnation, generation, &collected, err));
    *ret_there = !collected;
    return SLUICE_OK;
}

static void unpin(st_snapshot *snapshot)
{
    if (snapshot->pins)
        close_pins(snapshot);
    if (snapshot->recast)
        free(snapshot->view);
    else
        st_view_free(snapshot->view);
    snapshot->view = NULL;
}

static sluice_status open_in(st_snapshot *snapshot, uint64_t incarnation, const char *at, bool *ret_done,
                             sluice_error *err)
{
    st_log *log = NULL;
    uint64_t generation = 0;
    uint32_t index = 0;
    bool late = false;
    PF_TRY(st_graph_log(snapshot->graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    if (at) {
        PF_TRY(st_place_find(snapshot->graph, &log, at, &generation, &index, err));
        PF_TRY(st_view_load_at(snapshot->graph, log, generation, index, &snapshot->view, err));
    } else {
        PF_TRY(st_view_load(snapshot->graph, log, false, &snapshot->view, err));
    }
    PF_TRY(PF_FAILPOINT(READ_BEFORE_PIN, err));
    PF_TRY(pin(snapshot, &late, err));
    if (late)
        return SLUICE_OK;
    return still_there(snapshot, ret_done, err);
}

/* A branch may be deleted, and its folder collected, while it is opened: a pin holds only where the name still stands
 * after it (coord/roots.c), and what failed then failed for that. The branch main is never deleted. */
static sluice_status open_once(st_snapshot *snapshot, const char *branch, const char *at, bool *ret_done,
                               sluice_error *err)
{
    uint64_t incarnation = 0, now = 0;
    sluice_error opening = {0};
    PF_TRY(st_ref_read(snapshot->graph, branch, &incarnation, err));
    sluice_status status = open_in(snapshot, incarnation, at, ret_done, &opening);
    if (incarnation != ST_MAIN_INCARNATION) {
        PF_TRY(st_ref_read(snapshot->graph, branch, &now, err));
        if (now != incarnation) {
            *ret_done = false;
            return SLUICE_OK;
        }
    }
    return status == SLUICE_OK ? SLUICE_OK : hand_on(&opening, err);
}

sluice_status st_snapshot_open(st_graph *graph, const char *branch, const char *at, st_snapshot **ret_snapshot,
                               sluice_error *err)
{
    st_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    pf_deadline deadline = pf_deadline_in_ms(10000);
    bool done = false;
    sluice_status status = SLUICE_OK;
    if (!snapshot)
        return pf_fail_memory(err);
    snapshot->graph = graph;
    for (unsigned attempt = 0; attempt < PIN_TRIES && status == SLUICE_OK && !done; attempt++) {
        if (attempt > 0)
            pf_backoff(attempt, deadline);
        unpin(snapshot);
        status = open_once(snapshot, branch ? branch : "main", at, &done, err);
    }
    if (status == SLUICE_OK && !done)
        status = pf_fail(err, SLUICE_TIMEOUT, "a generation was collected each time before it could be pinned");
    if (status != SLUICE_OK) {
        st_snapshot_close(snapshot);
        return status;
    }
    *ret_snapshot = snapshot;
    return SLUICE_OK;
}

sluice_status st_snapshot_recast(st_snapshot *from, st_schema *schema, st_snapshot **ret_snapshot, sluice_error *err)
{
    st_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    st_view *view = malloc(sizeof(*view));
    if (!snapshot || !view) {
        free(snapshot);
        free(view);
        return pf_fail_memory(err);
    }
    *view = *from->view;
    view->schema = schema;
    *snapshot = (st_snapshot){.graph = from->graph, .view = view, .recast = true};
    *ret_snapshot = snapshot;
    return SLUICE_OK;
}

sluice_status st_snapshot_open_commit(st_graph *graph, const st_reach *place, st_snapshot **ret_snapshot,
                                      sluice_error *err)
{
    st_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    st_log *log = NULL;
    bool late = false, there = false;
    sluice_status status;
    if (!snapshot)
        return pf_fail_memory(err);
    snapshot->graph = graph;
    PF_GOTO(status, done, st_graph_log(graph, place->incarnation, &log, err));
    PF_GOTO(status, done, st_log_refresh(log, err));
    PF_GOTO(status, done, st_view_load_at(graph, log, place->generation, place->index, &snapshot->view, err));
    PF_GOTO(status, done, pin(snapshot, &late, err));
    if (!late)
        PF_GOTO(status, done, still_there(snapshot, &there, err));
    if (!there)
        status = st_fail_collected(place->incarnation, place->generation, err);
done:
    if (status == SLUICE_OK)
        *ret_snapshot = snapshot;
    else
        st_snapshot_close(snapshot);
    return status;
}

void st_snapshot_close(st_snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (uint32_t i = 0; i < snapshot->reader_count; i++)
        st_reader_keep(snapshot, snapshot->readers[i]);
    free(snapshot->readers);
    unpin(snapshot);
    free(snapshot);
}

const st_view *st_snapshot_view(const st_snapshot *snapshot)
{
    return snapshot->view;
}

sluice_status st_snapshot_type(const st_snapshot *snapshot, const char *name, const st_type_def **ret_type,
                               sluice_error *err)
{
    const st_schema *schema = snapshot->view->schema;
    *ret_type = st_schema_find(schema, name);
    if (*ret_type)
        return SLUICE_OK;
    sluice_status status =
        pf_fail_private(err, SLUICE_USAGE, "a type that the schema does not have", "there is no type \"%s\"", name);
    const char *nearest = st_schema_nearest(schema, name);
    if (nearest)
        pf_hint(err, "did you mean \"%s\"?", nearest);
    else
        pf_hint(err, "`sluice count GRAPH` lists the types");
    return status;
}

sluice_status st_snapshot_count(st_snapshot *snapshot, const st_type_def *type, uint64_t *ret_rows, sluice_error *err)
{
    const st_table_entry *entry = st_view_table(snapshot->view, type->table);
    (void)err;
    *ret_rows = entry ? entry->rows : 0;
    return SLUICE_OK;
}
