/*
 * The adapter of a writer kind: what the state machine (coord/write.h) must know about it. The registry (registry.c) is
 * the closed list; each adapter's truth table stands in its file's header, and its tests follow it row by row.
 */
#ifndef ADAPTERS_ADAPTER_H
#define ADAPTERS_ADAPTER_H

#include "store/state/state.h"

/* Effects that are visible by themselves (OW-030); staged objects are inert and are not listed here. */
typedef enum ad_effect_kind {
    AD_EFFECT_CREATE_REF,
    AD_EFFECT_REMOVE_REF,
    AD_EFFECT_MOVE,
    AD_EFFECT_FOLLOW /* after the commit: the merged branch goes, if it still has this incarnation and head (`from`) */
} ad_effect_kind;
typedef struct ad_effect {
    ad_effect_kind kind;
    char branch[256];        /* refs: the branch name */
    uint64_t incarnation;    /* refs: which incarnation it creates or removes */
    char from[128], to[128]; /* moves; FOLLOW: from is a commit id */
} ad_effect;

typedef enum ad_class { AD_NONE, AD_PARTIAL, AD_COMPLETE, AD_FOREIGN } ad_class;

typedef struct ad_adapter {
    const char *kind; /* "load"; stands in commits and intents */
    uint32_t version; /* of the recovery strategy; a newer one in an intent is refused */
    bool arms;        /* writes an intent before G */
    bool replays;     /* may restart its plan after a conflict */
    unsigned retry_budget;
    /* The three below are NULL for a kind whose effects are all inert. Applies effects in order (stage F); a target
     * that is not in its expected pre-state fails it, with the effects before it applied. */
    sluice_status (*apply)(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err);
    /* How the effects of an intent stand now. */
    sluice_status (*classify)(st_graph *graph, const ad_effect *effects, uint32_t count, ad_class *ret_class,
                              sluice_error *err);
    /* Takes back effects newest first, each by compare, then remove; idempotent. */
    sluice_status (*undo)(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err);
} ad_adapter;

extern const ad_adapter ad_schema, ad_revert, ad_load;
extern const ad_adapter ad_merge;
extern const ad_adapter ad_optimize;
extern const ad_adapter ad_index;
extern const ad_adapter ad_mutate;
const ad_adapter *ad_find(const char *kind); /* NULL: unknown, so the intent is quarantined */
const ad_adapter *const *ad_all(uint32_t *ret_count);

#endif
