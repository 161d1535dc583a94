/*
 * The adapter of reverts: the state of an older commit becomes the branch's state again, by a new commit on top.
 *
 * Its edits replace the list of each table that differs with what that commit listed: nothing is copied, and what it
 * stages (deletion sets) nobody sees until a generation names it, so undoing is forgetting. It reads the branch's head:
 * whatever is published in between makes it plan again. Truth table of what recovery finds:
 *
 * | intent    | in the branch's history      | head          | what is done                                           |
 * |-----------|------------------------------|---------------|--------------------------------------------------------|
 * | none      | -                            | -             | nothing: what was staged is litter (gc)                |
 * | armed     | not                          | -             | discard (never left by this adapter)                   |
 * | confirmed | its commit, equal delta      | -             | published: acknowledge, audit, retire                  |
 * | confirmed | its commit, another delta    | -             | CORRUPT: everything is kept                            |
 * | confirmed | not                          | the base's    | roll forward the exact delta: same commit, actor, time |
 * | confirmed | not                          | another       | discard; what came meanwhile is untouched              |
 * | any       | branch incarnation gone      | -             | discard                                                |
 */
#include "adapters/adapter.h"

const ad_adapter ad_revert = {
    .kind = "revert",
    .version = 1,
    .arms = true,
    .replays = true,
    .retry_budget = 16,
};
