/*
 * Rows under a schema that does not stand yet (coord/schema_change.h): nulls, checks, unique tuples, cardinality. The
 * first row found ends it, named by its key; or, with a watch, all are told.
 */
#include "coord/schema_change.h"
#include "platform/check.h"
#include "store/read/key_pass.h"
#include "worker/ingest/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct schema_check {
    st_snapshot *rows; /* under the newer schema */
    const st_step *step;
    const st_type_def *type;
    const co_schema_watch *watch; /* NULL: none */
    sluice_error *err;
} schema_check;

/* "Person 7", "KNOWS 7 -> 8", "Note in row 12". */
static sluice_status name_row(const schema_check *check, const st_column *const *columns, uint32_t count, uint64_t row,
                              uint64_t row_id, pf_buffer *text)
{
    sluice_error *err = check->err;
    char number[32];
    PF_TRY(pf_buffer_append_text(text, check->type->name, err));
    for (uint32_t i = 0; i < count; i++) {
        const char *between = i == 0 ? " " : check->type->edge && i == 1 ? " -> " : ", ";
        PF_TRY(pf_buffer_append_text(text, between, err));
        PF_TRY(st_value_text(columns[i], row, text, err));
    }
    if (count > 0)
        return SLUICE_OK;
    (void)snprintf(number, sizeof number, " in row %llu", (unsigned long long)row_id);
    return pf_buffer_append_text(text, number, err);
}

/* The columns that a row is named by, as indexes into the layout. */
static uint32_t name_columns(const st_type_def *type, uint32_t *ret_columns)
{
    uint32_t count = 0;
    for (uint32_t end = 0; type->edge && end < 2; end++)
        ret_columns[count++] = end;
    for (uint32_t i = 0; i < type->key_count; i++)
        ret_columns[count++] = (type->edge ? 2 : 0) + type->key[i];
    return count;
}

static bool is_elsewhere(const schema_check *check, uint64_t row_id)
{
    return check->watch && check->watch->elsewhere(check->watch->context, check->step, row_id);
}

/* With a watch it goes on. */
static sluice_status refuse(const schema_check *check, const co_schema_breach *breach, const char *safe)
{
    pf_buffer name = {0};
    if (check->watch)
        return check->watch->found(check->watch->context, breach, check->err);
    sluice_status status = name_row(check, breach->columns, breach->column_count, breach->row, breach->row_id, &name);
    if (status == SLUICE_OK) {
        status = pf_fail_private(check->err, breach->code, safe, "%.*s: %s", (int)name.length, (const char *)name.data,
                                 breach->text);
        pf_hint(check->err, "change such rows first, then apply the schema again; nothing has changed");
    }
    pf_buffer_free(&name);
    return status;
}

/* ---- single values ---- */

static sluice_status check_batch(const schema_check *check, const st_batch *batch, uint32_t name_count,
                                 const wk_check *rule)
{
    const st_column *value = &batch->columns[name_count], *names[ST_RUN_COLUMNS_MAX];
    const char *property = check->type->properties[check->step->property_after].name;
    char text[320];
    for (uint32_t i = 0; i < name_count; i++)
        names[i] = &batch->columns[i];
    (void)snprintf(text, sizeof text, "its %s is null", property);
    for (uint64_t row = 0; row < batch->rows; row++) {
        wk_fault fault = {0};
        bool is_null = st_column_is_null(value, row);
        if (is_null ? rule != NULL : !rule || !rule->any || wk_check_value(rule, property, value, row, &fault))
            continue;
        if (is_elsewhere(check, batch->row_ids[row]))
            continue;
        const co_schema_breach breach = {.type = check->type,
                                         .step = check->step,
                                         .code = is_null ? SLUICE_CONSTRAINT_NULL : fault.code,
                                         .columns = names,
                                         .column_count = name_count,
                                         .row = row,
                                         .row_id = batch->row_ids[row],
                                         .text = is_null ? text : fault.text};
        PF_TRY(refuse(check, &breach,
                      is_null ? "a row has no value where one is demanded" : "a row breaks a check that is demanded"));
    }
    return SLUICE_OK;
}

