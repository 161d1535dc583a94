/*
 * diff: what changed between two places of a graph, counted by type, or row by row.
 */
#include "cli/output.h"
#include "store/read/key_text.h"
#include "store/read/row_json.h"
#include <stdio.h>
#include <string.h>

enum { DIFF_KEYS, DIFF_BRANCH, DIFF_MEMORY, DIFF_OPTIONS };
static const cli_option diff_options[DIFF_OPTIONS] = {
    [DIFF_KEYS] = {"keys", 0, CLI_FLAG, NULL, "each changed row with its key, and which properties were updated"},
    [DIFF_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch that places are on (default: main)"},
    [DIFF_MEMORY] = {"memory", 0, CLI_SIZE, "SIZE", "bound for the memory (default: half of what there is)"},
};

static const char *const words[] = {[ST_INSERTED] = "inserted", [ST_UPDATED] = "updated", [ST_DELETED] = "deleted"};

typedef struct comparison {
    cli_run *run;
    bool keys;
    cli_table table;
    const st_type_def *type; /* as the newer place has it, or the older one alone */
    uint64_t counts[3];
} comparison;

/* Places come first, so that no branch's name takes one away. */
static sluice_status open_place(st_graph *graph, const char *branch, const char *text, st_snapshot **ret_snapshot,
                                sluice_error *err)
{
    sluice_error as_branch = {0};
    sluice_status status = st_snapshot_open(graph, branch, text, ret_snapshot, err);
    if (status != SLUICE_USAGE || st_snapshot_open(graph, text, NULL, ret_snapshot, &as_branch) != SLUICE_OK)
        return status;
    *err = (sluice_error){0};
    return SLUICE_OK;
}

/* ---- row by row ---- */

static sluice_status print_change(const comparison *state, const st_row_change *change, sluice_error *err)
{
    cli_json document;
    st_json *json = &document.json;
    cli_json_begin(&document);
    st_json_object(json);
    st_json_name(json, "type");
    st_json_text(json, state->type->name);
    st_json_name(json, "change");
    st_json_text(json, words[change->kind]);
    sluice_status status = st_row_change_name(state->type, change, json, err);
    if (status != SLUICE_OK) {
        pf_buffer_free(&document.buffer);
        return status;
    }
    if (change->kind == ST_UPDATED) {
        st_json_name(json, "properties");
        st_json_array(json);
        for (uint32_t i = 0; i < change->property_count; i++)
            st_json_text(json, state->type->properties[change->properties[i]].name);
        st_json_array_end(json);
    }
    st_json_object_end(json);
    return cli_json_end(state->run, &document, err);
}

static sluice_status append_text(pf_buffer *buffer, const char *text, sluice_error *err)
{
    return pf_buffer_append(buffer, text, strlen(text), err);
}

static sluice_status append_name(const comparison *state, const st_row_change *change, pf_buffer *text,
                                 sluice_error *err)
{
    char digits[32];
    uint32_t at = 0;
    if (state->type->edge) {
        PF_TRY(st_value_text(change->key[0], change->key_row, text, err));
        PF_TRY(append_text(text, " -> ", err));
        PF_TRY(st_value_text(change->key[1], change->key_row, text, err));
        at = 2;
    }
    if (change->key_count > at) {
        if (at > 0)
            PF_TRY(append_text(text, ", ", err));
        PF_TRY(st_key_to_text(change->key + at, change->key_count - at, change->key_row, text, err));
    }
    if (change->row_id == 0)
        return SLUICE_OK;
    (void)snprintf(digits, sizeof digits, "%s%llu", text->length > 0 ? ", row " : "",
                   (unsigned long long)change->row_id);
    return append_text(text, digits, err);
}

static sluice_status list_change(comparison *state, const st_row_change *change, sluice_error *err)
{
    pf_buffer name = {0}, properties = {0};
    sluice_status status;
    PF_GOTO(status, done, append_name(state, change, &name, err));
    for (uint32_t i = 0; i < change->property_count; i++) {
        if (i > 0)
            PF_GOTO(status, done, append_text(&properties, ", ", err));
        PF_GOTO(status, done, append_text(&properties, state->type->properties[change->properties[i]].name, err));
    }
    PF_GOTO(status, done, cli_table_text(&state->table, words[change->kind], err));
    PF_GOTO(status, done, cli_table_text(&state->table, state->type->name, err));
    PF_GOTO(status, done, cli_table_cell(&state->table, name.data, name.length, err));
    status = cli_table_cell(&state->table, properties.data, properties.length, err);
done:
    pf_buffer_free(&name);
    pf_buffer_free(&properties);
    return status;
}

static sluice_status take_change(void *context, const st_row_change *change, sluice_error *err)
{
    comparison *state = context;
    state->counts[change->kind]++;
    if (!state->keys)
        return SLUICE_OK;
    return state->run->arguments.json ? print_change(state, change, err) : list_change(state, change, err);
}

/* ---- by type ---- */

static sluice_status print_counts(comparison *state, const char *schema, sluice_error *err)
{
    if (!state->run->arguments.json) {
        PF_TRY(cli_table_text(&state->table, state->type->name, err));
        for (unsigned i = 0; i < 3; i++)
            PF_TRY(cli_table_number(&state->table, state->counts[i], err));
        return cli_table_text(&state->table, schema ? schema : "", err);
    }
    cli_json document;
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "type");
    st_json_text(&document.json, state->type->name);
    for (unsigned i = 0; i < 3; i++) {
        st_json_name(&document.json, words[i]);
        st_json_unsigned(&document.json, state->counts[i]);
    }
    if (schema) {
        st_json_name(&document.json, "schema");
        st_json_text(&document.json, schema);
    }
    st_json_object_end(&document.json);
    return cli_json_end(state->run, &document, err);
}

