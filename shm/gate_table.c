/*
 * Entering, leaving and orphaning gates (see shm/gate_table.h). Waiting, and the hooks for locks/: gate_user.c.
 *
 * All of it is under the gates latch, in edits of a bounded number of words. An entry is free again when nobody holds
 * it or waits for it and it is not orphaned. Who waits is listed under the latch before it sleeps on the gate's
 * sequence word, so a gate at which nobody is listed wakes nobody; and who meets no one there enters without being
 * listed.
 */
#include "shm/gate_table.h"
#include "platform/check.h"
#include <string.h>

#define TURN_NS (SHM_TURN_MS * INT64_C(1000000))

static shm_holder *holder_of(const shm_region *region, uint32_t slot)
{
    return (shm_holder *)(void *)(region->holders + slot * region->holder_stride);
}

void shm_gates_init(shm_region *region)
{
    lk_latch_init(&region->gates->latch);
    region->gates->gate_count = region->config.gates;
    region->gates->holder_count = region->config.workers;
    region->gates->holds_per_worker = region->config.holds;
}

/* ---- check and repair ---- */

static uint64_t gate_of(uint64_t held)
{
    return held / 2;
}

static bool is_exclusive(uint64_t held)
{
    return held % 2 != 0;
}

static bool check_holder(const shm_region *region, uint32_t slot)
{
    const shm_holder *holder = holder_of(region, slot);
    const shm_gate *gates = region->gates->gates;
    if (holder->held_count > region->config.holds || holder->waits_for > region->config.gates ||
        holder->waits_exclusive > 1)
        return false;
    if (holder->waits_for != 0) {
        const shm_gate *gate = &gates[holder->waits_for - 1];
        if (gate->used == 0 || holder->wait_ticket == 0 || holder->wait_ticket > gate->next_ticket)
            return false;
    }
    for (uint64_t i = 0; i < holder->held_count; i++) {
        if (gate_of(holder->held[i]) >= region->config.gates || gates[gate_of(holder->held[i])].used == 0)
            return false;
        for (uint64_t j = 0; j < i; j++) {
            if (gate_of(holder->held[j]) == gate_of(holder->held[i]))
                return false;
        }
    }
    return true;
}

typedef struct crowd { /* who is at a gate */
    uint32_t shared, exclusive;
    uint32_t someone; /* a slot that holds it */
    uint32_t waiting;
    uint32_t front; /* the slot with the lowest ticket, when somebody waits */
} crowd;

static crowd look_at(const shm_region *region, uint64_t gate)
{
    crowd found = {0};
    for (uint32_t slot = 0; slot < region->config.workers; slot++) {
        const shm_holder *holder = holder_of(region, slot);
        for (uint64_t i = 0; i < holder->held_count; i++) {
            if (gate_of(holder->held[i]) != gate)
                continue;
            found.exclusive += is_exclusive(holder->held[i]);
            found.shared += !is_exclusive(holder->held[i]);
            found.someone = slot;
        }
        if (holder->waits_for != gate + 1)
            continue;
        if (found.waiting == 0 || holder->wait_ticket < holder_of(region, found.front)->wait_ticket)
            found.front = slot;
        found.waiting++;
    }
    return found;
}

static bool admits(const crowd *at, bool exclusive)
{
    return at->exclusive == 0 && (!exclusive || at->shared == 0);
}

static bool same_key(const shm_gate *gate, const lk_gate_key *key)
{
    return gate->kind == (uint64_t)key->kind && gate->incarnation == key->incarnation &&
           (key->kind != LK_GATE_TABLE || gate->table == key->table);
}

bool shm_gates_check(const shm_region *region)
{
    const shm_gates *table = region->gates;
    if (table->intent.phase != 0 || table->gate_count != region->config.gates ||
        table->holder_count != region->config.workers || table->holds_per_worker != region->config.holds)
        return false;
    for (uint32_t slot = 0; slot < region->config.workers; slot++) {
        if (!check_holder(region, slot))
            return false;
    }
    for (uint64_t i = 0; i < region->config.gates; i++) {
        const shm_gate *gate = &table->gates[i];
        crowd at = look_at(region, i);
        bool idle = at.shared + at.exclusive + at.waiting == 0 && gate->orphaned == 0;
        if (gate->used > 1 || gate->orphaned > 1 || (gate->used != 0) == idle || at.exclusive > 1 ||
            (at.exclusive == 1 && at.shared > 0))
            return false;
        lk_gate_key key = {(lk_gate_kind)gate->kind, gate->incarnation, gate->table, false};
        for (uint64_t j = 0; gate->used != 0 && j < i; j++) {
            if (table->gates[j].used != 0 && same_key(&table->gates[j], &key))
                return false;
        }
    }
    return true;
}

