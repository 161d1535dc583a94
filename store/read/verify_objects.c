/*
 * Verify: objects below tables/ (verify.h). Each is checked once, however many generations name it.
 */
#include "platform/check.h"
#include "store/read/verify.h"
#include "store/state/list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 160

void st_path_set_free(st_path_set *set)
{
    for (uint64_t i = 0; i < set->room; i++)
        free(set->paths[i]);
    free(set->paths);
    *set = (st_path_set){0};
}

static uint64_t slot_of(const st_path_set *set, const char *path)
{
    uint64_t at = pf_xxh64_of(path, strlen(path)) & (set->room - 1);
    while (set->paths[at] && strcmp(set->paths[at], path) != 0)
        at = (at + 1) & (set->room - 1);
    return at;
}

static sluice_status grow(st_path_set *set, sluice_error *err)
{
    st_path_set more = {.room = set->room ? set->room * 2 : 1024, .count = set->count};
    more.paths = calloc(more.room, sizeof(*more.paths));
    if (!more.paths)
        return pf_fail_memory(err);
    for (uint64_t i = 0; i < set->room; i++)
        if (set->paths[i])
            more.paths[slot_of(&more, set->paths[i])] = set->paths[i];
    free(set->paths);
    *set = more;
    return SLUICE_OK;
}

sluice_status st_path_set_add(st_path_set *set, const char *path, bool *ret_new, sluice_error *err)
{
    *ret_new = false;
    if (set->count * 2 >= set->room)
        PF_TRY(grow(set, err));
    uint64_t at = slot_of(set, path);
    if (set->paths[at])
        return SLUICE_OK;
    set->paths[at] = strdup(path);
    if (!set->paths[at])
        return pf_fail_memory(err);
    set->count++;
    *ret_new = true;
    return SLUICE_OK;
}

sluice_status st_verify_first(st_verify *verify, const char *path, bool *ret_first, sluice_error *err)
{
    *ret_first = false;
    if (verify->known && verify->known(verify->context, path))
        return SLUICE_OK;
    PF_TRY(st_path_set_add(&verify->seen, path, ret_first, err));
    verify->checked += *ret_first;
    if (*ret_first && verify->watch)
        verify->watch(verify->context, verify->seen.count);
    return SLUICE_OK;
}

static void object_path(uint64_t table, const char *folder, const char *name, char ret_path[PATH_ROOM])
{
    (void)snprintf(ret_path, PATH_ROOM, "tables/%llu/%s/%s", (unsigned long long)table, folder, name);
}

/* ---- fragments ---- */

/* Columns that stand for a property have its type, or one that is made wide to it as it is read. */
static sluice_status check_columns(const st_verify *verify, uint64_t table, const st_fragment *fragment,
                                   const char *path, sluice_error *err)
{
    const st_type_def *type = verify->schema ? st_schema_find_table(verify->schema, table) : NULL;
    for (uint32_t i = 0; type && i < type->property_count; i++) {
        int at = st_fragment_find_property(fragment, type->properties[i].id);
        st_type stored = at >= 0 ? st_fragment_spec(fragment, (uint32_t)at)->type : type->properties[i].type;
        if (!st_type_reads_as(stored, type->properties[i].type))
            return pf_fail(err, SLUICE_CORRUPT, "%s: column %d is of another type than its property", path, at);
    }
    return SLUICE_OK;
}

static sluice_status check_fragment(const st_verify *verify, uint64_t table, const st_fragment_info *info,
                                    const char *path, sluice_error *err)
{
    st_fragment *fragment = NULL;
    PF_TRY(st_fragment_open(st_graph_volume(verify->graph), table, info, &fragment, err));
    sluice_status status = check_columns(verify, table, fragment, path, err);
    if (status == SLUICE_OK && !verify->quick)
        status = st_fragment_verify(fragment, err);
    st_fragment_close(fragment);
    return status;
}

static sluice_status check_run(const st_verify *verify, uint64_t table, const st_run_info *info, uint64_t rows,
                               const char *path, sluice_error *err)
{
    st_run *run = NULL;
    PF_TRY(st_run_open(st_graph_volume(verify->graph), table, info, &run, err));
    sluice_status status = SLUICE_OK;
    if (st_run_entries(run) > rows)
        status = pf_fail(err, SLUICE_CORRUPT, "%s has more entries than its fragment has rows", path);
    if (status == SLUICE_OK && !verify->quick)
        status = st_run_verify(run, err);
    st_run_close(run);
    return status;
}

