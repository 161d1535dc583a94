/*
 * Crash exploration of a log on the simulated disk: an action is cut short at each of its volume calls, by the death of
 * its process or by a loss of power; then what readers see, what recovery makes of it (itself cut short at each call),
 * and that the next append works, is compared with what the history allows: the prior end or the new one, never a
 * third, and never less than what was acknowledged.
 */
#ifndef TESTS_LOG_CRASH_FIXTURE_H
#define TESTS_LOG_CRASH_FIXTURE_H

#include "log_fixture.h"
#include "platform/sim.h"

#define HISTORY_MAX 64u

/* What each generation of the log is, if it is there. */
typedef struct history {
    uint64_t acknowledged; /* these are there */
    uint64_t possible;     /* the highest that may be there */
    struct {
        uint32_t flavour;
        size_t attached;
    } at[HISTORY_MAX];
} history;

typedef struct scenario {
    const char *name;
    /* Brings an empty log on `disk` to the state in which the action begins. */
    void (*prepare)(pf_sim_disk *disk, history *past);
    size_t attached; /* of the generation that the action appends */
    bool deep;       /* recovery is cut short too */
} scenario;

typedef struct seen { /* over one exploration */
    unsigned runs, prior, new;
} seen;

pf_volume *crash_actor(pf_sim_disk *disk);
/* Opens for writing, heals, settles; appends a generation of flavour 2 when `append`. Notes in `past` what is known of
 * the outcome. The status is that of the first call that failed. */
sluice_status crash_act(pf_volume *volume, const scenario *plan, bool append, history *past, sluice_error *err);
/* Appends n generations that are acknowledged. */
void crash_append(pf_sim_disk *disk, history *past, unsigned n, size_t attached);
/* The log reads as `past` allows, the same twice and without changing the disk; its end. */
uint64_t crash_check(pf_sim_disk *disk, const history *past);
/* Explores the action with every crash; `seeds` tries of each random loss. */
seen crash_explore(const scenario *plan, unsigned seeds);

#endif
