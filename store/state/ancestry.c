/*
 * Histories (ancestry.h). Reads opening records and the generations that publish merges.
 */
#include "store/state/ancestry.h"
#include "platform/check.h"
#include <stdlib.h>

void st_history_free(st_history *history)
{
    free(history->items);
    *history = (st_history){0};
}

static int compare(const st_reach *a, const st_reach *b)
{
    if (a->generation != b->generation)
        return a->generation < b->generation ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static st_reach *find(const st_history *history, uint64_t incarnation)
{
    for (uint32_t i = 0; i < history->count; i++)
        if (history->items[i].incarnation == incarnation)
            return &history->items[i];
    return NULL;
}

bool st_history_has(const st_history *history, const st_reach *commit)
{
    const st_reach *known = find(history, commit->incarnation);
    return known && compare(commit, known) <= 0;
}

static sluice_status add(st_history *history, const st_reach *reach, sluice_error *err)
{
    st_reach *known = find(history, reach->incarnation);
    if (known) {
        if (compare(known, reach) < 0)
            *known = *reach;
        return SLUICE_OK;
    }
    if (history->count == history->room) {
        uint32_t room = history->room ? history->room * 2 : 8;
        st_reach *grown = realloc(history->items, room * sizeof(*grown));
        if (!grown)
            return pf_fail_memory(err);
        history->items = grown;
        history->room = room;
    }
    history->items[history->count++] = *reach;
    return SLUICE_OK;
}

/* ---- the lineage ---- */

/* The place of a commit in the log where it stands, which may be one that `log` was forked from. */
static sluice_status stand(st_graph *graph, st_log *log, uint64_t generation, uint32_t index, st_reach *ret_place,
                           st_log **ret_log, sluice_error *err)
{
    uint32_t last = ST_INDEX_LAST;
    PF_TRY(st_lineage_log(graph, log, generation, ret_log, &last, err));
    *ret_place = (st_reach){st_log_incarnation(*ret_log), generation, index < last ? index : last};
    return SLUICE_OK;
}

static sluice_status add_lineage(st_history *history, st_graph *graph, st_log *log, sluice_error *err)
{
    PF_TRY(add(history, &history->head, err));
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        st_log *parent = NULL;
        uint64_t number = 0;
        uint32_t last = 0;
        PF_TRY(st_lineage_parent(graph, log, &parent, &number, &last, err));
        if (!parent)
            return SLUICE_OK;
        st_reach place;
        PF_TRY(stand(graph, parent, number, last, &place, &log, err));
        PF_TRY(add(history, &place, err));
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}

/* ---- merges ---- */

/* Adds what the merges of one generation name; *ret_before leads to the merge before. */
static sluice_status add_generation(st_history *history, st_graph *graph, st_log *log, uint64_t number, uint32_t last,
                                    uint64_t *ret_before, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;
    (void)graph;
    PF_GOTO(status, done, st_generation_read(log, number, &record, &generation, err));
    *ret_before = generation.merge;
    for (uint32_t i = 0; i < generation.commit_count && (last == ST_INDEX_LAST || i <= last); i++)
        for (uint32_t k = 0; k < generation.commits[i].merged_count; k++)
            PF_GOTO(status, done, add(history, &generation.commits[i].merged[k], err));
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status == SLUICE_NOT_FOUND ? pf_fail(err, SLUICE_CORRUPT, "the history behind generation %llu is missing",
                                                (unsigned long long)number)
                                      : status;
}

/* The merges of the lineage from generation `merge` back, down to above `floor`. */
static sluice_status add_merges(st_history *history, st_graph *graph, st_log *log, uint64_t merge, uint64_t floor,
                                sluice_error *err)
{
    while (merge > floor) {
        st_log *at = NULL;
        uint32_t last = ST_INDEX_LAST;
        uint64_t before = 0;
        PF_TRY(st_lineage_log(graph, log, merge, &at, &last, err));
        PF_TRY(add_generation(history, graph, at, merge, last, &before, err));
        if (before >= merge)
            return pf_fail(err, SLUICE_CORRUPT, "a pointer to a merge leads forward");
        merge = before;
    }
    return SLUICE_OK;
}

/* The newest merge up to a generation of main's log. */
static sluice_status newest_merge(st_log *log, uint64_t number, uint64_t *ret_merge, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;
    PF_GOTO(status, done, st_generation_read(log, number, &record, &generation, err));
    *ret_merge = st_generation_merges(&generation) ? number : generation.merge;
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status == SLUICE_NOT_FOUND
               ? pf_fail(err, SLUICE_CORRUPT, "generation %llu of main is missing", (unsigned long long)number)
               : status;
}

/* A merge leaves out what main's place implies: the merges that main had up to there. */
static sluice_status expand_main(st_history *history, st_graph *graph, uint64_t covered, sluice_error *err)
{
    for (;;) {
        const st_reach *place = find(history, ST_MAIN_INCARNATION);
        st_log *log = NULL;
        uint64_t merge = 0;
        if (!place || place->generation <= covered)
            return SLUICE_OK;
        uint64_t reached = place->generation;
        PF_TRY(st_graph_log(graph, ST_MAIN_INCARNATION, &log, err));
        PF_TRY(newest_merge(log, reached, &merge, err));
        PF_TRY(add_merges(history, graph, log, merge, covered, err));
        covered = reached;
    }
}

static sluice_status gather(st_history *history, st_graph *graph, st_log *log, uint64_t merge, sluice_error *err)
{
    PF_TRY(add_lineage(history, graph, log, err));
    const st_reach *main = find(history, ST_MAIN_INCARNATION);
    uint64_t covered = main ? main->generation : 0; /* by the pointers of the lineage itself */
    PF_TRY(add_merges(history, graph, log, merge, 0, err));
    return expand_main(history, graph, covered, err);
}

sluice_status st_history_of(st_graph *graph, const st_view *view, st_history *ret_history, sluice_error *err)
{
    st_history history = {0};
    st_log *log = NULL;
    sluice_status status;
    PF_GOTO(status, failed, st_graph_log(graph, view->incarnation, &log, err));
    PF_GOTO(status, failed, stand(graph, log, view->generation, view->index, &history.head, &log, err));
    PF_GOTO(status, failed, gather(&history, graph, log, view->merge, err));
    *ret_history = history;
    return SLUICE_OK;
failed:
    st_history_free(&history);
    return status;
}

sluice_status st_view_place(st_graph *graph, const st_view *view, st_reach *ret_place, sluice_error *err)
{
    st_log *log = NULL;
    PF_TRY(st_graph_log(graph, view->incarnation, &log, err));
    return stand(graph, log, view->generation, view->index, ret_place, &log, err);
}

sluice_status st_commit_place(st_graph *graph, st_log *log, uint64_t generation, st_reach *ret_place, sluice_error *err)
{
    st_record record = {0};
    st_generation decoded = {0};
    sluice_status status;
    PF_TRY(stand(graph, log, generation, ST_INDEX_LAST, ret_place, &log, err));
    PF_GOTO(status, done, st_generation_read(log, generation, &record, &decoded, err));
    if (ret_place->index == ST_INDEX_LAST)
        ret_place->index = decoded.commit_count > 0 ? decoded.commit_count - 1 : 0;
done:
    st_generation_free(&decoded);
    st_record_free(&record);
    return status;
}

sluice_status st_history_of_merged(st_graph *graph, const st_reach *reaches, uint32_t count, st_history *ret_history,
                                   sluice_error *err)
{
    st_history history = {0};
    sluice_status status = SLUICE_OK;
    PF_ASSERT(count > 0);
    history.head = reaches[0];
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++)
        status = add(&history, &reaches[i], err);
    if (status == SLUICE_OK)
        status = expand_main(&history, graph, 0, err);
    if (status == SLUICE_OK)
        *ret_history = history;
    else
        st_history_free(&history);
    return status;
}

