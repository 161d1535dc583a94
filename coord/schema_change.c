/*
 * Changes of the schema (coord/schema_change.h).
 *
 * The plan half parses and compares anew for each base: another schema change in between gives other steps. Numbers for
 * new types and properties are taken from control/ once for each plan (gaps are allowed); folders of new tables and the
 * schema's file are durable before the intent is. The schema gate is taken alone; it is an order, the proof is the
 * schema's identity in every read set.
 */
#include "coord/schema_change.h"
#include "platform/check.h"
#include "platform/clock.h"
#include <stdlib.h>
#include <string.h>

static const char *const cost_names[] = {[CO_COST_METADATA] = "metadata",
                                         [CO_COST_CHECKS] = "checks rows",
                                         [CO_COST_LOSES] = "loses data",
                                         [CO_COST_REFUSED] = "refused"};

const char *co_step_cost_name(co_step_cost cost)
{
    return cost_names[cost];
}

void co_schema_plan_free(co_schema_plan *plan)
{
    st_evolution_free(&plan->evolution);
    st_schema_free(plan->newer);
    free(plan->steps);
    *plan = (co_schema_plan){0};
}

/* ---- what the rows make of the steps ---- */

static uint64_t count_rows(const st_snapshot *base, const st_type_def *type)
{
    const st_table_entry *entry = st_view_table(st_snapshot_view(base), type->table);
    return entry ? entry->rows : 0;
}

static bool has_fragments(const st_view *view, const st_type_def *type)
{
    const st_table_entry *entry = st_view_table(view, type->table);
    return entry && (entry->rows > 0 || entry->bytes > 0);
}

/* Is there nothing written in this table and those of edges that end in it? */
static bool is_untouched(const st_snapshot *base, const st_type_def *type)
{
    const st_view *view = st_snapshot_view(base);
    if (has_fragments(view, type))
        return false;
    for (uint32_t i = 0; i < view->schema->type_count && !type->edge; i++) {
        const st_type_def *edge = &view->schema->types[i];
        bool ends_here = edge->edge && (view->schema->types[edge->from].table == type->table ||
                                        view->schema->types[edge->to].table == type->table);
        if (ends_here && has_fragments(view, edge))
            return false;
    }
    return true;
}

static sluice_status count_values(st_snapshot *base, const st_type_def *type, int property, uint64_t *ret_values,
                                  sluice_error *err)
{
    uint32_t column = (type->edge ? 2 : 0) + (uint32_t)property;
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    *ret_values = 0;
    PF_TRY(st_scan_open(base, type, &column, 1, &scan, err));
    sluice_status status = st_scan_next(scan, &batch, err);
    while (status == SLUICE_OK && batch) {
        for (uint64_t row = 0; row < batch->rows; row++)
            *ret_values += !st_column_is_null(&batch->columns[0], row);
        status = st_scan_next(scan, &batch, err);
    }
    st_scan_close(scan);
    return status;
}

static co_schema_step refused(sluice_status code, const char *why)
{
    return (co_schema_step){.cost = CO_COST_REFUSED, .code = code, .why = why};
}

/* Has a row that is there nothing to put where the property was added? */
static bool lacks_value(const st_property *added)
{
    return !added->nullable && (!added->default_value.present || added->default_value.is_null);
}

static co_schema_step judge_added(const st_snapshot *base, const st_step *step)
{
    if (!lacks_value(&step->after->properties[step->property_after]) || count_rows(base, step->before) == 0)
        return (co_schema_step){.cost = CO_COST_METADATA};
    return refused(SLUICE_CONSTRAINT_NULL,
                   "rows that are there would have no value: let it be null (\"?\") or give it a \"default\"");
}

