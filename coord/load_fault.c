/*
 * A row that a probe refuses, as a fault with its place and its words: the record is read again, since a message shows
 * the key as it stands in the file.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "worker/ingest/hints.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct key_words { /* what a record says about a key */
    const load_job *job;
    uint32_t input;
    const wk_run_plan *plan;
    bool of_names;    /* the load-local name, rather than a key */
    uint32_t column;  /* the first input column of the key */
    char names[256];  /* "column id", "columns from, to" */
    char values[400]; /* "\"7\"", "\"7\", \"x\"" */
    uint32_t fields;
} key_words;

static void add_word(char *list, size_t room, const char *word)
{
    size_t used = strlen(list);
    (void)snprintf(list + used, room - used, "%s%s", used ? ", " : "", word);
}

static void add_field(key_words *words, wk_record *record, uint32_t field)
{
    const load_file *file = &words->job->files[words->input];
    char shown[WK_SHOWN_ROOM];
    size_t length;
    const char *text = file->input.format->text(&file->input, record, field, &length);

    if (words->fields++ == 0)
        words->column = field;
    add_word(words->names, sizeof words->names, record->mapping->targets[field].name);
    add_word(words->values, sizeof words->values, wk_shown(text, length, shown));
}

/* The fields of the key in the order of its members, wherever they stand in the file. */
static void take_words(key_words *words, wk_record *record)
{
    const wk_mapping *mapping = record->mapping;

    for (uint32_t k = 0; k < words->plan->count; k++) {
        for (uint32_t member = 0; member < ST_KEY_MEMBERS_MAX; member++)
            for (uint32_t i = 0; i < record->kept; i++) {
                const wk_target *target = &mapping->targets[i];
                if (words->of_names
                        ? target->names == WK_NAMES_ROW && member == 0
                        : target->names >= WK_NAMES_FROM && member == 0 && target->column == words->plan->columns[k])
                    add_field(words, record, i);
                if (words->of_names || target->column != words->plan->columns[k])
                    continue;
                if ((target->kind == WK_TARGET_COLUMN && member == 0) ||
                    (target->kind == WK_TARGET_MEMBER && target->member == member))
                    add_field(words, record, i);
            }
    }
}

static sluice_status visit(load_job *job, const wk_catalogue *rows, uint32_t item, uint64_t position,
                           wk_record_fn *each, void *context, sluice_error *err)
{
    const wk_staged *staged = &rows->items[item];
    uint64_t record;
    wk_chunk_view view;

    PF_TRY(load_places_get(job, err));
    PF_TRY(wk_catalogue_record(rows, item, position, &record, err));
    view = load_chunk_view(job, staged->argument, staged->chunk);
    return wk_chunk_visit(&view, &record, 1, each, context, err);
}

static sluice_status take_line(void *context, wk_record *record, sluice_error *err)
{
    uint64_t *line = context;

    (void)err;
    *line = record->line;
    return SLUICE_OK;
}

/* "line 5", "line 5 of other.csv". */
static sluice_status other_place(load_job *job, const wk_event *event, char *ret_text, size_t room, sluice_error *err)
{
    const wk_catalogue *rows = load_probe_rows(job, &job->plan.probes[event->probe]);
    const wk_staged *other = &rows->items[event->other_item];
    uint64_t line = 0;

    if (job->spec->options->skip_bad_rows) /* there may be many: the row tasks have kept the lines */
        PF_TRY(load_line_get(job, event->other_item, event->other_position, &line, err));
    else
        PF_TRY(visit(job, rows, event->other_item, event->other_position, take_line, &line, err));
    bool same = other->argument == rows->items[event->item].argument;
    (void)snprintf(ret_text, room, "line %" PRIu64 "%s%s", line, same ? "" : " of ",
                   same ? "" : job->spec->inputs[other->argument].path);
    return SLUICE_OK;
}

