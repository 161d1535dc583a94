/*
 * Verify (snapshot.h, st_graph_verify): everything that the graph's heads and retained generations reach, each problem
 * named by the object's path relative to the graph. What is damaged is reported and the walk goes on; what fails for
 * want of memory or by an interrupted call ends it.
 *
 * What collection let go of is no damage: of its records only the chain and the manifests are looked at. A branch is
 * held (st_branch_hold) while it is read, so that nothing goes meanwhile.
 *
 * Order: control/, the refs, then for each branch its log record by record (chain and digests by store/log; here
 * manifest, skip pointers, schema, edits with their objects, change sets, state pages with their lists, receipts), then
 * the rows of its head. Deleted branches that others were forked from are read, too.
 */
#include "store/read/verify.h"
#include "platform/check.h"
#include "store/state/commit_edit.h"
#include "store/state/lineage.h"
#include "store/state/page.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 160
#define DAMAGED   " is damaged: "

/* The type whose table an object below tables/ is of; NULL: none that the schema at hand has. */
static const char *type_of(const st_verify *verify, const char *object)
{
    const char *slash = strchr(object, '/');
    if (!verify->schema || !slash || strncmp(object, "tables/", strlen("tables/")) != 0)
        return NULL;
    const st_type_def *type = st_schema_find_table(verify->schema, strtoull(slash + 1, NULL, 10));
    return type ? type->name : NULL;
}

sluice_status st_verify_report(st_verify *verify, const char *object, sluice_error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return verify->each(verify->context, object, type_of(verify, object), text, err);
}

/* The file below tables/ that a message begins with: whatever needs it meets the same damage. */
static bool file_of(const char *message, char file[PATH_ROOM])
{
    size_t length = strcspn(message, " :");
    if (strncmp(message, "tables/", strlen("tables/")) != 0 || length >= PATH_ROOM)
        return false;
    memcpy(file, message, length);
    file[length] = '\0';
    return true;
}

sluice_status st_verify_judge(st_verify *verify, const char *object, sluice_status status, const sluice_error *found,
                              sluice_error *err)
{
    char file[PATH_ROOM];
    bool first = true;
    if (status == SLUICE_OK)
        return SLUICE_OK;
    if (status == SLUICE_CORRUPT && file_of(found->message, file)) {
        PF_TRY(st_path_set_add(&verify->reported, file, &first, err));
        const char *what = found->message + strlen(file);
        what += strncmp(what, DAMAGED, strlen(DAMAGED)) == 0 ? strlen(DAMAGED) : 1;
        return first ? st_verify_report(verify, file, err, "%s", what) : SLUICE_OK;
    }
    if (status == SLUICE_CORRUPT || status == SLUICE_NOT_FOUND || status == SLUICE_UNSUPPORTED_FORMAT ||
        status == SLUICE_IO || status == SLUICE_SUSPECT || status == SLUICE_WRITE_CONFLICT)
        return st_verify_report(verify, object, err, "%s", found->message);
    if (err)
        *err = *found;
    return status;
}

/* ---- records ---- */

typedef struct branch_walk {
    st_verify *verify;
    st_log *log;
    uint64_t incarnation;
    const st_boundary *boundary; /* NULL: nothing was collected */
    pf_sha256 *digests;          /* of generations [first, first + count) */
    uint64_t first, count, room;
    char object[96];
} branch_walk;

static sluice_status note_digest(branch_walk *walk, const st_record *record, sluice_error *err)
{
    if (walk->count == walk->room) {
        uint64_t room = walk->room ? walk->room * 2 : 64;
        pf_sha256 *digests = realloc(walk->digests, room * sizeof(*digests));
        if (!digests)
            return pf_fail_memory(err);
        walk->digests = digests;
        walk->room = room;
    }
    if (walk->count == 0)
        walk->first = record->number;
    if (record->number == walk->first + walk->count) /* a healed log repeats its newest record */
        walk->digests[walk->count++] = record->own;
    return SLUICE_OK;
}

static sluice_status check_skips(branch_walk *walk, const st_generation *generation, sluice_error *err)
{
    for (uint32_t k = 0; k < generation->skip_count; k++) {
        const st_skip *skip = &generation->skips[k];
        if (skip->number < walk->first || skip->number - walk->first >= walk->count)
            continue; /* collected, or a parent branch's */
        if (!pf_sha256_equal(&walk->digests[skip->number - walk->first], &skip->digest))
            PF_TRY(st_verify_report(walk->verify, walk->object, err, "a skip pointer to generation %llu is wrong",
                                    (unsigned long long)skip->number));
    }
    return SLUICE_OK;
}

