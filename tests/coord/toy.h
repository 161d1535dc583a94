/*
 * A small writer for tests of the machine: adds one fragment with the given int64 keys to a table, strictly (a key that
 * is there is a KEY_CONFLICT). It stages like a load (fragment, key run, edit, all below the attempt's id), reads
 * KEY_ABSENT, and declares the gates of a keyed writer. Graphs are made on a simulated disk or on a real one.
 */
#ifndef TESTS_COORD_TOY_H
#define TESTS_COORD_TOY_H

#include "coord/write.h"
#include "platform/sim.h"

#define TOY_KEYS 64u

typedef struct toy_writer {
    const char *type; /* "A" or "B" */
    int64_t keys[TOY_KEYS];
    uint32_t count;
    const ad_adapter *adapter; /* NULL: the one of loads */
    bool attached;             /* the edit goes into the record, nothing but fragment and run is staged */
    bool exclusive;            /* takes its table's gate alone */
    bool blind;                /* probes nothing: for counting the machine's own calls */
    bool reads_table;          /* reads the whole table, like an overwrite */
    ad_effect effects[4];      /* visible by themselves */
    uint32_t effect_count;
    void (*before_plan)(void *context); /* a hook for races: after the pin, before the probes */
    void (*after_plan)(void *context);
    void *context;
    /* filled: */
    unsigned payloads, plans;
    st_fragment_info fragment;
    st_run_ref run;
    uint64_t table;
    co_write *write; /* of the newest plan */
} toy_writer;

/* A toy that inserts the keys first, first + 1, ... */
toy_writer toy_of(const char *type, int64_t first, uint32_t count);

/* Makes a graph with node types A and B, keyed by int64 "id", on an empty volume. */
void toy_init(pf_volume *volume, st_write_mode mode);
/* An actor of the disk with the graph open for writing. */
st_graph *toy_open(pf_sim_disk *disk);
/* A fresh disk with such a graph; ids, clock and disk follow the seed. */
pf_sim_disk *toy_disk(uint64_t seed);

typedef struct toy_options {
    pf_id operation; /* nil: minted */
    bool given;
    pf_id if_head;
    int64_t wait_ms;
    wk_executor *executor; /* NULL: one of its own */
    pf_sha256 request;     /* zero: made from type and keys */
    const char *branch;    /* NULL: main */
    bool creates;          /* the branch, at the head of `from` (NULL: main) */
    const char *from;
} toy_options;
/* A whole write with an attempt of its own: make, run, finish. */
sluice_status toy_write(st_graph *graph, toy_writer *toy, const toy_options *options, co_receipt *ret_receipt,
                        sluice_error *err);
/* The same under an attempt that somebody made: what a conductor does, and its successor. The attempt stays. */
sluice_status toy_conduct(st_graph *graph, toy_writer *toy, const toy_options *options, co_attempt *attempt,
                          co_receipt *ret_receipt, sluice_error *err);
/* The keys of a type, ascending, at the branch's head; at most `room`. Returns how many there are. */
uint32_t toy_keys(st_graph *graph, const char *type, int64_t *ret_keys, uint32_t room);
/* The same of any branch. */
uint32_t toy_keys_on(st_graph *graph, const char *branch, const char *type, int64_t *ret_keys, uint32_t room);
/* Does the type hold exactly these keys? */
bool toy_holds(st_graph *graph, const char *type, const int64_t *keys, uint32_t count);
wk_executor toy_executor(void);

#endif
