#include "worker/ingest/probe.h"

#include "platform/check.h"
#include "worker/ingest/ends.h"
#include "worker/ingest/group.h"
#include <stdlib.h>
#include <string.h>

#define RANGE_ENTRIES (UINT64_C(1) << 20) /* about so many entries of the load in one range */
#define RANGES_MAX    4096u

/* ---- what is to be checked ---- */

static uint64_t entries_of(const wk_catalogue *catalogue, const st_type_def *type, const wk_run_plan *plan)
{
    uint64_t entries = 0;

    for (uint32_t i = 0; i < catalogue->count; i++) {
        const wk_staged *item = &catalogue->items[i];
        for (uint32_t r = 0; item->table == type->table && r < item->add.run_count; r++)
            if (item->add.runs[r].use == plan->use && item->add.runs[r].unique == plan->unique)
                entries += item->add.runs[r].info.entries;
    }
    return entries;
}

static bool is_in_catalogue(const wk_catalogue *catalogue, const st_type_def *type)
{
    for (uint32_t i = 0; i < catalogue->count; i++)
        if (catalogue->items[i].table == type->table && catalogue->items[i].add.fragment.rows > 0)
            return true;
    return false;
}

static void add_probe(wk_probe *probes, uint32_t *count, wk_rule rule, const st_type_def *type, const st_type_def *node,
                      const wk_run_plan *plan, uint64_t limit)
{
    probes[(*count)++] = (wk_probe){.rule = rule, .type = type, .node = node, .plan = *plan, .limit = limit};
}

static void add_probes_of(const st_schema *schema, const st_type_def *type, const wk_run_plan *plan, wk_probe *probes,
                          uint32_t *count)
{
    const st_type_def *node = NULL;
    uint64_t limit = ST_NO_LIMIT;

    switch (plan->use) {
    case ST_RUN_KEY:
        add_probe(probes, count, type->edge ? WK_RULE_IDENTITY : WK_RULE_KEY, type, NULL, plan, 0);
        break;
    case ST_RUN_UNIQUE:
        add_probe(probes, count, WK_RULE_UNIQUE, type, NULL, plan, 0);
        break;
    case ST_RUN_FROM:
    case ST_RUN_TO:
        node = &schema->types[plan->use == ST_RUN_FROM ? type->from : type->to];
        limit = plan->use == ST_RUN_FROM ? type->max_out : type->max_in;
        add_probe(probes, count, WK_RULE_ENDS, type, node, plan, 0);
        if (limit != ST_NO_LIMIT)
            add_probe(probes, count, WK_RULE_COUNTS, type, node, plan, limit);
        break;
    }
}

static int by_rule(const void *a, const void *b)
{
    const wk_probe *left = a, *right = b;
    return (left->rule > right->rule) - (left->rule < right->rule);
}

sluice_status wk_probes_make(const st_schema *schema, const wk_catalogue *catalogue, wk_probe **ret_probes,
                             uint32_t *ret_count, sluice_error *err)
{
    wk_probe *probes = NULL;
    uint32_t count = 0, room = 0;

    *ret_probes = NULL;
    *ret_count = 0;
    for (uint32_t t = 0; t < schema->type_count; t++) {
        const st_type_def *type = &schema->types[t];
        wk_run_plan *plans = NULL;
        uint32_t plan_count = 0;
        if (!is_in_catalogue(catalogue, type))
            continue;
        sluice_status status = wk_run_plans(type, &plans, &plan_count, err);
        room += 2 * plan_count;
        wk_probe *grown = status == SLUICE_OK ? realloc(probes, ((size_t)room + 1) * sizeof *probes) : NULL;
        if (grown == NULL) {
            free(plans);
            free(probes);
            return status == SLUICE_OK ? pf_fail_memory(err) : status;
        }
        probes = grown;
        for (uint32_t p = 0; p < plan_count; p++)
            add_probes_of(schema, type, &plans[p], probes, &count);
        free(plans);
    }
    for (uint32_t i = 0; i < count; i++)
        probes[i].entries = entries_of(catalogue, probes[i].type, &probes[i].plan);
    /* Stable, since types and plans come in one order and sorting moves rules only: see the test of order. */
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0 && by_rule(&probes[j - 1], &probes[j]) > 0; j--) {
            wk_probe swapped = probes[j];
            probes[j] = probes[j - 1];
            probes[j - 1] = swapped;
        }
    *ret_probes = probes;
    *ret_count = count;
    return SLUICE_OK;
}

