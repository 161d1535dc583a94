/*
 * The edits and change sets of commits: attached to their record, or staged (state.h).
 */
#include "store/state/commit_edit.h"
#include "platform/check.h"
#include "store/state/change.h"
#include <stdlib.h>
#include <string.h>

static sluice_status decode_edit(const void *bytes, size_t length, const st_commit_edit *edit, uint64_t number,
                                 st_edit *ret_edit, sluice_error *err)
{
    pf_sha256 digest = pf_sha256_of(bytes, length);
    if (!pf_sha256_equal(&digest, &edit->digest))
        return pf_fail(err, SLUICE_CORRUPT, "an edit of generation %llu has another digest than its commit says",
                       (unsigned long long)number);
    PF_TRY(st_edit_decode(bytes, length, ret_edit, err));
    if (ret_edit->table == edit->table)
        return SLUICE_OK;
    st_edit_free(ret_edit);
    return pf_fail(err, SLUICE_CORRUPT, "an edit of generation %llu is of another table than its commit says",
                   (unsigned long long)number);
}

/* The attached fragments of an attached edit: right behind it, in its order. */
static sluice_status take_fragments(const st_record *record, const st_attachments *attachments, uint32_t attachment,
                                    st_edit *edit, sluice_error *err)
{
    for (uint32_t i = 0; i < edit->add_count; i++) {
        st_fragment_info *fragment = &edit->adds[i].fragment;
        const void *bytes = NULL;
        size_t length = 0;
        if (!fragment->attached)
            continue;
        PF_TRY(st_attachment_get(record, attachments, ++attachment, &bytes, &length, err));
        if (length != fragment->bytes)
            return pf_fail(err, SLUICE_CORRUPT, "an attached fragment of generation %llu has another length",
                           (unsigned long long)record->number);
        fragment->content = malloc(length + 1);
        if (!fragment->content)
            return pf_fail_memory(err);
        memcpy(fragment->content, bytes, length);
    }
    return SLUICE_OK;
}

static sluice_status read_edit(st_graph *graph, const st_record *record, const st_attachments *attachments,
                               const st_commit_edit *edit, st_edit *ret_edit, sluice_error *err)
{
    const void *bytes = NULL;
    size_t length = 0;
    pf_buffer staged = {0};
    if (edit->attached) {
        PF_TRY(st_attachment_get(record, attachments, edit->attachment, &bytes, &length, err));
        PF_TRY(decode_edit(bytes, length, edit, record->number, ret_edit, err));
        sluice_status taken = take_fragments(record, attachments, edit->attachment, ret_edit, err);
        if (taken != SLUICE_OK)
            st_edit_free(ret_edit);
        return taken;
    }
    sluice_status status =
        st_list_file_read(st_graph_volume(graph), edit->table, edit->file, &edit->digest, &staged, err);
    if (status == SLUICE_OK)
        status = decode_edit(staged.data, staged.length, edit, record->number, ret_edit, err);
    pf_buffer_free(&staged);
    return status;
}

sluice_status st_commit_edit_read(st_graph *graph, const st_record *record, const st_commit_edit *edit,
                                  st_edit *ret_edit, sluice_error *err)
{
    st_generation generation = {0};
    st_attachments attachments = {0};
    if (edit->attached) {
        PF_TRY(st_manifest_decode(record, &generation, &attachments, err));
        st_generation_free(&generation);
    }
    sluice_status status = read_edit(graph, record, &attachments, edit, ret_edit, err);
    st_attachments_free(&attachments);
    return status;
}

/* ---- by place ---- */

#define KEPT_RECORDS 160u            /* of a handle: more than edits stand unfolded behind a list */
#define KEPT_BYTES   ((size_t)65536) /* of one record at most */

void st_record_forget(st_edit_record *read)
{
    for (uint32_t i = 0; read->changes && i < read->generation.commit_count; i++)
        if (read->has_changes[i])
            st_changes_free(&read->changes[i]);
    free(read->changes);
    free(read->has_changes);
    st_record_free(&read->record);
    st_generation_free(&read->generation);
    st_attachments_free(&read->attachments);
    *read = (st_edit_record){0};
}

static void release_kept(void *data)
{
    st_edit_record *kept = data;
    for (uint32_t i = 0; i <= KEPT_RECORDS; i++)
        st_record_forget(&kept[i]);
    free(kept);
}

