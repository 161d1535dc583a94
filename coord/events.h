/*
 * What a write and its surroundings tell an embedding program (platform/event.h; docs/embedding.md has the list).
 */
#ifndef COORD_EVENTS_H
#define COORD_EVENTS_H

#include "coord/recover.h"
#include "coord/write.h"

void co_event_commit(st_graph *graph, const char *kind, const co_receipt *receipt, int64_t since_ns);
void co_event_restart(st_graph *graph, const co_request *request, unsigned restarts);
void co_event_failure(st_graph *graph, const co_request *request, const char *kind, sluice_status status,
                      sluice_phase phase, sluice_truth committed);
void co_event_recovered(st_graph *graph, const co_recovered *line);
void co_event_collected(st_graph *graph, const co_gc_report *report);

#endif
