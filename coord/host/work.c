/*
 * Inside a runner: orders in, a command of the program, its exit status out (see coord/host/host.h).
 *
 * The runner belongs to one graph for its whole life. One that stays opens it before the first order and keeps it open;
 * what a command does is the command's own. It ends when its channel does; the kernel ends it with the supervisor.
 */
#include "coord/host/host.h"
#include "platform/allowance.h"
#include "platform/check.h"
#include "platform/confine.h"
#include "platform/failpoint.h"
#include "platform/memory.h"
#include "platform/terminal.h"
#include "platform/user_file.h"
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_EVERY   64u
#define HEAP_EVERY_MS 100

/* What jobs make there counts against the quota while they make it. Logs, intents and control/ grow by little, and what
 * recovery does never fails for a quota. */
static const char *const staged[] = {"tables/", "attempts/", NULL};

typedef struct work_state {
    const host_place *place;
    st_graph *graph;
    wk_executor executor;
    shm_gate_user gate_user;
    lk_gate_hooks gates;
    shm_publisher publisher;
    pf_watch *watch;
    bool interrupted;
    host_order order;
    int64_t heap_told_ns;
    unsigned uncounted; /* orders since the bytes on disk were counted */
    sluice_error full;
    co_host_fate fate;
    pf_id commit;
    char *line;
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    uint32_t descriptor_count;
} work_state;

/* Reads exactly so many bytes; false at the end of the channel. */
static bool receive(work_state *worker, void *bytes, size_t length)
{
    size_t have = 0;
    while (have < length) {
        size_t got = 0;
        uint32_t count = 0;
        bool again = false, lost = false;
        if (pf_socket_receive(worker->place->channel, (char *)bytes + have, length - have,
                              worker->descriptors + worker->descriptor_count,
                              PF_SOCKET_DESCRIPTORS_MAX - worker->descriptor_count, &count, &lost, &got, &again,
                              NULL) != SLUICE_OK ||
            got == 0)
            return false;
        worker->descriptor_count += count;
        have += got;
    }
    return true;
}

static bool next_order(work_state *worker)
{
    if (!receive(worker, &worker->order, sizeof worker->order))
        return false;
    PF_ALWAYS(worker->order.length <= HOST_LINE_MAX);
    worker->line = malloc(worker->order.length + 1);
    return worker->line && receive(worker, worker->line, worker->order.length) &&
           worker->descriptor_count == worker->order.descriptors;
}

static void drop_order(work_state *worker)
{
    free(worker->line);
    worker->line = NULL;
    for (uint32_t i = 0; i < worker->descriptor_count; i++)
        pf_descriptor_close(&worker->descriptors[i]);
    worker->descriptor_count = 0;
}

static bool is_interrupted(void *context)
{
    work_state *worker = context;
    pf_event event = {0};
    if (!worker->interrupted && pf_watch_next(worker->watch, PF_AT_ONCE, &event, NULL) == SLUICE_OK)
        worker->interrupted = event.kind == PF_EVENT_INTERRUPT;
    return worker->interrupted;
}

static bool is_allowed(void *context)
{
    work_state *worker = context;
    return shm_token_allowed(worker->place->region, &worker->place->token);
}

/* The graph of a runner that stays. What is wrong with it the command says, when it opens it itself. */
static void open_graph(work_state *worker)
{
    if (!worker->place->stays || worker->graph ||
        st_graph_open(worker->place->graph_path, PF_WRITE, &worker->graph, NULL) != SLUICE_OK)
        return;
    worker->executor = (wk_executor){.context = worker,
                                     .workers = 1,
                                     .gates = &worker->gates,
                                     .publisher = &worker->publisher,
                                     .epoch = worker->place->region->header->epoch,
                                     .given_up = worker->place->given_up,
                                     .given_up_count = worker->place->given_up_count,
                                     .allowed = is_allowed,
                                     .cancelled = is_interrupted};
}

static const char **texts_of(const st_node *array)
{
    const char **texts = calloc(array ? (size_t)array->count + 1 : 1, sizeof *texts);
    uint32_t at = 0;
    for (const st_node *item = array ? array->first : NULL; texts && item; item = item->next)
        texts[at++] = item->text;
    return texts;
}

static bool is_true(const st_node *params, const char *name)
{
    const st_node *node = st_node_member(params, name);
    return node && node->kind == ST_NODE_BOOL && node->boolean;
}

/* Counted anew now and then, and whenever it would matter: a job begins only while its graph has less than its quota,
 * and ends when it comes to have more. */
static const sluice_error *find_full(work_state *worker)
{
    uint64_t quota = worker->order.quota;
    uint64_t used = __atomic_load_n(worker->place->disk, __ATOMIC_RELAXED);
    const pf_allowance allowance = {
        .used = worker->place->disk, .limit = quota, .folder = worker->place->graph_path, .counted = staged};
    pf_allowance_set(quota > 0 ? &allowance : NULL);
    if (quota == 0)
        return NULL;
    if (used == 0 || used >= quota || worker->uncounted++ >= COUNT_EVERY) {
        used = pf_folder_bytes(worker->place->graph_path);
        __atomic_store_n(worker->place->disk, used, __ATOMIC_RELAXED);
        worker->uncounted = 0;
    }
    if (used < quota)
        return NULL;
    worker->full = (sluice_error){0};
    (void)pf_fail(&worker->full, SLUICE_QUOTA, "the graph has %llu bytes of disk, and may have %llu",
                  (unsigned long long)used, (unsigned long long)quota);
    pf_hint(&worker->full, PF_QUOTA_HINT);
    return &worker->full;
}

