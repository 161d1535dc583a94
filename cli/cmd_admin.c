/*
 * verify, recover, gc: looking after a graph.
 */
#include "cli/error.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "coord/host/serve.h"
#include "coord/objects.h"
#include "coord/recover.h"
#include "store/read/verify.h"
#include <stdio.h>
#include <string.h>

/* ---- verify ---- */

enum { VERIFY_QUICK, VERIFY_OPTIONS };
static const cli_option verify_options[VERIFY_OPTIONS] = {
    [VERIFY_QUICK] = {"quick", 0, CLI_FLAG, NULL, "structure and digests of headers only, not every byte"},
};

typedef struct verifying {
    cli_run *run;
    cli_json document; /* with --json: its list of problems is open */
    uint64_t problems;
    char salvage[256]; /* a type whose rows are damaged; "": none */
    bool derived;      /* is anything that `index` makes anew? */
    cli_progress progress;
    cli_work count;
} verifying;

/* What leads on from a damaged file: keys and indexes are made anew from the rows, rows are salvaged. */
static void note_damaged(verifying *state, const char *object, const char *type)
{
    bool derived = strstr(object, "/keys/") || strstr(object, "/indexes/");
    state->derived |= derived;
    if (!derived && !state->salvage[0])
        (void)snprintf(state->salvage, sizeof state->salvage, "%s", type);
}

static void hint_at_repair(const verifying *state, sluice_error *err)
{
    char word[PF_WORD_BYTES];
    if (state->salvage[0])
        pf_hint(err,
                "`sluice salvage GRAPH %s --into salvaged` makes a graph of the rows of a damaged table that are "
                "whole; a backup has all",
                pf_word(word, state->salvage));
    else if (state->derived)
        pf_hint(
            err,
            "remove the damaged file: `sluice index GRAPH` makes it anew from the rows (verify goes on to name it as "
            "missing where older generations have it)");
    else
        pf_hint(err, "`sluice recover GRAPH` settles what can be settled; what is damaged is named on standard output");
}

static sluice_status note_problem(void *context, const char *object, const char *type, const char *problem,
                                  sluice_error *err)
{
    verifying *state = context;
    state->problems++;
    if (type)
        note_damaged(state, object, type);
    cli_progress_clear(&state->progress);
    if (!state->run->arguments.json)
        return cli_print(state->run, err, "%s%s%s: %s\n", object, type ? ", of " : "", type ? type : "", problem);
    st_json_object(&state->document.json);
    st_json_name(&state->document.json, "object");
    st_json_text(&state->document.json, object);
    st_json_named_text(&state->document.json, "type", type);
    st_json_name(&state->document.json, "problem");
    st_json_text(&state->document.json, problem);
    st_json_object_end(&state->document.json);
    return SLUICE_OK;
}

static sluice_status print_verdict(verifying *state, uint64_t checked, sluice_error *err)
{
    if (!state->run->arguments.json)
        return state->problems == 0
                   ? cli_print(state->run, err, "ok: %llu objects checked\n", (unsigned long long)checked)
                   : SLUICE_OK;
    st_json *json = &state->document.json;
    st_json_array_end(json);
    st_json_name(json, "ok");
    st_json_bool(json, state->problems == 0);
    st_json_name(json, "checked");
    st_json_unsigned(json, checked);
    st_json_object_end(json);
    state->run->document_printed = true;
    return cli_json_end(state->run, &state->document, err);
}

static void show_objects(void *context, uint64_t objects)
{
    verifying *state = context;
    state->count.done = objects;
    cli_progress_count(&state->progress, &state->count);
}

/* How many objects there are, about: what nothing names is not checked. */
static sluice_status count_objects(verifying *state, st_graph *graph, sluice_error *err)
{
    co_objects objects = {0};
    if (!cli_progress_wanted(&state->progress))
        return SLUICE_OK;
    sluice_status status = co_objects_list(graph, NULL, &objects, err);
    state->count = (cli_work){.unit = "objects", .total = objects.count};
    co_objects_free(&objects);
    return status;
}

