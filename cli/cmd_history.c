/*
 * log, show: the commits of a branch; what recovery did.
 */
#include "cli/output.h"
#include "coord/audit.h"
#include "coord/lanes.h"
#include "store/read/snapshot.h"
#include "store/state/ancestry.h"
#include <stdlib.h>
#include <string.h>

static sluice_status open_log(const cli_run *run, const char *branch, st_graph **ret_graph, st_log **ret_log,
                              sluice_error *err)
{
    uint64_t incarnation;
    PF_TRY(st_graph_open(run->arguments.operands[0], PF_READ, ret_graph, err));
    PF_TRY(st_ref_read(*ret_graph, branch, &incarnation, err));
    return st_graph_log(*ret_graph, incarnation, ret_log, err);
}

static void put_id_or_null(st_json *json, const char *name, const pf_id *id)
{
    st_json_name(json, name);
    if (pf_id_is_nil(id))
        st_json_null(json);
    else
        st_json_id(json, id);
}

/* The fields that log and show have in common; the object stays open. */
static void put_commit(st_json *json, const st_generation *generation, uint32_t index)
{
    const st_commit *commit = &generation->commits[index];
    char time[CLI_TIME_TEXT];
    cli_time_text(commit->time_us, time);
    st_json_object(json);
    st_json_name(json, "commit");
    st_json_id(json, &commit->id);
    st_json_name(json, "generation");
    st_json_unsigned(json, generation->number);
    st_json_name(json, "index");
    st_json_unsigned(json, index);
    st_json_name(json, "parents");
    st_json_array(json);
    for (unsigned i = 0; i < 2; i++) {
        if (!pf_id_is_nil(&commit->parents[i]))
            st_json_id(json, &commit->parents[i]);
    }
    st_json_array_end(json);
    st_json_name(json, "kind");
    st_json_text(json, commit->kind);
    st_json_name(json, "actor");
    st_json_text(json, commit->actor);
    st_json_name(json, "time");
    st_json_text(json, time);
    st_json_name(json, "message");
    if (commit->message)
        st_json_text(json, commit->message);
    else
        st_json_null(json);
    put_id_or_null(json, "operation_id", &commit->operation);
}

/* ---- log ---- */

enum { LOG_ALL, LOG_GRAPH, LOG_COUNT, LOG_AUDIT, LOG_BRANCH, LOG_OPTIONS };
static const cli_option log_options[LOG_OPTIONS] = {
    [LOG_ALL] = {"all", 0, CLI_FLAG, NULL, "also the commits that merges brought in, by time"},
    [LOG_GRAPH] = {"graph", 0, CLI_FLAG, NULL, "like --all, with lines from each commit to its parents"},
    [LOG_COUNT] = {NULL, 'n', CLI_NUMBER, "N", "the newest N only"},
    [LOG_AUDIT] = {"audit", 0, CLI_FLAG, NULL, "instead of commits: what recovery did with interrupted writes"},
    [LOG_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
};

typedef struct listing {
    cli_run *run;
    cli_table table;
    uint64_t left;
    bool draws;
    co_lanes lanes;
} listing;

/* A cell of the drawing, by where lines leave it: up, down, left, right. */
static const char *line_of(bool up, bool down, bool left, bool right)
{
    static const char *const lines[] = {" ",      "\u2575", "\u2577", "\u2502", "\u2574", "\u256f", "\u256e", "\u2524",
                                        "\u2576", "\u2570", "\u256d", "\u251c", "\u2500", "\u2534", "\u252c", "\u253c"};
    return lines[up + 2 * down + 4 * left + 8 * right];
}

/* One commit's piece of the commit graph: itself, the lines that pass it, and those that begin or end at it. */
static sluice_status draw(listing *list, const st_commit *commit, sluice_error *err)
{
    co_lane_row row = {.commit = commit->id};
    pf_buffer text = {0};
    uint32_t low, high;
    while (row.parent_count < CO_PARENTS_MAX && !pf_id_is_nil(&commit->parents[row.parent_count])) {
        row.parents[row.parent_count] = commit->parents[row.parent_count];
        row.parent_count++;
    }
    co_lanes_next(&list->lanes, &row);
    uint32_t joins = row.ends; /* columns that it is connected with */
    for (uint32_t i = 0; i < row.parent_count; i++)
        joins |= 1u << row.lines[i];
    for (low = 0, high = row.column; low < row.column && !(joins >> low & 1u);)
        low++;
    for (uint32_t i = row.column; i < CO_LANES_MAX; i++)
        high = joins >> i & 1u ? i : high;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < list->lanes.used && status == SLUICE_OK; i++) {
        bool across = i > low && i < high, joined = joins >> i & 1u;
        bool up = row.above >> i & 1u, down = row.below >> i & 1u;
        const char *cell = i == row.column ? (row.parent_count > 1 ? "\u25c9" : "\u25cf")
                                           : line_of(up, down, across || (joined && i > row.column),
                                                     across || (joined && i < row.column));
        status = pf_buffer_append_format(&text, err, "%s%s", cell, i >= low && i < high ? "\u2500" : " ");
    }
    if (status == SLUICE_OK)
        status = cli_table_cell(&list->table, text.data,
                                text.length - (text.length > 0 && text.data[text.length - 1] == ' '), err);
    pf_buffer_free(&text);
    return status;
}

