/*
 * One segment of a log: a preallocated file that begins with an opening record and goes on with generation records,
 * each on a boundary of ST_RECORD_ALIGN, then zeros.
 *
 * The end of the chain is where the next record is not whole. What stands there is nothing, whatever it is, unless a
 * record of this segment with a higher number stands behind it: nobody appends behind a record that is not synced, so
 * that is damage (CORRUPT). A publisher may be at work while we read, and a long read sees its older and its newer
 * bytes; so damage is declared only after the place was read again and did not move.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "platform/clock.h"
#include "platform/sabotage.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLLOWED_MAX 65536u
#define READ_MAX     (3ull * ST_RECORD_MAX) /* no segment of ours is larger: two records and the room of one */

void st_segment_path(const char *folder, uint64_t number, char ret_path[128])
{
    int length = snprintf(ret_path, 128, "%s/log/%" PRIu64 ".seg", folder, number);
    PF_ALWAYS(length > 0 && length < 128);
}

uint64_t st_segment_room(uint64_t number)
{
    uint64_t room = ST_SEGMENT_FIRST;
    for (uint64_t i = 1; i < number && room < ST_SEGMENT_MAX; i++)
        room *= 2;
    return room;
}

void st_segment_close(st_segment *segment)
{
    (void)pf_close(segment->file, NULL); /* what had to be durable was synced; nothing rides on close */
    free(segment->earlier);
    free(segment->entries);
    for (uint32_t i = 0; i < ST_FOLLOWED; i++)
        free(segment->followed[i].bytes);
    *segment = (st_segment){0};
}

uint64_t st_segment_end_number(const st_segment *segment)
{
    return segment->entry_count ? segment->entries[segment->entry_count - 1].number : segment->base;
}

const pf_sha256 *st_segment_end_digest(const st_segment *segment)
{
    return segment->entry_count ? &segment->entries[segment->entry_count - 1].own : &segment->base_digest;
}

uint64_t st_segment_first(const st_segment *segment)
{
    return segment->repeats ? segment->base : segment->base + 1;
}

const st_entry *st_segment_find(const st_segment *segment, uint64_t number)
{
    if (segment->entry_count == 0 || number < segment->entries[0].number ||
        number - segment->entries[0].number >= segment->entry_count)
        return NULL;
    return &segment->entries[number - segment->entries[0].number];
}

st_expected st_segment_next(const st_segment *segment)
{
    st_expected next = {.kind = ST_RECORD_GENERATION,
                        .number = st_segment_end_number(segment) + 1,
                        .incarnation = segment->incarnation,
                        .parent = *st_segment_end_digest(segment)};
    memcpy(next.salt, segment->salt, sizeof(next.salt));
    return next;
}

sluice_status st_segment_reserve(st_segment *segment, sluice_error *err)
{
    if (segment->entry_count < segment->entry_capacity)
        return SLUICE_OK;
    size_t capacity = segment->entry_capacity ? 2 * segment->entry_capacity : 16;
    st_entry *entries = realloc(segment->entries, capacity * sizeof(*entries));
    if (!entries)
        return pf_fail_memory(err);
    segment->entries = entries;
    segment->entry_capacity = capacity;
    return SLUICE_OK;
}

sluice_status st_segment_note(st_segment *segment, const st_head *head, sluice_error *err)
{
    PF_TRY(st_segment_reserve(segment, err));
    segment->entries[segment->entry_count++] =
        (st_entry){.number = head->number, .offset = segment->end, .size = st_head_record_size(head), .own = head->own};
    segment->end += st_head_record_size(head);
    return SLUICE_OK;
}

sluice_status st_segment_corrupt(const st_segment *segment, const char *what, sluice_error *err)
{
    sluice_status status = pf_fail(err, SLUICE_CORRUPT, "log segment %" PRIu64 ": %s", segment->number, what);
    pf_details(err, "{\"incarnation\":\"%" PRIu64 "\",\"segment\":\"%" PRIu64 "\",\"generation\":\"%" PRIu64 "\"}",
               segment->incarnation, segment->number, st_segment_end_number(segment));
    pf_hint(err, "`sluice verify GRAPH` names what is damaged; nothing was changed");
    return status;
}

