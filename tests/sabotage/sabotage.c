/*
 * Which planted defect is in (platform/sabotage.h): the one that SLUICE_SABOTAGE names, or none.
 */
#include "platform/sabotage.h"
#include <stdlib.h>
#include <string.h>

bool pf_sabotage(const char *name)
{
    const char *chosen = getenv("SLUICE_SABOTAGE");
    return chosen && strcmp(chosen, name) == 0;
}
