/*
 * Change sets (K-01, change.h, docs/format.md "Change set"): what a commit did, per table and conflict space. Small
 * sets list hashes, large ones name runs. Whoever cannot read one must take it for the whole table (K-02); that is
 * decided where it is read (generation.c), not here.
 */
#include "store/state/change.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

static const char *const spaces[] = {
    [ST_SPACE_KEY_INSERTED] = "key-inserted",   [ST_SPACE_UNIQUE_SET] = "unique-set",
    [ST_SPACE_ENDPOINT_USED] = "endpoint-used", [ST_SPACE_KEY_DELETED] = "key-deleted",
    [ST_SPACE_UNIQUE_FREED] = "unique-freed",   [ST_SPACE_ROW_UPDATED] = "row-updated",
    [ST_SPACE_WHOLE_TABLE] = "whole-table",
};
_Static_assert(sizeof(spaces) / sizeof(spaces[0]) == ST_SPACE_COUNT, "every space has a name");

static const char *const uses[] = {
    [ST_RUN_KEY] = "key", [ST_RUN_FROM] = "from", [ST_RUN_TO] = "to", [ST_RUN_UNIQUE] = "unique"};

static sluice_status damaged(const char *what, sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a change set is damaged: %s", what);
}

void st_changes_free(st_changes *changes)
{
    for (uint32_t i = 0; i < changes->count; i++) {
        free(changes->items[i].hashes);
        free(changes->items[i].runs);
    }
    free(changes->items);
    *changes = (st_changes){0};
}

sluice_status st_changes_add_whole(st_changes *changes, uint64_t table, sluice_error *err)
{
    st_change *items = realloc(changes->items, ((size_t)changes->count + 1) * sizeof(*items));
    if (!items)
        return pf_fail_memory(err);
    changes->items = items;
    changes->items[changes->count++] = (st_change){.table = table, .space = ST_SPACE_WHOLE_TABLE};
    return SLUICE_OK;
}

/* ---- runs by edit: all runs of one use, in the order of the edit ---- */

static bool is_of_use(const st_run_ref *run, st_run_use use, uint32_t unique)
{
    return run->use == use && (use != ST_RUN_UNIQUE || run->unique == unique);
}

static uint32_t count_runs(const st_edit *edit, st_run_use use, uint32_t unique)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < edit->add_count; i++)
        for (uint32_t r = 0; r < edit->adds[i].run_count; r++)
            count += is_of_use(&edit->adds[i].runs[r], use, unique);
    return count;
}

static void fill_runs(const st_edit *edit, st_run_use use, uint32_t unique, struct st_change_run *ret_runs)
{
    for (uint32_t i = 0; i < edit->add_count; i++) {
        const st_edit_add *add = &edit->adds[i];
        for (uint32_t r = 0; r < add->run_count; r++)
            if (is_of_use(&add->runs[r], use, unique))
                *ret_runs++ =
                    (struct st_change_run){.table = edit->table, .run = add->runs[r], .fragment = add->fragment};
    }
}

static bool same_run(const struct st_change_run *a, const struct st_change_run *b)
{
    return a->table == b->table && a->run.use == b->run.use && a->run.unique == b->run.unique &&
           strcmp(a->run.info.name, b->run.info.name) == 0 && a->run.info.entries == b->run.info.entries &&
           a->run.info.bytes == b->run.info.bytes && pf_sha256_equal(&a->run.info.footer, &b->run.info.footer) &&
           strcmp(a->fragment.name, b->fragment.name) == 0 && a->fragment.rows == b->fragment.rows &&
           a->fragment.bytes == b->fragment.bytes && pf_sha256_equal(&a->fragment.footer, &b->fragment.footer) &&
           a->fragment.explicit_ids == b->fragment.explicit_ids;
}

