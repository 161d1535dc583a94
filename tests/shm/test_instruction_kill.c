/*
 * Instruction-kill: every update of the region's tables, cut off after each instruction that changes anything (L-048).
 *
 * For each update: the state before and the state after are taken from an undisturbed run. Then a child is killed after
 * change 1, 2, 3, ... of the same update; the heir takes the latch, which repairs, and the table must pass its check
 * and be exactly the state before or the state after, the latter from some change on for good. Then the repair itself
 * is killed after each of its changes, and repaired again. States are compared byte by byte, but for what means
 * nothing: the latches, closed intent records, the sequence words, the entries of free gates and the tasks of no run.
 */
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include "shm/tasks.h"
#include "step.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 3u
#define SKIPPED 77

/* Under the sanitizers, whose build takes several times the instructions, every sixteenth kill: they look at what a
 * repair touches; that each instruction is survived is shown by the build without them. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 16u
#else
#define STRIDE 1u
#endif

static const shm_limits limits = {.crashes = 2, .relapses = 4, .deaths = 9};

/* One region for all cases, put back by copying; nobody holds a latch when that is done. */
static shm_region region;
static shm_token tokens[WORKERS];
static shm_owner owners[WORKERS];
static pf_id operations[WORKERS];
static bool kill_every_repair; /* not only that of each update's deepest point (SLUICE_LONG) */
static uint8_t *empty;         /* the region as it was made, tokens given out, job started */

static int make_region(void **state)
{
    sluice_error err;
    const shm_config config = {WORKERS, 4, 3, 3, 64};
    (void)state;
    ASSERT_OK(shm_region_make(&config, &region, &err));
    region.latch_wait_ms = 2000;
    for (uint32_t slot = 0; slot < WORKERS; slot++) {
        tokens[slot] = shm_slot_assign(&region, slot);
        owners[slot] = shm_token_owner(&tokens[slot]);
        operations[slot] = pf_id_new();
    }
    ASSERT_OK(shm_job_start(&region, &err));
    empty = malloc(region.memory.length);
    assert_non_null(empty);
    memcpy(empty, region.memory.address, region.memory.length);
    return 0;
}

static int free_region(void **state)
{
    (void)state;
    shm_region_free(&region);
    free(empty);
    return 0;
}

/* ---- what a case is made of ---- */

static void take(uint32_t slot, shm_work *ret_work)
{
    sluice_error err;
    ASSERT_OK(shm_tasks_take(&region, owners[slot], true, ret_work, &err));
}

static shm_work works[WORKERS];

static void finish(uint32_t slot, bool failed)
{
    sluice_error err;
    ASSERT_OK(shm_tasks_finish(&region, owners[slot], &works[slot], failed, &err));
}

static void begin(uint32_t phase, uint32_t count, bool anew)
{
    sluice_error err;
    shm_run_answer answer;
    ASSERT_OK(shm_run_begin(&region, owners[0], phase, count, anew, &answer, &err));
}

static void look(void)
{
    sluice_error err;
    shm_run_answer answer;
    uint32_t cell;
    ASSERT_OK(shm_run_look(&region, owners[0], &answer, &cell, &err));
}

static void bury_tasks(uint32_t slot)
{
    sluice_error err;
    ASSERT_OK(shm_tasks_bury(&region, owners[slot], true, &limits, &err));
}

static void conducting(void)
{
    take(0, &works[0]);
}

static void running(void)
{
    conducting();
    begin(1, 3, false);
}

static void two_taken(void)
{
    running();
    take(1, &works[1]);
    take(2, &works[2]);
}

static void taken_twice(void)
{
    running();
    take(1, &works[1]);
    bury_tasks(1);
    take(1, &works[1]);
}

static void one_failed(void)
{
    two_taken();
    finish(2, true);
}

static void all_done(void)
{
    conducting();
    begin(1, 1, false);
    take(1, &works[1]);
    finish(1, false);
}

static void conductor_tried(void)
{
    conducting();
    bury_tasks(0);
    conducting();
    begin(1, 3, false);
    take(0, &works[0]);
}

static void straggling(void)
{
    conducting();
    begin(7, 2, true);
    take(1, &works[1]);
}

static void do_take_conducting(void)
{
    take(0, &works[0]);
}

static void do_take_task(void)
{
    take(1, &works[1]);
}

static void do_finish(void)
{
    finish(1, false);
}

static void do_fail(void)
{
    finish(1, true);
}

