/*
 * Putting slots aside and listing them (coord/quarantine.h).
 *
 * Crash rule: the copy has its name, and the name is durable, before the slot is freed; a copy that is already there is
 * the one that a dead recoverer made from this slot.
 */
#include "coord/quarantine.h"
#include "coord/board.h"
#include "store/format/document.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "quarantine"

sluice_status co_quarantine_put(st_graph *graph, lk_lockfile *graph_locks, co_slot *slot, bool scope_known,
                                const co_scope *scope, pf_deadline deadline, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(graph);
    char name[96];
    sluice_error create_error = {0};
    uint8_t *bytes = malloc(CO_SLOT_BYTES);
    if (!bytes)
        return pf_fail_memory(err);
    sluice_status status;
    PF_GOTO(status, done, pf_read_exact(slot->file, (uint64_t)slot->number * CO_SLOT_BYTES, bytes, CO_SLOT_BYTES, err));
    if (scope_known) {
        char id[PF_ID_TEXT];
        pf_id_text(&scope->commit, id);
        (void)snprintf(name, sizeof name, "%s.intent", id);
    } else {
        (void)snprintf(name, sizeof name, "slot-%u-%016llx.intent", slot->number,
                       (unsigned long long)pf_xxh64_of(bytes, CO_SLOT_BYTES));
    }
    PF_GOTO(status, done, lk_take(graph_locks, LK_GRAPH_RECLAIM, PF_LOCK_SHARED, deadline, err));
    status = st_document_create(volume, FOLDER, name, bytes, CO_SLOT_BYTES, &create_error);
    lk_release(graph_locks, LK_GRAPH_RECLAIM);
    if (status == SLUICE_ALREADY_EXISTS) /* made from this slot by somebody who died before he freed it */
        status = pf_sync_dir(volume, FOLDER, err);
    else if (status != SLUICE_OK && err)
        *err = create_error;
    if (status == SLUICE_OK)
        status = co_board_announce_quarantine(slot->file, err);
    if (status == SLUICE_OK)
        status = co_slot_retire(slot, err);
done:
    free(bytes);
    return status;
}

typedef struct quarantine_walk {
    st_graph *graph;
    co_quarantine_fn *each;
    void *context;
} quarantine_walk;

static sluice_status on_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    const quarantine_walk *walk = context;
    static const char suffix[] = ".intent";
    size_t length = strlen(name);
    co_quarantined item = {0};
    if (kind != PF_KIND_FILE || length >= sizeof item.name || length < sizeof suffix ||
        strcmp(name + length - (sizeof suffix - 1), suffix) != 0)
        return SLUICE_OK; /* not one of ours: kept, and of no meaning (L-051) */
    (void)snprintf(item.name, sizeof item.name, "%s", name);

    char path[128];
    uint8_t header[CO_SCOPE_BYTES];
    size_t got = 0;
    pf_file *file = NULL;
    sluice_error open_error = {0};
    (void)snprintf(path, sizeof path, FOLDER "/%s", name);
    sluice_status status = pf_open(st_graph_volume(walk->graph), path, PF_READ, &file, &open_error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK; /* removed between list and look: settled (L-031) */
    if (status != SLUICE_OK) {
        if (err)
            *err = open_error;
        return status;
    }
    status = pf_read(file, 0, header, sizeof header, &got, err);
    (void)pf_close(file, NULL); /* only read */
    PF_TRY(status);
    item.scope_known = got == sizeof header && co_scope_decode(header, &item.scope);
    return walk->each(walk->context, &item, err);
}

sluice_status co_quarantine_list(st_graph *graph, co_quarantine_fn *each, void *context, sluice_error *err)
{
    quarantine_walk walk = {graph, each, context};
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(st_graph_volume(graph), FOLDER, &stat, &stat_error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = stat_error;
        return status;
    }
    return pf_list(st_graph_volume(graph), FOLDER, on_entry, &walk, err);
}
