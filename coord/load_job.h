/*
 * The inside of the load job: what is fixed before the workers are forked (load_spec), what each process of the job has
 * (load_job), and the phases of its tasks.
 *
 *   | phase           | task                      | leaves in the attempt's folder           |
 *   | LOAD_SPOOL      | one input that is no file | its plain bytes (load_spool.c)           |
 *   | LOAD_BOUNDARIES | one chunk of one input    | its lanes, lines and digest              |
 *   | LOAD_ROWS + s   | the same                  | what was staged (worker/ingest/staged.h) |
 *   | LOAD_LAST       | one range of the keys     | the rows passed over (load_last.c)       |
 *   | LOAD_COMPLETE   | one chunk, of an upsert   | what its rows became (load_upsert.c)     |
 *   | LOAD_WHOLE      | the same, of one that skips | its rows in their places (load_whole.c) |
 *   | LOAD_NAMED + s  | as LOAD_ROWS, but only of inputs that name their rows (load_names.c)  |
 *   | LOAD_PROBES + r | one range of one probe    | the rows refused                         |
 *   | LOAD_REJECTS    | one chunk of one input    | the rows left out of it, in words        |
 *
 * s counts the schemas that the load met (nearly always one), r is the rule of a skipping load, 0 for all rules at
 * once. What the tasks of a phase go by besides is written down by the conductor first: "payload-<s>" the schema,
 * "plan-<n>" the base, n counting the plans of all conductors. A task takes the newest plan; results carry its number,
 * so that what a dead conductor's plan left is never taken for the answer of another base.
 */
#ifndef COORD_LOAD_JOB_H
#define COORD_LOAD_JOB_H

#include "coord/branch_impl.h"
#include "coord/load.h"
#include "platform/user_file.h"
#include "worker/ingest/format.h"
#include "worker/ingest/probe.h"
#include "worker/ingest/stage.h"

#define LOAD_BOUNDARIES 1u
#define LOAD_SPOOL      48u
#define LOAD_COMPLETE   49u
#define LOAD_LAST       50u
#define LOAD_WHOLE      51u
#define LOAD_ROWS       2u /* + number of the payload */
#define LOAD_PAYLOADS   32u
#define LOAD_PROBES     64u /* + rule */
#define LOAD_NAMED      96u /* + number of the payload */
#define LOAD_REJECTS    80u

typedef struct load_input {
    const char *type, *path;
    wk_dialect dialect; /* resolved */
    wk_format format;
    uint64_t table; /* of the type, when the command was given */
    bool has_header;
    uint32_t header_of; /* the input whose header names its columns: itself, or with --header first the type's first */
    wk_packing packing;
    bool spooled; /* its plain bytes are copied into the attempt first */
    pf_input *file;
    pf_input_identity identity; /* when it was opened */
} load_input;

typedef struct load_spec {
    const co_load_options *options;
    load_input *inputs;
    uint32_t input_count, spooled_count;
    int *descriptors;
    st_graph *graph; /* the caller's, for a job in this process alone; else NULL: each process opens its own */
    pf_id attempt;
    pf_id operation;
    const char *branch;
    co_source source;     /* of a load that makes its branch; else its name is `branch` and its place the head */
    size_t piece;         /* bytes per read: SLUICE_SPLIT */
    uint64_t chunk;       /* bytes of a chunk */
    uint64_t memory_peak; /* measured by the supervisor */
} load_spec;

typedef struct load_file { /* an input, once its chunks are known */
    uint32_t chunks, first_task;
    pf_file *spool; /* NULL: the input itself is read */
    wk_input input;
    void *state; /* of its format: see wk_input */
    wk_chunk *places;
    wk_shape shape;
    wk_columns columns; /* under the payload's schema */
    wk_fault fault;     /* of its header; then it has no mapping */
    char *spaces[3];    /* of load-local names: of its rows, its ends; NULL: none is said */
} load_file;

