/*
 * Edits and table entries (apply.h). Totals follow from the edit alone, so that G never reads a list: a deletion names
 * rows that exist (arbitration saw to it), a substitution keeps every row.
 */
#include "store/state/apply.h"
#include "platform/check.h"
#include "store/state/page.h"
#include <stdlib.h>
#include <string.h>

void st_entries_free(st_entries *entries)
{
    for (uint32_t i = 0; i < entries->count; i++)
        st_table_entry_free(&entries->items[i]);
    free(entries->items);
    *entries = (st_entries){0};
}

/* The first entry whose id is not below `table`. */
static uint32_t lower_bound(const st_entries *entries, uint64_t table)
{
    uint32_t low = 0, high = entries->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entries->items[middle].id < table)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t st_entries_find(const st_entries *entries, uint64_t table)
{
    uint32_t at = lower_bound(entries, table);
    return at < entries->count && entries->items[at].id == table ? (int64_t)at : -1;
}

static sluice_status insert_entry(st_entries *entries, const st_type_def *type, uint32_t *ret_at, sluice_error *err)
{
    uint32_t at = lower_bound(entries, type->table);
    st_table_entry *items = realloc(entries->items, ((size_t)entries->count + 1) * sizeof(*items));
    if (!items)
        return pf_fail_memory(err);
    entries->items = items;
    char *name = strdup(type->name);
    if (!name)
        return pf_fail_memory(err);
    memmove(items + at + 1, items + at, (entries->count - at) * sizeof(*items));
    items[at] = (st_table_entry){.id = type->table, .name = name, .edge = type->edge, .live = true};
    entries->count++;
    *ret_at = at;
    return SLUICE_OK;
}

sluice_status st_entries_make(st_entries *entries, const st_schema *schema, sluice_error *err)
{
    for (uint32_t i = 0; i < schema->type_count; i++) {
        uint32_t at;
        if (st_entries_find(entries, schema->types[i].table) < 0)
            PF_TRY(insert_entry(entries, &schema->types[i], &at, err));
    }
    return SLUICE_OK;
}

sluice_status st_entries_adopt(st_entries *entries, const st_schema *schema, sluice_error *err)
{
    for (uint32_t i = 0; i < entries->count; i++) {
        st_table_entry *entry = &entries->items[i];
        const st_type_def *type = st_schema_find_table(schema, entry->id);
        entry->live = type != NULL;
        if (!entry->live || strcmp(entry->name, type->name) == 0)
            continue;
        char *name = strdup(type->name);
        if (!name)
            return pf_fail_memory(err);
        free(entry->name);
        entry->name = name;
    }
    return st_entries_make(entries, schema, err);
}

bool st_edit_added(const st_edit *edit, uint64_t *ret_rows, uint64_t *ret_bytes)
{
    *ret_rows = *ret_bytes = 0;
    for (uint32_t i = 0; i < edit->add_count; i++) {
        const st_edit_add *add = &edit->adds[i];
        if (add->dead.rows > add->fragment.rows ||
            !pf_add_u64(*ret_rows, add->fragment.rows - add->dead.rows, ret_rows) ||
            !pf_add_u64(*ret_bytes, add->fragment.bytes, ret_bytes))
            return false;
    }
    return true;
}

static sluice_status add_totals(st_table_entry *entry, const st_edit *edit, sluice_error *err)
{
    uint64_t rows, bytes, deleted = edit->deletes.rows + edit->delete_count, leaving = 0;
    bool fits = st_edit_added(edit, &rows, &bytes);
    if (edit->replace)
        entry->rows = entry->bytes = 0;
    for (uint32_t i = 0; i < edit->out_count; i++)
        fits = fits && pf_add_u64(leaving, edit->out[i].bytes, &leaving);
    fits = fits && (edit->replace || deleted <= entry->rows) && leaving <= entry->bytes;
    if (fits && !edit->replace)
        entry->rows -= deleted;
    if (fits)
        entry->bytes -= leaving;
    /* a substitution brings in rows that are there already */
    fits = fits && pf_add_u64(entry->rows, edit->out_count > 0 ? 0 : rows, &entry->rows) &&
           pf_add_u64(entry->bytes, bytes, &entry->bytes);
    return fits ? SLUICE_OK
                : pf_fail(err, SLUICE_CORRUPT, "an edit of table %llu takes away more than there is",
                          (unsigned long long)entry->id);
}

sluice_status st_entries_apply(st_entries *entries, const st_schema *schema, const st_edit *edit,
                               const st_edit_place *place, uint32_t *ret_changed, bool *ret_made, sluice_error *err)
{
    int64_t found = st_entries_find(entries, edit->table);
    uint32_t at = found < 0 ? 0 : (uint32_t)found;
    *ret_made = found < 0;
    if (found < 0) {
        const st_type_def *type = st_schema_find_table(schema, edit->table);
        if (!type)
            return pf_fail(err, SLUICE_CORRUPT, "an edit of table %llu, which the schema does not have",
                           (unsigned long long)edit->table);
        PF_TRY(insert_entry(entries, type, &at, err));
    }
    st_table_entry *entry = &entries->items[at];
    PF_TRY(add_totals(entry, edit, err));
    st_edit_place *places = realloc(entry->edits, ((size_t)entry->edit_count + 1) * sizeof(*places));
    if (!places)
        return pf_fail_memory(err);
    entry->edits = places;
    if (edit->replace) /* what was listed before matters no more */
        entry->page_count = entry->edit_count = 0;
    entry->edits[entry->edit_count++] = *place;
    *ret_changed = at;
    return SLUICE_OK;
}
