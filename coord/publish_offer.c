/*
 * A prepared write in the region's arena: what a leader needs in order to publish it (coord/publish.h).
 *
 *   head | plan | bytes of attached fragments, in order | folds
 *
 * The plan is the intent's (coord/plan.h); where the write has armed with a side file, the head names that instead.
 * Numbers and lists stand as they are in memory: the bytes never leave the processes of one region, which are one
 * build. They are checked as a whole (XXH3-128 in the entry), and what is decoded from them by the delta's digest.
 * Folds are left out where they do not fit.
 */
#include "coord/plan.h"
#include "coord/publish.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

typedef struct offer_head {
    pf_id commit, operation;
    pf_sha256 delta, request;
    uint64_t verdict, seen;
    bool request_matters;
    char file[96]; /* of the plan; empty: it follows */
    uint64_t plan_length;
    pf_sha256 plan_digest; /* of the file */
    uint32_t folds;
} offer_head;

typedef struct fold_head {
    uint64_t table, bytes_in, bytes_out;
    uint32_t base_count, edit_count, page_count;
    bool merged;
    uint64_t made_length;
} fold_head;

/* ---- putting ---- */

static sluice_status put_contents(const st_delta *delta, pf_buffer *buffer, sluice_error *err)
{
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        const st_edit *edit = &delta->edits[i].edit;
        for (uint32_t k = 0; k < edit->add_count; k++) {
            const st_fragment_info *fragment = &edit->adds[k].fragment;
            if (fragment->attached && fragment->content)
                PF_TRY(pf_buffer_append(buffer, fragment->content, (size_t)fragment->bytes, err));
        }
    }
    return SLUICE_OK;
}

static sluice_status put_fold(const st_fold *fold, pf_buffer *buffer, sluice_error *err)
{
    pf_buffer made = {0};
    fold_head head;
    sluice_status status;
    memset(&head, 0, sizeof head);
    if (fold->made.add_count > 0) /* a fold that moved no rows has made nothing */
        PF_GOTO(status, done, st_edit_encode(&fold->made, &made, err));
    head.table = fold->table;
    head.bytes_in = fold->bytes_in;
    head.bytes_out = fold->bytes_out;
    head.base_count = fold->base_count;
    head.edit_count = fold->edit_count;
    head.page_count = fold->page_count;
    head.merged = fold->merged;
    head.made_length = made.length;
    PF_GOTO(status, done, pf_buffer_append(buffer, &head, sizeof head, err));
    PF_GOTO(status, done, pf_buffer_append(buffer, fold->base, fold->base_count * sizeof *fold->base, err));
    PF_GOTO(status, done, pf_buffer_append(buffer, fold->edits, fold->edit_count * sizeof *fold->edits, err));
    PF_GOTO(status, done, pf_buffer_append(buffer, fold->pages, fold->page_count * sizeof *fold->pages, err));
    status = pf_buffer_append(buffer, made.data, made.length, err);
done:
    pf_buffer_free(&made);
    return status;
}

static sluice_status put_folds(const st_delta *delta, size_t room, pf_buffer *buffer, sluice_error *err)
{
    uint32_t folds = 0;
    for (uint32_t i = 0; i < delta->fold_count; i++) {
        size_t before = buffer->length;
        PF_TRY(put_fold(&delta->folds[i], buffer, err));
        if (buffer->length > room)
            buffer->length = before;
        else
            folds++;
    }
    memcpy(buffer->data + offsetof(offer_head, folds), &folds, sizeof folds);
    return SLUICE_OK;
}

static sluice_status put(const co_run *run, size_t room, pf_buffer *buffer, sluice_error *err)
{
    const co_intent *intent = &run->intent;
    offer_head head;
    memset(&head, 0, sizeof head);
    head.commit = run->claim.commit;
    head.operation = run->claim.operation;
    head.delta = run->claim.delta;
    head.request = run->claim.request;
    head.verdict = run->claim.verdict;
    head.seen = run->claim.seen;
    head.request_matters = run->claim.request_matters;
    if (run->armed && !intent->plan_inline) {
        co_plan_path(intent, head.file);
        head.plan_digest = intent->plan_digest;
        head.plan_length = intent->plan_length;
    }
    PF_TRY(pf_buffer_append(buffer, &head, sizeof head, err));
    if (head.file[0] == '\0') {
        PF_TRY(co_plan_encode(&run->write.reads, &run->write.delta, buffer, err));
        head.plan_length = buffer->length - sizeof head;
        memcpy(buffer->data + offsetof(offer_head, plan_length), &head.plan_length, sizeof head.plan_length);
    }
    PF_TRY(put_contents(&run->write.delta, buffer, err));
    return buffer->length <= room ? put_folds(&run->write.delta, room, buffer, err) : SLUICE_OK;
}

sluice_status co_offer_put(co_run *run, const shm_publisher *me, shm_offer *ret_offer, sluice_error *err)
{
    size_t room = me->region->config.slice;
    pf_buffer buffer = {0};
    sluice_error put_error = {0};
    pf_stat stat;
    *ret_offer = (shm_offer){.alone = run->write.reads.reads_head || run->write.lineage ||
                                      run->write.effect_count > 0 || st_delta_changes_schema(&run->write.delta)};
    PF_TRY(pf_stat_path(run->volume, "graph.json", &stat, err));
    ret_offer->place[0] = stat.device;
    ret_offer->place[1] = stat.inode;
    ret_offer->place[2] = run->incarnation;
    sluice_status status = put(run, room, &buffer, &put_error);
    if (status == SLUICE_OK && buffer.length <= room) {
        memcpy(shm_publish_slice(me->region, me->token.slot), buffer.data, buffer.length);
        ret_offer->length = buffer.length;
    }
    pf_buffer_free(&buffer);
    if (status == SLUICE_OK || status == SLUICE_RESOURCE_LIMIT) /* too large for a plan: it goes by itself */
        return SLUICE_OK;
    if (err)
        *err = put_error;
    return status;
}

