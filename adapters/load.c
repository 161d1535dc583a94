/*
 * The adapter of loads: files into tables of an existing branch.
 *
 * Its effects are staged objects (fragments, runs, edits), which nothing sees until a generation names them, so the
 * intent is armed and confirmed in one write, and undoing is forgetting. Where a load has an effect that is visible by
 * itself (adapters/effects.h), it is armed before the effect, confirmed after it, and undoing compares, then takes
 * back. Truth table of what recovery finds:
 *
 * | intent    | in the branch's history      | read set      | what is done                                           |
 * |-----------|------------------------------|---------------|--------------------------------------------------------|
 * | none      | -                            | -             | nothing: what was staged is litter (gc)                |
 * | armed     | not                          | -             | undo visible effects newest first, discard             |
 * | confirmed | its commit, equal delta      | -             | published: acknowledge, audit, retire                  |
 * | confirmed | its commit, another delta    | -             | CORRUPT: everything is kept                            |
 * | confirmed | not                          | still valid   | roll forward the exact delta: same commit, actor, time |
 * | confirmed | not                          | met by others | undo, discard; the winners are untouched               |
 * | any       | branch incarnation gone      | -             | undo, discard                                          |
 */
#include "adapters/effects.h"

const ad_adapter ad_load = {
    .kind = "load",
    .version = 1,
    .arms = true,
    .replays = true,
    .retry_budget = 16,
    .apply = ad_effects_apply,
    .classify = ad_effects_classify,
    .undo = ad_effects_undo,
};
