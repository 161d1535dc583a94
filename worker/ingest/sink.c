#include "worker/ingest/sink.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/state/layout.h"
#include "worker/ingest/sorter.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wk_sink {
    wk_sink_setup setup;
    st_fragment_writer *writer;
    uint64_t written;
    uint32_t tries;
    uint64_t number; /* taken */
    wk_run_plan *plans;
    uint32_t plan_count;
    wk_sorter *sorter;
    uint64_t *hashes;
};

/* ---- the runs of a type ---- */

static void add_plan(wk_run_plan *plans, uint32_t *count, st_run_use use, uint32_t unique, const uint32_t *properties,
                     uint32_t property_count, bool edge)
{
    wk_run_plan *plan = &plans[(*count)++];

    memset(plan, 0, sizeof *plan);
    plan->use = use;
    plan->unique = unique;
    if (use == ST_RUN_FROM || use == ST_RUN_TO) {
        plan->columns[plan->count++] = use == ST_RUN_TO;
        return;
    }
    if (use == ST_RUN_KEY && edge) {
        plan->columns[plan->count++] = 0;
        plan->columns[plan->count++] = 1;
    }
    for (uint32_t i = 0; i < property_count; i++)
        plan->columns[plan->count++] = properties[i] + (edge ? 2 : 0);
}

sluice_status wk_run_plans(const st_type_def *type, wk_run_plan **ret_plans, uint32_t *ret_count, sluice_error *err)
{
    wk_run_plan *plans = calloc(3 + (size_t)type->unique_count, sizeof *plans);

    *ret_count = 0;
    if (plans == NULL)
        return pf_fail_memory(err);
    if (type->edge ? type->identity == ST_EDGE_KEYED : type->key_count > 0)
        add_plan(plans, ret_count, ST_RUN_KEY, 0, type->key, type->key_count, type->edge);
    if (type->edge) {
        add_plan(plans, ret_count, ST_RUN_FROM, 0, NULL, 0, true);
        add_plan(plans, ret_count, ST_RUN_TO, 0, NULL, 0, true);
    }
    for (uint32_t i = 0; i < type->unique_count; i++)
        add_plan(plans, ret_count, ST_RUN_UNIQUE, type->uniques[i].id, type->uniques[i].properties,
                 type->uniques[i].count, type->edge);
    *ret_plans = plans;
    return SLUICE_OK;
}

sluice_status wk_run_is_exact(const st_schema *schema, const st_type_def *type, const wk_run_plan *plan,
                              bool *ret_exact, sluice_error *err)
{
    st_column_spec *specs = NULL;
    uint32_t count = 0;
    st_column column = {0};
    const st_column *only = &column;

    *ret_exact = false;
    if (plan->count != 1)
        return SLUICE_OK;
    PF_TRY(st_type_columns(schema, type, &specs, &count, err));
    column.type = specs[plan->columns[0]].type;
    if (column.type != ST_STRUCT)
        *ret_exact = st_key_hash_is_exact(&only, 1);
    st_type_columns_free(specs, count);
    return SLUICE_OK;
}

/* ---- batches ---- */

/* Tuples with a null never collide (K-06): they are not in the run. */
static sluice_status add_present(wk_sink *s, uint32_t run, const st_column *const *key, uint32_t count, uint64_t rows,
                                 sluice_error *err)
{
    uint64_t first = 0, end;

    for (uint64_t row = 0; row < rows; row = end) {
        first = row;
        while (first < rows && st_key_has_null(key, count, first))
            first++;
        end = first;
        while (end < rows && !st_key_has_null(key, count, end))
            end++;
        PF_TRY(wk_sorter_add(s->sorter, run, s->hashes + first, end - first, s->written + first, err));
    }
    return SLUICE_OK;
}

static sluice_status add_entries(wk_sink *s, const st_column *columns, uint64_t rows, sluice_error *err)
{
    const st_column *key[ST_KEY_LEAVES_MAX];

    for (uint32_t p = 0; p < s->plan_count; p++) {
        const wk_run_plan *plan = &s->plans[p];
        for (uint32_t i = 0; i < plan->count; i++)
            key[i] = &columns[plan->columns[i]];
        st_key_hash_rows(key, plan->count, rows, s->hashes);
        if (plan->use == ST_RUN_UNIQUE)
            PF_TRY(add_present(s, p, key, plan->count, rows, err));
        else
            PF_TRY(wk_sorter_add(s->sorter, p, s->hashes, rows, s->written, err));
    }
    return SLUICE_OK;
}

