/*
 * Intents: what a write says, durably, before its first effect that stands by itself (DESIGN 4, stages E to H; LESSONS
 * 2).
 *
 * GRAPH/intents is one preallocated, zero-filled file of 64 slots of 32 KiB. A slot (all numbers little-endian):
 *
 *   0      scope header, 512 bytes: magic "SLUICSCP", u32 version, u32 flags (1 all tables, 2 visible effects), u64
 * sequence of the arming frame, u64 incarnation, u32 table count, u32 zero, u64 tables[32], operation[16], commit[16],
 *          attempt[16], XXH3-128 of the header with the check zero. It says what a damaged intent overlaps.
 *   4096   frame, at most 12 KiB: magic "SLUICFRM", u32 version, u32 phase, u64 sequence, u32 document length, u32 plan
 * length, 16384  XXH3-128 of the frame with the check zero, 16 bytes zero; the document (JSON), then the plan when it
 * fits.
 *
 * A plan (the read set and the delta, coord/plan.h) that does not fit lies in attempts/<attempt>/plan-<number>, synced
 * with its folder before the frame, which holds its length and SHA-256.
 *
 * Crash rules:
 *   - arm, confirm and retire each overwrite the frame that is not the newest and sync once, so the newest whole frame
 * stays whole until the next one is; frames are told apart by their sequence.
 *   - the newest whole frame rules. None whole: with a frame of zeros beside it, an arm that was torn in a fresh slot,
 * so the slot is free; with both written, damage, and the scope header says whom it blocks.
 *   - the owner byte of a slot (an open-file-description lock on the intents file itself, on a descriptor of the slot's
 * own) is held from arming to retiring: a byte that can be taken means a dead owner, a busy one a live owner, never
 * touched.
 *   - who recovers takes the recoverer byte first, waiting for another recoverer, then, where the owner byte is free, a
 *     third byte and the owner byte: a busy owner byte beside a busy third one is a recoverer's, and its owner is dead.
 *   - whatever is read before the owner byte is held is a hint, and is read again under it.
 */
#ifndef COORD_INTENT_H
#define COORD_INTENT_H

#include "adapters/adapter.h"
#include "platform/buffer.h"

#define CO_SLOTS          ST_INTENT_SLOTS
#define CO_SLOT_BYTES     32768u
#define CO_SCOPE_BYTES    512u
#define CO_SCOPE_TABLES   32u
#define CO_FRAME_BYTES    12288u
#define CO_FRAME_HEAD     64u
#define CO_EFFECTS_MAX    4u
#define CO_PLAN_BYTES_MAX (UINT64_C(256) << 20) /* of a side file: far beyond any plan that names staged runs */

typedef enum co_phase { CO_PHASE_ARMED = 1, CO_PHASE_CONFIRMED = 2, CO_PHASE_RETIRED = 3 } co_phase;

typedef struct co_scope {
    uint64_t sequence;
    uint64_t incarnation;
    bool all;     /* every table of the branch */
    bool visible; /* has effects that are visible by themselves */
    uint64_t tables[CO_SCOPE_TABLES];
    uint32_t table_count;
    pf_id operation, commit, attempt;
} co_scope;

typedef struct co_intent {
    co_scope scope;
    co_phase phase;
    char kind[16];
    uint32_t version; /* of the adapter's recovery strategy */
    char branch[256];
    pf_id epoch;
    uint64_t base_generation; /* nothing of this intent can stand in the branch's history at or before it */
    pf_sha256 base_digest;
    pf_sha256 schema_identity;
    pf_sha256 request;
    pf_sha256 delta; /* digest of the delta, slots left out */
    ad_effect *effects;
    uint32_t effect_count;
    bool plan_inline;
    uint32_t plan_number;
    uint64_t plan_length;
    pf_sha256 plan_digest;
    pf_buffer plan; /* filled when inline */
} co_intent;
void co_intent_free(co_intent *intent); /* safe on a zeroed one */

/* Does it overlap a write of this branch (0: all branches) and these tables (NULL: all of the branch)? */
bool co_scope_overlaps(const co_scope *scope, uint64_t incarnation, const uint64_t *tables, uint32_t count);
void co_scope_encode(const co_scope *scope, uint8_t ret_bytes[CO_SCOPE_BYTES]);
/* False when the header is damaged (or zero). */
bool co_scope_decode(const uint8_t bytes[CO_SCOPE_BYTES], co_scope *ret_scope);

/* The JSON of a frame; decoding re-encodes and compares. */
sluice_status co_intent_encode(const co_intent *intent, pf_buffer *buffer, sluice_error *err);
sluice_status co_intent_decode(const void *bytes, size_t length, co_intent *ret_intent, sluice_error *err);
/* "attempts/<attempt>/plan-<number>" */
void co_plan_path(const co_intent *intent, char ret_path[96]);

typedef enum co_slot_state {
    CO_SLOT_FREE,
    CO_SLOT_INTENT,    /* armed or confirmed */
    CO_SLOT_UNREADABLE /* no whole frame, or one that this program does not understand */
} co_slot_state;

typedef struct co_slot {
    pf_volume *volume;
    pf_file *file; /* of its own: the locks are on it */
    uint32_t number;
    uint64_t sequence; /* of the newest whole frame; 0: none */
    uint32_t frame;    /* which frame is written next */
    bool failed;       /* a sync of `file` failed: it is written no more */
    bool recovering;   /* holds the recoverer byte too */
} co_slot;

/* A cheap look (two small reads): false when the slot is surely free. *ret_sequence: of the newest whole frame. */
sluice_status co_slot_may_be_used(pf_file *intents, uint32_t number, bool *ret_used, uint64_t *ret_sequence,
                                  sluice_error *err);
/* Behind the frames of slot 0: the board (coord/board.h). */
#define CO_BOARD_AT 28672u
/* Reads a slot in full. *ret_intent is filled for CO_SLOT_INTENT; for CO_SLOT_UNREADABLE only its scope, when
 * *ret_scope_known. */
sluice_status co_slot_read(pf_file *intents, uint32_t number, co_slot_state *ret_state, co_intent *ret_intent,
                           bool *ret_scope_known, sluice_error *err);
/* Is its owner dead: the owner byte free, or held by a recoverer? Takes nothing. */
sluice_status co_slot_is_orphaned(pf_file *intents, uint32_t number, bool *ret_orphaned, sluice_error *err);

/* A free slot, its owner byte held. RESOURCE_LIMIT when there is none. */
sluice_status co_slot_take(pf_volume *volume, co_slot *ret_slot, sluice_error *err);
/* For recovery: waits for other recoverers, then tries the owner byte; *ret_live when its owner lives (nothing is held
 * then). */
sluice_status co_slot_take_over(pf_volume *volume, uint32_t number, pf_deadline deadline, co_slot *ret_slot,
                                bool *ret_live, sluice_error *err);
/* Writes the next frame (for ARMED, or CONFIRMED at once, with the scope header) and syncs. The caller has written the
 * side file. Sets intent->phase. */
sluice_status co_slot_write(co_slot *slot, co_intent *intent, co_phase phase, sluice_error *err);
/* Makes the slot free, whatever stands in it; after a failed write or sync through a fresh descriptor. */
sluice_status co_slot_retire(co_slot *slot, sluice_error *err);
/* Whatever the slots say now is on the medium, also what an owner that died did not sync. */
sluice_status co_slots_sync(pf_volume *volume, sluice_error *err);
void co_slot_release(co_slot *slot); /* lets go of its locks; safe on a zeroed one */

#endif
