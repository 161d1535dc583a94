/*
 * The node types of an edge's ends (rule: coord/infer.h): a pair of candidates is tried until an end is met that one of
 * them does not have; then that one is given up for good. Most fall at their first row.
 */
#include "coord/infer_job.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct end_search {
    infer_job *job;
    infer_type *type;
    const char **candidates[2];
    uint32_t count[2], at[2];
    wk_fault farthest[2]; /* why the candidate that got farthest was given up */
    const char *nearest[2];
} end_search;

/* ---- candidates ---- */

static bool is_end(const wk_infer_column *column, int end)
{
    return column->role == (end == 0 ? WK_ROLE_FROM : WK_ROLE_TO);
}

/* The members that columns `from.A` name must be the key's. */
static bool members_fit(const infer_type *edge, int end, const st_type_def *node)
{
    uint32_t members = 0, fit = 0;

    for (uint32_t i = 0; i < edge->infer.count; i++) {
        const wk_infer_column *column = &edge->infer.columns[i];
        const char *dot = is_end(column, end) && !column->is_end ? strchr(column->heading, '.') : NULL;
        if (dot == NULL)
            continue;
        members++;
        for (uint32_t k = 0; k < node->key_count; k++)
            fit += strcmp(node->properties[node->key[k]].name, dot + 1) == 0;
    }
    return members == 0 || (members == node->key_count && fit == members);
}

static const char *space_of(const infer_type *edge, int end)
{
    for (uint32_t i = 0; i < edge->infer.count; i++)
        if (is_end(&edge->infer.columns[i], end) && edge->infer.columns[i].space)
            return edge->infer.columns[i].space;
    return NULL;
}

/* Does the type have nodes of this id space, by its headings or by its own name? */
static bool has_space(infer_job *job, const char *type, const char *space)
{
    const infer_type *given = infer_find(job, type);

    if (strcmp(type, space) == 0)
        return true;
    for (uint32_t i = 0; given && i < given->infer.count; i++)
        if (given->infer.columns[i].is_id && given->infer.columns[i].space &&
            strcmp(given->infer.columns[i].space, space) == 0)
            return true;
    return false;
}

static void add_candidate(end_search *s, int end, const st_schema *schema, const char *name)
{
    const st_type_def *node = st_schema_find(schema, name);

    for (uint32_t i = 0; i < s->count[end]; i++)
        if (strcmp(s->candidates[end][i], name) == 0)
            return;
    if (node && !node->edge && (node->key_count > 0 || infer_names(infer_find(s->job, name))) &&
        members_fit(s->type, end, node))
        s->candidates[end][s->count[end]++] = name;
}

static sluice_status find_candidates(end_search *s, int end, const st_schema *schema, sluice_error *err)
{
    infer_job *job = s->job;
    const char *space = space_of(s->type, end);
    uint32_t kept = 0;

    s->candidates[end] = calloc((size_t)schema->type_count + 1, sizeof(const char *));
    if (s->candidates[end] == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < job->type_count; i++)
        add_candidate(s, end, schema, job->types[i].name);
    for (uint32_t i = 0; job->base && i < job->base->type_count; i++)
        add_candidate(s, end, schema, job->base->types[i].name);
    for (uint32_t i = 0; space && i < s->count[end]; i++)
        if (has_space(job, s->candidates[end][i], space))
            s->candidates[end][kept++] = s->candidates[end][i];
    if (kept > 0)
        s->count[end] = kept;
    if (s->count[end] > 0)
        return SLUICE_OK;
    (void)pf_fail_private(err, SLUICE_USAGE, "there is no node type with a key for the ends of an edge type",
                          "there is no node type whose key the end \"%s\" of type %s could be",
                          end == 0 ? "from" : "to", s->type->name);
    const infer_type *keyless = infer_keyless(job);
    if (keyless)
        pf_hint(err, "%.100s has no key: see what is said of it, or write a schema file", keyless->name);
    else
        pf_hint(err, "give the files of its nodes, too, or write a schema file");
    return SLUICE_USAGE;
}

/* ---- keys of a node type ---- */

typedef struct node_keys {
    infer_keys *keys;
    const st_type_def *type;
} node_keys;

