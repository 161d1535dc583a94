/* The oracle (oracle.h). */
#include "oracle.h"

#include "coord/mutate.h"
#include "coord/recover.h"
#include "invariants.h"
#include "platform/check.h"
#include "store/state/lineage.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_COMMIT SIM_COMMITS_MAX

/* ---- known commits ---- */

static uint32_t find_commit(const sim_run *run, const pf_id *id)
{
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && pf_id_equal(&run->commits[i].id, id))
            return i;
    return NO_COMMIT;
}

static int find_op(const sim_run *run, const pf_id *operation)
{
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        pf_id id = sim_operation(run, i);
        if (pf_id_equal(&id, operation))
            return (int)i;
    }
    return -1;
}

static bool is_before(const sim_commit *of, uint32_t number)
{
    return of->before[number / 64] >> (number % 64) & 1;
}

static void note_history(sim_run *run, uint32_t number)
{
    sim_commit *commit = &run->commits[number];
    commit->before[number / 64] |= UINT64_C(1) << (number % 64);
    for (unsigned p = 0; p < 2; p++)
        for (unsigned w = 0; commit->parent[p] != NO_COMMIT && w < SIM_COMMITS_MAX / 64; w++)
            commit->before[w] |= run->commits[commit->parent[p]].before[w];
}

/* The newest commit that both have in their histories; NO_COMMIT when there is none or more than one. */
static uint32_t merge_base(const sim_run *run, uint32_t one, uint32_t two)
{
    uint32_t found = NO_COMMIT;
    for (uint32_t i = 0; i < run->commit_count; i++) {
        if (!is_before(&run->commits[one], i) || !is_before(&run->commits[two], i))
            continue;
        bool newest = true;
        for (uint32_t k = 0; k < run->commit_count && newest; k++)
            newest = k == i || !is_before(&run->commits[k], i) || !is_before(&run->commits[one], k) ||
                     !is_before(&run->commits[two], k);
        if (newest && found != NO_COMMIT)
            return NO_COMMIT;
        if (newest)
            found = i;
    }
    return found;
}

/* The state of the checkpoint "early": nobody makes it anew. */
static const sim_state *early_state(const sim_run *run)
{
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (run->commits[i].op == -1 && run->commits[i].incarnation == ST_MAIN_INCARNATION &&
            run->commits[i].generation == 2)
            return &run->commits[i].state;
    return NULL;
}

/* ---- what an operation makes of its parent's state ---- */

static bool expect_merge(const sim_run *run, const sim_commit *commit, sim_state *state, bool *ret_known)
{
    uint32_t ours = commit->parent[0], theirs = commit->parent[1];
    uint32_t base = theirs == NO_COMMIT ? NO_COMMIT : merge_base(run, ours, theirs);
    if (base == NO_COMMIT) {
        *ret_known = false;
        return true;
    }
    return sim_apply_merge(&run->commits[base].state, &run->commits[theirs].state, state);
}

/* False: it must not be there. *ret_known false: the model does not say what it holds. */
static bool expect(const sim_run *run, const sim_commit *commit, sim_state *ret_state, bool *ret_known)
{
    const sim_op *op = &run->plan->ops[commit->op];
    sim_step steps[SIM_STEPS_MAX];
    unsigned s = (unsigned)(op->salt % SIM_KEYS);
    *ret_known = true;
    *ret_state = run->commits[commit->parent[0]].state;
    switch (op->kind) {
    case SIM_OP_MUTATE:
        return sim_apply(ret_state, steps, sim_steps_of(op->salt, steps));
    case SIM_OP_LOAD:
    case SIM_OP_LOAD_BRANCH:
        return sim_apply_insert(ret_state, s);
    case SIM_OP_TOY:
    case SIM_OP_WIDE:
    case SIM_OP_ROW:
    case SIM_OP_BLIND:
        return sim_apply_toy(ret_state, sim_toy_key(op->salt, op->kind == SIM_OP_BLIND));
    case SIM_OP_UPSERT:
        return sim_apply_upsert(ret_state, s);
    case SIM_OP_OVERWRITE:
        sim_apply_overwrite(ret_state, s);
        return true;
    case SIM_OP_MERGE:
    case SIM_OP_MERGE_DELETE:
        return expect_merge(run, commit, ret_state, ret_known);
    case SIM_OP_REVERT:
        if (early_state(run))
            *ret_state = *early_state(run);
        return true;
    case SIM_OP_OPTIMIZE:
    case SIM_OP_INDEX:
    case SIM_OP_SCHEMA:
        return true;
    case SIM_OP_BRANCH_CREATE:
    case SIM_OP_BRANCH_DELETE:
    case SIM_OP_CHECKPOINT_CREATE:
    case SIM_OP_CHECKPOINT_DELETE:
    case SIM_OP_GC:
    case SIM_OP_GC_KEEP:
    case SIM_OP_BACKUP:
    case SIM_OP_READ:
    case SIM_OP_READ_AT:
    case SIM_OP_RECOVER:
    case SIM_OP_KINDS:
        break;
    }
    return false; /* no commit ever */
}