static sluice_status run_verify(cli_run *run, sluice_error *err)
{
    verifying state = {.run = run};
    st_graph *graph = NULL;
    uint64_t checked = 0;
    sluice_status status;
    cli_progress_begin(&state.progress, run->arguments.json, run->hosted && run->hosted->terminal);
    cli_json_begin(&state.document);
    st_json_object(&state.document.json);
    st_json_name(&state.document.json, "problems");
    st_json_array(&state.document.json);
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_READ, &graph, err));
    PF_GOTO(status, done, count_objects(&state, graph, err));
    PF_GOTO(status, done,
            st_graph_verify_watched(graph, cli_option_value(run, VERIFY_QUICK)->given, note_problem, show_objects,
                                    &state, &checked, err));
    cli_progress_clear(&state.progress);
    PF_GOTO(status, done, print_verdict(&state, checked, err));
    if (state.problems > 0) {
        status = pf_fail(err, SLUICE_CORRUPT, "%llu problem%s found", (unsigned long long)state.problems,
                         state.problems == 1 ? " was" : "s were");
        hint_at_repair(&state, err);
    }
done:
    cli_progress_clear(&state.progress);
    pf_buffer_free(&state.document.buffer);
    st_graph_close(graph);
    return status;
}

const cli_command cli_verify = {.name = "verify",
                                .operands = "GRAPH",
                                .summary = "Check everything that the graph reaches, down to every byte.",
                                .options = verify_options,
                                .option_count = VERIFY_OPTIONS,
                                .least = 1,
                                .most = 1,
                                .effect = CLI_READS,
                                .run = run_verify};

/* ---- recover ---- */

enum { RECOVER_PROBE, RECOVER_OPTIONS };
static const cli_option recover_options[RECOVER_OPTIONS] = {
    [RECOVER_PROBE] = {"probe", 0, CLI_FLAG, NULL, "say what would be done, and change nothing"},
};

typedef struct recovering {
    cli_run *run;
    cli_table table;
    uint64_t lines;
} recovering;

static sluice_status print_recovered(void *context, const co_recovered *line, sluice_error *err)
{
    recovering *state = context;
    char operation[PF_ID_TEXT];
    const char *const words[] = {line->kind, line->stage, line->classification, line->action, line->outcome};
    static const char *const names[] = {"kind", "stage", "classification", "action", "outcome"};
    state->lines++;
    pf_id_text(&line->operation, operation);
    if (!state->run->arguments.json) {
        PF_TRY(cli_table_text(&state->table, operation, err));
        for (unsigned i = 0; i < 5; i++)
            PF_TRY(cli_table_text(&state->table, words[i], err));
        return SLUICE_OK;
    }
    cli_json document;
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "id");
    st_json_text(&document.json, operation);
    st_json_name(&document.json, "commit");
    if (pf_id_is_nil(&line->commit))
        st_json_null(&document.json);
    else
        st_json_id(&document.json, &line->commit);
    st_json_name(&document.json, "slot");
    st_json_unsigned(&document.json, line->slot);
    for (unsigned i = 0; i < 5; i++) {
        st_json_name(&document.json, names[i]);
        st_json_text(&document.json, words[i]);
    }
    st_json_object_end(&document.json);
    return cli_json_end(state->run, &document, err);
}

