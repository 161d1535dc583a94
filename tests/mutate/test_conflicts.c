/*
 * The conflict matrix of the optimistic mode (OD-041, OD-042, OD-044, OD-047; W-1 to W-7, W-10): one writer has
 * planned, another commits, the first one goes on.
 *
 * `mine` is planned on `base`; then `rival` commits; then `mine` meets it. Each cell says how mine ends, whether it had
 * to plan again, and what stands afterwards.
 */
#include "mutate_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N(op, key, rest) "{\"op\":\"" op "\",\"node\":\"P\",\"key\":" key rest "}\n"
#define SET(members)     ",\"set\":{" members "}"
#define IF(members)      ",\"if\":{" members "}"
#define EDGE(op, type, from, to, rest)                                                                                 \
    "{\"op\":\"" op "\",\"edge\":\"" type "\",\"from\":" from ",\"to\":" to rest "}\n"
#define DETACH          ",\"detach\":true"
#define EQUALS(members) ",\"equals\":{" members "}"
#define ABSENT          ",\"absent\":true"
#define PRESENT         ",\"present\":true"
#define A(v)            "\"a\":" v
#define B(v)            "\"b\":" v
#define U(v)            "\"u\":\"" v "\""

/* P 1, 2, 3; E 1-2, 2-3; L 1-2 */
static const char base[] =
    N("insert", "1", SET(A("0") "," B("0") "," U("one"))) N("insert", "2", SET(A("0"))) N("insert", "3", SET(A("0")))
        EDGE("insert", "E", "1", "2", "") EDGE("insert", "E", "2", "3", "") EDGE("insert", "L", "1", "2", "");

typedef struct cell {
    const char *name, *rival, *mine;
    sluice_status status;
    unsigned plans;     /* 0: however many */
    const char *person; /* P 1 afterwards, or another: "[...]\n" is in the rows; NULL: not looked at */
} cell;

