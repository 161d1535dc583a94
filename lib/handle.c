/* See lib/handle.h. */
#include "lib/handle.h"
#include "platform/check.h"
#include "platform/event.h"
#include "platform/volume.h"
#include <stdlib.h>
#include <string.h>

const char *sluice_version(void)
{
    return SLUICE_VERSION;
}

void sluice_free(void *text)
{
    free(text);
}

sluice_status lib_need(const void *argument, const char *what, sluice_error *err)
{
    return argument ? SLUICE_OK : pf_fail(err, SLUICE_USAGE, "%s is missing (NULL)", what);
}

sluice_status lib_check(const sluice_graph *graph, sluice_error *err)
{
    PF_TRY(lib_need(graph, "the graph", err));
    if (!pf_volume_is_left(st_graph_volume(graph->graph)))
        return SLUICE_OK;
    pf_note event;
    if (pf_note_wanted(SLUICE_LEVEL_WARN)) {
        pf_note_begin(&event, SLUICE_LEVEL_WARN, "left-handle", "a forked child uses a handle of its parent");
        pf_note_id(&event, "graph", st_graph_id(graph->graph));
        pf_note_send(&event);
    }
    pf_fail(err, SLUICE_USAGE, "this graph was opened by the process that forked this one");
    pf_hint(err, "open the graph again in the child");
    return SLUICE_USAGE;
}

sluice_status lib_check_snapshot(const sluice_snapshot *snapshot, sluice_error *err)
{
    PF_TRY(lib_need(snapshot, "the snapshot", err));
    return lib_check(snapshot->graph, err);
}

sluice_status lib_id(const char *text, const char *what, pf_id *ret_id, sluice_error *err)
{
    *ret_id = (pf_id){0};
    if (!text || pf_id_parse(text, ret_id))
        return SLUICE_OK;
    return pf_fail(err, SLUICE_USAGE, "%s is not a UUID", what);
}

void lib_id_text(const pf_id *id, char *ret_text)
{
    if (pf_id_is_nil(id))
        ret_text[0] = '\0';
    else
        pf_id_text(id, ret_text);
}

sluice_status lib_give(pf_buffer *buffer, char **ret_text, size_t *ret_length, sluice_error *err)
{
    size_t length = buffer->length;
    sluice_status status = pf_buffer_append(buffer, "", 1, err);
    if (status != SLUICE_OK) {
        pf_buffer_free(buffer);
        return status;
    }
    *ret_text = (char *)buffer->data;
    if (ret_length)
        *ret_length = length;
    *buffer = (pf_buffer){0};
    return SLUICE_OK;
}

void lib_graph_hold(sluice_graph *graph)
{
    graph->holds++;
}

void lib_graph_release(sluice_graph *graph)
{
    PF_ASSERT(graph->holds > 0);
    if (--graph->holds > 0)
        return;
    st_graph_close(graph->graph);
    free(graph->path);
    free(graph);
}

void lib_snapshot_hold(sluice_snapshot *snapshot)
{
    snapshot->holds++;
}

void lib_snapshot_release(sluice_snapshot *snapshot)
{
    PF_ASSERT(snapshot->holds > 0);
    if (--snapshot->holds > 0)
        return;
    st_snapshot_close(snapshot->snapshot);
    lib_graph_release(snapshot->graph);
    free(snapshot);
}
