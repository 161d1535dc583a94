/*
 * salvage: one table of a damaged graph, made anew in a graph of its own.
 */
#include "cli/output.h"
#include "coord/salvage.h"
#include <stdlib.h>
#include <string.h>

enum { SALVAGE_INTO, SALVAGE_BRANCH, SALVAGE_WORKERS, SALVAGE_OPTIONS };
static const cli_option salvage_options[SALVAGE_OPTIONS] = {
    [SALVAGE_INTO] = {"into", 0, CLI_TEXT, "NEWGRAPH", "the new graph; it must not be there"},
    [SALVAGE_BRANCH] = {"branch", 0, CLI_TEXT, "B", "of which branch (main)"},
    [SALVAGE_WORKERS] = {"workers", 0, CLI_NUMBER, "N", "worker processes of the load"},
};

typedef struct guess {
    char *object, *what;
} guess;

typedef struct telling {
    cli_run *run;
    cli_json document; /* with --json: its list of losses is open */
    guess *guesses;    /* for the list behind it */
    size_t guess_count;
} telling;

static sluice_status keep_guess(telling *state, const char *object, const char *what, sluice_error *err)
{
    guess *grown = realloc(state->guesses, (state->guess_count + 1) * sizeof *grown);
    if (!grown)
        return pf_fail_memory(err);
    state->guesses = grown;
    grown[state->guess_count] = (guess){strdup(object), strdup(what)};
    state->guess_count++;
    return grown[state->guess_count - 1].object && grown[state->guess_count - 1].what ? SLUICE_OK : pf_fail_memory(err);
}

static void write_finding(st_json *json, const char *object, const char *what)
{
    st_json_object(json);
    st_json_name(json, "object");
    st_json_lossy_text(json, object, strlen(object));
    st_json_name(json, "what");
    st_json_lossy_text(json, what, strlen(what));
    st_json_object_end(json);
}

static sluice_status tell(void *context, st_finding finding, const char *object, const char *what, sluice_error *err)
{
    telling *state = context;
    if (!state->run->arguments.json)
        return cli_print(state->run, err, "%s: %s: %s\n", finding == ST_LOST ? "lost" : "guessed", object, what);
    if (finding == ST_GUESSED)
        return keep_guess(state, object, what, err);
    write_finding(&state->document.json, object, what);
    return SLUICE_OK;
}

static sluice_status print_report(telling *state, const co_salvage_report *report, sluice_error *err)
{
    cli_run *run = state->run;
    if (!run->arguments.json) {
        for (uint32_t i = 0; i < report->type_count; i++)
            PF_TRY(cli_print(run, err, "%s: %llu rows\n", report->types[i].name,
                             (unsigned long long)report->types[i].rows));
        if (report->from_files)
            return cli_print(run, err,
                             "no state: rows of all files; left out by a rule: %llu, as another version: %llu\n",
                             (unsigned long long)report->rejected, (unsigned long long)report->doubled);
        return cli_print(run, err,
                         "state of generation %llu%s; known to be lost: %llu rows; left out by a rule: %llu%s\n",
                         (unsigned long long)report->generation, report->older ? ", which is not the newest" : "",
                         (unsigned long long)report->lost_rows, (unsigned long long)report->rejected,
                         report->deletions_unknown ? "; rows that were deleted may be among these" : "");
    }
    st_json *json = &state->document.json;
    st_json_array_end(json);
    st_json_name(json, "guesses");
    st_json_array(json);
    for (size_t i = 0; i < state->guess_count; i++)
        write_finding(json, state->guesses[i].object, state->guesses[i].what);
    st_json_array_end(json);
    st_json_name(json, "whole");
    st_json_bool(json, co_salvage_is_whole(report));
    st_json_name(json, "rows");
    st_json_object(json);
    for (uint32_t i = 0; i < report->type_count; i++) {
        st_json_name(json, report->types[i].name);
        st_json_unsigned(json, report->types[i].rows);
    }
    st_json_object_end(json);
    st_json_name(json, "lost_rows");
    if (report->from_files)
        st_json_null(json);
    else
        st_json_unsigned(json, report->lost_rows);
    st_json_name(json, "rejected");
    st_json_unsigned(json, report->rejected);
    st_json_name(json, "doubled");
    st_json_unsigned(json, report->doubled);
    st_json_name(json, "deletions_unknown");
    st_json_bool(json, report->deletions_unknown);
    st_json_name(json, "from");
    st_json_text(json, report->from_files ? "files" : "state");
    st_json_name(json, "generation");
    if (report->from_files)
        st_json_null(json);
    else
        st_json_unsigned(json, report->generation);
    st_json_name(json, "newest_generation");
    if (report->newest == 0)
        st_json_null(json);
    else
        st_json_unsigned(json, report->newest);
    st_json_object_end(json);
    run->document_printed = true;
    return cli_json_end(run, &state->document, err);
}

static sluice_status run_salvage(cli_run *run, sluice_error *err)
{
    telling state = {.run = run};
    co_salvage_report *report = calloc(1, sizeof *report);
    sluice_status status;
    if (!report)
        return pf_fail_memory(err);
    cli_json_begin(&state.document);
    st_json_object(&state.document.json);
    st_json_name(&state.document.json, "losses");
    st_json_array(&state.document.json);
    if (!cli_option_value(run, SALVAGE_INTO)->given) {
        status = pf_fail(err, SLUICE_USAGE, "salvage wants --into NEWGRAPH");
        pf_hint(err, "usage: sluice salvage GRAPH TYPE --into NEWGRAPH");
        goto done;
    }
    const co_salvage_request request = {.graph = run->arguments.operands[0],
                                        .branch = cli_text_or(run, SALVAGE_BRANCH, NULL),
                                        .type = run->arguments.operands[1],
                                        .into = cli_option_value(run, SALVAGE_INTO)->text,
                                        .workers = (unsigned)cli_option_value(run, SALVAGE_WORKERS)->number,
                                        .each = tell,
                                        .context = &state};
    PF_GOTO(status, done, co_salvage(&request, report, err));
    PF_GOTO(status, done, print_report(&state, report, err));
    if (!co_salvage_is_whole(report)) {
        status = pf_fail(err, SLUICE_CORRUPT, "the table was not whole: what could be read is in the new graph");
        pf_hint(err, "what is lost is named on standard output");
        if (err)
            err->committed = SLUICE_TRUE;
    }
done:
    for (size_t i = 0; i < state.guess_count; i++) {
        free(state.guesses[i].object);
        free(state.guesses[i].what);
    }
    free(state.guesses);
    pf_buffer_free(&state.document.buffer);
    free(report);
    return status;
}

const cli_command cli_salvage = {.name = "salvage",
                                 .operands = "GRAPH TYPE",
                                 .summary = "Make one table of a damaged graph anew, in a graph of its own.",
                                 .options = salvage_options,
                                 .option_count = SALVAGE_OPTIONS,
                                 .least = 2,
                                 .most = 2,
                                 .effect = CLI_READS, /* by the files: NEWGRAPH is this process's */
                                 .run = run_salvage};
