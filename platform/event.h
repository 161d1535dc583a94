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

#define PF_NOTE_FIELDS 12u

typedef struct pf_note {
    sluice_level level;
    const char *name, *message;
    sluice_field fields[PF_NOTE_FIELDS];
    size_t count;
    char ids[4][PF_ID_TEXT]; /* texts of the fields that are ids */
    unsigned id_count;
} pf_note;

void pf_note_listen(sluice_event_fn *each, void *context, sluice_level most);
/* Is there somebody who wants this level? Before anything is gathered. */
bool pf_note_wanted(sluice_level level);
void pf_note_begin(pf_note *event, sluice_level level, const char *name, const char *message);
/* Fields in their order; the names and words have static storage or live until the event is sent. */
void pf_note_number(pf_note *event, const char *name, uint64_t number);
void pf_note_word(pf_note *event, const char *name, const char *word);
void pf_note_id(pf_note *event, const char *name, const pf_id *id); /* nothing for nil */
void pf_note_send(pf_note *event);

#endif