static void do_begin(void)
{
    begin(2, 4, false);
}

static void do_begin_anew(void)
{
    begin(7, 2, true);
}

static void do_look(void)
{
    look();
}

static void do_stop(void)
{
    sluice_error err;
    ASSERT_OK(shm_run_stop(&region, owners[0], &err));
}

static void do_end_job(void)
{
    sluice_error err;
    ASSERT_OK(shm_job_end(&region, owners[0], SLUICE_KEY_CONFLICT, &err));
}

static void do_fail_job(void)
{
    sluice_error err;
    ASSERT_OK(shm_job_fail(&region, SLUICE_INTERNAL, &err));
}

static void do_bury_conductor(void)
{
    bury_tasks(0);
}

static void do_bury_worker(void)
{
    bury_tasks(1);
}

static const lk_gate_key keys[] = {{LK_GATE_SCHEMA, 1, 0, false},
                                   {LK_GATE_TABLE, 1, 70, false},
                                   {LK_GATE_TABLE, 1, 70, true},
                                   {LK_GATE_TABLE, 1, 71, true}};

static void try_gate(uint32_t slot, unsigned key, int64_t now_ms)
{
    sluice_error err;
    shm_gate_answer answer;
    ASSERT_OK(shm_gate_try(&region, &tokens[slot], &keys[key], &operations[slot], now_ms * 1000000, &answer, &err));
}

static void leave_gate(uint32_t slot, unsigned key)
{
    sluice_error err;
    ASSERT_OK(shm_gate_leave(&region, &tokens[slot], &keys[key], &err));
}

static void gate_held(void)
{
    try_gate(0, 2, 1);
}

static void gate_shared(void)
{
    try_gate(0, 0, 1);
    try_gate(0, 1, 1);
    try_gate(0, 3, 1);
    try_gate(1, 1, 1);
}

static void gate_waited_for(void)
{
    gate_held();
    try_gate(1, 1, 1);
    try_gate(2, 1, 1);
}

static void gate_handed_on(void)
{
    gate_waited_for();
    leave_gate(0, 2);
}

static void gate_turn_timed(void)
{
    gate_handed_on();
    try_gate(2, 1, 2);
}

static void gate_given_up_last(void)
{
    gate_held();
    try_gate(1, 3, 1); /* holds that one */
    try_gate(1, 1, 1); /* and waits for this one */
}

static void gate_orphaned(void)
{
    sluice_error err;
    gate_held();
    ASSERT_OK(shm_gates_bury(&region, 0, &err));
    try_gate(1, 2, 1);
}

static void do_enter_fresh(void)
{
    try_gate(1, 3, 1);
}

static void do_enter_shared(void)
{
    try_gate(2, 1, 1);
}

static void do_wait(void)
{
    try_gate(1, 2, 1);
}

static void do_enter_waited(void)
{
    try_gate(1, 1, 2);
}

static void do_time_turn(void)
{
    try_gate(2, 1, 2);
}

static void do_pass_over(void)
{
    try_gate(2, 1, 3 + SHM_TURN_MS);
}

static void do_leave_last(void)
{
    leave_gate(0, 2);
}

static void do_leave_first_of_three(void)
{
    leave_gate(0, 0);
}

static void do_give_up(void)
{
    sluice_error err;
    ASSERT_OK(shm_gate_give_up(&region, &tokens[1], &err));
}

static void do_settle(void)
{
    sluice_error err;
    ASSERT_OK(shm_gate_settle(&region, &tokens[1], &keys[2], &err));
}

static void do_bury_holder(void)
{
    sluice_error err;
    ASSERT_OK(shm_gates_bury(&region, 0, &err));
}

static void do_bury_waiter(void)
{
    sluice_error err;
    ASSERT_OK(shm_gates_bury(&region, 1, &err));
}

static shm_publisher publisher(uint32_t slot)
{
    return (shm_publisher){&region, tokens[slot]};
}

static void enter_line(uint32_t slot, bool alone)
{
    sluice_error err;
    uint64_t ticket = 0;
    const shm_offer offer = {{1, 2, 3}, alone, 3};
    shm_publisher me = publisher(slot);
    memset(shm_publish_slice(&region, slot), (int)slot + 1, 3);
    ASSERT_OK(shm_publish_enter(&me, &offer, &ticket, &err));
}

static void look_at_line(uint32_t slot)
{
    sluice_error err;
    shm_publish_answer answer;
    shm_publisher me = publisher(slot);
    ASSERT_OK(shm_publish_look(&me, &answer, &err));
}

