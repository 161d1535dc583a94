/*
 * Listing again what stood elsewhere in history (state.h): for reverts, and whoever takes over another branch's list.
 *
 * Crash rule: everything that is staged is synced, and its folder, before the edit that names it is returned.
 */
#include "platform/check.h"
#include "store/state/codec.h"
#include "store/state/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEM_MAX 48u

bool st_table_list_same(const st_table_list *a, const st_table_list *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->fragments[i].fragment.name, b->fragments[i].fragment.name) != 0 ||
            a->dead_count[i] != b->dead_count[i] ||
            (a->dead_count[i] > 0 && memcmp(a->dead[i], b->dead[i], a->dead_count[i] * sizeof(**a->dead)) != 0))
            return false;
    }
    return true;
}

static sluice_status stage_dead(st_graph *graph, uint64_t table, const char *name, const uint64_t *positions,
                                uint64_t count, st_dead_ref *ret_ref, sluice_error *err)
{
    st_row_set *set = NULL;
    PF_TRY(st_row_set_new(&set, err));
    sluice_status status = st_row_set_add_many(set, positions, count, err);
    if (status == SLUICE_OK)
        status = st_deletion_write(st_graph_volume(graph), table, name, set, ret_ref, err);
    st_row_set_free(set);
    return status;
}

/* A fragment that lies in a record becomes a file of its own, the same bytes. */
static sluice_status stage_attached(st_graph *graph, uint64_t table, const char *stem, uint32_t i,
                                    st_fragment_info *fragment, sluice_error *err)
{
    pf_volume *volume = st_graph_volume(graph);
    pf_file *file = NULL;
    char path[160];
    if (!fragment->content)
        return pf_fail(err, SLUICE_INTERNAL, "an attached fragment without its bytes");
    (void)snprintf(fragment->name, sizeof(fragment->name), "%s-a%u.arrow", stem, (unsigned)i);
    (void)snprintf(path, sizeof(path), "tables/%llu/fragments/%s", (unsigned long long)table, fragment->name);
    PF_TRY(pf_create(volume, path, &file, err));
    sluice_status status = pf_write(file, 0, fragment->content, (size_t)fragment->bytes, err);
    if (status == SLUICE_OK)
        status = pf_sync(file, err);
    sluice_status closed = pf_close(file, status == SLUICE_OK ? err : NULL);
    PF_TRY(status);
    PF_TRY(closed);
    free(fragment->content);
    fragment->content = NULL;
    fragment->attached = false;
    return SLUICE_OK;
}

static sluice_status adopt_one(st_graph *graph, uint64_t table, const st_table_list *list, uint32_t i, const char *stem,
                               st_edit_add *add, sluice_error *err)
{
    char name[72];
    PF_TRY(st_add_copy(&list->fragments[i], add, err));
    add->first_row_given = !add->fragment.explicit_ids;
    add->commit_given = !add->fragment.explicit_ids;
    add->dead = (st_dead_ref){0};
    if (add->fragment.attached)
        PF_TRY(stage_attached(graph, table, stem, i, &add->fragment, err));
    if (list->dead_count[i] == 0)
        return SLUICE_OK;
    (void)snprintf(name, sizeof(name), "%s-d%u", stem, (unsigned)i);
    return stage_dead(graph, table, name, list->dead[i], list->dead_count[i], &add->dead, err);
}

sluice_status st_edit_adopt(st_graph *graph, uint64_t table, const st_table_list *list, const char *stem,
                            st_edit *ret_edit, sluice_error *err)
{
    st_edit edit = {.table = table, .replace = true};
    char path[64];
    sluice_status status;
    PF_ASSERT(strlen(stem) < STEM_MAX);
    edit.adds = calloc((size_t)list->count + 1, sizeof(*edit.adds));
    if (!edit.adds)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < list->count; i++) {
        edit.add_count++;
        PF_GOTO(status, failed, adopt_one(graph, table, list, i, stem, &edit.adds[i], err));
    }
    (void)snprintf(path, sizeof(path), "tables/%llu/deletions", (unsigned long long)table);
    PF_GOTO(status, failed, pf_sync_dir(st_graph_volume(graph), path, err));
    (void)snprintf(path, sizeof(path), "tables/%llu/fragments", (unsigned long long)table);
    PF_GOTO(status, failed, pf_sync_dir(st_graph_volume(graph), path, err));
    *ret_edit = edit;
    return SLUICE_OK;
failed:
    st_edit_free(&edit);
    return status;
}
