/*
 * A client of a supervisor: one connection to its control socket (docs/operations.md "The control socket").
 */
#ifndef COORD_HOST_CALL_H
#define COORD_HOST_CALL_H

#include "platform/buffer.h"
#include "platform/ids.h"
#include "store/format/tree.h"

typedef struct co_call co_call;

/* NOT_FOUND when nobody listens there, PERMISSION. `hinted`: the place is told by a file and not by the user, so only a
 * supervisor of this user, or of root, is spoken to; another one is NOT_FOUND. */
sluice_status co_call_open(const char *socket, bool hinted, co_call **ret_call, sluice_error *err);
void co_call_close(co_call *call); /* NULL allowed */

typedef struct co_call_job {
    uint64_t device, inode; /* of the graph's folder, where it can be seen; else 0 */
    const char *graph;      /* else its name */
    const char *command;
    char *const *words;
    uint32_t word_count;
    const char *text; /* UTF-8; NULL: none */
    size_t text_length;
    const char *const *inputs; /* names, and what they are: the supervisor opens nothing */
    const int *descriptors;
    uint32_t input_count;
    int folder;       /* the working folder, or -1 */
    bool once;        /* some input can be read once only */
    bool terminal;    /* standard error is one */
    bool streams;     /* output is wanted as it comes */
    pf_id operation;  /* nil: none was given */
    unsigned workers; /* 0: as many as may be */
} co_call_job;

typedef sluice_status co_call_output_fn(void *context, unsigned stream, const char *text, size_t length,
                                        sluice_error *err);

/* Would this request fit into one line? Else its text has to go as an input. */
bool co_call_fits(const co_call_job *job);
/* Runs a job to its end. NOT_FOUND with *ret_hosted false: the graph is not hosted there. SIGINT asks for the job to be
 * cancelled; at the second one the client leaves it (CANCELLED), and the job goes on. */
sluice_status co_call_run(co_call *call, const co_call_job *job, co_call_output_fn *output, void *context,
                          bool *ret_hosted, int *ret_exit, sluice_error *err);
/* Any method; `params` NULL or an object as JSON. The result is a node of *ret_tree, which the caller frees. */
sluice_status co_call_ask(co_call *call, const char *method, const char *params, st_tree **ret_tree,
                          const st_node **ret_result, sluice_error *err);

#endif
