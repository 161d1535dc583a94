/*
 * Nobody waits for an optimize longer than for one commit: just before each of its calls another process inserts into,
 * deletes from or updates the very table, and is refused only between its gates and the end of its commit (C to H),
 * which are as many calls as any armed write's that has its gate alone, however much there was to rewrite (DESIGN 5, 9;
 * OW-098).
 */
#include "die.h"
#include "sweep.h"
#include "tests/support/test.h"
#include <string.h>

#define CALLS 512u

typedef enum rival_kind { INSERTS, DELETES, UPDATES, RIVALS } rival_kind;

typedef struct rival {
    pf_sim_disk *disk;
    rival_kind kind;
    sluice_status status;
    bool ran;
} rival;

typedef struct window { /* the calls between which others were refused */
    uint64_t calls, first, last, refused;
} window;

static pf_sim_disk *prepare(uint64_t seed, int64_t rows)
{
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(seed);
    st_graph *graph = toy_open(disk);
    for (int64_t first = 1; first < rows; first += 5) {
        toy_writer toy = toy_of("A", first, 5);
        ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
    }
    st_graph_close(graph);
    return disk;
}

static void act(void *context)
{
    static const int64_t theirs[] = {8, 13};
    rival *other = context;
    toy_writer toy = toy_of("A", 1000, 2);
    st_graph *graph = toy_open(other->disk);
    other->ran = true;
    other->status =
        other->kind == INSERTS
            ? toy_write(graph, &toy, NULL, NULL, NULL)
            : sweep_write(graph, "A", other->kind == DELETES ? SWEEP_DELETE : SWEEP_UPDATE, theirs, 2, NULL);
    st_graph_close(graph);
}

static sluice_status optimize(st_graph *graph, sluice_error *err)
{
    return sweep_maintain(graph, CO_OPTIMIZE, "A", NULL, err);
}

static sluice_status write_once(st_graph *graph, sluice_error *err)
{
    toy_writer toy = toy_of("A", 2000, 2);
    toy.exclusive = true;
    return toy_write(graph, &toy, NULL, NULL, err);
}

static window look(pf_sim_disk *origin, sluice_status (*work)(st_graph *graph, sluice_error *err), rival_kind kind)
{
    window found = {0};
    for (uint64_t k = 1;; k++) {
        sluice_error err = {0};
        rival other = {.kind = kind};
        ASSERT_OK(pf_sim_disk_clone(origin, k, &other.disk, &err));
        st_graph *graph = toy_open(other.disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k, act, &other);
        ASSERT_OK(work(graph, &err)); /* rows may change as they like */
        st_graph_close(graph);
        if (other.ran && other.status != SLUICE_OK) {
            assert_int_equal(other.status, SLUICE_LIVE_WRITER_CONTENTION);
            found.first = found.refused++ == 0 ? k : found.first;
            found.last = k;
        }
        pf_sim_disk_free(other.disk);
        if (!other.ran)
            break;
        found.calls = k;
        assert_true(k < CALLS);
    }
    assert_true(found.refused > 0); /* the sight is sharp enough to see a publish */
    assert_int_equal(found.last - found.first + 1, found.refused);
    return found;
}

static void nobody_waits_for_an_optimize_longer_than_for_one_commit(void **state)
{
    (void)state;
    pf_sim_disk *origin = prepare(17, 20), *more = prepare(18, 120);
    window one = look(origin, write_once, INSERTS);
    for (rival_kind kind = INSERTS; kind < RIVALS; kind++) {
        window its = look(origin, optimize, kind);
        assert_int_equal(its.refused, one.refused);
        assert_true(its.first > its.calls / 2); /* nothing that takes long is within or behind */
    }
    assert_int_equal(look(more, optimize, INSERTS).refused, one.refused);
    pf_sim_disk_free(origin);
    pf_sim_disk_free(more);
    pf_sim_world_remove();
}

static void commit_beside(void *context)
{
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1000, 2);
    toy.attached = true;
    ASSERT_OK(toy_write(context, &toy, NULL, NULL, &err));
}

/* The other's handle keeps what it published itself in another form than what it reads from the log. */
static void who_committed_beside_an_optimize_that_died_settles_it_and_goes_on(void **state)
{
    (void)state;
    sluice_error err = {0};
    unsigned confirmed = 0;
    bool dead = true;
    pf_sim_disk *origin = prepare(19, 20), *disk = NULL;
    uint64_t at = look(origin, optimize, INSERTS).calls / 2;
    for (uint64_t k = at; dead; k++) {
        ASSERT_OK(pf_sim_disk_clone(origin, k, &disk, &err));
        st_graph *other = toy_open(disk), *graph = toy_open(disk);
        pf_sim_interrupt_at(st_graph_volume(graph), at, commit_beside, other);
        pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        (void)optimize(graph, &err);
        dead = pf_sim_is_dead(st_graph_volume(graph));
        st_graph_close(graph);
        confirmed += dead && die_look(disk).confirmed;
        toy_writer toy = toy_of("A", 2000, 1);
        ASSERT_OK(toy_write(other, &toy, NULL, NULL, &err));
        st_graph_close(other);
        pf_sim_disk_free(disk);
    }
    assert_true(confirmed > 0);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_an_optimize_longer_than_for_one_commit),
        cmocka_unit_test(who_committed_beside_an_optimize_that_died_settles_it_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
