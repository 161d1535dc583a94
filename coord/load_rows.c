/*
 * Rows: what the columns of each input are, the tasks that stage chunks, and the catalogue of what they staged.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "platform/sabotage.h"
#include "store/format/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_NAME "stop"

/* ---- the payload: under which schema rows are staged ---- */

static void payload_name(uint32_t number, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "payload-%u", number);
}

/* The columns of an input. What is wrong with a header is kept as a fault. */
static sluice_status map_columns(load_job *job, uint32_t number, sluice_error *err)
{
    const load_input *input = &job->spec->inputs[number];
    load_file *file = &job->files[number];

    file->fault = (wk_fault){.line = 1};
    PF_TRY(
        file->input.format->map(&file->input, &job->files[input->header_of].input, &file->columns, &file->fault, err));
    file->fault.argument = input->header_of;
    return SLUICE_OK;
}

/* Nodes first: what edges name depends on how nodes are named. */
static sluice_status map_all(load_job *job, sluice_error *err)
{
    for (uint32_t i = 0; i < job->spec->input_count; i++)
        if (!job->files[i].columns.type->edge)
            PF_TRY(map_columns(job, i, err));
    PF_TRY(load_names_find(job, err));
    for (uint32_t i = 0; i < job->spec->input_count; i++)
        if (job->files[i].columns.type->edge) {
            load_names_name_ends(job, i);
            PF_TRY(map_columns(job, i, err));
        }
    return load_names_spaces(job, err);
}

void load_payload_drop(load_job *job)
{
    for (uint32_t i = 0; job->files && i < job->spec->input_count; i++) {
        wk_mapping_free(&job->files[i].columns.mapping);
        job->files[i].columns = (wk_columns){0};
        for (unsigned w = 0; w < 3; w++)
            free(job->files[i].spaces[w]);
        memset(job->files[i].spaces, 0, sizeof job->files[i].spaces);
    }
    load_names_drop(job);
    st_schema_free(job->payload.schema);
    job->payload = (load_payload){0};
    load_catalogue_drop(job);
}

sluice_status load_payload_get(load_job *job, uint32_t number, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    bool found = false;
    sluice_status status;

    if (job->payload.ready && job->payload.number == number)
        return SLUICE_OK;
    load_payload_drop(job);
    payload_name(number, name);
    PF_GOTO(status, done, wk_spool_get(&job->spool, name, &buffer, &found, err));
    if (!found || buffer.length != sizeof job->payload.identity.bytes) {
        status = pf_fail(err, SLUICE_INTERNAL, "payload %u of the load is missing", number);
        goto done;
    }
    memcpy(job->payload.identity.bytes, buffer.data, buffer.length);
    PF_GOTO(status, done, st_schema_fetch(job->spool.volume, &job->payload.identity, &job->payload.schema, err));
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        load_file *file = &job->files[i];
        file->columns = (wk_columns){.schema = job->payload.schema,
                                     .type = st_schema_find(job->payload.schema, job->spec->inputs[i].type),
                                     .ignore_unknown = job->spec->options->ignore_unknown,
                                     .partial = load_completes(job)};
        if (file->columns.type == NULL) {
            status = pf_fail_private(err, SLUICE_USAGE, "an input names an unknown type", "there is no type \"%s\"",
                                     job->spec->inputs[i].type);
            goto done;
        }
    }
    PF_GOTO(status, done, map_all(job, err));
    job->payload.number = number;
    job->payload.ready = true;
done:
    pf_buffer_free(&buffer);
    if (status != SLUICE_OK)
        load_payload_drop(job);
    return status;
}

/* The payload of this schema: an earlier conductor's, or the next one. */
sluice_status load_payload_begin(load_job *job, const st_view *base, sluice_error *err)
{
    pf_buffer buffer = {0};
    sluice_status status = SLUICE_OK;
    const pf_sha256 *identity = &base->schema_identity;

    for (uint32_t number = 0; number < LOAD_PAYLOADS; number++) {
        char name[WK_SPOOL_NAME];
        bool found = false;
        payload_name(number, name);
        PF_GOTO(status, done, wk_spool_put(&job->spool, name, identity->bytes, sizeof identity->bytes, NULL, err));
        PF_GOTO(status, done, wk_spool_get(&job->spool, name, &buffer, &found, err));
        if (found && buffer.length == sizeof identity->bytes &&
            memcmp(buffer.data, identity->bytes, buffer.length) == 0) {
            status = load_payload_get(job, number, err);
            goto done;
        }
    }
    status = pf_fail(err, SLUICE_REBASE_EXHAUSTED, "the schema changed %u times under the load", LOAD_PAYLOADS);
done:
    pf_buffer_free(&buffer);
    return status;
}

