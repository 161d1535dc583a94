/*
 * Table state against a naive model: random groups of additions, deletions, updates, substitutions and replacements,
 * with folds riding along (fresh and stale ones); then the rows at every (generation, index) are compared, on the
 * handle that wrote them and on a new one.
 */
#include "store/fragment/fragment.h"
#include "tests/support/graph_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLES     2u
#define MODEL_ROWS 64u /* of one fragment, at most */
#define PLACES_MAX 4000u
#define FRAGMENTS  4000u

/* ---- the model: a list of fragments, each a list of row ids, some of them dead ---- */

typedef struct model_fragment {
    st_fragment_info info;
    uint32_t rows;
    uint64_t ids[MODEL_ROWS];
    bool dead[MODEL_ROWS];
} model_fragment;

typedef struct model_table {
    model_fragment *items;
    uint32_t count;
} model_table;

typedef struct model_place {
    uint64_t generation;
    uint32_t index;
    model_table tables[TABLES];
} model_place;

typedef struct model {
    graph_fixture fixture;
    uint64_t seed;
    uint64_t next_row;
    model_table now[TABLES];
    model_place *places;
    uint32_t place_count;
    st_fold stale[TABLES]; /* a fold that was staged earlier */
    bool has_stale[TABLES];
    unsigned folds_applied, substitutions, replacements, deletions;
} model;

static uint64_t below(model *m, uint64_t bound)
{
    return fixture_below(&m->seed, bound);
}

static model_table copy_table(const model_table *from)
{
    model_table copy = {.items = malloc((from->count + 1) * sizeof(model_fragment)), .count = from->count};
    assert_non_null(copy.items);
    if (from->count > 0)
        memcpy(copy.items, from->items, from->count * sizeof(model_fragment));
    return copy;
}

static void insert(model_table *table, uint32_t at, const model_fragment *fragment)
{
    table->items = realloc(table->items, (table->count + 1) * sizeof(model_fragment));
    assert_non_null(table->items);
    memmove(table->items + at + 1, table->items + at, (table->count - at) * sizeof(model_fragment));
    table->items[at] = *fragment;
    table->count++;
}

static void remove_at(model_table *table, uint32_t at)
{
    memmove(table->items + at, table->items + at + 1, (table->count - at - 1) * sizeof(model_fragment));
    table->count--;
}

/* Kills these row ids where they are alive, in fragments [0, count). */
static void kill_rows(model_fragment *items, uint32_t count, const uint64_t *ids, uint32_t id_count)
{
    for (uint32_t f = 0; f < count; f++)
        for (uint32_t r = 0; r < items[f].rows; r++)
            for (uint32_t i = 0; i < id_count; i++)
                if (items[f].ids[r] == ids[i])
                    items[f].dead[r] = true;
}

static uint32_t living_rows(const model_table *table, uint64_t *ret_ids, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < table->count; f++)
        for (uint32_t r = 0; r < table->items[f].rows && count < room; r++)
            if (!table->items[f].dead[r])
                ret_ids[count++] = table->items[f].ids[r];
    return count;
}

/* ---- making edits ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* A real fragment with explicit row ids (ascending). */
static st_edit_add explicit_add(model *m, uint64_t table, const uint64_t *ids, uint32_t count)
{
    static char id_name[] = "_row_id", commit_name[] = "_commit";
    st_column_spec specs[2] = {{.name = id_name, .type = ST_ROW_ID}, {.name = commit_name, .type = ST_COMMIT_ID}};
    sluice_error err = {0};
    st_fragment_writer *writer = NULL;
    st_column columns[2];
    st_column_builder *builders[2] = {NULL};
    st_edit_add add = {0};
    char name[64];
    fixture_name(&m->fixture, ".arrow", name, sizeof(name));
    ASSERT_OK(st_fragment_create(st_graph_volume(m->fixture.graph), table, name, specs, 2, false, &writer, &err));
    uint32_t batch = count > 3 && below(m, 2) ? count / 2 : count;
    for (uint32_t i = 0; i < 2; i++)
        ASSERT_OK(st_column_builder_new(&specs[i], &builders[i], &err));
    for (uint32_t at = 0; at < count; at += batch) {
        for (uint32_t i = at; i < count && i < at + batch; i++) {
            pf_id commit = {{(uint8_t)i}};
            ASSERT_OK(st_append_u64(builders[0], ids[i], &err));
            ASSERT_OK(st_append_bytes(builders[1], commit.bytes, 16, &err));
        }
        for (uint32_t i = 0; i < 2; i++)
            st_builder_view(builders[i], &columns[i]);
        ASSERT_OK(st_fragment_write(writer, columns, columns[0].length, &err));
        for (uint32_t i = 0; i < 2; i++)
            st_builder_truncate(builders[i], 0);
    }
    ASSERT_OK(st_fragment_finish(writer, &add.fragment, &err));
    for (uint32_t i = 0; i < 2; i++)
        st_column_builder_free(builders[i]);
    return add;
}

