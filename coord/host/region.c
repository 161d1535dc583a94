/*
 * The shared region of a graph's standing runners (see coord/host/host.h): their gates and their publish queue, so that
 * small writes of one graph order themselves and share flushes. Each graph has its own, which no runner of another
 * graph has mapped.
 *
 * A runner's seat is its slot in the region: given before its fork, taken back once it is reaped, and given again only
 * when what it held is buried. A damaged region is left by all (they are killed), and made anew; nothing but time is
 * lost.
 */
#include "coord/host/host.h"
#include "platform/check.h"
#include "shm/gate_table.h"
#include "shm/publish_queue.h"
#include <string.h>

#define SEATS_LEAST 4u
#define SEATS_MOST  64u
#define TASKS       1u /* standing runners have no pool */
#define GATES       256u
#define HOLDS       128u
#define SLICE       32768u

static sluice_status make(host_graph *graph, sluice_error *err)
{
    uint32_t seats = graph->config.max_jobs * 2; /* a runner that leaves keeps its seat until it is gone */
    seats = seats < SEATS_LEAST ? SEATS_LEAST : seats > SEATS_MOST ? SEATS_MOST : seats;
    const shm_config config = {.workers = seats, .tasks = TASKS, .gates = GATES, .holds = HOLDS, .slice = SLICE};
    PF_TRY(shm_region_make(&config, &graph->region, err));
    graph->seats = seats;
    for (uint32_t i = 0; i < seats; i++)
        graph->seat_taken[i] = false;
    graph->latches[0] = (co_latch_watch){.latch = &graph->region.gates->latch};
    graph->latches[1] = (co_latch_watch){.latch = &graph->region.publish->latch};
    return SLUICE_OK;
}

void host_region_free(host_graph *graph)
{
    if (graph->seats > 0)
        shm_region_free(&graph->region);
    graph->seats = 0;
}

bool host_region_is_damaged(const host_graph *graph)
{
    return graph->seats > 0 && shm_region_state(&graph->region) == SHM_POISONED;
}

sluice_status host_region_seat(host_graph *graph, host_runner *runner, sluice_error *err)
{
    if (graph->seats == 0)
        PF_TRY(make(graph, err));
    for (uint32_t i = 0; i < graph->seats; i++) {
        if (graph->seat_taken[i])
            continue;
        graph->seat_taken[i] = true;
        runner->token = shm_slot_assign(&graph->region, i);
        runner->seated = true;
        return SLUICE_OK;
    }
    return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the graph has %u processes", graph->seats);
}

void host_region_unseat(host_runner *runner)
{
    if (runner->seated)
        shm_slot_revoke(&runner->graph->region, runner->token.slot);
}

bool host_region_bury(host_runner *runner)
{
    host_graph *graph = runner->graph;
    uint32_t slot = runner->token.slot;
    if (!runner->seated)
        return true;
    bool buried = shm_gates_bury(&graph->region, slot, NULL) == SLUICE_OK &&
                  shm_publish_bury(&graph->region, slot, NULL) == SLUICE_OK;
    if (!buried && !host_region_is_damaged(graph))
        return false; /* a latch is busy: at the next turn */
    shm_progress_drop(&graph->region, slot);
    shm_wake_all(&graph->region);
    graph->seat_taken[slot] = false;
    runner->seated = false;
    return true;
}

static void kill_by_pid(host_server *host, const host_graph *graph, int32_t pid)
{
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        host_runner *runner = &host->runners[i];
        if (runner->seated && runner->graph == graph && runner->child.pid == pid)
            pf_child_kill(&runner->child);
    }
}

static bool anybody_seated(host_server *host, const host_graph *graph, bool kill)
{
    bool any = false;
    for (uint32_t i = 0; i < HOST_RUNNERS_MAX; i++) {
        host_runner *runner = &host->runners[i];
        if (!runner->seated || runner->graph != graph)
            continue;
        any = true;
        if (kill)
            pf_child_kill(&runner->child);
    }
    return any;
}

static void note_given_up(host_graph *graph)
{
    if (graph->given_up_count == HOST_GIVEN_UP_MAX)
        memmove(graph->given_up, graph->given_up + 1, --graph->given_up_count * sizeof graph->given_up[0]);
    graph->given_up[graph->given_up_count++] = graph->region.header->epoch;
}

void host_regions_tick(host_server *host, int64_t now)
{
    for (host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (graph->seats == 0)
            continue;
        if (host_region_is_damaged(graph)) {
            if (!anybody_seated(host, graph, true)) {
                host_log("error", "region-made-anew", "graph=%u", graph->number);
                note_given_up(graph);
                host_region_free(graph);
            }
            continue;
        }
        /* A holder that is stopped: everybody of the graph waits for it. */
        for (unsigned i = 0; i < sizeof graph->latches / sizeof graph->latches[0]; i++) {
            if (co_latch_is_stuck(&graph->latches[i], now))
                kill_by_pid(host, graph, graph->latches[i].owner);
        }
    }
}

void host_regions_leave(host_server *host, const host_graph *own, bool seated)
{
    for (host_graph *graph = host->graphs; graph; graph = graph->next) {
        if (graph != own || !seated)
            host_region_free(graph);
        if (graph != own) {
            pf_shared_memory_free(&graph->tally_memory);
            pf_shared_memory_free(&graph->disk);
        }
    }
}
