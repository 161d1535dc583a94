/*
 * Merges: every operation against every other (LESSONS 4, M-01 to M-07), ancestry over merges, conflicts and how they
 * are settled.
 */
#include "coord/recover.h"
#include "merge_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

typedef enum op { NOOP, INSERT_NODE, DELETE_NODE, INSERT_EDGE, DELETE_EDGE, UPDATE, NET_ZERO, OPS } op;

static const char *const on_source[OPS] = {
    [NOOP] = "",
    [INSERT_NODE] = "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"E\",\"age\":21}}\n",
    [DELETE_NODE] = "{\"op\":\"delete\",\"node\":\"N\",\"key\":\"A\"}\n",
    [INSERT_EDGE] = "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"A\",\"to\":\"C\",\"set\":{\"w\":5}}\n",
    [DELETE_EDGE] = "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\"}\n",
    [UPDATE] = "{\"op\":\"update\",\"node\":\"N\",\"key\":\"A\",\"set\":{\"age\":31}}\n",
    [NET_ZERO] = "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"A\",\"to\":\"C\",\"set\":{\"w\":5}}\n"};
static const char *const on_target[OPS] = {
    [NOOP] = "",
    [INSERT_NODE] = "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"E\",\"age\":22}}\n",
    [DELETE_NODE] = "{\"op\":\"delete\",\"node\":\"N\",\"key\":\"A\"}\n",
    [INSERT_EDGE] = "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"A\",\"to\":\"C\",\"set\":{\"w\":5}}\n",
    [DELETE_EDGE] = "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\"}\n",
    [UPDATE] = "{\"op\":\"update\",\"node\":\"N\",\"key\":\"A\",\"set\":{\"age\":32}}\n",
    [NET_ZERO] = "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"A\",\"to\":\"C\",\"set\":{\"w\":5}}\n"};

typedef enum verdict { U, F, M, DI, UU, DU, OE } verdict;
static const verdict table[OPS][OPS] = {
    /* target:       noop insN delN insE delE upd  zero */
    [NOOP] = {U, U, U, U, U, U, U},          [INSERT_NODE] = {F, DI, M, M, M, M, M},
    [DELETE_NODE] = {F, M, M, OE, M, DU, M}, [INSERT_EDGE] = {F, M, OE, M, M, M, M},
    [DELETE_EDGE] = {F, M, M, M, M, M, M},   [UPDATE] = {F, M, DU, M, M, UU, M},
    [NET_ZERO] = {F, M, M, M, M, M, M}};

static void run(st_graph *graph, const char *branch, op what, const char *const *texts)
{
    if (what != NOOP)
        change(graph, branch, texts[what]);
    if (what == NET_ZERO)
        change(graph, branch, "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"A\",\"to\":\"C\"}\n");
}

/* What both have done, once each, on a branch of its own. */
static void expect_union(st_graph *graph, op source, op target)
{
    branch_make(graph, "both", "main");
    if (target != NET_ZERO)
        run(graph, "both", target, on_target);
    if (source != target && source != NET_ZERO) /* both did the same: it is there once */
        run(graph, "both", source, on_source);
    expect_same_content(graph, "t", "both");
    branch_remove(graph, "both");
}

/* M-03: merge again, write on and merge again, merge back, delete the source and merge what was forked from it. */
static void go_on(st_graph *graph)
{
    branch_make(graph, "third", "s");
    expect_merge(graph, "s", "t", CO_MERGE_UP_TO_DATE);
    change(graph, "s", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"S\"}}\n");
    expect_merge(graph, "s", "t", CO_MERGE_MERGED);
    change(graph, "t", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"T\"}}\n");
    expect_merge(graph, "t", "s", CO_MERGE_FAST_FORWARD);
    expect_same_content(graph, "s", "t");
    branch_remove(graph, "s");
    co_gc_report report;
    sluice_error err = {0};
    ASSERT_OK(co_gc(graph, false, &report, &err));
    expect_merge(graph, "third", "t", CO_MERGE_UP_TO_DATE);
    change(graph, "third", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"V\"}}\n");
    expect_merge(graph, "third", "t", CO_MERGE_MERGED);
}

