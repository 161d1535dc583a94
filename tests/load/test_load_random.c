/*
 * Random files, some right and some not, loaded at random sizes of chunks, pieces and ranges, against a slow and simple
 * model: the same rows in the same order, or the same code at the same line of the same file. Loads that skip bad rows
 * leave out the same ones for the same reasons, in order of the input.
 */
#include "load_fixture.h"
#include "tests/support/csv_reference.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] =
    "{\"nodes\": {"
    "\"P\": {\"key\": \"id\", \"properties\": {\"id\": \"string\", \"n\": \"int32?\"}, \"unique\": [[\"n\"]]},"
    "\"Q\": {\"key\": \"id\", \"properties\": {\"id\": \"int64\", \"s\": \"string\"}, \"checks\": {\"s\": "
    "{\"max_length\": "
    "5}}}},"
    "\"edges\": {"
    "\"K\": {\"from\": \"P\", \"to\": \"Q\", \"properties\": {\"w\": \"int32?\"}, \"key\": []},"
    "\"L\": {\"from\": \"Q\", \"to\": \"Q\", \"properties\": {\"w\": \"string?\"}, \"cardinality\": {\"out\": "
    "\"0..2\", \"in\": "
    "\"0..*\"}}}}";

enum { P, Q, K, L, TYPES };
static const char *const type_names[TYPES] = {"P", "Q", "K", "L"};

typedef enum kind { TEXT, NUMBER, LONG_NUMBER } kind;
typedef struct model_column {
    const char *name;
    kind kind;
    bool nullable;
    size_t longest; /* 0: any */
} model_column;
static const model_column columns[TYPES][3] = {
    [P] = {{"id", TEXT, false, 0}, {"n", NUMBER, true, 0}},
    [Q] = {{"id", LONG_NUMBER, false, 0}, {"s", TEXT, false, 5}},
    [K] = {{"from", TEXT, false, 0}, {"to", LONG_NUMBER, false, 0}, {"w", NUMBER, true, 0}},
    [L] = {{"from", LONG_NUMBER, false, 0}, {"to", LONG_NUMBER, false, 0}, {"w", TEXT, true, 0}},
};
static unsigned column_count(int type)
{
    return type == K || type == L ? 3 : 2;
}

#define TEXT_MAX  4000u
#define FILES_MAX 8u
#define ROWS_MAX  600u

typedef struct model_row {
    int type;
    unsigned file, column_of[3]; /* where in the file its columns stand */
    uint64_t record, line;
    char value[3][40]; /* numbers as the store shows them */
    bool null[3];
} model_row;

typedef struct model_file {
    int type;
    unsigned order[3]; /* column of the type at each place */
    char text[TEXT_MAX];
    size_t length;
} model_file;

typedef struct model_reject {
    unsigned file;
    uint64_t line;
    sluice_status code;
} model_reject;

typedef struct model {
    model_file files[FILES_MAX];
    unsigned file_count;
    model_row rows[ROWS_MAX], base[ROWS_MAX];
    unsigned row_count, base_count;
    bool bad;
    unsigned file, column, rule; /* of the least fault */
    uint64_t record, line;
    sluice_status code;
    /* of a load that skips: */
    bool skip, damaged;
    unsigned only;       /* the one rule that is looked at; 0: all */
    bool dead[ROWS_MAX]; /* per row: left out by a phase */
    model_reject rejects[ROWS_MAX];
    unsigned reject_count;
    uint64_t records[ROWS_MAX]; /* of the rejects: what they are ordered by */
} model;

/* ---- making files ---- */

static void put(model_file *file, const char *text)
{
    size_t length = strlen(text);
    if (file->length + length < TEXT_MAX) {
        memcpy(file->text + file->length, text, length);
        file->length += length;
    }
}

/* Keys that exist, or will when this load goes through: those below the next one of their type. */
typedef struct next_keys {
    unsigned key[2], unique; /* of P and Q; of P's unique number */
} next_keys;

static unsigned choose_key(int type, unsigned column, next_keys *next, uint64_t *seed, unsigned faults)
{
    bool again = ref_random(seed) % 3000 < faults; /* a key that is taken, or one that does not exist */
    int node = type == K ? (column == 0 ? P : Q) : type == L ? Q : type;

    if (type == P || type == Q)
        return again && next->key[type] ? (unsigned)(ref_random(seed) % next->key[type]) : next->key[type]++;
    return again || !next->key[node] ? 100000u : (unsigned)(ref_random(seed) % next->key[node]);
}