static bool derived(const sim_run *run, int op)
{
    return run->plan->ops[op].kind == SIM_OP_OPTIMIZE || run->plan->ops[op].kind == SIM_OP_INDEX;
}

static void check_commit(sim_run *run, const sim_commit *commit)
{
    sim_state wanted;
    bool known;
    char have[1024], want[1024];
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && &run->commits[i] != commit && run->commits[i].op == commit->op &&
            run->commits[i].incarnation == commit->incarnation) /* a branch made again is another one */
            sim_wrong(run, "operation %d (%s) has two commits", commit->op,
                      sim_kind_name(run->plan->ops[commit->op].kind));
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && &run->commits[i] != commit && run->commits[i].incarnation == commit->incarnation &&
            run->commits[i].parent[0] == commit->parent[0])
            sim_wrong(run, "invariant 7: operations %d and %d are committed on one parent", run->commits[i].op,
                      commit->op);
    if (run->ops[commit->op].outcome == SIM_FAILED && !sim_plan_has_twin(run->plan, (uint32_t)commit->op))
        sim_wrong(run, "operation %d was said not to be committed, and is", commit->op);
    if (!expect(run, commit, &wanted, &known)) {
        sim_state_text(&run->commits[commit->parent[0]].state, have, sizeof have);
        sim_wrong(run, "invariant 3: operation %d (%s) must not be committed on%s", commit->op,
                  sim_kind_name(run->plan->ops[commit->op].kind), have);
        return;
    }
    if (known && memcmp(&wanted, &commit->state, sizeof wanted) != 0) {
        sim_state_text(&commit->state, have, sizeof have);
        sim_state_text(&wanted, want, sizeof want);
        sim_wrong(run, "invariant %d: operation %d (%s) left%s and not%s", derived(run, commit->op) ? 9 : 5, commit->op,
                  sim_kind_name(run->plan->ops[commit->op].kind), have, want);
    }
}

/* ---- finding new ones ---- */

typedef struct fresh { /* newest first */
    sim_run *run;
    sim_commit items[SIM_COMMITS_MAX];
    uint32_t count;
} fresh;

static sluice_status on_commit(void *context, const st_generation *generation, uint32_t index, bool *stop,
                               sluice_error *err)
{
    fresh *found = context;
    const st_commit *commit = &generation->commits[index];
    if (find_commit(found->run, &commit->id) != NO_COMMIT) {
        *stop = true;
        return SLUICE_OK;
    }
    if (found->count + found->run->commit_count == SIM_COMMITS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "more commits than a history has");
    found->items[found->count++] = (sim_commit){.id = commit->id,
                                                .parents = {commit->parents[0], commit->parents[1]},
                                                .op = find_op(found->run, &commit->operation),
                                                .incarnation = generation->incarnation,
                                                .generation = generation->number,
                                                .index = index};
    return SLUICE_OK;
}

