/*
 * Fragments that edits have taken out of a list (store/state/gone.h). Each edit is two steps: what leaves, what comes
 * in; of each name the newest step counts. A name that no edit mentions came with the folded list, before all steps.
 */
#include "store/state/gone.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void st_gone_free(st_gone *gone)
{
    free(gone->names);
    *gone = (st_gone){0};
}

static sluice_status note(st_gone *gone, const char *name, bool leaves, sluice_error *err)
{
    if (gone->count == gone->room) {
        uint32_t room = gone->room ? gone->room * 2 : 64;
        struct st_gone_name *grown = realloc(gone->names, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        gone->names = grown;
        gone->room = room;
    }
    struct st_gone_name *made = &gone->names[gone->count++];
    *made = (struct st_gone_name){.at = gone->steps, .leaves = leaves};
    (void)snprintf(made->name, sizeof made->name, "%s", name);
    return SLUICE_OK;
}

static sluice_status note_edit(st_gone *gone, const st_edit *edit, sluice_error *err)
{
    gone->steps++;
    if (edit->replace)
        gone->replaced = gone->steps;
    for (uint32_t i = 0; i < edit->out_count; i++)
        PF_TRY(note(gone, edit->out[i].fragment, true, err));
    gone->steps++;
    for (uint32_t i = 0; i < edit->add_count; i++)
        PF_TRY(note(gone, edit->adds[i].fragment.name, false, err));
    return SLUICE_OK;
}

static int by_name_newest_first(const void *a, const void *b)
{
    const struct st_gone_name *one = a, *two = b;
    int order = strcmp(one->name, two->name);
    return order != 0 ? order : (one->at < two->at) - (one->at > two->at);
}

static void keep_newest(st_gone *gone)
{
    uint32_t count = 0;
    if (gone->count == 0)
        return;
    qsort(gone->names, gone->count, sizeof *gone->names, by_name_newest_first);
    for (uint32_t i = 0; i < gone->count; i++)
        if (count == 0 || strcmp(gone->names[count - 1].name, gone->names[i].name) != 0)
            gone->names[count++] = gone->names[i];
    gone->count = count;
}

sluice_status st_gone_find(st_edit_reader *reader, const st_table_entry *entry, st_gone *ret_gone, sluice_error *err)
{
    st_gone gone = {0};
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; i < entry->edit_count && status == SLUICE_OK; i++) {
        st_bound_edit bound = {0};
        status = st_edit_reader_read(reader, &entry->edits[i], entry->id, &bound, err);
        if (status == SLUICE_OK)
            status = note_edit(&gone, &bound.edit, err);
        st_edit_free(&bound.edit);
    }
    keep_newest(&gone);
    if (status == SLUICE_OK)
        *ret_gone = gone;
    else
        st_gone_free(&gone);
    return status;
}

bool st_gone_has(const st_gone *gone, const st_edit_add *add)
{
    if (!gone || add->fragment.explicit_ids)
        return false;
    uint32_t low = 0, high = gone->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(gone->names[middle].name, add->fragment.name);
        if (order == 0)
            return gone->names[middle].leaves || gone->names[middle].at < gone->replaced;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return gone->replaced > 0;
}
