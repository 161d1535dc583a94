/*
 * A leader that publishes a group of three, killed before and after each of its calls that change or sync something
 * (P-10, O-03). The other two members stand in line, alive; their offers are made as stage G makes them.
 *
 * When the leader alone dies, the next writer settles what it had taken: each member is answered, each commit is in the
 * chain once. When the power goes, the three are there together or not at all, and what was answered is there.
 */
#include "coord/publish.h"
#include "die.h"
#include "tests/support/aftermath.h"
#include "tests/support/crew.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define MEMBERS 2u /* beside the leader */
#define LEADER  2u
#define NEXT    3u

static const ad_adapter authority_first = {
    .kind = "mutate", .version = 1, .arms = false, .replays = true, .retry_budget = 3};

typedef struct waiting { /* a member whose process stands in line */
    shm_publisher me;
    st_graph *graph;
    co_attempt attempt;
    toy_writer toy;
    bool stands;
    pf_id commit;
} waiting;

typedef struct scene {
    pf_sim_disk *disk;
    crew all;
    waiting members[MEMBERS];
} scene;

/* What stages B to F would have set, and the first half of G; then the write stops where it is. */
static void stand_in_line(void *context)
{
    waiting *member = context;
    sluice_error err = {0};
    shm_offer offer = {0};
    uint64_t ticket = 0;
    co_run *run = (co_run *)member->toy.write;
    run->digest = st_delta_digest(&run->write.delta);
    run->claim = (co_claim){.graph = run->write.graph,
                            .log = run->log,
                            .reads = &run->write.reads,
                            .commit = run->write.delta.commit.id,
                            .operation = run->request.operation,
                            .delta = run->digest,
                            .request = run->request.request,
                            .verdict = st_snapshot_view(run->write.base)->generation,
                            .seen = st_snapshot_view(run->write.base)->generation};
    ASSERT_OK(co_offer_put(run, &member->me, &offer, &err));
    assert_true(offer.length > 0);
    ASSERT_OK(shm_publish_enter(&member->me, &offer, &ticket, &err));
    member->commit = run->claim.commit;
    member->stands = true;
}

static bool it_stands(void *context)
{
    return ((waiting *)context)->stands;
}

static toy_writer toy_with(int64_t key)
{
    toy_writer toy = toy_of("A", key, 1);
    toy.adapter = &authority_first;
    toy.attached = true;
    return toy;
}

static void make_member(scene *of, uint32_t slot)
{
    sluice_error err = {0};
    waiting *member = &of->members[slot];
    of->all.tokens[slot] = shm_slot_assign(&of->all.region, slot);
    *member = (waiting){.me = {&of->all.region, of->all.tokens[slot]}, .toy = toy_with(10 * ((int64_t)slot + 1))};
    member->toy.after_plan = stand_in_line;
    member->toy.context = member;
    member->graph = toy_open(of->disk);
    wk_executor executor = toy_executor();
    executor.context = member;
    executor.cancelled = it_stands;
    const toy_options options = {.executor = &executor};
    ASSERT_OK(co_attempt_make(member->graph, &member->attempt, &err));
    co_receipt receipt;
    ASSERT_FAILS(SLUICE_CANCELLED,
                 toy_conduct(member->graph, &member->toy, &options, &member->attempt, &receipt, &err));
    assert_true(member->stands);
}

static scene scene_make(const pf_sim_disk *origin, uint64_t seed)
{
    sluice_error err = {0};
    scene made = {0};
    ASSERT_OK(pf_sim_disk_clone(origin, seed, &made.disk, &err));
    crew_make(&made.all, NEXT + 1, 16384);
    return made;
}

static void scene_end(scene *of)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        co_attempt_leave(&of->members[i].attempt);
        st_graph_close(of->members[i].graph);
    }
    crew_free(&of->all);
    pf_sim_disk_free(of->disk);
}

typedef struct outcome {
    sluice_status status;
    sluice_error error;
    co_receipt receipt;
} outcome;

static outcome write_from(scene *of, uint32_t slot, st_graph *graph, int64_t key)
{
    outcome found = {0};
    toy_writer toy = toy_with(key);
    of->all.tokens[slot] = shm_slot_assign(&of->all.region, slot);
    const shm_publisher me = {&of->all.region, of->all.tokens[slot]};
    wk_executor executor = toy_executor();
    executor.publisher = &me;
    const toy_options options = {.executor = &executor};
    found.status = toy_write(graph, &toy, &options, &found.receipt, &found.error);
    return found;
}

