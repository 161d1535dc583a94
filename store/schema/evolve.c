/*
 * Comparing two schemas (evolve.h). Pairing comes first (types, then their properties, then unique tuples), and hands
 * on the ids; the steps follow from the pairs, in the order of the newer file, then what is dropped.
 */
#include "store/schema/evolve.h"
#include "platform/check.h"
#include "store/schema/constant.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
    [ST_STEP_ADD_TYPE] = "add-type",
    [ST_STEP_DROP_TYPE] = "drop-type",
    [ST_STEP_RENAME_TYPE] = "rename-type",
    [ST_STEP_ADD_PROPERTY] = "add-property",
    [ST_STEP_DROP_PROPERTY] = "drop-property",
    [ST_STEP_RENAME_PROPERTY] = "rename-property",
    [ST_STEP_WIDEN_PROPERTY] = "widen-property",
    [ST_STEP_RETYPE_PROPERTY] = "change-type",
    [ST_STEP_ALLOW_NULL] = "allow-null",
    [ST_STEP_FORBID_NULL] = "forbid-null",
    [ST_STEP_DEFAULT] = "change-default",
    [ST_STEP_LOOSEN_CHECKS] = "loosen-checks",
    [ST_STEP_TIGHTEN_CHECKS] = "tighten-checks",
    [ST_STEP_ADD_UNIQUE] = "add-unique",
    [ST_STEP_DROP_UNIQUE] = "drop-unique",
    [ST_STEP_LOOSEN_CARDINALITY] = "loosen-cardinality",
    [ST_STEP_TIGHTEN_CARDINALITY] = "tighten-cardinality",
    [ST_STEP_KEY] = "change-key",
    [ST_STEP_ENDS] = "change-ends",
    [ST_STEP_ORDER] = "change-order",
};

const char *st_step_name(st_step_kind kind)
{
    PF_ASSERT(kind < ST_STEP_KIND_COUNT);
    return names[kind];
}

typedef struct comparison {
    const st_schema *older, *newer;
    st_evolution *evolution;
    uint32_t room;
    sluice_error *err;
} comparison;

void st_evolution_free(st_evolution *evolution)
{
    for (uint32_t i = 0; i < evolution->count; i++)
        free(evolution->steps[i].text);
    free(evolution->steps);
    *evolution = (st_evolution){0};
}

/* Takes the step over, with its text. */
static sluice_status add_step(comparison *c, st_step step, const char *fmt, ...) PF_PRINTF(3, 4);
static sluice_status add_step(comparison *c, st_step step, const char *fmt, ...)
{
    st_evolution *evolution = c->evolution;
    char text[1600];
    va_list arguments;
    va_start(arguments, fmt);
    (void)vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    if (evolution->count == c->room) {
        uint32_t room = c->room ? c->room * 2 : 16;
        st_step *steps = realloc(evolution->steps, room * sizeof *steps);
        if (!steps)
            return pf_fail_memory(c->err);
        evolution->steps = steps;
        c->room = room;
    }
    step.text = strdup(text);
    if (!step.text)
        return pf_fail_memory(c->err);
    evolution->steps[evolution->count++] = step;
    return SLUICE_OK;
}

static sluice_status misfit(comparison *c, const char *fmt, ...) PF_PRINTF(2, 3);
static sluice_status misfit(comparison *c, const char *fmt, ...)
{
    char text[1600];
    va_list arguments;
    va_start(arguments, fmt);
    (void)vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    return pf_fail_private(c->err, SLUICE_INPUT_SYNTAX, "the schema file does not fit the graph's schema", "%s", text);
}

/* ---- pairing types ---- */

/* The older type that the newer one is; NULL: a new type. */
static sluice_status find_older(comparison *c, const st_type_def *type, const st_type_def **ret_older)
{
    *ret_older = st_schema_find(c->older, type->name);
    if (*ret_older || !type->renamed_from) /* a file that says "renamed_from" may be applied again */
        return SLUICE_OK;
    *ret_older = st_schema_find(c->older, type->renamed_from);
    if (!*ret_older)
        return misfit(c, "%s is renamed from \"%s\", which the graph does not have", type->name, type->renamed_from);
    if (st_schema_find(c->newer, type->renamed_from))
        return misfit(c, "%s is renamed from \"%s\", which the file keeps besides", type->name, type->renamed_from);
    return SLUICE_OK;
}

