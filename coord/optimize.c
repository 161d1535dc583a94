/*
 * What optimize does to a table: which fragments go together, how they are rewritten, and which of it still holds.
 *
 * Candidates are fragments that are small (less than half of what is aimed at, in bytes and in rows), or of whose rows
 * many are deleted, or that shall be compressed and are not. Candidates that follow each other in the list are put
 * together until the aim is reached, so that rows keep their order, and only where it changes something: two fragments
 * or more, or one of those rewritten for its own sake. So what optimize has made is nothing for the next one to do.
 */
#include "coord/maintain_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "store/state/codec.h" /* st_add_copy */
#include "worker/ingest/sink.h"
#include "worker/maintain/compact.h"
#include "worker/maintain/neighbourhood.h"
#include <stdlib.h>
#include <string.h>

#define ROWS_AIMED_AT (UINT64_C(2) << 20) /* of a fragment: bounds the memory that its runs take */
#define DEAD_SHARE    10u                 /* a tenth of the rows deleted is many */

typedef struct choosing {
    maintain_job *job;
    st_snapshot *base;
    const st_type_def *type;
    st_table_reader *reader;
    const st_table_list *list;
    uint64_t aim, rows_aim;
    uint32_t *group; /* fragments that go together so far */
    uint32_t count;
    uint64_t bytes, rows; /* that live in them, about */
    bool worth;           /* one of them is rewritten for its own sake */
} choosing;

static sluice_status is_compressed(pf_volume *volume, uint64_t table, const st_fragment_info *info,
                                   bool *ret_compressed, sluice_error *err)
{
    st_fragment *fragment = NULL;
    PF_TRY(st_fragment_open(volume, table, info, &fragment, err));
    sluice_status status = st_fragment_is_compressed(fragment, ret_compressed, err);
    st_fragment_close(fragment);
    return status;
}

/* Is it rewritten whatever stands beside it? */
static sluice_status is_due(choosing *c, uint32_t i, bool *ret_due, sluice_error *err)
{
    const st_fragment_info *info = &c->list->fragments[i].fragment;
    bool compressed = false;
    *ret_due = c->list->dead_count[i] > 0 && c->list->dead_count[i] >= info->rows / DEAD_SHARE;
    if (*ret_due || !c->job->spec->options->compress)
        return SLUICE_OK;
    PF_TRY(is_compressed(c->job->spool.volume, c->type->table, info, &compressed, err));
    *ret_due = !compressed;
    return SLUICE_OK;
}

static sluice_status end_group(choosing *c, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    if (c->count > 1 || c->worth)
        status = maintain_work_add(&c->job->work, c->type->table, MAINTAIN_COMPACT, c->group, c->count, err);
    c->count = 0;
    c->bytes = c->rows = 0;
    c->worth = false;
    return status;
}

static sluice_status choose_fragment(choosing *c, uint32_t i, sluice_error *err)
{
    const st_fragment_info *info = &c->list->fragments[i].fragment;
    uint64_t live = info->rows - c->list->dead_count[i];
    bool due = false;
    if (info->attached) /* a fold moves its rows: it may go without an edit */
        return end_group(c, err);
    PF_TRY(is_due(c, i, &due, err));
    if (!due && (info->bytes >= c->aim / 2 || info->rows >= c->rows_aim / 2))
        return end_group(c, err);
    c->group[c->count++] = i;
    c->worth |= due;
    c->rows += live;
    c->bytes += (uint64_t)((double)info->bytes * ((double)live / (double)info->rows));
    return c->bytes >= c->aim || c->rows >= c->rows_aim ? end_group(c, err) : SLUICE_OK;
}

static uint64_t rows_aimed_at(const st_type_def *type)
{
    return type->edge ? wk_neighbourhood_edges(ROWS_AIMED_AT) : ROWS_AIMED_AT;
}

