/*
 * What branch control is made of (coord/branch_impl.h): settling, receipts in control/, the place where a branch
 * begins.
 */
#include "coord/append.h"
#include "coord/branch_impl.h"
#include "coord/quarantine.h"
#include "coord/recovery.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settling ---- */

static sluice_status find_blocker(void *context, const co_quarantined *item, sluice_error *err)
{
    const uint64_t *incarnation = context;
    if (item->scope_known && !item->scope.visible && (!*incarnation || item->scope.incarnation != *incarnation))
        return SLUICE_OK;
    sluice_status status = pf_fail(err, SLUICE_RECOVERY_REQUIRED,
                                   "an intent that cannot be resolved is in the way: quarantine/%s", item->name);
    pf_hint(err,
            "`sluice recover GRAPH --probe` shows it. It is a write that was never acknowledged; removing the file "
            "quarantine/%s below the graph gives it up.",
            item->name);
    return status;
}

sluice_status co_branch_settle(st_graph *graph, uint64_t incarnation, pf_deadline deadline, sluice_error *err)
{
    co_overlap everything = {0};
    sluice_error recovery_error = {0};
    sluice_status status =
        co_recover_until(graph, CO_RECOVER_AUTOMATIC, &everything, NULL, NULL, deadline, &recovery_error);
    /* A branch whose records are damaged keeps its intents: they concern nobody else, and go with it. */
    if (status == SLUICE_OK || status == SLUICE_RECOVERY_REQUIRED || status == SLUICE_CORRUPT)
        return co_quarantine_list(graph, find_blocker, &incarnation, err);
    if (err)
        *err = recovery_error;
    return status;
}

sluice_status co_branch_locks(st_graph *graph, uint64_t incarnation, lk_lockfile **ret_locks, sluice_error *err)
{
    char folder[64], path[80];
    st_branch_folder(incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/locks", folder);
    return lk_lockfile_open(st_graph_volume(graph), path, ret_locks, err);
}

/* ---- receipts ---- */

/* The list in control/ is bounded: what is older than its oldest entry may have been there. */
static bool has_expired(const st_control *control, const pf_id *operation)
{
    return control->receipt_count == ST_CONTROL_RECEIPTS_MAX && pf_id_has_time(operation) &&
           pf_id_time_ms(operation) * 1000 < control->receipts[0].time_us;
}

sluice_status co_receipt_look_up(st_graph *graph, const pf_id *operation, bool given, const pf_sha256 *request,
                                 const char *name, bool *ret_found, st_control_receipt *ret_receipt, sluice_error *err)
{
    st_control control = {0};
    pf_sha256 ref = pf_sha256_of(name, strlen(name));
    sluice_status status = SLUICE_OK;
    PF_TRY(st_control_read(graph, &control, err));
    const st_control_receipt *receipt = st_control_find_receipt(&control, operation, &ref);
    *ret_found = receipt != NULL;
    if (receipt)
        *ret_receipt = *receipt;
    if (receipt && given && !pf_sha256_equal(&receipt->request, request))
        status = co_fail_other_request(err);
    else if (!receipt && given && has_expired(&control, operation)) {
        status = pf_fail(err, SLUICE_IDEMPOTENCY_CONFLICT,
                         "this operation id is older than the receipts kept: expired, its outcome is unknown");
        if (err)
            err->committed = err->acknowledged = SLUICE_UNKNOWN;
    }
    st_control_free(&control);
    return status;
}

sluice_status co_receipt_stands(st_graph *graph, const st_control_receipt *receipt, const char *name, bool *ret_stands,
                                sluice_error *err)
{
    uint64_t incarnation = 0;
    sluice_error read_error = {0};
    bool deletes = strcmp(receipt->kind, CO_BRANCH_DELETE) == 0;
    *ret_stands = receipt->done;
    if (receipt->done)
        return SLUICE_OK;
    sluice_status status = st_ref_read(graph, name, &incarnation, &read_error);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = read_error;
        return status;
    }
    *ret_stands = (status == SLUICE_OK && incarnation == receipt->incarnation) != deletes;
    return SLUICE_OK;
}

/* ---- where a new branch begins ---- */