static void take_line(uint32_t slot)
{
    sluice_error err;
    uint32_t slots[WORKERS], count;
    shm_publisher me = publisher(slot);
    ASSERT_OK(shm_publish_take(&me, slots, &count, &err));
}

static void decide_line(uint32_t slot, uint32_t about, bool again)
{
    sluice_error err;
    shm_publisher me = publisher(slot);
    ASSERT_OK(shm_publish_decide(&me, about, again, &err));
}

static void in_line(void)
{
    for (uint32_t slot = 0; slot < WORKERS; slot++)
        enter_line(slot, false);
}

static void led(void)
{
    in_line();
    look_at_line(0);
}

static void group_taken(void)
{
    led();
    take_line(0);
}

static void one_decided(void)
{
    group_taken();
    decide_line(0, 1, false);
    decide_line(0, 0, false);
}

static void waiter_dead(void)
{
    group_taken();
    shm_slot_revoke(&region, 1);
}

static void waiter_dead_in_line(void)
{
    led();
    shm_slot_revoke(&region, 1);
}

static void leader_dead(void)
{
    one_decided();
    shm_slot_revoke(&region, 0);
}

static void resigned(void)
{
    sluice_error err;
    one_decided();
    shm_publisher me = publisher(0);
    ASSERT_OK(shm_publish_resign(&me, false, &err));
}

static void do_enter_line(void)
{
    enter_line(1, true);
}

static void do_lead(void)
{
    look_at_line(0);
}

static void do_take_line(void)
{
    take_line(0);
}

static void do_decide(void)
{
    decide_line(0, 1, false);
}

static void do_give_back(void)
{
    decide_line(0, 2, true);
}

static void do_resign(void)
{
    sluice_error err;
    shm_publisher me = publisher(0);
    ASSERT_OK(shm_publish_resign(&me, false, &err));
}

static void do_leave_line(void)
{
    sluice_error err;
    shm_publisher me = publisher(1);
    ASSERT_OK(shm_publish_leave(&me, &err));
}

static void do_withdraw(void)
{
    sluice_error err;
    bool out;
    shm_publisher me = publisher(1);
    ASSERT_OK(shm_publish_withdraw(&me, true, &out, &err));
}

static void do_bury_leader(void)
{
    sluice_error err;
    ASSERT_OK(shm_publish_bury(&region, 0, &err));
}

static void do_bury_waiting(void)
{
    sluice_error err;
    ASSERT_OK(shm_publish_bury(&region, 1, &err));
}

typedef struct one_update {
    const char *name;
    void (*before)(void); /* NULL: the empty region */
    void (*change)(void);
    bool several; /* several edits, each a whole step: going on with what is left leads to the state after */
} one_update;

static const one_update task_updates[] = {
    {"take the conducting", NULL, do_take_conducting, false},
    {"take a task", running, do_take_task, false},
    {"finish a task", two_taken, do_finish, false},
    {"fail a task", two_taken, do_fail, false},
    {"fail a lower task", one_failed, do_fail, false},
    {"open a run", conducting, do_begin, true},
    {"replace a run", running, do_begin, true},
    {"stop a run for another", straggling, do_begin_anew, false},
    {"close a finished run", all_done, do_look, false},
    {"stop a run", running, do_stop, false},
    {"end the job", running, do_end_job, false},
    {"fail the job", running, do_fail_job, false},
    {"bury a worker", two_taken, do_bury_worker, false},
    {"bury a worker whose task fails", taken_twice, do_bury_worker, false},
    {"bury a conductor", running, do_bury_conductor, false},
    {"bury a conductor with its task and the job", conductor_tried, do_bury_conductor, false},
};

static const one_update gate_updates[] = {
    {"enter a fresh gate", gate_held, do_enter_fresh, true},
    {"enter a shared gate", gate_shared, do_enter_shared, true},
    {"wait for a gate", gate_held, do_wait, false},
    {"enter when it is its turn", gate_handed_on, do_enter_waited, false},
    {"time a turn", gate_handed_on, do_time_turn, false},
    {"pass a waiter over", gate_turn_timed, do_pass_over, false},
    {"leave as the last", gate_held, do_leave_last, false},
    {"leave the first of three", gate_shared, do_leave_first_of_three, false},
    {"give up waiting", gate_given_up_last, do_give_up, false},
    {"settle an orphan", gate_orphaned, do_settle, false},
    {"bury a holder", gate_shared, do_bury_holder, true},
    {"bury a holder that also waits", gate_given_up_last, do_bury_waiter, true},
};