/* The history of a place. */
static sluice_status history_at(st_graph *graph, const st_reach *place, st_history *ret_history, sluice_error *err)
{
    st_history history = {.head = *place};
    st_log *log = NULL;
    uint64_t merge = 0;
    sluice_status status;
    PF_GOTO(status, failed, st_graph_log(graph, place->incarnation, &log, err));
    PF_GOTO(status, failed, newest_merge(log, place->generation, &merge, err));
    PF_GOTO(status, failed, gather(&history, graph, log, merge, err));
    *ret_history = history;
    return SLUICE_OK;
failed:
    st_history_free(&history);
    return status;
}

sluice_status st_history_reduce(st_graph *graph, const st_history *history, st_reach **ret_reaches, uint32_t *ret_count,
                                sluice_error *err)
{
    const st_reach *main = find(history, ST_MAIN_INCARNATION);
    st_history implied = {0};
    st_reach *reaches = calloc((size_t)history->count + 1, sizeof(*reaches));
    uint32_t count = 0;
    sluice_status status = SLUICE_OK;
    if (!reaches)
        return pf_fail_memory(err);
    reaches[count++] = history->head;
    if (main)
        status = history_at(graph, main, &implied, err);
    for (uint32_t i = 0; i < history->count && status == SLUICE_OK; i++) {
        const st_reach *reach = &history->items[i];
        bool is_head = reach->incarnation == history->head.incarnation;
        if (!is_head && (reach == main || !st_history_has(&implied, reach)))
            reaches[count++] = *reach;
    }
    st_history_free(&implied);
    if (status != SLUICE_OK) {
        free(reaches);
        return status;
    }
    *ret_reaches = reaches;
    *ret_count = count;
    return SLUICE_OK;
}