typedef struct load_payload {
    bool ready;
    uint32_t number;
    pf_sha256 identity;
    st_schema *schema;
} load_payload;

/* Load-local names (load_names.c), under the payload's schema. */
typedef struct load_name_set { /* of one node type */
    const st_type_def *node;
    wk_name_type type;
    wk_names names;
} load_name_set;
typedef struct load_names {
    load_name_set *sets;
    uint32_t set_count;
    bool wanted; /* edges of the load use them: the rows get their ids from `block` */
    bool ready;  /* from here on: */
    uint64_t block;
    wk_catalogue catalogue; /* the names of each task's rows, by the number of the task */
} load_names;

/* Rows of an upsert that skips bad rows which a probe is not about, and rows of the base that it passes over. */
typedef struct load_rows_of {
    uint64_t table;
    uint32_t unique; /* UINT32_MAX: edges */
    st_row_set **except, *hidden;
} load_rows_of;

typedef struct load_plan {
    bool ready;
    uint32_t number;
    pf_id commit; /* the base */
    uint64_t generation;
    st_snapshot *base; /* a task's own, or borrowed by the conductor */
    bool own_base;
    pf_id write;   /* the commit that it may become */
    bool has_rows; /* of an upsert: what the rows became */
    wk_catalogue rows;
    bool has_whole; /* of an upsert that skips bad rows (load_whole.c): */
    wk_catalogue whole;
    st_row_set **weak; /* per item, like all of these: rows that cannot stand */
    load_rows_of *rows_of;
    uint32_t rows_of_count;
    st_row_set **passed, **followers; /* dead rows that another stands in for; of these, those whose other fell */
    bool has_probes;
    wk_probe *probes;
    uint32_t probe_count;
    uint32_t dead_below; /* the catalogue's dead rows are those left out by the rules below this one, or passed over by
                            an upsert; 0: none is there yet */
    bool *refused;       /* per probe: has it refused a row? */
} load_plan;

typedef struct load_lines { /* the list of lines that was asked last */
    pf_file *file;
    uint32_t item;
} load_lines;

typedef struct load_job {
    const load_spec *spec;
    wk_executor *executor;
    st_graph *graph;
    bool own_graph;
    co_attempt attempt;
    pf_sha256 request; /* conductor: the request's digest */
    wk_spool spool;
    load_file *files;
    bool has_chunks;      /* from here on: */
    uint32_t chunk_count; /* of all files */
    bool has_places;
    load_payload payload;
    load_names names;
    bool has_catalogue;
    wk_catalogue catalogue;
    load_plan plan;
    uint64_t rejected;
    pf_id outcome; /* under which the last plan of a skipping load left what it skipped (load_skip.c) */
    load_lines lines;
} load_job;

#define LOAD_RESULT_NAME "rows" /* of a dry run: rows per input, as an array of numbers */

/* What the conductor hands back through the pool. */
typedef struct load_answer {
    co_receipt receipt;
    pf_id outcome;     /* of a skipping load: under which it left what it skipped */
    pf_sha256 request; /* the request's digest */
    bool litter, uncertain;
    uint64_t incarnation, since;
} load_answer;

extern const wk_job load_job_template; /* without spec */

/* load.c: the request, its inputs open. Freed by load_spec_close, also when this fails. */
sluice_status load_spec_open(const co_load_options *options, load_spec *spec, sluice_error *err);
void load_spec_close(load_spec *spec);

/* load_spool.c: compressed inputs and streams */
sluice_status load_spool_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_spool_open(load_job *job, uint32_t input, sluice_error *err);

/* load_chunks.c: chunks, boundaries, the request's digest */
sluice_status load_files_open(load_job *job, sluice_error *err);
sluice_status load_chunks_get(load_job *job, sluice_error *err); /* how many there are, once all is spooled */
void load_files_close(load_job *job);
void load_find_chunk(const load_job *job, uint32_t task, uint32_t *ret_input, uint32_t *ret_chunk);
sluice_status load_boundary_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_places_get(load_job *job, sluice_error *err); /* joins what the boundary tasks left */
sluice_status load_request_digest(load_job *job, pf_sha256 *ret_digest, sluice_error *err);
sluice_status load_inputs_check(load_job *job, sluice_error *err); /* INPUT_CHANGED */
wk_chunk_view load_chunk_view(const load_job *job, uint32_t input, uint32_t chunk);