static const one_update publish_updates[] = {
    {"stand in line", NULL, do_enter_line, false},
    {"lead", in_line, do_lead, false},
    {"take a group", led, do_take_line, true},
    {"decide", group_taken, do_decide, false},
    {"decide about a dead worker's write", waiter_dead, do_decide, false},
    {"give back", group_taken, do_give_back, false},
    {"resign", one_decided, do_resign, true},
    {"leave", resigned, do_leave_line, false},
    {"withdraw", in_line, do_withdraw, false},
    {"abandon", group_taken, do_withdraw, false},
    {"bury a leader", leader_dead, do_bury_leader, true},
    {"bury a waiter", waiter_dead_in_line, do_bury_waiting, true},
};

/* ---- states ---- */

static uint8_t *snapshot(void)
{
    uint8_t *bytes = malloc(region.memory.length);
    assert_non_null(bytes);
    memcpy(bytes, region.memory.address, region.memory.length);
    return bytes;
}

static void restore(const uint8_t *bytes)
{
    memcpy(region.memory.address, bytes, region.memory.length);
}

static void blank(uint8_t *bytes, const void *from, size_t length)
{
    memset(bytes + ((const uint8_t *)from - (const uint8_t *)region.memory.address), 0, length);
}

/* The region as it stands, without what means nothing. */
static uint8_t *meaning(void)
{
    uint8_t *bytes = snapshot();
    blank(bytes, &region.tasks->latch, sizeof region.tasks->latch);
    blank(bytes, region.tasks->intent.words, sizeof region.tasks->intent.words);
    blank(bytes, &region.tasks->sequence, sizeof region.tasks->sequence);
    if (region.tasks->run == SHM_RUN_NONE)
        blank(bytes, region.tasks->tasks, region.config.tasks * sizeof region.tasks->tasks[0]);
    blank(bytes, &region.gates->latch, sizeof region.gates->latch);
    blank(bytes, region.gates->intent.words, sizeof region.gates->intent.words);
    for (uint32_t i = 0; i < region.config.gates; i++) {
        shm_gate *gate = &region.gates->gates[i];
        blank(bytes, &gate->sequence, sizeof gate->sequence);
        if (gate->used == 0)
            blank(bytes, gate, sizeof *gate);
    }
    blank(bytes, &region.publish->latch, sizeof region.publish->latch);
    blank(bytes, region.publish->intent.words, sizeof region.publish->intent.words);
    for (uint32_t i = 0; i < region.config.workers; i++) {
        shm_publish_entry *entry = &region.publish->entries[i];
        blank(bytes, &entry->sequence, sizeof entry->sequence);
        if (entry->state == SHM_PUBLISH_FREE)
            blank(bytes, entry->place, offsetof(shm_publish_entry, sequence) - offsetof(shm_publish_entry, place));
        if (entry->state == SHM_PUBLISH_FREE)
            blank(bytes, shm_publish_slice(&region, i), region.config.slice);
    }
    return bytes;
}

static bool same(const uint8_t *left, const uint8_t *right)
{
    return memcmp(left, right, region.memory.length) == 0;
}

static bool means(const uint8_t *expected)
{
    uint8_t *now = meaning();
    bool equal = same(now, expected);
    free(now);
    return equal;
}

/* ---- the heir ---- */

/* Takes both latches, which repairs the tables behind them, as whoever comes next would. */
static void inherit(void *context)
{
    sluice_error err;
    (void)context;
    ASSERT_OK(shm_latch_take(&region, &region.tasks->latch, LK_RANK_LATCH_TASKS, shm_tasks_repair, &err));
    lk_latch_release(&region.tasks->latch, LK_RANK_LATCH_TASKS);
    ASSERT_OK(shm_latch_take(&region, &region.gates->latch, LK_RANK_LATCH_GATES, shm_gates_repair, &err));
    lk_latch_release(&region.gates->latch, LK_RANK_LATCH_GATES);
    ASSERT_OK(shm_latch_take(&region, &region.publish->latch, LK_RANK_LATCH_PUBLISH_QUEUE, shm_publish_repair, &err));
    lk_latch_release(&region.publish->latch, LK_RANK_LATCH_PUBLISH_QUEUE);
}

typedef struct known_states {
    const one_update *update;
    uint8_t *start;  /* bytes */
    uint8_t *before; /* meanings */
    uint8_t *after;
} known_states;

