/*
 * A graph that is damaged, opened for what is left of it: for salvage alone.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include "store/format/document.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_MAX (64u * 1024u * 1024u)

sluice_status st_graph_open_damaged(const char *path, st_graph **ret_graph, sluice_error *err)
{
    pf_volume *volume = NULL;
    st_graph_info info = {0};
    PF_TRY(pf_volume_open(path, PF_READ, &volume, err));
    st_graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        pf_volume_close(volume);
        return pf_fail_memory(err);
    }
    graph->volume = volume;
    graph->access = PF_READ;
    graph->damaged = true;
    if (st_info_read(volume, &info, NULL) == SLUICE_OK)
        graph->id = info.id;
    *ret_graph = graph;
    return SLUICE_OK;
}

uint64_t st_graph_damage_seen(const st_graph *graph)
{
    return graph->seen;
}

bool st_graph_has_substitute(const st_graph *graph)
{
    return graph->substitute;
}

typedef struct schemas {
    pf_volume *volume;
    st_schema *fullest;
    uint64_t size;  /* types and properties */
    uint32_t count; /* that are whole */
} schemas;

static uint64_t size_of(const st_schema *schema)
{
    uint64_t size = schema->type_count;
    for (uint32_t i = 0; i < schema->type_count; i++)
        size += schema->types[i].property_count;
    return size;
}

static sluice_status look_at_schema(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    schemas *found = context;
    char path[320];
    pf_buffer bytes = {0};
    st_schema *schema = NULL;
    (void)err;
    int length = snprintf(path, sizeof(path), "schema/%s", name);
    if (kind != PF_KIND_FILE || length < 0 || (size_t)length >= sizeof(path))
        return SLUICE_OK;
    if (st_document_read(found->volume, path, SCHEMA_MAX, &bytes, NULL) == SLUICE_OK &&
        st_schema_decode(bytes.data, bytes.length, &schema, NULL) == SLUICE_OK) {
        found->count++;
        if (!found->fullest || size_of(schema) > found->size) {
            st_schema_free(found->fullest);
            found->fullest = schema;
            found->size = size_of(schema);
            schema = NULL;
        }
    }
    st_schema_free(schema);
    pf_buffer_free(&bytes);
    return SLUICE_OK;
}

void st_graph_fullest_schema(st_graph *graph, st_schema **ret_schema, uint32_t *ret_count)
{
    schemas found = {.volume = graph->volume};
    (void)pf_list(graph->volume, "schema", look_at_schema, &found, NULL); /* what cannot be read is not there */
    *ret_schema = found.fullest;
    *ret_count = found.count;
}

sluice_status st_graph_offer_schema(st_graph *graph, const st_schema *schema, sluice_error *err)
{
    graph->offered.length = 0;
    return st_schema_encode(schema, &graph->offered, err);
}

sluice_status st_graph_fetch_schema(st_graph *graph, const pf_sha256 *identity, st_schema **ret_schema,
                                    sluice_error *err)
{
    st_schema *other = NULL;
    uint32_t count = 0;
    sluice_status status = st_schema_fetch(graph->volume, identity, ret_schema, err);
    if (status == SLUICE_OK || !graph->damaged)
        return status;
    st_graph_fullest_schema(graph, &other, &count);
    if (!other && (graph->offered.length == 0 ||
                   st_schema_decode(graph->offered.data, graph->offered.length, &other, NULL) != SLUICE_OK))
        return status;
    graph->substitute = true;
    *ret_schema = other;
    return SLUICE_OK;
}
