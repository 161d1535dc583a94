/*
 * One record of a log, in memory (docs/format.md "Log record").
 *
 * The own digest covers the head with salt, digest and check set to zero, then the body: it does not depend on the
 * segment, so that a record written again into another segment stays the same link of the chain. The check (XXH3-64)
 * covers the whole head, salt and digest included: a head that passes it was written by us into this segment. Behind
 * the body zeros fill up to ST_RECORD_ALIGN; they are checked too, for a record is whole only when its last sector has
 * arrived.
 */
#include "store/log/internal.h"

#include "platform/check.h"
#include "platform/sabotage.h"
#include <stdlib.h>
#include <string.h>

#define VERSION        1u
#define ATTACH_ALIGN   64u
#define AT_VERSION     8u
#define AT_KIND        10u
#define AT_MANIFEST    12u
#define AT_NUMBER      16u
#define AT_BODY        24u
#define AT_ATTACHMENTS 32u
#define AT_SALT        40u
#define AT_INCARNATION 56u
#define AT_PARENT      64u
#define AT_OWN         96u
#define AT_CHECK       128u
#define AT_REST        136u
#define SALT_SIZE      16u
#define CHECK_SIZE     8u

static const uint8_t magic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'R', '1'};

static void put16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *to, uint32_t value)
{
    put16(to, (uint16_t)value);
    put16(to + 2, (uint16_t)(value >> 16));
}

static uint16_t get16(const uint8_t *from)
{
    return (uint16_t)(from[0] | from[1] << 8);
}

static uint32_t get32(const uint8_t *from)
{
    return get16(from) | (uint32_t)get16(from + 2) << 16;
}

bool st_bytes_are_zero(const uint8_t *bytes, size_t length)
{
    return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/* The XXH3-64 of the head with the check itself zero. */
static uint64_t head_check(const uint8_t *head)
{
    uint8_t copy[ST_RECORD_HEAD];
    memcpy(copy, head, sizeof(copy));
    memset(copy + AT_CHECK, 0, CHECK_SIZE);
    return pf_xxh64_of(copy, sizeof(copy));
}

static void seal_head(uint8_t *head)
{
    st_put64(head + AT_CHECK, head_check(head));
}

/* The own digest; `bytes` is changed meanwhile and restored. */
static pf_sha256 digest_of(uint8_t *bytes, uint64_t body_length)
{
    uint8_t kept[ST_RECORD_HEAD];
    memcpy(kept, bytes, sizeof(kept));
    memset(bytes + AT_SALT, 0, SALT_SIZE);
    memset(bytes + AT_OWN, 0, sizeof(pf_sha256));
    memset(bytes + AT_CHECK, 0, CHECK_SIZE);
    pf_sha256 digest = pf_sha256_of(bytes, ST_RECORD_HEAD + body_length);
    memcpy(bytes, kept, sizeof(kept));
    return digest;
}

/* Where the attachments begin, from the record's start; the manifest's end when there are none. */
static uint64_t attachments_at(uint64_t manifest_length, uint64_t attachments_length)
{
    uint64_t end = ST_RECORD_HEAD + manifest_length;
    return attachments_length == 0 ? end : (end + ATTACH_ALIGN - 1) & ~(uint64_t)(ATTACH_ALIGN - 1);
}

static uint64_t record_size(uint64_t body_length)
{
    return (ST_RECORD_HEAD + body_length + ST_RECORD_ALIGN - 1) & ~(uint64_t)(ST_RECORD_ALIGN - 1);
}

uint64_t st_head_record_size(const st_head *head)
{
    return record_size(head->body_length);
}

sluice_status st_record_encode(const st_expected *place, const void *manifest, size_t manifest_length,
                               const void *attachments, size_t attachments_length, pf_buffer *ret_bytes,
                               pf_sha256 *ret_own, sluice_error *err)
{
    PF_ASSERT(manifest_length > 0 && ((const uint8_t *)manifest)[manifest_length - 1] == '\n');
    if (manifest_length > ST_RECORD_MAX / 2 || attachments_length > ST_RECORD_MAX / 2)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a log record of %zu bytes is larger than the limit of %u",
                       manifest_length + attachments_length, ST_RECORD_MAX / 2);
    uint64_t start = attachments_at(manifest_length, attachments_length);
    uint64_t body_length = start + attachments_length - ST_RECORD_HEAD;
    uint64_t size = record_size(body_length);

    ret_bytes->length = 0;
    PF_TRY(pf_buffer_reserve(ret_bytes, size, err));
    uint8_t *bytes = ret_bytes->data;
    memset(bytes, 0, ST_RECORD_HEAD);
    memcpy(bytes, magic, sizeof(magic));
    put16(bytes + AT_VERSION, VERSION);
    put16(bytes + AT_KIND, (uint16_t)place->kind);
    put32(bytes + AT_MANIFEST, (uint32_t)manifest_length);
    st_put64(bytes + AT_NUMBER, place->number);
    st_put64(bytes + AT_BODY, body_length);
    st_put64(bytes + AT_ATTACHMENTS, attachments_length);
    memcpy(bytes + AT_SALT, place->salt, SALT_SIZE);
    st_put64(bytes + AT_INCARNATION, place->incarnation);
    memcpy(bytes + AT_PARENT, place->parent.bytes, sizeof(place->parent.bytes));
    memcpy(bytes + ST_RECORD_HEAD, manifest, manifest_length);
    memset(bytes + ST_RECORD_HEAD + manifest_length, 0, start - ST_RECORD_HEAD - manifest_length);
    if (attachments_length > 0)
        memcpy(bytes + start, attachments, attachments_length);
    memset(bytes + start + attachments_length, 0, size - start - attachments_length);
    *ret_own = digest_of(bytes, body_length);
    memcpy(bytes + AT_OWN, ret_own->bytes, sizeof(ret_own->bytes));
    seal_head(bytes);
    ret_bytes->length = size;
    return SLUICE_OK;
}