static sluice_status newer(sluice_error *err)
{
    return pf_fail(err, SLUICE_UNSUPPORTED_FORMAT, "a log record has a newer format version");
}

static sluice_status read_at(const st_segment *segment, st_source source, uint64_t offset, uint8_t *bytes,
                             uint64_t length, sluice_error *err)
{
    return source == ST_FROM_MEDIUM ? pf_read_medium(segment->file, offset, bytes, length, err)
                                    : pf_read_exact(segment->file, offset, bytes, length, err);
}

/* Room for a record, aligned so that its attachments are aligned too. */
sluice_status st_segment_allocate(uint64_t size, uint8_t **ret_bytes, sluice_error *err)
{
    PF_ASSERT(size > 0 && size % ST_RECORD_ALIGN == 0);
    *ret_bytes = aligned_alloc(ST_RECORD_ALIGN, size);
    return *ret_bytes ? SLUICE_OK : pf_fail_memory(err);
}

/* ---- following ---- */

/* Nothing behind it counts. (The record that a healed segment repeats is one of its own.) */
static bool is_at_cap(const st_segment *segment)
{
    bool lacking = segment->repeats && segment->entry_count == 0;
    return segment->capped && !lacking && st_segment_end_number(segment) >= segment->cap;
}

/* A record that continues this segment: the repeated base right behind the opening record, or the next generation. */
static bool head_continues(const st_segment *segment, const st_head *head)
{
    st_expected next = st_segment_next(segment);
    if (segment->repeats && segment->entry_count == 0) {
        next.number = segment->base;
        next.parent = head->parent;
        return st_head_fits(head, &next) && pf_sha256_equal(&head->own, &segment->base_digest);
    }
    return st_head_fits(head, &next);
}

/* Takes the record at the end when it is whole in `bytes`, which hold `length` bytes from there. */
static sluice_status take_record(st_segment *segment, uint8_t *bytes, uint64_t length, bool *ret_taken,
                                 sluice_error *err)
{
    st_head head;
    *ret_taken = false;
    if (length < ST_RECORD_ALIGN || is_at_cap(segment))
        return SLUICE_OK;
    switch (st_head_decode(bytes, &head)) {
    case ST_HEAD_NONE:
        return SLUICE_OK;
    case ST_HEAD_NEWER:
        return newer(err);
    case ST_HEAD_VALID:
        break;
    }
    if (!head_continues(segment, &head) || st_head_record_size(&head) > length ||
        !st_record_body_is_whole(&head, bytes))
        return SLUICE_OK;
    PF_TRY(st_segment_note(segment, &head, err));
    *ret_taken = true;
    return SLUICE_OK;
}

/* Takes over the bytes of a whole record, so that who asks for it next need not read it again. */
static void keep_followed(st_segment *segment, uint8_t *bytes, uint64_t offset)
{
    struct st_followed *place = &segment->followed[segment->next_followed++ % ST_FOLLOWED];
    free(place->bytes);
    *place = (struct st_followed){bytes, offset};
}

/* Does the block at `offset` still stand? A dead publisher's torn record may be overwritten while it is read: its head
 * and the rest of the next one, which is the same where a write is tried again, would make a whole record that never
 * was. Writing goes upward: a head that is there after the rest was read is the head of that rest. */
static sluice_status block_stays(const st_segment *segment, uint64_t offset, const uint8_t *block, bool *ret_stays,
                                 sluice_error *err)
{
    uint8_t again[ST_RECORD_ALIGN];
    PF_TRY(read_at(segment, ST_FROM_CACHE, offset, again, sizeof(again), err));
    *ret_stays = memcmp(again, block, sizeof(again)) == 0;
    return SLUICE_OK;
}

