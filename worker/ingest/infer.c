#include "worker/ingest/infer.h"

#include "platform/check.h"
#include "platform/digest.h"
#include "store/schema/scalar.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BIT WK_INFER_BIT

/* In the order of preference. */
static const st_type types[] = {ST_BOOL, ST_INT64, ST_UINT64, ST_FLOAT64, ST_DATE, ST_TIMESTAMP, ST_BYTES, ST_STRING};
#define TYPES     (sizeof types / sizeof *types)
#define OF_TEXT   (BIT(ST_BOOL) | BIT(ST_INT64) | BIT(ST_UINT64) | BIT(ST_FLOAT64) | BIT(ST_DATE) | BIT(ST_TIMESTAMP))
#define OF_NUMBER (BIT(ST_INT64) | BIT(ST_UINT64) | BIT(ST_FLOAT64))
#define EXACT_MAX (UINT64_C(1) << 53) /* whole numbers up to here are exact in a float64 */

void wk_infer_free(wk_infer *infer)
{
    for (uint32_t i = 0; i < infer->count; i++) {
        free(infer->columns[i].name);
        free(infer->columns[i].heading);
        free(infer->columns[i].space);
        free(infer->columns[i].unfit);
    }
    free(infer->columns);
    *infer = (wk_infer){0};
}

/* ---- headings ---- */

typedef struct heading {
    wk_name name, word, space; /* word, space: none where length is 0 */
    bool typed;
} heading;

static heading split(const char *text, size_t length)
{
    heading h = {.name = {text, length}};
    const char *colon = length ? memchr(text, ':', length) : NULL;

    if (colon == NULL)
        return h;
    h.typed = true;
    h.name.length = (size_t)(colon - text);
    h.word = (wk_name){colon + 1, length - h.name.length - 1};
    size_t end = 0;
    while (end < h.word.length && h.word.text[end] != '(' && h.word.text[end] != '{')
        end++;
    if (end < h.word.length && h.word.text[end] == '(') {
        const char *begin = h.word.text + end + 1, *close = memchr(begin, ')', h.word.length - end - 1);
        if (close)
            h.space = (wk_name){begin, (size_t)(close - begin)};
    }
    h.word.length = end;
    return h;
}

static bool is_word(const wk_name *word, const char *text)
{
    return word->length == strlen(text) && strncasecmp(word->text, text, word->length) == 0;
}

/* The type that a word of neo4j-admin or of ours stands for. */
static bool find_word(const wk_name *word, st_type *ret_type)
{
    static const struct {
        const char *word;
        st_type type;
    } words[] = {{"int", ST_INT64},          {"long", ST_INT64},
                 {"short", ST_INT64},        {"byte", ST_INT64},
                 {"float", ST_FLOAT64},      {"double", ST_FLOAT64},
                 {"boolean", ST_BOOL},       {"char", ST_STRING},
                 {"string", ST_STRING},      {"date", ST_DATE},
                 {"time", ST_STRING},        {"localtime", ST_STRING},
                 {"datetime", ST_TIMESTAMP}, {"localdatetime", ST_TIMESTAMP}};
    char copy[32];

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(word, words[i].word)) {
            *ret_type = words[i].type;
            return true;
        }
    if (word->length >= sizeof copy)
        return false;
    memcpy(copy, word->text, word->length);
    copy[word->length] = '\0';
    return st_type_parse(copy, ret_type) == 1;
}

static char *copy_name(const wk_name *name)
{
    return strndup(name->length ? name->text : "", name->length);
}

/* What a heading says beside the name; the first file that says something is right. */
static sluice_status take_word(wk_infer_column *column, const heading *h, sluice_error *err)
{
    bool is_id = h->typed && is_word(&h->word, "ID");
    bool is_end = h->typed && (is_word(&h->word, "START_ID") || is_word(&h->word, "END_ID"));
    st_type type;

    if ((is_id || is_end) && h->space.length > 0 && column->space == NULL) {
        column->space = copy_name(&h->space);
        if (column->space == NULL)
            return pf_fail_memory(err);
    }
    if (is_id) {
        column->is_id = true;
    } else if (is_end) {
        column->is_end = true;
        column->role = is_word(&h->word, "END_ID") ? WK_ROLE_TO : WK_ROLE_FROM;
    } else if (h->typed && find_word(&h->word, &type)) {
        column->type = column->declared ? column->type : type;
        column->declared = true;
    } else if (h->typed || h->name.length == 0 || strcmp(column->name, "_row_id") == 0) {
        column->role = WK_ROLE_NONE; /* :LABEL and the like; a word that is not known is refused where rows are read */
    }
    return SLUICE_OK;
}