/* True: the state after; false: the state before. Anything else fails the test. */
static bool is_after(const known_states *states, unsigned change)
{
    assert_int_equal(shm_region_state(&region), SHM_READY);
    assert_true(shm_tasks_check(&region));
    assert_true(shm_gates_check(&region));
    assert_true(shm_publish_check(&region));
    bool after = means(states->after);
    if (!after && states->update->several) {
        states->update->change(); /* by the heir; what is left of it */
        assert_true(means(states->after));
    } else if (!after && !means(states->before)) {
        fail_msg("%s, killed after change %u: neither the state before nor the one after", states->update->name,
                 change);
    }
    return after;
}

/* Where an undisturbed run had saved most: there a repair has most to do. */
static unsigned deepest;
static unsigned deepest_at;

static void note_depth(unsigned change)
{
    unsigned saved = (unsigned)((region.tasks->intent.phase & UINT32_MAX) + (region.gates->intent.phase & UINT32_MAX) +
                                (region.publish->intent.phase & UINT32_MAX));
    if (saved > deepest) {
        deepest = saved;
        deepest_at = change;
    }
}

/* The tables behind latches lie side by side; only they change. */
static size_t tables_length(void)
{
    return (size_t)(region.arena - (const uint8_t *)region.tasks);
}

/* The repair of the region as it lies there, killed after each of its changes and done again. */
static unsigned kill_the_repair(const known_states *states, unsigned change)
{
    uint8_t *dead = snapshot();
    const step_subject heir = {region.tasks, tables_length(), inherit, NULL, NULL};
    unsigned count = step_run(&heir, 0);
    for (unsigned i = 1; i <= count; i += STRIDE) {
        restore(dead);
        assert_int_equal(step_run(&heir, i), i);
        inherit(NULL);
        (void)is_after(states, change);
    }
    restore(dead);
    free(dead);
    return count;
}

static void run_change(void *context)
{
    const one_update *update = context;
    update->change();
}

/* Kills the update after each of its changes. */
static void kill_the_update(const known_states *states, const step_subject *subject, unsigned changes)
{
    unsigned stride = kill_every_repair ? 1 : STRIDE;
    bool after = false;
    for (unsigned i = 1 + (changes - 1) % stride; i <= changes; i += stride) { /* the last one among them */
        restore(states->start);
        assert_int_equal(step_run(subject, i), i);
        if (kill_every_repair)
            (void)kill_the_repair(states, i);
        inherit(NULL);
        bool now = is_after(states, i);
        assert_true(now || !after || states->update->several); /* once visible, it stays */
        after = now;
    }
    assert_true(after);
}

static void cut_off_everywhere(const one_update *update)
{
    known_states states = {.update = update};
    union {
        const one_update *given;
        void *context;
    } unconst = {.given = update};
    step_subject subject = {region.tasks, tables_length(), run_change, unconst.context, note_depth};
    restore(empty);
    if (update->before)
        update->before();
    states.start = snapshot();
    states.before = meaning();
    update->change();
    states.after = meaning();
    assert_false(same(states.before, states.after));
    restore(states.start);
    deepest = 0;
    unsigned changes = step_run(&subject, 0);
    subject.after_change = NULL;
    assert_true(means(states.after));
    assert_true(deepest > 0);
    restore(states.start);
    assert_int_equal(step_run(&subject, deepest_at), deepest_at);
    assert_true(kill_the_repair(&states, deepest_at) > 0);
    kill_the_update(&states, &subject, changes);
    free(states.start);
    free(states.before);
    free(states.after);
}

static void every_update_of_the_task_table_survives_a_kill_at_each_instruction(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof task_updates / sizeof task_updates[0]; i++)
        cut_off_everywhere(&task_updates[i]);
}

static void every_update_of_the_gate_table_survives_a_kill_at_each_instruction(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof gate_updates / sizeof gate_updates[0]; i++)
        cut_off_everywhere(&gate_updates[i]);
}

static void every_update_of_the_publish_queue_survives_a_kill_at_each_instruction(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof publish_updates / sizeof publish_updates[0]; i++)
        cut_off_everywhere(&publish_updates[i]);
}

/* ---- lines with one writer ---- */

static void keep_progress(void *context)
{
    (void)context;
    shm_progress_keep(&region, 1);
}

