#include "worker/ingest/quick.h"

#include "platform/check.h"
#include "store/format/utf8.h"
#include "store/read/snapshot.h"
#include "store/schema/scalar.h"
#include <stdlib.h>
#include <string.h>

#define ONES       UINT64_C(0x0101010101010101)
#define HIGH_BITS  (ONES * 0x80)
#define DIGITS     8u  /* that are read at once */
#define DIGITS_MAX 15u /* any number of so many is a double */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight digits are read as one number");

typedef struct quick_field {
    const st_column_spec *spec; /* NULL: it is left out */
    bool nullable;              /* nothing means null */
    st_column_builder *builder;
} quick_field;

struct wk_quick {
    uint32_t count;
    quick_field *fields;
};

/* ---- making ---- */

/* May every record come this way? */
static bool fits(const wk_rows *rows)
{
    const wk_columns *columns = rows->columns;
    const wk_mapping *mapping = &columns->mapping;
    uint32_t filled = 0;

    if (!mapping->targets || columns->partial || columns->names_rows || columns->named[0] || columns->named[1] ||
        rows->group_count > 0 || rows->input->dialect->null_token)
        return false;
    for (uint32_t i = 0; i < mapping->field_count; i++) {
        const wk_target *target = &mapping->targets[i];
        if (target->names != WK_NAMES_NOTHING)
            return false;
        if (target->kind == WK_TARGET_IGNORE)
            continue;
        if (target->kind != WK_TARGET_COLUMN || rows->checks[target->column].any ||
            rows->specs[target->column].child_count > 0)
            return false;
        filled++;
    }
    return filled == rows->count;
}

sluice_status wk_quick_make(const wk_rows *rows, struct wk_quick **ret_quick, sluice_error *err)
{
    const wk_mapping *mapping = &rows->columns->mapping;

    *ret_quick = NULL;
    if (!fits(rows))
        return SLUICE_OK;
    struct wk_quick *quick = malloc(sizeof *quick);
    quick_field *fields = calloc(mapping->field_count + (size_t)1, sizeof *fields);
    if (!quick || !fields) {
        free(quick);
        free(fields);
        return pf_fail_memory(err);
    }
    for (uint32_t i = 0; i < mapping->field_count; i++) {
        const wk_target *target = &mapping->targets[i];
        if (target->kind == WK_TARGET_IGNORE)
            continue;
        fields[i].spec = &rows->specs[target->column];
        fields[i].builder = rows->builders[target->column];
        if (target->column >= rows->ends) {
            const st_property *property = &rows->columns->type->properties[target->column - rows->ends];
            fields[i].nullable = property->nullable && !property->default_value.present;
        }
    }
    *quick = (struct wk_quick){.count = mapping->field_count, .fields = fields};
    *ret_quick = quick;
    return SLUICE_OK;
}

void wk_quick_free(struct wk_quick *quick)
{
    if (quick == NULL)
        return;
    free(quick->fields);
    free(quick);
}

/* ---- values ---- */

/* 1 to 8 digits at `text`, of which 8 bytes can be read. */
static inline bool read_digits(const char *text, size_t length, uint64_t *ret_value)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
    if (length < DIGITS)
        word = word << 8 * (DIGITS - length) | ONES * '0' >> 8 * length; /* zeros before them */
    if (((word & ONES * 0xF0) | ((word + ONES * 6) & ONES * 0xF0) >> 4) != ONES * 0x33)
        return false;
    /* Neighbours become one number: of two digits, of four, of eight. */
    word = (word & ONES * 0x0F) * (10 * (UINT64_C(1) << 8) + 1) >> 8;
    word = (word & UINT64_C(0x00FF00FF00FF00FF)) * (100 * (UINT64_C(1) << 16) + 1) >> 16;
    *ret_value = (word & UINT64_C(0x0000FFFF0000FFFF)) * (10000 * (UINT64_C(1) << 32) + 1) >> 32;
    return true;
}

