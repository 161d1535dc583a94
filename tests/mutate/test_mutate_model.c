/*
 * Random files of mutations against a model: the same verdict, the same counts, the same rows, whatever was attached,
 * staged or folded on the way. The same seed gives the same files.
 */
#include "mutate_fixture.h"
#include "tests/support/graph_fixture.h" /* fixture_random */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 6u
#define NIL  (-1)

typedef struct model_node {
    bool exists;
    int a, b, u;
} model_node;

typedef struct model_edge {
    bool exists;
    int w;
} model_edge;

typedef struct model_graph {
    model_node nodes[KEYS];
    model_edge edges[KEYS][KEYS];
} model_graph;

typedef struct model_run {
    uint64_t random;
    model_graph base, now;
    char text[16384];
    size_t length;
    unsigned faults; /* bit s: a fault with exit-deciding code s may be told */
    bool ended;      /* a record's own fault ends the file */
} model_run;

static unsigned below(model_run *m, unsigned bound)
{
    return (unsigned)fixture_below(&m->random, bound);
}

static void say(model_run *m, const char *format, ...) PF_PRINTF(2, 3);
static void say(model_run *m, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(m->text + m->length, sizeof m->text - m->length, format, arguments);
    va_end(arguments);
    assert_true(length > 0 && (size_t)length < sizeof m->text - m->length);
    m->length += (size_t)length;
}

static void say_value(model_run *m, const char *name, int value, bool text)
{
    if (value == NIL)
        say(m, "\"%s\":null", name);
    else if (text)
        say(m, "\"%s\":\"u%d\"", name, value);
    else
        say(m, "\"%s\":%d", name, value);
}

static void fault(model_run *m, sluice_status code)
{
    m->faults |= 1u << (unsigned)code;
    m->ended = true;
}

/* A random "set" of some properties. */
static void set_some(model_run *m, model_node *node)
{
    unsigned which = 1 + below(m, 7);
    const char *comma = "";
    say(m, ",\"set\":{");
    if (which & 1) {
        node->a = (int)below(m, 4) - 1;
        say_value(m, "a", node->a, false);
        comma = ",";
    }
    if (which & 2) {
        node->b = (int)below(m, 4) - 1;
        say(m, "%s", comma[0] ? comma : " ");
        say_value(m, "b", node->b, false);
        comma = ",";
    }
    if (which & 4) {
        node->u = (int)below(m, 24) - 14;
        node->u = node->u < 0 ? NIL : node->u;
        say(m, "%s", comma[0] ? comma : " ");
        say_value(m, "u", node->u, true);
    }
    say(m, "}");
}

static void detach(model_run *m, unsigned key)
{
    for (unsigned i = 0; i < KEYS; i++)
        m->now.edges[key][i].exists = m->now.edges[i][key].exists = false;
}

static void node_record(model_run *m)
{
    static const model_node fresh = {true, NIL, NIL, NIL};
    unsigned key = below(m, KEYS), op = below(m, 12);
    model_node *node = &m->now.nodes[key], changed = *node;
    bool holds = true, careful = below(m, 16) > 0;
    if (careful && op < 2 && node->exists)
        op = 5;
    if (careful && op >= 4 && !node->exists)
        op = below(m, 2) ? 0 : 2;
    if (careful && op == 7)
        op = 8;
    static const char *const ops[] = {"insert", "insert", "upsert", "upsert", "update", "update",
                                      "update", "delete", "delete", "delete", "assert", "assert"};
    say(m, "{\"op\":\"%s\",\"node\":\"P\",\"key\":%u", ops[op], key);
    if (op < 4 && !node->exists)
        changed = fresh;
    if (op < 7)
        set_some(m, &changed);
    if ((op == 6 || op == 9) && below(m, 2)) {
        int a = (int)below(m, 4) - 1;
        holds = node->a == a;
        say(m, ",\"if\":{");
        say_value(m, "a", a, false);
        say(m, "}");
    }
    if (op < 2 && node->exists)
        fault(m, SLUICE_KEY_CONFLICT);
    if (op >= 4 && op < 10 && !node->exists)
        fault(m, SLUICE_NOT_FOUND);
    if (op == 8 || op == 9) {
        say(m, ",\"detach\":true");
        if (holds && !m->ended)
            detach(m, key);
    }
    if (op >= 7 && op < 10)
        changed.exists = false;
    if (op == 10) {
        bool absent = careful ? !node->exists : below(m, 2) == 0;
        say(m, absent ? ",\"absent\":true" : ",\"present\":true");
        if (node->exists == absent)
            fault(m, SLUICE_WRITE_CONFLICT);
    } else if (op == 11) {
        int b = careful && node->exists ? node->b : (int)below(m, 4) - 1;
        say(m, ",\"equals\":{");
        say_value(m, "b", b, false);
        say(m, "}");
        if (!node->exists || node->b != b)
            fault(m, SLUICE_WRITE_CONFLICT);
    }
    say(m, "}\n");
    if (holds && op < 10 && !m->ended)
        *node = changed;
}

