/*
 * Inference from open inputs to a schema (coord/infer.h): the first look at the files, and the schema as a schema file
 * says it.
 */
#include "coord/infer_job.h"
#include "store/format/json.h"
#include "worker/ingest/unpack.h"
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

typedef struct unpacking {
    pf_input *from;
    pf_scratch *to;
    uint64_t taken;
} unpacking;

static sluice_status take(void *context, void *bytes, size_t length, size_t *ret_got, sluice_error *err)
{
    unpacking *u = context;

    if (pf_input_is_regular(u->from))
        PF_TRY(pf_input_read_at(u->from, u->taken, bytes, length, ret_got, err));
    else
        PF_TRY(pf_input_read(u->from, bytes, length, ret_got, err));
    u->taken += *ret_got;
    return SLUICE_OK;
}

static sluice_status give(void *context, const void *bytes, size_t length, sluice_error *err)
{
    return pf_scratch_append(((unpacking *)context)->to, bytes, length, err);
}

static sluice_status read_input(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                sluice_error *err)
{
    return pf_input_read_at(context, offset, bytes, length, ret_got, err);
}

static sluice_status read_scratch(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                  sluice_error *err)
{
    return pf_scratch_read_at(context, offset, bytes, length, ret_got, err);
}

static sluice_status open_source(const load_input *input, infer_input *to, sluice_error *err)
{
    if (!input->spooled) {
        to->input.source = (wk_source){.context = input->file, .size = input->identity.size, .read = read_input};
        return SLUICE_OK;
    }
    PF_TRY(pf_scratch_open(&to->scratch, err));
    unpacking u = {.from = input->file, .to = to->scratch};
    wk_flow flow = {.context = &u, .name = pf_input_name(input->file), .take = take, .give = give};
    PF_TRY(wk_unpack(input->packing, &flow, err));
    to->input.source = (wk_source){.context = to->scratch, .size = pf_scratch_bytes(to->scratch), .read = read_scratch};
    return SLUICE_OK;
}

static sluice_status open_input(infer_job *job, uint32_t number, sluice_error *err)
{
    const load_input *input = &job->spec.inputs[number];
    infer_input *to = &job->inputs[number];

    to->input.format = wk_format_find(input->format);
    to->input.dialect = &input->dialect;
    to->input.state = &to->state;
    to->input.format->prepare(&to->input);
    while (to->type < job->type_count && strcmp(job->types[to->type].name, input->type) != 0)
        to->type++;
    if (to->type == job->type_count) {
        const st_type_def *known = job->base ? st_schema_find(job->base, input->type) : NULL;
        if (!st_name_is_valid(input->type, strlen(input->type), false))
            return pf_fail_private(err, SLUICE_INVALID_NAME, "a name that no type may have",
                                   "\"%s\" is no name for a type", input->type);
        job->types[job->type_count++] = (infer_type){.name = input->type,
                                                     .known = known != NULL,
                                                     .edge = known && known->edge,
                                                     .keyed = known && known->key_count > 0};
    }
    PF_TRY(open_source(input, to, err));
    /* The mark of another encoding is told by the survey. */
    if (wk_source_skip_mark(&to->input.source, &to->input.mark, NULL) != SLUICE_OK)
        to->input.mark = 0;
    return SLUICE_OK;
}

static sluice_status open_graph(infer_job *job, sluice_error *err)
{
    const co_load_options *options = job->spec.options;
    sluice_error error;

    if (options->graph_path == NULL)
        return SLUICE_OK;
    sluice_status status = st_graph_open(options->graph_path, PF_READ, &job->graph, &error);
    if (status == SLUICE_NOT_FOUND)
        return SLUICE_OK;
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    const char *branch = options->create_branch ? options->from : options->branch;
    PF_TRY(st_snapshot_open(job->graph, branch, NULL, &job->snapshot, err));
    job->base = st_snapshot_view(job->snapshot)->schema;
    return SLUICE_OK;
}

static sluice_status open_job(const co_load_options *options, infer_job *job, sluice_error *err)
{
    PF_TRY(load_spec_open(options, &job->spec, err));
    job->inputs = calloc(options->input_count, sizeof *job->inputs);
    job->types = calloc(options->input_count, sizeof *job->types);
    if (job->inputs == NULL || job->types == NULL)
        return pf_fail_memory(err);
    PF_TRY(open_graph(job, err));
    for (uint32_t i = 0; i < options->input_count; i++)
        PF_TRY(open_input(job, i, err));
    return SLUICE_OK;
}

