/*
 * Inside of stage G: the writes that one publisher decides about, as one generation (DESIGN 4 "Group publishing").
 * publish.c decides, and runs the stage; publish_group.c leads and follows at the pool's publish queue;
 * publish_offer.c puts a write into the region and takes it out again.
 */
#ifndef COORD_PUBLISH_H
#define COORD_PUBLISH_H

#include "coord/run.h"
#include "shm/publish_queue.h"

typedef struct co_answer { /* what became of one write; plain bytes, which the region carries to its owner */
    sluice_status status;  /* with `error`, when it failed by itself or with its generation */
    co_finding finding;    /* of arbitration; CO_HOLDS once the append was tried */
    co_found found;
    uint64_t verdict, seen; /* of its claim, as they stand now */
    bool tried;             /* the append of its generation was */
    st_append_outcome outcome;
    uint64_t generation;
    uint32_t index;
    int64_t time_us;
    uint32_t folded; /* of its folds, how many the generation took */
    sluice_error error;
} co_answer;
_Static_assert(sizeof(co_answer) <= SHM_ANSWER_MAX, "an answer fits the place that the region has for it");

typedef struct co_member {
    co_claim claim;
    st_delta *delta;
    pf_sha256 digest;
    bool again; /* not answered: it is to be asked about once more, in another generation */
    co_answer answer;
    /* of one that came through the region: */
    co_read_set reads;
    st_delta decoded;
} co_member;

/* Under the branch's publish lock: arbitrates each member, also against those before it, and appends one generation of
 * those that hold. Afterwards each is answered, or `again`. A failure is the publisher's own: then no member is
 * answered and nothing was appended. *ret_block: a block of row ids is needed first. */
sluice_status co_publish_members(co_run *run, co_member *members, uint32_t count, bool *ret_block, sluice_error *err);
/* Is the branch still the one that the write was prepared for, and the graph's folder the graph's? */
sluice_status co_publish_take_answer(co_run *run, const co_answer *answer, co_next *ret_next, sluice_error *err);

/* ---- publish_offer.c ---- */

/* Fills the slice with this run's write. *ret_offer.length 0: it does not fit. */
sluice_status co_offer_put(co_run *run, const shm_publisher *me, shm_offer *ret_offer, sluice_error *err);
/* The member that was offered so; its insides are freed by co_member_free, also after a failure. */
sluice_status co_offer_get(co_run *run, const uint8_t *bytes, size_t length, co_member *ret_member, sluice_error *err);
void co_member_free(co_member *member);

/* ---- publish_group.c ---- */

/* Stands in line until this run's write is answered. *ret_in_line false: there is no place for it in the queue, and it
 * publishes alone. */
sluice_status co_publish_in_line(co_run *run, const shm_publisher *me, bool *ret_in_line, co_next *ret_next,
                                 sluice_error *err);
/* Takes the publish lock and decides about this run's write alone. */
sluice_status co_publish_alone(co_run *run, co_next *ret_next, sluice_error *err);

#endif
