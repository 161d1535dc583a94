/*
 * Salvage: one table of a damaged graph, made anew in a graph of its own from whatever is whole.
 */
#ifndef COORD_SALVAGE_H
#define COORD_SALVAGE_H

#include "coord/load.h"
#include "store/read/salvage.h"

typedef struct co_salvage_request {
    const char *graph;  /* path */
    const char *branch; /* NULL: main */
    const char *type;
    const char *into; /* path of the new graph, which must not be there */
    unsigned workers;
    bool here;           /* loaded in this process: no other is forked */
    st_finding_fn *each; /* each loss and each guess */
    void *context;
} co_salvage_request;

#define CO_SALVAGE_TYPES 3u /* an edge type and the types of its ends */

typedef struct co_salvage_report {
    uint64_t generation, newest; /* of the state that was read; the newest of which there is a trace */
    bool older, deletions_unknown;
    bool from_files;            /* there was no state: the rows are those of all files of the tables */
    uint64_t losses, lost_rows; /* lost_rows: of that state; without one it is not known */
    uint64_t guesses;
    uint64_t rejected; /* rows that were read and break a rule in the new graph: doubled, without an end */
    uint64_t doubled;  /* rows of files without a list that others of the same key stand for; not told one by one */
    uint32_t type_count;
    struct {
        char name[256];
        uint64_t rows;
    } types[CO_SALVAGE_TYPES];
    co_receipt receipt;
} co_salvage_report;

/* Nothing is lost, guessed, left out or unsure. */
bool co_salvage_is_whole(const co_salvage_report *report);
/* Edges come with the nodes of their ends. SLUICE_OK also when something was lost: the report says what. */
sluice_status co_salvage(const co_salvage_request *request, co_salvage_report *ret_report, sluice_error *err);

#endif
