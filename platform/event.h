/*
 * Events: telling an embedding program what happens (include/sluice/hooks.h; what each event holds is listed in
 * docs/embedding.md).
 *
 * Like tallies, events name nothing: ids, counts, codes, phases, durations, words of this code. A process in which
 * nobody listens (every command) does nothing here.
 */
#ifndef PLATFORM_EVENT_H
#define PLATFORM_EVENT_H

#include "platform/ids.h"
#include <sluice/hooks.h>
#include <stdbool.h>

#define PF_EVENT_FIELDS 12u

typedef struct pf_event {
    sluice_level level;
    const char *name, *message;
    sluice_field fields[PF_EVENT_FIELDS];
    size_t count;
    char ids[4][PF_ID_TEXT]; /* texts of the fields that are ids */
    unsigned id_count;
} pf_event;

void pf_event_listen(sluice_event_fn *each, void *context, sluice_level most);
/* Is there somebody who wants this level? Before anything is gathered. */
bool pf_event_wanted(sluice_level level);
void pf_event_begin(pf_event *event, sluice_level level, const char *name, const char *message);
/* Fields in their order; the names and words have static storage or live until the event is sent. */
void pf_event_number(pf_event *event, const char *name, uint64_t number);
void pf_event_word(pf_event *event, const char *name, const char *word);
void pf_event_id(pf_event *event, const char *name, const pf_id *id); /* nothing for nil */
void pf_event_send(pf_event *event);

#endif