static sluice_status read_commit(sim_run *run, sim_commit *commit, sluice_error *err)
{
    st_snapshot *snapshot = NULL;
    const st_reach place = {commit->incarnation, commit->generation, commit->index};
    PF_TRY(st_snapshot_open_commit(run->eye, &place, &snapshot, err));
    sluice_status status = sim_read_state(run, snapshot, &commit->state, err);
    if (status == SLUICE_OK && !pf_id_equal(&st_snapshot_view(snapshot)->head, &commit->id))
        status = pf_fail(err, SLUICE_CORRUPT, "another commit stands in its place");
    st_snapshot_close(snapshot);
    return status;
}

static sluice_status add_commit(sim_run *run, const sim_commit *commit, bool given, sluice_error *err)
{
    const char *broken;
    uint32_t number = run->commit_count;
    sim_commit *added = &run->commits[number];
    *added = *commit;
    for (unsigned p = 0; p < 2; p++)
        added->parent[p] = pf_id_is_nil(&added->parents[p]) ? NO_COMMIT : find_commit(run, &added->parents[p]);
    PF_TRY(read_commit(run, added, err));
    run->commit_count++;
    run->counts->grouped += commit->index > 0;
    note_history(run, number);
    broken = sim_state_broken(&added->state);
    if (broken)
        sim_wrong(run, "commit %u: %s", number, broken);
    if (given) {
        added->op = -1;
        added->acknowledged = true;
        return SLUICE_OK;
    }
    if (added->op < 0)
        sim_wrong(run, "a commit that nobody asked for");
    else if (added->parent[0] == NO_COMMIT)
        sim_wrong(run, "a commit whose parent was never seen");
    else
        check_commit(run, added);
    return SLUICE_OK;
}

typedef struct ref_list {
    sim_run *run;
    char names[8][16];
    uint64_t incarnations[8];
    uint32_t count;
} ref_list;

static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    ref_list *list = context;
    if (!name || list->count == 8)
        return pf_fail(err, SLUICE_CORRUPT, "a name of a branch is damaged");
    (void)snprintf(list->names[list->count], sizeof list->names[0], "%s", name);
    list->incarnations[list->count++] = incarnation;
    return SLUICE_OK;
}

static bool is_seen(const sim_run *run, const pf_id *id)
{
    return pf_id_is_nil(id) || find_commit(run, id) != NO_COMMIT;
}

/* Adds what was found: parents before children, whichever branches they stand on. */
static sluice_status add_found(sim_run *run, fresh *found, bool given, sluice_error *err)
{
    while (found->count > 0) {
        uint32_t next = found->count;
        while (next > 0 &&
               !(is_seen(run, &found->items[next - 1].parents[0]) && is_seen(run, &found->items[next - 1].parents[1])))
            next--;
        next = next > 0 ? next - 1 : found->count - 1; /* none: its parent went with its branch */
        sim_commit commit = found->items[next];
        found->items[next] = found->items[--found->count];
        if (find_commit(run, &commit.id) == NO_COMMIT)
            PF_TRY(add_commit(run, &commit, given, err));
    }
    return SLUICE_OK;
}

static void note_name(sim_run *run, const char *name, uint64_t incarnation)
{
    uint32_t branch = 0;
    for (uint32_t i = 0; i < run->name_count; i++)
        if (run->names[i].incarnation == incarnation)
            return;
    while (branch < SIM_BRANCHES && strcmp(sim_branch_name(branch), name) != 0)
        branch++;
    if (run->name_count < SIM_OPS_MAX)
        run->names[run->name_count++] = (struct sim_name){incarnation, branch};
}

/* Was somebody asked to delete the branch that had this incarnation? */
static bool is_deletion_asked(const sim_run *run, uint64_t incarnation)
{
    uint32_t branch = SIM_BRANCHES;
    for (uint32_t i = 0; i < run->name_count; i++)
        if (run->names[i].incarnation == incarnation)
            branch = run->names[i].branch;
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        const sim_op *op = &run->plan->ops[i];
        if (run->ops[i].started && op->other == branch &&
            (op->kind == SIM_OP_BRANCH_DELETE || op->kind == SIM_OP_MERGE_DELETE))
            return true;
    }
    return false;
}

static sluice_status list_refs(sim_run *run, ref_list *ret_list, sluice_error *err)
{
    *ret_list = (ref_list){.run = run};
    PF_TRY(st_ref_list(run->eye, on_ref, ret_list, err));
    for (uint32_t i = 0; i < ret_list->count; i++)
        note_name(run, ret_list->names[i], ret_list->incarnations[i]);
    return SLUICE_OK;
}