/* `rule` NULL: there must be a value. */
static sluice_status check_rows(const schema_check *check, const wk_check *rule)
{
    uint32_t columns[ST_RUN_COLUMNS_MAX + 1], count = name_columns(check->type, columns);
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    columns[count] = (check->type->edge ? 2 : 0) + (uint32_t)check->step->property_after;
    PF_TRY(st_scan_open(check->rows, check->type, columns, count + 1, &scan, check->err));
    sluice_status status = st_scan_next(scan, &batch, check->err);
    while (status == SLUICE_OK && batch) {
        status = check_batch(check, batch, count, rule);
        if (status == SLUICE_OK)
            status = st_scan_next(scan, &batch, check->err);
    }
    st_scan_close(scan);
    return status;
}

static sluice_status check_values(const schema_check *check)
{
    uint32_t at = (uint32_t)check->step->property_after;
    const st_property *property = &check->type->properties[at];
    wk_check rule = {0};
    PF_TRY(wk_check_make(property, property->type, st_type_key_has(check->type, at), &rule, check->err));
    sluice_status status = check_rows(check, &rule);
    wk_check_free(&rule);
    return status;
}

/* ---- rows of one value ---- */

typedef struct group_check {
    const schema_check *check;
    const st_key_pass *pass;
    uint64_t most;
} group_check;

/* The row at a place, by its key and row id. */
static sluice_status take_place(const group_check *group, const st_key_row *row, st_row_key *key, uint32_t *ret_count,
                                uint64_t *ret_row_id)
{
    const schema_check *check = group->check;
    uint32_t columns[ST_RUN_COLUMNS_MAX];
    *ret_count = name_columns(check->type, columns);
    PF_TRY(st_row_key_read(group->pass->reader, columns, *ret_count, row->fragment, row->position, key, check->err));
    return st_reader_row_id(group->pass->reader, row->fragment, row->position, ret_row_id, check->err);
}

static sluice_status refuse_place(const group_check *group, const st_key_row *row, sluice_status code, const char *safe,
                                  const char *text)
{
    const schema_check *check = group->check;
    st_row_key key;
    co_schema_breach breach = {.type = check->type, .step = check->step, .code = code, .text = text};
    PF_TRY(take_place(group, row, &key, &breach.column_count, &breach.row_id));
    breach.columns = key.columns;
    breach.row = key.row;
    return refuse(check, &breach, safe);
}

/* Of a group those rows that are not judged elsewhere; *ret_left is malloc'd. */
static sluice_status leave_out(const group_check *group, const st_key_row *rows, uint64_t count, st_key_row **ret_left,
                               uint64_t *ret_count, sluice_error *err)
{
    *ret_count = 0;
    *ret_left = malloc((count + 1) * sizeof **ret_left);
    if (!*ret_left)
        return pf_fail_memory(err);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row_id = 0;
        if (group->check->watch)
            PF_TRY(st_reader_row_id(group->pass->reader, rows[i].fragment, rows[i].position, &row_id, err));
        if (!is_elsewhere(group->check, row_id))
            (*ret_left)[(*ret_count)++] = rows[i];
    }
    return SLUICE_OK;
}

static sluice_status tell_twins(const group_check *group, const st_key_row *rows, uint64_t count, sluice_error *err)
{
    st_row_key key;
    uint32_t columns = 0;
    uint64_t row_id = 0;
    pf_buffer text = {0};
    sluice_status status;
    PF_GOTO(status, done, pf_buffer_append_text(&text, "it has the unique value of ", err));
    PF_GOTO(status, done, take_place(group, &rows[0], &key, &columns, &row_id));
    PF_GOTO(status, done, name_row(group->check, key.columns, columns, key.row, row_id, &text));
    PF_GOTO(status, done, pf_buffer_append(&text, "", 1, err));
    for (uint64_t i = 1; i < count; i++)
        PF_GOTO(status, done,
                refuse_place(group, &rows[i], SLUICE_CONSTRAINT_UNIQUE, "two rows have a value that is to be unique",
                             (const char *)text.data));
    status = SLUICE_OK;
done:
    pf_buffer_free(&text);
    return status;
}

static sluice_status find_twins(void *context, const st_key_row *rows, uint64_t count, sluice_error *err)
{
    st_key_row *left = NULL;
    uint64_t left_count = 0;
    sluice_status status = leave_out(context, rows, count, &left, &left_count, err);
    if (status == SLUICE_OK && left_count > 1)
        status = tell_twins(context, left, left_count, err);
    free(left);
    return status;
}

