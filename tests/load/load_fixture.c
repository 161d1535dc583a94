#include "load_fixture.h"

#include "store/read/snapshot.h"
#include "tests/support/folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

st_graph *load_fixture_open(load_fixture *fixture)
{
    sluice_error err;
    pf_volume *volume;
    st_graph *graph;

    ASSERT_OK(pf_sim_actor(fixture->disk, "g", &volume, &err));
    ASSERT_OK(st_graph_open_on(volume, PF_WRITE, &graph, &err));
    return graph;
}

void load_fixture_make(load_fixture *fixture, const char *schema)
{
    sluice_error err;
    pf_volume *volume;
    st_schema *parsed;
    pf_id id;

    *fixture = (load_fixture){0};
    pf_sim_world_install(42);
    ASSERT_OK(pf_sim_disk_new(42, &fixture->disk, &err));
    ASSERT_OK(pf_sim_actor(fixture->disk, "g", &volume, &err));
    ASSERT_OK(st_schema_parse(schema, strlen(schema), "schema", &parsed, &err));
    ASSERT_OK(st_graph_init_on(volume, parsed, ST_MODE_OPTIMISTIC, &id, &err));
    pf_volume_close(volume);
    st_schema_free(parsed);
    fixture->graph = load_fixture_open(fixture);
    fixture->folder = test_folder_make();
}

void load_fixture_free(load_fixture *fixture)
{
    st_graph_close(fixture->graph);
    pf_sim_disk_free(fixture->disk);
    pf_sim_world_remove();
    test_folder_remove(fixture->folder);
}

void load_fixture_write(const load_fixture *fixture, const char *name, const void *bytes, size_t length)
{
    char *path = test_path(fixture->folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    free(path);
}

void load_fixture_text(const load_fixture *fixture, const char *name, const char *text)
{
    load_fixture_write(fixture, name, text, strlen(text));
}

sluice_status load_fixture_try(load_fixture *fixture, st_graph *graph, const char *inputs,
                               const co_load_options *options, co_load_result *ret_result, sluice_error *err)
{
    co_load_options all = options ? *options : (co_load_options){.max_errors = UINT64_MAX};
    co_load_input list[16];
    char *words = strdup(inputs), *paths[16], *rest = words;
    uint32_t count = 0;

    assert_non_null(words);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        assert_true(count < 16);
        *equals = '\0';
        paths[count] = test_path(fixture->folder, equals + 1);
        list[count] = (co_load_input){.type = word, .path = paths[count]};
        count++;
    }
    all.inputs = list;
    all.input_count = count;
    *err = (sluice_error){0};
    sluice_status status = co_load_inline(graph, &all, ret_result, err);
    for (uint32_t i = 0; i < count; i++)
        free(paths[i]);
    free(words);
    return status;
}

uint64_t load_fixture_load(load_fixture *fixture, const char *inputs)
{
    co_load_result result;
    sluice_error err;

    ASSERT_OK(load_fixture_try(fixture, fixture->graph, inputs, NULL, &result, &err));
    co_load_result_free(&result);
    return result.receipt.committed ? result.receipt.generation : 0;
}

/* `text` with the folder put in for each "@". */
static char *with_folder(const load_fixture *fixture, const char *text)
{
    char *out = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&out, &length);

    assert_non_null(stream);
    for (; *text; text++) {
        if (*text == '@')
            fprintf(stream, "%s/", fixture->folder);
        else
            fputc(*text, stream);
    }
    fclose(stream);
    return out;
}

void load_fixture_refuse(load_fixture *fixture, const char *inputs, sluice_status code, const char *text)
{
    co_load_result result;
    sluice_error err;
    uint64_t before = load_fixture_generation(fixture);
    char *want = with_folder(fixture, text);

    ASSERT_FAILS(code, load_fixture_try(fixture, fixture->graph, inputs, NULL, &result, &err));
    assert_string_equal(err.text, want);
    assert_int_equal(err.committed, SLUICE_FALSE);
    assert_int_equal(load_fixture_generation(fixture), before);
    free(want);
}