/* Reads the record at the end, as long as its head says, and takes it when it is whole. */
static sluice_status read_record(st_segment *segment, bool *ret_taken, bool *ret_zero, sluice_error *err)
{
    uint8_t block[ST_RECORD_ALIGN];
    uint8_t *bytes = NULL;
    st_head head;
    uint64_t left = segment->size - segment->end;
    sluice_status status;

    *ret_taken = false;
    *ret_zero = true;
    if (left < ST_RECORD_ALIGN || is_at_cap(segment))
        return SLUICE_OK;
    PF_TRY(read_at(segment, ST_FROM_CACHE, segment->end, block, sizeof(block), err));
    *ret_zero = st_bytes_are_zero(block, sizeof(block));
    if (st_head_decode(block, &head) != ST_HEAD_VALID || st_head_record_size(&head) > left)
        return take_record(segment, block, 0, ret_taken, err);
    uint64_t size = st_head_record_size(&head);
    PF_TRY(st_segment_allocate(size, &bytes, err));
    memcpy(bytes, block, sizeof(block));
    PF_GOTO(status, done,
            read_at(segment, ST_FROM_CACHE, segment->end + sizeof(block), bytes + sizeof(block), size - sizeof(block),
                    err));
    uint64_t offset = segment->end;
    bool stays = true;
    if (size > sizeof(block))
        PF_GOTO(status, done, block_stays(segment, offset, block, &stays, err));
    if (!stays) { /* it is followed the next time */
        *ret_zero = false;
        goto done;
    }
    PF_GOTO(status, done, take_record(segment, bytes, size, ret_taken, err));
    if (*ret_taken && size <= FOLLOWED_MAX) {
        keep_followed(segment, bytes, offset);
        bytes = NULL;
    }
done:
    free(bytes);
    return status;
}

/* Takes all whole records from the end on. *ret_zero: zeros stand behind the last. */
static sluice_status advance(st_segment *segment, bool *ret_zero, sluice_error *err)
{
    bool taken;
    do
        PF_TRY(read_record(segment, &taken, ret_zero, err));
    while (taken);
    return SLUICE_OK;
}

/* Does a record of this segment stand behind what is not one? `bytes` hold all from the end on. */
static bool successor_stands(const st_segment *segment, const uint8_t *bytes)
{
    st_expected next = st_segment_next(segment);
    st_head head;
    uint64_t left = segment->size - segment->end;
    for (uint64_t at = ST_RECORD_ALIGN; at + ST_RECORD_HEAD <= left; at += ST_RECORD_ALIGN)
        if (st_head_decode(bytes + at, &head) == ST_HEAD_VALID && head.number >= next.number &&
            head.incarnation == next.incarnation && memcmp(head.salt, next.salt, sizeof(next.salt)) == 0)
            return true;
    return false;
}

/* Judges what stands behind the end, given as `bytes` read a moment ago (all from the end on). Damage is believed when
 * the same place, read again, is still no record. */
static sluice_status judge_rest(st_segment *segment, uint8_t *bytes, st_source source, sluice_error *err)
{
    for (;;) {
        uint64_t before = segment->end;
        bool zero;
        bool lacking = segment->repeats && segment->entry_count == 0;
        if (is_at_cap(segment) || (!lacking && !successor_stands(segment, bytes)))
            return SLUICE_OK;
        if (source == ST_FROM_CACHE)
            PF_TRY(advance(segment, &zero, err));
        if (segment->end == before)
            return st_segment_corrupt(
                segment, lacking ? "the record that it repeats is damaged" : "a record is damaged, its successor whole",
                err);
        PF_TRY(read_at(segment, source, segment->end, bytes, segment->size - segment->end, err));
    }
}

