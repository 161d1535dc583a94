/*
 * One run of the write protocol: what its stages share. Internal to coord/ (write.c drives; prepare.c A and B;
 * revalidate.c C and D; arm.c E and F; publish.c G; finalize.c H and giving up).
 */
#ifndef COORD_RUN_H
#define COORD_RUN_H

#include "coord/arbitrate.h"
#include "coord/branch_impl.h"
#include "coord/intent.h"
#include "coord/write.h"

#define CO_BARRIERS_MAX 32u /* returns to stage A: as many owners may die under one write's eyes */

#define CO_FOLDERS_MAX 32u

/* Where the machine goes after a stage that succeeded. */
typedef enum co_next { CO_GO_ON, CO_AGAIN, CO_AGAIN_AFTER_CONFLICT, CO_DONE } co_next;

typedef struct co_run {
    co_write write;     /* first: stages are given the one, and find the other */
    co_request request; /* a copy: the payload half may set its digest */
    const co_writer *writer;
    pf_volume *volume;
    uint64_t incarnation; /* of the branch that is written, or of the one that a new branch begins at */
    co_source source;     /* of a write that makes its branch (publish_new.c) */
    uint64_t made;        /* incarnation of the branch that it makes; 0: it makes none */
    st_log *log;
    lk_lockfile *locks;       /* the branch's */
    lk_lockfile *graph_locks; /* locks/graph */
    bool admitted;
    lk_gates *gates;
    co_claim claim;
    bool pinned;         /* once */
    bool first_known;    /* else 0 stands for it */
    uint64_t first_base; /* of the job, see prepare.c */
    bool looked_up;      /* the operation was looked for, from here on arbitration does it */
    bool has_payload;
    pf_sha256 payload_schema;
    uint64_t *tables; /* that the plan writes or read, each once */
    uint32_t table_count;
    pf_sha256 digest;                 /* of the delta, at the end of B */
    uint64_t row_block;               /* taken ahead, 0: none */
    uint64_t ticket;                  /* in the pool's publish queue, kept through restarts; 0: none yet */
    uint64_t folders[CO_FOLDERS_MAX]; /* tables whose folder this plan holds, for folds that merge */
    uint32_t folder_count;
    uint32_t fold_count; /* that this plan staged, */
    co_attempt folds;    /* an id to stage them under, where the write has no attempt; nil: none was needed */
    bool only_folds;     /* only what this plan staged there may be litter */
    co_attempt own;      /* made for a plan that needed one */
    co_read_set left;    /* of the plan that was given up last: what ends the write if it changed before the next pin */
    uint64_t left_from;  /* and the generation of that plan's base */
    co_slot slot;        /* held from arming to retiring */
    co_intent intent;
    bool armed, applied;
    unsigned barriers, restarts;
    sluice_phase phase;
    int64_t phase_since;                  /* by pf_tally_clock */
    sluice_truth committed, acknowledged; /* what is known if it failed now */
    bool done;
    co_receipt receipt;
    co_finding finding; /* of the last arbitration, with what it met */
    co_found found;
} co_run;

pf_deadline co_run_deadline(const co_run *run);
/* From here on it is in that phase (SLUICE_PHASE_NONE: in none any more), for errors and for tallies. */
void co_run_enter(co_run *run, sluice_phase phase);
/* CANCELLED when the user took the job back, FENCED when this process was fenced. */
sluice_status co_run_check(co_run *run, sluice_error *err);
/* Staged objects may now be named by nothing. */
void co_run_note_litter(co_run *run);
/* Frees the plan (delta, reads, gates, effects, base) and lets go of the gates; the payload stays. */
void co_run_drop_plan(co_run *run);
/* WRITE_CONFLICT: a read of a kind that ends the write was met. */
sluice_status co_run_fail_ends(const co_found *found, sluice_error *err);
/* An acknowledged answer from a commit that stands: makes its generation acknowledged first. */
sluice_status co_run_answer_found(co_run *run, const co_found *found, bool repeated, sluice_error *err);

/* The operation's first look-up: has it a receipt? Then the run is done, or IDEMPOTENCY_CONFLICT. */
sluice_status co_run_look_up(co_run *run, sluice_error *err);
/* Is it known what the request's content is (its digest)? Some writers learn it in their payload half. */
bool co_run_request_known(const co_run *run);

/* Stage A: settles the branch's dead intents (and heals its log). */
sluice_status co_stage_barrier(co_run *run, sluice_error *err);
/* Stage B: pins the base, looks the operation up, runs payload and plan. */
sluice_status co_stage_prepare(co_run *run, co_next *ret_next, sluice_error *err);
/* Stage C: takes the gates and lists the intents again. */
sluice_status co_stage_gates(co_run *run, co_next *ret_next, sluice_error *err);
/* Stage D. */
sluice_status co_stage_revalidate(co_run *run, co_next *ret_next, sluice_error *err);
/* What a finding means: go on, again, done, or an error. */
sluice_status co_run_judge(co_run *run, co_next *ret_next, sluice_error *err);
/* Stages E and F. */
sluice_status co_stage_arm(co_run *run, sluice_error *err);
/* Stage G. */
sluice_status co_stage_publish(co_run *run, co_next *ret_next, sluice_error *err);
/* ---- a write that makes its branch, publish_new.c ---- */

/* The source of the new branch, instead of the branch. ALREADY_EXISTS, unless this operation made it. */
sluice_status co_new_find_source(co_run *run, sluice_error *err);
/* Has this operation made the branch before? Then the run is done. */
sluice_status co_new_look_up(co_run *run, sluice_error *err);
/* Instead of the plan's gates: keeps the source from being deleted. */
sluice_status co_new_hold_source(co_run *run, sluice_error *err);
/* Ids for the branch, and its ref as the effect that will be visible: before E. */
sluice_status co_new_mint(co_run *run, sluice_error *err);
/* Instead of F and G: builds the branch with the commit in it, confirms the intent, and makes the ref. */
sluice_status co_new_publish(co_run *run, sluice_error *err);

/* Stage H, after success; never fails. */
void co_stage_finalize(co_run *run);
/* Before a failure or a restart is answered: undoes what was applied and retires the intent. When it cannot, the slot
 * is let go of for recovery, and the outcome is unknown: RECOVERY_REQUIRED. */
sluice_status co_run_give_up(co_run *run, sluice_error *err);

#endif
