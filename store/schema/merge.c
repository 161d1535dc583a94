/*
 * The merge of schemas (merge.h): both sides are copied, the target's copy takes what the source changed, part by part,
 * and what is left of either is freed. Keys and unique tuples are carried by the ids of their properties until all
 * properties stand.
 */
#include "store/schema/merge.h"
#include "platform/check.h"
#include "store/schema/constant.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ids { /* of properties, in order */
    uint64_t *items;
    uint32_t count;
} ids;

typedef struct merged_type {
    st_type_def def;
    uint64_t ends[2]; /* table ids */
    ids key;
    ids *uniques; /* in step with def.uniques */
} merged_type;

typedef struct merging {
    const st_schema_sides *sides;
    st_schema_clash_fn *clash;
    void *context;
    bool clashed;
    st_schema *ours, *theirs; /* copies; what was taken from them is zeroed */
    merged_type *types;
    uint32_t count;
    sluice_error *err;
} merging;

typedef enum choice { OURS, THEIRS, CLASH } choice;

static choice choose(bool same, bool ours_as_base, bool theirs_as_base)
{
    if (same)
        return OURS;
    if (ours_as_base == theirs_as_base)
        return CLASH;
    return ours_as_base ? THEIRS : OURS;
}

static sluice_status clash(merging *m, const char *type, const char *property, const char *text)
{
    m->clashed = true;
    return m->clash(m->context, type, property, text, m->err);
}

static sluice_status both_changed(merging *m, const char *type, const char *property, const char *what)
{
    char text[96];
    (void)snprintf(text, sizeof text, "both branches changed its %s", what);
    return clash(m, type, property, text);
}

/* ---- parts of a property ---- */

typedef enum part {
    PART_NAME,
    PART_TYPE,
    PART_NULL,
    PART_DEFAULT,
    PART_MINIMUM,
    PART_MAXIMUM,
    PART_MIN_LENGTH,
    PART_MAX_LENGTH,
    PART_PATTERN,
    PART_ENUMERATION,
    PARTS
} part;
static const char *const part_names[PARTS] = {"name",        "type",           "right to be null", "default",
                                              "least value", "greatest value", "least length",     "greatest length",
                                              "pattern",     "enumeration"};

