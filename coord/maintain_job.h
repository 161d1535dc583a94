/*
 * The inside of the maintenance job. Phases of its tasks:
 *
 *   | phase             | task                    | leaves in the attempt's folder            |
 *   | MAINTAIN_WORK + n | one item of work list n | "item-<n>-<i>": what a substitution names |
 *
 * The payload half chooses what to do by the first base, writes it down as "work-<n>", and has it done: a substitution
 * stays good whatever rows change meanwhile, so a restart makes the edits anew and stages nothing again. Tasks open
 * the list's base by its commit. A conductor that takes over goes on with the list that it finds, as long as its base
 * can be opened and its schema is the branch's.
 *
 * The plan half makes one substitution per table of those items that still hold, and reads CO_READ_FRAGMENTS: it meets
 * nothing but others who take the same fragments away. It holds the folder byte of each table from before its first
 * base to its end, and takes the tables' gates alone only from C on.
 */
#ifndef COORD_MAINTAIN_JOB_H
#define COORD_MAINTAIN_JOB_H

#include "coord/maintain.h"
#include "worker/ingest/spool.h"

#define MAINTAIN_WORK  2u /* + number of the work list */
#define MAINTAIN_LISTS 32u

typedef struct maintain_spec {
    const co_maintain_options *options;
    st_graph *graph; /* the caller's, for a job in this process alone; else NULL: each process opens its own */
    pf_id attempt;
    pf_id operation;
    pf_sha256 request;
    const char *branch;
    uint64_t memory_peak; /* gets it */
} maintain_spec;

typedef enum maintain_task {
    MAINTAIN_COMPACT, /* fragments into one: leaves its substitution, as an edit */
    MAINTAIN_RUNS,    /* a fragment's lost runs: leaves an edit that adds the fragment with all of its runs */
    MAINTAIN_OUT,     /* adjacency of fragments: leaves an st_run_info */
    MAINTAIN_IN
} maintain_task;

typedef struct maintain_item {
    uint64_t table;
    uint32_t task;         /* maintain_task */
    uint32_t first, count; /* of the list's fragments */
} maintain_item;

/* What is to be done, by one base. Items of a table follow each other, in the order of its list. */
typedef struct maintain_work {
    bool ready;
    uint32_t number;
    pf_sha256 schema_identity;
    pf_id commit; /* of the base */
    uint64_t generation;
    maintain_item *items;
    uint32_t item_count;
    uint32_t *fragments; /* numbers in the tables' lists at the base */
    uint32_t fragment_count;
} maintain_work;

typedef struct maintain_job {
    const maintain_spec *spec;
    wk_executor *executor;
    st_graph *graph;
    bool own_graph;
    co_attempt attempt;
    wk_spool spool;
    maintain_work work;
    st_snapshot *base;    /* of the work list */
    lk_lockfile *folders; /* conductor: folder bytes that are held */
    uint64_t incarnation; /* conductor: of the branch */
    uint64_t *tables;     /* conductor: of the command, ascending */
    uint32_t table_count;
    st_edit *results; /* conductor: per item of optimize's list */
} maintain_job;

typedef struct maintain_answer { /* what the conductor hands back through the pool */
    co_receipt receipt;
    bool litter, uncertain;
    uint64_t incarnation, since;
} maintain_answer;

extern const wk_job maintain_job_template; /* without spec */

/* maintain_work.c: the list */
sluice_status maintain_work_add(maintain_work *work, uint64_t table, maintain_task task, const uint32_t *fragments,
                                uint32_t count, sluice_error *err);
sluice_status maintain_work_put(maintain_job *job, sluice_error *err); /* writes it down under the next number */
sluice_status maintain_work_get(maintain_job *job, uint32_t number, bool *ret_found, sluice_error *err);
void maintain_work_drop(maintain_job *job); /* with its base and results */
void maintain_list_name(uint32_t number, char ret_name[WK_SPOOL_NAME]);
void maintain_item_name(uint32_t number, uint32_t item, char ret_name[WK_SPOOL_NAME]);
sluice_status maintain_put_edit(maintain_job *job, uint32_t item, const st_edit *edit, sluice_error *err);
sluice_status maintain_get_edit(maintain_job *job, uint32_t item, st_edit *ret_edit, sluice_error *err);
/* The prefix and the first number of the files that an item stages. */
void maintain_names(const maintain_job *job, uint32_t item, char ret_prefix[48], uint64_t *ret_number);
void maintain_advance(void *job, uint64_t rows, uint64_t bytes);

/* optimize.c */
/* Is one of the options' conditions reached, or none given? */
sluice_status optimize_is_wanted(const maintain_job *job, st_snapshot *base, const st_type_def *type, bool *ret_wanted,
                                 sluice_error *err);
sluice_status optimize_choose(maintain_job *job, st_snapshot *base, const st_type_def *type, sluice_error *err);
sluice_status optimize_task(maintain_job *job, uint32_t item, sluice_error *err);
/* The substitution of a table, of those items [first, end) that hold at the write's base; nothing is left out of
 * *ret_edit but what does not. */
sluice_status optimize_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, st_edit *ret_edit,
                            sluice_error *err);

/* index.c */
sluice_status index_choose(maintain_job *job, st_snapshot *base, const st_type_def *type, sluice_error *err);
sluice_status index_task(maintain_job *job, uint32_t item, sluice_error *err);
sluice_status index_edit(maintain_job *job, co_write *write, uint32_t first, uint32_t end, st_edit *ret_edit,
                         sluice_error *err);

#endif
