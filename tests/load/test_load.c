/* Loads by one process on the simulated disk: what is in the graph afterwards, and what is said when it is refused. */
#include "load_fixture.h"
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {"
    "\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"string\", \"name\": \"string?\"}},"
    "\"I\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"mail\": \"string?\", \"a\": \"int32?\", \"b\": "
    "\"int32?\"}, "
    "\"unique\": [[\"mail\"], [\"a\", \"b\"]]},"
    "\"M\": {\"key\": [\"a\", \"b\"], \"properties\": {\"a\": \"string\", \"b\": \"int32\"}},"
    "\"N\": {\"properties\": {\"text\": \"string\"}}},"
    "\"edges\": {"
    "\"K\": {\"from\": \"P\", \"to\": \"P\", \"properties\": {\"w\": \"int64?\"}, \"key\": []},"
    "\"L\": {\"from\": \"P\", \"to\": \"I\", \"properties\": {\"w\": \"int64?\"}},"
    "\"E\": {\"from\": \"I\", \"to\": \"I\", \"properties\": {\"k\": \"string\"}, \"key\": [\"k\"]},"
    "\"X\": {\"from\": \"M\", \"to\": \"P\", \"properties\": {}},"
    "\"C\": {\"from\": \"I\", \"to\": \"I\", \"properties\": {}, \"cardinality\": {\"out\": \"0..2\", \"in\": "
    "\"0..1\"}}}}";

static int make(void **state)
{
    load_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    load_fixture_make(fixture, schema);
    *state = fixture;
    return 0;
}

static int clear(void **state)
{
    load_fixture *fixture = *state;
    load_fixture_expect_clean(fixture);
    load_fixture_free(fixture);
    free(fixture);
    return 0;
}

static void nodes_and_edges_come_in_one_commit_in_the_order_of_files(void **state)
{
    load_fixture *f = *state;
    uint64_t before = load_fixture_generation(f);
    load_fixture_text(f, "p1.csv", "id,name\nb,Bob\na,\"An\nn\"\n");
    load_fixture_text(f, "p2.csv", "name,id\r\n,c\r\n\"\",d");
    load_fixture_text(f, "k.csv", "from,to,w\na,b,1\nb,a,\nd,d,-3");
    assert_int_equal(load_fixture_load(f, "K=k.csv P=p1.csv P=p2.csv"), before + 1);
    load_fixture_expect(f, "P", "[b][Bob]\n[a][An\nn]\n[c][-]\n[d][]\n");
    load_fixture_expect(f, "K", "[a][b][1]\n[b][a][-]\n[d][d][-3]\n");
    /* a second load finds the first one's nodes */
    load_fixture_text(f, "k2.csv", "from,to\nc,b\n");
    assert_int_equal(load_fixture_load(f, "K=k2.csv"), before + 2);
    load_fixture_expect(f, "K", "[a][b][1]\n[b][a][-]\n[d][d][-3]\n[c][b][-]\n");
}

static void the_result_counts_each_type_of_the_command(void **state)
{
    load_fixture *f = *state;
    co_load_result result;
    sluice_error err;
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    load_fixture_text(f, "k.csv", "from,to\na,b\n");
    load_fixture_text(f, "m.csv", "a,b\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "P=p.csv K=k.csv M=m.csv", NULL, &result, &err));
    assert_true(result.receipt.committed);
    assert_true(result.receipt.acknowledged);
    assert_false(result.receipt.repeated);
    assert_int_equal(result.receipt.inserted, 3);
    assert_int_equal(result.type_count, 3);
    assert_int_equal(result.types[0].rows, 2);
    assert_int_equal(result.types[1].rows, 1);
    assert_int_equal(result.types[2].rows, 0);
    co_load_result_free(&result);
}

static void a_file_without_rows_makes_no_commit(void **state)
{
    load_fixture *f = *state;
    uint64_t before = load_fixture_generation(f);
    load_fixture_text(f, "p.csv", "id,name\n\n\n");
    assert_int_equal(load_fixture_load(f, "P=p.csv"), 0);
    assert_int_equal(load_fixture_generation(f), before);
}

static void a_dry_run_checks_everything_and_changes_nothing(void **state)
{
    load_fixture *f = *state;
    co_load_options options = {.dry_run = true, .max_errors = UINT64_MAX};
    co_load_result result;
    sluice_error err;
    uint64_t before = load_fixture_generation(f);
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "P=p.csv", &options, &result, &err));
    assert_false(result.receipt.committed);
    assert_int_equal(result.types[0].rows, 2);
    co_load_result_free(&result);
    load_fixture_text(f, "k.csv", "from,to\na,z\n");
    ASSERT_FAILS(SLUICE_CONSTRAINT_ENDPOINT, load_fixture_try(f, f->graph, "P=p.csv K=k.csv", &options, &result, &err));
    assert_int_equal(load_fixture_generation(f), before);
    assert_int_equal(load_fixture_files(f, "tables"), 0);
}

