/*
 * Taking and releasing a write's complete set of gates (see locks/gates.h).
 *
 * The set is sorted into the total order (schema, branch, tables by id) before the first is taken, so two attempts
 * never wait for each other in a circle; what cannot be had in time gives everything back. For each gate the pool's
 * entry comes first, then the kernel's byte: the pool's queue decides who is next inside it, the kernel orders pools.
 * When a process dies, the kernel's locks fall with it and its pool's entries become orphaned; nothing here needs
 * repair.
 */
#include "locks/gates.h"
#include "platform/check.h"
#include "platform/tally.h"
#include <stdlib.h>
#include <string.h>

struct lk_gates {
    lk_lockfile *lockfile;
    const lk_gate_hooks *hooks; /* NULL: no region */
    uint32_t count;
    uint32_t held; /* keys[0 .. held-1] are ours */
    int64_t taken; /* all of them, by pf_tally_clock; 0: not yet */
    lk_gate_key keys[];
};

static uint64_t byte_of(const lk_gate_key *key)
{
    switch (key->kind) {
    case LK_GATE_SCHEMA:
        return LK_BYTE_SCHEMA;
    case LK_GATE_BRANCH:
        return LK_BYTE_BRANCH;
    case LK_GATE_TABLE:
        break;
    }
    return key->table;
}

static int compare_keys(const void *left, const void *right)
{
    const lk_gate_key *a = left;
    const lk_gate_key *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == LK_GATE_TABLE && a->table != b->table)
        return a->table < b->table ? -1 : 1;
    return 0;
}

static void sort_and_join(lk_gates *gates)
{
    uint32_t kept = 0;
    if (gates->count > 1)
        qsort(gates->keys, gates->count, sizeof gates->keys[0], compare_keys);
    for (uint32_t i = 0; i < gates->count; i++) {
        if (kept > 0 && compare_keys(&gates->keys[kept - 1], &gates->keys[i]) == 0)
            gates->keys[kept - 1].exclusive = gates->keys[kept - 1].exclusive || gates->keys[i].exclusive;
        else
            gates->keys[kept++] = gates->keys[i];
    }
    gates->count = kept;
}

/* Everything-off runs: the same answers must come without any gate. */
static bool gates_are_off(void)
{
#if SLUICE_FAILPOINTS
    const char *text = getenv("SLUICE_NO_GATES");
    return text && strcmp(text, "1") == 0;
#else
    return false;
#endif
}

static sluice_status take_one(lk_gates *gates, const lk_gate_key *key, const pf_id *operation, pf_deadline deadline,
                              bool *ret_orphaned, sluice_error *err)
{
    bool orphaned = false;
    pf_id orphan_operation;
    if (gates->hooks)
        PF_TRY(gates->hooks->enter(gates->hooks->context, key, operation, deadline, &orphaned, &orphan_operation, err));
    sluice_status status =
        lk_take(gates->lockfile, byte_of(key), key->exclusive ? PF_LOCK_EXCLUSIVE : PF_LOCK_SHARED, deadline, err);
    if (status != SLUICE_OK) {
        if (gates->hooks)
            gates->hooks->leave(gates->hooks->context, key);
        return status;
    }
    *ret_orphaned = *ret_orphaned || orphaned;
    return SLUICE_OK;
}

sluice_status lk_gates_take(lk_lockfile *lockfile, const lk_gate_hooks *hooks, const lk_gate_key *keys, uint32_t count,
                            const pf_id *operation, pf_deadline deadline, lk_gates **ret_gates, bool *ret_orphaned,
                            sluice_error *err)
{
    bool orphaned = false;
    lk_gates *gates = calloc(1, sizeof *gates + count * sizeof gates->keys[0]);
    if (!gates)
        return pf_fail_memory(err);
    gates->lockfile = lockfile;
    gates->hooks = hooks;
    if (count > 0 && !gates_are_off()) {
        memcpy(gates->keys, keys, count * sizeof keys[0]);
        gates->count = count;
        sort_and_join(gates);
    }
    int64_t clock = pf_tally_clock();
    for (; gates->held < gates->count; gates->held++) {
        PF_ASSERT(gates->keys[gates->held].incarnation == gates->keys[0].incarnation);
        sluice_status status = take_one(gates, &gates->keys[gates->held], operation, deadline, &orphaned, err);
        if (status != SLUICE_OK) {
            pf_tally_since(PF_SERIES_GATE_WAIT, clock);
            lk_gates_release(gates);
            return status;
        }
    }
    pf_tally_since(PF_SERIES_GATE_WAIT, clock);
    gates->taken = pf_tally_clock();
    *ret_orphaned = orphaned;
    *ret_gates = gates;
    return SLUICE_OK;
}

void lk_gates_settle(lk_gates *gates)
{
    for (uint32_t i = 0; gates->hooks && i < gates->held; i++)
        gates->hooks->settle(gates->hooks->context, &gates->keys[i]);
}

void lk_gates_release(lk_gates *gates)
{
    if (!gates)
        return;
    while (gates->held > 0) {
        const lk_gate_key *key = &gates->keys[--gates->held];
        lk_release(gates->lockfile, byte_of(key));
        if (gates->hooks)
            gates->hooks->leave(gates->hooks->context, key);
    }
    pf_tally_since(PF_SERIES_GATE_HOLD, gates->taken);
    free(gates);
}
