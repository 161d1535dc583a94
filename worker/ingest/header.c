#include "worker/ingest/header.h"
#include "worker/ingest/hints.h"

#include "store/schema/nearest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADER_MAX (UINT64_C(1) << 20) /* bytes of a header; a longer "header" is no table */
#define UNFILLED   UINT32_MAX

/* Which input column fills what; for finding columns that are named twice and what is missing. */
typedef struct resolver {
    const st_schema *schema;
    const st_type_def *type;
    wk_mapping *mapping;
    uint32_t column_count;
    uint32_t *filled_by;                  /* per column of the type */
    uint32_t ends[2][ST_KEY_MEMBERS_MAX]; /* per member of from and to */
    uint32_t local_id;                    /* the load-local name of a node without key */
    wk_fault *fault;
} resolver;

static bool text_is(const wk_name *name, const char *word)
{
    return name->length == strlen(word) && (name->length == 0 || memcmp(name->text, word, name->length) == 0);
}

static bool text_is_caseless(const wk_name *name, const char *word)
{
    return name->length == strlen(word) && strncasecmp(name->text, word, name->length) == 0;
}

static const st_type_def *end_type(const resolver *r, unsigned end)
{
    return &r->schema->types[end == 0 ? r->type->from : r->type->to];
}

static uint32_t find_property(const st_type_def *type, const wk_name *name)
{
    for (uint32_t i = 0; i < type->property_count; i++)
        if (text_is(name, type->properties[i].name))
            return i;
    return UNFILLED;
}

static void refuse(resolver *r, uint32_t field, const char *what, const wk_name *name)
{
    char shown[WK_SHOWN_ROOM];

    r->fault->column = field;
    wk_fault_set(r->fault, SLUICE_INPUT_SYNTAX, "column %s %s", wk_shown(name->text, name->length, shown), what);
    wk_hint(r->fault, "correct the heading; a name of x:IGNORE leaves a column out");
}

/* Gives a place to an input column; false when another one has it already. */
static bool fill(resolver *r, uint32_t field, uint32_t *place, const wk_name *name)
{
    if (*place != UNFILLED) {
        refuse(r, field, "is named twice", name);
        if (!text_is(name, r->mapping->targets[*place].name))
            wk_fault_set(r->fault, SLUICE_INPUT_SYNTAX, "columns \"%s\" and \"%.*s\" stand for the same thing twice",
                         r->mapping->targets[*place].name, (int)name->length, name->text);
        wk_hint(r->fault, "leave one of them out; a name of x:IGNORE does that");
        return false;
    }
    *place = field;
    return true;
}

static void take_column(resolver *r, uint32_t field, uint32_t column, const wk_name *name)
{
    if (!fill(r, field, &r->filled_by[column], name))
        return;
    r->mapping->targets[field].kind = WK_TARGET_COLUMN;
    r->mapping->targets[field].column = column;
    if (r->type->edge && column < 2)
        for (uint32_t m = 0; m < ST_KEY_MEMBERS_MAX; m++)
            if (r->ends[column][m] != UNFILLED)
                refuse(r, field, "is given whole and by its members", name);
}

static void take_member(resolver *r, uint32_t field, unsigned end, uint32_t member, const wk_name *name)
{
    if (end_type(r, end)->key_count == 1) {
        take_column(r, field, end, name);
        return;
    }
    if (r->filled_by[end] != UNFILLED)
        refuse(r, field, "is given whole and by its members", name);
    else if (fill(r, field, &r->ends[end][member], name)) {
        r->mapping->targets[field].kind = WK_TARGET_MEMBER;
        r->mapping->targets[field].column = end;
        r->mapping->targets[field].member = member;
    }
}

