/* See small_graph.h. */
#include "small_graph.h"

#include "store/state/state.h"

static const char text[] =
    "{\"nodes\":{\"Person\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\"}}},"
    "\"edges\":{\"KNOWS\":{\"from\":\"Person\",\"to\":\"Person\"}}}";

st_schema *small_schema(void)
{
    sluice_error err = {0};
    st_schema *schema = NULL;
    ASSERT_OK(st_schema_parse(text, sizeof(text) - 1, "test", &schema, &err));
    return schema;
}

pf_volume *small_actor(pf_sim_disk *disk)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    return volume;
}

sluice_status small_init(pf_volume *volume, pf_id *ret_id, sluice_error *err)
{
    st_schema *schema = small_schema();
    sluice_status status = st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, ret_id, err);
    st_schema_free(schema);
    return status;
}

pf_sim_disk *small_disk(uint64_t seed, pf_id *ret_id)
{
    sluice_error err = {0};
    pf_sim_disk *disk = NULL;
    ASSERT_OK(pf_sim_disk_new(seed, &disk, &err));
    pf_volume *volume = small_actor(disk);
    ASSERT_OK(small_init(volume, ret_id, &err));
    pf_volume_close(volume);
    return disk;
}

st_graph *small_open(pf_sim_disk *disk, pf_access access)
{
    sluice_error err = {0};
    st_graph *graph = NULL;
    ASSERT_OK(st_graph_open_on(small_actor(disk), access, &graph, &err));
    return graph;
}

void small_expect_empty(st_graph *graph)
{
    sluice_error err = {0};
    uint64_t incarnation;
    st_log *log;
    st_view *view = NULL;
    st_control control;

    ASSERT_OK(st_ref_read(graph, "main", &incarnation, &err));
    assert_int_equal(incarnation, ST_MAIN_INCARNATION);
    ASSERT_OK(st_graph_log(graph, incarnation, &log, &err));
    assert_int_equal(st_log_end(log).number, 1);
    assert_int_equal(st_log_end(log).acknowledged, 1);
    ASSERT_OK(st_view_load(graph, log, true, &view, &err));
    assert_int_equal(view->schema->type_count, 2);
    assert_int_equal(view->schema->types[0].table, ST_FIRST_TABLE);
    for (uint32_t i = 0; i < view->table_count; i++)
        assert_int_equal(view->tables[i].rows, 0);
    st_view_free(view);
    ASSERT_OK(st_control_read(graph, &control, &err));
    assert_int_equal(control.next_table, ST_FIRST_TABLE + 2);
    assert_int_equal(control.next_property, 3);
    assert_int_equal(control.next_incarnation, 2);
    assert_int_equal(control.next_row_block, 2);
    assert_int_equal(control.voided_count + control.receipt_count, 0);
    st_control_free(&control);
}
