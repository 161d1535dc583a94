/*
 * What the values of a column are like: how many, how many distinct, the least and the greatest, the most frequent.
 *
 * Values are told apart by a hash of 64 bits. Memory is bounded, however many rows there are:
 *   distinct  the ST_PROFILE_DISTINCT least hashes are kept. Exact up to that number; beyond it an estimate from how
 *             densely they lie, with a standard error of 1 / sqrt(ST_PROFILE_DISTINCT), below 1 %.
 *   frequent  ST_PROFILE_COUNTERS counters; when a value finds none, all go down by one (Misra and Gries). A value in
 *             more than one of ST_PROFILE_COUNTERS + 1 rows keeps its counter; which ones do is known after the first
 *             pass, how often they occur after a second one, and the values themselves after a last one.
 *
 * Use: begin; add every row; when st_profile_recounts, add every row again; st_profile_choose; add every row again.
 */
#ifndef STORE_READ_PROFILE_H
#define STORE_READ_PROFILE_H

#include "store/read/snapshot.h"

#define ST_PROFILE_DISTINCT 16384u
#define ST_PROFILE_COUNTERS 4096u
#define ST_PROFILE_FREQUENT 5u

typedef struct st_profile_counter {
    uint64_t hash;
    uint64_t count; /* 0: the slot is empty */
} st_profile_counter;

typedef enum st_profile_pass { ST_PROFILE_GATHER, ST_PROFILE_RECOUNT, ST_PROFILE_FETCH } st_profile_pass;

typedef struct st_profile {
    const st_column_spec *spec;
    st_profile_pass pass;
    uint64_t values, nulls;
    st_column_builder *least, *greatest; /* one value each, none as long as there is none that has an order */
    st_column least_view, greatest_view;
    uint64_t *hashes; /* the least ones: room for twice ST_PROFILE_DISTINCT */
    uint32_t hash_count;
    uint64_t hash_bound; /* hashes from here on are left out */
    bool distinct_exact;
    uint64_t distinct;
    st_profile_counter *counters; /* open addressing */
    uint32_t counter_count;
    bool recounts; /* counters have gone down: their counts are too low */
    st_profile_counter frequent[ST_PROFILE_FREQUENT];
    bool fetched[ST_PROFILE_FREQUENT];
    uint64_t frequent_rows[ST_PROFILE_FREQUENT]; /* of frequent_view */
    uint32_t frequent_count;
    st_column_builder *frequent_values; /* in the order in which they were met */
    st_column frequent_view;
} st_profile;

/* `spec` must outlive it. Freed by st_profile_free, also when this fails. */
sluice_status st_profile_begin(st_profile *profile, const st_column_spec *spec, sluice_error *err);
sluice_status st_profile_add(st_profile *profile, const st_column *column, uint64_t rows, sluice_error *err);
/* After the first pass: is one needed that counts again? Then this begins it. */
bool st_profile_recounts(st_profile *profile);
/* The counts are known: what is distinct and which values are frequent; the pass that fetches them begins. */
void st_profile_choose(st_profile *profile);
void st_profile_free(st_profile *profile); /* safe on a zeroed one */

#endif
