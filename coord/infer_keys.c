/*
 * The key of a node type (rule: coord/infer.h). The search also reads all rows, so that what no load would take is
 * told.
 */
#include "coord/infer_job.h"
#include "store/fragment/key.h"
#include "store/read/key_text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct key_walk {
    infer_keys keys;
    uint32_t columns[ST_KEY_MEMBERS_MAX]; /* in the type's layout */
    uint32_t count;                       /* 0: rows are only looked at, */
    bool names;                           /* or have load-local names */
    bool fits;
} key_walk;

static sluice_status take_keys(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err)
{
    key_walk *w = context;
    const st_column *columns[ST_KEY_MEMBERS_MAX];

    for (uint32_t i = 0; i < w->count; i++)
        columns[i] = &rows->columns[w->columns[i]];
    if (w->names)
        columns[0] = &rows->names;
    uint32_t count = w->names ? 1 : w->count;
    for (uint64_t row = 0; row < rows->rows && count > 0 && w->fits; row++)
        if (!w->names || !st_column_is_null(columns[0], row))
            PF_TRY(infer_keys_add(&w->keys, columns, count, row, rows->places[row], &w->fits, err));
    *ret_stop = false;
    return SLUICE_OK;
}

static uint32_t property_of(const infer_type *type, uint32_t column)
{
    uint32_t i = 0;
    while (i < type->property_count && type->properties[i] != column)
        i++;
    return i;
}

typedef struct value_walk { /* the key at a place, for a message */
    const key_walk *walk;
    uint64_t place;
    char shown[WK_SHOWN_ROOM];
} value_walk;

static sluice_status take_value(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err)
{
    value_walk *v = context;
    const key_walk *w = v->walk;
    const st_column *columns[ST_KEY_MEMBERS_MAX];
    pf_buffer text = {0};
    sluice_status status = SLUICE_OK;
    uint64_t row = 0;

    while (row < rows->rows && rows->places[row] != v->place)
        row++;
    *ret_stop = row < rows->rows;
    if (!*ret_stop)
        return SLUICE_OK;
    for (uint32_t i = 0; i < w->count; i++)
        columns[i] = &rows->columns[w->columns[i]];
    if (w->names)
        columns[0] = &rows->names;
    status = st_key_to_text(columns, w->names ? 1 : w->count, row, &text, err);
    if (status == SLUICE_OK)
        (void)wk_shown(text.data, text.length, v->shown);
    pf_buffer_free(&text);
    return status;
}

/* That the key at one place is that of another one before. */
static sluice_status tell_twice(infer_job *job, infer_type *type, const st_schema *schema, const key_walk *w,
                                const char *heading, uint64_t place, uint64_t other, wk_fault *ret_twice,
                                sluice_error *err)
{
    value_walk v = {.walk = w, .place = place};
    wk_fault fault, first = {0};
    int end;

    PF_TRY(infer_walk(job, type, schema, take_value, &v, &fault, &end, err));
    infer_place_of(place, ret_twice);
    infer_place_of(other, &first);
    bool same = first.argument == ret_twice->argument;
    const char *file = job->spec.inputs[first.argument].path;
    wk_fault_set(ret_twice, SLUICE_KEY_CONFLICT, "column %s: the key %s is already on line %" PRIu64 "%s%s", heading,
                 v.shown, first.line, same ? "" : " of ", same ? "" : file);
    (void)snprintf(type->no_key, sizeof type->no_key,
                   "column %s has %s twice, on line %" PRIu64 "%s%s and line %" PRIu64 "%s%s", heading, v.shown,
                   first.line, same ? "" : " of ", same ? "" : file, ret_twice->line, same ? "" : " of ",
                   same ? "" : job->spec.inputs[ret_twice->argument].path);
    return SLUICE_OK;
}