/* ---- getting ---- */

typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

static sluice_status take_bytes(cursor *from, void *to, size_t length, sluice_error *err)
{
    if (length > from->left)
        return pf_fail(err, SLUICE_INTERNAL, "a write in the region ends too early");
    if (length > 0)
        memcpy(to, from->at, length);
    from->at += length;
    from->left -= length;
    return SLUICE_OK;
}

static sluice_status take_array(cursor *from, void **ret_items, uint32_t count, size_t size, sluice_error *err)
{
    *ret_items = calloc((size_t)count + 1, size);
    return *ret_items ? take_bytes(from, *ret_items, count * size, err) : pf_fail_memory(err);
}

static sluice_status get_contents(cursor *from, st_delta *delta, sluice_error *err)
{
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        st_edit *edit = &delta->edits[i].edit;
        for (uint32_t k = 0; k < edit->add_count; k++) {
            st_fragment_info *fragment = &edit->adds[k].fragment;
            void *content = NULL;
            if (!fragment->attached)
                continue;
            if (fragment->bytes > from->left)
                return pf_fail(err, SLUICE_INTERNAL, "an attached fragment is not in the region");
            sluice_status status = take_array(from, &content, (uint32_t)fragment->bytes, 1, err);
            fragment->content = content;
            PF_TRY(status);
        }
    }
    return SLUICE_OK;
}

static sluice_status get_fold(cursor *from, st_fold *fold, sluice_error *err)
{
    fold_head head;
    void *base = NULL, *edits = NULL, *pages = NULL;
    PF_TRY(take_bytes(from, &head, sizeof head, err));
    *fold = (st_fold){.table = head.table,
                      .base_count = head.base_count,
                      .edit_count = head.edit_count,
                      .page_count = head.page_count,
                      .bytes_in = head.bytes_in,
                      .bytes_out = head.bytes_out,
                      .merged = head.merged};
    sluice_status status = take_array(from, &base, head.base_count, sizeof *fold->base, err);
    fold->base = base;
    PF_TRY(status);
    status = take_array(from, &edits, head.edit_count, sizeof *fold->edits, err);
    fold->edits = edits;
    PF_TRY(status);
    status = take_array(from, &pages, head.page_count, sizeof *fold->pages, err);
    fold->pages = pages;
    PF_TRY(status);
    if (head.made_length > from->left)
        return pf_fail(err, SLUICE_INTERNAL, "a write in the region ends too early");
    if (head.made_length > 0)
        PF_TRY(st_edit_decode(from->at, (size_t)head.made_length, &fold->made, err));
    from->at += head.made_length;
    from->left -= (size_t)head.made_length;
    return SLUICE_OK;
}

static sluice_status get_folds(cursor *from, uint32_t count, st_delta *delta, sluice_error *err)
{
    if (count == 0)
        return SLUICE_OK;
    delta->folds = calloc(count, sizeof *delta->folds);
    if (!delta->folds)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        delta->fold_count++;
        PF_TRY(get_fold(from, &delta->folds[i], err));
    }
    return SLUICE_OK;
}

static sluice_status get_plan(const co_run *run, const offer_head *head, cursor *from, co_member *member,
                              sluice_error *err)
{
    pf_buffer side = {0};
    if (head->file[0] == '\0') {
        if (head->plan_length > from->left)
            return pf_fail(err, SLUICE_INTERNAL, "a write in the region ends too early");
        PF_TRY(co_plan_decode(from->at, (size_t)head->plan_length, &member->reads, &member->decoded, err));
        from->at += head->plan_length;
        from->left -= (size_t)head->plan_length;
        return SLUICE_OK;
    }
    sluice_status status = co_plan_fetch(run->volume, head->file, head->plan_length, &head->plan_digest, &side, err);
    if (status == SLUICE_OK)
        status = co_plan_decode(side.data, side.length, &member->reads, &member->decoded, err);
    pf_buffer_free(&side);
    return status;
}

sluice_status co_offer_get(co_run *run, const uint8_t *bytes, size_t length, co_member *ret_member, sluice_error *err)
{
    cursor from = {bytes, length};
    offer_head head;
    PF_TRY(take_bytes(&from, &head, sizeof head, err));
    ret_member->delta = &ret_member->decoded;
    ret_member->digest = head.delta;
    PF_TRY(get_plan(run, &head, &from, ret_member, err));
    ret_member->claim = (co_claim){.graph = run->write.graph,
                                   .log = run->log,
                                   .reads = &ret_member->reads,
                                   .commit = head.commit,
                                   .operation = head.operation,
                                   .delta = head.delta,
                                   .request = head.request,
                                   .request_matters = head.request_matters,
                                   .verdict = head.verdict,
                                   .seen = head.seen};
    PF_TRY(get_contents(&from, &ret_member->decoded, err));
    return get_folds(&from, head.folds, &ret_member->decoded, err);
}

void co_member_free(co_member *member)
{
    co_read_set_free(&member->reads);
    st_delta_free(&member->decoded);
}
