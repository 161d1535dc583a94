/*
 * The plan half of a load: probes against the base, then the edits, change sets, read set and gates that follow from
 * what was staged. Made again after every conflict; what the rows left is used as it is (P-09).
 *
 * | staged run | read (absent or present) | change            | of table     |
 * | key        | KEY_ABSENT               | KEY_INSERTED      | its own      |
 * | unique     | UNIQUE_ABSENT            | UNIQUE_SET        | its own      |
 * | from, to   | KEY_PRESENT              | ENDPOINT_USED     | the node's   |
 * | from, to   | COUNT, where limited     |                   | its own      |
 *
 * What a skipping load left out adds the opposite: KEY_PRESENT or UNIQUE_PRESENT of what was taken, KEY_ABSENT of ends
 * that were missing, and the whole table where a count was full.
 *
 * A type that is replaced is read and changed as a whole (load_overwrite.c). Small sets list their hashes, large ones
 * name the runs. Ends that are in the load itself are in the set of those that must stay, too: nobody can delete what
 * nobody sees yet, so they conflict with nothing.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MAX 256u /* hashes of a set that are listed rather than named by runs */

typedef enum row_choice { ALL_ROWS, ADDED_ROWS, UPDATED_ROWS, STAGED_ROWS, JUDGED_ROWS } row_choice;

/* A set of hashes: all runs of one use of one type. */
typedef struct run_set {
    const st_type_def *type;
    st_run_use use;
    uint32_t unique;
    bool all; /* also of fragments of which nothing is added, since a skipping load left out every row */
    row_choice rows;
} run_set;

static const wk_catalogue *rows_of(const load_job *job, const run_set *set)
{
    return set->rows == STAGED_ROWS   ? &job->catalogue
           : set->rows == JUDGED_ROWS ? load_judged(job)
                                      : load_plan_rows(job);
}

static uint64_t dead_rows(const wk_catalogue *rows, uint32_t item)
{
    return rows->dead && rows->dead[item] ? st_row_set_count(rows->dead[item]) : 0;
}

/* Has an item of the catalogue runs for a set? */
static bool is_in_set(const wk_catalogue *rows, const run_set *set, uint32_t item)
{
    const wk_staged *staged = &rows->items[item];
    if (set->rows == ADDED_ROWS || set->rows == UPDATED_ROWS)
        if (staged->updates != (set->rows == UPDATED_ROWS))
            return false;
    return staged->table == set->type->table && (set->all || staged->add.fragment.rows > dead_rows(rows, item));
}

static bool matches(const run_set *set, const st_run_ref *run)
{
    return run->use == set->use && (set->use != ST_RUN_UNIQUE || run->unique == set->unique);
}

