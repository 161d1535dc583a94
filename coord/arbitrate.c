/*
 * Arbitration of one prepared write (coord/arbitrate.h). Reads the log and runs; takes no lock, writes nothing.
 *
 * Identity comes first: a commit of mine further on outranks a conflict met before it, since it passed its own
 * arbitration. So after a conflict the rest of the interval is still searched for it.
 */
#include "coord/arbitrate.h"
#include "platform/check.h"
#include "platform/sabotage.h"

/* A substitution relies on the fragments that it takes out: has this edit taken one of them away? */
static sluice_status misses(const co_claim *claim, const st_judged *judged, uint32_t index, uint32_t at,
                            bool *ret_misses, sluice_error *err)
{
    st_edit edit = {0};
    *ret_misses = false;
    if (!co_read_set_has(claim->reads, CO_READ_FRAGMENTS, judged->generation->commits[index].edits[at].table))
        return SLUICE_OK;
    PF_TRY(st_judged_edit(claim->graph, judged, index, at, &edit, err));
    *ret_misses = co_read_set_misses(claim->reads, &edit);
    st_edit_free(&edit);
    return SLUICE_OK;
}

static sluice_status meets(const co_claim *claim, st_judged *judged, uint32_t index, bool *ret_meets, co_found *found,
                           sluice_error *err)
{
    const st_commit *commit = &judged->generation->commits[index];
    const st_changes *changes = NULL;
    *ret_meets = false;
    for (uint32_t i = 0; i < commit->edit_count; i++) {
        if (co_read_set_has_whole(claim->reads, commit->edits[i].table)) {
            *ret_meets = true;
            found->kind = CO_READ_WHOLE_TABLE;
            found->table = commit->edits[i].table;
            return SLUICE_OK;
        }
        PF_TRY(misses(claim, judged, index, i, ret_meets, err));
        if (*ret_meets) {
            found->kind = CO_READ_FRAGMENTS;
            found->table = commit->edits[i].table;
            return SLUICE_OK;
        }
    }
    if (claim->reads->count == 0)
        return SLUICE_OK;
    PF_TRY(st_judged_changes(claim->graph, judged, index, &changes, err));
    return co_read_set_meets(claim->graph, claim->reads, changes, ret_meets, &found->kind, &found->table, err);
}

/* Is this commit mine, or my operation's? CO_HOLDS: neither. */
static co_finding identify(const co_claim *claim, const st_commit *commit)
{
    if (pf_id_equal(&commit->id, &claim->commit))
        return pf_sha256_equal(&commit->delta, &claim->delta) || PF_SABOTAGE(delta_not_compared) ? CO_PUBLISHED
                                                                                                 : CO_FOREIGN;
    if (!PF_SABOTAGE(operation_not_compared) && !pf_id_is_nil(&claim->operation) &&
        pf_id_equal(&commit->operation, &claim->operation))
        return !claim->request_matters || pf_sha256_equal(&commit->request, &claim->request) ? CO_REPEATED : CO_MISUSED;
    return CO_HOLDS;
}

static void note(co_found *found, uint64_t generation, uint32_t index, const st_commit *commit)
{
    found->generation = generation;
    found->index = index;
    found->commit = commit->id;
    found->time_us = commit->time_us;
    found->inserted = commit->inserted;
    found->updated = commit->updated;
    found->deleted = commit->deleted;
}

/* One generation: *finding may turn from HOLDS to a conflict, and from anything to an identity, which ends the search.
 */