static const cell cells[] = {
    {"distinct creates", N("insert", "8", ""), N("insert", "9", ""), SLUICE_OK, 1, "[9,null,null,null,null]\n"},
    {"distinct updates", N("update", "2", SET(A("5"))), N("update", "1", SET(A("6"))), SLUICE_OK, 1,
     "[1,6,0,\"one\",null]\n"},
    {"distinct deletes", N("delete", "1", DETACH), N("insert", "9", ""), SLUICE_OK, 1, NULL},
    {"distinct deletes of one fragment", N("delete", "1", DETACH), N("delete", "3", DETACH), SLUICE_OK, 0, NULL},
    {"deletes of one fragment that share a row", N("delete", "1", DETACH) N("delete", "2", DETACH),
     N("delete", "2", DETACH) N("delete", "3", DETACH), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"one key inserted twice", N("insert", "9", ""), N("insert", "9", ""), SLUICE_KEY_CONFLICT, 1, NULL},
    {"an insert of an upserted key", N("upsert", "9", ""), N("insert", "9", ""), SLUICE_KEY_CONFLICT, 1, NULL},
    {"an upsert of an inserted key", N("insert", "9", SET(A("1") "," B("1"))), N("upsert", "9", SET(A("2"))), SLUICE_OK,
     2, "[9,2,1,null,null]\n"},
    {"an upsert of a deleted key", N("delete", "1", DETACH), N("upsert", "1", SET(A("2"))), SLUICE_OK, 2,
     "[1,2,null,null,null]\n"},
    {"an upsert of an updated property", N("update", "1", SET(A("5"))), N("upsert", "1", SET(A("6"))), SLUICE_OK, 2,
     "[1,6,0,\"one\",null]\n"},
    {"different properties", N("update", "1", SET(B("5"))), N("update", "1", SET(A("6"))), SLUICE_OK, 2,
     "[1,6,5,\"one\",null]\n"},
    {"the same property", N("update", "1", SET(A("5"))), N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1,
     "[1,5,0,\"one\",null]\n"},
    {"the same value", N("update", "1", SET(A("5"))), N("update", "1", SET(A("5"))), SLUICE_WRITE_CONFLICT, 1,
     "[1,5,0,\"one\",null]\n"},
    {"the same property upserted", N("upsert", "1", SET(A("5"))), N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT,
     1, NULL},
    {"an update of what is deleted", N("delete", "1", DETACH), N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1,
     NULL},
    {"a delete of what is updated", N("update", "1", SET(A("6"))), N("delete", "1", DETACH), SLUICE_WRITE_CONFLICT, 1,
     "[1,6,0,\"one\",null]\n"},
    {"a delete of what is deleted", N("delete", "1", DETACH), N("delete", "1", DETACH), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"a replacement of what is updated", N("update", "1", SET(B("5"))),
     N("delete", "1", "") N("insert", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"an update of what is replaced", N("delete", "1", "") N("insert", "1", SET(B("6"))), N("update", "1", SET(A("6"))),
     SLUICE_WRITE_CONFLICT, 1, NULL},
    {"a delete of a node that gets an edge", EDGE("insert", "E", "3", "1", ""), N("delete", "1", ""),
     SLUICE_CONSTRAINT_ENDPOINT, 0, NULL},
    {"a detach of a node that gets an edge", EDGE("insert", "E", "3", "1", ""), N("delete", "1", DETACH), SLUICE_OK, 2,
     NULL},
    {"a detach beside the deletion of its edge", EDGE("delete", "E", "1", "2", ""), N("delete", "1", DETACH), SLUICE_OK,
     2, NULL},
    {"a detach beside an update of its edge", EDGE("update", "E", "1", "2", SET("\"w\":1")), N("delete", "1", DETACH),
     SLUICE_OK, 2, NULL},
    {"an edge of a node that goes", N("delete", "3", DETACH), EDGE("insert", "E", "1", "3", ""),
     SLUICE_CONSTRAINT_ENDPOINT, 1, NULL},
    {"one edge inserted twice", EDGE("insert", "E", "1", "3", ""), EDGE("insert", "E", "1", "3", ""),
     SLUICE_KEY_CONFLICT, 1, NULL},
    {"edges of one node", EDGE("insert", "E", "1", "3", ""), EDGE("insert", "E", "3", "1", ""), SLUICE_OK, 1, NULL},
    {"an edge beyond the limit", EDGE("insert", "L", "3", "1", ""), EDGE("insert", "L", "3", "2", ""),
     SLUICE_CONSTRAINT_CARDINALITY, 1, NULL},
    {"one unique value twice", N("insert", "8", SET(U("x"))), N("insert", "9", SET(U("x"))), SLUICE_CONSTRAINT_UNIQUE,
     1, NULL},
    {"a unique value that is updated to", N("insert", "8", SET(U("x"))), N("update", "1", SET(U("x"))),
     SLUICE_CONSTRAINT_UNIQUE, 1, NULL},
    {"an assertion of a property that changed", N("update", "2", SET(A("1"))),
     N("assert", "2", EQUALS(A("0"))) N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1,
     "[1,0,0,\"one\",null]\n"},
    {"an assertion of an object that changed elsewhere", N("update", "2", SET(B("1"))),
     N("assert", "2", EQUALS(A("0"))) N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"an assertion of presence of what is deleted", N("delete", "2", DETACH),
     N("assert", "2", PRESENT) N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"an assertion of absence of what is inserted", N("insert", "9", ""),
     N("assert", "9", ABSENT) N("update", "1", SET(A("6"))), SLUICE_WRITE_CONFLICT, 1, NULL},
    {"an assertion beside another object", N("update", "3", SET(A("1"))),
     N("assert", "2", EQUALS(A("0"))) N("update", "1", SET(A("6"))), SLUICE_OK, 1, "[1,6,0,\"one\",null]\n"},
    {"a condition that does not hold any more", N("update", "1", SET(B("1"))), N("update", "1", SET(A("6")) IF(B("0"))),
     SLUICE_OK, 2, "[1,0,1,\"one\",null]\n"},
    {"a condition that comes to hold", N("update", "1", SET(B("1"))),
     N("update", "1", SET(A("6")) IF(B("1"))) N("insert", "9", ""), SLUICE_OK, 2, "[1,6,1,\"one\",null]\n"},
    {"edges: different properties merge", EDGE("update", "E", "1", "2", SET("\"w\":1")), N("update", "1", SET(A("6"))),
     SLUICE_OK, 1, NULL},
    {"edges: the same property", EDGE("update", "E", "1", "2", SET("\"w\":1")),
     EDGE("update", "E", "1", "2", SET("\"w\":2")), SLUICE_WRITE_CONFLICT, 1, NULL},
};

typedef struct rivalry {
    st_graph *graph;
    const char *text;
    unsigned times; /* that it still commits */
} rivalry;

static void commit_rival(void *context)
{
    rivalry *other = context;
    if (other->times == 0)
        return;
    other->times--;
    (void)mutate_text(other->graph, other->text);
}

typedef struct scene {
    pf_sim_disk *disk;
    st_graph *mine, *theirs;
} scene;

static scene begin(void)
{
    scene made = {.disk = mutate_disk(3)};
    made.mine = mutate_open(made.disk);
    made.theirs = mutate_open(made.disk);
    (void)mutate_text(made.mine, base);
    return made;
}

static void end(scene *made)
{
    mutate_expect_whole(made->mine);
    st_graph_close(made->mine);
    st_graph_close(made->theirs);
    pf_sim_disk_free(made->disk);
    pf_sim_world_remove();
}

static void run_matrix(void)
{
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        const cell *want = &cells[i];
        scene made = begin();
        rivalry other = {made.theirs, want->rival, 1};
        mutate_try try_ = {.text = want->mine, .after_plan = commit_rival, .context = &other};
        mutate_run(made.mine, &try_);
        if (try_.status != want->status || (want->plans && try_.plans != want->plans))
            print_error("%s: %s (%s) after %u plans\n", want->name, sluice_status_name(try_.status), try_.error.text,
                        try_.plans);
        assert_int_equal(try_.status, want->status);
        if (want->plans)
            assert_int_equal(try_.plans, want->plans);
        if (try_.status != SLUICE_OK)
            assert_int_equal(try_.error.committed, SLUICE_FALSE);
        char *rows = mutate_rows(made.mine, "P");
        if (want->person && !strstr(rows, want->person))
            print_error("%s: %s", want->name, rows);
        assert_true(!want->person || strstr(rows, want->person));
        free(rows);
        end(&made);
    }
    print_message("%zu cells\n", sizeof cells / sizeof cells[0]);
}