typedef struct commit_search {
    st_graph *graph;
    const pf_id *commit;
    char *name; /* found */
} commit_search;

static sluice_status look_in_branch(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    commit_search *search = context;
    st_log *log = NULL;
    uint64_t generation;
    uint32_t index;
    if (search->name || !name)
        return SLUICE_OK;
    if (st_graph_log(search->graph, incarnation, &log, NULL) != SLUICE_OK || st_log_refresh(log, NULL) != SLUICE_OK ||
        st_commit_find(search->graph, log, search->commit, &generation, &index, NULL) != SLUICE_OK)
        return SLUICE_OK; /* a damaged branch does not stand in the way of the others */
    search->name = strdup(name);
    return search->name ? SLUICE_OK : pf_fail_memory(err);
}

/* A checkpoint stands by itself, whatever became of its branch: it is found from main. */
static sluice_status find_checkpoint(st_graph *graph, const char *from, bool *ret_found, sluice_error *err)
{
    st_control control = {0};
    PF_TRY(st_control_read(graph, &control, err));
    *ret_found = st_control_find_checkpoint(&control, from) != NULL;
    st_control_free(&control);
    return SLUICE_OK;
}

/* `from` names a branch; where there is none and it is a commit id, the branch that has the commit, main first; or a
 * checkpoint. */