static void cell(st_graph *graph, op source, op target)
{
    static const co_conflict_kind kinds[] = {
        [DI] = CO_CONFLICT_INSERT, [UU] = CO_CONFLICT_UPDATE, [DU] = CO_CONFLICT_DELETE, [OE] = CO_CONFLICT_EDGE};
    verdict expected = table[source][target];
    branch_make(graph, "s", "main");
    branch_make(graph, "t", "main");
    run(graph, "s", source, on_source);
    run(graph, "t", target, on_target);
    switch (expected) {
    case U:
        expect_merge(graph, "s", "t", CO_MERGE_UP_TO_DATE);
        break;
    case F:
    case M:
        expect_merge(graph, "s", "t", expected == F ? CO_MERGE_FAST_FORWARD : CO_MERGE_MERGED);
        expect_union(graph, source, target);
        go_on(graph);
        branch_remove(graph, "third");
        branch_remove(graph, "t");
        return;
    case DI:
    case UU:
    case DU:
    case OE:
        expect_conflict(graph, "s", "t", kinds[expected]);
        change(graph, "t", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"T\"}}\n"); /* R161 */
        break;
    }
    branch_remove(graph, "s");
    branch_remove(graph, "t");
}

static void every_operation_against_every_other(void **state)
{
    (void)state;
    for (op source = NOOP; source < OPS; source++) {
        merge_fixture fixture = fixture_make(source + 1);
        for (op target = NOOP; target < OPS; target++)
            cell(fixture.graph, source, target);
        fixture_free(&fixture);
    }
}

/* ---- one object on both sides ---- */

typedef struct pair {
    const char *ours, *theirs; /* statements, on t and on s */
    bool conflicts;
    co_conflict_kind kind;
    const char *result; /* a line that the merged branch has */
} pair;

#define NODE_E(rest) "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"E\"" rest "}}\n"
#define SET_A(set)   "{\"op\":\"update\",\"node\":\"N\",\"key\":\"A\",\"set\":{" set "}}\n"
#define EDGE(type, from, to, w)                                                                                        \
    "{\"op\":\"insert\",\"edge\":\"" type "\",\"from\":\"" from "\",\"to\":\"" to "\",\"set\":{\"w\":" w "}}\n"
#define DELETE(id) "{\"op\":\"delete\",\"node\":\"N\",\"key\":\"" id "\",\"detach\":true}\n"

static const pair pairs[] = {
    {NODE_E(",\"age\":5"), NODE_E(",\"age\":5"), false, 0, "N \"E\" 5 null\n"},
    {SET_A("\"age\":31"), SET_A("\"age\":31"), false, 0, "N \"A\" 31 null\n"},
    {SET_A("\"age\":31"), SET_A("\"name\":\"a\""), false, 0, "N \"A\" 31 \"a\"\n"},
    {SET_A("\"age\":null"), SET_A("\"name\":\"\""), false, 0, "N \"A\" null \"\"\n"},
    {SET_A("\"name\":\"\""), SET_A("\"name\":\"x\""), true, CO_CONFLICT_UPDATE, NULL},
    {DELETE("B"), "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\"}\n", false, 0, "N \"C\" null null\n"},
    {DELETE("B"), "{\"op\":\"delete\",\"edge\":\"K\",\"from\":\"B\",\"to\":\"C\"}\n" EDGE("K", "B", "C", "9"), true,
     CO_CONFLICT_DELETE, NULL},
    {"{\"op\":\"delete\",\"node\":\"N\",\"key\":\"A\"}\n{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"A\","
     "\"age\":"
     "40}}\n",
     SET_A("\"age\":41"), true, CO_CONFLICT_UPDATE, NULL},
    {NODE_E(",\"name\":\"u\""), "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"G\",\"name\":\"u\"}}\n", true,
     CO_CONFLICT_UNIQUE, NULL},
    {"{\"op\":\"insert\",\"edge\":\"M\",\"from\":\"A\",\"to\":\"B\",\"set\":{}}\n",
     "{\"op\":\"insert\",\"edge\":\"M\",\"from\":\"A\",\"to\":\"C\",\"set\":{}}\n", true, CO_CONFLICT_CARDINALITY,
     NULL},
    {EDGE("K", "A", "A", "1"), EDGE("K", "A", "A", "1"), false, 0, "K \"A\" \"A\" 1\n"},
    {EDGE("K", "A", "A", "1"), EDGE("K", "A", "A", "2"), true, CO_CONFLICT_INSERT, NULL},
    {EDGE("L", "A", "B", "1"), EDGE("L", "A", "B", "1"), false, 0, "L \"A\" \"B\" 1\nL \"A\" \"B\" 1\n"},
    {DELETE("D"), EDGE("L", "D", "A", "1"), true, CO_CONFLICT_EDGE, NULL},
    {EDGE("L", "D", "A", "1"), DELETE("D"), true, CO_CONFLICT_EDGE, NULL},
    {DELETE("D"), DELETE("D"), false, 0, "N \"C\" null null\n"},
    {"{\"op\":\"insert\",\"node\":\"F\",\"set\":{\"x\":1}}\n", "{\"op\":\"insert\",\"node\":\"F\",\"set\":{\"x\":1}}\n",
     false, 0, "F 1\nF 1\n"},
};

