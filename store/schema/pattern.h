/*
 * Patterns of checks: PCRE2 in UTF mode, matched against a whole value, under limits, so that no pattern can stop a
 * load.
 */
#ifndef STORE_SCHEMA_PATTERN_H
#define STORE_SCHEMA_PATTERN_H

#include "platform/fail.h"
#include <stddef.h>

typedef struct st_pattern st_pattern;

typedef enum st_match {
    ST_MATCH_NO,
    ST_MATCH_YES,
    ST_MATCH_LIMIT /* given up: the pattern backtracks too much on this value */
} st_match;

/* INPUT_SYNTAX with what is wrong and at which character. */
sluice_status st_pattern_compile(const char *text, st_pattern **ret_pattern, sluice_error *err);
void st_pattern_free(st_pattern *pattern); /* NULL allowed */
/* `value` is valid UTF-8. Matches the whole of it. */
st_match st_pattern_match(const st_pattern *pattern, const void *value, size_t length);

#endif