static sluice_status judge(const co_claim *claim, uint64_t number, co_finding *finding, co_found *found,
                           sluice_error *err)
{
    st_judged judged;
    sluice_status status;
    PF_GOTO(status, done, st_judged_open(claim->graph, claim->log, number, &judged, err));
    const st_generation *generation = judged.generation;
    bool counts = claim->reads && number > claim->verdict;
    for (uint32_t i = 0; i < generation->commit_count; i++) {
        const st_commit *commit = &generation->commits[i];
        co_finding identity = identify(claim, commit);
        if (identity != CO_HOLDS) {
            *finding = identity;
            note(found, number, i, commit);
            goto done;
        }
        if (!counts || *finding != CO_HOLDS)
            continue;
        bool meet = false;
        if (judged.collected || claim->reads->reads_head ||
            !pf_sha256_equal(&generation->schema_identity, &claim->reads->schema_identity)) {
            *finding = CO_MOVED;
        } else {
            PF_GOTO(status, done, meets(claim, &judged, i, &meet, found, err));
            if (meet)
                *finding = CO_MET;
        }
        if (*finding != CO_HOLDS)
            note(found, number, i, commit);
    }
    if (counts && *finding == CO_HOLDS &&
        !pf_sha256_equal(&generation->schema_identity, &claim->reads->schema_identity))
        *finding = CO_MOVED;
done:
    st_judged_close(&judged);
    return status;
}

static bool is_identity(co_finding finding)
{
    return finding == CO_PUBLISHED || finding == CO_FOREIGN || finding == CO_REPEATED || finding == CO_MISUSED;
}

sluice_status co_arbitrate(co_claim *claim, uint64_t horizon, co_finding *ret_finding, co_found *ret_found,
                           sluice_error *err)
{
    uint64_t end = st_log_end(claim->log).number;
    uint64_t from = claim->seen < claim->verdict ? claim->seen : claim->verdict;
    *ret_finding = CO_HOLDS;
    *ret_found = (co_found){0};
    if (end < claim->verdict)
        return pf_fail(err, SLUICE_CORRUPT, "a branch ends at generation %llu, before a base that was read from it",
                       (unsigned long long)end);
    if (horizon && end - from > horizon) {
        *ret_finding = CO_FAR;
        return SLUICE_OK;
    }
    for (uint64_t number = from + 1; number <= end && !is_identity(*ret_finding); number++)
        PF_TRY(judge(claim, number, ret_finding, ret_found, err));
    if (*ret_finding == CO_HOLDS)
        claim->verdict = end;
    if (!is_identity(*ret_finding))
        claim->seen = end;
    return SLUICE_OK;
}

/* ---- members of one generation ---- */

/* Does it meet what this one does? Edits are at hand here, change sets in memory. */
static sluice_status meets_delta(const co_claim *claim, const st_delta *delta, bool *ret_meets, co_found *found,
                                 sluice_error *err)
{
    *ret_meets = true;
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        found->table = delta->edits[i].edit.table;
        found->kind = CO_READ_WHOLE_TABLE;
        if (co_read_set_has_whole(claim->reads, found->table))
            return SLUICE_OK;
        found->kind = CO_READ_FRAGMENTS;
        if (co_read_set_has(claim->reads, CO_READ_FRAGMENTS, found->table) &&
            co_read_set_misses(claim->reads, &delta->edits[i].edit))
            return SLUICE_OK;
    }
    *ret_meets = false;
    return co_read_set_meets(claim->graph, claim->reads, &delta->changes, ret_meets, &found->kind, &found->table, err);
}

sluice_status co_arbitrate_behind(const co_claim *claim, const co_append_part *earlier, uint32_t count,
                                  co_finding *ret_finding, co_found *ret_found, sluice_error *err)
{
    *ret_finding = CO_HOLDS;
    *ret_found = (co_found){0};
    for (uint32_t i = 0; i < count; i++) {
        const st_delta *delta = earlier[i].delta;
        bool meet = false;
        if (identify(claim, &delta->commit) != CO_HOLDS) {
            *ret_finding = CO_REPEATED;
            return SLUICE_OK;
        }
        if (*ret_finding != CO_HOLDS)
            continue;
        if (claim->reads->reads_head || st_delta_changes_schema(delta)) {
            *ret_finding = CO_MOVED;
        } else if (claim->reads->count > 0) {
            PF_TRY(meets_delta(claim, delta, &meet, ret_found, err));
            if (meet)
                *ret_finding = CO_MET;
        }
        if (*ret_finding != CO_HOLDS)
            ret_found->commit = delta->commit.id;
    }
    return SLUICE_OK;
}