sluice_status st_segment_follow(st_segment *segment, sluice_error *err)
{
    bool zero;
    uint8_t *bytes = NULL;
    sluice_status status;

    PF_TRY(advance(segment, &zero, err));
    if (zero)
        return SLUICE_OK;
    uint64_t left = segment->size - segment->end;
    PF_TRY(st_segment_allocate(left, &bytes, err));
    PF_GOTO(status, done, read_at(segment, ST_FROM_CACHE, segment->end, bytes, left, err));
    PF_GOTO(status, done, judge_rest(segment, bytes, ST_FROM_CACHE, err));
done:
    free(bytes);
    return status;
}

/* ---- opening ---- */

sluice_status st_segment_take_manifest(st_segment *segment, const st_head *head, uint8_t *bytes, sluice_error *err)
{
    st_record record;
    size_t line;
    st_record_view(head, segment->number, 0, bytes, false, &record);
    PF_TRY(st_opening_line_decode(record.manifest, record.manifest_length, segment, &line, err));
    memcpy(segment->salt, head->salt, sizeof(segment->salt));
    segment->opening = head->own;
    segment->opening_check = pf_xxh64_of(record.manifest, record.manifest_length);
    segment->base = head->number;
    segment->base_digest = head->parent;
    segment->opening_size = st_head_record_size(head);
    segment->end = segment->opening_size;
    return SLUICE_OK;
}

/* Checks the opening record in `bytes` (`length` of them) and takes over what it says. */
static sluice_status take_opening(st_segment *segment, uint8_t *bytes, uint64_t length, const pf_sha256 *opening,
                                  sluice_error *err)
{
    st_head head;

    switch (st_head_decode(bytes, &head)) {
    case ST_HEAD_NONE:
        return st_segment_corrupt(segment, "its opening record is damaged", err);
    case ST_HEAD_NEWER:
        return newer(err);
    case ST_HEAD_VALID:
        break;
    }
    if (head.kind != ST_RECORD_OPENING || head.incarnation != segment->incarnation ||
        !pf_sha256_equal(&head.own, opening))
        return st_segment_corrupt(segment, "its opening record is another one", err);
    if (st_head_record_size(&head) > length || !st_record_body_is_whole(&head, bytes))
        return st_segment_corrupt(segment, "its opening record is damaged", err);
    return st_segment_take_manifest(segment, &head, bytes, err);
}

sluice_status st_segment_open_file(pf_volume *volume, const char *folder, pf_access access, st_segment *segment,
                                   sluice_error *err)
{
    char path[128];
    pf_stat stat;
    st_segment_path(folder, segment->number, path);
    PF_TRY(pf_open(volume, path, access, &segment->file, err));
    PF_TRY(pf_file_stat(segment->file, &stat, err));
    if (stat.size < ST_RECORD_ALIGN || stat.size % ST_RECORD_ALIGN != 0 || stat.size > READ_MAX)
        return st_segment_corrupt(segment, "its size is impossible", err);
    segment->size = stat.size;
    return SLUICE_OK;
}

/* `segment` says which one, and how far. */
/* The last record of those in `bytes`, which were read all at once. */
static sluice_status drop_unless_it_stays(st_segment *segment, const uint8_t *bytes, sluice_error *err)
{
    bool stays = true, zero;
    if (segment->entry_count == 0 || segment->entries[segment->entry_count - 1].size == ST_RECORD_ALIGN)
        return SLUICE_OK;
    uint64_t offset = segment->entries[segment->entry_count - 1].offset;
    PF_TRY(block_stays(segment, offset, bytes + offset, &stays, err));
    if (stays)
        return SLUICE_OK;
    segment->entry_count--;
    segment->end = offset;
    return advance(segment, &zero, err);
}

