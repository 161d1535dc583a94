/* See lib_fixture.h. */
#include "lib_fixture.h"
#include "tests/support/folder.h"
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\":{\"Person\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\",\"age\":\"int32?\"}},"
    "\"Note\":{\"properties\":{\"text\":\"string?\",\"weight\":\"float64?\",\"done\":\"bool?\",\"serial\":\"uint64?\"}}"
    ","
    "\"Place\":{\"key\":[\"country\",\"number\"],\"properties\":{\"country\":\"string\",\"number\":\"int64\"}}},"
    "\"edges\":{\"KNOWS\":{\"from\":\"Person\",\"to\":\"Person\",\"properties\":{\"since\":\"date?\"},\"key\":[]}}}";

int lib_fixture_make(void **state)
{
    sluice_error err = {0};
    lib_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->folder = test_folder_make();
    fixture->path = test_path(fixture->folder, "g");
    ASSERT_OK(sluice_create(fixture->path, schema, sizeof schema - 1, SLUICE_OPTIMISTIC, &fixture->graph, &err));
    *state = fixture;
    return 0;
}

int lib_fixture_free(void **state)
{
    lib_fixture *fixture = *state;
    sluice_close(fixture->graph);
    free(fixture->path);
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

sluice_receipt lib_commit(sluice_graph *graph, const char *lines)
{
    sluice_error err = {0};
    sluice_batch *batch = NULL;
    sluice_receipt receipt;
    ASSERT_OK(sluice_batch_new(&batch, &err));
    ASSERT_OK(sluice_batch_json(batch, lines, strlen(lines), &err));
    ASSERT_OK(sluice_commit(graph, batch, NULL, &receipt, &err));
    sluice_batch_free(batch);
    return receipt;
}

uint64_t lib_count(sluice_graph *graph, const char *type)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    uint64_t rows = 0;
    ASSERT_OK(sluice_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_count(snapshot, type, &rows, &err));
    sluice_snapshot_close(snapshot);
    return rows;
}

char *lib_get(sluice_graph *graph, const char *type, const char *key)
{
    sluice_error err = {0};
    sluice_snapshot *snapshot = NULL;
    char *json = NULL;
    ASSERT_OK(sluice_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    ASSERT_OK(sluice_get(snapshot, type, key, &json, NULL, &err));
    sluice_snapshot_close(snapshot);
    return json;
}
