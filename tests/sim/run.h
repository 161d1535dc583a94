/*
 * A simulated history: the processes of a plan on one simulated disk, what strikes them, and what is checked meanwhile
 * and in the end (oracle.h). Real code above the volume port; docs/simulation.md says what is modelled.
 */
#ifndef TESTS_SIM_RUN_H
#define TESTS_SIM_RUN_H

#include "model.h"
#include "plan.h"
#include "platform/buffer.h"
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "store/read/snapshot.h"
#include "worker/task.h"

#define SIM_COMMITS_MAX 192u

typedef enum sim_outcome {
    SIM_NOT_RUN,
    SIM_UNKNOWN, /* its process died, or it is left to recovery */
    SIM_DONE,    /* acknowledged */
    SIM_FAILED   /* it said that it has not committed */
} sim_outcome;

typedef struct sim_commit {
    pf_id id;
    pf_id parents[2];
    uint32_t parent[2]; /* their numbers; SIM_COMMITS_MAX: none */
    int op;             /* -1: it was there at first */
    uint64_t incarnation, generation;
    uint32_t index;
    sim_state state;
    bool acknowledged;                     /* somebody was told so */
    bool gone;                             /* lost with the power before that */
    uint64_t before[SIM_COMMITS_MAX / 64]; /* its history */
} sim_commit;

typedef struct sim_result { /* of an operation that ended well */
    bool committed, repeated;
    unsigned restarts;
    pf_id commit;
    uint64_t incarnation; /* branches */
    bool followed;        /* merges */
} sim_result;

typedef struct sim_run sim_run;

typedef struct sim_actor_state {
    sim_run *run;
    uint32_t number;
    st_graph *graph; /* of its process; NULL: none runs */
    uint32_t process;
    struct sim_worker *worker; /* its process's place in a pool, or NULL */
    bool fenced;               /* it runs on without its token */
    uint32_t calls;
    pf_failpoint last_point;
    bool passed; /* some point, in this process */
    uint32_t point_passed[PF_FAILPOINT_COUNT];
    uint32_t answers;
    char staged[160]; /* the object that it made last */
    const sim_fault *awaits;
    /* of the write in hand (invariants.c) */
    uint32_t op;
    uint64_t barrier_step, plan_step;
    bool begun; /* it has come to its barrier */
    bool in_barrier, planned;
    bool arms;  /* its frame is synced, since its last barrier */
    bool armed; /* and surely not retired */
} sim_actor_state;

#define SIM_POOLS_MAX   (SIM_FAULTS_MAX + 1u) /* each power loss ends one */
#define SIM_WORKERS_MAX 64u

typedef struct sim_worker { /* as a worker of a pool has it */
    sim_run *run;
    uint32_t slot;
    shm_gate_user user;
    shm_publisher publisher;
    lk_gate_hooks hooks;
    wk_executor executor;
} sim_worker;

typedef struct sim_pool {
    shm_region region;
    uint32_t count;
    sim_worker workers[SIM_WORKERS_MAX]; /* each place is taken once */
} sim_pool;

typedef struct sim_op_state {
    sim_outcome outcome;
    sim_result result;
    bool was_unknown; /* a try was: its process died, or was fenced */
    bool started, holds, over;
    bool not_followed; /* its client was told so, or will never know */
    uint32_t attempts;
} sim_op_state;

typedef struct sim_left { /* an intent whose owner is dead */
    uint32_t op;
    uint64_t step;
} sim_left;

/* What all histories of a program reached, for the ledger. */
#define SIM_ROWS 6u /* of recovery */
typedef struct sim_counts {
    uint64_t histories, calls, commits, deaths, losses, errors, stops, retries, repeated, restarts, snapshots, backups,
        grouped;                          /* commits that are not the first of their generation */
    uint64_t passed[PF_FAILPOINT_COUNT];  /* windows passed */
    uint64_t crashed[PF_FAILPOINT_COUNT]; /* the last window that a process passed before it died */
    uint64_t outcomes[SIM_OP_KINDS][64];  /* by status */
    uint64_t rows[SIM_ROWS];
} sim_counts;