static sluice_status open_whole(pf_volume *volume, const char *folder, st_segment segment, const pf_sha256 *opening,
                                pf_access access, st_source source, st_segment *ret_segment, sluice_error *err)
{
    uint8_t *bytes = NULL;
    bool taken;
    sluice_status status;

    PF_GOTO(status, done, st_segment_open_file(volume, folder, access, &segment, err));
    PF_GOTO(status, done, st_segment_allocate(segment.size, &bytes, err));
    PF_GOTO(status, done, read_at(&segment, source, 0, bytes, segment.size, err));
    PF_GOTO(status, done, take_opening(&segment, bytes, segment.size, opening, err));
    do
        PF_GOTO(status, done, take_record(&segment, bytes + segment.end, segment.size - segment.end, &taken, err));
    while (taken);
    if (source == ST_FROM_CACHE)
        PF_GOTO(status, done, drop_unless_it_stays(&segment, bytes, err));
    PF_GOTO(status, done, judge_rest(&segment, bytes + segment.end, source, err));
    *ret_segment = segment;
    segment = (st_segment){0};
done:
    free(bytes);
    st_segment_close(&segment);
    return status;
}

sluice_status st_segment_open(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                              const pf_sha256 *opening, pf_access access, st_source source, st_segment *ret_segment,
                              sluice_error *err)
{
    st_segment segment = {.number = number, .incarnation = incarnation};
    return open_whole(volume, folder, segment, opening, access, source, ret_segment, err);
}

sluice_status st_segment_open_until(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                                    const pf_sha256 *opening, uint64_t cap, pf_access access, st_segment *ret_segment,
                                    sluice_error *err)
{
    st_segment segment = {.number = number, .incarnation = incarnation, .capped = true, .cap = cap};
    return open_whole(volume, folder, segment, opening, access, ST_FROM_CACHE, ret_segment, err);
}

static sluice_status read_opening_bytes(st_segment *segment, uint8_t **ret_bytes, uint64_t *ret_size, sluice_error *err)
{
    uint8_t block[ST_RECORD_HEAD];
    st_head head;
    PF_TRY(read_at(segment, ST_FROM_CACHE, 0, block, sizeof(block), err));
    st_head_state state = st_head_decode(block, &head);
    if (state == ST_HEAD_NEWER)
        return newer(err);
    if (state != ST_HEAD_VALID || st_head_record_size(&head) > segment->size)
        return st_segment_corrupt(segment, "its opening record is damaged", err);
    *ret_size = st_head_record_size(&head);
    PF_TRY(st_segment_allocate(*ret_size, ret_bytes, err));
    return read_at(segment, ST_FROM_CACHE, 0, *ret_bytes, *ret_size, err);
}

sluice_status st_segment_index(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                               const pf_sha256 *opening, uint64_t last, st_segment *ret_segment, sluice_error *err)
{
    st_segment segment = {.number = number, .incarnation = incarnation};
    uint8_t *bytes = NULL;
    uint8_t block[ST_RECORD_HEAD];
    uint64_t size = 0;
    st_head head;
    sluice_status status;

    PF_GOTO(status, done, st_segment_open_file(volume, folder, PF_READ, &segment, err));
    PF_GOTO(status, done, read_opening_bytes(&segment, &bytes, &size, err));
    PF_GOTO(status, done, take_opening(&segment, bytes, size, opening, err));
    while ((st_segment_end_number(&segment) < last ||
            (segment.repeats && segment.entry_count == 0 && segment.base == last)) &&
           segment.size - segment.end >= ST_RECORD_ALIGN) {
        PF_GOTO(status, done, read_at(&segment, ST_FROM_CACHE, segment.end, block, sizeof(block), err));
        if (st_head_decode(block, &head) != ST_HEAD_VALID || !head_continues(&segment, &head) ||
            st_head_record_size(&head) > segment.size - segment.end)
            break;
        PF_GOTO(status, done, st_segment_note(&segment, &head, err));
    }
    *ret_segment = segment;
    segment = (st_segment){0};
done:
    free(bytes);
    st_segment_close(&segment);
    return status;
}

/* ---- a damaged one ---- */

