/*
 * Opening a segment for reading from the mark on, and the index of what stands before it.
 *
 * The mark says where the record stands up to which everything was acknowledged: who only reads begins there, and reads
 * as much of a segment of a thousand records as of one of ten. Of the opening record he reads the manifest, which the
 * mark has a check of; its attachments have checks of their own. Nothing is believed because the mark says so: the
 * record is whole, of this segment and number, and CURRENT names the opening record; where anything does not fit, the
 * segment is opened and judged whole, as by those who write.
 *
 * Older generations are found backwards: a head of this segment (salt and check), whose record ends where a known one
 * begins and which that one names as its parent. So damage between the opening record and the mark is found by who
 * comes across it, as in earlier segments, by writers and by verify.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define MANIFEST_GUESS (16u * 1024u)  /* head and manifest of most opening records */
#define LOOK           (64u * 1024u)  /* read at the mark: the record and what stands behind it */
#define WINDOW         (256u * 1024u) /* read backwards at once */

/* ---- the place ---- */

st_mark_place st_segment_place(const st_segment *segment)
{
    st_mark_place place = {0};
    if (segment->entry_count == 0)
        return place;
    const st_entry *last = &segment->entries[segment->entry_count - 1];
    place.offset = last->offset;
    place.opening_check = segment->opening_check;
    memcpy(place.own, last->own.bytes, sizeof(place.own));
    return place;
}

/* ---- opening ---- */

/* Head and manifest of the opening record; false: they are not what CURRENT and the mark say. */
static sluice_status take_manifest(st_segment *segment, const pf_sha256 *opening, uint64_t check, bool *ret_good,
                                   sluice_error *err)
{
    st_head head;
    uint8_t *bytes = NULL;
    uint64_t length = segment->size < MANIFEST_GUESS ? segment->size : MANIFEST_GUESS;
    sluice_status status;

    *ret_good = false;
    PF_TRY(st_segment_allocate(length, &bytes, err));
    PF_GOTO(status, done, pf_read_exact(segment->file, 0, bytes, length, err));
    if (st_head_decode(bytes, &head) != ST_HEAD_VALID || head.kind != ST_RECORD_OPENING ||
        head.incarnation != segment->incarnation || !pf_sha256_equal(&head.own, opening) ||
        st_head_record_size(&head) > segment->size)
        goto done;
    uint64_t end = ST_RECORD_HEAD + (uint64_t)head.manifest_length;
    if (end > length) {
        free(bytes);
        bytes = NULL;
        length = (end + ST_RECORD_ALIGN - 1) & ~(uint64_t)(ST_RECORD_ALIGN - 1);
        PF_GOTO(status, done, st_segment_allocate(length, &bytes, err));
        PF_GOTO(status, done, pf_read_exact(segment->file, 0, bytes, length, err));
    }
    if (bytes[end - 1] != '\n' || pf_xxh64_of(bytes + ST_RECORD_HEAD, head.manifest_length) != check)
        goto done;
    PF_GOTO(status, done, st_segment_take_manifest(segment, &head, bytes, err));
    *ret_good = true;
done:
    free(bytes);
    return status;
}

/* The record at the mark as the first that is indexed. `bytes` hold `length` from there. */
static bool take_marked(st_segment *segment, const st_mark *mark, uint8_t *bytes, uint64_t length, st_head *ret_head)
{
    const st_expected place = st_segment_next(segment);
    return st_head_decode(bytes, ret_head) == ST_HEAD_VALID && ret_head->kind == ST_RECORD_GENERATION &&
           ret_head->number == mark->number && ret_head->incarnation == place.incarnation &&
           memcmp(ret_head->salt, place.salt, sizeof(place.salt)) == 0 &&
           memcmp(ret_head->own.bytes, mark->place.own, sizeof(mark->place.own)) == 0 &&
           st_head_record_size(ret_head) <= length && st_record_body_is_whole(ret_head, bytes);
}

/* Does a later record of this segment stand in the `length` bytes from its end on? */
static bool later_stands(const st_segment *segment, const uint8_t *bytes, uint64_t length)
{
    const st_expected next = st_segment_next(segment);
    st_head head;
    for (uint64_t at = 0; at + ST_RECORD_HEAD <= length; at += ST_RECORD_ALIGN)
        if (st_head_decode(bytes + at, &head) == ST_HEAD_VALID && head.number >= next.number &&
            head.incarnation == next.incarnation && memcmp(head.salt, next.salt, sizeof(next.salt)) == 0)
            return true;
    return false;
}

/* The record, and what follows it; false also when a later one stands behind what does not follow. */
static sluice_status begin_at_mark(st_segment *segment, const st_mark *mark, bool *ret_good, sluice_error *err)
{
    uint8_t *bytes = NULL;
    st_head head;
    uint64_t at = mark->place.offset, first = st_segment_first(segment), length;
    sluice_status status = SLUICE_OK;

    *ret_good = false;
    if (at < segment->opening_size || at % ST_RECORD_ALIGN != 0 || at >= segment->size || mark->number < first ||
        mark->number - first > (at - segment->opening_size) / ST_RECORD_ALIGN ||
        (mark->number > first) != (at > segment->opening_size))
        return SLUICE_OK;
    length = segment->size - at < LOOK ? segment->size - at : LOOK;
    PF_TRY(st_segment_allocate(length, &bytes, err));
    PF_GOTO(status, done, pf_read_exact(segment->file, at, bytes, length, err));
    if (st_head_decode(bytes, &head) == ST_HEAD_VALID && st_head_record_size(&head) > length &&
        st_head_record_size(&head) <= segment->size - at) { /* a large one */
        length = st_head_record_size(&head);
        free(bytes);
        bytes = NULL;
        PF_GOTO(status, done, st_segment_allocate(length, &bytes, err));
        PF_GOTO(status, done, pf_read_exact(segment->file, at, bytes, length, err));
    }
    if (!take_marked(segment, mark, bytes, length, &head))
        goto done;
    segment->end = at;
    segment->before = head.parent;
    PF_GOTO(status, done, st_segment_note(segment, &head, err));
    uint64_t behind = length - st_head_record_size(&head);
    PF_GOTO(status, done, st_segment_follow(segment, err));
    *ret_good = segment->entry_count > 1 || !later_stands(segment, bytes + st_head_record_size(&head), behind);
done:
    free(bytes);
    return status;
}