static void edge_record(model_run *m)
{
    static const char *const ops[] = {"insert", "insert", "upsert", "update", "delete"};
    unsigned from = below(m, KEYS), to = below(m, KEYS), op = below(m, 5);
    model_edge *edge = &m->now.edges[from][to];
    bool careful = below(m, 16) > 0;
    if (careful && (!m->now.nodes[from].exists || !m->now.nodes[to].exists))
        return;
    if (careful && op < 2 && edge->exists)
        op = 4;
    if (careful && op >= 3 && !edge->exists)
        op = 0;
    say(m, "{\"op\":\"%s\",\"edge\":\"E\",\"from\":%u,\"to\":%u", ops[op], from, to);
    if (op < 2 && edge->exists)
        fault(m, SLUICE_KEY_CONFLICT);
    if (op >= 3 && !edge->exists)
        fault(m, SLUICE_NOT_FOUND);
    model_edge changed = {op < 4, edge->exists ? edge->w : NIL};
    if (op < 4 && (op == 3 || below(m, 2))) {
        changed.w = (int)below(m, 3) - 1;
        say(m, ",\"set\":{");
        say_value(m, "w", changed.w, false);
        say(m, "}");
    }
    say(m, "}\n");
    if (!m->ended)
        *edge = changed;
}

/* What is wrong with the net effect. */
static void judge(model_run *m)
{
    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned k = 0; k < KEYS; k++) {
            if (m->now.edges[i][k].exists && !(m->now.nodes[i].exists && m->now.nodes[k].exists))
                m->faults |= 1u << SLUICE_CONSTRAINT_ENDPOINT;
            if (i != k && m->now.nodes[i].exists && m->now.nodes[k].exists && m->now.nodes[i].u != NIL &&
                m->now.nodes[i].u == m->now.nodes[k].u)
                m->faults |= 1u << SLUICE_CONSTRAINT_UNIQUE;
        }
    }
}

static void count(bool before, bool after, bool differs, uint64_t *counts)
{
    counts[0] += after && !before;
    counts[1] += after && before && differs;
    counts[2] += before && !after;
}

static void count_all(const model_run *m, uint64_t counts[3])
{
    for (unsigned i = 0; i < KEYS; i++) {
        const model_node *old = &m->base.nodes[i], *new = &m->now.nodes[i];
        count(old->exists, new->exists, old->a != new->a || old->b != new->b || old->u != new->u, counts);
        for (unsigned k = 0; k < KEYS; k++) {
            const model_edge *was = &m->base.edges[i][k], *is = &m->now.edges[i][k];
            count(was->exists, is->exists, was->w != is->w, counts);
        }
    }
}

/* ---- comparing ---- */

static void put(char *rows, size_t room, const char *format, ...) PF_PRINTF(3, 4);
static void put(char *rows, size_t room, const char *format, ...)
{
    size_t length = strlen(rows);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(rows + length, room - length, format, arguments);
    va_end(arguments);
}

