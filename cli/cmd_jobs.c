/*
 * jobs, cancel: what a supervisor has to do, and taking something back.
 */
#include "cli/hosted.h"
#include "cli/output.h"
#include "coord/host/call.h"
#include "platform/local_socket.h"
#include <stdlib.h>
#include <string.h>

enum { JOBS_SOCKET, JOBS_OPTIONS };
static const cli_option jobs_options[JOBS_OPTIONS] = {
    [JOBS_SOCKET] = {"socket", 0, CLI_TEXT, "PATH", "of the supervisor (default: SLUICE_SOCKET)"},
};

static const char *const columns[] = {"job", "graph", "command", "state", "attempts", "waited_seconds", "seconds"};
#define COLUMNS (sizeof columns / sizeof columns[0])

static sluice_status print_job(cli_run *run, const st_node *job, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    cli_put_node(&document.json, job);
    return cli_json_end(run, &document, err);
}

/* The parameters of `list` for one graph: by its folder, where that can be seen, else by its name. */
static sluice_status put_graph(pf_buffer *params, const char *graph, sluice_error *err)
{
    uint64_t device = 0, inode = 0;
    bool visible = false;
    st_json json;
    (void)pf_folder_identity(graph, &device, &inode, &visible, NULL);
    st_json_begin(&json, params);
    st_json_object(&json);
    if (inode != 0) {
        st_json_name(&json, "device");
        st_json_unsigned(&json, device);
        st_json_name(&json, "inode");
        st_json_unsigned(&json, inode);
    } else {
        st_json_name(&json, "graph");
        st_json_lossy_text(&json, graph, strlen(graph));
    }
    st_json_object_end(&json);
    PF_TRY(st_json_end(&json, false, err));
    return pf_buffer_append(params, "", 1, err);
}

static sluice_status run_jobs(cli_run *run, sluice_error *err)
{
    co_call *call = NULL;
    st_tree *tree = NULL;
    const st_node *result = NULL;
    const char *graph = run->arguments.operand_count > 0 ? run->arguments.operands[0] : NULL;
    pf_buffer params = {0};
    sluice_status status;
    if (graph)
        PF_GOTO(status, done, put_graph(&params, graph, err));
    PF_GOTO(status, done, cli_connect(run, cli_text_or(run, JOBS_SOCKET, NULL), graph, &call, err));
    PF_GOTO(status, done, co_call_ask(call, "list", graph ? (const char *)params.data : NULL, &tree, &result, err));
    const st_node *jobs = st_node_member(result, "jobs");
    if (!jobs || jobs->kind != ST_NODE_ARRAY) {
        status = pf_fail(err, SLUICE_IO, "the supervisor's answer is none");
        goto done;
    }
    if (!run->arguments.json)
        status = cli_print_nodes(run, jobs, columns, COLUMNS, 4, err);
    for (const st_node *job = jobs->first; run->arguments.json && job && status == SLUICE_OK; job = job->next)
        status = print_job(run, job, err);
done:
    pf_buffer_free(&params);
    st_tree_free(tree);
    co_call_close(call);
    return status;
}

static sluice_status run_cancel(cli_run *run, sluice_error *err)
{
    co_call *call = NULL;
    st_tree *tree = NULL;
    const st_node *result = NULL;
    pf_buffer params = {0};
    st_json json;
    sluice_status status;
    st_json_begin(&json, &params);
    st_json_object(&json);
    st_json_name(&json, "job");
    st_json_lossy_text(&json, run->arguments.operands[0], strlen(run->arguments.operands[0]));
    st_json_object_end(&json);
    PF_GOTO(status, done, st_json_end(&json, false, err));
    PF_GOTO(status, done, pf_buffer_append(&params, "", 1, err));
    PF_GOTO(status, done, cli_connect(run, cli_text_or(run, JOBS_SOCKET, NULL), NULL, &call, err));
    PF_GOTO(status, done, co_call_ask(call, "cancel", (const char *)params.data, &tree, &result, err));
    status = run->arguments.json
                 ? print_job(run, result, err)
                 : cli_print(run, err, "job %s: %s\n", cli_node_text(result, "job"), cli_node_text(result, "state"));
done:
    pf_buffer_free(&params);
    st_tree_free(tree);
    co_call_close(call);
    return status;
}

const cli_command cli_jobs = {
    .name = "jobs",
    .operands = "[GRAPH]",
    .summary = "List the jobs of a supervisor, or of one graph: waiting, running, and the last that ended.",
    .options = jobs_options,
    .option_count = JOBS_OPTIONS,
    .least = 0,
    .most = 1,
    .effect = CLI_SAYS,
    .run = run_jobs};

const cli_command cli_cancel = {.name = "cancel",
                                .operands = "JOB",
                                .summary = "Take a job of a supervisor back: before it is armed, nothing is changed.",
                                .options = jobs_options,
                                .option_count = JOBS_OPTIONS,
                                .least = 1,
                                .most = 1,
                                .effect = CLI_SAYS,
                                .run = run_cancel};