static sluice_status list_commit(void *context, const st_generation *generation, uint32_t index, bool *stop,
                                 sluice_error *err)
{
    listing *list = context;
    *stop = list->left <= 1;
    if (list->left == 0)
        return SLUICE_OK;
    list->left--;
    const st_commit *commit = &generation->commits[index];
    if (list->run->arguments.json) {
        cli_json document;
        cli_json_begin(&document);
        put_commit(&document.json, generation, index);
        st_json_object_end(&document.json);
        return cli_json_end(list->run, &document, err);
    }
    char id[PF_ID_TEXT];
    char time[CLI_TIME_TEXT];
    pf_id_text(&commit->id, id);
    cli_time_text(commit->time_us, time);
    if (list->draws)
        PF_TRY(draw(list, commit, err));
    PF_TRY(cli_table_text(&list->table, id, err));
    PF_TRY(cli_table_number(&list->table, generation->number, err));
    PF_TRY(cli_table_text(&list->table, commit->kind, err));
    PF_TRY(cli_table_text(&list->table, time, err));
    PF_TRY(cli_table_number(&list->table, commit->inserted, err));
    PF_TRY(cli_table_number(&list->table, commit->updated, err));
    PF_TRY(cli_table_number(&list->table, commit->deleted, err));
    if (!pf_id_is_nil(&commit->parents[1]))
        pf_id_text(&commit->parents[1], id);
    PF_TRY(cli_table_text(&list->table, pf_id_is_nil(&commit->parents[1]) ? "" : id, err));
    return cli_table_text(&list->table, commit->message ? commit->message : "", err);
}

/* ---- log --all ---- */

typedef struct log_cursor { /* in one log of the history, on its way back */
    st_log *log;            /* NULL: at its end */
    uint64_t number;
    st_generation generation;
    uint32_t left; /* commits of the generation not yet told: the next one is left - 1 */
} log_cursor;

/* Reads the generation at cursor->number. What is not there any more (of a branch that was merged, deleted and
 * collected) ends the log. */
static sluice_status load_generation(log_cursor *cursor, uint32_t last, sluice_error *err)
{
    st_record record = {0};
    sluice_error missing = {0};
    st_generation_free(&cursor->generation);
    cursor->generation = (st_generation){0};
    cursor->left = 0;
    if (cursor->number == 0 || cursor->number < st_log_first(cursor->log)) {
        cursor->log = NULL;
        return SLUICE_OK;
    }
    sluice_status status = st_log_read_lineage(cursor->log, cursor->number, &record, &missing);
    if (status == SLUICE_OK)
        status = st_generation_decode(&record, &cursor->generation, &missing);
    st_record_free(&record);
    uint32_t count = cursor->generation.commit_count;
    cursor->left = last != ST_INDEX_LAST && last + 1 < count ? last + 1 : count;
    if (status == SLUICE_OK)
        return SLUICE_OK;
    cursor->log = NULL;
    if (status != SLUICE_NOT_FOUND && err)
        *err = missing;
    return status == SLUICE_NOT_FOUND ? SLUICE_OK : status;
}

/* To the next commit, which may lie in an earlier generation. */
static sluice_status find_commit(log_cursor *cursor, sluice_error *err)
{
    while (cursor->log && cursor->left == 0) {
        cursor->number--;
        PF_TRY(load_generation(cursor, ST_INDEX_LAST, err));
    }
    return SLUICE_OK;
}

