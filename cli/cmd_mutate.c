/*
 * mutate: single objects, inserted, changed, deleted and asserted by a file of JSON Lines, as one commit
 * (coord/mutate.h does the work).
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/receipt.h"
#include "coord/host/serve.h"
#include "coord/mutate.h"

enum { MUTATE_BRANCH, MUTATE_DRY_RUN, MUTATE_OP_ID, MUTATE_IF_HEAD, MUTATE_MESSAGE, MUTATE_OPTIONS };
static const cli_option mutate_options[MUTATE_OPTIONS] = {
    [MUTATE_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to write (default: main)"},
    [MUTATE_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "check everything and change nothing"},
    [MUTATE_OP_ID] = {"op-id", 0, CLI_ID, "UUID",
                      "the same id with the same content gives the first result and changes nothing"},
    [MUTATE_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "only if this is the head of the branch"},
    [MUTATE_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "kept with the commit"},
};

static sluice_status print_document(cli_run *run, const co_mutate_result *result, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    cli_put_receipt(json, &result->receipt, cli_text_or(run, MUTATE_BRANCH, NULL));
    cli_put_changes(json, result->inserted, result->updated, result->deleted);
    st_json_name(json, "skipped");
    st_json_unsigned(json, result->skipped);
    st_json_name(json, "dry_run");
    st_json_bool(json, cli_option_value(run, MUTATE_DRY_RUN)->given);
    cli_put_operation(json, &result->receipt);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_lines(cli_run *run, const co_mutate_result *result, sluice_error *err)
{
    char commit[PF_ID_TEXT];
    PF_TRY(cli_print(run, err, "inserted %llu, updated %llu, deleted %llu\n", (unsigned long long)result->inserted,
                     (unsigned long long)result->updated, (unsigned long long)result->deleted));
    if (result->skipped > 0)
        PF_TRY(cli_print(run, err, "skipped: %llu whose \"if\" did not hold\n", (unsigned long long)result->skipped));
    if (!result->receipt.committed)
        return cli_print(run, err, "%s\n",
                         cli_option_value(run, MUTATE_DRY_RUN)->given ? "checked; nothing was changed"
                                                                      : "nothing to do");
    pf_id_text(&result->receipt.commit, commit);
    return cli_print(run, err, "%scommit %s, generation %llu of %s\n", result->receipt.repeated ? "done before: " : "",
                     commit, (unsigned long long)result->receipt.generation, cli_text_or(run, MUTATE_BRANCH, "main"));
}

static sluice_status print_result(cli_run *run, const co_mutate_result *result, sluice_error *err)
{
    cli_receipt_stands(run, &result->receipt);
    return run->arguments.json ? print_document(run, result, err) : print_lines(run, result, err);
}

static sluice_status run_mutate(cli_run *run, sluice_error *err)
{
    co_mutate_result result = {0};
    co_mutate_options options = {.graph_path = run->arguments.operands[0],
                                 .path = run->arguments.operand_count > 1 ? run->arguments.operands[1] : "-",
                                 .branch = cli_text_or(run, MUTATE_BRANCH, NULL),
                                 .dry_run = cli_option_value(run, MUTATE_DRY_RUN)->given,
                                 .operation = cli_option_value(run, MUTATE_OP_ID)->id,
                                 .if_head = cli_option_value(run, MUTATE_IF_HEAD)->id,
                                 .message = cli_text_or(run, MUTATE_MESSAGE, NULL),
                                 .text = run->text.data ? (const char *)run->text.data : NULL,
                                 .length = run->text.length};
    if (run->hosted) {
        options.graph = run->hosted->graph;
        options.executor = run->hosted->executor;
        options.text = run->hosted->text;
        options.length = run->hosted->text_length;
    }
    PF_TRY(co_mutate(&options, &result, err));
    return print_result(run, &result, err);
}

const cli_command cli_mutate = {.name = "mutate",
                                .operands = "GRAPH [FILE]",
                                .summary = "Insert, change, delete and assert single objects, as one commit.",
                                .options = mutate_options,
                                .option_count = MUTATE_OPTIONS,
                                .least = 1,
                                .most = 2,
                                .effect = CLI_WRITES,
                                .run = run_mutate};