static void a_repeated_key_is_refused_at_its_later_record(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id,name\na,1\nb,2\n\"a\",3\nb,4\n");
    load_fixture_refuse(f, "P=p.csv", SLUICE_KEY_CONFLICT, "@p.csv:4: column id: the key \"a\" is already on line 2");
    load_fixture_text(f, "q.csv", "id\nx\na\n");
    load_fixture_text(f, "r.csv", "name,id\n1,y\n2,a\n");
    load_fixture_refuse(f, "P=q.csv P=r.csv", SLUICE_KEY_CONFLICT,
                        "@r.csv:3: column id: the key \"a\" is already on line 3 of @q.csv");
    load_fixture_text(f, "m.csv", "b,a\n1,x\n2,x\n01,x\n");
    load_fixture_refuse(f, "M=m.csv", SLUICE_KEY_CONFLICT,
                        "@m.csv:4: columns a, b: the key \"x\", \"01\" is already on line 2");
    load_fixture_expect(f, "P", "");
}

static void a_key_of_the_base_is_refused(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    load_fixture_load(f, "P=p.csv");
    load_fixture_text(f, "q.csv", "id\nc\nb\na\n");
    load_fixture_refuse(f, "P=q.csv", SLUICE_KEY_CONFLICT,
                        "@q.csv:3: column id: the key \"b\" exists already in type P");
    load_fixture_text(f, "i.csv", "id\n1\n2\n");
    load_fixture_load(f, "I=i.csv");
    load_fixture_text(f, "j.csv", "id\n3\n2\n");
    load_fixture_refuse(f, "I=j.csv", SLUICE_KEY_CONFLICT,
                        "@j.csv:3: column id: the key \"2\" exists already in type I");
    load_fixture_expect(f, "P", "[a][-]\n[b][-]\n");
}

static void a_missing_end_is_named_as_it_stands_in_the_file(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id\na\n007\n");
    load_fixture_text(f, "k.csv", "w,from,to\n1,a,a\n2,a,zed\n3,zz,a\n");
    load_fixture_refuse(f, "P=p.csv K=k.csv", SLUICE_CONSTRAINT_ENDPOINT,
                        "@k.csv:3: column to: there is no P with the key \"zed\" (edge type K)");
    load_fixture_text(f, "i.csv", "id\n7\n");
    load_fixture_text(f, "l.csv", "src,dst\na,007\na,008\n");
    load_fixture_refuse(f, "P=p.csv I=i.csv L=l.csv", SLUICE_CONSTRAINT_ENDPOINT,
                        "@l.csv:3: column dst: there is no I with the key \"008\" (edge type L)");
    load_fixture_text(f, "m.csv", "a,b\nx,1\n");
    load_fixture_text(f, "x.csv", "from.b,to,from.a\n1,a,x\n2,a,x\n");
    load_fixture_refuse(f, "P=p.csv M=m.csv X=x.csv", SLUICE_CONSTRAINT_ENDPOINT,
                        "@x.csv:3: columns from.a, from.b: there is no M with the key \"x\", \"2\" (edge type X)");
}