static sluice_status check_dead(const st_verify *verify, uint64_t table, const st_dead_ref *ref, uint64_t rows,
                                const char *path, sluice_error *err)
{
    st_row_set *set = NULL;
    PF_TRY(st_deletion_read(st_graph_volume(verify->graph), table, ref, &set, err));
    bool fits = st_row_set_count(set) == ref->rows && st_row_set_count_range(set, 0, rows) == ref->rows;
    st_row_set_free(set);
    return fits ? SLUICE_OK : pf_fail(err, SLUICE_CORRUPT, "%s names rows that are not there", path);
}

static sluice_status verify_dead(st_verify *verify, uint64_t table, const st_dead_ref *ref, uint64_t rows,
                                 sluice_error *err)
{
    char path[PATH_ROOM];
    bool first = false;
    sluice_error found = {0};
    if (!ref->present)
        return SLUICE_OK;
    object_path(table, "deletions", ref->name, path);
    PF_TRY(st_verify_first(verify, path, &first, err));
    if (!first)
        return SLUICE_OK;
    return st_verify_judge(verify, path, check_dead(verify, table, ref, rows, path, &found), &found, err);
}

sluice_status st_verify_add(st_verify *verify, uint64_t table, const st_edit_add *add, sluice_error *err)
{
    char path[PATH_ROOM];
    bool first = false;
    sluice_error found = {0};
    object_path(table, "fragments", add->fragment.name, path);
    PF_TRY(st_verify_first(verify, path, &first, err));
    if (first)
        PF_TRY(st_verify_judge(verify, path, check_fragment(verify, table, &add->fragment, path, &found), &found, err));
    for (uint32_t i = 0; i < add->run_count; i++) {
        object_path(table, "keys", add->runs[i].info.name, path);
        PF_TRY(st_verify_first(verify, path, &first, err));
        if (!first)
            continue;
        sluice_status status = check_run(verify, table, &add->runs[i].info, add->fragment.rows, path, &found);
        PF_TRY(st_verify_judge(verify, path, status, &found, err));
    }
    PF_TRY(st_verify_index(verify, table, add, err));
    return verify_dead(verify, table, &add->dead, add->fragment.rows, err);
}

/* Of a fragment that has left the list its deleted rows only. */
static sluice_status verify_standing(st_verify *verify, uint64_t table, const st_edit_add *add, const st_gone *gone,
                                     sluice_error *err)
{
    return st_gone_has(gone, add) ? verify_dead(verify, table, &add->dead, add->fragment.rows, err)
                                  : st_verify_add(verify, table, add, err);
}

sluice_status st_verify_edit(st_verify *verify, const st_edit *edit, const st_gone *gone, sluice_error *err)
{
    for (uint32_t i = 0; i < edit->add_count; i++)
        PF_TRY(verify_standing(verify, edit->table, &edit->adds[i], gone, err));
    PF_TRY(verify_dead(verify, edit->table, &edit->deletes, UINT64_MAX, err));
    for (uint32_t i = 0; i < edit->out_count; i++)
        PF_TRY(verify_dead(verify, edit->table, &edit->out[i].applied, UINT64_MAX, err));
    return SLUICE_OK;
}

/* ---- folded lists ---- */

static sluice_status verify_node(st_verify *verify, uint64_t table, st_list_node *node, const st_gone *gone,
                                 sluice_error *err)
{
    char path[PATH_ROOM];
    bool first = false;
    sluice_error found = {0};
    object_path(table, "lists", node->ref.file, path);
    PF_TRY(st_verify_first(verify, path, &first, err));
    if (!first)
        return SLUICE_OK;
    sluice_status status = st_list_node_read(st_graph_volume(verify->graph), table, node, &found);
    if (status != SLUICE_OK)
        return st_verify_judge(verify, path, status, &found, err);
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->level > 0)
            PF_TRY(verify_node(verify, table, &node->children[i], gone, err));
        else
            PF_TRY(verify_standing(verify, table, &node->items[i].add, gone, err));
    }
    return SLUICE_OK;
}

sluice_status st_verify_list(st_verify *verify, uint64_t table, const st_list_ref *ref, const st_gone *gone,
                             sluice_error *err)
{
    st_list_node node = {.ref = *ref, .level = ref->level};
    sluice_status status = verify_node(verify, table, &node, gone, err);
    st_list_node_free(&node);
    return status;
}