bool shm_gates_repair(void *context)
{
    shm_region *region = context;
    const shm_section_entry *last = &region->header->sections[SHM_HOLDERS];
    size_t length = (size_t)(last->offset + last->count * last->stride - region->header->sections[SHM_GATES].offset);
    if (shm_edit_undo(&region->gates->intent, region->gates, length) && shm_gates_check(region))
        return true;
    shm_region_poison(region);
    return false;
}

/* ---- changes, under the latch ---- */

static sluice_status latch(shm_region *region, sluice_error *err)
{
    return shm_latch_take(region, &region->gates->latch, LK_RANK_LATCH_GATES, shm_gates_repair, err);
}

/* A worker that was fenced and runs on changes nothing any more. */
static sluice_status latch_as(shm_region *region, const shm_token *token, sluice_error *err)
{
    PF_TRY(latch(region, err));
    if (shm_token_holds(region, token))
        return SLUICE_OK;
    lk_latch_release(&region->gates->latch, LK_RANK_LATCH_GATES);
    return pf_fail(err, SLUICE_FENCED, "this worker's token was taken back");
}

static void unlatch(shm_region *region)
{
    lk_latch_release(&region->gates->latch, LK_RANK_LATCH_GATES);
}

static void begin_edit(shm_region *region, shm_edit *edit, shm_operation operation)
{
    shm_edit_begin(edit, &region->gates->intent, region->gates, operation);
}

static uint64_t find_gate(const shm_region *region, const lk_gate_key *key)
{
    uint64_t i = 0;
    while (i < region->config.gates && !(region->gates->gates[i].used != 0 && same_key(&region->gates->gates[i], key)))
        i++;
    return i;
}

static uint64_t find_free(const shm_region *region)
{
    uint64_t i = 0;
    while (i < region->config.gates && region->gates->gates[i].used != 0)
        i++;
    return i;
}

static void set_operation(shm_edit *edit, shm_word words[2], const pf_id *operation)
{
    uint64_t halves[2];
    memcpy(halves, operation->bytes, sizeof halves);
    shm_set(edit, &words[0], halves[0]);
    shm_set(edit, &words[1], halves[1]);
}

static pf_id get_operation(const shm_word words[2])
{
    pf_id operation;
    uint64_t halves[2] = {words[0], words[1]};
    memcpy(operation.bytes, halves, sizeof halves);
    return operation;
}

static void open_gate(shm_edit *edit, shm_gate *gate, const lk_gate_key *key)
{
    shm_set(edit, &gate->kind, (uint64_t)key->kind);
    shm_set(edit, &gate->incarnation, key->incarnation);
    shm_set(edit, &gate->table, key->kind == LK_GATE_TABLE ? key->table : 0);
    shm_set(edit, &gate->next_ticket, 0);
    shm_set(edit, &gate->turn_ticket, 0);
    shm_set(edit, &gate->orphaned, 0);
    shm_set(edit, &gate->used, 1);
}

/* Inside an edit that took a holder or waiter away. Does anybody wait there? */
static bool free_if_idle(shm_region *region, shm_edit *edit, uint64_t index)
{
    shm_gate *gate = &region->gates->gates[index];
    crowd at = look_at(region, index);
    if (at.shared + at.exclusive + at.waiting == 0 && gate->orphaned == 0)
        shm_set(edit, &gate->used, 0);
    return at.waiting > 0;
}

static void list_as_waiter(shm_edit *edit, shm_gate *gate, uint64_t index, shm_holder *me, const lk_gate_key *key)
{
    shm_set(edit, &gate->next_ticket, gate->next_ticket + 1);
    shm_set(edit, &me->wait_ticket, gate->next_ticket);
    shm_set(edit, &me->waits_exclusive, key->exclusive);
    shm_set(edit, &me->waits_for, index + 1);
}