static void what_both_sides_do_to_one_object(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(20);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        for (unsigned turned = 0; turned < 2; turned++) {
            branch_make(fixture.graph, "s", "main");
            branch_make(fixture.graph, "t", "main");
            change(fixture.graph, turned ? "t" : "s", pairs[i].theirs);
            change(fixture.graph, turned ? "s" : "t", pairs[i].ours);
            if (pairs[i].conflicts) {
                expect_conflict(fixture.graph, "s", "t", pairs[i].kind);
            } else {
                expect_merge(fixture.graph, "s", "t", CO_MERGE_MERGED);
                char *text = content(fixture.graph, "t");
                assert_non_null(strstr(text, pairs[i].result));
                free(text);
                expect_merge(fixture.graph, "t", "s", CO_MERGE_FAST_FORWARD);
                expect_same_content(fixture.graph, "s", "t");
                expect_merge(fixture.graph, "s", "t", CO_MERGE_FAST_FORWARD); /* a commit of its own: not yet there */
            }
            branch_remove(fixture.graph, "s");
            branch_remove(fixture.graph, "t");
        }
    }
    fixture_free(&fixture);
}

static void a_conflict_names_the_commits_of_both_sides(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(21);
    co_merge_result result;
    branch_make(fixture.graph, "s", "main");
    change(fixture.graph, "s", SET_A("\"age\":31,\"name\":\"s\""));
    pf_id theirs = head_of(fixture.graph, "s");
    change(fixture.graph, NULL, SET_A("\"age\":32,\"name\":\"t\""));
    pf_id ours = head_of(fixture.graph, "main");
    change(fixture.graph, NULL, NODE_E(""));
    assert_int_equal(merge(fixture.graph, "s", NULL, CO_MERGE_FAIL, &result), SLUICE_MERGE_CONFLICT);
    assert_int_equal(result.conflict_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(result.conflicts[i].type, "N");
        assert_string_equal(result.conflicts[i].key, "\"A\"");
        assert_string_equal(result.conflicts[i].property, i ? "name" : "age");
        assert_true(pf_id_equal(&result.conflicts[i].ours, &ours));
        assert_true(pf_id_equal(&result.conflicts[i].theirs, &theirs));
    }
    co_merge_result_free(&result);
    fixture_free(&fixture);
}

static void conflicts_are_settled_as_the_user_says_and_rules_hold_all_the_same(void **state)
{
    (void)state;
    for (unsigned theirs = 0; theirs < 2; theirs++) {
        merge_fixture fixture = fixture_make(22);
        co_merge_result result;
        branch_make(fixture.graph, "s", "main");
        change(fixture.graph, "s",
               SET_A("\"age\":31") DELETE("D")
                   NODE_E(",\"age\":1") "{\"op\":\"update\",\"node\":\"N\",\"key\":\"B\",\"set\":{\"age\":2}}\n");
        change(fixture.graph, NULL,
               SET_A("\"age\":32") NODE_E(
                   ",\"age\":2") "{\"op\":\"update\",\"node\":\"N\",\"key\":\"D\",\"set\":{\"age\":3}}\n" DELETE("B"));
        assert_int_equal(merge(fixture.graph, "s", NULL, theirs ? CO_MERGE_THEIRS : CO_MERGE_OURS, &result), SLUICE_OK);
        char *text = content(fixture.graph, "main");
        assert_int_equal(strstr(text, "N \"A\" 31") != NULL, theirs);
        assert_int_equal(strstr(text, "N \"A\" 32") != NULL, !theirs);
        assert_int_equal(strstr(text, "N \"E\" 1") != NULL, theirs);
        assert_int_equal(strstr(text, "N \"D\" 3") != NULL, !theirs);
        assert_int_equal(strstr(text, "N \"B\" 2") != NULL, theirs);
        free(text);
        co_merge_result_free(&result);
        branch_make(fixture.graph, "u", "main");
        change(fixture.graph, "u", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"C\",\"set\":{\"name\":\"u\"}}\n");
        change(fixture.graph, NULL, SET_A("\"name\":\"u\""));
        assert_int_equal(merge(fixture.graph, "u", NULL, theirs ? CO_MERGE_THEIRS : CO_MERGE_OURS, &result),
                         SLUICE_MERGE_CONFLICT);
        assert_int_equal(result.conflicts[0].kind, CO_CONFLICT_UNIQUE);
        co_merge_result_free(&result);
        fixture_free(&fixture);
    }
}