struct sim_run {
    const sim_plan *plan;
    pf_sim_disk *disk;
    fibers *fibers;
    sim_counts *counts;
    const char *folder; /* of the input files */
    sim_actor_state actors[SIM_ACTORS_MAX];
    sim_op_state ops[SIM_OPS_MAX];
    uint32_t processes;
    bool struck[SIM_FAULTS_MAX];
    uint32_t point_passed[PF_FAILPOINT_COUNT];
    bool quiet;                     /* the oracle looks: no turns, no faults */
    bool errors;                    /* some call was made to fail */
    bool lost;                      /* the power went */
    bool stopped;                   /* a process stood still */
    sim_pool *pools[SIM_POOLS_MAX]; /* the last one is at work */
    uint32_t pool_count;
    bool pool_over; /* with the power */
    sim_left left[SIM_OPS_MAX];
    uint32_t left_count;
    /* the oracle's */
    st_graph *eye;
    struct sim_name { /* of a branch that was seen */
        uint64_t incarnation;
        uint32_t branch;
    } names[SIM_OPS_MAX];
    uint32_t name_count;
    sim_commit commits[SIM_COMMITS_MAX];
    uint32_t commit_count;
    /* what is wrong */
    char violation[2048];
    /* NULL: nobody wants to see it */
    pf_buffer *trace;
};

/* What is wrong: the first one counts. */
void sim_wrong(sim_run *run, const char *format, ...) PF_PRINTF(2, 3);
void sim_trace(sim_run *run, const char *format, ...) PF_PRINTF(2, 3);
/* Its operation id: a function of seed and number. */
pf_id sim_operation(const sim_run *run, uint32_t op);
const char *sim_branch_name(uint32_t branch);

/* ---- ops.c ---- */

/* Runs it once on the actor's graph. */
sluice_status sim_op_toy(sim_run *run, sim_actor_state *actor, uint32_t op, sim_result *ret_result, sluice_error *err);
sluice_status sim_op_run(sim_run *run, sim_actor_state *actor, uint32_t op, sim_result *ret_result, sluice_error *err);
/* The nodes and edges of a snapshot; false with the error, or when it holds what the model cannot. */
sluice_status sim_read_state(sim_run *run, st_snapshot *snapshot, sim_state *ret_state, sluice_error *err);
/* A fresh process: volume and graph. */
sluice_status sim_open(sim_run *run, uint32_t process, pf_access access, st_graph **ret_graph, sluice_error *err);
/* The graph that all histories begin with; files to load in a folder. */
pf_sim_disk *sim_base(bool single, const char **ret_folder);
void sim_base_free(void);

/* ---- pool.c ---- */

void sim_pool_begin(sim_run *run); /* a new region, when the plan has a pool */
void sim_pool_free(sim_run *run);
/* A worker's place for the actor's new process; NULL without a pool. */
sim_worker *sim_pool_join(sim_run *run);
/* Its token is taken back. */
void sim_pool_fence(sim_worker *worker);
/* It is dead, and the supervisor has seen it: what it held is given away. */
void sim_pool_bury(sim_worker *worker);
/* How an actor's process runs its writes. */
wk_executor sim_pool_executor(const sim_actor_state *actor);

/* ---- run.c ---- */

/* An operation has what others wait for, and is not over yet. */
void sim_run_holds(sim_run *run, uint32_t op);

/* Runs the plan; false: run->violation says what is wrong. `ret_plan`, when not NULL: the same with its switches
 * listed. */
bool sim_history(const sim_plan *plan, sim_counts *counts, pf_buffer *trace, char ret_violation[2048],
                 sim_plan *ret_listed);

#endif
