#include "worker/maintain/neighbourhood.h"

#include "platform/check.h"
#include "platform/memory.h"
#include "store/fragment/fragment.h"
#include "store/fragment/key.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_PART 2u
#define EDGES_LEAST UINT64_C(65536)

uint64_t wk_neighbourhood_edges(uint64_t most)
{
    return pf_memory_part(MEMORY_PART, EDGES_LEAST * WK_EDGE_BYTES, most * WK_EDGE_BYTES) / WK_EDGE_BYTES;
}

typedef struct building {
    const wk_neighbourhood *work;
    st_adjacency_cover *covers;
    st_run_entry *near;
    uint64_t **far; /* per fragment, by position */
    uint64_t edges;
} building;

static sluice_status end_column(st_fragment *fragment, uint32_t batch, const char *name, uint64_t table,
                                st_column *ret_column, sluice_error *err)
{
    int at = st_fragment_find_name(fragment, name);
    if (at < 0)
        return pf_fail(err, SLUICE_CORRUPT, "a fragment of table %" PRIu64 " lacks an end", table);
    return st_fragment_column(fragment, batch, (uint32_t)at, ret_column, err);
}

static sluice_status hash_batch(building *b, st_fragment *fragment, uint32_t batch, uint32_t ordinal, uint64_t first,
                                sluice_error *err)
{
    const wk_neighbourhood *work = b->work;
    bool out = work->direction == ST_ADJACENCY_OUT;
    uint64_t rows = st_fragment_batch_rows(fragment, batch);
    st_column near, far;
    const st_column *key[1] = {&near};
    PF_TRY(end_column(fragment, batch, out ? "from" : "to", work->table, &near, err));
    PF_TRY(end_column(fragment, batch, out ? "to" : "from", work->table, &far, err));
    uint64_t *hashes = malloc((rows + 1) * sizeof *hashes);
    if (!hashes)
        return pf_fail_memory(err);
    st_key_hash_rows(key, 1, rows, hashes);
    for (uint64_t row = 0; row < rows; row++)
        b->near[b->edges++] = (st_run_entry){.hash = hashes[row], .position = (uint64_t)ordinal << 32 | (first + row)};
    free(hashes);
    key[0] = &far;
    st_key_hash_rows(key, 1, rows, b->far[ordinal] + first);
    return SLUICE_OK;
}

static sluice_status hash_fragment(building *b, uint32_t ordinal, sluice_error *err)
{
    const wk_neighbourhood *work = b->work;
    const st_fragment_info *info = &work->fragments[ordinal]->fragment;
    st_fragment *fragment = NULL;
    uint64_t first = 0;
    sluice_status status = SLUICE_OK;
    (void)snprintf(b->covers[ordinal].fragment, sizeof b->covers[ordinal].fragment, "%s", info->name);
    b->covers[ordinal].rows = info->rows;
    b->far[ordinal] = malloc((info->rows + 1) * sizeof(uint64_t));
    if (!b->far[ordinal])
        return pf_fail_memory(err);
    PF_TRY(st_fragment_open(work->volume, work->table, info, &fragment, err));
    for (uint32_t batch = 0; batch < st_fragment_batches(fragment) && status == SLUICE_OK; batch++) {
        status = hash_batch(b, fragment, batch, ordinal, first, err);
        first += st_fragment_batch_rows(fragment, batch);
    }
    st_fragment_close(fragment);
    if (status == SLUICE_OK && work->advance)
        work->advance(work->advance_context, info->rows, info->bytes);
    return status;
}

/* Under the first name that no earlier try has taken. */
static sluice_status write_file(building *b, st_run_info *ret_info, sluice_error *err)
{
    const wk_neighbourhood *work = b->work;
    sluice_error error = {0};
    sluice_status status = SLUICE_ALREADY_EXISTS;
    for (uint32_t i = 0; i < work->tries && status == SLUICE_ALREADY_EXISTS; i++) {
        char name[sizeof ret_info->name];
        (void)snprintf(name, sizeof name, "%s%" PRIu64 ".%s", work->prefix, work->number + i,
                       work->direction == ST_ADJACENCY_OUT ? "out" : "in");
        status = st_adjacency_write(work->volume, work->table, name, work->direction, b->covers, work->count, b->near,
                                    b->edges, (const uint64_t *const *)b->far, ret_info, &error);
    }
    if (status == SLUICE_ALREADY_EXISTS)
        return pf_fail(err, SLUICE_INTERNAL, "an adjacency file was tried %u times without success", work->tries);
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

sluice_status wk_neighbourhood_write(const wk_neighbourhood *work, st_run_info *ret_info, sluice_error *err)
{
    building b = {.work = work};
    uint64_t edges = 0;
    sluice_status status;
    for (uint32_t i = 0; i < work->count; i++) {
        const st_fragment_info *info = &work->fragments[i]->fragment;
        if (info->rows > UINT32_MAX || !pf_add_u64(edges, info->rows, &edges))
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "adjacency of too many edges");
    }
    b.covers = calloc((size_t)work->count + 1, sizeof *b.covers);
    b.far = calloc((size_t)work->count + 1, sizeof *b.far);
    size_t bytes = 0;
    b.near = pf_mul_size(edges + 1, sizeof *b.near, &bytes) ? malloc(bytes) : NULL;
    if (!b.covers || !b.far || !b.near) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < work->count; i++)
        PF_GOTO(status, done, hash_fragment(&b, i, err));
    status = write_file(&b, ret_info, err);
done:
    for (uint32_t i = 0; b.far && i < work->count; i++)
        free(b.far[i]);
    free(b.far);
    free(b.covers);
    free(b.near);
    return status;
}