static sluice_status open_cursor(st_graph *graph, const st_reach *reach, log_cursor *cursor, sluice_error *err)
{
    char folder[64];
    pf_stat found;
    st_branch_folder(reach->incarnation, folder);
    sluice_status status = pf_stat_path(st_graph_volume(graph), folder, &found, err);
    if (status == SLUICE_NOT_FOUND) {
        pf_error_clear(err);
        return SLUICE_OK;
    }
    PF_TRY(status);
    PF_TRY(st_graph_log(graph, reach->incarnation, &cursor->log, err));
    PF_TRY(st_log_refresh(cursor->log, err));
    cursor->number = reach->generation;
    PF_TRY(load_generation(cursor, reach->index, err));
    return find_commit(cursor, err);
}

/* Newest first by time; of one time the one with the higher generation, then the greater id. */
static bool comes_before(const log_cursor *one, const log_cursor *two)
{
    const st_commit *a = &one->generation.commits[one->left - 1], *b = &two->generation.commits[two->left - 1];
    if (a->time_us != b->time_us)
        return a->time_us > b->time_us;
    if (one->number != two->number)
        return one->number > two->number;
    return memcmp(&a->id, &b->id, sizeof a->id) > 0;
}

static sluice_status list_cursors(listing *list, log_cursor *cursors, uint32_t count, sluice_error *err)
{
    bool stop = list->left == 0;
    while (!stop) {
        log_cursor *next = NULL;
        for (uint32_t i = 0; i < count; i++)
            if (cursors[i].log && (!next || comes_before(&cursors[i], next)))
                next = &cursors[i];
        if (!next)
            return SLUICE_OK;
        PF_TRY(list_commit(list, &next->generation, --next->left, &stop, err));
        if (!stop)
            PF_TRY(find_commit(next, err));
    }
    return SLUICE_OK;
}

/* The whole history, over all parents: of each log that it reaches into, everything up to there (ancestry.h). */
static sluice_status list_history(listing *list, st_graph *graph, const char *branch, sluice_error *err)
{
    st_snapshot *snapshot = NULL;
    st_history history = {0};
    log_cursor *cursors = NULL;
    sluice_status status;
    PF_TRY(st_snapshot_open(graph, branch, NULL, &snapshot, err));
    PF_GOTO(status, done, st_history_of(graph, st_snapshot_view(snapshot), &history, err));
    cursors = calloc((size_t)history.count + 1, sizeof *cursors);
    if (!cursors) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < history.count; i++)
        PF_GOTO(status, done, open_cursor(graph, &history.items[i], &cursors[i], err));
    status = list_cursors(list, cursors, history.count, err);
done:
    for (uint32_t i = 0; cursors && i < history.count; i++)
        st_generation_free(&cursors[i].generation);
    free(cursors);
    st_history_free(&history);
    st_snapshot_close(snapshot);
    return status;
}

/* ---- log --audit ---- */

typedef struct audit_listing {
    co_audit_row *rows;
    size_t count, room;
} audit_listing;

static sluice_status keep_row(void *context, const co_audit_row *row, sluice_error *err)
{
    audit_listing *list = context;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        co_audit_row *rows = realloc(list->rows, room * sizeof *rows);
        if (!rows)
            return pf_fail_memory(err);
        list->rows = rows;
        list->room = room;
    }
    list->rows[list->count++] = *row;
    return SLUICE_OK;
}

static int newest_first(const void *a, const void *b)
{
    const co_audit_row *one = a, *two = b;
    if (one->time_us != two->time_us)
        return one->time_us > two->time_us ? -1 : 1;
    return memcmp(&one->operation, &two->operation, sizeof one->operation);
}

