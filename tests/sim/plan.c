/* Plans: made from a seed, written, read (plan.h). */
#include "plan.h"

#include "model.h"
#include "platform/check.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {
#define SIM_KIND_NAME(id, name) name,
    SIM_KINDS_OF(SIM_KIND_NAME)
#undef SIM_KIND_NAME
};
static const char *const faults[] = {
#define SIM_FAULT_NAME(id, name) name,
    SIM_FAULTS_OF(SIM_FAULT_NAME)
#undef SIM_FAULT_NAME
};
static const char *const losses[] = {"lose", "keep", "random", "tear"};

const char *sim_kind_name(sim_kind kind)
{
    return kinds[kind];
}

const char *sim_fault_name(sim_fault_kind kind)
{
    return faults[kind];
}

static unsigned draw(uint64_t *random, unsigned bound)
{
    PF_ALWAYS(bound > 0);
    *random = sim_mix(*random);
    return (unsigned)(*random >> 16) % bound;
}

/* ---- windows ---- */

static const char spooled[] = "input is a file, which is read where it lies";
static const char made[] = "the graph is there (tests/graph/test_init.c)";
static const char pooled[] = "jobs run in one process (tests/pool)";
static const struct {
    pf_failpoint point;
    const char *why;
} never[] = {
    {PF_FP_LOAD_BEFORE_SPOOLING, spooled},
    {PF_FP_LOAD_WHILE_SPOOLING, spooled},
    {PF_FP_LOAD_AFTER_SPOOLING, spooled},
    {PF_FP_LOAD_AFTER_SPILL, "too few rows to spill (tests/matrix)"},
    {PF_FP_LOAD_AFTER_REJECTS, "no load skips rows (tests/load/test_skip_crash.c)"},
    {PF_FP_INIT_AFTER_LAYOUT, made},
    {PF_FP_INIT_BEFORE_PUBLISH, made},
    {PF_FP_INIT_AFTER_PUBLISH, made},
    {PF_FP_WORKER_AFTER_START, pooled},
    {PF_FP_WORKER_AFTER_TAKE, pooled},
    {PF_FP_WORKER_BEFORE_DONE, pooled},
};

const char *sim_plan_why_not(pf_failpoint point)
{
    if (point < PF_FP_BARRIER_BEFORE)
        return "a call of the volume, counted as such, or the check of a real file system";
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (never[i].point == point)
            return never[i].why;
    return NULL;
}

/* ---- made from a seed ---- */

/* Several of one kind: it comes more often. */
static const sim_kind often[] = {SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_MUTATE,
                                 SIM_OP_LOAD,
                                 SIM_OP_LOAD,
                                 SIM_OP_LOAD,
                                 SIM_OP_UPSERT,
                                 SIM_OP_UPSERT,
                                 SIM_OP_OVERWRITE,
                                 SIM_OP_LOAD_BRANCH,
                                 SIM_OP_MERGE,
                                 SIM_OP_MERGE,
                                 SIM_OP_MERGE_DELETE,
                                 SIM_OP_OPTIMIZE,
                                 SIM_OP_INDEX,
                                 SIM_OP_REVERT,
                                 SIM_OP_SCHEMA,
                                 SIM_OP_BRANCH_CREATE,
                                 SIM_OP_BRANCH_DELETE,
                                 SIM_OP_CHECKPOINT_CREATE,
                                 SIM_OP_CHECKPOINT_DELETE,
                                 SIM_OP_GC,
                                 SIM_OP_GC_KEEP,
                                 SIM_OP_BACKUP,
                                 SIM_OP_TOY,
                                 SIM_OP_TOY,
                                 SIM_OP_WIDE,
                                 SIM_OP_ROW,
                                 SIM_OP_ROW,
                                 SIM_OP_ROW,
                                 SIM_OP_ROW,
                                 SIM_OP_READ_AT,
                                 SIM_OP_READ_AT,
                                 SIM_OP_READ,
                                 SIM_OP_READ,
                                 SIM_OP_RECOVER};

static void make_op(uint64_t *random, uint32_t actor, sim_op *ret_op)
{
    sim_kind kind = often[draw(random, sizeof often / sizeof *often)];
    *ret_op = (sim_op){.actor = actor, .kind = kind, .tries = 1 + draw(random, 3), .salt = sim_mix(*random)};
    ret_op->branch = draw(random, 4) ? 0 : 1 + draw(random, SIM_BRANCHES - 1);
    ret_op->other = 1 + draw(random, SIM_BRANCHES - 1);
    if (kind == SIM_OP_TOY || kind == SIM_OP_WIDE)
        ret_op->branch = 0;
    if (kind == SIM_OP_MERGE && draw(random, 4) == 0) {
        ret_op->branch = ret_op->other;
        ret_op->other = 0;
    }
}