/* `from.A`: true when the name has that form and A is a member of the end's key. */
static bool take_dotted(resolver *r, uint32_t field, const wk_name *name)
{
    static const char *const prefix[2] = {"from.", "to."};

    for (unsigned end = 0; end < 2; end++) {
        size_t length = strlen(prefix[end]);
        if (name->length <= length || memcmp(name->text, prefix[end], length) != 0)
            continue;
        wk_name rest = {name->text + length, name->length - length};
        const st_type_def *type = end_type(r, end);
        for (uint32_t m = 0; m < type->key_count; m++)
            if (text_is(&rest, type->properties[type->key[m]].name)) {
                take_member(r, field, end, m, name);
                return true;
            }
    }
    return false;
}

/* A column that names its rows for the edges of the load; it may fill a property, too. */
static void name_row(resolver *r, uint32_t field, const wk_name *name)
{
    if (!r->fault->present && fill(r, field, &r->local_id, name) && !r->type->edge)
        r->mapping->targets[field].names = WK_NAMES_ROW;
}

/* A name without a colon, taken as it stands. False: not known (yet). */
static bool take_plain(resolver *r, uint32_t field, const wk_name *name)
{
    const st_type_def *type = r->type;
    uint32_t property = find_property(type, name);

    if (type->edge && (text_is(name, "from") || text_is(name, "to")))
        take_column(r, field, text_is(name, "to"), name);
    else if (property != UNFILLED)
        take_column(r, field, property + (type->edge ? 2 : 0), name);
    else if (text_is(name, "_row_id") && (type->edge ? type->identity == ST_EDGE_PARALLEL : type->key_count == 0))
        name_row(r, field, name); /* not kept */
    else if (!type->edge || !take_dotted(r, field, name))
        return false;
    return true;
}

/* The usual other names of an edge's ends, where nothing else gives that end. */
static bool take_synonym(resolver *r, uint32_t field, const wk_name *name)
{
    static const char *const words[2][2] = {{"src", "source"}, {"dst", "target"}};

    for (unsigned end = 0; r->type->edge && end < 2; end++)
        for (unsigned i = 0; i < 2; i++)
            if (text_is(name, words[end][i])) {
                take_column(r, field, end, name);
                return true;
            }
    return false;
}

/* Type words that may stand behind a colon: those of neo4j-admin and ours. The schema decides what the column is. */
static bool is_type_word(const wk_name *word)
{
    static const char *const words[] = {"int",  "long",   "float", "double", "boolean",   "byte",     "short",
                                        "char", "string", "date",  "time",   "localtime", "datetime", "localdatetime"};
    st_type type;
    char copy[32];

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_is_caseless(word, words[i]))
            return true;
    if (word->length >= sizeof copy)
        return false;
    memcpy(copy, word->text, word->length);
    copy[word->length] = '\0';
    return st_type_parse(copy, &type) == 1;
}

/* `x:ID`: the property x, else the key. */
static void take_id(resolver *r, uint32_t field, const wk_name *name, const wk_name *whole)
{
    uint32_t property = find_property(r->type, name);

    if (r->type->edge)
        refuse(r, field, "gives an id to an edge", whole);
    else if (r->type->key_count == 0) {
        if (property != UNFILLED)
            take_column(r, field, property, whole);
        name_row(r, field, whole);
    } else if (property != UNFILLED)
        take_column(r, field, property, whole);
    else if (r->type->key_count == 1)
        take_column(r, field, r->type->key[0], whole);
    else
        refuse(r, field, "stands for a key of several properties", whole);
}

static void take_typed(resolver *r, uint32_t field, const wk_name *whole, size_t colon)
{
    wk_name name = {whole->text, colon}, word = {whole->text + colon + 1, whole->length - colon - 1};

    /* An id space "(Person)" and options "{...}" say nothing that the schema does not say. */
    for (size_t i = 0; i < word.length; i++)
        if (word.text[i] == '(' || word.text[i] == '{')
            word.length = i;
    wk_target *target = &r->mapping->targets[field];
    if (text_is_caseless(&word, "IGNORE"))
        target->kind = WK_TARGET_IGNORE;
    else if (text_is_caseless(&word, "LABEL") || text_is_caseless(&word, "TYPE"))
        target->kind = WK_TARGET_LABEL;
    else if (text_is_caseless(&word, "ID"))
        take_id(r, field, &name, whole);
    else if (text_is_caseless(&word, "START_ID") || text_is_caseless(&word, "END_ID")) {
        if (r->type->edge)
            take_column(r, field, text_is_caseless(&word, "END_ID"), whole);
        else
            refuse(r, field, "gives an end to a node", whole);
    } else if (!is_type_word(&word))
        refuse(r, field, "has a type that is not known", whole);
    else if (name.length == 0)
        refuse(r, field, "has a type and no name", whole);
    else if (!take_plain(r, field, &name))
        target->kind = WK_TARGET_NAMELESS; /* the mark of a name not known yet: see resolve_rest */
}

