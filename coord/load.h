/*
 * Loading files: the load job, from open inputs to a receipt. Flow and phases: DECISIONS "Who does what in a job".
 */
#ifndef COORD_LOAD_H
#define COORD_LOAD_H

#include "coord/pool.h"
#include "coord/write.h"
#include "platform/user_file.h"
#include "worker/ingest/dialect.h"

typedef enum co_load_mode { CO_LOAD_INSERT, CO_LOAD_UPSERT, CO_LOAD_OVERWRITE } co_load_mode;

typedef struct co_load_input {
    const char *type;          /* as named in the command */
    const char *path;          /* as named in the command; for messages on the terminal only */
    const pf_scratch *scratch; /* its bytes lie here; NULL: in the file of that path */
    const char *format;        /* NULL: as the dialect says */
} co_load_input;

typedef struct co_load_options {
    const char *graph_path;
    const char *branch; /* NULL: main */
    bool create_branch; /* it must not be there, and is made with this load as its first commit */
    const char *from;   /* create_branch: a branch, or a commit of any branch; NULL: main */
    const co_load_input *inputs;
    uint32_t input_count;
    wk_dialect dialect;
    co_load_mode mode;
    unsigned workers;         /* 0: SLUICE_WORKERS, else the machine's processors */
    uint64_t memory;          /* anonymous memory of all processes of the job; 0: half of what there is */
    unsigned stopped_seconds; /* coord/pool.h */
    bool compress, ignore_unknown, skip_bad_rows, dry_run;
    uint64_t max_errors;      /* UINT64_MAX: no ceiling */
    const char *rejects_path; /* JSON Lines of the rows left out; NULL: each is named through `reject` */
    pf_id operation;          /* nil: none given */
    pf_id if_head;
    const char *message;
    const char *actor; /* NULL: "cli" */
    void *progress_context;
    void (*progress)(void *context, const wk_progress *progress, int64_t elapsed_ms);
    bool (*cancelled)(void *progress_context); /* inline only: see wk_job; NULL: never */
    void *reject_context;
    void (*reject)(void *context, const char *file, uint64_t line, const char *code, const char *text);
} co_load_options;

typedef struct co_load_result {
    co_receipt receipt;
    uint64_t rejected;
    double seconds;
    uint64_t memory_peak; /* of all processes together, as sampled; 0 inline */
    uint32_t type_count;
    struct co_load_rows {
        const char *name; /* the command's */
        uint64_t table;
        uint64_t rows;
    } * types; /* rows loaded per table, in the order of the command; every type of the command is there */
    uint32_t bare_count;
    struct co_load_bare { /* an input of a skipping load of which every row was left out */
        const char *path; /* the caller's */
        uint64_t rejected, line;
        char text[640]; /* of the first one */
    } * bare;
    bool unlisted; /* repeated: what the first run left out is counted, and not named again */
} co_load_result;
void co_load_result_free(co_load_result *result); /* its insides; safe on a zeroed one */

/* Runs a load in an embedded pool of workers. A missing input file is USAGE. */
sluice_status co_load(const co_load_options *options, co_load_result *ret_result, sluice_error *err);
/* The same in this process on an open graph (tests on the sim volume); inputs are read from the machine's files. */
sluice_status co_load_inline(st_graph *graph, const co_load_options *options, co_load_result *ret_result,
                             sluice_error *err);

#endif
