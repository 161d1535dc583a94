/*
 * Batches: changes as JSON Lines, as `sluice mutate` reads them, whether they came as text or value by value.
 *
 * A change that is being built is one line behind the finished ones; what is wrong with it is kept until its end, which
 * drops the line then.
 */
#include "lib/batch.h"
#include "store/format/json.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sluice_batch {
    pf_buffer lines;
    size_t whole; /* bytes of finished lines */
    bool building;
    sluice_status status; /* of the change that is being built */
    sluice_error error;
    st_json json;
    int part;      /* that values go to; -1: none is open */
    unsigned done; /* parts that are over, as bits */
    bool object;   /* the open part is an object */
};

static const char *const part_names[] = {
    [SLUICE_KEY] = "key", [SLUICE_FROM] = "from", [SLUICE_TO] = "to",         [SLUICE_ROW_ID] = "_row_id",
    [SLUICE_SET] = "set", [SLUICE_IF] = "if",     [SLUICE_EQUALS] = "equals",
};

sluice_status sluice_batch_new(sluice_batch **ret_batch, sluice_error *err)
{
    PF_TRY(lib_need(ret_batch, "ret_batch", err));
    *ret_batch = calloc(1, sizeof **ret_batch);
    return *ret_batch ? SLUICE_OK : pf_fail_memory(err);
}

void sluice_batch_free(sluice_batch *batch)
{
    if (!batch)
        return;
    pf_buffer_free(&batch->lines);
    free(batch);
}

void sluice_batch_clear(sluice_batch *batch)
{
    batch->lines.length = batch->whole = 0;
    batch->building = false;
}

sluice_status lib_batch_text(const sluice_batch *batch, const char **ret_text, size_t *ret_length, sluice_error *err)
{
    PF_TRY(lib_need(batch, "the batch", err));
    if (batch->building)
        return pf_fail(err, SLUICE_USAGE, "a change is begun and not ended");
    *ret_text = batch->lines.data ? (const char *)batch->lines.data : "";
    *ret_length = batch->whole;
    return SLUICE_OK;
}

sluice_status sluice_batch_json(sluice_batch *batch, const char *lines, size_t length, sluice_error *err)
{
    PF_TRY(lib_need(batch, "the batch", err));
    PF_TRY(lib_need(lines, "the text", err));
    if (batch->building)
        return pf_fail(err, SLUICE_USAGE, "a change is begun and not ended");
    sluice_status status = pf_buffer_append(&batch->lines, lines, length, err);
    if (status == SLUICE_OK && length > 0 && lines[length - 1] != '\n')
        status = pf_buffer_append(&batch->lines, "\n", 1, err);
    if (status == SLUICE_OK)
        batch->whole = batch->lines.length;
    batch->lines.length = batch->whole;
    return status;
}

/* ---- value by value ---- */

static void refuse(sluice_batch *batch, const char *why)
{
    if (batch->status == SLUICE_OK)
        batch->status = pf_fail(&batch->error, SLUICE_USAGE, "%s", why);
}

void sluice_batch_begin(sluice_batch *batch, sluice_op op, sluice_kind kind, const char *type)
{
    static const char *const ops[] = {[SLUICE_INSERT] = "insert",
                                      [SLUICE_UPSERT] = "upsert",
                                      [SLUICE_UPDATE] = "update",
                                      [SLUICE_DELETE] = "delete",
                                      [SLUICE_ASSERT] = "assert"};
    bool known = (unsigned)op < sizeof ops / sizeof ops[0] && (unsigned)kind <= SLUICE_EDGE && type;
    if (batch->building) {
        refuse(batch, "a change is begun before the one before it is ended");
        return;
    }
    batch->building = true;
    batch->status = SLUICE_OK;
    pf_error_clear(&batch->error);
    batch->part = -1;
    batch->done = 0;
    batch->object = false;
    st_json_begin(&batch->json, &batch->lines);
    st_json_object(&batch->json);
    if (!known) {
        refuse(batch, "no such operation or kind, or the type is missing (NULL)");
        return;
    }
    st_json_name(&batch->json, "op");
    st_json_text(&batch->json, ops[op]);
    st_json_name(&batch->json, kind == SLUICE_NODE ? "node" : "edge");
    st_json_text(&batch->json, type);
}

