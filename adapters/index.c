/*
 * The adapter of index: fragments of tables are substituted by themselves, with adjacency and with the runs that were
 * lost. What it adds is derived: absent, stale or partial it changes no answer.
 *
 * Effects and read set are those of optimize (adapters/optimize.c). A fragment that an optimize has taken out meanwhile
 * is left out of the next plan; the adjacency of the others stays good. Truth table of what recovery finds:
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

const ad_adapter ad_index = {
    .kind = "index",
    .version = 1,
    .arms = true,
    .replays = true,
    .retry_budget = 16,
};