/* How many of `runs` (the next ones of a change) are exactly the runs of this use in the edit; 0 when not all are. */
static sluice_status match_edit(const st_edit *edit, const struct st_change_run *runs, uint32_t left,
                                uint32_t *ret_length, sluice_error *err)
{
    st_run_use use = runs[0].run.use;
    uint32_t unique = runs[0].run.unique, count = count_runs(edit, use, unique), same = 0;
    *ret_length = 0;
    if (edit->table != runs[0].table || count == 0 || count > left)
        return SLUICE_OK;
    struct st_change_run *wanted = malloc(count * sizeof(*wanted));
    if (!wanted)
        return pf_fail_memory(err);
    fill_runs(edit, use, unique, wanted);
    while (same < count && same_run(&runs[same], &wanted[same]))
        same++;
    free(wanted);
    *ret_length = same == count ? count : 0;
    return SLUICE_OK;
}

/* ---- writing ---- */

static void write_run(st_json *json, const struct st_change_run *run)
{
    st_json_object(json);
    st_put_u64(json, "table", run->table);
    st_json_name(json, "run");
    st_run_ref_write(json, &run->run);
    st_json_name(json, "of");
    st_json_object(json);
    st_fragment_info_write(json, &run->fragment);
    st_put_bool(json, "explicit_ids", run->fragment.explicit_ids);
    st_json_object_end(json);
    st_json_object_end(json);
}

static sluice_status write_runs(st_json *json, const st_change *change, const st_edit_source *edits, sluice_error *err)
{
    st_json_name(json, "runs");
    st_json_array(json);
    for (uint32_t next = 0; next < change->run_count;) {
        const struct st_change_run *run = &change->runs[next];
        uint32_t length = 0, at = 0;
        for (; at < edits->count; at++) {
            const st_edit *edit;
            PF_TRY(edits->get(edits->context, at, &edit, err));
            PF_TRY(match_edit(edit, run, change->run_count - next, &length, err));
            if (length > 0)
                break;
        }
        if (length == 0) {
            write_run(json, run);
            next++;
            continue;
        }
        st_json_object(json);
        st_put_number(json, "edit", at);
        st_put_text(json, "use", uses[run->run.use]);
        if (run->run.use == ST_RUN_UNIQUE)
            st_put_number(json, "unique", run->run.unique);
        st_json_object_end(json);
        next += length;
    }
    st_json_array_end(json);
    return SLUICE_OK;
}

