/*
 * describe: what the values of each column of a type are like (store/read/profile.h).
 */
#include "cli/output.h"
#include "store/read/profile.h"
#include <stdio.h>
#include <stdlib.h>

#define SHOWN_BYTES 32u /* of a value in the table */

enum { DESCRIBE_BRANCH, DESCRIBE_AT, DESCRIBE_OPTIONS };
static const cli_option describe_options[DESCRIBE_OPTIONS] = {
    [DESCRIBE_BRANCH] = {"branch", 0, CLI_TEXT, "B", "the branch to read (default: main)"},
    [DESCRIBE_AT] = {"at", 0, CLI_TEXT, "PLACE", "a commit id, generation number, time or checkpoint"},
};

typedef struct description {
    cli_place place;
    const st_type_def *type;
    st_column_spec *specs;
    uint32_t count;
    st_profile *profiles; /* one per column */
    uint64_t rows;
} description;

static void free_type(description *what)
{
    for (uint32_t i = 0; i < what->count; i++) {
        if (what->profiles)
            st_profile_free(&what->profiles[i]);
        st_column_spec_free(&what->specs[i]);
    }
    free(what->profiles);
    free(what->specs);
    *what = (description){.place = what->place};
}

static sluice_status pass_over(description *what, sluice_error *err)
{
    st_scan *scan = NULL;
    const st_batch *batch;
    sluice_status status;
    what->rows = 0;
    PF_GOTO(status, done, st_scan_open(what->place.snapshot, what->type, NULL, 0, &scan, err));
    for (;;) {
        PF_GOTO(status, done, st_scan_next(scan, &batch, err));
        if (!batch)
            break;
        what->rows += batch->rows;
        for (uint32_t i = 0; i < what->count; i++)
            PF_GOTO(status, done, st_profile_add(&what->profiles[i], &batch->columns[i], batch->rows, err));
    }
done:
    st_scan_close(scan);
    return status;
}

static sluice_status gather(description *what, sluice_error *err)
{
    bool again = false;
    PF_TRY(
        st_type_columns(st_snapshot_view(what->place.snapshot)->schema, what->type, &what->specs, &what->count, err));
    what->profiles = calloc((size_t)what->count + 1, sizeof *what->profiles);
    if (!what->profiles)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < what->count; i++)
        PF_TRY(st_profile_begin(&what->profiles[i], &what->specs[i], err));
    PF_TRY(pass_over(what, err));
    for (uint32_t i = 0; i < what->count; i++)
        again |= st_profile_recounts(&what->profiles[i]);
    if (again)
        PF_TRY(pass_over(what, err));
    for (uint32_t i = 0; i < what->count; i++)
        st_profile_choose(&what->profiles[i]);
    return pass_over(what, err);
}

/* ---- for people ---- */

static sluice_status append_shown(pf_buffer *line, const st_column *column, uint64_t row, sluice_error *err)
{
    size_t start = line->length;
    PF_TRY(column->type == ST_STRUCT ? st_value_json(column, row, line, err) : st_value_text(column, row, line, err));
    if (line->length - start <= SHOWN_BYTES)
        return SLUICE_OK;
    line->length = start + SHOWN_BYTES;
    while (line->length > start && (line->data[line->length] & 0xC0) == 0x80) /* not inside a character */
        line->length--;
    return pf_buffer_append_text(line, "...", err);
}

static sluice_status add_extreme(cli_table *table, pf_buffer *line, const st_column_builder *builder,
                                 const st_column *view, sluice_error *err)
{
    line->length = 0;
    if (st_builder_length(builder) > 0)
        PF_TRY(append_shown(line, view, 0, err));
    return cli_table_cell(table, line->data ? (const void *)line->data : "", line->length, err);
}