sluice_status optimize_is_wanted(const maintain_job *job, st_snapshot *base, const st_type_def *type, bool *ret_wanted,
                                 sluice_error *err)
{
    const co_maintain_options *options = job->spec->options;
    const st_table_entry *entry = st_view_table(st_snapshot_view(base), type->table);
    uint64_t aim = options->fragment_bytes ? options->fragment_bytes : CO_FRAGMENT_BYTES;
    uint64_t small = 0, dead = 0;
    st_table_reader *reader = NULL;
    *ret_wanted = options->if_fragments + options->if_edits + options->if_dead == 0;
    if (*ret_wanted || !entry)
        return SLUICE_OK;
    PF_TRY(st_table_reader_get(base, type->table, &reader, err));
    const st_table_list *list = st_table_reader_list(reader);
    for (uint32_t i = 0; i < list->count; i++) {
        const st_fragment_info *info = &list->fragments[i].fragment;
        if (info->attached)
            continue;
        small += info->bytes < aim / 2 && info->rows < rows_aimed_at(type) / 2;
        dead += info->rows ? (uint64_t)((double)info->bytes * ((double)list->dead_count[i] / (double)info->rows)) : 0;
    }
    *ret_wanted = (options->if_fragments > 0 && small >= options->if_fragments) ||
                  (options->if_edits > 0 && entry->edit_count >= options->if_edits) ||
                  (options->if_dead > 0 && dead >= options->if_dead);
    return SLUICE_OK;
}

sluice_status optimize_choose(maintain_job *job, st_snapshot *base, const st_type_def *type, sluice_error *err)
{
    uint64_t aim = job->spec->options->fragment_bytes;
    choosing c = {
        .job = job, .base = base, .type = type, .aim = aim ? aim : CO_FRAGMENT_BYTES, .rows_aim = rows_aimed_at(type)};
    sluice_status status;
    PF_TRY(st_table_reader_get(base, type->table, &c.reader, err));
    c.list = st_table_reader_list(c.reader);
    c.group = malloc(((size_t)c.list->count + 1) * sizeof *c.group);
    if (!c.group)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < c.list->count; i++)
        PF_GOTO(status, done, choose_fragment(&c, i, err));
    status = end_group(&c, err);
done:
    free(c.group);
    return status;
}

/* ---- the tasks ---- */

/* What was compressed stays so, and what had adjacency gets it: *compress, *indexed are set when one of the fragments
 * is. */
static sluice_status look_at_inputs(maintain_job *job, const maintain_item *item, bool *compress, bool *indexed,
                                    sluice_error *err)
{
    st_table_reader *reader = NULL;
    PF_TRY(st_table_reader_get(job->base, item->table, &reader, err));
    const st_table_list *list = st_table_reader_list(reader);
    for (uint32_t i = 0; i < item->count; i++) {
        uint32_t fragment = job->work.fragments[item->first + i];
        if (fragment >= list->count)
            return pf_fail(err, SLUICE_INTERNAL, "a work list names a fragment that its base does not have");
        *indexed |= list->fragments[fragment].index.present;
        if (!*compress)
            PF_TRY(is_compressed(job->spool.volume, item->table, &list->fragments[fragment].fragment, compress, err));
    }
    return SLUICE_OK;
}

/* Adjacency of what was written, in both directions. What does not fit into this process's part of the memory stays
 * uncovered. */
static sluice_status cover(const wk_compaction *compaction, st_edit_add *add, sluice_error *err)
{
    const st_edit_add *fragments[] = {add};
    wk_neighbourhood work = {.volume = compaction->volume,
                             .table = compaction->type->table,
                             .fragments = fragments,
                             .count = 1,
                             .direction = ST_ADJACENCY_OUT,
                             .number = compaction->number,
                             .tries = WK_SINK_NAMES};
    st_index_ref index = {.present = true};
    uint64_t most = wk_neighbourhood_edges(ROWS_AIMED_AT);
    if (add->fragment.rows > most + most / 2)
        return SLUICE_OK;
    memcpy(work.prefix, compaction->prefix, sizeof work.prefix);
    PF_TRY(wk_neighbourhood_write(&work, &index.out, err));
    work.direction = ST_ADJACENCY_IN;
    PF_TRY(wk_neighbourhood_write(&work, &index.in, err));
    add->index = index;
    return SLUICE_OK;
}