sluice_status co_schema_judge(st_snapshot *base, const st_step *step, co_schema_step *ret_step, sluice_error *err)
{
    *ret_step = (co_schema_step){.cost = CO_COST_METADATA};
    switch (step->kind) {
    case ST_STEP_ADD_PROPERTY:
        *ret_step = judge_added(base, step);
        break;
    case ST_STEP_DROP_TYPE:
        ret_step->rows = count_rows(base, step->before);
        ret_step->cost = ret_step->rows > 0 ? CO_COST_LOSES : CO_COST_METADATA;
        break;
    case ST_STEP_DROP_PROPERTY:
        if (st_type_key_has(step->before, (uint32_t)step->property_before))
            break; /* the step for the key says what is to be said */
        PF_TRY(count_values(base, step->before, step->property_before, &ret_step->rows, err));
        ret_step->cost = ret_step->rows > 0 ? CO_COST_LOSES : CO_COST_METADATA;
        break;
    case ST_STEP_RETYPE_PROPERTY:
    case ST_STEP_KEY:
    case ST_STEP_ENDS:
        if (is_untouched(base, step->before))
            break;
        *ret_step = step->kind == ST_STEP_RETYPE_PROPERTY
                        ? refused(SLUICE_CONSTRAINT_TYPE,
                                  "values would not all fit: export the type, drop it, add it anew, and load it")
                        : refused(SLUICE_CONSTRAINT_CHECK, "rows are known by what they were written with: export the "
                                                           "type, drop it, add it anew, and load it");
        break;
    case ST_STEP_FORBID_NULL:
    case ST_STEP_TIGHTEN_CHECKS:
    case ST_STEP_ADD_UNIQUE:
    case ST_STEP_TIGHTEN_CARDINALITY:
        ret_step->rows = step->before ? count_rows(base, step->before) : 0;
        ret_step->cost = ret_step->rows > 0 ? CO_COST_CHECKS : CO_COST_METADATA;
        break;
    case ST_STEP_ADD_TYPE:
    case ST_STEP_RENAME_TYPE:
    case ST_STEP_RENAME_PROPERTY:
    case ST_STEP_WIDEN_PROPERTY:
    case ST_STEP_ALLOW_NULL:
    case ST_STEP_DEFAULT:
    case ST_STEP_LOOSEN_CHECKS:
    case ST_STEP_DROP_UNIQUE:
    case ST_STEP_LOOSEN_CARDINALITY:
    case ST_STEP_ORDER:
    case ST_STEP_KIND_COUNT:
        break;
    }
    return SLUICE_OK;
}

sluice_status co_schema_plan_make(st_snapshot *base, const char *text, size_t length, const char *file,
                                  co_schema_plan *ret_plan, sluice_error *err)
{
    co_schema_plan plan = {0};
    sluice_status status;
    PF_GOTO(status, failed, st_schema_parse(text, length, file, &plan.newer, err));
    PF_GOTO(status, failed, st_schema_evolve(st_snapshot_view(base)->schema, plan.newer, &plan.evolution, err));
    plan.steps = calloc((size_t)plan.evolution.count + 1, sizeof *plan.steps);
    if (!plan.steps) {
        status = pf_fail_memory(err);
        goto failed;
    }
    for (uint32_t i = 0; i < plan.evolution.count; i++)
        PF_GOTO(status, failed, co_schema_judge(base, &plan.evolution.steps[i], &plan.steps[i], err));
    *ret_plan = plan;
    return SLUICE_OK;
failed:
    co_schema_plan_free(&plan);
    return status;
}

/* ---- applying ---- */

typedef struct schema_writer {
    const co_schema_request *request;
} schema_writer;

static sluice_status check_allowed(const co_schema_plan *plan, const co_schema_request *request, sluice_error *err)
{
    for (uint32_t i = 0; i < plan->evolution.count; i++) {
        if (plan->steps[i].cost != CO_COST_REFUSED)
            continue;
        sluice_status status =
            pf_fail_private(err, plan->steps[i].code, "a step of the schema's change is refused", "%s: %s",
                            plan->evolution.steps[i].text, st_step_name(plan->evolution.steps[i].kind));
        pf_hint(err, "%s", plan->steps[i].why);
        return status;
    }
    for (uint32_t i = 0; i < plan->evolution.count && !request->allow_data_loss; i++) {
        if (plan->steps[i].cost != CO_COST_LOSES)
            continue;
        bool rows = plan->evolution.steps[i].kind == ST_STEP_DROP_TYPE;
        sluice_status status =
            pf_fail_private(err, SLUICE_USAGE, "data would be lost", "%s, with %llu %s", plan->evolution.steps[i].text,
                            (unsigned long long)plan->steps[i].rows, rows ? "rows" : "values");
        pf_hint(err, "--allow-data-loss if that is meant; older commits still have them until they are collected");
        return status;
    }
    return SLUICE_OK;
}

static sluice_status assign_ids(co_write *write, st_schema *schema, sluice_error *err)
{
    uint64_t tables = 0, properties = 0, table = 0, property = 0;
    pf_deadline deadline = pf_deadline_in_ms(write->request->wait_ms ? write->request->wait_ms : CO_WAIT_MS);
    st_schema_count_missing_ids(schema, &tables, &properties);
    if (tables + properties == 0)
        return SLUICE_OK;
    PF_TRY(st_control_take_ids(write->graph, tables, properties, deadline, &table, &property, err));
    st_schema_assign_missing_ids(schema, table, property);
    for (uint32_t i = 0; i < schema->type_count && tables > 0; i++)
        if (schema->types[i].table >= table)
            PF_TRY(st_table_make_folders(st_graph_volume(write->graph), schema->types[i].table, err));
    return SLUICE_OK;
}

static sluice_status read_whole(co_write *write, uint64_t table, sluice_error *err)
{
    co_read read = {.kind = CO_READ_WHOLE_TABLE, .set = {.table = table}};
    return co_read_set_has_whole(&write->reads, table) ? SLUICE_OK : co_read_set_add(&write->reads, &read, err);
}

