/*
 * The board: one small read that says which intent slots somebody may have armed since this handle last looked, so that
 * a commit does not read the heads of all of them twice.
 *
 * It lies in GRAPH/intents behind the frames of slot 0: a u64 (little-endian) per slot, the sequence of the frame that
 * its owner was about to arm it with, and behind them one more for quarantine/. Who arms writes his slot's number,
 * which he alone may, before the frame; who puts an intent aside changes quarantine's, after the copy has its name and
 * before the slot is freed. Nothing is synced for it, and it decides nothing by itself: a handle that has found a slot
 * free, with a whole frame at least as new as the number that it had read before, passes the slot over while that
 * number stands. Everything else is looked at.
 *
 * Why that is enough: an intent that a writer must see was announced by another number before its frame was written,
 * and numbers of a slot only grow. Between the announcement and the frame the slot is free with an older frame, and is
 * looked at every time. After a loss of power, the one event that can take a number back, nobody is left who remembers
 * one: a new handle looks at every slot first. What a number then says that was never armed makes looks, not omissions.
 */
#ifndef COORD_BOARD_H
#define COORD_BOARD_H

#include "coord/intent.h"

/* Before a frame that arms, on the slot's own descriptor. */
sluice_status co_board_announce(pf_file *intents, uint32_t number, uint64_t sequence, sluice_error *err);
/* After a copy in quarantine/ has its name. */
sluice_status co_board_announce_quarantine(pf_file *intents, sluice_error *err);
/* Per slot: false when it is surely free. */
sluice_status co_board_look(st_graph *graph, pf_file *intents, bool ret_used[CO_SLOTS], sluice_error *err);
/* After the slots: *ret_empty when there is surely nothing in quarantine/. When not, the caller lists it, and says with
 * co_board_quarantine_is_empty that nothing was there. */
sluice_status co_board_look_quarantine(st_graph *graph, pf_file *intents, bool *ret_empty, sluice_error *err);
void co_board_quarantine_is_empty(st_graph *graph);

#endif
