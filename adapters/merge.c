/*
 * The adapter of merges: one branch into another.
 *
 * What a merge stages is inert: rows of the source that the target takes over, attached to the record when they are
 * few, else staged objects and an intent that is armed and confirmed in one write. It reads the head of its branch, so
 * any commit in between plans it anew. The source's commit is captured, a precondition that cannot change. Where the
 * source is to be deleted, that follows the commit: the intent is armed before the commit and says which incarnation
 * and head it meant, and recovery completes it, or leaves a source that has moved on. Truth table of what recovery
 * finds:
 *
 * | intent    | in the branch's history   | read set      | what is done                                           |
 * |-----------|---------------------------|---------------|--------------------------------------------------------|
 * | none      | its commit                | -             | nothing: it is done (a small one, or retired)          |
 * | none      | not                       | -             | nothing: what was staged is litter (gc)                |
 * | confirmed | its commit, equal delta   | -             | published: acknowledge, follow up, audit, retire       |
 * | confirmed | its commit, another delta | -             | CORRUPT: everything is kept                            |
 * | confirmed | not                       | still valid   | roll forward the exact delta, follow up, audit, retire |
 * | confirmed | not                       | met by others | discard; the winners and the source are untouched      |
 * | any       | branch incarnation gone   | -             | discard                                                |
 */
#include "adapters/effects.h"

const ad_adapter ad_merge = {
    .kind = "merge",
    .version = 1,
    .arms = false,
    .replays = true,
    .retry_budget = 16,
    .apply = ad_effects_apply,
    .classify = ad_effects_classify,
    .undo = ad_effects_undo,
};
