/*
 * The slots of the intents file: reading, taking, writing, retiring (coord/intent.h has the layout and the crash
 * rules).
 */
#include "coord/intent.h"
#include "coord/board.h"
#include "coord/bytes.h"
#include "locks/order.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(CO_SLOT_BYTES == ST_INTENT_SLOT_SIZE, "the file is made with slots of this size");

#define OWNER_BYTE     0u
#define RECOVERER_BYTE 1u
#define RECOVERED_BYTE 2u
#define VERSION        1u

static const char scope_magic[8] = {'S', 'L', 'U', 'I', 'C', 'S', 'C', 'P'};
static const char frame_magic[8] = {'S', 'L', 'U', 'I', 'C', 'F', 'R', 'M'};
static const uint64_t frame_at[2] = {4096, 16384};

/* The check of `length` bytes whose own place, 16 bytes at `at`, counts as zero. */
static void compute_check(const uint8_t *bytes, size_t length, size_t at, uint8_t ret_check[16], uint8_t *scratch)
{
    memcpy(scratch, bytes, length);
    memset(scratch + at, 0, 16);
    pf_xxh128 digest = pf_xxh128_of(scratch, length);
    co_put_u64(ret_check, digest.low);
    co_put_u64(ret_check + 8, digest.high);
}

static bool all_zero(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

/* ---- the scope header ---- */

#define SCOPE_CHECK 344u

void co_scope_encode(const co_scope *scope, uint8_t ret_bytes[CO_SCOPE_BYTES])
{
    uint8_t scratch[CO_SCOPE_BYTES], check[16];
    PF_ASSERT(scope->table_count <= CO_SCOPE_TABLES);
    memset(ret_bytes, 0, CO_SCOPE_BYTES);
    memcpy(ret_bytes, scope_magic, 8);
    co_put_u32(ret_bytes + 8, VERSION);
    co_put_u32(ret_bytes + 12, (scope->all ? 1u : 0u) | (scope->visible ? 2u : 0u));
    co_put_u64(ret_bytes + 16, scope->sequence);
    co_put_u64(ret_bytes + 24, scope->incarnation);
    co_put_u32(ret_bytes + 32, scope->table_count);
    for (uint32_t i = 0; i < scope->table_count; i++)
        co_put_u64(ret_bytes + 40 + (size_t)8 * i, scope->tables[i]);
    memcpy(ret_bytes + 296, scope->operation.bytes, 16);
    memcpy(ret_bytes + 312, scope->commit.bytes, 16);
    memcpy(ret_bytes + 328, scope->attempt.bytes, 16);
    compute_check(ret_bytes, CO_SCOPE_BYTES, SCOPE_CHECK, check, scratch);
    memcpy(ret_bytes + SCOPE_CHECK, check, 16);
}

bool co_scope_decode(const uint8_t bytes[CO_SCOPE_BYTES], co_scope *ret_scope)
{
    uint8_t scratch[CO_SCOPE_BYTES], check[16];
    if (memcmp(bytes, scope_magic, 8) != 0 || co_get_u32(bytes + 8) != VERSION)
        return false;
    compute_check(bytes, CO_SCOPE_BYTES, SCOPE_CHECK, check, scratch);
    uint32_t flags = co_get_u32(bytes + 12), count = co_get_u32(bytes + 32);
    if (memcmp(check, bytes + SCOPE_CHECK, 16) != 0 || flags > 3 || count > CO_SCOPE_TABLES)
        return false;
    *ret_scope = (co_scope){.all = flags & 1, .visible = flags & 2, .table_count = count};
    ret_scope->sequence = co_get_u64(bytes + 16);
    ret_scope->incarnation = co_get_u64(bytes + 24);
    for (uint32_t i = 0; i < count; i++)
        ret_scope->tables[i] = co_get_u64(bytes + 40 + (size_t)8 * i);
    memcpy(ret_scope->operation.bytes, bytes + 296, 16);
    memcpy(ret_scope->commit.bytes, bytes + 312, 16);
    memcpy(ret_scope->attempt.bytes, bytes + 328, 16);
    return true;
}

bool co_scope_overlaps(const co_scope *scope, uint64_t incarnation, const uint64_t *tables, uint32_t count)
{
    if (incarnation == 0)
        return true;
    if (scope->incarnation != incarnation)
        return false;
    if (scope->all || !tables)
        return true;
    for (uint32_t i = 0; i < scope->table_count; i++)
        for (uint32_t k = 0; k < count; k++)
            if (scope->tables[i] == tables[k])
                return true;
    return false;
}

/* ---- frames ---- */

typedef enum frame_state { FRAME_ZERO, FRAME_WHOLE, FRAME_BROKEN } frame_state;

typedef struct frame_info {
    frame_state state;
    co_phase phase;
    uint64_t sequence;
    uint32_t document_length, plan_length;
} frame_info;

#define FRAME_CHECK 32u

/* Reads the head's fields; false when they cannot be a frame's. */
static bool parse_head(const uint8_t *bytes, frame_info *ret_frame)
{
    uint32_t phase = co_get_u32(bytes + 12);
    if (memcmp(bytes, frame_magic, 8) != 0 || co_get_u32(bytes + 8) != VERSION || phase < CO_PHASE_ARMED ||
        phase > CO_PHASE_RETIRED)
        return false;
    ret_frame->phase = (co_phase)phase;
    ret_frame->sequence = co_get_u64(bytes + 16);
    ret_frame->document_length = co_get_u32(bytes + 24);
    ret_frame->plan_length = co_get_u32(bytes + 28);
    return ret_frame->sequence > 0 && ret_frame->document_length <= CO_FRAME_BYTES - CO_FRAME_HEAD &&
           ret_frame->plan_length <= CO_FRAME_BYTES - CO_FRAME_HEAD - ret_frame->document_length;
}

/* `bytes` holds `room` bytes of the frame: all of it, or the head, which is all that a retired frame has. */
static frame_info judge(const uint8_t *bytes, size_t room, uint8_t *scratch)
{
    frame_info found = {.state = FRAME_BROKEN};
    uint8_t check[16];
    if (all_zero(bytes, room)) {
        found.state = FRAME_ZERO;
        return found;
    }
    if (!parse_head(bytes, &found))
        return found;
    size_t length = CO_FRAME_HEAD + (size_t)found.document_length + found.plan_length;
    if (length > room)
        return found;
    compute_check(bytes, length, FRAME_CHECK, check, scratch);
    if (memcmp(check, bytes + FRAME_CHECK, 16) == 0 || PF_SABOTAGE(torn_frame_accepted))
        found.state = FRAME_WHOLE;
    return found;
}

sluice_status co_slot_may_be_used(pf_file *intents, uint32_t number, bool *ret_used, uint64_t *ret_sequence,
                                  sluice_error *err)
{
    uint8_t head[CO_FRAME_HEAD], scratch[CO_FRAME_HEAD];
    frame_info frames[2];
    for (unsigned i = 0; i < 2; i++) {
        PF_TRY(pf_read_exact(intents, (uint64_t)number * CO_SLOT_BYTES + frame_at[i], head, sizeof head, err));
        frames[i] = judge(head, sizeof head, scratch);
    }
    *ret_used = false;
    *ret_sequence = 0;
    for (unsigned i = 0; i < 2; i++) {
        const frame_info *other = &frames[1 - i];
        if (frames[i].state == FRAME_WHOLE && frames[i].sequence > *ret_sequence)
            *ret_sequence = frames[i].sequence;
        bool outlived = other->state == FRAME_WHOLE && other->sequence > frames[i].sequence && frames[i].sequence > 0;
        if (frames[i].state == FRAME_BROKEN && !outlived)
            *ret_used = true;
    }
    return SLUICE_OK;
}

/* The whole slot in memory, and what its frames are. */
typedef struct slot_image {
    uint8_t bytes[CO_SLOT_BYTES], scratch[CO_SLOT_BYTES];
    frame_info frames[2];
    int newest; /* -1: none is whole */
} slot_image;

static sluice_status read_image(pf_file *intents, uint32_t number, slot_image *image, sluice_error *err)
{
    PF_TRY(pf_read_exact(intents, (uint64_t)number * CO_SLOT_BYTES, image->bytes, CO_SLOT_BYTES, err));
    image->newest = -1;
    for (int i = 0; i < 2; i++) {
        image->frames[i] = judge(image->bytes + frame_at[i], CO_FRAME_BYTES, image->scratch);
        if (image->frames[i].state == FRAME_WHOLE &&
            (image->newest < 0 || image->frames[i].sequence > image->frames[image->newest].sequence))
            image->newest = i;
    }
    return SLUICE_OK;
}

static bool image_is_free(const slot_image *image)
{
    if (image->newest >= 0)
        return image->frames[image->newest].phase == CO_PHASE_RETIRED;
    return image->frames[0].state == FRAME_ZERO || image->frames[1].state == FRAME_ZERO;
}

static sluice_status decode_image(const slot_image *image, co_intent *ret_intent, sluice_error *err)
{
    const frame_info *newest = &image->frames[image->newest];
    const uint8_t *body = image->bytes + frame_at[image->newest] + CO_FRAME_HEAD;
    PF_TRY(co_intent_decode(body, newest->document_length, ret_intent, err));
    ret_intent->phase = newest->phase;
    ret_intent->scope.sequence = newest->sequence;
    if (!ret_intent->plan_inline)
        return newest->plan_length == 0 ? SLUICE_OK : pf_fail(err, SLUICE_CORRUPT, "an intent has two plans");
    if (newest->plan_length != ret_intent->plan_length)
        return pf_fail(err, SLUICE_CORRUPT, "an intent's plan has another length");
    return pf_buffer_append(&ret_intent->plan, body + newest->document_length, newest->plan_length, err);
}

sluice_status co_slot_read(pf_file *intents, uint32_t number, co_slot_state *ret_state, co_intent *ret_intent,
                           bool *ret_scope_known, sluice_error *err)
{
    slot_image *image = malloc(sizeof *image);
    if (!image)
        return pf_fail_memory(err);
    *ret_intent = (co_intent){0};
    *ret_scope_known = false;
    sluice_status status = read_image(intents, number, image, err);
    if (status != SLUICE_OK)
        goto done;
    if (image_is_free(image)) {
        *ret_state = CO_SLOT_FREE;
        goto done;
    }
    *ret_state = CO_SLOT_UNREADABLE;
    if (image->newest >= 0) {
        sluice_status decoded = decode_image(image, ret_intent, NULL);
        if (decoded == SLUICE_OK) {
            *ret_state = CO_SLOT_INTENT;
            *ret_scope_known = true;
            goto done;
        }
        co_intent_free(ret_intent);
        if (decoded == SLUICE_RESOURCE_LIMIT) { /* no memory says nothing about the slot */
            status = pf_fail_memory(err);
            goto done;
        }
    }
    *ret_scope_known = co_scope_decode(image->bytes, &ret_intent->scope);
done:
    free(image);
    return status;
}

/* ---- ownership ---- */

static uint64_t lock_at(uint32_t number, unsigned byte)
{
    return (uint64_t)number * CO_SLOT_BYTES + byte;
}

sluice_status co_slot_is_orphaned(pf_file *intents, uint32_t number, bool *ret_orphaned, sluice_error *err)
{
    bool idle = true;
    PF_TRY(pf_lock_is_free(intents, lock_at(number, OWNER_BYTE), 1, ret_orphaned, err));
    if (*ret_orphaned)
        return SLUICE_OK;
    PF_TRY(pf_lock_is_free(intents, lock_at(number, RECOVERED_BYTE), 1, &idle, err));
    *ret_orphaned = !idle;
    return SLUICE_OK;
}

/* Tries one byte without waiting: *ret_taken false when it is busy. */
static sluice_status try_byte(co_slot *slot, unsigned byte, bool *ret_taken, sluice_error *err)
{
    sluice_error busy = {0};
    sluice_status status = pf_lock(slot->file, lock_at(slot->number, byte), 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &busy);
    *ret_taken = status == SLUICE_OK;
    if (status == SLUICE_OK || status == SLUICE_LIVE_WRITER_CONTENTION)
        return SLUICE_OK;
    if (err)
        *err = busy;
    return status;
}

/* What the held slot's frames say about where to write next: beside the newest whole one; in a fresh slot over what was
 * torn, so that zeros stay beside it; in a damaged one anywhere. */
static sluice_status learn(co_slot *slot, pf_file *file, bool *ret_free, sluice_error *err)
{
    slot_image *image = malloc(sizeof *image);
    if (!image)
        return pf_fail_memory(err);
    sluice_status status = read_image(file, slot->number, image, err);
    if (status == SLUICE_OK) {
        *ret_free = image_is_free(image);
        slot->sequence = image->newest < 0 ? 0 : image->frames[image->newest].sequence;
        if (image->newest >= 0)
            slot->frame = 1u - (uint32_t)image->newest;
        else
            slot->frame = image->frames[0].state == FRAME_ZERO && image->frames[1].state == FRAME_BROKEN;
    }
    free(image);
    return status;
}

/* Without a lock, so a hint. */
static sluice_status seems_used(pf_file *intents, uint32_t number, bool *ret_used, sluice_error *err)
{
    co_slot_state state;
    co_intent intent;
    bool scope_known = false;
    uint64_t sequence;
    PF_TRY(co_slot_may_be_used(intents, number, ret_used, &sequence, err));
    if (!*ret_used)
        return SLUICE_OK;
    PF_TRY(co_slot_read(intents, number, &state, &intent, &scope_known, err));
    co_intent_free(&intent);
    *ret_used = state != CO_SLOT_FREE;
    return SLUICE_OK;
}

sluice_status co_slot_take(pf_volume *volume, co_slot *ret_slot, sluice_error *err)
{
    co_slot slot = {.volume = volume};
    sluice_status status = pf_open(volume, ST_INTENTS_FILE, PF_WRITE, &slot.file, err);
    if (status != SLUICE_OK)
        return status;
    for (uint32_t i = 0; i < CO_SLOTS; i++) {
        bool used = true, taken = false, is_free = false;
        slot.number = i;
        PF_GOTO(status, fail, seems_used(slot.file, i, &used, err));
        if (used) /* not even tried: a recoverer who finds a dead owner's byte busy takes it for a living one's */
            continue;
        PF_GOTO(status, fail, try_byte(&slot, OWNER_BYTE, &taken, err));
        if (!taken)
            continue;
        PF_GOTO(status, fail, learn(&slot, slot.file, &is_free, err));
        if (is_free) {
            lk_order_take(volume, LK_RANK_INTENT_SLOT, i);
            *ret_slot = slot;
            return SLUICE_OK;
        }
        PF_GOTO(status, fail, pf_unlock(slot.file, lock_at(i, OWNER_BYTE), 1, err));
    }
    status = pf_fail(err, SLUICE_RESOURCE_LIMIT, "all %u intent slots are in use", CO_SLOTS);
    pf_hint(err, "wait for the writes that are under way, or run `sluice recover GRAPH`");
fail:
    (void)pf_close(slot.file, NULL);
    return status;
}

sluice_status co_slot_take_over(pf_volume *volume, uint32_t number, pf_deadline deadline, co_slot *ret_slot,
                                bool *ret_live, sluice_error *err)
{
    co_slot slot = {.volume = volume, .number = number, .recovering = true};
    bool taken = false, is_free = false;
    *ret_live = false;
    lk_order_wait(volume, LK_RANK_INTENT_SLOT, number);
    PF_TRY(pf_open(volume, ST_INTENTS_FILE, PF_WRITE, &slot.file, err));
    sluice_status status;
    PF_GOTO(status, fail, pf_lock(slot.file, lock_at(number, RECOVERER_BYTE), 1, PF_LOCK_EXCLUSIVE, deadline, err));
    /* The third byte is taken where the owner's is found free, and no slot with an intent in it is taken by an owner.
     */
    PF_GOTO(status, fail, pf_lock_is_free(slot.file, lock_at(number, OWNER_BYTE), 1, &taken, err));
    if (taken)
        PF_GOTO(status, fail, try_byte(&slot, RECOVERED_BYTE, &taken, err));
    if (taken)
        PF_GOTO(status, fail, try_byte(&slot, OWNER_BYTE, &taken, err));
    if (!taken && !PF_SABOTAGE(living_owner_taken_for_dead)) {
        *ret_live = true;
        goto fail;
    }
    PF_GOTO(status, fail, learn(&slot, slot.file, &is_free, err));
    lk_order_take(volume, LK_RANK_INTENT_SLOT, number);
    *ret_slot = slot;
    return SLUICE_OK;
fail:
    (void)pf_close(slot.file, NULL); /* nothing was written; the locks fall with the descriptor */
    return status;
}

void co_slot_release(co_slot *slot)
{
    if (!slot->file)
        return;
    lk_order_drop(slot->volume, LK_RANK_INTENT_SLOT, slot->number);
    (void)pf_close(slot->file, NULL); /* whatever was written was synced, or its failure was answered; the locks fall */
    *slot = (co_slot){0};
}

/* ---- writing ---- */

static sluice_status encode_frame(uint64_t sequence, co_phase phase, const pf_buffer *document, const pf_buffer *plan,
                                  pf_buffer *frame, sluice_error *err)
{
    uint8_t head[CO_FRAME_HEAD] = {0}, check[16];
    size_t plan_length = plan ? plan->length : 0, document_length = document ? document->length : 0;
    memcpy(head, frame_magic, 8);
    co_put_u32(head + 8, VERSION);
    co_put_u32(head + 12, phase);
    co_put_u64(head + 16, sequence);
    co_put_u32(head + 24, (uint32_t)document_length);
    co_put_u32(head + 28, (uint32_t)plan_length);
    PF_TRY(pf_buffer_append(frame, head, sizeof head, err));
    if (document_length)
        PF_TRY(pf_buffer_append(frame, document->data, document_length, err));
    if (plan_length)
        PF_TRY(pf_buffer_append(frame, plan->data, plan_length, err));
    pf_xxh128 digest = pf_xxh128_of(frame->data, frame->length); /* the check's own place is still zero */
    co_put_u64(check, digest.low);
    co_put_u64(check + 8, digest.high);
    memcpy(frame->data + FRAME_CHECK, check, 16);
    return SLUICE_OK;
}

/* One overwrite and one sync; after it the frame is the newest. */
static sluice_status write_frame(co_slot *slot, pf_file *file, const pf_buffer *frame, sluice_error *err)
{
    uint64_t at = (uint64_t)slot->number * CO_SLOT_BYTES + frame_at[slot->frame];
    PF_TRY(pf_write(file, at, frame->data, frame->length, err));
    if (file == slot->file && frame->length > CO_FRAME_HEAD)
        PF_TRY(PF_FAILPOINT(ARM_BEFORE_FRAME_SYNC, err));
    if (!PF_SABOTAGE(intent_not_synced) || frame->length == CO_FRAME_HEAD)
        PF_TRY(pf_sync(file, err));
    slot->sequence++;
    slot->frame = 1 - slot->frame;
    return SLUICE_OK;
}

sluice_status co_slot_write(co_slot *slot, co_intent *intent, co_phase phase, sluice_error *err)
{
    pf_buffer document = {0}, frame = {0};
    uint8_t scope[CO_SCOPE_BYTES];
    bool arms = intent->phase == 0;
    sluice_status status;
    PF_ASSERT(phase == CO_PHASE_ARMED || phase == CO_PHASE_CONFIRMED);
    intent->scope.sequence = slot->sequence + 1;
    PF_GOTO(status, done, co_intent_encode(intent, &document, err));
    if (document.length + (intent->plan_inline ? intent->plan.length : 0) > CO_FRAME_BYTES - CO_FRAME_HEAD) {
        status = pf_fail(err, SLUICE_RESOURCE_LIMIT, "an intent of %zu bytes does not fit its slot", document.length);
        goto done;
    }
    PF_GOTO(
        status, done,
        encode_frame(slot->sequence + 1, phase, &document, intent->plan_inline ? &intent->plan : NULL, &frame, err));
    if (arms) {
        co_scope_encode(&intent->scope, scope);
        PF_GOTO(status, written, co_board_announce(slot->file, slot->number, slot->sequence + 1, err));
        PF_GOTO(status, written,
                pf_write(slot->file, (uint64_t)slot->number * CO_SLOT_BYTES, scope, sizeof scope, err));
    }
    status = write_frame(slot, slot->file, &frame, err);
written:
    if (status == SLUICE_OK)
        intent->phase = phase;
    else
        slot->failed = true;
done:
    pf_buffer_free(&document);
    pf_buffer_free(&frame);
    return status;
}

/* After a failed write or sync the slot's descriptor is written no more, and which frame is newest is asked anew. */
sluice_status co_slot_retire(co_slot *slot, sluice_error *err)
{
    pf_buffer frame = {0};
    pf_file *file = slot->file, *fresh = NULL;
    bool is_free = false;
    sluice_status status;
    if (slot->failed) {
        PF_GOTO(status, done, pf_open(slot->volume, ST_INTENTS_FILE, PF_WRITE, &fresh, err));
        file = fresh;
        PF_GOTO(status, done, learn(slot, fresh, &is_free, err));
    }
    PF_GOTO(status, done, encode_frame(slot->sequence + 1, CO_PHASE_RETIRED, NULL, NULL, &frame, err));
    status = write_frame(slot, file, &frame, err);
    if (status != SLUICE_OK)
        slot->failed = true;
done:
    (void)pf_close(fresh, NULL); /* synced, or its failure is being answered */
    pf_buffer_free(&frame);
    return status;
}

sluice_status co_slots_sync(pf_volume *volume, sluice_error *err)
{
    pf_file *file = NULL;
    PF_TRY(pf_open(volume, ST_INTENTS_FILE, PF_WRITE, &file, err));
    sluice_status status = pf_sync(file, err);
    (void)pf_close(file, NULL); /* synced, or its failure is the answer */
    return status;
}
