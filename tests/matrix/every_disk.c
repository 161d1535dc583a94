/* Every disk after every end (every_disk.h). */
#include "every_disk.h"

#include "coord/recover.h"
#include "store/state/lineage.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum verdict { OLD, HALF, NEW, EITHER } verdict;

typedef struct scene {
    const matrix_writer *act;
    const every_disk_limits *limits;
    every_disk_counts *counts;
    char *folder;
    pf_id operation;
    char *old[2], *new_[2], *halfway; /* the second ones: when what was prepared is gone */
    uint32_t commits;                 /* that carry the operation, once it is done */
    bool answered;
    uint32_t depth, moment; /* 0: the act; 1, 2: recoveries */
    uint32_t struck[2];     /* recoveries that were ended everywhere */
    bool dead;              /* this disk is what a death left */
    seen_disks seen;
} scene;

/* ---- looking ---- */

static char *look(const scene *s, load_fixture *f)
{
    char *source = matrix_see(f);
    if (!s->act->copies)
        return source;
    char *copy = matrix_see_copy(f);
    size_t room = strlen(source) + strlen(copy) + 1;
    char *both = malloc(room);
    assert_non_null(both);
    (void)snprintf(both, room, "%s%s", source, copy);
    free(source);
    free(copy);
    return both;
}

static bool is_said(const char *want, const char *said)
{
    return want && strcmp(want, said) == 0;
}

static verdict judge(const scene *s, load_fixture *f)
{
    char *said = look(s, f);
    bool is_old = is_said(s->old[0], said) || is_said(s->old[1], said);
    bool is_new = is_said(s->new_[0], said) || is_said(s->new_[1], said), is_half = is_said(s->halfway, said);
    if (!is_old && !is_new && !is_half)
        print_error("%s, moment %u, depth %u:\n%s is neither\n%s nor\n%s\n", s->act->name, s->moment, s->depth, said,
                    s->old[0], s->new_[0]);
    assert_true(is_old || is_new || is_half);
    free(said);
    return is_old && is_new ? EITHER : is_new ? NEW : is_half ? HALF : OLD;
}

typedef struct found_commits {
    const pf_id *operation;
    st_graph *graph;
    uint32_t count;
    pf_id commit;
} found_commits;

static sluice_status on_commit(void *context, const st_generation *generation, uint32_t index, bool *stop,
                               sluice_error *err)
{
    found_commits *found = context;
    const st_commit *commit = &generation->commits[index];
    (void)stop, (void)err;
    if (!pf_id_equal(&commit->operation, found->operation))
        return SLUICE_OK;
    if (found->count > 0 && pf_id_equal(&commit->id, &found->commit))
        return SLUICE_OK; /* by another branch's history */
    found->count++;
    found->commit = commit->id;
    return SLUICE_OK;
}

