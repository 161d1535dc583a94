/*
 * Maintenance as a job: what each of its processes opens, which task is what, and what the conductor does from the
 * choice to the receipt (coord/maintain_job.h).
 */
#include "coord/maintain_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONDUCTED_NAME "conducted" /* a conductor was here before */

static void close_job(void *context)
{
    maintain_job *job = context;
    if (!job)
        return;
    maintain_work_drop(job);
    lk_lockfile_close(job->folders);
    free(job->tables);
    co_attempt_leave(&job->attempt);
    if (job->own_graph)
        st_graph_close(job->graph);
    free(job);
}

static sluice_status open_job(const void *spec, wk_executor *executor, void **ret_context, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    maintain_job *job = calloc(1, sizeof *job);
    if (!job)
        return pf_fail_memory(err);
    job->spec = spec;
    job->executor = executor;
    job->graph = job->spec->graph;
    if (!job->graph) {
        PF_GOTO(status, failed, st_graph_open(job->spec->options->graph_path, PF_WRITE, &job->graph, err));
        job->own_graph = true;
    }
    PF_GOTO(status, failed, co_attempt_join(job->graph, &job->spec->attempt, &job->attempt, err));
    job->spool.volume = st_graph_volume(job->graph);
    job->spool.attempt = job->spec->attempt;
    (void)snprintf(job->spool.folder, sizeof job->spool.folder, "%s", job->attempt.folder);
    *ret_context = job;
    return SLUICE_OK;
failed:
    close_job(job);
    return status;
}

static sluice_status run_task(void *context, uint32_t phase, uint32_t index, sluice_error *err)
{
    maintain_job *job = context;
    bool found = false;
    PF_TRY(maintain_work_get(job, phase - MAINTAIN_WORK, &found, err));
    if (!found || index >= job->work.item_count)
        return pf_fail(err, SLUICE_INTERNAL, "work list %u has no item %u", phase - MAINTAIN_WORK, index);
    bool compacts = job->work.items[index].task == MAINTAIN_COMPACT;
    PF_TRY(compacts ? optimize_task(job, index, err) : index_task(job, index, err));
    return PF_FAILPOINT(MAINTAIN_AFTER_TASK_RESULT, err);
}

/* ---- the folder bytes ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* The tables of the command, by the schema at hand. */
static sluice_status find_tables(maintain_job *job, st_snapshot *snapshot, sluice_error *err)
{
    const co_maintain_options *options = job->spec->options;
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    uint32_t count = 0;
    uint64_t *tables = realloc(job->tables, ((size_t)schema->type_count + options->type_count + 1) * sizeof *tables);
    if (!tables)
        return pf_fail_memory(err);
    job->tables = tables;
    for (uint32_t i = 0; i < options->type_count; i++) {
        const st_type_def *type = NULL;
        PF_TRY(st_snapshot_type(snapshot, options->types[i], &type, err));
        tables[count++] = type->table;
    }
    for (uint32_t i = 0; options->type_count == 0 && i < schema->type_count; i++)
        tables[count++] = schema->types[i].table;
    qsort(tables, count, sizeof *tables, by_value);
    job->table_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (job->table_count == 0 || tables[job->table_count - 1] != tables[i])
            tables[job->table_count++] = tables[i];
    return SLUICE_OK;
}

/* One folder a table: others who optimize or index it wait for their turn here, and folds pass it by, so that none of
 * them merges a fragment of the list that is chosen from. Taken before the base is pinned, held till the end of the
 * job.
 */
static sluice_status take_folders(maintain_job *job, const st_schema *schema, sluice_error *err)
{
    char folder[64], path[96];
    pf_deadline deadline = pf_deadline_in_ms(CO_WAIT_MS);
    st_branch_folder(job->incarnation, folder);
    (void)snprintf(path, sizeof path, "%s/locks", folder);
    PF_TRY(lk_lockfile_open(job->spool.volume, path, &job->folders, err));
    for (uint32_t i = 0; i < job->table_count; i++) {
        sluice_error busy = {0};
        sluice_status status = lk_take(job->folders, LK_FOLDER + job->tables[i], PF_LOCK_EXCLUSIVE, deadline, &busy);
        if (status == SLUICE_LIVE_WRITER_CONTENTION) {
            pf_fail_private(err, status, "another optimize or index of a type is at work",
                            "another optimize or index of %s is at work",
                            st_schema_find_table(schema, job->tables[i])->name);
            pf_hint(err, "try again when it has ended");
            return status;
        }
        if (status != SLUICE_OK) {
            if (err)
                *err = busy;
            return status;
        }
    }
    return SLUICE_OK;
}