/* Also between an integer or float and the same one made wide. */
static bool same_constant(const st_value *a, const st_value *b)
{
    if (!a->present || !b->present)
        return a->present == b->present;
    if (a->is_null || b->is_null)
        return a->is_null == b->is_null;
    st_value wide = *a;
    if (st_type_widens(a->type, b->type) || st_type_widens(b->type, a->type))
        wide.type = b->type;
    return wide.type == b->type && st_constant_compare(&wide, b) == 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_enumeration(const st_property *a, const st_property *b)
{
    bool same = a->enumeration_count == b->enumeration_count;
    for (uint32_t i = 0; same && i < a->enumeration_count; i++)
        same = same_constant(&a->enumeration[i], &b->enumeration[i]);
    return same;
}

static bool same_part(part which, const st_property *a, const st_property *b)
{
    switch (which) {
    case PART_NAME:
        return strcmp(a->name, b->name) == 0;
    case PART_TYPE:
        return a->type == b->type;
    case PART_NULL:
        return a->nullable == b->nullable;
    case PART_DEFAULT:
        return same_constant(&a->default_value, &b->default_value);
    case PART_MINIMUM:
        return same_constant(&a->minimum, &b->minimum);
    case PART_MAXIMUM:
        return same_constant(&a->maximum, &b->maximum);
    case PART_MIN_LENGTH:
        return a->has_min_length == b->has_min_length && a->min_length == b->min_length;
    case PART_MAX_LENGTH:
        return a->has_max_length == b->has_max_length && a->max_length == b->max_length;
    case PART_PATTERN:
        return same_text(a->pattern, b->pattern);
    case PART_ENUMERATION:
        return same_enumeration(a, b);
    case PARTS:
        break;
    }
    return true;
}

#define SWAP(type, a, b)                                                                                               \
    do {                                                                                                               \
        type swapped = (a);                                                                                            \
        (a) = (b);                                                                                                     \
        (b) = swapped;                                                                                                 \
    } while (0)

static void swap_part(part which, st_property *a, st_property *b)
{
    switch (which) {
    case PART_NAME:
        SWAP(char *, a->name, b->name);
        break;
    case PART_TYPE:
        SWAP(st_type, a->type, b->type);
        break;
    case PART_NULL:
        SWAP(bool, a->nullable, b->nullable);
        break;
    case PART_DEFAULT:
        SWAP(st_value, a->default_value, b->default_value);
        break;
    case PART_MINIMUM:
        SWAP(st_value, a->minimum, b->minimum);
        break;
    case PART_MAXIMUM:
        SWAP(st_value, a->maximum, b->maximum);
        break;
    case PART_MIN_LENGTH:
        SWAP(bool, a->has_min_length, b->has_min_length);
        SWAP(uint64_t, a->min_length, b->min_length);
        break;
    case PART_MAX_LENGTH:
        SWAP(bool, a->has_max_length, b->has_max_length);
        SWAP(uint64_t, a->max_length, b->max_length);
        break;
    case PART_PATTERN:
        SWAP(char *, a->pattern, b->pattern);
        break;
    case PART_ENUMERATION:
        SWAP(st_value *, a->enumeration, b->enumeration);
        SWAP(uint32_t, a->enumeration_count, b->enumeration_count);
        break;
    case PARTS:
        break;
    }
}

/* The constants of a property that was made wide on one side only. */
static void widen_constants(st_property *property)
{
    st_value *single[] = {&property->default_value, &property->initial, &property->minimum, &property->maximum};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (single[i]->present && st_type_widens(single[i]->type, property->type))
            single[i]->type = property->type;
    for (uint32_t i = 0; i < property->enumeration_count; i++)
        if (st_type_widens(property->enumeration[i].type, property->type))
            property->enumeration[i].type = property->type;
}

/* ---- the states that both come from ---- */

static const st_type_def *base_type(const merging *m, uint32_t base, uint64_t table)
{
    return st_schema_find_table(m->sides->bases[base], table);
}

static const st_property *base_property(const merging *m, uint32_t base, uint64_t table, uint64_t id)
{
    const st_type_def *type = base_type(m, base, table);
    int at = type ? st_type_find_property_id(type, id) : -1;
    return at < 0 ? NULL : &type->properties[at];
}

static bool had_type(const merging *m, uint64_t table)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++)
        if (base_type(m, i, table))
            return true;
    return false;
}

static bool had_property(const merging *m, uint64_t table, uint64_t id)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++)
        if (base_property(m, i, table, id))
            return true;
    return false;
}

static bool part_as_base(const merging *m, uint64_t table, part which, const st_property *property)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_property *base = base_property(m, i, table, property->id);
        if (base && same_part(which, property, base))
            return true;
    }
    return false;
}

static bool property_as_base(const merging *m, uint64_t table, const st_property *property)
{
    for (part which = 0; which < PARTS; which++)
        if (!part_as_base(m, table, which, property))
            return false;
    return true;
}

/* ---- keys, unique tuples, ends: by ids ---- */

static bool same_members(const st_type_def *a, const uint32_t *members_a, uint32_t count_a, const st_type_def *b,
                         const uint32_t *members_b, uint32_t count_b)
{
    bool same = count_a == count_b;
    for (uint32_t i = 0; same && i < count_a; i++)
        same = a->properties[members_a[i]].id == b->properties[members_b[i]].id;
    return same;
}

static bool same_key(const st_type_def *a, const st_type_def *b)
{
    return a->identity == b->identity && same_members(a, a->key, a->key_count, b, b->key, b->key_count);
}

static bool has_unique(const st_type_def *in, const st_type_def *of, const st_unique *unique)
{
    for (uint32_t i = 0; i < in->unique_count; i++)
        if (same_members(in, in->uniques[i].properties, in->uniques[i].count, of, unique->properties, unique->count))
            return true;
    return false;
}