sluice_status optimize_task(maintain_job *job, uint32_t number, sluice_error *err)
{
    const maintain_item *item = &job->work.items[number];
    const st_schema *schema = st_snapshot_view(job->base)->schema;
    wk_compaction compaction = {.volume = job->spool.volume,
                                .base = job->base,
                                .type = st_schema_find_table(schema, item->table),
                                .fragments = job->work.fragments + item->first,
                                .count = item->count,
                                .compress = job->spec->options->compress,
                                .spool = &job->spool,
                                .advance = maintain_advance,
                                .advance_context = job};
    st_edit edit = {0};
    bool tried = false, indexed = false;
    sluice_status status;
    PF_TRY(look_at_inputs(job, item, &compaction.compress, &indexed, err));
    maintain_names(job, number, compaction.prefix, &compaction.number);
    PF_TRY(wk_compact(&compaction, &edit, &tried, err));
    if (indexed && edit.add_count > 0)
        PF_GOTO(status, done, cover(&compaction, edit.adds, err));
    status = maintain_put_edit(job, number, &edit, err);
done:
    st_edit_free(&edit);
    return status;
}

/* ---- the edit ---- */

/* Behind what *edit has: takes the insides of `more` over. */
static sluice_status append_edit(st_edit *edit, st_edit *more, sluice_error *err)
{
    st_edit_out *out = realloc(edit->out, ((size_t)edit->out_count + more->out_count + 1) * sizeof *out);
    if (!out)
        return pf_fail_memory(err);
    edit->out = out;
    st_edit_add *adds = realloc(edit->adds, ((size_t)edit->add_count + more->add_count + 1) * sizeof *adds);
    if (!adds)
        return pf_fail_memory(err);
    edit->adds = adds;
    for (uint32_t i = 0; i < more->add_count; i++)
        PF_TRY(st_add_copy(&more->adds[i], &adds[edit->add_count++], err));
    if (more->out_count > 0)
        memcpy(out + edit->out_count, more->out, more->out_count * sizeof *out);
    edit->out_count += more->out_count;
    return SLUICE_OK;
}

/* Would this substitution hold at the write's base? */
static sluice_status holds(const maintain_job *job, const co_write *write, const st_edit *edit, bool *ret_holds,
                           sluice_error *err)
{
    const st_view *view = st_snapshot_view(write->base);
    st_table_list list = {0};
    sluice_error error = {0};
    *ret_holds = true;
    if (view->generation == job->work.generation)
        return SLUICE_OK;
    sluice_status status = st_table_try_edit(job->graph, view, edit, &list, &error);
    st_table_list_free(&list);
    *ret_holds = status == SLUICE_OK;
    if (status != SLUICE_OK && status != SLUICE_WRITE_CONFLICT && err)
        *err = error;
    return status == SLUICE_WRITE_CONFLICT ? SLUICE_OK : status;
}

static sluice_status read_results(maintain_job *job, sluice_error *err)
{
    if (job->results)
        return SLUICE_OK;
    job->results = calloc((size_t)job->work.item_count + 1, sizeof *job->results);
    if (!job->results)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->work.item_count; i++)
        PF_TRY(maintain_get_edit(job, i, &job->results[i], err));
    return SLUICE_OK;
}

sluice_status optimize_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, st_edit *ret_edit,
                            sluice_error *err)
{
    st_edit edit = {.table = job->work.items[first].table};
    bool hold = false;
    sluice_status status;
    PF_TRY(read_results(job, err));
    for (uint32_t i = first; i < end; i++)
        PF_GOTO(status, done, append_edit(&edit, &job->results[i], err));
    PF_GOTO(status, done, holds(job, write, &edit, &hold, err));
    if (!hold) { /* something was taken away: the rest may still hold */
        st_edit_free(&edit);
        edit.table = job->work.items[first].table;
        for (uint32_t i = first; i < end; i++) {
            PF_GOTO(status, done, holds(job, write, &job->results[i], &hold, err));
            if (hold)
                PF_GOTO(status, done, append_edit(&edit, &job->results[i], err));
        }
    }
    *ret_edit = edit;
    return SLUICE_OK;
done:
    st_edit_free(&edit);
    return status;
}
