/*
 * Every call of a write fails once, or from there on for ever, and the process lives: whatever it answers is true, now
 * and after recovery, and the next write works (OW-074, OD-051, OD-052; L-004, L-008, L-017, L-018; F-10).
 */
#include "coord/recover.h"
#include "die.h"
#include "tests/support/test.h"
#include <errno.h>
#include <stdlib.h>

static const int64_t old_keys[] = {1, 2};
static const int64_t new_keys[] = {10, 11, 12};
#define OLD 2u
#define NEW 3u

static pf_sim_disk *prepare(uint64_t seed)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, OLD);
    pf_sim_disk *disk = toy_disk(seed);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    st_graph_close(graph);
    return disk;
}

typedef struct io_fault {
    int number;
    unsigned times;   /* 0: for ever */
    bool looks;       /* of calls that only look */
    pf_sim_loss sync; /* what of a file whose sync failed had reached the medium */
} io_fault;

static void strike(pf_volume *volume, const io_fault *fault, uint64_t k)
{
    if (fault->looks)
        pf_sim_fail_look_at(volume, k, fault->number, fault->times);
    else
        pf_sim_fail_at(volume, k, fault->number, fault->times);
}

/* The rows as another process sees them, before anything is recovered. */
static bool is_there(pf_sim_disk *disk)
{
    return die_expect_old_or_new(disk, old_keys, OLD, new_keys, NEW);
}

static unsigned answered_ok, answered_false, answered_true, answered_unknown;

static void check_answer(pf_sim_disk *disk, sluice_status status, const sluice_error *err, const co_receipt *receipt)
{
    if (status == SLUICE_OK) {
        answered_ok++;
        assert_true(receipt->committed && receipt->acknowledged);
        assert_true(is_there(disk));
        return;
    }
    assert_int_equal(err->code, status);
    assert_true(err->phase == SLUICE_PHASE_NONE || err->operation_id[0] != '\0'); /* NONE: before the machine ran */
    switch (err->committed) {
    case SLUICE_FALSE:
        answered_false++;
        assert_int_equal(err->acknowledged, SLUICE_FALSE);
        assert_false(is_there(disk));
        break;
    case SLUICE_TRUE:
        answered_true++;
        assert_int_equal(status, SLUICE_SUSPECT);
        assert_int_equal(err->acknowledged, SLUICE_FALSE);
        assert_true(err->commit_id[0] != '\0');
        assert_true(is_there(disk));
        break;
    case SLUICE_UNKNOWN: /* the log could not be read, or the operation waits for recovery: nothing else (D-3) */
        answered_unknown++;
        assert_true(status == SLUICE_CORRUPT || status == SLUICE_RECOVERY_REQUIRED);
        assert_true(err->commit_id[0] != '\0');
        break;
    }
}

static void fail_one(pf_sim_disk *origin, const ad_adapter *adapter, const io_fault *fault, uint64_t k)
{
    pf_sim_disk *disk = NULL;
    sluice_error err = {0};
    co_receipt receipt = {0};
    toy_writer toy = toy_of("A", new_keys[0], NEW), next = toy_of("A", 100, 1);
    ASSERT_OK(pf_sim_disk_clone(origin, 31 * k, &disk, &err));
    toy.adapter = adapter;
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    pf_sim_set_failed_sync(disk, fault->sync);
    strike(volume, fault, k);
    sluice_status status = toy_write(graph, &toy, NULL, &receipt, &err);
    strike(volume, fault, 0);
    check_answer(disk, status, &err, &receipt);
    sluice_truth answered = status == SLUICE_OK ? SLUICE_TRUE : err.committed;

    err = (sluice_error){0};
    ASSERT_OK(
        toy_write(graph, &next, NULL, NULL, &err)); /* by the same process, which heals and settles what it must */
    st_graph_close(graph);
    die_recover(disk);
    int64_t found[8];
    graph = toy_open(disk);
    uint32_t count = toy_keys(graph, "A", found, 8);
    st_graph_close(graph);
    assert_true(count == OLD + 1 || count == OLD + NEW + 1);
    if (answered != SLUICE_UNKNOWN)
        assert_int_equal(count == OLD + NEW + 1, answered == SLUICE_TRUE);
    die_expect_settled(disk);
    die_expect_no_litter(disk);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL); /* and all of it is durable */
    graph = toy_open(disk);
    assert_int_equal(toy_keys(graph, "A", found, 8), count);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static uint64_t calls_of(pf_sim_disk *origin, const ad_adapter *adapter, bool looks)
{
    pf_sim_disk *disk = NULL;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", new_keys[0], NEW);
    ASSERT_OK(pf_sim_disk_clone(origin, 1, &disk, &err));
    toy.adapter = adapter;
    st_graph *graph = toy_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    uint64_t start = pf_sim_calls(volume);
    pf_volume_counters_reset(volume);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    const pf_counters *made = pf_volume_counters(volume);
    uint64_t calls = looks ? made->opens + made->reads + made->lists + made->locks + made->maps + made->stats
                           : pf_sim_calls(volume) - start;
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    return calls;
}

static void fail_everywhere(const ad_adapter *adapter, const io_fault *fault, uint64_t step)
{
    pf_sim_disk *origin = prepare(17);
    uint64_t calls = calls_of(origin, adapter, fault->looks);
    assert_true(calls >= 8);
    for (uint64_t k = 1; k <= calls; k += step)
        fail_one(origin, adapter, fault, k);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static ad_adapter authority_first = {.kind = "load", .version = 1, .arms = false, .replays = true, .retry_budget = 3};

static void a_call_that_fails_once_is_answered_truthfully(void **state)
{
    (void)state;
    for (unsigned sync = 0; sync < 3; sync++) {
        const io_fault fault = {EIO, 1, false, (pf_sim_loss)sync};
        fail_everywhere(&ad_load, &fault, 1);
        fail_everywhere(&authority_first, &fault, 1);
    }
}

static void calls_that_fail_for_ever_are_answered_truthfully(void **state)
{
    (void)state;
    const io_fault io = {EIO, 0, false, PF_SIM_LOSE_ALL};
    fail_everywhere(&ad_load, &io, 1);
    fail_everywhere(&authority_first, &io, 1);
}

static void a_full_disk_is_answered_truthfully(void **state)
{
    (void)state;
    const io_fault once = {ENOSPC, 1, false, PF_SIM_LOSE_ALL}, ever = {ENOSPC, 0, false, PF_SIM_LOSE_ALL};
    fail_everywhere(&ad_load, &once, 1);
    fail_everywhere(&ad_load, &ever, 1);
}

static void a_look_that_fails_is_answered_truthfully(void **state)
{
    (void)state;
    const io_fault io = {EIO, 1, true, PF_SIM_LOSE_ALL}, descriptors = {EMFILE, 1, true, PF_SIM_LOSE_ALL};
    fail_everywhere(&ad_load, &io, 1);
    fail_everywhere(&ad_load, &descriptors, 7);
}

/* The tests before met each kind of answer; else they have not tested it. */
static void every_kind_of_answer_was_met(void **state)
{
    (void)state;
    print_message("%u ok, %u false, %u true, %u unknown\n", answered_ok, answered_false, answered_true,
                  answered_unknown);
    assert_true(answered_ok > 0 && answered_false > 0 && answered_true > 0 && answered_unknown > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_once_is_answered_truthfully),
        cmocka_unit_test(calls_that_fail_for_ever_are_answered_truthfully),
        cmocka_unit_test(a_full_disk_is_answered_truthfully),
        cmocka_unit_test(a_look_that_fails_is_answered_truthfully),
        cmocka_unit_test(every_kind_of_answer_was_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