static void progress_cut_off_anywhere_is_never_counted_twice(void **state)
{
    (void)state;
    const step_subject subject = {region.memory.address, region.memory.length, keep_progress, NULL, NULL};
    uint64_t rows;
    uint64_t bytes;
    restore(empty);
    shm_progress_add(&region, 1, 10, 100);
    shm_progress_keep(&region, 1);
    shm_progress_add(&region, 1, 5, 50);
    uint8_t *start = snapshot();
    unsigned changes = step_run(&subject, 0);
    assert_true(changes >= 4);
    for (unsigned i = 1; i <= changes; i++) {
        restore(start);
        assert_int_equal(step_run(&subject, i), i);
        shm_progress_drop(&region, 1); /* the supervisor's, as the task is run again or was finished */
        shm_progress_sum(&region, &rows, &bytes);
        assert_true(rows == 10 || rows == 15);
        assert_true(bytes == 100 || bytes == 150);
    }
    free(start);
}

static const shm_death deaths[] = {{1, 5, 1001, 9, SHM_TASK, 3, 4}, {2, 6, 1002, 11, SHM_CONDUCTING, 5, 6}};

static void write_obituary(void *context)
{
    (void)context;
    shm_obituary_write(&region, &deaths[1]);
}

static void an_onlooker_never_sees_half_an_obituary(void **state)
{
    (void)state;
    const step_subject subject = {region.memory.address, region.memory.length, write_obituary, NULL, NULL};
    shm_death seen;
    restore(empty);
    region.last_obituary = 0;
    shm_obituary_write(&region, &deaths[0]);
    uint8_t *start = snapshot();
    unsigned changes = step_run(&subject, 0);
    assert_true(changes >= 7);
    for (unsigned i = 1; i <= changes; i++) {
        restore(start);
        assert_int_equal(step_run(&subject, i), i);
        uint64_t number = shm_obituary_last(&region, &seen);
        assert_true(number == 1 || number == 2);
        const shm_death *expected = &deaths[number - 1];
        assert_int_equal(seen.slot, expected->slot);
        assert_int_equal(seen.generation, expected->generation);
        assert_int_equal(seen.pid, expected->pid);
        assert_int_equal(seen.wait_status, expected->wait_status);
        assert_int_equal(seen.stage, expected->stage);
        assert_int_equal(seen.phase, expected->phase);
        assert_int_equal(seen.index, expected->index);
    }
    free(start);
}

/* The oracle's own test: an update that changes a word without saving it must be caught. */
static void change_unsaved(void)
{
    sluice_error err;
    shm_edit edit;
    ASSERT_OK(shm_latch_take(&region, &region.tasks->latch, LK_RANK_LATCH_TASKS, shm_tasks_repair, &err));
    shm_edit_begin(&edit, &region.tasks->intent, region.tasks, SHM_OP_JOB);
    region.tasks->outcome = 33; /* the defect */
    shm_set(&edit, &region.tasks->outcome_cell, 1);
    shm_edit_commit(&edit);
    lk_latch_release(&region.tasks->latch, LK_RANK_LATCH_TASKS);
}

static void run_unsaved(void *context)
{
    (void)context;
    change_unsaved();
}

static void a_planted_defect_is_seen(void **state)
{
    (void)state;
    const step_subject subject = {region.memory.address, region.memory.length, run_unsaved, NULL, NULL};
    unsigned caught = 0;
    restore(empty);
    uint8_t *before = meaning();
    change_unsaved();
    uint8_t *after = meaning();
    restore(empty);
    unsigned changes = step_run(&subject, 0);
    for (unsigned i = 1; i <= changes; i++) {
        restore(empty);
        assert_int_equal(step_run(&subject, i), i);
        inherit(NULL);
        caught += !means(before) && !means(after);
    }
    assert_true(caught > 0);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_update_of_the_task_table_survives_a_kill_at_each_instruction),
        cmocka_unit_test(every_update_of_the_gate_table_survives_a_kill_at_each_instruction),
        cmocka_unit_test(every_update_of_the_publish_queue_survives_a_kill_at_each_instruction),
        cmocka_unit_test(progress_cut_off_anywhere_is_never_counted_twice),
        cmocka_unit_test(an_onlooker_never_sees_half_an_obituary),
        cmocka_unit_test(a_planted_defect_is_seen),
    };
    const char *why;
    kill_every_repair = getenv("SLUICE_LONG") != NULL;
    if (!step_is_possible(&why)) {
        print_message("skipped: %s\n", why);
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, make_region, free_region);
}
