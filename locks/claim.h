/*
 * Durable global claims: who does a thing of which a graph has one at a time (DESIGN 9).
 *
 * GRAPH/claims is one preallocated, zero-filled file of 64 slots of 4 KiB; each key has a slot of its own. A slot has
 * two sectors of 512 bytes, at 0 and 2048, written in turn (little-endian): 0 magic "SLUICCLM" · 8 u64 version · 16 u64
 * sequence · 24 u64 term · 32 u64 state (1 held, 2 given back) · 40 owner token[16] · 56 key[40], text and zeros · 96
 * i64 time (microseconds) · rest zero · 504 XXH3-64 of all before.
 *
 * Truth table, for whoever takes one:
 *   slot's lock   newest whole sector    what it means                    what taking does
 *   free          none, all zero         never taken                      term 1
 *   free          given back, term t     nobody has it                    term t + 1
 *   free          held, term t           its owner died                   takes over: term t + 1
 *   free          damaged                nobody has it; its terms are     the wall clock in microseconds: above any
 *                                        forgotten                        term that was counted up
 *   busy          any                    a live owner, stopped or not     waits, then LIVE_WRITER_CONTENTION
 *
 * The kernel's lock on the slot's first byte, on a descriptor of its own, is the only proof of life: never age or
 * number. The sector fences: an owner asks lk_claim_check before each step, and one whose claim was taken over (its
 * lock went with a descriptor that somebody closed, or it was restored from a stopped image) is refused with FENCED.
 * Taking and giving back touch this one file.
 */
#ifndef LOCKS_CLAIM_H
#define LOCKS_CLAIM_H

#include "platform/ids.h"
#include "platform/volume.h"

#define LK_CLAIMS_FILE "claims"
#define LK_CLAIM_SIZE  4096u /* of a slot */

typedef enum lk_claim_key { /* the number of its slot: never used for another thing */
                            LK_CLAIM_RETENTION = 0,
                            LK_CLAIM_COUNT
} lk_claim_key;

typedef struct lk_claim lk_claim;

/* LIVE_WRITER_CONTENTION at the deadline. */
sluice_status lk_claim_take(pf_volume *volume, lk_claim_key key, pf_deadline deadline, lk_claim **ret_claim,
                            sluice_error *err);
/* Is it still this owner's? FENCED when not. */
sluice_status lk_claim_check(lk_claim *claim, sluice_error *err);
uint64_t lk_claim_term(const lk_claim *claim);
bool lk_claim_was_taken_over(const lk_claim *claim); /* from an owner that died */
/* Gives it back; NULL allowed. One that cannot be written says as much as a death would. */
void lk_claim_release(lk_claim *claim);

#endif
