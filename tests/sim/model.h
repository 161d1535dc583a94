/*
 * The reference model: what a graph holds after a commit, and what each kind of write makes of it. A few keys, so that
 * writers meet.
 *
 * Types: P (key id; name unique; v), T (key id; what toys insert), E (P to P, at most one of the same ends), L (P to P,
 * at most one out).
 */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_KEYS 12u
#define SIM_NULL INT16_MIN

typedef struct sim_node {
    int16_t there; /* 1, or all is 0 */
    int16_t name;  /* 0: null */
    int16_t v;     /* SIM_NULL: null */
} sim_node;

typedef struct sim_state { /* compared with memcmp: no padding */
    sim_node nodes[SIM_KEYS];
    uint16_t e[SIM_KEYS], l[SIM_KEYS]; /* bit sets of ends */
    uint16_t t;                        /* of keys of T */
} sim_state;

typedef enum sim_step_kind {
    SIM_INSERT, /* a: key, b: name, c: v */
    SIM_UPSERT, /* a: key, c: v */
    SIM_SET,    /* a: key, c: v */
    SIM_NAME,   /* a: key, b: name */
    SIM_SWAP,   /* a: key, c: v, if v was b */
    SIM_DELETE, /* a: key; fails where an edge would lose its end */
    SIM_DETACH, /* a: key */
    SIM_EDGE,   /* a to b of E, must not be there */
    SIM_UNEDGE, /* must be there */
    SIM_LINK,   /* a to b of L */
    SIM_ABSENT, /* asserts: a is not there */
    SIM_IS,     /* asserts: v of a is c */
    SIM_STEP_KINDS
} sim_step_kind;

typedef struct sim_step {
    sim_step_kind kind;
    int a, b, c;
} sim_step;

#define SIM_STEPS_MAX 5u

/* What this salt makes of a mutation: steps on different objects, so that their order does not matter. */
uint32_t sim_steps_of(uint64_t salt, sim_step ret_steps[SIM_STEPS_MAX]);
/* As a file of mutations. */
void sim_steps_text(const sim_step *steps, uint32_t count, char *ret_text, size_t room);
/* False: it must not be committed on this state. */
bool sim_apply(sim_state *state, const sim_step *steps, uint32_t count);

/* Files that are loaded: nodes s, s + 1, s + 2 with names and values, an edge from each to the next and a link. */
#define SIM_LOADED 3u
void sim_load_text(unsigned s, char type, char *ret_text, size_t room); /* 'P', 'E', 'L', 'U': P with id and v only */
bool sim_apply_insert(sim_state *state, unsigned s);
#define SIM_TOY_KEYS 4u
unsigned sim_toy_key(uint64_t salt, bool blind);
bool sim_apply_toy(sim_state *state, unsigned key);
bool sim_apply_upsert(sim_state *state, unsigned s);
void sim_apply_overwrite(sim_state *state, unsigned s);
/* Three ways; false: they conflict, or the result breaks a rule. */
bool sim_apply_merge(const sim_state *base, const sim_state *source, sim_state *target);
/* Rules that hold in every state; NULL, or what is broken. */
const char *sim_state_broken(const sim_state *state);
/* For messages. */
void sim_state_text(const sim_state *state, char *ret_text, size_t room);

uint64_t sim_mix(uint64_t x);

#endif
