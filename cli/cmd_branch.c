/*
 * branch create, list, delete (coord/branch.h does the work).
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/receipt.h"
#include "coord/branch.h"
#include "store/state/lineage.h"
#include <stdlib.h>
#include <string.h>

enum { BRANCH_FROM, BRANCH_AT, BRANCH_IF_HEAD, BRANCH_DRY_RUN, BRANCH_OP_ID, BRANCH_OPTIONS };
static const cli_option branch_options[BRANCH_OPTIONS] = {
    [BRANCH_FROM] = {"from", 0, CLI_TEXT, "B",
                     "create: the branch, commit of any branch, or checkpoint to begin at (default: main)"},
    [BRANCH_AT] = {"at", 0, CLI_TEXT, "PLACE", "create: a commit or generation of that branch (default: its head)"},
    [BRANCH_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "delete: only if this is the head of the branch"},
    [BRANCH_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "delete: say what would go, and change nothing"},
    [BRANCH_OP_ID] = {"op-id", 0, CLI_ID, "UUID", "the same id with the same request gives the first result"},
};

static sluice_status usage(sluice_error *err, const char *message, const char *form)
{
    pf_fail(err, SLUICE_USAGE, "%s", message);
    pf_hint(err, "usage: sluice branch %s", form);
    return SLUICE_USAGE;
}

/* ---- create, delete ---- */

static sluice_status change(cli_run *run, bool creates, sluice_error *err)
{
    const cli_value *operation = cli_option_value(run, BRANCH_OP_ID);
    co_branch_request request = {.name = run->arguments.operands[2],
                                 .from = cli_text_or(run, BRANCH_FROM, NULL),
                                 .at = cli_text_or(run, BRANCH_AT, NULL),
                                 .if_head = cli_option_value(run, BRANCH_IF_HEAD)->id,
                                 .dry_run = cli_option_value(run, BRANCH_DRY_RUN)->given,
                                 .operation = operation->given ? operation->id : pf_id_new(),
                                 .operation_given = operation->given};
    co_branch_receipt receipt;
    st_graph *graph = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_WRITE, &graph, err));
    status =
        creates ? co_branch_create(graph, &request, &receipt, err) : co_branch_delete(graph, &request, &receipt, err);
    if (status == SLUICE_OK) {
        const cli_named named = {.kind = "branch",
                                 .name = request.name,
                                 .incarnation = receipt.incarnation,
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

static sluice_status run_create(cli_run *run, sluice_error *err)
{
    if (run->arguments.operand_count != 3)
        return usage(err, "branch create takes a graph and a name", "create GRAPH NAME [--from B]");
    if (cli_option_value(run, BRANCH_IF_HEAD)->given || cli_option_value(run, BRANCH_DRY_RUN)->given)
        return usage(err, "--if-head and --dry-run are for deleting", "create GRAPH NAME [--from B]");
    return change(run, true, err);
}

static sluice_status run_delete(cli_run *run, sluice_error *err)
{
    if (run->arguments.operand_count != 3)
        return usage(err, "branch delete takes a graph and a name", "delete GRAPH NAME");
    if (cli_option_value(run, BRANCH_FROM)->given || cli_option_value(run, BRANCH_AT)->given)
        return usage(err, "--from and --at are for creating", "delete GRAPH NAME");
    return change(run, false, err);
}

/* ---- list ---- */

typedef struct branch_line {
    char *name; /* NULL: the ref cannot be read */
    uint64_t incarnation, generation;
    pf_id head;
    int64_t time_us;
    st_fork fork;
    bool damaged;
} branch_line;

typedef struct branch_lines {
    branch_line *lines;
    uint32_t count;
} branch_lines;

static sluice_status add_line(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    branch_lines *list = context;
    branch_line *lines = reallocarray(list->lines, (size_t)list->count + 1, sizeof *lines);
    if (!lines)
        return pf_fail_memory(err);
    list->lines = lines;
    lines[list->count] =
        (branch_line){.incarnation = incarnation, .damaged = !name, .name = name ? strdup(name) : NULL};
    if (name && !lines[list->count].name)
        return pf_fail_memory(err);
    list->count++;
    return SLUICE_OK;
}

static int by_name(const void *a, const void *b)
{
    const branch_line *left = a, *right = b;
    if (!left->name || !right->name)
        return (left->name == NULL) - (right->name == NULL);
    return strcmp(left->name, right->name);
}

/* *ret_gone: deleted meanwhile. A branch whose records are damaged is listed so. */
static sluice_status fill_line(st_graph *graph, branch_line *line, bool *ret_gone, sluice_error *err)
{
    st_log *log = NULL;
    st_view *view = NULL;
    uint64_t now = 0;
    sluice_error local = {0};
    if (!line->name)
        return SLUICE_OK;
    sluice_status status = st_graph_log(graph, line->incarnation, &log, &local);
    if (status == SLUICE_OK)
        status = st_view_load(graph, log, true, &view, &local);
    if (status == SLUICE_OK)
        status = st_log_fork(log, &line->fork, &local);
    if (status == SLUICE_OK) {
        line->generation = view->generation;
        line->head = view->head;
        line->time_us = view->head_time_us;
        st_view_free(view);
        return SLUICE_OK;
    }
    st_view_free(view);
    if (status != SLUICE_CORRUPT && status != SLUICE_NOT_FOUND && status != SLUICE_UNSUPPORTED_FORMAT) {
        if (err)
            *err = local;
        return status;
    }
    *ret_gone = st_ref_read(graph, line->name, &now, NULL) == SLUICE_NOT_FOUND || now != line->incarnation;
    line->damaged = true;
    return SLUICE_OK;
}

static const char *name_of(const branch_lines *list, uint64_t incarnation)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->lines[i].name && list->lines[i].incarnation == incarnation)
            return list->lines[i].name;
    return NULL;
}

