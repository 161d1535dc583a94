/*
 * Merging a branch into another (DESIGN 9, LESSONS 4, docs/operations.md "Merging").
 *
 * What each side did since their histories met is compared key by key, and the target gets what the source did, as one
 * commit with two parents; all or nothing. Where both did something else to one object, or the result would break a
 * rule, nothing changes and every conflict is listed.
 */
#ifndef COORD_MERGE_H
#define COORD_MERGE_H

#include "coord/write.h"

typedef enum co_merge_outcome { CO_MERGE_UP_TO_DATE, CO_MERGE_FAST_FORWARD, CO_MERGE_MERGED } co_merge_outcome;
const char *co_merge_outcome_name(co_merge_outcome outcome); /* static storage */

typedef enum co_merge_rule { CO_MERGE_FAIL, CO_MERGE_OURS, CO_MERGE_THEIRS } co_merge_rule;

typedef enum co_conflict_kind {
    CO_CONFLICT_INSERT,      /* both made the object, with other values */
    CO_CONFLICT_UPDATE,      /* both changed one property, to other values */
    CO_CONFLICT_DELETE,      /* one deleted what the other changed */
    CO_CONFLICT_EDGE,        /* an edge would lose its end */
    CO_CONFLICT_UNIQUE,      /* two objects would have one unique value */
    CO_CONFLICT_CARDINALITY, /* a node would have too many edges */
    CO_CONFLICT_VALUE,       /* the merged row breaks a rule */
    CO_CONFLICT_SCHEMA       /* the schemas differ in a way that is not merged */
} co_conflict_kind;
const char *co_conflict_kind_name(co_conflict_kind kind); /* static storage */

#define CO_CONFLICTS_MAX 1000u /* listed; all are counted */

typedef struct co_conflict {
    co_conflict_kind kind;
    char *type, *key, *property, *text; /* key as JSON; property NULL: the object as a whole */
    pf_id ours, theirs;                 /* the commits that last wrote the object on each side; nil: it is not there */
} co_conflict;

typedef struct co_merge_options {
    const char *source; /* a branch */
    const char *into;   /* NULL: main */
    co_merge_rule rule;
    bool delete_source;
    bool dry_run;    /* say the outcome, counts and conflicts, and change nothing */
    pf_id operation; /* nil: none given */
    pf_id if_head;
    const char *message;
} co_merge_options;

typedef struct co_merge_result {
    co_receipt receipt;
    co_merge_outcome outcome;
    pf_id source_head;
    uint64_t inserted, updated, deleted;
    co_conflict *conflicts; /* with MERGE_CONFLICT */
    uint32_t conflict_count;
    uint64_t conflicts_found; /* all, also those not listed */
    bool branch_deleted;
    char not_deleted[256]; /* why the source is still there, when it was to be deleted */
} co_merge_result;
void co_merge_result_free(co_merge_result *result); /* its insides; safe on a zeroed one */

/* MERGE_CONFLICT: the result lists why; nothing has changed. */
sluice_status co_merge(st_graph *graph, const co_merge_options *options, wk_executor *executor,
                       co_merge_result *ret_result, sluice_error *err);

#endif
