/*
 * Patterns (pattern.h). Compiled once, with machine code where PCRE2 can; a match block is kept with the pattern, so
 * that matching allocates nothing.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "store/schema/pattern.h"
#include "store/format/utf8.h"
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define MATCH_LIMIT    100000u /* calls of the matcher for one value */
#define DEPTH_LIMIT    10000u
#define HEAP_LIMIT_KIB 4096u

struct st_pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

sluice_status st_pattern_compile(const char *text, st_pattern **ret_pattern, sluice_error *err)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    st_pattern *pattern = calloc(1, sizeof(*pattern));
    if (!pattern)
        return pf_fail_memory(err);
    pattern->code =
        pcre2_compile((PCRE2_SPTR)text, strlen(text),
                      PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
    if (!pattern->code) {
        PCRE2_UCHAR reason[128] = {0};
        (void)pcre2_get_error_message(code, reason, sizeof(reason));
        st_pattern_free(pattern);
        return pf_fail(err, SLUICE_INPUT_SYNTAX, "not a pattern: %s at character %llu", (const char *)reason,
                       (unsigned long long)st_utf8_code_points(text, offset) + 1);
    }
    (void)pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* without it the interpreter matches */
    pattern->data = pcre2_match_data_create(1, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    if (!pattern->data || !pattern->context) {
        st_pattern_free(pattern);
        return pf_fail_memory(err);
    }
    (void)pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
    (void)pcre2_set_depth_limit(pattern->context, DEPTH_LIMIT);
    (void)pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
    *ret_pattern = pattern;
    return SLUICE_OK;
}

void st_pattern_free(st_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->data);
    pcre2_code_free(pattern->code);
    free(pattern);
}

st_match st_pattern_match(const st_pattern *pattern, const void *value, size_t length)
{
    static const uint8_t nothing[1];
    int got = pcre2_match(pattern->code, length ? (PCRE2_SPTR)value : nothing, length, 0, PCRE2_NO_UTF_CHECK,
                          pattern->data, pattern->context);
    if (got >= 0)
        return ST_MATCH_YES;
    return got == PCRE2_ERROR_NOMATCH ? ST_MATCH_NO : ST_MATCH_LIMIT;
}