static uint64_t count_entries(const load_job *job, const run_set *set, uint32_t *ret_runs)
{
    const wk_catalogue *catalogue = rows_of(job, set);
    uint64_t entries = 0;

    *ret_runs = 0;
    for (uint32_t i = 0; i < catalogue->count; i++) {
        const wk_staged *item = &catalogue->items[i];
        for (uint32_t r = 0; is_in_set(catalogue, set, i) && r < item->add.run_count; r++)
            if (matches(set, &item->add.runs[r])) {
                entries += item->add.runs[r].info.entries;
                ++*ret_runs;
            }
    }
    return entries;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static sluice_status list_run(const load_job *job, const run_set *set, const st_run_info *info, st_change *change,
                              sluice_error *err)
{
    st_run *run = NULL;
    st_run_cursor cursor;
    const st_run_entry *entry = NULL;
    sluice_status status;

    PF_TRY(st_run_open(job->spool.volume, set->type->table, info, &run, err));
    PF_GOTO(status, done, st_run_seek(run, 0, UINT64_MAX, &cursor, err));
    for (;;) {
        PF_GOTO(status, done, st_run_next(&cursor, &entry, err));
        if (entry == NULL)
            break;
        change->hashes[change->hash_count++] = entry->hash;
    }
done:
    st_run_close(run);
    return status;
}

static void make_distinct(st_change *change)
{
    uint64_t kept = 0;

    qsort(change->hashes, change->hash_count, sizeof *change->hashes, by_value);
    for (uint64_t i = 0; i < change->hash_count; i++)
        if (i == 0 || change->hashes[i] != change->hashes[kept - 1])
            change->hashes[kept++] = change->hashes[i];
    change->hash_count = kept;
}

/* Fills hashes or runs of a change. */
static sluice_status fill_set(const load_job *job, const run_set *set, st_change *change, sluice_error *err)
{
    const wk_catalogue *catalogue = rows_of(job, set);
    uint32_t runs;
    uint64_t entries = count_entries(job, set, &runs);
    bool listed = entries <= LISTED_MAX;

    if (listed)
        change->hashes = malloc((entries + 1) * sizeof *change->hashes);
    else
        change->runs = calloc(runs, sizeof *change->runs);
    if (change->hashes == NULL && change->runs == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < catalogue->count; i++) {
        const wk_staged *item = &catalogue->items[i];
        for (uint32_t r = 0; is_in_set(catalogue, set, i) && r < item->add.run_count; r++) {
            const st_run_ref *run = &item->add.runs[r];
            if (!matches(set, run))
                continue;
            if (listed)
                PF_TRY(list_run(job, set, &run->info, change, err));
            else
                change->runs[change->run_count++] =
                    (struct st_change_run){.table = set->type->table, .run = *run, .fragment = item->add.fragment};
        }
    }
    if (listed)
        make_distinct(change);
    return SLUICE_OK;
}

static void free_set(st_change *change)
{
    free(change->hashes);
    free(change->runs);
}

static sluice_status add_change(const load_job *job, const run_set *set, st_space space, uint64_t table,
                                st_changes *changes, sluice_error *err)
{
    st_change change = {.table = table, .space = space, .unique = set->use == ST_RUN_UNIQUE ? set->unique : 0};
    st_change *items = realloc(changes->items, ((size_t)changes->count + 1) * sizeof *items);

    if (items == NULL)
        return pf_fail_memory(err);
    changes->items = items;
    sluice_status status = fill_set(job, set, &change, err);
    if (status != SLUICE_OK) {
        free_set(&change);
        return status;
    }
    changes->items[changes->count++] = change;
    return SLUICE_OK;
}

static sluice_status add_read(const load_job *job, const run_set *set, co_read_kind kind, st_space space,
                              uint64_t table, co_read_set *reads, sluice_error *err)
{
    co_read read = {.kind = kind,
                    .set = {.table = table, .space = space, .unique = set->use == ST_RUN_UNIQUE ? set->unique : 0}};
    sluice_status status = fill_set(job, set, &read.set, err);

    if (status == SLUICE_OK)
        status = co_read_set_add(reads, &read, err);
    if (status != SLUICE_OK)
        free_set(&read.set);
    return status;
}

/* What the runs of one use mean to others. */
static sluice_status add_sets(const load_job *job, const run_set *set, co_write *write, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;
    const st_type_def *type = set->type, *node;
    st_changes *changes = &write->delta.changes;

    switch (set->use) {
    case ST_RUN_KEY:
        PF_TRY(add_change(job, set, ST_SPACE_KEY_INSERTED, type->table, changes, err));
        return add_read(job, set, CO_READ_KEY_ABSENT, ST_SPACE_KEY_INSERTED, type->table, &write->reads, err);
    case ST_RUN_UNIQUE:
        PF_TRY(add_change(job, set, ST_SPACE_UNIQUE_SET, type->table, changes, err));
        return add_read(job, set, CO_READ_UNIQUE_ABSENT, ST_SPACE_UNIQUE_SET, type->table, &write->reads, err);
    case ST_RUN_FROM:
    case ST_RUN_TO:
        break;
    }
    node = &schema->types[set->use == ST_RUN_FROM ? type->from : type->to];
    PF_TRY(add_change(job, set, ST_SPACE_ENDPOINT_USED, node->table, changes, err));
    PF_TRY(add_read(job, set, CO_READ_KEY_PRESENT, ST_SPACE_KEY_DELETED, node->table, &write->reads, err));
    if ((set->use == ST_RUN_FROM ? type->max_out : type->max_in) == ST_NO_LIMIT)
        return SLUICE_OK;
    return add_read(job, set, CO_READ_COUNT, ST_SPACE_ENDPOINT_USED, type->table, &write->reads, err);
}

/* That a row was left out rests on what is there, as that it was taken rests on what is not. */
static sluice_status add_refusals(const load_job *job, co_write *write, sluice_error *err)
{
    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        const wk_probe *probe = &job->plan.probes[i];
        run_set set = {.type = probe->type,
                       .use = probe->plan.use,
                       .unique = probe->plan.unique,
                       .all = true,
                       .rows = JUDGED_ROWS};
        co_read_kind kind = CO_READ_KEY_PRESENT;
        uint64_t table = probe->type->table;
        if (!job->plan.refused[i] || probe->alone || probe->node_alone) /* by rows of the load itself */
            continue;
        switch (probe->rule) {
        case WK_RULE_KEY:
        case WK_RULE_IDENTITY:
            break;
        case WK_RULE_UNIQUE:
            kind = CO_READ_UNIQUE_PRESENT;
            break;
        case WK_RULE_ENDS:
            kind = CO_READ_KEY_ABSENT;
            table = probe->node->table;
            break;
        case WK_RULE_COUNTS: /* no set says which edges were deleted at a node */
            kind = CO_READ_WHOLE_TABLE;
            break;
        case WK_RULE_ROW:
        case WK_RULE_STRANDED:
        case WK_RULE_END:
            continue;
        }
        PF_TRY(add_read(job, &set, kind, ST_SPACE_KEY_DELETED, table, &write->reads, err));
    }
    return SLUICE_OK;
}

