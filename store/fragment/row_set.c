/*
 * Row sets: 64-bit rows over CRoaring's 32-bit bitmaps, one per high word.
 *
 * Row ids come from blocks of 2^40 and positions are small, so a set has few parts, mostly one.
 */
#include "store/fragment/row_set.h"

#include "platform/check.h"

#include <stdlib.h>
#include <string.h>

sluice_status st_row_set_new(st_row_set **ret_set, sluice_error *err)
{
    *ret_set = calloc(1, sizeof **ret_set);
    return *ret_set ? SLUICE_OK : pf_fail_memory(err);
}

void st_row_set_free(st_row_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i < set->count; i++)
        roaring_bitmap_free(set->parts[i].low);
    free(set->parts);
    free(set);
}

/* The first part whose high word is at least `high`. */
static uint32_t find(const st_row_set *set, uint32_t high)
{
    uint32_t from = 0, to = set->count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (set->parts[middle].high < high)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static sluice_status insert(st_row_set *set, uint32_t at, uint32_t high, roaring_bitmap_t *low, sluice_error *err)
{
    if (!low)
        return pf_fail_memory(err);
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 4;
        st_row_part *parts = capacity > set->capacity ? realloc(set->parts, capacity * sizeof *parts) : NULL;
        if (!parts) {
            roaring_bitmap_free(low);
            return pf_fail_memory(err);
        }
        set->parts = parts;
        set->capacity = capacity;
    }
    memmove(set->parts + at + 1, set->parts + at, (set->count - at) * sizeof *set->parts);
    set->parts[at] = (st_row_part){high, low};
    set->count++;
    return SLUICE_OK;
}

sluice_status st_row_set_push(st_row_set *set, uint32_t high, roaring_bitmap_t *low, sluice_error *err)
{
    PF_ASSERT(!set->count || set->parts[set->count - 1].high < high);
    return insert(set, set->count, high, low, err);
}

static sluice_status part_for(st_row_set *set, uint32_t high, roaring_bitmap_t **ret_low, sluice_error *err)
{
    uint32_t at = find(set, high);
    if (at == set->count || set->parts[at].high != high)
        PF_TRY(insert(set, at, high, roaring_bitmap_create(), err));
    *ret_low = set->parts[at].low;
    return SLUICE_OK;
}

sluice_status st_row_set_add(st_row_set *set, uint64_t row, sluice_error *err)
{
    roaring_bitmap_t *low = NULL;
    PF_TRY(part_for(set, (uint32_t)(row >> 32), &low, err));
    roaring_bitmap_add(low, (uint32_t)row);
    return SLUICE_OK;
}

sluice_status st_row_set_add_many(st_row_set *set, const uint64_t *rows, uint64_t count, sluice_error *err)
{
    enum { CHUNK = 1024 };
    uint32_t lows[CHUNK];

    for (uint64_t i = 0; i < count;) {
        uint32_t high = (uint32_t)(rows[i] >> 32);
        size_t length = 0;
        roaring_bitmap_t *low = NULL;
        for (; length < CHUNK && i < count && rows[i] >> 32 == high; i++)
            lows[length++] = (uint32_t)rows[i];
        PF_TRY(part_for(set, high, &low, err));
        roaring_bitmap_add_many(low, length, lows);
    }
    return SLUICE_OK;
}

sluice_status st_row_set_add_set(st_row_set *set, const st_row_set *more, sluice_error *err)
{
    for (uint32_t i = 0; i < more->count; i++) {
        roaring_bitmap_t *low = NULL;
        PF_TRY(part_for(set, more->parts[i].high, &low, err));
        if (low != more->parts[i].low)
            roaring_bitmap_or_inplace(low, more->parts[i].low);
    }
    return SLUICE_OK;
}

bool st_row_set_contains(const st_row_set *set, uint64_t row)
{
    uint32_t high = (uint32_t)(row >> 32), at = find(set, high);
    return at < set->count && set->parts[at].high == high && roaring_bitmap_contains(set->parts[at].low, (uint32_t)row);
}

uint64_t st_row_set_count(const st_row_set *set)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        count += roaring_bitmap_get_cardinality(set->parts[i].low);
    return count;
}

/* The last row of a range that begins at `first` and has at least one row; ranges end with the numbers. */
static uint64_t last_of(uint64_t first, uint64_t count)
{
    return count - 1 <= UINT64_MAX - first ? first + (count - 1) : UINT64_MAX;
}

uint64_t st_row_set_count_range(const st_row_set *set, uint64_t first, uint64_t count)
{
    uint64_t sum = 0;

    if (!count)
        return 0;
    uint64_t last = last_of(first, count);
    for (uint32_t i = find(set, (uint32_t)(first >> 32)); i < set->count && set->parts[i].high <= last >> 32; i++) {
        uint64_t base = (uint64_t)set->parts[i].high << 32;
        uint64_t from = first > base ? first - base : 0;
        uint64_t to = last - base < UINT32_MAX ? last - base : UINT32_MAX;
        sum += roaring_bitmap_range_cardinality(set->parts[i].low, from, to + 1);
    }
    return sum;
}

/* The rows of one part within [first, last], less `first`. */
static uint64_t copy_part(const st_row_part *part, uint64_t first, uint64_t last, uint64_t *ret_rows)
{
    uint64_t base = (uint64_t)part->high << 32, copied = 0;
    uint32_t lows[512];
    roaring_uint32_iterator_t at;

    roaring_init_iterator(part->low, &at);
    if (first > base && !roaring_move_uint32_iterator_equalorlarger(&at, (uint32_t)(first - base)))
        return 0;
    for (uint32_t got; (got = roaring_read_uint32_iterator(&at, lows, 512)) > 0;) {
        for (uint32_t i = 0; i < got; i++) {
            if (base + lows[i] > last)
                return copied;
            ret_rows[copied++] = base + lows[i] - first;
        }
    }
    return copied;
}

sluice_status st_row_set_range(const st_row_set *set, uint64_t first, uint64_t count, uint64_t **ret_rows,
                               uint64_t *ret_count, sluice_error *err)
{
    uint64_t total = st_row_set_count_range(set, first, count), copied = 0;
    size_t bytes;

    *ret_rows = NULL;
    *ret_count = 0;
    if (!total)
        return SLUICE_OK;
    uint64_t *rows = pf_mul_size(total, sizeof *rows, &bytes) ? malloc(bytes) : NULL;
    if (!rows)
        return pf_fail_memory(err);
    uint64_t last = last_of(first, count);
    for (uint32_t i = find(set, (uint32_t)(first >> 32)); i < set->count && set->parts[i].high <= last >> 32; i++)
        copied += copy_part(&set->parts[i], first, last, rows + copied);
    PF_ALWAYS(copied == total);
    *ret_rows = rows;
    *ret_count = total;
    return SLUICE_OK;
}

sluice_status st_row_set_rows(const st_row_set *set, uint64_t **ret_rows, uint64_t *ret_count, sluice_error *err)
{
    /* A range has at most 2^64 - 1 rows: the very last number is no row id (ids and positions stay below). */
    return st_row_set_range(set, 0, UINT64_MAX, ret_rows, ret_count, err);
}
