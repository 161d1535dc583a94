/*
 * Finding a commit by its id or its time (state.h). Times never fall along the chain and no commit is published before
 * it was minted, so the time in a UUIDv7 gives, by bisection, the first generation that can hold it, and the one that
 * most likely does: the search goes from that in both directions, and mostly ends at once, however many commits there
 * were in the same minute. What has no time, or is not found there, is sought through the whole chain, newest first;
 * then in the branch that this one was forked from, up to the fork.
 */
#include "platform/check.h"
#include "store/state/manifest.h"
#include <stdio.h>
#include <string.h>

/* Between the clock's two readings for a commit's id and its minted time lies at most this much. */
#define MINTING_SLACK_US INT64_C(60000000)

typedef struct search {
    st_log *log;
    const pf_id *commit;
    char needle[PF_ID_TEXT + 8]; /* how the manifest would name it */
    uint64_t first, last;        /* generations to look in */
    uint32_t last_index;         /* in generation `last` */
    bool found;
    uint64_t generation;
    uint32_t index;
} search;

static sluice_status look_in(search *search_, uint64_t number, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status = st_log_read_lineage(search_->log, number, &record, err);
    if (status == SLUICE_OK &&
        memmem(record.manifest, record.manifest_length, search_->needle, strlen(search_->needle))) {
        status = st_generation_decode(&record, &generation, err);
        for (uint32_t i = 0; i < generation.commit_count; i++) {
            if (!pf_id_equal(&generation.commits[i].id, search_->commit) ||
                (number == search_->last && i > search_->last_index))
                continue;
            search_->found = true;
            search_->generation = number;
            search_->index = i;
        }
    }
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

static sluice_status look_through(search *search_, sluice_error *err)
{
    uint64_t from = search_->last + 1;
    if (pf_id_has_time(search_->commit)) {
        uint64_t up;
        int64_t us = pf_id_time_ms(search_->commit) * 1000;
        PF_TRY(st_generation_since(search_->log, search_->first, search_->last, us, &up, err));
        if (up <= search_->last)
            PF_TRY(look_in(search_, up, err));
        if (search_->found)
            return SLUICE_OK;
        PF_TRY(st_generation_since(search_->log, search_->first, search_->last, us - MINTING_SLACK_US, &from, err));
        for (uint64_t down = up++; !search_->found && (up <= search_->last || down > from);) {
            if (down > from)
                PF_TRY(look_in(search_, --down, err));
            if (!search_->found && up <= search_->last)
                PF_TRY(look_in(search_, up++, err));
        }
    }
    for (uint64_t number = from; number > search_->first && !search_->found; number--)
        PF_TRY(look_in(search_, number - 1, err));
    return SLUICE_OK;
}

sluice_status st_commit_find(st_graph *graph, st_log *log, const pf_id *commit, uint64_t *ret_generation,
                             uint32_t *ret_index, sluice_error *err)
{
    char text[PF_ID_TEXT];
    uint64_t last = st_log_end(log).number;
    uint32_t last_index = ST_INDEX_LAST;
    pf_id_text(commit, text);
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        search search_ = {
            .log = log, .commit = commit, .first = st_log_first(log), .last = last, .last_index = last_index};
        st_opening opening = {0};
        (void)snprintf(search_.needle, sizeof(search_.needle), "\"id\":\"%s\"", text);
        PF_TRY(look_through(&search_, err));
        if (search_.found) {
            *ret_generation = search_.generation;
            *ret_index = search_.index;
            return SLUICE_OK;
        }
        PF_TRY(st_opening_read(log, &opening, NULL, err));
        st_fork fork = opening.fork;
        st_opening_free(&opening);
        if (fork.incarnation == 0)
            return pf_fail(err, SLUICE_NOT_FOUND, "there is no commit %s on this branch", text);
        PF_TRY(st_graph_log(graph, fork.incarnation, &log, err));
        last = fork.generation;
        last_index = fork.index;
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}

/* The newest commit of the generation that is not later; *ret_found false when all are. */
static sluice_status find_member(const search *search_, uint64_t number, int64_t us, bool *ret_found,
                                 uint32_t *ret_index, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status = st_generation_read(search_->log, number, &record, &generation, err);
    *ret_found = false;
    for (uint32_t i = 0; status == SLUICE_OK && i < generation.commit_count; i++) {
        if (generation.commits[i].time_us > us || (number == search_->last && i > search_->last_index))
            break;
        *ret_found = true;
        *ret_index = i;
    }
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

sluice_status st_commit_find_time(st_graph *graph, st_log *log, int64_t us, uint64_t *ret_generation,
                                  uint32_t *ret_index, sluice_error *err)
{
    uint64_t last = st_log_end(log).number;
    uint32_t last_index = ST_INDEX_LAST;
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        search search_ = {.log = log, .first = st_log_first(log), .last = last, .last_index = last_index};
        st_opening opening = {0};
        uint64_t later = 0;
        bool found = false;
        PF_TRY(st_generation_since(log, search_.first, search_.last, us < INT64_MAX ? us + 1 : us, &later, err));
        if (later <= last)
            PF_TRY(find_member(&search_, later, us, &found, ret_index, err));
        if (found) {
            *ret_generation = later;
            return SLUICE_OK;
        }
        if (later > search_.first) { /* the generation before is whole, and its last commit is the one */
            *ret_generation = later - 1;
            *ret_index = *ret_generation == last ? last_index : ST_INDEX_LAST;
            return SLUICE_OK;
        }
        PF_TRY(st_opening_read(log, &opening, NULL, err));
        st_fork fork = opening.fork;
        bool gone = fork.incarnation == 0 ? search_.first > 1 : search_.first > fork.generation + 1;
        st_opening_free(&opening);
        if (gone)
            return pf_fail(err, SLUICE_NOT_FOUND, "the commits of that time are not retained");
        if (fork.incarnation == 0)
            return pf_fail(err, SLUICE_NOT_FOUND, "there is no commit of that time or before");
        PF_TRY(st_graph_log(graph, fork.incarnation, &log, err));
        last = fork.generation;
        last_index = fork.index;
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}