sluice_status wk_probe_make_stranded(const st_type_def *type, const st_type_def *node, st_run_use use,
                                     st_snapshot *base, wk_probe *ret_probe, sluice_error *err)
{
    *ret_probe = (wk_probe){.rule = WK_RULE_STRANDED, .type = type, .node = node, .node_alone = true};
    ret_probe->plan = (wk_run_plan){.use = use, .columns = {use == ST_RUN_TO}, .count = 1};
    return st_snapshot_count(base, type, &ret_probe->entries, err);
}

static uint64_t range_entries(void)
{
#if SLUICE_FAILPOINTS
    const char *value = getenv("SLUICE_TEST_RANGE");
    unsigned long entries = value ? strtoul(value, NULL, 10) : 0;
    if (entries > 0 && entries < RANGE_ENTRIES)
        return entries;
#endif
    return RANGE_ENTRIES;
}

uint32_t wk_probe_ranges(const wk_probe *probe)
{
    uint64_t ranges = probe->entries / range_entries() + 1;
    return ranges < RANGES_MAX ? (uint32_t)ranges : RANGES_MAX;
}

wk_range wk_probe_range(uint32_t ranges, uint32_t number)
{
    uint64_t width = ranges > 1 ? UINT64_MAX / ranges : UINT64_MAX;

    PF_ASSERT(number < ranges);
    return (wk_range){.low = number == 0 ? 0 : number * width + 1,
                      .high = number + 1 == ranges ? UINT64_MAX : (number + 1) * width};
}

/* ---- checking ---- */

typedef struct checking {
    const wk_probe_run *run;
    const wk_probe *probe;
    bool exact;
    wk_side *load, *base; /* of the type whose rows are checked */
    wk_side *node_load, *node_base;
    wk_run_plan node_plan; /* the node's key */
    wk_stream *stream;     /* the load's entries, which drive the check */
    wk_stream *behind;     /* the same once more, where the last one counts */
    wk_lookup *lookup_load, *lookup_base;
    wk_places places;
    wk_group group;
    struct ordered_place *same; /* entries of one hash, where they do not come in order of the input */
    uint32_t same_count, same_room, same_next;
} checking;

static sluice_status report(checking *c, const wk_place *place, const wk_place *other, sluice_error *err)
{
    wk_event event = {.probe = c->run->number};

    if (place) {
        event.item = wk_side_item(place->side, place->fragment);
        event.position = place->position;
        event.argument = c->run->catalogue->items[event.item].argument;
        PF_TRY(wk_side_record(place->side, place->fragment, place->position, &event.record, err));
    }
    if (other) {
        event.has_other = true;
        event.other_in_base = wk_side_is_base(other->side);
        event.other_item = event.other_in_base ? other->fragment : wk_side_item(other->side, other->fragment);
        event.other_position = other->position;
    }
    return c->run->each(c->run->context, &event, err);
}

/* ---- entries of one hash, in order of the input ---- */

typedef struct ordered_place {
    wk_place place;
    uint32_t argument;
    uint64_t record;
} ordered_place;

static int by_input(const void *a, const void *b)
{
    const ordered_place *left = a, *right = b;
    if (left->argument != right->argument)
        return left->argument < right->argument ? -1 : 1;
    return left->record < right->record ? -1 : left->record > right->record;
}