/* Reads all rows, and looks whether a key occurs twice: the least place that has it again. */
static sluice_status look(infer_job *job, infer_type *type, const uint32_t *key, uint32_t count, bool *ret_unique,
                          wk_fault *ret_twice, sluice_error *err)
{
    key_walk w = {.count = count, .names = count == 0 && infer_names(type), .fits = true};
    st_schema *schema = NULL;
    wk_fault fault;
    int end;
    sluice_status status = SLUICE_OK;
    uint64_t twice = UINT64_MAX, other = 0;

    w.keys.parts = infer_parts(type->infer.records);
    for (uint32_t i = 0; i < count; i++)
        w.columns[i] = property_of(type, key[i]);
    PF_TRY(infer_schema(job, &schema, err));
    for (; w.keys.part < w.keys.parts && w.fits; w.keys.part++) {
        uint64_t place, before;
        w.keys.count = 0;
        PF_GOTO(status, done, infer_walk(job, type, schema, take_keys, &w, &fault, &end, err));
        if (fault.present) {
            status = infer_fail(job, &fault, err);
            goto done;
        }
        if (count == 0 && !w.names)
            break;
        infer_keys_sort(&w.keys);
        if (infer_keys_twice(&w.keys, &place, &before) && place < twice) {
            twice = place;
            other = before;
        }
    }
    type->verified = true;
    *ret_unique = w.fits && twice == UINT64_MAX;
    *ret_twice = (wk_fault){0};
    if (!w.fits)
        (void)snprintf(type->no_key, sizeof type->no_key, "a value of column %s is longer than a key may be (%u bytes)",
                       count > 0 ? type->infer.columns[key[0]].heading : "_row_id", ST_KEY_BYTES_MAX);
    if (!w.fits)
        wk_fault_set(ret_twice, SLUICE_RESOURCE_LIMIT, "a key is longer than the limit of %u bytes", ST_KEY_BYTES_MAX);
    if (twice != UINT64_MAX)
        status = tell_twice(job, type, schema, &w, count > 0 ? type->infer.columns[key[0]].heading : "_row_id", twice,
                            other, ret_twice, err);
done:
    infer_keys_free(&w.keys);
    st_schema_free(schema);
    return status;
}

static bool may_be_key(const wk_infer_column *column)
{
    return column->role == WK_ROLE_PROPERTY && !column->nullable && !column->null &&
           (column->type == ST_INT64 || column->type == ST_INT32 || column->type == ST_UINT64 ||
            column->type == ST_STRING);
}

/* Column of that name, in any case of letters; UINT32_MAX. */
static uint32_t find_named(const infer_type *type, const char *name)
{
    for (uint32_t i = 0; i < type->property_count; i++)
        if (strcasecmp(type->infer.columns[type->properties[i]].name, name) == 0)
            return type->properties[i];
    return UINT32_MAX;
}

static void tell_unfit(infer_type *type, const wk_infer_column *column)
{
    if (column->nullable || column->null)
        (void)snprintf(type->no_key, sizeof type->no_key, "column %s is empty in some row", column->heading);
    else
        (void)snprintf(type->no_key, sizeof type->no_key, "column %s is a %s; keys are whole numbers or texts",
                       column->heading, st_type_name(column->type));
}

sluice_status infer_node(infer_job *job, infer_type *type, sluice_error *err)
{
    char names[4][264] = {"id", "key"}, why[sizeof type->no_key] = "";
    bool unique = false;
    wk_fault twice;

    if (type->key_count > 0) { /* :ID */
        PF_TRY(look(job, type, type->key, type->key_count, &unique, &twice, err));
        return unique ? SLUICE_OK : infer_fail(job, &twice, err);
    }
    (void)snprintf(names[2], sizeof names[2], "%s_id", type->name);
    (void)snprintf(names[3], sizeof names[3], "%sid", type->name);
    for (size_t i = 0; i < sizeof names / sizeof *names && !type->infer.row_id; i++) {
        uint32_t column = find_named(type, names[i]);
        if (column == UINT32_MAX)
            continue;
        unique = false;
        if (may_be_key(&type->infer.columns[column]))
            PF_TRY(look(job, type, &column, 1, &unique, &twice, err));
        if (!may_be_key(&type->infer.columns[column])) { /* now, that all rows are read */
            unique = false;
            tell_unfit(type, &type->infer.columns[column]);
        }
        if (unique) {
            type->key[0] = column;
            type->key_count = 1;
            return SLUICE_OK;
        }
        if (why[0] == '\0')
            memcpy(why, type->no_key, sizeof why);
    }
    memcpy(type->no_key, why, sizeof why);
    if (type->verified)
        return SLUICE_OK;
    PF_TRY(look(job, type, NULL, 0, &unique, &twice, err));
    return unique ? SLUICE_OK : infer_fail(job, &twice, err);
}
