/*
 * The adapter of optimize: fragments of tables are substituted by fewer ones with the same rows.
 *
 * Its effects are staged objects, named by one substitution per table in one commit, so the intent is armed and
 * confirmed in one write, and undoing is forgetting. Rows do not change: its change sets are empty, so it is in
 * nobody's way who reads rows; what it reads is that the fragments which it takes out are still listed. Deletions that
 * come between its base and its commit are handed on by the substitution itself. Truth table of what recovery finds:
 *
 * | intent    | in the history            | fragments that leave | what is done                                |
 * |-----------|---------------------------|----------------------|---------------------------------------------|
 * | none      | -                         | -                    | nothing: what was staged is litter (gc)     |
 * | armed     | not                       | -                    | discard: it has no visible effect           |
 * | confirmed | its commit, same delta    | -                    | published: acknowledge, audit, retire       |
 * | confirmed | its commit, another delta | -                    | CORRUPT: everything is kept                 |
 * | confirmed | not                       | all listed           | roll forward; later deletions are handed on |
 * | confirmed | not                       | one is gone          | discard; the winner is untouched            |
 * | any       | branch incarnation gone   | -                    | discard                                     |
 */
#include "adapters/adapter.h"

const ad_adapter ad_optimize = {
    .kind = "optimize",
    .version = 1,
    .arms = true,
    .replays = true,
    .retry_budget = 16,
};