static sluice_status add_row(cli_table *table, pf_buffer *line, const st_profile *profile, sluice_error *err)
{
    char distinct[32];
    PF_TRY(cli_table_text(table, profile->spec->name, err));
    PF_TRY(cli_table_text(table, st_type_name(profile->spec->type), err));
    PF_TRY(cli_table_number(table, profile->values, err));
    PF_TRY(cli_table_number(table, profile->nulls, err));
    (void)snprintf(distinct, sizeof distinct, "%s%llu", profile->distinct_exact ? "" : "about ",
                   (unsigned long long)profile->distinct);
    PF_TRY(cli_table_text(table, distinct, err));
    PF_TRY(add_extreme(table, line, profile->least, &profile->least_view, err));
    PF_TRY(add_extreme(table, line, profile->greatest, &profile->greatest_view, err));
    line->length = 0;
    for (uint32_t i = 0; i < profile->frequent_count; i++) {
        if (i > 0)
            PF_TRY(pf_buffer_append_text(line, ", ", err));
        PF_TRY(append_shown(line, &profile->frequent_view, profile->frequent_rows[i], err));
        PF_TRY(pf_buffer_append_format(line, err, " (%llu)", (unsigned long long)profile->frequent[i].count));
    }
    return cli_table_cell(table, line->data ? (const void *)line->data : "", line->length, err);
}

static sluice_status print_table(cli_run *run, const description *what, sluice_error *err)
{
    static const char *const heads[] = {"column",   "type",    "values",  "nulls",
                                        "distinct", "minimum", "maximum", "most frequent"};
    cli_table table = {0};
    pf_buffer line = {0};
    sluice_status status;
    PF_TRY(cli_print(run, err, "%llu rows\n", (unsigned long long)what->rows));
    if (what->count == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, cli_table_begin(run->out, sizeof heads / sizeof heads[0], &table, err));
    for (uint32_t i = 2; i < 5; i++)
        cli_table_right(&table, i);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        PF_GOTO(status, done, cli_table_text(&table, heads[i], err));
    for (uint32_t i = 0; i < what->count; i++)
        PF_GOTO(status, done, add_row(&table, &line, &what->profiles[i], err));
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    pf_buffer_free(&line);
    return status;
}

/* ---- for programs ---- */

static sluice_status put_value(st_json *json, const st_column *column, uint64_t row, sluice_error *err)
{
    pf_buffer value = {0};
    sluice_status status = st_value_json(column, row, &value, err);
    if (status == SLUICE_OK)
        st_json_raw(json, (const char *)value.data, value.length);
    pf_buffer_free(&value);
    return status;
}

static sluice_status put_extreme(st_json *json, const char *name, const st_column_builder *builder,
                                 const st_column *view, sluice_error *err)
{
    st_json_name(json, name);
    if (st_builder_length(builder) > 0)
        return put_value(json, view, 0, err);
    st_json_null(json);
    return SLUICE_OK;
}