static sluice_status compare_type(comparison *state, st_snapshot *from, st_snapshot *to, const st_type_def *type,
                                  const char *schema, sluice_error *err)
{
    state->type = type;
    memset(state->counts, 0, sizeof state->counts);
    PF_TRY(st_diff_table(from, to, type->table, take_change, state, err));
    bool changed = schema || state->counts[0] + state->counts[1] + state->counts[2] > 0;
    return changed && !state->keys ? print_counts(state, schema, err) : SLUICE_OK;
}

static sluice_status compare_types(comparison *state, st_snapshot *from, st_snapshot *to, sluice_error *err)
{
    const st_schema *older = st_snapshot_view(from)->schema, *newer = st_snapshot_view(to)->schema;
    for (uint32_t i = 0; i < newer->type_count; i++) {
        const char *schema = st_schema_find_table(older, newer->types[i].table) ? NULL : "added";
        PF_TRY(compare_type(state, from, to, &newer->types[i], schema, err));
    }
    for (uint32_t i = 0; i < older->type_count; i++) {
        if (!st_schema_find_table(newer, older->types[i].table))
            PF_TRY(compare_type(state, from, to, &older->types[i], "dropped", err));
    }
    return SLUICE_OK;
}

static sluice_status begin_table(comparison *state, sluice_error *err)
{
    static const char *const by_type[] = {"type", "inserted", "updated", "deleted", "schema"};
    static const char *const by_row[] = {"change", "type", "key", "properties"};
    const char *const *heads = state->keys ? by_row : by_type;
    uint32_t count = state->keys ? 4 : 5;
    PF_TRY(cli_table_begin(state->run->out, count, &state->table, err));
    for (uint32_t i = 0; i < count; i++) {
        if (!state->keys && i >= 1 && i <= 3)
            cli_table_right(&state->table, i);
        PF_TRY(cli_table_text(&state->table, heads[i], err));
    }
    return SLUICE_OK;
}

static sluice_status run_diff(cli_run *run, sluice_error *err)
{
    comparison state = {.run = run, .keys = cli_option_value(run, DIFF_KEYS)->given};
    const char *branch = cli_text_or(run, DIFF_BRANCH, NULL);
    st_graph *graph = NULL;
    st_snapshot *from = NULL, *to = NULL;
    sluice_status status;
    PF_TRY(cli_bound_memory(run, DIFF_MEMORY, err));
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[0], PF_READ, &graph, err));
    PF_GOTO(status, done, open_place(graph, branch, run->arguments.operands[1], &from, err));
    PF_GOTO(status, done, open_place(graph, branch, run->arguments.operands[2], &to, err));
    if (!run->arguments.json)
        PF_GOTO(status, done, begin_table(&state, err));
    PF_GOTO(status, done, compare_types(&state, from, to, err));
    if (!run->arguments.json)
        status = cli_table_end(&state.table, err);
done:
    cli_table_free(&state.table);
    st_snapshot_close(from);
    st_snapshot_close(to);
    st_graph_close(graph);
    return status;
}

const cli_command cli_diff = {
    .name = "diff",
    .operands = "GRAPH A B",
    .summary = "What leads from A to B: each a commit, generation number, time, checkpoint or branch.",
    .options = diff_options,
    .option_count = DIFF_OPTIONS,
    .least = 3,
    .most = 3,
    .effect = CLI_READS,
    .run = run_diff};