/* The schema of the record at hand; NULL when it cannot be read (reported once). */
static sluice_status take_schema(st_verify *verify, const pf_sha256 *identity, sluice_error *err)
{
    char path[PF_SHA256_TEXT + 16], text[PF_SHA256_TEXT];
    bool first = false;
    sluice_error found = {0};
    if (verify->schema && pf_sha256_equal(identity, &verify->schema_identity))
        return SLUICE_OK;
    st_schema_free(verify->schema);
    verify->schema = NULL;
    verify->schema_identity = *identity;
    pf_sha256_text(identity, text);
    (void)snprintf(path, sizeof(path), "schema/%s.json", text);
    PF_TRY(st_verify_first(verify, path, &first, err));
    sluice_status status = st_schema_fetch(st_graph_volume(verify->graph), identity, &verify->schema, &found);
    return first || status == SLUICE_OK ? st_verify_judge(verify, path, status, &found, err) : SLUICE_OK;
}

/* The folded list of an entry. `standing`: without what edits have taken out of it. */
static sluice_status check_pages(branch_walk *walk, const st_table_entry *entry, bool standing, sluice_error *err)
{
    st_gone gone = {0};
    st_edit_reader reader = {.graph = walk->verify->graph};
    sluice_error unread = {0};
    sluice_status status = standing ? st_gone_find(&reader, entry, &gone, &unread) : SLUICE_OK;
    st_edit_reader_close(&reader);
    PF_TRY(st_verify_judge(walk->verify, walk->object, status, &unread, err));
    for (uint32_t p = 0; p < entry->page_count && status == SLUICE_OK; p++)
        status = st_verify_list(walk->verify, entry->id, &entry->pages[p], &gone, err);
    st_gone_free(&gone);
    return status;
}

static sluice_status check_page(branch_walk *walk, const void *bytes, size_t length, const st_state_page *page,
                                bool standing, sluice_error *err)
{
    st_table_entry *entries = NULL;
    uint32_t count = 0;
    sluice_error found = {0};
    pf_sha256 digest = pf_sha256_of(bytes, length);
    sluice_status status = pf_sha256_equal(&digest, &page->digest)
                               ? st_state_page_decode(bytes, length, &entries, &count, &found)
                               : pf_fail(&found, SLUICE_CORRUPT, "a state page has another digest");
    if (status == SLUICE_OK && count != page->entries)
        status = pf_fail(&found, SLUICE_CORRUPT, "a state page has another number of entries");
    sluice_status judged = st_verify_judge(walk->verify, walk->object, status, &found, err);
    for (uint32_t i = 0; i < count; i++) {
        if (judged == SLUICE_OK)
            judged = check_pages(walk, &entries[i], standing, err);
        st_table_entry_free(&entries[i]);
    }
    free(entries);
    return judged;
}

static sluice_status check_attached_page(branch_walk *walk, const st_record *record, const st_attachments *attachments,
                                         uint32_t attachment, const st_state_page *page, bool standing,
                                         sluice_error *err)
{
    const void *bytes = NULL;
    size_t length = 0;
    sluice_error found = {0};
    sluice_status status = st_attachment_get(record, attachments, attachment, &bytes, &length, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(walk->verify, walk->object, status, &found, err);
    return check_page(walk, bytes, length, page, standing, err);
}

static sluice_status check_commit(branch_walk *walk, const st_record *record, const st_generation *generation,
                                  uint32_t index, sluice_error *err)
{
    const st_commit *commit = &generation->commits[index];
    st_verify *verify = walk->verify;
    st_changes changes = {0};
    for (uint32_t i = 0; i < commit->edit_count; i++) {
        st_edit edit = {0};
        char path[160];
        sluice_error found = {0};
        const st_commit_edit *named = &commit->edits[i];
        (void)snprintf(path, sizeof(path), "tables/%llu/lists/%s", (unsigned long long)named->table, named->file);
        sluice_status status = st_commit_edit_read(verify->graph, record, named, &edit, &found);
        PF_TRY(st_verify_judge(verify, named->attached ? walk->object : path, status, &found, err));
        status = status == SLUICE_OK ? st_verify_edit(verify, &edit, NULL, err) : SLUICE_OK;
        st_edit_free(&edit);
        PF_TRY(status);
        verify->checked++;
    }
    PF_TRY(st_generation_changes(verify->graph, record, index, &changes, err));
    bool unreadable = changes.count == 1 && changes.items[0].whole && changes.items[0].table == 0;
    st_changes_free(&changes);
    return unreadable ? st_verify_report(verify, walk->object, err, "the change set of commit %u cannot be read", index)
                      : SLUICE_OK;
}

/* Takes `gone` over. */
static sluice_status check_edits(st_verify *verify, st_edit_reader *reader, const st_table_entry *entry, st_gone *gone,
                                 sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < entry->edit_count && status == SLUICE_OK; i++) {
        st_bound_edit bound = {0};
        status = st_edit_reader_read(reader, &entry->edits[i], entry->id, &bound, err);
        if (status == SLUICE_OK)
            status = st_verify_edit(verify, &bound.edit, gone, err);
        st_edit_free(&bound.edit);
    }
    st_gone_free(gone);
    return status;
}

