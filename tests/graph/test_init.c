/*
 * Making a graph, cut short at every volume call: no graph, a graph in the making, or exactly the empty graph; the next
 * init converges (L-037, L-038).
 */
#include "small_graph.h"

#include <errno.h>
#include <string.h>

static bool stands(pf_sim_disk *disk, pf_id *ret_id)
{
    sluice_error err = {0};
    st_graph *graph = NULL;
    sluice_status status = st_graph_open_on(small_actor(disk), PF_READ, &graph, &err);
    if (status != SLUICE_OK) {
        assert_int_equal(status, SLUICE_UNSUPPORTED_FORMAT); /* no graph, and nothing worse */
        return false;
    }
    small_expect_empty(graph);
    *ret_id = *st_graph_id(graph);
    st_graph_close(graph);
    return true;
}

/* A second init finishes what is in the making and refuses what stands; then the graph takes a change and keeps it. */
static void expect_converges(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_id id, found;
    uint64_t block;
    st_control control;

    bool there = stands(disk, &id);
    pf_volume *volume = small_actor(disk);
    if (there)
        ASSERT_FAILS(SLUICE_ALREADY_EXISTS, small_init(volume, &found, &err));
    else
        ASSERT_OK(small_init(volume, &id, &err));
    pf_volume_close(volume);

    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_control_take_row_block(graph, PF_AT_ONCE, &block, &err));
    assert_true(block == 2 * ST_ROW_BLOCK);
    st_graph_close(graph);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL); /* that it stands was durable before anything was answered in it */
    graph = small_open(disk, PF_READ);
    assert_true(pf_id_equal(st_graph_id(graph), &id));
    ASSERT_OK(st_control_read(graph, &control, &err));
    assert_int_equal(control.next_row_block, 3);
    st_control_free(&control);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static pf_sim_disk *empty_disk(uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *disk;
    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    return disk;
}

static pf_sim_disk *clone(const pf_sim_disk *disk, uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *copy;
    ASSERT_OK(pf_sim_disk_clone(disk, seed, &copy, &err));
    return copy;
}

static uint64_t count_calls(void)
{
    sluice_error err = {0};
    pf_id id;
    pf_sim_disk *disk = empty_disk(1);
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(small_init(volume, &id, &err));
    uint64_t calls = pf_sim_calls(volume);
    pf_volume_close(volume);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_true(stands(disk, &id));
    pf_sim_disk_free(disk);
    return calls;
}

static void an_init_cut_short_at_any_call_converges(void **state)
{
    (void)state;
    static const struct {
        pf_sim_fate fate;
        pf_sim_loss loss;
        unsigned seeds;
    } ends[] = {{PF_SIM_DIE, PF_SIM_LOSE_ALL, 1},
                {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL, 1},
                {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL, 1},
                {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST, 2},
                {PF_SIM_POWER_LOSS, PF_SIM_RANDOM, 4}};
    uint64_t calls = count_calls();
    unsigned stood = 0, runs = 0;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (uint64_t k = 1; k <= calls; k++)
            for (int before = 0; before < 2; before++)
                for (unsigned seed = 0; seed < ends[i].seeds; seed++) {
                    sluice_error err = {0};
                    pf_id id;
                    pf_sim_disk *disk = empty_disk(seed * 131 + k);
                    pf_volume *volume = small_actor(disk);
                    pf_sim_crash_at(volume, k, before == 1, ends[i].fate, ends[i].loss);
                    (void)small_init(volume, &id, &err);
                    assert_true(pf_sim_is_dead(volume));
                    pf_volume_close(volume);
                    if (ends[i].fate == PF_SIM_DIE) { /* the power fails before anybody comes back */
                        pf_sim_disk *copy = clone(disk, k);
                        pf_sim_power_loss(copy, PF_SIM_RANDOM);
                        expect_converges(copy);
                    }
                    stood += stands(disk, &id);
                    runs++;
                    expect_converges(disk);
                }
    assert_true(stood > 0);
    assert_true(stood < runs);
}