/* ---- histories ---- */

static void edits_since_a_branch_that_both_merged_do_not_conflict(void **state) /* R159 */
{
    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) {
        sluice_error err = {0};
        co_gc_report report;
        merge_fixture fixture = fixture_make(23);
        st_graph *graph = fixture.graph;
        branch_make(graph, "x", NULL);
        branch_make(graph, "s", NULL);
        branch_make(graph, "t", NULL);
        change(graph, "x", SET_A("\"age\":50"));
        expect_merge(graph, "x", "s", CO_MERGE_FAST_FORWARD);
        expect_merge(graph, "x", "t", CO_MERGE_FAST_FORWARD);
        if (gone) { /* its state is where the two met: it stays while they live */
            branch_remove(graph, "x");
            ASSERT_OK(co_gc(graph, false, &report, &err));
            st_graph_close(graph); /* it knows the log still */
            graph = fixture.graph = fixture_open(fixture.disk);
        }
        change(graph, "s", SET_A("\"age\":51"));
        change(graph, "t", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"B\",\"set\":{\"age\":9}}\n");
        expect_merge(graph, "s", "t", CO_MERGE_MERGED);
        char *text = content(graph, "t");
        assert_non_null(strstr(text, "N \"A\" 51"));
        assert_non_null(strstr(text, "N \"B\" 9"));
        free(text);
        fixture_free(&fixture);
    }
}

static void a_branch_from_a_merged_one_reads_on(void **state) /* R151 */
{
    (void)state;
    sluice_error err = {0};
    co_gc_report report;
    merge_fixture fixture = fixture_make(24);
    st_graph *graph = fixture.graph;
    branch_make(graph, "b0", NULL);
    branch_make(graph, "b1", "b0");
    char *forked = content(graph, "b1");
    change(graph, "b0", NODE_E(""));
    expect_merge(graph, "b0", "main", CO_MERGE_FAST_FORWARD);
    change(graph, NULL, SET_A("\"age\":77"));
    expect_merge(graph, "main", "b0", CO_MERGE_FAST_FORWARD);
    change(graph, "b0", SET_A("\"age\":78"));
    ASSERT_OK(co_gc(graph, false, &report, &err));
    char *now = content(graph, "b1");
    assert_string_equal(now, forked);
    free(now);
    free(forked);
    fixture_free(&fixture);
}

static void criss_cross_merges_find_what_each_side_changed_last(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(25);
    st_graph *graph = fixture.graph;
    branch_make(graph, "s", NULL);
    branch_make(graph, "t", NULL);
    change(graph, "s", SET_A("\"age\":31"));
    change(graph, "t", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"B\",\"set\":{\"age\":1}}\n");
    branch_make(graph, "s1", "s");
    branch_make(graph, "t1", "t");
    expect_merge(graph, "t1", "s", CO_MERGE_MERGED); /* each takes the other's state from before the other's merge */
    expect_merge(graph, "s1", "t", CO_MERGE_MERGED);
    expect_same_content(graph, "s", "t");
    change(graph, "s", SET_A("\"age\":33"));
    change(graph, "t", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"B\",\"set\":{\"age\":3}}\n");
    expect_merge(graph, "s", "t", CO_MERGE_MERGED);
    char *text = content(graph, "t");
    assert_non_null(strstr(text, "N \"A\" 33"));
    assert_non_null(strstr(text, "N \"B\" 3"));
    free(text);
    change(graph, "s", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"C\",\"set\":{\"age\":1}}\n");
    change(graph, "t", "{\"op\":\"update\",\"node\":\"N\",\"key\":\"C\",\"set\":{\"age\":2}}\n");
    expect_conflict(graph, "s", "t", CO_CONFLICT_UPDATE);
    fixture_free(&fixture);
}