static void put_key(model_file *file, const model_column *column, unsigned key, uint64_t *seed)
{
    char text[32];
    bool quoted = ref_random(seed) % 4 == 0;
    snprintf(text, sizeof text, column->kind == TEXT ? "%sk%u%s" : "%s%u%s", quoted ? "\"" : "", key,
             quoted ? "\"" : "");
    put(file, text);
}

static void put_value(model_file *file, unsigned number, next_keys *next, uint64_t *seed, unsigned faults)
{
    const model_column *column = &columns[file->type][number];
    char text[64] = "";
    uint64_t pick = ref_random(seed);

    if (ref_random(seed) % 3000 < faults) {
        static const char *const odds[] = {"x,",      "\"a\"b", "1\r2", "99999999999999999999", "1.5", "",
                                           "toolong", "\"q",    "\" \""};
        put(file, odds[pick % 9]);
        return;
    }
    if (number == 0 || (number == 1 && file->type != P && file->type != Q)) {
        put_key(file, column, choose_key(file->type, number, next, seed, faults), seed);
        return;
    }
    if (column->nullable && pick % 4 == 0)
        return;
    if (column->kind == NUMBER)
        snprintf(text, sizeof text, "%s%u", pick % 3 ? "" : "-", pick % 500 < faults ? 3 : ++next->unique);
    else if (pick % 3)
        snprintf(text, sizeof text, pick % 2 ? "s%u" : "\"%u\"", (unsigned)(pick / 8 % 1000));
    else
        snprintf(text, sizeof text, "\"a,\n\"\"%u\"", (unsigned)(pick / 8 % 10));
    put(file, text);
}

static void make_file(model_file *file, int type, next_keys *next, uint64_t *seed, unsigned faults)
{
    unsigned count = column_count(type), rows = (unsigned)(ref_random(seed) % 25),
             shift = (unsigned)(ref_random(seed) % count);
    const char *end = ref_random(seed) % 2 ? "\n" : "\r\n";

    *file = (model_file){.type = type};
    for (unsigned i = 0; i < count; i++)
        file->order[i] = (i + shift) % count;
    if (ref_random(seed) % 4 == 0)
        put(file, "\xef\xbb\xbf");
    for (unsigned row = 0; row <= rows; row++) {
        for (unsigned i = 0; i < count; i++) {
            put(file, i ? "," : "");
            if (row == 0)
                put(file, columns[type][file->order[i]].name);
            else
                put_value(file, file->order[i], next, seed, faults);
        }
        if (row < rows || ref_random(seed) % 2)
            put(file, end);
        if (row > 0 && ref_random(seed) % 10 == 0)
            put(file, end);
    }
}

/* ---- the model ---- */

static void fault(model *m, unsigned file, uint64_t record, unsigned column, unsigned rule, uint64_t line,
                  sluice_status code)
{
    if (m->only && rule != m->only)
        return;
    const uint64_t mine[4] = {file, record, column, rule}, least[4] = {m->file, m->record, m->column, m->rule};
    for (unsigned i = 0; m->bad && i < 4; i++) {
        if (mine[i] > least[i])
            return;
        if (mine[i] < least[i])
            break;
        if (i == 3)
            return;
    }
    m->bad = true;
    m->file = file;
    m->record = record;
    m->column = column;
    m->rule = rule;
    m->line = line;
    m->code = code;
}

/* SLUICE_OK and the value, or the code. */
static sluice_status read_value(const model_column *column, const ref_field *field, char *ret_text, bool *ret_null)
{
    char text[64], *end;

    if (field->junk || field->bare_cr)
        return SLUICE_INPUT_SYNTAX;
    *ret_null = !field->quoted && field->length == 0;
    ret_text[0] = '\0';
    if (*ret_null)
        return column->nullable ? SLUICE_OK : SLUICE_CONSTRAINT_NULL;
    assert_true(field->length < 40);
    memcpy(text, field->text ? field->text : "", field->length);
    text[field->length] = '\0';
    if (column->kind == TEXT) {
        memcpy(ret_text, text, field->length + 1);
        return column->longest && field->length > column->longest ? SLUICE_CONSTRAINT_CHECK : SLUICE_OK;
    }
    long long value = strtoll(text, &end, 10);
    if (field->length == 0 || *end || text[0] == ' ' || field->length > 15)
        return SLUICE_CONSTRAINT_TYPE;
    snprintf(ret_text, 40, "%lld", value);
    return SLUICE_OK;
}