/* ---- one chunk ---- */

static void staged_name(uint32_t payload, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "task-%u-%u.json", LOAD_ROWS + payload, task);
}

/* A node type that an input up to `last` has edges of: its rows are needed to judge them. */
static bool is_end_of_earlier(const load_job *job, const st_type_def *type, uint32_t last)
{
    for (uint32_t i = 0; i <= last && i < job->spec->input_count; i++) {
        const st_type_def *edge = job->files[i].columns.type;
        if (edge->edge &&
            (&job->payload.schema->types[edge->from] == type || &job->payload.schema->types[edge->to] == type))
            return true;
    }
    return false;
}

/* A strict load that has met a fault is lost; chunks behind that fault need not be read, except nodes that edges before
 * it may name. The mark is the first fault met, not the least; so what lies before the least is always read. */
static sluice_status is_behind_stop(load_job *job, uint32_t input, uint32_t chunk, bool *ret_behind, sluice_error *err)
{
    pf_buffer buffer = {0};
    bool found = false;
    uint32_t stop[2];
    sluice_status status = SLUICE_OK;

    *ret_behind = false;
    if (job->spec->options->skip_bad_rows)
        return SLUICE_OK;
    status = wk_spool_get(&job->spool, STOP_NAME, &buffer, &found, err);
    if (status == SLUICE_OK && found && buffer.length == sizeof stop) {
        memcpy(stop, buffer.data, sizeof stop);
        bool behind = input > stop[0] || (input == stop[0] && chunk > stop[1]);
        *ret_behind = behind && !is_end_of_earlier(job, job->files[input].columns.type, stop[0]);
    }
    pf_buffer_free(&buffer);
    return status;
}

static void advance(void *context, uint64_t rows, uint64_t bytes)
{
    load_job *job = context;
    if (job->executor->advance)
        job->executor->advance(job->executor->context, rows, bytes);
}

/* What load-local names a chunk has to do with. */
static sluice_status use_names(load_job *job, const load_file *file, wk_stage *request, sluice_error *err)
{
    const wk_columns *columns = &file->columns;
    const st_schema *schema = job->payload.schema;

    if (columns->names_rows)
        request->name_type = &load_names_of(job, columns->type)->type;
    for (unsigned end = 0; end < 2; end++)
        if (columns->named[end]) {
            PF_TRY(load_names_get(job, err));
            request->ends[end] =
                &load_names_of(job, &schema->types[end == 0 ? columns->type->from : columns->type->to])->names;
        }
    return SLUICE_OK;
}

static sluice_status stage(load_job *job, uint32_t task, uint32_t input, uint32_t chunk, wk_staged *ret_staged,
                           sluice_error *err)
{
    const load_file *file = &job->files[input];
    bool behind = false;
    wk_staged names = {.table = file->columns.type->table, .argument = input, .chunk = chunk};
    sluice_status status;
    char absent[WK_SPOOL_NAME];

    *ret_staged = (wk_staged){.table = file->columns.type->table, .argument = input, .chunk = chunk};
    PF_TRY(is_behind_stop(job, input, chunk, &behind, err));
    if (file->fault.present) {
        ret_staged->damaged = true;
        ret_staged->damage = ret_staged->least = file->fault;
    }
    if (behind || file->fault.present)
        return SLUICE_OK;
    load_absent_name(job, task, absent);
    wk_stage request = {.spool = &job->spool,
                        .number = ((uint64_t)job->payload.number << 40) + (uint64_t)task * WK_SINK_NAMES,
                        .view = load_chunk_view(job, input, chunk),
                        .argument = input,
                        .chunk = chunk,
                        .shape = &file->shape,
                        .has_header = job->spec->inputs[input].has_header,
                        .compress = job->spec->options->compress,
                        .keep_lines = job->spec->options->skip_bad_rows,
                        .absent = load_completes(job) ? absent : NULL,
                        .advance = advance,
                        .advance_context = job};
    request.ret_names = &names;
    PF_TRY(use_names(job, file, &request, err));
    status = wk_stage_chunk(&request, ret_staged, err);
    if (status == SLUICE_OK && request.name_type)
        status = load_names_put(job, task, &names, err);
    wk_staged_free(&names);
    return status;
}

