/*
 * schema show, plan, apply: the schema of a branch, what a schema file would change in it, and changing it.
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/receipt.h"
#include "coord/schema_change.h"
#include <string.h>

enum { SCHEMA_BRANCH, SCHEMA_AT, SCHEMA_ALLOW_LOSS, SCHEMA_OP_ID, SCHEMA_IF_HEAD, SCHEMA_MESSAGE, SCHEMA_OPTIONS };
static const cli_option schema_options[SCHEMA_OPTIONS] = {
    [SCHEMA_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read or change (default: main)"},
    [SCHEMA_AT] = {"at", 0, CLI_TEXT, "PLACE", "show: a commit id, generation number, time or checkpoint"},
    [SCHEMA_ALLOW_LOSS] = {"allow-data-loss", 0, CLI_FLAG, NULL, "apply: types and properties that hold data may go"},
    [SCHEMA_OP_ID] = {"op-id", 0, CLI_ID, "UUID",
                      "apply: the same id with the same content gives the first result and changes nothing"},
    [SCHEMA_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "apply: only if this is the head of the branch"},
    [SCHEMA_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "apply: kept with the commit"},
};

static const char *branch_of(const cli_run *run)
{
    return cli_text_or(run, SCHEMA_BRANCH, NULL);
}

static sluice_status run_show(cli_run *run, sluice_error *err)
{
    pf_buffer text = {0};
    cli_place place = {0};
    sluice_status status;
    run->arguments.operands++; /* the graph comes first, as in the other commands */
    PF_GOTO(status, done, cli_open_snapshot(run, branch_of(run), cli_text_or(run, SCHEMA_AT, NULL), &place, err));
    PF_GOTO(status, done, st_schema_format(st_snapshot_view(place.snapshot)->schema, &text, err));
    status = cli_write(run, text.data, text.length, err);
done:
    cli_close_snapshot(&place);
    pf_buffer_free(&text);
    return status;
}

/* ---- plan ---- */

static const char *property_name(const st_step *step)
{
    if (step->after && step->property_after >= 0)
        return step->after->properties[step->property_after].name;
    return step->before && step->property_before >= 0 ? step->before->properties[step->property_before].name : NULL;
}

