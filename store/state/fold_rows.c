/*
 * Folds move rows: those of attached fragments, which a folded list cannot name, and those of small fragments at the
 * end of the list, so that many small writes do not leave many small fragments.
 *
 * Merging goes in levels, like a log-structured tree: a fragment at the end joins when it has at most twice the rows of
 * what comes behind it, up to a bound. So a row is written again a logarithmic number of times, and a fold never costs
 * more than the bound. The new fragment has _row_id and _commit columns, ascending by row id, and stands at the end.
 */
#include "platform/check.h"
#include "store/fragment/fragment_format.h"
#include "store/fragment/key.h"
#include "store/state/fold.h"
#include "store/state/layout.h"
#include "store/state/list_edit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MERGE_ROWS  65536u     /* rows of a merged fragment; one record batch */
#define MERGE_BYTES (8u << 20) /* bytes of what is merged */

typedef struct moving { /* an item whose rows move */
    st_item *item;
    st_fragment *fragment;
    int *columns; /* of the fragment, by column of the layout */
    int ids, commits;
} moving;

typedef struct moved_row {
    uint64_t id;
    uint64_t position;
    uint32_t from;
} moved_row;

typedef struct fold_rows {
    st_list *list;
    const st_schema *schema;
    const st_type_def *type;
    const char *stem;
    moving *from;
    uint32_t count, room;
    uint64_t live, bytes; /* living rows of them, and bytes of their fragments */
    moved_row *rows;
    uint64_t row_count;
    st_column_spec *specs; /* the layout */
    uint32_t layout;       /* how many */
    st_column_builder **builders;
    st_column *views; /* the layout, then _row_id and _commit */
} fold_rows;

/* ---- which fragments ---- */

static sluice_status choose(fold_rows *fold, st_item *item, sluice_error *err)
{
    if (fold->count == fold->room) {
        uint32_t room = fold->room ? fold->room * 2 : 64;
        moving *from = realloc(fold->from, room * sizeof(*from));
        if (!from)
            return pf_fail_memory(err);
        fold->from = from;
        fold->room = room;
    }
    fold->from[fold->count++] = (moving){.item = item, .ids = -1, .commits = -1};
    fold->live += item->add.fragment.rows - item->dead_count;
    fold->bytes += item->add.fragment.bytes;
    return SLUICE_OK;
}

/* Attached fragments came with the edits that are being folded: they stand in pages that are at hand. */
static sluice_status choose_attached(fold_rows *fold, sluice_error *err)
{
    st_list_node *root = &fold->list->root;
    for (uint32_t i = 0; i < root->count; i++) {
        st_list_node *leaf = &root->children[i];
        for (uint32_t k = 0; leaf->level == 0 && leaf->loaded && k < leaf->count; k++)
            if (leaf->items[k].add.fragment.attached)
                PF_TRY(choose(fold, &leaf->items[k], err));
    }
    return SLUICE_OK;
}

static sluice_status choose_small(fold_rows *fold, sluice_error *err)
{
    st_list_node *root = &fold->list->root;
    for (uint32_t i = root->count; i-- > 0 && root->children[i].level == 0;) {
        st_list_node *leaf = &root->children[i];
        PF_TRY(st_list_node_load(fold->list, leaf, err));
        for (uint32_t k = leaf->count; k-- > 0;) {
            st_item *item = &leaf->items[k];
            if (item->add.fragment.attached)
                continue;
            PF_TRY(st_item_load_dead(fold->list, item, err));
            uint64_t live = item->add.fragment.rows - item->dead_count;
            if (live > 2 * fold->live || fold->live + live > MERGE_ROWS ||
                fold->bytes + item->add.fragment.bytes > MERGE_BYTES)
                return SLUICE_OK;
            PF_TRY(choose(fold, item, err));
        }
    }
    return SLUICE_OK;
}

/* ---- reading ---- */

