/*
 * What a program puts under the library: its allocator gets every block back and may refuse any of them; its ear hears
 * what happens, and no name, key, value or path. The allocator is given before anything else, so it is this whole
 * program's.
 */
#include "lib_fixture.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- an allocator that knows its blocks ---- */

#define MAGIC UINT64_C(0x736c75696365f00d)

typedef struct block_head {
    uint64_t magic;
    size_t size, offset; /* from the start of what malloc gave to the block */
} block_head;

typedef struct counting {
    atomic_uint_fast64_t calls, live;
    atomic_uint_fast64_t refuse; /* this call gets nothing; 0: none */
} counting;
static counting heap;

static bool refused(counting *counts)
{
    uint64_t call = atomic_fetch_add(&counts->calls, 1) + 1;
    return call == atomic_load(&counts->refuse);
}

static void *count_allocate(void *context, size_t size, size_t alignment)
{
    counting *counts = context;
    size_t offset = alignment > sizeof(block_head) ? alignment : sizeof(block_head);
    assert_true(size > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0);
    offset = (offset + alignment - 1) / alignment * alignment;
    if (refused(counts))
        return NULL;
    uint8_t *start = aligned_alloc(alignment < 16 ? 16 : alignment, (offset + size + 4095) / 4096 * 4096);
    assert_non_null(start);
    memset(start, 0xa5, offset + size);
    block_head head = {.magic = MAGIC, .size = size, .offset = offset};
    memcpy(start + offset - sizeof head, &head, sizeof head);
    atomic_fetch_add(&counts->live, 1);
    return start + offset;
}

static block_head *head_of(void *block)
{
    block_head *head = (block_head *)(void *)((uint8_t *)block - sizeof(block_head));
    assert_true(head->magic == MAGIC);
    return head;
}

static void count_release(void *context, void *block)
{
    counting *counts = context;
    block_head *head = head_of(block);
    uint8_t *start = (uint8_t *)block - head->offset;
    head->magic = 0;
    memset(block, 0x5a, head->size);
    free(start);
    atomic_fetch_sub(&counts->live, 1);
}

static void *count_reallocate(void *context, void *block, size_t size)
{
    block_head *head = head_of(block);
    void *larger = count_allocate(context, size, 16);
    if (!larger)
        return NULL;
    memcpy(larger, block, head->size < size ? head->size : size);
    count_release(context, block);
    return larger;
}

/* ---- what is done with a graph ---- */

static bool each_change(void *context, const sluice_change *change)
{
    (void)change;
    ++*(unsigned *)context;
    return true;
}

static bool each_neighbor(void *context, const char *type, const char *key, uint32_t depth)
{
    (void)type;
    (void)key;
    *(unsigned *)context += depth;
    return true;
}

static sluice_status count_rows(sluice_snapshot *snapshot, sluice_error *err)
{
    const sluice_scan_options options = {.where = "age >= 30 and name != 'Cy'"};
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    sluice_status status = sluice_scan(snapshot, "Person", &options, &stream, err);
    if (status != SLUICE_OK)
        return status;
    int failed;
    while ((failed = stream.get_next(&stream, &batch)) == 0 && batch.release)
        batch.release(&batch);
    stream.release(&stream);
    return failed ? SLUICE_RESOURCE_LIMIT : SLUICE_OK;
}

#define STEP(call)                                                                                                     \
    if (status == SLUICE_OK)                                                                                           \
    status = (call)

/* Reads everything there is to read; the first failure ends it. */
static sluice_status read_all(const char *path, sluice_error *err)
{
    sluice_graph *graph = NULL;
    sluice_snapshot *snapshot = NULL, *first = NULL;
    char *json = NULL, *schema = NULL;
    unsigned seen = 0;
    uint64_t rows = 0;
    sluice_status status = sluice_open(path, SLUICE_READ, &graph, err);
    STEP(sluice_snapshot_open(graph, NULL, NULL, &snapshot, err));
    STEP(sluice_snapshot_open(graph, NULL, "2", &first, err));
    STEP(sluice_count(snapshot, "Person", &rows, err));
    STEP(sluice_snapshot_schema(snapshot, &schema, NULL, err));
    STEP(sluice_get(snapshot, "Person", "1", &json, NULL, err));
    STEP(sluice_neighbors(snapshot, "Person", "1", NULL, each_neighbor, &seen, err));
    STEP(sluice_diff(first, snapshot, each_change, &seen, err));
    STEP(count_rows(snapshot, err));
    sluice_free(json);
    sluice_free(schema);
    sluice_snapshot_close(first);
    sluice_snapshot_close(snapshot);
    sluice_close(graph);
    return status;
}