static void put_value(char *rows, size_t room, int value, bool text)
{
    if (value == NIL)
        put(rows, room, ",null");
    else
        put(rows, room, text ? ",\"u%d\"" : ",%d", value);
}

static void compare(const model_graph *model, st_graph *graph)
{
    char nodes[2048] = "", edges[4096] = "";
    for (unsigned i = 0; i < KEYS; i++) {
        const model_node *node = &model->nodes[i];
        for (unsigned k = 0; k < KEYS; k++) {
            if (!model->edges[i][k].exists)
                continue;
            put(edges, sizeof edges, "[%u,%u", i, k);
            put_value(edges, sizeof edges, model->edges[i][k].w, false);
            put(edges, sizeof edges, "]\n");
        }
        if (!node->exists)
            continue;
        put(nodes, sizeof nodes, "[%u", i);
        put_value(nodes, sizeof nodes, node->a, false);
        put_value(nodes, sizeof nodes, node->b, false);
        put_value(nodes, sizeof nodes, node->u, true);
        put(nodes, sizeof nodes, ",null]\n");
    }
    mutate_expect(graph, "P", nodes);
    mutate_expect(graph, "E", edges);
}

static void one_file(model_run *m, st_graph *graph)
{
    uint64_t counts[3] = {0};
    unsigned records = 1 + below(m, below(m, 3) ? 6 : 24);
    m->now = m->base;
    m->length = 0;
    m->text[0] = '\0';
    m->faults = 0;
    m->ended = false;
    for (unsigned i = 0; i < records && !m->ended; i++) {
        if (below(m, 5) < 3)
            node_record(m);
        else
            edge_record(m);
    }
    if (!m->ended)
        judge(m);
    count_all(m, counts);
    assert_int_equal(below(m, 4) ? unsetenv("SLUICE_NO_ATTACH") : setenv("SLUICE_NO_ATTACH", "1", 1), 0);
    mutate_try try_ = {.text = m->text};
    mutate_run(graph, &try_);
    bool fits =
        m->faults ? (try_.status != SLUICE_OK && (m->faults & 1u << (unsigned)try_.status)) : try_.status == SLUICE_OK;
    if (!fits)
        print_error("%s%s: %s\n", m->text, sluice_status_name(try_.status), try_.error.text);
    assert_true(fits);
    if (m->faults)
        return;
    assert_int_equal(try_.result.inserted, counts[0]);
    assert_int_equal(try_.result.updated, counts[1]);
    assert_int_equal(try_.result.deleted, counts[2]);
    assert_int_equal(try_.result.receipt.committed, counts[0] + counts[1] + counts[2] > 0);
    m->base = m->now;
}

static void random_files_do_what_the_model_says(void **state)
{
    (void)state;
    bool at_length = getenv("SLUICE_LONG") != NULL;
    unsigned seeds = at_length ? 40 : 2, files = at_length ? 250 : 80, committed = 0;
    for (unsigned seed = 1; seed <= seeds; seed++) {
        model_run *m = calloc(1, sizeof *m);
        assert_non_null(m);
        m->random = 88172645463325252u + seed;
        pf_sim_disk *disk = mutate_disk(seed);
        st_graph *graph = mutate_open(disk);
        for (unsigned i = 0; i < files; i++) {
            one_file(m, graph);
            committed += m->faults == 0;
            compare(&m->base, graph);
            if (i % 40 == 39) {
                st_graph_close(graph);
                graph = mutate_open(disk);
                mutate_expect_whole(graph);
            }
        }
        st_graph_close(graph);
        pf_sim_disk_free(disk);
        pf_sim_world_remove();
        free(m);
    }
    assert_int_equal(unsetenv("SLUICE_NO_ATTACH"), 0);
    print_message("%u of %u files went through\n", committed, seeds * files);
    assert_true(committed > seeds * 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_files_do_what_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