static sluice_status take_keys(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err)
{
    node_keys *n = context;
    const st_column *columns[ST_KEY_MEMBERS_MAX];
    bool fits;

    uint32_t count = n->type->key_count;

    for (uint32_t i = 0; i < count; i++)
        columns[i] = &rows->columns[n->type->key[i]];
    if (count == 0) /* by their names */
        columns[count++] = &rows->names;
    for (uint64_t row = 0; row < rows->rows; row++)
        PF_TRY(infer_keys_add(n->keys, columns, count, row, 0, &fits, err));
    *ret_stop = false;
    return SLUICE_OK;
}

static sluice_status take_graph_keys(const end_search *s, const st_type_def *base, infer_keys *keys, sluice_error *err)
{
    st_scan *scan = NULL;
    const st_batch *batch = NULL;
    sluice_status status;

    PF_TRY(st_scan_open(s->job->snapshot, base, base->key, base->key_count, &scan, err));
    for (;;) {
        const st_column *columns[ST_KEY_MEMBERS_MAX];
        bool fits;
        PF_GOTO(status, done, st_scan_next(scan, &batch, err));
        if (batch == NULL)
            break;
        for (uint32_t i = 0; i < base->key_count; i++)
            columns[i] = &batch->columns[i];
        for (uint64_t row = 0; row < batch->rows; row++)
            PF_GOTO(status, done, infer_keys_add(keys, columns, base->key_count, row, 0, &fits, err));
    }
done:
    st_scan_close(scan);
    return status;
}

/* The keys of one part, of the files and of the graph. */
static sluice_status read_keys(const end_search *s, const st_schema *schema, const char *name, infer_keys *keys,
                               sluice_error *err)
{
    infer_type *given = infer_find(s->job, name);
    const st_type_def *base = s->job->base ? st_schema_find(s->job->base, name) : NULL;
    node_keys n = {.keys = keys, .type = st_schema_find(schema, name)};
    wk_fault fault;
    int end;

    keys->count = 0;
    if (given) {
        PF_TRY(infer_walk(s->job, given, schema, take_keys, &n, &fault, &end, err));
        if (fault.present)
            return infer_fail(s->job, &fault, err);
    }
    if (base && !infer_names(given)) /* names are of this load alone */
        PF_TRY(take_graph_keys(s, base, keys, err));
    infer_keys_sort(keys);
    return SLUICE_OK;
}

static sluice_status count_keys(const end_search *s, const char *name, uint64_t *keys, sluice_error *err)
{
    const infer_type *given = infer_find(s->job, name);
    const st_type_def *base = s->job->base ? st_schema_find(s->job->base, name) : NULL;
    uint64_t rows = 0;

    *keys += given ? given->infer.records : 0;
    if (base)
        PF_TRY(st_snapshot_count(s->job->snapshot, base, &rows, err));
    *keys += rows;
    return SLUICE_OK;
}

/* ---- a pair ---- */

typedef struct pair_walk {
    const end_search *s;
    infer_keys *keys[2];
    wk_fault *fault;
    int *end;
} pair_walk;

static sluice_status check_end(pair_walk *w, const infer_rows *rows, uint64_t row, int end, sluice_error *err)
{
    const st_column *column = &rows->ends[end];
    bool asked, has;
    pf_buffer text = {0};
    char shown[WK_SHOWN_ROOM];

    PF_TRY(infer_keys_has(w->keys[end], &column, 1, row, &asked, &has, err));
    if (!asked || has)
        return SLUICE_OK;
    sluice_status status =
        column->type == ST_STRUCT ? st_value_json(column, row, &text, err) : st_value_text(column, row, &text, err);
    if (status == SLUICE_OK) {
        wk_fault_set(w->fault, SLUICE_CONSTRAINT_ENDPOINT, "column %s: there is no %s with the key %s (edge type %s)",
                     end == 0 ? "from" : "to", w->s->type->ends[end], wk_shown(text.data, text.length, shown),
                     w->s->type->name);
        infer_place_of(rows->places[row], w->fault);
        *w->end = end;
    }
    pf_buffer_free(&text);
    return status;
}