/* The second init is cut short too, and the third finishes. */
static void an_init_of_a_graph_in_the_making_may_be_cut_short_again(void **state)
{
    (void)state;
    uint64_t calls = count_calls();
    for (uint64_t first = 2; first <= calls; first += 5) {
        sluice_error err = {0};
        pf_id id;
        pf_sim_disk *base = empty_disk(first);
        pf_volume *volume = small_actor(base);
        pf_sim_crash_at(volume, first, true, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        (void)small_init(volume, &id, &err);
        pf_volume_close(volume);
        for (uint64_t k = 1;; k += 3) {
            pf_sim_disk *disk = clone(base, k);
            volume = small_actor(disk);
            pf_sim_crash_at(volume, k, k % 2 == 0, k % 4 < 2 ? PF_SIM_DIE : PF_SIM_POWER_LOSS, PF_SIM_RANDOM);
            (void)small_init(volume, &id, &err);
            bool died = pf_sim_is_dead(volume);
            pf_volume_close(volume);
            expect_converges(disk);
            if (!died)
                break;
        }
        pf_sim_disk_free(base);
    }
}

/* An error at any call: before the commit point the graph is not there; behind it the error says that it is. */
static void an_error_at_any_call_says_whether_the_graph_stands(void **state)
{
    (void)state;
    static const int numbers[] = {EIO, ENOSPC};
    uint64_t calls = count_calls();
    unsigned committed = 0;
    for (size_t i = 0; i < 2; i++)
        for (uint64_t k = 1; k <= calls; k++) {
            sluice_error err = {0};
            pf_id id = {0}, found;
            pf_sim_disk *disk = empty_disk(k);
            pf_volume *volume = small_actor(disk);
            pf_sim_fail_at(volume, k, numbers[i], 1);
            sluice_status status = small_init(volume, &id, &err);
            pf_volume_close(volume);
            bool there = stands(disk, &found);
            if (status == SLUICE_OK) {
                assert_true(there);
                assert_true(pf_id_equal(&id, &found));
            } else {
                assert_int_equal(there, err.committed == SLUICE_TRUE);
                committed += there;
            }
            expect_converges(disk);
        }
    assert_true(committed > 0);
}

typedef struct rival {
    pf_sim_disk *disk;
    sluice_status status;
    pf_id id;
} rival;

static void rival_inits(void *context)
{
    rival *other = context;
    sluice_error err = {0};
    pf_volume *volume = small_actor(other->disk);
    other->status = small_init(volume, &other->id, &err);
    pf_volume_close(volume);
}

/* Another init comes in at each call of this one: exactly one of them makes the graph. */
static void of_two_inits_one_makes_the_graph(void **state)
{
    (void)state;
    uint64_t calls = count_calls();
    unsigned rivals = 0;
    for (uint64_t k = 1; k <= calls; k++) {
        sluice_error err = {0};
        pf_id id = {0}, found;
        pf_sim_disk *disk = empty_disk(k);
        rival other = {.disk = disk};
        pf_volume *volume = small_actor(disk);
        pf_sim_interrupt_at(volume, k, rival_inits, &other);
        sluice_status status = small_init(volume, &id, &err);
        pf_volume_close(volume);
        assert_int_equal((status == SLUICE_OK) + (other.status == SLUICE_OK), 1);
        assert_true(stands(disk, &found));
        assert_true(pf_id_equal(&found, status == SLUICE_OK ? &id : &other.id));
        if (status != SLUICE_OK) {
            assert_int_equal(status, SLUICE_ALREADY_EXISTS);
            rivals++;
        } else {
            assert_true(other.status == SLUICE_ALREADY_EXISTS || other.status == SLUICE_LIVE_WRITER_CONTENTION);
        }
        expect_converges(disk);
    }
    assert_true(rivals > 0);
}

static void a_folder_that_is_not_ours_is_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"cache", "graph.json", "control", "notes.txt"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        sluice_error err = {0};
        pf_id id;
        pf_file *file;
        pf_sim_disk *disk = empty_disk(1);
        pf_volume *volume = small_actor(disk);
        ASSERT_OK(pf_create(volume, names[i], &file, &err));
        ASSERT_OK(pf_close(file, &err));
        uint64_t before = pf_sim_digest(disk);
        ASSERT_FAILS(SLUICE_ALREADY_EXISTS, small_init(volume, &id, &err));
        assert_true(pf_sim_digest(disk) == before);
        pf_volume_close(volume);
        pf_sim_disk_free(disk);
    }
}

