/*
 * Walking the lineage of a branch (lineage.h). Reads opening records only.
 */
#include "store/state/lineage.h"
#include "platform/check.h"

sluice_status st_log_fork(st_log *log, st_fork *ret_fork, sluice_error *err)
{
    st_opening opening = {0};
    PF_TRY(st_opening_read(log, &opening, NULL, err));
    *ret_fork = opening.fork;
    st_opening_free(&opening);
    return SLUICE_OK;
}

sluice_status st_lineage_parent(st_graph *graph, st_log *log, st_log **ret_parent, uint64_t *ret_number,
                                uint32_t *ret_last, sluice_error *err)
{
    st_fork fork;
    *ret_parent = NULL;
    PF_TRY(st_log_fork(log, &fork, err));
    if (fork.incarnation == 0)
        return SLUICE_OK;
    PF_TRY(st_graph_log(graph, fork.incarnation, ret_parent, err));
    *ret_number = fork.generation;
    *ret_last = fork.index;
    return SLUICE_OK;
}

sluice_status st_lineage_log(st_graph *graph, st_log *log, uint64_t number, st_log **ret_log, uint32_t *ret_last,
                             sluice_error *err)
{
    *ret_last = ST_INDEX_LAST;
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        st_log *parent = NULL;
        uint64_t fork = 0;
        uint32_t last = ST_INDEX_LAST;
        *ret_log = log;
        PF_TRY(st_lineage_parent(graph, log, &parent, &fork, &last, err));
        if (!parent || number > fork)
            return SLUICE_OK;
        *ret_last = number == fork ? last : ST_INDEX_LAST;
        log = parent;
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}

static sluice_status each_of_generation(st_log *log, uint64_t number, uint32_t last, st_lineage_fn *each, void *context,
                                        bool *stop, sluice_error *err)
{
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;
    PF_GOTO(status, done, st_generation_read(log, number, &record, &generation, err));
    uint32_t count = generation.commit_count;
    if (last != ST_INDEX_LAST && last + 1 < count) /* the branch begins in the middle of it */
        count = last + 1;
    for (uint32_t i = count; i > 0 && !*stop; i--)
        PF_GOTO(status, done, each(context, &generation, i - 1, stop, err));
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

sluice_status st_lineage_each(st_graph *graph, st_log *log, st_lineage_fn *each, void *context, sluice_error *err)
{
    uint64_t end = st_log_end(log).number;
    uint32_t last = ST_INDEX_LAST;
    bool stop = false;
    for (unsigned forks = 0; forks < ST_FORKS_MAX; forks++) {
        st_log *parent = NULL;
        uint64_t fork = 0;
        uint32_t fork_last = ST_INDEX_LAST;
        for (uint64_t number = end; number >= st_log_first(log) && number > 0 && !stop; number--)
            PF_TRY(each_of_generation(log, number, number == end ? last : ST_INDEX_LAST, each, context, &stop, err));
        if (stop)
            return SLUICE_OK;
        PF_TRY(st_lineage_parent(graph, log, &parent, &fork, &fork_last, err));
        if (!parent)
            return SLUICE_OK;
        log = parent;
        end = fork;
        last = fork_last;
    }
    return pf_fail(err, SLUICE_CORRUPT, "branches that fork from each other without end");
}
