/*
 * The layout of the shared region, as bytes: every structure that more than one process sees, and the assertions on it.
 *
 * Rules that hold for all of them:
 *   - offsets and indices, never pointers; sizes come from the configuration and stand in the header's section table;
 *   - a shared word is an atomic of fixed size, so that a store is one instruction and stores keep the order they are
 *     written in: a killed process has executed a prefix of them;
 *   - every 64-byte line has one writer or one latch. The exceptions are words that anybody may change in one
 * instruction and that only grow or go one way: the sequence words of futexes, the failpoint counters, the region's
 * state;
 *   - what a latch guards is changed only through an edit (shm/edit.h), which keeps the values before in the latch's
 *     intent record; the words of another line are changed by their one writer, each by itself.
 *
 * | section    | what                                       | writer                                                  |
 * | header     | identity, state, section table             | the supervisor, before READY; state: see shm_state      |
 * | failpoints | passages over the whole pool               | anybody, one atomic addition                            |
 * | slots      | one per worker: token; what it is doing    | first line: the supervisor; second: the worker          |
 * | progress   | one line per worker: rows, bytes           | that worker                                             |
 * | errors     | one per worker, one of the supervisor      | the owner (the supervisor, once the owner is reaped)    |
 * | result     | what the job's conductor answers           | the conductor                                           |
 * | obituaries | how workers ended, a ring                  | the supervisor                                          |
 * | tasks      | the job, its run, its tasks                | the tasks latch                                         |
 * | gates      | gate entries                               | the gates latch                                         |
 * | holders    | one per worker: gates held and waited for  | the gates latch                                         |
 * | publishing | one entry per worker: its place in line    | the publish latch; offer and answer: shm/publish_queue.h|
 * | arena      | one slice per worker: an answer, an offer  | the entry's taker; that worker, while its entry is free |
 */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include "locks/latch.h"
#include "platform/failpoint.h"
#include "platform/ids.h"
#include <stddef.h>

#define SHM_LINE       64u
#define SHM_ABI        1u
#define SHM_MAGIC      "SLUICERG"
#define SHM_PHASES_MAX 256u  /* finished phases that a job remembers */
#define SHM_RESULT_MAX 4096u /* bytes of a job's result */
#define SHM_EDIT_WORDS 24u   /* words that one edit may change */
#define SHM_OBITUARIES 64u

typedef _Atomic uint64_t shm_word;

/* READY is the last store of the builder. READY to POISONED by whoever finds damage; anything to ENDING by the
 * supervisor. */
typedef enum shm_state { SHM_BUILDING, SHM_READY, SHM_POISONED, SHM_ENDING } shm_state;

typedef enum shm_section {
    SHM_FAILPOINTS,
    SHM_SLOTS,
    SHM_PROGRESS,
    SHM_ERRORS,
    SHM_RESULT,
    SHM_OBITUARY_RING,
    SHM_TASKS,
    SHM_GATES,
    SHM_HOLDERS,
    SHM_PUBLISH,
    SHM_ARENA,
    SHM_SECTION_COUNT
} shm_section;

typedef struct shm_section_entry {
    uint64_t offset; /* from the start of the region */
    uint64_t count;
    uint64_t stride;
    uint64_t reserved;
} shm_section_entry;

typedef struct shm_header {
    alignas(SHM_LINE) char magic[8];
    uint32_t abi;
    uint32_t section_count;
    uint64_t layout; /* shm_layout_hash of the builder */
    uint64_t length;
    pf_id epoch;         /* random; never repeated */
    uint64_t supervisor; /* its process id, for people and for killpool; never proof of anything */
    uint64_t reserved;
    alignas(SHM_LINE) _Atomic uint32_t state;     /* shm_state */
    alignas(SHM_LINE) _Atomic uint32_t cancelled; /* the supervisor's: the user wants the job back */
    alignas(SHM_LINE) shm_section_entry sections[SHM_SECTION_COUNT];
} shm_header;