static void push_add(st_edit *edit, const st_edit_add *add)
{
    edit->adds = realloc(edit->adds, (edit->add_count + 1) * sizeof(*add));
    assert_non_null(edit->adds);
    edit->adds[edit->add_count++] = *add;
}

static model_fragment modelled(const st_edit_add *add, const uint64_t *ids)
{
    model_fragment fragment = {.info = add->fragment, .rows = (uint32_t)add->fragment.rows};
    memcpy(fragment.ids, ids, fragment.rows * sizeof(*ids));
    return fragment;
}

/* Adds 1 to 3 fragments whose rows G numbers; some of them with rows left out from the start. */
static void make_adds(model *m, uint32_t t, st_edit *edit)
{
    sluice_error err = {0};
    for (uint64_t n = 1 + below(m, 3); n > 0; n--) {
        st_edit_add add = fixture_fake_add(&m->fixture, 1 + below(m, 20));
        uint64_t ids[MODEL_ROWS];
        for (uint32_t r = 0; r < add.fragment.rows; r++)
            ids[r] = m->next_row++;
        model_fragment fragment = modelled(&add, ids);
        if (below(m, 5) == 0 && add.fragment.rows > 1) {
            st_row_set *set = NULL;
            char name[40];
            uint64_t position = below(m, add.fragment.rows);
            ASSERT_OK(st_row_set_new(&set, &err));
            ASSERT_OK(st_row_set_add(set, position, &err));
            fixture_name(&m->fixture, ".dead", name, sizeof(name));
            ASSERT_OK(st_deletion_write(st_graph_volume(m->fixture.graph), edit->table, name, set, &add.dead, &err));
            st_row_set_free(set);
            fragment.dead[position] = true;
        }
        push_add(edit, &add);
        insert(&m->now[t], m->now[t].count, &fragment);
    }
}

/* Deletes some living rows; with `update` puts them in again under the same ids. */
static bool make_delete(model *m, uint32_t t, st_edit *edit, bool update)
{
    sluice_error err = {0};
    static uint64_t living[20000];
    uint64_t chosen[MODEL_ROWS];
    uint32_t count = living_rows(&m->now[t], living, 20000), wanted = 0;
    if (count == 0)
        return false;
    for (uint64_t n = 1 + below(m, update ? 8 : 40); n > 0 && wanted < MODEL_ROWS; n--) {
        uint64_t id = living[below(m, count)];
        bool twice = false;
        for (uint32_t i = 0; i < wanted; i++)
            twice = twice || chosen[i] == id;
        if (!twice)
            chosen[wanted++] = id;
    }
    qsort(chosen, wanted, sizeof(*chosen), compare_ids);
    if (below(m, 2)) {
        edit->delete_rows = calloc(wanted, sizeof(uint64_t));
        assert_non_null(edit->delete_rows);
        memcpy(edit->delete_rows, chosen, wanted * sizeof(uint64_t));
        edit->delete_count = wanted;
    } else {
        st_row_set *set = NULL;
        char name[40];
        ASSERT_OK(st_row_set_new(&set, &err));
        ASSERT_OK(st_row_set_add_many(set, chosen, wanted, &err));
        fixture_name(&m->fixture, ".gone", name, sizeof(name));
        ASSERT_OK(st_deletion_write(st_graph_volume(m->fixture.graph), edit->table, name, set, &edit->deletes, &err));
        st_row_set_free(set);
    }
    kill_rows(m->now[t].items, m->now[t].count, chosen, wanted);
    m->deletions++;
    if (update) {
        st_edit_add add = explicit_add(m, edit->table, chosen, wanted);
        model_fragment fragment = modelled(&add, chosen);
        push_add(edit, &add);
        insert(&m->now[t], m->now[t].count, &fragment);
    }
    return true;
}