/* A graph that lost its FORMAT is not taken for one in the making (L-038). */
static void a_finished_graph_without_format_is_not_made_again(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    pf_sim_disk *disk = small_disk(4, &id);
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(pf_remove(volume, "FORMAT", &err));
    uint64_t before = pf_sim_digest(disk);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, small_init(volume, &id, &err));
    assert_true(pf_sim_digest(disk) == before);
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void put_format(pf_sim_disk *disk, const char *text)
{
    sluice_error err = {0};
    pf_file *file;
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(pf_remove(volume, "FORMAT", &err));
    ASSERT_OK(pf_create(volume, "FORMAT", &file, &err));
    ASSERT_OK(pf_write(file, 0, text, strlen(text), &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void another_format_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"sluice-graph/2\n", "sluice-graph/1",   "sluice-graph/1\n\n", "",
                                        "hello\n",          "sluice-graph/10\n"};
    sluice_error err = {0};
    pf_id id;
    st_graph *graph;
    pf_sim_disk *disk = small_disk(4, &id);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_format(disk, texts[i]);
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_graph_open_on(small_actor(disk), PF_READ, &graph, &err));
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_graph_open_on(small_actor(disk), PF_WRITE, &graph, &err));
    }
    put_format(disk, "sluice-graph/1\n");
    graph = small_open(disk, PF_READ);
    assert_true(pf_id_equal(st_graph_id(graph), &id));
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static void each_flipped_byte_of_graph_json_is_refused(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    pf_stat stat;
    st_graph *graph;
    pf_sim_disk *disk = small_disk(4, &id);
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(pf_stat_path(volume, "graph.json", &stat, &err));
    pf_volume_close(volume);
    unsigned refused = 0;
    for (uint64_t at = 0; at < stat.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            ASSERT_OK(pf_sim_flip(disk, "graph/graph.json", at, (uint8_t)(1u << bit), &err));
            sluice_status status = st_graph_open_on(small_actor(disk), PF_READ, &graph, &err);
            if (status == SLUICE_OK) /* another digit of the id or of the time is another id or time */
                st_graph_close(graph);
            else
                refused++;
            ASSERT_OK(pf_sim_flip(disk, "graph/graph.json", at, (uint8_t)(1u << bit), &err));
        }
    assert_true(refused > stat.size * 5);
    pf_sim_disk_free(disk);
}

static void unknown_entries_are_kept_and_counted(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t unknown;
    pf_file *file;
    pf_stat stat;
    pf_sim_disk *disk = small_disk(4, &id);
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(pf_make_folder(volume, "mine", &err));
    ASSERT_OK(pf_create(volume, "notes", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_graph_unknown_entries(graph, &unknown, &err));
    assert_int_equal(unknown, 2);
    st_graph_close(graph);
    ASSERT_OK(pf_stat_path(volume, "mine", &stat, &err));
    ASSERT_OK(pf_stat_path(volume, "notes", &stat, &err));
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}

static void the_reserve_is_let_go_and_rebuilt(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    pf_stat stat;
    pf_sim_disk *disk = small_disk(4, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    pf_volume *volume = st_graph_volume(graph);
    ASSERT_OK(st_reserve_rebuild(graph, &err)); /* there already */
    ASSERT_OK(st_reserve_release(graph, &err));
    ASSERT_OK(st_reserve_release(graph, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "reserve", &stat, &err));
    pf_sim_set_free_space(disk, 64 * 1024);
    ASSERT_FAILS(SLUICE_NO_SPACE, st_reserve_rebuild(graph, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "reserve", &stat, &err));
    pf_sim_set_free_space(disk, 64 * 1024 * 1024);
    ASSERT_OK(st_reserve_rebuild(graph, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    st_graph_close(graph);
    graph = small_open(disk, PF_READ);
    ASSERT_OK(pf_stat_path(st_graph_volume(graph), "reserve", &stat, &err));
    assert_int_equal(stat.size, stat.allocated);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_init_cut_short_at_any_call_converges),
        cmocka_unit_test(an_init_of_a_graph_in_the_making_may_be_cut_short_again),
        cmocka_unit_test(an_error_at_any_call_says_whether_the_graph_stands),
        cmocka_unit_test(of_two_inits_one_makes_the_graph),
        cmocka_unit_test(a_folder_that_is_not_ours_is_left_alone),
        cmocka_unit_test(a_finished_graph_without_format_is_not_made_again),
        cmocka_unit_test(another_format_is_refused),
        cmocka_unit_test(each_flipped_byte_of_graph_json_is_refused),
        cmocka_unit_test(unknown_entries_are_kept_and_counted),
        cmocka_unit_test(the_reserve_is_let_go_and_rebuilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
