#include "worker/ingest/sorter.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART        6u    /* of the process's memory goes into entries, all runs and the scratch of one sort together */
#define ENTRIES_MIN 4096u /* of one run in memory: below it merging would read too little at a time */
#define ENTRIES_MAX (UINT64_C(1) << 27)
#define BLOCK       1024u /* entries merged at a time */

typedef struct segment { /* sorted entries in the spill file */
    uint64_t offset, count;
} segment;

typedef struct gathered { /* one run */
    st_run_entry *entries;
    uint64_t count, room;
    uint64_t spilled; /* entries in segments */
    segment *segments;
    uint32_t segment_count;
} gathered;

struct wk_sorter {
    const wk_spool *spool;
    gathered *runs;
    uint32_t run_count;
    uint64_t most;  /* entries of a run in memory */
    uint64_t first; /* room made at first */
    pf_file *file;
    uint64_t length;
};

static uint64_t most_entries(uint32_t runs)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_SPILL");
    unsigned long entries = value ? strtoul(value, NULL, 10) : 0;
    if (entries > 0)
        return entries;
#endif
    const uint64_t each = sizeof(st_run_entry) * ((uint64_t)runs + 1);
    return pf_memory_part(PART, ENTRIES_MIN * each, ENTRIES_MAX * each) / each;
}

sluice_status wk_sorter_open(const wk_spool *spool, uint32_t runs, uint64_t expected, wk_sorter **ret_sorter,
                             sluice_error *err)
{
    wk_sorter *sorter = calloc(1, sizeof *sorter);

    if (sorter == NULL)
        return pf_fail_memory(err);
    sorter->spool = spool;
    sorter->most = spool ? most_entries(runs) : UINT64_MAX / sizeof(st_run_entry);
    sorter->first = expected < sorter->most ? expected : sorter->most;
    if (sorter->first < BLOCK)
        sorter->first = BLOCK;
    sorter->runs = calloc((size_t)runs + 1, sizeof *sorter->runs);
    sorter->run_count = runs;
    if (sorter->runs == NULL) {
        free(sorter);
        return pf_fail_memory(err);
    }
    *ret_sorter = sorter;
    return SLUICE_OK;
}

void wk_sorter_close(wk_sorter *sorter)
{
    if (sorter == NULL)
        return;
    for (uint32_t i = 0; i < sorter->run_count; i++) {
        free(sorter->runs[i].entries);
        free(sorter->runs[i].segments);
    }
    free(sorter->runs);
    (void)pf_close(sorter->file, NULL); /* nobody reads it any more */
    free(sorter);
}

/* ---- gathering ---- */

/* The file loses its name at once: what a dead worker leaves is freed by the kernel, but for a death between the two
 * calls. */
static sluice_status create_file(wk_sorter *sorter, sluice_error *err)
{
    char path[WK_SPOOL_PATH];
    int length = snprintf(path, sizeof path, "%s/spill-%016" PRIx64, sorter->spool->folder, pf_random_u64());

    PF_ALWAYS(length > 0 && (size_t)length < sizeof path);
    PF_TRY(pf_create(sorter->spool->volume, path, &sorter->file, err));
    return pf_remove(sorter->spool->volume, path, err);
}

static sluice_status spill(wk_sorter *sorter, gathered *run, sluice_error *err)
{
    size_t bytes = (size_t)run->count * sizeof *run->entries;
    segment *segments = realloc(run->segments, ((size_t)run->segment_count + 1) * sizeof *segments);

    if (segments == NULL)
        return pf_fail_memory(err);
    run->segments = segments;
    if (sorter->file == NULL)
        PF_TRY(create_file(sorter, err));
    PF_TRY(st_run_sort(run->entries, run->count, err));
    PF_TRY(pf_write(sorter->file, sorter->length, run->entries, bytes, err));
    run->segments[run->segment_count++] = (segment){.offset = sorter->length, .count = run->count};
    sorter->length += bytes;
    run->spilled += run->count;
    run->count = 0;
    return PF_FAILPOINT(LOAD_AFTER_SPILL, err);
}

/* Room for one more entry. */
static sluice_status make_room(wk_sorter *sorter, gathered *run, sluice_error *err)
{
    uint64_t room = run->room ? run->room * 2 : sorter->first;

    if (run->room >= sorter->most)
        return spill(sorter, run, err);
    if (room > sorter->most)
        room = sorter->most;
    st_run_entry *entries = realloc(run->entries, (size_t)room * sizeof *entries);
    if (entries == NULL)
        return pf_fail_memory(err);
    pf_memory_to_fill(entries, room * sizeof *entries);
    run->entries = entries;
    run->room = room;
    return SLUICE_OK;
}

