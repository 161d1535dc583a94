/*
 * Checks that every test of deaths makes after recovery: exactly the old or the new rows, recovery changes nothing a
 * second time, nothing is left behind, the next write works.
 */
#ifndef TESTS_COORD_DIE_H
#define TESTS_COORD_DIE_H

#include "toy.h"

typedef struct die_found { /* what a look from outside finds before recovery */
    bool confirmed;        /* a confirmed intent of a dead owner */
    pf_id commit;
} die_found;
/* Looks at the slots. */
die_found die_look(pf_sim_disk *disk);
/* Recovers with a fresh process. */
void die_recover(pf_sim_disk *disk);
/* Recovery again changes no byte. */
void die_expect_settled(pf_sim_disk *disk);
/* No object that nothing names, no attempt, nothing in trash/, no slot in use, after one collection. */
void die_expect_no_litter(pf_sim_disk *disk);
/* verify finds nothing. */
void die_expect_whole(pf_sim_disk *disk);
/* All that a survivor checks: `before` rows of A stay; `more` are there or not. Returns whether they are. */
bool die_expect_old_or_new(pf_sim_disk *disk, const int64_t *before, uint32_t before_count, const int64_t *more,
                           uint32_t more_count);
/* A new write of one more key of A succeeds. */
void die_expect_next_write(pf_sim_disk *disk, int64_t key);

#endif