/* `violation`: what the rows that are there have against it; NULL: nothing. */
static sluice_status plan_document(cli_run *run, const co_schema_plan *plan, const char *violation, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "steps");
    st_json_array(json);
    for (uint32_t i = 0; i < plan->evolution.count; i++) {
        const st_step *step = &plan->evolution.steps[i];
        st_json_object(json);
        st_json_name(json, "step");
        st_json_text(json, st_step_name(step->kind));
        st_json_named_text(json, "type", step->after ? step->after->name : step->before ? step->before->name : NULL);
        st_json_named_text(json, "property", property_name(step));
        st_json_name(json, "text");
        st_json_text(json, step->text);
        st_json_name(json, "cost");
        st_json_text(json, co_step_cost_name(plan->steps[i].cost));
        st_json_name(json, "rows");
        st_json_unsigned(json, plan->steps[i].rows);
        st_json_named_text(json, "why", plan->steps[i].cost == CO_COST_REFUSED ? plan->steps[i].why : NULL);
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_json_named_text(json, "violation", violation);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status plan_lines(cli_run *run, const co_schema_plan *plan, const char *violation, sluice_error *err)
{
    if (plan->evolution.count == 0)
        return cli_print(run, err, "nothing to change\n");
    for (uint32_t i = 0; i < plan->evolution.count; i++) {
        const co_schema_step *step = &plan->steps[i];
        pf_buffer text = {0};
        sluice_status status =
            cli_append_visible(&text, plan->evolution.steps[i].text, strlen(plan->evolution.steps[i].text), err);
        if (status == SLUICE_OK)
            status = cli_print(run, err, "%.*s (%s", (int)text.length, (const char *)text.data,
                               co_step_cost_name(step->cost));
        pf_buffer_free(&text);
        PF_TRY(status);
        if (step->rows > 0)
            PF_TRY(cli_print(run, err, ": %llu", (unsigned long long)step->rows));
        PF_TRY(cli_print(run, err, "%s%s)\n", step->cost == CO_COST_REFUSED ? ": " : "",
                         step->cost == CO_COST_REFUSED ? step->why : ""));
    }
    return violation ? cli_print(run, err, "the rows that are there do not allow it: %s\n", violation) : SLUICE_OK;
}

static sluice_status run_plan(cli_run *run, const pf_buffer *file, sluice_error *err)
{
    co_schema_plan plan = {0};
    sluice_error violation = {0};
    cli_place place = {0};
    sluice_status status;
    const char *name = run->arguments.operands[2];
    run->arguments.operands++;
    PF_GOTO(status, done, cli_open_snapshot(run, branch_of(run), NULL, &place, err));
    PF_GOTO(status, done,
            co_schema_plan_make(place.snapshot, (const char *)file->data, file->length, name, &plan, err));
    sluice_status checked = co_schema_check(place.snapshot, &plan, &violation);
    if (checked != SLUICE_OK && sluice_status_exit(checked) != sluice_status_exit(SLUICE_CONSTRAINT_NULL)) {
        *err = violation; /* not the rows' fault */
        status = checked;
        goto done;
    }
    const char *text = checked == SLUICE_OK ? NULL : violation.text;
    status = run->arguments.json ? plan_document(run, &plan, text, err) : plan_lines(run, &plan, text, err);
done:
    co_schema_plan_free(&plan);
    cli_close_snapshot(&place);
    return status;
}

/* ---- apply ---- */

static sluice_status print_applied(cli_run *run, const co_receipt *receipt, sluice_error *err)
{
    if (!run->arguments.json) {
        PF_TRY(cli_print_receipt(run, receipt, branch_of(run), err));
        return cli_print(run, err, "\n");
    }
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    cli_put_receipt(json, receipt, branch_of(run));
    cli_put_operation(json, receipt);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status run_apply(cli_run *run, const pf_buffer *file, sluice_error *err)
{
    const cli_value *operation = cli_option_value(run, SCHEMA_OP_ID);
    co_schema_request request = {.branch = branch_of(run),
                                 .text = (const char *)file->data,
                                 .length = file->length,
                                 .file = run->arguments.operands[2],
                                 .allow_data_loss = cli_option_value(run, SCHEMA_ALLOW_LOSS)->given,
                                 .operation = operation->given ? operation->id : pf_id_new(),
                                 .operation_given = operation->given,
                                 .if_head = cli_option_value(run, SCHEMA_IF_HEAD)->id,
                                 .message = cli_text_or(run, SCHEMA_MESSAGE, NULL)};
    st_graph *graph = NULL;
    co_receipt receipt = {0};
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_WRITE, &graph, err));
    status = co_schema_apply(graph, &request, &receipt, err);
    if (status == SLUICE_OK) {
        cli_receipt_stands(run, &receipt);
        status = print_applied(run, &receipt, err);
    }
done:
    st_graph_close(graph);
    return status;
}

static sluice_status run_schema(cli_run *run, sluice_error *err)
{
    const char *verb = run->arguments.operands[0];
    bool shows = strcmp(verb, "show") == 0, plans = strcmp(verb, "plan") == 0, applies = strcmp(verb, "apply") == 0;
    pf_buffer file = {0};
    if (!shows && !plans && !applies) {
        pf_fail_private(err, SLUICE_USAGE, "the subcommand of schema is not known", "unknown command \"schema %s\"",
                        verb);
        pf_hint(err, "usage: sluice schema show|plan|apply GRAPH [FILE]");
        return SLUICE_USAGE;
    }
    if (run->arguments.operand_count != (shows ? 2 : 3)) {
        pf_fail(err, SLUICE_USAGE, shows ? "schema show takes a graph" : "schema %s takes a graph and a schema file",
                verb);
        pf_hint(err, "usage: sluice schema %s GRAPH%s", verb, shows ? "" : " FILE");
        return SLUICE_USAGE;
    }
    if (shows)
        return run_show(run, err);
    PF_TRY(pf_input_read_all(run->arguments.operands[2], ST_SCHEMA_FILE_MAX, &file, err));
    sluice_status status = plans ? run_plan(run, &file, err) : run_apply(run, &file, err);
    pf_buffer_free(&file);
    return status;
}

const cli_command cli_schema = {.name = "schema",
                                .operands = "show|plan|apply GRAPH [FILE]",
                                .summary = "Print the schema; show what a schema file would change; change it.",
                                .options = schema_options,
                                .option_count = SCHEMA_OPTIONS,
                                .least = 2,
                                .most = 3,
                                .effect = CLI_WRITES,
                                .run = run_schema};
