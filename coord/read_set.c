/*
 * The arbitration of read sets: one rule per kind of read says which conflict spaces it meets (OW-029).
 *
 * A conflict is: something that I read meets something that they wrote. There is no filter that can err and no
 * direction: the order of arrival does not matter. What is missing or unreadable counts as "wrote everything" (K-02).
 * Nothing here takes a lock or writes.
 */
#include "coord/read_set.h"
#include "coord/read_join.h"
#include "platform/check.h"
#include "platform/sabotage.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SPACE(name) (1u << ST_SPACE_##name)

typedef struct conflict_rule {
    co_read_kind kind;
    const char *name;
    unsigned spaces; /* of theirs that it meets, beside WHOLE_TABLE, which everything meets */
    bool by_unique;  /* only the same unique tuple */
    bool by_node;    /* `theirs` names the node table, mine an edge table: compare the runs' table instead */
    bool any_whole;  /* met by a whole-table change of any table: an edge table replaced may touch any node */
    bool ends;       /* a change ends the write; no restart makes up for it */
} conflict_rule;

static const conflict_rule rules[] = {
    {CO_READ_KEY_ABSENT, "key-absent", SPACE(KEY_INSERTED), false, false, false, false},
    {CO_READ_KEY_PRESENT, "key-present", SPACE(KEY_DELETED), false, false, false, false},
    {CO_READ_UNIQUE_ABSENT, "unique-absent", SPACE(UNIQUE_SET), true, false, false, false},
    {CO_READ_UNIQUE_PRESENT, "unique-present", SPACE(UNIQUE_FREED), true, false, false, false},
    {CO_READ_EDGES_EMPTY, "edges-empty", SPACE(ENDPOINT_USED), false, false, true, false},
    {CO_READ_COUNT, "count", SPACE(ENDPOINT_USED), false, true, false, false},
    {CO_READ_ROW, "row", SPACE(KEY_INSERTED) | SPACE(KEY_DELETED) | SPACE(ROW_UPDATED), false, false, false, false},
    {CO_READ_OBJECT, "object", SPACE(KEY_INSERTED) | SPACE(KEY_DELETED) | SPACE(ROW_UPDATED), false, false, false,
     true},
    {CO_READ_PROPERTY, "property", SPACE(KEY_DELETED) | SPACE(ROW_UPDATED), false, false, false, true},
    {CO_READ_FRAGMENTS, "fragments", 0, false, false, false, false},
    {CO_READ_WHOLE_TABLE, "whole-table", ~0u, false, false, false, false},
};
static_assert(sizeof rules / sizeof rules[0] == CO_READ_KIND_COUNT, "each kind of read has its rule");
static_assert(ST_SPACE_COUNT <= 32, "conflict spaces fit a mask");

const char *co_read_kind_name(co_read_kind kind)
{
    PF_ASSERT(kind < CO_READ_KIND_COUNT && rules[kind].kind == kind);
    return rules[kind].name;
}

void co_read_set_free(co_read_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        free(set->reads[i].set.hashes);
        free(set->reads[i].set.runs);
    }
    free(set->reads);
    set->reads = NULL;
    set->count = 0;
}

sluice_status co_read_set_add(co_read_set *set, const co_read *read, sluice_error *err)
{
    PF_ASSERT(read->kind < CO_READ_KIND_COUNT && read->set.table != 0);
    if (PF_SABOTAGE(absent_key_not_in_read_set) && read->kind == CO_READ_KEY_ABSENT)
        return SLUICE_OK;
    /* Room for 1, 2, 4, 8, ...: the array is full exactly when its count is zero or a power of two. */
    if ((set->count & (set->count - 1)) == 0) {
        size_t room = set->count ? (size_t)set->count * 2 : 1;
        co_read *grown = realloc(set->reads, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        set->reads = grown;
    }
    set->reads[set->count++] = *read;
    return SLUICE_OK;
}

bool co_read_kind_ends(co_read_kind kind)
{
    return rules[kind].ends;
}

sluice_status co_read_set_take_ends(co_read_set *set, co_read_set *ret_ends, sluice_error *err)
{
    *ret_ends = (co_read_set){.incarnation = set->incarnation, .schema_identity = set->schema_identity};
    for (uint32_t i = 0; i < set->count; i++) {
        if (!co_read_kind_ends(set->reads[i].kind))
            continue;
        PF_TRY(co_read_set_add(ret_ends, &set->reads[i], err));
        set->reads[i].set = (st_change){.table = set->reads[i].set.table};
    }
    return SLUICE_OK;
}

bool co_read_set_has(const co_read_set *set, co_read_kind kind, uint64_t table)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->reads[i].kind == kind && set->reads[i].set.table == table)
            return true;
    return false;
}