static void enter(shm_edit *edit, shm_gate *gate, uint64_t index, shm_holder *me, const lk_gate_key *key,
                  const pf_id *operation)
{
    set_operation(edit, me->operation, operation);
    shm_set(edit, &me->waits_for, 0);
    shm_set(edit, &me->held[me->held_count], index * 2 + key->exclusive);
    shm_set(edit, &me->held_count, me->held_count + 1);
    shm_set(edit, &gate->turn_ticket, 0);
}

/* The front could enter. Times its turn, and sends it to the end when it let it pass. */
static void time_the_turn(shm_region *region, uint64_t index, uint32_t front, int64_t now_ns)
{
    shm_gate *gate = &region->gates->gates[index];
    shm_holder *waiter = holder_of(region, front);
    shm_edit edit;
    begin_edit(region, &edit, SHM_OP_GATE_PASS);
    if (gate->turn_ticket != waiter->wait_ticket) {
        shm_set(&edit, &gate->turn_since_ns, (uint64_t)now_ns);
        shm_set(&edit, &gate->turn_ticket, waiter->wait_ticket);
    } else if (now_ns - (int64_t)gate->turn_since_ns > TURN_NS) {
        shm_set(&edit, &gate->next_ticket, gate->next_ticket + 1);
        shm_set(&edit, &waiter->wait_ticket, gate->next_ticket);
        shm_set(&edit, &gate->turn_ticket, 0);
    }
    shm_edit_commit(&edit);
}

/* Finds the gate, or a place for it (*ret_fresh), and whether this worker may stand there. */
static sluice_status find_place(shm_region *region, uint32_t slot, const lk_gate_key *key, uint64_t *ret_index,
                                bool *ret_fresh, sluice_error *err)
{
    const shm_holder *me = holder_of(region, slot);
    uint64_t index = find_gate(region, key);
    bool fresh = index == region->config.gates;
    if (fresh)
        index = find_free(region);
    *ret_index = index;
    *ret_fresh = fresh;
    if (!fresh && me->waits_for == index + 1)
        return SLUICE_OK;
    if (index == region->config.gates)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "the gate table is full: %u gates", region->config.gates);
    if (me->held_count == region->config.holds)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a write holds at most %u gates", region->config.holds);
    for (uint64_t i = 0; i < me->held_count; i++) {
        if (gate_of(me->held[i]) == index && !fresh)
            return pf_fail(err, SLUICE_INTERNAL, "a gate is entered once by one worker");
    }
    PF_ASSERT(me->waits_for == 0);
    return SLUICE_OK;
}

sluice_status shm_gate_try(shm_region *region, const shm_token *token, const lk_gate_key *key, const pf_id *operation,
                           int64_t now_ns, shm_gate_answer *ret_answer, sluice_error *err)
{
    uint64_t index;
    bool fresh = false, others = false;
    shm_edit edit;
    *ret_answer = (shm_gate_answer){0};
    PF_TRY(latch_as(region, token, err));
    sluice_status status = find_place(region, token->slot, key, &index, &fresh, err);
    if (status == SLUICE_OK) {
        shm_gate *gate = &region->gates->gates[index];
        shm_holder *me = holder_of(region, token->slot);
        crowd at = {0};
        if (!fresh)
            at = look_at(region, index);
        bool passes = at.waiting == 0 && admits(&at, key->exclusive);
        if (!passes && me->waits_for == 0) {
            begin_edit(region, &edit, SHM_OP_GATE_ENTER);
            list_as_waiter(&edit, gate, index, me, key);
            shm_edit_commit(&edit);
            at = look_at(region, index);
        }
        bool open_to_front = passes || admits(&at, holder_of(region, at.front)->waits_exclusive != 0);
        ret_answer->sequence = &gate->sequence;
        ret_answer->seen = shm_sequence(&gate->sequence);
        if (at.shared + at.exclusive > 0)
            ret_answer->holder_operation = get_operation(holder_of(region, at.someone)->operation);
        if (passes || (open_to_front && at.front == token->slot)) {
            begin_edit(region, &edit, SHM_OP_GATE_ENTER);
            if (fresh)
                open_gate(&edit, gate, key);
            enter(&edit, gate, index, me, key, operation);
            shm_edit_commit(&edit);
            others = at.waiting > 1;
            ret_answer->entered = true;
            ret_answer->orphaned = gate->orphaned != 0;
            ret_answer->orphan_operation = get_operation(gate->orphan_operation);
        } else if (open_to_front) {
            time_the_turn(region, index, at.front, now_ns);
        }
    }
    unlatch(region);
    if (others) /* the next in line may share it */
        shm_wake(&region->gates->gates[index].sequence);
    return status;
}