static sluice_status look_at_all(sim_run *run, bool given, sluice_error *err)
{
    ref_list refs;
    sluice_status status;
    fresh *found = calloc(1, sizeof *found);
    PF_ALWAYS(found);
    found->run = run;
    PF_GOTO(status, done, list_refs(run, &refs, err));
    for (uint32_t i = 0; i < refs.count; i++) {
        st_log *log = NULL;
        PF_GOTO(status, done, st_graph_log(run->eye, refs.incarnations[i], &log, err));
        PF_GOTO(status, done, st_log_refresh(log, err));
        PF_GOTO(status, done, st_lineage_each(run->eye, log, on_commit, found, err));
    }
    status = add_found(run, found, given, err);
done:
    free(found);
    return status;
}

/* ---- after a power loss ---- */

static sluice_status on_still(void *context, const st_generation *generation, uint32_t index, bool *stop,
                              sluice_error *err)
{
    bool *still = ((void **)context)[1];
    uint32_t number = find_commit(((void **)context)[0], &generation->commits[index].id);
    (void)stop, (void)err;
    if (number != NO_COMMIT)
        still[number] = true;
    return SLUICE_OK;
}

/* Which commits stand in the history of a name. */
static sluice_status find_still(sim_run *run, ref_list *ret_refs, bool ret_still[SIM_COMMITS_MAX], sluice_error *err)
{
    void *context[2] = {run, ret_still};
    memset(ret_still, 0, SIM_COMMITS_MAX * sizeof *ret_still);
    PF_TRY(list_refs(run, ret_refs, err));
    for (uint32_t i = 0; i < ret_refs->count; i++) {
        st_log *log = NULL;
        PF_TRY(st_graph_log(run->eye, ret_refs->incarnations[i], &log, err));
        PF_TRY(st_log_refresh(log, err));
        PF_TRY(st_lineage_each(run->eye, log, on_still, context, err));
    }
    return SLUICE_OK;
}

/* Which of the acknowledged ones are reached by no name any more: those of deleted branches only. */
static sluice_status check_acknowledged(sim_run *run, sluice_error *err)
{
    bool still[SIM_COMMITS_MAX];
    ref_list refs;
    PF_TRY(find_still(run, &refs, still, err));
    for (uint32_t i = 0; i < run->commit_count; i++) {
        bool deleted = is_deletion_asked(run, run->commits[i].incarnation);
        for (uint32_t k = 0; deleted && k < refs.count; k++)
            deleted = refs.incarnations[k] != run->commits[i].incarnation;
        if (run->commits[i].acknowledged && !still[i] && !deleted)
            sim_wrong(run, "commit %u of operation %d was acknowledged and is gone", i, run->commits[i].op);
    }
    return SLUICE_OK;
}

/* What somebody was told stays; everything else may be gone, as if it had never been. */
static sluice_status look_after_loss(sim_run *run, sluice_error *err)
{
    bool still[SIM_COMMITS_MAX];
    ref_list refs;
    PF_TRY(find_still(run, &refs, still, err));
    for (uint32_t i = run->commit_count; i > 0; i--) { /* a merged branch's are known by their merge */
        for (uint32_t k = 0; still[i - 1] && k < run->commit_count; k++)
            still[k] = still[k] || is_before(&run->commits[i - 1], k);
    }
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!still[i] && !run->commits[i].acknowledged)
            run->commits[i].gone = true;
    return check_acknowledged(run, err);
}

/* ---- names ---- */

