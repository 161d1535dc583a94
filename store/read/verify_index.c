/*
 * Verify: adjacency (verify.h). Each file for itself, and each fragment that it covers against its edges: the file has
 * as many entries of the fragment as that has rows, and the sums over their digests agree, so the edges do.
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

static sluice_status add_batch(const st_edit_add *add, st_adjacency_direction direction, st_fragment *fragment,
                               uint32_t batch, uint64_t at, const char *path, uint64_t *sum, sluice_error *err)
{
    int ends[2] = {st_fragment_find_name(fragment, "from"), st_fragment_find_name(fragment, "to")};
    st_column columns[2];
    const st_column *near = &columns[direction == ST_ADJACENCY_IN], *far = &columns[direction == ST_ADJACENCY_OUT];
    uint64_t rows = st_fragment_batch_rows(fragment, batch);
    for (int i = 0; i < 2; i++) {
        if (ends[i] < 0)
            return pf_fail(err, SLUICE_CORRUPT, "%s covers a fragment that has no ends", path);
        PF_TRY(st_fragment_column(fragment, batch, (uint32_t)ends[i], &columns[i], err));
    }
    uint64_t *hashes = malloc((2 * rows + 1) * sizeof(*hashes));
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(&near, 1, rows, hashes);
    st_key_hash_rows(&far, 1, rows, hashes + rows);
    for (uint64_t row = 0; row < rows; row++) {
        st_adjacent edge = {.far = hashes[rows + row], .ordinal = add->index.ordinal, .position = (uint32_t)(at + row)};
        *sum += st_adjacent_digest(hashes[row], &edge);
    }
    free(hashes);
    return SLUICE_OK;
}

/* The sums over the edges of each covered fragment, as the file has them; kept for the fragments that follow. */
static sluice_status get_sums(st_verify *verify, const st_run_info *info, st_adjacency_direction direction,
                              st_adjacency *adjacency, const uint64_t **ret_sums, sluice_error *err)
{
    st_index_sums *kept = &verify->index_sums[direction];
    uint32_t count = 0;
    if (kept->sums && strcmp(kept->file, info->name) == 0) {
        *ret_sums = kept->sums;
        return SLUICE_OK;
    }
    (void)st_adjacency_covers(adjacency, &count);
    free(kept->sums);
    kept->sums = malloc(((size_t)count + 1) * sizeof(*kept->sums));
    if (!kept->sums)
        return pf_fail_memory(err);
    sluice_status status = st_adjacency_sum(adjacency, kept->sums, err);
    if (status != SLUICE_OK) {
        free(kept->sums);
        kept->sums = NULL;
        return status;
    }
    (void)snprintf(kept->file, sizeof(kept->file), "%s", info->name);
    *ret_sums = kept->sums;
    return SLUICE_OK;
}

static sluice_status check_cover(st_verify *verify, uint64_t table, const st_edit_add *add,
                                 st_adjacency_direction direction, st_adjacency *adjacency, const char *path,
                                 sluice_error *err)
{
    const st_run_info *info = direction == ST_ADJACENCY_OUT ? &add->index.out : &add->index.in;
    uint32_t count = 0, ordinal = add->index.ordinal;
    const st_adjacency_cover *covers = st_adjacency_covers(adjacency, &count);
    const uint64_t *sums = NULL;
    st_fragment *fragment = NULL;
    uint64_t at = 0, sum = 0;
    sluice_status status = SLUICE_OK;
    if (ordinal >= count || strcmp(covers[ordinal].fragment, add->fragment.name) != 0 ||
        covers[ordinal].rows != add->fragment.rows)
        return pf_fail(err, SLUICE_CORRUPT, "%s covers another fragment as number %u than the list says", path,
                       ordinal);
    PF_TRY(get_sums(verify, info, direction, adjacency, &sums, err));
    PF_TRY(st_fragment_open(st_graph_volume(verify->graph), table, &add->fragment, &fragment, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        status = add_batch(add, direction, fragment, batch, at, path, &sum, err);
        at += st_fragment_batch_rows(fragment, batch);
    }
    st_fragment_close(fragment);
    if (status == SLUICE_OK && sum != sums[ordinal])
        status = pf_fail(err, SLUICE_CORRUPT, "%s does not have the edges of fragment %s", path, add->fragment.name);
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