static void each_pair_of_operations_ends_as_the_matrix_says(void **state)
{
    (void)state;
    run_matrix();
}

static void so_it_does_with_everything_staged_and_armed(void **state)
{
    (void)state;
    assert_int_equal(setenv("SLUICE_NO_ATTACH", "1", 1), 0);
    run_matrix();
    assert_int_equal(unsetenv("SLUICE_NO_ATTACH"), 0);
}

static void a_detached_node_takes_the_edge_that_came_meanwhile_with_it(void **state)
{
    (void)state;
    scene made = begin();
    rivalry other = {made.theirs, EDGE("insert", "E", "3", "1", ""), 1};
    mutate_try try_ = {.text = N("delete", "1", DETACH), .after_plan = commit_rival, .context = &other};
    mutate_run(made.mine, &try_);
    assert_int_equal(try_.status, SLUICE_OK);
    mutate_expect(made.mine, "E", "[2,3,null]\n");
    mutate_expect(made.mine, "L", "");
    end(&made);
}

static void so_does_one_that_the_same_file_puts_back(void **state)
{
    (void)state;
    scene made = begin();
    rivalry other = {made.theirs, EDGE("insert", "E", "3", "1", ""), 1};
    mutate_try try_ = {
        .text = N("delete", "1", DETACH) N("insert", "1", ""), .after_plan = commit_rival, .context = &other};
    mutate_run(made.mine, &try_);
    assert_int_equal(try_.status, SLUICE_OK);
    mutate_expect(made.mine, "E", "[2,3,null]\n");
    mutate_expect(made.mine, "L", "");
    end(&made);
}

static void commit_both(void *context)
{
    rivalry *chain = context;
    commit_rival(&chain[0]);
    commit_rival(&chain[1]);
}

/* The first commit that mine meets only restarts it; the second one came before the new base was pinned. */
static void the_same_property_is_looked_for_over_all_commits_since_the_first_base(void **state)
{
    (void)state;
    static const char *const seconds[] = {N("update", "1", SET(A("7"))), N("delete", "1", DETACH)};
    for (unsigned i = 0; i < 2; i++) {
        scene made = begin();
        rivalry chain[2] = {{made.theirs, N("update", "1", SET(B("5"))), 1}, {made.theirs, seconds[i], 1}};
        mutate_try try_ = {.text = N("update", "1", SET(A("6"))), .after_plan = commit_both, .context = chain};
        mutate_run(made.mine, &try_);
        assert_int_equal(try_.status, SLUICE_WRITE_CONFLICT);
        assert_int_equal(try_.plans, 1);
        end(&made);
    }
}

static unsigned rounds;
static void commit_another(void *context)
{
    char text[128];
    (void)snprintf(text, sizeof text, "{\"op\":\"update\",\"node\":\"P\",\"key\":1,\"set\":{\"b\":%u}}\n", ++rounds);
    (void)mutate_text(context, text);
}