/* The first of the task's names that no earlier try has taken. */
static sluice_status create_fragment(wk_sink *s, sluice_error *err)
{
    const wk_sink_setup *setup = &s->setup;
    char name[sizeof((st_fragment_info *)0)->name];
    sluice_status status = SLUICE_ALREADY_EXISTS;
    sluice_error error;

    PF_TRY(PF_FAILPOINT(LOAD_BEFORE_FRAGMENT, err));
    for (uint32_t i = 0; i < WK_SINK_NAMES && status == SLUICE_ALREADY_EXISTS; i++) {
        s->number = setup->number + i;
        s->tries = i;
        int length = snprintf(name, sizeof name, "%s%" PRIu64 ".arrow", setup->prefix, s->number);
        PF_ALWAYS(length > 0 && (size_t)length < sizeof name);
        status = st_fragment_create(setup->volume, setup->type->table, name, setup->specs, setup->count,
                                    setup->compress, &s->writer, &error);
    }
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_fail(err, SLUICE_INTERNAL, "a fragment was tried %u times without success", WK_SINK_NAMES);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_sink_write(wk_sink *s, const st_column *columns, uint64_t rows, sluice_error *err)
{
    PF_ASSERT(rows <= WK_SINK_ROWS);
    if (rows == 0)
        return SLUICE_OK;
    if (s->writer == NULL)
        PF_TRY(create_fragment(s, err));
    PF_TRY(add_entries(s, columns, rows, err));
    PF_TRY(st_fragment_write(s->writer, columns, rows, err));
    s->written += rows;
    return SLUICE_OK;
}

uint64_t wk_sink_rows(const wk_sink *s)
{
    return s->written;
}

uint32_t wk_sink_tries(const wk_sink *s)
{
    return s->tries;
}

/* ---- files ---- */

static void run_name(const wk_sink *s, const wk_run_plan *plan, char *ret_name, size_t room)
{
    static const char *const uses[] = {
        [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "u"};
    char unique[16] = "";

    if (plan->use == ST_RUN_UNIQUE)
        (void)snprintf(unique, sizeof unique, "%u", plan->unique);
    (void)snprintf(ret_name, room, "%s%" PRIu64 ".%s%s.run", s->setup.prefix, s->number, uses[plan->use], unique);
}

static sluice_status write_runs(wk_sink *s, st_edit_add *add, sluice_error *err)
{
    char name[sizeof add->runs->info.name];

    for (uint32_t p = 0; p < s->plan_count; p++) {
        st_run_ref *ref = &add->runs[add->run_count];
        ref->use = s->plans[p].use;
        ref->unique = s->plans[p].unique;
        run_name(s, &s->plans[p], name, sizeof name);
        PF_TRY(wk_sorter_write(s->sorter, p, s->setup.volume, s->setup.type->table, name, &ref->info, err));
        add->run_count++;
    }
    return SLUICE_OK;
}

sluice_status wk_sink_finish(wk_sink *s, st_edit_add *ret_add, sluice_error *err)
{
    st_fragment_writer *writer = s->writer;

    if (writer == NULL)
        return SLUICE_OK;
    PF_TRY(PF_FAILPOINT(LOAD_AFTER_FRAGMENT_WRITE, err));
    PF_TRY(st_layout_describe(s->setup.schema, s->setup.type, writer, err));
    s->writer = NULL;
    PF_TRY(st_fragment_finish(writer, &ret_add->fragment, err));
    ret_add->runs = calloc(s->plan_count + 1, sizeof *ret_add->runs);
    if (ret_add->runs == NULL)
        return pf_fail_memory(err);
    PF_TRY(write_runs(s, ret_add, err));
    return PF_FAILPOINT(LOAD_AFTER_FRAGMENT_SYNC, err);
}

/* ---- making ---- */

sluice_status wk_sink_open(const wk_sink_setup *setup, wk_sink **ret_sink, sluice_error *err)
{
    sluice_status status;
    wk_sink *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pf_fail_memory(err);
    s->setup = *setup;
    PF_GOTO(status, failed, wk_run_plans(setup->type, &s->plans, &s->plan_count, err));
    PF_GOTO(status, failed, wk_sorter_open(setup->spool, s->plan_count, setup->expected, &s->sorter, err));
    s->hashes = malloc(WK_SINK_ROWS * sizeof *s->hashes);
    if (s->hashes == NULL) {
        status = pf_fail_memory(err);
        goto failed;
    }
    *ret_sink = s;
    return SLUICE_OK;
failed:
    wk_sink_close(s);
    return status;
}

void wk_sink_close(wk_sink *s)
{
    if (s == NULL)
        return;
    wk_sorter_close(s->sorter);
    free(s->hashes);
    free(s->plans);
    st_fragment_abandon(s->writer);
    free(s);
}
