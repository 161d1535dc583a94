#include "worker/ingest/check.h"

#include "store/arrow/bits.h"
#include "store/format/utf8.h"
#include "store/schema/constant.h"
#include "worker/ingest/hints.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_float(st_type type)
{
    return type == ST_FLOAT32 || type == ST_FLOAT64;
}

static int compare_members(const void *a, const void *b)
{
    const st_value *const *left = a, *const *right = b;
    return st_constant_compare(*left, *right);
}

static sluice_status sort_members(const st_property *property, wk_check *check, sluice_error *err)
{
    check->members = calloc(property->enumeration_count, sizeof(const st_value *));
    if (check->members == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < property->enumeration_count; i++)
        check->members[i] = &property->enumeration[i];
    qsort(check->members, property->enumeration_count, sizeof(const st_value *), compare_members);
    return SLUICE_OK;
}

sluice_status wk_check_make(const st_property *property, st_type type, bool is_key, wk_check *ret_check,
                            sluice_error *err)
{
    memset(ret_check, 0, sizeof *ret_check);
    ret_check->property = property;
    ret_check->is_key = is_key && is_float(type);
    ret_check->any = ret_check->is_key;
    if (property == NULL)
        return SLUICE_OK;
    ret_check->any |= property->minimum.present || property->maximum.present || property->has_min_length ||
                      property->has_max_length || property->pattern != NULL || property->enumeration_count > 0;
    if (property->enumeration_count > 0)
        PF_TRY(sort_members(property, ret_check, err));
    if (property->pattern != NULL)
        PF_TRY(st_pattern_compile(property->pattern, &ret_check->pattern, err));
    return SLUICE_OK;
}

void wk_check_free(wk_check *check)
{
    st_pattern_free(check->pattern);
    free(check->members);
    memset(check, 0, sizeof *check);
}

/* The value at a row as a constant of its type; bytes are borrowed from the column. */
static st_value value_at(const st_column *column, uint64_t row)
{
    st_value value = {.present = true, .type = column->type};

    switch (column->type) {
    case ST_BOOL:
        value.boolean = st_bit(column->values, row);
        break;
    case ST_INT32:
    case ST_DATE:
        value.i64 = ((const int32_t *)column->values)[row];
        break;
    case ST_INT64:
    case ST_TIMESTAMP:
        value.i64 = ((const int64_t *)column->values)[row];
        break;
    case ST_UINT64:
    case ST_ROW_ID:
        value.u64 = ((const uint64_t *)column->values)[row];
        break;
    case ST_FLOAT32:
        value.f64 = (double)((const float *)column->values)[row];
        break;
    case ST_FLOAT64:
        value.f64 = ((const double *)column->values)[row];
        break;
    case ST_STRING:
    case ST_BYTES:
        value.length = (size_t)(column->offsets[row + 1] - column->offsets[row]);
        value.bytes = (uint8_t *)(uintptr_t)(column->data + column->offsets[row]);
        break;
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    return value;
}

/* A value as the user may have written it. */
static const char *show(const st_value *value, char shown[WK_SHOWN_ROOM])
{
    pf_buffer buffer = {0};

    shown[0] = '\0';
    if (value->type == ST_STRING)
        return wk_shown(value->bytes, value->length, shown);
    if (st_constant_write(value, &buffer, NULL) == SLUICE_OK)
        (void)wk_shown(buffer.data, buffer.length, shown);
    pf_buffer_free(&buffer);
    return shown;
}

static bool refuse(wk_fault *fault, const char *name, const st_value *value, const char *rule, const st_value *bound)
{
    char shown[WK_SHOWN_ROOM], limit[WK_SHOWN_ROOM] = "";

    if (bound)
        (void)show(bound, limit);
    wk_fault_set(fault, SLUICE_CONSTRAINT_CHECK, "column %s: %s is %s%s%s", name, show(value, shown), rule,
                 bound ? " " : "", limit);
    return false;
}

static bool refuse_other(wk_fault *fault, const char *name, const st_value *value, const st_property *property)
{
    char list[sizeof fault->hint] = "", shown[WK_SHOWN_ROOM];
    size_t used = 0;

    (void)refuse(fault, name, value, "none of the values allowed", NULL);
    for (uint32_t i = 0; i < property->enumeration_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 show(&property->enumeration[i], shown));
    if (used < sizeof list)
        wk_hint(fault, "allowed: %s", list);
    return false;
}

static bool check_length(const st_property *property, const char *name, const st_value *value, wk_fault *fault)
{
    uint64_t length = value->type == ST_STRING ? st_utf8_code_points(value->bytes, value->length) : value->length;
    const char *unit = value->type == ST_STRING ? "characters" : "bytes";
    char shown[WK_SHOWN_ROOM];

    if (property->has_min_length && length < property->min_length)
        wk_fault_set(fault, SLUICE_CONSTRAINT_CHECK, "column %s: %s has %" PRIu64 " %s, fewer than %" PRIu64, name,
                     show(value, shown), length, unit, property->min_length);
    else if (property->has_max_length && length > property->max_length)
        wk_fault_set(fault, SLUICE_CONSTRAINT_CHECK, "column %s: %s has %" PRIu64 " %s, more than %" PRIu64, name,
                     show(value, shown), length, unit, property->max_length);
    else
        return true;
    return false;
}

static bool check_property(const wk_check *check, const char *name, const st_value *value, wk_fault *fault)
{
    const st_property *property = check->property;

    if (isnan(value->f64) && (property->minimum.present || property->maximum.present))
        return refuse(fault, name, value, "not between the bounds", NULL);
    if (property->minimum.present && st_constant_compare(value, &property->minimum) < 0)
        return refuse(fault, name, value, "below the minimum", &property->minimum);
    if (property->maximum.present && st_constant_compare(value, &property->maximum) > 0)
        return refuse(fault, name, value, "above the maximum", &property->maximum);
    if (check->members != NULL &&
        bsearch(&value, check->members, property->enumeration_count, sizeof(const st_value *), compare_members) == NULL)
        return refuse_other(fault, name, value, property);
    if ((property->has_min_length || property->has_max_length) && !check_length(property, name, value, fault))
        return false;
    if (check->pattern == NULL)
        return true;
    switch (st_pattern_match(check->pattern, value->bytes, value->length)) {
    case ST_MATCH_YES:
        return true;
    case ST_MATCH_LIMIT:
        return refuse(fault, name, value, "too hard for the column's pattern (its match limit is reached)", NULL);
    case ST_MATCH_NO:
        break;
    }
    (void)refuse(fault, name, value, "not of the column's pattern", NULL);
    wk_hint(fault, "the whole text must match %.200s", property->pattern);
    return false;
}

bool wk_check_value(const wk_check *check, const char *name, const st_column *column, uint64_t row, wk_fault *fault)
{
    st_value value = value_at(column, row);

    if (check->is_key && !isfinite(value.f64))
        return refuse(fault, name, &value, "no value for a key", NULL);
    return check->property == NULL || check_property(check, name, &value, fault);
}
