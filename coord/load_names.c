/*
 * Load-local names (worker/ingest/names.h; DECISIONS "Types without a key"): which inputs name their rows, which ends
 * of edges are such names, and the ids that they stand for.
 *
 * Where an input of a node type without a key names its rows, ends of edges to that type, in the same load, are these
 * names; where none does, they are ids of rows that are in the graph. Inputs that name rows are staged before all
 * others. Then the load takes a block of row ids of its own (a gap when it comes to nothing; a dry run takes none) and
 * edges are staged with these ids in place of the names. Names of one type may lie in several spaces, as the headers of
 * neo4j-admin have them: (N) in :ID(N) and :START_ID(N). A single space says nothing.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRY_BLOCK (UINT64_C(1) << 62) /* ids that no graph has */

/* ---- which rows have names ---- */

static bool has_naming(const wk_mapping *mapping, wk_naming which)
{
    for (uint32_t i = 0; i < mapping->field_count; i++)
        if (mapping->targets[i].names == which)
            return true;
    return false;
}

/* Where each record has columns of its own, the first one tells. */
static sluice_status first_names_row(load_job *job, uint32_t input, bool *ret_names, sluice_error *err)
{
    load_file *file = &job->files[input];
    void *reader = NULL;
    wk_record *record = NULL;
    uint32_t chunk = 0;
    sluice_status status;

    PF_TRY(load_places_get(job, err));
    while (chunk < file->chunks && file->places[chunk].records == 0)
        chunk++;
    if (chunk == file->chunks)
        return SLUICE_OK;
    wk_chunk_view view = load_chunk_view(job, input, chunk);
    PF_TRY(file->input.format->open(&view, &reader, err));
    status = file->input.format->next(reader, &record, err);
    if (status == SLUICE_OK && record && record->mapping)
        *ret_names = has_naming(record->mapping, WK_NAMES_ROW);
    file->input.format->close(reader);
    return status == SLUICE_RESOURCE_LIMIT ? SLUICE_OK : status; /* the row tasks tell */
}

static sluice_status find_names_rows(load_job *job, uint32_t input, sluice_error *err)
{
    load_file *file = &job->files[input];
    wk_columns *columns = &file->columns;

    if (columns->type->edge || columns->type->key_count > 0 || file->fault.present)
        return SLUICE_OK;
    if (columns->mapping.targets)
        columns->names_rows = has_naming(&columns->mapping, WK_NAMES_ROW);
    else
        PF_TRY(first_names_row(job, input, &columns->names_rows, err));
    return SLUICE_OK;
}

const load_name_set *load_names_of(const load_job *job, const st_type_def *node)
{
    for (uint32_t i = 0; i < job->names.set_count; i++)
        if (job->names.sets[i].node == node)
            return &job->names.sets[i];
    return NULL;
}

sluice_status load_names_find(load_job *job, sluice_error *err)
{
    load_names *names = &job->names;

    names->sets = calloc((size_t)job->spec->input_count + 1, sizeof *names->sets);
    if (names->sets == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        wk_columns *columns = &job->files[i].columns;
        PF_TRY(find_names_rows(job, i, err));
        if (!columns->names_rows || load_names_of(job, columns->type))
            continue;
        load_name_set *set = &names->sets[names->set_count++];
        set->node = columns->type;
        wk_name_type_make(columns->type->table, &set->type);
        set->names = (wk_names){.volume = job->spool.volume, .type = &set->type, .catalogue = &names->catalogue};
    }
    return SLUICE_OK;
}

void load_names_name_ends(load_job *job, uint32_t input)
{
    wk_columns *columns = &job->files[input].columns;
    const st_schema *schema = job->payload.schema;

    for (unsigned end = 0; columns->type->edge && end < 2; end++) {
        columns->named[end] =
            load_names_of(job, &schema->types[end == 0 ? columns->type->from : columns->type->to]) != NULL;
        job->names.wanted |= columns->named[end];
    }
}

/* ---- spaces ---- */

/* What stands in parentheses behind the colon of a column's name. */
static sluice_status find_space(const load_file *file, wk_naming which, char **ret_space, sluice_error *err)
{
    const wk_mapping *mapping = &file->columns.mapping;

    *ret_space = NULL;
    for (uint32_t i = 0; mapping->targets && i < mapping->field_count; i++) {
        const char *colon = mapping->targets[i].names == which ? strchr(mapping->targets[i].name, ':') : NULL;
        const char *open = colon ? strchr(colon, '(') : NULL, *close = open ? strchr(open, ')') : NULL;
        if (close == NULL)
            continue;
        *ret_space = strndup(open + 1, (size_t)(close - open - 1));
        return *ret_space ? SLUICE_OK : pf_fail_memory(err);
    }
    return SLUICE_OK;
}

