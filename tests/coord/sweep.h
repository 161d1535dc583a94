/*
 * Small writers beside the toy, for tests of maintenance: they delete rows, write rows anew under their ids, and
 * replace a whole table; and a list of a table's rows to compare.
 */
#ifndef TESTS_COORD_SWEEP_H
#define TESTS_COORD_SWEEP_H

#include "coord/maintain.h"
#include "toy.h"

typedef enum sweep_kind { SWEEP_DELETE, SWEEP_UPDATE, SWEEP_REPLACE } sweep_kind;

/* Deletes rows by key; or gives them a fragment of their own with the same row ids, as an update does; or empties the
 * table of everything. KEY_CONFLICT when a key is not there. */
sluice_status sweep_write(st_graph *graph, const char *type, sweep_kind kind, const int64_t *keys, uint32_t count,
                          sluice_error *err);

typedef struct sweep_row {
    int64_t key;
    uint64_t row;
    pf_id commit;
} sweep_row;
#define SWEEP_ROWS 256u
/* The rows of a type in the order of a scan, with the commits that changed them last. */
uint32_t sweep_rows(st_graph *graph, const char *type, sweep_row ret_rows[SWEEP_ROWS]);
/* Fragments of the type at the head. */
uint32_t sweep_fragments(st_graph *graph, const char *type);

/* Optimize (or index) by this process alone; NULL: all types. */
sluice_status sweep_maintain(st_graph *graph, co_maintain_kind kind, const char *type, co_receipt *ret_receipt,
                             sluice_error *err);

#endif
