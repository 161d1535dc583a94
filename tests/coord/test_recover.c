/*
 * The rows of recovery (DESIGN 8), each made by hand: what is found, what is done, what is audited, and what it must
 * not touch.
 */
#include "coord/audit.h"
#include "coord/intent.h"
#include "coord/plan.h"
#include "coord/quarantine.h"
#include "coord/recover.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct recover_scene {
    pf_sim_disk *disk;
    st_graph *graph; /* a bystander */
} recover_scene;

static int setup(void **state)
{
    recover_scene *scene = calloc(1, sizeof *scene);
    scene->disk = toy_disk(9);
    scene->graph = toy_open(scene->disk);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    recover_scene *scene = *state;
    st_graph_close(scene->graph);
    pf_sim_disk_free(scene->disk);
    pf_sim_world_remove();
    free(scene);
    return 0;
}

/* ---- making dead writers ---- */

typedef struct dead_writer {
    pf_volume *volume;
    void (*before_death)(void *context);
    void *context;
} dead_writer;

static void strike(void *context)
{
    const dead_writer *victim = context;
    if (victim->before_death)
        victim->before_death(victim->context);
    pf_sim_kill(victim->volume);
}

/* The calls of a write up to and with the sync that makes its intent durable. */
static uint64_t calls_to_arm(const recover_scene *scene, const toy_writer *like)
{
    sluice_error err = {0};
    for (uint64_t k = 1;; k++) {
        pf_sim_disk *copy = NULL;
        toy_writer toy = *like;
        ASSERT_OK(pf_sim_disk_clone(scene->disk, k, &copy, &err));
        st_graph *graph = toy_open(copy);
        pf_sim_crash_at(st_graph_volume(graph), k, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        sluice_status status = toy_write(graph, &toy, NULL, NULL, NULL);
        st_graph_close(graph);
        bool armed = die_look(copy).confirmed;
        pf_sim_disk_free(copy);
        assert_int_not_equal(status, SLUICE_OK);
        if (armed) /* by a write, which the next call syncs */
            return k + 1;
    }
}

/* A write that dies right after its intent is durable; first, while it still lives and stands still, `meanwhile`
 * happens. */
static die_found die_armed(recover_scene *scene, toy_writer toy, void (*meanwhile)(void *context), void *context)
{
    uint64_t k = calls_to_arm(scene, &toy);
    st_graph *graph = toy_open(scene->disk);
    dead_writer victim = {st_graph_volume(graph), meanwhile, context};
    pf_sim_interrupt_at(victim.volume, k, strike, &victim);
    assert_int_not_equal(toy_write(graph, &toy, NULL, NULL, NULL), SLUICE_OK);
    st_graph_close(graph);
    die_found found = die_look(scene->disk);
    assert_true(found.confirmed);
    return found;
}

/* ---- looking ---- */

typedef struct line_list {
    co_recovered items[80];
    uint32_t count;
} line_list;

static sluice_status on_line(void *context, const co_recovered *line, sluice_error *err)
{
    (void)err;
    line_list *lines = context;
    assert_true(lines->count < 80);
    lines->items[lines->count++] = *line;
    return SLUICE_OK;
}

typedef struct row_list {
    co_audit_row items[80];
    uint32_t count;
} row_list;

static sluice_status on_row(void *context, const co_audit_row *row, sluice_error *err)
{
    (void)err;
    row_list *rows = context;
    assert_true(rows->count < 80);
    rows->items[rows->count++] = *row;
    return SLUICE_OK;
}

static line_list recover_all(const recover_scene *scene, sluice_status want)
{
    sluice_error err = {0};
    line_list lines = {.count = 0};
    st_graph *graph = toy_open(scene->disk);
    ASSERT_FAILS(want, co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, on_line, &lines, &err));
    st_graph_close(graph);
    return lines;
}

static row_list audit_of(const recover_scene *scene)
{
    sluice_error err = {0};
    row_list rows = {.count = 0};
    ASSERT_OK(co_audit_list(scene->graph, on_row, &rows, &err));
    return rows;
}

