/*
 * What type the columns of files could have: every value of every file is looked at, and what it could be narrows what
 * its column can be.
 *
 * Two sets of types are kept for a column: those that hold all its values (`can`), and those among them that an expert
 * would take for these texts (`natural`): a number with a superfluous zero in front is a code, a whole number beyond
 * what a float64 holds exactly is no float. The first natural type in the order bool, int64, uint64, float64, date,
 * timestamp, bytes, string is the column's; where none is left, the first one that can be. A column is nullable when a
 * null was seen, or a record without it.
 */
#ifndef WORKER_INGEST_INFER_H
#define WORKER_INGEST_INFER_H

#include "store/schema/schema.h"
#include "worker/ingest/format.h"

typedef enum wk_role {
    WK_ROLE_PROPERTY,
    WK_ROLE_FROM,
    WK_ROLE_TO,
    WK_ROLE_NONE /* nothing of it is kept */
} wk_role;

typedef enum wk_kind {                /* of a value */
                       WK_KIND_PLAIN, /* text that may stand for any type */
                       WK_KIND_TEXT,  /* text that was written as text */
                       WK_KIND_NUMBER,
                       WK_KIND_WORD, /* true, false */
                       WK_KIND_LIST,
                       WK_KIND_OBJECT
} wk_kind;

typedef struct wk_infer_place {
    uint32_t argument;
    uint64_t line;
} wk_infer_place;

typedef struct wk_infer_column {
    char *name;    /* the property's: of `x:word` the x */
    char *heading; /* as it was met first */
    wk_role role;  /* of `from` and its like: once wk_infer_finish has decided */
    bool is_end;   /* :START_ID or :END_ID */
    bool is_id;    /* :ID */
    char *space;   /* of x:ID(space), :START_ID(space); NULL */
    bool declared; /* by the word behind the colon, or by the file's own schema */
    st_type type;  /* once it is decided */
    bool nullable; /* likewise */
    unsigned natural, can;
    bool valued, null;
    bool stored;          /* in a file of typed columns: whether there are nulls is known once its rows are read */
    uint64_t records;     /* that have it, null or not */
    wk_infer_place first; /* where it was met */
    wk_fault *unfit;      /* the first value that nothing can hold; NULL */
} wk_infer_column;

typedef struct wk_infer {
    wk_infer_column *columns;
    uint32_t count, room;
    uint64_t records;
    bool edge;     /* once wk_infer_finish has decided */
    bool row_id;   /* a column _row_id names its nodes */
    uint32_t next; /* where a look-up begins */
} wk_infer;

#define WK_INFER_COLUMNS_MAX (2 * ST_SCHEMA_PROPERTIES_MAX)
#define WK_INFER_NONE        UINT32_MAX

void wk_infer_free(wk_infer *infer); /* its insides; safe on a zeroed one */
/* The column that a heading (or a name of an object) stands for; WK_INFER_NONE: none. */
sluice_status wk_infer_find(wk_infer *infer, const char *name, size_t length, const wk_infer_place *place,
                            uint32_t *ret_column, sluice_error *err);
void wk_infer_null(wk_infer_column *column);
sluice_status wk_infer_value(wk_infer_column *column, wk_kind kind, const char *text, size_t length,
                             const wk_infer_place *place, sluice_error *err);
/* The file itself says what the column is. */
void wk_infer_declare(wk_infer_column *column, unsigned natural, unsigned can);
#define WK_INFER_BIT(type) (1u << (type))
/* Decides: node or edge, roles, types. What cannot be is a fault; with `ignore_unknown` such columns are left out. */
void wk_infer_finish(wk_infer *infer, bool ignore_unknown, wk_fault *ret_fault);

/* For the formats' survey: the columns that the names of a file stand for. */
sluice_status wk_survey_headings(wk_survey *survey, const wk_name *names, uint32_t count, uint64_t line,
                                 sluice_error *err);

#endif