/* What the verdict on a step rests on: every row that is there, or that there is none. */
static bool depends_on_rows(const st_step *step)
{
    switch (step->kind) {
    case ST_STEP_ADD_PROPERTY:
        return lacks_value(&step->after->properties[step->property_after]);
    case ST_STEP_DROP_TYPE:
    case ST_STEP_DROP_PROPERTY:
    case ST_STEP_RETYPE_PROPERTY:
    case ST_STEP_FORBID_NULL:
    case ST_STEP_TIGHTEN_CHECKS:
    case ST_STEP_ADD_UNIQUE:
    case ST_STEP_TIGHTEN_CARDINALITY:
    case ST_STEP_KEY:
    case ST_STEP_ENDS:
        return true;
    case ST_STEP_ADD_TYPE:
    case ST_STEP_RENAME_TYPE:
    case ST_STEP_RENAME_PROPERTY:
    case ST_STEP_WIDEN_PROPERTY:
    case ST_STEP_ALLOW_NULL:
    case ST_STEP_DEFAULT:
    case ST_STEP_LOOSEN_CHECKS:
    case ST_STEP_DROP_UNIQUE:
    case ST_STEP_LOOSEN_CARDINALITY:
    case ST_STEP_ORDER:
    case ST_STEP_KIND_COUNT:
        break;
    }
    return false;
}

/* The read set, and what the commit changes beside the schema: dropped types are gone as a whole. */
static sluice_status fill_sets(co_write *write, const co_schema_plan *plan, sluice_error *err)
{
    const st_schema *older = st_snapshot_view(write->base)->schema;
    for (uint32_t i = 0; i < plan->evolution.count; i++) {
        const st_step *step = &plan->evolution.steps[i];
        if (!step->before || !depends_on_rows(step))
            continue;
        PF_TRY(read_whole(write, step->before->table, err));
        bool of_edges = step->kind == ST_STEP_KEY || step->kind == ST_STEP_RETYPE_PROPERTY;
        for (uint32_t t = 0; t < older->type_count && of_edges && !step->before->edge; t++) {
            const st_type_def *edge = &older->types[t];
            if (edge->edge && (&older->types[edge->from] == step->before || &older->types[edge->to] == step->before))
                PF_TRY(read_whole(write, edge->table, err));
        }
        if (step->kind != ST_STEP_DROP_TYPE)
            continue;
        write->delta.commit.deleted += plan->steps[i].rows;
        PF_TRY(st_changes_add_whole(&write->delta.changes, step->before->table, err));
    }
    return SLUICE_OK;
}

static sluice_status make_plan(void *context, co_write *write, sluice_error *err)
{
    const schema_writer *writer = context;
    const co_schema_request *request = writer->request;
    co_schema_plan plan = {0};
    sluice_status status;
    PF_TRY(co_schema_plan_make(write->base, request->text, request->length, request->file, &plan, err));
    if (plan.evolution.count == 0) {
        status = SLUICE_OK;
        goto done;
    }
    PF_GOTO(status, done, check_allowed(&plan, request, err));
    PF_GOTO(status, done, co_schema_check(write->base, &plan, err));
    PF_GOTO(status, done, assign_ids(write, plan.newer, err));
    PF_GOTO(status, done, fill_sets(write, &plan, err));
    write->gates = calloc(1, sizeof *write->gates);
    if (!write->gates) {
        status = pf_fail_memory(err);
        goto done;
    }
    write->gates[0] = (lk_gate_key){
        .kind = LK_GATE_SCHEMA, .incarnation = st_snapshot_view(write->base)->incarnation, .exclusive = true};
    write->gate_count = 1;
    status = st_schema_store(st_graph_volume(write->graph), plan.newer, &write->delta.new_schema, err);
done:
    co_schema_plan_free(&plan);
    return status;
}

static sluice_status digest_request(const co_schema_request *request, pf_sha256 *ret_digest, sluice_error *err)
{
    const char *kind = request->allow_data_loss ? "schema, loss allowed:" : "schema:";
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    pf_sha256_add(stream, kind, strlen(kind));
    pf_sha256_add(stream, request->text, request->length);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

static void ignore_progress(void *context, uint64_t rows, uint64_t bytes)
{
    (void)context;
    (void)rows;
    (void)bytes;
}

sluice_status co_schema_apply(st_graph *graph, const co_schema_request *request, co_receipt *ret_receipt,
                              sluice_error *err)
{
    schema_writer context = {request};
    co_writer writer = {.adapter = &ad_schema, .context = &context, .plan = make_plan};
    wk_executor executor = {.workers = 1, .advance = ignore_progress, .epoch = pf_id_new()};
    co_request write = {.branch = request->branch,
                        .operation = request->operation,
                        .operation_given = request->operation_given,
                        .message = request->message,
                        .if_head = request->if_head};
    PF_TRY(digest_request(request, &write.request, err));
    return co_write_run(graph, &write, NULL, &executor, &writer, ret_receipt, err);
}