static void expect_one(const recover_scene *scene, const die_found *found, const char *classification,
                       const char *action, co_outcome outcome)
{
    line_list lines = recover_all(scene, SLUICE_OK);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.items[0].classification, classification);
    assert_string_equal(lines.items[0].action, action);
    assert_string_equal(lines.items[0].outcome, "resolved");
    assert_true(pf_id_equal(&lines.items[0].commit, &found->commit));
    row_list rows = audit_of(scene);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].outcome, outcome);
    assert_string_equal(rows.items[0].classification, classification);
    assert_int_equal(recover_all(scene, SLUICE_OK).count, 0);
    assert_int_equal(audit_of(scene).count, 1);
}

static void write_keys(st_graph *graph, const char *type, int64_t first, uint32_t count)
{
    sluice_error err = {0};
    toy_writer toy = toy_of(type, first, count);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err));
}

static sluice_status pick_name(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    (void)kind;
    (void)err;
    (void)snprintf(context, 128, "%s", name);
    return SLUICE_OK;
}

/* ---- row 4 and 5 ---- */

static void a_confirmed_write_is_rolled_forward_under_its_own_id(void **state)
{
    recover_scene *scene = *state;
    die_found found = die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    expect_one(scene, &found, "roll-forward", "publish", CO_OUTCOME_COMMITTED);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
    die_expect_no_litter(scene->disk);
}

static void the_next_writer_sees_a_dead_ones_confirmed_write(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    toy_writer same = toy_of("A", 2, 1);
    (void)die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, toy_write(scene->graph, &same, NULL, NULL, &err));
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
}

static void a_repeated_request_is_told_that_recovery_completed_it(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    die_found found = die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    toy_writer again = toy_of("A", 1, 2);
    char id[PF_ID_TEXT];
    pf_id_text(&found.commit, id);
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, toy_write(scene->graph, &again, NULL, NULL, &err));
    assert_non_null(strstr(err.hint, "completed by recovery"));
    assert_non_null(strstr(err.hint, id));
}

static void write_others(void *context)
{
    recover_scene *scene = context;
    write_keys(scene->graph, "A", 50, 2);
}

static void a_disjoint_winner_is_kept_and_mine_comes_on_top(void **state)
{
    recover_scene *scene = *state;
    die_found found = die_armed(scene, toy_of("A", 1, 2), write_others, scene);
    expect_one(scene, &found, "roll-forward", "publish", CO_OUTCOME_COMMITTED);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 50, 51}, 4));
}

static void write_the_same(void *context)
{
    recover_scene *scene = context;
    write_keys(scene->graph, "A", 2, 1);
}

static void a_winner_on_the_same_key_discards_mine(void **state)
{
    recover_scene *scene = *state;
    die_found found = die_armed(scene, toy_of("A", 1, 2), write_the_same, scene);
    expect_one(scene, &found, "invalid", "discard", CO_OUTCOME_DISCARDED);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){2}, 1));
    die_expect_no_litter(scene->disk);
}

static void a_staged_object_that_is_gone_discards_it(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    die_found found = die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    ASSERT_OK(st_snapshot_open(scene->graph, "main", NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "A", &type, &err));
    pf_volume *volume = st_graph_volume(scene->graph);
    char folder[64], path[256], name[128] = "";
    (void)snprintf(folder, sizeof folder, "tables/%llu/keys", (unsigned long long)type->table);
    st_snapshot_close(snapshot);
    ASSERT_OK(pf_list(volume, folder, pick_name, name, &err));
    assert_true(name[0] != '\0');
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    ASSERT_OK(pf_remove(volume, path, &err));
    expect_one(scene, &found, "invalid", "discard", CO_OUTCOME_DISCARDED);
    assert_true(toy_holds(scene->graph, "A", NULL, 0));
}

/* ---- row 1 ---- */

static void a_published_write_is_audited_once_and_retired(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    toy_writer like = toy_of("A", 1, 2);
    uint64_t armed = calls_to_arm(scene, &like);
    st_graph *graph = toy_open(scene->disk);
    toy_writer toy = like;
    /* armed, then the record's write and sync, then its mark; dies before it retires */
    pf_sim_crash_at(st_graph_volume(graph), armed + 3, true, PF_SIM_DIE, PF_SIM_KEEP_ALL);
    (void)toy_write(graph, &toy, NULL, NULL, &err);
    st_graph_close(graph);
    die_found found = die_look(scene->disk);
    assert_true(found.confirmed);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
    expect_one(scene, &found, "published", "retire", CO_OUTCOME_COMMITTED);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
}

