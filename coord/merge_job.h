/*
 * The inside of merges.
 *
 *   merge.c           the job: source, histories, what kind of merge it is; the plan as a whole
 *   merge_adopt.c     tables that are taken over as they are, nothing copied
 *   merge_whole.c     which these are where both sides went on
 *   merge_schema.c    schemas that went apart
 *   merge_rows.c      objects that the source changed, compared with the target's; what comes of them
 *   merge_conflict.c  the list of conflicts
 *
 * What the source did goes into the model of mutations (mutate_job.h), on top of the target's head, which then checks
 * the rules on the net effect and makes the edits.
 */
#ifndef COORD_MERGE_JOB_H
#define COORD_MERGE_JOB_H

#include "coord/merge.h"
#include "coord/mutate_job.h"
#include "store/read/diff.h"
#include "store/schema/evolve.h"
#include "store/state/ancestry.h"

typedef struct mrg_side { /* the source, or a state that both sides come from */
    st_snapshot *snapshot;
    st_snapshot *cast;       /* the same under the merge's schema; NULL: it has that */
    st_table_reader *reader; /* of the table at hand */
} mrg_side;

#define MRG_BASES_MAX 16u

typedef struct mrg_job {
    mut_job mut; /* of the target */
    const co_merge_options *options;
    co_merge_result *result;
    mrg_side source;
    st_history source_history;
    uint64_t source_incarnation;
    mrg_side bases[MRG_BASES_MAX];
    uint32_t base_count;
    mut_object **by_record; /* which object a record of the model is: from 1 */
    uint32_t record_count, record_room;
    sluice_status failed;    /* in a callback that cannot say so */
    bool *adopted;           /* per type: its list is the source's, or goes behind the target's */
    struct mrg_whole *whole; /* per type (merge_whole.c); NULL: nothing to choose from */
    bool takes_schema;       /* the source's, with all tables */
    st_schema *schema;       /* of the merge, where it is not the target's */
    st_snapshot *cast;       /* the target under it */
    st_evolution changes;    /* of the target's schema */
} mrg_job;

static inline st_snapshot *mrg_rows(const mrg_side *side)
{
    return side->cast ? side->cast : side->snapshot;
}

/* merge_rows.c */
sluice_status mrg_compare_table(mrg_job *job, uint32_t type, sluice_error *err);
/* The commit that last wrote the row. */
sluice_status mrg_row_commit(st_table_reader *reader, uint32_t fragment, uint64_t position, pf_id *ret_commit,
                             sluice_error *err);

/* merge_adopt.c */
/* Of a fast-forward: has the source changed so many rows of the table that its list is taken over as it is? */
sluice_status mrg_is_adopted(mrg_job *job, uint32_t type, bool *ret_adopted, sluice_error *err);
sluice_status mrg_adopt_table(mrg_job *job, uint32_t type, sluice_error *err);
/* Of a fast-forward over a change of the schema: the source's schema, and every table as it is there. */
sluice_status mrg_adopt_all(mrg_job *job, sluice_error *err);
/* Fragments of the source's list go behind the target's. */
sluice_status mrg_adopt_behind(mrg_job *job, uint32_t type, const uint32_t *fragments, uint32_t count,
                               sluice_error *err);
/* Adopted tables are written as a whole: their gates are taken alone. After the model has declared its own. */
sluice_status mrg_adopt_gates(mrg_job *job, sluice_error *err);

/* merge_whole.c */
#define MRG_ADOPT_ROWS 4096u /* changed rows from which lists are taken over; fewer are written one by one */
/* Where both sides went on and the source has changed many rows: which tables need no comparing. Fills job->adopted. */
sluice_status mrg_choose_whole(mrg_job *job, sluice_error *err);
sluice_status mrg_adopt_whole(mrg_job *job, uint32_t type, sluice_error *err);
void mrg_drop_whole(mrg_job *job);

/* merge_schema.c */
/* The schema of a merge of two that both went on, before its model is made: where it is another than the target's it
 * goes into job->schema, and every side is seen under it. Conflicts are listed. */
sluice_status mrg_merge_schema(mrg_job *job, sluice_error *err);
/* Once the rows are merged: those that the merge leaves as they are, under what the schema newly demands of them. */
sluice_status mrg_check_schema(mrg_job *job, sluice_error *err);
/* Makes it part of the delta. */
sluice_status mrg_put_schema(mrg_job *job, sluice_error *err);
void mrg_drop_schema(mrg_job *job);

/* merge_conflict.c */
sluice_status mrg_conflict(mrg_job *job, co_conflict_kind kind, const mut_object *object, const char *property,
                           const pf_id *ours, const pf_id *theirs, const char *text, sluice_error *err);
/* Of the schema, between the heads of both sides: of a type (NULL: as a whole), of a property (NULL: of the type). */
sluice_status mrg_schema_conflict(mrg_job *job, const char *type, const char *property, const char *text,
                                  sluice_error *err);
/* Of a row that only the target has a say in: `code` is the rule that it breaks. */
sluice_status mrg_row_conflict(mrg_job *job, sluice_status code, const char *type, const char *key,
                               const char *property, const pf_id *ours, const char *text, sluice_error *err);
void mrg_conflicts_drop(co_merge_result *result);
/* For faults of the model. */
void mrg_on_fault(void *context, uint32_t record, sluice_status code, const char *text);

#endif