static void close_job(infer_job *job)
{
    for (uint32_t i = 0; job->inputs && i < job->spec.input_count; i++) {
        infer_input *input = &job->inputs[i];
        if (input->input.format && input->input.format->release)
            input->input.format->release(&input->input);
        pf_scratch_close(input->scratch);
        free(input->headings);
    }
    for (uint32_t i = 0; i < job->type_count; i++) {
        wk_infer_free(&job->types[i].infer);
        free(job->types[i].properties);
    }
    free(job->inputs);
    free(job->types);
    st_snapshot_close(job->snapshot);
    st_graph_close(job->graph);
    load_spec_close(&job->spec);
}

/* ---- the first look ---- */

static sluice_status survey_input(infer_job *job, uint32_t number, sluice_error *err)
{
    const load_input *input = &job->spec.inputs[number];
    infer_input *from = &job->inputs[number];
    wk_survey survey = {.infer = &job->types[from->type].infer,
                        .argument = number,
                        .has_header = input->has_header,
                        .piece = job->spec.piece};
    wk_fault fault = {.line = 1};
    sluice_error error = {0};

    sluice_status status =
        from->input.format->survey(&from->input, &job->inputs[input->header_of].input, &survey, &fault, &error);
    from->headings = survey.headings;
    from->heading_count = survey.heading_count;
    fault.argument = input->header_of;
    if (status == SLUICE_OK)
        return fault.present ? infer_fail(job, &fault, err) : SLUICE_OK;
    if (status == SLUICE_RESOURCE_LIMIT)
        return pf_fail_private(err, status, "an input exceeds a limit", "%s: %s", input->path, error.text);
    if (err)
        *err = error;
    return status;
}

/* A bare :ID is a property called id. */
static sluice_status name_bare_id(infer_type *type, wk_infer_column *column, sluice_error *err)
{
    for (uint32_t i = 0; i < type->infer.count; i++)
        if (type->infer.columns[i].role == WK_ROLE_PROPERTY && strcmp(type->infer.columns[i].name, "id") == 0) {
            (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "an :ID without a name, beside a property called id",
                                  "type %s: there is a column \":ID\" without a name, and another one called \"id\"",
                                  type->name);
            pf_hint(err, "give the first one a name, for instance key:ID");
            return SLUICE_INPUT_SYNTAX;
        }
    free(column->name);
    column->name = strdup("id");
    return column->name ? SLUICE_OK : pf_fail_memory(err);
}

/* One column whose name holds what often delimits columns, where nobody has said what does. */
static sluice_status check_delimiter(const infer_job *job, const infer_type *type, sluice_error *err)
{
    static const char *const flags[] = {"';'", "'|'"};
    const char *name = type->infer.columns[0].name;
    const char *mark = name ? strpbrk(name, ";|") : NULL;
    bool csv = false;
    for (uint32_t i = 0; i < job->spec.input_count; i++)
        csv |= &job->types[job->inputs[i].type] == type && job->spec.inputs[i].has_header;
    if (!mark || !csv || job->spec.options->dialect.delimiter)
        return SLUICE_OK;
    (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "a file has one column, whose name looks like several",
                          "type %s: its only column is called \"%s\"", type->name, name);
    pf_hint(err, "if that is several columns, add: --delimiter %s; if it is one: --delimiter ,", flags[*mark == '|']);
    return SLUICE_INPUT_SYNTAX;
}

static sluice_status finish_type(infer_job *job, infer_type *type, sluice_error *err)
{
    wk_fault fault;

    wk_infer_finish(&type->infer, job->spec.options->ignore_unknown, &fault);
    if (fault.present)
        return infer_fail(job, &fault, err);
    if (type->infer.count == 1)
        PF_TRY(check_delimiter(job, type, err));
    type->edge = type->infer.edge;
    type->properties = calloc((size_t)type->infer.count + 1, sizeof *type->properties);
    if (type->properties == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < type->infer.count; i++) {
        wk_infer_column *column = &type->infer.columns[i];
        if (column->role != WK_ROLE_PROPERTY)
            continue;
        if (column->is_id && column->name[0] == '\0')
            PF_TRY(name_bare_id(type, column, err));
        type->properties[type->property_count++] = i;
        if (!column->is_id || type->edge)
            continue;
        if (type->key_count == ST_KEY_MEMBERS_MAX)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a type has more than %u columns :ID", ST_KEY_MEMBERS_MAX);
        type->key[type->key_count++] = i;
    }
    return SLUICE_OK;
}

static sluice_status survey(infer_job *job, sluice_error *err)
{
    for (uint32_t i = 0; i < job->spec.input_count; i++)
        if (!job->types[job->inputs[i].type].known || !job->spec.inputs[i].dialect.no_header)
            PF_TRY(survey_input(job, i, err)); /* of a known type: whether it names its rows */
    for (uint32_t i = 0; i < job->type_count; i++)
        if (!job->types[i].known)
            PF_TRY(finish_type(job, &job->types[i], err));
    return SLUICE_OK;
}

