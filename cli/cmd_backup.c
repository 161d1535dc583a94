/*
 * backup: a consistent copy of a live graph.
 */
#include "cli/output.h"
#include "cli/progress.h"
#include "coord/backup.h"
#include "platform/clock.h"

static bool show(void *context, const co_backup_report *so_far)
{
    const cli_work now = {.unit = "files",
                          .done = so_far->files + so_far->reused_files,
                          .total = so_far->all_files,
                          .bytes = so_far->bytes};
    cli_progress_count(context, &now);
    return true;
}

static void name_pair(st_json *json, const char *name, uint64_t files, uint64_t bytes)
{
    st_json_name(json, name);
    st_json_object(json);
    st_json_name(json, "files");
    st_json_unsigned(json, files);
    st_json_name(json, "bytes");
    st_json_unsigned(json, bytes);
    st_json_object_end(json);
}

static sluice_status print_report(cli_run *run, const pf_id *graph, const co_backup_report *report, double seconds,
                                  sluice_error *err)
{
    char copied[CLI_SIZE_TEXT], reused[CLI_SIZE_TEXT];
    if (!run->arguments.json) {
        cli_size_text(report->bytes, copied);
        cli_size_text(report->reused_bytes, reused);
        return cli_print(
            run, err, "%s %u %s: copied %llu files, %s; %llu files, %s were there; removed %llu files; %.1f s\n",
            report->first ? "backed up" : "brought up to date", report->branches,
            report->branches == 1 ? "branch" : "branches", (unsigned long long)report->files, copied,
            (unsigned long long)report->reused_files, reused, (unsigned long long)report->removed_files, seconds);
    }
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "graph");
    st_json_id(json, graph);
    st_json_name(json, "first");
    st_json_bool(json, report->first);
    st_json_name(json, "branches");
    st_json_unsigned(json, report->branches);
    name_pair(json, "copied", report->files, report->bytes);
    name_pair(json, "reused", report->reused_files, report->reused_bytes);
    st_json_name(json, "removed");
    st_json_object(json);
    st_json_name(json, "files");
    st_json_unsigned(json, report->removed_files);
    st_json_object_end(json);
    st_json_name(json, "seconds");
    st_json_double(json, seconds);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

/* For writing, so that what is copied is made durable first; from a place that cannot be written to, for reading. */
static sluice_status open_source(const char *path, st_graph **ret_graph, sluice_error *err)
{
    sluice_status status = st_graph_open(path, PF_WRITE, ret_graph, err);
    if (status != SLUICE_PERMISSION && status != SLUICE_UNSUPPORTED_FILESYSTEM && status != SLUICE_IO)
        return status;
    return st_graph_open(path, PF_READ, ret_graph, NULL) == SLUICE_OK ? SLUICE_OK : status;
}

static sluice_status run_backup(cli_run *run, sluice_error *err)
{
    const char *path = run->arguments.operands[0], *destination = run->arguments.operands[1];
    cli_progress progress;
    co_backup_report report = {0};
    st_graph *graph = NULL;
    int64_t began = pf_monotonic_ns();
    PF_TRY(open_source(path, &graph, err));
    cli_progress_begin(&progress, run->arguments.json, false);
    sluice_status status = co_backup(graph, path, destination, show, &progress, &report, err);
    cli_progress_clear(&progress);
    if (status == SLUICE_OK)
        status = print_report(run, st_graph_id(graph), &report, (double)(pf_monotonic_ns() - began) / 1e9, err);
    st_graph_close(graph);
    return status;
}

const cli_command cli_backup = {.name = "backup",
                                .operands = "GRAPH DEST",
                                .summary = "Copy a live graph to another folder; again: only what is new.",
                                .least = 2,
                                .most = 2,
                                .effect =
                                    CLI_READS, /* by the files, also beside a supervisor: DEST is this process's */
                                .run = run_backup};
