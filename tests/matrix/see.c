/* What a reader says of a graph of the recovery matrix (acts.h). */
#include "acts.h"

#include "coord/recover.h"
#include "store/read/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct eye {
    FILE *out;
    st_graph *graph;
    pf_buffer buffer;
} eye;

static void see_batch(eye *e, const st_batch *batch)
{
    sluice_error err = {0};
    for (uint64_t row = 0; row < batch->rows; row++) {
        for (uint32_t i = 0; i < batch->column_count; i++) {
            e->buffer.length = 0;
            if (!st_column_is_null(&batch->columns[i], row))
                ASSERT_OK(st_value_text(&batch->columns[i], row, &e->buffer, &err));
            (void)fprintf(e->out, "[%.*s]", (int)e->buffer.length,
                          e->buffer.length ? (const char *)e->buffer.data : "");
        }
        (void)fputc('\n', e->out);
    }
}

static void see_type(eye *e, st_snapshot *snapshot, const char *name)
{
    sluice_error err = {0};
    const st_type_def *type = NULL;
    const st_batch *batch = NULL;
    st_scan *scan = NULL;
    (void)fprintf(e->out, "%s\n", name);
    ASSERT_OK(st_snapshot_type(snapshot, name, &type, &err));
    ASSERT_OK(st_scan_open(snapshot, type, NULL, 0, &scan, &err));
    for (;;) {
        ASSERT_OK(st_scan_next(scan, &batch, &err));
        if (!batch)
            break;
        see_batch(e, batch);
    }
    st_scan_close(scan);
}

static sluice_status see_ref(void *context, const char *name, uint64_t incarnation, sluice_error *ignored)
{
    eye *e = context;
    sluice_error err = {0};
    st_snapshot *snapshot = NULL;
    (void)incarnation, (void)ignored;
    assert_non_null(name); /* no end in the middle damages a ref */
    (void)fprintf(e->out, "branch %s\n", name);
    ASSERT_OK(st_snapshot_open(e->graph, name, NULL, &snapshot, &err));
    see_type(e, snapshot, "P");
    see_type(e, snapshot, "K");
    st_snapshot_close(snapshot);
    return SLUICE_OK;
}

static char *see_graph(st_graph *graph)
{
    sluice_error err = {0};
    st_control control = {0};
    char *text = NULL;
    size_t length = 0;
    eye e = {.out = open_memstream(&text, &length), .graph = graph};
    assert_non_null(e.out);
    ASSERT_OK(st_ref_list(graph, see_ref, &e, &err));
    ASSERT_OK(st_control_read(graph, &control, &err));
    for (uint32_t i = 0; i < control.checkpoint_count; i++)
        (void)fprintf(e.out, "checkpoint %s\n", control.checkpoints[i].name);
    (void)fprintf(e.out, "void %u\n", (unsigned)control.voided_count);
    st_control_free(&control);
    pf_buffer_free(&e.buffer);
    assert_int_equal(fclose(e.out), 0);
    return text;
}

char *matrix_see(load_fixture *f)
{
    st_graph *graph = load_fixture_open(f);
    char *text = see_graph(graph);
    st_graph_close(graph);
    return text;
}

char *matrix_see_copy(load_fixture *f)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    ASSERT_OK(pf_sim_actor(f->disk, "copy", &volume, &err));
    if (st_graph_open_on(volume, PF_READ, &graph, &err) != SLUICE_OK) {
        assert_int_equal(err.code, SLUICE_UNSUPPORTED_FORMAT); /* no graph, and nothing worse */
        return strdup("no graph\n");
    }
    char *text = see_graph(graph);
    st_graph_close(graph);
    return text;
}

static sluice_status on_problem(void *context, const char *object, const char *type, const char *problem,
                                sluice_error *err)
{
    (void)type;
    (void)context, (void)err;
    fail_msg("verify: %s: %s", object, problem);
    return SLUICE_OK;
}

void matrix_expect_whole(load_fixture *f)
{
    sluice_error err = {0};
    uint64_t checked = 0;
    st_graph *graph = load_fixture_open(f);
    ASSERT_OK(st_graph_verify(graph, false, on_problem, NULL, &checked, &err));
    st_graph_close(graph);
}

void matrix_expect_nothing_left(load_fixture *f)
{
    sluice_error err = {0};
    co_gc_report report = {0};
    f->graph = load_fixture_open(f);
    ASSERT_OK(co_gc(f->graph, false, &report, &err));
    ASSERT_OK(co_gc(f->graph, true, &report, &err));
    assert_int_equal(report.files + report.attempts, 0);
    assert_int_equal(load_fixture_files(f, "quarantine"), 0);
    load_fixture_expect_clean(f);
    st_graph_close(f->graph);
    f->graph = NULL;
}
