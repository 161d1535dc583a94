/*
 * Copies of graphs: backup and salvage, the jobs of the command, in this process.
 */
#include "coord/backup.h"
#include "coord/salvage.h"
#include "lib/handle.h"
#include "platform/event.h"
#include <string.h>

/* ---- backup ---- */

typedef struct backup_watch {
    sluice_backup_fn *each;
    void *context;
} backup_watch;

static sluice_backup_result result_of(const co_backup_report *report)
{
    return (sluice_backup_result){.first = report->first,
                                  .branches = report->branches,
                                  .files = report->files,
                                  .bytes = report->bytes,
                                  .reused_files = report->reused_files,
                                  .reused_bytes = report->reused_bytes,
                                  .removed_files = report->removed_files};
}

static bool tell_backup(void *context, const co_backup_report *so_far)
{
    const backup_watch *watch = context;
    sluice_backup_result told = result_of(so_far);
    return watch->each(watch->context, &told);
}

sluice_status sluice_backup(sluice_graph *graph, const char *destination, sluice_backup_fn *each, void *context,
                            sluice_backup_result *ret_result, sluice_error *err)
{
    backup_watch watch = {each, context};
    co_backup_report report = {0};
    if (ret_result)
        *ret_result = (sluice_backup_result){0};
    PF_TRY(lib_check(graph, err));
    PF_TRY(lib_need(destination, "the destination", err));
    PF_TRY(co_backup(graph->graph, graph->path, destination, each ? tell_backup : NULL, &watch, &report, err));
    if (ret_result)
        *ret_result = result_of(&report);
    pf_note event;
    if (pf_note_wanted(SLUICE_LEVEL_INFO)) {
        pf_note_begin(&event, SLUICE_LEVEL_INFO, "backup", "the graph was copied");
        pf_note_id(&event, "graph", st_graph_id(graph->graph));
        pf_note_number(&event, "files", report.files);
        pf_note_number(&event, "bytes", report.bytes);
        pf_note_number(&event, "reused", report.reused_files);
        pf_note_send(&event);
    }
    return SLUICE_OK;
}

/* ---- salvage ---- */

typedef struct finding_watch {
    sluice_finding_fn *each; /* NULL: nobody wants (more of) them */
    void *context;
} finding_watch;

static sluice_status tell_finding(void *context, st_finding finding, const char *object, const char *what,
                                  sluice_error *err)
{
    finding_watch *watch = context;
    (void)err;
    if (watch->each && !watch->each(watch->context, finding == ST_LOST, object, what))
        watch->each = NULL;
    return SLUICE_OK;
}

static void fill_result(const co_salvage_report *report, const char *type, sluice_salvage_result *ret_result)
{
    *ret_result = (sluice_salvage_result){.losses = report->losses,
                                          .guesses = report->guesses,
                                          .lost_rows = report->lost_rows,
                                          .rejected = report->rejected,
                                          .doubled = report->doubled,
                                          .generation = report->from_files ? 0 : report->generation,
                                          .from_files = report->from_files,
                                          .older = report->older,
                                          .deletions_unknown = report->deletions_unknown,
                                          .whole = co_salvage_is_whole(report)};
    for (uint32_t i = 0; i < report->type_count; i++) {
        if (strcmp(report->types[i].name, type) == 0)
            ret_result->rows = report->types[i].rows;
    }
}

sluice_status sluice_salvage(const char *path, const char *branch, const char *type, const char *into,
                             sluice_finding_fn *each, void *context, sluice_salvage_result *ret_result,
                             sluice_error *err)
{
    finding_watch watch = {each, context};
    const co_salvage_request request = {.graph = path,
                                        .branch = branch,
                                        .type = type,
                                        .into = into,
                                        .here = true,
                                        .each = tell_finding,
                                        .context = &watch};
    co_salvage_report report = {0};
    if (ret_result)
        *ret_result = (sluice_salvage_result){0};
    PF_TRY(lib_need(path, "the path", err));
    PF_TRY(lib_need(type, "the type", err));
    PF_TRY(lib_need(into, "the new graph", err));
    pf_preflight_without_children();
    PF_TRY(co_salvage(&request, &report, err));
    if (ret_result)
        fill_result(&report, type, ret_result);
    return SLUICE_OK;
}
