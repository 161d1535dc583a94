/* The inside of a pool's worker, shared by loop.c (what it takes) and pool_executor.c (how it conducts). */
#ifndef WORKER_POOL_WORKER_H
#define WORKER_POOL_WORKER_H

#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "shm/tasks.h"
#include "worker/loop.h"

#define WK_SLICE_MS 100 /* a lost wake-up costs this much at most */

typedef struct wk_worker {
    const wk_place *place;
    shm_region *region;
    uint32_t slot;
    shm_owner owner;
    void *job_context;
    shm_gate_user gate_user;
    lk_gate_hooks gates;
    shm_publisher publisher;
    wk_executor executor;
    bool lost;  /* fenced or orphaned: leave without touching anything shared */
    int status; /* exit status, when lost */
} wk_worker;

void wk_make_executor(wk_worker *worker);
/* Runs one task and records its end. */
void wk_do_task(wk_worker *worker, const shm_work *work);
/* Whether this worker still has a place: false once its supervisor is gone, or it was lost otherwise. Asked at each
 * turn, so that an orphan ends at its next one even where the kernel's death signal was lost. */
bool wk_has_place(wk_worker *worker);
/* After a call on the region that failed: true to try it once more, false when this worker is lost. A latch may stay
 * busy for long only while the supervisor, which kills a stuck holder, is itself stopped. */
bool wk_try_again(wk_worker *worker, sluice_status status);
/* Waits until the task table moved on from `seen`, or a slice has passed. */
void wk_wait_for_tasks(const wk_worker *worker, uint32_t seen);

#endif
