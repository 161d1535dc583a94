/*
 * Which state salvage goes by (store/read/salvage.h): the newest generation whose manifest, state pages and schema can
 * be read, from the end of the log backwards. A branch whose ref is gone is found by the receipt of its making, or as
 * the only one that no ref names. Without a schema the newest fragments say what their types were; without a state
 * there is a schema alone.
 */
#include "store/read/reader.h"
#include "store/read/salvage_files.h"

#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

/* ---- which branch ---- */

typedef struct nameless { /* branches that no ref names */
    uint64_t *named;
    size_t named_count;
    uint64_t receipt; /* the incarnation that a receipt gives for the name; 0: none does */
    uint64_t only;
    size_t count, folders;
    bool receipt_there;
} nameless;

static sluice_status note_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    nameless *found = context;
    if (!name) /* it cannot be read */
        return SLUICE_OK;
    uint64_t *grown = realloc(found->named, (found->named_count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    found->named = grown;
    grown[found->named_count++] = incarnation;
    return SLUICE_OK;
}

static sluice_status note_folder(void *context, uint64_t incarnation, sluice_error *err)
{
    nameless *found = context;
    (void)err;
    found->folders++;
    found->receipt_there = found->receipt_there || (found->receipt != 0 && incarnation == found->receipt);
    if (incarnation == ST_MAIN_INCARNATION)
        return SLUICE_OK;
    for (size_t i = 0; i < found->named_count; i++)
        if (found->named[i] == incarnation)
            return SLUICE_OK;
    found->only = incarnation;
    found->count++;
    return SLUICE_OK;
}

static void find_receipt(st_graph *graph, const char *branch, uint64_t *ret_incarnation)
{
    st_control control = {0};
    pf_sha256 name = pf_sha256_of(branch, strlen(branch));
    if (st_control_read(graph, &control, NULL) != SLUICE_OK) /* control/ is gone, too */
        return;
    for (uint32_t i = 0; i < control.receipt_count; i++) /* the newest is the last */
        if (pf_sha256_equal(&control.receipts[i].ref, &name) && control.receipts[i].incarnation != 0)
            *ret_incarnation = control.receipts[i].incarnation;
    st_control_free(&control);
}

/* *ret_incarnation 0: there are no branches any more, of this name or any. */
static sluice_status find_nameless(st_salvage *salvage, const char *branch, uint64_t *ret_incarnation,
                                   sluice_error *err)
{
    nameless found = {0};
    sluice_error local = {0};
    find_receipt(salvage->graph, branch, &found.receipt);
    sluice_status status = st_ref_list(salvage->graph, note_ref, &found, &local);
    if (status == SLUICE_OK || st_salvage_is_damage(status))
        status = st_branch_list(salvage->graph, note_folder, &found, &local);
    free(found.named);
    if (status != SLUICE_OK && !st_salvage_is_damage(status))
        return hand_on(&local, err);
    *ret_incarnation = found.receipt_there ? found.receipt : found.count == 1 ? found.only : 0;
    if (found.receipt_there)
        return st_salvage_guess(salvage, "refs", err,
                                "the branch has no ref: branches/%llu is what a receipt says that it was",
                                (unsigned long long)*ret_incarnation);
    if (found.count == 1)
        return st_salvage_guess(salvage, "refs", err,
                                "the branch has no ref: branches/%llu is the only one that none names",
                                (unsigned long long)*ret_incarnation);
    if (found.folders == 0)
        return SLUICE_OK;
    status =
        pf_fail(err, SLUICE_NOT_FOUND, "there is no branch of this name, and %zu that no name stands for", found.count);
    pf_hint(err, "without --branch, what main holds is salvaged");
    return status;
}

static sluice_status find_incarnation(st_salvage *salvage, const char *branch, uint64_t *ret_incarnation,
                                      sluice_error *err)
{
    sluice_error local = {0};
    *ret_incarnation = ST_MAIN_INCARNATION;
    if (strcmp(branch, ST_MAIN_BRANCH) == 0) /* always the same, also without its ref */
        return SLUICE_OK;
    sluice_status status = st_ref_read(salvage->graph, branch, ret_incarnation, &local);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    if (!st_salvage_is_damage(status)) /* it is no name, say */
        return hand_on(&local, err);
    return find_nameless(salvage, branch, ret_incarnation, err);
}

/* ---- which generation ---- */

static sluice_status find_view(st_salvage *salvage, uint64_t incarnation, sluice_error *err)
{
    st_log *log = NULL;
    st_view **view = &salvage->snapshot->view;
    if (incarnation == 0)
        return pf_fail(err, SLUICE_CORRUPT, "there are no branches");
    PF_TRY(st_graph_log(salvage->graph, incarnation, &log, err));
    uint64_t end = st_log_end(log).number, seen = st_graph_damage_seen(salvage->graph);
    uint64_t trace = st_log_trace(log);
    salvage->newest = seen > trace ? seen : trace;
    sluice_error local = {0};
    sluice_status status = st_view_load(salvage->graph, log, false, view, &local);
    for (uint64_t number = end;
         status != SLUICE_OK && st_salvage_is_damage(status) && number-- > 1 && number >= st_log_first(log);)
        status = st_view_load_at(salvage->graph, log, number, ST_INDEX_LAST, view, &local);
    return status == SLUICE_OK ? SLUICE_OK : hand_on(&local, err);
}

static sluice_status tell_view(st_salvage *salvage, bool described, sluice_error *err)
{
    salvage->generation = salvage->snapshot->view->generation;
    salvage->older = salvage->generation < salvage->newest;
    if (salvage->older) {
        salvage->deletions_unknown = true;
        PF_TRY(st_salvage_lose(
            salvage, "log", err,
            "generation %llu and what came behind cannot be read: what was inserted since is lost, or found without "
            "its list, what was deleted or changed since is as it was before",
            (unsigned long long)salvage->generation + 1));
    }
    if (!st_graph_has_substitute(salvage->graph))
        return SLUICE_OK;
    PF_TRY(st_salvage_lose(salvage, "schema", err, "the schema of this state cannot be read"));
    return st_salvage_guess(salvage, "schema", err, "the types are as %s",
                            described ? "the newest fragments of each describe them"
                                      : "in the fullest other schema that is whole");
}

/* ---- without a state ---- */

static sluice_status take_schema(st_salvage *salvage, st_schema *described, sluice_error *err)
{
    st_schema *stored = NULL;
    uint32_t count = 0;
    pf_buffer copy = {0};
    st_view *view = calloc(1, sizeof(*view));
    sluice_status status = view ? SLUICE_OK : pf_fail_memory(err);
    st_graph_fullest_schema(salvage->graph, &stored, &count);
    bool own = described && count != 1; /* one schema is the one that stood; of several nothing says which */
    if (status != SLUICE_OK)
        goto done;
    salvage->snapshot->view = view;
    if (own) {
        PF_GOTO(status, done, st_schema_encode(described, &copy, err));
        PF_GOTO(status, done, st_schema_decode(copy.data, copy.length, &view->schema, err));
    } else {
        view->schema = stored;
        stored = NULL;
    }
    status =
        st_salvage_guess(salvage, "schema", err, "the types are as %s",
                         own ? "the newest fragments of each describe them" : "in the fullest schema that is whole");
done:
    st_schema_free(stored);
    pf_buffer_free(&copy);
    return status;
}

/* No state can be read: what lies in the tables' folders is all there is. */
static sluice_status go_by_files(st_salvage *salvage, st_schema *described, const sluice_error *why, sluice_error *err)
{
    st_schema *stored = NULL;
    uint32_t count = 0;
    st_graph_fullest_schema(salvage->graph, &stored, &count);
    st_schema_free(stored);
    if (!described && count == 0) {
        pf_fail(err, SLUICE_CORRUPT, "nothing says any more what types there were: %s", why->message);
        pf_hint(err, "fragments are Arrow files: what lies in tables/*/fragments can be read by any Arrow reader");
        return SLUICE_CORRUPT;
    }
    salvage->from_files = true;
    salvage->deletions_unknown = true;
    salvage->generation = 0;
    PF_TRY(st_salvage_lose(salvage, "log", err,
                           "no state of the branch can be read (%s): what small writes left in records is lost, and "
                           "which rows were deleted, changed or ever committed, in which branch, is not known",
                           why->message));
    return take_schema(salvage, described, err);
}

sluice_status st_salvage_open(st_graph *graph, const char *branch, st_finding_fn *each, void *context,
                              st_salvage *ret_salvage, sluice_error *err)
{
    st_salvage salvage = {.graph = graph, .each = each, .context = context};
    st_schema *described = NULL;
    sluice_error why = {0};
    uint64_t incarnation = 0;
    sluice_status status;
    salvage.snapshot = calloc(1, sizeof(*salvage.snapshot));
    if (!salvage.snapshot)
        return pf_fail_memory(err);
    salvage.snapshot->graph = graph;
    PF_GOTO(status, done, find_incarnation(&salvage, branch ? branch : ST_MAIN_BRANCH, &incarnation, err));
    status = find_view(&salvage, incarnation, &why);
    if (st_salvage_is_damage(status)) { /* is it the schema that is not there? */
        PF_GOTO(status, done, st_files_schema(&salvage, &described, err));
        if (described)
            PF_GOTO(status, done, st_graph_offer_schema(graph, described, err));
        status = find_view(&salvage, incarnation, &why);
    }
    if (status == SLUICE_OK)
        status = tell_view(&salvage, described != NULL, err);
    else if (st_salvage_is_damage(status))
        status = go_by_files(&salvage, described, &why, err);
    else
        status = hand_on(&why, err);
done:
    st_schema_free(described);
    if (status == SLUICE_OK)
        *ret_salvage = salvage;
    else
        st_salvage_close(&salvage);
    return status;
}
