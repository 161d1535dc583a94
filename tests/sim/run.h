/*
 * A simulated history: the processes of a plan on one simulated disk, what strikes them, and what is checked meanwhile
 * and in the end (oracle.h). Real code above the volume port; docs/simulation.md says what is modelled.
 */
#ifndef TESTS_SIM_RUN_H
#define TESTS_SIM_RUN_H

#include "model.h"
#include "plan.h"
#include "platform/buffer.h"
#include "store/read/snapshot.h"

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
} sim_result;

typedef struct sim_run sim_run;

typedef struct sim_actor_state {
    sim_run *run;
    uint32_t number;
    st_graph *graph; /* of its process; NULL: none runs */
    uint32_t process;
    uint32_t calls;
    pf_failpoint last_point;
    bool passed; /* some point, in this process */
} sim_actor_state;

typedef struct sim_op_state {
    sim_outcome outcome;
    sim_result result;
    bool started;
    uint32_t attempts;
} sim_op_state;

/* What all histories of a program reached, for the ledger. */
#define SIM_ROWS 6u /* of recovery */
typedef struct sim_counts {
    uint64_t histories, calls, commits, deaths, losses, errors, stops, retries, repeated, restarts, snapshots, backups;
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
    bool quiet;  /* the oracle looks: no turns, no faults */
    bool errors; /* some call was made to fail */
    /* the oracle's */
    st_graph *eye;
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
sluice_status sim_op_run(sim_run *run, sim_actor_state *actor, uint32_t op, sim_result *ret_result, sluice_error *err);
/* The nodes and edges of a snapshot; false with the error, or when it holds what the model cannot. */
sluice_status sim_read_state(sim_run *run, st_snapshot *snapshot, sim_state *ret_state, sluice_error *err);
/* A fresh process: volume and graph. */
sluice_status sim_open(sim_run *run, uint32_t process, pf_access access, st_graph **ret_graph, sluice_error *err);
/* The graph that all histories begin with; files to load in a folder. */
pf_sim_disk *sim_base(const char **ret_folder);
void sim_base_free(void);

/* ---- run.c ---- */

/* Runs the plan; false: run->violation says what is wrong. `ret_plan`, when not NULL: the same with its switches
 * listed. */
bool sim_history(const sim_plan *plan, sim_counts *counts, pf_buffer *trace, char ret_violation[2048],
                 sim_plan *ret_listed);

#endif
