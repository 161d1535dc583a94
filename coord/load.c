/*
 * Loads as the command line calls them: inputs are opened and everything that is wrong with the request itself is said
 * before a process is forked; then the job runs, in a pool or here; then the attempt is ended.
 */
#include "coord/load_job.h"
#include "coord/memory.h"
#include "platform/check.h"
#include "platform/clock.h"
#include "platform/process.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_DEFAULT ((size_t)1 << 20)

void co_load_result_free(co_load_result *result)
{
    free(result->types);
    free(result->bare);
    result->types = NULL;
    result->bare = NULL;
    result->type_count = result->bare_count = 0;
}

/* ---- the request ---- */

/* SLUICE_SPLIT: the pieces in which inputs are read. Results do not depend on it. */
static sluice_status find_piece(size_t *ret_piece, sluice_error *err)
{
    const char *text = getenv("SLUICE_SPLIT");
    char *end = NULL;
    unsigned long long value;

    *ret_piece = PIECE_DEFAULT;
    if (text == NULL || text[0] == '\0')
        return SLUICE_OK;
    value = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || value < 1 || value > WK_CHUNK)
        return pf_fail(err, SLUICE_USAGE, "SLUICE_SPLIT is a number of bytes from 1 to %llu",
                       (unsigned long long)WK_CHUNK);
    *ret_piece = (size_t)value;
    return SLUICE_OK;
}

static void find_header(load_spec *spec, uint32_t number)
{
    load_input *input = &spec->inputs[number];

    bool has_header = wk_format_find(input->format)->has_header;
    input->has_header = has_header && !input->dialect.no_header;
    input->header_of = number;
    for (uint32_t i = 0; has_header && input->dialect.header_first_only && i < number; i++)
        if (spec->inputs[i].format == input->format && strcmp(spec->inputs[i].type, input->type) == 0) {
            input->has_header = false;
            input->header_of = i;
            return;
        }
}

static sluice_status open_input(load_spec *spec, uint32_t number, sluice_error *err)
{
    const co_load_input *given = &spec->options->inputs[number];
    load_input *input = &spec->inputs[number];
    wk_dialect dialect = spec->options->dialect;

    input->type = given->type;
    input->path = given->path;
    if (given->format)
        dialect.format = given->format;
    PF_TRY(wk_dialect_resolve(&dialect, given->path, &input->dialect, &input->format, &input->packing, err));
    find_header(spec, number);
    PF_TRY(given->scratch ? pf_scratch_input(given->scratch, given->path, &input->file, err)
                          : pf_input_open(given->path, &input->file, err));
    for (uint32_t i = 0; i < number; i++)
        if (pf_input_is_same_stream(spec->inputs[i].file, input->file))
            return pf_fail_private(err, SLUICE_USAGE, "a stream is given as two inputs",
                                   "%s: a stream can be one input only: its bytes cannot be had twice",
                                   pf_input_name(input->file));
    input->spooled = input->packing != WK_PACKING_NONE || !pf_input_is_regular(input->file);
    spec->spooled_count += input->spooled;
    PF_TRY(pf_input_identify(input->file, &input->identity, err));
    spec->descriptors[number] = pf_input_descriptor(input->file);
    return SLUICE_OK;
}

void load_spec_close(load_spec *spec)
{
    for (uint32_t i = 0; spec->inputs && i < spec->input_count; i++)
        pf_input_close(spec->inputs[i].file);
    free(spec->inputs);
    free(spec->descriptors);
    co_source_close(&spec->source);
    *spec = (load_spec){0};
}

/* Flags of CSV that no input can heed are a mistake. */
static sluice_status check_flags(const load_spec *spec, sluice_error *err)
{
    const wk_dialect *given = &spec->options->dialect;
    bool flags = given->delimiter || given->quote || given->escape || given->null_token || given->no_header ||
                 given->header_first_only || given->columns;

    for (uint32_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].format == WK_FORMAT_CSV)
            return SLUICE_OK;
    if (!flags)
        return SLUICE_OK;
    return pf_fail(err, SLUICE_USAGE,
                   "--delimiter, --quote, --escape, --null, --no-header, --columns and --header are for CSV, and no "
                   "input is CSV");
}

