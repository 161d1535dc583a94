/*
 * What a write answers, in documents: the commit, or null where there was nothing to do.
 */
#ifndef CLI_RECEIPT_H
#define CLI_RECEIPT_H

#include "cli/output.h"
#include "coord/write.h"

/* Members "commit" (id, generation, index, branch) of an open object. `branch` NULL: main. */
void cli_put_receipt(st_json *json, const co_receipt *receipt, const char *branch);
/* Members "inserted", "updated", "deleted". */
void cli_put_changes(st_json *json, uint64_t inserted, uint64_t updated, uint64_t deleted);
/* Members "repeated" and "operation_id". */
void cli_put_operation(st_json *json, const co_receipt *receipt);
/* Members "seconds" and "memory_peak". */
void cli_put_cost(st_json *json, double seconds, uint64_t memory_peak);
/* The write is done: from here on an error, of printing, says that it stands. */
void cli_receipt_stands(cli_run *run, const co_receipt *receipt);
/* "commit ID, generation N of BRANCH", or "nothing to do"; no newline. */
sluice_status cli_print_receipt(cli_run *run, const co_receipt *receipt, const char *branch, sluice_error *err);

/* What became of a name: of a branch, or a checkpoint. */
typedef struct cli_named {
    const char *kind; /* "branch", "checkpoint": the member that has the name */
    const char *name;
    uint64_t incarnation; /* 0: it has none */
    pf_id commit;         /* nil: not known */
    uint64_t generation;
    uint32_t index;
    bool creates, dry_run, repeated;
    pf_id operation;
} cli_named;
/* From here on it stands, too, unless it was a dry run. */
sluice_status cli_print_named(cli_run *run, const cli_named *named, sluice_error *err);

#endif