/* An acknowledged name is there unless somebody was asked to delete it; one that was deleted does not come back. */
static sluice_status check_names(sim_run *run, sluice_error *err)
{
    ref_list refs;
    PF_TRY(list_refs(run, &refs, err));
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        const sim_op *op = &run->plan->ops[i];
        const sim_op_state *state = &run->ops[i];
        bool made = op->kind == SIM_OP_BRANCH_CREATE || op->kind == SIM_OP_LOAD_BRANCH, there = false, asked = false;
        if (state->outcome != SIM_DONE || (!made && op->kind != SIM_OP_BRANCH_DELETE))
            continue;
        for (uint32_t k = 0; k < refs.count; k++)
            there = there || refs.incarnations[k] == state->result.incarnation;
        for (uint32_t k = 0; k < run->plan->op_count; k++) {
            const sim_op *other = &run->plan->ops[k];
            asked = asked || (run->ops[k].started && other->other == op->other &&
                              (other->kind == SIM_OP_BRANCH_DELETE || other->kind == SIM_OP_MERGE_DELETE));
        }
        if (made && !there && !asked)
            sim_wrong(run, "operation %u made a branch that is not there", i);
        if (!made && there)
            sim_wrong(run, "operation %u deleted a branch that is there", i);
    }
    return SLUICE_OK;
}

/* ---- from outside ---- */

static sluice_status open_eye(sim_run *run, sluice_error *err)
{
    if (run->eye && !pf_sim_is_dead(st_graph_volume(run->eye)))
        return SLUICE_OK;
    bool again = run->eye != NULL;
    st_graph_close(run->eye);
    run->eye = NULL;
    PF_TRY(sim_open(run, UINT32_MAX, PF_READ, &run->eye, err));
    return again ? look_after_loss(run, err) : SLUICE_OK;
}

void sim_oracle_begin(sim_run *run)
{
    sluice_error err = {0};
    if (open_eye(run, &err) != SLUICE_OK || look_at_all(run, true, &err) != SLUICE_OK)
        sim_wrong(run, "the oracle cannot read the first graph: %s", err.text);
}

void sim_oracle_look(sim_run *run)
{
    sluice_error err = {0};
    bool quiet = run->quiet;
    sluice_status status;
    if (run->violation[0])
        return;
    run->quiet = true;
    PF_GOTO(status, done, open_eye(run, &err));
    PF_GOTO(status, done, look_at_all(run, false, &err));
    PF_GOTO(status, done, check_names(run, &err));
done:
    if (status != SLUICE_OK)
        sim_wrong(run, "a reader cannot read: %s %s", sluice_status_name(status), err.text);
    run->quiet = quiet;
}

static uint32_t commit_of_op(const sim_run *run, uint32_t op)
{
    op = sim_plan_first_of(run->plan, op);
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && run->commits[i].op == (int)op)
            return i;
    return NO_COMMIT;
}

/* What a live client may be told: there is no damage and no bad input, and nothing is lacking unless a call was made to
 * fail. */
static bool is_plausible(const sim_run *run, sluice_status status)
{
    static const sluice_status always[] = {SLUICE_WRITER_BUSY,
                                           SLUICE_WRITE_CONFLICT,
                                           SLUICE_READ_SET_CHANGED,
                                           SLUICE_REBASE_EXHAUSTED,
                                           SLUICE_LIVE_WRITER_CONTENTION,
                                           SLUICE_MERGE_CONFLICT,
                                           SLUICE_KEY_CONFLICT,
                                           SLUICE_CONSTRAINT_UNIQUE,
                                           SLUICE_CONSTRAINT_ENDPOINT,
                                           SLUICE_CONSTRAINT_CARDINALITY,
                                           SLUICE_NOT_FOUND,
                                           SLUICE_ALREADY_EXISTS};
    static const sluice_status after_errors[] = {SLUICE_IO, SLUICE_NO_SPACE, SLUICE_QUOTA, SLUICE_SUSPECT,
                                                 SLUICE_RECOVERY_REQUIRED};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (status == always[i])
            return true;
    for (size_t i = 0; run->errors && i < sizeof after_errors / sizeof *after_errors; i++)
        if (status == after_errors[i])
            return true;
    return false;
}

/* Receipts are the branch's that the name means now: of one that was deleted, nothing is told. */
static bool of_another_branch(sim_run *run, uint32_t op, const sim_commit *commit)
{
    uint64_t incarnation = 0;
    bool quiet = run->quiet;
    run->quiet = true;
    sluice_status status = st_ref_read(run->eye, sim_branch_name(run->plan->ops[op].branch), &incarnation, NULL);
    run->quiet = quiet;
    return status == SLUICE_NOT_FOUND || (status == SLUICE_OK && incarnation != commit->incarnation);
}

