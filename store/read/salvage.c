/*
 * Salvage (store/read/salvage.h).
 *
 * The list of a table is what the pages say that are whole, with those edits behind them that are whole, in their
 * order. What an edit deleted that cannot be read, or applied, is not known then: that is said. A substitution that
 * does not hold is left out: the rows that it would bring in are those that it takes out. A fragment that no list names
 * may never have been committed, or have been replaced: it is left out as long as the state is the newest one and all
 * pages of its list are whole. Else it is taken, behind all others, without those of its rows that are there by their
 * row ids.
 */
#include "store/read/salvage_files.h"

#include "platform/check.h"
#include "store/read/reader.h"
#include "store/state/apply.h"
#include "store/state/commit_edit.h"
#include "store/state/list.h"
#include "store/state/list_edit.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT_ROOM 200

bool st_salvage_is_damage(sluice_status status)
{
    return status == SLUICE_CORRUPT || status == SLUICE_NOT_FOUND || status == SLUICE_UNSUPPORTED_FORMAT ||
           status == SLUICE_IO || status == SLUICE_WRITE_CONFLICT || status == SLUICE_PERMISSION;
}

static sluice_status hand_on(const sluice_error *from, sluice_error *err)
{
    if (err)
        *err = *from;
    return from->code;
}

PF_PRINTF(4, 0)
static sluice_status tell(st_salvage *salvage, st_finding finding, const char *object, const char *fmt, va_list args,
                          sluice_error *err)
{
    char text[400];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    return salvage->each(salvage->context, finding, object, text, err);
}

sluice_status st_salvage_lose(st_salvage *salvage, const char *object, sluice_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    salvage->losses++;
    sluice_status status = tell(salvage, ST_LOST, object, fmt, args, err);
    va_end(args);
    return status;
}

sluice_status st_salvage_guess(st_salvage *salvage, const char *object, sluice_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    salvage->guesses++;
    sluice_status status = tell(salvage, ST_GUESSED, object, fmt, args, err);
    va_end(args);
    return status;
}

void st_salvage_close(st_salvage *salvage)
{
    st_snapshot_close(salvage->snapshot);
    *salvage = (st_salvage){0};
}

/* ---- the list ---- */

typedef struct leaves { /* pages of level 0 that can be read */
    st_list_ref *refs;
    uint32_t count;
    bool lost; /* others are not */
} leaves;