bool co_read_set_has_whole(const co_read_set *set, uint64_t table)
{
    return co_read_set_has(set, CO_READ_WHOLE_TABLE, table);
}

static int by_hash(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Brings a substitution a fragment in again under its name? */
static bool comes_again(const st_edit *edit, const char *fragment)
{
    for (uint32_t i = 0; i < edit->add_count; i++)
        if (strcmp(edit->adds[i].fragment.name, fragment) == 0)
            return true;
    return false;
}

bool co_read_set_misses(const co_read_set *set, const st_edit *edit)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const st_change *mine = &set->reads[i].set;
        if (set->reads[i].kind != CO_READ_FRAGMENTS || mine->table != edit->table)
            continue;
        if (edit->replace)
            return true;
        for (uint32_t o = 0; o < edit->out_count; o++) {
            const char *name = edit->out[o].fragment;
            uint64_t hash = pf_xxh64_of(name, strlen(name));
            bool relied = mine->whole || bsearch(&hash, mine->hashes, mine->hash_count, sizeof hash, by_hash);
            if (relied && !comes_again(edit, name))
                return true;
        }
    }
    return false;
}

/* Could this change set hold something that this read would meet? Decided on tables and spaces alone. */
static bool is_related(const conflict_rule *rule, const st_change *mine, const st_change *theirs)
{
    if (!(rule->spaces & (1u << theirs->space)))
        return false;
    if (rule->by_unique && mine->unique != theirs->unique)
        return false;
    if (mine->property && theirs->property && mine->property != theirs->property)
        return false;
    return rule->by_node || mine->table == theirs->table;
}

static sluice_status meets(st_graph *graph, const co_read_set *set, const co_read *read, const st_change *theirs,
                           bool *ret_meets, sluice_error *err)
{
    const conflict_rule *rule = &rules[read->kind];
    const st_change *mine = &read->set;
    *ret_meets = false;
    if (theirs->table == 0 ||
        (theirs->space == ST_SPACE_WHOLE_TABLE && (rule->any_whole || theirs->table == mine->table))) {
        *ret_meets = true;
        return SLUICE_OK;
    }
    if (!is_related(rule, mine, theirs))
        return SLUICE_OK;
    if (read->kind == CO_READ_WHOLE_TABLE || mine->whole || theirs->whole) {
        *ret_meets = true;
        return SLUICE_OK;
    }
    co_join_rule join = {.runs_of = rule->by_node ? mine->table : 0, .same_direction = rule->by_node};
    return co_join(graph, &set->schema_identity, mine, theirs, join, ret_meets, err);
}

sluice_status co_read_set_meets(st_graph *graph, const co_read_set *set, const st_changes *changes, bool *ret_meets,
                                co_read_kind *ret_kind, uint64_t *ret_table, sluice_error *err)
{
    *ret_meets = false;
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t k = 0; k < changes->count; k++) {
            PF_TRY(meets(graph, set, &set->reads[i], &changes->items[k], ret_meets, err));
            if (*ret_meets) {
                *ret_kind = set->reads[i].kind;
                *ret_table = set->reads[i].set.table;
                return SLUICE_OK;
            }
        }
    }
    return SLUICE_OK;
}