sluice_status load_spec_open(const co_load_options *options, load_spec *spec, sluice_error *err)
{
    *spec = (load_spec){.options = options, .branch = options->branch ? options->branch : "main"};
    if (options->input_count == 0)
        return pf_fail(err, SLUICE_USAGE, "there is no input to load");
    PF_TRY(find_piece(&spec->piece, err));
    spec->chunk = wk_chunk_size();
    spec->operation = pf_id_is_nil(&options->operation) ? pf_id_new() : options->operation;
    spec->inputs = calloc(options->input_count, sizeof *spec->inputs);
    spec->descriptors = calloc(options->input_count, sizeof *spec->descriptors);
    if (spec->inputs == NULL || spec->descriptors == NULL)
        return pf_fail_memory(err);
    spec->input_count = options->input_count;
    for (uint32_t i = 0; i < options->input_count; i++)
        PF_TRY(open_input(spec, i, err));
    return check_flags(spec, err);
}

/* An upsert goes by keys. */
static sluice_status check_mode(const load_spec *spec, const st_type_def *type, sluice_error *err)
{
    if (spec->options->mode != CO_LOAD_UPSERT || (type->edge ? type->identity == ST_EDGE_KEYED : type->key_count > 0))
        return SLUICE_OK;
    (void)pf_fail_private(err, SLUICE_USAGE, "an input is of a type without a key, which no upsert can find",
                          "type %s has no key: --mode upsert cannot tell which rows are there already", type->name);
    pf_hint(err, "--mode insert adds the rows, --mode overwrite replaces them all");
    return SLUICE_USAGE;
}

/* What is read before the load writes: its branch, or the place where a new one begins. */
static sluice_status find_source(st_graph *graph, load_spec *spec, sluice_error *err)
{
    const co_load_options *options = spec->options;
    uint64_t incarnation = 0;

    if (options->create_branch)
        return co_source_find(graph, options->from, NULL, &spec->source, err);
    /* A load that was to make it may have died before its name stood: recovery makes it then. */
    if (st_ref_read(graph, spec->branch, &incarnation, NULL) == SLUICE_NOT_FOUND)
        PF_TRY(co_branch_settle(graph, 0, pf_deadline_in_ms(CO_WAIT_MS), err));
    spec->source.name = strdup(spec->branch);
    return spec->source.name ? SLUICE_OK : pf_fail_memory(err);
}

/* Unknown types, before any work. */
static sluice_status find_types(st_graph *graph, load_spec *spec, sluice_error *err)
{
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    sluice_status status = SLUICE_OK;

    PF_TRY(find_source(graph, spec, err));
    PF_TRY(st_snapshot_open(graph, spec->source.name, spec->source.at, &snapshot, err));
    for (uint32_t i = 0; i < spec->input_count && status == SLUICE_OK; i++) {
        status = st_snapshot_type(snapshot, spec->inputs[i].type, &type, err);
        spec->inputs[i].table = status == SLUICE_OK ? type->table : 0;
        if (status == SLUICE_OK)
            status = check_mode(spec, type, err);
    }
    st_snapshot_close(snapshot);
    return status;
}

/* ---- the end ---- */

static void add_rows(co_load_result *result, uint64_t table, uint64_t rows)
{
    for (uint32_t i = 0; i < result->type_count; i++)
        if (result->types[i].table == table)
            result->types[i].rows += rows;
}

/* Every type of the command, once, with no rows yet. */
static sluice_status list_types(const load_spec *spec, co_load_result *result, sluice_error *err)
{
    result->types = calloc(spec->input_count, sizeof *result->types);
    if (result->types == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < spec->input_count; i++) {
        uint32_t known = 0;
        while (known < result->type_count && result->types[known].table != spec->inputs[i].table)
            known++;
        if (known == result->type_count)
            result->types[result->type_count++] =
                (struct co_load_rows){.name = spec->inputs[i].type, .table = spec->inputs[i].table};
    }
    return SLUICE_OK;
}