static void set_applied(model *m, uint64_t table, const model_fragment *fragment, st_dead_ref *ret)
{
    sluice_error err = {0};
    st_row_set *set = NULL;
    char name[40];
    ASSERT_OK(st_row_set_new(&set, &err));
    for (uint32_t r = 0; r < fragment->rows; r++)
        if (fragment->dead[r])
            ASSERT_OK(st_row_set_add(set, r, &err));
    fixture_name(&m->fixture, ".applied", name, sizeof(name));
    if (st_row_set_count(set) > 0)
        ASSERT_OK(st_deletion_write(st_graph_volume(m->fixture.graph), table, name, set, ret, &err));
    st_row_set_free(set);
}

/* A substitution that was prepared against `base`: up to four fragments of it become one or two; one may only get new
 * runs. */
static bool make_substitution(model *m, uint32_t t, const model_table *base, st_edit *edit)
{
    static uint64_t ids[5 * MODEL_ROWS];
    uint32_t count = 0, out = 0;
    if (base->count < 2)
        return false;
    uint32_t first = (uint32_t)below(m, base->count);
    edit->out = calloc(5, sizeof(st_edit_out));
    assert_non_null(edit->out);
    for (uint32_t f = first; f < base->count && out < 4; f += 1 + (uint32_t)below(m, 3)) {
        const model_fragment *fragment = &base->items[f];
        uint32_t living = 0;
        for (uint32_t r = 0; r < fragment->rows; r++)
            living += !fragment->dead[r];
        if (count + living > 2 * MODEL_ROWS)
            break;
        for (uint32_t r = 0; r < fragment->rows; r++)
            if (!fragment->dead[r])
                ids[count++] = fragment->ids[r];
        st_edit_out *leaving = &edit->out[out++];
        memcpy(leaving->fragment, fragment->info.name, sizeof(leaving->fragment));
        leaving->bytes = fragment->info.bytes;
        set_applied(m, edit->table, fragment, &leaving->applied);
    }
    edit->out_count = out;
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (uint32_t at = 0; at < count; at += MODEL_ROWS) {
        st_edit_add add = explicit_add(m, edit->table, ids + at, count - at < MODEL_ROWS ? count - at : MODEL_ROWS);
        push_add(edit, &add);
    }
    if (edit->add_count > 0) /* some stand in the place of the last one */
        edit->out[out - 1].incoming = (uint32_t)below(m, edit->add_count + 1);
    m->substitutions++;
    (void)t;
    return out > 0;
}

/* The same on the model, as it stands now: later deletions go on to what comes in. */
static void substitute_in_model(model_table *table, const model_table *base, const st_edit *edit)
{
    uint64_t later[5 * MODEL_ROWS];
    uint32_t later_count = 0, claimed = 0;
    bool placed = false;
    uint64_t ids[5 * MODEL_ROWS];
    uint32_t count = 0;
    for (uint32_t o = 0; o < edit->out_count; o++) {
        for (uint32_t f = 0; f < base->count; f++) {
            if (strcmp(base->items[f].info.name, edit->out[o].fragment) != 0)
                continue;
            for (uint32_t r = 0; r < base->items[f].rows; r++)
                if (!base->items[f].dead[r])
                    ids[count++] = base->items[f].ids[r];
        }
        for (uint32_t f = 0; f < table->count; f++) {
            model_fragment *now = &table->items[f];
            if (strcmp(now->info.name, edit->out[o].fragment) != 0)
                continue;
            for (uint32_t b = 0; b < base->count; b++)
                for (uint32_t r = 0; r < now->rows && strcmp(base->items[b].info.name, now->info.name) == 0; r++)
                    if (now->dead[r] && !base->items[b].dead[r])
                        later[later_count++] = now->ids[r];
        }
    }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (uint32_t o = 0; o < edit->out_count; o++)
        claimed += edit->out[o].incoming;
    for (uint32_t f = 0; f < table->count; f++) {
        uint32_t o = 0, first = 0;
        for (; o < edit->out_count && strcmp(table->items[f].info.name, edit->out[o].fragment) != 0; o++)
            first += edit->out[o].incoming;
        if (o == edit->out_count)
            continue;
        remove_at(table, f);
        for (uint32_t k = 0; k < 2 * edit->add_count; k++) { /* what nobody claims first */
            uint32_t a = k % edit->add_count;
            bool unclaimed = k < edit->add_count && a >= claimed && !placed;
            bool mine = k >= edit->add_count && a >= first && a - first < edit->out[o].incoming;
            if (!unclaimed && !mine)
                continue;
            model_fragment fragment = modelled(&edit->adds[a], ids + a * MODEL_ROWS);
            kill_rows(&fragment, 1, later, later_count);
            insert(table, f++, &fragment);
        }
        placed = true;
        f--;
    }
}

