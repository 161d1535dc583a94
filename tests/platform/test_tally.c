/* Tallies: what many processes add is there as a whole, also what a killed one added; without a share nothing counts.
 */
#include "platform/tally.h"
#include "tests/support/child.h"
#include "tests/support/test.h"

#include <signal.h>
#include <unistd.h>

#define PROCESSES 4u
#define EVENTS    5000u

typedef struct crowd_member {
    pf_tallies *tallies;
    uint32_t place;
} crowd_member;

static int count_and_be_killed(void *context)
{
    const crowd_member *member = context;
    pf_tallies_share(member->tallies, member->place);
    pf_tally_place(SLUICE_PHASE_ARM);
    for (unsigned i = 0; i < EVENTS; i++) {
        pf_tally_add(PF_TALLY_BYTES_WRITTEN, 3);
        pf_tally_value(PF_SERIES_GROUP, i % 2 ? 1 : 1000);
        pf_tally_failure(SLUICE_WRITE_CONFLICT);
    }
    return raise(SIGKILL);
}

static void what_many_processes_add_is_there(void **state)
{
    (void)state;
    pf_tallies *tallies = test_shared(sizeof *tallies);
    crowd_member members[PROCESSES];
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) {
        members[i] = (crowd_member){tallies, i};
        children[i] = test_child(count_and_be_killed, &members[i]);
    }
    for (uint32_t i = 0; i < PROCESSES; i++)
        test_child_expect_signal(children[i], SIGKILL);
    const pf_series_cells *group = &tallies->series[PF_SERIES_GROUP];
    assert_int_equal(tallies->counts[PF_TALLY_BYTES_WRITTEN], 3 * PROCESSES * EVENTS);
    assert_int_equal(tallies->failures[SLUICE_WRITE_CONFLICT], PROCESSES * EVENTS);
    assert_int_equal(group->cells[0], PROCESSES * EVENTS / 2);
    assert_int_equal(group->cells[PF_TALLY_BOUNDS], PROCESSES * EVENTS / 2);
    assert_int_equal(group->sum, (uint64_t)PROCESSES * EVENTS / 2 * 1001);
    for (uint32_t i = 0; i < PROCESSES; i++)
        assert_int_equal(tallies->places[i], SLUICE_PHASE_ARM);
}

static void values_fall_into_the_cell_of_their_bound(void **state)
{
    (void)state;
    pf_tallies *tallies = test_shared(sizeof *tallies);
    pf_tallies_share(tallies, PF_TALLY_NOWHERE);
    for (int series = 0; series < PF_SERIES_COUNT; series++) {
        const uint64_t *bounds = pf_series_bounds((pf_series)series);
        for (unsigned i = 0; i < PF_TALLY_BOUNDS; i++) {
            assert_true(i == 0 || bounds[i] > bounds[i - 1]);
            pf_tally_value((pf_series)series, bounds[i]);
            pf_tally_value((pf_series)series, bounds[i] + 1);
        }
        for (unsigned i = 0; i <= PF_TALLY_BOUNDS; i++) {
            uint64_t beyond = i > 0 && (i == PF_TALLY_BOUNDS || bounds[i] > bounds[i - 1]);
            assert_int_equal(tallies->series[series].cells[i], (i < PF_TALLY_BOUNDS) + beyond);
        }
    }
    pf_tally_place(SLUICE_PHASE_ARM); /* nowhere */
    pf_tallies_share(NULL, PF_TALLY_NOWHERE);
}

static void a_process_without_a_share_counts_nothing(void **state)
{
    (void)state;
    assert_int_equal(pf_tally_clock(), 0);
    pf_tally_add(PF_TALLY_COMMITS, 1);
    pf_tally_failure(SLUICE_IO);
    pf_tally_value(PF_SERIES_SYNC, 1);
    pf_tally_since(PF_SERIES_SYNC, pf_tally_clock());
    pf_tally_place(SLUICE_PHASE_ARM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_many_processes_add_is_there),
        cmocka_unit_test(values_fall_into_the_cell_of_their_bound),
        cmocka_unit_test(a_process_without_a_share_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
