/*
 * A worker of a pool: the process that the supervisor forked, from its first instruction to its last.
 *
 * It takes the conducting when nobody has it, else tasks, else it waits. It holds nothing that its death would not give
 * up: its latches are repaired by their heirs, its task and its conducting go to another worker, its locks fall with
 * its descriptors. It leaves when the job is over, and at once when it is an orphan or has lost its region.
 */
#ifndef WORKER_LOOP_H
#define WORKER_LOOP_H

#include "shm/slots.h"
#include "worker/task.h"

typedef struct wk_place { /* what a forked worker finds */
    shm_region *region;
    shm_token token;
    const wk_job *job;
    unsigned workers;
    uint64_t memory;       /* bytes that it is bound to; 0: no bound */
    const pf_id *given_up; /* the epochs of damaged regions before this one */
    uint32_t given_up_count;
    int bell;       /* rung when the job has ended */
    int death_pipe; /* end-of-file: the supervisor is gone */
} wk_place;

enum { /* exit statuses, for the supervisor */
       WK_LEFT_DONE = 0,
       WK_LEFT_UNOPENED = 3, /* the job could not be opened: the error lies in the slot's error cell */
       WK_LEFT_FENCED = 4,   /* the region is damaged, or the token was taken back */
       WK_LEFT_ORPHANED = 5
};

/* Works until there is nothing more to do; returns the exit status. Allocates nothing before the job is opened. */
int wk_work(const wk_place *place);

#endif
