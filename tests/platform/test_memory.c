/* Memory: limits of control groups of both versions, and a bound that the kernel holds a process to. */
#include "platform/memory.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static uint64_t limit_of(const char *folder, const char *list)
{
    char path[512], hierarchies[512];
    write_file(folder, "list", list);
    (void)snprintf(path, sizeof path, "%s/list", folder);
    (void)snprintf(hierarchies, sizeof hierarchies, "%s/sys", folder);
    return pf_memory_limit_of_groups(path, hierarchies);
}

static void the_least_limit_on_the_way_up_counts(void **state)
{
    (void)state;
    char *folder = test_folder_make();

    write_file(folder, "sys/memory.max", "max\n");
    write_file(folder, "sys/a/memory.max", "536870912\n");
    write_file(folder, "sys/a/b/memory.max", "max\n");
    write_file(folder, "sys/a/c/memory.max", "1048576\n");
    write_file(folder, "sys/memory/x/memory.limit_in_bytes", "2097152\n");
    write_file(folder, "sys/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(limit_of(folder, "0::/a/b\n"), 512 * MIB);
    assert_int_equal(limit_of(folder, "0::/a/c\n"), MIB);
    assert_true(limit_of(folder, "0::/\n") == PF_MEMORY_UNBOUND);
    assert_int_equal(limit_of(folder, "5:cpu:/a\n4:memory:/x\n0::/\n"), 2 * MIB);
    /* In a container the group's own path is the host's. */
    assert_int_equal(limit_of(folder, "4:memory:/x/not/here\n"), 2 * MIB);
    assert_int_equal(limit_of(folder, "0::/a/not-here\n"), 512 * MIB);
    test_folder_remove(folder);
}

static void what_is_no_list_limits_nothing(void **state)
{
    (void)state;
    char *folder = test_folder_make();

    write_file(folder, "sys/memory.max", "words\n");
    assert_true(limit_of(folder, "") == PF_MEMORY_UNBOUND);
    assert_true(limit_of(folder, "no colon\n0:one\n::\n0::/\n") == PF_MEMORY_UNBOUND);
    assert_true(pf_memory_limit_of_groups("/does/not/exist", folder) == PF_MEMORY_UNBOUND);
    assert_true(pf_memory_available() > 16 * MIB);
    test_folder_remove(folder);
}

#ifndef __SANITIZE_ADDRESS__
/* Takes blocks until there are no more; says how many MiB that were. */
static int take_what_there_is(void *context)
{
    static void *blocks[100];
    uint64_t bound = *(const uint64_t *)context, taken = 0;

    pf_memory_bound(bound);
    if (pf_memory_share() != bound)
        return 200;
    for (; taken < 100 && (blocks[taken] = malloc(MIB)) != NULL; taken++)
        memset(blocks[taken], (int)taken + 1, MIB);
    return pf_memory_of(getpid()) <= bound ? (int)taken : 201;
}

static void a_bound_is_held_by_the_kernel(void **state)
{
    (void)state;
    uint64_t bound = 32 * MIB;
    int status = test_child_wait(test_child(take_what_there_is, &bound));

    assert_true(WIFEXITED(status));
    int taken = WEXITSTATUS(status);
    assert_in_range(taken, 16, 32);
    assert_true(pf_memory_share() == PF_MEMORY_UNBOUND);
    assert_true(pf_memory_of(getpid()) > 0);
    assert_true(pf_memory_of(INT32_MAX) == 0);
}

/* How many MiB there are within a bound, and after it within the one before. */
static int take_twice(void *context)
{
    static void *blocks[100];
    uint64_t bound = *(const uint64_t *)context;
    unsigned taken = 0, within;
    pf_memory_bound(2 * bound);
    pf_memory_bound(bound);
    for (; taken < 100 && (blocks[taken] = malloc(MIB)) != NULL; taken++)
        memset(blocks[taken], 1, MIB);
    within = taken;
    pf_memory_bound_again(2 * bound);
    if (pf_memory_share() != 2 * bound)
        return 200;
    for (; taken < 100 && (blocks[taken] = malloc(MIB)) != NULL; taken++)
        memset(blocks[taken], 1, MIB);
    return within <= bound / MIB && taken > within + bound / MIB / 2 && taken <= 2 * bound / MIB ? 0 : 201;
}

static void a_tighter_bound_of_one_job_ends_with_it(void **state)
{
    (void)state;
    uint64_t bound = 24 * MIB;
    test_child_expect_exit(test_child(take_twice, &bound), 0);
}

typedef struct begin {
    uint64_t bound, room;
} begin;

/* The same where addresses go on downward to so few bytes above the next GiB. */
static int take_near_a_gib(void *context)
{
    const begin *at = context;
    uint64_t here = (uint64_t)(uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t above = here & ((UINT64_C(1) << 30) - 1);

    if (above > at->room && mmap(NULL, above - at->room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 202;
    uint64_t bound = at->bound;
    return take_what_there_is(&bound);
}

static void a_share_is_whole_wherever_addresses_begin(void **state)
{
    (void)state;
    for (uint64_t room = 1; room <= 33; room += 4) {
        begin at = {.bound = 32 * MIB, .room = room * MIB};
        int status = test_child_wait(test_child(take_near_a_gib, &at));
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 24, 32);
    }
}
#else
static void a_share_is_whole_wherever_addresses_begin(void **state)
{
    (void)state;
    skip();
}

static void a_tighter_bound_of_one_job_ends_with_it(void **state)
{
    (void)state;
    skip();
}

static void a_bound_is_held_by_the_kernel(void **state)
{
    (void)state;
    skip(); /* the sanitizer's own mappings are far beyond any bound */
}
#endif

static void parts_of_a_share_have_a_floor_and_a_ceiling(void **state)
{
    (void)state;
    assert_int_equal(pf_memory_part(4, MIB, 8 * MIB), 8 * MIB);
    assert_int_equal(pf_memory_part(1, 9 * MIB, 8 * MIB), 8 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_limit_on_the_way_up_counts),
        cmocka_unit_test(what_is_no_list_limits_nothing),
        cmocka_unit_test(a_bound_is_held_by_the_kernel),
        cmocka_unit_test(a_tighter_bound_of_one_job_ends_with_it),
        cmocka_unit_test(a_share_is_whole_wherever_addresses_begin),
        cmocka_unit_test(parts_of_a_share_have_a_floor_and_a_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
