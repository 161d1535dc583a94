/*
 * What stays of a segment that collection took: F/lineage/<number>, one file a segment, immutable (docs/format.md
 * "Lineage").
 *
 * Head (256 bytes, little-endian): 0 magic "SLUICEL1" · 8 u64 version · 16 u64 incarnation · 24 u64 segment · 32 u64
 * base · 40 base digest[32] · 72 opening digest[32] · 104 u64 oldest · 112 u64 repeats · 120 u64 earlier count · 128
 * u64 records · 136 u64 body length · 144 SHA-256 of the body[32] · 176 XXH3-64 of the head before it · rest zero.
 * Body: the earlier segments as the opening record named them (48 bytes each: number, first, opening digest), then per
 * generation its number, own digest[32], manifest length, and the manifest without what only its segment could give.
 *
 * Crash rule: whole and synced, its name too, before the segment's own file moves; made again when it was cut short
 * (then only a temporary name is there). A segment that has neither is missing, and that is corruption.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "store/format/document.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_SIZE    256u
#define VERSION      1u
#define AT_CHECK     176u
#define EARLIER_SIZE 48u
#define ENTRY_HEAD   48u
#define MANIFEST_MAX (64u * 1024u * 1024u)
#define BODY_MAX     (UINT64_C(256) * 1024u * 1024u)

static const uint8_t magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'L', '1'};

static void lineage_path(const char *folder, uint64_t number, char path[128])
{
    int length = snprintf(path, 128, "%s/lineage/%" PRIu64, folder, number);
    PF_ALWAYS(length > 0 && length < 128);
}

static sluice_status damaged(uint64_t number, uint64_t incarnation, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT,
                   "the lineage of log segment %" PRIu64 " of branch incarnation %" PRIu64 " is damaged", number,
                   incarnation);
}

/* ---- reading ---- */

static bool decode_head(const uint8_t *head, st_segment *segment, uint64_t *ret_records, uint64_t *ret_body,
                        pf_sha256 *ret_digest)
{
    if (memcmp(head, magic, sizeof(magic)) != 0 || st_get64(head + AT_CHECK) != pf_xxh64_of(head, AT_CHECK) ||
        !st_bytes_are_zero(head + AT_CHECK + 8, HEAD_SIZE - AT_CHECK - 8))
        return false;
    if (st_get64(head + 8) != VERSION || st_get64(head + 16) != segment->incarnation ||
        st_get64(head + 24) != segment->number || st_get64(head + 112) > 1 || st_get64(head + 120) > ST_EARLIER_MAX)
        return false;
    segment->base = st_get64(head + 32);
    memcpy(segment->base_digest.bytes, head + 40, sizeof(segment->base_digest.bytes));
    memcpy(segment->opening.bytes, head + 72, sizeof(segment->opening.bytes));
    segment->oldest = st_get64(head + 104);
    segment->repeats = st_get64(head + 112) == 1;
    segment->earlier_count = (uint32_t)st_get64(head + 120);
    *ret_records = st_get64(head + 128);
    *ret_body = st_get64(head + 136);
    memcpy(ret_digest->bytes, head + 144, sizeof(ret_digest->bytes));
    return *ret_body <= BODY_MAX && *ret_records <= *ret_body / ENTRY_HEAD;
}

static bool decode_body(const uint8_t *body, uint64_t length, uint64_t records, st_segment *segment)
{
    uint64_t at = (uint64_t)segment->earlier_count * EARLIER_SIZE;
    if (at > length)
        return false;
    for (uint32_t i = 0; i < segment->earlier_count; i++) {
        const uint8_t *from = body + (size_t)i * EARLIER_SIZE;
        segment->earlier[i] = (st_earlier){.number = st_get64(from), .first = st_get64(from + 8)};
        memcpy(segment->earlier[i].opening.bytes, from + 16, sizeof(segment->earlier[i].opening.bytes));
        if (segment->earlier[i].number >= segment->number ||
            (i > 0 && segment->earlier[i].number <= segment->earlier[i - 1].number))
            return false;
    }
    uint64_t next = segment->repeats ? segment->base : segment->base + 1;
    for (uint64_t i = 0; i < records; i++, next++) {
        if (length - at < ENTRY_HEAD)
            return false;
        st_entry *entry = &segment->entries[i];
        uint64_t size = st_get64(body + at + 40);
        *entry = (st_entry){.number = st_get64(body + at), .offset = HEAD_SIZE + at + ENTRY_HEAD, .size = size};
        memcpy(entry->own.bytes, body + at + 8, sizeof(entry->own.bytes));
        at += ENTRY_HEAD;
        if (entry->number != next || size == 0 || size > MANIFEST_MAX || size > length - at)
            return false;
        at += size;
    }
    return at == length;
}