/* All that the handle keeps, and behind them what was built and is not published. */
static st_edit_record *kept_of(st_graph *graph)
{
    st_kept *all = st_graph_kept(graph, ST_KEPT_RECORDS);
    if (!all->data) {
        all->data = calloc(KEPT_RECORDS + 1, sizeof(st_edit_record));
        all->release = release_kept;
    }
    return all->data;
}

/* Where the handle keeps a generation, if it is small. */
static sluice_status place_of(st_graph *graph, const st_edit_place *place, st_edit_record **ret_kept, sluice_error *err)
{
    st_edit_record *all = kept_of(graph);
    if (!all)
        return pf_fail_memory(err);
    *ret_kept = all + (place->incarnation + place->generation) % KEPT_RECORDS;
    return SLUICE_OK;
}

static bool is_it(const st_edit_record *read, const st_edit_place *place)
{
    return read->number == place->generation && read->incarnation == place->incarnation;
}

void st_edit_reader_close(st_edit_reader *reader)
{
    st_record_forget(&reader->own);
}

/* Moves what was read to where it is kept, when it is small. */
static st_edit_record *keep(st_edit_record *read, st_edit_record *kept)
{
    if (read->record.manifest_length + read->record.attachments_length > KEPT_BYTES)
        return read;
    st_record_forget(kept);
    *kept = *read;
    *read = (st_edit_record){0};
    return kept;
}

void st_record_built(st_graph *graph, st_generation *generation, st_attachments *attachments, const pf_buffer *bytes)
{
    st_edit_record *all = kept_of(graph);
    if (!all)
        return;
    st_edit_record *built = &all[KEPT_RECORDS];
    st_record_forget(built);
    if (bytes->length > KEPT_BYTES / 2) /* its manifest is not longer than that for long */
        return;
    built->record.storage =
        aligned_alloc(ST_ATTACHMENT_ALIGN, (bytes->length / ST_ATTACHMENT_ALIGN + 1) * ST_ATTACHMENT_ALIGN);
    if (!built->record.storage)
        return;
    if (bytes->length > 0)
        memcpy(built->record.storage, bytes->data, bytes->length);
    built->record.kind = ST_RECORD_GENERATION;
    built->record.number = built->number = generation->number;
    built->record.attachments = built->record.storage;
    built->record.attachments_length = bytes->length;
    built->incarnation = generation->incarnation;
    built->generation = *generation;
    built->attachments = *attachments;
    *generation = (st_generation){0};
    *attachments = (st_attachments){0};
}

void st_record_published(st_graph *graph, uint64_t incarnation, uint64_t number, const pf_sha256 *digest)
{
    st_edit_record *all = kept_of(graph);
    if (!all)
        return;
    st_edit_record *built = &all[KEPT_RECORDS], *place = &all[(incarnation + number) % KEPT_RECORDS];
    if (number > 0 && built->number == number && built->incarnation == incarnation) {
        st_record_forget(place);
        *place = *built;
        place->record.own = *digest;
        *built = (st_edit_record){0};
    }
    st_record_forget(built);
}

const st_generation *st_record_kept(st_graph *graph, st_log *log, uint64_t number)
{
    const st_edit_record *all = kept_of(graph);
    const pf_sha256 *digest = st_log_active_digest(log, number);
    if (!all || !digest)
        return NULL;
    const st_edit_record *kept = &all[(st_log_incarnation(log) + number) % KEPT_RECORDS];
    if (kept->number != number || kept->incarnation != st_log_incarnation(log) ||
        !pf_sha256_equal(digest, &kept->record.own))
        return NULL;
    return &kept->generation;
}

sluice_status st_record_fetch(st_graph *graph, st_log *log, uint64_t number, st_edit_record *own,
                              const st_edit_record **ret_read, sluice_error *err)
{
    st_edit_place place = {.incarnation = st_log_incarnation(log), .generation = number};
    const pf_sha256 *digest = st_log_active_digest(log, number);
    st_edit_record *kept = NULL;
    *ret_read = NULL;
    PF_TRY(place_of(graph, &place, &kept, err));
    if (digest && is_it(kept, &place) && kept->record.manifest && pf_sha256_equal(digest, &kept->record.own)) {
        *ret_read = kept;
        return SLUICE_OK; /* of one that was built here the manifest is not kept, nor where it stands */
    }
    st_record_forget(own);
    if (!st_log_take_followed(log, number, &own->record))
        PF_TRY(st_log_read(log, number, &own->record, err));
    PF_TRY(st_manifest_decode(&own->record, &own->generation, &own->attachments, err));
    own->incarnation = place.incarnation;
    own->number = number;
    *ret_read = digest ? keep(own, kept) : own;
    return SLUICE_OK;
}

