/*
 * merge: one branch into another, as one commit (coord/merge.h does the work).
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/receipt.h"
#include "coord/merge.h"
#include "platform/check.h"
#include <string.h>

enum {
    MERGE_INTO,
    MERGE_ON_CONFLICT,
    MERGE_DELETE_SOURCE,
    MERGE_DRY_RUN,
    MERGE_MEMORY,
    MERGE_OP_ID,
    MERGE_IF_HEAD,
    MERGE_MESSAGE,
    MERGE_OPTIONS
};
static const cli_option merge_options[MERGE_OPTIONS] = {
    [MERGE_INTO] = {"into", 0, CLI_TEXT, "B", "the branch to merge into (default: main)"},
    [MERGE_ON_CONFLICT] =
        {"on-conflict", 0, CLI_CHOICE, "fail|ours|theirs",
         "where both changed one object: list it and fail, or take the object as it is here, or there"},
    [MERGE_DELETE_SOURCE] = {"delete-source", 0, CLI_FLAG, NULL,
                             "delete the merged branch, if nobody wrote to it since"},
    [MERGE_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "say what would come of it, and change nothing"},
    [MERGE_MEMORY] = {"memory", 0, CLI_SIZE, "SIZE", "bound for the memory (default: half of what there is)"},
    [MERGE_OP_ID] = {"op-id", 0, CLI_ID, "UUID", "the same id with the same request gives the first result"},
    [MERGE_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "only if this is the head of the branch to merge into"},
    [MERGE_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "kept with the commit"},
};

static void put_text(st_json *json, const char *name, const char *text)
{
    st_json_name(json, name);
    if (text)
        st_json_text(json, text);
    else
        st_json_null(json);
}

static void put_id(st_json *json, const char *name, const pf_id *id)
{
    st_json_name(json, name);
    if (pf_id_is_nil(id))
        st_json_null(json);
    else
        st_json_id(json, id);
}

/* ---- conflicts ---- */

static void put_conflict(st_json *json, const co_conflict *conflict)
{
    st_json_object(json);
    put_text(json, "kind", co_conflict_kind_name(conflict->kind));
    put_text(json, "type", conflict->type);
    put_text(json, "key", conflict->key);
    put_text(json, "property", conflict->property);
    put_id(json, "ours", &conflict->ours);
    put_id(json, "theirs", &conflict->theirs);
    put_text(json, "text", conflict->text);
    st_json_object_end(json);
}