/* load_rows.c: mappings, the row tasks, the catalogue */
sluice_status load_payload_begin(load_job *job, const st_view *base, sluice_error *err);
sluice_status load_payload_get(load_job *job, uint32_t number, sluice_error *err);
void load_payload_drop(load_job *job);
/* What a row task left. The buffer is scratch. */
sluice_status load_staged_get(load_job *job, uint32_t task, pf_buffer *buffer, wk_staged *ret_staged,
                              sluice_error *err);
sluice_status load_row_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_catalogue_get(load_job *job, sluice_error *err);
void load_catalogue_drop(load_job *job);
/* Every name that tasks made for a catalogue is durable before anything names it. */
sluice_status load_sync_folders(const load_job *job, const wk_catalogue *catalogue, sluice_error *err);
/* The least fault that the rows have. */
void load_rows_least(const load_job *job, wk_fault *ret_fault);

/* load_probes.c: the probe tasks and what they refuse */
sluice_status load_plan_begin(load_job *job, st_snapshot *base, const pf_id *commit, sluice_error *err);
void load_plan_drop(load_job *job);
sluice_status load_plan_get(load_job *job, sluice_error *err); /* a task's: the newest plan there is */
sluice_status load_probe_task(load_job *job, uint32_t phase, uint32_t task, sluice_error *err);
/* What the check finds, as the task's result: a list of this name. */
sluice_status load_list_events(load_job *job, wk_probe_run run, const char *name, sluice_error *err);
/* What is to be checked under this plan, once that is known. */
sluice_status load_probes_make(load_job *job, sluice_error *err);
/* Runs all probes; a strict load's least fault of them and of the rows ends it. */
sluice_status load_probes_run(load_job *job, sluice_error *err);

void load_events_name(uint32_t plan, uint32_t phase, uint32_t task, char ret_name[WK_SPOOL_NAME]);
uint32_t load_probe_tasks(const load_job *job, uint32_t phase);
/* The last rule of a skipping load: what it finds ends the load. */
sluice_status load_stranded_run(load_job *job, sluice_error *err);
/* Takes the newest plan. */
sluice_status load_plan_get(load_job *job, sluice_error *err);

/* load_overwrite.c: loads that replace whole types */
bool load_replaces(const load_job *job, const st_type_def *type);
/* Fits the plan's probes to it: what is replaced does not count, and edges that stay must keep their ends. */
sluice_status load_overwrite_probes(load_job *job, sluice_error *err);
/* What a replacement reads and changes beside what its rows do. */
sluice_status load_overwrite_sets(const load_job *job, const st_type_def *type, co_write *write, sluice_error *err);
/* An edge that would be stranded, as a fault of the first input of its node's type. */
sluice_status load_fault_of_stranded(load_job *job, const wk_event *event, wk_fault *ret_fault, sluice_error *err);

/* load_skip.c: the phases of a skipping load */
/* Makes the dead rows of the catalogue those that the rules below `rule` refuse. *ret_whole false: they are not all
 * known (the caller's work is that of an older plan, and nobody waits for it). */
sluice_status load_dead_get(load_job *job, uint32_t rule, bool *ret_whole, sluice_error *err);
void load_dead_drop(load_job *job);
/* Row sets per item of the catalogue, NULL at first. */
sluice_status load_row_sets_new(uint32_t items, st_row_set ***ret_sets, sluice_error *err);
void load_row_sets_free(st_row_set **sets, uint32_t items); /* NULL allowed */
/* Adds what the tasks of a phase list (as load_events_name has it) to rows. `refused`: per probe, whether it is in
 * them; NULL: not asked. After *ret_whole false or an error the caller drops them all. */
