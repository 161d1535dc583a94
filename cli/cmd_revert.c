/*
 * revert: an older state becomes the branch's state again (coord/revert.h does the work).
 */
#include "cli/error.h"
#include "cli/receipt.h"
#include "coord/revert.h"

enum { REVERT_TO, REVERT_BRANCH, REVERT_DRY_RUN, REVERT_OP_ID, REVERT_IF_HEAD, REVERT_MESSAGE, REVERT_OPTIONS };
static const cli_option revert_options[REVERT_OPTIONS] = {
    [REVERT_TO] = {"to", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint: wanted"},
    [REVERT_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to change (default: main)"},
    [REVERT_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "say how much would change, and change nothing"},
    [REVERT_OP_ID] = {"op-id", 0, CLI_ID, "UUID",
                      "the same id with the same content gives the first result and changes nothing"},
    [REVERT_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "only if this is the head of the branch"},
    [REVERT_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "kept with the commit"},
};

static sluice_status print_result(cli_run *run, const co_receipt *receipt, sluice_error *err)
{
    const char *branch = cli_text_or(run, REVERT_BRANCH, NULL);
    if (!run->arguments.json) {
        bool dry = cli_option_value(run, REVERT_DRY_RUN)->given;
        if (receipt->committed || dry)
            PF_TRY(cli_print(run, err, "inserted %llu, updated %llu, deleted %llu\n",
                             (unsigned long long)receipt->inserted, (unsigned long long)receipt->updated,
                             (unsigned long long)receipt->deleted));
        if (receipt->committed || !dry) {
            PF_TRY(cli_print_receipt(run, receipt, branch, err));
            PF_TRY(cli_print(run, err, "\n"));
        }
        return dry ? cli_print(run, err, "dry run: nothing was changed\n") : SLUICE_OK;
    }
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    cli_put_receipt(json, receipt, branch);
    cli_put_changes(json, receipt->inserted, receipt->updated, receipt->deleted);
    st_json_name(json, "dry_run");
    st_json_bool(json, cli_option_value(run, REVERT_DRY_RUN)->given);
    cli_put_operation(json, receipt);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status run_revert(cli_run *run, sluice_error *err)
{
    const cli_value *operation = cli_option_value(run, REVERT_OP_ID);
    co_revert_request request = {.branch = cli_text_or(run, REVERT_BRANCH, NULL),
                                 .to = cli_text_or(run, REVERT_TO, NULL),
                                 .operation = operation->given ? operation->id : pf_id_new(),
                                 .operation_given = operation->given,
                                 .if_head = cli_option_value(run, REVERT_IF_HEAD)->id,
                                 .message = cli_text_or(run, REVERT_MESSAGE, NULL),
                                 .dry_run = cli_option_value(run, REVERT_DRY_RUN)->given};
    st_graph *graph = NULL;
    co_receipt receipt = {0};
    sluice_status status;
    if (!request.to) {
        pf_fail(err, SLUICE_USAGE, "revert wants --to");
        pf_hint(err, "give --to a commit or generation; `sluice log GRAPH` lists them");
        return SLUICE_USAGE;
    }
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_WRITE, &graph, err));
    status = co_revert(graph, &request, &receipt, err);
    if (status == SLUICE_OK) {
        cli_receipt_stands(run, &receipt);
        status = print_result(run, &receipt, err);
    }
done:
    st_graph_close(graph);
    return status;
}

const cli_command cli_revert = {.name = "revert",
                                .operands = "GRAPH --to PLACE",
                                .summary = "Make an older state the branch's state again, by a new commit.",
                                .options = revert_options,
                                .option_count = REVERT_OPTIONS,
                                .least = 1,
                                .most = 1,
                                .effect = CLI_WRITES,
                                .run = run_revert};
