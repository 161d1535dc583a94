/*
 * Memory: what the machine or the process's control groups allow, the bound of this process, and what a process uses.
 *
 * What counts is anonymous memory. Mapped files are the kernel's to keep or to drop, so whoever has to stay within a
 * bound keeps much in files and little here. A bound is held by the kernel (RLIMIT_DATA): an allocation beyond it
 * fails, and the caller says RESOURCE_LIMIT. Parts that can work with more or with less memory ask for the share.
 */
#ifndef PLATFORM_MEMORY_H
#define PLATFORM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define PF_MEMORY_UNBOUND UINT64_MAX

/* The machine's memory, or the least limit of the control groups that this process is in. */
uint64_t pf_memory_available(void);
/* That limit by a list like /proc/self/cgroup and the hierarchies below a folder like /sys/fs/cgroup; PF_MEMORY_UNBOUND
 * when there is none. */
uint64_t pf_memory_limit_of_groups(const char *list, const char *hierarchies);
/* From here on this process has at most so many bytes (PF_MEMORY_UNBOUND: no bound). Only ever lowered, */
void pf_memory_bound(uint64_t bytes);
/* but for a process that goes on after a job which had a bound of its own: back to the share that it had before. */
void pf_memory_bound_again(uint64_t before);
/* The bound of this process; PF_MEMORY_UNBOUND when it has none. */
uint64_t pf_memory_share(void);
/* The smaller of `wanted` and that part of the share, but at least `least`: how much of it one use may take. */
uint64_t pf_memory_part(uint64_t parts, uint64_t least, uint64_t wanted);
/* A block that is about to be filled: large pages, where the machine has them, save most of its first touches. */
void pf_memory_to_fill(void *block, uint64_t bytes);
/* What the allocator of this process says of itself, in bytes: given out; in pages that are in use for that; in memory
 * at all. False without one that tells. */
typedef struct pf_heap {
    uint64_t allocated, active, resident;
} pf_heap;
bool pf_heap_look(pf_heap *ret_heap);
/* Anonymous memory of a process at this moment; 0 when it cannot be told. */
uint64_t pf_memory_of(int64_t pid);

#endif