/* The supervisor has looked at all of it before. */
static int run(work_state *worker, const st_node *params)
{
    const st_node *words = st_node_member(params, "words");
    const st_node *text = st_node_member(params, "text");
    const st_node *inputs = st_node_member(params, "inputs");
    uint32_t input_count = inputs && inputs->kind == ST_NODE_ARRAY ? inputs->count : 0;
    const char **names = texts_of(input_count > 0 ? inputs : NULL);
    const char **list = texts_of(words);
    union { /* the program's own words are not const, and are not written to */
        const char **const_words;
        char **words;
    } given = {.const_words = list};
    bool foreign = worker->order.foreign != 0;
    co_host_task task = {.graph_path = worker->place->graph_path,
                         .graph = worker->graph,
                         .executor = worker->graph ? &worker->executor : NULL,
                         .command = worker->place->program->commands[worker->order.command].name,
                         .words = given.words,
                         .word_count = words->count,
                         .text = text && text->kind == ST_NODE_STRING ? text->text : NULL,
                         .text_length = text && text->kind == ST_NODE_STRING ? text->length : 0,
                         .terminal = is_true(params, "terminal"),
                         .foreign = foreign,
                         .operation = worker->order.operation,
                         .attempt = worker->order.attempt,
                         .workers = worker->order.workers,
                         .full = find_full(worker),
                         .memory = worker->order.memory,
                         .stopped_seconds = worker->order.stopped_seconds};
    int exit = 1;
    if (names && list && worker->order.looks) {
        worker->fate = worker->place->program->find_fate(&task, &worker->commit);
    } else if (names && list) {
        if (is_true(params, "folder") && !foreign)
            (void)pf_working_folder_set(worker->descriptors[input_count], NULL); /* else the path is told to be wrong */
        pf_inputs_give(names, worker->descriptors, input_count);
        exit = worker->place->program->run(&task);
        pf_inputs_give(NULL, NULL, 0);
    }
    free(names);
    free(list);
    return exit;
}

/* A command that failed by no fault of its request may have met what only opening again tells (moved, fenced, damaged).
 */
static void doubt_graph(work_state *worker, int exit)
{
    if (exit != 1 && exit != 5 && exit != 6 && exit != 10)
        return;
    st_graph_close(worker->graph);
    worker->graph = NULL;
}

static bool has_folder(const work_state *worker)
{
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    bool has = false;
    if (worker->order.foreign == 0 && worker->order.looks == 0 &&
        st_tree_parse(worker->line, worker->order.length, HOST_NODES_MAX, &tree, &problem, &line, NULL) == SLUICE_OK)
        has = is_true(st_node_member(st_tree_root(tree), "params"), "folder");
    st_tree_free(tree);
    return has;
}

/* For good, at the first order. Opening the graph once before leaves the evidence of its preflight, whose probe works
 * beside the graph. A command that writes a file for its user (the request has his folder with it) is not confined. */
static bool confine(work_state *worker)
{
    pf_confinement confinement;
    st_graph *graph = NULL;
    if (!worker->place->stays && has_folder(worker))
        return true;
    if (!worker->place->stays && st_graph_open(worker->place->graph_path, PF_WRITE, &graph, NULL) == SLUICE_OK)
        st_graph_close(graph);
    return pf_confine(worker->place->graph_path, &confinement, NULL) == SLUICE_OK;
}

static int run_order(work_state *worker)
{
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    int exit = 1;
    if (st_tree_parse(worker->line, worker->order.length, HOST_NODES_MAX, &tree, &problem, &line, NULL) == SLUICE_OK)
        exit = run(worker, st_node_member(st_tree_root(tree), "params"));
    st_tree_free(tree);
    return exit;
}

/* Before the answer, so that it is told by then; not more often than somebody looks. */
static void tell_heap(work_state *worker)
{
    int64_t now = pf_monotonic_ns();
    pf_heap heap;
    if (now - worker->heap_told_ns < HEAP_EVERY_MS * INT64_C(1000000) || !pf_heap_look(&heap))
        return;
    pf_tally_heap(&heap);
    worker->heap_told_ns = now;
}

static bool answer(const work_state *worker, int exit)
{
    const host_answer words = {.exit = (uint32_t)exit, .fate = (uint32_t)worker->fate, .commit = worker->commit};
    size_t done = 0;
    (void)fflush(NULL);
    return pf_socket_send(worker->place->channel, &words, sizeof words, NULL, 0, &done, NULL) == SLUICE_OK;
}

int host_work(const host_place *place)
{
    static work_state worker; /* one per process */
    bool bounded = false;
    worker = (work_state){.place = place};
    pf_hold_interrupts();
    pf_standard_prepare();
    if (pf_watch_open(&worker.watch, NULL) != SLUICE_OK)
        return 1;
    if (place->stays) {
        place->region->latch_wait_ms = SHM_WORKER_LATCH_MS;
        worker.gate_user = (shm_gate_user){.region = place->region, .token = place->token};
        worker.gates = shm_gate_hooks(&worker.gate_user);
        worker.publisher = (shm_publisher){.region = place->region, .token = place->token};
    }
    open_graph(&worker);
    bool confined = false;
    while (next_order(&worker)) {
        worker.interrupted = false;
        pf_drop_interrupts();
        if (place->stays && !bounded && worker.order.memory > 0)
            pf_memory_bound(worker.order.memory);
        bounded = true;
        open_graph(&worker);
        if (!confined && !confine(&worker))
            return 1;
        confined = true;
        uint64_t share = pf_memory_share();
        int exit = run_order(&worker);
        pf_memory_bound_again(share);
        drop_order(&worker);
        tell_heap(&worker);
        bool told = answer(&worker, exit);
        doubt_graph(&worker, exit);
        if (!told || !place->stays || !is_allowed(&worker))
            break;
    }
    drop_order(&worker);
    st_graph_close(worker.graph);
    pf_watch_close(worker.watch);
    return 0;
}
