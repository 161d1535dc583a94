/*
 * Parsing and evaluating filters (see store/read/filter.h).
 */
#include "store/read/filter.h"
#include "platform/check.h"
#include "store/schema/nearest.h"
#include <stdlib.h>
#include <string.h>

#define CLAUSES_MAX 32u

typedef enum filter_relation { EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL } filter_relation;

typedef struct filter_clause {
    uint32_t column;
    filter_relation relation;
    bool null;                /* compared with null */
    st_column_builder *value; /* of one row */
    st_column view;
} filter_clause;

struct st_filter {
    filter_clause clauses[CLAUSES_MAX];
    uint32_t count;
};

void st_filter_free(st_filter *filter)
{
    if (!filter)
        return;
    for (uint32_t i = 0; i < filter->count; i++)
        st_column_builder_free(filter->clauses[i].value);
    free(filter);
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n')
        at++;
    return at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* A word as a whole, in any case of letters. */
static bool is_word(const char *at, const char *word)
{
    size_t length = strlen(word);
    return strncasecmp(at, word, length) == 0 && (at[length] == '\0' || is_blank(at[length]) || at[length] == '(');
}

static sluice_status fail_at(const char *at, const char *wanted, sluice_error *err)
{
    at = skip_blanks(at);
    if (*at)
        pf_fail_private(err, SLUICE_USAGE, "the filter is not understood", "filter: %s is wanted at \"%.40s\"", wanted,
                        at);
    else
        pf_fail_private(err, SLUICE_USAGE, "the filter is not understood", "filter: %s is wanted at its end", wanted);
    pf_hint(err, "for example: age >= 18 and name != 'Ada'");
    return SLUICE_USAGE;
}

/* Where an operator should be: what other languages have in its place. */
static sluice_status fail_operator(const char *name, const char *at, sluice_error *err)
{
    static const char *const others[] = {"like", "ilike", "in", "between", "not", "contains", "starts"};
    sluice_status status = fail_at(at, "one of = != < <= > >=", err);
    at = skip_blanks(at);
    if (is_word(at, "is"))
        pf_hint(err, "without a value: %.80s = null; with one: %.80s != null", name, name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (is_word(at, others[i]))
            pf_hint(err, "filters only compare; what else there is to ask, a program that reads the rows can: "
                         "--format csv, jsonl or arrow");
    return status;
}

/* A word in quotes (doubled inside) or, without quotes, up to the first of `stops`. Blanks around it are left out. */
static sluice_status take_word(const char **at, char quote, const char *stops, pf_buffer *word, bool *ret_quoted,
                               sluice_error *err)
{
    const char *from = skip_blanks(*at);
    word->length = 0;
    *ret_quoted = *from == quote;
    if (*ret_quoted) {
        for (from++; *from && (*from != quote || from[1] == quote); from++) {
            from += *from == quote;
            PF_TRY(pf_buffer_append(word, from, 1, err));
        }
        if (*from != quote)
            return pf_fail(err, SLUICE_USAGE, "filter: a quote is not closed");
        *at = from + 1;
    } else {
        size_t length = strcspn(from, stops);
        *at = from + length;
        while (length > 0 && (from[length - 1] == ' ' || from[length - 1] == '\t'))
            length--;
        PF_TRY(pf_buffer_append(word, from, length, err));
    }
    return pf_buffer_append(word, "", 1, err); /* ends it; not counted by users of the text */
}

static bool take_relation(const char **at, filter_relation *ret_relation)
{
    static const struct {
        const char *text;
        filter_relation relation;
    } words[] = {{"!=", NOT_EQUAL}, {"<>", NOT_EQUAL}, {"<=", LESS_EQUAL}, {">=", GREATER_EQUAL},
                 {"==", EQUAL},     {"=", EQUAL},      {"<", LESS},        {">", GREATER}};
    *at = skip_blanks(*at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strncmp(*at, words[i].text, strlen(words[i].text)) == 0) {
            *at += strlen(words[i].text);
            *ret_relation = words[i].relation;
            return true;
        }
    }
    return false;
}

/* Where a bare literal ends: before " and ", or at the end. */
static size_t literal_length(const char *from)
{
    const char *at = from;
    while (*at) {
        const char *blank = strpbrk(at, " \t\n");
        if (!blank)
            return strlen(from);
        const char *next = skip_blanks(blank);
        if (is_word(next, "and"))
            return (size_t)(blank - from);
        at = *next ? next : next + strlen(next);
        if (!*next)
            return (size_t)(blank - from);
    }
    return (size_t)(at - from);
}

static sluice_status take_literal(const char **at, pf_buffer *word, bool *ret_quoted, sluice_error *err)
{
    const char *from = skip_blanks(*at);
    if (*from == '\'')
        return take_word(at, '\'', "", word, ret_quoted, err);
    size_t length = literal_length(from);
    word->length = 0;
    *ret_quoted = false;
    *at = from + length;
    PF_TRY(pf_buffer_append(word, from, length, err));
    return pf_buffer_append(word, "", 1, err);
}

/* A bare literal that means something in other languages is more likely that than a text. */
static sluice_status check_bare(const char *text, sluice_error *err)
{
    if (text[0] == '"') {
        (void)pf_fail_private(err, SLUICE_USAGE, "a literal of the filter is in double quotes",
                              "filter: the value %.40s is in double quotes, which names of columns have", text);
        pf_hint(err, "put it in single quotes, as in: name != 'Ada'");
        return SLUICE_USAGE;
    }
    for (const char *at = text; (at = strpbrk(at, " \t\n")) != NULL;) {
        at = skip_blanks(at);
        if (!is_word(at, "or"))
            continue;
        (void)pf_fail_private(err, SLUICE_USAGE, "a filter has no or", "filter: there is no or, at \"%.40s\"", at);
        pf_hint(err, "comparisons are joined by and only: scan once for each side; a value that holds this word stands "
                     "in single quotes");
        return SLUICE_USAGE;
    }
    return SLUICE_OK;
}

static sluice_status find_column(const char *name, const st_column_spec *specs, uint32_t count, uint32_t *ret_column,
                                 sluice_error *err)
{
    st_nearest nearest;
    st_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(specs[i].name, name) == 0) {
            *ret_column = i;
            return SLUICE_OK;
        }
        st_nearest_offer(&nearest, specs[i].name);
    }
    pf_fail_private(err, SLUICE_USAGE, "the filter names an unknown column", "filter: no column \"%s\"", name);
    if (name[0] == '(' || is_word(name, "not"))
        pf_hint(err, "a filter has no parentheses and no not: it is comparisons joined by and");
    else if (nearest.best)
        pf_hint(err, "did you mean %s?", nearest.best);
    return SLUICE_USAGE;
}

