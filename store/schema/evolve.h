/*
 * From one accepted schema to another: what a new schema file changes, step by step, and what each step costs.
 *
 * Types are the same type by name, or by "renamed_from"; properties likewise; unique tuples by the properties that they
 * are made of. What is the same keeps its ids; what is new gets fresh ones, also when its name had been used before.
 *
 * | step                                | cost                                                             |
 * |-------------------------------------|------------------------------------------------------------------|
 * | add, rename a type                  | metadata                                                         |
 * | drop a type                         | metadata; loses data when it has rows                            |
 * | add a property                      | metadata; refused when rows would be null that may not           |
 * | rename a property; order            | metadata                                                         |
 * | drop a property                     | metadata; loses data when a row has a value; of a key: refused   |
 * | int32 to int64, float32 to float64  | metadata: values are made wider as they are read                 |
 * | another type                        | refused                                                          |
 * | may be null from now on; default    | metadata                                                         |
 * | may not be null any more            | the rows are checked                                             |
 * | checks looser or gone               | metadata                                                         |
 * | checks added or tighter             | the rows are checked                                             |
 * | a unique tuple gone                 | metadata                                                         |
 * | a unique tuple added                | the rows are checked                                             |
 * | cardinality looser / tighter        | metadata / the rows are checked                                  |
 * | another key, other ends, other kind | refused, but for a type without rows: then metadata              |
 *
 * This module compares schemas only; who has the rows (coord/schema_change.c) decides what depends on them.
 */
#ifndef STORE_SCHEMA_EVOLVE_H
#define STORE_SCHEMA_EVOLVE_H

#include "store/schema/schema.h"

typedef enum st_step_kind {
    ST_STEP_ADD_TYPE,
    ST_STEP_DROP_TYPE,
    ST_STEP_RENAME_TYPE,
    ST_STEP_ADD_PROPERTY,
    ST_STEP_DROP_PROPERTY,
    ST_STEP_RENAME_PROPERTY,
    ST_STEP_WIDEN_PROPERTY,
    ST_STEP_RETYPE_PROPERTY,
    ST_STEP_ALLOW_NULL,
    ST_STEP_FORBID_NULL,
    ST_STEP_DEFAULT,
    ST_STEP_LOOSEN_CHECKS,
    ST_STEP_TIGHTEN_CHECKS,
    ST_STEP_ADD_UNIQUE,
    ST_STEP_DROP_UNIQUE,
    ST_STEP_LOOSEN_CARDINALITY,
    ST_STEP_TIGHTEN_CARDINALITY,
    ST_STEP_KEY,
    ST_STEP_ENDS,
    ST_STEP_ORDER,
    ST_STEP_KIND_COUNT
} st_step_kind;
const char *st_step_name(st_step_kind kind); /* "add-type", ...; static storage */

typedef struct st_step {
    st_step_kind kind;
    const st_type_def *before, *after;   /* of the older and the newer schema; NULL: not in it */
    int property_before, property_after; /* indexes into their properties; -1: none */
    const st_unique *unique;             /* of the schema that has it */
    char *text;                          /* for people: "Person.age: int32 becomes int64" (owned) */
} st_step;

typedef struct st_evolution {
    st_step *steps;
    uint32_t count;
} st_evolution;
void st_evolution_free(st_evolution *evolution); /* its insides; safe on a zeroed one */

/* What leads from `older` (accepted) to `newer` (parsed: without ids). Fills the ids that `newer` takes over from
 * `older`; those of new types and properties stay 0. The steps point into both. INPUT_SYNTAX when the two do not fit: a
 * "renamed_from" that names nothing, or what is kept besides; a type of nodes that would become one of edges. */
sluice_status st_schema_evolve(const st_schema *older, st_schema *newer, st_evolution *ret_evolution,
                               sluice_error *err);
/* The same for two schemas that have ids: what is the same is so by them. */
sluice_status st_schema_compare(const st_schema *older, const st_schema *newer, st_evolution *ret_evolution,
                                sluice_error *err);
/* How many ids `newer` still wants, and handing them out from these on. */
void st_schema_count_missing_ids(const st_schema *schema, uint64_t *ret_tables, uint64_t *ret_properties);
void st_schema_assign_missing_ids(st_schema *schema, uint64_t next_table, uint64_t next_property);

#endif
