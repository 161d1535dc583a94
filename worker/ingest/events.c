#include "worker/ingest/events.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define PIECE_ENTRIES 65536u /* sorted in memory at once: 2.5 MiB */
#define READ_ENTRIES  1024u

typedef struct wk_event_entry {
    uint64_t position, other_position;
    uint32_t item, other_item, probe;
    uint8_t has_other, other_in_base, zero[2];
} entry;

static uint32_t piece_entries(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_RANGE");
    unsigned long entries = value ? strtoul(value, NULL, 10) : 0;
    if (entries > 0 && entries < PIECE_ENTRIES)
        return (uint32_t)entries;
#endif
    return PIECE_ENTRIES;
}

static int compare_places(uint32_t item, uint64_t position, const entry *other)
{
    if (item != other->item)
        return item < other->item ? -1 : 1;
    return (position > other->position) - (position < other->position);
}

static int by_place(const void *a, const void *b)
{
    const entry *left = a;
    return compare_places(left->item, left->position, b);
}

/* ---- writing ---- */

sluice_status wk_events_begin(const wk_spool *spool, const char *name, wk_events *ret_events, sluice_error *err)
{
    *ret_events = (wk_events){0};
    return wk_spool_begin(spool, name, &ret_events->file, err);
}

static sluice_status write_piece(wk_events *events, sluice_error *err)
{
    if (events->count == 0)
        return SLUICE_OK;
    qsort(events->entries, events->count, sizeof *events->entries, by_place);
    PF_TRY(wk_spool_append(&events->file, events->entries, events->count * sizeof *events->entries, err));
    events->count = 0;
    return SLUICE_OK;
}

sluice_status wk_events_add(wk_events *events, const wk_event *event, sluice_error *err)
{
    if (events->count == events->room) {
        uint32_t room = events->room ? events->room * 2 : 64;
        if (room > piece_entries())
            room = piece_entries();
        entry *grown = room > events->room ? realloc(events->entries, room * sizeof *grown) : events->entries;
        if (grown == NULL)
            return pf_fail_memory(err);
        events->entries = grown;
        events->room = room;
    }
    events->entries[events->count++] = (entry){.item = event->item,
                                               .position = event->position,
                                               .probe = event->probe,
                                               .has_other = event->has_other,
                                               .other_in_base = event->other_in_base,
                                               .other_item = event->other_item,
                                               .other_position = event->other_position};
    return events->count == piece_entries() ? write_piece(events, err) : SLUICE_OK;
}

sluice_status wk_events_end(wk_events *events, sluice_error *err)
{
    sluice_status status = write_piece(events, err);

    free(events->entries);
    events->entries = NULL;
    if (status == SLUICE_OK)
        return wk_spool_end(&events->file, NULL, err);
    wk_spool_abandon(&events->file);
    return status;
}

void wk_events_abandon(wk_events *events)
{
    free(events->entries);
    events->entries = NULL;
    wk_spool_abandon(&events->file);
}

/* ---- reading ---- */

typedef struct list {
    pf_file *file;
    uint64_t count;
} list;

static sluice_status open_list(const wk_spool *spool, const char *name, list *ret_list, bool *ret_found,
                               sluice_error *err)
{
    char path[WK_SPOOL_PATH];
    pf_stat stat;
    sluice_error error;
    sluice_status status;

    *ret_list = (list){0};
    *ret_found = false;
    wk_spool_path(spool, name, path);
    status = pf_open(spool->volume, path, PF_READ, &ret_list->file, &error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    *ret_found = true;
    PF_TRY(pf_file_stat(ret_list->file, &stat, err));
    if (stat.size % sizeof(entry) != 0)
        return pf_fail(err, SLUICE_CORRUPT, "a list of refused rows is not whole");
    ret_list->count = stat.size / sizeof(entry);
    return SLUICE_OK;
}

static sluice_status read_entries(const list *from, uint64_t first, uint32_t count, entry *ret_entries,
                                  sluice_error *err)
{
    return pf_read_exact(from->file, first * sizeof(entry), ret_entries, count * sizeof(entry), err);
}

static wk_event event_of(const entry *from)
{
    return (wk_event){.probe = from->probe,
                      .item = from->item,
                      .position = from->position,
                      .has_other = from->has_other,
                      .other_in_base = from->other_in_base,
                      .other_item = from->other_item,
                      .other_position = from->other_position};
}

sluice_status wk_events_each(const wk_spool *spool, const char *name, wk_event_fn *each, void *context, bool *ret_found,
                             sluice_error *err)
{
    list from;
    entry *entries = malloc(READ_ENTRIES * sizeof *entries);
    sluice_status status;

    if (entries == NULL)
        return pf_fail_memory(err);
    PF_GOTO(status, done, open_list(spool, name, &from, ret_found, err));
    for (uint64_t at = 0; at < from.count;) {
        uint32_t count = from.count - at < READ_ENTRIES ? (uint32_t)(from.count - at) : READ_ENTRIES;
        PF_GOTO(status, done, read_entries(&from, at, count, entries, err));
        for (uint32_t i = 0; i < count; i++) {
            wk_event event = event_of(&entries[i]);
            PF_GOTO(status, done, each(context, &event, err));
        }
        at += count;
    }
done:
    (void)pf_close(from.file, NULL); /* only read */
    free(entries);
    return status;
}

void wk_event_array_free(wk_event_array *array)
{
    free(array->items);
    *array = (wk_event_array){0};
}

static sluice_status append(wk_event_array *array, const entry *from, sluice_error *err)
{
    if (array->count == array->room) {
        uint64_t room = array->room ? array->room * 2 : 64;
        wk_event *items = realloc(array->items, room * sizeof *items);
        if (items == NULL)
            return pf_fail_memory(err);
        array->items = items;
        array->room = room;
    }
    array->items[array->count++] = event_of(from);
    return SLUICE_OK;
}

/* The first entry of [low, high) that is not before the place. */
static sluice_status lower_bound(const list *from, uint64_t low, uint64_t high, uint32_t item, uint64_t position,
                                 uint64_t *ret_at, sluice_error *err)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        entry one;
        PF_TRY(read_entries(from, middle, 1, &one, err));
        if (compare_places(item, position, &one) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_at = low;
    return SLUICE_OK;
}

static sluice_status find_in_piece(const list *from, uint64_t begin, uint64_t end, uint32_t item, uint64_t low,
                                   uint64_t high, wk_event_array *array, sluice_error *err)
{
    PF_TRY(lower_bound(from, begin, end, item, low, &begin, err));
    while (begin < end) {
        entry some[32];
        uint32_t count = end - begin < 32 ? (uint32_t)(end - begin) : 32;
        PF_TRY(read_entries(from, begin, count, some, err));
        for (uint32_t i = 0; i < count; i++) {
            if (some[i].item != item || some[i].position >= high)
                return SLUICE_OK;
            PF_TRY(append(array, &some[i], err));
        }
        begin += count;
    }
    return SLUICE_OK;
}

sluice_status wk_events_find(const wk_spool *spool, const char *name, uint32_t item, uint64_t low, uint64_t high,
                             wk_event_array *array, bool *ret_found, sluice_error *err)
{
    list from;
    uint64_t piece = piece_entries();
    sluice_status status;

    PF_GOTO(status, done, open_list(spool, name, &from, ret_found, err));
    for (uint64_t begin = 0; begin < from.count; begin += piece) {
        uint64_t end = from.count - begin < piece ? from.count : begin + piece;
        PF_GOTO(status, done, find_in_piece(&from, begin, end, item, low, high, array, err));
    }
done:
    (void)pf_close(from.file, NULL); /* only read */
    return status;
}