static void an_edge_of_a_keyed_type_is_there_once(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    load_fixture_load(f, "P=p.csv");
    load_fixture_text(f, "k.csv", "from,to,w\na,b,1\nb,a,1\na,b,2\n");
    load_fixture_refuse(f, "K=k.csv", SLUICE_KEY_CONFLICT,
                        "@k.csv:4: columns from, to: the edge \"a\", \"b\" is already on line 2");
    load_fixture_text(f, "k.csv", "from,to\na,b\nb,a\n");
    load_fixture_load(f, "K=k.csv");
    load_fixture_refuse(f, "K=k.csv", SLUICE_KEY_CONFLICT,
                        "@k.csv:2: columns from, to: the edge \"a\", \"b\" exists already in type K");
    /* with a property in its key, ends may meet again; without a key they always may */
    load_fixture_text(f, "i.csv", "id\n1\n2\n");
    load_fixture_text(f, "e.csv", "from,to,k\n1,2,x\n1,2,y\n2,1,x\n");
    load_fixture_load(f, "I=i.csv E=e.csv");
    load_fixture_text(f, "e2.csv", "k,from,to\ny,2,1\ny,1,2\n");
    load_fixture_refuse(f, "E=e2.csv", SLUICE_KEY_CONFLICT,
                        "@e2.csv:3: columns from, to, k: the edge \"1\", \"2\", \"y\" exists already in type E");
    load_fixture_text(f, "l.csv", "from,to\na,1\na,1\n");
    load_fixture_load(f, "L=l.csv");
    load_fixture_load(f, "L=l.csv");
    load_fixture_expect(f, "L", "[a][1][-]\n[a][1][-]\n[a][1][-]\n[a][1][-]\n");
}

static void unique_tuples_collide_unless_they_hold_a_null(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "i.csv", "id,mail,a,b\n1,x,1,1\n2,,1,\n3,,1,\n4,\"\",1,2\n");
    load_fixture_load(f, "I=i.csv");
    load_fixture_text(f, "j.csv", "id,mail\n5,y\n6,x\n");
    load_fixture_refuse(f, "I=j.csv", SLUICE_CONSTRAINT_UNIQUE,
                        "@j.csv:3: column mail: the unique value \"x\" exists already in type I");
    load_fixture_text(f, "j.csv", "id,mail,b,a\n5,,3,4\n6,,4,4\n7,,3,4\n");
    load_fixture_refuse(f, "I=j.csv", SLUICE_CONSTRAINT_UNIQUE,
                        "@j.csv:4: columns a, b: the unique value \"4\", \"3\" is already on line 2");
    load_fixture_text(f, "j.csv", "id,mail\n5,\"\"\n");
    load_fixture_refuse(f, "I=j.csv", SLUICE_CONSTRAINT_UNIQUE,
                        "@j.csv:2: column mail: the unique value \"\" exists already in type I");
}

static void a_node_has_no_more_edges_than_its_type_allows(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "i.csv", "id\n1\n2\n3\n4\n5\n");
    load_fixture_text(f, "c.csv", "from,to\n1,2\n1,3\n1,4\n");
    load_fixture_refuse(f, "I=i.csv C=c.csv", SLUICE_CONSTRAINT_CARDINALITY,
                        "@c.csv:4: column from: I \"1\" may have at most 2 edges of type C going out");
    load_fixture_text(f, "c.csv", "from,to\n1,2\n2,3\n");
    load_fixture_load(f, "I=i.csv C=c.csv");
    load_fixture_text(f, "d.csv", "from,to\n1,4\n1,5\n");
    load_fixture_refuse(f, "C=d.csv", SLUICE_CONSTRAINT_CARDINALITY,
                        "@d.csv:3: column from: I \"1\" may have at most 2 edges of type C going out");
    load_fixture_text(f, "d.csv", "from,to\n4,5\n5,3\n");
    load_fixture_refuse(f, "C=d.csv", SLUICE_CONSTRAINT_CARDINALITY,
                        "@d.csv:3: column to: I \"3\" may have at most 1 edges of type C coming in");
    load_fixture_text(f, "d.csv", "from,to\n1,4\n");
    load_fixture_load(f, "C=d.csv");
}

