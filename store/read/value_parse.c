/*
 * Values from text (snapshot.h, st_value_parse): the one parser for CSV values, keys on the command line, filters.
 *
 * This is the hot path of loading: integers, floats, dates and strings go from the text straight into the column, with
 * no allocation but the column's own growth. The grammar of each type is store/schema/scalar.h's.
 */
#include "platform/check.h"
#include "platform/ids.h"
#include "store/format/tokens.h"
#include "store/format/utf8.h"
#include "store/read/snapshot.h"
#include "store/schema/scalar.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX       64   /* bytes of a value that a message shows */
#define BASE64_ON_STACK 3072 /* bytes; longer ones take memory for the moment */

static const char *article(st_type type)
{
    return type == ST_INT32 || type == ST_INT64 ? "an" : "a";
}

static sluice_status refuse(const st_column_spec *spec, const char *text, size_t length, st_parse parse,
                            sluice_error *err)
{
    static const char safe[] = "a value is not of its column's type";
    if (!st_utf8_is_valid(text, length))
        return pf_fail_private(err, SLUICE_CONSTRAINT_TYPE, safe, "the value is not valid UTF-8");
    size_t shown = length;
    const char *more = "";
    if (shown > SHOWN_MAX) {
        shown = SHOWN_MAX;
        while (shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
            shown--;
        more = "...";
    }
    if (parse == ST_PARSE_RANGE)
        return pf_fail_private(err, SLUICE_CONSTRAINT_TYPE, safe, "\"%.*s%s\" is out of range for %s", (int)shown, text,
                               more, st_type_name(spec->type));
    if (spec->type == ST_BYTES)
        return pf_fail_private(err, SLUICE_CONSTRAINT_TYPE, safe, "\"%.*s%s\" is not base64", (int)shown, text, more);
    return pf_fail_private(err, SLUICE_CONSTRAINT_TYPE, safe, "\"%.*s%s\" is not %s %s", (int)shown, text, more,
                           article(spec->type), st_type_name(spec->type));
}

static sluice_status parse_bytes(const st_column_spec *spec, const char *text, size_t length,
                                 st_column_builder *builder, sluice_error *err)
{
    uint8_t on_stack[BASE64_ON_STACK], *bytes = on_stack;
    size_t got = 0;
    if (length / 4 * 3 > sizeof(on_stack)) {
        bytes = malloc(length / 4 * 3);
        if (!bytes)
            return pf_fail_memory(err);
    }
    st_parse parse = st_parse_base64(text, length, bytes, &got);
    sluice_status status =
        parse == ST_PARSE_OK ? st_append_bytes(builder, bytes, got, err) : refuse(spec, text, length, parse, err);
    if (bytes != on_stack)
        free(bytes);
    return status;
}

static sluice_status parse_commit_id(const st_column_spec *spec, const char *text, size_t length,
                                     st_column_builder *builder, sluice_error *err)
{
    char copy[PF_ID_TEXT];
    pf_id id;
    if (length != sizeof(copy) - 1)
        return refuse(spec, text, length, ST_PARSE_BAD, err);
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!pf_id_parse(copy, &id))
        return refuse(spec, text, length, ST_PARSE_BAD, err);
    return st_append_bytes(builder, id.bytes, sizeof(id.bytes), err);
}

/* One member of a key of several: a JSON scalar. */
static sluice_status parse_member(const st_column_spec *spec, const st_token *token, st_column_builder *builder,
                                  sluice_error *err)
{
    pf_buffer decoded = {0};
    sluice_status status = SLUICE_OK;
    if (token->kind == ST_TOKEN_TRUE || token->kind == ST_TOKEN_FALSE)
        return token->kind == ST_TOKEN_TRUE ? st_value_parse(spec, "true", 4, builder, err)
                                            : st_value_parse(spec, "false", 5, builder, err);
    if (token->kind != ST_TOKEN_STRING || !token->escaped)
        return st_value_parse(spec, token->text, token->length, builder, err);
    status = st_token_decode(token, &decoded, err);
    if (status == SLUICE_OK)
        status = st_value_parse(spec, (const char *)decoded.data, decoded.length, builder, err);
    pf_buffer_free(&decoded);
    return status;
}

