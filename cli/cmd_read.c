/*
 * get, count, neighbors: single objects, numbers of rows, and what is reached over edges.
 */
#include "cli/error.h"
#include "cli/rows.h"
#include "store/read/key_text.h"
#include <stdlib.h>
#include <string.h>

/* ---- count ---- */

enum { COUNT_BRANCH, COUNT_AT, COUNT_OPTIONS };
static const cli_option count_options[COUNT_OPTIONS] = {
    [COUNT_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [COUNT_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};

static sluice_status count_as_json(cli_run *run, cli_place *place, const st_type_def *only, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(place->snapshot)->schema;
    cli_json document;
    sluice_status status = SLUICE_OK;
    cli_json_begin(&document);
    st_json_object(&document.json);
    for (uint32_t i = 0; i < schema->type_count && status == SLUICE_OK; i++) {
        uint64_t rows;
        if (only && only != &schema->types[i])
            continue;
        status = st_snapshot_count(place->snapshot, &schema->types[i], &rows, err);
        st_json_name(&document.json, schema->types[i].name);
        st_json_unsigned(&document.json, status == SLUICE_OK ? rows : 0);
    }
    st_json_object_end(&document.json);
    if (status == SLUICE_OK)
        return cli_json_end(run, &document, err);
    pf_buffer_free(&document.buffer);
    return status;
}

static sluice_status count_as_table(cli_run *run, cli_place *place, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(place->snapshot)->schema;
    cli_table table = {0};
    sluice_status status;
    PF_GOTO(status, done, cli_table_begin(run->out, 2, &table, err));
    cli_table_right(&table, 1);
    PF_GOTO(status, done, cli_table_text(&table, "type", err));
    PF_GOTO(status, done, cli_table_text(&table, "rows", err));
    for (uint32_t i = 0; i < schema->type_count; i++) {
        uint64_t rows;
        PF_GOTO(status, done, st_snapshot_count(place->snapshot, &schema->types[i], &rows, err));
        PF_GOTO(status, done, cli_table_text(&table, schema->types[i].name, err));
        PF_GOTO(status, done, cli_table_number(&table, rows, err));
    }
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    return status;
}

static sluice_status run_count(cli_run *run, sluice_error *err)
{
    const st_type_def *type = NULL;
    cli_place place;
    sluice_status status;
    uint64_t rows;
    PF_GOTO(
        status, done,
        cli_open_snapshot(run, cli_text_or(run, COUNT_BRANCH, NULL), cli_text_or(run, COUNT_AT, NULL), &place, err));
    if (run->arguments.operand_count == 2)
        PF_GOTO(status, done, st_snapshot_type(place.snapshot, run->arguments.operands[1], &type, err));
    if (run->arguments.json) {
        status = count_as_json(run, &place, type, err);
    } else if (!type) {
        status = count_as_table(run, &place, err);
    } else {
        PF_GOTO(status, done, st_snapshot_count(place.snapshot, type, &rows, err));
        status = cli_print(run, err, "%llu\n", (unsigned long long)rows);
    }
done:
    cli_close_snapshot(&place);
    return status;
}

const cli_command cli_count = {.name = "count",
                               .operands = "GRAPH [TYPE]",
                               .summary = "Print the number of rows of a type, or of every type.",
                               .options = count_options,
                               .option_count = COUNT_OPTIONS,
                               .least = 1,
                               .most = 2,
                               .effect = CLI_READS,
                               .run = run_count};

/* ---- get ---- */

enum { GET_BRANCH, GET_AT, GET_OPTIONS };
static const cli_option get_options[GET_OPTIONS] = {
    [GET_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [GET_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};

/* One object for people: a line per property. */
static sluice_status print_object(cli_run *run, cli_rows *rows, const st_column *const *columns, uint64_t row,
                                  uint64_t row_id, sluice_error *err)
{
    pf_buffer line = {0};
    pf_buffer value = {0};
    sluice_status status = SLUICE_OK;
    if (rows->row_id)
        PF_GOTO(status, done, pf_buffer_append_format(&line, err, "_row_id: %llu\n", (unsigned long long)row_id));
    for (uint32_t i = 0; i < rows->count; i++) {
        value.length = 0;
        PF_GOTO(status, done, cli_append_visible(&line, rows->specs[i]->name, strlen(rows->specs[i]->name), err));
        PF_GOTO(status, done, pf_buffer_append(&line, ": ", 2, err));
        if (st_column_is_null(columns[i], row))
            PF_GOTO(status, done, pf_buffer_append_text(&value, "null", err));
        else
            PF_GOTO(status, done, st_value_json(columns[i], row, &value, err));
        PF_GOTO(status, done, cli_append_visible(&line, value.data, value.length, err));
        PF_GOTO(status, done, pf_buffer_append(&line, "\n", 1, err));
    }
    PF_GOTO(status, done, pf_buffer_append(&line, "\n", 1, err));
    status = cli_write(run, line.data, line.length, err);
done:
    pf_buffer_free(&line);
    pf_buffer_free(&value);
    return status;
}

/* What a command reads one row into. */
typedef struct found_object {
    const st_type_def *type;
    st_column_spec *specs;
    uint32_t count;
    st_column_builder **builders;
    st_column *views;
    const st_column **columns;
    const st_column_spec **spec_list;
    cli_rows rows;
} found_object;

static void free_object(found_object *object)
{
    for (uint32_t i = 0; i < object->count; i++) {
        st_column_spec_free(&object->specs[i]);
        if (object->builders)
            st_column_builder_free(object->builders[i]);
    }
    free(object->specs);
    free(object->builders);
    free(object->views);
    free(object->columns);
    free(object->spec_list);
    cli_rows_free(&object->rows);
}

static sluice_status prepare_object(cli_run *run, cli_place *place, found_object *object, sluice_error *err)
{
    const st_schema *schema = st_snapshot_view(place->snapshot)->schema;
    PF_TRY(st_snapshot_type(place->snapshot, run->arguments.operands[1], &object->type, err));
    PF_TRY(st_type_columns(schema, object->type, &object->specs, &object->count, err));
    size_t count = (size_t)object->count + 1;
    object->builders = calloc(count, sizeof(void *));
    object->views = calloc(count, sizeof *object->views);
    object->columns = calloc(count, sizeof(void *));
    object->spec_list = calloc(count, sizeof(void *));
    if (!object->builders || !object->views || !object->columns || !object->spec_list)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < object->count; i++) {
        PF_TRY(st_column_builder_new(&object->specs[i], &object->builders[i], err));
        object->columns[i] = &object->views[i];
        object->spec_list[i] = &object->specs[i];
    }
    return cli_rows_begin(&object->rows, CLI_FORMAT_JSONL, run->out, object->spec_list, object->count,
                          cli_has_row_id(object->type), err);
}

static sluice_status get_one(cli_run *run, cli_place *place, found_object *object, const char *text, bool *ret_found,
                             sluice_error *err)
{
    st_key_values key;
    st_table_reader *reader;
    sluice_status status;
    uint32_t fragment;
    uint64_t position;
    uint64_t row_id;
    PF_GOTO(status, done, st_key_parse(object->type, text, &key, err));
    PF_GOTO(status, done, st_table_reader_get(place->snapshot, object->type->table, &reader, err));
    PF_GOTO(status, done, st_table_find_key(reader, key.columns, key.count, 0, ret_found, &fragment, &position, err));
    if (!*ret_found) {
        cli_note("%s %s: not found", object->type->name, text);
        goto done;
    }
    for (uint32_t i = 0; i < object->count; i++)
        st_builder_truncate(object->builders[i], 0);
    PF_GOTO(status, done,
            st_table_row(place->snapshot, object->type, reader, fragment, position, object->builders, &row_id, err));
    for (uint32_t i = 0; i < object->count; i++)
        st_builder_view(object->builders[i], &object->views[i]);
    status = run->arguments.json ? cli_rows_add(&object->rows, object->columns, 0, row_id, err)
                                 : print_object(run, &object->rows, object->columns, 0, row_id, err);
done:
    st_key_values_free(&key);
    return status;
}

static sluice_status run_get(cli_run *run, sluice_error *err)
{
    cli_place place;
    found_object object = {0};
    uint32_t found_count = 0;
    sluice_status status;
    PF_GOTO(status, done,
            cli_open_snapshot(run, cli_text_or(run, GET_BRANCH, NULL), cli_text_or(run, GET_AT, NULL), &place, err));
    PF_GOTO(status, done, prepare_object(run, &place, &object, err));
    for (uint32_t i = 2; i < run->arguments.operand_count; i++) {
        bool found = false;
        PF_GOTO(status, done, get_one(run, &place, &object, run->arguments.operands[i], &found, err));
        found_count += found;
    }
    if (found_count == 0) {
        status = pf_fail(err, SLUICE_NOT_FOUND, "none of the keys is there");
        st_key_hint(object.type, err);
    }
done:
    free_object(&object);
    cli_close_snapshot(&place);
    return status;
}

const cli_command cli_get = {.name = "get",
                             .operands = "GRAPH TYPE KEY...",
                             .summary = "Print objects by key.",
                             .options = get_options,
                             .option_count = GET_OPTIONS,
                             .least = 3,
                             .most = UINT32_MAX,
                             .effect = CLI_READS,
                             .run = run_get};

/* ---- neighbors ---- */

enum { NEIGHBORS_EDGE, NEIGHBORS_DIRECTION, NEIGHBORS_DEPTH, NEIGHBORS_BRANCH, NEIGHBORS_AT, NEIGHBORS_OPTIONS };
static const cli_option neighbors_options[NEIGHBORS_OPTIONS] = {
    [NEIGHBORS_EDGE] = {"edge", 0, CLI_TEXT, "E", "follow edges of this type only"},
    [NEIGHBORS_DIRECTION] = {"direction", 0, CLI_CHOICE, "out|in|both", "which way edges are followed (default: out)"},
    [NEIGHBORS_DEPTH] = {"depth", 0, CLI_NUMBER, "N", "over how many edges (default: 1)"},
    [NEIGHBORS_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [NEIGHBORS_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};

typedef struct reached_nodes {
    cli_run *run;
    cli_table table;
    pf_buffer text;
} reached_nodes;

static sluice_status print_neighbor(void *context, const st_type_def *type, const st_column *const *key,
                                    uint32_t key_count, uint64_t row, uint32_t depth, sluice_error *err)
{
    reached_nodes *reached = context;
    reached->text.length = 0;
    if (!reached->run->arguments.json) {
        PF_TRY(st_key_to_text(key, key_count, row, &reached->text, err));
        PF_TRY(cli_table_text(&reached->table, type->name, err));
        PF_TRY(cli_table_cell(&reached->table, reached->text.data, reached->text.length, err));
        return cli_table_number(&reached->table, depth, err);
    }
    cli_json document;
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "type");
    st_json_text(&document.json, type->name);
    st_json_name(&document.json, "key");
    sluice_status status = st_key_to_json(key, key_count, row, &reached->text, err);
    st_json_raw(&document.json, (const char *)reached->text.data, reached->text.length);
    st_json_name(&document.json, "depth");
    st_json_unsigned(&document.json, depth);
    st_json_object_end(&document.json);
    if (status == SLUICE_OK)
        return cli_json_end(reached->run, &document, err);
    pf_buffer_free(&document.buffer);
    return status;
}

static sluice_status refuse_nodes(const st_schema *schema, const char *name, sluice_error *err)
{
    pf_buffer list = {0};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < schema->type_count && status == SLUICE_OK; i++)
        if (schema->types[i].edge)
            status = pf_buffer_append_format(&list, err, "%s%s", list.length ? ", " : "", schema->types[i].name);
    if (status == SLUICE_OK) {
        status =
            pf_fail_private(err, SLUICE_USAGE, "--edge names a type of nodes", "--edge: %s is a type of nodes", name);
        if (list.length)
            pf_hint(err, "types of edges: %.*s", (int)(list.length < 200 ? list.length : 200), (const char *)list.data);
        else
            pf_hint(err, "the graph has no types of edges");
    }
    pf_buffer_free(&list);
    return status;
}

static sluice_status neighbors_of(cli_run *run, cli_place *place, const st_key_values *key, const st_type_def *type,
                                  sluice_error *err)
{
    static const st_direction directions[] = {ST_OUT, ST_IN, ST_BOTH};
    const cli_value *direction = cli_option_value(run, NEIGHBORS_DIRECTION);
    const cli_value *depth = cli_option_value(run, NEIGHBORS_DEPTH);
    const cli_value *edge_name = cli_option_value(run, NEIGHBORS_EDGE);
    const st_type_def *edge = NULL;
    reached_nodes reached = {.run = run};
    sluice_status status;
    if (edge_name->given) {
        PF_TRY(st_snapshot_type(place->snapshot, edge_name->text, &edge, err));
        if (!edge->edge)
            return refuse_nodes(st_snapshot_view(place->snapshot)->schema, edge->name, err);
    }
    if (depth->given && depth->number > UINT32_MAX)
        return pf_fail(err, SLUICE_USAGE, "--depth is too large");
    if (!run->arguments.json) {
        static const char *const heads[] = {"type", "key", "depth"};
        PF_GOTO(status, done, cli_table_begin(run->out, 3, &reached.table, err));
        cli_table_right(&reached.table, 2);
        for (unsigned i = 0; i < 3; i++)
            PF_GOTO(status, done, cli_table_text(&reached.table, heads[i], err));
    }
    PF_GOTO(status, done,
            st_neighbours(place->snapshot, type, key->columns, key->count, edge, directions[direction->number],
                          depth->given ? (uint32_t)depth->number : 1, print_neighbor, &reached, err));
    if (!run->arguments.json)
        status = cli_table_end(&reached.table, err);
done:
    cli_table_free(&reached.table);
    pf_buffer_free(&reached.text);
    return status;
}

static sluice_status run_neighbors(cli_run *run, sluice_error *err)
{
    const st_type_def *type;
    cli_place place;
    st_key_values key = {0};
    st_table_reader *reader;
    bool found;
    uint32_t fragment;
    uint64_t position;
    sluice_status status;
    PF_GOTO(status, done,
            cli_open_snapshot(run, cli_text_or(run, NEIGHBORS_BRANCH, NULL), cli_text_or(run, NEIGHBORS_AT, NULL),
                              &place, err));
    PF_GOTO(status, done, st_snapshot_type(place.snapshot, run->arguments.operands[1], &type, err));
    PF_GOTO(status, done, st_key_parse(type, run->arguments.operands[2], &key, err));
    PF_GOTO(status, done, st_table_reader_get(place.snapshot, type->table, &reader, err));
    PF_GOTO(status, done, st_table_find_key(reader, key.columns, key.count, 0, &found, &fragment, &position, err));
    if (found) {
        status = neighbors_of(run, &place, &key, type, err);
        goto done;
    }
    status = pf_fail_private(err, SLUICE_NOT_FOUND, "the node is not there", "%s %s: not found", type->name,
                             run->arguments.operands[2]);
    st_key_hint(type, err);
done:
    st_key_values_free(&key);
    cli_close_snapshot(&place);
    return status;
}

const cli_command cli_neighbors = {.name = "neighbors",
                                   .operands = "GRAPH TYPE KEY",
                                   .summary = "Print the nodes that are reached from a node over edges.",
                                   .options = neighbors_options,
                                   .option_count = NEIGHBORS_OPTIONS,
                                   .least = 3,
                                   .most = 3,
                                   .effect = CLI_READS,
                                   .run = run_neighbors};