static void reject(model *m, unsigned file, uint64_t record, uint64_t line, sluice_status code)
{
    unsigned at = m->reject_count++;

    assert_true(at < ROWS_MAX);
    for (;
         at > 0 && (m->rejects[at - 1].file > file || (m->rejects[at - 1].file == file && m->records[at - 1] > record));
         at--) {
        m->rejects[at] = m->rejects[at - 1];
        m->records[at] = m->records[at - 1];
    }
    m->rejects[at] = (model_reject){.file = file, .line = line, .code = code};
    m->records[at] = record;
}

static void read_record(model *m, unsigned number, const ref_record *record, uint64_t index);

/* What a strict load would end with is why this record is left out. */
static void read_or_leave_out(model *m, unsigned number, const ref_record *record, uint64_t index)
{
    m->skip = m->bad = false;
    read_record(m, number, record, index);
    if (m->bad)
        reject(m, number, index, m->line, m->code);
    m->skip = true;
    m->bad = false;
}

static void read_record(model *m, unsigned number, const ref_record *record, uint64_t index)
{
    const model_file *file = &m->files[number];
    unsigned count = column_count(file->type);
    model_row row = {.type = file->type, .file = number, .record = index, .line = record->line};

    if (m->skip && !record->unclosed) {
        read_or_leave_out(m, number, record, index);
        return;
    }
    if (record->unclosed) {
        m->damaged = true;
        fault(m, number, index, 0, 0, record->open_line, SLUICE_INPUT_SYNTAX);
        return;
    }
    if (record->count != count) {
        fault(m, number, index, 0, 0, record->line, SLUICE_INPUT_SYNTAX);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned c = file->order[i];
        row.column_of[c] = i;
        sluice_status status = read_value(&columns[file->type][c], &record->fields[i], row.value[c], &row.null[c]);
        if (status != SLUICE_OK) {
            fault(m, number, index, i, 0, record->line, status);
            return;
        }
    }
    assert_true(m->row_count < ROWS_MAX);
    m->rows[m->row_count++] = row;
}

static void read_file(model *m, unsigned number)
{
    const model_file *file = &m->files[number];
    size_t mark = file->length >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    ref_file parsed;

    ref_parse(file->text + mark, file->length - mark, ',', '"', 0, &parsed);
    for (uint64_t i = 1; i < parsed.count; i++)
        read_record(m, number, &parsed.records[i], i);
    ref_free(&parsed);
}

static bool same(const model_row *a, const model_row *b, unsigned columns_mask)
{
    for (unsigned c = 0; c < 3; c++)
        if ((columns_mask >> c & 1) && (a->null[c] || b->null[c] || strcmp(a->value[c], b->value[c]) != 0))
            return false;
    return true;
}

/* The row before it (or of the base) that has these columns equal. */
static bool taken(const model *m, unsigned row, unsigned mask)
{
    for (unsigned i = 0; i < m->base_count; i++)
        if (m->base[i].type == m->rows[row].type && same(&m->base[i], &m->rows[row], mask))
            return true;
    for (unsigned i = 0; i < row; i++)
        if (m->rows[i].type == m->rows[row].type && same(&m->rows[i], &m->rows[row], mask))
            return true;
    return false;
}

static bool has_node(const model *m, int type, const char *key)
{
    for (unsigned i = 0; i < m->base_count; i++)
        if (m->base[i].type == type && strcmp(m->base[i].value[0], key) == 0)
            return true;
    for (unsigned i = 0; i < m->row_count; i++)
        if (m->rows[i].type == type && strcmp(m->rows[i].value[0], key) == 0)
            return true;
    return false;
}

static unsigned edges_before(const model *m, unsigned row)
{
    unsigned count = 0;
    for (unsigned i = 0; i < m->base_count; i++)
        count += m->base[i].type == L && same(&m->base[i], &m->rows[row], 1);
    for (unsigned i = 0; i < row; i++)
        count += m->rows[i].type == L && same(&m->rows[i], &m->rows[row], 1);
    return count;
}

