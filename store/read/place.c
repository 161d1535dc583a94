/*
 * Places on a branch (snapshot.h): what a text names, as a commit.
 *
 * In this order: "head"; a commit id; a generation number, its last commit; a time, the newest commit that is not
 * later. Nothing is two of these: ids have dashes at fixed places, numbers are digits only, times begin YYYY-MM-DD.
 */
#include "store/format/json.h"
#include "store/read/snapshot.h"
#include "store/schema/scalar.h"
#include <string.h>

sluice_status st_place_find(st_graph *graph, st_log *log, const char *text, uint64_t *ret_generation,
                            uint32_t *ret_index, sluice_error *err)
{
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
    sluice_status status = pf_fail_private(err, SLUICE_USAGE, "a place is not understood",
                                           "\"%s\" is no commit id, generation number or time", text);
    pf_hint(err, "`sluice log` lists commits with all three; a time is written 2026-01-31 or 2026-01-31T12:00:00Z");
    return status;
}
