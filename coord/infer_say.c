/*
 * What inference tells people about each type: what is taken for what is else seen only when something is missed.
 */
#include "coord/infer_job.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct say_line {
    char text[2048]; /* longer lines are cut */
    size_t length;
} say_line;

static void add(say_line *line, const char *fmt, ...) PF_PRINTF(2, 3);

static void add(say_line *line, const char *fmt, ...)
{
    va_list arguments;

    va_start(arguments, fmt);
    int length = vsnprintf(line->text + line->length, sizeof line->text - line->length, fmt, arguments);
    va_end(arguments);
    line->length += length > 0 ? (size_t)length : 0;
    if (line->length >= sizeof line->text)
        line->length = sizeof line->text - 1;
}

static void add_columns(say_line *line, const infer_type *type)
{
    add(line, ", %u %s%s", type->property_count, type->property_count == 1 ? "column" : "columns",
        type->edge ? " beside from and to" : "");
}

static void add_nodes(say_line *line, const infer_type *type)
{
    add(line, type->key_count > 0 ? "nodes, key " : "nodes without a key");
    for (uint32_t i = 0; i < type->key_count; i++)
        add(line, "%s%s", i > 0 ? ", " : "", type->infer.columns[type->key[i]].name);
    add_columns(line, type);
    if (type->key_count > 0)
        return;
    if (type->infer.row_id)
        add(line, ": _row_id names them for the edges of the same load");
    else if (type->no_key[0])
        add(line, ": %s", type->no_key);
    else
        add(line, ": none is called id, key, %s_id or %sid (a file of edges has columns from and to)", type->name,
            type->name);
}

void infer_say(const infer_job *job, const infer_type *type)
{
    say_line line = {0};

    if (job->said == NULL)
        return;
    add(&line, "%s: ", type->name);
    if (type->known)
        add(&line, "%s, as the graph has them", type->edge ? "edges" : "nodes");
    else if (type->edge) {
        add(&line, "edges from %s to %s", type->ends[0], type->ends[1]);
        add_columns(&line, type);
    } else
        add_nodes(&line, type);
    job->said(job->said_context, line.text);
}

const infer_type *infer_keyless(const infer_job *job)
{
    for (uint32_t i = 0; i < job->type_count; i++) {
        const infer_type *type = &job->types[i];
        if (!type->edge && !type->keyed && type->key_count == 0 && !infer_names(type))
            return type;
    }
    return NULL;
}