/* Between audit and retire, a hundred times (OW-086). */
static void recovery_killed_before_it_retires_audits_once(void **state)
{
    recover_scene *scene = *state;
    (void)die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    for (unsigned i = 0; i < 100; i++) {
        st_graph *graph = toy_open(scene->disk);
        pf_volume *volume = st_graph_volume(graph);
        pf_sim_crash_at(volume, i == 0 ? 9 : 2, false, PF_SIM_DIE, PF_SIM_KEEP_ALL);
        (void)co_recover(graph, CO_RECOVER_AUTOMATIC, 1, NULL, 0, NULL, NULL, NULL);
        st_graph_close(graph);
    }
    (void)recover_all(scene, SLUICE_OK);
    row_list rows = audit_of(scene);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].outcome, CO_OUTCOME_COMMITTED);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2}, 2));
}

/* ---- row 2, 3 and 6, by intents made by hand ---- */

static co_intent made_by_hand(const char *branch, uint64_t incarnation)
{
    sluice_error err = {0};
    co_intent intent = {.kind = "load", .version = 1, .plan_inline = true};
    (void)snprintf(intent.branch, sizeof intent.branch, "%s", branch);
    intent.scope.incarnation = incarnation;
    intent.scope.operation = pf_id_new();
    intent.scope.commit = pf_id_new();
    intent.scope.tables[0] = 64;
    intent.scope.table_count = 1;
    ASSERT_OK(pf_buffer_append_text(&intent.plan, "no plan", &err));
    intent.plan_length = intent.plan.length;
    intent.plan_digest = pf_sha256_of(intent.plan.data, intent.plan.length);
    return intent;
}

/* Puts an intent into a slot and dies. */
static uint32_t leave(const recover_scene *scene, co_intent *intent, co_phase phase)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    co_slot slot = {0};
    ASSERT_OK(pf_sim_actor(scene->disk, "graph", &volume, &err));
    ASSERT_OK(co_slot_take(volume, &slot, &err));
    uint32_t number = slot.number;
    ASSERT_OK(co_slot_write(&slot, intent, CO_PHASE_ARMED, &err));
    if (phase == CO_PHASE_CONFIRMED)
        ASSERT_OK(co_slot_write(&slot, intent, CO_PHASE_CONFIRMED, &err));
    pf_sim_kill(volume);
    co_slot_release(&slot);
    pf_volume_close(volume);
    return number;
}

static void an_intent_of_a_branch_that_is_gone_is_discarded(void **state)
{
    recover_scene *scene = *state;
    co_intent intent = made_by_hand("elsewhere", 44);
    (void)leave(scene, &intent, CO_PHASE_CONFIRMED);
    die_found found = {true, intent.scope.commit};
    expect_one(scene, &found, "branch-gone", "discard", CO_OUTCOME_DISCARDED);
    co_intent_free(&intent);
}

static void an_intent_of_an_earlier_branch_of_the_same_name_is_discarded(void **state)
{
    recover_scene *scene = *state;
    co_intent intent = made_by_hand("main", 44); /* main has incarnation 1 */
    (void)leave(scene, &intent, CO_PHASE_CONFIRMED);
    die_found found = {true, intent.scope.commit};
    expect_one(scene, &found, "branch-gone", "discard", CO_OUTCOME_DISCARDED);
    co_intent_free(&intent);
}