sluice_status st_lineage_open(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                              const pf_sha256 *opening, st_segment *ret_segment, sluice_error *err)
{
    st_segment segment = {.number = number, .incarnation = incarnation, .collected = true};
    uint8_t head[HEAD_SIZE], *body = NULL;
    uint64_t records = 0, length = 0;
    pf_sha256 digest;
    pf_stat stat;
    char path[128];
    sluice_status status;

    lineage_path(folder, number, path);
    PF_GOTO(status, done, pf_open(volume, path, PF_READ, &segment.file, err));
    PF_GOTO(status, done, pf_file_stat(segment.file, &stat, err));
    if (stat.size >= HEAD_SIZE)
        PF_GOTO(status, done, pf_read_exact(segment.file, 0, head, sizeof(head), err));
    if (stat.size < HEAD_SIZE || !decode_head(head, &segment, &records, &length, &digest) ||
        length != stat.size - HEAD_SIZE || !pf_sha256_equal(&segment.opening, opening)) {
        status = damaged(number, incarnation, err);
        goto done;
    }
    body = malloc(length ? length : 1);
    segment.earlier = calloc((size_t)segment.earlier_count + 1, sizeof(*segment.earlier));
    segment.entries = calloc((size_t)records + 1, sizeof(*segment.entries));
    if (!body || !segment.earlier || !segment.entries) {
        status = pf_fail_memory(err);
        goto done;
    }
    PF_GOTO(status, done, pf_read_exact(segment.file, HEAD_SIZE, body, length, err));
    pf_sha256 found = pf_sha256_of(body, length);
    if (!pf_sha256_equal(&found, &digest) || !decode_body(body, length, records, &segment)) {
        status = damaged(number, incarnation, err);
        goto done;
    }
    segment.entry_count = segment.entry_capacity = (size_t)records;
    segment.size = stat.size;
    *ret_segment = segment;
    segment = (st_segment){0};
done:
    free(body);
    st_segment_close(&segment);
    return status;
}

sluice_status st_lineage_read_entry(const st_segment *segment, const st_entry *entry, st_record *ret_record,
                                    sluice_error *err)
{
    char *manifest = malloc(entry->size);
    size_t at = (size_t)(entry - segment->entries);
    if (!manifest)
        return pf_fail_memory(err);
    sluice_status status = pf_read_exact(segment->file, entry->offset, manifest, entry->size, err);
    if (status == SLUICE_OK && manifest[entry->size - 1] != '\n')
        status = damaged(segment->number, segment->incarnation, err);
    if (status != SLUICE_OK) {
        free(manifest);
        return status;
    }
    *ret_record = (st_record){.kind = ST_RECORD_GENERATION,
                              .number = entry->number,
                              .own = entry->own,
                              .segment = segment->number,
                              .offset = entry->offset,
                              .manifest = manifest,
                              .manifest_length = entry->size,
                              .storage = (uint8_t *)manifest,
                              .collected = true};
    if (at > 0)
        ret_record->parent = segment->entries[at - 1].own;
    else if (!segment->repeats)
        ret_record->parent = segment->base_digest;
    return SLUICE_OK;
}

/* ---- writing ---- */

static sluice_status put(pf_buffer *body, uint64_t first, uint64_t second, const pf_sha256 *digest, sluice_error *err)
{
    uint8_t bytes[EARLIER_SIZE];
    st_put64(bytes, first);
    st_put64(bytes + 8, second);
    memcpy(bytes + 16, digest->bytes, sizeof(digest->bytes));
    return pf_buffer_append(body, bytes, sizeof(bytes), err);
}

static sluice_status put_entry(const st_segment *segment, const st_entry *entry, st_log_compact_fn *compact,
                               void *context, pf_buffer *body, sluice_error *err)
{
    st_record record = {0};
    pf_buffer manifest = {0};
    uint8_t head[ENTRY_HEAD];
    sluice_status status;
    PF_GOTO(status, done, st_segment_read_entry(segment, entry, &record, err));
    PF_GOTO(status, done, compact(context, &record, &manifest, err));
    if (manifest.length > MANIFEST_MAX) {
        status =
            pf_fail(err, SLUICE_RESOURCE_LIMIT, "what would stay of generation %" PRIu64 " is too long", entry->number);
        goto done;
    }
    st_put64(head, entry->number);
    memcpy(head + 8, entry->own.bytes, sizeof(entry->own.bytes));
    st_put64(head + 40, manifest.length);
    PF_GOTO(status, done, pf_buffer_append(body, head, sizeof(head), err));
    status = pf_buffer_append(body, manifest.data, manifest.length, err);
done:
    st_record_free(&record);
    pf_buffer_free(&manifest);
    return status;
}