static uint64_t lead_struck(scene *of, uint64_t k, bool before, pf_sim_fate fate, pf_sim_loss loss,
                            outcome *ret_outcome)
{
    st_graph *graph = toy_open(of->disk);
    pf_volume *volume = st_graph_volume(graph);
    uint64_t start = pf_sim_calls(volume);
    if (k)
        pf_sim_crash_at(volume, k, before, fate, loss);
    *ret_outcome = write_from(of, LEADER, graph, 30);
    uint64_t calls = pf_sim_calls(volume) - start;
    st_graph_close(graph);
    return calls;
}

static bool was_told(const waiting *member)
{
    co_answer answer;
    if (shm_publish_own(&member->me) != SHM_PUBLISH_DECIDED)
        return false;
    memcpy(&answer, shm_publish_answer_of(&member->me, member->me.token.slot), sizeof answer);
    if (answer.tried)
        return answer.outcome == ST_APPEND_ACKNOWLEDGED;
    return answer.status == SLUICE_OK && answer.finding == CO_PUBLISHED;
}

static bool holds(scene *of, int64_t key)
{
    int64_t found[64];
    bool there = false;
    st_graph *graph = toy_open(of->disk);
    uint32_t count = toy_keys(graph, "A", found, 64);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(i == 0 || found[i] != found[i - 1]);
        there = there || found[i] == key;
    }
    st_graph_close(graph);
    return there;
}

static void expect_commit(scene *of, const pf_id *commit)
{
    sluice_error err = {0};
    st_log *log = NULL;
    uint64_t generation;
    uint32_t index;
    st_graph *graph = toy_open(of->disk);
    ASSERT_OK(st_graph_log(graph, ST_MAIN_INCARNATION, &log, &err));
    ASSERT_OK(st_commit_find(graph, log, commit, &generation, &index, &err));
    st_graph_close(graph);
}

/* The leader died; the others of its pool go on. */
static void survive_the_leader(scene *of, const outcome *leader)
{
    sluice_error err = {0};
    shm_slot_revoke(&of->all.region, LEADER);
    ASSERT_OK(shm_publish_bury(&of->all.region, LEADER, &err));
    st_graph *graph = toy_open(of->disk);
    outcome next = write_from(of, NEXT, graph, 40);
    if (next.status != SLUICE_OK)
        fail_msg("the next writer: %s", next.error.text);
    st_graph_close(graph);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_true(was_told(&of->members[i]));
        expect_commit(of, &of->members[i].commit);
        assert_true(holds(of, of->members[i].toy.keys[0]));
    }
    assert_true(holds(of, 40) && holds(of, 1));
    assert_true(leader->status != SLUICE_OK || holds(of, 30));
}

static void survive_the_power(scene *of, const outcome *leader, const bool *told)
{
    die_recover(of->disk);
    bool there = holds(of, 10);
    assert_true(holds(of, 1));
    assert_int_equal(holds(of, 20), there);
    assert_true(leader->status != SLUICE_OK || there);
    assert_true((!told[0] && !told[1]) || there);
    assert_true(!there || holds(of, 30)); /* one record */
    die_expect_settled(of->disk);
    die_expect_next_write(of->disk, 100);
}

static void strike(const pf_sim_disk *origin, uint64_t k, bool before, pf_sim_fate fate, pf_sim_loss loss)
{
    outcome leader;
    bool told[MEMBERS];
    scene made = scene_make(origin, 1000 * k + 2 * (uint64_t)loss + before);
    for (uint32_t i = 0; i < MEMBERS; i++)
        make_member(&made, i);
    (void)lead_struck(&made, k, before, fate, loss, &leader);
    for (uint32_t i = 0; i < MEMBERS; i++)
        told[i] = was_told(&made.members[i]);
    if (fate == PF_SIM_DIE)
        survive_the_leader(&made, &leader);
    else
        survive_the_power(&made, &leader, told);
    if (before)
        die_expect_whole(made.disk);
    scene_end(&made);
}