static void the_least_fault_over_all_rules_is_reported(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id\na\nb\na\nx,y\n");
    load_fixture_text(f, "k.csv", "from,to\na,q\n");
    load_fixture_text(f, "h.csv", "id,nope\n");
    /* duplicate before ragged row; then the other argument order */
    load_fixture_refuse(f, "P=p.csv K=k.csv", SLUICE_KEY_CONFLICT,
                        "@p.csv:4: column id: the key \"a\" is already on line 2");
    load_fixture_refuse(f, "K=k.csv P=p.csv", SLUICE_CONSTRAINT_ENDPOINT,
                        "@k.csv:2: column to: there is no P with the key \"q\" (edge type K)");
    load_fixture_refuse(f, "P=p.csv P=h.csv", SLUICE_KEY_CONFLICT,
                        "@p.csv:4: column id: the key \"a\" is already on line 2");
    load_fixture_refuse(f, "P=h.csv P=p.csv", SLUICE_INPUT_SYNTAX,
                        "@h.csv:1: column \"nope\": type P has no such property");
    /* columns of one record */
    load_fixture_text(f, "k.csv", "to,from\nq,r\n");
    load_fixture_text(f, "p.csv", "id\na\n");
    load_fixture_refuse(f, "P=p.csv K=k.csv", SLUICE_CONSTRAINT_ENDPOINT,
                        "@k.csv:2: column to: there is no P with the key \"q\" (edge type K)");
}

static void an_edge_that_lost_its_node_to_a_bad_row_says_so(void **state)
{
    load_fixture *f = *state;
    co_load_result result;
    sluice_error err;
    load_fixture_text(f, "k.csv", "from,to\na,b\n");
    load_fixture_text(f, "p.csv", "id\na\nb,c\n");
    ASSERT_FAILS(SLUICE_CONSTRAINT_ENDPOINT, load_fixture_try(f, f->graph, "K=k.csv P=p.csv", NULL, &result, &err));
    assert_non_null(strstr(err.hint, "p.csv:3 is not right either: there are 2 values for 1 column"));
}

static void a_quote_that_is_never_closed_names_where_it_opened(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id,name\na,x\nb,\"y\n1,2\n3,4\n");
    load_fixture_refuse(f, "P=p.csv", SLUICE_INPUT_SYNTAX, "@p.csv:3: a quote opens here and is never closed");
    load_fixture_text(f, "p.csv", "id,name\na,x\n\"b\nc\",\"y\n1,2\n");
    load_fixture_refuse(f, "P=p.csv", SLUICE_INPUT_SYNTAX, "@p.csv:4: a quote opens here and is never closed");
    load_fixture_text(f, "p.csv", "id,name\na\nb,\"y\n");
    load_fixture_refuse(f, "P=p.csv", SLUICE_INPUT_SYNTAX, "@p.csv:2: there is 1 value for 2 columns");
}

static void the_first_header_may_serve_all_files_of_a_type(void **state)
{
    load_fixture *f = *state;
    co_load_options options = {.dialect = {.header_first_only = true}, .max_errors = UINT64_MAX};
    co_load_result result;
    sluice_error err;
    load_fixture_text(f, "p1.csv", "name,id\n1,a\n");
    load_fixture_text(f, "k.csv", "to,from\nb,a\n");
    load_fixture_text(f, "p2.csv", "2,b\n3,c\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "P=p1.csv K=k.csv P=p2.csv", &options, &result, &err));
    co_load_result_free(&result);
    load_fixture_expect(f, "P", "[a][1]\n[b][2]\n[c][3]\n");
    load_fixture_expect(f, "K", "[a][b][-]\n");
    load_fixture_text(f, "p3.csv", "4\n");
    load_fixture_text(f, "p4.csv", "name,id\n1,d\n");
    ASSERT_FAILS(SLUICE_INPUT_SYNTAX, load_fixture_try(f, f->graph, "P=p4.csv P=p3.csv", &options, &result, &err));
    assert_non_null(strstr(err.text, "p3.csv:1: there is 1 value for 2 columns"));
}

static void the_request_itself_is_judged_before_any_work(void **state)
{
    load_fixture *f = *state;
    co_load_result result;
    sluice_error err;
    load_fixture_text(f, "p.csv", "id\na\n");
    load_fixture_text(f, "p.parquet", "PAR1");
    ASSERT_FAILS(SLUICE_USAGE, load_fixture_try(f, f->graph, "P=missing.csv", NULL, &result, &err));
    ASSERT_FAILS(SLUICE_USAGE, load_fixture_try(f, f->graph, "P=p.parquet", NULL, &result, &err));
    ASSERT_FAILS(SLUICE_USAGE, load_fixture_try(f, f->graph, "Q=p.csv", NULL, &result, &err));
    assert_non_null(strstr(err.text, "Q"));
    co_load_options options = {.branch = "nowhere"};
    ASSERT_FAILS(SLUICE_NOT_FOUND, load_fixture_try(f, f->graph, "P=p.csv", &options, &result, &err));
    options = (co_load_options){.dialect = {.no_header = true, .columns = "id,nope"}};
    ASSERT_FAILS(SLUICE_USAGE, load_fixture_try(f, f->graph, "P=p.csv", &options, &result, &err));
    assert_string_equal(err.text, "--columns: column \"nope\": type P has no such property");
}

static void the_same_operation_gets_the_first_receipt(void **state)
{
    load_fixture *f = *state;
    co_load_options options = {.operation = pf_id_new(), .max_errors = UINT64_MAX};
    co_load_result first, again;
    sluice_error err;
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    ASSERT_OK(load_fixture_try(f, f->graph, "P=p.csv", &options, &first, &err));
    ASSERT_OK(load_fixture_try(f, f->graph, "P=p.csv", &options, &again, &err));
    assert_true(again.receipt.repeated);
    assert_false(first.receipt.repeated);
    assert_true(pf_id_equal(&first.receipt.commit, &again.receipt.commit));
    assert_int_equal(again.receipt.generation, first.receipt.generation);
    assert_int_equal(again.type_count, 1);
    assert_int_equal(again.types[0].rows, 2);
    co_load_result_free(&first);
    co_load_result_free(&again);
    /* other bytes, another option */
    load_fixture_text(f, "p.csv", "id\na\nc\n");
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, load_fixture_try(f, f->graph, "P=p.csv", &options, &again, &err));
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    options.ignore_unknown = true;
    ASSERT_FAILS(SLUICE_IDEMPOTENCY_CONFLICT, load_fixture_try(f, f->graph, "P=p.csv", &options, &again, &err));
    load_fixture_expect(f, "P", "[a][-]\n[b][-]\n");
}

