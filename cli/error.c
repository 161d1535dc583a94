/*
 * Errors on the terminal and as documents (see cli/error.h).
 */
#include "cli/error.h"
#include "cli/output.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One write per line, so that lines of several processes do not mix. */
static void print_line(const char *prefix, const char *text, const char *suffix)
{
    pf_buffer line = {0};
    if (pf_buffer_append_text(&line, prefix, NULL) == SLUICE_OK &&
        cli_append_visible(&line, text, strlen(text), NULL) == SLUICE_OK &&
        pf_buffer_append_text(&line, suffix, NULL) == SLUICE_OK &&
        pf_buffer_append_text(&line, "\n", NULL) == SLUICE_OK) {
        (void)fwrite(line.data, 1, line.length, stderr);
        (void)fflush(stderr);
    }
    pf_buffer_free(&line);
}

void cli_note(const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    if (length < 0)
        return;
    print_line("sluice: ", text, "");
    free(text);
}

void cli_say(void *context, const char *line)
{
    (void)context;
    print_line("", line, "");
}

static const char *truth_word(sluice_truth truth)
{
    return truth == SLUICE_TRUE ? "yes" : truth == SLUICE_FALSE ? "no" : "unknown";
}

/* What leads on from a code by itself, whoever met it; NULL: nothing more than its action. */
static const char *hint_of_code(sluice_status code)
{
    if (code == SLUICE_NO_SPACE)
        return "free some space on the disk and try again; `sluice gc GRAPH` removes what nothing needs";
    if (code == SLUICE_PERMISSION)
        return "run it as the owner of the graph and the files, or let the owner give the right (ls -l shows who that "
               "is)";
    if (code == SLUICE_IO)
        return "the system's log may say why (dmesg); `sluice verify GRAPH` says whether what is stored is whole";
    if (code == SLUICE_INTERNAL)
        return "try again; `sluice verify GRAPH` says whether the graph is whole, `sluice version` what to report";
    return NULL;
}

/* What to do about a code, without a word of the user's. */
static const char *safe_hint(const sluice_error *error)
{
    if (hint_of_code(error->code))
        return hint_of_code(error->code);
    switch (sluice_status_action(error->code)) {
    case SLUICE_ACTION_RETRY:
        return "try again; with the same operation id it is done once";
    case SLUICE_ACTION_REFRESH:
        return "read the current state and decide again";
    case SLUICE_ACTION_RECOVER:
        return "`sluice recover GRAPH` settles what can be settled; then `sluice verify GRAPH`";
    case SLUICE_ACTION_FIX:
        return "the message on standard error says what to correct";
    case SLUICE_ACTION_NONE:
        break;
    }
    return NULL;
}

/* ---- hints ---- */

/* The operand of the line that is the graph; NULL: it has none. */
static const char *graph_of(const cli_run *run)
{
    if (!run || !run->command || !run->arguments.operands)
        return NULL;
    if (run->graph_said)
        return run->graph_said;
    const char *at = strstr(run->command->operands, "GRAPH");
    uint32_t which = at == run->command->operands ? 0 : 1;
    return at && which < run->arguments.operand_count ? run->arguments.operands[which] : NULL;
}

/* One word of a shell. */
static sluice_status append_word(pf_buffer *line, const char *word)
{
    if (pf_is_plain_word(word))
        return pf_buffer_append_text(line, word, NULL);
    PF_TRY(pf_buffer_append_text(line, "'", NULL));
    for (; *word; word++)
        PF_TRY(*word == '\'' ? pf_buffer_append_text(line, "'\\''", NULL) : pf_buffer_append(line, word, 1, NULL));
    return pf_buffer_append_text(line, "'", NULL);
}

static sluice_status fill_hint(pf_buffer *line, const char *hint, const char *graph)
{
    const char *at;
    while (graph && strncmp(hint, "usage:", 6) != 0 && (at = strstr(hint, " GRAPH")) != NULL) {
        const char *behind = at + strlen(" GRAPH");
        PF_TRY(pf_buffer_append(line, hint, (size_t)(at + 1 - hint), NULL));
        PF_TRY(*behind >= 'A' && *behind <= 'Z' ? pf_buffer_append_text(line, "GRAPH", NULL)
                                                : append_word(line, graph));
        hint = behind;
    }
    return pf_buffer_append(line, hint, strlen(hint) + 1, NULL);
}

static void print_hint(const cli_run *run, const char *hint)
{
    pf_buffer line = {0};
    print_line("hint: ", fill_hint(&line, hint, graph_of(run)) == SLUICE_OK ? (const char *)line.data : hint, "");
    pf_buffer_free(&line);
}

void cli_print_error(const cli_run *run, const sluice_error *error)
{
    char suffix[64];
    const char *text = error->text[0] ? error->text : error->message;
    (void)snprintf(suffix, sizeof suffix, " (%s)", sluice_status_name(error->code));
    print_line("sluice: ", text, suffix);
    if (error->hint[0])
        print_hint(run, error->hint);
    else if (hint_of_code(error->code) || (sluice_status_action(error->code) != SLUICE_ACTION_FIX && safe_hint(error)))
        print_hint(run, safe_hint(error));
    if (error->operation_id[0]) {
        char line[160];
        (void)snprintf(line, sizeof line, "%s: committed: %s%s%s%s", error->operation_id, truth_word(error->committed),
                       error->committed == SLUICE_TRUE && error->acknowledged != SLUICE_TRUE ? ", not acknowledged"
                                                                                             : "",
                       error->commit_id[0] ? ", commit " : "", error->commit_id);
        print_line("operation ", line, "");
    }
}

void cli_print_error_document(cli_run *run, const sluice_error *error)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "error");
    st_json_object(json);
    st_json_named_text(json, "code", sluice_status_name(error->code));
    st_json_named_text(json, "message", error->message);
    st_json_named_text(json, "hint", safe_hint(error));
    st_json_named_truth(json, "committed", error->committed);
    st_json_named_truth(json, "acknowledged", error->acknowledged);
    st_json_named_text(json, "operation_id", error->operation_id);
    st_json_named_text(json, "commit_id", error->commit_id);
    st_json_named_text(json, "phase", error->phase == SLUICE_PHASE_NONE ? NULL : sluice_phase_name(error->phase));
    st_json_name(json, "retryable");
    st_json_bool(json, sluice_status_retryable(error->code));
    st_json_named_text(json, "action", sluice_action_name(sluice_status_action(error->code)));
    st_json_name(json, "details");
    if (error->details[0])
        st_json_raw(json, error->details, strlen(error->details));
    else
        st_json_null(json);
    st_json_object_end(json);
    st_json_object_end(json);
    if (cli_json_end(run, &document, NULL) == SLUICE_OK)
        (void)pf_output_flush(run->out, NULL);
}
