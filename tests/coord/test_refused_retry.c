/*
 * A write is asked for again under its operation id after its first process died without an answer. Whatever refuses
 * the second (a busy branch, a call that fails), it never says "not committed" of an operation whose commit is there or
 * is yet to be made by recovery.
 */
#include "coord/write.h"
#include "die.h"
#include "tests/support/test.h"
#include <errno.h>

#define CALLS_MAX 400u

static const pf_id OPERATION = {{0x01, 0x8f, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 7}};

static pf_sim_disk *disk_of_mode(st_write_mode mode)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    pf_sim_world_install(3);
    ASSERT_OK(pf_sim_disk_new(3, &disk, &err));
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    toy_init(volume, mode);
    pf_volume_close(volume);
    return disk;
}

static sluice_status ask(st_graph *graph, co_receipt *ret_receipt, sluice_error *err)
{
    toy_writer toy = toy_of("A", 10, 2);
    toy_options options = {.operation = OPERATION, .given = true};
    return toy_write(graph, &toy, &options, ret_receipt, err);
}

/* ---- beside a writer in single mode ---- */

typedef struct beside {
    pf_sim_disk *disk;
    sluice_status status;
    co_receipt receipt;
    sluice_error err;
} beside;

static void ask_beside(void *context)
{
    beside *retry = context;
    st_graph *graph = toy_open(retry->disk);
    retry->status = ask(graph, &retry->receipt, &retry->err);
    st_graph_close(graph);
}

static void a_busy_branch_does_not_hide_the_receipt(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_receipt first = {0};
    beside retry = {.disk = disk_of_mode(ST_MODE_SINGLE)};
    toy_writer holder = toy_of("B", 1, 1);
    holder.before_plan = ask_beside;
    holder.context = &retry;
    st_graph *graph = toy_open(retry.disk);
    ASSERT_OK(ask(graph, &first, &err));
    ASSERT_OK(toy_write(graph, &holder, NULL, NULL, &err));
    assert_int_equal(retry.status, SLUICE_OK);
    assert_true(retry.receipt.committed && retry.receipt.acknowledged && retry.receipt.repeated);
    assert_true(pf_id_equal(&retry.receipt.commit, &first.commit));
    st_graph_close(graph);
    pf_sim_disk_free(retry.disk);
    pf_sim_world_remove();
}

static void a_busy_branch_without_a_receipt_refuses_and_knows(void **state)
{
    (void)state;
    sluice_error err = {0};
    beside retry = {.disk = disk_of_mode(ST_MODE_SINGLE)};
    toy_writer holder = toy_of("B", 1, 1);
    holder.before_plan = ask_beside;
    holder.context = &retry;
    st_graph *graph = toy_open(retry.disk);
    ASSERT_OK(toy_write(graph, &holder, NULL, NULL, &err));
    assert_int_equal(retry.status, SLUICE_WRITER_BUSY);
    assert_int_equal(retry.err.committed, SLUICE_FALSE);
    st_graph_close(graph);
    pf_sim_disk_free(retry.disk);
    pf_sim_world_remove();
}

/* ---- with calls that fail ---- */

/* The operation's process dies behind its call k. Returns whether it does. */
static bool die_behind(pf_sim_disk *disk, uint64_t k)
{
    st_graph *graph = toy_open(disk);
    pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    (void)ask(graph, &(co_receipt){0}, NULL);
    bool dead = pf_sim_is_dead(st_graph_volume(graph));
    st_graph_close(graph);
    return dead;
}

static bool is_there(pf_sim_disk *disk)
{
    die_recover(disk);
    st_graph *graph = toy_open(disk);
    bool there = toy_keys(graph, "A", (int64_t[4]){0}, 4) == 2;
    st_graph_close(graph);
    return there;
}

/* The retry with its call j failing; false: it has no such call. */
static bool ask_with_failure(pf_sim_disk *disk, uint64_t j, bool look, unsigned *refused, unsigned *doubts)
{
    sluice_error err = {0};
    co_receipt receipt = {0};
    st_graph *graph = toy_open(disk);
    if (look)
        pf_sim_fail_look_at(st_graph_volume(graph), j, EIO, 1);
    else
        pf_sim_fail_at(st_graph_volume(graph), j, EIO, 1);
    sluice_status status = ask(graph, &receipt, &err);
    st_graph_close(graph);
    bool there = is_there(disk);
    if (status == SLUICE_OK) {
        assert_true(there);
    } else {
        ++*refused;
        *doubts += err.committed == SLUICE_UNKNOWN;
        bool speaks = err.operation_id[0] != 0; /* else it ended before it was one of that operation */
        assert_true(err.committed != SLUICE_FALSE || !speaks || !there);
        assert_true(err.committed != SLUICE_TRUE || there);
    }
    return status != SLUICE_OK;
}