/* What a whole record says never changes: a kept one is as good as read again. *ret_read is good until the next call.
 */
static sluice_status open_place(st_edit_reader *reader, const st_edit_place *place, const st_edit_record **ret_read,
                                sluice_error *err)
{
    st_log *log = NULL;
    st_edit_record *kept = NULL;
    PF_TRY(place_of(reader->graph, place, &kept, err));
    *ret_read = is_it(kept, place) ? kept : &reader->own;
    if (is_it(*ret_read, place))
        return SLUICE_OK;
    st_record_forget(&reader->own);
    PF_TRY(st_graph_log(reader->graph, place->incarnation, &log, err));
    if (!st_log_take_followed(log, place->generation, &reader->own.record))
        PF_TRY(st_log_read(log, place->generation, &reader->own.record, err));
    PF_TRY(st_manifest_decode(&reader->own.record, &reader->own.generation, &reader->own.attachments, err));
    reader->own.incarnation = place->incarnation;
    reader->own.number = place->generation;
    *ret_read = keep(&reader->own, kept);
    return SLUICE_OK;
}

sluice_status st_edit_reader_read(st_edit_reader *reader, const st_edit_place *place, uint64_t table,
                                  st_bound_edit *ret_bound, sluice_error *err)
{
    sluice_error probe = {0};
    const st_edit_record *read = NULL;
    sluice_status status = open_place(reader, place, &read, &probe);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "table %llu needs generation %llu, which is gone",
                       (unsigned long long)table, (unsigned long long)place->generation);
    if (status != SLUICE_OK) {
        if (err)
            *err = probe;
        return status;
    }
    const st_commit *commit =
        place->index < read->generation.commit_count ? &read->generation.commits[place->index] : NULL;
    const st_commit_edit *edit = commit && place->at < commit->edit_count ? &commit->edits[place->at] : NULL;
    if (!edit || edit->table != table)
        return pf_fail(err, SLUICE_CORRUPT, "table %llu names an edit that generation %llu does not have",
                       (unsigned long long)table, (unsigned long long)place->generation);
    PF_TRY(read_edit(reader->graph, &read->record, &read->attachments, edit, &ret_bound->edit, err));
    reader->named = edit;
    ret_bound->commit = commit->id;
    ret_bound->first_row = edit->first_row;
    return SLUICE_OK;
}

/* ---- change sets ---- */

typedef struct commit_edits { /* the edits of one commit, read when they are asked for */
    st_graph *graph;
    const st_record *record;
    const st_attachments *attachments;
    const st_commit *commit;
    st_edit *edits;
    bool *read;
} commit_edits;

static sluice_status get_edit(void *context, uint32_t at, const st_edit **ret_edit, sluice_error *err)
{
    commit_edits *from = context;
    if (!from->read[at])
        PF_TRY(
            read_edit(from->graph, from->record, from->attachments, &from->commit->edits[at], &from->edits[at], err));
    from->read[at] = true;
    *ret_edit = &from->edits[at];
    return SLUICE_OK;
}

static sluice_status read_changes(commit_edits *from, st_changes *ret_changes, sluice_error *err)
{
    const void *bytes = NULL;
    size_t length = 0;
    st_edit_source source = {.context = from, .count = from->commit->edit_count, .get = get_edit};
    from->edits = calloc((size_t)source.count + 1, sizeof(*from->edits));
    from->read = calloc((size_t)source.count + 1, sizeof(*from->read));
    sluice_status status = from->edits && from->read ? SLUICE_OK : pf_fail_memory(err);
    if (status == SLUICE_OK)
        status =
            st_attachment_get(from->record, from->attachments, from->commit->changes_attachment, &bytes, &length, err);
    if (status == SLUICE_OK)
        status = st_changes_decode(bytes, length, &source, ret_changes, err);
    for (uint32_t i = 0; i < source.count && from->edits && from->read; i++)
        if (from->read[i])
            st_edit_free(&from->edits[i]);
    free(from->edits);
    free(from->read);
    return status;
}

/* K-02: what cannot be read counts as the whole of every table, never as nothing. */
static sluice_status everything(st_changes *ret_changes, sluice_error *err)
{
    ret_changes->items = calloc(1, sizeof(*ret_changes->items));
    if (!ret_changes->items)
        return pf_fail_memory(err);
    ret_changes->items[0] = (st_change){.space = ST_SPACE_WHOLE_TABLE, .whole = true};
    ret_changes->count = 1;
    return SLUICE_OK;
}

