/*
 * Verify: adjacency (verify.h). Each file for itself, and each fragment that it covers against its edges: every row is
 * found where the file must have it, and the file has as many entries of the fragment as that has rows, so it has those
 * and no others.
 */
#include "platform/check.h"
#include "store/fragment/adjacency.h"
#include "store/read/verify.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 160

static sluice_status check_file(const st_verify *verify, uint64_t table, const st_run_info *info,
                                st_adjacency_direction direction, sluice_error *err)
{
    st_adjacency *adjacency = NULL;
    PF_TRY(st_adjacency_open(st_graph_volume(verify->graph), table, info, direction, &adjacency, err));
    sluice_status status = verify->quick ? SLUICE_OK : st_adjacency_verify(adjacency, err);
    st_adjacency_close(adjacency);
    return status;
}

/* Is the edge at a position among the entries [first, end) of its near end? They ascend by ordinal and position. */
static sluice_status find_edge(st_adjacency *adjacency, uint64_t first, uint64_t end, const st_adjacent *wanted,
                               bool *ret_found, sluice_error *err)
{
    *ret_found = false;
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;
        st_adjacent found;
        PF_TRY(st_adjacency_get(adjacency, middle, &found, err));
        if (found.ordinal == wanted->ordinal && found.position == wanted->position) {
            *ret_found = found.far == wanted->far;
            return SLUICE_OK;
        }
        if (found.ordinal < wanted->ordinal || (found.ordinal == wanted->ordinal && found.position < wanted->position))
            first = middle + 1;
        else
            end = middle;
    }
    return SLUICE_OK;
}

static sluice_status check_batch(st_adjacency *adjacency, uint32_t ordinal, st_adjacency_direction direction,
                                 st_fragment *fragment, uint32_t batch, uint64_t at, const char *path,
                                 sluice_error *err)
{
    int ends[2] = {st_fragment_find_name(fragment, "from"), st_fragment_find_name(fragment, "to")};
    st_column columns[2];
    const st_column *near = &columns[direction == ST_ADJACENCY_IN], *far = &columns[direction == ST_ADJACENCY_OUT];
    for (int i = 0; i < 2; i++) {
        if (ends[i] < 0)
            return pf_fail(err, SLUICE_CORRUPT, "%s covers a fragment that has no ends", path);
        PF_TRY(st_fragment_column(fragment, batch, (uint32_t)ends[i], &columns[i], err));
    }
    for (uint64_t row = 0; row < st_fragment_batch_rows(fragment, batch); row++) {
        st_adjacent wanted = {
            .far = st_key_hash_row(&far, 1, row), .ordinal = ordinal, .position = (uint32_t)(at + row)};
        uint64_t first = 0, end = 0;
        bool found = false;
        PF_TRY(st_adjacency_find(adjacency, st_key_hash_row(&near, 1, row), &first, &end, err));
        PF_TRY(find_edge(adjacency, first, end, &wanted, &found, err));
        if (!found)
            return pf_fail(err, SLUICE_CORRUPT, "%s lacks the edge of fragment %u, row %llu, or has it wrong", path,
                           ordinal, (unsigned long long)(at + row));
    }
    return SLUICE_OK;
}

static sluice_status check_cover(const st_verify *verify, uint64_t table, const st_edit_add *add,
                                 st_adjacency_direction direction, st_adjacency *adjacency, const char *path,
                                 sluice_error *err)
{
    uint32_t count = 0, ordinal = add->index.ordinal;
    const st_adjacency_cover *covers = st_adjacency_covers(adjacency, &count);
    st_fragment *fragment = NULL;
    uint64_t at = 0;
    sluice_status status = SLUICE_OK;
    if (ordinal >= count || strcmp(covers[ordinal].fragment, add->fragment.name) != 0 ||
        covers[ordinal].rows != add->fragment.rows)
        return pf_fail(err, SLUICE_CORRUPT, "%s covers another fragment as number %u than the list says", path,
                       ordinal);
    PF_TRY(st_fragment_open(st_graph_volume(verify->graph), table, &add->fragment, &fragment, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        status = check_batch(adjacency, ordinal, direction, fragment, batch, at, path, err);
        at += st_fragment_batch_rows(fragment, batch);
    }
    st_fragment_close(fragment);
    return status;
}

static sluice_status verify_direction(st_verify *verify, uint64_t table, const st_edit_add *add,
                                      st_adjacency_direction direction, sluice_error *err)
{
    const st_run_info *info = direction == ST_ADJACENCY_OUT ? &add->index.out : &add->index.in;
    char path[PATH_ROOM], covered[PATH_ROOM + 96];
    bool first = false;
    sluice_error found = {0};
    st_adjacency *adjacency = NULL;
    (void)snprintf(path, sizeof path, "tables/%llu/indexes/%s", (unsigned long long)table, info->name);
    PF_TRY(st_verify_first(verify, path, &first, err));
    if (first)
        PF_TRY(st_verify_judge(verify, path, check_file(verify, table, info, direction, &found), &found, err));
    (void)snprintf(covered, sizeof covered, "%s of %s", path, add->fragment.name);
    PF_TRY(st_verify_first(verify, covered, &first, err));
    if (!first || verify->quick)
        return SLUICE_OK;
    sluice_status status =
        st_adjacency_open(st_graph_volume(verify->graph), table, info, direction, &adjacency, &found);
    if (status == SLUICE_CORRUPT) /* said above */
        return SLUICE_OK;
    if (status == SLUICE_OK)
        status = check_cover(verify, table, add, direction, adjacency, path, &found);
    st_adjacency_close(adjacency);
    return st_verify_judge(verify, path, status, &found, err);
}

sluice_status st_verify_index(st_verify *verify, uint64_t table, const st_edit_add *add, sluice_error *err)
{
    if (!add->index.present)
        return SLUICE_OK;
    PF_TRY(verify_direction(verify, table, add, ST_ADJACENCY_OUT, err));
    return verify_direction(verify, table, add, ST_ADJACENCY_IN, err);
}
