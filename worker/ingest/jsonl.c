#include "worker/ingest/jsonl.h"

#include "store/format/tokens.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct line_reader {
    wk_json_line *line;
    const st_type_def *type;
    const char *text;
    st_tokens tokens;
    wk_fault *fault;
} line_reader;

void wk_json_line_free(wk_json_line *line)
{
    free(line->fields);
    pf_buffer_free(&line->names);
    *line = (wk_json_line){0};
}

/* Sets the fault that the tokenizer met. */
static void refuse(line_reader *r)
{
    wk_fault_set(r->fault, SLUICE_INPUT_SYNTAX, "not one JSON object: %s (byte %zu of the record)", r->tokens.problem,
                 (size_t)(r->tokens.at - r->text) + 1);
}

/* Which end of an edge a name stands for, as its canonical prefix; NULL: none. Other names of an end count only where
 * no property has them, as for columns (header.c). */
static const char *end_prefix(const st_type_def *type, const st_token *name)
{
    static const struct {
        const char *name;
        bool plain;
        const char *prefix;
    } words[] = {{"from", true, "from."},    {"to", true, "to."},          {"src", false, "from."},
                 {"source", false, "from."}, {":START_ID", true, "from."}, {"dst", false, "to."},
                 {"target", false, "to."},   {":END_ID", true, "to."}};

    for (size_t i = 0; type->edge && i < sizeof words / sizeof *words; i++) {
        if (!st_token_is(name, words[i].name))
            continue;
        for (uint32_t p = 0; !words[i].plain && p < type->property_count; p++)
            if (strcmp(type->properties[p].name, words[i].name) == 0)
                return NULL;
        return words[i].prefix;
    }
    return NULL;
}

static sluice_status add_name(wk_json_line *line, const char *prefix, const st_token *name, sluice_error *err)
{
    pf_buffer *names = &line->names;
    size_t at = names->length;
    uint32_t length;

    PF_TRY(pf_buffer_append(names, &length, sizeof length, err));
    PF_TRY(pf_buffer_append_text(names, prefix, err));
    PF_TRY(st_token_decode(name, names, err));
    length = (uint32_t)(names->length - at - sizeof length);
    memcpy(names->data + at, &length, sizeof length);
    return SLUICE_OK;
}

static unsigned flags_of(const st_token *value)
{
    switch (value->kind) {
    case ST_TOKEN_STRING:
        return value->escaped ? WK_FIELD_QUOTED | WK_FIELD_REWRITE : WK_FIELD_QUOTED;
    case ST_TOKEN_NUMBER:
        return WK_FIELD_NUMBER;
    case ST_TOKEN_NULL:
        return WK_FIELD_NULL;
    case ST_TOKEN_ARRAY:
        return WK_FIELD_LIST;
    case ST_TOKEN_OBJECT:
        return WK_FIELD_OBJECT;
    case ST_TOKEN_TRUE:
    case ST_TOKEN_FALSE:
    case ST_TOKEN_NAME:
    case ST_TOKEN_OBJECT_END:
    case ST_TOKEN_ARRAY_END:
    case ST_TOKEN_END:
        break;
    }
    return WK_FIELD_WORD;
}

/* A value whose first token was read. */
static sluice_status add_value(line_reader *r, const char *prefix, const st_token *name, const st_token *value,
                               sluice_error *err)
{
    wk_json_line *line = r->line;
    unsigned flags = flags_of(value);

    if (!st_tokens_skip(&r->tokens, value)) {
        refuse(r);
        return SLUICE_OK;
    }
    if (line->count == WK_FIELDS_MAX) {
        wk_fault_set(r->fault, SLUICE_RESOURCE_LIMIT, "there are more than %u names", WK_FIELDS_MAX);
        return SLUICE_OK;
    }
    if (line->count == line->room) {
        uint32_t room = line->room ? line->room * 2 : 16;
        wk_field *fields = realloc(line->fields, room * sizeof *fields);
        if (fields == NULL)
            return pf_fail_memory(err);
        line->fields = fields;
        line->room = room;
    }
    bool scalar = flags & (WK_FIELD_QUOTED | WK_FIELD_NUMBER);
    line->fields[line->count++] = (wk_field){.start = (size_t)(value->text - r->text),
                                             .length = scalar ? value->length : (size_t)(r->tokens.at - value->text),
                                             .flags = flags};
    return add_name(line, prefix, name, err);
}

/* The members of an object that has begun, up to its end. */
static sluice_status read_members(line_reader *r, const char *prefix, sluice_error *err);

static sluice_status read_member(line_reader *r, const char *prefix, const st_token *name, sluice_error *err)
{
    st_token value;

    if (!st_tokens_next(&r->tokens, &value)) {
        refuse(r);
        return SLUICE_OK;
    }
    const char *end = prefix[0] == '\0' && value.kind == ST_TOKEN_OBJECT ? end_prefix(r->type, name) : NULL;
    if (end != NULL)
        return read_members(r, end, err); /* once: a member has a prefix */
    return add_value(r, prefix, name, &value, err);
}

static sluice_status read_members(line_reader *r, const char *prefix, sluice_error *err)
{
    while (!r->fault->present) {
        st_token name;
        if (!st_tokens_next(&r->tokens, &name))
            refuse(r);
        else if (name.kind == ST_TOKEN_OBJECT_END)
            return SLUICE_OK;
        else
            PF_TRY(read_member(r, prefix, &name, err));
    }
    return SLUICE_OK;
}

sluice_status wk_json_line_read(wk_json_line *line, const st_type_def *type, const char *text, size_t length,
                                wk_fault *ret_fault, sluice_error *err)
{
    line_reader r = {.line = line, .type = type, .text = text, .fault = ret_fault};
    st_token token;

    line->count = 0;
    line->names.length = 0;
    ret_fault->present = false;
    ret_fault->column = 0;
    ret_fault->line = 0;
    st_tokens_begin(&r.tokens, text, length);
    r.tokens.at = text; /* the mark of a file is no part of its lines */
    if (!st_tokens_next(&r.tokens, &token)) {
        refuse(&r);
    } else if (token.kind != ST_TOKEN_OBJECT) {
        wk_fault_set(ret_fault, SLUICE_INPUT_SYNTAX, "not one JSON object: another value");
    } else {
        PF_TRY(read_members(&r, "", err));
        if (!ret_fault->present && !st_tokens_next(&r.tokens, &token))
            refuse(&r);
    }
    if (ret_fault->present)
        (void)snprintf(ret_fault->hint, sizeof ret_fault->hint, "JSON Lines has one object on each line");
    return SLUICE_OK;
}
