#include "worker/ingest/stage.h"

#include "platform/check.h"
#include "platform/failpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 256u

typedef struct run_entries {
    st_run_entry *entries;
    uint64_t count, room;
} run_entries;

typedef struct staging {
    const wk_stage *stage;
    wk_staged *out;
    wk_rows *rows;
    wk_csv *csv;
    st_fragment_writer *writer;
    uint64_t written; /* rows in the fragment so far */
    uint64_t number;  /* of the names of its files */
    wk_run_plan *plans;
    uint32_t plan_count;
    run_entries *runs;
    uint64_t *hashes;
    uint64_t bad_room;
    uint64_t seen; /* bytes of records since the last word of progress */
} staging;

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
        add_plan(plans, ret_count, ST_RUN_UNIQUE, i, type->uniques[i].properties, type->uniques[i].count, type->edge);
    *ret_plans = plans;
    return SLUICE_OK;
}

/* ---- batches ---- */

static sluice_status make_room(run_entries *run, uint64_t more, sluice_error *err)
{
    if (run->room - run->count >= more)
        return SLUICE_OK;
    uint64_t room = run->room ? run->room * 2 : WK_BATCH_ROWS;
    while (room - run->count < more)
        room *= 2;
    st_run_entry *entries = realloc(run->entries, room * sizeof *entries);
    if (entries == NULL)
        return pf_fail_memory(err);
    run->entries = entries;
    run->room = room;
    return SLUICE_OK;
}

static sluice_status add_entries(staging *s, const st_column *columns, uint64_t rows, sluice_error *err)
{
    const st_column *key[ST_KEY_LEAVES_MAX];

    for (uint32_t p = 0; p < s->plan_count; p++) {
        const wk_run_plan *plan = &s->plans[p];
        run_entries *run = &s->runs[p];
        PF_TRY(make_room(run, rows, err));
        for (uint32_t i = 0; i < plan->count; i++)
            key[i] = &columns[plan->columns[i]];
        st_key_hash_rows(key, plan->count, rows, s->hashes);
        for (uint64_t row = 0; row < rows; row++) {
            /* Tuples with a null never collide (K-06): they are not in the run. */
            if (plan->use == ST_RUN_UNIQUE && st_key_has_null(key, plan->count, row))
                continue;
            run->entries[run->count++] = (st_run_entry){.hash = s->hashes[row], .position = s->written + row};
        }
    }
    return SLUICE_OK;
}

