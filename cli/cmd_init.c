/*
 * init: making a graph from a schema file, or from what its files look like.
 */
#include "cli/error.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "coord/infer.h"
#include <string.h>

enum {
    INIT_SCHEMA,
    INIT_INFER,
    INIT_MODE,
    INIT_INPUT,
    INIT_INPUT_LAST = INIT_INPUT + CLI_INPUT_OPTION_COUNT - 1,
    INIT_OPTIONS
};
static const cli_option init_options[INIT_OPTIONS] = {
    [INIT_SCHEMA] = {"schema", 0, CLI_TEXT, "FILE", "the types of the graph (JSON; - is standard input)"},
    [INIT_INFER] = {"infer", 0, CLI_FLAG, NULL, "the types are those that the files TYPE=FILE... have"},
    [INIT_MODE] = {"mode", 0, CLI_CHOICE, "optimistic|single|queued",
                   "how writers meet: retry on conflict (default), one at a time, or in a queue"},
    [INIT_INPUT] = CLI_INPUT_OPTIONS,
};

/* Where a power loss needs a file system check first, the user is told at once. */
static void tell_about_filesystem(const st_graph *graph)
{
    const pf_filesystem *filesystem = st_graph_filesystem(graph);
    if (!filesystem->journal)
        cli_note(
            "the filesystem (%s) has no journal: after a power loss, check it (fsck) before the graph is opened again",
            filesystem->class_name);
}

static sluice_status print_made(cli_run *run, const pf_id *id, const st_graph *graph, sluice_error *err)
{
    char text[PF_ID_TEXT];
    pf_id_text(id, text);
    if (!run->arguments.json)
        return cli_print(run, err, "%s\ngraph %s\n", run->arguments.operands[0], text);
    cli_json document;
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "path");
    st_json_text(&document.json, run->arguments.operands[0]);
    st_json_name(&document.json, "graph_id");
    st_json_text(&document.json, text);
    st_json_name(&document.json, "filesystem");
    st_json_text(&document.json, st_graph_filesystem(graph)->class_name);
    st_json_name(&document.json, "journal");
    st_json_bool(&document.json, st_graph_filesystem(graph)->journal);
    st_json_object_end(&document.json);
    return cli_json_end(run, &document, err);
}

static sluice_status read_schema(const char *file, st_schema **ret_schema, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = pf_input_read_all(file, ST_SCHEMA_FILE_MAX, &text, err);
    if (status == SLUICE_OK)
        status = st_schema_parse((const char *)text.data, text.length, file, ret_schema, err);
    pf_buffer_free(&text);
    return status;
}

static sluice_status infer_schema(const cli_run *run, st_schema **ret_schema, sluice_error *err)
{
    cli_inputs inputs = {0};
    co_load_options options = {0};
    sluice_status status = cli_inputs_check(run, INIT_INPUT, err);
    if (status == SLUICE_OK)
        status = cli_inputs_parse(run, &inputs, err);
    if (status == SLUICE_OK) {
        cli_inputs_fill(run, INIT_INPUT, &inputs, &options);
        status = co_infer(&options, cli_say, NULL, ret_schema, err);
    }
    cli_inputs_free(&inputs);
    return status;
}

static sluice_status get_schema(const cli_run *run, st_schema **ret_schema, sluice_error *err)
{
    const char *file = cli_text_or(run, INIT_SCHEMA, NULL);
    bool infer = cli_option_value(run, INIT_INFER)->given;
    if (infer == (file != NULL)) {
        pf_fail(err, SLUICE_USAGE, infer ? "--schema and --infer exclude each other" : "init wants a schema");
        pf_hint(err, "usage: sluice init GRAPH --schema FILE, or: sluice init GRAPH --infer TYPE=FILE...");
        return SLUICE_USAGE;
    }
    if (infer)
        return infer_schema(run, ret_schema, err);
    for (uint32_t i = 0; i <= INIT_INPUT_LAST - INIT_INPUT; i++)
        if (run->arguments.operand_count > 1 || cli_option_value(run, INIT_INPUT + i)->given)
            return pf_fail(err, SLUICE_USAGE, "inputs and flags of inputs go with --infer");
    return read_schema(file, ret_schema, err);
}

static sluice_status run_init(cli_run *run, sluice_error *err)
{
    static const st_write_mode modes[] = {ST_MODE_OPTIMISTIC, ST_MODE_SINGLE, ST_MODE_QUEUED};
    st_schema *schema = NULL;
    st_graph *graph = NULL;
    pf_id id;
    sluice_status status;
    PF_GOTO(status, done, get_schema(run, &schema, err));
    PF_GOTO(
        status, done,
        st_graph_init(run->arguments.operands[0], schema, modes[cli_option_value(run, INIT_MODE)->number], &id, err));
    run->stands = (cli_stands){.changed = true, .acknowledged = true};
    status = st_graph_open(run->arguments.operands[0], PF_READ, &graph, err);
    if (status == SLUICE_OK) {
        tell_about_filesystem(graph);
        status = print_made(run, &id, graph, err);
    }
done:
    st_graph_close(graph);
    st_schema_free(schema);
    return status;
}

const cli_command cli_init = {.name = "init",
                              .operands = "GRAPH --schema FILE | GRAPH --infer TYPE=FILE...",
                              .summary = "Make a new graph in the folder GRAPH.",
                              .options = init_options,
                              .option_count = INIT_OPTIONS,
                              .least = 1,
                              .most = UINT32_MAX,
                              .effect = CLI_WRITES,
                              .run = run_init};
