/*
 * The adapter of mutations: single objects of an existing branch.
 *
 * A small one is authority-first: its rows and edits are attached to the record, so its append is its first durable
 * effect; it arms nothing, and there is nothing to recover. A large one (or one beside which a fold is staged, as far
 * as the fold goes) stages objects that nothing sees until a generation names them; the plan then says that it arms,
 * and the intent is armed and confirmed in one write. Undoing is forgetting. Truth table of what recovery finds:
 *
 * | intent    | in the branch's history   | read set      | what is done                                           |
 * |-----------|---------------------------|---------------|--------------------------------------------------------|
 * | none      | its commit                | -             | nothing: it is done (a small one, or retired)          |
 * | none      | not                       | -             | nothing: what was staged is litter (gc)                |
 * | confirmed | its commit, equal delta   | -             | published: acknowledge, audit, retire                  |
 * | confirmed | its commit, another delta | -             | CORRUPT: everything is kept                            |
 * | confirmed | not                       | still valid   | roll forward the exact delta: same commit, actor, time |
 * | confirmed | not                       | met by others | discard; the winners are untouched                     |
 * | any       | branch incarnation gone   | -             | discard                                                |
 */
#include "adapters/adapter.h"

const ad_adapter ad_mutate = {
    .kind = "mutate",
    .version = 1,
    .arms = false,
    .replays = true,
    .retry_budget = 16,
};