/* The first of the task's names that no earlier try has taken. */
static sluice_status create_fragment(staging *s, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    char attempt[PF_ID_TEXT], name[sizeof s->out->add.fragment.name];
    sluice_status status = SLUICE_ALREADY_EXISTS;
    sluice_error error;
    uint32_t count;
    const st_column_spec *specs = wk_rows_specs(s->rows, &count);

    pf_id_text(&stage->spool->attempt, attempt);
    PF_TRY(PF_FAILPOINT(LOAD_BEFORE_FRAGMENT, err));
    for (uint32_t i = 0; i < TRIES_MAX && status == SLUICE_ALREADY_EXISTS; i++) {
        s->number = stage->number + i;
        s->out->tries = i;
        (void)snprintf(name, sizeof name, "%s-%" PRIu64 ".arrow", attempt, s->number);
        status = st_fragment_create(stage->spool->volume, stage->rows.type->table, name, specs, count, stage->compress,
                                    &s->writer, &error);
    }
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_fail(err, SLUICE_INTERNAL, "a chunk was tried %u times without success", TRIES_MAX);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

static sluice_status flush_batch(staging *s, sluice_error *err)
{
    uint64_t rows = wk_rows_length(s->rows);
    uint32_t count;

    if (rows == 0)
        return SLUICE_OK;
    if (s->writer == NULL)
        PF_TRY(create_fragment(s, err));
    const st_column *columns = wk_rows_columns(s->rows, &count);
    PF_TRY(add_entries(s, columns, rows, err));
    PF_TRY(st_fragment_write(s->writer, columns, err));
    s->written += rows;
    wk_rows_reset(s->rows);
    if (s->stage->advance)
        s->stage->advance(s->stage->advance_context, rows, s->seen);
    s->seen = 0;
    return SLUICE_OK;
}

static void run_name(const staging *s, const wk_run_plan *plan, char *ret_name, size_t room)
{
    static const char *const uses[] = {
        [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "u"};
    char attempt[PF_ID_TEXT], unique[16] = "";

    pf_id_text(&s->stage->spool->attempt, attempt);
    if (plan->use == ST_RUN_UNIQUE)
        (void)snprintf(unique, sizeof unique, "%u", plan->unique);
    (void)snprintf(ret_name, room, "%s-%" PRIu64 ".%s%s.run", attempt, s->number, uses[plan->use], unique);
}

static sluice_status finish_files(staging *s, sluice_error *err)
{
    st_edit_add *add = &s->out->add;
    st_fragment_writer *writer = s->writer;
    char name[sizeof add->runs->info.name];

    if (writer == NULL)
        return SLUICE_OK;
    PF_TRY(PF_FAILPOINT(LOAD_AFTER_FRAGMENT_WRITE, err));
    s->writer = NULL;
    PF_TRY(st_fragment_finish(writer, &add->fragment, err));
    add->runs = calloc(s->plan_count + 1, sizeof *add->runs);
    if (add->runs == NULL)
        return pf_fail_memory(err);
    for (uint32_t p = 0; p < s->plan_count; p++) {
        st_run_ref *ref = &add->runs[add->run_count];
        ref->use = s->plans[p].use;
        ref->unique = s->plans[p].unique;
        run_name(s, &s->plans[p], name, sizeof name);
        PF_TRY(st_run_write(s->stage->spool->volume, s->out->table, name, s->runs[p].entries, s->runs[p].count,
                            &ref->info, err));
        add->run_count++;
    }
    return PF_FAILPOINT(LOAD_AFTER_FRAGMENT_SYNC, err);
}

/* ---- records ---- */

static sluice_status leave_out(staging *s, wk_fault *fault, const wk_record *record, sluice_error *err)
{
    wk_staged *out = s->out;

    fault->argument = s->stage->argument;
    fault->record = record->number;
    fault->rule = 0;
    if (fault->line == 0)
        fault->line = record->line;
    wk_fault_least(&out->least, fault);
    if (out->bad_count == s->bad_room) {
        uint64_t room = s->bad_room ? s->bad_room * 2 : 64;
        uint32_t *bad = realloc(out->bad, room * sizeof *bad);
        if (bad == NULL)
            return pf_fail_memory(err);
        out->bad = bad;
        s->bad_room = room;
    }
    out->bad[out->bad_count++] = (uint32_t)(record->number - out->first_record);
    return SLUICE_OK;
}

/* A fault that ends the reading of the file; the rest of it cannot be told apart into records. */
static void give_up(staging *s, wk_fault *fault, uint64_t record, uint64_t line)
{
    fault->argument = s->stage->argument;
    fault->record = record;
    fault->line = line;
    fault->rule = 0;
    s->out->damaged = true;
    wk_fault_least(&s->out->least, fault);
}

static sluice_status take_record(staging *s, uint64_t number, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    wk_fault fault = {0};
    wk_record *record = NULL;
    sluice_error error;
    sluice_status status = wk_csv_next(s->csv, &record, &error);

    if (status == SLUICE_RESOURCE_LIMIT) {
        uint64_t reached, line;
        wk_csv_place(s->csv, &reached, &line);
        wk_fault_from_error(&fault, &error);
        give_up(s, &fault, number, line);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    /* The boundary pass saw a record here: it was another file then. */
    if (record == NULL || record->number != number || record->unclosed)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file changed while it was read");
    s->seen += record->length;
    if (number == 0 && stage->has_header)
        return SLUICE_OK;
    PF_TRY(wk_rows_add(s->rows, record, &fault, err));
    if (fault.present)
        return leave_out(s, &fault, record, err);
    if (wk_rows_length(s->rows) >= WK_BATCH_ROWS || wk_rows_bytes(s->rows) >= WK_BATCH_BYTES)
        return flush_batch(s, err);
    return SLUICE_OK;
}

static sluice_status take_records(staging *s, sluice_error *err)
{
    const wk_stage *stage = s->stage;
    const wk_chunk *place = stage->view.place;

    PF_TRY(wk_chunk_open(&stage->view, &s->csv, err));
    for (uint64_t i = 0; i < place->records && !s->out->damaged; i++) {
        uint64_t number = place->first_record + i;
        if (stage->shape->unclosed && number + 1 == stage->shape->records) {
            wk_fault fault = {0};
            uint64_t open_line = place->first_line;
            PF_TRY(wk_count_lines(stage->view.source, stage->view.start, stage->shape->open_quote, &open_line, err));
            wk_fault_set(&fault, SLUICE_INPUT_SYNTAX, "a quote opens here and is never closed");
            give_up(s, &fault, number, open_line);
            break;
        }
        PF_TRY(take_record(s, number, err));
    }
    return SLUICE_OK;
}

static sluice_status make_staging(staging *s, sluice_error *err)
{
    PF_TRY(wk_rows_make(&s->stage->rows, &s->rows, err));
    PF_TRY(wk_run_plans(s->stage->rows.type, &s->plans, &s->plan_count, err));
    s->runs = calloc(s->plan_count + 1, sizeof *s->runs);
    s->hashes = malloc(WK_BATCH_ROWS * sizeof *s->hashes);
    return s->runs && s->hashes ? SLUICE_OK : pf_fail_memory(err);
}

static void free_staging(staging *s)
{
    for (uint32_t p = 0; s->runs && p < s->plan_count; p++)
        free(s->runs[p].entries);
    free(s->runs);
    free(s->hashes);
    free(s->plans);
    wk_csv_close(s->csv);
    wk_rows_free(s->rows);
    st_fragment_abandon(s->writer);
}

sluice_status wk_stage_chunk(const wk_stage *stage, wk_staged *ret_staged, sluice_error *err)
{
    staging s = {.stage = stage, .out = ret_staged};
    bool header_here = stage->has_header && stage->view.place->first_record == 0 && stage->view.place->records > 0;
    sluice_status status = SLUICE_OK;

    memset(ret_staged, 0, sizeof *ret_staged);
    ret_staged->table = stage->rows.type->table;
    ret_staged->argument = stage->argument;
    ret_staged->chunk = stage->chunk;
    ret_staged->first_record = stage->view.place->first_record + header_here;
    ret_staged->records = stage->view.place->records - header_here;
    if (stage->view.place->records == 0)
        return SLUICE_OK;
    PF_GOTO(status, done, make_staging(&s, err));
    PF_GOTO(status, done, take_records(&s, err));
    PF_GOTO(status, done, flush_batch(&s, err));
    PF_GOTO(status, done, finish_files(&s, err));
done:
    free_staging(&s);
    if (status != SLUICE_OK)
        wk_staged_free(ret_staged);
    return status;
}