/* Those of a commit that is there. */
static sluice_status changes_of(st_graph *graph, const st_record *record, const st_generation *generation,
                                const st_attachments *attachments, uint32_t commit, st_changes *ret_changes,
                                sluice_error *err)
{
    commit_edits from = {graph, record, attachments, &generation->commits[commit], NULL, NULL};
    return read_changes(&from, ret_changes, NULL) == SLUICE_OK ? SLUICE_OK : everything(ret_changes, err);
}

sluice_status st_generation_changes(st_graph *graph, const st_record *record, uint32_t commit, st_changes *ret_changes,
                                    sluice_error *err)
{
    st_generation generation = {0};
    st_attachments attachments = {0};
    PF_TRY(st_manifest_decode(record, &generation, &attachments, err));
    sluice_status status = SLUICE_OK;
    if (commit >= generation.commit_count) {
        status = pf_fail(err, SLUICE_NOT_FOUND, "generation %llu has no commit %u", (unsigned long long)record->number,
                         (unsigned)commit);
    } else {
        status = changes_of(graph, record, &generation, &attachments, commit, ret_changes, err);
    }
    st_generation_free(&generation);
    st_attachments_free(&attachments);
    return status;
}

/* ---- generations that are judged ---- */

static sluice_status read_judged(st_log *log, uint64_t number, st_edit_record *read, sluice_error *err)
{
    if (!st_log_take_followed(log, number, &read->record))
        PF_TRY(st_log_read_lineage(log, number, &read->record, err));
    if (read->record.collected)
        return st_generation_decode(&read->record, &read->generation, err);
    PF_TRY(st_manifest_decode(&read->record, &read->generation, &read->attachments, err));
    read->incarnation = st_log_incarnation(log);
    read->number = number;
    return SLUICE_OK;
}

sluice_status st_judged_open(st_graph *graph, st_log *log, uint64_t number, st_judged *ret_judged, sluice_error *err)
{
    st_edit_place place = {.incarnation = st_log_incarnation(log), .generation = number};
    st_edit_record *read = NULL;
    *ret_judged = (st_judged){0};
    PF_TRY(place_of(graph, &place, &read, err));
    if (!is_it(read, &place)) {
        ret_judged->own_ = calloc(1, sizeof(*ret_judged->own_));
        if (!ret_judged->own_)
            return pf_fail_memory(err);
        PF_TRY(read_judged(log, number, ret_judged->own_, err));
        read = ret_judged->own_->record.collected ? ret_judged->own_ : keep(ret_judged->own_, read);
    }
    ret_judged->read_ = read;
    ret_judged->collected = read->record.collected;
    ret_judged->generation = &read->generation;
    return SLUICE_OK;
}

sluice_status st_judged_changes(st_graph *graph, st_judged *judged, uint32_t commit, const st_changes **ret_changes,
                                sluice_error *err)
{
    st_edit_record *read = judged->read_;
    PF_ASSERT(!read->record.collected && commit < read->generation.commit_count);
    if (!read->changes) {
        read->has_changes = calloc((size_t)read->generation.commit_count + 1, sizeof(*read->has_changes));
        st_changes *changes = calloc((size_t)read->generation.commit_count + 1, sizeof(*changes));
        if (!read->has_changes || !changes) {
            free(read->has_changes);
            free(changes);
            read->has_changes = NULL;
            return pf_fail_memory(err);
        }
        read->changes = changes;
    }
    if (!read->has_changes[commit])
        PF_TRY(changes_of(graph, &read->record, &read->generation, &read->attachments, commit, &read->changes[commit],
                          err));
    read->has_changes[commit] = true;
    *ret_changes = &read->changes[commit];
    return SLUICE_OK;
}

sluice_status st_judged_edit(st_graph *graph, const st_judged *judged, uint32_t commit, uint32_t at, st_edit *ret_edit,
                             sluice_error *err)
{
    const st_edit_record *read = judged->read_;
    PF_ASSERT(!read->record.collected && commit < read->generation.commit_count &&
              at < read->generation.commits[commit].edit_count);
    return read_edit(graph, &read->record, &read->attachments, &read->generation.commits[commit].edits[at], ret_edit,
                     err);
}

void st_judged_close(st_judged *judged)
{
    if (judged->own_)
        st_record_forget(judged->own_);
    free(judged->own_);
    *judged = (st_judged){0};
}
