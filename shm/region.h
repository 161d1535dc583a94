/*
 * The shared region: made by the supervisor before its workers are forked, mapped by all of them, never unmapped by a
 * worker.
 *
 * It holds no truth: what it says is a cache of what is on disk, and who of the living owns what. Losing it loses no
 * data; its epoch ends with it. A shm_region is one process's view: it is inherited over fork as it is.
 */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include "platform/process.h"
#include "shm/edit.h"

#define SHM_WORKERS_MAX 256u

typedef struct shm_config {
    uint32_t workers; /* 1 .. SHM_WORKERS_MAX */
    uint32_t tasks;   /* of one run */
    uint32_t gates;   /* held or waited for at one time */
    uint32_t holds;   /* gates that one worker holds */
    uint32_t slice;   /* bytes that one worker can hand to a publisher; a larger write publishes by itself */
} shm_config;
#define SHM_CONFIG_DEFAULT(worker_count) ((shm_config){(worker_count), 65536, 1024, 512, 32768})

typedef struct shm_region {
    pf_shared_memory memory;
    shm_config config;
    shm_header *header;
    shm_failpoints *failpoints;
    shm_slot *slots;        /* config.workers */
    shm_progress *progress; /* config.workers */
    shm_error_cell *errors; /* config.workers, and then the supervisor's */
    shm_result *result;
    shm_obituary *obituaries; /* SHM_OBITUARIES */
    shm_tasks *tasks;
    shm_gates *gates;
    uint8_t *holders; /* shm_holder_of */
    size_t holder_stride;
    shm_publish *publish;
    uint8_t *arena;           /* for each worker an answer and a slice, in whole lines */
    int64_t latch_wait_ms;    /* how long this process waits for a latch: workers long, the supervisor never */
    uint64_t last_generation; /* the supervisor's: the last token given out */
    uint64_t last_obituary;   /* the supervisor's */
} shm_region;

#define SHM_WORKER_LATCH_MS     30000 /* far beyond the bound after which the supervisor kills a stuck holder */
#define SHM_SUPERVISOR_LATCH_MS 50
#define SHM_WAIT_MS             50 /* a slice of waiting: what a wake-up costs that was lost with its sender */

/* RESOURCE_LIMIT when the configuration is out of range or the memory cannot be had. */
sluice_status shm_region_make(const shm_config *config, shm_region *ret_region, sluice_error *err);
/* The supervisor only, after every worker is reaped. */
void shm_region_free(shm_region *region);
/* Is this a region of this very build, whole, with this view of it? */
bool shm_region_check(const shm_region *region);

shm_state shm_region_state(const shm_region *region);
/* Somebody found damage that no repair can mend: workers are refused everything durable from now on. */
void shm_region_poison(shm_region *region);
/* The supervisor ends the work: workers leave at their next turn. */
void shm_region_end(shm_region *region);
void shm_region_cancel(shm_region *region); /* the supervisor's: the user wants the job back */
bool shm_region_is_cancelled(const shm_region *region);

/* Bumps and wakes every futex word of the region: after each death, and whenever everybody must look again. */
void shm_wake_all(shm_region *region);
void shm_wake(_Atomic uint32_t *sequence); /* bumps and wakes one */
uint32_t shm_sequence(const _Atomic uint32_t *sequence);
void shm_wait(const _Atomic uint32_t *sequence, uint32_t seen, pf_deadline deadline);

/* Takes a table's latch within this process's bound, repairing the table after a death. TIMEOUT, or FENCED: poisoned.
 */
sluice_status shm_latch_take(shm_region *region, lk_latch *latch, lk_rank rank, lk_latch_repair_fn *repair,
                             sluice_error *err);

#endif
