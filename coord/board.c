/*
 * Announcing and looking (coord/board.h).
 */
#include "coord/board.h"
#include "coord/bytes.h"
#include "platform/ids.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define QUARANTINE CO_SLOTS /* its place behind the slots' */

typedef struct board { /* what this handle knows */
    uint64_t numbers[CO_SLOTS];
    bool free[CO_SLOTS]; /* found so while the number stood */
    uint64_t quarantine, quarantine_seen;
    bool quarantine_empty;
} board;

static_assert(CO_BOARD_AT + 8 * (CO_SLOTS + 1) <= CO_SLOT_BYTES, "the board lies in the first slot");

static sluice_status put(pf_file *intents, uint32_t at, uint64_t number, sluice_error *err)
{
    uint8_t bytes[8];
    co_put_u64(bytes, number);
    return pf_write(intents, CO_BOARD_AT + (uint64_t)8 * at, bytes, sizeof bytes, err);
}

sluice_status co_board_announce(pf_file *intents, uint32_t number, uint64_t sequence, sluice_error *err)
{
    return put(intents, number, sequence, err);
}

sluice_status co_board_announce_quarantine(pf_file *intents, sluice_error *err)
{
    pf_id id = pf_id_new();
    return put(intents, QUARANTINE, co_get_u64(id.bytes + 8), err); /* another number than any before */
}

static sluice_status known(st_graph *graph, board **ret_board, sluice_error *err)
{
    st_kept *kept = st_graph_kept(graph, ST_KEPT_BOARD);
    if (!kept->data) {
        kept->data = calloc(1, sizeof(board));
        kept->release = free;
    }
    *ret_board = kept->data;
    return kept->data ? SLUICE_OK : pf_fail_memory(err);
}

sluice_status co_board_look(st_graph *graph, pf_file *intents, bool ret_used[CO_SLOTS], sluice_error *err)
{
    uint8_t bytes[8 * CO_SLOTS];
    board *mine = NULL;
    PF_TRY(known(graph, &mine, err));
    PF_TRY(pf_read_exact(intents, CO_BOARD_AT, bytes, sizeof bytes, err));
    for (uint32_t i = 0; i < CO_SLOTS; i++) {
        uint64_t number = co_get_u64(bytes + (size_t)8 * i), sequence = 0;
        ret_used[i] = false;
        if (mine->free[i] && mine->numbers[i] == number)
            continue;
        mine->free[i] = false;
        PF_TRY(co_slot_may_be_used(intents, i, &ret_used[i], &sequence, err));
        mine->free[i] = !ret_used[i] && sequence >= number;
        mine->numbers[i] = number;
    }
    return SLUICE_OK;
}

sluice_status co_board_look_quarantine(st_graph *graph, pf_file *intents, bool *ret_empty, sluice_error *err)
{
    uint8_t bytes[8];
    board *mine = NULL;
    PF_TRY(known(graph, &mine, err));
    PF_TRY(pf_read_exact(intents, CO_BOARD_AT + (uint64_t)8 * QUARANTINE, bytes, sizeof bytes, err));
    mine->quarantine_seen = co_get_u64(bytes);
    *ret_empty = mine->quarantine_empty && mine->quarantine == mine->quarantine_seen;
    return SLUICE_OK;
}

void co_board_quarantine_is_empty(st_graph *graph)
{
    board *mine = st_graph_kept(graph, ST_KEPT_BOARD)->data;
    mine->quarantine = mine->quarantine_seen;
    mine->quarantine_empty = true;
}
