/*
 * export: one file per type into a folder of the user, from one snapshot.
 *
 * A file appears under its name when it is whole. Loading the files into a graph of the same schema gives an equal
 * graph, up to row ids.
 */
#include "cli/error.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "coord/host/serve.h"
#include <stdlib.h>

enum { EXPORT_FORMAT, EXPORT_FORCE, EXPORT_BRANCH, EXPORT_AT, EXPORT_OPTIONS };
static const cli_option export_options[EXPORT_OPTIONS] = {
    [EXPORT_FORMAT] = {"format", 0, CLI_CHOICE, "csv|jsonl|arrow", "what to write (default: csv)"},
    [EXPORT_FORCE] = {"force", 0, CLI_FLAG, NULL, "replace files that are there"},
    [EXPORT_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [EXPORT_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};
static const char *const extensions[] = {"csv", "jsonl", "arrow"};
static const cli_format formats[] = {CLI_FORMAT_CSV, CLI_FORMAT_JSONL, CLI_FORMAT_ARROW_FILE};

typedef struct export_job {
    cli_place place;
    cli_progress progress;
    cli_work count; /* rows of all types, and bytes of the files that are whole */
} export_job;

static void show_progress(export_job *job, uint64_t rows, const pf_output *out)
{
    cli_work now = job->count;
    now.done += rows;
    now.bytes += pf_output_bytes(out);
    cli_progress_count(&job->progress, &now);
}

static sluice_status write_rows(export_job *job, const st_type_def *type, cli_format format, pf_output *out,
                                uint64_t *ret_rows, sluice_error *err)
{
    st_scan *scan = NULL;
    cli_rows rows = {0};
    const st_column_spec **specs = NULL;
    const st_column **columns = NULL;
    sluice_status status;
    uint32_t count = 0;
    *ret_rows = 0;
    PF_GOTO(status, done, st_scan_open(job->place.snapshot, type, NULL, 0, &scan, err));
    const st_column_spec *layout = st_scan_specs(scan, &count);
    specs = calloc((size_t)count + 1, sizeof(void *));
    columns = calloc((size_t)count + 1, sizeof(void *));
    if (!specs || !columns) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < count; i++)
        specs[i] = &layout[i];
    PF_GOTO(status, done, cli_rows_begin(&rows, format, out, specs, count, cli_has_row_id(type), err));
    for (;;) {
        const st_batch *batch;
        PF_GOTO(status, done, st_scan_next(scan, &batch, err));
        if (!batch)
            break;
        for (uint32_t i = 0; i < count; i++)
            columns[i] = &batch->columns[i];
        PF_GOTO(status, done, cli_rows_add_batch(&rows, columns, batch, err));
        *ret_rows += batch->rows;
        show_progress(job, *ret_rows, out);
    }
    status = cli_rows_end(&rows, err);
done:
    cli_rows_free(&rows);
    st_scan_close(scan);
    free(specs);
    free(columns);
    return status;
}

static sluice_status export_type(cli_run *run, export_job *job, const st_type_def *type, uint64_t *ret_rows,
                                 uint64_t *ret_bytes, sluice_error *err)
{
    uint64_t which = cli_option_value(run, EXPORT_FORMAT)->number;
    pf_output_mode mode = cli_option_value(run, EXPORT_FORCE)->given ? PF_OUTPUT_REPLACE : PF_OUTPUT_NEW;
    pf_buffer path = {0};
    pf_output *out = NULL;
    sluice_status status;
    PF_GOTO(status, done,
            pf_buffer_append_format(&path, err, "%s/%s.%s%c", run->arguments.operands[1], type->name, extensions[which],
                                    '\0'));
    PF_GOTO(status, done, pf_output_open((const char *)path.data, mode, &out, err));
    status = write_rows(job, type, formats[which], out, ret_rows, err);
    *ret_bytes = pf_output_bytes(out);
    job->count.done += *ret_rows;
    job->count.bytes += *ret_bytes;
    if (status == SLUICE_OK)
        status = pf_output_close(out, true, err);
    else
        pf_output_discard(out);
done:
    if (status == SLUICE_ALREADY_EXISTS)
        pf_hint(err, "--force replaces files that are there");
    pf_buffer_free(&path);
    return status;
}

typedef struct exported {
    const char *type;
    uint64_t rows, bytes;
} exported;

static sluice_status print_result(cli_run *run, const exported *files, uint32_t count, sluice_error *err)
{
    if (!run->arguments.json) {
        for (uint32_t i = 0; i < count; i++)
            PF_TRY(cli_print(run, err, "%s/%s.%s: %llu rows, %llu bytes\n", run->arguments.operands[1], files[i].type,
                             extensions[cli_option_value(run, EXPORT_FORMAT)->number],
                             (unsigned long long)files[i].rows, (unsigned long long)files[i].bytes));
        return SLUICE_OK;
    }
    cli_json document;
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "rows");
    st_json_object(&document.json);
    for (uint32_t i = 0; i < count; i++) {
        st_json_name(&document.json, files[i].type);
        st_json_unsigned(&document.json, files[i].rows);
    }
    st_json_object_end(&document.json);
    st_json_name(&document.json, "bytes");
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += files[i].bytes;
    st_json_unsigned(&document.json, bytes);
    st_json_object_end(&document.json);
    return cli_json_end(run, &document, err);
}

static sluice_status run_export(cli_run *run, sluice_error *err)
{
    export_job job = {.count = {.unit = "rows"}};
    exported *files = NULL;
    sluice_status status;
    PF_GOTO(status, done,
            cli_open_snapshot(run, cli_text_or(run, EXPORT_BRANCH, NULL), cli_text_or(run, EXPORT_AT, NULL), &job.place,
                              err));
    const st_schema *schema = st_snapshot_view(job.place.snapshot)->schema;
    files = calloc((size_t)schema->type_count + 1, sizeof *files);
    if (!files) {
        status = pf_fail_memory(err);
        goto done;
    }
    status = pf_output_make_folder(run->arguments.operands[1], err);
    if (status != SLUICE_OK && status != SLUICE_ALREADY_EXISTS)
        goto done;
    cli_progress_begin(&job.progress, run->arguments.json, run->hosted && run->hosted->terminal);
    for (uint32_t i = 0; i < schema->type_count; i++) {
        uint64_t rows = 0;
        PF_GOTO(status, done, st_snapshot_count(job.place.snapshot, &schema->types[i], &rows, err));
        job.count.total += rows;
    }
    for (uint32_t i = 0; i < schema->type_count; i++) {
        files[i].type = schema->types[i].name;
        PF_GOTO(status, done, export_type(run, &job, &schema->types[i], &files[i].rows, &files[i].bytes, err));
    }
    cli_progress_clear(&job.progress);
    status = print_result(run, files, schema->type_count, err);
done:
    cli_progress_clear(&job.progress);
    free(files);
    cli_close_snapshot(&job.place);
    return status;
}

const cli_command cli_export = {.name = "export",
                                .operands = "GRAPH DIR",
                                .summary = "Write every type into a file of its own: DIR/TYPE.csv, .jsonl or .arrow.",
                                .options = export_options,
                                .option_count = EXPORT_OPTIONS,
                                .least = 2,
                                .most = 2,
                                .effect = CLI_READS,
                                .run = run_export};
