/* See platform/event.h. */
#include "platform/event.h"
#include "platform/check.h"

static struct {
    sluice_event_fn *each;
    void *context;
    sluice_level most;
} listener;

void pf_note_listen(sluice_event_fn *each, void *context, sluice_level most)
{
    listener.each = each;
    listener.context = context;
    listener.most = most;
}

bool pf_note_wanted(sluice_level level)
{
    return listener.each && level <= listener.most;
}

void pf_note_begin(pf_note *event, sluice_level level, const char *name, const char *message)
{
    *event = (pf_note){.level = level, .name = name, .message = message};
}

void pf_note_number(pf_note *event, const char *name, uint64_t number)
{
    PF_ASSERT(event->count < PF_NOTE_FIELDS);
    event->fields[event->count++] = (sluice_field){.name = name, .number = number};
}

void pf_note_word(pf_note *event, const char *name, const char *word)
{
    PF_ASSERT(event->count < PF_NOTE_FIELDS);
    event->fields[event->count++] = (sluice_field){.name = name, .text = word};
}

void pf_note_id(pf_note *event, const char *name, const pf_id *id)
{
    if (pf_id_is_nil(id))
        return;
    PF_ASSERT(event->id_count < sizeof event->ids / sizeof event->ids[0]);
    char *text = event->ids[event->id_count++];
    pf_id_text(id, text);
    pf_note_word(event, name, text);
}

void pf_note_send(pf_note *event)
{
    const sluice_event told = {.level = event->level,
                               .name = event->name,
                               .message = event->message,
                               .fields = event->fields,
                               .field_count = event->count};
    listener.each(listener.context, &told);
}