static sluice_status find_source(st_graph *graph, const char *from, char **ret_name, bool *ret_is_place,
                                 sluice_error *err)
{
    uint64_t incarnation = 0;
    pf_id commit;
    sluice_error read_error = {0};
    *ret_is_place = false;
    sluice_status status = st_ref_read(graph, from, &incarnation, &read_error);
    if (status == SLUICE_NOT_FOUND && pf_id_parse(from, &commit)) {
        commit_search search = {.graph = graph, .commit = &commit};
        PF_TRY(st_ref_read(graph, ST_MAIN_BRANCH, &incarnation, err));
        status = look_in_branch(&search, ST_MAIN_BRANCH, incarnation, err);
        if (status == SLUICE_OK)
            status = st_ref_list(graph, look_in_branch, &search, err);
        *ret_name = search.name;
        *ret_is_place = true;
        if (status == SLUICE_OK && !search.name)
            return pf_fail(err, SLUICE_NOT_FOUND, "no branch has the commit %s", from);
        return status;
    }
    if (status == SLUICE_NOT_FOUND)
        PF_TRY(find_checkpoint(graph, from, ret_is_place, err));
    if (status != SLUICE_OK && !*ret_is_place) {
        if (err)
            *err = read_error;
        return status;
    }
    *ret_name = strdup(*ret_is_place ? ST_MAIN_BRANCH : from);
    return *ret_name ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status co_source_find(st_graph *graph, const char *from, const char *at, co_source *ret_source,
                             sluice_error *err)
{
    bool is_place = false;
    *ret_source = (co_source){0};
    PF_TRY(find_source(graph, from ? from : ST_MAIN_BRANCH, &ret_source->name, &is_place, err));
    if (is_place && at)
        return pf_fail(err, SLUICE_USAGE,
                       "a commit or checkpoint, and a place on a branch, are two places to begin at");
    if (is_place || at) {
        ret_source->at = strdup(is_place ? from : at);
        if (!ret_source->at)
            return pf_fail_memory(err);
    }
    return st_ref_read(graph, ret_source->name, &ret_source->incarnation, err);
}

/* The branch may rely on the place only once it cannot go any more (DESIGN 2, "Relying on it"). */
sluice_status co_view_acknowledge(st_graph *graph, const st_view *view, pf_deadline deadline, sluice_error *err)
{
    st_log *log = NULL;
    lk_lockfile *locks = NULL;
    PF_TRY(st_graph_log(graph, view->incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    if (view->generation <= st_log_end(log).acknowledged && st_log_check_suspect(log, NULL) == SLUICE_OK)
        return SLUICE_OK;
    PF_TRY(co_branch_locks(graph, view->incarnation, &locks, err));
    sluice_status status = lk_take(locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, deadline, err);
    if (status == SLUICE_OK) {
        status = co_make_reliable(graph, log, err);
        lk_release(locks, LK_BYTE_PUBLISH);
    }
    lk_lockfile_close(locks);
    return status;
}

sluice_status co_source_check(st_graph *graph, const co_source *source, sluice_error *err)
{
    uint64_t now = 0;
    sluice_error local = {0};
    sluice_status status = st_ref_read(graph, source->name, &now, &local);
    if (status == SLUICE_NOT_FOUND || (status == SLUICE_OK && now != source->incarnation))
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch to begin at was deleted meanwhile");
    if (status != SLUICE_OK && err)
        *err = local;
    return status;
}

sluice_status co_source_hold(st_graph *graph, co_source *source, const st_view *view, const pf_id *operation,
                             pf_deadline deadline, sluice_error *err)
{
    bool orphaned = false;
    const lk_gate_key key = {.kind = LK_GATE_BRANCH, .incarnation = source->incarnation};
    PF_TRY(co_branch_locks(graph, source->incarnation, &source->locks, err));
    PF_TRY(lk_gates_take(source->locks, NULL, &key, 1, operation, deadline, &source->gates, &orphaned, err));
    PF_TRY(co_source_check(graph, source, err));
    if (view->incarnation != source->incarnation) /* of an ancestor: acknowledged when that fork was made */
        return SLUICE_OK;
    return co_view_acknowledge(graph, view, deadline, err);
}

void co_source_close(co_source *source)
{
    lk_gates_release(source->gates);
    lk_lockfile_close(source->locks);
    st_snapshot_close(source->snapshot);
    free(source->name);
    free(source->at);
    *source = (co_source){0};
}

/* ---- making ---- */

sluice_status co_branch_check_free(st_graph *graph, const char *name, sluice_error *err)
{
    uint64_t incarnation;
    sluice_error local = {0};
    sluice_status status = st_ref_read(graph, name, &incarnation, &local);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status == SLUICE_OK) {
        pf_fail_private(err, SLUICE_ALREADY_EXISTS, "the branch exists already", "the branch \"%s\" exists already",
                        name);
        pf_hint(err, "give another name, or use that one: `sluice branch list GRAPH` lists them");
        return SLUICE_ALREADY_EXISTS;
    }
    if (err)
        *err = local;
    return status;
}

typedef struct minting {
    st_control_receipt *receipt;
    uint64_t incarnation, row_block;
} minting;

static sluice_status mint(void *context, st_control *control, sluice_error *err)
{
    minting *made = context;
    if (!pf_mul_u64(control->next_row_block, ST_ROW_BLOCK, &made->row_block))
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the graph has handed out all of its row ids");
    control->next_row_block++;
    made->incarnation = control->next_incarnation++;
    if (!made->receipt)
        return SLUICE_OK;
    made->receipt->incarnation = made->incarnation;
    return st_control_add_receipt(control, made->receipt, err);
}

sluice_status co_branch_mint(st_graph *graph, st_control_receipt *receipt, uint64_t *ret_incarnation,
                             uint64_t *ret_row_block, pf_deadline deadline, sluice_error *err)
{
    minting made = {.receipt = receipt};
    sluice_status status = st_control_update(graph, mint, &made, deadline, err);
    *ret_incarnation = made.incarnation;
    *ret_row_block = made.row_block;
    return status;
}

static sluice_status put_receipt(void *context, st_control *control, sluice_error *err)
{
    return st_control_add_receipt(control, context, err);
}

void co_branch_not_committed(sluice_error *err)
{
    if (err && err->committed == SLUICE_TRUE)
        err->committed = err->acknowledged = SLUICE_FALSE;
}

sluice_status co_receipt_put(st_graph *graph, const st_control_receipt *receipt, pf_deadline deadline,
                             sluice_error *err)
{
    st_control_receipt copy = *receipt;
    return st_control_update(graph, put_receipt, &copy, deadline, err);
}

sluice_status co_branch_build(st_graph *graph, const st_view *view, uint64_t incarnation, uint64_t row_block,
                              sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0};
    sluice_status status;
    PF_GOTO(status, done, st_opening_build_fork(graph, view, incarnation, row_block, &manifest, &attachments, err));
    status = st_branch_make(graph, incarnation, view->generation, &view->digest, &manifest, &attachments, err);
done:
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return status;
}
