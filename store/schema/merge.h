/*
 * Merging schemas three ways: what two branches made of the schema that both come from, by stable ids.
 *
 * | of types, properties and unique tuples     | what comes of it                                              |
 * |--------------------------------------------|---------------------------------------------------------------|
 * | on both sides                              | part by part: name, type, null, default, each check, key,     |
 * |                                            | ends, cardinality; what one side changed counts; both, to     |
 * |                                            | the same: that; to other things: a clash                      |
 * | added on one side                          | added; under a name that the other side gave as well: a clash |
 * | dropped on one side, untouched on the other| dropped                                                       |
 * | dropped on one side, changed on the other  | a clash                                                       |
 *
 * Unique tuples are the same by the properties that they are made of; one that comes in gets an id of the target's,
 * whose fragments have runs under these. The order is that of the target, with what comes in behind it. Schemas only:
 * whether the rows fit is the caller's to look at.
 */
#ifndef STORE_SCHEMA_MERGE_H
#define STORE_SCHEMA_MERGE_H

#include "store/schema/schema.h"

typedef struct st_schema_sides {
    const st_schema *ours, *theirs; /* the target's and the source's */
    const st_schema *const *bases;  /* that both come from; nearly always one */
    uint32_t base_count;
} st_schema_sides;

/* `property` NULL: the type as a whole; `type` NULL: the schema as a whole. */
typedef sluice_status st_schema_clash_fn(void *context, const char *type, const char *property, const char *text,
                                         sluice_error *err);

/* Tells every clash; *ret_merged (owned by the caller) stays NULL when there was one. */
sluice_status st_schema_merge(const st_schema_sides *sides, st_schema_clash_fn *clash, void *context,
                              st_schema **ret_merged, sluice_error *err);

#endif
