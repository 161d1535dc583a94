/*
 * Adjacency: every edge is found at its near end and nowhere else, at every size around blocks and fences; no damage
 * goes unseen by verify or by a reader that touches it; and a file that is whole but wrong is told by verify
 * (LESSONS N-03).
 */
#include "store/fragment/adjacency.h"
#include "store/fragment/blocks.h"
#include "table_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME   "0190-1.out"
#define COVERS 3u

typedef struct graph { /* edges by ordinal and position */
    uint64_t count;
    uint64_t *near, *far;
    uint64_t rows[COVERS], first[COVERS];
} graph;

/* `nodes`: distinct near ends at most; 0: as many as edges. */
static graph graph_make(uint64_t count, uint64_t nodes)
{
    test_random random = {count + nodes};
    graph g = {.count = count};
    g.near = calloc(count + 1, sizeof *g.near);
    g.far = calloc(count + 1, sizeof *g.far);
    assert_true(g.near && g.far);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = test_random_next(&random);
        g.near[i] = nodes ? value % nodes * (UINT64_MAX / nodes) : value;
        g.far[i] = test_random_next(&random);
    }
    for (uint32_t o = 0; o < COVERS; o++) {
        g.first[o] = o ? g.first[o - 1] + g.rows[o - 1] : 0;
        g.rows[o] = o + 1 < COVERS ? count / COVERS : count - g.first[o];
    }
    return g;
}

static void graph_free(graph *g)
{
    free(g->near);
    free(g->far);
}

static sluice_status graph_write(const graph *g, pf_volume *volume, const char *name, st_run_info *ret_info,
                                 sluice_error *err)
{
    st_adjacency_cover covers[COVERS];
    const uint64_t *far[COVERS];
    st_run_entry *near = malloc((g->count + 1) * sizeof *near);
    assert_non_null(near);
    memset(covers, 0, sizeof covers);
    for (uint32_t o = 0; o < COVERS; o++) {
        (void)snprintf(covers[o].fragment, sizeof covers[o].fragment, "f-%u.arrow", o);
        covers[o].rows = g->rows[o];
        far[o] = g->far + g->first[o];
        for (uint64_t i = 0; i < g->rows[o]; i++)
            near[g->first[o] + i] = (st_run_entry){g->near[g->first[o] + i], (uint64_t)o << 32 | i};
    }
    sluice_status status =
        st_adjacency_write(volume, TABLE, name, ST_ADJACENCY_OUT, covers, COVERS, near, g->count, far, ret_info, err);
    free(near);
    return status;
}

/* All edges of a near hash, as the file has them, are those of the graph, in order. */
static void expect_edges(const graph *g, st_adjacency *adjacency, uint64_t hash)
{
    sluice_error err = {0};
    uint64_t entry = 0, end = 0;
    ASSERT_OK(st_adjacency_find(adjacency, hash, &entry, &end, &err));
    for (uint64_t i = 0; i < g->count; i++) {
        if (g->near[i] != hash)
            continue;
        st_adjacent found;
        assert_true(entry < end);
        ASSERT_OK(st_adjacency_get(adjacency, entry++, &found, &err));
        assert_true(found.far == g->far[i]);
        assert_int_equal(g->first[found.ordinal] + found.position, i);
    }
    assert_int_equal(entry, end);
}

static void every_edge_is_found_at_its_near_end(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 3, 7, 4095, 4096, 4097, 8193, 20000};
    static const uint64_t nodes[] = {0, 1, 5, 3000};
    table_dir dir = table_dir_simulate();
    sluice_error err = {0};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t n = 0; n < sizeof nodes / sizeof nodes[0]; n++) {
            graph g = graph_make(counts[c], nodes[n]);
            char name[40];
            st_run_info info = {0};
            st_adjacency *adjacency = NULL;
            uint32_t covers = 0;
            (void)snprintf(name, sizeof name, "0190-%zu.out", c * 10 + n);
            ASSERT_OK(graph_write(&g, dir.volume, name, &info, &err));
            ASSERT_OK(st_adjacency_open(dir.volume, TABLE, &info, ST_ADJACENCY_OUT, &adjacency, &err));
            ASSERT_OK(st_adjacency_verify(adjacency, &err));
            assert_int_equal(st_adjacency_edges(adjacency), g.count);
            assert_string_equal(st_adjacency_covers(adjacency, &covers)[1].fragment, "f-1.arrow");
            assert_int_equal(covers, COVERS);
            for (uint64_t i = 0; i < g.count; i += 1 + g.count / 40)
                expect_edges(&g, adjacency, g.near[i]);
            for (uint64_t hash = 3; hash < UINT64_MAX / 2; hash = hash * 3 + 1) /* mostly of no node */
                expect_edges(&g, adjacency, hash);
            expect_edges(&g, adjacency, 0);
            expect_edges(&g, adjacency, UINT64_MAX);
            st_adjacency_close(adjacency);
            adjacency = NULL; /* the other direction, another table, other numbers are none of ours */
            assert_int_equal(st_adjacency_open(dir.volume, TABLE, &info, ST_ADJACENCY_IN, &adjacency, &err),
                             SLUICE_CORRUPT);
            info.entries++;
            assert_int_equal(st_adjacency_open(dir.volume, TABLE, &info, ST_ADJACENCY_OUT, &adjacency, &err),
                             SLUICE_CORRUPT);
            graph_free(&g);
        }
    }
    table_dir_remove(&dir);
}