static st_snapshot *open_head(load_fixture *fixture, st_graph **ret_graph)
{
    sluice_error err;
    st_snapshot *snapshot;

    *ret_graph = load_fixture_open(fixture);
    ASSERT_OK(st_snapshot_open(*ret_graph, "main", NULL, &snapshot, &err));
    return snapshot;
}

uint64_t load_fixture_generation(load_fixture *fixture)
{
    st_graph *graph;
    st_snapshot *snapshot = open_head(fixture, &graph);
    uint64_t generation = st_snapshot_view(snapshot)->generation;

    st_snapshot_close(snapshot);
    st_graph_close(graph);
    return generation;
}

static void print_value(FILE *out, const st_column *column, uint64_t row, pf_buffer *buffer)
{
    sluice_error err;

    if (st_column_is_null(column, row)) {
        fprintf(out, "[-]");
        return;
    }
    buffer->length = 0;
    ASSERT_OK(st_value_text(column, row, buffer, &err));
    fprintf(out, "[%.*s]", (int)buffer->length, (const char *)buffer->data);
}

char *load_fixture_rows(load_fixture *fixture, const char *type_name)
{
    sluice_error err;
    st_graph *graph;
    st_snapshot *snapshot = open_head(fixture, &graph);
    const st_type_def *type;
    st_scan *scan;
    const st_batch *batch;
    pf_buffer buffer = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    ASSERT_OK(st_snapshot_type(snapshot, type_name, &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (batch == NULL)
            break;
        for (uint64_t row = 0; row < batch->rows; row++) {
            for (uint32_t i = 0; i < batch->column_count; i++)
                print_value(out, &batch->columns[i], row, &buffer);
            fputc('\n', out);
        }
    }
    st_scan_close(scan);
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    pf_buffer_free(&buffer);
    fclose(out);
    return text;
}

void load_fixture_expect(load_fixture *fixture, const char *type, const char *rows)
{
    char *got = load_fixture_rows(fixture, type);
    assert_string_equal(got, rows);
    free(got);
}

typedef struct counting {
    pf_volume *volume;
    const char *folder;
    uint64_t files;
} counting;

static sluice_status count_entry(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    counting *c = context;
    char path[400];

    if (kind != PF_KIND_FOLDER) {
        c->files++;
        return SLUICE_OK;
    }
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    counting inner = {.volume = c->volume, .folder = path};
    PF_TRY(pf_list(c->volume, path, count_entry, &inner, err));
    c->files += inner.files;
    return SLUICE_OK;
}

uint64_t load_fixture_files(load_fixture *fixture, const char *folder)
{
    sluice_error err;
    counting c = {.volume = st_graph_volume(fixture->graph), .folder = folder};

    ASSERT_OK(pf_list(c.volume, folder, count_entry, &c, &err));
    return c.files;
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context, (void)err;
    fail_msg("verify: %s: %s", object, problem);
    return SLUICE_OK;
}

void load_fixture_expect_clean(load_fixture *fixture)
{
    sluice_error err;
    uint64_t checked;
    st_graph *graph = load_fixture_open(fixture);

    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    st_graph_close(graph);
    assert_int_equal(load_fixture_files(fixture, "attempts"), 0);
}

void load_fixture_copy(const load_fixture *base, uint64_t seed, load_fixture *ret_copy)
{
    sluice_error err;
    *ret_copy = (load_fixture){.folder = base->folder};
    ASSERT_OK(pf_sim_disk_clone(base->disk, seed, &ret_copy->disk, &err));
    ret_copy->graph = load_fixture_open(ret_copy);
}

void load_fixture_copy_free(load_fixture *copy)
{
    st_graph_close(copy->graph);
    pf_sim_disk_free(copy->disk);
}

void load_fixture_run_rival(void *context)
{
    load_rival *rival = context;
    co_load_result result;
    sluice_error err;
    st_graph *graph = load_fixture_open(rival->f);

    rival->ran = true;
    rival->status = load_fixture_try(rival->f, graph, rival->inputs, rival->options, &result, &err);
    if (rival->status == SLUICE_OK) {
        rival->generation = result.receipt.generation;
        co_load_result_free(&result);
    }
    st_graph_close(graph);
}
