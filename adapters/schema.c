/*
 * The adapter of changes of the schema: types and properties added, renamed, dropped; constraints added and removed.
 *
 * What it stages is the schema itself, schema/<sha256>.json, named by its content, and folders of tables that do not
 * exist yet: nothing sees them until a generation names the schema. So undoing is forgetting, and the intent is armed
 * and confirmed in one write. Its commit is a generation of its own, and every write that was prepared under the older
 * schema is made again or fails. Truth table of what recovery finds:
 *
 * | intent    | in the branch's history      | read set      | what is done                                           |
 * |-----------|------------------------------|---------------|--------------------------------------------------------|
 * | none      | -                            | -             | nothing                                                |
 * | armed     | not                          | -             | discard (never left by this adapter)                   |
 * | confirmed | its commit, equal delta      | -             | published: acknowledge, audit, retire                  |
 * | confirmed | its commit, another delta    | -             | CORRUPT: everything is kept                            |
 * | confirmed | not                          | still valid   | roll forward: the same schema, commit, actor, time     |
 * | confirmed | not                          | met by others | discard: rows that were checked, or the schema, moved  |
 * | any       | branch incarnation gone      | -             | discard                                                |
 */
#include "adapters/adapter.h"

const ad_adapter ad_schema = {
    .kind = "schema",
    .version = 1,
    .arms = true,
    .replays = true,
    .retry_budget = 16,
};