static void half_undone_is_discarded(const recover_scene *scene, co_phase phase, const char *classification)
{
    sluice_error err = {0};
    pf_volume *volume = st_graph_volume(scene->graph);
    pf_file *file = NULL;
    pf_stat stat;
    co_intent intent = made_by_hand("main", 1);
    intent.effects = calloc(2, sizeof *intent.effects);
    intent.effect_count = 2;
    intent.effects[0] = (ad_effect){.kind = AD_EFFECT_MOVE, .from = "cache/a", .to = "cache/b"};
    intent.effects[1] = (ad_effect){.kind = AD_EFFECT_MOVE, .from = "cache/c", .to = "cache/d"};
    intent.scope.visible = true;
    (void)leave(scene, &intent, phase);
    /* the first effect stands, the second does not */
    ASSERT_OK(pf_create(volume, "cache/b", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_create(volume, "cache/c", &file, &err));
    ASSERT_OK(pf_close(file, &err));
    die_found found = {true, intent.scope.commit};
    expect_one(scene, &found, classification, "undo", CO_OUTCOME_DISCARDED);
    ASSERT_OK(pf_stat_path(volume, "cache/a", &stat, &err));
    ASSERT_OK(pf_stat_path(volume, "cache/c", &stat, &err));
    assert_int_equal(pf_stat_path(volume, "cache/b", &stat, NULL), SLUICE_NOT_FOUND);
    co_intent_free(&intent);
}

static void an_unconfirmed_intent_is_undone_and_discarded(void **state)
{
    half_undone_is_discarded(*state, CO_PHASE_ARMED, "unconfirmed");
}

/* Its owner gave up: it undid what it had confirmed, and died before it retired. */
static void a_confirmed_intent_that_was_being_undone_is_discarded(void **state)
{
    half_undone_is_discarded(*state, CO_PHASE_CONFIRMED, "invalid");
}

static void damage_slot(const recover_scene *scene, uint32_t number, bool scope)
{
    sluice_error err = {0};
    uint64_t at = (uint64_t)number * CO_SLOT_BYTES;
    ASSERT_OK(pf_sim_flip(scene->disk, "graph/" ST_INTENTS_FILE, at + 4096 + 70, 0x11, &err));
    ASSERT_OK(pf_sim_flip(scene->disk, "graph/" ST_INTENTS_FILE, at + 16384 + 70, 0x11, &err));
    if (scope)
        ASSERT_OK(pf_sim_flip(scene->disk, "graph/" ST_INTENTS_FILE, at + 40, 0x11, &err));
}

static void a_damaged_intent_blocks_only_what_it_overlaps(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_type_def *a = NULL;
    ASSERT_OK(st_snapshot_open(scene->graph, "main", NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "A", &a, &err));
    co_intent intent = made_by_hand("main", 1);
    intent.scope.tables[0] = a->table;
    st_snapshot_close(snapshot);
    damage_slot(scene, leave(scene, &intent, CO_PHASE_CONFIRMED), false);

    toy_writer overlapping = toy_of("A", 1, 1);
    char id[PF_ID_TEXT];
    pf_id_text(&intent.scope.commit, id);
    for (unsigned i = 0; i < 2; i++) {
        ASSERT_FAILS(SLUICE_RECOVERY_REQUIRED, toy_write(scene->graph, &overlapping, NULL, NULL, &err));
        assert_int_equal(err.committed, SLUICE_FALSE);
        assert_non_null(strstr(err.message, id));
    }
    write_keys(scene->graph, "B", 1, 2);                /* another table goes on */
    assert_true(toy_holds(scene->graph, "A", NULL, 0)); /* and so do all reads */
    line_list lines = recover_all(scene, SLUICE_RECOVERY_REQUIRED);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.items[0].classification, "quarantined");
    assert_string_equal(lines.items[0].outcome, "kept");
    row_list rows = audit_of(scene);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].outcome, CO_OUTCOME_QUARANTINED);

    char path[96]; /* what the hint says: give it up */
    (void)snprintf(path, sizeof path, "quarantine/%s.intent", id);
    ASSERT_OK(pf_remove(st_graph_volume(scene->graph), path, &err));
    write_keys(scene->graph, "A", 1, 1);
    co_intent_free(&intent);
}

static void more_damaged_intents_than_slots_leave_slots_for_others(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    for (uint32_t i = 0; i < CO_SLOTS + 6; i++) {
        co_intent intent = made_by_hand("main", 1);
        intent.scope.tables[0] = 64; /* A */
        damage_slot(scene, leave(scene, &intent, CO_PHASE_CONFIRMED), false);
        co_intent_free(&intent);
        if (i % 8 == 7)
            write_keys(scene->graph, "B", (int64_t)i * 100, 1);
    }
    co_gc_report report;
    ASSERT_OK(co_gc(scene->graph, false, &report, &err)); /* is not stopped by what says whose it is */
}

