/*
 * Profiles of columns (see store/read/profile.h).
 */
#include "store/read/profile.h"
#include "platform/check.h"
#include "platform/digest.h"
#include <stdlib.h>
#include <string.h>

#define SLOTS       (2 * ST_PROFILE_COUNTERS) /* a power of two */
#define HASHES_ROOM (2 * ST_PROFILE_DISTINCT)

/* Equal values have equal hashes: the two zeros, and whatever is no number. */
static uint64_t hash_of_double(double value)
{
    static const double no_number = __builtin_nan("");
    if (value != value)
        return pf_xxh64_of(&no_number, sizeof no_number);
    if (value == 0)
        value = 0;
    return pf_xxh64_of(&value, sizeof value);
}

static uint64_t hash_of_fixed(const st_column *column, uint64_t row)
{
    size_t width = st_type_width(column->type);
    return pf_xxh64_of((const uint8_t *)column->values + row * width, width);
}

static uint64_t hash_of_scalar(const st_column *column, uint64_t row)
{
    switch (column->type) {
    case ST_BOOL: {
        uint8_t value = ((const uint8_t *)column->values)[row >> 3] >> (row & 7) & 1;
        return pf_xxh64_of(&value, 1);
    }
    case ST_FLOAT32:
        return hash_of_double((double)((const float *)column->values)[row]);
    case ST_FLOAT64:
        return hash_of_double(((const double *)column->values)[row]);
    case ST_STRING:
    case ST_BYTES: {
        size_t length = (size_t)(column->offsets[row + 1] - column->offsets[row]);
        return pf_xxh64_of(length ? column->data + column->offsets[row] : (const uint8_t *)"", length);
    }
    case ST_INT32:
    case ST_INT64:
    case ST_UINT64:
    case ST_DATE:
    case ST_TIMESTAMP:
    case ST_ROW_ID:
    case ST_COMMIT_ID:
    case ST_STRUCT:
        break;
    }
    return hash_of_fixed(column, row);
}

static uint64_t hash_of(const st_column *column, uint64_t row)
{
    uint64_t members[ST_KEY_MEMBERS_MAX];
    if (column->type != ST_STRUCT)
        return hash_of_scalar(column, row);
    PF_ASSERT(column->child_count <= ST_KEY_MEMBERS_MAX);
    for (uint32_t i = 0; i < column->child_count; i++)
        members[i] = hash_of_scalar(&column->children[i], row);
    return pf_xxh64_of(members, column->child_count * sizeof members[0]);
}

sluice_status st_profile_begin(st_profile *profile, const st_column_spec *spec, sluice_error *err)
{
    *profile = (st_profile){.spec = spec, .hash_bound = UINT64_MAX, .distinct_exact = true};
    profile->hashes = calloc(HASHES_ROOM, sizeof *profile->hashes);
    profile->counters = calloc(SLOTS, sizeof *profile->counters);
    if (!profile->hashes || !profile->counters)
        return pf_fail_memory(err);
    PF_TRY(st_column_builder_new(spec, &profile->least, err));
    PF_TRY(st_column_builder_new(spec, &profile->greatest, err));
    return st_column_builder_new(spec, &profile->frequent_values, err);
}

void st_profile_free(st_profile *profile)
{
    free(profile->hashes);
    free(profile->counters);
    st_column_builder_free(profile->least);
    st_column_builder_free(profile->greatest);
    st_column_builder_free(profile->frequent_values);
    *profile = (st_profile){0};
}

/* ---- the least and the greatest ---- */

static sluice_status keep_value(st_column_builder *builder, st_column *view, const st_column *column, uint64_t row,
                                sluice_error *err)
{
    st_builder_truncate(builder, 0);
    PF_TRY(st_append_from(builder, column, row, err));
    st_builder_view(builder, view);
    return SLUICE_OK;
}

static sluice_status add_extremes(st_profile *profile, const st_column *column, uint64_t row, sluice_error *err)
{
    int order;
    if (!st_value_compare(column, row, column, row, &order)) /* no number */
        return SLUICE_OK;
    bool first = st_builder_length(profile->least) == 0;
    if (first || (st_value_compare(column, row, &profile->least_view, 0, &order) && order < 0))
        PF_TRY(keep_value(profile->least, &profile->least_view, column, row, err));
    if (first || (st_value_compare(column, row, &profile->greatest_view, 0, &order) && order > 0))
        PF_TRY(keep_value(profile->greatest, &profile->greatest_view, column, row, err));
    return SLUICE_OK;
}

/* ---- distinct values ---- */

