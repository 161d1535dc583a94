/*
 * Making a failing history small: fewer processes' operations, faults and switches, as long as it still fails.
 */
#ifndef TESTS_SIM_MINIMISE_H
#define TESTS_SIM_MINIMISE_H

#include "plan.h"

typedef bool sim_fails_fn(void *context, const sim_plan *plan);
/* Changes the plan, which fails; runs `fails` at most `tries` times. Returns how often it did. */
uint32_t sim_minimise(sim_plan *plan, sim_fails_fn *fails, void *context, uint32_t tries);

#endif