static void a_leader_of_three_that_dies_at_any_call_leaves_all_or_none(void **state)
{
    (void)state;
    sluice_error err = {0};
    toy_writer old = toy_with(1);
    outcome leader;
    pf_sim_disk *origin = toy_disk(11);
    st_graph *graph = toy_open(origin);
    ASSERT_OK(toy_write(graph, &old, NULL, NULL, &err));
    st_graph_close(graph);
    scene made = scene_make(origin, 1);
    for (uint32_t i = 0; i < MEMBERS; i++)
        make_member(&made, i);
    uint64_t calls = lead_struck(&made, 0, false, PF_SIM_DIE, PF_SIM_KEEP_ALL, &leader);
    assert_int_equal(leader.status, SLUICE_OK);
    assert_int_equal(leader.receipt.index, MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_true(was_told(&made.members[i]));
    scene_end(&made);
    for (uint64_t k = 1; k <= calls; k++)
        for (unsigned before = 0; before < 2; before++) {
            strike(origin, k, before, PF_SIM_DIE, PF_SIM_KEEP_ALL);
            strike(origin, k, before, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL);
            strike(origin, k, before, PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL);
            strike(origin, k, before, PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST);
            strike(origin, k, before, PF_SIM_POWER_LOSS, PF_SIM_RANDOM);
        }
    print_message("%llu calls\n", (unsigned long long)calls);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

/* ---- every disk ---- */

#define MOMENTS_MAX 128u

typedef struct moment {
    scene *of;
    bool told[MOMENTS_MAX][MEMBERS];
    uint32_t number;
    outcome leader;
    uint64_t judged;
} moment;

static void note_told(void *context, uint32_t number)
{
    moment *m = context;
    assert_true(number < MOMENTS_MAX - 1);
    for (uint32_t i = 0; i < MEMBERS; i++)
        m->told[number][i] = was_told(&m->of->members[i]);
}

static void survive_disk(void *context, pf_sim_disk *disk)
{
    moment *m = context;
    sluice_error err = {0};
    scene at = {0};
    ASSERT_OK(pf_sim_disk_clone(disk, m->number, &at.disk, &err));
    survive_the_power(&at, &m->leader, m->told[m->number]);
    if (m->judged++ % 4 == 0)
        die_expect_whole(at.disk);
    pf_sim_disk_free(at.disk);
}

static void a_leader_of_three_that_loses_power_leaves_all_or_none_on_every_disk(void **state)
{
    (void)state;
    const aftermath_bounds bounds = {
        .disks = getenv("SLUICE_LONG") ? 4096 : 32, .singles = true, .pairs = getenv("SLUICE_LONG"), .samples = 8};
    sluice_error err = {0};
    toy_writer old = toy_with(1);
    pf_sim_disk *origin = toy_disk(13);
    recording record = {0};
    seen_disks seen = {0};
    aftermath_counts counts = {0};
    st_graph *graph = toy_open(origin);
    ASSERT_OK(toy_write(graph, &old, NULL, NULL, &err));
    st_graph_close(graph);
    scene made = scene_make(origin, 1);
    moment m = {.of = &made, .leader.status = SLUICE_FENCED};
    for (uint32_t i = 0; i < MEMBERS; i++)
        make_member(&made, i);
    record.noticed = note_told;
    record.context = &m;
    outcome leader;
    recording_begin(&record, made.disk);
    (void)lead_struck(&made, 0, false, PF_SIM_DIE, PF_SIM_KEEP_ALL, &leader);
    recording_end(&record);
    assert_int_equal(leader.receipt.index, MEMBERS);
    for (; m.number < record.count; m.number++)
        aftermath_each(record.disks[m.number], &bounds, m.told[m.number][0], &seen, survive_disk, &m, &counts);
    note_told(&m, m.number);
    m.leader = leader;
    aftermath_each(made.disk, &bounds, 2, &seen, survive_disk, &m, &counts);
    print_message("%u calls; of %llu moments (%llu whole) %llu disks, %llu distinct\n", record.count,
                  (unsigned long long)counts.moments, (unsigned long long)counts.whole,
                  (unsigned long long)counts.tried, (unsigned long long)counts.distinct);
    recording_free(&record);
    seen_free(&seen);
    scene_end(&made);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_of_three_that_dies_at_any_call_leaves_all_or_none),
        cmocka_unit_test(a_leader_of_three_that_loses_power_leaves_all_or_none_on_every_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