/* ---- the payload half ---- */

/* The list of a conductor that died, if it can be gone on with. */
static sluice_status find_list(maintain_job *job, const st_view *base, sluice_error *err)
{
    bool found = true;
    uint32_t lists = 0;
    sluice_error error = {0};
    for (; lists < MAINTAIN_LISTS; lists++) {
        char name[WK_SPOOL_NAME];
        maintain_list_name(lists, name);
        PF_TRY(wk_spool_has(&job->spool, name, &found, err));
        if (!found)
            break;
    }
    if (lists == 0)
        return SLUICE_OK;
    sluice_status status = maintain_work_get(job, lists - 1, &found, &error);
    if (status == SLUICE_OK && pf_sha256_equal(&job->work.schema_identity, &base->schema_identity))
        return SLUICE_OK;
    maintain_work_drop(job);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND && err) /* not found: its base is collected */
        *err = error;
    return status == SLUICE_NOT_FOUND ? SLUICE_OK : status;
}

static sluice_status choose(maintain_job *job, co_write *write, sluice_error *err)
{
    const st_view *base = st_snapshot_view(write->base);
    bool optimizes = job->spec->options->kind == CO_OPTIMIZE, found = false;
    PF_TRY(find_list(job, base, err));
    if (job->work.ready)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->table_count; i++) {
        const st_type_def *type = st_schema_find_table(base->schema, job->tables[i]);
        if (!type) /* dropped since */
            continue;
        bool wanted = true;
        if (optimizes)
            PF_TRY(optimize_is_wanted(job, write->base, type, &wanted, err));
        if (wanted)
            PF_TRY(optimizes ? optimize_choose(job, write->base, type, err)
                             : index_choose(job, write->base, type, err));
    }
    job->work.schema_identity = base->schema_identity;
    job->work.commit = base->head;
    job->work.generation = base->generation;
    PF_TRY(maintain_work_put(job, err));
    return maintain_work_get(job, job->work.number, &found, err);
}

/* Every name that the tasks made is durable before anything names it. */
static sluice_status sync_folders(const maintain_job *job, sluice_error *err)
{
    static const char *const folders[] = {"fragments", "keys", "deletions", "indexes"};
    for (uint32_t i = 0; i < job->work.item_count; i++) {
        if (i > 0 && job->work.items[i].table == job->work.items[i - 1].table)
            continue;
        for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
            char path[64];
            (void)snprintf(path, sizeof path, "tables/%" PRIu64 "/%s", job->work.items[i].table, folders[f]);
            PF_TRY(pf_sync_dir(job->spool.volume, path, err));
        }
    }
    return SLUICE_OK;
}

static sluice_status make_payload(void *context, co_write *write, sluice_error *err)
{
    maintain_job *job = context;
    wk_executor *executor = write->executor;
    if (st_snapshot_view(write->base)->incarnation != job->incarnation)
        return pf_fail(err, SLUICE_READ_SET_CHANGED, "the branch was deleted and made again");
    PF_TRY(choose(job, write, err));
    PF_TRY(PF_FAILPOINT(MAINTAIN_AFTER_LIST, err));
    if (job->work.item_count == 0)
        return SLUICE_OK;
    PF_TRY(executor->run(executor->context, MAINTAIN_WORK + job->work.number, job->work.item_count, err));
    write->attempt->litter = true; /* a task that was tried twice, a list that was given up */
    return sync_folders(job, err);
}

/* ---- the plan half ---- */