/* ---- comparing ---- */

static void compare_table(st_graph *graph, const st_view *view, uint64_t table, const model_table *model_)
{
    sluice_error err = {0};
    st_table_list list = {0};
    const st_table_entry *entry = st_view_table(view, table);
    uint64_t rows = 0, bytes = 0;
    ASSERT_OK(st_table_materialise(graph, view, table, &list, &err));
    assert_int_equal(list.count, model_->count);
    for (uint32_t f = 0; f < list.count; f++) {
        const model_fragment *wanted = &model_->items[f];
        const st_edit_add *got = &list.fragments[f];
        uint64_t dead = 0;
        assert_string_equal(got->fragment.name, wanted->info.name);
        assert_int_equal(got->fragment.rows, wanted->rows);
        if (!got->fragment.explicit_ids)
            assert_int_equal(got->first_row, wanted->ids[0]);
        for (uint32_t r = 0; r < wanted->rows; r++) {
            if (!wanted->dead[r])
                continue;
            assert_true(dead < list.dead_count[f]);
            assert_int_equal(list.dead[f][dead], r);
            dead++;
        }
        assert_int_equal(list.dead_count[f], dead);
        rows += wanted->rows - dead;
        bytes += wanted->info.bytes;
    }
    assert_int_equal(entry->rows, rows);
    assert_int_equal(entry->bytes, bytes);
    st_table_list_free(&list);
}

static void compare_place(st_graph *graph, st_log *log, const model_place *place)
{
    sluice_error err = {0};
    st_view *view = NULL;
    ASSERT_OK(st_view_load_at(graph, log, place->generation, place->index, &view, &err));
    for (uint32_t t = 0; t < TABLES; t++)
        compare_table(graph, view, PERSON + t, &place->tables[t]);
    st_view_free(view);
}

/* ---- one group ---- */

static void take_fold(model *m, st_delta *delta, const st_view *view, uint32_t t)
{
    sluice_error err = {0};
    char stem[40];
    st_fold fold = {0};
    if (!st_view_table(view, PERSON + t) || st_view_table(view, PERSON + t)->edit_count == 0)
        return;
    fixture_name(&m->fixture, "-fold", stem, sizeof(stem));
    ASSERT_OK(st_fold_stage(m->fixture.graph, view, PERSON + t, false, stem, &fold, &err));
    if (!m->has_stale[t] && below(m, 3) == 0) { /* kept for a later group, where it may not lead any more */
        m->stale[t] = fold;
        m->has_stale[t] = true;
        return;
    }
    if (m->has_stale[t] && below(m, 2)) {
        st_fold other = m->stale[t];
        m->has_stale[t] = false;
        st_fold_free(&fold);
        fold = other;
    }
    delta->folds = realloc(delta->folds, (delta->fold_count + 1) * sizeof(fold));
    assert_non_null(delta->folds);
    delta->folds[delta->fold_count++] = fold;
}

static void fill_delta(model *m, st_delta *delta, const model_table *bases, bool *substituted, bool *replaced)
{
    sluice_error err = {0};
    uint32_t t = (uint32_t)below(m, TABLES);
    uint64_t what = below(m, 20);
    st_edit edit = {.table = PERSON + t};
    char stem[40];
    fixture_delta(&m->fixture, delta);
    if (what == 0 && !substituted[t] && !replaced[t]) {
        m->now[t].count = 0;
        edit.replace = true;
        replaced[t] = true;
        m->replacements++;
        make_adds(m, t, &edit);
    } else if (what < 4 && !substituted[t] && !replaced[t] && make_substitution(m, t, &bases[t], &edit)) {
        substitute_in_model(&m->now[t], &bases[t], &edit);
        substituted[t] = true;
    } else if (what < 9 && edit.out_count == 0 && !substituted[t] && make_delete(m, t, &edit, what < 6)) {
        if (below(m, 3) == 0)
            make_adds(m, t, &edit);
    } else if (edit.add_count == 0) {
        make_adds(m, t, &edit);
    }
    fixture_name(&m->fixture, "", stem, sizeof(stem));
    ASSERT_OK(st_delta_add_edit(st_graph_volume(m->fixture.graph), delta, &edit, stem, &err));
}