static sluice_status set_value(filter_clause *clause, const st_column_spec *spec, const pf_buffer *literal, bool quoted,
                               sluice_error *err)
{
    const char *text = (const char *)literal->data;
    clause->null = !quoted && strcasecmp(text, "null") == 0;
    if (clause->null)
        return clause->relation == EQUAL || clause->relation == NOT_EQUAL
                   ? SLUICE_OK
                   : pf_fail(err, SLUICE_USAGE, "filter: null compares only by = and !=");
    if (spec->type == ST_STRUCT)
        return pf_fail(err, SLUICE_USAGE, "filter: an end with a key of several members cannot be compared");
    PF_TRY(st_column_builder_new(spec, &clause->value, err));
    sluice_status status = st_value_parse(spec, text, literal->length - 1, clause->value, err);
    if (status != SLUICE_OK && status != SLUICE_RESOURCE_LIMIT)
        return pf_fail_private(err, SLUICE_USAGE, "a literal of the filter has another type",
                               "filter: column %s: \"%s\" is no %s", spec->name, text, st_type_name(spec->type));
    PF_TRY(status);
    st_builder_view(clause->value, &clause->view);
    return SLUICE_OK;
}

static sluice_status take_clause(st_filter *filter, const char **at, const st_column_spec *specs, uint32_t count,
                                 pf_buffer *word, sluice_error *err)
{
    bool quoted;
    if (filter->count == CLAUSES_MAX)
        return pf_fail(err, SLUICE_USAGE, "filter: more than %u comparisons", CLAUSES_MAX);
    filter_clause *clause = &filter->clauses[filter->count++];
    PF_TRY(take_word(at, '"', "=!<> \t\n", word, &quoted, err));
    if (word->length == 1)
        return fail_at(*at, "a column", err);
    PF_TRY(find_column((const char *)word->data, specs, count, &clause->column, err));
    if (!take_relation(at, &clause->relation))
        return fail_operator(specs[clause->column].name, *at, err);
    PF_TRY(take_literal(at, word, &quoted, err));
    if (word->length == 1 && !quoted)
        return fail_at(*at, "a value", err);
    if (!quoted)
        PF_TRY(check_bare((const char *)word->data, err));
    return set_value(clause, &specs[clause->column], word, quoted, err);
}

sluice_status st_filter_parse(const char *text, const st_column_spec *specs, uint32_t count, st_filter **ret_filter,
                              sluice_error *err)
{
    const char *at = text;
    pf_buffer word = {0};
    sluice_status status;
    st_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return pf_fail_memory(err);
    for (;;) {
        PF_GOTO(status, done, take_clause(filter, &at, specs, count, &word, err));
        at = skip_blanks(at);
        if (!*at)
            break;
        if (!is_word(at, "and") && strncasecmp(at, "and\"", 4) != 0) {
            status = fail_at(at, "and", err);
            goto done;
        }
        at += 3;
    }
    *ret_filter = filter;
    filter = NULL;
done:
    st_filter_free(filter);
    pf_buffer_free(&word);
    return status;
}

void st_filter_mark(const st_filter *filter, bool *needed)
{
    for (uint32_t i = 0; i < filter->count; i++)
        needed[filter->clauses[i].column] = true;
}

static bool clause_meets(const filter_clause *clause, const st_column *column, uint64_t row)
{
    int order;
    bool null = st_column_is_null(column, row);
    if (clause->null)
        return null == (clause->relation == EQUAL);
    if (null)
        return false;
    if (!st_value_compare(column, row, &clause->view, 0, &order))
        return clause->relation == NOT_EQUAL;
    switch (clause->relation) {
    case EQUAL:
        return order == 0;
    case NOT_EQUAL:
        return order != 0;
    case LESS:
        return order < 0;
    case LESS_EQUAL:
        return order <= 0;
    case GREATER:
        return order > 0;
    case GREATER_EQUAL:
        return order >= 0;
    }
    return false;
}

bool st_filter_meets(const st_filter *filter, const st_column *const *columns, uint64_t row)
{
    for (uint32_t i = 0; i < filter->count; i++) {
        if (!clause_meets(&filter->clauses[i], columns[filter->clauses[i].column], row))
            return false;
    }
    return true;
}