/* The next head of this segment at or behind `at` with a number above the end's. */
static bool find_head(const st_segment *segment, const uint8_t *bytes, uint64_t at, uint64_t *ret_at, st_head *ret_head)
{
    st_expected next = st_segment_next(segment);
    for (; at + ST_RECORD_ALIGN <= segment->size; at += ST_RECORD_ALIGN)
        if (st_head_decode(bytes + at, ret_head) == ST_HEAD_VALID && ret_head->kind == ST_RECORD_GENERATION &&
            ret_head->incarnation == next.incarnation && memcmp(ret_head->salt, next.salt, sizeof(next.salt)) == 0 &&
            ret_head->number >= next.number &&
            ret_head->number - next.number <= (at - segment->end) / ST_RECORD_ALIGN &&
            st_head_record_size(ret_head) <= segment->size - at) {
            *ret_at = at;
            return true;
        }
    return false;
}

/* Records whose heads are lost have a place in the index all the same: reading them finds no record there. */
static sluice_status note_lost(st_segment *segment, uint64_t until, sluice_error *err)
{
    while (st_segment_end_number(segment) + 1 < until) {
        PF_TRY(st_segment_reserve(segment, err));
        uint64_t number = st_segment_end_number(segment) + 1;
        segment->entries[segment->entry_count++] =
            (st_entry){.number = number, .offset = segment->end, .size = ST_RECORD_ALIGN};
    }
    return SLUICE_OK;
}

sluice_status st_segment_open_damaged(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                                      st_segment *ret_segment, uint64_t *ret_seen, sluice_error *err)
{
    st_segment segment = {.number = number, .incarnation = incarnation, .capped = true};
    char path[128];
    uint8_t *bytes = NULL;
    uint64_t at;
    pf_stat stat;
    st_head head;
    sluice_status status;

    st_segment_path(folder, number, path);
    PF_TRY(pf_open(volume, path, PF_READ, &segment.file, err));
    PF_GOTO(status, done, pf_file_stat(segment.file, &stat, err));
    segment.size = stat.size - stat.size % ST_RECORD_ALIGN;
    if (segment.size == 0 || segment.size > READ_MAX) {
        status = st_segment_corrupt(&segment, "its size is impossible", err);
        goto done;
    }
    PF_GOTO(status, done, st_segment_allocate(segment.size, &bytes, err));
    PF_GOTO(status, done, read_at(&segment, ST_FROM_CACHE, 0, bytes, segment.size, err));
    if (st_head_decode(bytes, &head) != ST_HEAD_VALID) {
        status = st_segment_corrupt(&segment, "its opening record is damaged", err);
        goto done;
    }
    PF_GOTO(status, done, take_opening(&segment, bytes, segment.size, &head.own, err));
    at = segment.end;
    while (find_head(&segment, bytes, at, &at, &head)) {
        bool repeated = segment.repeats && segment.entry_count == 0 && head.number == segment.base + 1;
        segment.end = at;
        if (repeated) /* the record that it repeats is lost; its generation is told by the opening record */
            segment.repeats = false;
        PF_GOTO(status, done, note_lost(&segment, head.number, err));
        PF_GOTO(status, done, st_segment_note(&segment, &head, err));
        at = segment.end;
    }
    *ret_seen = st_segment_end_number(&segment);
    while (segment.entry_count > 0) { /* the newest that is whole is its end */
        st_record record = {0};
        const st_entry *last = &segment.entries[segment.entry_count - 1];
        if (st_segment_read_entry(&segment, last, &record, NULL) == SLUICE_OK) {
            st_record_free(&record);
            break;
        }
        segment.entry_count--;
    }
    segment.cap = st_segment_end_number(&segment);
    segment.repeats = segment.repeats && segment.entry_count > 0;
    *ret_segment = segment;
    segment = (st_segment){0};
    status = SLUICE_OK;
done:
    free(bytes);
    st_segment_close(&segment);
    return status;
}

/* ---- reading ---- */

