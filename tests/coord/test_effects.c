/*
 * Visible effects: each kind in each state that recovery may find it in, applied and taken back (OW-031, OW-096; the
 * table of adapters/effects.h row by row). What is somebody else's is never touched.
 */
#include "adapters/effects.h"
#include "tests/support/test.h"
#include "toy.h"
#include <stdio.h>

static pf_sim_disk *disk;
static st_graph *graph;

static int setup(void **state)
{
    (void)state;
    disk = toy_disk(3);
    graph = toy_open(disk);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
    return 0;
}

static ad_effect create_ref(uint64_t incarnation)
{
    return (ad_effect){.kind = AD_EFFECT_CREATE_REF, .branch = "b", .incarnation = incarnation};
}

static ad_effect remove_ref(uint64_t incarnation)
{
    return (ad_effect){.kind = AD_EFFECT_REMOVE_REF, .branch = "b", .incarnation = incarnation};
}

static ad_effect move_of(const char *name)
{
    ad_effect effect = {.kind = AD_EFFECT_MOVE};
    (void)snprintf(effect.from, sizeof effect.from, "cache/%s", name);
    (void)snprintf(effect.to, sizeof effect.to, "trash/%s", name);
    return effect;
}

static void make_file(const char *path)
{
    sluice_error err = {0};
    pf_file *file = NULL;
    ASSERT_OK(pf_create(st_graph_volume(graph), path, &file, &err));
    ASSERT_OK(pf_close(file, &err));
}

static bool is_there(const char *path)
{
    pf_stat stat;
    return pf_stat_path(st_graph_volume(graph), path, &stat, NULL) == SLUICE_OK;
}

static ad_class classify(const ad_effect *effects, uint32_t count)
{
    sluice_error err = {0};
    ad_class class = AD_NONE;
    ASSERT_OK(ad_effects_classify(graph, effects, count, &class, &err));
    return class;
}

static void a_created_ref_is_taken_back_only_while_it_is_mine(void **state)
{
    (void)state;
    sluice_error err = {0};
    uint64_t holds = 0;
    ad_effect mine = create_ref(50), other = create_ref(51);
    assert_int_equal(classify(&mine, 1), AD_NONE);
    ASSERT_OK(ad_effects_apply(graph, &mine, 1, &err));
    ASSERT_OK(ad_effects_apply(graph, &mine, 1, &err)); /* idempotent */
    assert_int_equal(classify(&mine, 1), AD_COMPLETE);
    assert_int_equal(classify(&other, 1), AD_FOREIGN);
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, ad_effects_apply(graph, &other, 1, &err));
    ASSERT_OK(ad_effects_undo(graph, &other, 1, &err)); /* not its own: untouched */
    ASSERT_OK(st_ref_read(graph, "b", &holds, &err));
    assert_int_equal(holds, 50);
    ASSERT_OK(ad_effects_undo(graph, &mine, 1, &err));
    ASSERT_OK(ad_effects_undo(graph, &mine, 1, &err));
    assert_int_equal(classify(&mine, 1), AD_NONE);
}

static void a_removed_ref_is_not_made_again(void **state)
{
    (void)state;
    sluice_error err = {0};
    uint64_t holds = 0;
    ad_effect effect = remove_ref(50), other = remove_ref(51);
    ASSERT_OK(st_ref_create(graph, "b", 50, &err));
    assert_int_equal(classify(&effect, 1), AD_NONE);
    assert_int_equal(classify(&other, 1), AD_FOREIGN);
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, ad_effects_apply(graph, &other, 1, &err));
    ASSERT_OK(ad_effects_apply(graph, &effect, 1, &err));
    assert_int_equal(classify(&effect, 1), AD_COMPLETE);
    ASSERT_OK(ad_effects_undo(graph, &effect, 1, &err)); /* completed forward */
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_ref_read(graph, "b", &holds, &err));
}

static void a_move_goes_back_only_to_a_free_name(void **state)
{
    (void)state;
    sluice_error err = {0};
    ad_effect effect = move_of("a");
    assert_int_equal(classify(&effect, 1), AD_FOREIGN); /* neither */
    make_file("cache/a");
    assert_int_equal(classify(&effect, 1), AD_NONE);
    ASSERT_OK(ad_effects_apply(graph, &effect, 1, &err));
    assert_int_equal(classify(&effect, 1), AD_COMPLETE);
    make_file("cache/a"); /* somebody made the source again */
    assert_int_equal(classify(&effect, 1), AD_FOREIGN);
    ASSERT_OK(ad_effects_undo(graph, &effect, 1, &err));
    assert_true(is_there("cache/a") && is_there("trash/a"));
    ASSERT_OK(pf_remove(st_graph_volume(graph), "cache/a", &err));
    ASSERT_OK(ad_effects_undo(graph, &effect, 1, &err));
    assert_true(is_there("cache/a") && !is_there("trash/a"));
}

static void a_prefix_is_partial_and_is_undone_newest_first(void **state)
{
    (void)state;
    sluice_error err = {0};
    ad_effect effects[3] = {move_of("a"), move_of("b"), create_ref(60)};
    make_file("cache/a");
    make_file("cache/b");
    assert_int_equal(classify(effects, 3), AD_NONE);
    ASSERT_OK(ad_effects_apply(graph, effects, 1, &err));
    assert_int_equal(classify(effects, 3), AD_PARTIAL);
    ASSERT_OK(ad_effects_apply(graph, effects, 3, &err));
    assert_int_equal(classify(effects, 3), AD_COMPLETE);
    ASSERT_OK(ad_effects_undo(graph, effects, 3, &err));
    assert_int_equal(classify(effects, 3), AD_NONE);
}

static void an_effect_on_somebody_elses_target_stops_the_list_there(void **state)
{
    (void)state;
    sluice_error err = {0};
    ad_effect effects[3] = {move_of("a"), create_ref(60), move_of("b")};
    make_file("cache/a");
    make_file("cache/b");
    ASSERT_OK(st_ref_create(graph, "b", 61, &err));
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, ad_effects_apply(graph, effects, 3, &err));
    assert_true(is_there("trash/a"));
    assert_true(is_there("cache/b"));
    ASSERT_OK(ad_effects_undo(graph, effects, 3, &err));
    assert_true(is_there("cache/a") && is_there("cache/b"));
}

static void the_registry_is_closed(void **state)
{
    (void)state;
    uint32_t count = 0;
    const ad_adapter *const *all = ad_all(&count);
    static const char *const kinds[] = {"load", "mutate", "merge", "schema", "optimize", "index", "revert"};
    assert_true(count > 0 && count <= sizeof kinds / sizeof kinds[0]);
    for (uint32_t i = 0; i < count; i++) {
        bool designed = false;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            designed = designed || strcmp(all[i]->kind, kinds[k]) == 0;
        assert_true(designed);
        assert_ptr_equal(ad_find(all[i]->kind), all[i]); /* and nobody has its name twice */
    }
    assert_null(ad_find("loads"));
    assert_null(ad_find(""));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(all[i]->version > 0);
        assert_true(!all[i]->apply == !all[i]->undo && !all[i]->apply == !all[i]->classify);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_created_ref_is_taken_back_only_while_it_is_mine),
        TEST(a_removed_ref_is_not_made_again),
        TEST(a_move_goes_back_only_to_a_free_name),
        TEST(a_prefix_is_partial_and_is_undone_newest_first),
        TEST(an_effect_on_somebody_elses_target_stops_the_list_there),
        cmocka_unit_test(the_registry_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