/* What the commit added: also that of a repeated request, whose own first receipt this is. */
static sluice_status rows_of_commit(st_graph *graph, co_load_result *result, sluice_error *err)
{
    const co_receipt *receipt = &result->receipt;
    st_log *log = NULL;
    st_record record = {0};
    st_generation generation = {0};
    sluice_status status;

    PF_TRY(st_graph_log(graph, receipt->incarnation, &log, err));
    PF_TRY(st_log_refresh(log, err));
    PF_GOTO(status, done, st_log_read_lineage(log, receipt->generation, &record, err));
    PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    if (receipt->index >= generation.commit_count) {
        status = pf_fail(err, SLUICE_CORRUPT, "a receipt names a commit that its generation does not have");
        goto done;
    }
    const st_commit *commit = &generation.commits[receipt->index];
    result->rejected = commit->rejected;
    for (uint32_t i = 0; i < commit->edit_count; i++)
        add_rows(result, commit->edits[i].table, commit->edits[i].rows);
done:
    st_generation_free(&generation);
    st_record_free(&record);
    return status;
}

static sluice_status rows_of_dry_run(const load_spec *spec, const wk_spool *spool, co_load_result *result,
                                     sluice_error *err)
{
    pf_buffer buffer = {0};
    bool found = false;
    sluice_status status;

    status = wk_spool_get(spool, LOAD_RESULT_NAME, &buffer, &found, err);
    for (uint32_t i = 0; status == SLUICE_OK && found && (i + 1) * sizeof(uint64_t) <= buffer.length; i++) {
        uint64_t rows;
        memcpy(&rows, buffer.data + i * sizeof rows, sizeof rows);
        add_rows(result, spec->inputs[i].table, rows);
    }
    pf_buffer_free(&buffer);
    return status;
}

/* Fills the result. An error from here on says that the load stands, when it does. */
static sluice_status tell(st_graph *graph, const load_spec *spec, const co_attempt *attempt, const load_answer *answer,
                          pf_output *rejects, co_load_result *ret_result, sluice_error *err)
{
    wk_spool spool = {.volume = st_graph_volume(graph), .attempt = attempt->id};

    (void)snprintf(spool.folder, sizeof spool.folder, "%s", attempt->folder);
    ret_result->receipt = answer->receipt;
    sluice_status status = list_types(spec, ret_result, err);
    if (status == SLUICE_OK && answer->receipt.committed)
        status = rows_of_commit(graph, ret_result, err);
    /* A branch that it made may be deleted since, and collected: its receipt stays, the numbers of rows are gone. */
    if (status != SLUICE_OK && spec->options->create_branch && answer->receipt.repeated) {
        pf_error_clear(err);
        status = SLUICE_OK;
    }
    if (status == SLUICE_OK && !answer->receipt.committed && spec->options->dry_run)
        status = rows_of_dry_run(spec, &spool, ret_result, err);
    if (status != SLUICE_OK)
        pf_output_discard(rejects);
    else if (spec->options->skip_bad_rows)
        status = load_rejects_tell(spec, &spool, &answer->outcome, rejects, ret_result, err);
    if (status != SLUICE_OK && answer->receipt.committed) {
        err->committed = SLUICE_TRUE;
        err->acknowledged = answer->receipt.acknowledged ? SLUICE_TRUE : SLUICE_FALSE;
        pf_id_text(&answer->receipt.commit, err->commit_id);
        if (spec->options->skip_bad_rows) {
            char operation[PF_ID_TEXT];
            pf_id_text(&answer->receipt.operation, operation);
            pf_hint(err, "the load is committed; the same command with --op-id %s names the rows left out again",
                    operation);
        }
    }
    return status;
}

/* Files without rows: the branch is made all the same, without a commit of its own. The operation's receipt is that of
 * the branch. */
static sluice_status make_empty_branch(st_graph *graph, const load_spec *spec, const load_answer *answer,
                                       sluice_error *err)
{
    co_branch_request request = {.name = spec->branch,
                                 .from = spec->options->from,
                                 .operation = spec->operation,
                                 .operation_given = !pf_id_is_nil(&spec->options->operation),
                                 .request = answer->request};
    co_branch_receipt receipt;

    if (!spec->options->create_branch || spec->options->dry_run)
        return SLUICE_OK;
    return co_branch_create(graph, &request, &receipt, err);
}

typedef sluice_status run_fn(const wk_job *job, load_spec *spec, load_answer *ret_answer, sluice_error *err);