static sluice_status on_branch(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    found_commits *found = context;
    st_log *log = NULL;
    (void)name;
    PF_TRY(st_graph_log(found->graph, incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    return st_lineage_each(found->graph, log, on_commit, found, err);
}

/* The commits of an operation on all branches. */
static found_commits commits_of(load_fixture *f, const pf_id *operation)
{
    sluice_error err = {0};
    found_commits found = {.operation = operation, .graph = load_fixture_open(f)};
    ASSERT_OK(st_ref_list(found.graph, on_branch, &found, &err));
    st_graph_close(found.graph);
    return found;
}

static sluice_status on_line(void *context, const co_recovered *line, sluice_error *err)
{
    (void)err;
    if (strcmp(line->stage, "confirmed") == 0)
        *(bool *)context = true;
    return SLUICE_OK;
}

static bool has_confirmed(load_fixture *f)
{
    sluice_error err = {0};
    bool confirmed = false;
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(co_recover(graph, CO_RECOVER_PROBE, 0, NULL, 0, on_line, &confirmed, &err));
    st_graph_close(graph);
    return confirmed;
}

/* ---- one disk ---- */

static load_fixture copy_of(const scene *s, const pf_sim_disk *disk)
{
    sluice_error err = {0};
    load_fixture f = {.folder = s->folder};
    ASSERT_OK(pf_sim_disk_clone(disk, s->moment, &f.disk, &err));
    return f;
}

/* What follows a commit may be missing when it is answered. */
static bool is_done(const scene *s, verdict found)
{
    return found == NEW || found == EITHER || (found == HALF && s->act->follows);
}

/* What recovery has left survives the power; but it is not about copies. */
static void expect_same(const scene *s, verdict found, verdict before)
{
    if (!s->act->copies)
        assert_int_equal(found, before);
}

static void judge_thoroughly(scene *s, load_fixture *f, verdict found)
{
    sluice_error err = {0};
    s->counts->thoroughly++;
    matrix_do(f, matrix_next_write);
    assert_int_equal(judge(s, f), found);
    found_commits before = commits_of(f, &s->operation);
    assert_true(before.count <= 1);
    if (s->commits && found == NEW)
        assert_int_equal(before.count, s->commits);
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(s->act->run(f, graph, &s->operation, &err)); /* the same request again */
    st_graph_close(graph);
    assert_true(is_done(s, judge(s, f)));
    found_commits after = commits_of(f, &s->operation);
    if (!s->act->unseen)
        assert_int_equal(after.count, s->commits);
    if (before.count)
        assert_true(pf_id_equal(&before.commit, &after.commit));
    matrix_expect_nothing_left(f);
    assert_true(is_done(s, judge(s, f)));
}

/* Collection trusts what it sees: it may still go with the power. */
static void collect_and_lose(scene *s, const load_fixture *recovered, verdict found)
{
    load_fixture f = copy_of(s, recovered->disk);
    matrix_do(&f, matrix_collect);
    pf_sim_power_loss(f.disk, PF_SIM_LOSE_ALL);
    expect_same(s, judge(s, &f), found);
    matrix_expect_whole(&f);
    pf_sim_disk_free(f.disk);
}

static void strike(scene *s, const recording *of, const aftermath_bounds *bounds, uint32_t stride,
                   aftermath_counts *counts);

/* Recovers; returns what was found. What is recorded of it may be ended everywhere. */
static verdict recover(scene *s, load_fixture *f, recording *record)
{
    if (record)
        recording_begin(record, f->disk);
    matrix_do(f, matrix_recover);
    if (record)
        recording_end(record);
    uint64_t settled = pf_sim_digest(f->disk);
    matrix_do(f, matrix_recover);
    assert_true(pf_sim_digest(f->disk) == settled);
    verdict found = judge(s, f);
    load_fixture lost = copy_of(s, f->disk);
    pf_sim_power_loss(lost.disk, PF_SIM_LOSE_ALL);
    if (pf_sim_digest(lost.disk) != settled)
        expect_same(s, judge(s, &lost), found);
    pf_sim_disk_free(lost.disk);
    return found;
}

static void survive(scene *s, pf_sim_disk *disk)
{
    static const char *const trace = "SLUICE_EVERY_DISK_TRACE";
    uint64_t number = s->counts->judged++;
    bool deep = s->depth < 2 && s->struck[s->depth] < s->limits->recoveries[s->depth];
    recording record = {0};
    load_fixture f = copy_of(s, disk);
    if (getenv(trace))
        print_message("%s: disk %" PRIu64 ", moment %u, depth %u, %s\n", s->act->name, number, s->moment, s->depth,
                      s->dead ? "death" : "power");
    bool confirmed = has_confirmed(&f), thorough = number % s->limits->thorough == 0;
    verdict found = recover(s, &f, deep ? &record : NULL);
    if (s->answered || confirmed || s->act->settles)
        assert_true(is_done(s, found));
    if (thorough) {
        collect_and_lose(s, &f, found);
        judge_thoroughly(s, &f, found);
    }
    pf_sim_disk_free(f.disk);
    if (record.count >= s->limits->least) {
        s->struck[s->depth]++;
        s->depth++;
        strike(s, &record, &s->limits->inner, s->limits->inner_stride, &s->counts->recovery[s->depth - 1]);
        s->depth--;
    }
    recording_free(&record);
}

static void on_power_loss(void *context, pf_sim_disk *disk)
{
    survive(context, disk);
}

/* ---- all moments ---- */

static void strike_moment(scene *s, pf_sim_disk *disk, const aftermath_bounds *bounds, aftermath_counts *counts)
{
    uint64_t salt = s->answered ? UINT64_C(0x5bd1e9955bd1e995) : 0;
    s->dead = true;
    if (seen_add(&s->seen, seen_digest(disk) ^ salt ^ 2))
        survive(s, disk);
    s->dead = false;
    if (bounds)
        aftermath_each(disk, bounds, salt, &s->seen, on_power_loss, s, counts);
}

static void strike(scene *s, const recording *of, const aftermath_bounds *bounds, uint32_t stride,
                   aftermath_counts *counts)
{
    uint32_t outer = s->moment;
    for (uint32_t i = 0; i < of->count; i++) {
        if (s->depth == 0)
            s->moment = i;
        strike_moment(s, of->disks[i], i % stride == outer % stride ? bounds : NULL, counts);
    }
    s->moment = outer;
}

/* ---- what is right ---- */

static char *run_and_look(const scene *s, const load_fixture *from, matrix_run *run, uint32_t *ret_commits)
{
    sluice_error err = {0};
    load_fixture f;
    pf_id operation = pf_id_new();
    matrix_copy(from, 3, &f);
    st_graph *graph = load_fixture_open(&f);
    ASSERT_OK(run(&f, graph, &operation, &err));
    st_graph_close(graph);
    char *text = look(s, &f);
    if (ret_commits)
        *ret_commits = commits_of(&f, &operation).count;
    pf_sim_disk_free(f.disk);
    return text;
}

static void learn(scene *s, load_fixture *ready)
{
    s->old[0] = look(s, ready);
    s->new_[0] = run_and_look(s, ready, s->act->run, &s->commits);
    if (!s->act->unsettled)
        assert_int_equal(is_said(s->old[0], s->new_[0]), s->act->unseen);
    if (s->act->unsettled) {
        load_fixture without;
        matrix_copy(ready, 2, &without);
        pf_sim_power_loss(without.disk, PF_SIM_LOSE_ALL);
        s->old[1] = look(s, &without);
        s->new_[1] = run_and_look(s, &without, s->act->run, NULL);
        pf_sim_disk_free(without.disk);
    }
    if (s->act->follows)
        s->halfway = run_and_look(s, ready, matrix_merge, NULL);
    else if (s->act->halfway)
        s->halfway = run_and_look(s, ready, s->act->halfway, NULL);
}

void every_disk_of(const load_fixture *base, const matrix_writer *act, const every_disk_limits *limits,
                   every_disk_counts *ret_counts)
{
    sluice_error err = {0};
    load_fixture ready, f;
    recording record = {0};
    scene s = {.act = act, .limits = limits, .counts = ret_counts, .folder = base->folder, .operation = pf_id_new()};
    *ret_counts = (every_disk_counts){0};
    matrix_prepare(base, act, &ready);
    if (limits->alone && !act->unsettled && !act->after_dead)
        pf_sim_power_loss(ready.disk, PF_SIM_KEEP_ALL);
    learn(&s, &ready);
    matrix_copy(&ready, 5, &f);
    st_graph *graph = load_fixture_open(&f);
    recording_begin(&record, f.disk);
    ASSERT_OK(act->run(&f, graph, &s.operation, &err));
    recording_end(&record);
    ret_counts->calls = record.count;
    uint32_t stride = record.count / limits->moments + 1;
    strike(&s, &record, &limits->bounds, stride, &ret_counts->act);
    s.answered = !act->unseen;
    s.moment = record.count;
    strike_moment(&s, f.disk, &limits->bounds, &ret_counts->act);
    st_graph_close(graph);
    recording_free(&record);
    seen_free(&s.seen);
    for (unsigned i = 0; i < 2; i++) {
        free(s.old[i]);
        free(s.new_[i]);
    }
    free(s.halfway);
    pf_sim_disk_free(f.disk);
    pf_sim_disk_free(ready.disk);
}

/* ---- how much ---- */

#if defined(__SANITIZE_ADDRESS__) /* slow here */
#define MOMENTS  4u
#define DISKS    3u
#define THOROUGH 24u
#else
#define MOMENTS  16u
#define DISKS    8u
#define THOROUGH 16u
#endif

every_disk_limits every_disk_here(void)
{
    if (getenv("SLUICE_LONG"))
        return (every_disk_limits){.bounds = {.disks = 512, .singles = true, .pairs = true, .samples = 16},
                                   .inner = {.disks = 8, .singles = true, .samples = 4},
                                   .moments = UINT32_MAX,
                                   .recoveries = {8, 8},
                                   .least = 1,
                                   .inner_stride = 1,
                                   .alone = true,
                                   .thorough = 16};
    return (every_disk_limits){.bounds = {.disks = DISKS, .samples = 4},
                               .inner = {.disks = 2},
                               .moments = MOMENTS,
                               .recoveries = {2, 1},
                               .least = 4,
                               .inner_stride = 2,
                               .alone = true,
                               .thorough = THOROUGH};
}

bool every_disk_wanted(const matrix_writer *act)
{
    const char *only = getenv("SLUICE_EVERY_DISK");
    return !only || strcmp(only, act->name) == 0;
}

void every_disk_print(const char *name, const every_disk_counts *counts)
{
    const aftermath_counts *act = &counts->act;
    print_message("%s: %u calls; of %" PRIu64 " moments (%" PRIu64 " whole) %" PRIu64 " disks, %" PRIu64
                  " distinct; of recovery %" PRIu64 " of %" PRIu64 " moments, of the next one %" PRIu64 " of %" PRIu64
                  "; judged %" PRIu64 ", %" PRIu64 " thoroughly\n",
                  name, counts->calls, act->moments, act->whole, act->tried, act->distinct,
                  counts->recovery[0].distinct, counts->recovery[0].moments, counts->recovery[1].distinct,
                  counts->recovery[1].moments, counts->judged, counts->thoroughly);
}