static sluice_status print_conflicts(cli_run *run, const co_merge_result *result, sluice_error *err)
{
    cli_json document;
    if (!run->arguments.json) {
        for (uint32_t i = 0; i < result->conflict_count; i++) {
            const co_conflict *conflict = &result->conflicts[i];
            PF_TRY(cli_print(run, err, "conflict %s: %s %s%s%s: %s\n", co_conflict_kind_name(conflict->kind),
                             conflict->type, conflict->key ? conflict->key : "",
                             conflict->property ? ", property " : "", conflict->property ? conflict->property : "",
                             conflict->text));
        }
        return SLUICE_OK;
    }
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    put_text(json, "outcome", "conflict");
    put_text(json, "commit", NULL);
    st_json_name(json, "conflicts_found");
    st_json_unsigned(json, result->conflicts_found);
    st_json_name(json, "conflicts");
    st_json_array(json);
    for (uint32_t i = 0; i < result->conflict_count; i++)
        put_conflict(json, &result->conflicts[i]);
    st_json_array_end(json);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

/* ---- the result ---- */

static sluice_status print_document(cli_run *run, const co_merge_result *result, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    put_text(json, "outcome", co_merge_outcome_name(result->outcome));
    cli_put_receipt(json, &result->receipt, cli_text_or(run, MERGE_INTO, NULL));
    put_id(json, "source", &result->source_head);
    cli_put_changes(json, result->inserted, result->updated, result->deleted);
    if (cli_option_value(run, MERGE_DELETE_SOURCE)->given && !cli_option_value(run, MERGE_DRY_RUN)->given) {
        st_json_name(json, "branch_deleted");
        st_json_bool(json, result->branch_deleted);
        put_text(json, "reason", result->branch_deleted ? NULL : result->not_deleted);
    }
    st_json_name(json, "dry_run");
    st_json_bool(json, cli_option_value(run, MERGE_DRY_RUN)->given);
    cli_put_operation(json, &result->receipt);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_lines(cli_run *run, const co_merge_result *result, sluice_error *err)
{
    char id[PF_ID_TEXT];
    const char *into = cli_text_or(run, MERGE_INTO, "main");
    pf_id_text(&result->receipt.commit, id);
    PF_TRY(cli_print(run, err, "%s%s", result->receipt.repeated ? "done before: " : "",
                     co_merge_outcome_name(result->outcome)));
    if (result->receipt.committed)
        PF_TRY(cli_print(run, err, ": inserted %llu, updated %llu, deleted %llu; commit %s, generation %llu of %s",
                         (unsigned long long)result->inserted, (unsigned long long)result->updated,
                         (unsigned long long)result->deleted, id, (unsigned long long)result->receipt.generation,
                         into));
    if (cli_option_value(run, MERGE_DRY_RUN)->given && result->receipt.committed)
        return cli_print(run, err, "\ndry run: nothing was changed\n");
    if (cli_option_value(run, MERGE_DRY_RUN)->given)
        return cli_print(run, err, ": would insert %llu, update %llu, delete %llu\ndry run: nothing was changed\n",
                         (unsigned long long)result->inserted, (unsigned long long)result->updated,
                         (unsigned long long)result->deleted);
    PF_TRY(cli_print(run, err, "\n"));
    if (!cli_option_value(run, MERGE_DELETE_SOURCE)->given)
        return SLUICE_OK;
    return result->branch_deleted
               ? cli_print(run, err, "deleted %s\n", run->arguments.operands[1])
               : cli_print(run, err, "%s is still there: %s\n", run->arguments.operands[1], result->not_deleted);
}

static sluice_status blame_memory(sluice_status status, sluice_error *err)
{
    if (status == SLUICE_RESOURCE_LIMIT && err && strstr(err->message, PF_NO_MEMORY) && err->hint[0] == '\0')
        pf_hint(err, "rows that both sides may have changed are compared in memory: give --memory more, or merge more "
                     "often");
    return status;
}

static sluice_status run_merge(cli_run *run, sluice_error *err)
{
    co_merge_options options = {.source = run->arguments.operands[1],
                                .into = cli_text_or(run, MERGE_INTO, NULL),
                                .rule = (co_merge_rule)cli_option_value(run, MERGE_ON_CONFLICT)->number,
                                .delete_source = cli_option_value(run, MERGE_DELETE_SOURCE)->given,
                                .operation = cli_option_value(run, MERGE_OP_ID)->id,
                                .if_head = cli_option_value(run, MERGE_IF_HEAD)->id,
                                .message = cli_text_or(run, MERGE_MESSAGE, NULL),
                                .dry_run = cli_option_value(run, MERGE_DRY_RUN)->given};
    co_merge_result result = {0};
    st_graph *graph = NULL;
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    sluice_status status;
    PF_TRY(cli_bound_memory(run, MERGE_MEMORY, err));
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_WRITE, &graph, err));
    status = blame_memory(co_merge(graph, &options, &executor, &result, err), err);
    if (status == SLUICE_MERGE_CONFLICT) {
        sluice_status printed = print_conflicts(run, &result, err);
        status = printed == SLUICE_OK ? status : printed;
    } else if (status == SLUICE_OK) {
        cli_receipt_stands(run, &result.receipt);
        status = run->arguments.json ? print_document(run, &result, err) : print_lines(run, &result, err);
    }
done:
    co_merge_result_free(&result);
    st_graph_close(graph);
    return status;
}

const cli_command cli_merge = {.name = "merge",
                               .operands = "GRAPH SOURCE",
                               .summary = "Merge a branch into another, as one commit.",
                               .options = merge_options,
                               .option_count = MERGE_OPTIONS,
                               .least = 2,
                               .most = 2,
                               .effect = CLI_WRITES,
                               .run = run_merge};