static sluice_status pair_types(comparison *c, st_schema *newer)
{
    for (uint32_t i = 0; i < newer->type_count; i++) {
        st_type_def *type = &newer->types[i];
        const st_type_def *older = NULL;
        PF_TRY(find_older(c, type, &older));
        if (!older)
            continue;
        if (older->edge != type->edge)
            return misfit(c, "%s is a type of %s; drop it first, then add the other", type->name,
                          older->edge ? "edges" : "nodes");
        if (st_schema_find_table(c->newer, older->table))
            return misfit(c, "two types are renamed from \"%s\"", older->name);
        type->table = older->table;
    }
    return SLUICE_OK;
}

/* ---- pairing properties and unique tuples ---- */

static sluice_status find_older_property(comparison *c, const st_type_def *older, const st_type_def *type, uint32_t at,
                                         int *ret_older)
{
    const st_property *property = &type->properties[at];
    *ret_older = st_type_find_property(older, property->name);
    if (*ret_older >= 0 || !property->renamed_from)
        return SLUICE_OK;
    *ret_older = st_type_find_property(older, property->renamed_from);
    if (*ret_older < 0)
        return misfit(c, "%s.%s is renamed from \"%s\", which the type does not have", type->name, property->name,
                      property->renamed_from);
    if (st_type_find_property(type, property->renamed_from) >= 0)
        return misfit(c, "%s.%s is renamed from \"%s\", which the file keeps besides", type->name, property->name,
                      property->renamed_from);
    return SLUICE_OK;
}

static sluice_status copy_constant(const st_value *from, st_value *ret_to, sluice_error *err)
{
    *ret_to = *from;
    ret_to->bytes = NULL;
    if (!from->bytes)
        return SLUICE_OK;
    ret_to->bytes = malloc(from->length + 1);
    if (!ret_to->bytes)
        return pf_fail_memory(err);
    memcpy(ret_to->bytes, from->bytes, from->length);
    ret_to->bytes[from->length] = 0;
    return SLUICE_OK;
}

/* The older initial value in the type that the property has now. */
static sluice_status take_initial(const st_property *older, st_property *property, sluice_error *err)
{
    PF_TRY(copy_constant(&older->initial, &property->initial, err));
    if (!property->initial.present)
        return SLUICE_OK;
    property->initial.type = property->type;
    return SLUICE_OK;
}

static sluice_status pair_properties(comparison *c, const st_type_def *older, st_type_def *type)
{
    for (uint32_t i = 0; i < type->property_count; i++) {
        st_property *property = &type->properties[i];
        int at = -1;
        PF_TRY(find_older_property(c, older, type, i, &at));
        if (at < 0) {
            if (property->default_value.present && !property->default_value.is_null)
                PF_TRY(copy_constant(&property->default_value, &property->initial, c->err));
            continue;
        }
        if (st_type_find_property_id(type, older->properties[at].id) >= 0)
            return misfit(c, "two properties of %s are renamed from \"%s\"", type->name, older->properties[at].name);
        property->id = older->properties[at].id;
        PF_TRY(take_initial(&older->properties[at], property, c->err));
    }
    return SLUICE_OK;
}

static bool same_members(const st_type_def *a, const uint32_t *members_a, uint32_t count_a, const st_type_def *b,
                         const uint32_t *members_b, uint32_t count_b)
{
    bool same = count_a == count_b;
    for (uint32_t i = 0; same && i < count_a; i++) {
        uint64_t id = a->properties[members_a[i]].id;
        same = id != 0 && id == b->properties[members_b[i]].id;
    }
    return same;
}

static void pair_uniques(const st_type_def *older, st_type_def *type)
{
    type->next_unique = older->next_unique;
    for (uint32_t i = 0; i < type->unique_count; i++) {
        st_unique *unique = &type->uniques[i];
        const st_unique *found = NULL;
        for (uint32_t k = 0; k < older->unique_count && !found; k++) {
            const st_unique *one = &older->uniques[k];
            if (same_members(type, unique->properties, unique->count, older, one->properties, one->count))
                found = one;
        }
        unique->id = found ? found->id : type->next_unique++;
    }
}

/* ---- steps of a property ---- */

