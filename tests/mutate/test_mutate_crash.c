/*
 * Mutations that die at any of their calls, or whose power goes there: small ones, ones with a fold beside them, staged
 * and armed ones, the detaching of a node. Afterwards the graph is wholly old or wholly new; what was acknowledged is
 * there; the same request under the same operation id then gives the first receipt or does it, once; what was left
 * behind can be collected.
 */
#include "coord/recover.h"
#include "mutate_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call; with sanitizers, and where there are many, each seventh, another seventh for each fate. */
#define STRIDE 7u
static uint64_t stride_of(unsigned before)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)before;
    return STRIDE;
#else
    return before > 0 && !getenv("SLUICE_LONG") ? STRIDE : 1;
#endif
}

static const char base[] = "{\"op\":\"insert\",\"node\":\"P\",\"key\":1,\"set\":{\"a\":1,\"u\":\"x\"}}\n"
                           "{\"op\":\"insert\",\"node\":\"P\",\"key\":2}\n"
                           "{\"op\":\"insert\",\"node\":\"P\",\"key\":3}\n"
                           "{\"op\":\"insert\",\"edge\":\"E\",\"from\":1,\"to\":2}\n"
                           "{\"op\":\"insert\",\"edge\":\"E\",\"from\":2,\"to\":3}\n";
static const char small[] = "{\"op\":\"insert\",\"node\":\"P\",\"key\":4,\"set\":{\"u\":\"x\"}}\n"
                            "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"a\":2,\"u\":\"y\"}}\n"
                            "{\"op\":\"delete\",\"edge\":\"E\",\"from\":1,\"to\":2}\n"
                            "{\"op\":\"insert\",\"edge\":\"E\",\"from\":4,\"to\":1}\n";
static const char detach[] = "{\"op\":\"delete\",\"node\":\"P\",\"key\":2,\"detach\":true}\n";

typedef struct dying_scene {
    const char *name, *text;
    bool staged;     /* nothing is attached: it arms */
    unsigned before; /* small commits before it, so that a fold is due */
} dying_scene;
static const dying_scene scenes[] = {
    {"small", small, false, 0},   {"small, with folds", small, false, 31}, {"staged", small, true, 0},
    {"detach", detach, false, 0}, {"detach, staged", detach, true, 0},
};

