/*
 * A crew: real processes at work over one shared region, with the test as their supervisor. What a pool does at a
 * death, in its order: the process is reaped, its token taken back, what it held given away; then its seat may be
 * filled again.
 */
#ifndef TESTS_SUPPORT_CREW_H
#define TESTS_SUPPORT_CREW_H

#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "worker/task.h"

#define CREW_MAX 64u

typedef struct crew {
    shm_region region;
    uint32_t count;
    shm_token tokens[CREW_MAX];
    pid_t pids[CREW_MAX]; /* 0: nobody there */
} crew;

/* A region for `count` workers whose slices have so many bytes. */
void crew_make(crew *all, uint32_t count, uint32_t slice);
void crew_free(crew *all); /* everybody has ended */
/* Starts a worker in a seat: `run` in a child, with an executor as a pool's worker has it. `failpoint`: as
 * SLUICE_FAILPOINT, for this child alone; NULL: none. */
typedef int crew_fn(void *context, wk_executor *executor);
void crew_start(crew *all, uint32_t seat, crew_fn *run, void *context, const char *failpoint);
/* Waits for its end and buries it; wait status as waitpid's. */
int crew_end(crew *all, uint32_t seat);
/* The same for several, in whatever order they end: each must end by exit(0). */
void crew_end_all(crew *all);
/* SIGKILL, and then as crew_end. */
void crew_kill(crew *all, uint32_t seat);
/* Waits until the seat's entry in the publish queue is in this state. */
void crew_wait_for(const crew *all, uint32_t seat, shm_publish_state state);
/* Waits until the seat's entry is ready, or *ended is set. */
void crew_wait_in_line_or_ended(const crew *all, uint32_t seat, const unsigned *ended);
/* Waits until so many entries of the queue are ready or taken. */
void crew_wait_in_line(const crew *all, uint32_t count);
/* Waits until the process in the seat has stopped itself. */
void crew_wait_stopped(const crew *all, uint32_t seat);

#endif
