/*
 * What collection has let go of (graph.h, st_boundary), in the control state.
 *
 * A reader pins a generation and then asks here; collection publishes its boundary and then looks at the pins: so one
 * of the two sees the other. The boundaries as of the newest control record that this handle has seen stay at hand.
 */
#include "store/graph/internal.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

void st_boundaries_encode(st_json *json, const st_control *control)
{
    st_json_name(json, "boundaries");
    st_json_array(json);
    for (uint32_t i = 0; i < control->boundary_count; i++) {
        const st_boundary *boundary = &control->boundaries[i];
        st_json_object(json);
        st_json_name(json, "incarnation");
        st_json_u64(json, boundary->incarnation);
        st_json_name(json, "below");
        st_json_u64(json, boundary->below);
        st_json_name(json, "kept");
        st_json_array(json);
        for (uint32_t k = 0; k < boundary->kept_count; k++) {
            st_json_object(json);
            st_json_name(json, "first");
            st_json_u64(json, boundary->kept[k].first);
            st_json_name(json, "last");
            st_json_u64(json, boundary->kept[k].last);
            st_json_object_end(json);
        }
        st_json_array_end(json);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static sluice_status decode_kept(const cJSON *item, st_boundary *boundary, sluice_error *err)
{
    const cJSON *list, *range;
    size_t count = 0;
    PF_TRY(st_json_get_array(item, "kept", &list, err));
    cJSON_ArrayForEach(range, list) count++;
    boundary->kept = calloc(count ? count : 1, sizeof(*boundary->kept));
    if (!boundary->kept)
        return pf_fail_memory(err);
    cJSON_ArrayForEach(range, list)
    {
        st_range *to = &boundary->kept[boundary->kept_count];
        PF_TRY(st_json_get_u64(range, "first", &to->first, err));
        PF_TRY(st_json_get_u64(range, "last", &to->last, err));
        if (to->last < to->first || to->last >= boundary->below ||
            (boundary->kept_count > 0 && to->first <= to[-1].last))
            return pf_fail(err, SLUICE_CORRUPT, "control: the kept ranges are not as we write them");
        boundary->kept_count++;
    }
    return SLUICE_OK;
}

sluice_status st_boundaries_decode(const cJSON *document, st_control *control, sluice_error *err)
{
    const cJSON *list, *item;
    PF_TRY(st_json_get_array(document, "boundaries", &list, err));
    cJSON_ArrayForEach(item, list)
    {
        st_boundary boundary = {0};
        PF_TRY(st_json_get_u64(item, "incarnation", &boundary.incarnation, err));
        PF_TRY(st_json_get_u64(item, "below", &boundary.below, err));
        sluice_status status = decode_kept(item, &boundary, err);
        if (status == SLUICE_OK && st_control_find_boundary(control, boundary.incarnation))
            status = pf_fail(err, SLUICE_CORRUPT, "control: a branch has two boundaries");
        if (status == SLUICE_OK)
            status = st_control_set_boundary(control, &boundary, err);
        free(boundary.kept);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

/* The first that is not below the incarnation. */
static uint32_t bound(const st_control *control, uint64_t incarnation)
{
    uint32_t low = 0, high = control->boundary_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (control->boundaries[middle].incarnation < incarnation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const st_boundary *st_control_find_boundary(const st_control *control, uint64_t incarnation)
{
    uint32_t at = bound(control, incarnation);
    bool found = at < control->boundary_count && control->boundaries[at].incarnation == incarnation;
    return found ? &control->boundaries[at] : NULL;
}

sluice_status st_control_set_boundary(st_control *control, const st_boundary *boundary, sluice_error *err)
{
    st_range *kept = calloc((size_t)boundary->kept_count + 1, sizeof(*kept));
    if (!kept)
        return pf_fail_memory(err);
    if (boundary->kept_count > 0)
        memcpy(kept, boundary->kept, boundary->kept_count * sizeof(*kept));
    st_control_drop_boundary(control, boundary->incarnation);
    st_boundary *grown = realloc(control->boundaries, ((size_t)control->boundary_count + 1) * sizeof(*grown));
    if (!grown) {
        free(kept);
        return pf_fail_memory(err);
    }
    control->boundaries = grown;
    uint32_t at = bound(control, boundary->incarnation);
    memmove(grown + at + 1, grown + at, (control->boundary_count - at) * sizeof(*grown));
    grown[at] = *boundary;
    grown[at].kept = kept;
    control->boundary_count++;
    return SLUICE_OK;
}

void st_control_drop_boundary(st_control *control, uint64_t incarnation)
{
    uint32_t at = bound(control, incarnation);
    if (!st_control_find_boundary(control, incarnation))
        return;
    free(control->boundaries[at].kept);
    control->boundary_count--;
    memmove(control->boundaries + at, control->boundaries + at + 1,
            (control->boundary_count - at) * sizeof(*control->boundaries));
}

bool st_boundary_dropped(const st_boundary *boundary, uint64_t generation)
{
    if (!boundary || generation >= boundary->below)
        return false;
    for (uint32_t i = 0; i < boundary->kept_count; i++)
        if (generation >= boundary->kept[i].first && generation <= boundary->kept[i].last)
            return false;
    return true;
}

/* Control/ as it stands, read anew only when it has moved. */
static sluice_status control_now(st_graph *graph, sluice_error *err)
{
    st_log *log;
    st_control control = {0};
    PF_TRY(st_control_log(graph, &log, err));
    PF_TRY(st_log_refresh(log, err));
    if (graph->now_at == st_log_end(log).number)
        return SLUICE_OK;
    PF_TRY(st_control_read(graph, &control, err));
    st_control_free(&graph->now);
    graph->now = control;
    graph->now_at = st_log_end(log).number;
    return SLUICE_OK;
}

sluice_status st_graph_is_collected(st_graph *graph, uint64_t incarnation, uint64_t generation, bool *ret_collected,
                                    sluice_error *err)
{
    *ret_collected = false;
    if (graph->damaged) /* what is not there is not found */
        return SLUICE_OK;
    PF_TRY(control_now(graph, err));
    *ret_collected = st_boundary_dropped(st_control_find_boundary(&graph->now, incarnation), generation);
    return SLUICE_OK;
}

sluice_status st_graph_is_voided(st_graph *graph, const pf_id *epoch, bool *ret_voided, sluice_error *err)
{
    PF_TRY(control_now(graph, err));
    *ret_voided = st_control_is_voided(&graph->now, epoch);
    return SLUICE_OK;
}

sluice_status st_fail_collected(uint64_t incarnation, uint64_t generation, sluice_error *err)
{
    sluice_status status =
        pf_fail(err, SLUICE_NOT_FOUND, "generation %llu was collected: its commits are still known, its rows are not",
                (unsigned long long)generation);
    pf_details(err, "{\"collected\":true,\"incarnation\":\"%llu\",\"generation\":\"%llu\"}",
               (unsigned long long)incarnation, (unsigned long long)generation);
    pf_hint(err, "gc let it go; a checkpoint keeps what is to stay, and so does a larger --keep");
    return status;
}
