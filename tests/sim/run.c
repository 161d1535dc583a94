/*
 * Running a history (run.h).
 *
 * An actor is a client: it has operations done, each by a process, which is a volume of its own. When the process dies
 * the client knows nothing, and asks a new one, with the same operation id. Everything is one thread; who is in the
 * middle of a call when the power goes finds itself dead when its turn comes.
 */
#include "run.h"

#include "invariants.h"
#include "oracle.h"
#include "platform/check.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 400000u

void sim_wrong(sim_run *run, const char *format, ...)
{
    va_list arguments;
    if (run->violation[0])
        return;
    va_start(arguments, format);
    (void)vsnprintf(run->violation, sizeof run->violation, format, arguments);
    va_end(arguments);
    sim_trace(run, "WRONG: %s", run->violation);
}

void sim_trace(sim_run *run, const char *format, ...)
{
    char line[2304];
    va_list arguments;
    if (!run->trace)
        return;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t used = (size_t)length < sizeof line - 1 ? (size_t)length : sizeof line - 2;
    line[used] = '\n';
    PF_ALWAYS(pf_buffer_append(run->trace, line, used + 1, NULL) == SLUICE_OK);
}

pf_id sim_operation(const sim_run *run, uint32_t op)
{
    pf_id id;
    uint64_t words[2] = {sim_mix(run->plan->seed ^ run->plan->ops[op].salt), run->plan->ops[op].salt};
    memcpy(id.bytes, words, sizeof id.bytes);
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0F) | 0x40); /* no time in it */
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3F) | 0x80);
    return id;
}

/* ---- what strikes ---- */

static sim_actor_state *current(sim_run *run)
{
    return &run->actors[fibers_current(run->fibers)];
}

static void note_death(sim_run *run, sim_actor_state *actor)
{
    run->counts->deaths++;
    if (actor->passed)
        run->counts->crashed[actor->last_point]++;
}

static void note_power(sim_run *run)
{
    run->lost = true;
    run->pool_over = run->plan->pool;
    run->counts->losses++;
    for (uint32_t i = 0; i < run->plan->actors; i++)
        if (run->actors[i].graph)
            note_death(run, &run->actors[i]);
}

static uint64_t later(const sim_fault *fault)
{
    return fault->times ? fault->times : 1;
}

/* By whatever hand: an object that a process staged, and that nothing names yet, goes with it. */
static void lose_staged(sim_run *run, sim_actor_state *actor)
{
    pf_volume *volume = NULL;
    bool quiet = run->quiet;
    run->quiet = true;
    if (actor->staged[0] && pf_sim_actor(run->disk, "g", &volume, NULL) == SLUICE_OK)
        (void)pf_remove(volume, actor->staged, NULL);
    pf_volume_close(volume);
    run->quiet = quiet;
}

static void strike(sim_run *run, sim_actor_state *actor, const sim_fault *fault, pf_volume *volume, bool before_call)
{
    bool alive = actor->graph && !pf_sim_is_dead(st_graph_volume(actor->graph));
    sim_trace(run, "** %s strikes %u", sim_fault_name(fault->kind), actor->number);
    switch (fault->kind) {
    case SIM_FAULT_DIE:
        if (alive)
            note_death(run, actor);
        pf_sim_kill_process(run->disk, actor->process);
        if (alive && actor->worker)
            sim_pool_bury(actor->worker);
        return;
    case SIM_FAULT_FENCE:
        if (alive && actor->worker && !actor->fenced) {
            note_death(run, actor);
            actor->fenced = true;
            sim_pool_fence(actor->worker);
        }
        return;
    case SIM_FAULT_LOSE:
        if (alive)
            note_death(run, actor);
        pf_sim_kill_process(run->disk, actor->process);
        lose_staged(run, actor);
        return;
    case SIM_FAULT_DIE_AFTER:
        if (volume) {
            note_death(run, actor);
            pf_sim_crash_at(volume, later(fault), false, PF_SIM_DIE, before_call ? PF_SIM_TEAR_LAST : PF_SIM_KEEP_ALL);
        }
        return;
    case SIM_FAULT_POWER:
    case SIM_FAULT_POWER_ANSWER:
        note_power(run);
        pf_sim_power_loss(run->disk, fault->loss);
        return;
    case SIM_FAULT_POWER_AFTER:
        if (volume) {
            note_power(run);
            pf_sim_crash_at(volume, later(fault), false, PF_SIM_POWER_LOSS, fault->loss);
        }
        return;
    case SIM_FAULT_FAIL:
    case SIM_FAULT_FAIL_LOOK:
        run->errors = true;
        run->counts->errors++;
        pf_sim_set_failed_sync(run->disk, fault->loss == PF_SIM_TEAR_LAST ? PF_SIM_RANDOM : fault->loss);
        if (volume && fault->kind == SIM_FAULT_FAIL)
            pf_sim_fail_at(volume, 1, fault->error, fault->times);
        else if (volume)
            pf_sim_fail_look_at(volume, 1, fault->error, fault->times);
        return;
    case SIM_FAULT_FULL:
        run->errors = true;
        run->counts->errors++;
        pf_sim_set_free_space(run->disk, (uint64_t)fault->times * 4096u);
        return;
    case SIM_FAULT_STOP:
        run->counts->stops++;
        run->stopped = true;
        fibers_stop(run->fibers, fault->times);
        return;
    case SIM_FAULT_AWAIT:
    case SIM_FAULT_KINDS:
        return;
    }
}

