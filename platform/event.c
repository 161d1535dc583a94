/* See platform/event.h. */
#include "platform/event.h"
#include "platform/check.h"

static struct {
    sluice_event_fn *each;
    void *context;
    sluice_level most;
} listener;

void pf_event_listen(sluice_event_fn *each, void *context, sluice_level most)
{
    listener.each = each;
    listener.context = context;
    listener.most = most;
}

bool pf_event_wanted(sluice_level level)
{
    return listener.each && level <= listener.most;
}

void pf_event_begin(pf_event *event, sluice_level level, const char *name, const char *message)
{
    *event = (pf_event){.level = level, .name = name, .message = message};
}

void pf_event_number(pf_event *event, const char *name, uint64_t number)
{
    PF_ASSERT(event->count < PF_EVENT_FIELDS);
    event->fields[event->count++] = (sluice_field){.name = name, .number = number};
}

void pf_event_word(pf_event *event, const char *name, const char *word)
{
    PF_ASSERT(event->count < PF_EVENT_FIELDS);
    event->fields[event->count++] = (sluice_field){.name = name, .text = word};
}

void pf_event_id(pf_event *event, const char *name, const pf_id *id)
{
    if (pf_id_is_nil(id))
        return;
    PF_ASSERT(event->id_count < sizeof event->ids / sizeof event->ids[0]);
    char *text = event->ids[event->id_count++];
    pf_id_text(id, text);
    pf_event_word(event, name, text);
}

void pf_event_send(pf_event *event)
{
    const sluice_event told = {.level = event->level,
                               .name = event->name,
                               .message = event->message,
                               .fields = event->fields,
                               .field_count = event->count};
    listener.each(listener.context, &told);
}