static void unknown(resolver *r, uint32_t field, const wk_name *name)
{
    st_nearest nearest;
    char copy[256];
    char shown[WK_SHOWN_ROOM];

    r->fault->column = field;
    wk_fault_set(r->fault, SLUICE_INPUT_SYNTAX, "column %s: type %s has no such property",
                 wk_shown(name->text, name->length, shown), r->type->name);
    if (name->length >= sizeof copy)
        return;
    memcpy(copy, name->text, name->length);
    copy[name->length] = '\0';
    st_nearest_begin(&nearest, copy);
    for (uint32_t i = 0; i < r->type->property_count; i++)
        st_nearest_offer(&nearest, r->type->properties[i].name);
    if (r->type->edge) {
        st_nearest_offer(&nearest, "from");
        st_nearest_offer(&nearest, "to");
    }
    if (nearest.best)
        (void)snprintf(r->fault->hint, sizeof r->fault->hint, "did you mean \"%s\"? (--ignore-unknown leaves it out)",
                       nearest.best);
    else
        (void)snprintf(r->fault->hint, sizeof r->fault->hint, "--ignore-unknown leaves such columns out");
}

/* Is there no name of an end, neither taken as one nor a synonym? Then the unknown columns are most likely the ends. */
static bool lacks_ends(const resolver *r, const wk_name *names, uint32_t count)
{
    static const char *const words[] = {"src", "source", "dst", "target"};
    bool any = !r->type->edge;

    for (unsigned end = 0; end < 2 && !any; end++) {
        any |= r->filled_by[end] != UNFILLED;
        for (uint32_t m = 0; m < ST_KEY_MEMBERS_MAX; m++)
            any |= r->ends[end][m] != UNFILLED;
    }
    for (uint32_t i = 0; i < count && !any; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            any |= text_is(&names[i], words[w]);
    return !any;
}

static size_t find_colon(const wk_name *name)
{
    const char *found = name->length ? memchr(name->text, ':', name->length) : NULL;
    return found ? (size_t)(found - name->text) : name->length;
}

/* First all names that stand for one thing only; a second pass then may see in `src` the end of an edge. */
static void resolve(resolver *r, const wk_name *names, uint32_t count, bool ignore_unknown)
{
    for (uint32_t i = 0; i < count && !r->fault->present; i++) {
        size_t colon = find_colon(&names[i]);
        wk_target *target = &r->mapping->targets[i];
        if (names[i].length == 0)
            target->kind = WK_TARGET_NAMELESS;
        else if (colon < names[i].length)
            take_typed(r, i, &names[i], colon);
        else if (!take_plain(r, i, &names[i]))
            target->kind = WK_TARGET_NAMELESS;
    }
    for (uint32_t i = 0; i < count && !r->fault->present; i++) {
        wk_name name = {names[i].text, find_colon(&names[i])};
        if (r->mapping->targets[i].kind != WK_TARGET_NAMELESS || names[i].length == 0)
            continue;
        r->mapping->targets[i].kind = WK_TARGET_IGNORE;
        if (take_synonym(r, i, &name) || ignore_unknown)
            continue;
        unknown(r, i, &name);
        if (lacks_ends(r, names, count))
            wk_hint(r->fault, "a file of edges has columns from and to (or src and dst, source and target): call %s so",
                    count == 2 ? "the two" : "those of its ends");
    }
}

/* Ends that are load-local names: their texts are not read as keys. */
static void name_ends(resolver *r, unsigned allow)
{
    for (uint32_t i = 0; i < r->mapping->field_count; i++) {
        wk_target *target = &r->mapping->targets[i];
        if (!r->type->edge || target->kind != WK_TARGET_COLUMN || target->column > 1 ||
            (allow & (target->column == 0 ? WK_MAP_NAMED_FROM : WK_MAP_NAMED_TO)) == 0)
            continue;
        target->kind = WK_TARGET_IGNORE;
        target->names = target->column == 0 ? WK_NAMES_FROM : WK_NAMES_TO;
    }
}

static void check_repeated(resolver *r, const wk_name *names, uint32_t count)
{
    /* Columns that are left out are never taken, but one named twice is a fault all the same. */
    for (uint32_t i = 0; i < count && count <= 4096 && !r->fault->present; i++)
        for (uint32_t j = 0; j < i && r->mapping->targets[i].kind == WK_TARGET_IGNORE; j++)
            if (find_colon(&names[i]) == names[i].length && names[i].length == names[j].length &&
                memcmp(names[i].text, names[j].text, names[i].length) == 0)
                refuse(r, i, "is named twice", &names[i]);
}

static void missing(resolver *r, const char *name, const char *member)
{
    r->fault->column = r->mapping->field_count;
    wk_fault_set(r->fault, SLUICE_INPUT_SYNTAX, "column \"%s%s%s\" of type %s is missing", name, member ? "." : "",
                 member ? member : "", r->type->name);
    if (r->mapping->field_count > 0 && r->type->edge && (strcmp(name, "from") == 0 || strcmp(name, "to") == 0))
        wk_hint(r->fault,
                "edges name their ends in columns from and to, or src and dst, source and target, :START_ID and "
                ":END_ID");
    else
        wk_hint(r->fault, "add the column, or give the property a default in the schema");
}

static void check_ends(resolver *r)
{
    static const char *const words[2] = {"from", "to"};

    for (unsigned end = 0; end < 2 && !r->fault->present; end++) {
        const st_type_def *type = end_type(r, end);
        uint32_t given = 0;
        if (r->filled_by[end] != UNFILLED)
            continue;
        for (uint32_t m = 0; m < type->key_count; m++)
            given += r->ends[end][m] != UNFILLED;
        for (uint32_t m = 0; m < type->key_count && !r->fault->present; m++)
            if (given > 0 && r->ends[end][m] == UNFILLED)
                missing(r, words[end], type->properties[type->key[m]].name);
        if (given == 0)
            missing(r, words[end], NULL);
        r->mapping->present[end] = true;
    }
}

static bool is_of_key(const st_type_def *type, uint32_t property)
{
    for (uint32_t i = 0; i < type->key_count; i++)
        if (type->key[i] == property)
            return true;
    return false;
}

static void check_missing(resolver *r, bool partial)
{
    uint32_t first = r->type->edge ? 2 : 0;

    if (r->type->edge)
        check_ends(r);
    for (uint32_t i = 0; i < r->column_count && !r->fault->present; i++) {
        if (r->filled_by[i] != UNFILLED)
            r->mapping->present[i] = true;
        if (i < first || r->mapping->present[i])
            continue;
        const st_property *property = &r->type->properties[i - first];
        if (!property->nullable && !property->default_value.present && (!partial || is_of_key(r->type, i - first)))
            missing(r, property->name, NULL);
    }
}

static sluice_status copy_names(wk_mapping *mapping, const wk_name *names, uint32_t count, sluice_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        mapping->targets[i].name = strndup(names[i].length ? names[i].text : "", names[i].length);
        if (mapping->targets[i].name == NULL)
            return pf_fail_memory(err);
    }
    return SLUICE_OK;
}

