/*
 * Checkpoints (coord/checkpoint.h).
 *
 * The commit is pinned until the record stands, so that collection, which reads control/ after the pins, meets one of
 * the two. It is acknowledged before it is named.
 */
#include "coord/checkpoint.h"
#include "coord/branch_impl.h"
#include "coord/write.h"
#include "platform/check.h"
#include "platform/clock.h"
#include <stdio.h>
#include <string.h>

#define KIND_CREATE "checkpoint-create"
#define KIND_DELETE "checkpoint-delete"
#define KEY_ROOM    300u

typedef struct checkpoint_change {
    const co_checkpoint_request *request;
    const st_checkpoint *made; /* NULL: deletes */
    const char *key;           /* the receipt's: no branch is called so */
    st_control_receipt receipt;
    bool repeated;
} checkpoint_change;

static sluice_status digest_request(const co_checkpoint_request *request, const char *kind, pf_sha256 *ret_digest,
                                    sluice_error *err)
{
    const char *const parts[] = {kind, request->name, request->branch ? request->branch : ST_MAIN_BRANCH,
                                 request->at ? request->at : ""};
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pf_sha256_add(stream, parts[i], strlen(parts[i]) + 1);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

static sluice_status check_name(const char *name, sluice_error *err)
{
    bool plain = st_place_is_plain(name);
    if (!plain && st_branch_name_is_valid(name, strlen(name)))
        return SLUICE_OK;
    sluice_status status = pf_fail_private(err, SLUICE_INVALID_NAME, "a name that no checkpoint can have",
                                           "\"%s\" is not allowed as the name of a checkpoint", name);
    pf_hint(err, plain ? "it means a place by itself: head, a commit id, a number or a time"
                       : "1 to 255 bytes of UTF-8 without control characters, \"..\", or \"/\" at an end or twice");
    return status;
}

/* Under control's publish lock. */
static sluice_status change_control(void *context, st_control *control, sluice_error *err)
{
    checkpoint_change *change = context;
    const st_control_receipt *known =
        st_control_find_receipt(control, &change->request->operation, &change->receipt.ref);
    if (known && !pf_sha256_equal(&known->request, &change->receipt.request))
        return co_fail_other_request(err);
    if (known) {
        change->receipt = *known;
        change->repeated = true;
        return SLUICE_OK;
    }
    const st_checkpoint *found = st_control_find_checkpoint(control, change->request->name);
    if (change->made) {
        PF_TRY(st_control_add_checkpoint(control, change->made, err));
    } else if (found) {
        change->receipt.incarnation = found->incarnation;
        change->receipt.commit = found->commit;
        change->receipt.generation = found->generation;
        change->receipt.index = found->index;
        (void)st_control_drop_checkpoint(control, change->request->name);
    } else {
        pf_fail_private(err, SLUICE_NOT_FOUND, "there is no such checkpoint", "there is no checkpoint \"%s\"",
                        change->request->name);
        st_control_hint_at_checkpoint(control, change->request->name, err);
        return SLUICE_NOT_FOUND;
    }
    return st_control_add_receipt(control, &change->receipt, err);
}

/* What the change would answer: on a copy that goes nowhere. */
static sluice_status preview(st_graph *graph, checkpoint_change *change, sluice_error *err)
{
    st_control control = {0};
    sluice_status status = st_control_read(graph, &control, err);
    if (status == SLUICE_OK)
        status = change_control(change, &control, err);
    st_control_free(&control);
    return status;
}

static sluice_status run_change(st_graph *graph, checkpoint_change *change, const char *kind, pf_deadline deadline,
                                co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    const co_checkpoint_request *request = change->request;
    st_control_receipt *receipt = &change->receipt;
    *receipt = (st_control_receipt){.operation = request->operation,
                                    .ref = pf_sha256_of(change->key, strlen(change->key)),
                                    .done = true,
                                    .time_us = pf_wall_us()};
    (void)snprintf(receipt->kind, sizeof receipt->kind, "%s", kind);
    PF_TRY(digest_request(request, kind, &receipt->request, err));
    if (change->made) {
        receipt->incarnation = change->made->incarnation;
        receipt->commit = change->made->commit;
        receipt->generation = change->made->generation;
        receipt->index = change->made->index;
    }
    PF_TRY(request->dry_run ? preview(graph, change, err)
                            : st_control_update(graph, change_control, change, deadline, err));
    *ret_receipt = (co_checkpoint_receipt){.repeated = change->repeated,
                                           .commit = receipt->commit,
                                           .generation = receipt->generation,
                                           .index = receipt->index};
    return SLUICE_OK;
}

/* An exact retry must be answered also when the branch, or the checkpoint, is gone by now. */
static sluice_status look_up(st_graph *graph, const co_checkpoint_request *request, const char *kind, const char *key,
                             bool *ret_found, co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    st_control_receipt receipt = {0};
    pf_sha256 digest;
    *ret_found = false;
    if (!request->operation_given)
        return SLUICE_OK;
    PF_TRY(digest_request(request, kind, &digest, err));
    PF_TRY(co_receipt_look_up(graph, &request->operation, true, &digest, key, ret_found, &receipt, err));
    *ret_receipt = (co_checkpoint_receipt){
        .repeated = true, .commit = receipt.commit, .generation = receipt.generation, .index = receipt.index};
    return SLUICE_OK;
}

static pf_deadline deadline_of(const co_checkpoint_request *request)
{
    return pf_deadline_in_ms(request->wait_ms ? request->wait_ms : CO_WAIT_MS);
}

static sluice_status create(st_graph *graph, const co_checkpoint_request *request, const char *key,
                            co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    checkpoint_change change = {.request = request, .key = key};
    st_checkpoint made = {0};
    co_source source = {0};
    char name[256];
    sluice_status status;
    PF_GOTO(status, done, co_source_find(graph, request->branch, request->at, &source, err));
    PF_GOTO(status, done, st_snapshot_open(graph, source.name, source.at, &source.snapshot, err));
    const st_view *view = st_snapshot_view(source.snapshot);
    PF_GOTO(status, done, co_source_hold(graph, &source, view, &request->operation, deadline_of(request), err));
    (void)snprintf(name, sizeof name, "%s", request->name);
    made = (st_checkpoint){.name = name,
                           .incarnation = view->incarnation,
                           .generation = view->generation,
                           .index = view->index,
                           .commit = view->head,
                           .time_us = view->head_time_us};
    change.made = &made;
    status = run_change(graph, &change, KIND_CREATE, deadline_of(request), ret_receipt, err);
done:
    co_source_close(&source);
    return status;
}

static sluice_status named(st_graph *graph, const co_checkpoint_request *request, bool creates,
                           co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    const char *kind = creates ? KIND_CREATE : KIND_DELETE;
    char key[KEY_ROOM];
    bool done = false;
    PF_ASSERT(!pf_id_is_nil(&request->operation));
    PF_TRY(check_name(request->name, err));
    (void)snprintf(key, sizeof key, "checkpoint\n%s", request->name);
    PF_TRY(look_up(graph, request, kind, key, &done, ret_receipt, err));
    if (done)
        return SLUICE_OK;
    if (creates)
        return create(graph, request, key, ret_receipt, err);
    checkpoint_change change = {.request = request, .key = key};
    return run_change(graph, &change, kind, deadline_of(request), ret_receipt, err);
}

sluice_status co_checkpoint_create(st_graph *graph, const co_checkpoint_request *request,
                                   co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    sluice_status status = named(graph, request, true, ret_receipt, err);
    if (status != SLUICE_OK && err)
        pf_id_text(&request->operation, err->operation_id);
    return status;
}

sluice_status co_checkpoint_delete(st_graph *graph, const co_checkpoint_request *request,
                                   co_checkpoint_receipt *ret_receipt, sluice_error *err)
{
    sluice_status status = named(graph, request, false, ret_receipt, err);
    if (status != SLUICE_OK && err)
        pf_id_text(&request->operation, err->operation_id);
    return status;
}
