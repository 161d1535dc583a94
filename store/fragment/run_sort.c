/*
 * Sorting the entries of a run by (hash, position).
 *
 * Hashes are spread evenly. Many entries are first dealt out by their leading bits into buckets that fit the
 * processor's cache; in a bucket a few stable radix passes over the next bits leave groups of one or two entries, which
 * are put in order in place. Entries that came in order of position stay so among equal hashes, and a group of equal
 * hashes (one popular end of many edges) is recognised as sorted. What is neither short nor sorted goes to a heap sort,
 * so that no input, however contrived, costs more than n log n.
 */
#include "store/fragment/run.h"

#include "platform/check.h"
#include "platform/memory.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 8u
#define DIGITS     (1u << DIGIT_BITS)
#define SHORT      24u   /* groups up to here are sorted by insertion */
#define IN_CACHE   8192u /* entries: 128 KiB, twice, stay close to the processor */
#define SPARE_BITS 2u    /* leading bits sorted beyond those that tell so many entries apart */

static inline bool before(const st_run_entry *a, const st_run_entry *b)
{
    return a->hash < b->hash || (a->hash == b->hash && a->position < b->position);
}

static void insertion_sort(st_run_entry *entries, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        st_run_entry entry = entries[i];
        uint64_t at = i;
        for (; at && before(&entry, &entries[at - 1]); at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

static void sift_down(st_run_entry *heap, uint64_t at, uint64_t count)
{
    st_run_entry entry = heap[at];
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(&heap[child], &heap[child + 1]))
            child++;
        if (!before(&entry, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

static void heap_sort(st_run_entry *entries, uint64_t count)
{
    for (uint64_t i = count / 2; i; i--)
        sift_down(entries, i - 1, count);
    for (uint64_t last = count - 1; last; last--) {
        st_run_entry largest = entries[0];
        entries[0] = entries[last];
        entries[last] = largest;
        sift_down(entries, 0, last);
    }
}

/* Puts a group in order whose leading bits are equal. */
static void finish_group(st_run_entry *entries, uint64_t count)
{
    if (count <= SHORT) {
        insertion_sort(entries, count);
        return;
    }
    for (uint64_t i = 1; i < count; i++) {
        if (before(&entries[i], &entries[i - 1])) {
            heap_sort(entries, count);
            return;
        }
    }
}

static void finish_groups(st_run_entry *entries, uint64_t count, unsigned shift)
{
    for (uint64_t first = 0; first < count;) {
        uint64_t prefix = entries[first].hash >> shift, next = first + 1;
        while (next < count && entries[next].hash >> shift == prefix)
            next++;
        if (next - first > 1)
            finish_group(entries + first, next - first);
        first = next;
    }
}

/* Where each digit's entries begin, from how many there are. */
static void sum_up(uint64_t counts[DIGITS])
{
    uint64_t sum = 0;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        uint64_t here = counts[digit];
        counts[digit] = sum;
        sum += here;
    }
}

static void pass(const st_run_entry *from, st_run_entry *to, uint64_t count, unsigned shift)
{
    uint64_t starts[DIGITS] = {0};
    for (uint64_t i = 0; i < count; i++)
        starts[(from[i].hash >> shift) & (DIGITS - 1)]++;
    sum_up(starts);
    for (uint64_t i = 0; i < count; i++)
        to[starts[(from[i].hash >> shift) & (DIGITS - 1)]++] = from[i];
}

/* Sorts entries whose bits from `top` up are equal; they lie in `from`, are wanted in `to`, and either may be used. */
static void sort_bucket(st_run_entry *from, st_run_entry *to, uint64_t count, unsigned top)
{
    st_run_entry *wanted = to;
    unsigned passes = 0, shift = top;

    if (count > SHORT) {
        unsigned bits = 64u - (unsigned)__builtin_clzll(count) + SPARE_BITS;
        passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
        if (passes * DIGIT_BITS > top)
            passes = top / DIGIT_BITS;
        shift = top - passes * DIGIT_BITS;
    }
    for (unsigned i = 0; i < passes; i++) {
        pass(from, to, count, shift + i * DIGIT_BITS);
        st_run_entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != wanted)
        memcpy(wanted, from, count * sizeof *wanted);
    if (passes)
        finish_groups(wanted, count, shift);
    else
        insertion_sort(wanted, count);
}

/* Deals the entries out by their leading digit, then sorts each bucket. */
static void sort_many(st_run_entry *entries, st_run_entry *other, uint64_t count)
{
    uint64_t ends[DIGITS] = {0}, first = 0;
    const unsigned top = 64 - DIGIT_BITS;

    for (uint64_t i = 0; i < count; i++)
        ends[entries[i].hash >> top]++;
    sum_up(ends);
    for (uint64_t i = 0; i < count; i++)
        other[ends[entries[i].hash >> top]++] = entries[i];
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        sort_bucket(other + first, entries + first, ends[digit] - first, top);
        first = ends[digit];
    }
}

sluice_status st_run_sort(st_run_entry *entries, uint64_t count, sluice_error *err)
{
    if (count <= SHORT) {
        insertion_sort(entries, count);
        return SLUICE_OK;
    }
    size_t bytes;
    st_run_entry *other = pf_mul_size(count, sizeof *other, &bytes) ? malloc(bytes) : NULL;
    if (!other)
        return pf_fail_memory(err);
    pf_memory_to_fill(other, bytes);
    if (count > IN_CACHE) {
        sort_many(entries, other, count);
    } else {
        memcpy(other, entries, bytes);
        sort_bucket(other, entries, count, 64);
    }
    free(other);
    return SLUICE_OK;
}