sluice_status wk_mapping_make(const st_schema *schema, const st_type_def *type, const wk_name *names, uint32_t count,
                              unsigned allow, wk_mapping *ret_mapping, wk_fault *ret_fault, sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    resolver r = {.schema = schema, .type = type, .mapping = ret_mapping, .fault = ret_fault, .local_id = UNFILLED};

    r.column_count = type->property_count + (type->edge ? 2 : 0);
    memset(r.ends, 0xff, sizeof r.ends);
    memset(ret_mapping, 0, sizeof *ret_mapping);
    ret_fault->present = false;
    ret_mapping->field_count = count;
    ret_mapping->targets = calloc(count + 1, sizeof *ret_mapping->targets);
    ret_mapping->present = calloc(r.column_count + 1, sizeof *ret_mapping->present);
    r.filled_by = malloc((r.column_count + 1) * sizeof *r.filled_by);
    if (ret_mapping->targets == NULL || ret_mapping->present == NULL || r.filled_by == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    memset(r.filled_by, 0xff, (r.column_count + 1) * sizeof *r.filled_by);
    PF_GOTO(status, done, copy_names(ret_mapping, names, count, err));
    resolve(&r, names, count, (allow & WK_MAP_UNKNOWN) != 0);
    check_repeated(&r, names, count);
    name_ends(&r, allow);
    if (!ret_fault->present)
        check_missing(&r, (allow & WK_MAP_PARTIAL) != 0);
done:
    free(r.filled_by);
    if (status != SLUICE_OK || ret_fault->present)
        wk_mapping_free(ret_mapping);
    return status;
}

void wk_mapping_free(wk_mapping *mapping)
{
    for (uint32_t i = 0; mapping->targets && i < mapping->field_count; i++)
        free(mapping->targets[i].name);
    free(mapping->targets);
    free(mapping->present);
    memset(mapping, 0, sizeof *mapping);
}

/* Copies the names behind each other into `storage`, then points into it (it does not move any more). */
static sluice_status keep_names(const char *const *texts, const size_t *lengths, uint32_t count, pf_buffer *storage,
                                wk_name **ret_names, sluice_error *err)
{
    wk_name *names = calloc(count + 1, sizeof *names);
    size_t at = storage->length;

    if (names == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        sluice_status status = pf_buffer_append(storage, texts[i], lengths[i], err);
        if (status != SLUICE_OK) {
            free(names);
            return status;
        }
    }
    const char *kept = storage->data ? (const char *)storage->data : ""; /* all of them may be empty */
    for (uint32_t i = 0; i < count; i++) {
        names[i] = (wk_name){kept + at, lengths[i]};
        at += lengths[i];
    }
    *ret_names = names;
    return SLUICE_OK;
}

static void check_fields(const wk_lexer *lexer, wk_record *record, const char **texts, size_t *lengths, wk_fault *fault)
{
    for (uint32_t i = 0; i < record->kept && !fault->present; i++) {
        unsigned flags = record->fields[i].flags;
        fault->column = i;
        if (flags & WK_FIELD_JUNK) {
            wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "header, column %u: text behind a closing quote", i + 1);
            wk_hint_quote((const char *)record->text + record->fields[i].start, record->fields[i].length,
                          lexer->has_escape, fault);
        } else if (flags & WK_FIELD_BARE_CR) {
            wk_fault_set(fault, SLUICE_INPUT_SYNTAX,
                         "header, column %u: a carriage return without a line feed, outside quotes", i + 1);
            wk_hint_line_end(fault);
        }
        texts[i] = wk_csv_text(lexer, record, i, &lengths[i]);
        if (!fault->present && memchr(texts[i], 0, lengths[i]) != NULL)
            wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "header, column %u: a NUL byte", i + 1);
    }
}