static void a_retry_that_fails_never_denies_what_is_there_or_comes(void **state)
{
    (void)state;
    sluice_error err = {0};
    unsigned deaths = 0, refused = 0, doubts = 0;
    for (uint64_t k = 1; k < CALLS_MAX; k++) {
        pf_sim_disk *disk = disk_of_mode(ST_MODE_OPTIMISTIC);
        bool dead = die_behind(disk, k);
        bool waits = dead && die_look(disk).confirmed;
        pf_sim_disk *copy = NULL;
        ASSERT_OK(pf_sim_disk_clone(disk, k, &copy, &err));
        st_graph *graph = toy_open(copy);
        bool done = toy_keys(graph, "A", (int64_t[4]){0}, 4) == 2;
        st_graph_close(graph);
        pf_sim_disk_free(copy);
        deaths += waits || done;
        /* every failing call of the retry, beside an intent that waits and behind a commit that nobody was told of */
        unsigned quiet = 0;
        for (uint64_t j = 1; (waits || done) && quiet < 40 && j < CALLS_MAX; j++) {
            bool failed = false;
            for (int look = 0; look < 2; look++) {
                ASSERT_OK(pf_sim_disk_clone(disk, j, &copy, &err));
                failed |= ask_with_failure(copy, j, look, &refused, &doubts);
                pf_sim_disk_free(copy);
            }
            quiet = failed ? 0 : quiet + 1;
        }
        pf_sim_disk_free(disk);
        pf_sim_world_remove();
        if (!dead)
            break;
    }
    assert_true(deaths > 3 && refused > 50 && doubts > 10);
}

/* ---- beside a twin that lives ---- */

/* The first one's call j fails after a twin ran whole in front of its call k. Returns whether the twin got to run. */
static bool fail_beside_twin(pf_sim_disk *disk, uint64_t k, uint64_t j, unsigned *doubly, unsigned *refused)
{
    sluice_error err = {0};
    co_receipt receipt = {0};
    beside twin = {.disk = disk, .status = SLUICE_INTERNAL};
    st_graph *graph = toy_open(disk);
    pf_sim_interrupt_at(st_graph_volume(graph), k, ask_beside, &twin);
    pf_sim_fail_at(st_graph_volume(graph), j, EIO, 1);
    sluice_status status = ask(graph, &receipt, &err);
    st_graph_close(graph);
    bool there = is_there(disk), spoke = err.operation_id[0] != 0;
    if (twin.status == SLUICE_OK) {
        assert_true(there);
        *doubly += status == SLUICE_OK && receipt.repeated;
        *refused += status != SLUICE_OK;
    }
    if (status == SLUICE_OK)
        assert_true(there);
    else if (spoke)
        assert_true(err.committed != SLUICE_FALSE || !there);
    return twin.status != SLUICE_INTERNAL;
}

static void whoever_fails_beside_a_living_twin_never_denies_its_commit(void **state)
{
    (void)state;
    sluice_error err = {0};
    unsigned doubly = 0, refused = 0;
    pf_sim_disk *origin = disk_of_mode(ST_MODE_OPTIMISTIC), *disk = NULL;
    bool ran = true;
    for (uint64_t k = 1; ran && k < CALLS_MAX; k++) {
        for (uint64_t behind = 1; behind < 40; behind += behind < 8 ? 1 : 7) {
            ASSERT_OK(pf_sim_disk_clone(origin, k * 64 + behind, &disk, &err));
            ran = fail_beside_twin(disk, k, k + behind, &doubly, &refused);
            pf_sim_disk_free(disk);
        }
    }
    assert_true(doubly > 50 && refused > 5);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_branch_does_not_hide_the_receipt),
        cmocka_unit_test(a_busy_branch_without_a_receipt_refuses_and_knows),
        cmocka_unit_test(a_retry_that_fails_never_denies_what_is_there_or_comes),
        cmocka_unit_test(whoever_fails_beside_a_living_twin_never_denies_its_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