static void make_fault(uint64_t *random, const sim_plan *plan, sim_fault *ret_fault)
{
    static const int errors[] = {EIO, EIO, ENOSPC, EDQUOT};
    static const sim_fault_kind by_weight[] = {
        SIM_FAULT_DIE,       SIM_FAULT_DIE,   SIM_FAULT_DIE,   SIM_FAULT_DIE_AFTER,
        SIM_FAULT_DIE_AFTER, SIM_FAULT_POWER, SIM_FAULT_POWER, SIM_FAULT_POWER_AFTER,
        SIM_FAULT_FAIL,      SIM_FAULT_FAIL,  SIM_FAULT_FULL,  SIM_FAULT_POWER_AFTER,
        SIM_FAULT_FAIL_LOOK, SIM_FAULT_STOP,  SIM_FAULT_STOP,  SIM_FAULT_POWER_ANSWER};
    *ret_fault = (sim_fault){.kind = by_weight[draw(random, sizeof by_weight / sizeof *by_weight)],
                             .actor = draw(random, plan->actors),
                             .loss = (pf_sim_loss)draw(random, 4),
                             .error = errors[draw(random, 4)],
                             .times = 1 + draw(random, 3)};
    ret_fault->at = 1 + draw(random, draw(random, 3) ? 300 : 1500);
    if (ret_fault->kind == SIM_FAULT_STOP) /* odd: also while all others wait for it */
        ret_fault->times = 100 + draw(random, 4000);
    if (ret_fault->kind == SIM_FAULT_FULL)
        ret_fault->times = draw(random, 40);
    if (ret_fault->kind == SIM_FAULT_POWER_ANSWER) {
        ret_fault->at = 1 + draw(random, 3);
    } else if (draw(random, 2)) {
        ret_fault->by_point = true;
        ret_fault->point =
            (pf_failpoint)(PF_FP_BARRIER_BEFORE + draw(random, PF_FAILPOINT_COUNT - PF_FP_BARRIER_BEFORE));
        ret_fault->at = 1 + draw(random, 4);
    }
}

/* ---- histories that are led to one window ---- */

typedef struct lead { /* to the windows [first, last]: who passes them */
    pf_failpoint first, last;
    sim_kind kind;
    uint32_t branch, other;
} lead;
static const lead leads[] = {
    {PF_FP_BARRIER_BEFORE, PF_FP_PREPARE_AFTER_PIN, SIM_OP_MUTATE, 0, 1},
    {PF_FP_LOAD_BEFORE_SPOOLING, PF_FP_LOAD_AFTER_EDITS, SIM_OP_LOAD, 0, 1},
    {PF_FP_MAINTAIN_AFTER_LIST, PF_FP_MAINTAIN_AFTER_EDITS, SIM_OP_OPTIMIZE, 0, 1},
    {PF_FP_PREPARE_AFTER_PLAN, PF_FP_REVALIDATE_AFTER, SIM_OP_LOAD, 0, 1},
    {PF_FP_ARM_BEFORE_SIDE_FILE, PF_FP_ARM_AFTER_SIDE_FILE, SIM_OP_WIDE, 0, 1},
    {PF_FP_ARM_BEFORE_FRAME_SYNC, PF_FP_PUBLISH_AFTER_DECIDE, SIM_OP_LOAD, 0, 1},
    {PF_FP_SEGMENT_AFTER_OPENING_SYNC, PF_FP_SEGMENT_AFTER_CURRENT_SYNC, SIM_OP_MUTATE, 0, 1},
    {PF_FP_FINALIZE_BEFORE_AUDIT, PF_FP_FINALIZE_AFTER_RETIRE, SIM_OP_MERGE_DELETE, 0, 1},
    {PF_FP_RECOVER_BEFORE_PUBLISH, PF_FP_RECOVER_AFTER_RETIRE, SIM_OP_LOAD, 0, 1},
    {PF_FP_BRANCH_AFTER_RECEIPT, PF_FP_BRANCH_AFTER_REF, SIM_OP_BRANCH_CREATE, 0, 2},
    {PF_FP_BRANCH_BEFORE_REMOVE, PF_FP_BRANCH_AFTER_REMOVE, SIM_OP_BRANCH_DELETE, 0, 1},
    {PF_FP_NEW_BRANCH_AFTER_FOLDER, PF_FP_NEW_BRANCH_BEFORE_REF, SIM_OP_LOAD_BRANCH, 0, 2},
    {PF_FP_GC_BEFORE_BOUNDARY, PF_FP_GC_AFTER_SEGMENT, SIM_OP_GC_KEEP, 0, 1},
};