static sluice_status run_recover(cli_run *run, sluice_error *err)
{
    static const char *const heads[] = {"id", "kind", "stage", "classification", "action", "outcome"};
    bool probe = cli_option_value(run, RECOVER_PROBE)->given;
    recovering state = {.run = run};
    st_graph *graph = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], probe ? PF_READ : PF_WRITE, &graph, err));
    if (!run->arguments.json) {
        PF_GOTO(status, done, cli_table_begin(run->out, 6, &state.table, err));
        for (unsigned i = 0; i < 6; i++)
            PF_GOTO(status, done, cli_table_text(&state.table, heads[i], err));
    }
    PF_GOTO(status, done,
            co_recover(graph, probe ? CO_RECOVER_PROBE : CO_RECOVER_FULL, 0, NULL, 0, print_recovered, &state, err));
    if (run->arguments.json)
        goto done;
    status = state.lines > 0 ? cli_table_end(&state.table, err) : cli_print(run, err, "nothing to recover\n");
done:
    cli_table_free(&state.table);
    st_graph_close(graph);
    return status;
}

const cli_command cli_recover = {.name = "recover",
                                 .operands = "GRAPH",
                                 .summary = "Finish or discard what dead writers left, one line per intent.",
                                 .options = recover_options,
                                 .option_count = RECOVER_OPTIONS,
                                 .least = 1,
                                 .most = 1,
                                 .effect = CLI_WRITES,
                                 .run = run_recover};

/* ---- gc ---- */

enum { GC_KEEP, GC_OLDER, GC_DRY_RUN, GC_IF_FREES, GC_OPTIONS };
static const cli_option gc_options[GC_OPTIONS] = {
    [GC_KEEP] = {"keep", 0, CLI_NUMBER, "N", "let go of history but for each branch's newest N generations"},
    [GC_OLDER] = {"older-than", 0, CLI_TEXT, "DURATION",
                  "let go of what stood longer ago: 30d, 12h, 90m, 45s, 2w (with --keep: what is beyond both)"},
    [GC_DRY_RUN] = {"dry-run", 0, CLI_FLAG, NULL, "say what would go, file by file, and change nothing"},
    [GC_IF_FREES] = {"if-frees", 0, CLI_SIZE, "SIZE", "only if so much would go, else nothing"},
};

#define LONGEST_S INT64_C(1000000000000) /* longer than any graph is old */

/* A whole number and one of s, m, h, d, w. */
static bool parse_duration(const char *text, int64_t *ret_us)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    int64_t number = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || strlen(text) != digits + 1)
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (text[i] - '0');
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].letter != text[digits])
            continue;
        number *= units[i].seconds; /* below 10^9 * 10^6 */
        *ret_us = (number < LONGEST_S ? number : LONGEST_S) * 1000000;
        return true;
    }
    return false;
}

typedef struct gc_listing {
    cli_run *run;
    st_json *json; /* NULL: for people */
    cli_progress progress;
    cli_work count;
} gc_listing;

static sluice_status count_file(void *context, const char *path, uint64_t bytes, sluice_error *err)
{
    gc_listing *list = context;
    (void)path;
    (void)err;
    list->count.done++;
    list->count.bytes += bytes;
    cli_progress_count(&list->progress, &list->count);
    return SLUICE_OK;
}

static sluice_status list_file(void *context, const char *path, uint64_t bytes, sluice_error *err)
{
    const gc_listing *list = context;
    char size[CLI_SIZE_TEXT];
    if (list->json) {
        st_json_text(list->json, path);
        return SLUICE_OK;
    }
    cli_size_text(bytes, size);
    return cli_print(list->run, err, "%s (%s)\n", path, size);
}

static void put_count(st_json *json, const char *name, uint64_t count)
{
    st_json_name(json, name);
    st_json_unsigned(json, count);
}

static sluice_status say_freed(cli_run *run, const co_gc_report *report, bool dry, sluice_error *err)
{
    char size[CLI_SIZE_TEXT];
    cli_size_text(report->bytes, size);
    PF_TRY(cli_print(run, err, "%s %llu files, %s, of %llu dead attempts\n", dry ? "would free" : "freed",
                     (unsigned long long)report->files, size, (unsigned long long)report->attempts));
    if (report->generations > 0 || report->segments > 0)
        PF_TRY(cli_print(run, err, "%s of %llu generations, and %llu log segments\n", dry ? "would let go" : "let go",
                         (unsigned long long)report->generations, (unsigned long long)report->segments));
    if (report->damaged > 0)
        PF_TRY(cli_print(run, err, "%llu log segments are damaged and stay; sluice verify names them\n",
                         (unsigned long long)report->damaged));
    return SLUICE_OK;
}