/* Constants of a property that was made wide are compared as wide ones. */
static bool comparable(st_type a, st_type b)
{
    return st_type_reads_as(a, b) || st_type_reads_as(b, a);
}

static int compare_constants(const st_value *a, const st_value *b)
{
    st_value left = *a, right = *b;
    if (st_type_widens(left.type, right.type))
        left.type = right.type;
    else if (st_type_widens(right.type, left.type))
        right.type = left.type;
    return st_constant_compare(&left, &right);
}

static bool same_constant(const st_value *a, const st_value *b)
{
    if (!a->present || !b->present)
        return a->present == b->present;
    if (a->is_null || b->is_null)
        return a->is_null == b->is_null;
    return comparable(a->type, b->type) && compare_constants(a, b) == 0;
}

static bool in_enumeration(const st_property *property, const st_value *value)
{
    for (uint32_t i = 0; i < property->enumeration_count; i++)
        if (same_constant(value, &property->enumeration[i]))
            return true;
    return false;
}

/* Does whatever meets the older checks meet the newer ones? Patterns are compared as texts. */
static bool checks_hold(const st_property *older, const st_property *property)
{
    if (!comparable(older->type, property->type))
        return !property->minimum.present && !property->maximum.present && property->enumeration_count == 0;
    if (property->minimum.present &&
        (!older->minimum.present || compare_constants(&older->minimum, &property->minimum) < 0))
        return false;
    if (property->maximum.present &&
        (!older->maximum.present || compare_constants(&older->maximum, &property->maximum) > 0))
        return false;
    if (property->has_min_length && (!older->has_min_length || older->min_length < property->min_length))
        return false;
    if (property->has_max_length && (!older->has_max_length || older->max_length > property->max_length))
        return false;
    if (property->pattern && (!older->pattern || strcmp(older->pattern, property->pattern) != 0))
        return false;
    if (property->enumeration_count == 0)
        return true;
    for (uint32_t i = 0; i < older->enumeration_count; i++)
        if (!in_enumeration(property, &older->enumeration[i]))
            return false;
    return older->enumeration_count > 0;
}

static sluice_status compare_property(comparison *c, const st_type_def *older, const st_type_def *type, uint32_t at,
                                      uint32_t was)
{
    const st_property *before = &older->properties[was], *after = &type->properties[at];
    st_step step = {.before = older, .after = type, .property_before = (int)was, .property_after = (int)at};
    if (strcmp(before->name, after->name) != 0) {
        step.kind = ST_STEP_RENAME_PROPERTY;
        PF_TRY(add_step(c, step, "%s.%s becomes %s", type->name, before->name, after->name));
    }
    if (before->type != after->type) {
        bool widens = st_type_widens(before->type, after->type) && !st_type_key_has(older, was);
        step.kind = widens ? ST_STEP_WIDEN_PROPERTY : ST_STEP_RETYPE_PROPERTY;
        PF_TRY(add_step(c, step, "%s.%s: %s becomes %s", type->name, after->name, st_type_name(before->type),
                        st_type_name(after->type)));
    }
    if (before->nullable != after->nullable) {
        step.kind = after->nullable ? ST_STEP_ALLOW_NULL : ST_STEP_FORBID_NULL;
        PF_TRY(add_step(c, step, "%s.%s may %s", type->name, after->name,
                        after->nullable ? "be null from now on" : "not be null any more"));
    }
    if (comparable(before->type, after->type) && !same_constant(&before->default_value, &after->default_value)) {
        step.kind = ST_STEP_DEFAULT;
        PF_TRY(add_step(c, step, "%s.%s has another default", type->name, after->name));
    }
    bool holds = checks_hold(before, after);
    if (!holds || (comparable(before->type, after->type) && !checks_hold(after, before))) {
        step.kind = holds ? ST_STEP_LOOSEN_CHECKS : ST_STEP_TIGHTEN_CHECKS;
        PF_TRY(add_step(c, step, "%s.%s: its checks are %s", type->name, after->name,
                        holds ? "looser" : "other ones, or tighter"));
    }
    return SLUICE_OK;
}

static const char *what_old_rows_have(const st_property *added)
{
    if (added->default_value.present && !added->default_value.is_null)
        return ", its default in rows that are there";
    return added->nullable ? ", null in rows that are there" : "";
}