static sluice_status open_one(fold_rows *fold, moving *from, sluice_error *err)
{
    const st_fragment_info *info = &from->item->add.fragment;
    PF_TRY(st_fragment_open(st_graph_volume(fold->list->graph), fold->list->table, info, &from->fragment, err));
    from->columns = calloc((size_t)fold->layout + 1, sizeof(*from->columns));
    if (!from->columns)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < fold->layout; i++)
        from->columns[i] = st_layout_find(fold->type, from->fragment, i);
    if (!info->explicit_ids)
        return SLUICE_OK;
    from->ids = st_fragment_find_name(from->fragment, ST_FRAGMENT_ROW_ID);
    from->commits = st_fragment_find_name(from->fragment, ST_FRAGMENT_COMMIT);
    return from->ids >= 0 && from->commits >= 0
               ? SLUICE_OK
               : pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks its row ids",
                         (unsigned long long)fold->list->table);
}

static sluice_status value_at(const moving *from, int column, uint64_t position, st_column *ret_column,
                              uint64_t *ret_row, sluice_error *err)
{
    uint32_t batch = 0;
    st_fragment_locate(from->fragment, position, &batch, ret_row);
    return st_fragment_column(from->fragment, batch, (uint32_t)column, ret_column, err);
}

/* The living rows of one item, with their ids. */
static sluice_status note_rows(fold_rows *fold, uint32_t number, sluice_error *err)
{
    const moving *from = &fold->from[number];
    const st_item *item = from->item;
    uint64_t dead = 0;
    for (uint64_t position = 0; position < item->add.fragment.rows; position++) {
        if (dead < item->dead_count && item->dead[dead] == position) {
            dead++;
            continue;
        }
        moved_row *row = &fold->rows[fold->row_count++];
        *row = (moved_row){.id = item->low + position, .position = position, .from = number};
        if (from->ids >= 0) {
            st_column ids;
            uint64_t at = 0;
            PF_TRY(value_at(from, from->ids, position, &ids, &at, err));
            row->id = ((const uint64_t *)ids.values)[at];
        }
    }
    return SLUICE_OK;
}

static int by_id(const void *a, const void *b)
{
    const moved_row *left = a, *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

static sluice_status gather(fold_rows *fold, sluice_error *err)
{
    fold->rows = malloc(((size_t)fold->live + 1) * sizeof(*fold->rows));
    if (!fold->rows)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < fold->count; i++) {
        if (fold->from[i].item->dead_count == fold->from[i].item->add.fragment.rows)
            continue;
        PF_TRY(open_one(fold, &fold->from[i], err));
        PF_TRY(note_rows(fold, i, err));
    }
    qsort(fold->rows, fold->row_count, sizeof(*fold->rows), by_id);
    return SLUICE_OK;
}

/* ---- building ---- */

static sluice_status build_column(fold_rows *fold, uint32_t column, sluice_error *err)
{
    uint32_t ends = fold->type->edge ? 2 : 0;
    st_column_builder *builder = fold->builders[column];
    PF_ASSERT(builder);
    for (uint64_t i = 0; i < fold->row_count; i++) {
        const moving *from = &fold->from[fold->rows[i].from];
        st_column values;
        uint64_t row = 0;
        if (from->columns[column] < 0 && column >= ends) {
            PF_TRY(st_value_append(&fold->type->properties[column - ends].initial, builder, err));
            continue;
        }
        if (from->columns[column] < 0)
            return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %llu lacks an end",
                           (unsigned long long)fold->list->table);
        PF_TRY(value_at(from, from->columns[column], fold->rows[i].position, &values, &row, err));
        if (!st_type_reads_as(values.type, builder->type))
            return pf_fail(err, SLUICE_CORRUPT, "a column of table %llu is of another type than its property",
                           (unsigned long long)fold->list->table);
        PF_TRY(st_append_from(builder, &values, row, err));
    }
    return SLUICE_OK;
}

static sluice_status build_ids(fold_rows *fold, sluice_error *err)
{
    st_column_builder *ids = fold->builders[fold->layout], *commits = fold->builders[fold->layout + 1];
    for (uint64_t i = 0; i < fold->row_count; i++) {
        const moving *from = &fold->from[fold->rows[i].from];
        st_column values;
        uint64_t row = 0;
        PF_TRY(st_append_u64(ids, fold->rows[i].id, err));
        if (from->commits < 0) {
            PF_TRY(st_append_bytes(commits, from->item->add.commit.bytes, sizeof(pf_id), err));
            continue;
        }
        PF_TRY(value_at(from, from->commits, fold->rows[i].position, &values, &row, err));
        PF_TRY(st_append_from(commits, &values, row, err));
    }
    return SLUICE_OK;
}