/* Added and updated rows of a chunk are in two fragments, each in an order of its own: all entries of the hash are
 * gathered, beginning with the first, and sorted. */
static sluice_status gather(checking *c, uint64_t hash, wk_place place, sluice_error *err)
{
    uint64_t next;

    c->same_count = c->same_next = 0;
    for (;;) {
        if (c->same_count == c->same_room) {
            uint32_t room = c->same_room ? c->same_room * 2 : 16;
            ordered_place *same = realloc(c->same, room * sizeof *same);
            if (same == NULL)
                return pf_fail_memory(err);
            c->same = same;
            c->same_room = room;
        }
        ordered_place *item = &c->same[c->same_count++];
        item->place = place;
        item->argument = c->run->catalogue->items[wk_side_item(place.side, place.fragment)].argument;
        PF_TRY(wk_side_record(place.side, place.fragment, place.position, &item->record, err));
        if (!wk_stream_peek(c->stream, &next) || next != hash)
            break;
        PF_TRY(wk_stream_next(c->stream, &place, err));
    }
    qsort(c->same, c->same_count, sizeof *c->same, by_input);
    return SLUICE_OK;
}

/* The next entry of the hash; false: there is none. */
static sluice_status next_same(checking *c, uint64_t hash, wk_place *place, bool *ret_any, sluice_error *err)
{
    uint64_t next;

    if (c->run->catalogue->spool != NULL) {
        *ret_any = c->same_next < c->same_count;
        if (*ret_any)
            *place = c->same[c->same_next++].place;
        return SLUICE_OK;
    }
    *ret_any = wk_stream_peek(c->stream, &next) && next == hash;
    return *ret_any ? wk_stream_next(c->stream, place, err) : SLUICE_OK;
}

/* Key, unique, identity: the entries of one hash, the first of which was taken already. */
static sluice_status check_new(checking *c, uint64_t hash, wk_place place, sluice_error *err)
{
    const wk_run_plan *plan = &c->probe->plan;
    bool any = true;

    if (c->run->catalogue->spool != NULL) {
        PF_TRY(gather(c, hash, place, err));
        PF_TRY(next_same(c, hash, &place, &any, err));
    }
    wk_group_clear(&c->group, c->exact);
    for (uint32_t i = 0; i < c->places.count; i++)
        PF_TRY(wk_group_add(&c->group, &c->places.items[i], plan, err));
    while (any) {
        uint32_t member;
        PF_TRY(wk_group_find(&c->group, &place, plan, &member, err));
        if (member == UINT32_MAX) {
            PF_TRY(wk_group_add(&c->group, &place, plan, err));
        } else {
            PF_TRY(report(c, &place, &c->group.members.items[member], err));
        }
        PF_TRY(next_same(c, hash, &place, &any, err));
    }
    return SLUICE_OK;
}

static sluice_status side_of_load(const wk_probe_run *run, const st_type_def *type, wk_side **ret_side,
                                  sluice_error *err)
{
    PF_TRY(wk_side_of_load(run->volume, type, run->catalogue, ret_side, err));
    wk_side_set_spool(*ret_side, run->spool);
    return SLUICE_OK;
}

static sluice_status side_of_base(const wk_probe_run *run, const st_type_def *type, wk_side **ret_side,
                                  sluice_error *err)
{
    PF_TRY(wk_side_of_base(run->base, type, ret_side, err));
    wk_side_set_spool(*ret_side, run->spool);
    return SLUICE_OK;
}

/* A side that does not count has no look-up. */
static sluice_status find_in(wk_lookup *lookup, uint64_t hash, bool one, wk_places *places, sluice_error *err)
{
    return lookup ? wk_lookup_find(lookup, hash, one, places, err) : SLUICE_OK;
}

