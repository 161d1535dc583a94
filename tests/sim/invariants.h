/*
 * The nine invariants of the write protocol (docs/protocol.md), each a check with its number in its message:
 *
 *   1  recovery before the base       no writer pins a base while an intent of an owner that died before its barrier,
 *                                     and overlaps, is unresolved
 *   2  no effect before its intent    no file of a toy moves, no ref of a load is made, before the frame is synced; an
 *                                     effect stands if and only if its commit does
 *   3  the read set, completely       a commit makes sense on the state of its parent, by the model (oracle.c)
 *   4  recompute, do not patch        between a pin and the gates, the lock or the arming lies a plan
 *   5  one point of visibility        a commit is its parent's state with exactly its operation applied (oracle.c)
 *   6  adapters own the truth         whatever recovery found is of a registered kind, nothing is quarantined, and what
 *                                     it decided is what stands
 *   7  arbitration, not queues        no two commits of a branch have one parent
 *   8  recovery is synchronous        no writer comes to its append past an unresolved intent that overlaps, whose
 * owner died before its gates; whoever resolves one has it in the audit; nobody touches that of a living owner; a
 * follow-up is done 9  derived work follows           optimize and index change no answer (oracle.c)
 */
#ifndef TESTS_SIM_INVARIANTS_H
#define TESTS_SIM_INVARIANTS_H

#include "run.h"

/* An actor passes a window, or is about to change something. */
void sim_invariants_at_point(sim_run *run, sim_actor_state *actor, pf_failpoint point);
void sim_invariants_at_call(sim_run *run, const sim_actor_state *actor, const char *path);
/* The process that had an operation in hand is dead. */
void sim_invariants_died(sim_run *run, const sim_actor_state *actor, uint32_t op);
/* After the last recovery. */
sluice_status sim_invariants_end(sim_run *run, sluice_error *err);

/* ops_toy.c */
static inline bool sim_op_is_toy(sim_kind kind)
{
    return kind == SIM_OP_TOY || kind == SIM_OP_WIDE;
}
/* The files that toys move are made. */
void sim_toy_begin(sim_run *run, pf_volume *volume);
void sim_toy_path(uint32_t op, bool done, char ret_path[64]);

#endif