void st_record_resalt(uint8_t *bytes, const uint8_t salt[16])
{
    memcpy(bytes + AT_SALT, salt, SALT_SIZE);
    seal_head(bytes);
}

st_head_state st_head_decode(const uint8_t *bytes, st_head *ret_head)
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0 || st_get64(bytes + AT_CHECK) != head_check(bytes))
        return ST_HEAD_NONE;
    st_head head = {.manifest_length = get32(bytes + AT_MANIFEST),
                    .number = st_get64(bytes + AT_NUMBER),
                    .body_length = st_get64(bytes + AT_BODY),
                    .attachments_length = st_get64(bytes + AT_ATTACHMENTS),
                    .incarnation = st_get64(bytes + AT_INCARNATION)};
    uint16_t kind = get16(bytes + AT_KIND);
    if (get16(bytes + AT_VERSION) != VERSION)
        return ST_HEAD_NEWER;
    if ((kind != ST_RECORD_OPENING && kind != ST_RECORD_GENERATION) || head.manifest_length == 0 ||
        head.manifest_length > ST_RECORD_MAX / 2 || head.attachments_length > ST_RECORD_MAX / 2)
        return ST_HEAD_NONE;
    uint64_t start = attachments_at(head.manifest_length, head.attachments_length);
    if (head.body_length != start + head.attachments_length - ST_RECORD_HEAD ||
        !st_bytes_are_zero(bytes + AT_REST, ST_RECORD_HEAD - AT_REST))
        return ST_HEAD_NONE;
    head.kind = (st_record_kind)kind;
    memcpy(head.salt, bytes + AT_SALT, SALT_SIZE);
    memcpy(head.parent.bytes, bytes + AT_PARENT, sizeof(head.parent.bytes));
    memcpy(head.own.bytes, bytes + AT_OWN, sizeof(head.own.bytes));
    *ret_head = head;
    return ST_HEAD_VALID;
}

bool st_head_fits(const st_head *head, const st_expected *expected)
{
    return head->kind == expected->kind && head->number == expected->number &&
           head->incarnation == expected->incarnation && memcmp(head->salt, expected->salt, SALT_SIZE) == 0 &&
           pf_sha256_equal(&head->parent, &expected->parent);
}

bool st_record_body_is_whole(const st_head *head, uint8_t *bytes)
{
    uint64_t end = ST_RECORD_HEAD + head->body_length;
    uint64_t gap = ST_RECORD_HEAD + head->manifest_length;
    if (bytes[gap - 1] != '\n' ||
        !st_bytes_are_zero(bytes + gap, attachments_at(head->manifest_length, head->attachments_length) - gap) ||
        !st_bytes_are_zero(bytes + end, st_head_record_size(head) - end))
        return false;
    pf_sha256 own = digest_of(bytes, head->body_length);
    return pf_sha256_equal(&own, &head->own) || PF_SABOTAGE(torn_record_accepted);
}

void st_record_view(const st_head *head, uint64_t segment, uint64_t offset, uint8_t *bytes, bool owned,
                    st_record *ret_record)
{
    *ret_record = (st_record){.kind = head->kind,
                              .number = head->number,
                              .parent = head->parent,
                              .own = head->own,
                              .segment = segment,
                              .offset = offset,
                              .manifest = (const char *)bytes + ST_RECORD_HEAD,
                              .manifest_length = head->manifest_length,
                              .attachments = bytes + attachments_at(head->manifest_length, head->attachments_length),
                              .attachments_length = head->attachments_length,
                              .storage = owned ? bytes : NULL};
}

void st_record_free(st_record *record)
{
    free(record->storage);
    *record = (st_record){0};
}
