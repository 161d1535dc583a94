/*
 * The oracle: looks at the graph from outside, with a handle of its own and while nobody else moves, and compares what
 * it finds with the model.
 *
 * Each commit that becomes visible is the state of its parent with exactly its operation applied, and no operation has
 * two. What somebody was told is done stays, whatever strikes; what was said not to be committed never shows.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include "run.h"

/* At the beginning: what is there is taken as it is. */
void sim_oracle_begin(sim_run *run);
/* Looks at all branches: new commits, and, after a power loss, what is gone. */
void sim_oracle_look(sim_run *run);
/* An operation was answered. */
void sim_oracle_answer(sim_run *run, uint32_t op, sluice_status status, const sluice_error *err);
/* A reader has seen this at a commit. */
void sim_oracle_seen(sim_run *run, const st_view *view, const sim_state *state, const char *who);
/* When all have ended: recovery, twice; everything once more, by a fresh process; collection; a new write. */
void sim_oracle_end(sim_run *run);
void sim_oracle_close(sim_run *run);

#endif