static bool same_space(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Are the names of a type in more than one space, and is `space` one of them? */
static bool has_spaces(const load_job *job, const st_type_def *node, const char *space, bool *ret_known)
{
    const char *first = NULL;
    bool any = false, several = false;

    *ret_known = false;
    for (uint32_t i = 0; i < job->spec->input_count; i++) {
        const load_file *file = &job->files[i];
        if (!file->columns.names_rows || file->columns.type != node)
            continue;
        several |= any && !same_space(first, file->spaces[0]);
        first = any ? first : file->spaces[0];
        any = true;
        *ret_known |= same_space(space, file->spaces[0]);
    }
    return several;
}

static void use_space(load_job *job, load_file *file, unsigned which, const st_type_def *node)
{
    bool known;
    const char *space = file->spaces[which] ? file->spaces[which] : "";
    char shown[WK_SHOWN_ROOM];

    if (!has_spaces(job, node, space, &known))
        return;
    file->columns.spaces[which] = space;
    if (known || file->fault.present)
        return;
    wk_fault_set(&file->fault, SLUICE_INPUT_SYNTAX, "the %s of the edges: no input names rows of type %s in a space %s",
                 which == 1 ? "beginnings" : "ends", node->name, wk_shown(space, strlen(space), shown));
    (void)snprintf(file->fault.hint, sizeof file->fault.hint, "say which as in \":%s(SPACE)\"",
                   which == 1 ? "START_ID" : "END_ID");
    file->fault.line = 1;
}

sluice_status load_names_spaces(load_job *job, sluice_error *err)
{
    static const wk_naming which[3] = {WK_NAMES_ROW, WK_NAMES_FROM, WK_NAMES_TO};
    const st_schema *schema = job->payload.schema;

    for (uint32_t i = 0; job->names.set_count > 0 && i < job->spec->input_count; i++)
        for (unsigned w = 0; w < 3; w++)
            PF_TRY(find_space(&job->files[i], which[w], &job->files[i].spaces[w], err));
    for (uint32_t i = 0; job->names.set_count > 0 && i < job->spec->input_count; i++) {
        load_file *file = &job->files[i];
        const st_type_def *type = file->columns.type;
        if (file->columns.names_rows)
            use_space(job, file, 0, type);
        for (unsigned end = 0; end < 2; end++)
            if (file->columns.named[end])
                use_space(job, file, 1 + end, &schema->types[end == 0 ? type->from : type->to]);
    }
    return SLUICE_OK;
}

/* ---- names and ids ---- */

static void names_name(uint32_t payload, uint32_t task, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "names-%u-%u", payload, task);
}

static void block_name(uint32_t payload, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "block-%u", payload);
}

sluice_status load_names_put(load_job *job, uint32_t task, const wk_staged *names, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    sluice_status status = wk_staged_encode(names, &buffer, err);

    names_name(job->payload.number, task, name);
    if (status == SLUICE_OK)
        status = wk_spool_put(&job->spool, name, buffer.data, buffer.length, NULL, err);
    pf_buffer_free(&buffer);
    return status;
}

void load_names_drop(load_job *job)
{
    load_names *names = &job->names;

    for (uint32_t i = 0; i < names->catalogue.count; i++)
        wk_staged_free(&names->catalogue.items[i]);
    free(names->catalogue.items);
    free(names->sets);
    *names = (load_names){0};
}

static sluice_status get_block(load_job *job, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    pf_buffer buffer = {0};
    bool found = false;
    sluice_status status;

    block_name(job->payload.number, name);
    status = wk_spool_get(&job->spool, name, &buffer, &found, err);
    if (status == SLUICE_OK && (!found || buffer.length != sizeof job->names.block))
        status = pf_fail(err, SLUICE_INTERNAL, "the load's block of row ids is missing");
    if (status == SLUICE_OK)
        memcpy(&job->names.block, buffer.data, sizeof job->names.block);
    pf_buffer_free(&buffer);
    return status;
}