static sluice_status build(fold_rows *fold, st_column_spec *specs, sluice_error *err)
{
    fold->builders = calloc((size_t)fold->layout + 3, sizeof(st_column_builder *));
    fold->views = calloc((size_t)fold->layout + 3, sizeof(*fold->views));
    if (!fold->builders || !fold->views)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < fold->layout + 2; i++)
        PF_TRY(st_column_builder_new(&specs[i], &fold->builders[i], err));
    for (uint32_t i = 0; i < fold->layout; i++)
        PF_TRY(build_column(fold, i, err));
    PF_TRY(build_ids(fold, err));
    for (uint32_t i = 0; i < fold->layout + 2; i++)
        st_builder_view(fold->builders[i], &fold->views[i]);
    return SLUICE_OK;
}

/* ---- writing ---- */

static sluice_status write_run(fold_rows *fold, st_run_use use, uint32_t unique, st_edit_add *add, sluice_error *err)
{
    static const char *const uses[] = {
        [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "u"};
    uint32_t columns[ST_RUN_COLUMNS_MAX], count = st_run_columns(fold->type, use, unique, columns);
    const st_column *key[ST_RUN_COLUMNS_MAX];
    uint64_t used = 0;
    if (count == 0)
        return SLUICE_OK;
    st_run_entry *entries = malloc((size_t)fold->row_count * sizeof(*entries));
    if (!entries)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        key[i] = &fold->views[columns[i]];
    for (uint64_t row = 0; row < fold->row_count; row++)
        if (use != ST_RUN_UNIQUE || !st_key_has_null(key, count, row)) /* tuples with a null never collide */
            entries[used++] = (st_run_entry){.hash = st_key_hash_row(key, count, row), .position = row};
    st_run_ref *run = &add->runs[add->run_count];
    char name[sizeof(run->info.name)], number[16] = "";
    if (use == ST_RUN_UNIQUE)
        (void)snprintf(number, sizeof(number), "%u", (unsigned)unique);
    (void)snprintf(name, sizeof(name), "%s.%s%s.run", fold->stem, uses[use], number);
    *run = (st_run_ref){.use = use, .unique = unique};
    sluice_status status =
        st_run_write(st_graph_volume(fold->list->graph), fold->list->table, name, entries, used, &run->info, err);
    if (status == SLUICE_OK)
        add->run_count++;
    free(entries);
    return status;
}

static sluice_status write_runs(fold_rows *fold, st_edit_add *add, sluice_error *err)
{
    add->runs = calloc((size_t)fold->type->unique_count + 3, sizeof(*add->runs));
    if (!add->runs)
        return pf_fail_memory(err);
    for (st_run_use use = ST_RUN_KEY; use <= ST_RUN_TO; use++)
        PF_TRY(write_run(fold, use, 0, add, err));
    for (uint32_t i = 0; i < fold->type->unique_count; i++)
        PF_TRY(write_run(fold, ST_RUN_UNIQUE, fold->type->uniques[i].id, add, err));
    return SLUICE_OK;
}

static sluice_status sync_folder(const fold_rows *fold, const char *folder, sluice_error *err)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "tables/%llu/%s", (unsigned long long)fold->list->table, folder);
    return pf_sync_dir(st_graph_volume(fold->list->graph), path, err);
}

static sluice_status write_fragment(fold_rows *fold, const st_column_spec *specs, st_edit_add *add, sluice_error *err)
{
    st_fragment_writer *writer = NULL;
    char name[sizeof(add->fragment.name)];
    (void)snprintf(name, sizeof(name), "%s.arrow", fold->stem);
    PF_TRY(st_fragment_create(st_graph_volume(fold->list->graph), fold->list->table, name, specs, fold->layout + 2,
                              false, &writer, err));
    sluice_status status = st_fragment_write(writer, fold->views, fold->row_count, err);
    if (status == SLUICE_OK)
        status = st_layout_describe(fold->schema, fold->type, writer, err);
    if (status != SLUICE_OK) {
        st_fragment_abandon(writer);
        return status;
    }
    PF_TRY(st_fragment_finish(writer, &add->fragment, err));
    PF_TRY(sync_folder(fold, "fragments", err));
    PF_TRY(write_runs(fold, add, err));
    return add->run_count > 0 ? sync_folder(fold, "keys", err) : SLUICE_OK;
}