static sluice_status add_leaf(leaves *found, const st_list_ref *ref, sluice_error *err)
{
    st_list_ref *grown = realloc(found->refs, ((size_t)found->count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    found->refs = grown;
    grown[found->count++] = *ref;
    return SLUICE_OK;
}

/* The depth is bounded by ST_LIST_LEVEL_MAX. NOLINTNEXTLINE(misc-no-recursion) */
static sluice_status find_leaves(st_salvage *salvage, uint64_t table, const st_list_ref *ref, leaves *found,
                                 sluice_error *err)
{
    char object[OBJECT_ROOM];
    sluice_error local = {0};
    st_list_node node = {.ref = *ref, .level = ref->level};
    sluice_status status = st_list_node_read(st_graph_volume(salvage->graph), table, &node, &local);
    if (status == SLUICE_OK && node.level == 0)
        status = add_leaf(found, ref, err);
    else if (status == SLUICE_OK)
        for (uint32_t i = 0; i < node.count && status == SLUICE_OK; i++)
            status = find_leaves(salvage, table, &node.children[i].ref, found, err);
    else if (st_salvage_is_damage(status)) {
        found->lost = true;
        (void)snprintf(object, sizeof(object), "tables/%llu/lists/%s", (unsigned long long)table, ref->file);
        status = st_salvage_lose(salvage, object, err, "a page of the list: %llu fragments with row ids %llu to %llu",
                                 (unsigned long long)ref->fragments, (unsigned long long)ref->low,
                                 (unsigned long long)ref->high);
    } else {
        status = hand_on(&local, err);
    }
    st_list_node_free(&node);
    return status;
}

/* An edit that does not fit what is left of the list: what it adds is taken all the same, but for a substitution. */
static sluice_status apply_rest(st_salvage *salvage, st_list *list, st_bound_edit *bound, const char *object,
                                const char *why, sluice_error *err)
{
    sluice_error local = {0};
    bool deletes = bound->edit.deletes.present || bound->edit.delete_count > 0 || bound->edit.out_count > 0;
    salvage->deletions_unknown |= deletes;
    PF_TRY(st_salvage_lose(salvage, object, err, "a change that cannot be applied (%s): %s", why,
                           deletes ? "rows that it deleted may be there again"
                                   : "its rows are added as far as they can be read"));
    if (bound->edit.out_count > 0 || bound->edit.replace)
        return SLUICE_OK;
    st_bound_edit adds = *bound;
    adds.edit.deletes.present = false;
    adds.edit.delete_rows = NULL;
    adds.edit.delete_count = 0;
    sluice_status status = st_list_apply(list, &adds, &local);
    return status == SLUICE_OK || st_salvage_is_damage(status) ? SLUICE_OK : hand_on(&local, err);
}

static sluice_status apply_edits(st_salvage *salvage, st_list *list, const st_table_entry *entry, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < entry->edit_count && status == SLUICE_OK; i++) {
        const st_edit_place *place = &entry->edits[i];
        st_edit_reader reader = {.graph = list->graph};
        st_bound_edit bound = {0};
        sluice_error local = {0};
        char object[OBJECT_ROOM];
        (void)snprintf(object, sizeof(object), "branches/%llu, generation %llu", (unsigned long long)place->incarnation,
                       (unsigned long long)place->generation);
        status = st_edit_reader_read(&reader, place, list->table, &bound, &local);
        if (st_salvage_is_damage(status)) {
            salvage->deletions_unknown = true;
            status = st_salvage_lose(
                salvage, object, err,
                "a change of the table: the rows that it added are lost, those that it deleted may be there "
                "again (%s)",
                local.message);
        } else if (status == SLUICE_OK) {
            status = st_list_apply(list, &bound, &local);
            if (st_salvage_is_damage(status))
                status = apply_rest(salvage, list, &bound, object, local.message, err);
            else if (status != SLUICE_OK)
                status = hand_on(&local, err);
        } else {
            status = hand_on(&local, err);
        }
        st_edit_free(&bound.edit);
        st_edit_reader_close(&reader);
    }
    return status;
}

typedef struct taking {
    st_salvage *salvage;
    st_list *list;
    st_table_list *into;
    uint32_t room;
    st_row_set *seen;      /* ids of living rows that were taken; NULL: it is not asked */
    bool files;            /* of fragments that no list names */
    uint32_t taken, blind; /* of them; without row ids */
} taking;

/* ---- rows that are there already ---- */

static int by_position(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The rows of the item that were taken already count as deleted. */
static sluice_status drop_seen(taking *take, st_item *item, sluice_error *err)
{
    uint64_t *positions = NULL, count = 0, kept = 0;
    if (item->low >= ST_FILES_NO_ROW) {
        take->blind++;
        return SLUICE_OK;
    }
    PF_TRY(st_row_ids_positions(st_graph_volume(take->salvage->graph), take->list->table, item, take->seen, &positions,
                                &count, err));
    uint64_t *all = calloc(item->dead_count + count + 1, sizeof(*all));
    if (!all) {
        free(positions);
        return pf_fail_memory(err);
    }
    if (item->dead_count > 0)
        memcpy(all, item->dead, item->dead_count * sizeof(*all));
    if (count > 0)
        memcpy(all + item->dead_count, positions, count * sizeof(*all));
    count += item->dead_count;
    qsort(all, count, sizeof(*all), by_position);
    for (uint64_t i = 0; i < count; i++)
        if (kept == 0 || all[kept - 1] != all[i])
            all[kept++] = all[i];
    free(positions);
    free(item->dead);
    item->dead = all;
    item->dead_count = kept;
    return SLUICE_OK;
}

static sluice_status note_ids(taking *take, const st_item *item, sluice_error *err)
{
    uint64_t rows = item->add.fragment.rows, dead = 0, count = 0;
    if (item->low >= ST_FILES_NO_ROW)
        return SLUICE_OK;
    uint64_t *living = calloc(rows + 1, sizeof(*living));
    if (!living)
        return pf_fail_memory(err);
    for (uint64_t position = 0; position < rows; position++) {
        if (dead < item->dead_count && item->dead[dead] == position)
            dead++;
        else
            living[count++] = position;
    }
    sluice_status status =
        st_row_ids_of(st_graph_volume(take->salvage->graph), take->list->table, item, living, count, take->seen, err);
    free(living);
    return status;
}

/* Fails as damage when the ids of the item cannot be read: its rows will tell that by themselves. */
static sluice_status look_at_ids(taking *take, st_item *item, sluice_error *err)
{
    sluice_error local = {0};
    sluice_status status = take->files ? drop_seen(take, item, &local) : SLUICE_OK;
    if (status == SLUICE_OK)
        status = note_ids(take, item, &local);
    return status == SLUICE_OK || st_salvage_is_damage(status) ? SLUICE_OK : hand_on(&local, err);
}

static sluice_status take_item(void *context, st_item *item, sluice_error *err)
{
    taking *take = context;
    st_table_list *into = take->into;
    sluice_error local = {0};
    char object[OBJECT_ROOM];
    sluice_status status = st_item_load_dead(take->list, item, &local);
    if (st_salvage_is_damage(status)) {
        take->salvage->deletions_unknown = true;
        (void)snprintf(object, sizeof(object), "tables/%llu/deletions/%s", (unsigned long long)take->list->table,
                       item->add.dead.name);
        status =
            st_salvage_lose(take->salvage, object, err, "which %llu rows of %s were deleted: all of them are taken",
                            (unsigned long long)item->add.dead.rows, item->add.fragment.name);
        item->dead_count = 0;
    }
    if (status != SLUICE_OK)
        return local.code ? hand_on(&local, err) : status;
    item->dead_loaded = true;
    take->taken += take->files;
    if (take->seen)
        PF_TRY(look_at_ids(take, item, err));
    if (into->count == take->room) {
        uint32_t room = take->room ? take->room * 2 : 64;
        st_edit_add *fragments = realloc(into->fragments, room * sizeof(*fragments));
        if (fragments)
            into->fragments = fragments;
        uint64_t **dead = realloc(into->dead, room * sizeof(*dead));
        if (dead)
            into->dead = dead;
        uint64_t *counts = realloc(into->dead_count, room * sizeof(*counts));
        if (counts)
            into->dead_count = counts;
        if (!fragments || !dead || !counts)
            return pf_fail_memory(err);
        take->room = room;
    }
    into->fragments[into->count] = item->add;
    into->dead[into->count] = item->dead_count > 0 ? item->dead : NULL;
    into->dead_count[into->count] = item->dead_count;
    into->count++;
    item->add.runs = NULL;
    item->add.run_count = 0;
    item->add.fragment.content = NULL;
    if (item->dead_count > 0) {
        item->dead = NULL;
        item->dead_count = 0;
    }
    return SLUICE_OK;
}

static bool is_taken(void *context, const char *name)
{
    const taking *take = context;
    for (uint32_t i = 0; i < take->into->count; i++)
        if (strcmp(take->into->fragments[i].fragment.name, name) == 0)
            return true;
    return false;
}

/* What no list names that could be read. */
static sluice_status take_files(taking *take, sluice_error *err)
{
    char object[OBJECT_ROOM];
    st_salvage *salvage = take->salvage;
    take->files = true;
    PF_TRY(st_files_each(salvage, take->list->table, is_taken, take_item, take, err));
    if (take->taken == 0)
        return SLUICE_OK;
    salvage->deletions_unknown = true;
    salvage->files_taken = true;
    (void)snprintf(object, sizeof(object), "tables/%llu/fragments", (unsigned long long)take->list->table);
    PF_TRY(st_salvage_guess(salvage, object, err,
                            "%u files that no list names any more are taken, the newest first: rows that were deleted, "
                            "or that no branch, or another one, had may be among theirs; of rows with one key the "
                            "first is",
                            take->taken));
    if (take->blind == 0)
        return SLUICE_OK;
    return st_salvage_guess(salvage, object, err,
                            "%u of these say no row ids: rows without a key may be there more than once, and edges of "
                            "such nodes are left out",
                            take->blind);
}

/* The reader of this table goes by this list. */
static sluice_status put_reader(st_salvage *salvage, const st_type_def *type, st_table_list *list, sluice_error *err)
{
    st_snapshot *snapshot = salvage->snapshot;
    st_table_reader *reader = calloc(1, sizeof(*reader));
    st_table_reader **readers =
        reader ? realloc(snapshot->readers, ((size_t)snapshot->reader_count + 1) * sizeof(*readers)) : NULL;
    if (readers)
        snapshot->readers = readers;
    if (readers)
        reader->opened = calloc((size_t)list->count + 1, sizeof(*reader->opened));
    if (!readers || !reader->opened) {
        free(reader);
        st_table_list_free(list);
        return pf_fail_memory(err);
    }
    reader->graph = salvage->graph;
    reader->schema = snapshot->view->schema;
    reader->type = type;
    reader->table = type->table;
    reader->list = *list;
    readers[snapshot->reader_count++] = reader;
    return SLUICE_OK;
}

sluice_status st_salvage_table(st_salvage *salvage, const st_type_def *type, uint32_t *ret_fragments, sluice_error *err)
{
    const st_table_entry *entry = st_view_table(salvage->snapshot->view, type->table);
    leaves found = {0};
    st_list list = {0};
    st_table_list flat = {0};
    taking take = {.salvage = salvage, .list = &list, .into = &flat};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; entry && i < entry->page_count && status == SLUICE_OK; i++)
        status = find_leaves(salvage, type->table, &entry->pages[i], &found, err);
    if (status == SLUICE_OK)
        status = st_list_open(salvage->graph, type->table, found.refs, found.count, &list, err);
    if (status == SLUICE_OK && entry)
        status = apply_edits(salvage, &list, entry, err);
    if (status == SLUICE_OK)
        status = st_list_load(&list, err);
    bool files = salvage->from_files || salvage->older || found.lost;
    if (status == SLUICE_OK && files)
        status = st_row_set_new(&take.seen, err);
    if (status == SLUICE_OK)
        status = st_list_each(&list, take_item, &take, err);
    if (status == SLUICE_OK && files)
        status = take_files(&take, err);
    st_row_set_free(take.seen);
    st_list_free(&list);
    free(found.refs);
    if (status != SLUICE_OK) {
        st_table_list_free(&flat);
        return status;
    }
    *ret_fragments = flat.count;
    return put_reader(salvage, type, &flat, err);
}

/* ---- rows ---- */

sluice_status st_salvage_fragment(st_salvage *salvage, const st_type_def *type, uint32_t fragment,
                                  st_salvage_batch_fn *batch, void *context, sluice_error *err)
{
    st_table_reader *reader = NULL;
    st_scan *scan = NULL;
    char object[OBJECT_ROOM], why[300] = "";
    uint64_t got = 0, failures = 0;
    PF_TRY(st_table_reader_get(salvage->snapshot, type->table, &reader, err));
    const st_edit_add *add = &reader->list.fragments[fragment];
    uint64_t living = add->fragment.rows - reader->list.dead_count[fragment];
    uint64_t most = add->fragment.rows + 2; /* no fragment has more batches than rows */
    PF_TRY(st_scan_open_fragment(salvage->snapshot, type, NULL, 0, fragment, &scan, err));
    sluice_status status = SLUICE_OK;
    while (status == SLUICE_OK) {
        const st_batch *rows = NULL;
        sluice_error local = {0};
        uint32_t count = 0;
        status = st_scan_next(scan, &rows, &local);
        if (st_salvage_is_damage(status)) { /* the next call goes on with the next batch, or ends */
            if (failures == 0)
                (void)snprintf(why, sizeof(why), "%s", local.message);
            status = SLUICE_OK;
            if (++failures > most)
                break;
            continue;
        }
        if (status != SLUICE_OK) {
            status = hand_on(&local, err);
            break;
        }
        if (!rows)
            break;
        const st_column_spec *specs = st_scan_specs(scan, &count);
        got += rows->rows;
        status = batch(context, specs, count, rows, err);
    }
    st_scan_close(scan);
    if (status != SLUICE_OK || failures == 0)
        return status;
    uint64_t lost = living > got ? living - got : 0;
    (void)snprintf(object, sizeof(object), "tables/%llu/fragments/%s", (unsigned long long)type->table,
                   add->fragment.name);
    return st_salvage_lose(salvage, object, err, "%llu of its %llu rows (%s)", (unsigned long long)lost,
                           (unsigned long long)living, why);
}
