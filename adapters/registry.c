/*
 * The closed list of adapters (OW-043, OW-097): who is not in it cannot write, and an intent of an unknown kind is
 * quarantined, never guessed at. A new writer kind adds its line here and its truth table in a file of its own.
 */
#include "adapters/adapter.h"
#include <string.h>

static const ad_adapter *const list[] = {&ad_load,   &ad_mutate,   &ad_merge, &ad_schema,
                                         &ad_revert, &ad_optimize, &ad_index};

const ad_adapter *ad_find(const char *kind)
{
    for (uint32_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (strcmp(list[i]->kind, kind) == 0)
            return list[i];
    return NULL;
}

const ad_adapter *const *ad_all(uint32_t *ret_count)
{
    *ret_count = (uint32_t)(sizeof list / sizeof list[0]);
    return list;
}
