/*
 * Recovery as the rest of coord/ uses it; coord/recover.h is what others see. Internal.
 */
#ifndef COORD_RECOVERY_H
#define COORD_RECOVERY_H

#include "coord/intent.h"
#include "coord/recover.h"

typedef struct co_overlap { /* what somebody is about to touch */
    uint64_t incarnation;   /* 0: every branch */
    const uint64_t *tables; /* NULL: every table of the branch */
    uint32_t table_count;
    bool tables_unknown; /* not yet: all of the branch's dead intents are settled, but an unresolvable one stands in the
                          * way only when it overlaps the whole branch; stage C asks again with the plan's tables */
} co_overlap;

/* co_recover with a bound for all of its waits. */
sluice_status co_recover_until(st_graph *graph, co_recover_mode mode, const co_overlap *overlap, co_recovered_fn *each,
                               void *context, pf_deadline deadline, sluice_error *err);
/* Under the gates (OW-045): *ret_due when an intent of a dead owner overlaps. RECOVERY_REQUIRED when a quarantined one
 * does. Looks only. */
sluice_status co_recovery_is_due(st_graph *graph, const co_overlap *overlap, bool *ret_due, sluice_error *err);
/* *ret_live: a slot holds an intent that overlaps and whose owner lives. Looks only. */
sluice_status co_recovery_is_live(st_graph *graph, const co_overlap *overlap, bool *ret_live, sluice_error *err);
/* The scope of every intent, in a slot (also a live owner's) or in quarantine. *ret_unknown: an unreadable one without
 * scope may concern anything. */
typedef sluice_status co_scope_fn(void *context, const co_scope *scope, sluice_error *err);
sluice_status co_recovery_scopes(st_graph *graph, co_scope_fn *each, void *context, bool *ret_unknown,
                                 sluice_error *err);
/* The generation of its branch that each intent in a slot was prepared on; 0 where that cannot be read. What lies in
 * quarantine is never finished and needs none. */
typedef sluice_status co_base_fn(void *context, uint64_t incarnation, uint64_t generation, sluice_error *err);
sluice_status co_recovery_bases(st_graph *graph, co_base_fn *each, void *context, sluice_error *err);

/* Resolves one intent whose slot is held (rows 1 to 5 of DESIGN 8; 6 for what this program does not understand). */
typedef struct co_resolution {
    st_graph *graph;
    lk_lockfile *graph_locks;
    pf_deadline deadline;
} co_resolution;
typedef enum co_verdict { /* what an intent turned out to be */
                          CO_V_PUBLISHED,
                          CO_V_PUBLISHED_NOW,
                          CO_V_GONE,
                          CO_V_UNCONFIRMED,
                          CO_V_INVALID,
                          CO_V_UNREADABLE,
                          CO_V_BLOCK /* not decided: a block of row ids is needed first */
} co_verdict;
/* The ref that an intent makes for its own branch; NULL: it is of a branch that is there. */
const ad_effect *co_intent_made_ref(const co_intent *intent);
/* Decides an intent that has one (coord/resolve_new.c). */
sluice_status co_judge_new(const co_resolution *how, const co_intent *intent, co_verdict *ret_verdict,
                           sluice_error *err);
sluice_status co_resolve(const co_resolution *how, co_slot *slot, const co_intent *intent, co_recovered *line,
                         sluice_error *err);

#endif