static sluice_status audit_document(cli_run *run, const co_audit_row *row, const char *time, sluice_error *err)
{
    cli_json document;
    st_json *json = &document.json;
    cli_json_begin(&document);
    st_json_object(json);
    put_id_or_null(json, "operation_id", &row->operation);
    put_id_or_null(json, "commit", &row->commit);
    st_json_name(json, "kind");
    st_json_text(json, row->kind);
    st_json_name(json, "classification");
    st_json_text(json, row->classification);
    st_json_name(json, "outcome");
    st_json_text(json, co_outcome_name(row->outcome));
    st_json_name(json, "time");
    st_json_text(json, time);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status list_row(cli_run *run, cli_table *table, const co_audit_row *row, sluice_error *err)
{
    char operation[PF_ID_TEXT], commit[PF_ID_TEXT], time[CLI_TIME_TEXT];
    cli_time_text(row->time_us, time);
    if (run->arguments.json)
        return audit_document(run, row, time, err);
    pf_id_text(&row->operation, operation);
    pf_id_text(&row->commit, commit);
    PF_TRY(cli_table_text(table, operation, err));
    PF_TRY(cli_table_text(table, commit, err));
    PF_TRY(cli_table_text(table, row->kind, err));
    PF_TRY(cli_table_text(table, row->classification, err));
    PF_TRY(cli_table_text(table, co_outcome_name(row->outcome), err));
    return cli_table_text(table, time, err);
}

static sluice_status run_audit(cli_run *run, uint64_t most, sluice_error *err)
{
    static const char *const heads[] = {"operation", "commit", "kind", "classification", "outcome", "time"};
    st_graph *graph = NULL;
    cli_table table = {0};
    audit_listing list = {0};
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_READ, &graph, err));
    PF_GOTO(status, done, co_audit_list(graph, keep_row, &list, err));
    if (list.count > 1)
        qsort(list.rows, list.count, sizeof *list.rows, newest_first);
    if (!run->arguments.json) {
        PF_GOTO(status, done, cli_table_begin(run->out, sizeof heads / sizeof heads[0], &table, err));
        for (uint32_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
            PF_GOTO(status, done, cli_table_text(&table, heads[i], err));
    }
    for (size_t i = 0; i < list.count && i < most; i++)
        PF_GOTO(status, done, list_row(run, &table, &list.rows[i], err));
    if (!run->arguments.json)
        status = cli_table_end(&table, err);
done:
    free(list.rows);
    cli_table_free(&table);
    st_graph_close(graph);
    return status;
}

static sluice_status run_log(cli_run *run, sluice_error *err)
{
    static const char *const heads[] = {"",         "commit",  "generation", "kind",   "time",
                                        "inserted", "updated", "deleted",    "merged", "message"};
    const uint32_t columns = sizeof heads / sizeof heads[0];
    const char *branch = cli_text_or(run, LOG_BRANCH, "main");
    const cli_value *count = cli_option_value(run, LOG_COUNT);
    st_graph *graph = NULL;
    st_log *log;
    listing list = {.run = run,
                    .left = count->given ? count->number : UINT64_MAX,
                    .draws = cli_option_value(run, LOG_GRAPH)->given && !run->arguments.json};
    uint32_t first = list.draws ? 0 : 1;
    sluice_status status;
    if (cli_option_value(run, LOG_AUDIT)->given)
        return run_audit(run, list.left, err);
    PF_GOTO(status, done, open_log(run, branch, &graph, &log, err));
    if (!run->arguments.json) {
        PF_GOTO(status, done, cli_table_begin(run->out, columns - first, &list.table, err));
        for (uint32_t i = first; i < columns; i++) {
            if (i == 2 || (i >= 5 && i <= 7))
                cli_table_right(&list.table, i - first);
            PF_GOTO(status, done, cli_table_text(&list.table, heads[i], err));
        }
    }
    if (cli_option_value(run, LOG_ALL)->given || cli_option_value(run, LOG_GRAPH)->given)
        PF_GOTO(status, done, list_history(&list, graph, branch, err));
    else
        PF_GOTO(status, done, st_lineage_each(graph, log, list_commit, &list, err));
    if (!run->arguments.json)
        status = cli_table_end(&list.table, err);
done:
    cli_table_free(&list.table);
    st_graph_close(graph);
    return status;
}

const cli_command cli_log = {.name = "log",
                             .operands = "GRAPH",
                             .summary = "List the commits of a branch, newest first.",
                             .options = log_options,
                             .option_count = LOG_OPTIONS,
                             .least = 1,
                             .most = 1,
                             .effect = CLI_READS,
                             .run = run_log};

/* ---- show ---- */