static bool had_unique(const merging *m, const st_type_def *of, const st_unique *unique)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *type = base_type(m, i, of->table);
        if (type && has_unique(type, of, unique))
            return true;
    }
    return false;
}

static bool same_ends(const st_schema *a, const st_type_def *one, const st_schema *b, const st_type_def *two)
{
    return !one->edge || (a->types[one->from].table == b->types[two->from].table &&
                          a->types[one->to].table == b->types[two->to].table);
}

static sluice_status take_ids(const st_type_def *type, const uint32_t *members, uint32_t count, ids *ret_ids,
                              sluice_error *err)
{
    ret_ids->items = malloc(((size_t)count + 1) * sizeof *ret_ids->items);
    if (!ret_ids->items)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        ret_ids->items[i] = type->properties[members[i]].id;
    ret_ids->count = count;
    return SLUICE_OK;
}

/* Indexes again; false when a property is not there any more. */
static bool place_ids(const st_type_def *type, const ids *from, uint32_t *members)
{
    for (uint32_t i = 0; i < from->count; i++) {
        int at = st_type_find_property_id(type, from->items[i]);
        if (at < 0)
            return false;
        members[i] = (uint32_t)at;
    }
    return true;
}

/* ---- properties of a type ---- */

static sluice_status merge_parts(merging *m, const st_type_def *type, st_property *ours, st_property *theirs)
{
    for (part which = 0; which < PARTS; which++) {
        switch (choose(same_part(which, ours, theirs), part_as_base(m, type->table, which, ours),
                       part_as_base(m, type->table, which, theirs))) {
        case OURS:
            break;
        case THEIRS:
            swap_part(which, ours, theirs);
            break;
        case CLASH:
            PF_TRY(both_changed(m, type->name, ours->name, part_names[which]));
            break;
        }
    }
    widen_constants(ours);
    return SLUICE_OK;
}

/* One side dropped the property: is the other's as it was? */
static sluice_status judge_dropped(merging *m, const st_type_def *type, const st_property *left)
{
    return property_as_base(m, type->table, left)
               ? SLUICE_OK
               : clash(m, type->name, left->name, "one branch dropped it, the other one changed it");
}

/* The properties of both into *into, which names what the copies own. */
static sluice_status merge_properties(merging *m, st_type_def *ours, st_type_def *theirs, st_type_def *into)
{
    into->property_count = 0;
    into->properties = calloc((size_t)ours->property_count + theirs->property_count + 1, sizeof *into->properties);
    if (!into->properties)
        return pf_fail_memory(m->err);
    for (uint32_t i = 0; i < ours->property_count; i++) {
        st_property *property = &ours->properties[i];
        int at = st_type_find_property_id(theirs, property->id);
        if (at < 0 && had_property(m, ours->table, property->id)) {
            PF_TRY(judge_dropped(m, ours, property));
            continue;
        }
        if (at >= 0)
            PF_TRY(merge_parts(m, ours, property, &theirs->properties[at]));
        into->properties[into->property_count++] = *property;
    }
    for (uint32_t i = 0; i < theirs->property_count; i++) {
        const st_property *property = &theirs->properties[i];
        if (st_type_find_property_id(ours, property->id) >= 0)
            continue;
        if (had_property(m, ours->table, property->id))
            PF_TRY(judge_dropped(m, ours, property));
        else
            into->properties[into->property_count++] = *property;
    }
    return SLUICE_OK;
}

/* ---- what a type has beside ---- */

static sluice_status add_unique(merging *m, merged_type *into, const st_type_def *of, const st_unique *unique,
                                uint32_t id)
{
    st_unique *made = &into->def.uniques[into->def.unique_count];
    *made = (st_unique){.id = id, .count = unique->count};
    made->properties = calloc((size_t)unique->count + 1, sizeof *made->properties);
    if (!made->properties)
        return pf_fail_memory(m->err);
    into->def.unique_count++;
    return take_ids(of, unique->properties, unique->count, &into->uniques[into->def.unique_count - 1], m->err);
}