/* The whole file. `last`: what stands behind it in the segment was put aside. */
static sluice_status encode(const st_segment *segment, uint64_t last, st_log_compact_fn *compact, void *context,
                            pf_buffer *ret_file, sluice_error *err)
{
    static const uint8_t zeros[HEAD_SIZE];
    uint64_t records = 0;
    PF_TRY(pf_buffer_append(ret_file, zeros, sizeof(zeros), err));
    for (uint32_t i = 0; i < segment->earlier_count; i++)
        PF_TRY(put(ret_file, segment->earlier[i].number, segment->earlier[i].first, &segment->earlier[i].opening, err));
    for (size_t i = 0; i < segment->entry_count && segment->entries[i].number <= last; i++, records++)
        PF_TRY(put_entry(segment, &segment->entries[i], compact, context, ret_file, err));
    uint8_t *head = ret_file->data;
    uint64_t length = ret_file->length - HEAD_SIZE;
    pf_sha256 digest = pf_sha256_of(head + HEAD_SIZE, length);
    if (length > BODY_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "what would stay of a segment is too long");
    memcpy(head, magic, sizeof(magic));
    st_put64(head + 8, VERSION);
    st_put64(head + 16, segment->incarnation);
    st_put64(head + 24, segment->number);
    st_put64(head + 32, segment->base);
    memcpy(head + 40, segment->base_digest.bytes, sizeof(segment->base_digest.bytes));
    memcpy(head + 72, segment->opening.bytes, sizeof(segment->opening.bytes));
    st_put64(head + 104, segment->oldest);
    st_put64(head + 112, segment->repeats ? 1 : 0);
    st_put64(head + 120, segment->earlier_count);
    st_put64(head + 128, records);
    st_put64(head + 136, length);
    memcpy(head + 144, digest.bytes, sizeof(digest.bytes));
    st_put64(head + AT_CHECK, pf_xxh64_of(head, AT_CHECK));
    return SLUICE_OK;
}

/* The folder is made with the first file in it; a branch without one has lost nothing yet. */
static sluice_status make_folder(const st_log *log, sluice_error *err)
{
    char path[128];
    sluice_error local = {0};
    int length = snprintf(path, sizeof(path), "%s/lineage", log->folder);
    PF_ALWAYS(length > 0 && (size_t)length < sizeof(path));
    sluice_status status = pf_make_folder(log->volume, path, &local);
    if (status == SLUICE_OK || status == SLUICE_ALREADY_EXISTS)
        return pf_sync_dir(log->volume, log->folder, err);
    if (err)
        *err = local;
    return status;
}

sluice_status st_log_keep_lineage(st_log *log, uint64_t number, st_log_compact_fn *compact, void *context,
                                  sluice_error *err)
{
    st_stop *stops = NULL;
    size_t count = 0, at = 0;
    st_segment segment = {0};
    pf_buffer file = {0};
    char folder[128], name[24];
    sluice_error local = {0};
    sluice_status status;

    PF_ASSERT(log->access == PF_WRITE && number < log->active.number);
    PF_GOTO(status, done, st_log_stops(log, &stops, &count, err));
    while (at < count && stops[at].at.number != number)
        at++;
    PF_ALWAYS(at < count);
    PF_GOTO(status, done, st_log_open_stop(log, &stops[at].at, stops[at].last, &segment, err));
    if (segment.collected)
        goto done;
    PF_GOTO(status, done, encode(&segment, stops[at].last, compact, context, &file, err));
    PF_GOTO(status, done, make_folder(log, err));
    (void)snprintf(folder, sizeof(folder), "%s/lineage", log->folder);
    (void)snprintf(name, sizeof(name), "%" PRIu64, number);
    status = st_document_create(log->volume, folder, name, file.data, file.length, &local);
    if (status == SLUICE_ALREADY_EXISTS) { /* by one who was cut short: what it says has to be the same */
        st_segment there = {0};
        PF_GOTO(status, done,
                st_lineage_open(log->volume, log->folder, number, log->incarnation, &segment.opening, &there, err));
        status =
            there.size == file.length ? pf_sync_dir(log->volume, folder, err) : damaged(number, log->incarnation, err);
        st_segment_close(&there);
    } else if (status != SLUICE_OK && err) {
        *err = local;
    }
done:
    free(stops);
    st_segment_close(&segment);
    pf_buffer_free(&file);
    return status;
}

/* ---- all segments ---- */

void st_log_segment_path(const st_log *log, uint64_t number, char ret_path[128])
{
    st_segment_path(log->folder, number, ret_path);
}

sluice_status st_log_segments(st_log *log, st_log_segment **ret_segments, size_t *ret_count, sluice_error *err)
{
    st_stop *stops = NULL;
    size_t count = 0;
    st_log_segment *list = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_log_stops(log, &stops, &count, err));
    list = calloc(count + 1, sizeof(*list));
    if (!list) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        char path[128];
        pf_stat stat;
        lineage_path(log->folder, stops[i].at.number, path);
        list[i] = (st_log_segment){.number = stops[i].at.number,
                                   .first = stops[i].at.first,
                                   .last = stops[i].last,
                                   .collected = pf_stat_path(log->volume, path, &stat, NULL) == SLUICE_OK};
    }
    list[count] = (st_log_segment){.number = log->active.number,
                                   .first = st_segment_first(&log->active),
                                   .last = st_segment_end_number(&log->active),
                                   .active = true};
    *ret_segments = list;
    *ret_count = count + 1;
    list = NULL;
done:
    free(stops);
    free(list);
    return status;
}