static sluice_status write_rows(fold_rows *fold, st_edit_add *add, sluice_error *err)
{
    static char id_name[] = ST_FRAGMENT_ROW_ID, commit_name[] = ST_FRAGMENT_COMMIT;
    st_column_spec *specs = calloc((size_t)fold->layout + 2, sizeof(*specs));
    if (!specs)
        return pf_fail_memory(err);
    memcpy(specs, fold->specs, fold->layout * sizeof(*specs)); /* borrowed */
    specs[fold->layout] = (st_column_spec){.name = id_name, .type = ST_ROW_ID};
    specs[fold->layout + 1] = (st_column_spec){.name = commit_name, .type = ST_COMMIT_ID};
    sluice_status status = build(fold, specs, err);
    if (status == SLUICE_OK)
        status = write_fragment(fold, specs, add, err);
    free(specs);
    return status;
}

/* ---- the list ---- */

static bool is_chosen(const fold_rows *fold, const st_item *item)
{
    for (uint32_t i = 0; i < fold->count; i++)
        if (fold->from[i].item == item)
            return true;
    return false;
}

static void take_out(fold_rows *fold)
{
    st_list_node *root = &fold->list->root;
    for (uint32_t i = 0; i < root->count; i++) {
        st_list_node *leaf = &root->children[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; leaf->level == 0 && leaf->loaded && k < leaf->count; k++) {
            st_item item = leaf->items[k];
            if (is_chosen(fold, &leaf->items[k]))
                st_item_free(&item);
            else
                leaf->items[kept++] = item;
        }
        if (leaf->level == 0 && leaf->loaded && kept < leaf->count) {
            leaf->count = kept;
            leaf->changed = true;
        }
    }
}

/* The new fragment's item; the list has copies of what the fold keeps. */
static sluice_status put_in(fold_rows *fold, const st_edit_add *add, const pf_id *commit, sluice_error *err)
{
    st_item item = {0};
    uint64_t no_row = 0;
    PF_TRY(st_list_make_item(fold->list, add, commit, &no_row, &item, err));
    return st_list_append_item(fold->list, &item, err);
}

static void free_all(fold_rows *fold)
{
    for (uint32_t i = 0; i < fold->count; i++) {
        st_fragment_close(fold->from[i].fragment);
        free(fold->from[i].columns);
    }
    for (uint32_t i = 0; fold->builders && i < fold->layout + 2; i++)
        st_column_builder_free(fold->builders[i]);
    free(fold->builders);
    free(fold->views);
    st_type_columns_free(fold->specs, fold->layout);
    free(fold->rows);
    free(fold->from);
}

static sluice_status move(fold_rows *rows, st_fold *fold, sluice_error *err)
{
    fold->made = (st_edit){.table = rows->list->table, .adds = calloc(1, sizeof(st_edit_add))};
    if (!fold->made.adds)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < rows->count; i++)
        fold->merged = fold->merged || !rows->from[i].item->add.fragment.attached;
    fold->bytes_out = rows->bytes;
    PF_TRY(st_type_columns(rows->schema, rows->type, &rows->specs, &rows->layout, err));
    PF_TRY(gather(rows, err));
    if (rows->row_count > 0) {
        fold->made.add_count = 1; /* from here on what it holds is freed with it */
        PF_TRY(write_rows(rows, &fold->made.adds[0], err));
        fold->bytes_in = fold->made.adds[0].fragment.bytes;
    }
    pf_id commit = rows->from[0].item->add.commit; /* each row has its own in the column */
    take_out(rows);
    return fold->made.add_count > 0 ? put_in(rows, &fold->made.adds[0], &commit, err) : SLUICE_OK;
}

sluice_status st_fold_rows(st_list *list, const st_schema *schema, bool merge, const char *stem, st_fold *fold,
                           sluice_error *err)
{
    fold_rows rows = {.list = list, .schema = schema, .stem = stem, .type = st_schema_find_table(schema, list->table)};
    sluice_status status;
    if (!rows.type) /* its rows are nobody's any more */
        return SLUICE_OK;
    PF_GOTO(status, done, choose_attached(&rows, err));
    bool attached = rows.count > 0;
    if (merge)
        PF_GOTO(status, done, choose_small(&rows, err));
    if (attached || rows.count > 1)
        status = move(&rows, fold, err);
done:
    free_all(&rows);
    return status;
}
