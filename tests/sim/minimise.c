/*
 * Making a failing history small (minimise.h): parts are left out, first many at once, then fewer, then one by one;
 * what still fails is kept. Again until nothing can be left out.
 */
#include "minimise.h"

#include <string.h>

typedef enum part { OPS, FAULTS, SWITCHES, PARTS } part;

static uint32_t count_of(const sim_plan *plan, part which)
{
    return which == OPS ? plan->op_count : which == FAULTS ? plan->fault_count : plan->turns.count;
}

/* Without [from, from + length). */
static void leave_out(sim_plan *plan, part which, uint32_t from, uint32_t length)
{
    uint32_t rest = count_of(plan, which) - from - length;
    if (which == OPS) {
        memmove(&plan->ops[from], &plan->ops[from + length], rest * sizeof *plan->ops);
        plan->op_count -= length;
    } else if (which == FAULTS) {
        memmove(&plan->faults[from], &plan->faults[from + length], rest * sizeof *plan->faults);
        plan->fault_count -= length;
    } else {
        memmove(&plan->switches[from], &plan->switches[from + length], rest * sizeof *plan->switches);
        plan->turns.count -= length;
    }
}

uint32_t sim_minimise(sim_plan *plan, sim_fails_fn *fails, void *context, uint32_t tries)
{
    uint32_t made = 0;
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (part which = OPS; which < PARTS; which++) {
            for (uint32_t length = count_of(plan, which); length > 0; length /= 2) {
                for (uint32_t from = 0; from + length <= count_of(plan, which) && made < tries;) {
                    sim_plan less;
                    sim_plan_copy(plan, &less);
                    leave_out(&less, which, from, length);
                    made++;
                    if (fails(context, &less)) {
                        sim_plan_free(plan);
                        *plan = less;
                        smaller = true;
                    } else {
                        sim_plan_free(&less);
                        from += length;
                    }
                }
            }
        }
    }
    return made;
}