static sluice_status merge_uniques(merging *m, const st_type_def *ours, const st_type_def *theirs, merged_type *into)
{
    size_t room = (size_t)ours->unique_count + theirs->unique_count + 1;
    into->def.unique_count = 0;
    into->def.uniques = calloc(room, sizeof *into->def.uniques);
    into->uniques = calloc(room, sizeof *into->uniques);
    if (!into->def.uniques || !into->uniques)
        return pf_fail_memory(m->err);
    if (theirs->next_unique > into->def.next_unique)
        into->def.next_unique = theirs->next_unique;
    for (uint32_t i = 0; i < ours->unique_count; i++) {
        const st_unique *unique = &ours->uniques[i];
        if (has_unique(theirs, ours, unique) || !had_unique(m, ours, unique))
            PF_TRY(add_unique(m, into, ours, unique, unique->id));
    }
    for (uint32_t i = 0; i < theirs->unique_count; i++) {
        const st_unique *unique = &theirs->uniques[i];
        if (!has_unique(ours, theirs, unique) && !had_unique(m, theirs, unique))
            PF_TRY(add_unique(m, into, theirs, unique, into->def.next_unique++));
    }
    return SLUICE_OK;
}

static bool name_as_base(const merging *m, const st_type_def *type)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        if (base && strcmp(base->name, type->name) == 0)
            return true;
    }
    return false;
}

static bool key_as_base(const merging *m, const st_type_def *type)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        if (base && same_key(base, type))
            return true;
    }
    return false;
}

static bool ends_as_base(const merging *m, const st_schema *schema, const st_type_def *type)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        if (base && same_ends(schema, type, m->sides->bases[i], base))
            return true;
    }
    return false;
}

static bool limit_as_base(const merging *m, const st_type_def *type, bool out)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        if (base && (out ? base->max_out == type->max_out : base->max_in == type->max_in))
            return true;
    }
    return false;
}

static bool uniques_as_base(const merging *m, const st_type_def *type)
{
    for (uint32_t i = 0; i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        bool same = base && base->unique_count == type->unique_count;
        for (uint32_t k = 0; same && k < type->unique_count; k++)
            same = has_unique(base, type, &type->uniques[k]);
        if (same)
            return true;
    }
    return false;
}

/* Of a type that the other side dropped. */
static bool type_as_base(const merging *m, const st_schema *schema, const st_type_def *type)
{
    bool same = name_as_base(m, type) && key_as_base(m, type) && ends_as_base(m, schema, type) &&
                uniques_as_base(m, type) &&
                (!type->edge || (limit_as_base(m, type, true) && limit_as_base(m, type, false)));
    for (uint32_t i = 0; same && i < type->property_count; i++)
        same = property_as_base(m, type->table, &type->properties[i]);
    for (uint32_t i = 0; same && i < m->sides->base_count; i++) {
        const st_type_def *base = base_type(m, i, type->table);
        same = !base || base->property_count == type->property_count;
    }
    return same;
}

/* ---- types ---- */

/* A type as it stands on one side. */
static sluice_status begin_type(merging *m, const st_schema *schema, const st_type_def *type, merged_type *into)
{
    into->def = *type;
    into->def.properties = NULL;
    into->def.key = NULL;
    into->def.uniques = NULL;
    if (type->edge) {
        into->ends[0] = schema->types[type->from].table;
        into->ends[1] = schema->types[type->to].table;
    }
    return take_ids(type, type->key, type->key_count, &into->key, m->err);
}

static sluice_status merge_limit(merging *m, const st_type_def *ours, const st_type_def *theirs, bool out,
                                 uint64_t *limit)
{
    bool same = out ? ours->max_out == theirs->max_out : ours->max_in == theirs->max_in;
    switch (choose(same, limit_as_base(m, ours, out), limit_as_base(m, theirs, out))) {
    case OURS:
        break;
    case THEIRS:
        *limit = out ? theirs->max_out : theirs->max_in;
        break;
    case CLASH:
        return both_changed(m, ours->name, NULL, out ? "cardinality (out)" : "cardinality (in)");
    }
    return SLUICE_OK;
}