static sluice_status put_column(st_json *json, const st_profile *profile, sluice_error *err)
{
    st_json_object(json);
    st_json_name(json, "column");
    st_json_text(json, profile->spec->name);
    st_json_name(json, "type");
    st_json_text(json, st_type_name(profile->spec->type));
    st_json_name(json, "values");
    st_json_unsigned(json, profile->values);
    st_json_name(json, "nulls");
    st_json_unsigned(json, profile->nulls);
    st_json_name(json, "distinct");
    st_json_unsigned(json, profile->distinct);
    st_json_name(json, "distinct_exact");
    st_json_bool(json, profile->distinct_exact);
    PF_TRY(put_extreme(json, "minimum", profile->least, &profile->least_view, err));
    PF_TRY(put_extreme(json, "maximum", profile->greatest, &profile->greatest_view, err));
    st_json_name(json, "frequent");
    st_json_array(json);
    for (uint32_t i = 0; i < profile->frequent_count; i++) {
        st_json_object(json);
        st_json_name(json, "value");
        PF_TRY(put_value(json, &profile->frequent_view, profile->frequent_rows[i], err));
        st_json_name(json, "count");
        st_json_unsigned(json, profile->frequent[i].count);
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_json_object_end(json);
    return SLUICE_OK;
}

static sluice_status print_document(cli_run *run, const description *what, sluice_error *err)
{
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "type");
    st_json_text(json, what->type->name);
    st_json_name(json, "rows");
    st_json_unsigned(json, what->rows);
    st_json_name(json, "columns");
    st_json_array(json);
    for (uint32_t i = 0; i < what->count; i++) {
        sluice_status status = put_column(json, &what->profiles[i], err);
        if (status != SLUICE_OK) {
            pf_buffer_free(&document.buffer);
            return status;
        }
    }
    st_json_array_end(json);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

/* Every type by its size and columns: what there is to describe. No row is read. */
static sluice_status print_types(cli_run *run, st_snapshot *snapshot, sluice_error *err)
{
    const st_view *view = st_snapshot_view(snapshot);
    cli_table table = {0};
    pf_buffer line = {0};
    sluice_status status;
    PF_GOTO(status, done, cli_table_begin(run->out, 4, &table, err));
    cli_table_right(&table, 2);
    for (size_t i = 0; i < 4; i++)
        PF_GOTO(status, done, cli_table_text(&table, ((const char *[]){"type", "of", "rows", "columns"})[i], err));
    for (uint32_t i = 0; i < view->schema->type_count; i++) {
        const st_type_def *type = &view->schema->types[i];
        const st_table_entry *entry = st_view_table(view, type->table);
        line.length = 0;
        for (uint32_t p = 0; p < type->property_count; p++)
            PF_GOTO(status, done,
                    pf_buffer_append_format(&line, err, "%s%s %s%s", p > 0 ? ", " : "", type->properties[p].name,
                                            st_type_name(type->properties[p].type),
                                            type->properties[p].nullable ? "?" : ""));
        PF_GOTO(status, done, cli_table_text(&table, type->name, err));
        PF_GOTO(status, done, cli_table_text(&table, type->edge ? "edges" : "nodes", err));
        PF_GOTO(status, done, cli_table_number(&table, entry ? entry->rows : 0, err));
        PF_GOTO(status, done, cli_table_cell(&table, line.data ? (const void *)line.data : "", line.length, err));
    }
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    pf_buffer_free(&line);
    return status;
}

static sluice_status print_type(cli_run *run, description *what, const st_type_def *type, sluice_error *err)
{
    what->type = type;
    sluice_status status = gather(what, err);
    if (status == SLUICE_OK)
        status = run->arguments.json ? print_document(run, what, err) : print_table(run, what, err);
    free_type(what);
    return status;
}

static sluice_status run_describe(cli_run *run, sluice_error *err)
{
    description what = {0};
    const st_type_def *type = NULL;
    sluice_status status;
    PF_GOTO(status, done,
            cli_open_snapshot(run, cli_text_or(run, DESCRIBE_BRANCH, NULL), cli_text_or(run, DESCRIBE_AT, NULL),
                              &what.place, err));
    if (run->arguments.operand_count > 1) {
        PF_GOTO(status, done, st_snapshot_type(what.place.snapshot, run->arguments.operands[1], &type, err));
        status = print_type(run, &what, type, err);
        goto done;
    }
    const st_schema *schema = st_snapshot_view(what.place.snapshot)->schema;
    if (!run->arguments.json)
        status = print_types(run, what.place.snapshot, err);
    for (uint32_t i = 0; run->arguments.json && status == SLUICE_OK && i < schema->type_count; i++)
        status = print_type(run, &what, &schema->types[i], err);
done:
    cli_close_snapshot(&what.place);
    return status;
}

const cli_command cli_describe = {
    .name = "describe",
    .operands = "GRAPH [TYPE]",
    .summary = "Print what the values of each column of a type are like; without a type, which types there are.",
    .options = describe_options,
    .option_count = DESCRIBE_OPTIONS,
    .least = 1,
    .most = 2,
    .effect = CLI_READS,
    .run = run_describe};
