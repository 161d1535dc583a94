/*
 * Processes: fork, pidfd, signals, the shared memory mapping, futex waits. Nothing above platform/ calls the system for
 * these. Workers are single-threaded and forked by the main thread; EOWNERDEAD is the earliest and a reaped pidfd the
 * only proof of death.
 */
#ifndef PLATFORM_PROCESS_H
#define PLATFORM_PROCESS_H

#include "platform/clock.h"
#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct pf_child {
    pid_t pid;
    int pidfd; /* close-on-exec; -1 when none */
} pf_child;

/* Forks; *ret_in_child says on which side we are. In the child: SIGKILL at the parent's death (re-checked),
 * no_new_privs, its own session, default signal dispositions (but SIGXFSZ ignored), empty signal mask. All stdio is
 * flushed before. */
sluice_status pf_fork(pf_child *ret_child, bool *ret_in_child, sluice_error *err);
/* Waits until the deadline for its end and reaps it; *ret_ended false when it still runs. wait_status as waitpid's. */
sluice_status pf_child_wait(pf_child *child, pf_deadline deadline, bool *ret_ended, int *ret_wait_status,
                            sluice_error *err);
void pf_child_kill(const pf_child *child); /* SIGKILL through the pidfd */
/* Processors that this process may use; at least 1. */
unsigned pf_processors(void);
pid_t pf_parent_pid(void);
pid_t pf_pid(void);

/* A sealed, fully allocated memfd mapped shared, to be inherited over fork and never unmapped by a worker. */
typedef struct pf_shared_memory {
    void *address;
    size_t length;
    int fd;
} pf_shared_memory;
#define PF_SHARED_MEMORY_MAX ((size_t)1 << 32) /* beyond it RESOURCE_LIMIT, before the machine is asked for pages */
sluice_status pf_shared_memory_make(size_t length, pf_shared_memory *ret_memory, sluice_error *err);
/* The creator only, after every worker is gone. */
void pf_shared_memory_free(pf_shared_memory *memory);

/* Waits while *word == value, until woken, the value moved, or the deadline; spurious returns are normal. */
void pf_futex_wait(const uint32_t *word, uint32_t value, pf_deadline deadline);
void pf_futex_wake_all(const uint32_t *word);

#endif