static sluice_status run_load(st_graph *graph, load_spec *spec, run_fn *run, co_load_result *ret_result,
                              sluice_error *err)
{
    co_attempt attempt = {0};
    load_answer answer = {0};
    wk_job job = load_job_template;
    sluice_error error = {0};
    int64_t started = pf_monotonic_ns();
    pf_output *rejects = NULL;
    sluice_status status;

    *ret_result = (co_load_result){0};
    PF_GOTO(status, done, find_types(graph, spec, &error));
    PF_GOTO(status, done, load_rejects_open(spec, &rejects, &error));
    status = co_attempt_make(graph, &attempt, &error);
    if (status != SLUICE_OK) {
        pf_output_discard(rejects);
        goto done;
    }
    spec->attempt = attempt.id;
    job.spec = spec;
    job.descriptors = spec->descriptors;
    job.descriptor_count = spec->input_count;
    status = run(&job, spec, &answer, &error);
    bool ran = status == SLUICE_OK;
    ret_result->memory_peak = spec->memory_peak;
    if (ran) {
        ret_result->seconds = (double)(pf_monotonic_ns() - started) / 1e9;
        status = tell(graph, spec, &attempt, &answer, rejects, ret_result, &error);
    } else {
        pf_output_discard(rejects);
    }
    co_attempt_left left = {answer.litter, answer.uncertain, answer.incarnation, answer.since};
    co_attempt_end(graph, &attempt, ran ? &left : NULL, &error);
    if (status == SLUICE_OK && ran && !answer.receipt.committed)
        status = make_empty_branch(graph, spec, &answer, &error);
    if (status == SLUICE_OK)
        return SLUICE_OK;
done:;
    const co_request request = {.operation = spec->operation,
                                .operation_given = !pf_id_is_nil(&spec->options->operation),
                                .branch = spec->branch,
                                .creates = spec->options->create_branch};
    co_write_not_begun(graph, &request, &error);
    if (err)
        *err = error;
    co_load_result_free(ret_result);
    return status;
}

typedef struct onlooker { /* of a load in this process */
    const co_load_options *options;
    int64_t started;
} onlooker;

static void tell_progress(void *observer, const wk_progress *progress)
{
    const onlooker *looks = observer;
    looks->options->progress(looks->options->progress_context, progress,
                             (pf_monotonic_ns() - looks->started) / 1000000);
}

static bool ask_cancelled(void *observer)
{
    const onlooker *looks = observer;
    return looks->options->cancelled(looks->options->progress_context);
}

static sluice_status run_here(const wk_job *job, load_spec *spec, load_answer *ret_answer, sluice_error *err)
{
    onlooker looks = {spec->options, pf_monotonic_ns()};
    wk_job watched = *job;

    watched.observer = &looks;
    watched.progress = spec->options->progress ? tell_progress : NULL;
    watched.cancelled = spec->options->cancelled ? ask_cancelled : NULL;
    return wk_run_inline(&watched, ret_answer, err);
}

sluice_status co_load_inline(st_graph *graph, const co_load_options *options, co_load_result *ret_result,
                             sluice_error *err)
{
    load_spec spec;
    sluice_status status;

    PF_GOTO(status, done, load_spec_open(options, &spec, err));
    spec.graph = graph;
    status = run_load(graph, &spec, run_here, ret_result, err);
done:
    load_spec_close(&spec);
    return status;
}

static sluice_status run_pool(const wk_job *job, load_spec *spec, load_answer *ret_answer, sluice_error *err)
{
    const co_load_options *options = spec->options;
    co_pool_options pool = {.progress_context = options->progress_context,
                            .progress = options->progress,
                            .stopped_seconds = options->stopped_seconds,
                            .peak = &spec->memory_peak};

    return co_memory_run(job, options->memory, options->workers, &pool, ret_answer, err);
}

sluice_status co_load(const co_load_options *options, co_load_result *ret_result, sluice_error *err)
{
    load_spec spec;
    st_graph *graph = NULL;
    sluice_status status;

    PF_GOTO(status, done, load_spec_open(options, &spec, err));
    PF_GOTO(status, done, st_graph_open(options->graph_path, PF_WRITE, &graph, err));
    status = run_load(graph, &spec, run_pool, ret_result, err);
done:
    st_graph_close(graph);
    load_spec_close(&spec);
    return status;
}