/* The record of ours that begins at `offset`: the opening record, or one of the entries. */
static bool entry_at(const st_segment *segment, uint64_t offset, st_entry *ret_entry)
{
    if (offset == 0) {
        *ret_entry = (st_entry){.number = segment->base, .size = segment->opening_size, .own = segment->opening};
        return true;
    }
    size_t low = 0, high = segment->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (segment->entries[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == segment->entry_count || segment->entries[low].offset != offset)
        return false;
    *ret_entry = segment->entries[low];
    return true;
}

static bool is_whole_entry(const st_entry *entry, uint8_t *bytes)
{
    st_head head;
    return st_head_decode(bytes, &head) == ST_HEAD_VALID && head.number == entry->number &&
           pf_sha256_equal(&head.own, &entry->own) && st_head_record_size(&head) == entry->size &&
           st_record_body_is_whole(&head, bytes);
}

sluice_status st_segment_check_bytes(const st_segment *segment, uint64_t from, uint8_t *bytes, uint64_t length,
                                     sluice_error *err)
{
    st_entry entry;
    for (uint64_t at = 0; at < length; at += entry.size)
        if (!entry_at(segment, from + at, &entry) || entry.size > length - at || !is_whole_entry(&entry, bytes + at))
            return st_segment_corrupt(segment, "a record is damaged", err);
    return SLUICE_OK;
}

sluice_status st_segment_read_entry(const st_segment *segment, const st_entry *entry, st_record *ret_record,
                                    sluice_error *err)
{
    uint8_t *bytes;
    st_head head;
    sluice_status status;

    if (segment->collected)
        return st_lineage_read_entry(segment, entry, ret_record, err);
    PF_TRY(st_segment_allocate(entry->size, &bytes, err));
    for (int attempt = 0; attempt < 2;
         attempt++) { /* the second time, what a settling writer was writing has arrived */
        PF_GOTO(status, failed, read_at(segment, ST_FROM_CACHE, entry->offset, bytes, entry->size, err));
        if (is_whole_entry(entry, bytes)) {
            (void)st_head_decode(bytes, &head);
            st_record_view(&head, segment->number, entry->offset, bytes, true, ret_record);
            return SLUICE_OK;
        }
    }
    status = st_segment_corrupt(segment, "a record is damaged", err);
failed:
    free(bytes);
    return status;
}

bool st_segment_take_followed(st_segment *segment, const st_entry *entry, st_record *ret_record)
{
    st_head head;
    for (uint32_t i = 0; i < ST_FOLLOWED; i++) {
        struct st_followed *place = &segment->followed[i];
        if (!place->bytes || place->offset != entry->offset || st_head_decode(place->bytes, &head) != ST_HEAD_VALID ||
            !pf_sha256_equal(&head.own, &entry->own))
            continue;
        st_record_view(&head, segment->number, entry->offset, place->bytes, true, ret_record);
        place->bytes = NULL;
        return true;
    }
    return false;
}

sluice_status st_segment_read_opening(const st_segment *segment, st_record *ret_record, sluice_error *err)
{
    st_entry entry = {.number = segment->base, .offset = 0, .size = segment->opening_size, .own = segment->opening};
    PF_TRY(st_segment_read_entry(segment, &entry, ret_record, err));
    const char *end = memchr(ret_record->manifest, '\n', ret_record->manifest_length);
    PF_ASSERT(end);
    size_t line = (size_t)(end - ret_record->manifest) + 1;
    ret_record->manifest += line;
    ret_record->manifest_length -= line;
    return SLUICE_OK;
}

/* ---- making ---- */

/* The opening record of the plan, and behind it the record that the plan brings along. */
static sluice_status encode_start(const st_segment_plan *plan, st_segment *segment, pf_buffer *bytes, sluice_error *err)
{
    pf_buffer manifest = {0}, opening = {0};
    st_expected place = {
        .kind = ST_RECORD_OPENING, .number = plan->base, .incarnation = plan->incarnation, .parent = plan->base_digest};
    sluice_status status;

    memcpy(place.salt, segment->salt, sizeof(place.salt));
    PF_GOTO(status, done, st_opening_line_encode(plan->number, &plan->line, &manifest, err));
    PF_GOTO(status, done, pf_buffer_append(&manifest, plan->manifest->data, plan->manifest->length, err));
    PF_GOTO(status, done,
            st_record_encode(&place, manifest.data, manifest.length, plan->attachments->data, plan->attachments->length,
                             &opening, &segment->opening, err));
    segment->opening_size = opening.length;
    segment->opening_check = pf_xxh64_of(manifest.data, manifest.length);
    PF_GOTO(status, done, pf_buffer_append(bytes, opening.data, opening.length, err));
    if (plan->behind) {
        PF_GOTO(status, done, pf_buffer_append(bytes, plan->behind, plan->behind_size, err));
        st_record_resalt(bytes->data + segment->opening_size, segment->salt);
    }
done:
    pf_buffer_free(&manifest);
    pf_buffer_free(&opening);
    return status;
}

static sluice_status create_file(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    pf_stat stat;
    if (pf_stat_path(volume, path, &stat, NULL) ==
        SLUICE_OK) /* a switch was cut short; CURRENT never named this file */
        PF_TRY(pf_remove(volume, path, err));
    return pf_create(volume, path, ret_file, err);
}

sluice_status st_segment_make(pf_volume *volume, const char *folder, const st_segment_plan *plan,
                              st_segment *ret_segment, sluice_error *err)
{
    st_segment segment = {.number = plan->number,
                          .incarnation = plan->incarnation,
                          .base = plan->base,
                          .base_digest = plan->base_digest,
                          .repeats = plan->line.repeats,
                          .oldest = plan->line.oldest};
    char path[128], log_folder[128];
    pf_buffer bytes = {0};
    st_head head;
    sluice_status status;

    pf_random_bytes(segment.salt, sizeof(segment.salt));
    st_segment_path(folder, plan->number, path);
    (void)snprintf(log_folder, sizeof(log_folder), "%s/log", folder);
    PF_GOTO(status, done, encode_start(plan, &segment, &bytes, err));
    uint64_t room = st_segment_room(plan->number);
    if (room < plan->room)
        room = plan->room;
    segment.size = segment.opening_size + room;
    segment.end = segment.opening_size;
    segment.earlier = calloc(plan->line.earlier_count ? plan->line.earlier_count : 1, sizeof(*segment.earlier));
    if (!segment.earlier) {
        status = pf_fail_memory(err);
        goto done;
    }
    if (plan->line.earlier_count > 0)
        memcpy(segment.earlier, plan->line.earlier, plan->line.earlier_count * sizeof(*segment.earlier));
    segment.earlier_count = plan->line.earlier_count;
    if (plan->behind) {
        st_head_state state = st_head_decode(bytes.data + segment.opening_size, &head);
        PF_ALWAYS(state == ST_HEAD_VALID);
        PF_GOTO(status, done, st_segment_note(&segment, &head, err));
    }
    PF_GOTO(status, done, create_file(volume, path, &segment.file, err));
    PF_GOTO(status, done, pf_zero_fill(segment.file, segment.size, err));
    PF_GOTO(status, done, pf_write(segment.file, 0, bytes.data, bytes.length, err));
    if (!PF_SABOTAGE(opening_not_synced))
        PF_GOTO(status, done, pf_sync(segment.file, err));
    if (!PF_SABOTAGE(segment_name_not_synced))
        PF_GOTO(status, done, pf_sync_dir(volume, log_folder, err));
    *ret_segment = segment;
    segment = (st_segment){0};
done:
    if (segment.file)
        (void)pf_remove(volume, path, NULL); /* gives the space back; a file that stays is in nobody's way */
    st_segment_close(&segment);
    pf_buffer_free(&bytes);
    return status;
}
