/*
 * A line in front of a byte of a lock file: who comes first has it first, across all processes of the machine, whether
 * they share a region or not.
 *
 * The line's tickets are bytes of the same file. Place 1 is next to the byte itself; a newcomer takes the place behind
 * the last one in line, and moves up by taking the place ahead before it lets go of its own. So nobody ever passes
 * anybody; who dies, or gives up, leaves a gap that the ones behind close; and nothing has to be repaired. Newcomers
 * come in one at a time: a byte, the door, is held for as long as it takes to find the end of the line,
 * and, where that is the last place while there are gaps ahead, until these have closed. (Who is stopped in line holds
 * up those behind it like a stopped holder of the byte would: up to their bound.)
 */
#ifndef LOCKS_LINE_H
#define LOCKS_LINE_H

#include "locks/oslock.h"

#define LK_LINE                    (UINT64_C(1) << 60) /* + byte * LK_LINE_STRIDE + place; 0: the door */
#define LK_LINE_STRIDE             1024u
#define LK_LINE_PLACES             64u /* that wait */
#define LK_LINE_PLACE(byte, place) (LK_LINE + (byte)*LK_LINE_STRIDE + (place))

/* Asked now and then while waiting; what it returns ends the wait. */
typedef sluice_status lk_line_check_fn(void *context, sluice_error *err);
/* Takes the byte alone, in turn; let go of by lk_release. QUEUE_FULL when so many wait already, LIVE_WRITER_CONTENTION
 * at the deadline, FENCED when the file was replaced. */
sluice_status lk_line_take(lk_lockfile *lockfile, uint64_t byte, pf_deadline deadline, lk_line_check_fn *check,
                           void *context, sluice_error *err);

#endif