static void end_part(sluice_batch *batch)
{
    if (batch->object)
        st_json_object_end(&batch->json);
    if (batch->part >= 0)
        batch->done |= 1u << batch->part;
    batch->part = -1;
    batch->object = false;
}

/* False: the value is not to be written. */
static bool begin_value(sluice_batch *batch, sluice_part part, const char *name)
{
    if (!batch->building)
        return false;
    if (batch->status != SLUICE_OK)
        return false;
    if ((unsigned)part >= sizeof part_names / sizeof part_names[0]) {
        refuse(batch, "there is no such part of a change");
        return false;
    }
    bool named = part == SLUICE_SET || part == SLUICE_IF || part == SLUICE_EQUALS;
    if ((named && !name) || (part == SLUICE_ROW_ID && name)) {
        refuse(batch, named ? "a property is set or compared by its name" : "a row id has no name");
        return false;
    }
    if ((int)part != batch->part) {
        end_part(batch);
        if (batch->done & 1u << part) {
            refuse(batch, "values of one part of a change do not follow each other");
            return false;
        }
        batch->part = (int)part;
        batch->object = name != NULL;
        st_json_name(&batch->json, part_names[part]);
        if (name)
            st_json_object(&batch->json);
    } else if (!batch->object || !name) {
        refuse(batch, "a part of a change is one value without a name, or several with names");
        return false;
    }
    if (name)
        st_json_name(&batch->json, name);
    return true;
}

void sluice_batch_null(sluice_batch *batch, sluice_part part, const char *name)
{
    if (begin_value(batch, part, name))
        st_json_null(&batch->json);
}

void sluice_batch_bool(sluice_batch *batch, sluice_part part, const char *name, bool value)
{
    if (begin_value(batch, part, name))
        st_json_bool(&batch->json, value);
}

void sluice_batch_int64(sluice_batch *batch, sluice_part part, const char *name, int64_t value)
{
    if (begin_value(batch, part, name))
        st_json_number(&batch->json, value);
}

void sluice_batch_uint64(sluice_batch *batch, sluice_part part, const char *name, uint64_t value)
{
    if (begin_value(batch, part, name))
        st_json_unsigned(&batch->json, value);
}

void sluice_batch_double(sluice_batch *batch, sluice_part part, const char *name, double value)
{
    if (!begin_value(batch, part, name))
        return;
    if (isfinite(value))
        st_json_double(&batch->json, value);
    else
        st_json_text(&batch->json, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

void sluice_batch_text(sluice_batch *batch, sluice_part part, const char *name, const char *text, size_t length)
{
    if (!text && length > 0)
        refuse(batch, "a text is missing (NULL)");
    else if (begin_value(batch, part, name))
        st_json_bytes_text(&batch->json, text ? text : "", length);
}

void sluice_batch_flag(sluice_batch *batch, sluice_flag flag)
{
    static const char *const names[] = {
        [SLUICE_DETACH] = "detach", [SLUICE_ABSENT] = "absent", [SLUICE_PRESENT] = "present"};
    if (!batch->building || batch->status != SLUICE_OK)
        return;
    if ((unsigned)flag >= sizeof names / sizeof names[0]) {
        refuse(batch, "there is no such flag");
        return;
    }
    end_part(batch);
    st_json_name(&batch->json, names[flag]);
    st_json_bool(&batch->json, true);
}

sluice_status sluice_batch_end(sluice_batch *batch, sluice_error *err)
{
    PF_TRY(lib_need(batch, "the batch", err));
    if (!batch->building)
        return pf_fail(err, SLUICE_USAGE, "no change is begun");
    batch->building = false;
    if (batch->status != SLUICE_OK) {
        batch->lines.length = batch->whole;
        if (err)
            *err = batch->error;
        return batch->status;
    }
    end_part(batch);
    st_json_object_end(&batch->json);
    sluice_status status = st_json_end(&batch->json, true, err);
    if (status == SLUICE_INTERNAL)
        status = pf_fail(err, SLUICE_USAGE, "a name or text is not UTF-8");
    if (status == SLUICE_OK)
        batch->whole = batch->lines.length;
    batch->lines.length = batch->whole;
    return status;
}
