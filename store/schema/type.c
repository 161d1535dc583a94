/*
 * The table of value types: their names in schema files and messages, and their width in a column.
 */
#include "store/schema/type.h"

#include <string.h>

typedef struct type_row {
    const char *name;
    size_t width;
    int property; /* may a property of a schema file have it? */
} type_row;

static const type_row types[] = {
    [ST_BOOL] = {"bool", 0, 1},           [ST_INT32] = {"int32", 4, 1},     [ST_INT64] = {"int64", 8, 1},
    [ST_UINT64] = {"uint64", 8, 1},       [ST_FLOAT32] = {"float32", 4, 1}, [ST_FLOAT64] = {"float64", 8, 1},
    [ST_STRING] = {"string", 0, 1},       [ST_BYTES] = {"bytes", 0, 1},     [ST_DATE] = {"date", 4, 1},
    [ST_TIMESTAMP] = {"timestamp", 8, 1}, [ST_ROW_ID] = {"row id", 8, 0},   [ST_COMMIT_ID] = {"commit id", 16, 0},
    [ST_STRUCT] = {"struct", 0, 0},
};
#define TYPE_COUNT (sizeof types / sizeof types[0])

const char *st_type_name(st_type type)
{
    return (size_t)type < TYPE_COUNT ? types[type].name : "unknown";
}

int st_type_parse(const char *name, st_type *ret_type)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].property && strcmp(types[i].name, name) == 0) {
            *ret_type = (st_type)i;
            return 1;
        }
    }
    return 0;
}

int st_type_widens(st_type from, st_type to)
{
    return (from == ST_INT32 && to == ST_INT64) || (from == ST_FLOAT32 && to == ST_FLOAT64);
}

int st_type_reads_as(st_type stored, st_type wanted)
{
    return stored == wanted || st_type_widens(stored, wanted);
}

size_t st_type_width(st_type type)
{
    return (size_t)type < TYPE_COUNT ? types[type].width : 0;
}