static void check_row(model *m, unsigned number)
{
    const model_row *row = &m->rows[number];
    unsigned first = row->column_of[0];

    if ((row->type == P || row->type == Q) && taken(m, number, 1))
        fault(m, row->file, row->record, first, 1, row->line, SLUICE_KEY_CONFLICT);
    if (row->type == P && taken(m, number, 2))
        fault(m, row->file, row->record, row->column_of[1], 2, row->line, SLUICE_CONSTRAINT_UNIQUE);
    if ((row->type == K && !has_node(m, P, row->value[0])) || (row->type == L && !has_node(m, Q, row->value[0])))
        fault(m, row->file, row->record, first, 3, row->line, SLUICE_CONSTRAINT_ENDPOINT);
    if ((row->type == K || row->type == L) && !has_node(m, Q, row->value[1]))
        fault(m, row->file, row->record, row->column_of[1], 3, row->line, SLUICE_CONSTRAINT_ENDPOINT);
    if (row->type == K && taken(m, number, 3))
        fault(m, row->file, row->record, first, 4, row->line, SLUICE_KEY_CONFLICT);
    if (row->type == L && edges_before(m, number) >= 2)
        fault(m, row->file, row->record, first, 5, row->line, SLUICE_CONSTRAINT_CARDINALITY);
}

/* Phase by phase: all rows that are left are judged before one of them is left out. */
static void think_of_phases(model *m)
{
    static model left;

    for (unsigned phase = 1; phase <= 5; phase++) {
        bool refused[ROWS_MAX] = {false};
        sluice_status codes[ROWS_MAX];
        unsigned at = 0;
        left = *m;
        left.row_count = 0;
        for (unsigned i = 0; i < m->row_count; i++)
            if (!m->dead[i])
                left.rows[left.row_count++] = m->rows[i];
        for (unsigned i = 0; i < m->row_count; i++) {
            if (m->dead[i])
                continue;
            left.only = phase;
            left.bad = false;
            check_row(&left, at++);
            refused[i] = left.bad;
            codes[i] = left.code;
        }
        for (unsigned i = 0; i < m->row_count; i++)
            if (refused[i]) {
                m->dead[i] = true;
                reject(m, m->rows[i].file, m->rows[i].record, m->rows[i].line, codes[i]);
            }
    }
}

static void think_skipping(model *m)
{
    unsigned kept = 0;

    m->row_count = m->reject_count = 0;
    m->bad = m->damaged = false;
    memset(m->dead, 0, sizeof m->dead);
    for (unsigned i = 0; i < m->file_count && !m->damaged; i++)
        read_file(m, i);
    if (m->damaged)
        return;
    m->bad = false;
    think_of_phases(m);
    for (unsigned i = 0; i < m->row_count; i++)
        if (!m->dead[i])
            m->rows[kept++] = m->rows[i];
    m->row_count = kept;
}

static void think(model *m)
{
    m->only = 0;
    m->row_count = 0;
    m->bad = false;
    for (unsigned i = 0; i < m->file_count; i++)
        read_file(m, i);
    for (unsigned i = 0; i < m->row_count; i++)
        check_row(m, i);
}

/* ---- comparing ---- */

static void expect_rows(load_fixture *f, const model *m, int type)
{
    char *want = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&want, &length);

    assert_non_null(out);
    for (unsigned i = 0; i < m->base_count; i++)
        for (unsigned c = 0; m->base[i].type == type && c < column_count(type); c++)
            fprintf(out, "[%s]%s", m->base[i].null[c] ? "-" : m->base[i].value[c],
                    c + 1 == column_count(type) ? "\n" : "");
    fclose(out);
    load_fixture_expect(f, type_names[type], want);
    free(want);
}

static void take_over(load_fixture *f, model *m)
{
    for (unsigned i = 0; i < m->row_count && m->base_count < ROWS_MAX; i++)
        m->base[m->base_count++] = m->rows[i];
    for (int type = 0; type < TYPES; type++)
        expect_rows(f, m, type);
}

/* What the load said about each row left out, one a line. */
static void hear_reject(void *context, const char *file, uint64_t line, const char *code, const char *text)
{
    (void)text;
    fprintf(context, "%s:%llu %s\n", strrchr(file, '/') + 1, (unsigned long long)line, code);
}

static void compare_skipping(load_fixture *f, model *m, sluice_status status, const sluice_error *err,
                             const co_load_result *result, const char *heard, uint64_t seed)
{
    char *want = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&want, &length);

    think_skipping(m);
    assert_non_null(out);
    for (unsigned i = 0; i < m->reject_count; i++)
        fprintf(out, "f%u.csv:%llu %s\n", m->rejects[i].file, (unsigned long long)m->rejects[i].line,
                sluice_status_name(m->rejects[i].code));
    fclose(out);
    if (m->damaged != (status != SLUICE_OK) || (m->damaged && status != m->code))
        fail_msg("seed %llu: %s, not %s", (unsigned long long)seed, status == SLUICE_OK ? "loaded" : err->text,
                 m->damaged ? sluice_status_name(m->code) : "loaded");
    if (!m->damaged) {
        if (strcmp(heard, want) != 0 || result->rejected != m->reject_count)
            fail_msg("seed %llu: left out %llu\n%snot %u\n%s", (unsigned long long)seed,
                     (unsigned long long)result->rejected, heard, m->reject_count, want);
        take_over(f, m);
    }
    free(want);
}