/* Opens, reads everything through the accessors, verifies; each step only after the ones before have passed. */
static sluice_status use_all(pf_volume *volume, const st_run_info *info, bool verify, sluice_error *err)
{
    st_adjacency *adjacency = NULL;
    PF_TRY(st_adjacency_open(volume, TABLE, info, ST_ADJACENCY_OUT, &adjacency, err));
    sluice_status status = verify ? st_adjacency_verify(adjacency, err) : SLUICE_OK;
    for (uint64_t i = 0; i < st_adjacency_edges(adjacency) && status == SLUICE_OK && !verify; i++) {
        st_adjacent found;
        status = st_adjacency_get(adjacency, i, &found, err);
    }
    for (uint64_t hash = 0, n = 0; n < 64 && status == SLUICE_OK && !verify; n++, hash += UINT64_MAX / 63) {
        uint64_t first, end;
        status = st_adjacency_find(adjacency, hash, &first, &end, err);
    }
    st_adjacency_close(adjacency);
    return status;
}

static void no_damage_goes_unseen(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    sluice_error err = {0};
    st_run_info info = {0};
    graph g = graph_make(200, 20);
    ASSERT_OK(graph_write(&g, dir.volume, NAME, &info, &err));
    pf_buffer whole = table_dir_read(&dir, "indexes/" NAME);
    ASSERT_OK(use_all(dir.volume, &info, true, &err));
    ASSERT_OK(use_all(dir.volume, &info, false, &err));
    for (size_t at = 0; at < whole.length; at += 1 + (at > 400 && at + 600 < whole.length ? 16 : 0)) {
        whole.data[at] ^= 0x40;
        table_dir_write(&dir, "indexes/" NAME, whole.data, whole.length);
        assert_int_equal(use_all(dir.volume, &info, true, &err), SLUICE_CORRUPT);
        assert_non_null(strstr(err.message, "indexes/" NAME));
        assert_int_equal(use_all(dir.volume, &info, false, &err), SLUICE_CORRUPT); /* one block: all of it is touched */
        whole.data[at] ^= 0x40;
    }
    for (size_t length = 0; length < whole.length; length += 97) {
        table_dir_write(&dir, "indexes/" NAME, whole.data, length);
        assert_int_equal(use_all(dir.volume, &info, false, &err), SLUICE_CORRUPT);
    }
    pf_buffer_free(&whole);
    graph_free(&g);
    table_dir_remove(&dir);
}

/* Bytes that are not what they should be under checksums that are right: what a defect would write. (A wrong far end,
 * or a position within the order, is told only beside the edges themselves: store/read/verify_index.c.) */
static void wrong_content_is_told_by_verify(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    sluice_error err = {0};
    st_run_info info = {0};
    graph g = graph_make(100, 10);
    ASSERT_OK(graph_write(&g, dir.volume, NAME, &info, &err));
    pf_buffer whole = table_dir_read(&dir, "indexes/" NAME);
    uint64_t length = st_get_u64(whole.data + whole.length - 16), footer = whole.length - length;
    uint64_t nodes = st_get_u64(whole.data + footer + 48), firsts = st_get_u64(whole.data + footer + 56);
    const uint64_t places[] = {0,     12,     32,         40,          64 + 8,    64 + 16 * 50 + 8,
                               nodes, firsts, firsts + 4, firsts + 40, footer - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        whole.data[places[i]] ^= 1;
        (void)st_blocks_digest(whole.data, footer, whole.data + footer + 88);
        info.footer = pf_sha256_of(whole.data + footer, length);
        table_dir_write(&dir, "indexes/" NAME, whole.data, whole.length);
        assert_int_equal(use_all(dir.volume, &info, true, &err), SLUICE_CORRUPT);
        whole.data[places[i]] ^= 1;
    }
    (void)st_blocks_digest(whole.data, footer, whole.data + footer + 88);
    info.footer = pf_sha256_of(whole.data + footer, length);
    table_dir_write(&dir, "indexes/" NAME, whole.data, whole.length);
    ASSERT_OK(use_all(dir.volume, &info, true, &err));
    pf_buffer_free(&whole);
    graph_free(&g);
    table_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edge_is_found_at_its_near_end),
        cmocka_unit_test(no_damage_goes_unseen),
        cmocka_unit_test(wrong_content_is_told_by_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
