/*
 * How long a request may be given again (OD-048, R-01, R-02): within the receipts that are kept it gets its first
 * result, however many commits and segments came in between; beyond them it is told that it has expired, and nothing is
 * staged; an id without a time of its own, which nobody can tell the age of, runs as new.
 */
#include "die.h"
#include "platform/clock.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

static void pass_days(int days)
{
    pf_sleep_until(pf_deadline_in_ms(days * DAY_MS).monotonic_ns);
}

static sluice_status count_name(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    (void)name;
    (void)kind;
    (void)err;
    ++*(uint32_t *)context;
    return SLUICE_OK;
}

static uint32_t segments(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    uint32_t count = 0;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(pf_list(volume, "branches/1/log", count_name, &count, &err));
    pf_volume_close(volume);
    return count;
}

/* Small commits until the next segment is open: its opening record carries the receipts that are kept. */
static void open_a_segment(pf_sim_disk *disk, int64_t *key)
{
    uint32_t before = segments(disk);
    while (segments(disk) == before)
        die_expect_next_write(disk, (*key)++);
}

static sluice_status again(pf_sim_disk *disk, const pf_id *operation, int64_t key, co_receipt *ret_receipt,
                           sluice_error *err)
{
    toy_writer toy = toy_of("A", key, 1);
    toy_options options = {.operation = *operation, .given = true};
    st_graph *graph = toy_open(disk);
    sluice_status status = toy_write(graph, &toy, &options, ret_receipt, err);
    if (status == SLUICE_IDEMPOTENCY_CONFLICT || ret_receipt->repeated)
        assert_int_equal(toy.payloads, 0);
    st_graph_close(graph);
    return status;
}

static void a_request_given_again_after_its_receipt_went_has_expired(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(11);
    pf_id operation = pf_id_new(), timeless = pf_id_new(), unused = pf_id_new();
    co_receipt first = {0}, receipt = {0};
    int64_t key = 1000;
    timeless.bytes[6] = (uint8_t)(0x40 | (timeless.bytes[6] & 0x0F));

    ASSERT_OK(again(disk, &operation, 1, &first, &err));
    ASSERT_OK(again(disk, &timeless, 2, &receipt, &err));
    pass_days(29);
    open_a_segment(disk, &key);
    ASSERT_OK(again(disk, &operation, 1, &receipt, &err)); /* the receipt moved into the opening record */
    assert_true(receipt.repeated && pf_id_equal(&receipt.commit, &first.commit));

    pass_days(2);
    open_a_segment(disk, &key);
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, again(disk, &operation, 1, &receipt, &err));
    assert_non_null(strstr(err.message, "expired"));
    assert_int_equal(err.committed, SLUICE_UNKNOWN);
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, again(disk, &unused, 3, &receipt, &err)); /* may have been used */
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, again(disk, &timeless, 2, &receipt, &err));       /* ran as new */
    timeless.bytes[0] ^= 1;
    ASSERT_OK(again(disk, &timeless, 4, &receipt, &err));
    pf_id young = pf_id_new();
    ASSERT_OK(again(disk, &young, 5, &receipt, &err));
    assert_false(receipt.repeated);
    die_expect_no_litter(disk);
    die_expect_whole(disk);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

typedef struct passing {
    pf_sim_disk *disk;
    int64_t key;
} passing;

static void let_receipts_go(void *context)
{
    passing *time = context;
    pass_days(31);
    open_a_segment(time->disk, &time->key);
}

/* Expiry is judged at the first look: what fails much later says what it failed of, and that it is not committed. */
static void a_write_that_fails_after_its_receipt_would_have_gone_has_not_expired(void **state)
{
    (void)state;
    sluice_error err = {0};
    passing time = {.disk = toy_disk(12), .key = 1000};
    toy_writer toy = toy_of("A", 1, 1);
    toy_options options = {.operation = pf_id_new(), .given = true};
    die_expect_next_write(time.disk, 1);
    toy.before_plan = let_receipts_go;
    toy.context = &time;
    st_graph *graph = toy_open(time.disk);
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, toy_write(graph, &toy, &options, NULL, &err));
    assert_int_equal(err.committed, SLUICE_FALSE);
    st_graph_close(graph);
    co_receipt receipt = {0};
    err = (sluice_error){0};
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, again(time.disk, &options.operation, 1, &receipt, &err)); /* a new look */
    pf_sim_disk_free(time.disk);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_given_again_after_its_receipt_went_has_expired),
        cmocka_unit_test(a_write_that_fails_after_its_receipt_would_have_gone_has_not_expired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
