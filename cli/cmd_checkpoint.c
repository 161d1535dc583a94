/*
 * checkpoint create, list, delete (coord/checkpoint.h does the work).
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/receipt.h"
#include "coord/checkpoint.h"
#include <string.h>

enum { CHECKPOINT_BRANCH, CHECKPOINT_AT, CHECKPOINT_DRY_RUN, CHECKPOINT_OP_ID, CHECKPOINT_OPTIONS };
static const cli_option checkpoint_options[CHECKPOINT_OPTIONS] = {
    [CHECKPOINT_BRANCH] = {"branch", 0, CLI_TEXT, "B", "create: the branch whose commit gets the name (default: main)"},
    [CHECKPOINT_AT] = {"at", 0, CLI_TEXT, "PLACE",
                       "create: a commit id, generation number, time or checkpoint (default: the head)"},
    [CHECKPOINT_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "delete: say what would go, and change nothing"},
    [CHECKPOINT_OP_ID] = {"op-id", 0, CLI_ID, "UUID", "the same id with the same request gives the first result"},
};

static sluice_status usage(sluice_error *err, const char *message, const char *form)
{
    pf_fail(err, SLUICE_USAGE, "%s", message);
    pf_hint(err, "usage: sluice checkpoint %s", form);
    return SLUICE_USAGE;
}

static sluice_status change(cli_run *run, bool creates, sluice_error *err)
{
    const cli_value *operation = cli_option_value(run, CHECKPOINT_OP_ID);
    co_checkpoint_request request = {.branch = cli_text_or(run, CHECKPOINT_BRANCH, NULL),
                                     .at = cli_text_or(run, CHECKPOINT_AT, NULL),
                                     .dry_run = cli_option_value(run, CHECKPOINT_DRY_RUN)->given,
                                     .operation = operation->given ? operation->id : pf_id_new(),
                                     .operation_given = operation->given};
    co_checkpoint_receipt receipt = {0};
    st_graph *graph = NULL;
    sluice_status status;
    if (run->arguments.operand_count != 3)
        return usage(err, "a graph and a name are wanted",
                     creates ? "create GRAPH NAME [--branch B] [--at PLACE]" : "delete GRAPH NAME");
    if (creates && request.dry_run)
        return usage(err, "--dry-run is for deleting", "create GRAPH NAME [--branch B] [--at PLACE]");
    if (!creates && (request.branch || request.at))
        return usage(err, "--branch and --at are for creating", "delete GRAPH NAME");
    request.name = run->arguments.operands[2];
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_WRITE, &graph, err));
    status = creates ? co_checkpoint_create(graph, &request, &receipt, err)
                     : co_checkpoint_delete(graph, &request, &receipt, err);
    if (status == SLUICE_OK) {
        const cli_named named = {.kind = "checkpoint",
                                 .name = request.name,
                                 .commit = receipt.commit,
                                 .generation = receipt.generation,
                                 .index = receipt.index,
                                 .creates = creates,
                                 .dry_run = request.dry_run,
                                 .repeated = receipt.repeated,
                                 .operation = request.operation};
        status = cli_print_named(run, &named, err);
    }
done:
    st_graph_close(graph);
    return status;
}

/* ---- list ---- */

typedef struct branch_search { /* the branch whose own log has the commit; NULL: it is deleted */
    uint64_t incarnation;
    char name[256];
} branch_search;

static sluice_status match_branch(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    branch_search *search = context;
    (void)err;
    if (name && incarnation == search->incarnation && strlen(name) < sizeof search->name)
        memcpy(search->name, name, strlen(name) + 1);
    return SLUICE_OK;
}

static sluice_status list_one(cli_run *run, st_graph *graph, cli_table *table, const st_checkpoint *checkpoint,
                              sluice_error *err)
{
    branch_search search = {.incarnation = checkpoint->incarnation};
    char time[CLI_TIME_TEXT], id[PF_ID_TEXT];
    PF_TRY(st_ref_list(graph, match_branch, &search, err));
    cli_time_text(checkpoint->time_us, time);
    pf_id_text(&checkpoint->commit, id);
    if (!run->arguments.json) {
        PF_TRY(cli_table_text(table, checkpoint->name, err));
        PF_TRY(cli_table_text(table, search.name, err));
        PF_TRY(cli_table_text(table, id, err));
        PF_TRY(cli_table_number(table, checkpoint->generation, err));
        return cli_table_text(table, time, err);
    }
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "checkpoint");
    st_json_text(json, checkpoint->name);
    st_json_name(json, "branch");
    if (search.name[0])
        st_json_text(json, search.name);
    else
        st_json_null(json);
    st_json_name(json, "commit");
    st_json_text(json, id);
    st_json_name(json, "generation");
    st_json_unsigned(json, checkpoint->generation);
    st_json_name(json, "index");
    st_json_unsigned(json, checkpoint->index);
    st_json_name(json, "time");
    st_json_text(json, time);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status run_list(cli_run *run, sluice_error *err)
{
    static const char *const heads[] = {"checkpoint", "branch", "commit", "generation", "time"};
    st_graph *graph = NULL;
    st_control control = {0};
    cli_table table = {0};
    sluice_status status;
    if (run->arguments.operand_count != 2)
        return usage(err, "a graph is wanted", "list GRAPH");
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_READ, &graph, err));
    PF_GOTO(status, done, st_control_read(graph, &control, err));
    if (!run->arguments.json) {
        PF_GOTO(status, done, cli_table_begin(run->out, sizeof heads / sizeof heads[0], &table, err));
        cli_table_right(&table, 3);
        for (uint32_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
            PF_GOTO(status, done, cli_table_text(&table, heads[i], err));
    }
    for (uint32_t i = 0; i < control.checkpoint_count; i++)
        PF_GOTO(status, done, list_one(run, graph, &table, &control.checkpoints[i], err));
    if (!run->arguments.json)
        status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    st_control_free(&control);
    st_graph_close(graph);
    return status;
}

static sluice_status run_checkpoint(cli_run *run, sluice_error *err)
{
    const char *verb = run->arguments.operands[0];
    if (strcmp(verb, "create") == 0 || strcmp(verb, "delete") == 0)
        return change(run, verb[0] == 'c', err);
    if (strcmp(verb, "list") == 0)
        return run_list(run, err);
    pf_fail_private(err, SLUICE_USAGE, "the subcommand of checkpoint is not known", "unknown command \"checkpoint %s\"",
                    verb);
    pf_hint(err, "usage: sluice checkpoint create|list|delete GRAPH [NAME]");
    return SLUICE_USAGE;
}

const cli_command cli_checkpoint = {.name = "checkpoint",
                                    .operands = "create|list|delete GRAPH [NAME]",
                                    .summary = "Name a commit, so that it stays; list the names; take one away.",
                                    .options = checkpoint_options,
                                    .option_count = CHECKPOINT_OPTIONS,
                                    .least = 2,
                                    .most = 3,
                                    .effect = CLI_WRITES,
                                    .run = run_checkpoint};
