/*
 * Applying, classifying and undoing visible effects (adapters/effects.h has the table that this file follows).
 *
 * Crash rule: each effect is one name that changes, made durable (sync of its folder) before the next one starts, so
 * that at any instant a prefix of the list is done. Undo goes from the end, so a prefix stays a prefix. What is found
 * done, or undone, may be the work of somebody who died before the sync: it is made durable before anything relies on
 * it.
 */
#include "adapters/effects.h"
#include "platform/check.h"
#include <string.h>

typedef enum state { STATE_NONE, STATE_DONE, STATE_FOREIGN } state;

static sluice_status ref_state(st_graph *graph, const ad_effect *effect, bool creates, state *ret_state,
                               sluice_error *err)
{
    uint64_t found = 0;
    sluice_error read_error = {0};
    sluice_status status = st_ref_read(graph, effect->branch, &found, &read_error);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = read_error;
        return status;
    }
    if (status == SLUICE_NOT_FOUND)
        *ret_state = creates ? STATE_NONE : STATE_DONE;
    else if (found == effect->incarnation)
        *ret_state = creates ? STATE_DONE : STATE_NONE;
    else
        *ret_state = STATE_FOREIGN;
    return SLUICE_OK;
}

static sluice_status is_there(st_graph *graph, const char *path, bool *ret_there, sluice_error *err)
{
    pf_stat stat;
    sluice_error stat_error = {0};
    sluice_status status = pf_stat_path(st_graph_volume(graph), path, &stat, &stat_error);
    if (status != SLUICE_OK && status != SLUICE_NOT_FOUND) {
        if (err)
            *err = stat_error;
        return status;
    }
    *ret_there = status == SLUICE_OK;
    return SLUICE_OK;
}

static sluice_status effect_state(st_graph *graph, const ad_effect *effect, state *ret_state, sluice_error *err)
{
    switch (effect->kind) {
    case AD_EFFECT_CREATE_REF:
        return ref_state(graph, effect, true, ret_state, err);
    case AD_EFFECT_REMOVE_REF:
        return ref_state(graph, effect, false, ret_state, err);
    case AD_EFFECT_MOVE: {
        bool from = false, to = false;
        PF_TRY(is_there(graph, effect->from, &from, err));
        PF_TRY(is_there(graph, effect->to, &to, err));
        *ret_state = from && !to ? STATE_NONE : !from && to ? STATE_DONE : STATE_FOREIGN;
        return SLUICE_OK;
    }
    case AD_EFFECT_FOLLOW: /* nothing of it comes before the commit (coord/finalize.c, coord/resolve.c) */
        *ret_state = STATE_DONE;
        return SLUICE_OK;
    }
    return pf_fail(err, SLUICE_CORRUPT, "an effect of unknown kind %d", (int)effect->kind);
}

/* The folder that holds a path's last name, into a buffer as large as the path's. */
static void folder_of(const char *path, char ret_folder[128])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    memcpy(ret_folder, path, length);
    ret_folder[length] = '\0';
}

static sluice_status sync_folder_of(st_graph *graph, const char *path, sluice_error *err)
{
    char folder[128];
    folder_of(path, folder);
    return pf_sync_dir(st_graph_volume(graph), folder, err);
}

static sluice_status move(st_graph *graph, const char *from, const char *to, sluice_error *err)
{
    PF_TRY(pf_publish(st_graph_volume(graph), from, to, err));
    PF_TRY(sync_folder_of(graph, to, err));
    return sync_folder_of(graph, from, err);
}

/* The names that an effect changes, as they are now. */
static sluice_status make_durable(st_graph *graph, const ad_effect *effect, sluice_error *err)
{
    switch (effect->kind) {
    case AD_EFFECT_CREATE_REF:
    case AD_EFFECT_REMOVE_REF:
        return pf_sync_dir(st_graph_volume(graph), ST_REFS_FOLDER, err);
    case AD_EFFECT_MOVE:
        PF_TRY(sync_folder_of(graph, effect->to, err));
        return sync_folder_of(graph, effect->from, err);
    case AD_EFFECT_FOLLOW:
        break;
    }
    return SLUICE_OK;
}

static sluice_status apply_one(st_graph *graph, const ad_effect *effect, sluice_error *err)
{
    switch (effect->kind) {
    case AD_EFFECT_CREATE_REF:
        return st_ref_create(graph, effect->branch, effect->incarnation, err);
    case AD_EFFECT_REMOVE_REF:
        return st_ref_remove(graph, effect->branch, effect->incarnation, err);
    case AD_EFFECT_MOVE:
        return move(graph, effect->from, effect->to, err);
    case AD_EFFECT_FOLLOW:
        break;
    }
    return pf_fail(err, SLUICE_CORRUPT, "an effect of unknown kind %d", (int)effect->kind);
}

sluice_status ad_effects_apply(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        state now;
        PF_TRY(effect_state(graph, &effects[i], &now, err));
        if (now == STATE_FOREIGN)
            return pf_fail(err, SLUICE_WRITE_CONFLICT, "the target of effect %u is somebody else's", i);
        PF_TRY(now == STATE_NONE ? apply_one(graph, &effects[i], err) : make_durable(graph, &effects[i], err));
    }
    return SLUICE_OK;
}

sluice_status ad_effects_classify(st_graph *graph, const ad_effect *effects, uint32_t count, ad_class *ret_class,
                                  sluice_error *err)
{
    uint32_t done = 0, foreign = 0;
    for (uint32_t i = 0; i < count; i++) {
        state now;
        PF_TRY(effect_state(graph, &effects[i], &now, err));
        done += now == STATE_DONE;
        foreign += now == STATE_FOREIGN;
    }
    *ret_class = foreign ? AD_FOREIGN : done == count ? AD_COMPLETE : done ? AD_PARTIAL : AD_NONE;
    return SLUICE_OK;
}

sluice_status ad_effects_undo(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err)
{
    for (uint32_t i = count; i-- > 0;) {
        state now;
        PF_TRY(effect_state(graph, &effects[i], &now, err));
        if (now == STATE_NONE)
            PF_TRY(make_durable(graph, &effects[i], err));
        if (now != STATE_DONE)
            continue;
        switch (effects[i].kind) {
        case AD_EFFECT_CREATE_REF:
            PF_TRY(st_ref_remove(graph, effects[i].branch, effects[i].incarnation, err));
            break;
        case AD_EFFECT_MOVE:
            PF_TRY(move(graph, effects[i].to, effects[i].from, err));
            break;
        case AD_EFFECT_FOLLOW:
        case AD_EFFECT_REMOVE_REF: /* a ref that is gone is not made again: the removal is completed forward */
            break;
        }
    }
    return SLUICE_OK;
}
