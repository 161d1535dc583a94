#include "tests/support/graph_fixture.h"
#include "platform/check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_text[] =
    "{\"nodes\": {\"Person\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"name\": \"string?\", \"age\": "
    "{\"type\": \"int32?\", \"default\": 7}}},"
    " \"Note\": {\"properties\": {\"text\": \"string\"}}},"
    " \"edges\": {\"KNOWS\": {\"from\": \"Person\", \"to\": \"Person\", \"properties\": {\"since\": \"date?\"}, "
    "\"key\": []},"
    " \"ABOUT\": {\"from\": \"Note\", \"to\": \"Person\"}}}";

static void open_parts(graph_fixture *fixture)
{
    sluice_error err = {0};
    fixture->graph = graph_fixture_open(fixture, PF_WRITE);
    ASSERT_OK(st_graph_log(fixture->graph, ST_MAIN_INCARNATION, &fixture->log, &err));
    ASSERT_OK(lk_lockfile_open(st_graph_volume(fixture->graph), "branches/1/locks", &fixture->locks, &err));
}

static void close_parts(graph_fixture *fixture)
{
    lk_lockfile_close(fixture->locks);
    st_graph_close(fixture->graph);
}

st_graph *graph_fixture_open(graph_fixture *fixture, pf_access access)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    ASSERT_OK(pf_sim_actor(fixture->disk, "g", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, access, &graph, &err));
    return graph;
}

void graph_fixture_make(graph_fixture *fixture, uint64_t seed)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    pf_id id;
    *fixture = (graph_fixture){0};
    pf_sim_world_install(seed);
    ASSERT_OK(pf_sim_disk_new(seed, &fixture->disk, &err));
    ASSERT_OK(pf_sim_actor(fixture->disk, "g", &volume, &err));
    ASSERT_OK(st_schema_parse(schema_text, sizeof(schema_text) - 1, "test", &schema, &err));
    ASSERT_OK(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    ASSERT_OK(st_schema_identity(schema, &fixture->schema_identity, &err));
    st_schema_free(schema);
    open_parts(fixture);
}

void graph_fixture_free(graph_fixture *fixture)
{
    close_parts(fixture);
    pf_sim_disk_free(fixture->disk);
    if (!fixture->is_clone)
        pf_sim_world_remove();
}

void graph_fixture_clone(graph_fixture *fixture, uint64_t seed, graph_fixture *ret_clone)
{
    sluice_error err = {0};
    *ret_clone =
        (graph_fixture){.counter = fixture->counter, .schema_identity = fixture->schema_identity, .is_clone = true};
    ASSERT_OK(pf_sim_disk_clone(fixture->disk, seed, &ret_clone->disk, &err));
    open_parts(ret_clone);
}

void graph_fixture_reopen(graph_fixture *fixture)
{
    close_parts(fixture);
    open_parts(fixture);
}

void fixture_name(graph_fixture *fixture, const char *suffix, char *ret_name, size_t room)
{
    (void)snprintf(ret_name, room, "t%llu%s", (unsigned long long)fixture->counter++, suffix);
}

st_view *fixture_head(graph_fixture *fixture)
{
    sluice_error err = {0};
    st_view *view = NULL;
    ASSERT_OK(st_view_load(fixture->graph, fixture->log, true, &view, &err));
    return view;
}

void fixture_delta(graph_fixture *fixture, st_delta *ret_delta)
{
    *ret_delta = (st_delta){.schema_identity = fixture->schema_identity};
    ret_delta->commit.id = pf_id_new();
    ret_delta->commit.operation = pf_id_new();
    ret_delta->commit.minted_us = pf_wall_us();
    memcpy(ret_delta->commit.kind, "test", 5);
    memcpy(ret_delta->commit.actor, "tester", 7);
}

typedef struct opening_context {
    graph_fixture *fixture;
    const st_view *head;
} opening_context;

static sluice_status encode_opening(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    opening_context *opening = context;
    return st_opening_build(opening->fixture->graph, opening->fixture->log, opening->head, manifest, attachments, err);
}

sluice_status fixture_publish(graph_fixture *fixture, st_delta *const *deltas, uint32_t count, sluice_error *ret_error)
{
    sluice_error err = {0};
    pf_buffer manifest = {0}, attachments = {0};
    st_append_outcome outcome;
    pf_sha256 digest;
    bool needs = false;
    uint64_t block = 0;
    ASSERT_OK(lk_take(fixture->locks, LK_BYTE_PUBLISH, PF_LOCK_EXCLUSIVE, pf_deadline_in_ms(1000), &err));
    st_view *head = fixture_head(fixture);
    st_log_position end = st_log_end(fixture->log);
    if (end.number > end.acknowledged)
        ASSERT_OK(st_log_settle(fixture->log, &err));
    ASSERT_OK(st_generation_needs_block(head, deltas, count, &needs, &err));
    if (needs)
        ASSERT_OK(st_control_take_row_block(fixture->graph, pf_deadline_in_ms(1000), &block, &err));
    sluice_status status =
        st_generation_build(fixture->graph, head, deltas, count, block, &manifest, &attachments, ret_error);
    if (status == SLUICE_OK) {
        opening_context context = {fixture, head};
        st_opening_source opening = {&context, encode_opening};
        status = st_log_append(fixture->log, &manifest, &attachments, &opening, &outcome, &digest, ret_error);
    }
    lk_release(fixture->locks, LK_BYTE_PUBLISH);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    st_view_free(head);
    return status;
}

st_edit_add fixture_fake_add(graph_fixture *fixture, uint64_t rows)
{
    st_edit_add add = {.fragment = {.rows = rows, .bytes = rows * 100}};
    fixture_name(fixture, ".arrow", add.fragment.name, sizeof(add.fragment.name));
    add.fragment.footer = pf_sha256_of(add.fragment.name, strlen(add.fragment.name));
    return add;
}

void fixture_add(graph_fixture *fixture, st_delta *delta, uint64_t table, const st_edit_add *add)
{
    sluice_error err = {0};
    char stem[32];
    st_edit edit = {.table = table, .adds = malloc(sizeof(*add)), .add_count = 1};
    assert_non_null(edit.adds);
    edit.adds[0] = *add;
    fixture_name(fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture->graph), delta, &edit, stem, &err));
}

uint64_t fixture_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