static sluice_status run_new(checking *c, sluice_error *err)
{
    uint64_t hash, next;
    wk_place place;

    while (wk_stream_peek(c->stream, &hash)) {
        c->places.count = 0;
        PF_TRY(find_in(c->lookup_base, hash, c->exact, &c->places, err));
        PF_TRY(wk_stream_next(c->stream, &place, err));
        if (c->places.count == 0 && (!wk_stream_peek(c->stream, &next) || next != hash))
            continue; /* alone with its hash */
        PF_TRY(check_new(c, hash, place, err));
    }
    return SLUICE_OK;
}

static bool is_weak(const checking *c, const wk_place *place)
{
    const st_row_set *weak = c->run->weak ? c->run->weak[wk_side_item(place->side, place->fragment)] : NULL;
    return weak && st_row_set_contains(weak, place->position);
}

static bool is_earlier(const wk_place *a, const wk_place *b)
{
    return a->fragment != b->fragment ? a->fragment < b->fragment : a->position < b->position;
}

/* Each row before the last one of its key: first the last ones of a hash are found, then what comes before them. */
static sluice_status run_last(checking *c, sluice_error *err)
{
    const wk_run_plan *plan = &c->probe->plan;
    uint64_t hash, next;
    wk_place place;
    uint32_t member;

    while (wk_stream_peek(c->stream, &hash)) {
        uint64_t rows = 0;
        wk_group_clear(&c->group, c->exact);
        while (wk_stream_peek(c->stream, &next) && next == hash) {
            PF_TRY(wk_stream_next(c->stream, &place, err));
            rows++;
            if (is_weak(c, &place))
                continue;
            PF_TRY(wk_group_find(&c->group, &place, plan, &member, err));
            if (member == UINT32_MAX)
                PF_TRY(wk_group_add(&c->group, &place, plan, err));
            else
                c->group.members.items[member] = place;
        }
        if (rows < 2)
            continue;
        PF_TRY(wk_stream_skip(c->behind, hash, err));
        while (wk_stream_peek(c->behind, &next) && next == hash) {
            PF_TRY(wk_stream_next(c->behind, &place, err));
            PF_TRY(wk_group_find(&c->group, &place, plan, &member, err));
            if (member != UINT32_MAX && is_earlier(&place, &c->group.members.items[member]))
                PF_TRY(report(c, &place, &c->group.members.items[member], err));
        }
    }
    return SLUICE_OK;
}

static sluice_status run_ends(checking *c, sluice_error *err)
{
    uint64_t hash, next;
    wk_place place;

    while (wk_stream_peek(c->stream, &hash)) {
        c->places.count = 0;
        PF_TRY(find_in(c->lookup_load, hash, c->exact, &c->places, err));
        if (!c->exact || c->places.count == 0)
            PF_TRY(find_in(c->lookup_base, hash, c->exact, &c->places, err));
        if (c->exact && c->places.count > 0) {
            PF_TRY(wk_stream_skip_hash(c->stream, hash, err));
            continue;
        }
        wk_group_clear(&c->group, c->exact);
        for (uint32_t i = 0; i < c->places.count; i++)
            PF_TRY(wk_group_add(&c->group, &c->places.items[i], &c->node_plan, err));
        while (wk_stream_peek(c->stream, &next) && next == hash) {
            uint32_t member;
            PF_TRY(wk_stream_next(c->stream, &place, err));
            PF_TRY(wk_group_find(&c->group, &place, &c->probe->plan, &member, err));
            if (member == UINT32_MAX)
                PF_TRY(c->probe->rule == WK_RULE_ENDS ? report(c, &place, NULL, err) : report(c, NULL, &place, err));
        }
    }
    return SLUICE_OK;
}

/* Is it the id of a row that the load adds? Its fragments come in the order of their ids. */
static bool is_in_load(const checking *c, uint64_t id)
{
    const wk_side *side = c->node_load;
    uint32_t low = 0, high = wk_side_count(side);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->run->catalogue->items[wk_side_item(side, middle)].add.first_row <= id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    const st_edit_add *add = &c->run->catalogue->items[wk_side_item(side, low - 1)].add;
    return add->first_row_given && id - add->first_row < add->fragment.rows &&
           !wk_side_is_dead(side, low - 1, id - add->first_row);
}

