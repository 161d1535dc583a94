/*
 * Files of tables without the lists that name them (salvage_files.h).
 *
 * Names begin with the id of the attempt that made them, and those ascend with time: that order stands in for the
 * order of commits, which only the log knew. It is a guess, and told as one. A page of a list names fragments with
 * their digests, row ids and deleted positions; of several pages the newest counts.
 */
#include "store/read/salvage_files.h"

#include "platform/check.h"
#include "store/format/document.h"
#include "store/format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MAX     (64u << 20)
#define ATTEMPT_TEXT 36u /* an attempt's id */

/* ---- names in a folder ---- */

typedef struct names {
    char **items;
    size_t count;
    const char *suffix;
} names;

static sluice_status note_name(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    names *found = context;
    size_t length = strlen(name), suffix = strlen(found->suffix);
    if (kind != PF_KIND_FILE || length < suffix || strcmp(name + length - suffix, found->suffix) != 0)
        return SLUICE_OK;
    char **grown = realloc(found->items, (found->count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    found->items = grown;
    grown[found->count] = strdup(name);
    return grown[found->count] ? (found->count++, SLUICE_OK) : pf_fail_memory(err);
}

/* The newest attempt first; of one attempt in the order of its numbers. */
static int by_age(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    int attempts = strncmp(right, left, ATTEMPT_TEXT);
    size_t left_length = strlen(left), right_length = strlen(right);
    if (attempts != 0)
        return attempts;
    if (left_length != right_length)
        return left_length < right_length ? -1 : 1;
    return strcmp(left, right);
}

static void names_free(names *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->items[i]);
    free(found->items);
    *found = (names){0};
}

/* A folder that is not there has no names. */
static sluice_status list_names(st_salvage *salvage, const char *folder, const char *suffix, names *ret_names,
                                sluice_error *err)
{
    sluice_error local = {0};
    *ret_names = (names){.suffix = suffix};
    sluice_status status = pf_list(st_graph_volume(salvage->graph), folder, note_name, ret_names, &local);
    if (status != SLUICE_OK) {
        names_free(ret_names);
        if (!st_salvage_is_damage(status) && err)
            *err = local;
        return st_salvage_is_damage(status) ? SLUICE_OK : status;
    }
    if (ret_names->count > 0)
        qsort(ret_names->items, ret_names->count, sizeof(*ret_names->items), by_age);
    return SLUICE_OK;
}

/* ---- what list pages say ---- */

typedef struct facts {
    st_item *items; /* by name, each once */
    size_t count;
} facts;

static void facts_free(facts *known)
{
    for (size_t i = 0; i < known->count; i++)
        st_item_free(&known->items[i]);
    free(known->items);
    *known = (facts){0};
}

static size_t facts_at(const facts *known, const char *name, bool *ret_found)
{
    size_t low = 0, high = known->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(known->items[middle].add.fragment.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = low < known->count && strcmp(known->items[low].add.fragment.name, name) == 0;
    return low;
}

/* Takes over the items of a page that no newer one has named. */
static sluice_status take_page(facts *known, st_list_node *page, sluice_error *err)
{
    for (uint32_t i = 0; i < page->count; i++) {
        bool found = false;
        size_t at = facts_at(known, page->items[i].add.fragment.name, &found);
        if (found)
            continue;
        st_item *grown = realloc(known->items, (known->count + 1) * sizeof(*grown));
        if (!grown)
            return pf_fail_memory(err);
        known->items = grown;
        memmove(grown + at + 1, grown + at, (known->count - at) * sizeof(*grown));
        grown[at] = page->items[i];
        page->items[i] = (st_item){0};
        known->count++;
    }
    return SLUICE_OK;
}

static sluice_status read_pages(st_salvage *salvage, uint64_t table, facts *ret_known, sluice_error *err)
{
    names pages = {0};
    char folder[64], path[320];
    (void)snprintf(folder, sizeof(folder), "tables/%llu/lists", (unsigned long long)table);
    PF_TRY(list_names(salvage, folder, ".json", &pages, err));
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < pages.count && status == SLUICE_OK; i++) {
        pf_buffer bytes = {0};
        st_list_node page = {.level = 0};
        (void)snprintf(path, sizeof(path), "%s/%s", folder, pages.items[i]);
        /* pages of other levels, edits, and what is damaged name nothing */
        if (st_document_read(st_graph_volume(salvage->graph), path, PAGE_MAX, &bytes, NULL) == SLUICE_OK &&
            st_list_node_decode(table, bytes.data, bytes.length, &page, NULL) == SLUICE_OK)
            status = take_page(ret_known, &page, err);
        st_list_node_free(&page);
        pf_buffer_free(&bytes);
    }
    names_free(&pages);
    return status;
}

/* ---- fragments ---- */

static sluice_status unknown_ids(st_salvage *salvage, uint64_t table, size_t ordinal, st_item *item, sluice_error *err)
{
    char path[160];
    item->low = ST_FILES_NO_ROW + ((uint64_t)ordinal << 32);
    if (!item->add.fragment.explicit_ids) {
        item->add.first_row = item->low;
        item->high = item->low + (item->add.fragment.rows > 0 ? item->add.fragment.rows - 1 : 0);
        return SLUICE_OK;
    }
    sluice_error local = {0};
    sluice_status status =
        st_row_ids_bounds(st_graph_volume(salvage->graph), table, &item->add, &item->low, &item->high, &local);
    if (status == SLUICE_OK)
        return SLUICE_OK;
    if (!st_salvage_is_damage(status)) {
        if (err)
            *err = local;
        return status;
    }
    (void)snprintf(path, sizeof(path), "tables/%llu/fragments/%s", (unsigned long long)table, item->add.fragment.name);
    item->add.fragment.rows = 0; /* none of it can be given */
    return st_salvage_lose(salvage, path, err, "all of it (%s)", local.message);
}

static sluice_status give(st_salvage *salvage, uint64_t table, const char *name, size_t ordinal, facts *known,
                          st_item_fn *each, void *context, sluice_error *err)
{
    bool found = false;
    size_t at = facts_at(known, name, &found);
    st_item item = {0};
    pf_buffer type = {0};
    sluice_error local = {0};
    char path[320];
    sluice_status status = SLUICE_OK;
    if (found) {
        item = known->items[at];
        memmove(known->items + at, known->items + at + 1, (--known->count - at) * sizeof(*known->items));
    } else {
        status = st_fragment_look(st_graph_volume(salvage->graph), table, name, &item.add.fragment, &type, &local);
        pf_buffer_free(&type);
        if (st_salvage_is_damage(status)) {
            (void)snprintf(path, sizeof(path), "tables/%llu/fragments/%s", (unsigned long long)table, name);
            return st_salvage_lose(salvage, path, err, "all of it (%s)", local.message);
        }
        if (status != SLUICE_OK) {
            if (err)
                *err = local;
            return status;
        }
        item.dead_loaded = true;
        status = unknown_ids(salvage, table, ordinal, &item, err);
    }
    if (status == SLUICE_OK && item.add.fragment.rows > 0)
        status = each(context, &item, err);
    st_item_free(&item);
    return status;
}

sluice_status st_files_each(st_salvage *salvage, uint64_t table, st_known_fragment_fn *known, st_item_fn *each,
                            void *context, sluice_error *err)
{
    char folder[64];
    names files = {0};
    facts said = {0};
    sluice_status status;
    (void)snprintf(folder, sizeof(folder), "tables/%llu/fragments", (unsigned long long)table);
    PF_TRY(list_names(salvage, folder, ".arrow", &files, err));
    PF_GOTO(status, done, read_pages(salvage, table, &said, err));
    for (size_t i = 0; i < files.count; i++)
        if (!known(context, files.items[i]))
            PF_GOTO(status, done, give(salvage, table, files.items[i], i, &said, each, context, err));
done:
    facts_free(&said);
    names_free(&files);
    return status;
}

/* ---- a schema from what fragments say ---- */

typedef struct source { /* of a type that was found */
    uint64_t from, to;  /* edges: the tables of the ends */
    bool own;           /* a fragment of its own table described it; else one of an edge's that ends there */
} source;

typedef struct collection {
    st_schema *schema; /* the types, by table: in no order that a schema has */
    source *sources;   /* in step with them */
} collection;

static sluice_status make_room(collection *types, uint32_t at, sluice_error *err)
{
    st_schema *schema = types->schema;
    size_t count = schema->type_count, behind = count - at;
    st_type_def *defs = realloc(schema->types, (count + 1) * sizeof(*defs));
    if (!defs)
        return pf_fail_memory(err);
    schema->types = defs;
    source *sources = realloc(types->sources, (count + 1) * sizeof(*sources));
    if (!sources)
        return pf_fail_memory(err);
    types->sources = sources;
    memmove(defs + at + 1, defs + at, behind * sizeof(*defs));
    memmove(sources + at + 1, sources + at, behind * sizeof(*sources));
    defs[at] = (st_type_def){0};
    schema->type_count++;
    return SLUICE_OK;
}

/* Exchanges the type for what is known so far of its table, when it is better. */
static sluice_status collect(collection *types, st_schema *said, st_type_def *def, bool own, sluice_error *err)
{
    const st_schema *schema = types->schema;
    source from = {.own = own};
    uint32_t at = 0;
    while (at < schema->type_count && schema->types[at].table < def->table)
        at++;
    bool there = at < schema->type_count && schema->types[at].table == def->table;
    if (there && (types->sources[at].own || !own))
        return SLUICE_OK;
    if (def->edge) {
        from.from = said->types[def->from].table;
        from.to = said->types[def->to].table;
    }
    if (!there)
        PF_TRY(make_room(types, at, err));
    st_type_def before = schema->types[at];
    schema->types[at] = *def;
    types->sources[at] = from;
    *def = before;
    return SLUICE_OK;
}

/* The newest fragment of the table that says what its type is. */
static sluice_status look_at_table(st_salvage *salvage, uint64_t table, collection *types, sluice_error *err)
{
    char folder[64];
    names files = {0};
    sluice_status status = SLUICE_OK;
    bool done = false;
    (void)snprintf(folder, sizeof(folder), "tables/%llu/fragments", (unsigned long long)table);
    PF_TRY(list_names(salvage, folder, ".arrow", &files, err));
    for (size_t i = 0; i < files.count && !done && status == SLUICE_OK; i++) {
        st_fragment_info info;
        pf_buffer text = {0};
        st_schema *schema = NULL;
        if (st_fragment_look(st_graph_volume(salvage->graph), table, files.items[i], &info, &text, NULL) == SLUICE_OK &&
            st_schema_decode(text.data, text.length, &schema, NULL) == SLUICE_OK) {
            /* from the end on: an edge finds its ends while they are there */
            for (uint32_t k = schema->type_count; k-- > 0 && status == SLUICE_OK;) {
                bool own = schema->types[k].table == table;
                done = done || own;
                status = collect(types, schema, &schema->types[k], own, err);
            }
        }
        st_schema_free(schema);
        pf_buffer_free(&text);
    }
    names_free(&files);
    return status;
}

typedef struct tables {
    uint64_t *items;
    size_t count;
} tables;

static sluice_status note_table(void *context, const char *name, pf_kind kind, sluice_error *err)
{
    tables *found = context;
    uint64_t table;
    if (kind != PF_KIND_FOLDER || !st_json_text_is_u64(name, &table))
        return SLUICE_OK;
    uint64_t *grown = realloc(found->items, (found->count + 1) * sizeof(*grown));
    if (!grown)
        return pf_fail_memory(err);
    found->items = grown;
    grown[found->count++] = table;
    return SLUICE_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Moves one type into the schema; one that does not fit there is left where it is, and told. */
static sluice_status put_type(st_salvage *salvage, st_type_def *def, const source *ends, st_schema *schema,
                              sluice_error *err)
{
    char object[64];
    const st_type_def *from = def->edge ? st_schema_find_table(schema, ends->from) : NULL;
    const st_type_def *to = def->edge ? st_schema_find_table(schema, ends->to) : NULL;
    (void)snprintf(object, sizeof(object), "tables/%llu", (unsigned long long)def->table);
    if (st_schema_find(schema, def->name))
        return st_salvage_guess(salvage, object, err, "it is left out: a newer type has its name");
    if (def->edge && (!from || !to))
        return st_salvage_guess(salvage, object, err, "it is left out: a type that its edges end at is");
    if (def->edge) {
        def->from = (uint32_t)(from - schema->types);
        def->to = (uint32_t)(to - schema->types);
    }
    schema->types[schema->type_count++] = *def;
    *def = (st_type_def){0};
    return SLUICE_OK;
}

/* Nodes first; newer tables first, so that of two of one name the newer has it. */
static sluice_status assemble(st_salvage *salvage, collection *types, st_schema *schema, sluice_error *err)
{
    for (int edges = 0; edges <= 1; edges++)
        for (uint32_t i = types->schema->type_count; i-- > 0;) {
            st_type_def *def = &types->schema->types[i];
            if (def->name && def->edge == (edges == 1))
                PF_TRY(put_type(salvage, def, &types->sources[i], schema, err));
        }
    return SLUICE_OK;
}

sluice_status st_files_schema(st_salvage *salvage, st_schema **ret_schema, sluice_error *err)
{
    tables found = {0};
    sluice_error local = {0};
    st_schema *schema = calloc(1, sizeof(*schema));
    collection types = {.schema = calloc(1, sizeof(*types.schema))};
    sluice_status status = schema && types.schema ? SLUICE_OK : pf_fail_memory(err);
    *ret_schema = NULL;
    if (status != SLUICE_OK)
        goto done;
    status = pf_list(st_graph_volume(salvage->graph), "tables", note_table, &found, &local);
    if (status != SLUICE_OK && !st_salvage_is_damage(status)) {
        if (err)
            *err = local;
        goto done;
    }
    if (found.count > 0)
        qsort(found.items, found.count, sizeof(*found.items), by_number);
    for (size_t i = 0; i < found.count; i++)
        PF_GOTO(status, done, look_at_table(salvage, found.items[i], &types, err));
    schema->types = calloc((size_t)types.schema->type_count + 1, sizeof(*schema->types));
    status = schema->types ? assemble(salvage, &types, schema, err) : pf_fail_memory(err);
    if (status == SLUICE_OK && schema->type_count > 0) {
        *ret_schema = schema;
        schema = NULL;
    }
done:
    st_schema_free(types.schema);
    free(types.sources);
    free(found.items);
    st_schema_free(schema);
    return status;
}
