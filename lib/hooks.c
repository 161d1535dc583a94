/*
 * What a program puts under the library (include/sluice/hooks.h).
 */
#include "platform/event.h"
#include "platform/fail.h"

sluice_status sluice_set_allocator(const sluice_allocator *allocator, sluice_error *err)
{
    if (!allocator || !allocator->allocate || !allocator->reallocate || !allocator->release)
        return pf_fail(err, SLUICE_USAGE, "an allocator has all three functions");
    return pf_allocation_use(allocator)
               ? SLUICE_OK
               : pf_fail(err, SLUICE_USAGE, "an allocator is given once, before any other use of the library");
}

void sluice_set_log(sluice_event_fn *each, void *context, sluice_level most)
{
    pf_note_listen(each, context, most);
}