/* What an AWAIT waits for. */
static bool is_come(const sim_run *run, const sim_fault *fault)
{
    if (fault->by_point)
        return run->point_passed[fault->point] >= fault->at;
    return fault->at >= run->plan->op_count || run->ops[fault->at].holds || run->ops[fault->at].over;
}

/* Not for a call. */
static bool waits(const sim_fault *fault)
{
    return fault->kind == SIM_FAULT_AWAIT || fault->kind == SIM_FAULT_POWER_ANSWER;
}

/* Who waits for what has just happened goes on. */
static void wake(sim_run *run)
{
    for (uint32_t i = 0; i < run->plan->actors; i++)
        if (run->actors[i].awaits && is_come(run, run->actors[i].awaits))
            fibers_go_on(run->fibers, i);
}

void sim_run_holds(sim_run *run, uint32_t op)
{
    run->ops[op].holds = true;
    wake(run);
}

/* ---- the scheduler's side of the disk ---- */

static void on_call(void *context, pf_volume *volume, bool changes, const char *doing, const char *path)
{
    sim_run *run = context;
    if (run->quiet)
        return;
    sim_actor_state *actor = current(run);
    uint64_t step = fibers_step(run->fibers);
    sim_trace(run, "%" PRIu64 " %u %s%s %s", step, actor->number, changes ? "" : "(", doing, path);
    actor->calls++;
    run->counts->calls++;
    if (changes)
        sim_invariants_at_call(run, actor, path);
    if (changes && strncmp(path, "tables/", 7) == 0 && strlen(path) < sizeof actor->staged && strchr(path + 7, '.'))
        memcpy(actor->staged, path, strlen(path) + 1);
    for (uint32_t i = 0; i < run->plan->fault_count && !pf_sim_is_dead(volume); i++) {
        const sim_fault *fault = &run->plan->faults[i];
        if (run->struck[i] || fault->by_point || waits(fault) || fault->actor != actor->number ||
            actor->calls < fault->at)
            continue;
        bool needs_change =
            fault->kind == SIM_FAULT_DIE_AFTER || fault->kind == SIM_FAULT_POWER_AFTER || fault->kind == SIM_FAULT_FAIL;
        if (needs_change && !changes)
            continue; /* the next one that does */
        run->struck[i] = true;
        strike(run, actor, fault, volume, true);
    }
}

static bool on_wait(void *context, pf_deadline deadline)
{
    sim_run *run = context;
    return !run->quiet && fibers_wait(run->fibers, deadline.monotonic_ns);
}

static void on_release(void *context)
{
    sim_run *run = context;
    fibers_release(run->fibers);
}

static void on_look_at_clock(void *context)
{
    sim_run *run = context;
    if (!run->quiet)
        (void)fibers_step(run->fibers);
}

static void on_sleep(void *context, int64_t until_ns)
{
    sim_run *run = context;
    if (run->quiet || fibers_are_late(run->fibers))
        pf_sim_world_advance(until_ns);
    else
        fibers_sleep(run->fibers, until_ns);
}

static void on_word_wait(void *context, int64_t until_ns)
{
    sim_run *run = context;
    if (run->quiet || fibers_are_late(run->fibers) || !fibers_wait(run->fibers, until_ns))
        pf_sim_world_advance(until_ns);
}