static void compare(load_fixture *f, model *m, sluice_status status, const sluice_error *err, uint64_t seed)
{
    char place[300];

    think(m);
    if (m->bad != (status != SLUICE_OK))
        fail_msg("seed %llu: %s, not %s", (unsigned long long)seed, status == SLUICE_OK ? "loaded" : err->text,
                 m->bad ? sluice_status_name(m->code) : "loaded");
    if (!m->bad) {
        take_over(f, m);
        return;
    }
    snprintf(place, sizeof place, "%s/f%u.csv:%llu: ", f->folder, m->file, (unsigned long long)m->line);
    if (status != m->code || strncmp(err->text, place, strlen(place)) != 0)
        fail_msg("seed %llu: %s (%s), not %s (%s)", (unsigned long long)seed, err->text, sluice_status_name(status),
                 place, sluice_status_name(m->code));
}

static void set_sizes(uint64_t *seed)
{
    char text[32];
    snprintf(text, sizeof text, "%u", 4 + (unsigned)(ref_random(seed) % 300));
    setenv("SLUICE_TEST_CHUNK", text, 1);
    snprintf(text, sizeof text, "%u", 1 + (unsigned)(ref_random(seed) % 64));
    setenv("SLUICE_SPLIT", text, 1);
    snprintf(text, sizeof text, "%u", 1 + (unsigned)(ref_random(seed) % 20));
    setenv("SLUICE_TEST_RANGE", text, 1);
}

static void one_graph(uint64_t seed_of_graph, bool skip)
{
    static model m;
    load_fixture f;
    uint64_t seed = seed_of_graph;
    next_keys next = {{0, 0}, 10};

    load_fixture_make(&f, schema);
    m.base_count = 0;
    m.skip = skip;
    m.only = 0;
    for (unsigned load = 0; load < 8 && m.base_count < ROWS_MAX - 250; load++) {
        static const unsigned rates[] = {0, 0, 10, 30, 100}, more[] = {0, 100, 300, 600, 2000};
        unsigned faults = (skip ? more : rates)[ref_random(&seed) % 5];
        next_keys tried = next;
        char inputs[300] = "";
        co_load_result result;
        sluice_error err;
        m.file_count = 1 + (unsigned)(ref_random(&seed) % FILES_MAX);
        for (unsigned i = 0; i < m.file_count; i++) {
            int type = load == 0 ? (int)(ref_random(&seed) % 2) : (int)(ref_random(&seed) % TYPES);
            char name[16];
            make_file(&m.files[i], type, &tried, &seed, faults);
            snprintf(name, sizeof name, "f%u.csv", i);
            load_fixture_write(&f, name, m.files[i].text, m.files[i].length);
            snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), "%s%s=%s", i ? " " : "", type_names[type],
                     name);
        }
        set_sizes(&seed);
        char *heard = NULL;
        size_t length = 0;
        FILE *ear = open_memstream(&heard, &length);
        assert_non_null(ear);
        co_load_options options = {
            .max_errors = UINT64_MAX, .skip_bad_rows = skip, .reject = hear_reject, .reject_context = ear};
        sluice_status status = load_fixture_try(&f, f.graph, inputs, &options, &result, &err);
        fclose(ear);
        if (status == SLUICE_OK)
            next = tried;
        if (skip)
            compare_skipping(&f, &m, status, &err, &result, heard, seed_of_graph);
        else
            compare(&f, &m, status, &err, seed_of_graph);
        if (status == SLUICE_OK)
            co_load_result_free(&result);
        free(heard);
    }
    load_fixture_expect_clean(&f);
    load_fixture_free(&f);
}

static void run_seeds(bool skip)
{
    const char *from = getenv("SLUICE_TEST_SEED");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (from ? 1 : 12); seed++)
        one_graph(seed, skip);
}

static void random_loads_do_what_the_model_says(void **state)
{
    (void)state;
    run_seeds(false);
}

static void random_skipping_loads_leave_out_what_the_model_says(void **state)
{
    (void)state;
    run_seeds(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loads_do_what_the_model_says),
                                       cmocka_unit_test(random_skipping_loads_leave_out_what_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
