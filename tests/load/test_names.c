/*
 * Load-local names: rows of nodes without a key are called something in an input, edges of the same load say it.
 */
#include "load_fixture.h"
#include "store/read/snapshot.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {\"N\": {\"properties\": {\"t\": \"string\", \"u\": \"int64?\"}, \"unique\": [[\"u\"]]}, \"P\": "
    "{\"key\": "
    "\"id\", \"properties\": {\"id\": \"int64\"}}}, \"edges\": {\"E\": {\"from\": \"N\", \"to\": \"N\", "
    "\"properties\": "
    "{\"w\": \"int64?\"}}, \"A\": {\"from\": \"P\", \"to\": \"N\", \"properties\": {}, \"key\": [], \"cardinality\": "
    "{\"in\": \"0..1\"}}}}";

static int make(void **state)
{
    load_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    load_fixture_make(f, schema);
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    load_fixture_free(*state);
    free(*state);
    return 0;
}

/* The edges of E with what their ends hold: "[first]->[second]\n", sorted by the order of the table. */
static char *edges_of(load_fixture *f)
{
    sluice_error err;
    st_snapshot *snapshot;
    const st_type_def *node, *edge;
    st_scan *scan;
    const st_batch *batch;
    char *text = NULL, *names[64] = {NULL};
    uint64_t ids[64], count = 0;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    st_graph *graph = load_fixture_open(f);

    assert_non_null(out);
    ASSERT_OK(st_snapshot_open(graph, "main", NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "N", &node, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "E", &edge, &err));
    ASSERT_OK(st_scan_open(snapshot, node, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (batch == NULL)
            break;
        const st_column *t = &batch->columns[0];
        for (uint64_t row = 0; row < batch->rows; row++) {
            ids[count] = batch->row_ids[row];
            names[count++] =
                strndup((const char *)t->data + t->offsets[row], (size_t)(t->offsets[row + 1] - t->offsets[row]));
        }
    }
    st_scan_close(scan);
    ASSERT_OK(st_scan_open(snapshot, edge, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (batch == NULL)
            break;
        for (uint64_t row = 0; row < batch->rows; row++)
            for (int end = 0; end < 2; end++) {
                uint64_t id = ((const uint64_t *)batch->columns[end].values)[row], i = 0;
                while (i < count && ids[i] != id)
                    i++;
                assert_true(i < count);
                fprintf(out, "[%s]%s", names[i], end ? "\n" : "->");
            }
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    for (uint64_t i = 0; i < count; i++)
        free(names[i]);
    fclose(out);
    return text;
}

static void expect_edges(load_fixture *f, const char *edges)
{
    char *text = edges_of(f);
    assert_string_equal(text, edges);
    free(text);
    load_fixture_expect_clean(f);
}

static void refuse(load_fixture *f, const char *inputs, sluice_status code, const char *part)
{
    co_load_result result;
    sluice_error err;

    ASSERT_FAILS(code, load_fixture_try(f, f->graph, inputs, NULL, &result, &err));
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    load_fixture_expect_clean(f);
}

static void edges_find_the_rows_that_are_called_so(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "n.csv", "_row_id,t\nann,a\nbob,b\n,nameless\n17,c\n");
    load_fixture_text(f, "more.csv", "t,_row_id\nd,\"x, y\"\n");
    load_fixture_text(f, "e.csv", "from,to,w\nann,bob,1\n17,17,2\nbob,\"x, y\",3\n");
    load_fixture_text(f, "p.csv", "id\n1\n2\n");
    load_fixture_text(f, "a.csv", "from,to\n1,ann\n2,17\n");
    /* in any order of the inputs */
    assert_int_not_equal(load_fixture_load(f, "E=e.csv A=a.csv N=n.csv P=p.csv N=more.csv"), 0);
    load_fixture_expect(f, "N", "[a][-]\n[b][-]\n[nameless][-]\n[c][-]\n[d][-]\n");
    expect_edges(f, "[a]->[b]\n[c]->[c]\n[b]->[d]\n");
    /* names are of one load: the same again are other rows */
    assert_int_not_equal(load_fixture_load(f, "N=n.csv E=e.csv N=more.csv"), 0);
    expect_edges(f, "[a]->[b]\n[c]->[c]\n[b]->[d]\n[a]->[b]\n[c]->[c]\n[b]->[d]\n");
    assert_int_not_equal(load_fixture_load(f, "N=n.csv"), 0);
    load_fixture_expect_clean(f);
}

static void rows_of_the_graph_are_meant_where_none_is_named(void **state)
{
    load_fixture *f = *state;
    sluice_error err;
    st_snapshot *snapshot;
    const st_type_def *type;
    st_scan *scan;
    const st_batch *batch;
    char text[100];

    load_fixture_text(f, "n.csv", "t\na\nb\n");
    assert_int_not_equal(load_fixture_load(f, "N=n.csv"), 0);
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(st_snapshot_open(graph, "main", NULL, &snapshot, &err));
    ASSERT_OK(st_snapshot_type(snapshot, "N", &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    ASSERT_OK(st_scan_next(scan, &batch, &err));
    (void)snprintf(text, sizeof text, "from,to\n%" PRIu64 ",%" PRIu64 "\n", batch->row_ids[1], batch->row_ids[0]);
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    load_fixture_text(f, "e.csv", text);
    assert_int_not_equal(load_fixture_load(f, "N=n.csv E=e.csv"), 0);
    expect_edges(f, "[b]->[a]\n");
    /* where rows are named, names are all that counts */
    load_fixture_text(f, "named.csv", "_row_id,t\nq,x\n");
    refuse(f, "E=e.csv N=named.csv", SLUICE_CONSTRAINT_ENDPOINT, "there is no N with the name");
}

static void a_name_of_no_row_and_one_of_two_are_told(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "n.csv", "_row_id,t\nann,a\nbob,b\n");
    load_fixture_text(f, "twice.csv", "t,_row_id\nc,carl\nd,ann\n");
    load_fixture_text(f, "e.csv", "from,to\nann,bob\nann,carl\n");
    load_fixture_text(f, "none.csv", "from,to\nann,bob\nann,\n");
    load_fixture_text(f, "p.csv", "id\n1\n2\n");
    load_fixture_text(f, "a.csv", "from,to\n1,ann\n2,ann\n");
    refuse(f, "N=n.csv E=e.csv", SLUICE_CONSTRAINT_ENDPOINT,
           "e.csv:3: column to: there is no N with the name \"carl\"");
    refuse(f, "N=n.csv N=twice.csv E=e.csv", SLUICE_KEY_CONFLICT,
           "twice.csv:3: column _row_id: the name \"ann\" is already on line 2 of");
    refuse(f, "N=n.csv N=twice.csv", SLUICE_KEY_CONFLICT, "twice.csv:3: column _row_id: the name \"ann\"");
    refuse(f, "N=n.csv E=none.csv", SLUICE_CONSTRAINT_NULL, "none.csv:3: column to: there is no value");
    refuse(f, "N=n.csv P=p.csv A=a.csv", SLUICE_CONSTRAINT_CARDINALITY, "a.csv:3");
    load_fixture_text(f, "u.csv", "_row_id,t,u\nann,a,1\nbob,b,1\n");
    refuse(f, "N=u.csv E=e.csv", SLUICE_CONSTRAINT_UNIQUE, "u.csv:3: column u");
    load_fixture_text(f, "latin.csv", "_row_id,t\nann,a\n\xe9,b\n");
    refuse(f, "N=latin.csv", SLUICE_INPUT_SYNTAX, "latin.csv:3: column _row_id: a name is not UTF-8");
    load_fixture_write(f, "nul.csv", "_row_id,t\nan\0n,a\n", 17);
    refuse(f, "N=nul.csv", SLUICE_INPUT_SYNTAX, "nul.csv:2: column _row_id: there is a NUL byte");
    load_fixture_text(f, "two.csv", "_row_id,t,:ID\n1,a,2\n");
    refuse(f, "N=two.csv", SLUICE_INPUT_SYNTAX, "two.csv:1");
}

static void spaces_keep_names_apart(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "cats.csv", ":ID(Cat),t\n1,cat 1\n2,cat 2\n");
    load_fixture_text(f, "dogs.csv", "t:string,:ID(Dog)\ndog 1,1\ndog 2,2\n");
    load_fixture_text(f, "e.csv", ":START_ID(Cat),:END_ID(Dog)\n1,2\n2,1\n");
    load_fixture_text(f, "plain.csv", ":START_ID,:END_ID\n1,2\n");
    load_fixture_text(f, "fish.csv", ":START_ID(Cat),:END_ID(Fish)\n1,2\n");
    assert_int_not_equal(load_fixture_load(f, "N=cats.csv N=dogs.csv E=e.csv"), 0);
    expect_edges(f, "[cat 1]->[dog 2]\n[cat 2]->[dog 1]\n");
    refuse(f, "N=cats.csv N=dogs.csv E=plain.csv", SLUICE_INPUT_SYNTAX, "plain.csv:1");
    refuse(f, "N=cats.csv N=dogs.csv E=fish.csv", SLUICE_INPUT_SYNTAX, "in a space \"Fish\"");
    /* a single space says nothing */
    assert_int_not_equal(load_fixture_load(f, "N=cats.csv E=plain.csv"), 0);
    assert_int_not_equal(load_fixture_load(f, "N=dogs.csv E=fish.csv"), 0);
    /* a property can be the name, too */
    load_fixture_text(f, "prop.csv", "t:ID(Cat)\nx\ny\n");
    load_fixture_text(f, "xy.csv", ":START_ID(Cat),:END_ID(Cat)\nx,y\n");
    assert_int_not_equal(load_fixture_load(f, "N=prop.csv E=xy.csv"), 0);
    load_fixture_expect_clean(f);
}

static void json_lines_name_rows_too(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "n.jsonl",
                      "\n{\"_row_id\": 1, \"t\": \"a\"}\n{\"t\": \"b\", \"_row_id\": \"two\"}\n{\"t\": \"c\"}\n"
                      "{\"t\": \"d\", \"_row_id\": null}\n");
    load_fixture_text(f, "e.jsonl", "{\"from\": \"1\", \"to\": \"two\"}\n{\"from\": \"two\", \"to\": 1}\n");
    assert_int_not_equal(load_fixture_load(f, "N=n.jsonl E=e.jsonl"), 0);
    expect_edges(f, "[a]->[b]\n[b]->[a]\n");
    load_fixture_text(f, "late.jsonl", "{\"t\": \"c\"}\n{\"_row_id\": 1, \"t\": \"a\"}\n");
    refuse(f, "N=late.jsonl E=e.jsonl", SLUICE_INPUT_SYNTAX, "late.jsonl:2: column _row_id");
    load_fixture_text(f, "null.jsonl", "{\"from\": \"1\", \"to\": null}\n");
    refuse(f, "N=n.jsonl E=null.jsonl", SLUICE_CONSTRAINT_NULL, "null.jsonl:1: column to");
}

static void names_go_with_a_replacement(void **state)
{
    load_fixture *f = *state;
    const co_load_options overwrite = {.mode = CO_LOAD_OVERWRITE, .max_errors = UINT64_MAX};
    const co_load_options skip = {.skip_bad_rows = true, .max_errors = UINT64_MAX};
    const co_load_options dry = {.dry_run = true, .max_errors = UINT64_MAX};
    co_load_result result;
    sluice_error err;

    load_fixture_text(f, "n.csv", "_row_id,t\n1,a\n2,b\n");
    load_fixture_text(f, "e.csv", "from,to\n1,2\n");
    assert_int_not_equal(load_fixture_load(f, "N=n.csv E=e.csv"), 0);
    load_fixture_text(f, "n2.csv", "_row_id,t\n7,c\n8,d\n");
    load_fixture_text(f, "e2.csv", "from,to\n8,7\n8,8\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "E=e2.csv N=n2.csv", &overwrite, &result, &err));
    co_load_result_free(&result);
    expect_edges(f, "[d]->[c]\n[d]->[d]\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "E=e2.csv N=n2.csv", &dry, &result, &err));
    co_load_result_free(&result);
    expect_edges(f, "[d]->[c]\n[d]->[d]\n");
    /* of rows that share a name the first is meant; what is left out is nobody's end */
    load_fixture_text(f, "bad.csv", "_row_id,t,u\n1,first,1\n1,second,2\n2,third,x\n3,fourth,1\n4,fifth,3\n");
    load_fixture_text(f, "ebad.csv", "from,to\n1,4\n1,2\n3,4\n4,4\n5,1\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "N=bad.csv E=ebad.csv", &skip, &result, &err));
    assert_int_equal(result.rejected, 3 + 3);
    co_load_result_free(&result);
    expect_edges(f, "[d]->[c]\n[d]->[d]\n[first]->[fifth]\n[fifth]->[fifth]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edges_find_the_rows_that_are_called_so, make, unmake),
        cmocka_unit_test_setup_teardown(rows_of_the_graph_are_meant_where_none_is_named, make, unmake),
        cmocka_unit_test_setup_teardown(a_name_of_no_row_and_one_of_two_are_told, make, unmake),
        cmocka_unit_test_setup_teardown(spaces_keep_names_apart, make, unmake),
        cmocka_unit_test_setup_teardown(json_lines_name_rows_too, make, unmake),
        cmocka_unit_test_setup_teardown(names_go_with_a_replacement, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