static void on_point(void *context, pf_failpoint point)
{
    sim_run *run = context;
    if (run->quiet || point < PF_FP_BARRIER_BEFORE)
        return;
    sim_actor_state *actor = current(run);
    if (!actor->graph || pf_sim_is_dead(st_graph_volume(actor->graph)))
        return;
    actor->last_point = point;
    actor->passed = true;
    run->counts->passed[point]++;
    run->point_passed[point]++;
    actor->point_passed[point]++;
    sim_trace(run, "   %u %s", actor->number, pf_failpoint_name(point));
    if (point == PF_FP_GC_BEFORE_BOUNDARY || point == PF_FP_BRANCH_BEFORE_REMOVE)
        sim_oracle_look(run); /* what will soon be gone */
    sim_invariants_at_point(run, actor, point);
    wake(run);
    for (uint32_t i = 0; i < run->plan->fault_count; i++) {
        const sim_fault *fault = &run->plan->faults[i];
        uint32_t passed = fault->own ? actor->point_passed[point] : run->point_passed[point];
        if (run->struck[i] || !fault->by_point || waits(fault) || fault->point != point || passed < fault->at ||
            (fault->own && fault->actor != actor->number))
            continue;
        run->struck[i] = true;
        strike(run, actor, fault, st_graph_volume(actor->graph), false);
    }
}

/* ---- a client ---- */

static void end_process(sim_actor_state *actor)
{
    if (actor->fenced) /* the supervisor kills whom it fenced */
        pf_sim_kill_process(actor->run->disk, actor->process);
    st_graph_close(actor->graph);
    actor->graph = NULL;
    if (actor->worker)
        sim_pool_bury(actor->worker);
    actor->worker = NULL;
    actor->passed = false;
}

static sluice_status begin_process(sim_actor_state *actor, sluice_error *err)
{
    sim_run *run = actor->run;
    if (actor->graph && (actor->fenced || pf_sim_is_dead(st_graph_volume(actor->graph))))
        end_process(actor);
    if (actor->graph)
        return SLUICE_OK;
    actor->process = ++run->processes;
    actor->fenced = false;
    if (run->pool_over) {
        run->pool_over = false;
        sim_pool_begin(run);
    }
    actor->worker = sim_pool_join(run);
    return sim_open(run, actor->process, PF_WRITE, &actor->graph, err);
}

/* The power goes behind an answer. */
static void strike_answer(sim_run *run, sim_actor_state *actor)
{
    actor->answers++;
    for (uint32_t i = 0; i < run->plan->fault_count; i++) {
        const sim_fault *fault = &run->plan->faults[i];
        if (run->struck[i] || fault->kind != SIM_FAULT_POWER_ANSWER || fault->actor != actor->number ||
            actor->answers < fault->at)
            continue;
        run->struck[i] = true;
        strike(run, actor, fault, NULL, false);
        sim_oracle_look(run);
    }
}

/* One try; true: the client asks no more. */
static bool try_once(sim_actor_state *actor, uint32_t number)
{
    sim_run *run = actor->run;
    sim_op_state *state = &run->ops[number];
    sluice_error err = {0};
    sim_result result = {0};
    sluice_status status = begin_process(actor, &err);
    if (status != SLUICE_OK) { /* the operation has not begun */
        sim_trace(run, "= %u op %u cannot open: %s", actor->number, number, err.text);
        return false;
    }
    state->started = true;
    state->outcome = SIM_UNKNOWN; /* until it is answered */
    state->attempts++;
    actor->op = number;
    actor->begun = actor->in_barrier = actor->planned = actor->arms = actor->armed = false;
    status = sim_op_run(run, actor, number, &result, &err);
    bool dead = actor->fenced || pf_sim_is_dead(st_graph_volume(actor->graph));
    sim_trace(run, "= %u op %u %s: %s%s %s", actor->number, number, sim_kind_name(run->plan->ops[number].kind),
              dead ? "(dead) " : "", sluice_status_name(status), status == SLUICE_OK ? "" : err.text);
    if (dead) {
        sim_invariants_died(run, actor, number);
        end_process(actor);
        state->outcome = SIM_UNKNOWN;
        state->was_unknown = true;
        sim_oracle_look(run);
        return false;
    }
    run->counts->outcomes[run->plan->ops[number].kind][status]++;
    state->result = result;
    run->counts->repeated += result.repeated;
    run->counts->restarts += result.restarts;
    sim_oracle_look(run);
    sim_oracle_answer(run, number, status, &err);
    strike_answer(run, actor);
    return status == SLUICE_OK || !sluice_status_retryable(status);
}