/* ---- sets of an upsert ---- */

static sluice_status add_listed(st_change change, load_hashes *hashes, st_changes *changes, sluice_error *err)
{
    st_change *items;

    if (hashes->count == 0 && !hashes->many)
        return SLUICE_OK;
    items = realloc(changes->items, ((size_t)changes->count + 1) * sizeof *items);
    if (items == NULL)
        return pf_fail_memory(err);
    changes->items = items;
    change.whole = hashes->many;
    if (!hashes->many) {
        change.hashes = hashes->items;
        change.hash_count = hashes->count;
        hashes->items = NULL;
        make_distinct(&change);
    }
    changes->items[changes->count++] = change;
    return SLUICE_OK;
}

/* Tuples that updated rows gave up; more than can be listed count as all. */
static sluice_status add_freed(const load_job *job, const run_set *set, st_changes *changes, sluice_error *err)
{
    st_change change = {.table = set->type->table, .space = ST_SPACE_UNIQUE_FREED, .unique = set->unique};
    load_hashes hashes;
    sluice_status status = load_upsert_tuples(job, set->type, set->unique, true, ST_LISTED_HASHES_MAX, &hashes, err);

    if (status == SLUICE_OK)
        status = add_listed(change, &hashes, changes, err);
    free(hashes.items);
    return status;
}

/* Tuples that rows have now: of the updated ones, where they can be listed, those only that they did not have. */
static sluice_status add_unique_set(const load_job *job, const run_set *set, st_changes *changes, sluice_error *err)
{
    run_set added = *set;
    st_change change = {.table = set->type->table, .space = ST_SPACE_UNIQUE_SET, .unique = set->unique};
    st_change listed = {0};
    load_hashes hashes;
    uint32_t runs;
    sluice_status status;

    added.rows = ADDED_ROWS;
    uint64_t entries = count_entries(job, &added, &runs);
    uint64_t limit = entries < LISTED_MAX ? LISTED_MAX - entries : 0;
    PF_GOTO(status, done, load_upsert_tuples(job, set->type, set->unique, false, limit, &hashes, err));
    if (hashes.many || entries > LISTED_MAX) {
        status = add_change(job, set, ST_SPACE_UNIQUE_SET, set->type->table, changes, err);
        goto done;
    }
    PF_GOTO(status, done, fill_set(job, &added, &listed, err));
    if (listed.hash_count > 0) {
        uint64_t *items = realloc(listed.hashes, (listed.hash_count + hashes.count) * sizeof *items);
        if (items == NULL) {
            status = pf_fail_memory(err);
            goto done;
        }
        if (hashes.count > 0)
            memcpy(items + listed.hash_count, hashes.items, hashes.count * sizeof *items);
        free(hashes.items);
        hashes.items = items;
        hashes.count += listed.hash_count;
        listed.hashes = NULL;
    }
    status = add_listed(change, &hashes, changes, err);
done:
    free_set(&listed);
    free(hashes.items);
    return status;
}

/* The updated rows, by property where they are few: writers of other properties go on. */
static sluice_status add_updated(const load_job *job, const run_set *set, st_changes *changes, sluice_error *err)
{
    const st_type_def *type = set->type;
    uint32_t runs;
    uint64_t entries = count_entries(job, set, &runs);
    bool *changed;
    sluice_status status;

    if (entries == 0)
        return SLUICE_OK;
    if (entries > LISTED_MAX)
        return add_change(job, set, ST_SPACE_ROW_UPDATED, type->table, changes, err);
    changed = calloc((size_t)type->property_count + 1, sizeof *changed);
    if (changed == NULL)
        return pf_fail_memory(err);
    status = load_upsert_changed(job, type, changed, err);
    for (uint32_t i = 0; i < type->property_count && status == SLUICE_OK; i++)
        if (changed[i]) {
            status = add_change(job, set, ST_SPACE_ROW_UPDATED, type->table, changes, err);
            if (status == SLUICE_OK)
                changes->items[changes->count - 1].property = type->properties[i].id;
        }
    free(changed);
    return status;
}

