/* See coord/events.h. */
#include "coord/events.h"
#include "platform/clock.h"
#include "platform/event.h"

static bool begin(pf_note *event, st_graph *graph, sluice_level level, const char *name, const char *message)
{
    if (!pf_note_wanted(level))
        return false;
    pf_note_begin(event, level, name, message);
    pf_note_id(event, "graph", st_graph_id(graph));
    return true;
}

void co_event_commit(st_graph *graph, const char *kind, const co_receipt *receipt, int64_t since_ns)
{
    pf_note event;
    if (!begin(&event, graph, SLUICE_LEVEL_DEBUG, "commit",
               receipt->repeated ? "an operation had been committed before" : "a write was committed"))
        return;
    pf_note_word(&event, "kind", kind);
    pf_note_id(&event, "commit", &receipt->commit);
    pf_note_id(&event, "operation", &receipt->operation);
    pf_note_number(&event, "generation", receipt->generation);
    pf_note_number(&event, "inserted", receipt->inserted);
    pf_note_number(&event, "updated", receipt->updated);
    pf_note_number(&event, "deleted", receipt->deleted);
    pf_note_number(&event, "restarts", receipt->restarts);
    pf_note_number(&event, "repeated", receipt->repeated);
    pf_note_number(&event, "microseconds", (uint64_t)(pf_monotonic_ns() - since_ns) / 1000);
    pf_note_send(&event);
}

void co_event_restart(st_graph *graph, const co_request *request, unsigned restarts)
{
    pf_note event;
    if (!begin(&event, graph, SLUICE_LEVEL_INFO, "restart", "another commit came first: the write is planned again"))
        return;
    pf_note_id(&event, "operation", &request->operation);
    pf_note_number(&event, "restarts", restarts);
    pf_note_send(&event);
}

/* Conflicts, what breaks a rule and what the caller took back are the caller's matter; the rest is the machine's. */
static sluice_level level_of(sluice_status status)
{
    int exit = sluice_status_exit(status);
    return status == SLUICE_CANCELLED || exit == 2 || exit == 4 || exit == 8 || exit == 9 ? SLUICE_LEVEL_INFO
           : exit == 3 || exit == 10                                                      ? SLUICE_LEVEL_WARN
                                                                                          : SLUICE_LEVEL_ERROR;
}

void co_event_failure(st_graph *graph, const co_request *request, const char *kind, sluice_status status,
                      sluice_phase phase, sluice_truth committed)
{
    static const char *const truths[] = {
        [SLUICE_FALSE] = "false", [SLUICE_TRUE] = "true", [SLUICE_UNKNOWN] = "unknown"};
    pf_note event;
    if (!begin(&event, graph, level_of(status), "write-failed", "a write ended with an error"))
        return;
    pf_note_word(&event, "kind", kind);
    pf_note_word(&event, "code", sluice_status_name(status));
    pf_note_word(&event, "phase", sluice_phase_name(phase));
    pf_note_word(&event, "committed", truths[committed]);
    pf_note_id(&event, "operation", &request->operation);
    pf_note_send(&event);
}

void co_event_recovered(st_graph *graph, const co_recovered *line)
{
    pf_note event;
    if (!begin(&event, graph, SLUICE_LEVEL_WARN, "recovered", "what a dead writer left was settled"))
        return;
    pf_note_id(&event, "operation", &line->operation);
    pf_note_word(&event, "classification", line->classification);
    pf_note_word(&event, "action", line->action);
    pf_note_word(&event, "outcome", line->outcome);
    pf_note_send(&event);
}

void co_event_collected(st_graph *graph, const co_gc_report *report)
{
    pf_note event;
    if (!begin(&event, graph, SLUICE_LEVEL_INFO, "collected", "what nobody needs was removed"))
        return;
    pf_note_number(&event, "files", report->files);
    pf_note_number(&event, "bytes", report->bytes);
    pf_note_number(&event, "generations", report->generations);
    pf_note_send(&event);
}