static sluice_status write_one(const char *path, const char *lines, sluice_error *err)
{
    sluice_graph *graph = NULL;
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    sluice_status status = sluice_open(path, SLUICE_WRITE, &graph, err);
    STEP(sluice_batch_new(&batch, err));
    STEP(sluice_batch_json(batch, lines, strlen(lines), err));
    STEP(sluice_commit(graph, batch, NULL, &receipt, err));
    sluice_batch_free(batch);
    sluice_close(graph);
    return status;
}

static void fill(lib_fixture *fixture)
{
    (void)lib_commit(fixture->graph, "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":1,\"name\":\"Ada\"}}\n"
                                     "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":2,\"name\":\"Bob\"}}\n"
                                     "{\"op\":\"insert\",\"edge\":\"KNOWS\",\"from\":1,\"to\":2}\n");
    (void)lib_commit(fixture->graph, "{\"op\":\"update\",\"node\":\"Person\",\"key\":1,\"set\":{\"age\":36}}\n");
}

/* ---- memory ---- */

static void all_memory_comes_from_the_programs_allocator_and_goes_back_to_it(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    sluice_receipt receipt;
    sluice_backup_result copied;
    sluice_salvage_result saved;
    sluice_merge_receipt merged;
    sluice_gc_result gone;
    char *file = test_path(fixture->folder, "people.csv"), *copy = test_path(fixture->folder, "copy"),
         *anew = test_path(fixture->folder, "new");
    FILE *csv = fopen(file, "w");
    assert_non_null(csv);
    assert_true(fputs("id,name\n10,Zoe\n11,Yan\n", csv) >= 0 && fclose(csv) == 0);
    fill(fixture);
    const sluice_input input = {.type = "Person", .path = file};
    ASSERT_OK(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_UPSERT, NULL, &receipt, &err));
    ASSERT_OK(sluice_branch_create(fixture->graph, "b", NULL, &err));
    ASSERT_OK(sluice_merge(fixture->graph, "b", SLUICE_MERGE_FAIL, false, NULL, NULL, NULL, &merged, &err));
    ASSERT_OK(read_all(fixture->path, &err));
    ASSERT_OK(sluice_gc(fixture->graph, NULL, &gone, &err));
    ASSERT_OK(sluice_backup(fixture->graph, copy, NULL, NULL, &copied, &err));
    ASSERT_OK(sluice_salvage(copy, NULL, "KNOWS", anew, NULL, NULL, &saved, &err));
    assert_true(saved.whole && saved.rows == 1);
    uint64_t before = atomic_load(&heap.live);
    ASSERT_OK(read_all(fixture->path, &err));
    assert_int_equal(atomic_load(&heap.live), before);
    sluice_close(fixture->graph);
    fixture->graph = NULL;
    assert_true(atomic_load(&heap.calls) > 1000);
    assert_int_equal(atomic_load(&heap.live), 0);
    free(file);
    free(copy);
    free(anew);
}

