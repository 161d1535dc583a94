#include "worker/maintain/lost_runs.h"

#include "platform/check.h"
#include "store/state/codec.h" /* st_add_copy */
#include "store/state/layout.h"
#include "worker/ingest/sink.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static st_run_ref *find_run(const st_edit_add *add, const wk_run_plan *plan)
{
    for (uint32_t i = 0; i < add->run_count; i++)
        if (add->runs[i].use == plan->use && (plan->use != ST_RUN_UNIQUE || add->runs[i].unique == plan->unique))
            return &add->runs[i];
    return NULL;
}

static sluice_status is_lost(pf_volume *volume, uint64_t table, const st_edit_add *add, const wk_run_plan *plan,
                             bool *ret_lost, sluice_error *err)
{
    const st_run_ref *named = find_run(add, plan);
    sluice_error error = {0};
    st_run *run = NULL;
    *ret_lost = named == NULL;
    if (!named)
        return SLUICE_OK;
    sluice_status status = st_run_open(volume, table, &named->info, &run, &error);
    st_run_close(run);
    *ret_lost = status == SLUICE_CORRUPT;
    if (status != SLUICE_OK && status != SLUICE_CORRUPT && err)
        *err = error;
    return status == SLUICE_CORRUPT ? SLUICE_OK : status;
}

sluice_status wk_runs_are_lost(pf_volume *volume, const st_type_def *type, const st_edit_add *add, bool *ret_lost,
                               sluice_error *err)
{
    wk_run_plan *plans = NULL;
    uint32_t count = 0;
    *ret_lost = false;
    PF_TRY(wk_run_plans(type, &plans, &count, err));
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < count && !*ret_lost && status == SLUICE_OK; i++)
        status = is_lost(volume, type->table, add, &plans[i], ret_lost, err);
    free(plans);
    return status;
}

/* ---- making one again ---- */

static sluice_status hash_batch(const st_type_def *type, st_fragment *fragment, uint32_t batch, const wk_run_plan *plan,
                                uint64_t first, st_run_entry *entries, uint64_t *count, sluice_error *err)
{
    st_column columns[ST_KEY_LEAVES_MAX];
    const st_column *key[ST_KEY_LEAVES_MAX];
    uint64_t rows = st_fragment_batch_rows(fragment, batch);
    for (uint32_t i = 0; i < plan->count; i++) {
        int at = st_layout_find(type, fragment, plan->columns[i]);
        if (at < 0 && plan->use == ST_RUN_UNIQUE) /* a property that came later: null here, so in no run */
            return SLUICE_OK;
        if (at < 0)
            return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %" PRIu64 " lacks a column of its key",
                           type->table);
        PF_TRY(st_fragment_column(fragment, batch, (uint32_t)at, &columns[i], err));
        key[i] = &columns[i];
    }
    uint64_t *hashes = malloc((rows + 1) * sizeof *hashes);
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(key, plan->count, rows, hashes);
    for (uint64_t row = 0; row < rows; row++)
        if (plan->use != ST_RUN_UNIQUE || !st_key_has_null(key, plan->count, row))
            entries[(*count)++] = (st_run_entry){.hash = hashes[row], .position = first + row};
    free(hashes);
    return SLUICE_OK;
}

typedef struct naming { /* of the files of one fragment */
    const char *prefix;
    uint64_t number;
    uint32_t tries;
} naming;

static sluice_status write_run(pf_volume *volume, uint64_t table, const wk_run_plan *plan, const naming *names,
                               st_run_entry *entries, uint64_t count, st_run_info *ret_info, sluice_error *err)
{
    static const char *const uses[] = {
        [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "u"};
    sluice_error error = {0};
    sluice_status status = SLUICE_ALREADY_EXISTS;
    for (uint32_t i = 0; i < names->tries && status == SLUICE_ALREADY_EXISTS; i++) {
        char name[sizeof ret_info->name], unique[16] = "";
        if (plan->use == ST_RUN_UNIQUE)
            (void)snprintf(unique, sizeof unique, "%u", plan->unique);
        (void)snprintf(name, sizeof name, "%s%" PRIu64 ".%s%s.run", names->prefix, names->number + i, uses[plan->use],
                       unique);
        status = st_run_write(volume, table, name, entries, count, ret_info, &error);
    }
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_fail(err, SLUICE_INTERNAL, "a run was tried %u times without success", names->tries);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

static sluice_status rebuild(pf_volume *volume, const st_type_def *type, st_fragment *fragment, uint64_t rows,
                             const wk_run_plan *plan, const naming *names, st_run_info *ret_info, sluice_error *err)
{
    uint64_t count = 0, first = 0;
    st_run_entry *entries = malloc((rows + 1) * sizeof *entries);
    sluice_status status = SLUICE_OK;
    if (!entries)
        return pf_fail_memory(err);
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        status = hash_batch(type, fragment, batch, plan, first, entries, &count, err);
        first += st_fragment_batch_rows(fragment, batch);
    }
    if (status == SLUICE_OK)
        status = write_run(volume, type->table, plan, names, entries, count, ret_info, err);
    free(entries);
    return status;
}

sluice_status wk_runs_rebuild(pf_volume *volume, const st_type_def *type, const st_edit_add *add, const char *prefix,
                              uint64_t number, uint32_t tries, st_edit_add *ret_add, sluice_error *err)
{
    naming names = {.prefix = prefix, .number = number, .tries = tries};
    wk_run_plan *plans = NULL;
    uint32_t count = 0;
    st_edit_add made = {0};
    st_fragment *fragment = NULL;
    sluice_status status;
    PF_TRY(wk_run_plans(type, &plans, &count, err));
    PF_GOTO(status, done, st_add_copy(add, &made, err));
    st_run_ref *runs = realloc(made.runs, ((size_t)made.run_count + count + 1) * sizeof *runs);
    if (!runs) {
        status = pf_fail_memory(err);
        goto done;
    }
    made.runs = runs;
    PF_GOTO(status, done, st_fragment_open(volume, type->table, &add->fragment, &fragment, err));
    for (uint32_t i = 0; i < count; i++) {
        bool lost = false;
        PF_GOTO(status, done, is_lost(volume, type->table, add, &plans[i], &lost, err));
        if (!lost)
            continue;
        st_run_ref *run = find_run(&made, &plans[i]);
        if (!run) {
            run = &made.runs[made.run_count++];
            *run = (st_run_ref){.use = plans[i].use, .unique = plans[i].unique};
        }
        PF_GOTO(status, done, rebuild(volume, type, fragment, add->fragment.rows, &plans[i], &names, &run->info, err));
    }
    *ret_add = made;
    made = (st_edit_add){0};
done:
    st_fragment_close(fragment);
    st_add_free(&made);
    free(plans);
    return status;
}
