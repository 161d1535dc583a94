/* The checks after a death (die.h). */
#include "die.h"
#include "coord/intent.h"
#include "coord/recover.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

die_found die_look(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    pf_file *file = NULL;
    die_found found = {0};
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(pf_open(volume, ST_INTENTS_FILE, PF_READ, &file, &err));
    for (uint32_t i = 0; i < CO_SLOTS; i++) {
        co_slot_state state;
        co_intent intent;
        bool scope = false;
        ASSERT_OK(co_slot_read(file, i, &state, &intent, &scope, &err));
        assert_int_not_equal(state, CO_SLOT_UNREADABLE); /* no death makes one */
        if (state == CO_SLOT_INTENT && intent.phase == CO_PHASE_CONFIRMED) {
            found.confirmed = true;
            found.commit = intent.scope.commit;
        }
        co_intent_free(&intent);
    }
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
    return found;
}

void die_recover(pf_sim_disk *disk)
{
    sluice_error err = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    st_graph_close(graph);
}

void die_expect_settled(pf_sim_disk *disk)
{
    uint64_t before = pf_sim_digest(disk);
    die_recover(disk);
    assert_true(pf_sim_digest(disk) == before);
}

void die_expect_no_litter(pf_sim_disk *disk)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    st_graph *graph = toy_open(disk);
    ASSERT_OK(co_gc(graph, false, &report, &err));
    ASSERT_OK(co_gc(graph, true, &report, &err));
    assert_int_equal(report.files, 0);
    assert_int_equal(report.attempts, 0);
    st_graph_close(graph);
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

void die_expect_whole(pf_sim_disk *disk)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    st_graph *graph = toy_open(disk);
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    assert_true(checked > 0);
    st_graph_close(graph);
}

bool die_expect_old_or_new(pf_sim_disk *disk, const int64_t *before, uint32_t before_count, const int64_t *more,
                           uint32_t more_count)
{
    int64_t all[64], found[64];
    st_graph *graph = toy_open(disk);
    uint32_t count = toy_keys(graph, "A", found, 64);
    st_graph_close(graph);
    assert_true(before_count + more_count <= 64);
    memcpy(all, before, before_count * sizeof *all);
    memcpy(all + before_count, more, more_count * sizeof *all); /* the new keys are greater */
    bool is_new = count == before_count + more_count;
    assert_true(is_new || count == before_count);
    assert_memory_equal(found, all, count * sizeof *all);
    return is_new;
}

void die_expect_next_write(pf_sim_disk *disk, int64_t key)
{
    sluice_error err = {0};
    co_receipt receipt = {0};
    toy_writer toy = toy_of("A", key, 1);
    st_graph *graph = toy_open(disk);
    ASSERT_OK(toy_write(graph, &toy, NULL, &receipt, &err));
    assert_true(receipt.committed && receipt.acknowledged);
    st_graph_close(graph);
}