static void a_row_without_a_key_is_the_same_one_on_both_sides_after_a_merge(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(26);
    st_graph *graph = fixture.graph;
    branch_make(graph, "s", NULL);
    change(graph, "s", EDGE("L", "A", "D", "1"));
    change(graph, NULL, NODE_E(""));
    expect_merge(graph, "s", "main", CO_MERGE_MERGED);
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    uint64_t id = 0;
    ASSERT_OK(st_snapshot_open(graph, "s", NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "L", &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        id = batch->row_ids[batch->rows - 1];
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    char text[128];
    (void)snprintf(text, sizeof text, "{\"op\":\"delete\",\"edge\":\"L\",\"_row_id\":%llu}\n", (unsigned long long)id);
    change(graph, "s", text);
    expect_merge(graph, "s", "main", CO_MERGE_MERGED);
    char *held = content(graph, "main");
    assert_null(strstr(held, "L \"A\" \"D\""));
    free(held);
    fixture_free(&fixture);
}

/* ---- tables that are taken over as they are ---- */

static void insert_many(st_graph *graph, const char *branch, unsigned from, unsigned count)
{
    pf_buffer text = {0};
    sluice_error err = {0};
    for (unsigned i = from; i < from + count; i++) {
        char line[96];
        (void)snprintf(line, sizeof line, "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"n%u\"}}\n", i);
        ASSERT_OK(pf_buffer_append_text(&text, line, &err));
    }
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    change(graph, branch, (const char *)text.data);
    pf_buffer_free(&text);
}

static uint64_t bytes_written_by_merge(st_graph *graph, const char *source)
{
    pf_volume_counters_reset(st_graph_volume(graph));
    expect_merge(graph, source, "main", CO_MERGE_FAST_FORWARD);
    return pf_volume_counters(st_graph_volume(graph))->bytes_written;
}

static void a_large_fast_forward_takes_the_list_over_and_copies_nothing(void **state)
{
    (void)state;
    sluice_error err = {0};
    co_gc_report report;
    merge_fixture fixture = fixture_make(29);
    st_graph *graph = fixture.graph;
    branch_make(graph, "s", NULL);
    insert_many(graph, "s", 0, 6000);
    change(graph, "s", SET_A("\"age\":44") DELETE("D") EDGE("L", "n1", "n2", "7")); /* lies in the record */
    char *theirs = content(graph, "s");
    assert_true(bytes_written_by_merge(graph, "s") < 100000);
    char *ours = content(graph, "main");
    assert_string_equal(ours, theirs);
    free(ours);
    branch_remove(graph, "s"); /* nothing of it is needed any more */
    ASSERT_OK(co_gc(graph, false, &report, &err));
    st_graph_close(graph);
    graph = fixture.graph = fixture_open(fixture.disk);
    ours = content(graph, "main");
    assert_string_equal(ours, theirs);
    free(ours);
    free(theirs);
    branch_make(graph, "t", NULL);
    change(graph, "t", SET_A("\"age\":45") "{\"op\":\"delete\",\"node\":\"N\",\"key\":\"n9\"}\n");
    change(graph, NULL, NODE_E(",\"age\":1"));
    expect_merge(graph, "t", "main", CO_MERGE_MERGED);
    fixture_free(&fixture);
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context;
    print_error("%s: %s\n", object, problem);
    return pf_fail(err, SLUICE_CORRUPT, "verify found a problem");
}

static void insert_edges(st_graph *graph, const char *branch, unsigned from, unsigned count)
{
    pf_buffer text = {0};
    sluice_error err = {0};
    for (unsigned i = from; i < from + count; i++)
        ASSERT_OK(pf_buffer_append_format(
            &text, &err, "{\"op\":\"insert\",\"edge\":\"K\",\"from\":\"n%u\",\"to\":\"n%u\"}\n", i, i + 1));
    ASSERT_OK(pf_buffer_append(&text, "", 1, &err));
    change(graph, branch, (const char *)text.data);
    pf_buffer_free(&text);
}

typedef struct whole_case {
    const char *name, *ours, *theirs;
    int conflict; /* -1: none */
    bool copies;  /* rows are compared, and written one by one */
} whole_case;

/* 4,200 nodes and edges on the source, beside what the target did: taken over as they are, or compared, with the same
 * result. */
static void a_large_merge_compares_only_what_both_sides_did(void **state)
{
    (void)state;
    static const whole_case cases[] = {
        {"the target did something elsewhere", "{\"op\":\"insert\",\"node\":\"F\",\"set\":{\"x\":1}}\n", "", -1, false},
        {"both have added nodes", NODE_E(",\"age\":1"), "", -1, false},
        {"both have added nodes and edges", NODE_E("") EDGE("K", "E", "A", "1"), "", -1, false},
        {"the source changed an old node, too", EDGE("L", "A", "B", "1"), SET_A("\"age\":44"), -1, true},
        {"both changed nodes", SET_A("\"age\":33"),
         "{\"op\":\"update\",\"node\":\"N\",\"key\":\"B\",\"set\":{\"age\":1}}\n", -1, true},
        {"a key of both", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"n9\",\"age\":1}}\n", "",
         CO_CONFLICT_INSERT, true},
        {"the same row of both", "{\"op\":\"insert\",\"node\":\"N\",\"set\":{\"id\":\"n9\"}}\n", "", -1, true},
        {"a unique value of both", NODE_E(",\"name\":\"x\""),
         "{\"op\":\"update\",\"node\":\"N\",\"key\":\"n5\",\"set\":{\"name\":\"x\"}}\n", CO_CONFLICT_UNIQUE, true},
        {"an end that the target deleted", DELETE("A"), EDGE("K", "n1", "A", "1"), CO_CONFLICT_EDGE, true},
        {"a node that the source deleted has got an edge", EDGE("L", "A", "D", "1"), DELETE("D"), CO_CONFLICT_EDGE,
         true},
        {"a node that the source deleted, and edges elsewhere",
         "{\"op\":\"insert\",\"node\":\"F\",\"set\":{\"x\":1}}\n", DELETE("D"), -1, false},
        {"edges that both have added", EDGE("K", "A", "D", "1"), EDGE("K", "A", "D", "2"), CO_CONFLICT_INSERT, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const whole_case *one = &cases[i];
        co_merge_result result;
        merge_fixture fixture = fixture_make(50 + i);
        st_graph *graph = fixture.graph;
        print_message("%s\n", one->name);
        branch_make(graph, "s", NULL);
        insert_many(graph, "s", 0, 2200);
        insert_edges(graph, "s", 0, 2000);
        change(graph, "s", *one->theirs ? one->theirs : EDGE("L", "n1", "n2", "7"));
        change(graph, NULL, one->ours);
        branch_make(graph, "both", NULL); /* the source's again, by mutations */
        pf_volume_counters_reset(st_graph_volume(graph));
        sluice_status status = merge(graph, "s", "main", CO_MERGE_FAIL, &result);
        uint64_t wrote = pf_volume_counters(st_graph_volume(graph))->bytes_written;
        if (one->conflict >= 0) {
            assert_int_equal(status, SLUICE_MERGE_CONFLICT);
            assert_int_equal(result.conflicts[0].kind, one->conflict);
            co_merge_result_free(&result);
            fixture_free(&fixture);
            continue;
        }
        assert_int_equal(status, SLUICE_OK);
        co_merge_result_free(&result);
        assert_int_equal(wrote > 100000, one->copies);
        if (strcmp(one->name, "the same row of both") != 0) {
            insert_many(graph, "both", 0, 2200);
            insert_edges(graph, "both", 0, 2000);
            change(graph, "both", *one->theirs ? one->theirs : EDGE("L", "n1", "n2", "7"));
            expect_same_content(graph, "main", "both");
        }
        expect_merge(graph, "s", "main", CO_MERGE_UP_TO_DATE);
        change(graph, "s", SET_A("\"name\":\"later\""));
        expect_merge(graph, "s", "main", CO_MERGE_MERGED);
        sluice_error err = {0};
        uint64_t checked = 0;
        ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
        fixture_free(&fixture);
    }
}

/* M-08: what a merge asks for follows from what changed (mapping a fragment counts its whole length as read). */
static void the_cost_of_a_merge_is_that_of_the_changes(void **state)
{
    (void)state;
    uint64_t calls[2];
    for (unsigned i = 0; i < 2; i++) {
        merge_fixture fixture = fixture_make(30);
        insert_many(fixture.graph, NULL, 0, i ? 20000 : 2000);
        branch_make(fixture.graph, "s", NULL);
        for (unsigned k = 0; k < 20; k++) {
            char text[128];
            (void)snprintf(text, sizeof text,
                           "{\"op\":\"update\",\"node\":\"N\",\"key\":\"n%u\",\"set\":{\"age\":%u}}\n", k * 7, k);
            change(fixture.graph, "s", text);
        }
        change(fixture.graph, NULL, NODE_E(""));
        st_graph_close(fixture.graph);
        fixture.graph = fixture_open(fixture.disk);
        pf_volume_counters_reset(st_graph_volume(fixture.graph));
        expect_merge(fixture.graph, "s", "main", CO_MERGE_MERGED);
        const pf_counters *made = pf_volume_counters(st_graph_volume(fixture.graph));
        calls[i] = made->calls;
        fixture_free(&fixture);
    }
    print_message("%llu and %llu calls\n", (unsigned long long)calls[0], (unsigned long long)calls[1]);
    assert_true(calls[1] <= calls[0] + calls[0] / 4);
}

/* ---- requests ---- */

static void an_exact_retry_of_a_merge_gets_the_first_answer(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(27);
    st_graph *graph = fixture.graph;
    sluice_error err = {0};
    wk_executor executor = merge_executor();
    for (unsigned diverged = 0; diverged < 2; diverged++) {
        co_merge_result first, again;
        branch_make(graph, "s", NULL);
        change(graph, "s", diverged ? NODE_E("") : SET_A("\"age\":44"));
        if (diverged)
            change(graph, NULL, SET_A("\"age\":45"));
        const co_merge_options options = {.source = "s", .operation = pf_id_new()};
        ASSERT_OK(co_merge(graph, &options, &executor, &first, &err));
        change(graph, "s", SET_A("\"name\":\"later\""));
        branch_remove(graph, "s");
        ASSERT_OK(co_merge(graph, &options, &executor, &again, &err));
        assert_true(again.receipt.repeated && pf_id_equal(&again.receipt.commit, &first.receipt.commit));
        assert_int_equal(again.outcome, diverged ? CO_MERGE_MERGED : CO_MERGE_FAST_FORWARD);
        assert_int_equal(first.outcome, again.outcome);
        assert_true(pf_id_equal(&again.source_head, &first.source_head));
        co_merge_options other = options;
        other.rule = CO_MERGE_OURS;
        ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, co_merge(graph, &other, &executor, &again, &err));
    }
    fixture_free(&fixture);
}

static void a_merge_can_be_conditional_on_its_target(void **state)
{
    (void)state;
    merge_fixture fixture = fixture_make(28);
    st_graph *graph = fixture.graph;
    sluice_error err = {0};
    wk_executor executor = merge_executor();
    co_merge_result result;
    branch_make(graph, "s", NULL);
    change(graph, "s", NODE_E(""));
    co_merge_options options = {.source = "s", .if_head = head_of(graph, "main")};
    change(graph, NULL, SET_A("\"age\":45"));
    ASSERT_FAILS(SLUICE_READ_SET_CHANGED, co_merge(graph, &options, &executor, &result, &err));
    options.if_head = head_of(graph, "main");
    ASSERT_OK(co_merge(graph, &options, &executor, &result, &err));
    const co_merge_options nobody = {.source = "nobody"};
    ASSERT_FAILS(SLUICE_NOT_FOUND, co_merge(graph, &nobody, &executor, &result, &err));
    expect_merge(graph, "main", "main", CO_MERGE_UP_TO_DATE);
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_against_every_other),
        cmocka_unit_test(what_both_sides_do_to_one_object),
        cmocka_unit_test(a_conflict_names_the_commits_of_both_sides),
        cmocka_unit_test(conflicts_are_settled_as_the_user_says_and_rules_hold_all_the_same),
        cmocka_unit_test(edits_since_a_branch_that_both_merged_do_not_conflict),
        cmocka_unit_test(a_branch_from_a_merged_one_reads_on),
        cmocka_unit_test(criss_cross_merges_find_what_each_side_changed_last),
        cmocka_unit_test(a_row_without_a_key_is_the_same_one_on_both_sides_after_a_merge),
        cmocka_unit_test(a_large_fast_forward_takes_the_list_over_and_copies_nothing),
        cmocka_unit_test(a_large_merge_compares_only_what_both_sides_did),
        cmocka_unit_test(the_cost_of_a_merge_is_that_of_the_changes),
        cmocka_unit_test(an_exact_retry_of_a_merge_gets_the_first_answer),
        cmocka_unit_test(a_merge_can_be_conditional_on_its_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
