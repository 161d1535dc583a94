#include "worker/ingest/group.h"

#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define FEW  8u /* members that are compared one by one */
#define NONE UINT32_MAX

void wk_group_free(wk_group *group)
{
    wk_places_free(&group->members);
    free(group->plans);
    free(group->counts);
    free(group->table);
    free(group->strong);
    pf_buffer_free(&group->scratch);
    memset(group, 0, sizeof *group);
}

void wk_group_clear(wk_group *group, bool exact)
{
    if (group->table_size && group->members.count > FEW)
        memset(group->table, 0xff, group->table_size * sizeof *group->table);
    group->members.count = 0;
    group->exact = exact;
}

/* A hash that nobody outside this process can predict: seeded anew for each group. */
static sluice_status strong_hash(wk_group *group, const wk_key *key, uint64_t *ret_hash, sluice_error *err)
{
    if (group->seed == 0)
        group->seed = pf_random_u64() | 1;
    group->scratch.length = 0;
    PF_TRY(pf_buffer_append(&group->scratch, &group->seed, sizeof group->seed, err));
    for (uint32_t i = 0; i < key->count; i++) /* one by one: the limit of a key is of each of its parts */
        PF_TRY(st_key_encode(&key->columns[i], 1, key->row, &group->scratch, err));
    *ret_hash = pf_xxh64_of(group->scratch.data, group->scratch.length);
    return SLUICE_OK;
}

static sluice_status member_key(const wk_group *group, uint32_t member, wk_key *ret_key, sluice_error *err)
{
    const wk_place *place = &group->members.items[member];
    return wk_side_key(place->side, group->plans[member], place->fragment, place->position, ret_key, err);
}

static sluice_status is_equal(const wk_group *group, uint32_t member, const wk_key *key, bool *ret_equal,
                              sluice_error *err)
{
    wk_key other;

    PF_TRY(member_key(group, member, &other, err));
    *ret_equal =
        other.count == key->count && st_key_equal(other.columns, other.row, key->columns, key->row, key->count);
    return SLUICE_OK;
}

sluice_status wk_group_find(wk_group *group, const wk_place *place, const wk_run_plan *plan, uint32_t *ret_member,
                            sluice_error *err)
{
    wk_key key;
    bool equal = false;
    uint64_t hash = 0;

    *ret_member = NONE;
    if (group->exact || group->members.count == 0) {
        *ret_member = group->members.count ? 0 : NONE;
        return SLUICE_OK;
    }
    PF_TRY(wk_side_key(place->side, plan, place->fragment, place->position, &key, err));
    if (group->members.count <= FEW) {
        for (uint32_t i = 0; i < group->members.count && !equal; i++) {
            PF_TRY(is_equal(group, i, &key, &equal, err));
            if (equal)
                *ret_member = i;
        }
        return SLUICE_OK;
    }
    PF_TRY(strong_hash(group, &key, &hash, err));
    for (uint32_t at = (uint32_t)hash & (group->table_size - 1); group->table[at] != NONE;
         at = (at + 1) & (group->table_size - 1)) {
        uint32_t member = group->table[at];
        if (group->strong[member] != hash)
            continue;
        PF_TRY(is_equal(group, member, &key, &equal, err));
        if (equal) {
            *ret_member = member;
            return SLUICE_OK;
        }
    }
    return SLUICE_OK;
}

static void put(wk_group *group, uint32_t member)
{
    uint32_t at = (uint32_t)group->strong[member] & (group->table_size - 1);

    while (group->table[at] != NONE)
        at = (at + 1) & (group->table_size - 1);
    group->table[at] = member;
}

/* At most half full. */
static sluice_status grow_table(wk_group *group, sluice_error *err)
{
    uint32_t size = group->table_size ? group->table_size : 64;

    while (size < group->members.count * 2)
        size *= 2;
    uint32_t *table = realloc(group->table, size * sizeof *table);
    if (table == NULL)
        return pf_fail_memory(err);
    group->table = table;
    group->table_size = size;
    memset(table, 0xff, size * sizeof *table);
    for (uint32_t i = 0; i < group->members.count; i++)
        put(group, i);
    return SLUICE_OK;
}

static sluice_status index_members(wk_group *group, sluice_error *err)
{
    uint32_t count = group->members.count, first = count == FEW + 1 ? 0 : count - 1;

    for (uint32_t i = first; i < count; i++) {
        wk_key key;
        PF_TRY(member_key(group, i, &key, err));
        PF_TRY(strong_hash(group, &key, &group->strong[i], err));
    }
    if (count * 2 > group->table_size)
        return grow_table(group, err);
    for (uint32_t i = first; i < count; i++)
        put(group, i);
    return SLUICE_OK;
}

static sluice_status make_room(wk_group *group, sluice_error *err)
{
    if (group->members.count < group->room)
        return SLUICE_OK;
    uint32_t room = group->room ? group->room * 2 : 16;
    const wk_run_plan **plans = realloc(group->plans, room * sizeof(const wk_run_plan *));
    if (plans == NULL)
        return pf_fail_memory(err);
    group->plans = plans;
    uint64_t *counts = realloc(group->counts, room * sizeof *counts);
    if (counts == NULL)
        return pf_fail_memory(err);
    group->counts = counts;
    uint64_t *strong = realloc(group->strong, room * sizeof *strong);
    if (strong == NULL)
        return pf_fail_memory(err);
    group->strong = strong;
    group->room = room;
    return SLUICE_OK;
}

sluice_status wk_group_add(wk_group *group, const wk_place *place, const wk_run_plan *plan, sluice_error *err)
{
    PF_TRY(make_room(group, err));
    PF_TRY(wk_places_add(&group->members, place, err));
    group->plans[group->members.count - 1] = plan;
    group->counts[group->members.count - 1] = 0;
    return group->members.count > FEW ? index_members(group, err) : SLUICE_OK;
}