typedef struct shm_failpoints {
    alignas(SHM_LINE) uint32_t passages[PF_FAILPOINT_COUNT];
} shm_failpoints;

/* What a worker is doing; its own word. */
typedef enum shm_stage { SHM_STARTING, SHM_IDLE, SHM_TASK, SHM_CONDUCTING, SHM_LEAVING } shm_stage;

typedef struct shm_slot {
    /* the supervisor's line */
    alignas(SHM_LINE) shm_word generation; /* of the live token; 0: nobody. Never repeats within a region */
    shm_word random;
    shm_word pid;
    shm_word deaths;
    /* the worker's line */
    alignas(SHM_LINE) shm_word stage; /* shm_stage */
    shm_word phase, index;            /* of its task */
    shm_word heartbeat;               /* turns of its loop; for people, never proof of life or death */
    shm_word refusals;                /* durable calls that its fence check refused */
} shm_slot;

typedef struct shm_progress {
    alignas(SHM_LINE) shm_word rows; /* of finished tasks and of conducting */
    shm_word bytes;
    shm_word task_rows; /* of the task that it is running: counted again when it is lost */
    shm_word task_bytes;
} shm_progress;

typedef struct shm_error_cell {
    alignas(SHM_LINE) sluice_error error;
} shm_error_cell;

typedef struct shm_result {
    alignas(SHM_LINE) uint8_t bytes[SHM_RESULT_MAX];
} shm_result;

typedef struct shm_obituary {
    alignas(SHM_LINE) shm_word number; /* 1, 2, 3, ...; written last; 0: none yet */
    shm_word slot, generation, pid;
    shm_word wait_status; /* as waitpid's */
    shm_word stage, phase, index;
} shm_obituary;

/* Values before, of one edit under one latch: see shm/edit.h. */
typedef struct shm_intent {
    alignas(SHM_LINE) shm_word phase; /* operation in the high half, number of saved words in the low one; 0: none */
    struct {
        shm_word offset; /* of the word from the start of its table */
        shm_word before;
    } words[SHM_EDIT_WORDS];
} shm_intent;

/* An owner in one word: generation in the high 48 bits, slot in the low 16; 0: nobody. */
typedef uint64_t shm_owner;

typedef struct shm_tasks {
    lk_latch latch;
    shm_intent intent;
    alignas(SHM_LINE) _Atomic uint32_t sequence;    /* futex: something may be there to do, or be over */
    alignas(SHM_LINE) shm_word job;                 /* shm_job_state */
    shm_word outcome;                               /* sluice_status of an ended job */
    shm_word outcome_cell;                          /* whose error cell, when it failed */
    shm_word conductor;                             /* owner */
    shm_word conductor_tries;                       /* lives in a row without any task finished */
    shm_word conductor_crashes;                     /* crashes since any task finished */
    shm_word conductor_relapses;                    /* crashes since lasting work finished */
    shm_word conductor_finished, conductor_lasting; /* the two counts below at its last start */
    shm_word finished_ever;                         /* tasks finished in the job */
    shm_word lasting_ever;                          /* of those, in phases that are not run anew */
    shm_word run;                                   /* shm_run_state */
    shm_word run_serial;                            /* counts runs; an answer to an older run is refused */
    shm_word run_phase;
    shm_word run_anew;
    shm_word run_count;
    shm_word run_next; /* no task below it is waiting */
    shm_word run_finished, run_running;
    shm_word run_failed;      /* the lowest failed task + 1; 0: none */
    shm_word run_failed_cell; /* whose error cell */
    shm_word phase_count;
    shm_word phases[SHM_PHASES_MAX]; /* finished for good: phase in the high half, tasks in the low one */
    uint64_t task_capacity;
    alignas(SHM_LINE) shm_word tasks[]; /* see shm/tasks.h */
} shm_tasks;