static inline bool read_i64(const char *text, size_t length, int64_t *ret_value)
{
    uint64_t low, high = 0;

    if (length == 0 || length > 2 * DIGITS)
        return st_parse_i64(text, length, ret_value) == ST_PARSE_OK;
    size_t first = length > DIGITS ? length - DIGITS : 0;
    if ((first && !read_digits(text, first, &high)) || !read_digits(text + first, length - first, &low))
        return st_parse_i64(text, length, ret_value) == ST_PARSE_OK;
    *ret_value = (int64_t)(high * 100000000 + low);
    return true;
}

static inline bool read_i32(const char *text, size_t length, int32_t *ret_value)
{
    int64_t value;

    if (!read_i64(text, length, &value) || value < INT32_MIN || value > INT32_MAX)
        return false;
    *ret_value = (int32_t)value;
    return true;
}

/* Digits, a point, digits: both parts together are a double, and so is the power of ten; a division of exact numbers is
 * rounded correctly. */
static inline bool read_f64(const char *text, size_t length, double *ret_value)
{
    static const double powers[DIGITS + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
    static const uint64_t whole_powers[DIGITS + 1] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t whole, part;
    size_t point = 0;

    while (point < length && point <= DIGITS && text[point] != '.')
        point++;
    size_t behind = length > point + 1 ? length - point - 1 : 0;
    if (point == 0 || point > DIGITS || behind == 0 || behind > DIGITS || point + behind > DIGITS_MAX ||
        !read_digits(text, point, &whole) || !read_digits(text + point + 1, behind, &part))
        return st_parse_f64(text, length, ret_value) == ST_PARSE_OK;
    *ret_value = (double)(whole * whole_powers[behind] + part) / powers[behind];
    return true;
}

/* UTF-8 without NUL; mostly ASCII. */
static inline bool is_text(const char *text, size_t length)
{
    uint64_t odd = 0, word;

    for (size_t at = 0; at < length; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (length - at < sizeof word) { /* what lies behind is not looked at */
            uint64_t inside = (UINT64_C(1) << 8 * (length - at)) - 1;
            word = (word & inside) | (ONES & ~inside);
        }
        odd |= (word | ((word - ONES) & ~word)) & HIGH_BITS;
    }
    return odd == 0 || (st_utf8_is_valid(text, length) && memchr(text, 0, length) == NULL);
}

static bool append_value(const quick_field *field, const char *text, size_t length)
{
    st_column_builder *builder = field->builder;
    int64_t i64;
    int32_t i32;
    double f64;

    if (length == 0)
        return field->nullable && st_append_null(builder, NULL) == SLUICE_OK;
    switch (field->spec->type) {
    case ST_INT64:
        return read_i64(text, length, &i64) && st_append_i64(builder, i64, NULL) == SLUICE_OK;
    case ST_FLOAT64:
        return read_f64(text, length, &f64) && st_append_f64(builder, f64, NULL) == SLUICE_OK;
    case ST_INT32:
        return read_i32(text, length, &i32) && st_append_i32(builder, i32, NULL) == SLUICE_OK;
    case ST_STRING:
        return length <= WK_VALUE_MAX && is_text(text, length) &&
               st_append_bytes(builder, text, length, NULL) == SLUICE_OK;
    case ST_BOOL:
    case ST_UINT64:
    case ST_FLOAT32:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_BYTES:
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    return length <= WK_VALUE_MAX && st_value_parse(field->spec, text, length, builder, NULL) == SLUICE_OK;
}

bool wk_quick_add(const wk_rows *rows, const wk_record *record)
{
    const struct wk_quick *quick = rows->quick;
    const char *text = (const char *)record->text;

    PF_ASSERT(record->plain);
    if (record->count != quick->count)
        return false;
    for (uint32_t i = 0; i < quick->count; i++) {
        const quick_field *field = &quick->fields[i];
        if (field->spec == NULL || append_value(field, text + record->fields[i].start, record->fields[i].length))
            continue;
        for (uint32_t done = 0; done < i; done++)
            if (quick->fields[done].spec)
                st_builder_truncate(quick->fields[done].builder, rows->length);
        return false;
    }
    return true;
}
