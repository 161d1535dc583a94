/*
 * Tallies: what happened, counted over many processes, for those who look on (coord/host/metrics.c shows them).
 *
 * A tally is a word in memory that the processes of a graph share from before their forks: whoever sees the event adds
 * to it, by one instruction, so a killed process has counted what it did and nothing else. Tallies only grow, are no
 * authority for anything, and name nothing: no key, value, name or path has a place here. A series also counts how
 * large the values were: a cell for each bound and one beyond all; the number of its values is the sum of its cells, so
 * it always agrees with them. A place says what one process is doing at this moment; it has one writer.
 *
 * A process to which nothing was shared (every command without a supervisor, every embedding program) counts nothing
 * and does not ask for the time.
 */
#ifndef PLATFORM_TALLY_H
#define PLATFORM_TALLY_H

#include "platform/fail.h"
#include "platform/memory.h"
#include <stdint.h>

#define PF_TALLY_CODES   64u /* codes of errors */
#define PF_TALLY_BOUNDS  16u
#define PF_TALLY_PLACES  512u
#define PF_TALLY_NOWHERE UINT32_MAX

typedef enum pf_tally {
    PF_TALLY_COMMITS,         /* appended and acknowledged */
    PF_TALLY_WRITE_RESTARTS,  /* plans that were given up for a new base */
    PF_TALLY_WORKER_DEATHS,   /* of a pool */
    PF_TALLY_FILE_SYNCS,      /* tried */
    PF_TALLY_FOLDER_SYNCS,    /* tried */
    PF_TALLY_BYTES_READ,      /* by calls; not through mappings */
    PF_TALLY_BYTES_WRITTEN,   /* by calls */
    PF_TALLY_RECOVER_RETIRE,  /* intents of dead writers, by what was done about them */
    PF_TALLY_RECOVER_PUBLISH, /* in the order of coord/recover.c */
    PF_TALLY_RECOVER_DISCARD,
    PF_TALLY_RECOVER_UNDO,
    PF_TALLY_RECOVER_QUARANTINE,
    PF_TALLY_COUNT
} pf_tally;

typedef enum pf_series {
    PF_SERIES_GROUP,     /* commits that one append published */
    PF_SERIES_SYNC,      /* from here on: nanoseconds */
    PF_SERIES_GATE_WAIT, /* for a write's whole set */
    PF_SERIES_GATE_HOLD,
    PF_SERIES_PHASE, /* + a sluice_phase */
    PF_SERIES_COUNT = PF_SERIES_PHASE + (int)SLUICE_PHASE_RECOVER + 1
} pf_series;

typedef struct pf_series_cells {
    _Atomic uint64_t sum;
    _Atomic uint64_t cells[PF_TALLY_BOUNDS + 1]; /* values up to this bound and beyond the one before */
} pf_series_cells;

typedef struct pf_tallies { /* zeroed is empty */
    _Atomic uint64_t counts[PF_TALLY_COUNT];
    _Atomic uint64_t failures[PF_TALLY_CODES]; /* of writes, by code */
    pf_series_cells series[PF_SERIES_COUNT];
    _Atomic uint64_t heaps[PF_TALLY_PLACES][3]; /* pf_heap of a process, as it last looked; 0: not yet */
    _Atomic uint32_t places[PF_TALLY_PLACES];   /* sluice_phase of the write that a process is in; 0: in none */
} pf_tallies;

/* From here on this process and its children count there, as the process at `place` (PF_TALLY_NOWHERE: at none). NULL:
 * they count nothing. */
void pf_tallies_share(pf_tallies *tallies, uint32_t place);
void pf_tally_add(pf_tally what, uint64_t count);
void pf_tally_failure(sluice_status code);
void pf_tally_place(sluice_phase phase);
void pf_tally_heap(const pf_heap *heap);
/* Now, for pf_tally_since; 0 where nothing is counted. */
int64_t pf_tally_clock(void);
void pf_tally_since(pf_series series, int64_t clock); /* nothing for 0 */
void pf_tally_value(pf_series series, uint64_t value);
/* The upper bounds of a series' cells: nanoseconds, or a number. */
const uint64_t *pf_series_bounds(pf_series series);

#endif
