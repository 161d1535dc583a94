/*
 * load: files into a graph, as one commit, by a pool of worker processes (coord/load.h does the work).
 */
#include "cli/error.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/receipt.h"
#include "coord/host/serve.h"
#include "coord/infer.h"
#include "platform/watch.h"
#include <stdlib.h>
#include <string.h>

enum {
    LOAD_MODE,
    LOAD_BRANCH,
    LOAD_WORKERS,
    LOAD_MEMORY,
    LOAD_ON_ERROR,
    LOAD_MAX_ERRORS,
    LOAD_REJECTS_FILE,
    LOAD_DRY_RUN,
    LOAD_COMPRESS,
    LOAD_INFER,
    LOAD_SCHEMA_OUT,
    LOAD_INPUT,
    LOAD_INPUT_LAST = LOAD_INPUT + CLI_INPUT_OPTION_COUNT - 1,
    LOAD_OP_ID,
    LOAD_IF_HEAD,
    LOAD_MESSAGE,
    LOAD_CREATE_BRANCH,
    LOAD_FROM,
    LOAD_OPTIONS
};
static const cli_option load_options[LOAD_OPTIONS] = {
    [LOAD_MODE] = {"mode", 0, CLI_CHOICE, "insert|upsert|overwrite",
                   "an existing key is an error, or is updated; or the whole types are replaced"},
    [LOAD_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to write (default: main)"},
    [LOAD_WORKERS] = {"workers", 0, CLI_NUMBER, "N",
                      "worker processes (default: SLUICE_WORKERS, else one per processor)"},
    [LOAD_MEMORY] = {"memory", 0, CLI_SIZE, "SIZE",
                     "of all processes together, such as 512M; files beyond it (default: half of what there is)"},
    [LOAD_ON_ERROR] = {"on-error", 0, CLI_CHOICE, "fail|skip",
                       "a bad row fails the load (default), or is left out and named"},
    [LOAD_MAX_ERRORS] = {"max-errors", 0, CLI_NUMBER, "N", "N rows may be left out, the next fails the load"},
    [LOAD_REJECTS_FILE] = {"rejects", 0, CLI_TEXT, "FILE",
                           "the rows left out, as JSON Lines (default: each is named on standard error)"},
    [LOAD_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "check everything and change nothing"},
    [LOAD_COMPRESS] = {"compress", 0, CLI_FLAG, NULL, "compress what is stored (zstd)"},
    [LOAD_INFER] = {"infer", 0, CLI_FLAG, NULL, "print the schema that the files would have, and load nothing"},
    [LOAD_SCHEMA_OUT] = {"schema-out", 0, CLI_TEXT, "FILE", "where --infer writes the schema"},
    [LOAD_INPUT] = CLI_INPUT_OPTIONS,
    [LOAD_OP_ID] = {"op-id", 0, CLI_ID, "UUID",
                    "the same id with the same content gives the first result and changes nothing"},
    [LOAD_IF_HEAD] = {"if-head", 0, CLI_ID, "COMMIT", "only if this is the head of the branch"},
    [LOAD_MESSAGE] = {"message", 'm', CLI_TEXT, "TEXT", "kept with the commit"},
    [LOAD_CREATE_BRANCH] = {"create-branch", 0, CLI_FLAG, NULL, "make the branch of --branch, with this load in it"},
    [LOAD_FROM] = {"from", 0, CLI_TEXT, "B",
                   "with --create-branch: the branch, or the commit of any branch, to begin at (default: main)"},
};

static sluice_status check_options(const cli_run *run, sluice_error *err)
{
    if (cli_option_value(run, LOAD_WORKERS)->given &&
        (cli_option_value(run, LOAD_WORKERS)->number == 0 || cli_option_value(run, LOAD_WORKERS)->number > UINT32_MAX))
        return pf_fail(err, SLUICE_USAGE, "--workers is at least 1");
    PF_TRY(cli_check_memory(run, LOAD_MEMORY, err));
    if (cli_option_value(run, LOAD_CREATE_BRANCH)->given && !cli_option_value(run, LOAD_BRANCH)->given)
        return pf_fail(err, SLUICE_USAGE, "--create-branch goes with --branch, which names it");
    if (cli_option_value(run, LOAD_FROM)->given && !cli_option_value(run, LOAD_CREATE_BRANCH)->given)
        return pf_fail(err, SLUICE_USAGE, "--from goes with --create-branch");
    if (cli_option_value(run, LOAD_SCHEMA_OUT)->given && !cli_option_value(run, LOAD_INFER)->given)
        return pf_fail(err, SLUICE_USAGE, "--schema-out goes with --infer");
    if (cli_option_value(run, LOAD_INFER)->given && cli_option_value(run, LOAD_ON_ERROR)->number == 1)
        return pf_fail(err, SLUICE_USAGE, "--infer takes every row: --on-error skip does not go with it");
    if (cli_option_value(run, LOAD_ON_ERROR)->number != 1 &&
        (cli_option_value(run, LOAD_MAX_ERRORS)->given || cli_option_value(run, LOAD_REJECTS_FILE)->given)) {
        pf_fail(err, SLUICE_USAGE, "%s goes with --on-error skip",
                cli_option_value(run, LOAD_REJECTS_FILE)->given ? "--rejects" : "--max-errors");
        pf_hint(err, "add: --on-error skip");
        return SLUICE_USAGE;
    }
    return cli_inputs_check(run, LOAD_INPUT, err);
}

static void say_reject(void *context, const char *file, uint64_t line, const char *code, const char *text)
{
    cli_progress_clear(context);
    cli_note("%s:%llu: %s (%s)", file, (unsigned long long)line, text, code);
}

static void fill_options(const cli_run *run, cli_progress *progress, co_load_options *options)
{
    options->graph_path = run->arguments.operands[0];
    options->branch = cli_text_or(run, LOAD_BRANCH, NULL);
    options->create_branch = cli_option_value(run, LOAD_CREATE_BRANCH)->given;
    options->from = cli_text_or(run, LOAD_FROM, NULL);
    options->mode = (co_load_mode)cli_option_value(run, LOAD_MODE)->number; /* the words are in the order of the enum */
    options->workers = (unsigned)cli_option_value(run, LOAD_WORKERS)->number;
    options->memory = cli_option_value(run, LOAD_MEMORY)->number;
    options->compress = cli_option_value(run, LOAD_COMPRESS)->given;
    options->dry_run = cli_option_value(run, LOAD_DRY_RUN)->given;
    options->skip_bad_rows = cli_option_value(run, LOAD_ON_ERROR)->number == 1;
    options->max_errors =
        cli_option_value(run, LOAD_MAX_ERRORS)->given ? cli_option_value(run, LOAD_MAX_ERRORS)->number : UINT64_MAX;
    options->rejects_path = cli_text_or(run, LOAD_REJECTS_FILE, NULL);
    options->reject_context = progress;
    options->reject = say_reject;
    options->operation = cli_option_value(run, LOAD_OP_ID)->id;
    options->if_head = cli_option_value(run, LOAD_IF_HEAD)->id;
    options->message = cli_text_or(run, LOAD_MESSAGE, NULL);
    options->stopped_seconds = run->hosted ? run->hosted->stopped_seconds : 0;
    options->progress_context = progress;
    options->progress = cli_progress_show;
}

/* ---- the result ---- */

static sluice_status print_document(cli_run *run, const co_load_result *result, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    cli_put_receipt(json, &result->receipt, cli_text_or(run, LOAD_BRANCH, NULL));
    st_json_name(json, "rows");
    st_json_object(json);
    for (uint32_t i = 0; i < result->type_count; i++) {
        st_json_name(json, result->types[i].name);
        st_json_unsigned(json, result->types[i].rows);
    }
    st_json_object_end(json);
    cli_put_changes(json, result->receipt.inserted, result->receipt.updated, result->receipt.deleted);
    st_json_name(json, "rejected");
    st_json_unsigned(json, result->rejected);
    cli_put_operation(json, &result->receipt);
    cli_put_cost(json, result->seconds, result->memory_peak);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_lines(cli_run *run, const co_load_result *result, sluice_error *err)
{
    char commit[PF_ID_TEXT];
    for (uint32_t i = 0; i < result->type_count; i++)
        PF_TRY(
            cli_print(run, err, "%s: %llu rows\n", result->types[i].name, (unsigned long long)result->types[i].rows));
    if (result->receipt.updated > 0 || result->receipt.deleted > 0)
        PF_TRY(cli_print(run, err, "new: %llu, updated: %llu, removed: %llu\n",
                         (unsigned long long)result->receipt.inserted, (unsigned long long)result->receipt.updated,
                         (unsigned long long)result->receipt.deleted));
    if (result->rejected > 0)
        PF_TRY(cli_print(run, err, "left out: %llu bad rows\n", (unsigned long long)result->rejected));
    if (!result->receipt.committed)
        return cli_print(run, err, "%s\n",
                         cli_option_value(run, LOAD_DRY_RUN)->given ? "checked; nothing was changed" : "nothing to do");
    pf_id_text(&result->receipt.commit, commit);
    return cli_print(
        run, err, "%scommit %s, generation %llu of %s, %.2f s\n", result->receipt.repeated ? "done before: " : "",
        commit, (unsigned long long)result->receipt.generation, cli_text_or(run, LOAD_BRANCH, "main"), result->seconds);
}

/* A load that leaves out all rows of a file is seldom what was meant. */
static void warn(const co_load_result *result)
{
    for (uint32_t i = 0; i < result->bare_count; i++) {
        const struct co_load_bare *bare = &result->bare[i];
        cli_note("warning: no row of %s was loaded: all %llu are bad; the first is %s:%llu: %s", bare->path,
                 (unsigned long long)bare->rejected, bare->path, (unsigned long long)bare->line, bare->text);
    }
    if (result->unlisted && result->rejected > 0)
        cli_note("this was done before, and %llu rows were left out then; they are not listed again",
                 (unsigned long long)result->rejected);
}

static sluice_status print_result(cli_run *run, const co_load_result *result, sluice_error *err)
{
    cli_receipt_stands(run, &result->receipt);
    return run->arguments.json ? print_document(run, result, err) : print_lines(run, result, err);
}

static sluice_status print_schema(cli_run *run, const st_schema *schema, sluice_error *err)
{
    const char *path = cli_text_or(run, LOAD_SCHEMA_OUT, NULL);
    pf_output *out = NULL;
    pf_buffer text = {0};
    sluice_status status;
    PF_GOTO(status, done, st_schema_format(schema, &text, err));
    if (!path) {
        status = cli_write(run, text.data, text.length, err);
        goto done;
    }
    PF_GOTO(status, done, pf_output_open(path, PF_OUTPUT_SWAP, &out, err));
    status = pf_output_write(out, text.data, text.length, err);
    if (status == SLUICE_OK)
        status = pf_output_close(out, true, err);
    else
        pf_output_discard(out);
    if (status == SLUICE_OK && run->arguments.json) {
        cli_json document;
        cli_json_begin(&document);
        st_json_object(&document.json);
        st_json_name(&document.json, "schema_file");
        st_json_lossy_text(&document.json, path, strlen(path));
        st_json_object_end(&document.json);
        status = cli_json_end(run, &document, err);
    } else if (status == SLUICE_OK) {
        status = cli_print(run, err, "schema of %u types in %s\n", schema->type_count, path);
    }
done:
    pf_buffer_free(&text);
    return status;
}

static sluice_status run_infer(cli_run *run, const co_load_options *options, sluice_error *err)
{
    st_schema *schema = NULL;
    sluice_status status = co_infer(options, cli_say, NULL, &schema, err);
    if (status == SLUICE_OK)
        status = print_schema(run, schema, err);
    st_schema_free(schema);
    return status;
}

static sluice_status run_load(cli_run *run, sluice_error *err)
{
    co_load_options options = {0};
    cli_progress progress;
    cli_inputs inputs = {0};
    co_load_result *result = calloc(1, sizeof *result);
    sluice_status status;
    if (!result)
        return pf_fail_memory(err);
    PF_GOTO(status, done, check_options(run, err));
    PF_GOTO(status, done, cli_inputs_parse(run, &inputs, err));
    fill_options(run, &progress, &options);
    cli_inputs_fill(run, LOAD_INPUT, &inputs, &options);
    if (cli_option_value(run, LOAD_INFER)->given) {
        status = run_infer(run, &options, err);
        goto done;
    }
    cli_progress_begin(&progress, run->arguments.json, run->hosted && run->hosted->terminal);
    pf_hold_interrupts();
    status = co_load(&options, result, err);
    cli_progress_clear(&progress);
    warn(result);
    if (status == SLUICE_OK)
        status = print_result(run, result, err);
done:
    cli_inputs_free(&inputs);
    co_load_result_free(result);
    free(result);
    return status;
}

const cli_command cli_load = {.name = "load",
                              .operands = "GRAPH TYPE=FILE...",
                              .summary = "Load files into a graph, as one commit.",
                              .options = load_options,
                              .option_count = LOAD_OPTIONS,
                              .least = 2,
                              .most = UINT32_MAX,
                              .effect = CLI_WRITES,
                              .run = run_load};
