/* See crash_fixture.h. */
#include "crash_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const pf_sim_loss losses[] = {PF_SIM_LOSE_ALL, PF_SIM_KEEP_ALL, PF_SIM_RANDOM, PF_SIM_TEAR_LAST};
#define LOSSES (sizeof(losses) / sizeof(losses[0]))

pf_volume *crash_actor(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    return volume;
}

static sluice_status append(st_log *log, uint32_t flavour, size_t attached, history *past, sluice_error *err)
{
    st_append_outcome outcome;
    uint64_t number = st_log_end(log).number + 1;
    assert_true(number < HISTORY_MAX);
    past->at[number].flavour = flavour;
    past->at[number].attached = attached;
    past->possible = number;
    sluice_status status = log_fixture_append(log, flavour, attached, &outcome, err);
    if (outcome == ST_APPEND_ACKNOWLEDGED)
        past->acknowledged = number;
    else if (outcome == ST_APPEND_NOT)
        past->possible = number - 1;
    return status;
}

sluice_status crash_act(pf_volume *volume, const scenario *plan, bool appends, history *past, sluice_error *err)
{
    st_log *log = NULL;
    sluice_status status;

    PF_GOTO(status, done, st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, err));
    st_opening_source opening = log_fixture_opening(log);
    PF_GOTO(status, done, st_log_heal(log, &opening, err));
    PF_GOTO(status, done, st_log_settle(log, err));
    past->acknowledged = past->possible = st_log_end(log).number;
    if (appends)
        PF_GOTO(status, done, append(log, 2, plan->attached, past, err));
done:
    st_log_close(log);
    return status;
}

void crash_append(pf_sim_disk *disk, history *past, unsigned n, size_t attached)
{
    sluice_error err = {0};
    st_log *log;
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_WRITE, &log, &err));
    for (unsigned i = 0; i < n; i++)
        ASSERT_OK(append(log, 1, attached, past, &err));
    st_log_close(log);
    pf_volume_close(volume);
}

static uint64_t read_all(pf_sim_disk *disk, const history *past, bool verify)
{
    sluice_error err = {0};
    st_log *log;
    st_record record = {0};
    pf_volume *volume = crash_actor(disk);

    ASSERT_OK(st_log_open(volume, LOG_FOLDER, LOG_INCARNATION, PF_READ, &log, &err));
    uint64_t end = st_log_end(log).number;
    assert_in_range(end, past->acknowledged, past->possible);
    for (uint64_t number = 1; number <= end; number++) {
        ASSERT_OK(st_log_read(log, number, &record, &err));
        assert_true(log_fixture_is(&record, number, past->at[number].flavour, past->at[number].attached));
        st_record_free(&record);
    }
    if (verify)
        ASSERT_OK(st_log_verify(log, NULL, NULL, &err));
    assert_int_equal(st_log_end(log).number, end);
    st_log_close(log);
    pf_volume_close(volume);
    return end;
}

uint64_t crash_check(pf_sim_disk *disk, const history *past)
{
    uint64_t before = pf_sim_digest(disk);
    uint64_t end = read_all(disk, past, true);
    assert_int_equal(read_all(disk, past, false), end);
    assert_true(pf_sim_digest(disk) == before);
    return end;
}

static pf_sim_disk *clone(const pf_sim_disk *disk, uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *copy;
    ASSERT_OK(pf_sim_disk_clone(disk, seed, &copy, &err));
    return copy;
}

/* Recovers to the end, twice; then a new append works; and a loss of power after each of them takes nothing. Frees the
 * disk. */
static uint64_t finish(pf_sim_disk *disk, history past)
{
    sluice_error err = {0};
    uint64_t settled = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint64_t seen_end = read_all(disk, &past, false);
        pf_volume *volume = crash_actor(disk);
        ASSERT_OK(crash_act(volume, NULL, false, &past, &err));
        pf_volume_close(volume);
        settled = past.acknowledged;
        assert_true(settled >= seen_end);
        pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
        assert_int_equal(read_all(disk, &past, false), settled);
    }
    crash_append(disk, &past, 1, 5000);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(read_all(disk, &past, true), settled + 1);
    pf_sim_disk_free(disk);
    return settled;
}