static void loading_again_what_is_there_says_which_commit_did_it(void **state)
{
    load_fixture *f = *state;
    co_load_result result;
    sluice_error err;
    load_fixture_text(f, "p.csv", "id\na\n");
    load_fixture_load(f, "P=p.csv");
    ASSERT_FAILS(SLUICE_KEY_CONFLICT, load_fixture_try(f, f->graph, "P=p.csv", NULL, &result, &err));
    assert_non_null(strstr(err.hint, "the same request was committed as "));
}

static void a_failed_load_leaves_nothing_behind(void **state)
{
    load_fixture *f = *state;
    load_fixture_text(f, "p.csv", "id\na\nb\na\n");
    load_fixture_refuse(f, "P=p.csv", SLUICE_KEY_CONFLICT, "@p.csv:4: column id: the key \"a\" is already on line 2");
    assert_int_equal(load_fixture_files(f, "tables"), 0);
    assert_int_equal(load_fixture_files(f, "attempts"), 0);
    load_fixture_text(f, "p.csv", "id\na\nb\n");
    load_fixture_load(f, "P=p.csv");
    load_fixture_expect(f, "P", "[a][-]\n[b][-]\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, clear)
    const struct CMUnitTest tests[] = {
        CASE(nodes_and_edges_come_in_one_commit_in_the_order_of_files),
        CASE(the_result_counts_each_type_of_the_command),
        CASE(a_file_without_rows_makes_no_commit),
        CASE(a_dry_run_checks_everything_and_changes_nothing),
        CASE(a_repeated_key_is_refused_at_its_later_record),
        CASE(a_key_of_the_base_is_refused),
        CASE(a_missing_end_is_named_as_it_stands_in_the_file),
        CASE(an_edge_of_a_keyed_type_is_there_once),
        CASE(unique_tuples_collide_unless_they_hold_a_null),
        CASE(a_node_has_no_more_edges_than_its_type_allows),
        CASE(the_least_fault_over_all_rules_is_reported),
        CASE(an_edge_that_lost_its_node_to_a_bad_row_says_so),
        CASE(a_quote_that_is_never_closed_names_where_it_opened),
        CASE(the_first_header_may_serve_all_files_of_a_type),
        CASE(the_request_itself_is_judged_before_any_work),
        CASE(the_same_operation_gets_the_first_receipt),
        CASE(loading_again_what_is_there_says_which_commit_did_it),
        CASE(a_failed_load_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