sluice_status wk_sorter_add(wk_sorter *sorter, uint32_t which, const uint64_t *hashes, uint64_t count,
                            uint64_t position, sluice_error *err)
{
    gathered *run = &sorter->runs[which];

    while (count > 0) {
        if (run->count == run->room)
            PF_TRY(make_room(sorter, run, err));
        uint64_t here = run->room - run->count < count ? run->room - run->count : count;
        st_run_entry *to = run->entries + run->count;
        for (uint64_t i = 0; i < here; i++)
            to[i] = (st_run_entry){.hash = hashes[i], .position = position + i};
        run->count += here;
        hashes += here;
        position += here;
        count -= here;
    }
    return SLUICE_OK;
}

/* ---- merging ---- */

typedef struct cursor {
    const st_run_entry *at, *end;
} cursor;

typedef struct merge {
    const gathered *run;
    pf_map map;
    cursor *cursors; /* a heap, the least first */
    uint32_t count;
    st_run_entry block[BLOCK];
} merge;

static bool is_before(const cursor *a, const cursor *b)
{
    return a->at->hash != b->at->hash ? a->at->hash < b->at->hash : a->at->position < b->at->position;
}

static void sift_down(merge *m, uint32_t at)
{
    cursor moving = m->cursors[at];

    for (uint32_t child; (child = 2 * at + 1) < m->count; at = child) {
        if (child + 1 < m->count && is_before(&m->cursors[child + 1], &m->cursors[child]))
            child++;
        if (!is_before(&m->cursors[child], &moving))
            break;
        m->cursors[at] = m->cursors[child];
    }
    m->cursors[at] = moving;
}

static sluice_status rewind_merge(void *context, sluice_error *err)
{
    merge *m = context;

    (void)err;
    m->count = 0;
    for (uint32_t i = 0; i < m->run->segment_count; i++) {
        const segment *s = &m->run->segments[i];
        const st_run_entry *at = (const st_run_entry *)(const void *)(m->map.data + s->offset);
        m->cursors[m->count++] = (cursor){at, at + s->count};
    }
    for (uint32_t i = m->count / 2; i > 0; i--)
        sift_down(m, i - 1);
    return SLUICE_OK;
}

static sluice_status next_of_merge(void *context, const st_run_entry **ret_entries, uint64_t *ret_count,
                                   sluice_error *err)
{
    merge *m = context;
    uint64_t made = 0;

    (void)err;
    while (made < BLOCK && m->count > 0) {
        cursor *least = &m->cursors[0];
        m->block[made++] = *least->at++;
        if (least->at == least->end)
            *least = m->cursors[--m->count];
        if (m->count > 0)
            sift_down(m, 0);
    }
    *ret_entries = m->block;
    *ret_count = made;
    return SLUICE_OK;
}

static sluice_status write_merged(const wk_sorter *sorter, const gathered *run, pf_volume *volume, uint64_t table,
                                  const char *name, st_run_info *ret_info, sluice_error *err)
{
    sluice_status status;
    merge *m = calloc(1, sizeof *m);
    st_run_source source = {.context = m, .rewind = rewind_merge, .next = next_of_merge};

    if (m == NULL)
        return pf_fail_memory(err);
    m->run = run;
    m->cursors = calloc((size_t)run->segment_count + 1, sizeof *m->cursors);
    status = m->cursors ? pf_map_file(sorter->file, &m->map, err) : pf_fail_memory(err);
    if (status == SLUICE_OK)
        status = st_run_write_sorted(volume, table, name, &source, run->spilled, ret_info, err);
    pf_unmap(&m->map);
    free(m->cursors);
    free(m);
    return status;
}

sluice_status wk_sorter_write(wk_sorter *sorter, uint32_t which, pf_volume *volume, uint64_t table, const char *name,
                              st_run_info *ret_info, sluice_error *err)
{
    gathered *run = &sorter->runs[which];
    sluice_status status = SLUICE_OK;

    if (run->spilled == 0) {
        status = st_run_write(volume, table, name, run->entries, run->count, ret_info, err);
    } else {
        if (run->count > 0)
            PF_TRY(spill(sorter, run, err));
        status = write_merged(sorter, run, volume, table, name, ret_info, err);
    }
    free(run->entries);
    run->entries = NULL;
    run->count = run->room = 0;
    return status;
}
