/*
 * Changing the schema of a branch: what a new schema file would do (plan), and doing it (apply).
 *
 * store/schema/evolve.h says which steps lead from one schema to another; here the rows decide what each costs. Nothing
 * is rewritten: a widened type is made wide as it is read, an added property has its initial value, a dropped one is
 * left unread. What a constraint newly forbids is looked for in all rows before the change is made, and what was looked
 * at is read as a whole, so that no row slips in between.
 */
#ifndef COORD_SCHEMA_CHANGE_H
#define COORD_SCHEMA_CHANGE_H

#include "coord/write.h"
#include "store/schema/evolve.h"

typedef enum co_step_cost {
    CO_COST_METADATA, /* nothing is read */
    CO_COST_CHECKS,   /* `rows` rows are checked */
    CO_COST_LOSES,    /* `rows` rows, or values, can be read no more */
    CO_COST_REFUSED   /* see `why` */
} co_step_cost;
const char *co_step_cost_name(co_step_cost cost); /* "metadata", ...; static storage */

typedef struct co_schema_step {
    co_step_cost cost;
    uint64_t rows;
    sluice_status code; /* refused: as what */
    const char *why;    /* refused: static storage */
} co_schema_step;

typedef struct co_schema_plan {
    st_schema *newer; /* with the ids that it takes over; the steps point into it and into the base's */
    st_evolution evolution;
    co_schema_step *steps; /* one for each of the evolution's */
} co_schema_plan;
void co_schema_plan_free(co_schema_plan *plan); /* its insides; safe on a zeroed one */
/* `text` is a schema file; `file` is its name in messages. The base must outlive the plan. */
sluice_status co_schema_plan_make(st_snapshot *base, const char *text, size_t length, const char *file,
                                  co_schema_plan *ret_plan, sluice_error *err);
/* What the rows make of one step. */
sluice_status co_schema_judge(st_snapshot *base, const st_step *step, co_schema_step *ret_step, sluice_error *err);
/* Looks for rows that break what the plan newly demands: CONSTRAINT_NULL, _CHECK, _UNIQUE, _CARDINALITY, naming the
 * least of the first step that has one. */
sluice_status co_schema_check(st_snapshot *base, const co_schema_plan *plan, sluice_error *err);

/* A row that breaks a rule; its name is made of `columns`, or is its row id. */
typedef struct co_schema_breach {
    const st_type_def *type;
    const st_step *step;
    sluice_status code;
    const st_column *const *columns;
    uint32_t column_count;
    uint64_t row, row_id;
    const char *text;
} co_schema_breach;
typedef struct co_schema_watch { /* for whoever wants to know of all of them, and judges some rows elsewhere */
    void *context;
    bool (*elsewhere)(void *context, const st_step *step, uint64_t row_id);
    sluice_status (*found)(void *context, const co_schema_breach *breach, sluice_error *err);
} co_schema_watch;
/* Goes through all rows for each step that newly demands something; `rows`: a snapshot under the newer schema. */
sluice_status co_schema_look(st_snapshot *rows, const st_evolution *evolution, const co_schema_watch *watch,
                             sluice_error *err);

typedef struct co_schema_request {
    const char *branch; /* NULL: main */
    const char *text;
    size_t length;
    const char *file;
    bool allow_data_loss;
    pf_id operation;      /* never nil */
    bool operation_given; /* by --op-id */
    pf_id if_head;        /* nil: unconditional */
    const char *message;  /* NULL: none */
} co_schema_request;
/* Plans and applies, as one commit; a file that changes nothing makes none. Refused steps fail with their own code;
 * USAGE when data would be lost that nobody allowed to. */
sluice_status co_schema_apply(st_graph *graph, const co_schema_request *request, co_receipt *ret_receipt,
                              sluice_error *err);

#endif