sluice_status load_bury(load_job *job, st_row_set **rows, uint32_t number, uint32_t phase, uint32_t tasks,
                        bool *refused, bool *ret_whole, sluice_error *err);
/* How many lists a rule has: one for each task, and perhaps one more (load_settle.c). */
uint32_t load_rule_lists(const load_job *job, uint32_t rule);
/* Runs the probes rule by rule, and leaves what is left out in words and numbers under the plan's commit id. */
sluice_status load_skip_run(load_job *job, const pf_id *commit, sluice_error *err);
uint64_t load_left_out(const load_job *job, uint32_t item);
bool load_is_left_out(const load_job *job, uint32_t item, uint64_t position); /* of the rows that were staged */
/* The same once more for a load that another run committed. Nothing is left when that cannot be known any more. */
sluice_status load_skip_again(load_job *job, const co_receipt *receipt, sluice_error *err);

/* load_rejects.c: the rows left out, in words */
typedef sluice_status load_reject_fn(void *context, const wk_fault *fault, const pf_buffer *record, bool *ret_enough,
                                     sluice_error *err);
/* Calls `each` for the rows left out of a chunk, in order of the file, until it has enough. `record`: as it stands in
 * the file, without its line end. */
sluice_status load_rejects_each(load_job *job, uint32_t item, load_reject_fn *each, void *context, sluice_error *err);
sluice_status load_reject_task(load_job *job, uint32_t task, sluice_error *err);
void load_rejects_name(uint32_t plan, uint32_t item, char ret_name[WK_SPOOL_NAME]);
/* The line on which a staged row began. */
sluice_status load_line_get(load_job *job, uint32_t item, uint64_t position, uint64_t *ret_line, sluice_error *err);
void load_lines_close(load_job *job);
void load_lines_name(uint32_t payload, uint32_t task, char ret_name[WK_SPOOL_NAME]);

/* load_left_out.c: what a skipping load tells its user */
typedef struct load_left_out_input {
    uint64_t rows, rejected;
    uint32_t first_item, items;
    uint64_t line; /* of an input without any row: its first rejected one */
    char text[WK_FAULT_TEXT];
} load_left_out_input;
sluice_status load_outcome_put(const wk_spool *spool, const pf_id *commit, uint32_t plan,
                               const load_left_out_input *inputs, uint32_t count, sluice_error *err);
sluice_status load_outcome_has(const wk_spool *spool, const pf_id *commit, bool *ret_has, sluice_error *err);
/* Opens the rejects file, before any work. */
sluice_status load_rejects_open(const load_spec *spec, pf_output **ret_output, sluice_error *err);
/* Writes down or says every row left out by the plan of this commit, closes the file, and fills the result. */
sluice_status load_rejects_tell(const load_spec *spec, const wk_spool *spool, const pf_id *commit, pf_output *output,
                                co_load_result *result, sluice_error *err);
/* load_names.c: load-local names of nodes without a key */
sluice_status load_names_find(load_job *job, sluice_error *err); /* once the columns of all nodes are known */
void load_names_name_ends(load_job *job, uint32_t input);        /* before those of an edge are */
sluice_status load_names_spaces(load_job *job, sluice_error *err);
void load_names_drop(load_job *job);
const load_name_set *load_names_of(const load_job *job, const st_type_def *node); /* NULL: its rows have none */
sluice_status load_names_put(load_job *job, uint32_t task, const wk_staged *names, sluice_error *err);
sluice_status load_names_get(load_job *job, sluice_error *err);
/* Stages the inputs that name rows and takes the row ids for them. */
sluice_status load_names_run(load_job *job, wk_executor *executor, sluice_error *err);
sluice_status load_names_apply(load_job *job, sluice_error *err); /* the ids, to the catalogue */
sluice_status load_names_probes(load_job *job, sluice_error *err);