static void an_intent_without_a_readable_scope_stops_collection_but_no_writer(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    co_gc_report report;
    co_intent intent = made_by_hand("main", 1);
    damage_slot(scene, leave(scene, &intent, CO_PHASE_CONFIRMED), true);
    write_keys(scene->graph, "A", 1, 1);
    write_keys(scene->graph, "B", 1, 1);
    ASSERT_FAILS(SLUICE_RECOVERY_REQUIRED, co_gc(scene->graph, false, &report, &err));
    (void)recover_all(scene, SLUICE_RECOVERY_REQUIRED);
    co_intent_free(&intent);
}

static void an_unknown_kind_or_newer_strategy_is_never_guessed_at(void **state)
{
    recover_scene *scene = *state;
    co_intent kind = made_by_hand("main", 1), version = made_by_hand("main", 1), plan = made_by_hand("main", 1);
    (void)snprintf(kind.kind, sizeof kind.kind, "%s", "transmute");
    version.version = ad_load.version + 1;
    (void)leave(scene, &kind, CO_PHASE_CONFIRMED);
    (void)leave(scene, &version, CO_PHASE_CONFIRMED);
    (void)leave(scene, &plan, CO_PHASE_CONFIRMED); /* its plan is none */
    line_list lines = recover_all(scene, SLUICE_RECOVERY_REQUIRED);
    assert_true(lines.count >= 3);
    for (uint32_t i = 0; i < lines.count; i++) {
        assert_string_equal(lines.items[i].classification, "quarantined");
        assert_string_equal(lines.items[i].outcome, "kept");
    }
    co_intent_free(&kind);
    co_intent_free(&version);
    co_intent_free(&plan);
}

/* ---- live owners ---- */

typedef struct bystander_state {
    recover_scene *scene;
    bool ran;
} bystander_state;

static void look_at_a_live_owner(void *context)
{
    bystander_state *bystander = context;
    sluice_error err = {0};
    line_list probed = {.count = 0}, lines = {.count = 0};
    st_graph *graph = toy_open(bystander->scene->disk);
    uint64_t digest = pf_sim_digest(bystander->scene->disk);
    ASSERT_OK(co_recover(graph, CO_RECOVER_PROBE, 0, NULL, 0, on_line, &probed, &err));
    assert_int_equal(probed.count, 1);
    assert_string_equal(probed.items[0].classification, "live");
    assert_string_equal(probed.items[0].stage, "confirmed");
    ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, on_line, &lines, &err));
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.items[0].classification, "live");
    assert_true(pf_sim_digest(bystander->scene->disk) == digest); /* nothing is touched */

    toy_writer keyed = toy_of("A", 50, 1), overwriter = toy_of("A", 60, 1);
    ASSERT_OK(toy_write(graph, &keyed, NULL, NULL, &err)); /* keyed writers pass each other */
    if (!getenv("SLUICE_NO_GATES")) {
        overwriter.exclusive = true;
        ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, toy_write(graph, &overwriter, NULL, NULL, &err));
        assert_int_equal(err.phase, SLUICE_PHASE_GATES);
        assert_int_equal(err.committed, SLUICE_FALSE);
    }
    st_graph_close(graph);
    bystander->ran = true;
}

static void a_live_owners_intent_is_never_touched(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 2);
    uint64_t k = calls_to_arm(scene, &toy);
    bystander_state bystander = {scene, false};
    st_graph *graph = toy_open(scene->disk);
    pf_sim_interrupt_at(st_graph_volume(graph), k, look_at_a_live_owner, &bystander);
    ASSERT_OK(toy_write(graph, &toy, NULL, NULL, &err)); /* the stopped owner goes on and finishes */
    st_graph_close(graph);
    assert_true(bystander.ran);
    assert_true(toy_holds(scene->graph, "A", (const int64_t[]){1, 2, 50}, 3));
    assert_int_equal(audit_of(scene).count, 0);
}

/* ---- two recoverers ---- */

typedef struct second_recoverer {
    recover_scene *scene;
    sluice_status status;
    bool ran;
} second_recoverer;

static void recover_too(void *context)
{
    second_recoverer *second = context;
    st_graph *graph = toy_open(second->scene->disk);
    second->status = co_recover(graph, CO_RECOVER_AUTOMATIC, 1, NULL, 0, NULL, NULL, NULL);
    st_graph_close(graph);
    second->ran = true;
}

