/*
 * Looking at the gates without their latch, for people (see shm/gate_table.h): each word is whole, what stands between
 * two of them may have moved. Nothing read here is believed beyond the table's own bounds.
 */
#include "shm/gate_table.h"

uint32_t shm_gates_look(const shm_region *region, shm_gate_look *looks, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < region->config.gates && count < most; at++) {
        const shm_gate *gate = &region->gates->gates[at];
        shm_gate_look look = {.kind = (lk_gate_kind)gate->kind,
                              .incarnation = gate->incarnation,
                              .table = gate->table,
                              .orphaned = gate->orphaned != 0};
        if (gate->used == 0 || gate->kind > LK_GATE_TABLE)
            continue;
        for (uint32_t slot = 0; slot < region->config.workers; slot++) {
            const shm_holder *holder =
                (const shm_holder *)(const void *)(region->holders + slot * region->holder_stride);
            uint64_t held = holder->held_count < region->config.holds ? holder->held_count : region->config.holds;
            look.waiters += holder->waits_for == (uint64_t)at + 1;
            for (uint64_t i = 0; i < held; i++) {
                look.holders += holder->held[i] / 2 == at;
                look.exclusive |= holder->held[i] == (uint64_t)at * 2 + 1;
            }
        }
        looks[count++] = look;
    }
    return count;
}