/* The names of one task's rows, as what was staged, but for the fragment. */
static sluice_status get_item(load_job *job, uint32_t task, pf_buffer *buffer, uint64_t *next_row, sluice_error *err)
{
    wk_staged *item = &job->names.catalogue.items[task], names = {0};
    char name[WK_SPOOL_NAME];
    uint32_t input, chunk;
    bool found = false;

    load_find_chunk(job, task, &input, &chunk);
    item->argument = input;
    item->chunk = chunk;
    if (!job->files[input].columns.names_rows)
        return SLUICE_OK;
    PF_TRY(load_staged_get(job, task, buffer, item, err));
    if (item->add.fragment.rows == 0)
        return SLUICE_OK;
    names_name(job->payload.number, task, name);
    PF_TRY(wk_spool_get(&job->spool, name, buffer, &found, err));
    if (!found)
        return pf_fail(err, SLUICE_INTERNAL, "the names of a chunk's rows are missing");
    PF_TRY(wk_staged_decode(buffer->data, buffer->length, &names, err));
    PF_ALWAYS(names.add.fragment.rows == item->add.fragment.rows);
    free(item->add.runs);
    item->add = names.add;
    names.add.runs = NULL;
    wk_staged_free(&names);
    item->add.first_row = *next_row;
    item->add.first_row_given = job->names.wanted;
    return pf_add_u64(*next_row, item->add.fragment.rows, next_row)
               ? SLUICE_OK
               : pf_fail(err, SLUICE_RESOURCE_LIMIT, "the load has more rows than there are row ids");
}

sluice_status load_names_get(load_job *job, sluice_error *err)
{
    load_names *names = &job->names;
    pf_buffer buffer = {0};
    uint64_t next_row;
    sluice_status status = SLUICE_OK;

    if (names->ready || names->set_count == 0)
        return SLUICE_OK;
    if (names->wanted)
        PF_TRY(get_block(job, err));
    free(names->catalogue.items);
    names->catalogue.items = calloc((size_t)job->chunk_count + 1, sizeof *names->catalogue.items);
    if (names->catalogue.items == NULL)
        return pf_fail_memory(err);
    next_row = names->block;
    names->catalogue.count = job->chunk_count;
    for (uint32_t task = 0; task < job->chunk_count; task++)
        PF_GOTO(status, done, get_item(job, task, &buffer, &next_row, err));
    if (names->wanted && next_row - names->block > ST_ROW_BLOCK)
        status = pf_fail(err, SLUICE_RESOURCE_LIMIT, "the load has more rows than a block has row ids");
    names->ready = status == SLUICE_OK;
done:
    pf_buffer_free(&buffer);
    return status;
}

/* A block that a dead conductor took and did not write down is a gap. */
static sluice_status take_block(load_job *job, sluice_error *err)
{
    char name[WK_SPOOL_NAME];
    uint64_t block = DRY_BLOCK;
    bool found = false;

    block_name(job->payload.number, name);
    PF_TRY(wk_spool_has(&job->spool, name, &found, err));
    if (found)
        return SLUICE_OK;
    if (!job->spec->options->dry_run)
        PF_TRY(st_control_take_row_block(job->graph, pf_deadline_in_ms(CO_WAIT_MS), &block, err));
    return wk_spool_put(&job->spool, name, &block, sizeof block, NULL, err);
}

sluice_status load_names_run(load_job *job, wk_executor *executor, sluice_error *err)
{
    if (job->names.set_count == 0)
        return SLUICE_OK;
    PF_TRY(executor->run(executor->context, LOAD_NAMED + job->payload.number, job->chunk_count, err));
    return job->names.wanted ? take_block(job, err) : SLUICE_OK;
}

sluice_status load_names_apply(load_job *job, sluice_error *err)
{
    PF_TRY(load_names_get(job, err));
    for (uint32_t i = 0; job->names.wanted && i < job->catalogue.count; i++) {
        const st_edit_add *named = &job->names.catalogue.items[i].add;
        if (!named->first_row_given)
            continue;
        job->catalogue.items[i].add.first_row = named->first_row;
        job->catalogue.items[i].add.first_row_given = true;
    }
    return SLUICE_OK;
}

sluice_status load_names_probes(load_job *job, sluice_error *err)
{
    load_names *names = &job->names;
    wk_probe *probes;

    if (names->set_count == 0)
        return SLUICE_OK;
    probes = realloc(job->plan.probes, ((size_t)job->plan.probe_count + names->set_count) * sizeof *probes);
    if (probes == NULL)
        return pf_fail_memory(err);
    job->plan.probes = probes;
    for (uint32_t i = 0; i < job->plan.probe_count; i++)
        probes[i].node_named = probes[i].rule == WK_RULE_ENDS && load_names_of(job, probes[i].node);
    memmove(probes + names->set_count, probes, job->plan.probe_count * sizeof *probes); /* keys come first */
    job->plan.probe_count += names->set_count;
    for (uint32_t s = 0; s < names->set_count; s++) {
        probes[s] = (wk_probe){.rule = WK_RULE_KEY, .type = &names->sets[s].type.type, .alone = true, .of_names = true};
        probes[s].plan = (wk_run_plan){.use = ST_RUN_UNIQUE, .count = 1};
        for (uint32_t i = 0; i < names->catalogue.count; i++)
            if (names->catalogue.items[i].table == names->sets[s].node->table)
                probes[s].entries += names->catalogue.items[i].add.fragment.rows;
    }
    return SLUICE_OK;
}