static void add_fault(sim_plan *plan, sim_fault fault)
{
    fault.by_point = true;
    plan->faults[plan->fault_count++] = fault;
}

static void add_op(uint64_t *random, sim_plan *plan, sim_op op)
{
    op.tries = 3;
    if (op.salt == 0)
        op.salt = sim_mix(*random += plan->op_count);
    plan->ops[plan->op_count++] = op;
}

static bool is_of_groups(pf_failpoint point)
{
    return point == PF_FP_PUBLISH_AFTER_LINE || point == PF_FP_PUBLISH_AFTER_TAKE ||
           point == PF_FP_PUBLISH_BEFORE_DECIDE || point == PF_FP_PUBLISH_AFTER_DECIDE;
}

/* A process or everything ends there; and before that whatever it takes to come there. */
static void lead_to(uint64_t *random, const lead *to, pf_failpoint point, sim_plan *plan)
{
    static const sim_fault_kind ends[] = {SIM_FAULT_DIE,         SIM_FAULT_DIE_AFTER, SIM_FAULT_POWER,
                                          SIM_FAULT_POWER_AFTER, SIM_FAULT_DIE,       SIM_FAULT_POWER};
    bool groups = is_of_groups(point);
    bool recovers = to->first == PF_FP_RECOVER_BEFORE_PUBLISH;
    bool segments = to->first == PF_FP_SEGMENT_AFTER_OPENING_SYNC || point >= PF_FP_GC_AFTER_LINEAGE;
    sim_op op = {.kind = groups ? SIM_OP_TOY : to->kind, .branch = to->branch, .other = to->other};
    plan->pool = groups || (plan->pool && !plan->single);
    plan->single = plan->single && !groups;
    if (segments) { /* an error in the log makes its next writer open another segment */
        add_fault(plan, (sim_fault){.kind = SIM_FAULT_FAIL,
                                    .point = PF_FP_PUBLISH_AFTER_LOG_RECORD_WRITE,
                                    .at = 1,
                                    .error = EIO,
                                    .times = 1});
        for (unsigned i = 0; i < 3; i++)
            add_op(random, plan, (sim_op){.kind = i == 2 ? SIM_OP_OVERWRITE : SIM_OP_UPSERT});
    }
    if (point >= PF_FP_GC_AFTER_LINEAGE) { /* what keeps the first segment, but for rows in it */
        add_op(random, plan, (sim_op){.kind = SIM_OP_CHECKPOINT_DELETE, .salt = 2});
        add_op(random, plan, (sim_op){.kind = SIM_OP_BRANCH_DELETE, .other = 1});
        op.salt = 3;
        add_op(random, plan, op); /* b's folder goes by the first one, what it kept by the second */
    }
    for (unsigned i = 0; to->kind == SIM_OP_OPTIMIZE && i < 2; i++) /* what it puts together */
        add_op(random, plan, (sim_op){.kind = SIM_OP_LOAD, .salt = 16 + 4 * i});
    if (recovers) {
        add_fault(plan, (sim_fault){.kind = SIM_FAULT_DIE, .point = PF_FP_ARM_AFTER, .at = 1});
        add_op(random, plan, (sim_op){.kind = SIM_OP_RECOVER, .actor = 1});
    }
    if (to->kind == SIM_OP_GC_KEEP && !segments) { /* something that it removes */
        add_fault(plan, (sim_fault){.kind = SIM_FAULT_DIE, .point = PF_FP_LOAD_AFTER_EDITS, .at = 1});
        add_op(random, plan, (sim_op){.kind = SIM_OP_LOAD});
    }
    add_op(random, plan, op);
    add_fault(plan, (sim_fault){.kind = ends[draw(random, 6)],
                                .point = point,
                                .at = draw(random, 4) ? 1 : 2,
                                .loss = (pf_sim_loss)draw(random, 4)});
}