static sluice_status refuse_struct(const st_column_spec *spec, sluice_error *err)
{
    return pf_fail(err, SLUICE_CONSTRAINT_TYPE, "a key of %u members is written as a JSON list of them, like [\"a\",1]",
                   (unsigned)spec->child_count);
}

/* A key of several members: a JSON array with one scalar for each. */
static sluice_status parse_struct(const st_column_spec *spec, const char *text, size_t length,
                                  st_column_builder *builder, sluice_error *err)
{
    st_tokens tokens;
    st_token token;
    uint64_t rows = st_builder_length(builder);
    sluice_status status = SLUICE_OK;
    st_tokens_begin(&tokens, text, length);
    if (!st_tokens_next(&tokens, &token) || token.kind != ST_TOKEN_ARRAY)
        return refuse_struct(spec, err);
    for (uint32_t i = 0; i < spec->child_count && status == SLUICE_OK; i++) {
        if (!st_tokens_next(&tokens, &token) || (token.kind != ST_TOKEN_STRING && token.kind != ST_TOKEN_NUMBER &&
                                                 token.kind != ST_TOKEN_TRUE && token.kind != ST_TOKEN_FALSE))
            status = refuse_struct(spec, err);
        else
            status = parse_member(&spec->children[i], &token, st_builder_child(builder, i), err);
    }
    if (status == SLUICE_OK &&
        (!st_tokens_next(&tokens, &token) || token.kind != ST_TOKEN_ARRAY_END || !st_tokens_next(&tokens, &token)))
        status = refuse_struct(spec, err);
    if (status == SLUICE_OK)
        return st_append_struct(builder, err);
    st_builder_truncate(builder, rows);
    return status;
}

sluice_status st_value_parse(const st_column_spec *spec, const char *text, size_t length, st_column_builder *builder,
                             sluice_error *err)
{
    union {
        bool boolean;
        int32_t i32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } value;
    st_parse parse = ST_PARSE_BAD;
    switch (spec->type) {
    case ST_INT64:
        if ((parse = st_parse_i64(text, length, &value.i64)) == ST_PARSE_OK)
            return st_append_i64(builder, value.i64, err);
        break;
    case ST_STRING:
        if (st_utf8_is_valid(text, length))
            return st_append_bytes(builder, text, length, err);
        break;
    case ST_INT32:
        if ((parse = st_parse_i32(text, length, &value.i32)) == ST_PARSE_OK)
            return st_append_i32(builder, value.i32, err);
        break;
    case ST_UINT64:
    case ST_ROW_ID:
        if ((parse = st_parse_u64(text, length, &value.u64)) == ST_PARSE_OK)
            return st_append_u64(builder, value.u64, err);
        break;
    case ST_FLOAT64:
        if ((parse = st_parse_f64(text, length, &value.f64)) == ST_PARSE_OK)
            return st_append_f64(builder, value.f64, err);
        break;
    case ST_FLOAT32:
        if ((parse = st_parse_f32(text, length, &value.f32)) == ST_PARSE_OK)
            return st_append_f32(builder, value.f32, err);
        break;
    case ST_DATE:
        if ((parse = st_parse_date(text, length, &value.i32)) == ST_PARSE_OK)
            return st_append_i32(builder, value.i32, err);
        break;
    case ST_TIMESTAMP:
        if ((parse = st_parse_timestamp(text, length, &value.i64)) == ST_PARSE_OK)
            return st_append_i64(builder, value.i64, err);
        break;
    case ST_BOOL:
        if ((parse = st_parse_bool(text, length, &value.boolean)) == ST_PARSE_OK)
            return st_append_bool(builder, value.boolean, err);
        break;
    case ST_BYTES:
        return parse_bytes(spec, text, length, builder, err);
    case ST_COMMIT_ID:
        return parse_commit_id(spec, text, length, builder, err);
    case ST_STRUCT:
        return parse_struct(spec, text, length, builder, err);
    }
    return refuse(spec, text, length, parse, err);
}