/* ---- where two histories met ---- */

static int by_place(const void *a, const void *b)
{
    const st_reach *one = a, *two = b;
    int order = compare(two, one); /* the newest first */
    return order != 0 ? order : (one->incarnation > two->incarnation) - (one->incarnation < two->incarnation);
}

/* Takes out what is in the history of another. A branch that is gone says nothing of the others: then it is in theirs,
 * or nobody can tell (who reads it finds it gone). */
static sluice_status keep_newest(st_graph *graph, st_reach *commons, uint32_t *count, sluice_error *err)
{
    for (uint32_t i = 0; i < *count; i++) {
        st_history history = {0};
        char folder[64];
        pf_stat stat;
        uint32_t kept = 0, self = 0;
        st_branch_folder(commons[i].incarnation, folder);
        if (pf_stat_path(st_graph_volume(graph), folder, &stat, NULL) == SLUICE_NOT_FOUND)
            continue;
        PF_TRY(history_at(graph, &commons[i], &history, err));
        for (uint32_t k = 0; k < *count; k++) {
            if (k != i && st_history_has(&history, &commons[k]))
                continue;
            self = k == i ? kept : self;
            commons[kept++] = commons[k];
        }
        *count = kept;
        i = self;
        st_history_free(&history);
    }
    return SLUICE_OK;
}

sluice_status st_history_bases(st_graph *graph, const st_history *one, const st_history *two, st_reach **ret_bases,
                               uint32_t *ret_count, sluice_error *err)
{
    uint32_t count = 0;
    st_reach *commons = calloc((size_t)one->count + 1, sizeof(*commons));
    if (!commons)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < one->count; i++) {
        const st_reach *other = find(two, one->items[i].incarnation);
        if (other)
            commons[count++] = compare(other, &one->items[i]) < 0 ? *other : one->items[i];
    }
    qsort(commons, count, sizeof(*commons), by_place);
    sluice_status status = keep_newest(graph, commons, &count, err);
    if (status == SLUICE_OK && count == 0)
        status = pf_fail(err, SLUICE_CORRUPT, "two branches without a common history");
    if (status != SLUICE_OK) {
        free(commons);
        return status;
    }
    *ret_bases = commons;
    *ret_count = count;
    return SLUICE_OK;
}