typedef struct shm_gate {
    alignas(SHM_LINE) shm_word used; /* 0: free, and the rest means nothing */
    shm_word kind, incarnation, table;
    shm_word next_ticket;
    shm_word turn_ticket;   /* whose turn is being timed; 0: nobody's */
    shm_word turn_since_ns; /* since when it could have entered */
    shm_word orphaned;      /* 1: the last holder died */
    alignas(SHM_LINE) shm_word orphan_operation[2];
    _Atomic uint32_t sequence; /* futex: somebody left, gave up, died or was passed over */
} shm_gate;

typedef struct shm_gates {
    lk_latch latch;
    shm_intent intent;
    alignas(SHM_LINE) uint64_t gate_count; /* written once */
    uint64_t holder_count;
    uint64_t holds_per_worker;
    alignas(SHM_LINE) shm_gate gates[];
} shm_gates;

typedef struct shm_holder {
    alignas(SHM_LINE) shm_word operation[2];
    shm_word waits_for;       /* gate + 1; 0: nothing */
    shm_word waits_exclusive; /* 0 or 1 */
    shm_word wait_ticket;
    shm_word held_count;
    shm_word held[]; /* gate * 2 + exclusive; holds_per_worker of them */
} shm_holder;

#define SHM_ANSWER_MAX 3584u /* bytes of what a publisher answers to one member of its group */

typedef struct shm_publish_entry {
    alignas(SHM_LINE) shm_word state; /* shm_publish_state */
    shm_word ticket;                  /* order of arrival; 0: free */
    shm_word owner;                   /* whose write it is; 0: nobody waits for it any more */
    shm_word taker;                   /* taken: by whom; the owner may be its own */
    shm_word leads;                   /* 1: this worker publishes for the branch that its entry is about */
    shm_word doubtful;                /* 1: who had taken it died with it: only the chain knows what became of it */
    /* the owner's, while the entry is free */
    alignas(SHM_LINE) uint64_t place[3]; /* what the branch is: device and inode of the graph's folder, incarnation */
    uint64_t alone;                      /* 1: goes as a group of one */
    uint64_t length;                     /* in the owner's slice of the arena */
    uint64_t check[2];                   /* XXH3-128 of these bytes */
    alignas(SHM_LINE) _Atomic uint32_t sequence; /* futex: something was decided, or may be led */
} shm_publish_entry;

typedef struct shm_publish {
    lk_latch latch;
    shm_intent intent;
    alignas(SHM_LINE) shm_word next_ticket;
    uint64_t entry_count; /* written once */
    alignas(SHM_LINE) shm_publish_entry entries[];
} shm_publish;

#define SHM_WHOLE_LINES(type) _Static_assert(sizeof(type) % SHM_LINE == 0, #type " fills whole lines")
SHM_WHOLE_LINES(shm_header);
SHM_WHOLE_LINES(shm_failpoints);
SHM_WHOLE_LINES(shm_slot);
SHM_WHOLE_LINES(shm_progress);
SHM_WHOLE_LINES(shm_error_cell);
SHM_WHOLE_LINES(shm_result);
SHM_WHOLE_LINES(shm_obituary);
SHM_WHOLE_LINES(shm_intent);
SHM_WHOLE_LINES(shm_tasks);
SHM_WHOLE_LINES(shm_gate);
SHM_WHOLE_LINES(shm_gates);
SHM_WHOLE_LINES(shm_holder);
SHM_WHOLE_LINES(shm_publish_entry);
SHM_WHOLE_LINES(shm_publish);
_Static_assert(sizeof(shm_word) == 8 && alignof(shm_word) == 8, "a shared word is eight bytes");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words need no lock");
_Static_assert(offsetof(shm_slot, stage) == SHM_LINE, "supervisor and worker write different lines of a slot");
_Static_assert(offsetof(shm_header, cancelled) - offsetof(shm_header, state) == SHM_LINE, "one writer a line");
_Static_assert(sizeof(shm_gate) / SHM_LINE == 2, "a gate is two lines");

/* Over every size and offset above: two builds that disagree must not share a region. */
uint64_t shm_layout_hash(void);

#endif
