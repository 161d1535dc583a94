/*
 * A file of mutations of any bytes, planned on a small graph as a dry run: it is planned, or refused for a reason.
 */
#include "coord/mutate.h"
#include "platform/sim.h"
#include "support.h"

static const char text_of_schema[] =
    "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"a\":\"int32?\",\"u\":\"string?\",\"d\":"
    "\"date?\","
    "\"x\":\"bytes?\",\"f\":\"float32?\"},\"unique\":[[\"u\"]],\"checks\":{\"a\":{\"max\":9}}},"
    "\"Q\":{\"properties\":{\"n\":\"uint64?\"}},\"K\":{\"key\":[\"a\",\"b\"],\"properties\":{\"a\":\"float64\",\"b\":"
    "\"string\"}}},"
    "\"edges\":{\"E\":{\"from\":\"P\",\"to\":\"K\",\"properties\":{\"k\":\"bool\"},\"key\":[\"k\"],\"cardinality\":{"
    "\"out\":"
    "\"0..1\"}},\"R\":{\"from\":\"K\",\"to\":\"Q\",\"properties\":{}}}}";
static const char text_of_base[] = "{\"op\":\"insert\",\"node\":\"P\",\"key\":1,\"set\":{\"a\":1,\"u\":\"x\"}}\n"
                                   "{\"op\":\"insert\",\"node\":\"P\",\"key\":2}\n"
                                   "{\"op\":\"insert\",\"node\":\"K\",\"key\":[1.5,\"y\"]}\n"
                                   "{\"op\":\"insert\",\"edge\":\"E\",\"from\":1,\"to\":[1.5,\"y\"],\"key\":true}\n";

static st_graph *graph_of_all(wk_executor *executor)
{
    static st_graph *graph;
    const co_mutate_options options = {.path = "m"};
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    co_mutate_result result;
    pf_id id;
    if (graph)
        return graph;
    pf_sim_world_install(1);
    fuzz_demand(pf_sim_disk_new(1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "g", &volume, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_parse(text_of_schema, sizeof text_of_schema - 1, "schema", &schema, NULL) == SLUICE_OK);
    fuzz_demand(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, NULL) == SLUICE_OK);
    pf_volume_close(volume);
    st_schema_free(schema);
    fuzz_demand(pf_sim_actor(disk, "g", &volume, NULL) == SLUICE_OK);
    fuzz_demand(st_graph_open_on(volume, PF_WRITE, &graph, NULL) == SLUICE_OK);
    fuzz_demand(co_mutate_text(graph, &options, executor, text_of_base, sizeof text_of_base - 1, &result, NULL) ==
                SLUICE_OK);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wk_executor executor = {.workers = 1, .epoch = pf_id_new()};
    const co_mutate_options options = {.path = "m", .dry_run = true};
    co_mutate_result result;
    sluice_error err = {0};
    st_graph *graph = graph_of_all(&executor);
    sluice_status status = co_mutate_text(graph, &options, &executor, (const char *)data, size, &result, &err);
    fuzz_demand(status != SLUICE_INTERNAL && status != SLUICE_CORRUPT && status != SLUICE_IO);
    fuzz_demand(status == SLUICE_OK || err.text[0]);
    return 0;
}