/* What the keys of an upsert, found or not, and its tuples mean to others (load_upsert.c). */
static sluice_status add_upsert_sets(const load_job *job, const run_set *set, co_write *write, sluice_error *err)
{
    run_set part = *set;
    st_changes *changes = &write->delta.changes;
    uint64_t table = set->type->table;
    uint32_t runs;

    if (set->use == ST_RUN_KEY) {
        part.rows = STAGED_ROWS;
        part.all = true; /* that a row was left out rests on its key, too */
        PF_TRY(add_read(job, &part, CO_READ_ROW, ST_SPACE_ROW_UPDATED, table, &write->reads, err));
        part.all = false;
        part.rows = ADDED_ROWS;
        if (count_entries(job, &part, &runs) > 0)
            PF_TRY(add_change(job, &part, ST_SPACE_KEY_INSERTED, table, changes, err));
        part.rows = UPDATED_ROWS;
        return add_updated(job, &part, changes, err);
    }
    if (set->use == ST_RUN_UNIQUE) {
        PF_TRY(add_read(job, set, CO_READ_UNIQUE_ABSENT, ST_SPACE_UNIQUE_SET, table, &write->reads, err));
        PF_TRY(add_unique_set(job, set, changes, err));
        return add_freed(job, set, changes, err);
    }
    part.rows = ADDED_ROWS; /* edges never move */
    return count_entries(job, &part, &runs) > 0 ? add_sets(job, &part, write, err) : SLUICE_OK;
}

/* Has an upsert looked for keys of the type? Then it has read them, also when it changes nothing. */
static bool has_looked_for(const load_job *job, const st_type_def *type)
{
    const run_set keys = {.type = type, .use = ST_RUN_KEY, .rows = STAGED_ROWS, .all = true};
    uint32_t runs;
    return load_completes(job) && count_entries(job, &keys, &runs) > 0;
}

/* ---- edits ---- */

/* Names an added fragment; rows that a late phase left out go into a deletion file. */
static sluice_status add_fragment(const load_job *job, const co_write *write, uint32_t item, st_edit *edit,
                                  sluice_error *err)
{
    const wk_staged *staged = &load_plan_rows(job)->items[item];
    st_edit_add *add = &edit->adds[edit->add_count];

    *add = staged->add;
    add->runs = malloc((staged->add.run_count + 1) * sizeof *add->runs);
    if (add->runs == NULL)
        return pf_fail_memory(err);
    memcpy(add->runs, staged->add.runs, staged->add.run_count * sizeof *add->runs);
    edit->add_count++;
    if (dead_rows(load_plan_rows(job), item) > 0) {
        char attempt[PF_ID_TEXT], name[72];
        pf_id_text(&job->spool.attempt, attempt);
        (void)snprintf(name, sizeof name, "%s-p%u-%u.dead", attempt, write->plan_number, item);
        PF_TRY(st_deletion_write(job->spool.volume, staged->table, name, load_plan_rows(job)->dead[item], &add->dead,
                                 err));
    }
    return SLUICE_OK;
}

static sluice_status add_edit(const load_job *job, const st_type_def *type, co_write *write, sluice_error *err)
{
    const wk_catalogue *catalogue = load_plan_rows(job);
    const st_table_entry *entry = st_view_table(st_snapshot_view(write->base), type->table);
    st_edit edit = {.table = type->table};
    char attempt[PF_ID_TEXT], stem[64];
    bool dead = false;
    sluice_status status;

    edit.adds = calloc((size_t)catalogue->count + 1, sizeof *edit.adds);
    if (edit.adds == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < catalogue->count; i++) {
        const wk_staged *item = &catalogue->items[i];
        uint64_t rows = item->add.fragment.rows - dead_rows(catalogue, i);
        if (item->table != type->table || rows == 0)
            continue;
        dead |= rows < item->add.fragment.rows;
        PF_GOTO(status, failed, add_fragment(job, write, i, &edit, err));
        *(item->updates ? &write->delta.commit.updated : &write->delta.commit.inserted) += rows;
    }
    if (load_replaces(job, type) && entry && entry->rows > 0) {
        edit.replace = true;
        write->delta.commit.deleted += entry->rows;
    }
    if (edit.add_count == 0 && !edit.replace) {
        st_edit_free(&edit);
        return SLUICE_OK;
    }
    if (dead) {
        char folder[64];
        (void)snprintf(folder, sizeof folder, "tables/%" PRIu64 "/deletions", type->table);
        PF_GOTO(status, failed, pf_sync_dir(job->spool.volume, folder, err));
    }
    PF_GOTO(status, failed, load_upsert_deletes(job, type, write, &edit, err));
    pf_id_text(&job->spool.attempt, attempt);
    (void)snprintf(stem, sizeof stem, "%s-p%u", attempt, write->plan_number);
    return st_delta_add_edit(job->spool.volume, &write->delta, &edit, stem, err);
failed:
    st_edit_free(&edit);
    return status;
}