static int by_hash(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorts the hashes, drops repeated ones, and those beyond the number that is kept. */
static void settle_hashes(st_profile *profile)
{
    uint32_t kept = 0;
    qsort(profile->hashes, profile->hash_count, sizeof *profile->hashes, by_hash);
    for (uint32_t i = 0; i < profile->hash_count; i++) {
        if (kept == 0 || profile->hashes[kept - 1] != profile->hashes[i])
            profile->hashes[kept++] = profile->hashes[i];
    }
    if (kept > ST_PROFILE_DISTINCT) {
        kept = ST_PROFILE_DISTINCT;
        profile->distinct_exact = false;
        profile->hash_bound = profile->hashes[kept - 1];
    }
    profile->hash_count = kept;
}

static void add_hash(st_profile *profile, uint64_t hash)
{
    if (hash >= profile->hash_bound)
        return;
    if (profile->hash_count == HASHES_ROOM)
        settle_hashes(profile);
    if (hash < profile->hash_bound)
        profile->hashes[profile->hash_count++] = hash;
}

static void count_distinct(st_profile *profile)
{
    settle_hashes(profile);
    profile->distinct = profile->hash_count;
    if (!profile->distinct_exact) {
        double part = ((double)profile->hashes[ST_PROFILE_DISTINCT - 1] + 1) / 18446744073709551616.0;
        double estimate = (ST_PROFILE_DISTINCT - 1) / part;
        profile->distinct = estimate < (double)profile->values ? (uint64_t)estimate : profile->values;
    }
}

/* ---- frequent values ---- */

/* The slot of the hash, or the empty one where it would go. */
static st_profile_counter *slot_of(st_profile_counter *counters, uint64_t hash)
{
    uint64_t at = hash & (SLOTS - 1);
    while (counters[at].count > 0 && counters[at].hash != hash)
        at = (at + 1) & (SLOTS - 1);
    return &counters[at];
}

static sluice_status lower_all(st_profile *profile, sluice_error *err)
{
    st_profile_counter *fresh = calloc(SLOTS, sizeof *fresh);
    if (!fresh)
        return pf_fail_memory(err);
    profile->counter_count = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        const st_profile_counter *old = &profile->counters[i];
        if (old->count < 2)
            continue;
        *slot_of(fresh, old->hash) = (st_profile_counter){old->hash, old->count - 1};
        profile->counter_count++;
    }
    free(profile->counters);
    profile->counters = fresh;
    profile->recounts = true;
    return SLUICE_OK;
}

static sluice_status add_count(st_profile *profile, uint64_t hash, sluice_error *err)
{
    st_profile_counter *slot = slot_of(profile->counters, hash);
    if (slot->count == 0) { /* else the hash has been added with the counter */
        add_hash(profile, hash);
        if (profile->counter_count == ST_PROFILE_COUNTERS)
            return lower_all(profile, err);
        slot->hash = hash;
        profile->counter_count++;
    }
    slot->count++;
    return SLUICE_OK;
}

bool st_profile_recounts(st_profile *profile)
{
    profile->pass = ST_PROFILE_RECOUNT;
    for (uint32_t i = 0; i < SLOTS && profile->recounts; i++)
        profile->counters[i].count = profile->counters[i].count > 0; /* the one keeps the slot */
    return profile->recounts;
}

static void offer_frequent(st_profile *profile, st_profile_counter offered)
{
    uint32_t at = profile->frequent_count;
    while (at > 0 && profile->frequent[at - 1].count < offered.count)
        at--;
    if (at == ST_PROFILE_FREQUENT)
        return;
    if (profile->frequent_count < ST_PROFILE_FREQUENT)
        profile->frequent_count++;
    memmove(&profile->frequent[at + 1], &profile->frequent[at],
            (profile->frequent_count - 1 - at) * sizeof profile->frequent[0]);
    profile->frequent[at] = offered;
}

void st_profile_choose(st_profile *profile)
{
    uint64_t above = profile->recounts ? profile->values / (ST_PROFILE_COUNTERS + 1) : 0;
    count_distinct(profile);
    for (uint32_t i = 0; i < SLOTS; i++) {
        st_profile_counter found = profile->counters[i];
        if (profile->recounts && found.count > 0)
            found.count--;
        if (found.count > 1 && found.count > above)
            offer_frequent(profile, found);
    }
    profile->pass = ST_PROFILE_FETCH;
}

static sluice_status fetch(st_profile *profile, const st_column *column, uint64_t row, uint64_t hash, sluice_error *err)
{
    for (uint32_t i = 0; i < profile->frequent_count; i++) {
        if (profile->fetched[i] || profile->frequent[i].hash != hash)
            continue;
        profile->fetched[i] = true;
        profile->frequent_rows[i] = st_builder_length(profile->frequent_values);
        PF_TRY(st_append_from(profile->frequent_values, column, row, err));
        st_builder_view(profile->frequent_values, &profile->frequent_view);
    }
    return SLUICE_OK;
}

/* ---- rows ---- */

static sluice_status add_value(st_profile *profile, const st_column *column, uint64_t row, sluice_error *err)
{
    uint64_t hash = hash_of(column, row);
    switch (profile->pass) {
    case ST_PROFILE_GATHER:
        profile->values++;
        PF_TRY(add_extremes(profile, column, row, err));
        return add_count(profile, hash, err);
    case ST_PROFILE_RECOUNT: {
        st_profile_counter *slot = slot_of(profile->counters, hash);
        if (profile->recounts && slot->count > 0)
            slot->count++;
        return SLUICE_OK;
    }
    case ST_PROFILE_FETCH:
        return fetch(profile, column, row, hash, err);
    }
    return SLUICE_OK;
}

sluice_status st_profile_add(st_profile *profile, const st_column *column, uint64_t rows, sluice_error *err)
{
    for (uint64_t row = 0; row < rows; row++) {
        if (!st_column_is_null(column, row))
            PF_TRY(add_value(profile, column, row, err));
        else if (profile->pass == ST_PROFILE_GATHER)
            profile->nulls++;
    }
    return SLUICE_OK;
}