/* Recovery itself is cut short at each of its calls, by death and by loss of power. */
static void crash_recovery(const pf_sim_disk *disk, const history *past)
{
    static const struct {
        pf_sim_fate fate;
        pf_sim_loss loss;
    } ends[] = {
        {PF_SIM_DIE, PF_SIM_LOSE_ALL}, {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL}, {PF_SIM_POWER_LOSS, PF_SIM_RANDOM}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (uint64_t k = 1;; k++) {
            sluice_error err = {0};
            history after = *past;
            pf_sim_disk *copy = clone(disk, 1000 + k);
            pf_volume *volume = crash_actor(copy);
            pf_sim_crash_at(volume, k, k % 2 == 0, ends[i].fate, ends[i].loss);
            (void)crash_act(volume, NULL, false, &after, &err);
            bool died = pf_sim_is_dead(volume);
            pf_volume_close(volume);
            (void)finish(copy, after);
            if (!died)
                break;
        }
}

/* What follows a crash of the action, on `disk`, which it frees. */
static void after_crash(pf_sim_disk *disk, const history *past, pf_sim_fate fate, bool deep, uint64_t prior, seen *saw)
{
    uint64_t end = crash_check(disk, past);
    saw->runs++;
    saw->prior += end == prior;
    saw->new += end > prior;
    if (fate == PF_SIM_DIE)
        for (size_t i = 0; i < LOSSES; i++) {
            pf_sim_disk *copy = clone(disk, 77 + i);
            pf_sim_power_loss(copy, losses[i]);
            (void)finish(copy, *past);
        }
    if (deep)
        crash_recovery(disk, past);
    (void)finish(disk, *past);
}

static pf_sim_disk *prepare(const scenario *plan, history *past)
{
    sluice_error err = {0};
    pf_sim_disk *disk;
    ASSERT_OK(pf_sim_disk_new(11, &disk, &err));
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(log_fixture_make(volume, &err));
    pf_volume_close(volume);
    memset(past, 0, sizeof(*past));
    plan->prepare(disk, past);
    return disk;
}

seen crash_explore(const scenario *plan, unsigned seeds)
{
    static const struct {
        pf_sim_fate fate;
        pf_sim_loss loss;
        bool random, deep;
    } ends[] = {{PF_SIM_DIE, PF_SIM_LOSE_ALL, false, true},         {PF_SIM_DIE, PF_SIM_TEAR_LAST, true, false},
                {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL, false, false}, {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL, false, false},
                {PF_SIM_POWER_LOSS, PF_SIM_RANDOM, true, true},     {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST, true, false}};
    sluice_error err = {0};
    seen saw = {0};
    history past;
    pf_sim_disk *base = prepare(plan, &past);
    uint64_t stride = 1;
#ifdef __SANITIZE_ADDRESS__
    if (!getenv("SLUICE_LONG")) { /* more of them cross the same code again; each end has calls of its own */
        seeds = 1;
        stride = 3;
    }
#endif

    /* Uncut: it succeeds, and says how many calls there are to be cut at. */
    history after = past;
    pf_sim_disk *disk = clone(base, 1);
    pf_volume *volume = crash_actor(disk);
    ASSERT_OK(crash_act(volume, plan, true, &after, &err));
    uint64_t calls = pf_sim_calls(volume);
    pf_volume_close(volume);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(crash_check(disk, &after), after.possible);
    (void)finish(disk, after);
    assert_true(calls >= 3);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (uint64_t k = 1 + i % stride; k <= calls; k += stride)
            for (int before = 0; before < 2; before++)
                for (unsigned seed = 0; seed < (ends[i].random ? seeds : 1); seed++) {
                    after = past;
                    disk = clone(base, seed * 7919 + k);
                    volume = crash_actor(disk);
                    pf_sim_crash_at(volume, k, before == 1, ends[i].fate, ends[i].loss);
                    (void)crash_act(volume, plan, true, &after, &err);
                    assert_true(pf_sim_is_dead(volume));
                    pf_volume_close(volume);
                    after_crash(disk, &after, ends[i].fate, plan->deep && ends[i].deep && seed == 0 && before == 1,
                                past.possible, &saw);
                }
    pf_sim_disk_free(base);
    (void)printf("%s: %" PRIu64 " calls, %u crashes, %u prior, %u new\n", plan->name, calls, saw.runs, saw.prior,
                 saw.new);
    return saw;
}