static void an_allocator_is_given_before_all_else_and_once(void **state)
{
    const sluice_allocator other = {&heap, count_allocate, count_reallocate, count_release},
                           none = {&heap, NULL, NULL, NULL};
    sluice_error err = {0};
    (void)state;
    ASSERT_FAILS(SLUICE_USAGE, sluice_set_allocator(&other, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_set_allocator(&none, &err));
    ASSERT_FAILS(SLUICE_USAGE, sluice_set_allocator(NULL, &err));
}

/* Each allocation in turn is refused: what was called fails with RESOURCE_LIMIT or does without, nothing is lost of
 * memory or of the graph. */
static void a_read_survives_the_refusal_of_any_allocation(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    fill(fixture);
    uint64_t live = atomic_load(&heap.live), from = atomic_load(&heap.calls), refusals = 0;
    ASSERT_OK(read_all(fixture->path, &err));
    uint64_t needed = atomic_load(&heap.calls) - from;
    for (uint64_t i = 1; i <= needed; i++) {
        sluice_error found = {0};
        atomic_store(&heap.refuse, atomic_load(&heap.calls) + i);
        sluice_status status = read_all(fixture->path, &found);
        if (status != SLUICE_OK && status != SLUICE_RESOURCE_LIMIT)
            fail_msg("allocation %llu of a read: %s %s", (unsigned long long)i, sluice_status_name(status), found.text);
        refusals += status != SLUICE_OK;
        if (atomic_load(&heap.live) != live)
            fail_msg("allocation %llu of a read: %llu blocks are left", (unsigned long long)i,
                     (unsigned long long)(atomic_load(&heap.live) - live));
    }
    atomic_store(&heap.refuse, 0);
    assert_true(refusals > needed / 2);
    print_message("%llu allocations of a read, %llu of them needed\n", (unsigned long long)needed,
                  (unsigned long long)refusals);
}

static void a_commit_survives_the_refusal_of_any_allocation(void **state)
{
    lib_fixture *fixture = *state;
    sluice_error err = {0};
    bool whole = getenv("SLUICE_LONG") != NULL;
    fill(fixture);
    uint64_t live = atomic_load(&heap.live), from = atomic_load(&heap.calls), committed = 0;
    ASSERT_OK(
        write_one(fixture->path, "{\"op\":\"update\",\"node\":\"Person\",\"key\":1,\"set\":{\"age\":0}}\n", &err));
    uint64_t needed = atomic_load(&heap.calls) - from, step = whole ? 1 : needed / 150 + 1;
    for (uint64_t i = 1; i <= needed; i += step) {
        char line[128], want[128];
        sluice_error found = {0};
        (void)snprintf(line, sizeof line, "{\"op\":\"update\",\"node\":\"Person\",\"key\":1,\"set\":{\"age\":%llu}}\n",
                       (unsigned long long)i);
        (void)snprintf(want, sizeof want, "\"age\":%llu}", (unsigned long long)i);
        atomic_store(&heap.refuse, atomic_load(&heap.calls) + i);
        sluice_status status = write_one(fixture->path, line, &found);
        atomic_store(&heap.refuse, 0);
        if (status != SLUICE_OK && status != SLUICE_RESOURCE_LIMIT)
            fail_msg("allocation %llu of a commit: %s %s", (unsigned long long)i, sluice_status_name(status),
                     found.text);
        assert_int_equal(atomic_load(&heap.live), live);
        char *now = lib_get(fixture->graph, "Person", "1");
        bool there = strstr(now, want) != NULL;
        sluice_free(now);
        live = atomic_load(&heap.live); /* this handle keeps what it has read */
        if (there != (status == SLUICE_OK || found.committed == SLUICE_TRUE))
            fail_msg("allocation %llu of a commit: %s, and the row says otherwise", (unsigned long long)i, found.text);
        committed += there;
    }
    print_message("%llu allocations of a commit; %llu of the tries stand\n", (unsigned long long)needed,
                  (unsigned long long)committed);
}

/* ---- events ---- */

typedef struct heard {
    char text[8192];
    unsigned count;
} heard;

static void hear(void *context, const sluice_event *event)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    heard *all = context;
    size_t at = strlen(all->text);
    all->count++;
    at += (size_t)snprintf(all->text + at, sizeof all->text - at, "%s %s (%s)", levels[event->level], event->name,
                           event->message);
    for (size_t i = 0; i < event->field_count && at < sizeof all->text; i++) {
        const sluice_field *field = &event->fields[i];
        at += field->text ? (size_t)snprintf(all->text + at, sizeof all->text - at, " %s=%s", field->name, field->text)
                          : (size_t)snprintf(all->text + at, sizeof all->text - at, " %s=%llu", field->name,
                                             (unsigned long long)field->number);
    }
    assert_true(at + 2 < sizeof all->text);
    all->text[at] = '\n';
    all->text[at + 1] = '\0';
}

