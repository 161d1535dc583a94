/*
 * What happens in a simulated history: which processes do what, what strikes them and when, and how turns are taken.
 * Made from a seed, or read from a text, as a failing one is written down (tests/sim/kept).
 */
#ifndef TESTS_SIM_PLAN_H
#define TESTS_SIM_PLAN_H

#include "fiber.h"
#include "platform/failpoint.h"
#include "platform/sim.h"

#define SIM_ACTORS_MAX 6u
#define SIM_OPS_MAX    40u
#define SIM_FAULTS_MAX 8u
#define SIM_BRANCHES   3u /* main; b, which is there; c, which is not */

#define SIM_KINDS_OF(X)                                                                                                \
    X(MUTATE, "mutate")                                                                                                \
    X(LOAD, "load")                                                                                                    \
    X(UPSERT, "upsert")                                                                                                \
    X(OVERWRITE, "overwrite")                                                                                          \
    X(LOAD_BRANCH, "load-branch")                                                                                      \
    X(MERGE, "merge")                                                                                                  \
    X(MERGE_DELETE, "merge-delete")                                                                                    \
    X(OPTIMIZE, "optimize")                                                                                            \
    X(INDEX, "index")                                                                                                  \
    X(REVERT, "revert")                                                                                                \
    X(SCHEMA, "schema")                                                                                                \
    X(BRANCH_CREATE, "branch-create")                                                                                  \
    X(BRANCH_DELETE, "branch-delete")                                                                                  \
    X(CHECKPOINT_CREATE, "checkpoint-create")                                                                          \
    X(CHECKPOINT_DELETE, "checkpoint-delete")                                                                          \
    X(GC, "gc")                                                                                                        \
    X(GC_KEEP, "gc-keep")                                                                                              \
    X(BACKUP, "backup")                                                                                                \
    X(TOY, "toy")         /* a small writer with an effect that is visible by itself (tests/coord/toy.h) */            \
    X(WIDE, "wide")       /* the same, its plan too large for its intent's slot */                                     \
    X(ROW, "row")         /* one without an effect, which is not armed: it may be one of a group */                    \
    X(BLIND, "blind")     /* one without an effect, which reads nothing: only its operation says that it is there */   \
    X(READ_AT, "read-at") /* an older commit, held while others go on */                                               \
    X(READ, "read")                                                                                                    \
    X(RECOVER, "recover")

typedef enum sim_kind {
#define SIM_KIND_ENUM(id, name) SIM_OP_##id,
    SIM_KINDS_OF(SIM_KIND_ENUM)
#undef SIM_KIND_ENUM
        SIM_OP_KINDS
} sim_kind;
const char *sim_kind_name(sim_kind kind);

typedef struct sim_op {
    uint32_t actor;
    sim_kind kind;
    uint32_t branch, other; /* numbers; other: source of a merge or a new branch */
    uint32_t tries;         /* by the client, with the same operation id: after a death, or when it may help */
    uint64_t salt;          /* whatever else it needs follows from it */
} sim_op;

#define SIM_FAULTS_OF(X)                                                                                               \
    X(DIE, "die")             /* the process, before the call */                                                       \
    X(DIE_AFTER, "die-after") /* after it; a write may be cut short */                                                 \
    X(POWER, "power")         /* all of them */                                                                        \
    X(POWER_AFTER, "power-after")                                                                                      \
    X(FAIL, "fail")                 /* calls that change something fail with `error` */                                \
    X(FAIL_LOOK, "fail-look")       /* calls that look */                                                              \
    X(FULL, "full")                 /* the disk has only `times` pages left, until the next power loss */              \
    X(STOP, "stop")                 /* it stands still for so many steps of others */                                  \
    X(LOSE, "lose")                 /* the process dies, and the object that it staged last goes, by whatever hand */  \
    X(FENCE, "fence")               /* of a pool: the worker's token is taken back, and it runs on */                  \
    X(POWER_ANSWER, "power-answer") /* the power goes right behind its at-th answer */                                 \
    X(AWAIT, "await") /* before its op number `times` it waits until the point was passed, or op `at` is over */

typedef enum sim_fault_kind {
#define SIM_FAULT_ENUM(id, name) SIM_FAULT_##id,
    SIM_FAULTS_OF(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        SIM_FAULT_KINDS
} sim_fault_kind;
const char *sim_fault_name(sim_fault_kind kind);

typedef struct sim_fault {
    sim_fault_kind kind;
    uint32_t actor; /* whom it strikes, or at whose call */
    bool by_point;  /* at the at-th passage of `point` by anybody, else at the at-th call of the actor */
    bool own;       /* by_point: only passages of the actor count */
    pf_failpoint point;
    uint32_t at;
    pf_sim_loss loss; /* of a power loss; of a failing sync: what reached the medium all the same */
    int error;        /* errno */
    uint32_t times;   /* failing calls; steps; pages; of *_AFTER: the how manieth change is the last */
} sim_fault;

typedef struct sim_plan {
    uint64_t seed;
    uint32_t actors;
    bool single; /* the graph's write mode, else optimistic */
    bool pool;   /* the processes are workers of one pool, with a region: gates, and publishing in groups */
    sim_op ops[SIM_OPS_MAX];
    uint32_t op_count;
    sim_fault faults[SIM_FAULTS_MAX];
    uint32_t fault_count;
    fiber_turns turns;
    fiber_switch *switches; /* owned; of turns */
} sim_plan;

/* Can a history come to this window? Else why not. */
const char *sim_plan_why_not(pf_failpoint point);
void sim_plan_make(uint64_t seed, sim_plan *ret_plan);
/* A plan that leads to a place where much can go wrong (scenes.c); `turn` says which. */
void sim_plan_scene(uint64_t turn, uint64_t *random, sim_plan *ret_plan);
/* The first operation that has the same id: two clients may ask for one. */
uint32_t sim_plan_first_of(const sim_plan *plan, uint32_t op);
bool sim_plan_has_twin(const sim_plan *plan, uint32_t op);
void sim_plan_free(sim_plan *plan); /* safe on a zeroed one */
/* A copy that owns its switches. */
void sim_plan_copy(const sim_plan *plan, sim_plan *ret_copy);
void sim_plan_write(const sim_plan *plan, char *ret_text, size_t room);
/* False: not such a text. */
bool sim_plan_read(const char *text, sim_plan *ret_plan);

#endif