void sim_oracle_answer(sim_run *run, uint32_t op, sluice_status status, const sluice_error *err)
{
    sim_op_state *state = &run->ops[op];
    uint32_t commit = commit_of_op(run, op);
    const char *kind = sim_kind_name(run->plan->ops[op].kind);
    if (run->violation[0])
        return;
    if (status == SLUICE_OK) {
        state->outcome = SIM_DONE;
        run->ops[sim_plan_first_of(run->plan, op)].not_followed |= !state->result.followed;
        if (!state->result.committed)
            return;
        if (commit == NO_COMMIT || !pf_id_equal(&run->commits[commit].id, &state->result.commit))
            sim_wrong(run, "operation %u (%s) was acknowledged and is not there", op, kind);
        else
            run->commits[commit].acknowledged = true;
        return;
    }
    bool unreadable = status == SLUICE_CORRUPT && run->plan->ops[op].kind == SIM_OP_BACKUP && run->errors &&
                      strstr(err->text, "Input/output error"); /* what a disk does not give back is not copied */
    /* Who leads a group stood still, or could not read what it had appended: of those it had taken nobody knows. */
    bool in_hand = err->committed == SLUICE_UNKNOWN &&
                   ((status == SLUICE_RECOVERY_REQUIRED && run->stopped) ||
                    (status == SLUICE_CORRUPT && run->errors && strstr(err->text, "could not be read again")));
    bool unnamed = status == SLUICE_USAGE && run->plan->ops[op].kind == SIM_OP_REVERT; /* its checkpoint is gone */
    if (!unnamed && !unreadable && !in_hand && !is_plausible(run, status))
        sim_wrong(run, "operation %u (%s) ends with %s: %s", op, kind, sluice_status_name(status), err->text);
    if (err->committed == SLUICE_TRUE && err->acknowledged == SLUICE_TRUE && commit != NO_COMMIT)
        run->commits[commit].acknowledged = true;
    state->outcome = err->committed == SLUICE_FALSE ? SIM_FAILED : SIM_UNKNOWN;
    if (state->outcome == SIM_UNKNOWN)
        state->was_unknown = true;
    if (state->outcome == SIM_FAILED && commit != NO_COMMIT && !sim_plan_has_twin(run->plan, op) &&
        !of_another_branch(run, op, &run->commits[commit]))
        sim_wrong(run, "operation %u (%s) says not committed (%s), and is there", op, kind, sluice_status_name(status));
}

void sim_oracle_seen(sim_run *run, const st_view *view, const sim_state *state, const char *who)
{
    bool quiet = run->quiet;
    sim_oracle_look(run);
    run->quiet = quiet;
    uint32_t commit = find_commit(run, &view->head);
    char have[1024], want[1024];
    if (commit == NO_COMMIT || memcmp(&run->commits[commit].state, state, sizeof *state) == 0)
        return; /* a commit that was lost since, or of a branch that is gone */
    sim_state_text(state, have, sizeof have);
    sim_state_text(&run->commits[commit].state, want, sizeof want);
    sim_wrong(run, "%s sees%s at commit %u, and not%s", who, have, commit, want);
}

/* ---- the end ---- */

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)err;
    sim_wrong(context, "verify: %s: %s", object, problem);
    return SLUICE_OK;
}

static sluice_status recover_as_fresh(sim_run *run, sluice_error *err)
{
    st_graph *graph = NULL;
    PF_TRY(sim_open(run, UINT32_MAX - 1, PF_WRITE, &graph, err));
    sluice_status status = co_recover(graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, err);
    st_graph_close(graph);
    return status;
}