static sluice_status leave_result(load_job *job, uint32_t task, const char *name, const wk_staged *staged,
                                  sluice_error *err)
{
    char lines[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    uint32_t place[2] = {staged->argument, staged->chunk};
    sluice_status status = SLUICE_OK;

    if (staged->least.present && !job->spec->options->skip_bad_rows)
        PF_GOTO(status, done, wk_spool_put(&job->spool, STOP_NAME, place, sizeof place, NULL, err));
    if (staged->lines) {
        load_lines_name(job->payload.number, task, lines);
        PF_GOTO(status, done,
                wk_spool_put(&job->spool, lines, staged->lines, staged->records * sizeof *staged->lines, NULL, err));
    }
    PF_GOTO(status, done, wk_staged_encode(staged, &buffer, err));
    PF_GOTO(status, done, wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err));
    status = PF_FAILPOINT(LOAD_AFTER_TASK_RESULT, err);
done:
    pf_buffer_free(&buffer);
    return status;
}

sluice_status load_row_task(load_job *job, uint32_t task, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    uint32_t input, chunk;
    bool done = false;
    wk_staged staged = {0};
    sluice_status status;

    staged_name(job->payload.number, task, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    PF_TRY(load_places_get(job, err));
    load_find_chunk(job, task, &input, &chunk);
    status = stage(job, task, input, chunk, &staged, err);
    if (status == SLUICE_OK)
        status = leave_result(job, task, name, &staged, err);
    wk_staged_free(&staged);
    return status;
}

/* ---- the catalogue ---- */

void load_catalogue_drop(load_job *job)
{
    load_dead_drop(job);
    load_lines_close(job);
    for (uint32_t i = 0; i < job->catalogue.count; i++)
        wk_staged_free(&job->catalogue.items[i]);
    free(job->catalogue.items);
    job->catalogue = (wk_catalogue){0};
    job->has_catalogue = false;
}

sluice_status load_staged_get(load_job *job, uint32_t task, pf_buffer *buffer, wk_staged *ret_staged, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    bool found = false;

    staged_name(job->payload.number, task, name);
    PF_TRY(wk_spool_get(&job->spool, name, buffer, &found, err));
    if (!found)
        return pf_fail(err, SLUICE_INTERNAL, "the result of row task %u is missing", task);
    return wk_staged_decode(buffer->data, buffer->length, ret_staged, err);
}

sluice_status load_catalogue_get(load_job *job, sluice_error *err)
{
    pf_buffer buffer = {0};
    sluice_status status = SLUICE_OK;

    if (job->has_catalogue)
        return SLUICE_OK;
    load_catalogue_drop(job);
    job->catalogue.items = calloc((size_t)job->chunk_count + 1, sizeof *job->catalogue.items);
    if (job->catalogue.items == NULL)
        return pf_fail_memory(err);
    for (uint32_t task = 0; task < job->chunk_count; task++) {
        PF_GOTO(status, done, load_staged_get(job, task, &buffer, &job->catalogue.items[task], err));
        job->catalogue.count++;
    }
    PF_GOTO(status, done, load_names_apply(job, err));
    job->has_catalogue = true;
done:
    pf_buffer_free(&buffer);
    if (status != SLUICE_OK)
        load_catalogue_drop(job);
    return status;
}

sluice_status load_sync_folders(const load_job *job, const wk_catalogue *catalogue, sluice_error *err)
{
    static const char *const folders[] = {"fragments", "keys"};
    const st_schema *schema = job->payload.schema;

    for (uint32_t t = 0; t < schema->type_count; t++) {
        bool any = false;
        for (uint32_t i = 0; i < catalogue->count && !any; i++)
            any = catalogue->items[i].table == schema->types[t].table && catalogue->items[i].add.fragment.rows > 0;
        for (size_t f = 0; any && f < sizeof folders / sizeof *folders; f++) {
            char path[64];
            (void)snprintf(path, sizeof path, "tables/%" PRIu64 "/%s", schema->types[t].table, folders[f]);
            if (!PF_SABOTAGE(fragment_name_not_synced))
                PF_TRY(pf_sync_dir(job->spool.volume, path, err));
        }
    }
    return SLUICE_OK;
}

void load_rows_least(const load_job *job, wk_fault *ret_fault)
{
    *ret_fault = (wk_fault){0};
    for (uint32_t i = 0; i < job->catalogue.count; i++)
        wk_fault_least(ret_fault, &job->catalogue.items[i].least);
}