static sluice_status add_read(const st_edit *edit, co_write *write, sluice_error *err)
{
    co_read read = {.kind = CO_READ_FRAGMENTS, .set = {.table = edit->table}};
    read.set.whole = edit->out_count > ST_LISTED_HASHES_MAX;
    if (!read.set.whole) {
        read.set.hashes = malloc((size_t)edit->out_count * sizeof *read.set.hashes);
        if (!read.set.hashes)
            return pf_fail_memory(err);
        for (uint32_t i = 0; i < edit->out_count; i++)
            read.set.hashes[i] = pf_xxh64_of(edit->out[i].fragment, strlen(edit->out[i].fragment));
        read.set.hash_count = edit->out_count;
        qsort(read.set.hashes, edit->out_count, sizeof *read.set.hashes, by_value);
    }
    sluice_status status = co_read_set_add(&write->reads, &read, err);
    if (status != SLUICE_OK)
        free(read.set.hashes);
    return status;
}

/* Edits behind the folded list go into its pages, whoever few they are. */
static sluice_status add_fold(const maintain_job *job, co_write *write, uint64_t table, sluice_error *err)
{
    const st_view *view = st_snapshot_view(write->base);
    const st_table_entry *entry = st_view_table(view, table);
    char attempt[PF_ID_TEXT], stem[56];
    if (!entry || entry->edit_count == 0)
        return SLUICE_OK;
    st_fold *folds = realloc(write->delta.folds, ((size_t)write->delta.fold_count + 1) * sizeof *folds);
    if (!folds)
        return pf_fail_memory(err);
    write->delta.folds = folds;
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(stem, sizeof stem, "%s-%um", attempt, write->plan_number);
    PF_TRY(st_fold_stage(job->graph, view, table, false, stem, &folds[write->delta.fold_count], err));
    write->delta.fold_count++;
    return SLUICE_OK;
}

static sluice_status add_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, sluice_error *err)
{
    st_edit edit = {0};
    char attempt[PF_ID_TEXT], stem[64];
    uint64_t table = job->work.items[first].table;
    bool optimizes = job->spec->options->kind == CO_OPTIMIZE;
    PF_TRY(optimizes ? optimize_edit(job, write, first, end, &edit, err)
                     : index_edit(job, write, first, end, &edit, err));
    if (edit.out_count == 0) {
        st_edit_free(&edit);
        return SLUICE_OK;
    }
    sluice_status status = add_read(&edit, write, err);
    if (status != SLUICE_OK) {
        st_edit_free(&edit);
        return status;
    }
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(stem, sizeof stem, "%s-p%u", attempt, write->plan_number);
    PF_TRY(st_delta_add_edit(job->spool.volume, &write->delta, &edit, stem, err));
    return add_fold(job, write, table, err);
}

static bool has_edit(const co_write *write, uint64_t table)
{
    for (uint32_t i = 0; i < write->delta.edit_count; i++)
        if (write->delta.edits[i].edit.table == table)
            return true;
    return false;
}

/* Rows that only records hold are moved into a fragment also where nothing is rewritten. Whoever else folds them first
 * leaves nothing to do. */
static sluice_status fold_records(const maintain_job *job, co_write *write, sluice_error *err)
{
    for (uint32_t i = 0; i < job->table_count; i++) {
        const st_table_entry *entry = st_view_table(st_snapshot_view(write->base), job->tables[i]);
        st_table_reader *reader = NULL;
        const st_type_def *type = st_schema_find_table(st_snapshot_view(write->base)->schema, job->tables[i]);
        bool attached = false, wanted = false;
        if (!entry || !type || !entry->live || entry->edit_count == 0 || has_edit(write, job->tables[i]))
            continue;
        PF_TRY(optimize_is_wanted(job, write->base, type, &wanted, err));
        if (!wanted)
            continue;
        PF_TRY(st_table_reader_get(write->base, job->tables[i], &reader, err));
        const st_table_list *list = st_table_reader_list(reader);
        for (uint32_t k = 0; k < list->count; k++)
            attached |= list->fragments[k].fragment.attached;
        if (!attached)
            continue;
        PF_TRY(add_fold(job, write, job->tables[i], err));
        write->lineage = true; /* a commit of the fold alone */
    }
    return SLUICE_OK;
}