sluice_status st_segment_open_from(pf_volume *volume, const char *folder, const st_mark *mark, uint64_t incarnation,
                                   const pf_sha256 *opening, st_segment *ret_segment, bool *ret_opened,
                                   sluice_error *err)
{
    st_segment segment = {.number = mark->segment, .incarnation = incarnation, .from_mark = true};
    sluice_status status;

    *ret_opened = false;
    if (mark->place.offset == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, st_segment_open_file(volume, folder, PF_READ, &segment, err));
    PF_GOTO(status, done, take_manifest(&segment, opening, mark->place.opening_check, ret_opened, err));
    if (*ret_opened)
        PF_GOTO(status, done, begin_at_mark(&segment, mark, ret_opened, err));
    if (*ret_opened) {
        *ret_segment = segment;
        segment = (st_segment){0};
    }
done:
    st_segment_close(&segment);
    return status;
}

/* ---- backwards ---- */

bool st_segment_lacks(const st_segment *segment, uint64_t number)
{
    return segment->entry_count > 0 && number < segment->entries[0].number && number >= st_segment_first(segment);
}

typedef struct found {
    st_entry *items; /* newest first */
    size_t count, capacity;
} found;

static sluice_status find_one(found *list, const st_entry *entry, sluice_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        st_entry *items = realloc(list->items, capacity * sizeof(*items));
        if (!items)
            return pf_fail_memory(err);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *entry;
    return SLUICE_OK;
}

/* Those of the window [from, until) that join; *until and *parent move back to the first of them. */
static sluice_status find_in_window(const st_segment *segment, const uint8_t *bytes, uint64_t from, uint64_t *until,
                                    uint64_t *number, pf_sha256 *parent, found *list, sluice_error *err)
{
    st_head head;
    for (uint64_t at = *until; at >= from + ST_RECORD_ALIGN;) {
        at -= ST_RECORD_ALIGN;
        if (st_head_decode(bytes + (at - from), &head) != ST_HEAD_VALID || head.kind != ST_RECORD_GENERATION ||
            head.incarnation != segment->incarnation || memcmp(head.salt, segment->salt, sizeof(segment->salt)) != 0 ||
            head.number + 1 != *number || st_head_record_size(&head) != *until - at ||
            !pf_sha256_equal(&head.own, parent))
            continue;
        const st_entry entry = {
            .number = head.number, .offset = at, .size = st_head_record_size(&head), .own = head.own};
        PF_TRY(find_one(list, &entry, err));
        *until = at;
        *number = head.number;
        *parent = head.parent;
    }
    return SLUICE_OK;
}

static sluice_status put_in_front(st_segment *segment, const found *list, const pf_sha256 *before, sluice_error *err)
{
    st_entry *entries = realloc(segment->entries, (segment->entry_count + list->count + 1) * sizeof(*entries));
    if (!entries)
        return pf_fail_memory(err);
    memmove(entries + list->count, entries, segment->entry_count * sizeof(*entries));
    for (size_t i = 0; i < list->count; i++)
        entries[i] = list->items[list->count - 1 - i];
    segment->entries = entries;
    segment->entry_count += list->count;
    segment->entry_capacity = segment->entry_count + 1;
    segment->before = *before;
    return SLUICE_OK;
}

/* The first record is where the opening record ends, and continues what that continues. */
static bool is_joined(const st_segment *segment)
{
    const st_entry *first = &segment->entries[0];
    return first->offset == segment->opening_size &&
           (segment->repeats ? pf_sha256_equal(&first->own, &segment->base_digest)
                             : pf_sha256_equal(&segment->before, &segment->base_digest));
}

sluice_status st_segment_index_back(st_segment *segment, uint64_t number, sluice_error *err)
{
    found list = {0};
    uint8_t *bytes = NULL;
    uint64_t width = WINDOW;
    sluice_status status = SLUICE_OK;

    if (!st_segment_lacks(segment, number))
        return SLUICE_OK;
    uint64_t until = segment->entries[0].offset, have = segment->entries[0].number;
    pf_sha256 parent = segment->before;
    while (have > number) {
        uint64_t room = until - segment->opening_size, from = until - (room < width ? room : width), was = until;
        free(bytes);
        bytes = NULL;
        if (room == 0)
            break;
        PF_GOTO(status, done, st_segment_allocate(until - from, &bytes, err));
        PF_GOTO(status, done, pf_read_exact(segment->file, from, bytes, until - from, err));
        PF_GOTO(status, done, find_in_window(segment, bytes, from, &until, &have, &parent, &list, err));
        if (until == was && from == segment->opening_size)
            break;
        width = until == was ? 4 * width : WINDOW; /* a record that is larger than the window */
    }
    if (list.count > 0)
        PF_GOTO(status, done, put_in_front(segment, &list, &parent, err));
    if (have > number || (have == st_segment_first(segment) && !is_joined(segment)))
        status = st_segment_corrupt(segment, "a record is damaged, its successor whole", err);
done:
    free(bytes);
    free(list.items);
    return status;
}