static void of_two_recoverers_one_acts(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    die_found found = die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    pf_sim_disk *armed = scene->disk;
    bool ran = true;
    for (uint64_t k = 1; ran; k++) {
        ASSERT_OK(pf_sim_disk_clone(armed, k, &scene->disk, &err));
        second_recoverer second = {scene, SLUICE_OK, false};
        st_graph *graph = toy_open(scene->disk);
        pf_sim_interrupt_at(st_graph_volume(graph), k, recover_too, &second);
        ASSERT_OK(co_recover(graph, CO_RECOVER_AUTOMATIC, 1, NULL, 0, NULL, NULL, &err));
        ran = second.ran;
        assert_true(second.status == SLUICE_OK || second.status == SLUICE_LIVE_WRITER_CONTENTION);
        line_list lines = {.count = 0};
        row_list rows = {.count = 0};
        ASSERT_OK(co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, on_line, &lines, &err));
        assert_int_equal(lines.count, 0);
        ASSERT_OK(co_audit_list(graph, on_row, &rows, &err));
        assert_int_equal(rows.count, 1);
        assert_true(pf_id_equal(&rows.items[0].commit, &found.commit));
        assert_true(toy_holds(graph, "A", (const int64_t[]){1, 2}, 2));
        st_graph_close(graph);
        pf_sim_disk_free(scene->disk);
    }
    scene->disk = armed;
}

/* A probe changes nothing, and works on a graph that is open for reading. */
static void a_probe_changes_nothing(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    line_list lines = {.count = 0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    (void)die_armed(scene, toy_of("A", 1, 2), NULL, NULL);
    uint64_t digest = pf_sim_digest(scene->disk);
    ASSERT_OK(pf_sim_actor(scene->disk, "graph", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_READ, &graph, &err));
    uint64_t calls = pf_sim_calls(volume);
    ASSERT_OK(co_recover(graph, CO_RECOVER_PROBE, 0, NULL, 0, on_line, &lines, &err));
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.items[0].classification, "confirmed");
    assert_string_equal(lines.items[0].outcome, "pending");
    assert_int_equal(pf_sim_calls(volume), calls);
    ASSERT_FAILS(SLUICE_PERMISSION, co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, &err));
    st_graph_close(graph);
    assert_true(pf_sim_digest(scene->disk) == digest);
}

static void an_intent_that_cannot_be_listed_fails_writes_and_not_reads(void **state)
{
    recover_scene *scene = *state;
    sluice_error err = {0};
    toy_writer toy = toy_of("A", 1, 1);
    ASSERT_OK(pf_remove(st_graph_volume(scene->graph), ST_INTENTS_FILE, &err)); /* L-030 */
    assert_int_not_equal(toy_write(scene->graph, &toy, NULL, NULL, &err), SLUICE_OK);
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_true(toy_holds(scene->graph, "A", NULL, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_confirmed_write_is_rolled_forward_under_its_own_id),
        TEST(the_next_writer_sees_a_dead_ones_confirmed_write),
        TEST(a_repeated_request_is_told_that_recovery_completed_it),
        TEST(a_disjoint_winner_is_kept_and_mine_comes_on_top),
        TEST(a_winner_on_the_same_key_discards_mine),
        TEST(a_staged_object_that_is_gone_discards_it),
        TEST(a_published_write_is_audited_once_and_retired),
        TEST(recovery_killed_before_it_retires_audits_once),
        TEST(an_intent_of_a_branch_that_is_gone_is_discarded),
        TEST(an_intent_of_an_earlier_branch_of_the_same_name_is_discarded),
        TEST(an_unconfirmed_intent_is_undone_and_discarded),
        TEST(a_confirmed_intent_that_was_being_undone_is_discarded),
        TEST(a_damaged_intent_blocks_only_what_it_overlaps),
        TEST(more_damaged_intents_than_slots_leave_slots_for_others),
        TEST(an_intent_without_a_readable_scope_stops_collection_but_no_writer),
        TEST(an_unknown_kind_or_newer_strategy_is_never_guessed_at),
        TEST(a_live_owners_intent_is_never_touched),
        TEST(of_two_recoverers_one_acts),
        TEST(a_probe_changes_nothing),
        TEST(an_intent_that_cannot_be_listed_fails_writes_and_not_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