static void put_origin(st_json *json, const branch_lines *list, const st_fork *fork)
{
    const char *name = name_of(list, fork->incarnation);
    st_json_name(json, "from");
    if (fork->incarnation == 0) {
        st_json_null(json);
        return;
    }
    st_json_object(json);
    st_json_name(json, "branch");
    if (name)
        st_json_text(json, name);
    else
        st_json_null(json);
    st_json_name(json, "generation");
    st_json_unsigned(json, fork->generation);
    st_json_name(json, "index");
    st_json_unsigned(json, fork->index);
    st_json_object_end(json);
}

static sluice_status print_document(cli_run *run, const branch_lines *list, const branch_line *line, sluice_error *err)
{
    char time[CLI_TIME_TEXT];
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "branch");
    if (line->name)
        st_json_text(json, line->name);
    else
        st_json_null(json);
    st_json_name(json, "damaged");
    st_json_bool(json, line->damaged);
    if (line->name) {
        st_json_name(json, "incarnation");
        st_json_unsigned(json, line->incarnation);
    }
    if (!line->damaged) {
        cli_time_text(line->time_us, time);
        st_json_name(json, "generation");
        st_json_unsigned(json, line->generation);
        st_json_name(json, "head");
        st_json_id(json, &line->head);
        st_json_name(json, "time");
        st_json_text(json, time);
        put_origin(json, list, &line->fork);
    }
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_row(cli_table *table, const branch_lines *list, const branch_line *line, sluice_error *err)
{
    char id[PF_ID_TEXT], time[CLI_TIME_TEXT];
    const char *origin = name_of(list, line->fork.incarnation);
    pf_id_text(&line->head, id);
    cli_time_text(line->time_us, time);
    PF_TRY(cli_table_text(table, line->name ? line->name : "?", err));
    PF_TRY(cli_table_number(table, line->generation, err));
    PF_TRY(cli_table_text(table, line->damaged ? "CORRUPT" : id, err));
    PF_TRY(cli_table_text(table, line->damaged ? "" : time, err));
    return cli_table_text(table,
                          line->damaged || line->fork.incarnation == 0 ? ""
                          : origin                                     ? origin
                                                                       : "(deleted)",
                          err);
}

static sluice_status print_lines(cli_run *run, const branch_lines *list, sluice_error *err)
{
    static const char *const heads[] = {"branch", "generation", "head", "time", "from"};
    cli_table table = {0};
    sluice_status status = SLUICE_OK;
    if (run->arguments.json) {
        for (uint32_t i = 0; i < list->count && status == SLUICE_OK; i++)
            status = print_document(run, list, &list->lines[i], err);
        return status;
    }
    PF_GOTO(status, done, cli_table_begin(run->out, 5, &table, err));
    cli_table_right(&table, 1);
    for (uint32_t i = 0; i < 5; i++)
        PF_GOTO(status, done, cli_table_text(&table, heads[i], err));
    for (uint32_t i = 0; i < list->count; i++)
        PF_GOTO(status, done, print_row(&table, list, &list->lines[i], err));
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    return status;
}

static sluice_status fill_lines(st_graph *graph, branch_lines *list, sluice_error *err)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        bool gone = false;
        PF_TRY(fill_line(graph, &list->lines[i], &gone, err));
        if (gone) {
            free(list->lines[i].name);
            list->lines[i].name = NULL;
            continue;
        }
        branch_line line = list->lines[i];
        list->lines[i].name = NULL;
        list->lines[kept++] = line;
    }
    list->count = kept;
    return SLUICE_OK;
}

static sluice_status run_list(cli_run *run, sluice_error *err)
{
    st_graph *graph = NULL;
    branch_lines list = {0};
    sluice_status status;
    if (run->arguments.operand_count != 2)
        return usage(err, "branch list takes a graph", "list GRAPH");
    for (uint32_t i = 0; i < BRANCH_OPTIONS; i++)
        if (cli_option_value(run, i)->given)
            return usage(err, "branch list has no options", "list GRAPH");
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_READ, &graph, err));
    PF_GOTO(status, done, st_ref_list(graph, add_line, &list, err));
    if (list.count)
        qsort(list.lines, list.count, sizeof *list.lines, by_name);
    PF_GOTO(status, done, fill_lines(graph, &list, err));
    status = print_lines(run, &list, err);
done:
    for (uint32_t i = 0; i < list.count; i++)
        free(list.lines[i].name);
    free(list.lines);
    st_graph_close(graph);
    return status;
}

static sluice_status run_branch(cli_run *run, sluice_error *err)
{
    const char *verb = run->arguments.operands[0];
    if (strcmp(verb, "create") == 0)
        return run_create(run, err);
    if (strcmp(verb, "delete") == 0)
        return run_delete(run, err);
    if (strcmp(verb, "list") == 0)
        return run_list(run, err);
    pf_fail_private(err, SLUICE_USAGE, "the subcommand of branch is not known", "unknown command \"branch %s\"", verb);
    pf_hint(err, "usage: sluice branch create|list|delete GRAPH [NAME]");
    return SLUICE_USAGE;
}

const cli_command cli_branch = {.name = "branch",
                                .operands = "create|list|delete GRAPH [NAME]",
                                .summary = "Make, list and delete branches.",
                                .options = branch_options,
                                .option_count = BRANCH_OPTIONS,
                                .least = 2,
                                .most = 3,
                                .effect = CLI_WRITES,
                                .run = run_branch};
