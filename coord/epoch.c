/*
 * Voiding epochs, and asking whether one is void (coord/epoch.h).
 *
 * Crash rule: one record of control/ is all of it; voided twice it is voided once.
 */
#include "coord/epoch.h"

static sluice_status add_voided(void *context, st_control *control, sluice_error *err)
{
    const wk_executor *executor = context;
    for (uint32_t i = 0; i < executor->given_up_count; i++) {
        if (!st_control_is_voided(control, &executor->given_up[i]))
            PF_TRY(st_control_add_voided(control, &executor->given_up[i], err));
    }
    return SLUICE_OK;
}

sluice_status co_epochs_void(st_graph *graph, const wk_executor *executor, pf_deadline deadline, sluice_error *err)
{
    bool all_void = true;
    st_control control = {0};
    if (executor->given_up_count == 0)
        return SLUICE_OK;
    PF_TRY(st_control_read(graph, &control, err));
    for (uint32_t i = 0; i < executor->given_up_count; i++)
        all_void = all_void && st_control_is_voided(&control, &executor->given_up[i]);
    st_control_free(&control);
    return all_void ? SLUICE_OK : st_control_update(graph, add_voided, (void *)(uintptr_t)executor, deadline, err);
}

sluice_status co_epoch_check(st_graph *graph, const pf_id *epoch, sluice_error *err)
{
    bool is_void = false;
    PF_TRY(st_graph_is_voided(graph, epoch, &is_void, err));
    return is_void ? pf_fail(err, SLUICE_FENCED, "this process's epoch was voided") : SLUICE_OK;
}