static sluice_status add_gates(co_write *write, sluice_error *err)
{
    uint64_t incarnation = st_snapshot_view(write->base)->incarnation;
    write->gates = calloc(2 + (size_t)write->delta.edit_count, sizeof *write->gates);
    if (!write->gates)
        return pf_fail_memory(err);
    write->gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_SCHEMA, .incarnation = incarnation};
    write->gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_BRANCH, .incarnation = incarnation};
    for (uint32_t i = 0; i < write->delta.edit_count; i++)
        write->gates[write->gate_count++] = (lk_gate_key){.kind = LK_GATE_TABLE,
                                                          .incarnation = incarnation,
                                                          .table = write->delta.edits[i].edit.table,
                                                          .exclusive = true};
    return SLUICE_OK;
}

static sluice_status make_plan(void *context, co_write *write, sluice_error *err)
{
    maintain_job *job = context;
    for (uint32_t first = 0, end; first < job->work.item_count; first = end) {
        for (end = first; end < job->work.item_count && job->work.items[end].table == job->work.items[first].table;)
            end++;
        PF_TRY(add_edit(job, write, first, end, err));
    }
    if (job->spec->options->kind == CO_OPTIMIZE)
        PF_TRY(fold_records(job, write, err));
    if (job->work.item_count == 0 && write->delta.fold_count == 0)
        return SLUICE_OK;
    if (write->delta.edit_count + write->delta.fold_count == 0) {
        pf_fail(err, SLUICE_WRITE_CONFLICT, "all that was to be replaced has been taken away by another commit");
        pf_hint(err, "an overwrite, a revert or another optimize was faster; run it again");
        return SLUICE_WRITE_CONFLICT;
    }
    PF_TRY(add_gates(write, err));
    return PF_FAILPOINT(MAINTAIN_AFTER_EDITS, err);
}

/* ---- conducting ---- */

static sluice_status conduct(void *context, wk_executor *executor, void *result, sluice_error *err)
{
    static const co_writer optimize = {.adapter = &ad_optimize, .payload = make_payload, .plan = make_plan};
    static const co_writer index = {.adapter = &ad_index, .payload = make_payload, .plan = make_plan};
    maintain_job *job = context;
    const co_maintain_options *options = job->spec->options;
    maintain_answer *answer = result;
    co_writer writer = options->kind == CO_OPTIMIZE ? optimize : index;
    st_snapshot *snapshot = NULL;
    bool first = false;
    co_request request = {.branch = job->spec->branch,
                          .operation = job->spec->operation,
                          .operation_given = !pf_id_is_nil(&options->operation),
                          .request = job->spec->request,
                          .message = options->message,
                          .if_head = options->if_head};
    writer.context = job;
    job->executor = executor;
    PF_TRY(st_snapshot_open(job->graph, job->spec->branch, NULL, &snapshot, err));
    job->incarnation = st_snapshot_view(snapshot)->incarnation;
    sluice_status status = find_tables(job, snapshot, err);
    if (status == SLUICE_OK)
        status = take_folders(job, st_snapshot_view(snapshot)->schema, err);
    st_snapshot_close(snapshot);
    if (status != SLUICE_OK)
        goto done;
    request.tables = job->tables;
    request.table_count = job->table_count;
    PF_GOTO(status, done, wk_spool_put(&job->spool, CONDUCTED_NAME, "", 0, &first, err));
    job->attempt.litter = !first; /* a conductor that died may have staged a plan */
    PF_GOTO(status, done, co_write_run(job->graph, &request, &job->attempt, executor, &writer, &answer->receipt, err));
    /* What this very job has done before its conductor died is no repetition to the user. */
    if (answer->receipt.repeated && !first && !request.operation_given)
        answer->receipt.repeated = false;
    answer->litter = job->attempt.litter;
    answer->uncertain = job->attempt.uncertain;
    answer->incarnation = job->attempt.incarnation;
    answer->since = job->attempt.since;
done:
    lk_lockfile_close(job->folders);
    job->folders = NULL;
    return status;
}

const wk_job maintain_job_template = {
    .result_size = sizeof(maintain_answer), .open = open_job, .close = close_job, .task = run_task, .conduct = conduct};