/* Ends that are row ids: of nodes of the base, or of those of the load alone. */
static sluice_status run_row_ids(checking *c, sluice_error *err)
{
    st_table_reader *reader = NULL;
    uint64_t hash, next;

    if (c->probe->node_named)
        PF_TRY(wk_side_of_load(c->run->volume, c->probe->node, c->run->catalogue, &c->node_load, err));
    PF_TRY(st_table_reader_get(c->run->base, c->probe->node->table, &reader, err));
    while (wk_stream_peek(c->stream, &hash)) {
        bool found = false, first = true;
        while (wk_stream_peek(c->stream, &next) && next == hash) {
            wk_place place;
            PF_TRY(wk_stream_next(c->stream, &place, err));
            if ((c->probe->node_named || !c->probe->node_alone) && (first || !c->exact)) {
                wk_key key;
                uint32_t fragment;
                uint64_t position;
                PF_TRY(wk_side_key(place.side, &c->probe->plan, place.fragment, place.position, &key, err));
                if (c->probe->node_named)
                    found = is_in_load(c, ((const uint64_t *)key.columns[0]->values)[key.row]);
                else
                    PF_TRY(
                        st_table_find_key(reader, key.columns, key.count, key.row, &found, &fragment, &position, err));
                first = false;
            }
            if (!found)
                PF_TRY(report(c, &place, NULL, err));
        }
    }
    return SLUICE_OK;
}

/* Counts one more edge of the node that `place` names; *ret_count is how many there are now. */
static sluice_status count_one(checking *c, const wk_place *place, uint64_t *ret_count, sluice_error *err)
{
    uint32_t member;

    PF_TRY(wk_group_find(&c->group, place, &c->probe->plan, &member, err));
    if (member == UINT32_MAX) {
        PF_TRY(wk_group_add(&c->group, place, &c->probe->plan, err));
        member = c->group.members.count - 1;
    }
    *ret_count = ++c->group.counts[member];
    return SLUICE_OK;
}

static sluice_status run_counts(checking *c, sluice_error *err)
{
    uint64_t hash, next, count;
    wk_place place;

    while (wk_stream_peek(c->stream, &hash)) {
        c->places.count = 0;
        PF_TRY(find_in(c->lookup_base, hash, false, &c->places, err));
        wk_group_clear(&c->group, c->exact);
        for (uint32_t i = 0; i < c->places.count; i++)
            PF_TRY(count_one(c, &c->places.items[i], &count, err));
        while (wk_stream_peek(c->stream, &next) && next == hash) {
            PF_TRY(wk_stream_next(c->stream, &place, err));
            PF_TRY(count_one(c, &place, &count, err));
            if (count > c->probe->limit)
                PF_TRY(report(c, &place, NULL, err));
        }
    }
    return SLUICE_OK;
}

static sluice_status open_nodes(checking *c, uint64_t expected, sluice_error *err)
{
    const st_type_def *node = c->probe->node;

    for (uint32_t i = 0; i < node->key_count; i++)
        c->node_plan.columns[c->node_plan.count++] = node->key[i];
    PF_TRY(side_of_load(c->run, node, &c->node_load, err));
    PF_TRY(wk_lookup_open(c->node_load, ST_RUN_KEY, 0, c->run->range, expected, &c->lookup_load, err));
    if (c->probe->node_alone)
        return SLUICE_OK;
    PF_TRY(side_of_base(c->run, node, &c->node_base, err));
    return wk_lookup_open(c->node_base, ST_RUN_KEY, 0, c->run->range, expected, &c->lookup_base, err);
}