static sluice_status check_state(branch_walk *walk, st_edit_reader *reader, const st_view *view, sluice_error *err)
{
    for (uint32_t i = 0; i < view->table_count; i++) {
        st_gone gone = {0};
        sluice_error unread = {0};
        PF_TRY(check_pages(walk, &view->tables[i], true, err));
        if (st_gone_find(reader, &view->tables[i], &gone, &unread) == SLUICE_OK) /* else it was reported */
            PF_TRY(check_edits(walk->verify, reader, &view->tables[i], &gone, err));
    }
    return SLUICE_OK;
}

/* The first generation behind collected ones: of its state, parts may stand where these did. */
static sluice_status check_first_kept(branch_walk *walk, uint64_t number, sluice_error *err)
{
    st_view *view = NULL;
    sluice_error found = {0};
    st_edit_reader reader = {.graph = walk->verify->graph};
    if (!st_boundary_dropped(walk->boundary, number - 1))
        return SLUICE_OK;
    sluice_status status = st_view_load_kept(walk->verify->graph, walk->log, number, &view, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(walk->verify, walk->object, status, &found, err);
    status = check_state(walk, &reader, view, err);
    st_edit_reader_close(&reader);
    st_view_free(view);
    return status;
}

static sluice_status check_generation(branch_walk *walk, const st_record *record, sluice_error *err)
{
    st_generation generation = {0};
    st_attachments attachments = {0};
    sluice_error found = {0};
    sluice_status status = st_manifest_decode(record, &generation, &attachments, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(walk->verify, walk->object, status, &found, err);
    if (generation.incarnation != walk->incarnation)
        PF_GOTO(status, done, st_verify_report(walk->verify, walk->object, err, "it is of another branch"));
    PF_GOTO(status, done, check_skips(walk, &generation, err));
    if (st_boundary_dropped(walk->boundary, generation.number)) {
        status = note_digest(walk, record, err);
        goto done;
    }
    bool standing = st_boundary_dropped(walk->boundary, generation.number - 1);
    PF_GOTO(status, done, check_first_kept(walk, generation.number, err));
    PF_GOTO(status, done, take_schema(walk->verify, &generation.schema_identity, err));
    for (uint32_t i = 0; i < generation.commit_count; i++)
        PF_GOTO(status, done, check_commit(walk, record, &generation, i, err));
    for (uint32_t i = 0; i < generation.page_count; i++) {
        const st_state_page *page = &generation.pages[i];
        if (page->incarnation == generation.incarnation && page->generation == generation.number)
            PF_GOTO(status, done,
                    check_attached_page(walk, record, &attachments, page->attachment, page, standing, err));
    }
    status = note_digest(walk, record, err);
done:
    st_generation_free(&generation);
    st_attachments_free(&attachments);
    return status;
}

static sluice_status check_receipts(const st_record *record, const st_attachments *attachments, uint32_t attachment,
                                    sluice_error *err)
{
    const void *bytes = NULL;
    size_t length = 0;
    st_receipt_table table = {0};
    PF_TRY(st_attachment_get(record, attachments, attachment, &bytes, &length, err));
    PF_TRY(st_receipts_decode(bytes, length, &table, err));
    st_receipts_free(&table);
    return SLUICE_OK;
}

static sluice_status check_opening(branch_walk *walk, const st_record *record, sluice_error *err)
{
    st_opening opening = {0};
    st_attachments attachments = {0};
    sluice_error found = {0};
    sluice_status status = st_opening_decode(record, &opening, &attachments, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(walk->verify, walk->object, status, &found, err);
    status = check_receipts(record, &attachments, opening.receipts, &found);
    PF_GOTO(status, done, st_verify_judge(walk->verify, walk->object, status, &found, err));
    if (st_boundary_dropped(walk->boundary, opening.number))
        goto done;
    if (opening.number > 0)
        PF_GOTO(status, done, take_schema(walk->verify, &opening.schema_identity, err));
    for (uint32_t i = 0; i < opening.page_count; i++)
        PF_GOTO(status, done,
                check_attached_page(walk, record, &attachments, opening.places[i], &opening.pages[i],
                                    walk->boundary != NULL, err));
done:
    st_opening_free(&opening);
    st_attachments_free(&attachments);
    return status;
}

static sluice_status check_record(void *context, const st_record *record, sluice_error *err)
{
    branch_walk *walk = context;
    walk->verify->checked++;
    (void)snprintf(walk->object, sizeof(walk->object), "branches/%llu/log/%llu.seg, %s %llu",
                   (unsigned long long)walk->incarnation, (unsigned long long)record->segment,
                   record->kind == ST_RECORD_OPENING ? "opening record behind generation" : "generation",
                   (unsigned long long)record->number);
    return record->kind == ST_RECORD_OPENING ? check_opening(walk, record, err) : check_generation(walk, record, err);
}

/* ---- branches ---- */

typedef struct ref_walk {
    st_verify *verify;
    char **names;
    uint64_t *incarnations;
    uint32_t count;
} ref_walk;

/* `name` NULL: a branch without a name, that another leads into. */
static sluice_status add_branch(ref_walk *walk, const char *name, uint64_t incarnation, sluice_error *err)
{
    char **names = realloc(walk->names, ((size_t)walk->count + 1) * sizeof(*names));
    if (!names)
        return pf_fail_memory(err);
    walk->names = names;
    uint64_t *incarnations = realloc(walk->incarnations, ((size_t)walk->count + 1) * sizeof(*incarnations));
    if (!incarnations)
        return pf_fail_memory(err);
    walk->incarnations = incarnations;
    names[walk->count] = name ? strdup(name) : NULL;
    if (name && !names[walk->count])
        return pf_fail_memory(err);
    incarnations[walk->count++] = incarnation;
    return SLUICE_OK;
}

static sluice_status note_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    ref_walk *walk = context;
    walk->verify->checked++;
    if (!name)
        return st_verify_report(walk->verify, "refs", err, "a branch ref cannot be read");
    return add_branch(walk, name, incarnation, err);
}

/* A callback of verify failed for a reason of its own: then that, not damage, ends the walk of the log. */
typedef struct log_walk {
    branch_walk *branch;
    sluice_status failed;
    sluice_error *err;
} log_walk;

static sluice_status guarded_record(void *context, const st_record *record, sluice_error *err)
{
    log_walk *walk = context;
    walk->failed = check_record(walk->branch, record, walk->err);
    return walk->failed == SLUICE_OK ? SLUICE_OK : pf_fail(err, SLUICE_CANCELLED, "verify was ended");
}

static sluice_status verify_held(st_verify *verify, const char *name, uint64_t incarnation, sluice_error *err)
{
    st_control control = {0};
    branch_walk branch = {.verify = verify, .incarnation = incarnation};
    log_walk walk = {.branch = &branch, .err = err};
    char object[80];
    st_log *log = NULL;
    sluice_error found = {0};
    (void)snprintf(object, sizeof(object), "branches/%llu", (unsigned long long)incarnation);
    uint64_t now = 0;
    sluice_status status = st_graph_log(verify->graph, incarnation, &log, &found);
    if (status != SLUICE_OK && name &&
        (st_ref_read(verify->graph, name, &now, NULL) == SLUICE_NOT_FOUND || now != incarnation))
        return SLUICE_OK; /* deleted and collected meanwhile */
    if (status != SLUICE_OK)
        return st_verify_judge(verify, object, status, &found, err);
    if (st_control_read(verify->graph, &control, NULL) == SLUICE_OK) /* else it was reported */
        branch.boundary = st_control_find_boundary(&control, incarnation);
    branch.log = log;
    (void)snprintf(object, sizeof(object), "branches/%llu/log", (unsigned long long)incarnation);
    status = st_log_verify(log, guarded_record, &walk, &found);
    if (walk.failed != SLUICE_OK)
        status = walk.failed;
    else
        status = st_verify_judge(verify, object, status, &found, err);
    free(branch.digests);
    st_control_free(&control);
    return status == SLUICE_OK && name ? st_verify_rows(verify, name, err) : status;
}

static sluice_status verify_branch(st_verify *verify, const char *name, uint64_t incarnation, sluice_error *err)
{
    pf_file *pins = NULL;
    (void)st_branch_hold(verify->graph, incarnation, &pins, NULL); /* without it, what goes meanwhile is reported */
    sluice_status status = verify_held(verify, name, incarnation, err);
    (void)pf_close(pins, NULL); /* only locked */
    return status;
}

/* Branches that are deleted and that others were forked from: their records are read as well. One that cannot be opened
 * was reported with the branch that leads there. */
static sluice_status add_parents(ref_walk *walk, uint32_t which, sluice_error *err)
{
    st_log *log = NULL;
    st_fork fork = {0};
    if (st_graph_log(walk->verify->graph, walk->incarnations[which], &log, NULL) != SLUICE_OK ||
        st_log_fork(log, &fork, NULL) != SLUICE_OK || fork.incarnation == 0)
        return SLUICE_OK;
    for (uint32_t i = 0; i < walk->count; i++)
        if (walk->incarnations[i] == fork.incarnation)
            return SLUICE_OK;
    return add_branch(walk, NULL, fork.incarnation, err);
}

static sluice_status verify_control(st_verify *verify, sluice_error *err)
{
    sluice_error found = {0};
    uint64_t records = 0;
    sluice_status status = st_control_verify(verify->graph, &records, &found);
    verify->checked += records;
    return st_verify_judge(verify, "control", status, &found, err);
}

static sluice_status verify_all(st_verify *given, bool rows, uint64_t *ret_checked, sluice_error *err)
{
    st_verify verify = *given;
    st_graph *graph = verify.graph;
    ref_walk refs = {.verify = &verify};
    sluice_error found = {0};
    sluice_status status, listed;
    PF_GOTO(status, done, verify_control(&verify, err));
    listed = st_ref_list(graph, note_ref, &refs, &found);
    PF_GOTO(status, done, st_verify_judge(&verify, "refs", listed, &found, err));
    for (uint32_t i = 0; i < refs.count; i++) { /* grows at its end */
        PF_GOTO(status, done, verify_branch(&verify, rows ? refs.names[i] : NULL, refs.incarnations[i], err));
        PF_GOTO(status, done, add_parents(&refs, i, err));
    }
done:
    *ret_checked = verify.checked;
    for (uint32_t i = 0; i < refs.count; i++)
        free(refs.names[i]);
    free(refs.names);
    free(refs.incarnations);
    st_path_set_free(&verify.seen);
    st_path_set_free(&verify.reported);
    free(verify.index_sums[0].sums);
    free(verify.index_sums[1].sums);
    st_schema_free(verify.schema);
    return status;
}

sluice_status st_graph_verify(st_graph *graph, bool quick, st_problem_fn *each, void *context, uint64_t *ret_checked,
                              sluice_error *err)
{
    return st_graph_verify_watched(graph, quick, each, NULL, context, ret_checked, err);
}

sluice_status st_graph_verify_watched(st_graph *graph, bool quick, st_problem_fn *each,
                                      void (*watch)(void *context, uint64_t objects), void *context,
                                      uint64_t *ret_checked, sluice_error *err)
{
    st_verify verify = {.graph = graph, .quick = quick, .each = each, .watch = watch, .context = context};
    return verify_all(&verify, true, ret_checked, err);
}

sluice_status st_graph_verify_new(st_graph *graph, st_known_fn *known, st_problem_fn *each, void *context,
                                  uint64_t *ret_checked, sluice_error *err)
{
    st_verify verify = {.graph = graph, .known = known, .each = each, .context = context};
    return verify_all(&verify, false, ret_checked, err);
}
