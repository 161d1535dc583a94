/*
 * When a graph is looked after next, kept over the end of the supervisor (see coord/host/host.h).
 *
 * cache/maintenance says by the wall clock when the next round is due, and how many rounds in a row have failed, so
 * that neither a pause nor a back-off begins anew with each start. It is a hint like all of cache/: one that is
 * missing, torn or not believable (a clock that was set) costs one pause, and nothing else. Never synced.
 */
#include "coord/host/host.h"
#include "store/format/document.h"

#define SCHEDULE_FILE   "cache/maintenance"
#define SCHEDULE_FORMAT "sluice-maintenance/1"
#define SCHEDULE_MAX    4096u
#define FAILURES_MAX    64u

void host_schedule_keep(const host_graph *graph)
{
    const host_maintenance *own = &graph->maintenance;
    int64_t due_us = pf_wall_us() + (own->next_ns - pf_monotonic_ns()) / 1000;
    pf_buffer text = {0};
    pf_file *file = NULL;
    st_json json;
    st_json_begin(&json, &text);
    st_json_object(&json);
    st_json_name(&json, "format");
    st_json_text(&json, SCHEDULE_FORMAT);
    st_json_name(&json, "due");
    st_json_u64(&json, (uint64_t)due_us);
    st_json_name(&json, "failures");
    st_json_u64(&json, own->failures);
    st_json_object_end(&json);
    (void)pf_remove(graph->volume, SCHEDULE_FILE, NULL);
    if (st_json_end(&json, true, NULL) == SLUICE_OK &&
        pf_create(graph->volume, SCHEDULE_FILE, &file, NULL) == SLUICE_OK) {
        (void)pf_write(file, 0, text.data, text.length, NULL);
        (void)pf_close(file, NULL);
    }
    pf_buffer_free(&text);
}

void host_schedule_forget(const host_graph *graph)
{
    (void)pf_remove(graph->volume, SCHEDULE_FILE, NULL);
}

static sluice_status read_schedule(const host_graph *graph, uint64_t *ret_due_us, uint64_t *ret_failures)
{
    pf_buffer text = {0};
    cJSON *document = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_document_read(graph->volume, SCHEDULE_FILE, SCHEDULE_MAX, &text, NULL));
    PF_GOTO(status, done, st_json_parse(text.data, text.length, &document, NULL));
    PF_GOTO(status, done, st_json_check_format(document, SCHEDULE_FORMAT, NULL));
    PF_GOTO(status, done, st_json_get_u64(document, "due", ret_due_us, NULL));
    status = st_json_get_u64(document, "failures", ret_failures, NULL);
done:
    st_json_free(document);
    pf_buffer_free(&text);
    return status;
}

bool host_schedule_read(host_graph *graph)
{
    host_maintenance *own = &graph->maintenance;
    uint64_t due_us = 0, failures = 0, now_us = (uint64_t)pf_wall_us();
    if (read_schedule(graph, &due_us, &failures) != SLUICE_OK)
        return false;
    own->failures = (unsigned)(failures < FAILURES_MAX ? failures : FAILURES_MAX);
    uint64_t pause_us = host_maintenance_pause(graph) * 1000000;
    uint64_t left_us = due_us <= now_us ? 0 : due_us - now_us < pause_us ? due_us - now_us : pause_us;
    own->next_ns = pf_monotonic_ns() + (int64_t)left_us * 1000;
    return true;
}