sluice_status st_changes_write(st_json *json, const st_changes *changes, const st_edit_source *edits, sluice_error *err)
{
    st_json_object(json);
    st_put_text(json, "format", "sluice-changes/1");
    st_json_name(json, "items");
    st_json_array(json);
    for (uint32_t i = 0; i < changes->count; i++) {
        const st_change *change = &changes->items[i];
        st_json_object(json);
        st_put_u64(json, "table", change->table);
        st_put_text(json, "space", spaces[change->space]);
        st_put_number(json, "unique", change->unique);
        if (change->property)
            st_put_u64(json, "property", change->property);
        st_put_bool(json, "whole", change->whole);
        st_hashes_write(json, "hashes", change->hashes, change->hash_count);
        PF_TRY(write_runs(json, change, edits, err));
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_json_object_end(json);
    return SLUICE_OK;
}

sluice_status st_changes_encode(const st_changes *changes, const st_edit_source *edits, pf_buffer *buffer,
                                sluice_error *err)
{
    st_json json;
    st_json_begin(&json, buffer);
    PF_TRY(st_changes_write(&json, changes, edits, err));
    return st_json_end(&json, true, err);
}

/* ---- reading ---- */

static sluice_status make_room(st_change *change, uint32_t more, sluice_error *err)
{
    size_t count, bytes;
    if (!pf_add_size(change->run_count, more, &count) || count > UINT32_MAX ||
        !pf_mul_size(count, sizeof(*change->runs), &bytes))
        return damaged("too many runs", err);
    struct st_change_run *runs = realloc(change->runs, bytes);
    if (!runs)
        return pf_fail_memory(err);
    memset(runs + change->run_count, 0, more * sizeof(*runs));
    change->runs = runs;
    return SLUICE_OK;
}

static sluice_status read_edit_runs(const cJSON *object, const st_edit_source *edits, st_change *change,
                                    sluice_error *err)
{
    const st_edit *edit;
    uint32_t at = 0, use = 0, unique = 0;
    PF_TRY(st_take_small(object, "edit", &at, err));
    PF_TRY(st_take_word(object, "use", uses, sizeof(uses) / sizeof(uses[0]), &use, err));
    if (use == ST_RUN_UNIQUE)
        PF_TRY(st_take_small(object, "unique", &unique, err));
    if (at >= edits->count)
        return damaged("an edit that the commit does not have", err);
    PF_TRY(edits->get(edits->context, at, &edit, err));
    uint32_t count = count_runs(edit, (st_run_use)use, unique);
    if (count == 0)
        return damaged("runs that the edit does not have", err);
    PF_TRY(make_room(change, count, err));
    fill_runs(edit, (st_run_use)use, unique, change->runs + change->run_count);
    change->run_count += count;
    return SLUICE_OK;
}

static sluice_status read_run(const cJSON *object, st_change *change, sluice_error *err)
{
    const cJSON *run = NULL, *of = NULL;
    PF_TRY(make_room(change, 1, err));
    struct st_change_run *one = &change->runs[change->run_count];
    PF_TRY(st_json_get_u64(object, "table", &one->table, err));
    PF_TRY(st_json_get_object(object, "run", &run, err));
    PF_TRY(st_run_ref_read(run, &one->run, err));
    PF_TRY(st_json_get_object(object, "of", &of, err));
    PF_TRY(st_fragment_info_read(of, &one->fragment, err));
    PF_TRY(st_json_get_bool(of, "explicit_ids", &one->fragment.explicit_ids, err));
    change->run_count++;
    return SLUICE_OK;
}

static sluice_status read_change(const cJSON *object, const st_edit_source *edits, st_change *change, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    uint32_t space = 0;
    PF_TRY(st_json_get_u64(object, "table", &change->table, err));
    PF_TRY(st_take_word(object, "space", spaces, ST_SPACE_COUNT, &space, err));
    change->space = (st_space)space;
    PF_TRY(st_take_small(object, "unique", &change->unique, err));
    if (st_json_field(object, "property"))
        PF_TRY(st_json_get_u64(object, "property", &change->property, err));
    if (change->property && change->space != ST_SPACE_ROW_UPDATED)
        return damaged("a property of no updated row", err);
    PF_TRY(st_json_get_bool(object, "whole", &change->whole, err));
    PF_TRY(st_hashes_read(object, "hashes", &change->hashes, &change->hash_count, err));
    PF_TRY(st_json_get_array(object, "runs", &list, err));
    cJSON_ArrayForEach(item, list)
    {
        if (st_json_field(item, "edit"))
            PF_TRY(read_edit_runs(item, edits, change, err));
        else
            PF_TRY(read_run(item, change, err));
    }
    return change->table >= ST_FIRST_TABLE ? SLUICE_OK : damaged("no table", err);
}

sluice_status st_changes_read(const cJSON *object, const st_edit_source *edits, st_changes *changes, sluice_error *err)
{
    const cJSON *list = NULL, *item = NULL;
    void *items = NULL;
    PF_TRY(st_json_check_format(object, "sluice-changes/1", err));
    PF_TRY(st_take_list(object, "items", sizeof(st_change), &list, &items, err));
    changes->items = items;
    cJSON_ArrayForEach(item, list)
    {
        PF_TRY(read_change(item, edits, &changes->items[changes->count++], err));
    }
    return SLUICE_OK;
}

sluice_status st_changes_decode(const void *bytes, size_t length, const st_edit_source *edits, st_changes *ret_changes,
                                sluice_error *err)
{
    cJSON *document = NULL;
    pf_buffer again = {0};
    st_changes changes = {0};
    sluice_status status;
    PF_GOTO(status, done, st_json_parse(bytes, length, &document, err));
    PF_GOTO(status, done, st_changes_read(document, edits, &changes, err));
    PF_GOTO(status, done, st_changes_encode(&changes, edits, &again, err));
    PF_GOTO(status, done, st_json_check_canonical(bytes, length, &again, err));
    *ret_changes = changes;
    changes = (st_changes){0};
done:
    st_changes_free(&changes);
    st_json_free(document);
    pf_buffer_free(&again);
    return status;
}