static sluice_status recover_twice(sim_run *run, sluice_error *err)
{
    PF_TRY(recover_as_fresh(run, err));
    uint64_t settled = pf_sim_digest(run->disk);
    PF_TRY(recover_as_fresh(run, err));
    if (pf_sim_digest(run->disk) != settled)
        sim_wrong(run, "a second recovery changes something");
    PF_TRY(open_eye(run, err));
    sim_oracle_look(run);
    PF_TRY(sim_invariants_end(run, err));
    for (uint32_t i = 0; i < run->plan->op_count; i++)
        if (run->ops[i].outcome == SIM_DONE && run->ops[i].result.committed && commit_of_op(run, i) == NO_COMMIT)
            sim_wrong(run, "operation %u was acknowledged and is gone", i);
    return SLUICE_OK;
}

static sluice_status collect_and_verify(sim_run *run, sluice_error *err)
{
    st_graph *graph = NULL;
    co_gc_report report = {0};
    uint64_t checked = 0;
    sluice_status status;
    PF_TRY(sim_open(run, UINT32_MAX - 2, PF_WRITE, &graph, err));
    PF_GOTO(status, done, co_gc(graph, false, &report, err));
    if (run->plan->seed % 3 != 0) /* costly, so not in each */
        PF_GOTO(status, done, co_gc(graph, true, &report, err));
    else
        report = (co_gc_report){0};
    if (report.files != 0 || report.attempts != 0)
        sim_wrong(run, "collection leaves %" PRIu64 " files and %" PRIu64 " attempts", report.files, report.attempts);
    if (run->plan->seed % 2 == 0)
        PF_GOTO(status, done, st_graph_verify(graph, false, on_problem, run, &checked, err));
done:
    st_graph_close(graph);
    return status;
}

static sluice_status write_once_more(sim_run *run, sluice_error *err)
{
    static const char text[] = "{\"op\":\"upsert\",\"node\":\"P\",\"key\":0,\"set\":{\"v\":99}}\n";
    st_graph *graph = NULL;
    co_mutate_options options = {.path = "m.jsonl"};
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    co_mutate_result result = {0};
    PF_TRY(sim_open(run, UINT32_MAX - 3, PF_WRITE, &graph, err));
    sluice_status status = co_mutate_text(graph, &options, &executor, text, strlen(text), &result, err);
    if (status == SLUICE_OK && !(result.receipt.committed && result.receipt.acknowledged))
        sim_wrong(run, "the next write is not acknowledged");
    st_graph_close(graph);
    return status;
}

/* Every commit that can still be read is what it was. */
static sluice_status read_all_again(sim_run *run, sluice_error *err)
{
    st_graph_close(run->eye);
    run->eye = NULL;
    bool still[SIM_COMMITS_MAX];
    ref_list refs;
    PF_TRY(sim_open(run, UINT32_MAX, PF_READ, &run->eye, err));
    PF_TRY(find_still(run, &refs, still, err));
    for (uint32_t i = 0; i < run->commit_count; i++) {
        sim_commit again = run->commits[i];
        sluice_error local = {0};
        if (!still[i])
            continue;
        sluice_status status = read_commit(run, &again, &local);
        if (status == SLUICE_NOT_FOUND)
            continue; /* collected */
        if (status != SLUICE_OK)
            sim_wrong(run, "commit %u cannot be read any more: %s", i, local.text);
        else if (memcmp(&again.state, &run->commits[i].state, sizeof again.state) != 0)
            sim_wrong(run, "commit %u is not what it was", i);
    }
    return SLUICE_OK;
}

void sim_oracle_end(sim_run *run)
{
    static const struct {
        const char *what;
        sluice_status (*run)(sim_run *run, sluice_error *err);
    } last[] = {{"recovering", recover_twice},
                {"collecting", collect_and_verify},
                {"reading", read_all_again},
                {"looking for what was acknowledged", check_acknowledged},
                {"writing", write_once_more}};
    pf_sim_set_free_space(run->disk, UINT64_C(1) << 40);
    for (size_t i = 0; i < sizeof last / sizeof *last && !run->violation[0]; i++) {
        sluice_error err = {0};
        if (last[i].run(run, &err) != SLUICE_OK)
            sim_wrong(run, "in the end, %s: %s", last[i].what, err.text);
        if (last[i].run != write_once_more)
            sim_oracle_look(run);
    }
}

void sim_oracle_close(sim_run *run)
{
    st_graph_close(run->eye);
    run->eye = NULL;
}