/* What is wrong with the first record as a whole. */
static void check_record(const wk_record *record, uint64_t *ret_line, wk_fault *fault)
{
    *ret_line = record ? record->line : 1;
    if (record == NULL) {
        wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "the file is empty: there is no header");
        wk_hint(fault, "leave the input out of the command, or give the file a heading");
    } else if (record->unclosed) {
        *ret_line = record->open_line;
        wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "a quote opens here and is never closed");
        wk_hint(fault, WK_HINT_UNCLOSED);
    } else if (record->count > WK_FIELDS_MAX)
        wk_fault_set(fault, SLUICE_RESOURCE_LIMIT, "the header has more than %u columns", WK_FIELDS_MAX);
}

static sluice_status read_record(wk_csv *csv, wk_record **ret_record, uint64_t *ret_line, wk_fault *fault,
                                 sluice_error *err)
{
    sluice_error error;
    uint64_t number;
    sluice_status status = wk_csv_next(csv, ret_record, &error);

    if (status == SLUICE_RESOURCE_LIMIT) {
        wk_csv_place(csv, &number, ret_line);
        wk_fault_set(fault, SLUICE_RESOURCE_LIMIT, "the header is longer than the limit of %llu bytes",
                     (unsigned long long)HEADER_MAX);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    check_record(*ret_record, ret_line, fault);
    return SLUICE_OK;
}

sluice_status wk_header_read(const wk_lexer *lexer, const wk_source *source, uint64_t offset, pf_buffer *storage,
                             wk_name **ret_names, uint32_t *ret_count, uint64_t *ret_line, wk_fault *ret_fault,
                             sluice_error *err)
{
    wk_csv_start start = {
        .offset = offset, .line = 1, .piece = 65536, .fields = WK_FIELDS_MAX, .record_max = HEADER_MAX};
    wk_csv *csv = NULL;
    wk_record *record = NULL;
    const char **texts = NULL;
    size_t *lengths = NULL;
    sluice_status status;

    *ret_names = NULL;
    *ret_count = 0;
    ret_fault->present = false;
    ret_fault->column = 0;
    PF_TRY(wk_csv_open(lexer, source, &start, &csv, err));
    PF_GOTO(status, done, read_record(csv, &record, ret_line, ret_fault, err));
    if (record == NULL || ret_fault->present)
        goto done;
    texts = calloc(record->kept, sizeof(const char *));
    lengths = calloc(record->kept, sizeof *lengths);
    if (texts == NULL || lengths == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    check_fields(lexer, record, texts, lengths, ret_fault);
    if (ret_fault->present)
        goto done;
    *ret_count = record->kept;
    status = keep_names(texts, lengths, record->kept, storage, ret_names, err);
done:
    free(texts);
    free(lengths);
    wk_csv_close(csv);
    return status;
}

/* The type's own order: ends (each as one column), then properties. */
static sluice_status own_order(const st_type_def *type, pf_buffer *storage, wk_name **ret_names, uint32_t *ret_count,
                               sluice_error *err)
{
    uint32_t ends = type->edge ? 2 : 0, count = type->property_count + ends;
    const char **texts = calloc(count + 1, sizeof(const char *));
    size_t *lengths = calloc(count + 1, sizeof *lengths);
    sluice_status status;

    if (texts == NULL || lengths == NULL) {
        status = pf_fail_memory(err);
        goto done;
    }
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = i < ends ? (i == 0 ? "from" : "to") : type->properties[i - ends].name;
        lengths[i] = strlen(texts[i]);
    }
    *ret_count = count;
    status = keep_names(texts, lengths, count, storage, ret_names, err);
done:
    free(texts);
    free(lengths);
    return status;
}

sluice_status wk_columns_given(const st_type_def *type, const char *columns, pf_buffer *storage, wk_name **ret_names,
                               uint32_t *ret_count, sluice_error *err)
{
    wk_dialect commas = {.delimiter = ',', .quote = '"'};
    wk_lexer lexer;
    wk_fault fault = {0};
    uint64_t line = 0;

    if (columns == NULL)
        return own_order(type, storage, ret_names, ret_count, err);
    wk_memory_source memory = {columns, strlen(columns)};
    wk_source source = wk_source_of_memory(&memory);
    wk_lexer_make(&lexer, &commas);
    PF_TRY(wk_header_read(&lexer, &source, 0, storage, ret_names, ret_count, &line, &fault, err));
    if (fault.present)
        return pf_fail_private(err, SLUICE_USAGE, "--columns is not well formed", "--columns: %s", fault.text);
    return SLUICE_OK;
}