static sluice_status merge_edge(merging *m, const st_type_def *ours, const st_type_def *theirs, merged_type *into)
{
    if (!ours->edge)
        return SLUICE_OK;
    switch (choose(same_ends(m->ours, ours, m->theirs, theirs), ends_as_base(m, m->ours, ours),
                   ends_as_base(m, m->theirs, theirs))) {
    case OURS:
        break;
    case THEIRS:
        into->ends[0] = m->theirs->types[theirs->from].table;
        into->ends[1] = m->theirs->types[theirs->to].table;
        break;
    case CLASH:
        PF_TRY(both_changed(m, ours->name, NULL, "ends"));
        break;
    }
    PF_TRY(merge_limit(m, ours, theirs, true, &into->def.max_out));
    return merge_limit(m, ours, theirs, false, &into->def.max_in);
}

static sluice_status merge_type(merging *m, st_type_def *ours, st_type_def *theirs)
{
    merged_type *into = &m->types[m->count++];
    PF_TRY(begin_type(m, m->ours, ours, into));
    switch (choose(strcmp(ours->name, theirs->name) == 0, name_as_base(m, ours), name_as_base(m, theirs))) {
    case OURS:
        break;
    case THEIRS:
        into->def.name = theirs->name;
        break;
    case CLASH:
        PF_TRY(both_changed(m, ours->name, NULL, "name"));
        break;
    }
    switch (choose(same_key(ours, theirs), key_as_base(m, ours), key_as_base(m, theirs))) {
    case OURS:
        break;
    case THEIRS:
        free(into->key.items);
        into->def.identity = theirs->identity;
        PF_TRY(take_ids(theirs, theirs->key, theirs->key_count, &into->key, m->err));
        break;
    case CLASH:
        PF_TRY(both_changed(m, ours->name, NULL, "key"));
        break;
    }
    PF_TRY(merge_edge(m, ours, theirs, into));
    PF_TRY(merge_uniques(m, ours, theirs, into));
    return merge_properties(m, ours, theirs, &into->def);
}

/* Of one side only: added there, or dropped on the other. */
static sluice_status take_type(merging *m, const st_schema *schema, st_type_def *type)
{
    static const st_type_def nothing;
    st_type_def none = nothing;
    if (had_type(m, type->table))
        return type_as_base(m, schema, type)
                   ? SLUICE_OK
                   : clash(m, type->name, NULL, "one branch dropped it, the other one changed its schema");
    merged_type *into = &m->types[m->count++];
    PF_TRY(begin_type(m, schema, type, into));
    none.table = type->table;
    PF_TRY(merge_uniques(m, type, &none, into));
    return merge_properties(m, type, &none, &into->def);
}

static sluice_status merge_types(merging *m, bool edges)
{
    for (uint32_t i = 0; i < m->ours->type_count; i++) {
        st_type_def *type = &m->ours->types[i];
        st_type_def *other = (st_type_def *)(uintptr_t)st_schema_find_table(m->theirs, type->table);
        if (type->edge == edges)
            PF_TRY(other ? merge_type(m, type, other) : take_type(m, m->ours, type));
    }
    for (uint32_t i = 0; i < m->theirs->type_count; i++) {
        st_type_def *type = &m->theirs->types[i];
        if (type->edge == edges && !st_schema_find_table(m->ours, type->table))
            PF_TRY(take_type(m, m->theirs, type));
    }
    return SLUICE_OK;
}

/* ---- putting it together ---- */

static sluice_status check_names(merging *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const st_type_def *type = &m->types[i].def;
        for (uint32_t k = 0; k < i; k++) {
            PF_ASSERT(type->name && m->types[k].def.name);
            if (strcmp(type->name, m->types[k].def.name) == 0)
                PF_TRY(clash(m, type->name, NULL, "each branch has a type of its own under this name"));
        }
        for (uint32_t p = 0; p < type->property_count; p++)
            for (uint32_t q = 0; q < p; q++)
                if (strcmp(type->properties[p].name, type->properties[q].name) == 0)
                    PF_TRY(clash(m, type->name, type->properties[p].name,
                                 "each branch has a property of its own under this name"));
    }
    return SLUICE_OK;
}