sluice_status shm_gate_give_up(shm_region *region, const shm_token *token, sluice_error *err)
{
    shm_edit edit;
    PF_TRY(latch_as(region, token, err));
    shm_holder *me = holder_of(region, token->slot);
    uint64_t waited_for = me->waits_for;
    bool others = false;
    if (waited_for != 0) {
        begin_edit(region, &edit, SHM_OP_GATE_LEAVE);
        shm_set(&edit, &me->waits_for, 0);
        others = free_if_idle(region, &edit, waited_for - 1);
        shm_edit_commit(&edit);
    }
    unlatch(region);
    if (others)
        shm_wake(&region->gates->gates[waited_for - 1].sequence);
    return SLUICE_OK;
}

/* Where this worker lists the gate of this key; held_count when it does not hold it. */
static uint64_t find_hold(const shm_region *region, const shm_holder *me, const lk_gate_key *key)
{
    uint64_t index = find_gate(region, key);
    uint64_t i = 0;
    while (i < me->held_count && gate_of(me->held[i]) != index)
        i++;
    return i;
}

sluice_status shm_gate_settle(shm_region *region, const shm_token *token, const lk_gate_key *key, sluice_error *err)
{
    shm_edit edit;
    PF_TRY(latch_as(region, token, err));
    shm_holder *me = holder_of(region, token->slot);
    uint64_t hold = find_hold(region, me, key);
    PF_ALWAYS(hold < me->held_count);
    begin_edit(region, &edit, SHM_OP_GATE_SETTLE);
    shm_set(&edit, &region->gates->gates[gate_of(me->held[hold])].orphaned, 0);
    shm_edit_commit(&edit);
    unlatch(region);
    return SLUICE_OK;
}

sluice_status shm_gate_leave(shm_region *region, const shm_token *token, const lk_gate_key *key, sluice_error *err)
{
    shm_edit edit;
    PF_TRY(latch_as(region, token, err));
    shm_holder *me = holder_of(region, token->slot);
    uint64_t hold = find_hold(region, me, key);
    PF_ALWAYS(hold < me->held_count);
    uint64_t index = gate_of(me->held[hold]);
    begin_edit(region, &edit, SHM_OP_GATE_LEAVE);
    shm_set(&edit, &me->held[hold], me->held[me->held_count - 1]);
    shm_set(&edit, &me->held_count, me->held_count - 1);
    bool others = free_if_idle(region, &edit, index);
    shm_edit_commit(&edit);
    unlatch(region);
    if (others)
        shm_wake(&region->gates->gates[index].sequence);
    return SLUICE_OK;
}

/* ---- the supervisor ---- */

static void orphan_one(shm_region *region, shm_holder *dead)
{
    shm_edit edit;
    uint64_t held = dead->held[dead->held_count - 1];
    shm_gate *gate = &region->gates->gates[gate_of(held)];
    pf_id operation = get_operation(dead->operation);
    begin_edit(region, &edit, SHM_OP_DEATH);
    set_operation(&edit, gate->orphan_operation, &operation);
    shm_set(&edit, &gate->orphaned, 1);
    shm_set(&edit, &dead->held_count, dead->held_count - 1);
    shm_edit_commit(&edit);
}

/* One edit a gate: each is a whole step, and whoever is cut off in between goes on with what is still listed. */
sluice_status shm_gates_bury(shm_region *region, uint32_t slot, sluice_error *err)
{
    shm_edit edit;
    PF_TRY(latch(region, err));
    shm_holder *dead = holder_of(region, slot);
    while (dead->held_count > 0)
        orphan_one(region, dead);
    if (dead->waits_for != 0) {
        begin_edit(region, &edit, SHM_OP_DEATH);
        uint64_t index = dead->waits_for - 1;
        shm_set(&edit, &dead->waits_for, 0);
        (void)free_if_idle(region, &edit, index); /* the caller wakes everybody */
        shm_edit_commit(&edit);
    }
    unlatch(region);
    return SLUICE_OK;
}
