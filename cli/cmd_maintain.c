/*
 * optimize and index: maintenance of tables beside readers and writers (coord/maintain.h does the work).
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/receipt.h"
#include "coord/host/serve.h"
#include "coord/maintain.h"
#include "platform/watch.h"
#include <stdio.h>

enum {
    MAINTAIN_BRANCH,
    MAINTAIN_WORKERS,
    MAINTAIN_MEMORY,
    MAINTAIN_OP_ID,
    MAINTAIN_IF_HEAD,
    MAINTAIN_MESSAGE,
    INDEX_OPTIONS,
    OPTIMIZE_COMPRESS = INDEX_OPTIONS,
    OPTIMIZE_FRAGMENT_SIZE,
    OPTIMIZE_IF_FRAGMENTS,
    OPTIMIZE_IF_EDITS,
    OPTIMIZE_IF_DEAD,
    OPTIMIZE_OPTIONS
};
static const cli_option maintain_options[OPTIMIZE_OPTIONS] = {
    [MAINTAIN_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to write (default: main)"},
    [MAINTAIN_WORKERS] = {"workers", 0, CLI_NUMBER, "N",
                          "worker processes (default: SLUICE_WORKERS, else one per processor)"},
    [MAINTAIN_MEMORY] = {"memory", 0, CLI_SIZE, "SIZE",
                         "bound for the memory of all processes (default: half of what there is)"},
    [MAINTAIN_OP_ID] = {"op-id", 0, CLI_ID, "UUID",
                        "the same id with the same content gives the first result and changes nothing"},
    [MAINTAIN_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "only if this is the head of the branch"},
    [MAINTAIN_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "kept with the commit"},
    [OPTIMIZE_COMPRESS] = {"compress", 0, CLI_FLAG, NULL, "compress what is stored (zstd)"},
    [OPTIMIZE_FRAGMENT_SIZE] = {"fragment-size", 0, CLI_SIZE, "SIZE", "of the files that it makes (default: 64M)"},
    [OPTIMIZE_IF_FRAGMENTS] = {"if-fragments", 0, CLI_NUMBER, "N", "only types with so many small fragments"},
    [OPTIMIZE_IF_EDITS] = {"if-edits", 0, CLI_NUMBER, "N", "or with so many changes that are not folded"},
    [OPTIMIZE_IF_DEAD] = {"if-dead", 0, CLI_SIZE, "SIZE", "or with so much of rows that are deleted"},
};

static sluice_status fill_options(const cli_run *run, co_maintain_kind kind, cli_progress *progress,
                                  co_maintain_options *options, sluice_error *err)
{
    const cli_value *workers = cli_option_value(run, MAINTAIN_WORKERS);
    const cli_value *size = cli_option_value(run, OPTIMIZE_FRAGMENT_SIZE);
    if (workers->given && (workers->number == 0 || workers->number > UINT32_MAX))
        return pf_fail(err, SLUICE_USAGE, "--workers is at least 1");
    PF_TRY(cli_check_memory(run, MAINTAIN_MEMORY, err));
    if (kind == CO_OPTIMIZE && size->given && size->number == 0)
        return pf_fail(err, SLUICE_USAGE, "--fragment-size is at least 1");
    *options = (co_maintain_options){.kind = kind,
                                     .graph_path = run->arguments.operands[0],
                                     .branch = cli_text_or(run, MAINTAIN_BRANCH, NULL),
                                     .types = run->arguments.operands + 1,
                                     .type_count = run->arguments.operand_count - 1,
                                     .workers = (unsigned)workers->number,
                                     .memory = cli_option_value(run, MAINTAIN_MEMORY)->number,
                                     .stopped_seconds = run->hosted ? run->hosted->stopped_seconds : 0,
                                     .operation = cli_option_value(run, MAINTAIN_OP_ID)->id,
                                     .if_head = cli_option_value(run, MAINTAIN_IF_HEAD)->id,
                                     .message = cli_text_or(run, MAINTAIN_MESSAGE, NULL),
                                     .progress_context = progress,
                                     .progress = cli_progress_show};
    if (kind == CO_OPTIMIZE) {
        options->compress = cli_option_value(run, OPTIMIZE_COMPRESS)->given;
        options->fragment_bytes = size->number;
        options->if_fragments = cli_option_value(run, OPTIMIZE_IF_FRAGMENTS)->number;
        options->if_edits = cli_option_value(run, OPTIMIZE_IF_EDITS)->number;
        options->if_dead = cli_option_value(run, OPTIMIZE_IF_DEAD)->number;
    }
    return SLUICE_OK;
}

/* ---- the result ---- */

static const char *type_name(const st_schema *schema, uint64_t table)
{
    const st_type_def *type = st_schema_find_table(schema, table);
    return type ? type->name : "?";
}