enum { SHOW_BRANCH, SHOW_OPTIONS };
static const cli_option show_options[SHOW_OPTIONS] = {
    [SHOW_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
};

static sluice_status show_document(cli_run *run, const st_generation *generation, uint32_t index,
                                   const st_schema *schema, sluice_error *err)
{
    const st_commit *commit = &generation->commits[index];
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    put_commit(json, generation, index);
    st_json_name(json, "inserted");
    st_json_unsigned(json, commit->inserted);
    st_json_name(json, "updated");
    st_json_unsigned(json, commit->updated);
    st_json_name(json, "deleted");
    st_json_unsigned(json, commit->deleted);
    st_json_name(json, "rejected");
    st_json_unsigned(json, commit->rejected);
    st_json_name(json, "schema");
    st_json_sha256(json, &generation->schema_identity);
    st_json_name(json, "types");
    st_json_array(json);
    for (uint32_t i = 0; i < commit->edit_count; i++) {
        const st_type_def *type = st_schema_find_table(schema, commit->edits[i].table);
        st_json_object(json);
        st_json_name(json, "type");
        st_json_text(json, type ? type->name : "");
        st_json_name(json, "rows");
        st_json_unsigned(json, commit->edits[i].rows);
        st_json_name(json, "bytes");
        st_json_unsigned(json, commit->edits[i].bytes);
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status show_lines(cli_run *run, const st_generation *generation, uint32_t index, const st_schema *schema,
                                sluice_error *err)
{
    const st_commit *commit = &generation->commits[index];
    char id[PF_ID_TEXT];
    char time[CLI_TIME_TEXT];
    pf_buffer message = {0};
    pf_id_text(&commit->id, id);
    cli_time_text(commit->time_us, time);
    PF_TRY(cli_print(run, err, "commit %s\ngeneration %llu, commit %u of it\nkind %s, by %s, at %s\n", id,
                     (unsigned long long)generation->number, index, commit->kind, commit->actor, time));
    for (unsigned i = 0; i < 2; i++) {
        if (pf_id_is_nil(&commit->parents[i]))
            continue;
        pf_id_text(&commit->parents[i], id);
        PF_TRY(cli_print(run, err, "parent %s\n", id));
    }
    if (!pf_id_is_nil(&commit->operation)) {
        pf_id_text(&commit->operation, id);
        PF_TRY(cli_print(run, err, "operation %s\n", id));
    }
    if (commit->message) {
        sluice_status status = cli_append_visible(&message, commit->message, strlen(commit->message), err);
        if (status == SLUICE_OK)
            status = cli_print(run, err, "message %.*s\n", (int)message.length, (const char *)message.data);
        pf_buffer_free(&message);
        PF_TRY(status);
    }
    PF_TRY(cli_print(run, err, "inserted %llu, updated %llu, deleted %llu\n", (unsigned long long)commit->inserted,
                     (unsigned long long)commit->updated, (unsigned long long)commit->deleted));
    if (commit->rejected > 0)
        PF_TRY(cli_print(run, err, "left out: %llu bad rows of the input\n", (unsigned long long)commit->rejected));
    for (uint32_t i = 0; i < commit->edit_count; i++) {
        const st_type_def *type = st_schema_find_table(schema, commit->edits[i].table);
        char size[CLI_SIZE_TEXT];
        cli_size_text(commit->edits[i].bytes, size);
        PF_TRY(cli_print(run, err, "  %s: %llu rows, %s\n", type ? type->name : "?",
                         (unsigned long long)commit->edits[i].rows, size));
    }
    return SLUICE_OK;
}

static sluice_status run_show(cli_run *run, sluice_error *err)
{
    st_graph *graph = NULL;
    st_log *log;
    st_record record = {0};
    st_generation generation = {0};
    st_schema *schema = NULL;
    uint64_t number;
    uint32_t index, last;
    sluice_status status;
    PF_GOTO(status, done, open_log(run, cli_text_or(run, SHOW_BRANCH, "main"), &graph, &log, err));
    PF_GOTO(status, done, st_place_find(graph, &log, run->arguments.operands[1], &number, &index, err));
    PF_GOTO(status, done, st_lineage_log(graph, log, number, &log, &last, err));
    PF_GOTO(status, done, st_log_read_lineage(log, number, &record, err));
    PF_GOTO(status, done, st_generation_decode(&record, &generation, err));
    if (generation.commit_count == 0) {
        status = pf_fail(err, SLUICE_NOT_FOUND, "generation %llu has no commit", (unsigned long long)number);
        goto done;
    }
    if (index == ST_INDEX_LAST)
        index = last < generation.commit_count ? last : generation.commit_count - 1;
    PF_GOTO(status, done, st_schema_fetch(st_graph_volume(graph), &generation.schema_identity, &schema, err));
    status = run->arguments.json ? show_document(run, &generation, index, schema, err)
                                 : show_lines(run, &generation, index, schema, err);
done:
    st_schema_free(schema);
    st_generation_free(&generation);
    st_record_free(&record);
    st_graph_close(graph);
    return status;
}

const cli_command cli_show = {.name = "show",
                              .operands = "GRAPH COMMIT",
                              .summary = "Print a commit: an id, a generation number, a time, a checkpoint, or head.",
                              .options = show_options,
                              .option_count = SHOW_OPTIONS,
                              .least = 2,
                              .most = 2,
                              .effect = CLI_READS,
                              .run = run_show};