static void a_rival_of_another_property_at_every_plan_exhausts_the_budget(void **state)
{
    (void)state;
    scene made = begin();
    mutate_try try_ = {.text = N("update", "1", SET(A("6"))), .after_plan = commit_another, .context = made.theirs};
    rounds = 0;
    mutate_run(made.mine, &try_);
    assert_int_equal(try_.status, SLUICE_REBASE_EXHAUSTED);
    assert_int_equal(try_.plans, ad_mutate.retry_budget + 1);
    assert_non_null(strstr(try_.error.details, "\"attempts\":17"));
    assert_int_equal(try_.error.committed, SLUICE_FALSE);
    char *rows = mutate_rows(made.mine, "P");
    assert_non_null(strstr(rows, "[1,0,17,\"one\",null]\n"));
    free(rows);
    end(&made);
}

/* credit = debit = 0, and the application means to keep credit + debit at most 1: a is the credit, b the debit. */
static void write_skew_is_possible_and_shown(void **state)
{
    (void)state;
    scene made = begin();
    rivalry other = {made.theirs, N("update", "1", SET(B("1"))), 1}; /* each has looked before, in another call */
    mutate_try try_ = {.text = N("update", "1", SET(A("1"))), .after_plan = commit_rival, .context = &other};
    mutate_run(made.mine, &try_);
    assert_int_equal(try_.status, SLUICE_OK);
    char *rows = mutate_rows(made.mine, "P");
    assert_non_null(strstr(rows, "[1,1,1,\"one\",null]\n")); /* both: the rule is broken */
    free(rows);
    end(&made);
}

static void an_assertion_cures_write_skew(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {N("assert", "1", EQUALS(A("0"))) N("update", "1", SET(B("1"))),
         N("assert", "1", EQUALS(B("0"))) N("update", "1", SET(A("1")))},
        {N("assert", "8", ABSENT) N("insert", "9", ""), N("assert", "9", ABSENT) N("insert", "8", "")},
    };
    for (unsigned i = 0; i < 2; i++) {
        scene made = begin();
        rivalry other = {made.theirs, pairs[i][0], 1};
        mutate_try try_ = {.text = pairs[i][1], .after_plan = commit_rival, .context = &other};
        mutate_run(made.mine, &try_);
        assert_int_equal(try_.status, SLUICE_WRITE_CONFLICT);
        end(&made);
    }
}

static void parallel_edges_conflict_by_row_id(void **state)
{
    (void)state;
    scene made = begin();
    uint64_t node[4], edges[4];
    char mine[256], rival[256], text[256];
    (void)mutate_text(made.mine, "{\"op\":\"insert\",\"node\":\"Q\"}\n");
    assert_int_equal(mutate_row_ids(made.mine, "Q", node, 4), 1);
    (void)snprintf(text, sizeof text,
                   "{\"op\":\"insert\",\"edge\":\"R\",\"from\":1,\"to\":%llu}\n"
                   "{\"op\":\"insert\",\"edge\":\"R\",\"from\":1,\"to\":%llu}\n",
                   (unsigned long long)node[0], (unsigned long long)node[0]);
    (void)mutate_text(made.mine, text);
    assert_int_equal(mutate_row_ids(made.mine, "R", edges, 4), 2);
    (void)snprintf(mine, sizeof mine, "{\"op\":\"delete\",\"node\":\"Q\",\"_row_id\":%llu,\"detach\":true}\n",
                   (unsigned long long)node[0]);
    (void)snprintf(rival, sizeof rival, "{\"op\":\"delete\",\"edge\":\"R\",\"_row_id\":%llu}\n",
                   (unsigned long long)edges[0]);
    rivalry other = {made.theirs, rival, 1};
    mutate_try try_ = {.text = mine, .after_plan = commit_rival, .context = &other};
    mutate_run(made.mine, &try_);
    assert_int_equal(try_.status, SLUICE_OK);
    assert_int_equal(try_.plans, 2);
    mutate_expect(made.mine, "R", "");
    end(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_of_operations_ends_as_the_matrix_says),
        cmocka_unit_test(so_it_does_with_everything_staged_and_armed),
        cmocka_unit_test(a_detached_node_takes_the_edge_that_came_meanwhile_with_it),
        cmocka_unit_test(so_does_one_that_the_same_file_puts_back),
        cmocka_unit_test(the_same_property_is_looked_for_over_all_commits_since_the_first_base),
        cmocka_unit_test(a_rival_of_another_property_at_every_plan_exhausts_the_budget),
        cmocka_unit_test(write_skew_is_possible_and_shown),
        cmocka_unit_test(an_assertion_cures_write_skew),
        cmocka_unit_test(parallel_edges_conflict_by_row_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
