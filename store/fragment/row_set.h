/*
 * The inside of a row set, shared by row_set.c (operations) and deletion.c (files).
 */
#ifndef STORE_FRAGMENT_ROW_SET_H
#define STORE_FRAGMENT_ROW_SET_H

#include "store/fragment/deletion.h"

#include <roaring/roaring.h>

typedef struct st_row_part {
    uint32_t high; /* the high word of all its rows */
    roaring_bitmap_t *low;
} st_row_part;

struct st_row_set {
    st_row_part *parts; /* ascending by high; none is empty */
    uint32_t count, capacity;
};

/* Appends a part behind all others; takes `low` over, also when it fails. */
sluice_status st_row_set_push(st_row_set *set, uint32_t high, roaring_bitmap_t *low, sluice_error *err);

#endif
