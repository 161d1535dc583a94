/*
 * Arbitration on runs: an equal hash is confirmed on the keys in the fragments, across node keys, ends of edges and
 * their directions; a list has nothing to confirm with; large sides are joined a slice at a time (LESSONS K-01, K-04).
 *
 * The hashes in the runs are chosen by hand, so that different keys collide and equal keys can be anywhere.
 */
#include "coord/read_set.h"
#include "tests/support/test.h"
#include "toy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_text[] = "{\"nodes\":{\"N\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}},"
                                  "\"edges\":{\"E\":{\"from\":\"N\",\"to\":\"N\",\"properties\":{},\"key\":[]}}}";

static pf_sim_disk *disk;
static st_graph *graph;
static const st_type_def *node, *edge;
static st_schema *schema;
static pf_sha256 identity;
static unsigned serial;

static int setup(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_volume *volume = NULL;
    pf_id id;
    pf_sim_world_install(41);
    ASSERT_OK(pf_sim_disk_new(41, &disk, &err));
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    ASSERT_OK(st_schema_parse(schema_text, sizeof schema_text - 1, "s.json", &schema, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    graph = toy_open(disk);
    node = st_schema_find(schema, "N");
    edge = st_schema_find(schema, "E");
    ASSERT_OK(st_schema_identity(schema, &identity, &err));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    st_graph_close(graph);
    st_schema_free(schema);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
    return 0;
}

/* A fragment whose rows have these keys (edges: from = to = key), and a run over one of its uses with these hashes. */
static struct st_change_run stage(const st_type_def *type, st_run_use use, const int64_t *keys, const uint64_t *hashes,
                                  uint64_t count)
{
    sluice_error err = {0};
    pf_volume *volume = st_graph_volume(graph);
    struct st_change_run staged = {.table = type->table, .run = {.use = use}};
    st_column_spec *specs = NULL;
    uint32_t columns = 0;
    st_column views[2];
    st_column_builder *builders[2] = {NULL, NULL};
    st_fragment_writer *writer = NULL;
    char name[64];
    ASSERT_OK(st_type_columns(schema, type, &specs, &columns, &err));
    assert_true(columns <= 2);
    for (uint32_t c = 0; c < columns; c++) {
        ASSERT_OK(st_column_builder_new(&specs[c], &builders[c], &err));
        for (uint64_t i = 0; i < count; i++)
            ASSERT_OK(st_append_i64(builders[c], keys[i], &err));
        st_builder_view(builders[c], &views[c]);
    }
    (void)snprintf(name, sizeof name, "f-%u.arrow", ++serial);
    ASSERT_OK(st_fragment_create(volume, type->table, name, specs, columns, false, &writer, &err));
    ASSERT_OK(st_fragment_write(writer, views, views[0].length, &err));
    ASSERT_OK(st_fragment_finish(writer, &staged.fragment, &err));
    st_run_entry *entries = malloc(count * sizeof *entries);
    assert_non_null(entries);
    for (uint64_t i = 0; i < count; i++)
        entries[i] = (st_run_entry){hashes[i], i};
    (void)snprintf(name, sizeof name, "r-%u.run", serial);
    ASSERT_OK(st_run_write(volume, type->table, name, entries, count, &staged.run.info, &err));
    free(entries);
    for (uint32_t c = 0; c < columns; c++) {
        st_column_builder_free(builders[c]);
        st_column_spec_free(&specs[c]);
    }
    free(specs);
    return staged;
}

typedef struct set_side {
    uint64_t table;
    const struct st_change_run *runs;
    uint32_t run_count;
    const uint64_t *hashes;
    uint64_t hash_count;
} set_side;

static st_change change_of(const set_side *from, st_space space)
{
    st_change change = {.table = from->table, .space = space};
    if (from->run_count) {
        change.runs = malloc(from->run_count * sizeof *change.runs);
        assert_non_null(change.runs);
        memcpy(change.runs, from->runs, from->run_count * sizeof *change.runs);
        change.run_count = from->run_count;
    }
    if (from->hash_count) {
        change.hashes = malloc(from->hash_count * sizeof *change.hashes);
        assert_non_null(change.hashes);
        memcpy(change.hashes, from->hashes, from->hash_count * sizeof *change.hashes);
        change.hash_count = from->hash_count;
    }
    return change;
}

static bool meets(co_read_kind kind, const set_side *mine, st_space space, const set_side *theirs)
{
    sluice_error err = {0};
    co_read_set set = {.incarnation = 1, .schema_identity = identity};
    co_read read = {.kind = kind, .set = change_of(mine, ST_SPACE_KEY_INSERTED)};
    st_change change = change_of(theirs, space);
    st_changes changes = {&change, 1};
    bool meet = false;
    uint64_t table = 0;
    ASSERT_OK(co_read_set_add(&set, &read, &err));
    ASSERT_OK(co_read_set_meets(graph, &set, &changes, &meet, &kind, &table, &err));
    co_read_set_free(&set);
    free(change.runs);
    free(change.hashes);
    return meet;
}

static void equal_hashes_of_different_keys_are_no_conflict(void **state)
{
    (void)state;
    const int64_t mine_keys[] = {1, 2, 3}, their_keys[] = {4, 5}, shared_keys[] = {6, 2};
    const uint64_t sevens[] = {7, 7, 7};
    struct st_change_run mine_run = stage(node, ST_RUN_KEY, mine_keys, sevens, 3);
    struct st_change_run other = stage(node, ST_RUN_KEY, their_keys, sevens, 2);
    struct st_change_run shared = stage(node, ST_RUN_KEY, shared_keys, sevens, 2);
    set_side mine = {node->table, &mine_run, 1, NULL, 0}, theirs = {node->table, &other, 1, NULL, 0};
    assert_false(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    assert_false(meets(CO_READ_KEY_ABSENT, &theirs, ST_SPACE_KEY_INSERTED, &mine)); /* whichever is the smaller */
    theirs.runs = &shared;
    assert_true(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    assert_true(meets(CO_READ_KEY_ABSENT, &theirs, ST_SPACE_KEY_INSERTED, &mine));
}

static void a_list_cannot_be_confirmed_so_its_hash_counts(void **state)
{
    (void)state;
    const int64_t keys[] = {1, 2};
    const uint64_t hashes[] = {70, 80}, listed[] = {5, 80}, others[] = {5, 81};
    struct st_change_run run = stage(node, ST_RUN_KEY, keys, hashes, 2);
    set_side runs = {node->table, &run, 1, NULL, 0}, list = {node->table, NULL, 0, listed, 2},
             miss = {node->table, NULL, 0, others, 2};
    assert_true(meets(CO_READ_KEY_ABSENT, &list, ST_SPACE_KEY_INSERTED, &runs));
    assert_true(meets(CO_READ_KEY_ABSENT, &runs, ST_SPACE_KEY_INSERTED, &list));
    assert_false(meets(CO_READ_KEY_ABSENT, &miss, ST_SPACE_KEY_INSERTED, &runs));
    assert_false(meets(CO_READ_KEY_ABSENT, &runs, ST_SPACE_KEY_INSERTED, &miss));
}

/* An edge's end is the key of a node: the two are compared though they lie in fragments of different tables. */
static void an_end_meets_the_node_that_is_deleted_and_no_other(void **state)
{
    (void)state;
    const int64_t end_keys[] = {1, 2}, gone_keys[] = {9, 2}, kept_keys[] = {9, 8};
    const uint64_t sevens[] = {7, 7};
    struct st_change_run ends = stage(edge, ST_RUN_FROM, end_keys, sevens, 2);
    struct st_change_run gone = stage(node, ST_RUN_KEY, gone_keys, sevens, 2);
    struct st_change_run kept = stage(node, ST_RUN_KEY, kept_keys, sevens, 2);
    set_side mine = {node->table, &ends, 1, NULL, 0}, theirs = {node->table, &gone, 1, NULL, 0};
    assert_true(meets(CO_READ_KEY_PRESENT, &mine, ST_SPACE_KEY_DELETED, &theirs));
    theirs.runs = &kept;
    assert_false(meets(CO_READ_KEY_PRESENT, &mine, ST_SPACE_KEY_DELETED, &theirs));
}

static void a_count_meets_edges_of_its_type_in_its_direction(void **state)
{
    (void)state;
    const int64_t keys[] = {1};
    const uint64_t hash[] = {7};
    struct st_change_run out = stage(edge, ST_RUN_FROM, keys, hash, 1), in = stage(edge, ST_RUN_TO, keys, hash, 1);
    set_side mine = {edge->table, &out, 1, NULL, 0}, theirs = {node->table, &out, 1, NULL, 0};
    assert_true(meets(CO_READ_COUNT, &mine, ST_SPACE_ENDPOINT_USED, &theirs));
    theirs.runs = &in;
    assert_false(meets(CO_READ_COUNT, &mine, ST_SPACE_ENDPOINT_USED, &theirs));
    struct st_change_run elsewhere = out; /* the run of another edge table over the same nodes */
    elsewhere.table = edge->table + 1;
    theirs.runs = &elsewhere;
    assert_false(meets(CO_READ_COUNT, &mine, ST_SPACE_ENDPOINT_USED, &theirs));
}

static void an_edges_identity_is_both_of_its_ends(void **state)
{
    (void)state;
    const int64_t mine_keys[] = {1}, other_keys[] = {2};
    const uint64_t hash[] = {7};
    struct st_change_run one = stage(edge, ST_RUN_KEY, mine_keys, hash, 1);
    struct st_change_run same = stage(edge, ST_RUN_KEY, mine_keys, hash, 1);
    struct st_change_run other = stage(edge, ST_RUN_KEY, other_keys, hash, 1);
    set_side mine = {edge->table, &one, 1, NULL, 0}, theirs = {edge->table, &same, 1, NULL, 0};
    assert_true(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    theirs.runs = &other;
    assert_false(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
}

/* K-02: what they wrote cannot be read any more, so they may have written anything; what I read must be readable. */
static void a_damaged_run_of_theirs_is_everything(void **state)
{
    (void)state;
    sluice_error err = {0};
    const int64_t mine_keys[] = {1}, their_keys[] = {2};
    const uint64_t hash[] = {7};
    char path[128];
    struct st_change_run mine_run = stage(node, ST_RUN_KEY, mine_keys, hash, 1);
    struct st_change_run other = stage(node, ST_RUN_KEY, their_keys, hash, 1);
    set_side mine = {node->table, &mine_run, 1, NULL, 0}, theirs = {node->table, &other, 1, NULL, 0};
    assert_false(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    (void)snprintf(path, sizeof path, "tables/%llu/keys/%s", (unsigned long long)node->table, other.run.info.name);
    ASSERT_OK(pf_remove(st_graph_volume(graph), path, &err));
    assert_true(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    co_read_set set = {.incarnation = 1, .schema_identity = identity};
    co_read read = {.kind = CO_READ_KEY_ABSENT, .set = change_of(&theirs, ST_SPACE_KEY_INSERTED)};
    st_change change = change_of(&mine, ST_SPACE_KEY_INSERTED);
    st_changes changes = {&change, 1};
    co_read_kind kind;
    bool meet;
    uint64_t table;
    ASSERT_OK(co_read_set_add(&set, &read, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, co_read_set_meets(graph, &set, &changes, &meet, &kind, &table, &err));
    co_read_set_free(&set);
    free(change.runs);
}

/* More than a slice (2^20) on both sides, in several runs; the one common key has the greatest hash. */
static void large_sides_are_joined_to_their_end(void **state)
{
    (void)state;
    enum { COUNT = 600000, RUNS = 2 };
    int64_t *keys = malloc(COUNT * sizeof *keys);
    uint64_t *hashes = malloc(COUNT * sizeof *hashes);
    struct st_change_run mine_runs[RUNS], their_runs[RUNS];
    assert_non_null(keys);
    assert_non_null(hashes);
    for (uint64_t r = 0; r < RUNS; r++) {
        for (unsigned both = 0; both < 2; both++) {
            for (uint64_t i = 0; i < COUNT; i++) {
                keys[i] = (int64_t)(2 * (r * COUNT + i) + both);
                hashes[i] = (uint64_t)keys[i] * (UINT64_MAX / (2 * COUNT * RUNS));
            }
            *(both ? &their_runs[r] : &mine_runs[r]) = stage(node, ST_RUN_KEY, keys, hashes, COUNT);
        }
    }
    set_side mine = {node->table, mine_runs, RUNS, NULL, 0}, theirs = {node->table, their_runs, RUNS, NULL, 0};
    assert_false(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    keys[0] = -5;
    hashes[0] = UINT64_MAX;
    struct st_change_run last = stage(node, ST_RUN_KEY, keys, hashes, 1);
    struct st_change_run mine_more[RUNS + 1] = {mine_runs[0], mine_runs[1], last};
    struct st_change_run their_more[RUNS + 1] = {their_runs[0], their_runs[1], last};
    mine = (set_side){node->table, mine_more, RUNS + 1, NULL, 0};
    theirs = (set_side){node->table, their_more, RUNS + 1, NULL, 0};
    assert_true(meets(CO_READ_KEY_ABSENT, &mine, ST_SPACE_KEY_INSERTED, &theirs));
    free(keys);
    free(hashes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_hashes_of_different_keys_are_no_conflict),
        TEST(a_list_cannot_be_confirmed_so_its_hash_counts),
        TEST(an_end_meets_the_node_that_is_deleted_and_no_other),
        TEST(a_count_meets_edges_of_its_type_in_its_direction),
        TEST(an_edges_identity_is_both_of_its_ends),
        TEST(a_damaged_run_of_theirs_is_everything),
        TEST(large_sides_are_joined_to_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
