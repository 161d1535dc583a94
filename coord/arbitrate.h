/*
 * Arbitration: does a prepared write still hold against what was published since its base? (OW-027, OW-053, LESSONS
 * P-04)
 *
 * The same test for D, for G and for recovery: my reads against the change sets of all commits in (verdict, end], and,
 * before anything else, whether my own commit or my operation is among them. The verdict is kept, so each generation is
 * judged once: D advances it without the publish lock, G looks only at what came since.
 */
#ifndef COORD_ARBITRATE_H
#define COORD_ARBITRATE_H

#include "coord/append.h"
#include "coord/read_set.h"

#define CO_HORIZON 1024u /* generations that G judges under the publish lock; D has no bound */

typedef struct co_claim { /* one prepared write, as arbitration sees it */
    st_graph *graph;
    st_log *log;
    const co_read_set *reads; /* NULL: only identities are looked for */
    pf_id commit, operation;
    pf_sha256 delta, request;
    bool request_matters; /* the operation id came from outside: the same id with other content is a misuse */
    uint64_t verdict;     /* conflicts are judged up to this generation */
    uint64_t seen;        /* identities are judged up to this one; not above verdict only by accident */
} co_claim;

typedef enum co_finding {
    CO_HOLDS,     /* nothing meets it; verdict = end */
    CO_MET,       /* a read met somebody's write */
    CO_MOVED,     /* schema or head are others now */
    CO_PUBLISHED, /* my commit is there, with my delta */
    CO_FOREIGN,   /* my commit id is there with another delta: damage */
    CO_REPEATED,  /* my operation is there as another commit of the same request */
    CO_MISUSED,   /* my operation id is there with other content */
    CO_FAR        /* more than the horizon came since the verdict */
} co_finding;

typedef struct co_found { /* the commit that decided, and what met */
    uint64_t generation;
    uint32_t index;
    pf_id commit;
    int64_t time_us;
    uint64_t inserted, updated, deleted;
    co_read_kind kind;
    uint64_t table;
} co_found;

/* Judges (verdict, end of the log as last refreshed]; `horizon` 0: no bound. */
sluice_status co_arbitrate(co_claim *claim, uint64_t horizon, co_finding *ret_finding, co_found *ret_found,
                           sluice_error *err);
/* Does it hold behind these too, which go before it in one generation? Besides CO_HOLDS, CO_MET and CO_MOVED:
 * CO_REPEATED when one of them is of its operation; which one of the two it is will be found when that one is decided.
 */
sluice_status co_arbitrate_behind(const co_claim *claim, const co_append_part *earlier, uint32_t count,
                                  co_finding *ret_finding, co_found *ret_found, sluice_error *err);

#endif