static sluice_status fill_column(wk_infer_column *column, const heading *h, const char *whole, size_t length,
                                 sluice_error *err)
{
    column->natural = column->can = UINT32_MAX;
    column->name = copy_name(&h->name);
    column->heading = strndup(length ? whole : "", length);
    return column->name && column->heading ? SLUICE_OK : pf_fail_memory(err);
}

/* The same property, whatever is said of it behind a colon; else the same heading. */
static bool is_same(const wk_infer_column *column, const heading *h, const char *whole, size_t length)
{
    st_type type;
    bool property = h->name.length > 0 && (!h->typed || is_word(&h->word, "ID") || find_word(&h->word, &type));
    const char *have = property && column->role == WK_ROLE_PROPERTY ? column->name : column->heading;
    const wk_name want = property && column->role == WK_ROLE_PROPERTY ? h->name : (wk_name){whole, length};

    return strlen(have) == want.length && (want.length == 0 || memcmp(have, want.text, want.length) == 0);
}

sluice_status wk_infer_find(wk_infer *infer, const char *name, size_t length, const wk_infer_place *place,
                            uint32_t *ret_column, sluice_error *err)
{
    heading h = split(name, length);
    uint32_t found = infer->count;

    for (uint32_t i = 0; i < infer->count && found == infer->count; i++) {
        uint32_t at = infer->next + i < infer->count ? infer->next + i : infer->next + i - infer->count;
        if (is_same(&infer->columns[at], &h, name, length))
            found = at;
    }
    if (found == infer->count) {
        if (infer->count == WK_INFER_COLUMNS_MAX)
            return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a type has more than %u columns", WK_INFER_COLUMNS_MAX);
        if (infer->count == infer->room) {
            uint32_t room = infer->room ? infer->room * 2 : 16;
            wk_infer_column *columns = realloc(infer->columns, room * sizeof *columns);
            if (columns == NULL)
                return pf_fail_memory(err);
            infer->columns = columns;
            infer->room = room;
        }
        infer->columns[found] = (wk_infer_column){.first = *place};
        infer->count++;
        PF_TRY(fill_column(&infer->columns[found], &h, name, length, err));
        infer->row_id |= strcmp(infer->columns[found].heading, "_row_id") == 0;
    }
    if (infer->columns[found].role == WK_ROLE_PROPERTY)
        PF_TRY(take_word(&infer->columns[found], &h, err));
    infer->next = found + 1 < infer->count ? found + 1 : 0;
    *ret_column = infer->columns[found].role == WK_ROLE_NONE ? WK_INFER_NONE : found;
    return SLUICE_OK;
}

sluice_status wk_survey_headings(wk_survey *survey, const wk_name *names, uint32_t count, uint64_t line,
                                 sluice_error *err)
{
    wk_infer_place here = {survey->argument, line};

    survey->headings = calloc((size_t)count + 1, sizeof *survey->headings);
    if (survey->headings == NULL)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(wk_infer_find(survey->infer, names[i].text, names[i].length, &here, &survey->headings[i], err));
    survey->heading_count = count;
    return SLUICE_OK;
}

/* ---- values ---- */

/* Digits with nothing before them that a number does not need. */
static bool is_canonical(const char *text, size_t length)
{
    size_t minus = length > 0 && text[0] == '-';
    return length > minus &&
           (text[minus] != '0' || length == minus + 1 || text[minus + 1] < '0' || text[minus + 1] > '9');
}

