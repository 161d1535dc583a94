/*
 * Probes: the rules that look at more than one record (DESIGN 4 "plan half"), each over one range of key hashes, so
 * that the ranges of one rule can be checked by different workers and together say the same whatever their number.
 *
 *   key       a node's key is new: neither in the base nor earlier in the input
 *   unique    so is a unique tuple (tuples with a null never collide)
 *   ends      the nodes that an edge names exist, in the base or in the input
 *   identity  an edge of a keyed type is new
 *   counts    no node has more edges of a type than it may have, base and input together
 *   stranded  where nodes are replaced, every edge of the base that stays finds its nodes in the input
 *
 * Runs are joined by hash; an equal hash is confirmed on the key itself unless it proves it. What a rule refuses is
 * always the later record: with "insert" the first in order of the input wins. (With "upsert" the last one does: then
 * it is the earlier ones that are reported, with the one that counts, and none is refused.)
 */
#ifndef WORKER_INGEST_PROBE_H
#define WORKER_INGEST_PROBE_H

#include "worker/ingest/stream.h"

typedef enum wk_rule { /* in the order of the phases of a skipping load; also wk_fault.rule */
                       WK_RULE_ROW,
                       WK_RULE_KEY,
                       WK_RULE_UNIQUE,
                       WK_RULE_ENDS,
                       WK_RULE_IDENTITY,
                       WK_RULE_COUNTS,
                       WK_RULE_STRANDED, /* of no record: it ends also a load that skips bad rows */
                       WK_RULE_END
} wk_rule;

typedef struct wk_probe {
    wk_rule rule;
    const st_type_def *type; /* whose rows are checked */
    const st_type_def *node; /* ends and counts: the type of that end */
    wk_run_plan plan;        /* the run that drives it */
    uint64_t limit;          /* counts */
    uint64_t entries;        /* in the runs that drive it: the load's, for `stranded` the base's */
    bool alone;              /* rows of the type in the base do not count: they are replaced, or looked for elsewhere */
    bool node_alone;         /* ends: nodes of the base do not count */
    bool node_named;         /* ends: row ids that the load gives to its own nodes */
    bool of_names;           /* checked on load-local names (worker/ingest/names.h) */
    bool last_counts;        /* keys, alone: of equal rows the last one counts, and the earlier ones are reported */
} wk_probe;

/* A row that a rule refuses. `stranded` refuses no row of the load: `other` is the edge of the base. */
typedef struct wk_event {
    uint32_t probe;
    uint32_t item; /* of the catalogue */
    uint64_t position;
    uint32_t argument; /* the record that the row is */
    uint64_t record;
    bool has_other, other_in_base; /* the row that was there first */
    uint32_t other_item;
    uint64_t other_position;
} wk_event;
typedef sluice_status wk_event_fn(void *context, const wk_event *event, sluice_error *err);

/* Everything that has to be checked for what a catalogue holds; in order of rules. The caller frees the array. */
sluice_status wk_probes_make(const st_schema *schema, const wk_catalogue *catalogue, wk_probe **ret_probes,
                             uint32_t *ret_count, sluice_error *err);
/* The probe of one end of the edges of a type in the base, whose nodes are replaced. */
sluice_status wk_probe_make_stranded(const st_type_def *type, const st_type_def *node, st_run_use use,
                                     st_snapshot *base, wk_probe *ret_probe, sluice_error *err);
/* Into how many ranges a probe is cut: by its entries, never by the number of workers. (In builds with failpoints
 * SLUICE_TEST_RANGE=ENTRIES makes ranges smaller.) */
uint32_t wk_probe_ranges(const wk_probe *probe);
wk_range wk_probe_range(uint32_t ranges, uint32_t number);

typedef struct wk_probe_run {
    pf_volume *volume;
    const wk_spool *spool; /* the attempt's; NULL: none */
    st_snapshot *base;
    const wk_catalogue *catalogue;
    const wk_probe *probe;
    st_row_set *const *except; /* per item of the catalogue: rows that the probe is not about; NULL: none */
    st_row_set *const *weak;   /* likewise, last_counts: rows that never count while another row of their key can */
    const st_row_set *hidden; /* unique: rows of the base that give their tuple up, as wk_row_code has them; NULL: those
                                 of the catalogue */
    uint32_t number;          /* goes into the events */
    wk_range range;
    wk_event_fn *each;
    void *context;
} wk_probe_run;
sluice_status wk_probe_check(const wk_probe_run *run, sluice_error *err);

#endif
