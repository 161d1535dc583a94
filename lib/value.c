#include "lib/value.h"

#include "platform/check.h"
#include "store/arrow/bits.h"

uint32_t lib_key_width(const st_type_def *type)
{
    return type->key_count ? type->key_count : 1;
}

st_type lib_key_type(const st_type_def *type, uint32_t i)
{
    return type->key_count ? type->properties[type->key[i]].type : ST_ROW_ID;
}

static sluice_value_kind kind_of(st_type type)
{
    switch (type) {
    case ST_BOOL:
        return SLUICE_BOOL;
    case ST_INT32:
    case ST_INT64:
    case ST_DATE:
    case ST_TIMESTAMP:
        return SLUICE_INT64;
    case ST_UINT64:
    case ST_ROW_ID:
        return SLUICE_UINT64;
    case ST_FLOAT32:
    case ST_FLOAT64:
        return SLUICE_REAL;
    case ST_STRING:
        return SLUICE_TEXT;
    case ST_BYTES:
        return SLUICE_BYTES;
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    PF_NEVER("a type of a property");
    return SLUICE_NULL;
}

/* ---- keys ---- */

static sluice_status refuse(const st_type_def *type, uint32_t member, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_USAGE, "a value that is no key of its type", "value %u is no key of %s",
                          (unsigned)member + 1, type->name);
    pf_hint(err, "a key has one value for each member, of the member's type");
    return SLUICE_USAGE;
}

/* The bits of a value as a column of its type holds them; false when it is not one of the type. */
static bool word_of(st_type type, const sluice_value *value, uint64_t *ret_word)
{
    *ret_word = value->uint64;
    if (value->kind == SLUICE_INT64 && kind_of(type) == SLUICE_UINT64)
        return value->int64 >= 0;
    if (value->kind == SLUICE_UINT64 && kind_of(type) == SLUICE_INT64)
        return value->uint64 <= (st_type_width(type) == 8 ? INT64_MAX : INT32_MAX);
    if (value->kind != kind_of(type))
        return false;
    if (type == ST_BOOL)
        *ret_word = value->boolean;
    if (type == ST_INT32 || type == ST_DATE)
        return value->int64 >= INT32_MIN && value->int64 <= INT32_MAX;
    if (type == ST_FLOAT32) {
        float narrow = (float)value->real;
        memcpy(ret_word, &narrow, sizeof narrow);
        return value->real != value->real || (double)narrow == value->real;
    }
    return true;
}

static bool fill_member(lib_key *key, uint32_t i, st_type type, const sluice_value *value)
{
    st_column *column = &key->columns[i];
    *column = (st_column){.type = type, .length = 1};
    if (type == ST_STRING || type == ST_BYTES) {
        key->offsets[i][0] = 0;
        key->offsets[i][1] = (int32_t)value->length;
        column->offsets = key->offsets[i];
        column->data = value->bytes;
        return value->kind == kind_of(type) && value->length <= INT32_MAX;
    }
    column->values = &key->words[i];
    return word_of(type, value, &key->words[i]);
}

sluice_status lib_key_fill(lib_key *key, const st_type_def *type, const sluice_value *values, size_t count,
                           sluice_error *err)
{
    key->count = lib_key_width(type);
    if (!values || count != key->count)
        return refuse(type, 0, err);
    for (uint32_t i = 0; i < key->count; i++) {
        if (!fill_member(key, i, lib_key_type(type, i), &values[i]))
            return refuse(type, i, err);
        key->pointers[i] = &key->columns[i];
    }
    key->whole = key->count == 1
                     ? key->columns[0]
                     : (st_column){.type = ST_STRUCT, .length = 1, .children = key->columns, .child_count = key->count};
    return SLUICE_OK;
}

/* ---- values ---- */

sluice_value lib_value_of_word(st_type type, uint64_t word)
{
    sluice_value value = {.kind = kind_of(type), .uint64 = word};
    if (type == ST_BOOL)
        value.boolean = word != 0;
    return value;
}

sluice_value lib_value_at(const st_column *column, uint64_t row)
{
    sluice_value value = {.kind = SLUICE_NULL};
    if (st_column_is_null(column, row))
        return value;
    value.kind = kind_of(column->type);
    if (value.kind == SLUICE_BOOL) {
        value.boolean = st_bit(column->values, row);
    } else if (value.kind == SLUICE_TEXT || value.kind == SLUICE_BYTES) {
        value.length = (uint32_t)(column->offsets[row + 1] - column->offsets[row]);
        value.bytes = column->data + column->offsets[row];
    } else if (column->type == ST_INT32 || column->type == ST_DATE) {
        value.int64 = ((const int32_t *)column->values)[row];
    } else if (column->type == ST_FLOAT32) {
        value.real = (double)((const float *)column->values)[row];
    } else {
        memcpy(&value.uint64, (const uint64_t *)column->values + row, sizeof value.uint64);
    }
    return value;
}
