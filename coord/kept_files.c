/*
 * Keeping files open (coord/kept_files.h). A kept file may have been replaced meanwhile: taking a lock checks that
 * (pf_lock), and so does this for `intents`.
 */
#include "coord/kept_files.h"
#include <stdlib.h>

#define LOCKFILES 3u /* the graph's, and two branches' */

typedef struct kept_files {
    lk_lockfile *lockfiles[LOCKFILES];
    uint32_t next; /* whose place the next one takes when all are full */
    pf_file *intents;
} kept_files;

static void release(void *data)
{
    kept_files *kept = data;
    for (uint32_t i = 0; i < LOCKFILES; i++)
        lk_lockfile_close(kept->lockfiles[i]);
    (void)pf_close(kept->intents, NULL); /* only read */
    free(kept);
}

/* NULL without memory: then nothing is kept. */
static kept_files *of(st_graph *graph)
{
    st_kept *kept = st_graph_kept(graph, ST_KEPT_FILES);
    if (!kept->data) {
        kept->data = calloc(1, sizeof(kept_files));
        kept->release = release;
    }
    return kept->data;
}

sluice_status co_locks_open(st_graph *graph, const char *path, lk_lockfile **ret_lockfile, sluice_error *err)
{
    kept_files *kept = of(graph);
    for (uint32_t i = 0; kept && i < LOCKFILES; i++) {
        if (!kept->lockfiles[i] || !lk_lockfile_is(kept->lockfiles[i], path))
            continue;
        *ret_lockfile = kept->lockfiles[i];
        kept->lockfiles[i] = NULL;
        return SLUICE_OK;
    }
    return lk_lockfile_open(st_graph_volume(graph), path, ret_lockfile, err);
}

void co_locks_close(st_graph *graph, lk_lockfile *lockfile)
{
    kept_files *kept = of(graph);
    if (!lockfile)
        return;
    if (!kept || !lk_lockfile_clear(lockfile)) {
        lk_lockfile_close(lockfile);
        return;
    }
    uint32_t at = 0;
    while (at < LOCKFILES && kept->lockfiles[at])
        at++;
    if (at == LOCKFILES)
        at = kept->next++ % LOCKFILES;
    lk_lockfile_close(kept->lockfiles[at]);
    kept->lockfiles[at] = lockfile;
}

sluice_status co_intents_open(st_graph *graph, pf_file **ret_intents, sluice_error *err)
{
    kept_files *kept = of(graph);
    pf_file *intents = kept ? kept->intents : NULL;
    if (intents) {
        kept->intents = NULL;
        if (pf_file_check_identity(intents, NULL) == SLUICE_OK) {
            *ret_intents = intents;
            return SLUICE_OK;
        }
        (void)pf_close(intents, NULL); /* only read */
    }
    return pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, ret_intents, err);
}

void co_intents_close(st_graph *graph, pf_file *intents)
{
    kept_files *kept = of(graph);
    if (!intents)
        return;
    if (!kept || kept->intents) {
        (void)pf_close(intents, NULL); /* only read */
        return;
    }
    kept->intents = intents;
}
