/*
 * Between fork and the job's own open a worker allocates nothing (R204): in a process whose threads were not all
 * copied, the allocator's locks may be held for ever. This program is its own allocator's door, and counts who comes
 * through it.
 */
#include "tests/support/test.h"
#include "toy.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) /* has the door itself */

int main(void)
{
    print_message("skipped: the sanitizers have the allocator\n");
    return 77;
}

#else

/* The allocator that the program is linked with: the next one behind this door. */
static void *next_door(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        _exit(99);
    return found;
}

static pid_t supervisor;   /* 0: nobody is counted */
static unsigned too_early; /* a worker's: what it asked for before it opened the job */
static bool opened;

static void count(void)
{
    if (supervisor != 0 && !opened && getpid() != supervisor)
        too_early++;
}

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    count();
    if (!next)
        *(void **)&next = next_door("malloc");
    return next(size);
}

void *calloc(size_t number, size_t size)
{
    static void *(*next)(size_t, size_t);
    count();
    if (!next)
        *(void **)&next = next_door("calloc");
    return next(number, size);
}

void *realloc(void *memory, size_t size)
{
    static void *(*next)(void *, size_t);
    count();
    if (!next)
        *(void **)&next = next_door("realloc");
    return next(memory, size);
}

void free(void *memory)
{
    static void (*next)(void *);
    if (memory)
        count();
    if (!next)
        *(void **)&next = next_door("free");
    next(memory);
}

static sluice_status tell(toy_spec *toy, sluice_error *err)
{
    (void)err;
    atomic_fetch_add(&toy->shared->mark[0], too_early);
    void *volatile planted = malloc(16);
    free(planted);
    atomic_fetch_add(&toy->shared->mark[2], too_early > 0);
    opened = true;
    atomic_fetch_add(&toy->shared->mark[1], 1);
    return SLUICE_OK;
}

static void a_worker_allocates_nothing_before_it_opens_the_job(void **state)
{
    (void)state;
    sluice_error err;
    toy_spec toy;
    toy_result result;
    toy_make(&toy, 1, 4);
    toy.at_open = tell;
    supervisor = getpid();
    ASSERT_OK(toy_run(&toy, 3, &result, &err));
    supervisor = 0;
    assert_true(toy.shared->mark[1] >= 1);
    assert_int_equal(toy.shared->mark[0], 0);
    assert_int_equal(toy.shared->mark[2], toy.shared->mark[1]); /* a planted one is seen */
    toy_free(&toy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_allocates_nothing_before_it_opens_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