static sluice_status compare_properties(comparison *c, const st_type_def *older, const st_type_def *type)
{
    for (uint32_t i = 0; i < type->property_count; i++) {
        const st_property *property = &type->properties[i];
        int was = property->id ? st_type_find_property_id(older, property->id) : -1;
        st_step step = {.kind = ST_STEP_ADD_PROPERTY,
                        .before = older,
                        .after = type,
                        .property_before = -1,
                        .property_after = (int)i};
        if (was >= 0)
            PF_TRY(compare_property(c, older, type, i, (uint32_t)was));
        else
            PF_TRY(add_step(c, step, "%s.%s is added: %s%s", type->name, property->name, st_type_name(property->type),
                            what_old_rows_have(property)));
    }
    for (uint32_t i = 0; i < older->property_count; i++) {
        st_step step = {.kind = ST_STEP_DROP_PROPERTY,
                        .before = older,
                        .after = type,
                        .property_before = (int)i,
                        .property_after = -1};
        if (st_type_find_property_id(type, older->properties[i].id) < 0)
            PF_TRY(add_step(c, step, "%s.%s is dropped", type->name, older->properties[i].name));
    }
    return SLUICE_OK;
}

/* ---- steps of a type ---- */

static void members_text(const st_type_def *type, const uint32_t *members, uint32_t count, char *ret_text, size_t room)
{
    size_t at = 0;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < count && at < room; i++) {
        int wrote = snprintf(ret_text + at, room - at, "%s%s", i > 0 ? ", " : "", type->properties[members[i]].name);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
}

static sluice_status compare_uniques(comparison *c, const st_type_def *older, const st_type_def *type)
{
    char members[1024];
    for (uint32_t i = 0; i < type->unique_count; i++) {
        const st_unique *unique = &type->uniques[i];
        st_step step = {.kind = ST_STEP_ADD_UNIQUE,
                        .before = older,
                        .after = type,
                        .property_before = -1,
                        .property_after = -1,
                        .unique = unique};
        members_text(type, unique->properties, unique->count, members, sizeof members);
        if (!st_type_find_unique(older, unique->id))
            PF_TRY(add_step(c, step, "%s: (%s) is unique from now on", type->name, members));
    }
    for (uint32_t i = 0; i < older->unique_count; i++) {
        const st_unique *unique = &older->uniques[i];
        st_step step = {.kind = ST_STEP_DROP_UNIQUE,
                        .before = older,
                        .after = type,
                        .property_before = -1,
                        .property_after = -1,
                        .unique = unique};
        members_text(older, unique->properties, unique->count, members, sizeof members);
        if (!st_type_find_unique(type, unique->id))
            PF_TRY(add_step(c, step, "%s: (%s) is not unique any more", type->name, members));
    }
    return SLUICE_OK;
}

static sluice_status compare_edge(comparison *c, const st_type_def *older, const st_type_def *type, st_step step)
{
    uint64_t from = c->newer->types[type->from].table, to = c->newer->types[type->to].table;
    if (c->older->types[older->from].table != from || c->older->types[older->to].table != to) {
        step.kind = ST_STEP_ENDS;
        PF_TRY(add_step(c, step, "%s leads from %s to %s", type->name, c->newer->types[type->from].name,
                        c->newer->types[type->to].name));
    }
    bool tighter = type->max_out < older->max_out || type->max_in < older->max_in;
    if (!tighter && type->max_out == older->max_out && type->max_in == older->max_in)
        return SLUICE_OK;
    step.kind = tighter ? ST_STEP_TIGHTEN_CARDINALITY : ST_STEP_LOOSEN_CARDINALITY;
    return add_step(c, step, "%s: a node may have %s edges", type->name, tighter ? "fewer" : "more");
}

static sluice_status compare_type(comparison *c, const st_type_def *older, const st_type_def *type)
{
    st_step step = {.before = older, .after = type, .property_before = -1, .property_after = -1};
    if (strcmp(older->name, type->name) != 0) {
        step.kind = ST_STEP_RENAME_TYPE;
        PF_TRY(add_step(c, step, "%s becomes %s", older->name, type->name));
    }
    if (older->identity != type->identity ||
        !same_members(older, older->key, older->key_count, type, type->key, type->key_count)) {
        step.kind = ST_STEP_KEY;
        PF_TRY(add_step(c, step, "%s has another key", type->name));
    }
    if (type->edge)
        PF_TRY(compare_edge(c, older, type, step));
    PF_TRY(compare_properties(c, older, type));
    return compare_uniques(c, older, type);
}