/* The windows in turn, of those that can be come to. */
static void lead_somewhere(uint64_t *random, uint64_t turn, sim_plan *plan)
{
    uint32_t count = 0;
    for (unsigned round = 0; round < 2; round++) {
        uint32_t number = 0;
        for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
            for (pf_failpoint point = leads[i].first; point <= leads[i].last; point++) {
                if (sim_plan_why_not(point))
                    continue;
                if (round == 1 && number == turn % count) {
                    lead_to(random, &leads[i], point, plan);
                    return;
                }
                number++;
            }
        }
        count = number;
    }
}

void sim_plan_make(uint64_t seed, sim_plan *ret_plan)
{
    static const uint32_t chances[] = {2, 8, 40, 200};
    uint64_t random = sim_mix(seed ^ UINT64_C(0x51));
    *ret_plan = (sim_plan){.seed = seed, .actors = 2 + draw(&random, 3)};
    ret_plan->turns.one_in = chances[draw(&random, 4)];
    ret_plan->single = seed % 21 == 2;
    ret_plan->pool = !ret_plan->single && seed % 4 == 2;
    if (seed % 3 == 0)
        lead_somewhere(&random, seed / 3, ret_plan);
    if (seed % 3 == 1) {
        sim_plan_scene(seed / 3, &random, ret_plan);
        if (ret_plan->actors < SIM_ACTORS_MAX && draw(&random, 3) == 0)
            make_op(&random, ret_plan->actors++, &ret_plan->ops[ret_plan->op_count++]);
        return;
    }
    for (uint32_t actor = 0; actor < ret_plan->actors; actor++)
        for (uint32_t n = 1 + draw(&random, 3); n > 0; n--)
            make_op(&random, actor, &ret_plan->ops[ret_plan->op_count++]);
    uint32_t one = draw(&random, 3 * ret_plan->op_count);
    bool moves =
        one < ret_plan->op_count && (ret_plan->ops[one].kind == SIM_OP_TOY || ret_plan->ops[one].kind == SIM_OP_WIDE);
    if (one < ret_plan->op_count && !moves) { /* two clients ask for the same; not for the move of one file */
        ret_plan->ops[ret_plan->op_count] = ret_plan->ops[one];
        ret_plan->ops[ret_plan->op_count++].actor = draw(&random, ret_plan->actors);
    }
    uint32_t wanted = draw(&random, 8) ? ret_plan->fault_count + 1 + draw(&random, 4) : 0;
    while (ret_plan->fault_count < wanted)
        make_fault(&random, ret_plan, &ret_plan->faults[ret_plan->fault_count++]);
}

uint32_t sim_plan_first_of(const sim_plan *plan, uint32_t op)
{
    uint32_t first = 0;
    while (plan->ops[first].salt != plan->ops[op].salt)
        first++;
    return first;
}

bool sim_plan_has_twin(const sim_plan *plan, uint32_t op)
{
    for (uint32_t i = 0; i < plan->op_count; i++)
        if (i != op && plan->ops[i].salt == plan->ops[op].salt)
            return true;
    return false;
}

void sim_plan_free(sim_plan *plan)
{
    free(plan->switches);
    *plan = (sim_plan){0};
}

void sim_plan_copy(const sim_plan *plan, sim_plan *ret_copy)
{
    *ret_copy = *plan;
    ret_copy->switches = NULL;
    if (plan->turns.count > 0) {
        size_t size = plan->turns.count * sizeof *plan->switches;
        ret_copy->switches = malloc(size);
        PF_ALWAYS(ret_copy->switches);
        memcpy(ret_copy->switches, plan->turns.items, size);
    }
    ret_copy->turns.items = ret_copy->switches;
}

/* ---- as a text ---- */

static void say(char *text, size_t room, const char *format, ...) PF_PRINTF(3, 4);
static void say(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
    PF_ALWAYS(more >= 0 && length + (size_t)more < room);
}