/* load_last.c: of the rows of an upsert that have one key, the last one counts */
sluice_status load_last_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_last_run(load_job *job, sluice_error *err);
/* Makes the dead rows of the catalogue those that are passed over. *ret_whole as for load_dead_get. */
sluice_status load_last_get(load_job *job, bool *ret_whole, sluice_error *err);

/* load_upsert.c: loads that complete their rows from the base */
bool load_completes(const load_job *job);
const wk_catalogue *load_plan_rows(const load_job *job); /* what the plan adds: the catalogue, or what it became */
uint64_t load_slice_rows(void);                          /* that are completed at a time */
void load_absent_name(const load_job *job, uint32_t task, char ret_name[WK_SPOOL_NAME]);
sluice_status load_complete_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_complete_run(load_job *job, co_write *write, sluice_error *err); /* nothing for other modes */
/* *ret_ready false: not all of it is there (yet). */
sluice_status load_plan_rows_get(load_job *job, bool *ret_ready, sluice_error *err);
void load_plan_rows_drop(load_job *job);
void load_upsert_probes(load_job *job);
/* The least fault of a row that could not be completed. */
sluice_status load_complete_least(load_job *job, wk_fault *ret_fault, sluice_error *err);
/* The row ids that the edit of an upsert deletes, for they are added again. */
sluice_status load_upsert_deletes(const load_job *job, const st_type_def *type, co_write *write, st_edit *edit,
                                  sluice_error *err);
/* Hashes of unique tuples that updated rows freed or newly set, sorted; `many`: more than the limit, then none. */
typedef struct load_hashes {
    uint64_t *items; /* the caller frees them */
    uint64_t count;
    bool many;
} load_hashes;
sluice_status load_upsert_tuples(const load_job *job, const st_type_def *type, uint32_t unique, bool freed,
                                 uint64_t limit, load_hashes *ret_hashes, sluice_error *err);
/* Sets changed[p] for each property that some updated row has another value of. */
sluice_status load_upsert_changed(const load_job *job, const st_type_def *type, bool *changed, sluice_error *err);

/* load_whole.c: what the rules of an upsert look at that skips bad rows */
bool load_judges_whole(const load_job *job); /* is it one? */
sluice_status load_whole_task(load_job *job, uint32_t task, sluice_error *err);
sluice_status load_whole_run(load_job *job, sluice_error *err);
sluice_status load_whole_get(load_job *job, bool *ret_ready, sluice_error *err); /* *ret_ready as load_plan_rows_get */
void load_whole_drop(load_job *job);
/* Where the base has the rows of an item (worker/ingest/whole.h). */
sluice_status load_bases_open(const load_job *job, uint32_t item, pf_file **ret_file, sluice_error *err);
uint32_t load_unique_number(const wk_probe *probe); /* the place of its unique tuple in the type */
/* Fills in which rows a probe looks at; *rows is what it looks into. */
sluice_status load_whole_run_of(load_job *job, wk_probe_run *run, wk_catalogue *rows, sluice_error *err);
/* What the rules of this load look at. */
const wk_catalogue *load_judged(const load_job *job);
/* The rows that a probe is about. */
static inline const wk_catalogue *load_probe_rows(const load_job *job, const wk_probe *probe)
{
    return probe->of_names ? &job->names.catalogue : load_judged(job);
}

/* load_settle.c: what falls because unique tuples come back */
sluice_status load_settle_run(load_job *job, sluice_error *err);

/* load_fault.c: events as faults */
sluice_status load_fault_of_event(load_job *job, const wk_event *event, wk_fault *ret_fault, sluice_error *err);
/* The same where its record is at hand. */
sluice_status load_fault_of_record(load_job *job, const wk_event *event, wk_record *record, wk_fault *ret_fault,
                                   sluice_error *err);
sluice_status load_fail(const load_job *job, const wk_fault *fault, sluice_error *err);

/* load_plan.c: the plan half */
sluice_status load_plan_make(void *context, co_write *write, sluice_error *err);

#endif