static bool find_end(const merging *m, uint64_t table, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->types[i].def.table == table && !m->types[i].def.edge) {
            *ret_index = i;
            return true;
        }
    return false;
}

static sluice_status place_type(merging *m, merged_type *type)
{
    st_type_def *def = &type->def;
    def->key = calloc((size_t)type->key.count + 1, sizeof *def->key);
    if (!def->key)
        return pf_fail_memory(m->err);
    def->key_count = type->key.count;
    if (!place_ids(def, &type->key, def->key))
        PF_TRY(clash(m, def->name, NULL, "its key needs a property that one of the branches dropped"));
    for (uint32_t i = 0; i < def->unique_count; i++)
        if (!place_ids(def, &type->uniques[i], def->uniques[i].properties))
            PF_TRY(clash(m, def->name, NULL, "a unique value needs a property that one of the branches dropped"));
    if (def->edge && (!find_end(m, type->ends[0], &def->from) || !find_end(m, type->ends[1], &def->to)))
        PF_TRY(clash(m, def->name, NULL, "its ends are of a type that one of the branches dropped"));
    return SLUICE_OK;
}

/* A copy by way of its canonical form, which also says whether it is a schema at all. */
static sluice_status copy_schema(const st_schema *schema, st_schema **ret_copy, sluice_error *err)
{
    pf_buffer bytes = {0};
    sluice_status status = st_schema_encode(schema, &bytes, err);
    if (status == SLUICE_OK)
        status = st_schema_decode(bytes.data, bytes.length, ret_copy, err);
    pf_buffer_free(&bytes);
    return status;
}

static sluice_status make_schema(merging *m, st_schema **ret_merged)
{
    sluice_error error = {0};
    sluice_status status = SLUICE_OK;
    st_type_def *types = calloc((size_t)m->count + 1, sizeof *types);
    if (!types)
        return pf_fail_memory(m->err);
    for (uint32_t i = 0; i < m->count; i++)
        types[i] = m->types[i].def;
    const st_schema merged = {.types = types, .type_count = m->count};
    status = copy_schema(&merged, ret_merged, &error);
    free(types);
    if (status == SLUICE_OK || strcmp(error.message, PF_NO_MEMORY) == 0) {
        if (status != SLUICE_OK && m->err)
            *m->err = error;
        return status;
    }
    return clash(m, NULL, NULL, "what the branches made of the schema does not go together");
}

static void free_types(merging *m)
{
    for (uint32_t i = 0; m->types && i < m->count; i++) {
        merged_type *type = &m->types[i];
        for (uint32_t k = 0; k < type->def.unique_count && type->uniques; k++) {
            free(type->def.uniques[k].properties);
            free(type->uniques[k].items);
        }
        free(type->def.uniques);
        free(type->uniques);
        free(type->def.properties);
        free(type->def.key);
        free(type->key.items);
    }
    free(m->types);
}

sluice_status st_schema_merge(const st_schema_sides *sides, st_schema_clash_fn *clash_fn, void *context,
                              st_schema **ret_merged, sluice_error *err)
{
    merging m = {.sides = sides, .clash = clash_fn, .context = context, .err = err};
    sluice_status status;
    *ret_merged = NULL;
    PF_GOTO(status, done, copy_schema(sides->ours, &m.ours, err));
    PF_GOTO(status, done, copy_schema(sides->theirs, &m.theirs, err));
    m.types = calloc((size_t)m.ours->type_count + m.theirs->type_count + 1, sizeof *m.types);
    if (!m.types) {
        status = pf_fail_memory(err);
        goto done;
    }
    PF_GOTO(status, done, merge_types(&m, false)); /* nodes first */
    PF_GOTO(status, done, merge_types(&m, true));
    PF_GOTO(status, done, check_names(&m));
    for (uint32_t i = 0; i < m.count; i++)
        PF_GOTO(status, done, place_type(&m, &m.types[i]));
    if (!m.clashed)
        status = make_schema(&m, ret_merged);
done:
    free_types(&m);
    st_schema_free(m.ours);
    st_schema_free(m.theirs);
    return status;
}