static sluice_status add_type(const load_job *job, const st_type_def *type, co_write *write, sluice_error *err)
{
    wk_run_plan *plans = NULL;
    uint32_t count = 0, edits = write->delta.edit_count;
    sluice_status status = SLUICE_OK;

    if (load_replaces(job, type))
        PF_TRY(load_overwrite_sets(job, type, write, err));
    PF_TRY(add_edit(job, type, write, err));
    if (write->delta.edit_count == edits && !has_looked_for(job, type))
        return SLUICE_OK;
    PF_TRY(wk_run_plans(type, &plans, &count, err));
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++) {
        run_set set = {.type = type, .use = plans[i].use, .unique = plans[i].unique};
        bool ends = set.use == ST_RUN_FROM || set.use == ST_RUN_TO;
        if (load_completes(job))
            status = add_upsert_sets(job, &set, write, err);
        else if (ends || !load_replaces(job, type))
            status = add_sets(job, &set, write, err);
    }
    free(plans);
    return status;
}

/* ---- gates ---- */

static void add_gate(co_write *write, lk_gate_kind kind, uint64_t table, bool exclusive)
{
    uint64_t incarnation = st_snapshot_view(write->base)->incarnation;

    for (uint32_t i = 0; i < write->gate_count; i++)
        if (write->gates[i].kind == kind && write->gates[i].table == table) {
            write->gates[i].exclusive |= exclusive;
            return;
        }
    write->gates[write->gate_count++] =
        (lk_gate_key){.kind = kind, .incarnation = incarnation, .table = table, .exclusive = exclusive};
}

/* Gates of everything that is written or only probed: shared, but alone for what is replaced. */
static sluice_status add_gates(const load_job *job, co_write *write, sluice_error *err)
{
    const st_schema *schema = job->payload.schema;

    write->gates = calloc(2 + schema->type_count + 3 * ((size_t)write->delta.edit_count + job->plan.probe_count),
                          sizeof *write->gates);
    if (write->gates == NULL)
        return pf_fail_memory(err);
    add_gate(write, LK_GATE_SCHEMA, 0, false);
    add_gate(write, LK_GATE_BRANCH, 0, false);
    for (uint32_t i = 0; i < write->delta.edit_count; i++) {
        const st_type_def *type = st_schema_find_table(schema, write->delta.edits[i].edit.table);
        add_gate(write, LK_GATE_TABLE, type->table, load_replaces(job, type));
        if (type->edge) {
            add_gate(write, LK_GATE_TABLE, schema->types[type->from].table, false);
            add_gate(write, LK_GATE_TABLE, schema->types[type->to].table, false);
        }
    }
    for (uint32_t i = 0; i < schema->type_count; i++)
        if (has_looked_for(job, &schema->types[i]))
            add_gate(write, LK_GATE_TABLE, schema->types[i].table, false);
    for (uint32_t i = 0; i < job->plan.probe_count; i++) {
        const wk_probe *probe = &job->plan.probes[i];
        add_gate(write, LK_GATE_TABLE, probe->type->table, false);
        if (probe->node)
            add_gate(write, LK_GATE_TABLE, probe->node->table, false);
    }
    return SLUICE_OK;
}

sluice_status load_plan_make(void *context, co_write *write, sluice_error *err)
{
    load_job *job = context;

    PF_TRY(load_plan_begin(job, write->base, &write->delta.commit.id, err));
    if (job->spec->options->skip_bad_rows)
        PF_TRY(load_skip_run(job, &write->delta.commit.id, err));
    PF_TRY(load_complete_run(job, write, err));
    if (!job->spec->options->skip_bad_rows)
        PF_TRY(load_probes_run(job, err));
    write->delta.commit.rejected = job->rejected;
    if (job->spec->options->dry_run)
        return SLUICE_OK;
    for (uint32_t i = 0; i < job->payload.schema->type_count; i++)
        PF_TRY(add_type(job, &job->payload.schema->types[i], write, err));
    if (write->delta.edit_count == 0)
        return SLUICE_OK;
    PF_TRY(add_refusals(job, write, err));
    PF_TRY(add_gates(job, write, err));
    return PF_FAILPOINT(LOAD_AFTER_EDITS, err);
}
