/*
 * Memory of the machine, of control groups (both versions) and of processes (see platform/memory.h).
 *
 * A small bound also makes the allocator give pages back as soon as they are free: else what one task has used would
 * stay with its process while the next one asks for other sizes.
 */
#include "platform/memory.h"
#include "platform/check.h"
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if SLUICE_JEMALLOC
#include <jemalloc/jemalloc.h>
#include <sys/types.h>
#pragma weak mallctl /* the library comes without the allocator */
#endif

#ifdef __SANITIZE_ADDRESS__
#define HAS_SHADOW 1 /* the sanitizer's own mappings are far beyond any bound */
#else
#define HAS_SHADOW 0
#endif

#define LARGE_PAGE   ((uintptr_t)2 << 20)
#define STACK_ROOM   (UINT64_C(512) << 10) /* anonymous memory that the kernel's limit does not count */
#define PROMPT_BELOW (UINT64_C(256) << 20) /* bounds below it: free pages are given back at once */

static uint64_t share = PF_MEMORY_UNBOUND;

/* ---- what there is ---- */

/* A number in a file of one; PF_MEMORY_UNBOUND when there is none ("max", no such file). */
static uint64_t read_limit(const char *path)
{
    uint64_t value = PF_MEMORY_UNBOUND, number;
    FILE *file = fopen(path, "re");

    if (!file)
        return value;
    if (fscanf(file, "%" SCNu64, &number) == 1)
        value = number;
    (void)fclose(file);
    return value;
}

/* The least limit from a group up to the root of its hierarchy. Seen from inside a container, the lower part of the
 * group's path may not be there. */
static uint64_t least_limit(const char *hierarchies, const char *hierarchy, char *group, const char *name)
{
    uint64_t least = PF_MEMORY_UNBOUND;
    char path[PATH_MAX];

    for (;;) {
        int length = snprintf(path, sizeof path, "%s%s%s/%s", hierarchies, hierarchy, group, name);
        uint64_t limit = length > 0 && (size_t)length < sizeof path ? read_limit(path) : PF_MEMORY_UNBOUND;
        if (limit < least)
            least = limit;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

uint64_t pf_memory_limit_of_groups(const char *list, const char *hierarchies)
{
    uint64_t least = PF_MEMORY_UNBOUND;
    char line[PATH_MAX];
    FILE *file = fopen(list, "re");

    if (!file)
        return least;
    while (fgets(line, sizeof line, file)) { /* number:controllers:/group; version 2 has no controllers there */
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        uint64_t limit = PF_MEMORY_UNBOUND;
        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (controllers[1] == '\0')
            limit = least_limit(hierarchies, "", group, "memory.max");
        else if (strcmp(controllers + 1, "memory") == 0)
            limit = least_limit(hierarchies, "/memory", group, "memory.limit_in_bytes");
        if (limit < least)
            least = limit;
    }
    (void)fclose(file);
    return least;
}

uint64_t pf_memory_available(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : PF_MEMORY_UNBOUND;
    uint64_t groups = pf_memory_limit_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");

    return groups < machine ? groups : machine;
}

/* ---- the bound ---- */

static void give_back_promptly(void)
{
#if SLUICE_JEMALLOC
    ssize_t at_once = 0;
    if (!mallctl)
        return;
    (void)mallctl("arenas.dirty_decay_ms", NULL, NULL, &at_once, sizeof at_once);
    (void)mallctl("arenas.muzzy_decay_ms", NULL, NULL, &at_once, sizeof at_once);
    (void)mallctl("arena.0.dirty_decay_ms", NULL, NULL, &at_once, sizeof at_once);
    (void)mallctl("arena.0.muzzy_decay_ms", NULL, NULL, &at_once, sizeof at_once);
#endif
}

#if SLUICE_JEMALLOC
static bool read_heap(const char *name, uint64_t *ret_bytes)
{
    size_t bytes = 0, length = sizeof bytes;
    bool known = mallctl(name, &bytes, &length, NULL, 0) == 0;
    *ret_bytes = bytes;
    return known;
}
#endif

bool pf_heap_look(pf_heap *ret_heap)
{
    *ret_heap = (pf_heap){0};
#if SLUICE_JEMALLOC
    uint64_t epoch = 1;
    size_t length = sizeof epoch;
    return mallctl && mallctl("epoch", &epoch, &length, &epoch, length) == 0 &&
           read_heap("stats.allocated", &ret_heap->allocated) && read_heap("stats.active", &ret_heap->active) &&
           read_heap("stats.resident", &ret_heap->resident);
#else
    return false;
#endif
}

/* The allocator keeps a table of each GiB of addresses that it uses, some MiB of it never written, and where a process
 * begins is chance: one that came to the next GiB in the middle of its work found no room for that table. So the
 * allocator comes now as far as it ever will; what it has mapped for that counts as untouched. */
static void reach(uint64_t bytes)
{
    void *volatile block = malloc(bytes);
    free(block);
}

/* Sizes of a process in bytes; false when they cannot be told. */
static bool read_sizes(int64_t pid, uint64_t *ret_anonymous, uint64_t *ret_data)
{
    char path[64];
    uint64_t size, resident, shared, text, library, data;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/statm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    int found = fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &size, &resident,
                       &shared, &text, &library, &data);
    (void)fclose(file);
    if (found != 6)
        return false;
    *ret_anonymous = resident > shared ? (resident - shared) * page : 0;
    *ret_data = data * page;
    return true;
}

/* The kernel counts what is mapped, also where nothing was ever written: so much of it does not use the bound up. */
static uint64_t untouched(void)
{
    uint64_t anonymous, data;
    return read_sizes(getpid(), &anonymous, &data) && data > anonymous ? data - anonymous : 0;
}

static rlim_t inherited = RLIM_INFINITY; /* the limit before the first bound */

static void set_limit(uint64_t bytes)
{
    struct rlimit limit;
    if (HAS_SHADOW || getrlimit(RLIMIT_DATA, &limit) != 0)
        return;
    rlim_t data =
        bytes == PF_MEMORY_UNBOUND ? RLIM_INFINITY : (bytes > STACK_ROOM ? bytes - STACK_ROOM : 0) + untouched();
    limit.rlim_cur = data < inherited ? data : inherited;
    (void)setrlimit(RLIMIT_DATA, &limit); /* at most what it was: always allowed */
}

void pf_memory_bound(uint64_t bytes)
{
    struct rlimit limit;
    if (bytes >= share)
        return;
    if (share == PF_MEMORY_UNBOUND && getrlimit(RLIMIT_DATA, &limit) == 0)
        inherited = limit.rlim_cur;
    share = bytes;
    if (bytes < PROMPT_BELOW) {
        give_back_promptly();
        reach(2 * bytes);
    }
    set_limit(bytes);
}

void pf_memory_bound_again(uint64_t before)
{
    if (before == share)
        return;
    share = before;
    set_limit(before);
}

uint64_t pf_memory_share(void)
{
    return share;
}

uint64_t pf_memory_part(uint64_t parts, uint64_t least, uint64_t wanted)
{
    uint64_t part = share / parts;

    PF_ASSERT(parts > 0);
    if (part < least)
        part = least;
    return part < wanted ? part : wanted;
}

void pf_memory_to_fill(void *block, uint64_t bytes)
{
    uintptr_t begin = ((uintptr_t)block + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(LARGE_PAGE - 1);

    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* advice: without it all is the same, and slower */
}

/* ---- what is used ---- */

uint64_t pf_memory_of(int64_t pid)
{
    uint64_t anonymous, data;
    return read_sizes(pid, &anonymous, &data) ? anonymous : 0;
}