void sim_plan_write(const sim_plan *plan, char *ret_text, size_t room)
{
    ret_text[0] = '\0';
    say(ret_text, room, "seed %" PRIu64 "\nactors %u\n%s", plan->seed, plan->actors,
        plan->single ? "mode single\n"
        : plan->pool ? "mode pool\n"
                     : "");
    say(ret_text, room, plan->turns.listed ? "turns listed\n" : "turns %u\n", plan->turns.one_in);
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const sim_op *op = &plan->ops[i];
        say(ret_text, room, "op %u %s %u %u %u %" PRIu64 "\n", op->actor, kinds[op->kind], op->branch, op->other,
            op->tries, op->salt);
    }
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const sim_fault *fault = &plan->faults[i];
        say(ret_text, room, "fault %s %u %s%s %u %s %d %u\n", faults[fault->kind], fault->actor, fault->own ? "!" : "",
            fault->by_point ? pf_failpoint_name(fault->point) : "call", fault->at, losses[fault->loss], fault->error,
            fault->times);
    }
    for (uint32_t i = 0; i < plan->turns.count; i++)
        say(ret_text, room, "switch %u %u\n", plan->turns.items[i].step, plan->turns.items[i].to);
}

static bool find_word(const char *const *words, unsigned count, const char *word, unsigned *ret_index)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool read_op(const char *line, sim_plan *plan)
{
    sim_op op = {0};
    char kind[32];
    unsigned index;
    if (plan->op_count == SIM_OPS_MAX ||
        sscanf(line, "op %u %31s %u %u %u %" SCNu64, &op.actor, kind, &op.branch, &op.other, &op.tries, &op.salt) !=
            6 ||
        !find_word(kinds, SIM_OP_KINDS, kind, &index) || op.actor >= plan->actors || op.branch >= SIM_BRANCHES ||
        op.other >= SIM_BRANCHES)
        return false;
    op.kind = (sim_kind)index;
    plan->ops[plan->op_count++] = op;
    return true;
}

static bool read_fault(const char *line, sim_plan *plan)
{
    sim_fault fault = {0};
    char kind[32], point_text[64], loss[16];
    const char *point = point_text;
    unsigned index, lost;
    if (plan->fault_count == SIM_FAULTS_MAX ||
        sscanf(line, "fault %31s %u %63s %u %15s %d %u", kind, &fault.actor, point_text, &fault.at, loss, &fault.error,
               &fault.times) != 7 ||
        !find_word(faults, SIM_FAULT_KINDS, kind, &index) || !find_word(losses, 4, loss, &lost) ||
        fault.actor >= plan->actors)
        return false;
    fault.kind = (sim_fault_kind)index;
    fault.loss = (pf_sim_loss)lost;
    fault.own = *point == '!';
    point += fault.own;
    fault.by_point = strcmp(point, "call") != 0;
    for (int i = 0; fault.by_point; i++) {
        if (i == PF_FAILPOINT_COUNT)
            return false;
        fault.point = (pf_failpoint)i;
        if (strcmp(pf_failpoint_name(fault.point), point) == 0)
            break;
    }
    plan->faults[plan->fault_count++] = fault;
    return true;
}

static bool read_line(const char *line, sim_plan *plan)
{
    fiber_switch one;
    if (*line == '\0' || *line == '#')
        return true;
    if (strncmp(line, "op ", 3) == 0)
        return read_op(line, plan);
    if (strncmp(line, "fault ", 6) == 0)
        return read_fault(line, plan);
    if (strcmp(line, "mode single") == 0)
        return plan->single = true;
    if (strcmp(line, "mode pool") == 0)
        return plan->pool = true;
    if (strcmp(line, "turns listed") == 0)
        return plan->turns.listed = true;
    if (sscanf(line, "switch %u %u", &one.step, &one.to) == 2) {
        if (plan->turns.count % 64 == 0) {
            plan->switches = realloc(plan->switches, (plan->turns.count + 64) * sizeof one);
            PF_ALWAYS(plan->switches);
        }
        plan->switches[plan->turns.count++] = one;
        plan->turns.items = plan->switches;
        return true;
    }
    return sscanf(line, "seed %" SCNu64, &plan->seed) == 1 ||
           (sscanf(line, "actors %u", &plan->actors) == 1 && plan->actors >= 1 && plan->actors <= SIM_ACTORS_MAX) ||
           (sscanf(line, "turns %u", &plan->turns.one_in) == 1 && plan->turns.one_in > 0);
}

bool sim_plan_read(const char *text, sim_plan *ret_plan)
{
    *ret_plan = (sim_plan){.turns.one_in = 1};
    for (;;) {
        char line[256];
        size_t length = strcspn(text, "\n");
        if (length >= sizeof line)
            break;
        memcpy(line, text, length);
        line[length] = '\0';
        if (!read_line(line, ret_plan))
            break;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
    sim_plan_free(ret_plan);
    return false;
}
