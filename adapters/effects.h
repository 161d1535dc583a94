/*
 * The effects that are visible by themselves, for the adapters that have them (OW-030, OW-031, OW-096; LESSONS section
 * 2).
 *
 * | effect        | none                           | done                | somebody else's     | undo |
 * |---------------|--------------------------------|---------------------|---------------------|-------------------------------|
 * | create ref    | name absent                    | holds my incarnation | holds another      | remove, iff it is
 * still mine  | | remove ref    | holds the captured incarnation | absent              | another incarnation | none:
 * completed forward       | | move to trash | source name present            | only the trash name | neither, or both
 * | move back, iff source is free |
 *
 * A follow-up (a merged branch that is to go) has no part before the commit: it is completed after it, forward only.
 *
 * All three functions are idempotent, compare before they change anything, and never touch what is somebody else's.
 * They are called under the intent's slot lock only.
 */
#ifndef ADAPTERS_EFFECTS_H
#define ADAPTERS_EFFECTS_H

#include "adapters/adapter.h"

sluice_status ad_effects_apply(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err);
sluice_status ad_effects_classify(st_graph *graph, const ad_effect *effects, uint32_t count, ad_class *ret_class,
                                  sluice_error *err);
sluice_status ad_effects_undo(st_graph *graph, const ad_effect *effects, uint32_t count, sluice_error *err);

#endif
