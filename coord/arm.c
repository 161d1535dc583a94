/*
 * Stage E, arm, and stage F, effects (OW-068 to OW-076).
 *
 * With inert effects only, arming and confirming are one write. With effects that are visible by themselves, the intent
 * is durable as armed before the first of them and as confirmed after the last. Limits are checked before anything is
 * written (I-2). From the moment the frame's write is tried, the intent counts as armed: a failure must retire it
 * before it is answered.
 */
#include "coord/plan.h"
#include "coord/run.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sluice_status make_intent(co_run *run, sluice_error *err)
{
    const st_view *view = st_snapshot_view(run->write.base);
    const st_commit *commit = &run->write.delta.commit;
    co_intent *intent = &run->intent;
    *intent = (co_intent){.version = run->writer->adapter->version,
                          .epoch = run->write.executor->epoch,
                          .base_generation = view->generation,
                          .base_digest = view->digest,
                          .schema_identity = view->schema_identity,
                          .request = commit->request,
                          .delta = run->digest,
                          .plan_number = run->write.plan_number};
    (void)snprintf(intent->kind, sizeof intent->kind, "%s", run->writer->adapter->kind);
    (void)snprintf(intent->branch, sizeof intent->branch, "%s", run->request.branch);
    co_scope *scope = &intent->scope;
    scope->incarnation = run->made ? run->made : run->incarnation;
    scope->operation = commit->operation;
    scope->commit = commit->id;
    if (run->write.attempt)
        scope->attempt = run->write.attempt->id;
    scope->visible = run->write.effect_count > 0;
    scope->all = run->table_count > CO_SCOPE_TABLES || st_delta_changes_schema(&run->write.delta);
    for (uint32_t i = 0; i < run->table_count && !scope->all; i++)
        scope->tables[scope->table_count++] = run->tables[i];
    if (run->write.effect_count == 0)
        return SLUICE_OK;
    intent->effects = malloc(run->write.effect_count * sizeof *intent->effects);
    if (!intent->effects)
        return pf_fail_memory(err);
    memcpy(intent->effects, run->write.effects, run->write.effect_count * sizeof *intent->effects);
    intent->effect_count = run->write.effect_count;
    return SLUICE_OK;
}

/* Encodes the plan and decides where it goes: into the frame when it fits, else into the attempt's side file. */
static sluice_status place_plan(co_run *run, pf_buffer *side, sluice_error *err)
{
    co_intent *intent = &run->intent;
    pf_buffer document = {0};
    sluice_status status;
    PF_GOTO(status, done, co_plan_encode(&run->write.reads, &run->write.delta, side, err));
    intent->plan_length = side->length;
    intent->plan_digest = pf_sha256_of(side->data, side->length);
    intent->plan_inline = true;
    PF_GOTO(status, done, co_intent_encode(intent, &document, err));
    intent->plan_inline = document.length + side->length <= CO_FRAME_BYTES - CO_FRAME_HEAD - 1;
    if (intent->plan_inline) {
        intent->plan = *side;
        *side = (pf_buffer){0};
    } else if (document.length + 1 > CO_FRAME_BYTES - CO_FRAME_HEAD) {
        status = pf_fail(err, SLUICE_RESOURCE_LIMIT, "an intent of %zu bytes does not fit its slot", document.length);
    } else if (!run->write.attempt) {
        status = pf_fail(err, SLUICE_RESOURCE_LIMIT, "a plan of %zu bytes needs an attempt to lie in", side->length);
    }
done:
    pf_buffer_free(&document);
    return status;
}

/* Effects that come before the commit; a follow-up comes after it. */
static bool has_effects(const co_run *run)
{
    for (uint32_t i = 0; i < run->intent.effect_count; i++)
        if (run->intent.effects[i].kind != AD_EFFECT_FOLLOW)
            return true;
    return false;
}

static sluice_status arm(co_run *run, sluice_error *err)
{
    pf_buffer side = {0};
    sluice_status status;
    PF_GOTO(status, done, make_intent(run, err));
    PF_GOTO(status, done, place_plan(run, &side, err));
    PF_GOTO(status, done, co_run_check(run, err));
    PF_GOTO(status, done, co_slot_take(run->volume, &run->slot, err));
    PF_GOTO(status, done, PF_FAILPOINT(ARM_BEFORE_SIDE_FILE, err));
    if (!run->intent.plan_inline)
        PF_GOTO(status, done, co_plan_write(run->volume, &run->intent, &side, err));
    PF_GOTO(status, done, PF_FAILPOINT(ARM_AFTER_SIDE_FILE, err));
    run->armed = true;
    run->receipt.commit = run->intent.scope.commit;
    status = co_slot_write(&run->slot, &run->intent, has_effects(run) ? CO_PHASE_ARMED : CO_PHASE_CONFIRMED, err);
    if (status == SLUICE_OK)
        status = PF_FAILPOINT(ARM_AFTER, err);
done:
    pf_buffer_free(&side);
    return status;
}

static sluice_status apply(co_run *run, sluice_error *err)
{
    const ad_adapter *adapter = run->writer->adapter;
    ad_class class = AD_NONE;
    co_run_enter(run, SLUICE_PHASE_EFFECTS);
    run->applied = true;
    PF_TRY(adapter->apply(run->write.graph, run->intent.effects, run->intent.effect_count, err));
    PF_TRY(adapter->classify(run->write.graph, run->intent.effects, run->intent.effect_count, &class, err));
    if (class != AD_COMPLETE)
        return pf_fail(err, SLUICE_WRITE_CONFLICT, "the effects are not what was declared");
    return co_slot_write(&run->slot, &run->intent, CO_PHASE_CONFIRMED, err);
}

sluice_status co_stage_arm(co_run *run, sluice_error *err)
{
    const ad_adapter *adapter = run->writer->adapter;
    if (run->request.creates)
        PF_TRY(co_new_mint(run, err));
    if (run->write.effect_count > CO_EFFECTS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a write has at most %u visible effects", CO_EFFECTS_MAX);
    if (run->write.effect_count && (!adapter->apply || !adapter->classify || !adapter->undo))
        return pf_fail(err, SLUICE_INTERNAL, "a writer of kind %s has no visible effects", adapter->kind);
    if (!run->write.arms &&
        run->write.effect_count == 0) /* authority-first: the append is the first durable effect (OW-069) */
        return co_run_check(run, err);
    PF_TRY(arm(run, err));
    if (run->request.creates) /* its effect comes after the commit */
        return SLUICE_OK;
    return has_effects(run) ? apply(run, err) : SLUICE_OK;
}