static bool is_whole(const char *text, size_t length)
{
    for (size_t i = text[0] == '-'; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

/* Which of the wanted types can be read from this text; *ret_natural: which of them it looks like. */
static unsigned read_text(const char *text, size_t length, unsigned wanted, unsigned *ret_natural)
{
    unsigned can = 0, natural = 0;
    bool boolean;
    int64_t i64;
    uint64_t u64;
    int32_t days;
    double f64;

    if ((wanted & BIT(ST_BOOL)) && st_parse_bool(text, length, &boolean) == ST_PARSE_OK)
        can |= BIT(ST_BOOL);
    if ((wanted & BIT(ST_INT64)) && st_parse_i64(text, length, &i64) == ST_PARSE_OK)
        can |= BIT(ST_INT64);
    if ((wanted & BIT(ST_UINT64)) && st_parse_u64(text, length, &u64) == ST_PARSE_OK)
        can |= BIT(ST_UINT64);
    if ((wanted & BIT(ST_FLOAT64)) && st_parse_f64(text, length, &f64) == ST_PARSE_OK)
        can |= BIT(ST_FLOAT64);
    if ((wanted & BIT(ST_DATE)) && st_parse_date(text, length, &days) == ST_PARSE_OK)
        can |= BIT(ST_DATE);
    if ((wanted & BIT(ST_TIMESTAMP)) && st_parse_timestamp(text, length, &i64) == ST_PARSE_OK)
        can |= BIT(ST_TIMESTAMP);
    natural = can;
    if (!is_canonical(text, length))
        natural &= ~OF_NUMBER;
    if (length == 2 && memcmp(text, "-0", 2) == 0)
        natural &= ~(BIT(ST_INT64) | BIT(ST_UINT64));
    if ((natural & BIT(ST_FLOAT64)) && is_whole(text, length) &&
        (st_parse_u64(text + (text[0] == '-'), length - (text[0] == '-'), &u64) != ST_PARSE_OK || u64 > EXACT_MAX))
        natural &= ~BIT(ST_FLOAT64);
    *ret_natural = natural;
    return can;
}

void wk_infer_null(wk_infer_column *column)
{
    column->null = true;
}

static sluice_status set_unfit(wk_infer_column *column, const wk_infer_place *place, const char *what, const char *text,
                               size_t length, sluice_error *err)
{
    char shown[WK_SHOWN_ROOM];

    if (column->unfit != NULL)
        return SLUICE_OK;
    column->unfit = calloc(1, sizeof *column->unfit);
    if (column->unfit == NULL)
        return pf_fail_memory(err);
    wk_fault_set(column->unfit, SLUICE_CONSTRAINT_TYPE, "column %s: %s %s", column->heading,
                 wk_shown(text, length, shown), what);
    column->unfit->argument = place->argument;
    column->unfit->line = place->line;
    return SLUICE_OK;
}

sluice_status wk_infer_value(wk_infer_column *column, wk_kind kind, const char *text, size_t length,
                             const wk_infer_place *place, sluice_error *err)
{
    unsigned before = column->can, can = 0, natural = 0, left = (column->can | column->natural) & OF_TEXT;

    column->valued = true;
    switch (kind) {
    case WK_KIND_PLAIN:
    case WK_KIND_TEXT:
        can = left && length > 0 ? read_text(text, length, left, &natural) : 0;
        if (kind == WK_KIND_TEXT)
            natural &= BIT(ST_DATE) | BIT(ST_TIMESTAMP);
        can |= BIT(ST_STRING);
        natural |= BIT(ST_STRING);
        break;
    case WK_KIND_NUMBER:
        can = read_text(text, length, OF_NUMBER, &natural);
        natural &= OF_NUMBER;
        break;
    case WK_KIND_WORD:
        can = natural = BIT(ST_BOOL);
        break;
    case WK_KIND_LIST:
    case WK_KIND_OBJECT:
        return set_unfit(column, place,
                         kind == WK_KIND_LIST ? "is a list, which no property holds"
                                              : "is an object, which no property holds",
                         text, length, err);
    }
    column->natural &= natural;
    column->can &= can;
    if (before != 0 && column->can == 0)
        return set_unfit(column, place, "is of no type that also holds the values before it", text, length, err);
    return SLUICE_OK;
}

void wk_infer_declare(wk_infer_column *column, unsigned natural, unsigned can)
{
    column->natural &= natural;
    column->can &= can;
    column->valued = true;
}

/* ---- the end ---- */

/* `from`, also `from.A`, and the like. */
static bool is_end_name(const wk_infer_column *column, const char *word)
{
    size_t length = strlen(word);
    bool dotted = strcmp(word, "from") == 0 || strcmp(word, "to") == 0;

    return column->role == WK_ROLE_PROPERTY && !column->is_id && !column->declared &&
           strncmp(column->heading, word, length) == 0 &&
           (column->heading[length] == '\0' || (dotted && column->heading[length] == '.'));
}

static bool has_end(const wk_infer *infer, const char *word)
{
    for (uint32_t i = 0; i < infer->count; i++)
        if (is_end_name(&infer->columns[i], word))
            return true;
    return false;
}

static void set_ends(wk_infer *infer, const char *word, wk_role role)
{
    for (uint32_t i = 0; i < infer->count; i++)
        if (is_end_name(&infer->columns[i], word))
            infer->columns[i].role = role;
}

/* An edge has both ends, by the same pair of names, and no id. */
static void find_ends(wk_infer *infer)
{
    static const char *const pairs[][2] = {{"from", "to"}, {"src", "dst"}, {"source", "target"}};
    bool from = false, to = false, id = false;

    for (uint32_t i = 0; i < infer->count; i++) {
        const wk_infer_column *column = &infer->columns[i];
        from |= column->is_end && column->role == WK_ROLE_FROM;
        to |= column->is_end && column->role == WK_ROLE_TO;
        id |= column->is_id;
    }
    infer->edge = from && to;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !id; i++) {
        bool both = has_end(infer, pairs[i][0]) && has_end(infer, pairs[i][1]);
        /* `from` and `to` are always ends of an edge; the other pairs are where no other one is. */
        if (!both || (infer->edge && i > 0))
            continue;
        set_ends(infer, pairs[i][0], WK_ROLE_FROM);
        set_ends(infer, pairs[i][1], WK_ROLE_TO);
        infer->edge = true;
    }
}

static bool choose(unsigned set, st_type *ret_type)
{
    for (size_t i = 0; i < TYPES; i++)
        if (set & BIT(types[i])) {
            *ret_type = types[i];
            return true;
        }
    return false;
}

static void refuse(const wk_infer_column *column, const char *what, wk_fault *fault)
{
    wk_fault_set(fault, SLUICE_INPUT_SYNTAX, "column \"%s\" %s", column->heading, what);
    fault->argument = column->first.argument;
    fault->line = column->first.line;
}

static void decide(wk_infer *infer, wk_infer_column *column, bool ignore_unknown, wk_fault *fault)
{
    bool valid = st_name_is_valid(column->name, strlen(column->name), infer->edge);

    if (!valid && column->is_id && column->name[0] == '\0')
        valid = true; /* a bare :ID: named later */
    if (ignore_unknown && (!valid || column->unfit)) {
        column->role = WK_ROLE_NONE;
        return;
    }
    if (!valid)
        refuse(column, "has a name that no property may have", fault);
    else if (column->unfit)
        *fault = *column->unfit;
    if (fault->present) {
        (void)snprintf(fault->hint, sizeof fault->hint, "--ignore-unknown leaves such columns out");
        return;
    }
    column->nullable = column->null || column->records < infer->records;
    if (column->declared)
        return;
    if (!column->valued)
        column->type = ST_STRING;
    else if (!choose(column->natural, &column->type) && !choose(column->can, &column->type))
        refuse(column, "has values that no one type holds", fault);
}

void wk_infer_finish(wk_infer *infer, bool ignore_unknown, wk_fault *ret_fault)
{
    uint32_t properties = 0;

    *ret_fault = (wk_fault){0};
    find_ends(infer);
    for (uint32_t i = 0; i < infer->count && !ret_fault->present; i++) {
        wk_infer_column *column = &infer->columns[i];
        if (column->role == WK_ROLE_PROPERTY)
            decide(infer, column, ignore_unknown, ret_fault);
        properties += column->role == WK_ROLE_PROPERTY;
        if (properties <= ST_SCHEMA_PROPERTIES_MAX || ret_fault->present)
            continue;
        refuse(column, "is one too many for a type", ret_fault);
        ret_fault->code = SLUICE_RESOURCE_LIMIT;
        (void)snprintf(ret_fault->hint, sizeof ret_fault->hint, "a type has at most %u properties",
                       ST_SCHEMA_PROPERTIES_MAX);
    }
}
