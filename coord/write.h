/*
 * The write protocol: one state machine, stages A to H, for every graph-visible write (DESIGN 4, docs/protocol.md).
 *
 * The caller (a job's conductor) gives a co_writer: the payload half (parse, encode, stage; depends on the base only
 * through its types' schema and survives restarts) and the plan half (constraint probes, delta, read set; made again
 * after every conflict, against a fresh base). The machine does everything else: recovery barrier, pin, gates,
 * revalidation, intent, publish, finalize, retries with a budget, receipts.
 */
#ifndef COORD_WRITE_H
#define COORD_WRITE_H

#include "adapters/adapter.h"
#include "coord/read_set.h"
#include "store/read/snapshot.h"
#include "worker/task.h"

typedef struct co_attempt { /* attempts/<id>/: one per job; its lock is shared by everyone who stages under it */
    pf_id id;
    char folder[64]; /* "attempts/<id>" */
    pf_file *lock;
    /* Set by co_write_run, and `litter` also by the job (a task that was tried twice): what co_attempt_finish may skip.
     */
    bool litter;    /* something staged may be named by nothing */
    bool uncertain; /* the write's outcome is unknown, or its intent was left to recovery: nothing may be removed */
    uint64_t incarnation; /* of the branch written to; 0: never came that far */
    uint64_t since;       /* generation of the first base: nothing of this attempt is named at or before it */
} co_attempt;
/* Makes the folder and its lock file, takes the lock shared; synced. */
sluice_status co_attempt_make(st_graph *graph, co_attempt *ret_attempt, sluice_error *err);
/* Another process of the job joins: opens the lock on a descriptor of its own and takes it shared. NOT_FOUND once the
 * attempt is over. */
sluice_status co_attempt_join(st_graph *graph, const pf_id *id, co_attempt *ret_attempt, sluice_error *err);
void co_attempt_leave(co_attempt *attempt); /* closes; safe on a zeroed one */
/* The job's owner, after a known outcome: leaves, and removes the folder, and (when there may be litter) every object
 * that the attempt staged and that no generation names. Best effort: what it cannot remove is co_gc's. Does nothing,
 * successfully, while an intent still names the attempt or somebody else still holds its lock. */
sluice_status co_attempt_finish(st_graph *graph, co_attempt *attempt, sluice_error *err);
/* Of one that has no folder and never had one, after a known outcome: removes what it staged and no generation names.
 */
sluice_status co_attempt_forget(st_graph *graph, const co_attempt *attempt, sluice_error *err);
/* What the job's answer says of it, as co_attempt has it. */
typedef struct co_attempt_left {
    bool litter, uncertain;
    uint64_t incarnation, since;
} co_attempt_left;
/* The owner of a job that ran in other processes is done with its attempt. `left` NULL: there was no answer; then
 * everything that stands is looked at, unless by this error the outcome is not known or not safe: collection comes
 * later. */
void co_attempt_end(st_graph *graph, co_attempt *attempt, const co_attempt_left *left, const sluice_error *error);
/* The same for any attempt whose lock can be taken alone, judged by everything that the graph's generations name. */
sluice_status co_attempt_sweep(st_graph *graph, const pf_id *id, uint64_t *ret_files, uint64_t *ret_bytes,
                               sluice_error *err);

#define CO_WAIT_MS 30000

/* IDEMPOTENCY_CONFLICT: the operation id was used for another request. */
sluice_status co_fail_other_request(sluice_error *err);

typedef struct co_request {
    const char *branch;   /* name */
    bool creates;         /* makes the branch, with this commit as its first; it must not be there */
    const char *from;     /* creates: where it begins (coord/branch.h); NULL: main's head */
    pf_id operation;      /* minted by the command when the user gave none; never nil */
    bool operation_given; /* by --op-id: looked up before staging */
    pf_sha256 request;    /* digest of the content; may be set by the payload half (co_write_set_request) */
    const char *actor;    /* for the commit; NULL: "cli" */
    const char *message;  /* NULL: none */
    pf_id if_head;        /* nil: unconditional */
    bool dry_run;         /* plans and changes nothing: the receipt has the counts and no commit */
    int64_t wait_ms;      /* bound of every wait for gates and the publish lock; 0: CO_WAIT_MS */
    const uint64_t
        *tables; /* the tables that it will touch or probe, where the caller knows them before it prepares: an */
    uint32_t table_count; /* unresolvable intent then fails the write before an hour of staging instead of after it */
} co_request;

typedef struct co_receipt {
    bool committed; /* false: nothing to do, no commit */
    bool repeated;  /* an exact retry: this is the first receipt */
    pf_id commit, operation;
    uint64_t incarnation, generation;
    uint32_t index;
    int64_t time_us;
    uint64_t inserted, updated, deleted;
    bool acknowledged;
    unsigned restarts;
    bool followed;          /* a follow-up was done */
    char not_followed[256]; /* or why not */
} co_receipt;

/* What stands while a write runs. */
typedef struct co_write {
    st_graph *graph;
    const co_request *request;
    wk_executor *executor;
    co_attempt *attempt;
    st_snapshot *base;    /* pinned, after A */
    uint32_t plan_number; /* new for each plan, also of another conductor of the job: staged names of a plan carry it */
    /* filled by the plan half: */
    st_delta delta;    /* the machine has filled commit's id, operation, request, kind, actor, message, minted time, and
                        * the schema identity: the plan adds counts, edits, change sets, perhaps a new
                        * schema. No edit and no new schema: nothing to do, no commit */
    co_read_set reads; /* incarnation, schema identity and head are there already */
    lk_gate_key *gates; /* malloc'd; the machine frees it */
    uint32_t gate_count;
    ad_effect *effects; /* visible by themselves; malloc'd */
    uint32_t effect_count;
    bool lineage; /* publishes a commit also without an edit: its parents are what it says (merge), or it folds */
    bool arms;    /* the adapter's, unless the plan knows better: a plan that staged something sets it */
} co_write;
/* For a plan that comes to stage something in a write that began without an attempt: makes one, which ends with the
 * write. Does nothing when there is one. */
sluice_status co_write_need_attempt(co_write *write, sluice_error *err);
/* Sets request.request once the payload half knows it; the receipt look-up by operation id then happens. Returns
 * SLUICE_OK to go on; *ret_done true when the operation was found done (the machine answers its receipt). */
sluice_status co_write_set_request(co_write *write, const pf_sha256 *request, bool *ret_done, sluice_error *err);

typedef struct co_writer {
    const ad_adapter *adapter;
    void *context;
    /* Called once, and again only when the schema changed under it. NULL: none. */
    sluice_status (*payload)(void *context, co_write *write, sluice_error *err);
    /* Called for each plan, with write->base and write->plan_number new. */
    sluice_status (*plan)(void *context, co_write *write, sluice_error *err);
    bool once; /* a conflict ends it, also where the adapter replays: the user decides anew (overwrite) */
} co_writer;

/* Runs A to H. On failure err carries phase, committed, acknowledged, operation and commit id. The executor's fence
 * check (when it has one) is installed in the graph's volume and stays there: it must live as long as the graph's
 * handle. */
sluice_status co_write_run(st_graph *graph, const co_request *request, co_attempt *attempt, wk_executor *executor,
                           const co_writer *writer, co_receipt *ret_receipt, sluice_error *err);
/* A job failed with `err` before its write began: under its operation id, when that was given, somebody may have
 * written before. Where that is so, or cannot be told, err says that it is not known whether the operation is
 * committed. Of the request: operation, operation_given, branch, creates. */
void co_write_not_begun(st_graph *graph, const co_request *request, sluice_error *err);

#endif
