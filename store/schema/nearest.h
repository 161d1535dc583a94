/*
 * The known name that comes nearest to a mistyped one, for did-you-mean hints.
 */
#ifndef STORE_SCHEMA_NEAREST_H
#define STORE_SCHEMA_NEAREST_H

#include <stddef.h>

typedef struct st_nearest {
    const char *wanted;
    const char *best; /* of the names offered so far; NULL when none is near */
    size_t distance;
} st_nearest;

void st_nearest_begin(st_nearest *nearest, const char *wanted);
void st_nearest_offer(st_nearest *nearest, const char *name);

#endif