typedef struct death_fate {
    bool before;
    pf_sim_fate fate;
    pf_sim_loss loss;
} death_fate;
static const death_fate fates[] = {
    {true, PF_SIM_DIE, PF_SIM_KEEP_ALL},         {false, PF_SIM_DIE, PF_SIM_KEEP_ALL},
    {false, PF_SIM_DIE, PF_SIM_TEAR_LAST},       {true, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
    {false, PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL}, {false, PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
};

typedef struct graph_content {
    char *p, *e;
} graph_content;

static graph_content look(pf_sim_disk *disk)
{
    st_graph *graph = mutate_open(disk);
    graph_content seen = {mutate_rows(graph, "P"), mutate_rows(graph, "E")};
    st_graph_close(graph);
    return seen;
}

static bool same(const graph_content *a, const graph_content *b)
{
    return strcmp(a->p, b->p) == 0 && strcmp(a->e, b->e) == 0;
}

static void forget(graph_content *seen)
{
    free(seen->p);
    free(seen->e);
}

static pf_sim_disk *prepare(const dying_scene *scene)
{
    pf_sim_disk *disk = mutate_disk(5);
    st_graph *graph = mutate_open(disk);
    (void)mutate_text(graph, base);
    for (unsigned i = 0; i < scene->before; i++) {
        char text[160];
        (void)snprintf(text, sizeof text,
                       "{\"op\":\"upsert\",\"node\":\"P\",\"key\":3,\"set\":{\"a\":%u}}\n"
                       "{\"op\":\"upsert\",\"edge\":\"E\",\"from\":2,\"to\":3,\"set\":{\"w\":%u}}\n",
                       i + 1, i + 1);
        (void)mutate_text(graph, text);
    }
    st_graph_close(graph);
    return disk;
}

static void stage_all(const dying_scene *scene, bool on)
{
    if (scene->staged)
        assert_int_equal(on ? setenv("SLUICE_NO_ATTACH", "1", 1) : unsetenv("SLUICE_NO_ATTACH"), 0);
}

/* Everything that must hold once the dust has settled. */
static void survive(pf_sim_disk *disk, const dying_scene *scene, const graph_content *old, const graph_content *new,
                    const mutate_try *died)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    graph_content seen = look(disk);
    bool is_new = same(&seen, new);
    assert_true(is_new || same(&seen, old));
    assert_true(is_new || died->status != SLUICE_OK);
    forget(&seen);
    st_graph *graph = mutate_open(disk);
    mutate_try again = {.text = scene->text, .operation = died->operation};
    stage_all(scene, true);
    mutate_run(graph, &again);
    stage_all(scene, false);
    assert_int_equal(again.status, SLUICE_OK);
    assert_true(again.result.receipt.committed && again.result.receipt.acknowledged);
    if (is_new) /* a confirmed one may also have been published by the barrier of this write */
        assert_true(again.result.receipt.repeated);
    if (died->status == SLUICE_OK)
        assert_true(pf_id_equal(&again.result.receipt.commit, &died->result.receipt.commit));
    (void)mutate_text(graph,
                      "{\"op\":\"insert\",\"node\":\"P\",\"key\":99}\n{\"op\":\"delete\",\"node\":\"P\",\"key\":3,"
                      "\"detach\":true}\n{\"op\":\"insert\",\"node\":\"P\",\"key\":3}\n");
    (void)mutate_text(graph, "{\"op\":\"delete\",\"node\":\"P\",\"key\":99}\n");
    ASSERT_OK(co_gc(graph, false, &report, &err));
    ASSERT_OK(co_gc(graph, true, &report, &err));
    assert_int_equal(report.files, 0);
    assert_int_equal(report.attempts, 0);
    mutate_expect_whole(graph);
    char *rows = mutate_rows(graph, "P");
    assert_non_null(strstr(rows, "[3,null,null,null,null]\n"));
    free(rows);
    st_graph_close(graph);
}

/* Strikes at call k of the mutation; false when it makes fewer calls. */
static bool strike(pf_sim_disk *origin, const dying_scene *scene, uint64_t k, const death_fate *how,
                   const graph_content *old, const graph_content *new)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    ASSERT_OK(pf_sim_disk_clone(origin, k * 31 + (uint64_t)(how - fates), &disk, &err));
    st_graph *graph = mutate_open(disk);
    pf_volume *volume = st_graph_volume(graph);
    mutate_try try_ = {.text = scene->text, .operation = pf_id_new()};
    pf_sim_crash_at(volume, k, how->before, how->fate, how->loss);
    stage_all(scene, true);
    mutate_run(graph, &try_);
    stage_all(scene, false);
    bool dead = pf_sim_is_dead(volume);
    pf_sim_kill(volume);
    st_graph_close(graph);
    survive(disk, scene, old, new, &try_);
    pf_sim_disk_free(disk);
    return dead;
}

static void run_scene(const dying_scene *scene)
{
    sluice_error err = {0};
    pf_sim_disk *origin = prepare(scene), *disk = NULL;
    unsigned deaths = 0;
    graph_content old = look(origin);
    ASSERT_OK(pf_sim_disk_clone(origin, 1, &disk, &err));
    st_graph *graph = mutate_open(disk);
    stage_all(scene, true);
    (void)mutate_text(graph, scene->text);
    stage_all(scene, false);
    st_graph_close(graph);
    graph_content new = look(disk);
    pf_sim_disk_free(disk);
    assert_false(same(&old, &new));
    for (size_t i = 0; i < sizeof fates / sizeof fates[0]; i++) {
        uint64_t stride = stride_of(scene->before), k = 1 + i % stride;
        for (; strike(origin, scene, k, &fates[i], &old, &new); k += stride)
            deaths++;
    }
    assert_true(deaths > 0);
    print_message("%s: %u deaths\n", scene->name, deaths);
    forget(&old);
    forget(&new);
    pf_sim_disk_free(origin);
    pf_sim_world_remove();
}

static void a_small_mutation_that_dies_at_any_call_is_old_or_new(void **state)
{
    (void)state;
    run_scene(&scenes[0]);
}

static void so_is_one_that_folds(void **state)
{
    (void)state;
    run_scene(&scenes[1]);
}

static void so_is_one_that_is_staged_and_armed(void **state)
{
    (void)state;
    run_scene(&scenes[2]);
}

static void so_is_the_detaching_of_a_node(void **state)
{
    (void)state;
    run_scene(&scenes[3]);
    run_scene(&scenes[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_mutation_that_dies_at_any_call_is_old_or_new),
        cmocka_unit_test(so_is_one_that_folds),
        cmocka_unit_test(so_is_one_that_is_staged_and_armed),
        cmocka_unit_test(so_is_the_detaching_of_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
