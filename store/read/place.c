/*
 * Places on a branch (snapshot.h): what a text names, as a commit.
 *
 * In this order: "head"; a commit id; a generation number, its last commit; a time, the newest commit that is not
 * later; a checkpoint. Nothing is two of these: ids have dashes at fixed places, numbers are digits only, times begin
 * YYYY-MM-DD, and what is one of these is not allowed as the name of a checkpoint (st_place_is_plain).
 */
#include "store/format/json.h"
#include "store/graph/graph.h"
#include "store/read/snapshot.h"
#include "store/schema/scalar.h"
#include <string.h>

/* "2026-01-31" in front, valid or not: people mean times by it. */
static bool begins_like_a_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

bool st_place_is_plain(const char *text)
{
    pf_id commit;
    uint64_t number;
    return strcmp(text, "head") == 0 || pf_id_parse(text, &commit) || st_json_text_is_u64(text, &number) ||
           strspn(text, "0123456789") == strlen(text) || begins_like_a_date(text);
}

static sluice_status not_understood(const st_control *control, const char *text, sluice_error *err)
{
    pf_fail_private(err, SLUICE_USAGE, "a place is not understood",
                    "\"%s\" is no commit id, generation number, time or checkpoint", text);
    pf_hint(err,
            "`sluice log GRAPH` lists commits with all three; a time is written 2026-01-31 or 2026-01-31T12:00:00Z");
    st_control_hint_at_checkpoint(control, text, err);
    return SLUICE_USAGE;
}

/* A checkpoint of any branch: *log becomes the one in which its commit stands. */
static sluice_status find_checkpoint(st_graph *graph, st_log **log, const char *name, uint64_t *ret_generation,
                                     uint32_t *ret_index, sluice_error *err)
{
    st_control control = {0};
    PF_TRY(st_control_read(graph, &control, err));
    const st_checkpoint *found = st_control_find_checkpoint(&control, name);
    sluice_status status = found ? SLUICE_OK : not_understood(&control, name, err);
    if (found) {
        *ret_generation = found->generation;
        *ret_index = found->index;
        status = st_graph_log(graph, found->incarnation, log, err);
        if (status == SLUICE_OK)
            status = st_log_refresh(*log, err);
    }
    st_control_free(&control);
    return status;
}

sluice_status st_place_find(st_graph *graph, st_log **log_, const char *text, uint64_t *ret_generation,
                            uint32_t *ret_index, sluice_error *err)
{
    st_log *log = *log_;
    pf_id commit;
    int64_t time_us = 0;
    *ret_index = ST_INDEX_LAST;
    if (strcmp(text, "head") == 0) {
        *ret_generation = st_log_end(log).number;
        return SLUICE_OK;
    }
    if (pf_id_parse(text, &commit))
        return st_commit_find(graph, log, &commit, ret_generation, ret_index, err);
    if (st_json_text_is_u64(text, ret_generation))
        return *ret_generation > 0 ? SLUICE_OK : pf_fail(err, SLUICE_NOT_FOUND, "there is no generation 0");
    if (st_parse_timestamp(text, strlen(text), &time_us) == ST_PARSE_OK)
        return st_commit_find_time(graph, log, time_us, ret_generation, ret_index, err);
    return find_checkpoint(graph, log_, text, ret_generation, ret_index, err);
}