/* A look first, where it is to free at least so much. Less: nothing is done, and nothing is what the report says. */
static sluice_status collect(cli_run *run, st_graph *graph, const co_gc_options *options, co_gc_report *ret_report,
                             sluice_error *err)
{
    const cli_value *frees = cli_option_value(run, GC_IF_FREES);
    co_gc_options look = *options;
    co_gc_report would = {0};
    look.dry_run = true;
    look.each = NULL;
    if (frees->given)
        PF_TRY(co_gc_with(graph, &look, &would, err));
    if (frees->given && would.bytes < frees->number)
        return SLUICE_OK;
    return co_gc_with(graph, options, ret_report, err);
}

static sluice_status run_gc(cli_run *run, sluice_error *err)
{
    const cli_value *keep = cli_option_value(run, GC_KEEP), *older = cli_option_value(run, GC_OLDER);
    bool dry = cli_option_value(run, GC_DRY_RUN)->given;
    cli_json document;
    gc_listing listing = {.run = run, .count = {.unit = "files"}};
    co_gc_options options = {.dry_run = dry, .keep = keep->given ? keep->number : 0, .age_given = older->given};
    co_gc_report report = {0};
    st_graph *graph = NULL;
    sluice_status status;
    if (keep->given && options.keep == 0)
        return pf_fail(err, SLUICE_USAGE, "--keep: at least 1, the newest generation always stays");
    if (older->given && !parse_duration(older->text, &options.age_us))
        return pf_fail_private(err, SLUICE_USAGE, "--older-than: not a duration",
                               "--older-than: \"%s\" is no duration: a number and s, m, h, d or w, like 30d",
                               older->text);
    options.each = dry ? list_file : count_file;
    options.context = &listing;
    cli_progress_begin(&listing.progress, run->arguments.json, run->hosted && run->hosted->terminal);
    if (!run->arguments.json) {
        PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_WRITE, &graph, err));
        PF_GOTO(status, done, collect(run, graph, &options, &report, err));
        cli_progress_clear(&listing.progress);
        status = say_freed(run, &report, dry, err);
        goto done;
    }
    cli_json_begin(&document);
    listing.json = &document.json;
    st_json_object(&document.json);
    if (dry) {
        st_json_name(&document.json, "paths");
        st_json_array(&document.json);
    }
    status = st_graph_open(run->arguments.operands[0], PF_WRITE, &graph, err);
    if (status == SLUICE_OK)
        status = collect(run, graph, &options, &report, err);
    if (status != SLUICE_OK) {
        pf_buffer_free(&document.buffer);
        goto done;
    }
    if (dry)
        st_json_array_end(&document.json);
    put_count(&document.json, "files", report.files);
    put_count(&document.json, "bytes", report.bytes);
    put_count(&document.json, "attempts", report.attempts);
    put_count(&document.json, "generations", report.generations);
    put_count(&document.json, "segments", report.segments);
    put_count(&document.json, "damaged", report.damaged);
    st_json_name(&document.json, "dry_run");
    st_json_bool(&document.json, dry);
    st_json_object_end(&document.json);
    status = cli_json_end(run, &document, err);
done:
    cli_progress_clear(&listing.progress);
    st_graph_close(graph);
    return status;
}

const cli_command cli_gc = {.name = "gc",
                            .operands = "GRAPH",
                            .summary = "Remove what nothing needs any more.",
                            .options = gc_options,
                            .option_count = GC_OPTIONS,
                            .least = 1,
                            .most = 1,
                            .effect = CLI_WRITES,
                            .run = run_gc};