/* Edges of the base. Nodes without a key get other ids by a replacement: none of their edges finds them. */
static sluice_status check_stranded(checking *c, uint64_t expected, sluice_error *err)
{
    const wk_run_plan *plan = &c->probe->plan;

    PF_TRY(side_of_base(c->run, c->probe->type, &c->base, err));
    PF_TRY(wk_stream_open(c->base, plan->use, 0, c->run->range, &c->stream, err));
    if (c->probe->node->key_count > 0)
        PF_TRY(open_nodes(c, expected, err));
    return run_ends(c, err);
}

/* Rows that are written anew give up their unique tuples for what the load says. */
static const st_row_set *find_hidden(const wk_catalogue *catalogue, const st_type_def *type)
{
    for (uint32_t i = 0; i < catalogue->hidden_count; i++)
        if (catalogue->hidden[i].table == type->table)
            return catalogue->hidden[i].rows;
    return NULL;
}

static sluice_status check(checking *c, sluice_error *err)
{
    const wk_probe *probe = c->probe;
    uint64_t expected = probe->entries / wk_probe_ranges(probe) + 1;

    if (!probe->of_names)
        PF_TRY(wk_run_is_exact(st_snapshot_view(c->run->base)->schema, probe->type, &probe->plan, &c->exact, err));
    if (probe->rule == WK_RULE_STRANDED)
        return check_stranded(c, expected, err);
    if (probe->rule == WK_RULE_ENDS || probe->rule == WK_RULE_COUNTS) /* edges never move */
        PF_TRY(wk_side_of_added(c->run->volume, probe->type, c->run->catalogue, &c->load, err));
    else
        PF_TRY(wk_side_of_load(c->run->volume, probe->type, c->run->catalogue, &c->load, err));
    wk_side_set_spool(c->load, c->run->spool);
    wk_side_except(c->load, c->run->except);
    PF_TRY(wk_stream_open(c->load, probe->plan.use, probe->plan.unique, c->run->range, &c->stream, err));
    if (probe->last_counts) {
        PF_ASSERT(probe->alone);
        PF_TRY(wk_stream_open(c->load, probe->plan.use, probe->plan.unique, c->run->range, &c->behind, err));
        return run_last(c, err);
    }
    if (probe->rule == WK_RULE_ENDS) {
        if (probe->node->key_count == 0)
            return run_row_ids(c, err);
        PF_TRY(open_nodes(c, expected, err));
        if (c->exact && (!c->node_base || wk_side_count(c->node_base) == 0)) {
            bool there = false;
            PF_TRY(wk_ends_are_there(c->load, probe->plan.use, c->node_load, c->run->range, &there, err));
            if (there)
                return SLUICE_OK;
        }
        return run_ends(c, err);
    }
    if (!probe->alone) {
        PF_TRY(side_of_base(c->run, probe->type, &c->base, err));
        if (probe->rule == WK_RULE_UNIQUE)
            wk_side_hide(c->base, c->run->hidden ? c->run->hidden : find_hidden(c->run->catalogue, probe->type));
        PF_TRY(wk_lookup_open(c->base, probe->plan.use, probe->plan.unique, c->run->range, expected, &c->lookup_base,
                              err));
    }
    return probe->rule == WK_RULE_COUNTS ? run_counts(c, err) : run_new(c, err);
}

sluice_status wk_probe_check(const wk_probe_run *run, sluice_error *err)
{
    checking c = {.run = run, .probe = run->probe};
    sluice_status status = check(&c, err);

    wk_group_free(&c.group);
    wk_places_free(&c.places);
    free(c.same);
    wk_lookup_close(c.lookup_load);
    wk_lookup_close(c.lookup_base);
    wk_stream_close(c.stream);
    wk_stream_close(c.behind);
    wk_side_close(c.load);
    wk_side_close(c.base);
    wk_side_close(c.node_load);
    wk_side_close(c.node_base);
    return status;
}