static void everything_that_happens_is_heard_without_names_and_values(void **state)
{
    static const char *const wanted[] = {"debug commit (",
                                         "kind=mutate",
                                         "kind=load",
                                         "inserted=3",
                                         "generation=2",
                                         "info write-failed (",
                                         "code=KEY_CONFLICT phase=prepare committed=false",
                                         "warn write-failed (",
                                         "code=READ_SET_CHANGED",
                                         "info collected (",
                                         "info backup ("};
    static const char *const secret[] = {"Ada", "Bob", "Person", "KNOWS", "people.csv", "/", "36", "secret branch"};
    lib_fixture *fixture = *state;
    heard all = {.count = 0};
    sluice_error err = {0};
    sluice_backup_result copied;
    sluice_gc_result gone;
    sluice_receipt receipt;
    char id[SLUICE_ID_TEXT], *copy = test_path(fixture->folder, "copy"),
                             *file = test_path(fixture->folder, "people.csv");
    FILE *csv = fopen(file, "w");
    assert_non_null(csv);
    assert_true(fputs("id,name\n10,Zoe\n", csv) >= 0 && fclose(csv) == 0);
    sluice_set_log(hear, &all, SLUICE_LEVEL_DEBUG);
    fill(fixture);
    const sluice_input input = {.type = "Person", .path = file};
    ASSERT_OK(sluice_load(fixture->graph, &input, 1, SLUICE_LOAD_INSERT, NULL, &receipt, &err));
    sluice_graph_id(fixture->graph, id);
    sluice_error failed = {0};
    assert_int_equal(write_one(fixture->path, "{\"op\":\"insert\",\"node\":\"Person\",\"set\":{\"id\":1}}\n", &failed),
                     SLUICE_KEY_CONFLICT);
    sluice_batch *batch = NULL;
    const sluice_write_options conditional = {.if_head = "00000000-0000-7000-8000-000000000001"};
    ASSERT_OK(sluice_batch_new(&batch, &err));
    static const char delete[] = "{\"op\":\"delete\",\"node\":\"Person\",\"key\":10}\n";
    ASSERT_OK(sluice_batch_json(batch, delete, strlen(delete), &err));
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, sluice_commit(fixture->graph, batch, &conditional, &receipt, &err));
    sluice_batch_free(batch);
    ASSERT_OK(sluice_branch_create(fixture->graph, "secret branch", NULL, &err));
    ASSERT_OK(sluice_gc(fixture->graph, NULL, &gone, &err));
    ASSERT_OK(sluice_backup(fixture->graph, copy, NULL, NULL, &copied, &err));
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!strstr(all.text, wanted[i]))
            fail_msg("nothing says \"%s\" in\n%s", wanted[i], all.text);
    }
    assert_non_null(strstr(all.text, id));
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++) {
        char word[64];
        (void)snprintf(word, sizeof word, "=%s ", secret[i]);
        if (strstr(all.text, i < 6 ? secret[i] : word))
            fail_msg("\"%s\" is said in\n%s", secret[i], all.text);
    }
    unsigned count = all.count;
    sluice_set_log(hear, &all, SLUICE_LEVEL_WARN);
    (void)lib_commit(fixture->graph, "{\"op\":\"delete\",\"node\":\"Person\",\"key\":10}\n");
    sluice_set_log(NULL, NULL, SLUICE_LEVEL_DEBUG);
    (void)lib_commit(fixture->graph, "{\"op\":\"delete\",\"node\":\"Person\",\"key\":1,\"detach\":true}\n");
    assert_int_equal(all.count, count);
    free(copy);
    free(file);
}

static int use_left_handle(void *context)
{
    lib_fixture *fixture = context;
    heard all = {.count = 0};
    sluice_snapshot *snapshot = NULL;
    sluice_set_log(hear, &all, SLUICE_LEVEL_WARN);
    return sluice_snapshot_open(fixture->graph, NULL, NULL, &snapshot, NULL) == SLUICE_USAGE &&
                   strstr(all.text, "warn left-handle")
               ? 0
               : 1;
}

static void a_handle_that_a_forked_child_uses_is_heard_of(void **state)
{
    test_child_expect_exit(test_child(use_left_handle, *state), 0);
}

#define IN_GRAPH(name) cmocka_unit_test_setup_teardown(name, lib_fixture_make, lib_fixture_free)

int main(void)
{
    const sluice_allocator counted = {&heap, count_allocate, count_reallocate, count_release};
    const struct CMUnitTest tests[] = {
        IN_GRAPH(all_memory_comes_from_the_programs_allocator_and_goes_back_to_it),
        cmocka_unit_test(an_allocator_is_given_before_all_else_and_once),
        IN_GRAPH(a_read_survives_the_refusal_of_any_allocation),
        IN_GRAPH(a_commit_survives_the_refusal_of_any_allocation),
        IN_GRAPH(everything_that_happens_is_heard_without_names_and_values),
        IN_GRAPH(a_handle_that_a_forked_child_uses_is_heard_of),
    };
    if (sluice_set_allocator(&counted, NULL) != SLUICE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