static void note_place(model *m, uint64_t generation, uint32_t index)
{
    assert_true(m->place_count < PLACES_MAX);
    model_place *place = &m->places[m->place_count++];
    *place = (model_place){.generation = generation, .index = index};
    for (uint32_t t = 0; t < TABLES; t++)
        place->tables[t] = copy_table(&m->now[t]);
}

static void publish_group(model *m)
{
    sluice_error err = {0};
    st_delta members[8], *deltas[8];
    model_table bases[TABLES];
    bool substituted[TABLES] = {false}, replaced[TABLES] = {false};
    st_view *view = fixture_head(&m->fixture);
    uint32_t count = 1 + (uint32_t)below(m, 8), before = 0, after = 0;
    for (uint32_t t = 0; t < TABLES; t++) {
        bases[t] = copy_table(&m->now[t]);
        before += st_view_table(view, PERSON + t)->edit_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        deltas[i] = &members[i];
        fill_delta(m, &members[i], bases, substituted, replaced);
        note_place(m, view->generation + 1, i);
        if (below(m, 4) == 0)
            take_fold(m, &members[i], view, (uint32_t)below(m, TABLES));
    }
    ASSERT_OK(fixture_publish(&m->fixture, deltas, count, &err));
    st_view_free(view);
    view = fixture_head(&m->fixture);
    for (uint32_t t = 0; t < TABLES; t++) {
        after += st_view_table(view, PERSON + t)->edit_count;
        free(bases[t].items);
    }
    m->folds_applied += after < before + count && !replaced[0] && !replaced[1];
    st_view_free(view);
    for (uint32_t i = 0; i < count; i++)
        st_delta_free(&members[i]);
}

static void run_model(uint64_t seed, unsigned groups)
{
    static model m;
    sluice_error err = {0};
    m = (model){.seed = seed, .next_row = ST_ROW_BLOCK};
    graph_fixture_make(&m.fixture, seed);
    m.places = calloc(PLACES_MAX, sizeof(*m.places));
    assert_non_null(m.places);
    for (unsigned g = 0; g < groups; g++)
        publish_group(&m);
    assert_true(m.folds_applied > 0 && m.substitutions > 0 && m.deletions > 0);
    for (uint32_t i = 0; i < m.place_count; i++)
        compare_place(m.fixture.graph, m.fixture.log, &m.places[i]);
    st_graph *other = graph_fixture_open(&m.fixture, PF_READ);
    st_log *log = NULL;
    ASSERT_OK(st_graph_log(other, ST_MAIN_INCARNATION, &log, &err));
    for (uint32_t i = 0; i < m.place_count; i += 3)
        compare_place(other, log, &m.places[i]);
    st_graph_close(other);
    for (uint32_t i = 0; i < m.place_count; i++)
        for (uint32_t t = 0; t < TABLES; t++)
            free(m.places[i].tables[t].items);
    for (uint32_t t = 0; t < TABLES; t++) {
        free(m.now[t].items);
        if (m.has_stale[t])
            st_fold_free(&m.stale[t]);
    }
    free(m.places);
    graph_fixture_free(&m.fixture);
}

static void rows_at_every_place_equal_the_models(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        run_model(seed * UINT64_C(7919) + 5, 24);
}

/* ---- substitutions that do not hold ---- */

static void a_substitution_holds_only_while_what_it_takes_out_is_there(void **state)
{
    (void)state;
    graph_fixture fixture;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_table_list list = {0};
    st_row_set *set = NULL;
    static model m;
    graph_fixture_make(&fixture, 5);
    m = (model){.fixture = fixture, .seed = 3};
    st_edit_add add = fixture_fake_add(&m.fixture, 4);
    char name[64];
    memcpy(name, add.fragment.name, sizeof(name));
    fixture_delta(&m.fixture, &delta);
    fixture_add(&m.fixture, &delta, PERSON, &add);
    ASSERT_OK(fixture_publish(&m.fixture, deltas, 1, &err));
    st_delta_free(&delta);
    uint64_t ids[4] = {ST_ROW_BLOCK, ST_ROW_BLOCK + 1, ST_ROW_BLOCK + 2, ST_ROW_BLOCK + 3};
    st_edit_add in = explicit_add(&m, PERSON, ids, 4);
    st_edit_out out = {.bytes = 400};
    memcpy(out.fragment, name, sizeof(out.fragment));
    st_edit edit = {.table = PERSON, .adds = &in, .add_count = 1, .out = &out, .out_count = 1};
    st_view *view = fixture_head(&m.fixture);
    ASSERT_OK(st_table_try_edit(m.fixture.graph, view, &edit, &list, &err));
    assert_int_equal(list.count, 1);
    assert_string_equal(list.fragments[0].fragment.name, in.fragment.name);
    st_table_list_free(&list);
    ASSERT_OK(st_row_set_new(&set, &err)); /* it says that it applied a deletion which does not stand */
    ASSERT_OK(st_row_set_add(set, 2, &err));
    ASSERT_OK(st_deletion_write(st_graph_volume(m.fixture.graph), PERSON, "applied", set, &out.applied, &err));
    st_row_set_free(set);
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, st_table_try_edit(m.fixture.graph, view, &edit, &list, &err));
    out.applied = (st_dead_ref){0};
    out.fragment[1]++; /* a fragment that is not listed */
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, st_table_try_edit(m.fixture.graph, view, &edit, &list, &err));
    st_view_free(view);
    graph_fixture_free(&m.fixture);
}