static sluice_status find_crowds(void *context, const st_key_row *rows, uint64_t count, sluice_error *err)
{
    const group_check *group = context;
    char text[160];
    st_key_row *left = NULL;
    uint64_t left_count = 0;
    if (count <= group->most)
        return SLUICE_OK;
    sluice_status status = leave_out(group, rows, count, &left, &left_count, err);
    (void)snprintf(text, sizeof text, "its %s has %llu of these edges, and may have %llu",
                   group->pass->columns[0] == 0 ? "from" : "to", (unsigned long long)left_count,
                   (unsigned long long)group->most);
    if (status == SLUICE_OK && left_count > group->most)
        status = refuse_place(group, &left[group->most], SLUICE_CONSTRAINT_CARDINALITY,
                              "a node has more edges than it may have", text);
    free(left);
    return status;
}

static sluice_status check_groups(const schema_check *check, st_key_pass *pass, st_key_group_fn *each, uint64_t most)
{
    group_check group = {.check = check, .pass = pass, .most = most};
    uint64_t rows = 0;
    sluice_status status;
    PF_GOTO(status, done, st_snapshot_count(check->rows, check->type, &rows, check->err));
    PF_GOTO(status, done, st_table_reader_get(check->rows, check->type->table, &pass->reader, check->err));
    pass->parts = st_key_parts(rows);
    for (pass->part = 0; pass->part < pass->parts && status == SLUICE_OK; pass->part++) {
        PF_GOTO(status, done, st_key_pass_fill(pass, check->err));
        status = st_key_pass_groups(pass, each, &group, check->err);
    }
done:
    st_key_pass_free(pass);
    return status;
}

static sluice_status check_unique(const schema_check *check)
{
    st_key_pass pass = {.skips_nulls = true};
    pass.column_count = st_run_columns(check->type, ST_RUN_UNIQUE, check->step->unique->id, pass.columns);
    return check_groups(check, &pass, find_twins, 1);
}

static sluice_status check_cardinality(const schema_check *check)
{
    const uint64_t most[2] = {check->type->max_out, check->type->max_in};
    for (uint32_t end = 0; end < 2; end++) {
        st_key_pass pass = {.columns = {end}, .column_count = 1};
        if (most[end] != ST_NO_LIMIT)
            PF_TRY(check_groups(check, &pass, find_crowds, most[end]));
    }
    return SLUICE_OK;
}

static sluice_status check_step(const schema_check *check)
{
    switch (check->step->kind) {
    case ST_STEP_FORBID_NULL:
        return check_rows(check, NULL);
    case ST_STEP_TIGHTEN_CHECKS:
        return check_values(check);
    case ST_STEP_ADD_UNIQUE:
        return check_unique(check);
    case ST_STEP_TIGHTEN_CARDINALITY:
        return check_cardinality(check);
    case ST_STEP_ADD_TYPE:
    case ST_STEP_DROP_TYPE:
    case ST_STEP_RENAME_TYPE:
    case ST_STEP_ADD_PROPERTY:
    case ST_STEP_DROP_PROPERTY:
    case ST_STEP_RENAME_PROPERTY:
    case ST_STEP_WIDEN_PROPERTY:
    case ST_STEP_RETYPE_PROPERTY:
    case ST_STEP_ALLOW_NULL:
    case ST_STEP_DEFAULT:
    case ST_STEP_LOOSEN_CHECKS:
    case ST_STEP_DROP_UNIQUE:
    case ST_STEP_LOOSEN_CARDINALITY:
    case ST_STEP_KEY:
    case ST_STEP_ENDS:
    case ST_STEP_ORDER:
    case ST_STEP_KIND_COUNT:
        break;
    }
    return SLUICE_OK;
}

sluice_status co_schema_look(st_snapshot *rows, const st_evolution *evolution, const co_schema_watch *watch,
                             sluice_error *err)
{
    schema_check check = {.rows = rows, .watch = watch, .err = err};
    for (uint32_t i = 0; i < evolution->count; i++) {
        check.step = &evolution->steps[i];
        check.type = check.step->after;
        PF_TRY(check_step(&check));
    }
    return SLUICE_OK;
}

sluice_status co_schema_check(st_snapshot *base, const co_schema_plan *plan, sluice_error *err)
{
    schema_check check = {.err = err};
    sluice_status status = SLUICE_OK;
    PF_TRY(st_snapshot_recast(base, plan->newer, &check.rows, err));
    for (uint32_t i = 0; i < plan->evolution.count && status == SLUICE_OK; i++) {
        if (plan->steps[i].cost != CO_COST_CHECKS)
            continue;
        check.step = &plan->evolution.steps[i];
        check.type = check.step->after;
        status = check_step(&check);
    }
    st_snapshot_close(check.rows);
    return status;
}