/* ---- the schema ---- */

static void write_property(st_json *json, const infer_type *type, uint32_t number)
{
    const wk_infer_column *column = &type->infer.columns[number];
    bool nullable = column->nullable || column->null || (column->stored && !type->verified);
    char text[32];
    size_t length = strlen(st_type_name(column->type));

    for (uint32_t i = 0; i < type->key_count; i++)
        nullable &= type->key[i] != number;
    memcpy(text, st_type_name(column->type), length);
    if (nullable)
        text[length++] = '?';
    st_json_name(json, column->name);
    st_json_bytes_text(json, text, length);
}

static void write_type(st_json *json, const infer_type *type)
{
    static const char *const words[2] = {"from", "to"};

    st_json_name(json, type->name);
    st_json_object(json);
    for (unsigned end = 0; type->edge && end < 2; end++) {
        st_json_name(json, words[end]);
        st_json_text(json, type->ends[end]);
    }
    if (type->key_count > 0) {
        st_json_name(json, "key");
        st_json_array(json);
        for (uint32_t i = 0; i < type->key_count; i++)
            st_json_text(json, type->infer.columns[type->key[i]].name);
        st_json_array_end(json);
    }
    st_json_name(json, "properties");
    st_json_object(json);
    for (uint32_t i = 0; i < type->property_count; i++)
        write_property(json, type, type->properties[i]);
    st_json_object_end(json);
    st_json_object_end(json);
}

static void write_kind(st_json *json, const infer_job *job, const char *name, bool edges, pf_buffer *scratch)
{
    st_json_name(json, name);
    st_json_object(json);
    for (uint32_t i = 0; job->base && i < job->base->type_count; i++)
        if (job->base->types[i].edge == edges)
            st_schema_show_type(json, job->base, &job->base->types[i], scratch);
    for (uint32_t i = 0; i < job->type_count; i++) {
        const infer_type *type = &job->types[i];
        if (!type->known && type->edge == edges && (!edges || (type->ends[0] && type->ends[1])))
            write_type(json, type);
    }
    st_json_object_end(json);
}

sluice_status infer_schema(const infer_job *job, st_schema **ret_schema, sluice_error *err)
{
    st_json json;
    pf_buffer text = {0}, scratch = {0};

    st_json_begin(&json, &text);
    st_json_object(&json);
    write_kind(&json, job, "nodes", false, &scratch);
    write_kind(&json, job, "edges", true, &scratch);
    st_json_object_end(&json);
    sluice_status status = st_json_end(&json, true, err);
    if (status == SLUICE_OK)
        status = st_schema_parse((const char *)text.data, text.length, "the inferred schema", ret_schema, err);
    pf_buffer_free(&text);
    pf_buffer_free(&scratch);
    return status;
}

/* ---- all of it ---- */

static sluice_status count_rows(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err)
{
    (void)err;
    *(uint64_t *)context += rows->rows;
    *ret_stop = false;
    return SLUICE_OK;
}

/* A type that the graph has already: only whether its rows would do. */
static sluice_status check_known(infer_job *job, infer_type *type, sluice_error *err)
{
    wk_fault fault;
    int end;

    type->infer.records = 0;
    PF_TRY(infer_walk(job, type, job->base, count_rows, &type->infer.records, &fault, &end, err));
    return fault.present ? infer_fail(job, &fault, err) : SLUICE_OK;
}

static sluice_status infer(infer_job *job, sluice_error *err)
{
    PF_TRY(survey(job, err));
    for (unsigned edges = 0; edges < 2; edges++)
        for (uint32_t i = 0; i < job->type_count; i++) {
            infer_type *type = &job->types[i];
            if (type->edge != edges)
                continue;
            if (type->known)
                PF_TRY(check_known(job, type, err));
            else
                PF_TRY(edges ? infer_edge(job, type, err) : infer_node(job, type, err));
            infer_say(job, type);
        }
    for (uint32_t i = 0; i < job->spec.input_count; i++)
        PF_TRY(pf_input_check(job->spec.inputs[i].file, &job->spec.inputs[i].identity, err));
    return SLUICE_OK;
}

sluice_status co_infer(const co_load_options *options, co_infer_said *said, void *context, st_schema **ret_schema,
                       sluice_error *err)
{
    infer_job job = {.said = said, .said_context = context};
    sluice_status status;

    PF_GOTO(status, done, open_job(options, &job, err));
    PF_GOTO(status, done, infer(&job, err));
    status = infer_schema(&job, ret_schema, err);
done:
    close_job(&job);
    return status;
}