/* A fragment that comes in under its own name: new runs, everything else as it was. */
static void a_fragment_may_be_substituted_by_itself_with_new_runs(void **state)
{
    (void)state;
    graph_fixture fixture;
    sluice_error err = {0};
    st_delta delta, *deltas[1] = {&delta};
    st_table_list list = {0};
    graph_fixture_make(&fixture, 6);
    st_edit_add first = fixture_fake_add(&fixture, 5), second = fixture_fake_add(&fixture, 5);
    fixture_delta(&fixture, &delta);
    fixture_add(&fixture, &delta, PERSON, &first);
    fixture_add(&fixture, &delta, PERSON, &second);
    ASSERT_OK(fixture_publish(&fixture, deltas, 1, &err));
    pf_id writer = delta.commit.id;
    st_delta_free(&delta);
    fixture_delta(&fixture, &delta);
    st_edit edit = {.table = PERSON, .delete_rows = calloc(1, sizeof(uint64_t)), .delete_count = 1};
    assert_non_null(edit.delete_rows);
    edit.delete_rows[0] = ST_ROW_BLOCK + 2;
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture.graph), &delta, &edit, "d", &err));
    ASSERT_OK(fixture_publish(&fixture, deltas, 1, &err));
    st_delta_free(&delta);

    fixture_delta(&fixture, &delta);
    edit = (st_edit){.table = PERSON,
                     .adds = calloc(1, sizeof(st_edit_add)),
                     .add_count = 1,
                     .out = calloc(1, sizeof(st_edit_out)),
                     .out_count = 1};
    assert_true(edit.adds && edit.out);
    edit.adds[0] = first;
    edit.adds[0].runs = calloc(1, sizeof(st_run_ref));
    assert_non_null(edit.adds[0].runs);
    edit.adds[0].run_count = 1;
    edit.adds[0].runs[0] = (st_run_ref){.use = ST_RUN_KEY, .info = {.name = "fresh.run", .entries = 5}};
    memcpy(edit.out[0].fragment, first.fragment.name, sizeof(edit.out[0].fragment));
    edit.out[0].bytes = first.fragment.bytes;
    ASSERT_OK(st_delta_add_edit(st_graph_volume(fixture.graph), &delta, &edit, "s", &err));
    ASSERT_OK(fixture_publish(&fixture, deltas, 1, &err));
    st_delta_free(&delta);
    st_view *view = fixture_head(&fixture);
    assert_int_equal(st_view_table(view, PERSON)->rows, 9);
    assert_int_equal(st_view_table(view, PERSON)->bytes, 1000);
    ASSERT_OK(st_table_materialise(fixture.graph, view, PERSON, &list, &err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.fragments[0].fragment.name, first.fragment.name);
    assert_string_equal(list.fragments[0].runs[0].info.name, "fresh.run");
    assert_int_equal(list.fragments[0].first_row, ST_ROW_BLOCK);
    assert_true(pf_id_equal(&list.fragments[0].commit, &writer));
    assert_int_equal(list.dead_count[0], 1);
    assert_int_equal(list.dead[0][0], 2);
    st_table_list_free(&list);
    st_view_free(view);
    graph_fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_at_every_place_equal_the_models),
        cmocka_unit_test(a_substitution_holds_only_while_what_it_takes_out_is_there),
        cmocka_unit_test(a_fragment_may_be_substituted_by_itself_with_new_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