static sluice_status compare_types(comparison *c)
{
    for (uint32_t i = 0; i < c->newer->type_count; i++) {
        const st_type_def *type = &c->newer->types[i];
        st_step step = {.kind = ST_STEP_ADD_TYPE, .after = type, .property_before = -1, .property_after = -1};
        const st_type_def *before = type->table ? st_schema_find_table(c->older, type->table) : NULL;
        if (before)
            PF_TRY(compare_type(c, before, type));
        else
            PF_TRY(add_step(c, step, "%s is added, a type of %s", type->name, type->edge ? "edges" : "nodes"));
    }
    for (uint32_t i = 0; i < c->older->type_count; i++) {
        const st_type_def *type = &c->older->types[i];
        st_step step = {.kind = ST_STEP_DROP_TYPE, .before = type, .property_before = -1, .property_after = -1};
        if (!st_schema_find_table(c->newer, type->table))
            PF_TRY(add_step(c, step, "%s is dropped", type->name));
    }
    return SLUICE_OK;
}

/* What the steps do not say and the canonical form does: the order of types, properties, tuples. */
static sluice_status compare_order(comparison *c)
{
    pf_sha256 older, newer;
    st_step step = {.kind = ST_STEP_ORDER, .property_before = -1, .property_after = -1};
    if (c->evolution->count > 0)
        return SLUICE_OK;
    PF_TRY(st_schema_identity(c->older, &older, c->err));
    PF_TRY(st_schema_identity(c->newer, &newer, c->err));
    if (pf_sha256_equal(&older, &newer))
        return SLUICE_OK;
    return add_step(c, step, "types or properties stand in another order");
}

sluice_status st_schema_evolve(const st_schema *older, st_schema *newer, st_evolution *ret_evolution, sluice_error *err)
{
    comparison c = {.older = older, .newer = newer, .evolution = ret_evolution, .err = err};
    sluice_status status;
    *ret_evolution = (st_evolution){0};
    PF_GOTO(status, failed, pair_types(&c, newer));
    for (uint32_t i = 0; i < newer->type_count; i++) {
        st_type_def *type = &newer->types[i];
        static const st_type_def nothing;
        const st_type_def *before = type->table ? st_schema_find_table(older, type->table) : &nothing;
        if (type->table)
            PF_GOTO(status, failed, pair_properties(&c, before, type));
        pair_uniques(before, type);
    }
    PF_GOTO(status, failed, compare_types(&c));
    PF_GOTO(status, failed, compare_order(&c));
    return SLUICE_OK;
failed:
    st_evolution_free(ret_evolution);
    return status;
}

sluice_status st_schema_compare(const st_schema *older, const st_schema *newer, st_evolution *ret_evolution,
                                sluice_error *err)
{
    comparison c = {.older = older, .newer = newer, .evolution = ret_evolution, .err = err};
    *ret_evolution = (st_evolution){0};
    sluice_status status = compare_types(&c);
    if (status == SLUICE_OK)
        status = compare_order(&c);
    if (status != SLUICE_OK)
        st_evolution_free(ret_evolution);
    return status;
}

void st_schema_count_missing_ids(const st_schema *schema, uint64_t *ret_tables, uint64_t *ret_properties)
{
    *ret_tables = *ret_properties = 0;
    for (uint32_t i = 0; i < schema->type_count; i++) {
        *ret_tables += schema->types[i].table == 0;
        for (uint32_t p = 0; p < schema->types[i].property_count; p++)
            *ret_properties += schema->types[i].properties[p].id == 0;
    }
}

void st_schema_assign_missing_ids(st_schema *schema, uint64_t next_table, uint64_t next_property)
{
    for (uint32_t i = 0; i < schema->type_count; i++) {
        st_type_def *type = &schema->types[i];
        if (type->table == 0)
            type->table = next_table++;
        for (uint32_t p = 0; p < type->property_count; p++)
            if (type->properties[p].id == 0)
                type->properties[p].id = next_property++;
    }
}
