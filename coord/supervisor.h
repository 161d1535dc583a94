/*
 * The supervisor of a pool, inside: its seats (one worker each, at most) and what it knows of them by itself.
 *
 * It keeps copies of everything that it decides by, and of the region it reads only what a dying worker cannot tear. It
 * waits for no latch longer than SHM_SUPERVISOR_LATCH_MS; what it could not do it does at its next turn.
 */
#ifndef COORD_SUPERVISOR_H
#define COORD_SUPERVISOR_H

#include "coord/pool.h"
#include "platform/watch.h"
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "shm/tasks.h"
#include "worker/loop.h"

#define CO_TICK_MS          200 /* progress is shown, latches and memory are looked at */
#define CO_BACKOFF_FIRST_MS 50  /* before the second start in a row without progress; doubled each time */
#define CO_BACKOFF_LAST_MS  10000
#define CO_STEADY_MS        30000 /* a worker that lived this long did not fail at its start */
#define CO_STUCK_LATCH_MS   2000  /* a latch held this long: its holder is stopped, and is killed */
#define CO_LEAVE_MS         5000  /* workers leave by themselves within this when the job is over */
#define CO_FORK_MS          30000 /* without any worker, forking is tried for this long */
/* Crashes of conductors that only got as far as plans, which are made anew each time. */
#define CO_RELAPSES_MAX 50u
/* Deaths of any kind, of one task or without a task finished: a storm of kills is survived. */
#define CO_DEATHS_MAX              250u
#define CO_REGIONS_MAX             3u                    /* a job that damages a third region is given up */
#define CO_START_FAILURES(workers) (3u * (workers) + 3u) /* in a row, with nobody at work: a crash loop */

typedef enum co_seat_state {
    CO_SEAT_EMPTY, /* a worker is started at start_at_ns */
    CO_SEAT_TAKEN, /* a worker lives */
    CO_SEAT_ENDED  /* it was reaped; its tasks and gates are still to be given back */
} co_seat_state;

typedef struct co_seat {
    co_seat_state state;
    pf_child child;
    int64_t pid;
    shm_token token;
    int64_t started_ns;
    uint64_t finished_before; /* tasks finished in the pool when it started */
    uint64_t memory_kills;    /* of the kernel, when it started */
    int64_t start_at_ns;
    int64_t backoff_ms;       /* before the next start, unless there was progress */
    int64_t stopped_since_ns; /* 0: it runs */
    int wait_status;
    bool crashed; /* the end that wait_status tells may have been the work's own doing */
} co_seat;

typedef struct co_latch_watch { /* the same holder in the same hold, since when */
    const lk_latch *latch;
    int32_t owner;
    uint64_t holds;
    int64_t since_ns;
} co_latch_watch;
/* Has the same holder been in the same hold for too long? Then watched->owner is stopped. Asked now and then. */
bool co_latch_is_stuck(co_latch_watch *watched, int64_t now);

typedef struct co_supervisor {
    const wk_job *job;
    const co_pool_options *options;
    shm_region region;
    pf_watch *watch;
    pf_death_pipe pipe;
    int *keep; /* descriptors that workers keep */
    uint32_t keep_count;
    unsigned seat_count;
    unsigned start_failures; /* in a row, with nobody at work */
    int64_t fork_failing_ns; /* since when no worker can be forked; 0: not so */
    unsigned interrupts;
    int64_t began_ns;
    int64_t next_tick_ns;
    wk_progress shown;
    uint64_t memory_peak;
    co_latch_watch latches[3];
    pf_id given_up[CO_REGIONS_MAX]; /* the epochs of damaged regions */
    uint32_t given_up_count;
    co_seat seats[SHM_WORKERS_MAX];
} co_supervisor;

/* seats.c: starting and ending workers. */

/* Starts a worker on each empty seat whose time has come. Returns in the child too: then *ret_place is filled. */
sluice_status co_seats_start(co_supervisor *supervisor, bool *ret_in_child, wk_place *ret_place, sluice_error *err);
/* The time of the next start; INT64_MAX: no seat is empty. */
int64_t co_seats_next_start(const co_supervisor *supervisor);
/* The worker of this seat has ended: reaps it and takes its token back. */
sluice_status co_seats_reap(co_supervisor *supervisor, uint32_t seat, sluice_error *err);
/* An end that the work itself may have caused, short memory included, against a signal that somebody sent. */
bool co_is_crash(int wait_status, uint64_t memory_kills_before);
bool co_seats_taken(const co_supervisor *supervisor);
/* Kills all and reaps all. */
sluice_status co_seats_kill(co_supervisor *supervisor, sluice_error *err);
/* Kills workers that stand still for longer than the options allow. */
void co_seats_kill_stopped(co_supervisor *supervisor, int64_t now);

/* burial.c: what dead workers leave, and who is stuck. */

/* Gives back what reaped workers held, writes their obituaries, decides when their seats are taken again. What cannot
 * be done yet (a latch is busy) stays for the next call. */
void co_bury_ended(co_supervisor *supervisor);
/* Kills the holder of a latch that has been held too long. */
void co_watch_latches(co_supervisor *supervisor);

#endif