static void await(sim_run *run, sim_actor_state *actor, uint32_t ordinal)
{
    for (uint32_t i = 0; i < run->plan->fault_count; i++) {
        const sim_fault *fault = &run->plan->faults[i];
        if (fault->kind != SIM_FAULT_AWAIT || fault->actor != actor->number || fault->times != ordinal ||
            is_come(run, fault) || fibers_are_late(run->fibers))
            continue;
        sim_trace(run, "   %u waits", actor->number);
        actor->awaits = fault;
        fibers_stop_for_good(run->fibers);
        actor->awaits = NULL;
    }
}

static void run_client(void *context)
{
    sim_actor_state *actor = context;
    sim_run *run = actor->run;
    uint32_t ordinal = 0;
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        const sim_op *op = &run->plan->ops[i];
        if (op->actor != actor->number)
            continue;
        await(run, actor, ordinal++);
        for (uint32_t tries = 0; tries < op->tries && !run->violation[0] && !fibers_are_late(run->fibers); tries++) {
            run->counts->retries += tries > 0;
            if (try_once(actor, i))
                break;
        }
        run->ops[i].over = true;
        wake(run);
        if (op->salt >> 40 & 1)
            end_process(actor);
    }
    end_process(actor);
}

/* ---- the whole ---- */

static void keep_switches(const sim_run *run, sim_plan *ret_listed)
{
    uint32_t count;
    const fiber_switch *made = fibers_switches(run->fibers, &count);
    sim_plan plan = *run->plan;
    plan.turns = (fiber_turns){.listed = true, .one_in = 1, .items = made, .count = count};
    sim_plan_copy(&plan, ret_listed);
}

static void begin_toys(sim_run *run)
{
    pf_volume *volume = NULL;
    PF_ALWAYS(pf_sim_actor(run->disk, "g", &volume, NULL) == SLUICE_OK);
    sim_toy_begin(run, volume);
    pf_volume_close(volume);
}

bool sim_history(const sim_plan *plan, sim_counts *counts, pf_buffer *trace, char ret_violation[2048],
                 sim_plan *ret_listed)
{
    sluice_error err = {0};
    sim_run *run = calloc(1, sizeof *run);
    PF_ALWAYS(run);
    run->plan = plan;
    run->counts = counts;
    run->trace = trace;
    pf_sim_disk *base = sim_base(plan->single, &run->folder);
    pf_sim_world_install(plan->seed);
    pf_sim_world_advance(INT64_C(3600000000000));
    PF_ALWAYS(pf_sim_disk_clone(base, sim_mix(plan->seed), &run->disk, &err) == SLUICE_OK);
    run->fibers = fibers_new(plan->seed, &plan->turns);
    const pf_sim_turns turns = {run, on_call, on_wait, on_release};
    const pf_sim_sleeper sleeper = {run, on_look_at_clock, on_sleep, on_word_wait, on_release};
    run->quiet = true;
    sim_oracle_begin(run);
    begin_toys(run);
    sim_pool_begin(run);
    for (uint32_t i = 0; i < plan->actors; i++) {
        run->actors[i] = (sim_actor_state){.run = run, .number = i};
        (void)fibers_add(run->fibers, run_client, &run->actors[i]);
    }
    pf_sim_set_turns(run->disk, &turns);
    pf_sim_world_set_sleeper(&sleeper);
    pf_failpoints_watch(on_point, run);
    run->quiet = false;
    if (!fibers_run(run->fibers, STEPS_MAX))
        sim_wrong(run, "it does not come to an end");
    run->quiet = true;
    pf_sim_world_set_sleeper(NULL);
    pf_sim_set_turns(run->disk, NULL);
    if (!run->violation[0])
        sim_oracle_end(run);
    pf_failpoints_watch(NULL, NULL);
    sim_oracle_close(run);
    sim_pool_free(run);
    if (trace)
        sim_trace(run, "end %016" PRIx64, pf_sim_digest(run->disk));
    counts->histories++;
    counts->commits += run->commit_count;
    if (ret_listed)
        keep_switches(run, ret_listed);
    fibers_free(run->fibers);
    pf_sim_disk_free(run->disk);
    pf_sim_world_remove();
    memcpy(ret_violation, run->violation, sizeof run->violation);
    bool good = run->violation[0] == '\0';
    free(run);
    return good;
}