static sluice_status check_rows(void *context, const infer_rows *rows, bool *ret_stop, sluice_error *err)
{
    pair_walk *w = context;

    for (uint64_t row = 0; row < rows->rows && !w->fault->present; row++)
        for (int end = 0; end < 2 && !w->fault->present; end++)
            PF_TRY(check_end(w, rows, row, end, err));
    *ret_stop = w->fault->present;
    return SLUICE_OK;
}

/* Do the keys of these two types contain all ends? Else *ret_fault says which one does not (*ret_end), and where. */
static sluice_status check_pair(const end_search *s, wk_fault *ret_fault, int *ret_end, sluice_error *err)
{
    infer_type *type = s->type;
    bool one = strcmp(type->ends[0], type->ends[1]) == 0;
    infer_keys keys[2] = {0};
    pair_walk w = {.s = s, .keys = {&keys[0], one ? &keys[0] : &keys[1]}};
    st_schema *schema = NULL;
    uint64_t count = 0;
    wk_fault missing = {0};
    int missing_end = -1;
    sluice_status status;

    *ret_fault = (wk_fault){0};
    w.fault = &missing;
    w.end = &missing_end;
    PF_TRY(infer_schema(s->job, &schema, err));
    for (int end = 0; end < (one ? 1 : 2); end++)
        PF_GOTO(status, done, count_keys(s, type->ends[end], &count, err));
    keys[0].parts = keys[1].parts = infer_parts(count);
    for (uint32_t part = 0; part < keys[0].parts && !ret_fault->present; part++) {
        keys[0].part = keys[1].part = part;
        for (int end = 0; end < (one ? 1 : 2); end++)
            PF_GOTO(status, done, read_keys(s, schema, type->ends[end], &keys[end], err));
        PF_GOTO(status, done, infer_walk(s->job, type, schema, check_rows, &w, ret_fault, ret_end, err));
        if (missing.present) { /* it lies before whatever the walk may have met behind it */
            *ret_fault = missing;
            *ret_end = missing_end;
        }
    }
done:
    infer_keys_free(&keys[0]);
    infer_keys_free(&keys[1]);
    st_schema_free(schema);
    return status;
}

static bool is_farther(const wk_fault *a, const wk_fault *b)
{
    return !b->present || a->argument > b->argument || (a->argument == b->argument && a->line > b->line);
}

static sluice_status give_up(end_search *s, int end, sluice_error *err)
{
    infer_type *type = s->type;

    type->ends[0] = type->ends[1] = NULL;
    (void)infer_fail(s->job, &s->farthest[end], err);
    if (s->count[end] > 1)
        pf_hint(err, "none of %u node types has all of these ends as keys; %.100s is the one that comes nearest",
                s->count[end], s->nearest[end]);
    else if (infer_keyless(s->job))
        pf_hint(err, "%.100s has no key, so that no end can name its nodes: see what is said of it",
                infer_keyless(s->job)->name);
    return s->farthest[end].code;
}

sluice_status infer_edge(infer_job *job, infer_type *type, sluice_error *err)
{
    st_schema *schema = NULL;
    end_search *s = calloc(1, sizeof *s);
    wk_fault fault;
    int end = -1;
    sluice_status status;

    if (s == NULL)
        return pf_fail_memory(err);
    s->job = job;
    s->type = type;
    PF_GOTO(status, done, infer_schema(job, &schema, err));
    for (int i = 0; i < 2; i++)
        PF_GOTO(status, done, find_candidates(s, i, schema, err));
    for (;;) {
        for (int i = 0; i < 2; i++)
            type->ends[i] = s->candidates[i][s->at[i]];
        PF_GOTO(status, done, check_pair(s, &fault, &end, err));
        if (!fault.present)
            break;
        if (end < 0) {
            status = infer_fail(job, &fault, err);
            goto done;
        }
        if (is_farther(&fault, &s->farthest[end])) {
            s->farthest[end] = fault;
            s->nearest[end] = type->ends[end];
        }
        if (++s->at[end] == s->count[end]) {
            status = give_up(s, end, err);
            goto done;
        }
    }
    type->verified = true;
done:
    st_schema_free(schema);
    free(s->candidates[0]);
    free(s->candidates[1]);
    free(s);
    return status;
}