static void say(const load_job *job, const wk_probe *probe, const wk_event *event, const key_words *words,
                const char *other, wk_fault *fault)
{
    const char *columns = words->fields > 1 ? "columns" : "column", *names = words->names;
    const char *values = words->fields ? words->values : "its default";
    char word[PF_WORD_BYTES];
    (void)job;
    switch (probe->rule) {
    case WK_RULE_KEY:
    case WK_RULE_IDENTITY: {
        const char *what = probe->of_names ? "the name" : probe->type->edge ? "the edge" : "the key";
        if (probe->last_counts) {
            wk_fault_set(fault, SLUICE_KEY_CONFLICT,
                         "%s %s: %s %s is again on %s, and that row, which counts, is left out", columns, names, what,
                         values, other);
        } else if (event->other_in_base) {
            wk_fault_set(fault, SLUICE_KEY_CONFLICT, "%s %s: %s %s exists already in type %s", columns, names, what,
                         values, probe->type->name);
            wk_hint(fault, "--mode upsert updates what is there already, --on-error skip leaves such rows out");
        } else
            wk_fault_set(fault, SLUICE_KEY_CONFLICT, "%s %s: %s %s is already on %s", columns, names, what, values,
                         other);
        break;
    }
    case WK_RULE_UNIQUE:
        if (event->other_in_base)
            wk_fault_set(fault, SLUICE_CONSTRAINT_UNIQUE, "%s %s: the unique value %s exists already in type %s",
                         columns, names, values, probe->type->name);
        else
            wk_fault_set(fault, SLUICE_CONSTRAINT_UNIQUE, "%s %s: the unique value %s is already on %s", columns, names,
                         values, other);
        break;
    case WK_RULE_ENDS:
        wk_fault_set(fault, SLUICE_CONSTRAINT_ENDPOINT, "%s %s: there is no %s with the %s %s (edge type %s)", columns,
                     names, probe->node->name,
                     probe->node_named             ? "name"
                     : probe->node->key_count == 0 ? "row id"
                                                   : "key",
                     values, probe->type->name);
        if (!probe->node_named && probe->node->key_count == 0)
            wk_hint(fault, "%.80s has no key: edges name its nodes by _row_id, which `sluice scan GRAPH %s` shows",
                    probe->node->name, pf_word(word, probe->node->name));
        break;
    case WK_RULE_COUNTS:
        wk_fault_set(fault, SLUICE_CONSTRAINT_CARDINALITY,
                     "%s %s: %s %s may have at most %" PRIu64 " edges of type %s %s", columns, names, probe->node->name,
                     values, probe->limit, probe->type->name,
                     probe->plan.use == ST_RUN_FROM ? "going out" : "coming in");
        break;
    case WK_RULE_ROW:
    case WK_RULE_STRANDED:
    case WK_RULE_END:
        break;
    }
}

sluice_status load_fault_of_record(load_job *job, const wk_event *event, wk_record *record, wk_fault *ret_fault,
                                   sluice_error *err)
{
    const wk_probe *probe = &job->plan.probes[event->probe];
    key_words words = {.job = job,
                       .input = load_probe_rows(job, probe)->items[event->item].argument,
                       .plan = &probe->plan,
                       .of_names = probe->of_names};
    char other[WK_FAULT_TEXT] = "";

    *ret_fault = (wk_fault){0};
    take_words(&words, record);
    if (event->has_other && !event->other_in_base)
        PF_TRY(other_place(job, event, other, sizeof other, err));
    ret_fault->argument = words.input;
    ret_fault->record = record->number;
    ret_fault->column = words.column;
    ret_fault->rule = probe->rule;
    ret_fault->line = record->line;
    say(job, probe, event, &words, other, ret_fault);
    return SLUICE_OK;
}

typedef struct event_visit {
    load_job *job;
    const wk_event *event;
    wk_fault *fault;
} event_visit;

static sluice_status take_fault(void *context, wk_record *record, sluice_error *err)
{
    const event_visit *at = context;
    return load_fault_of_record(at->job, at->event, record, at->fault, err);
}

sluice_status load_fault_of_event(load_job *job, const wk_event *event, wk_fault *ret_fault, sluice_error *err)
{
    event_visit at = {.job = job, .event = event, .fault = ret_fault};

    *ret_fault = (wk_fault){0};
    if (job->plan.probes[event->probe].rule == WK_RULE_STRANDED)
        return load_fault_of_stranded(job, event, ret_fault, err);
    return visit(job, load_probe_rows(job, &job->plan.probes[event->probe]), event->item, event->position, take_fault,
                 &at, err);
}

/* For what has no hint of its own: flags that let the load go on. */
static const char *hint_of_rule(const load_job *job, const wk_fault *fault)
{
    static const char *const hints[WK_RULE_END] = {
        [WK_RULE_ROW] = "--on-error skip leaves bad rows out and names them",
        [WK_RULE_KEY] = "--on-error skip leaves such rows out: of equal keys the first one stays",
        [WK_RULE_UNIQUE] = "--on-error skip leaves such rows out: of equal values the first one stays",
        [WK_RULE_ENDS] = "load its nodes before or along with it; --on-error skip leaves such edges out",
        [WK_RULE_IDENTITY] = "--on-error skip leaves such edges out: of equal ones the first one stays",
        [WK_RULE_COUNTS] = "--on-error skip leaves out the edges that are too many",
    };

    if (job->spec->options->skip_bad_rows || fault->rule >= WK_RULE_END)
        return NULL;
    return hints[fault->rule];
}

sluice_status load_fail(const load_job *job, const wk_fault *fault, sluice_error *err)
{
    wk_fault hinted = *fault;
    const char *hint = hinted.hint[0] ? NULL : hint_of_rule(job, fault);

    if (hint)
        (void)snprintf(hinted.hint, sizeof hinted.hint, "%s", hint);
    return wk_fault_fail(&hinted, job->spec->inputs[fault->argument].path, err);
}