static void put_size(st_json *json, const char *name, const co_maintain_size *size)
{
    st_json_name(json, name);
    st_json_object(json);
    st_json_name(json, "fragments");
    st_json_unsigned(json, size->fragments);
    st_json_name(json, "bytes");
    st_json_unsigned(json, size->bytes);
    st_json_name(json, "indexed");
    st_json_unsigned(json, size->indexed);
    st_json_object_end(json);
}

static sluice_status print_document(cli_run *run, const co_maintain_result *result, const st_schema *schema,
                                    sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    cli_put_receipt(json, &result->receipt, cli_text_or(run, MAINTAIN_BRANCH, NULL));
    st_json_name(json, "tables");
    st_json_object(json);
    for (uint32_t i = 0; i < result->table_count; i++) {
        st_json_name(json, type_name(schema, result->tables[i].table));
        st_json_object(json);
        put_size(json, "before", &result->tables[i].before);
        put_size(json, "after", &result->tables[i].after);
        st_json_object_end(json);
    }
    st_json_object_end(json);
    cli_put_operation(json, &result->receipt);
    cli_put_cost(json, result->seconds, result->memory_peak);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_sizes(cli_run *run, const st_schema *schema, const struct co_maintain_table *table,
                                 sluice_error *err)
{
    char before[CLI_SIZE_TEXT], after[CLI_SIZE_TEXT];
    const st_type_def *type = st_schema_find_table(schema, table->table);
    cli_size_text(table->before.bytes, before);
    cli_size_text(table->after.bytes, after);
    PF_TRY(cli_print(run, err, "%s: %llu -> %llu fragments, %s -> %s", type_name(schema, table->table),
                     (unsigned long long)table->before.fragments, (unsigned long long)table->after.fragments, before,
                     after));
    if (type && type->edge)
        PF_TRY(cli_print(run, err, ", indexed: %llu -> %llu", (unsigned long long)table->before.indexed,
                         (unsigned long long)table->after.indexed));
    return cli_print(run, err, "\n");
}

static sluice_status print_lines(cli_run *run, const co_maintain_result *result, const st_schema *schema,
                                 sluice_error *err)
{
    char commit[PF_ID_TEXT];
    for (uint32_t i = 0; i < result->table_count; i++)
        PF_TRY(print_sizes(run, schema, &result->tables[i], err));
    if (!result->receipt.committed)
        return cli_print(run, err, "nothing to do\n");
    pf_id_text(&result->receipt.commit, commit);
    return cli_print(run, err, "%scommit %s, generation %llu of %s, %.2f s\n",
                     result->receipt.repeated ? "done before: " : "", commit,
                     (unsigned long long)result->receipt.generation, cli_text_or(run, MAINTAIN_BRANCH, "main"),
                     result->seconds);
}

static sluice_status print_result(cli_run *run, const co_maintain_result *result, sluice_error *err)
{
    cli_place place = {0};
    sluice_status status;
    cli_receipt_stands(run, &result->receipt);
    PF_GOTO(status, done, cli_open_snapshot(run, cli_text_or(run, MAINTAIN_BRANCH, NULL), NULL, &place, err));
    const st_schema *schema = st_snapshot_view(place.snapshot)->schema;
    status = run->arguments.json ? print_document(run, result, schema, err) : print_lines(run, result, schema, err);
done:
    cli_close_snapshot(&place);
    return status;
}

static sluice_status run_maintain(cli_run *run, co_maintain_kind kind, sluice_error *err)
{
    co_maintain_options options;
    co_maintain_result result = {0};
    cli_progress progress;
    PF_TRY(fill_options(run, kind, &progress, &options, err));
    cli_progress_begin(&progress, run->arguments.json, run->hosted && run->hosted->terminal);
    pf_hold_interrupts();
    sluice_status status = co_maintain(&options, &result, err);
    cli_progress_clear(&progress);
    if (status == SLUICE_OK)
        status = print_result(run, &result, err);
    co_maintain_result_free(&result);
    return status;
}

static sluice_status run_optimize(cli_run *run, sluice_error *err)
{
    return run_maintain(run, CO_OPTIMIZE, err);
}

static sluice_status run_index(cli_run *run, sluice_error *err)
{
    return run_maintain(run, CO_INDEX, err);
}

const cli_command cli_optimize = {.name = "optimize",
                                  .operands = "GRAPH [TYPE...]",
                                  .summary = "Rewrite small fragments and deleted rows into few big fragments.",
                                  .options = maintain_options,
                                  .option_count = OPTIMIZE_OPTIONS,
                                  .least = 1,
                                  .most = UINT32_MAX,
                                  .effect = CLI_WRITES,
                                  .run = run_optimize};

const cli_command cli_index = {.name = "index",
                               .operands = "GRAPH [TYPE...]",
                               .summary = "Build the adjacency that neighbors goes by, and key runs that are lost.",
                               .options = maintain_options,
                               .option_count = INDEX_OPTIONS,
                               .least = 1,
                               .most = UINT32_MAX,
                               .effect = CLI_WRITES,
                               .run = run_index};
