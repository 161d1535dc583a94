#include "worker/ingest/returned.h"

#include "worker/ingest/group.h"
#include <stdlib.h>

#define TOGETHER 65536u

typedef struct tuple {
    uint64_t hash;
    wk_place place; /* in the base */
} tuple;

struct wk_returned {
    const wk_probe_run *run;
    bool exact;
    wk_side *base;
    tuple *tuples;
    uint32_t count, room;
    wk_group group;
    wk_places found;
};

sluice_status wk_returned_open(const wk_probe_run *run, wk_returned **ret_returned, sluice_error *err)
{
    const wk_probe *probe = run->probe;
    wk_returned *r = calloc(1, sizeof *r);
    sluice_status status;

    PF_ASSERT(probe->rule == WK_RULE_UNIQUE);
    if (r == NULL)
        return pf_fail_memory(err);
    r->run = run;
    status = wk_run_is_exact(st_snapshot_view(run->base)->schema, probe->type, &probe->plan, &r->exact, err);
    if (status == SLUICE_OK)
        status = wk_side_of_base(run->base, probe->type, &r->base, err);
    if (status != SLUICE_OK) {
        wk_returned_close(r);
        return status;
    }
    wk_side_set_spool(r->base, run->spool);
    *ret_returned = r;
    return SLUICE_OK;
}

void wk_returned_close(wk_returned *r)
{
    if (r == NULL)
        return;
    wk_group_free(&r->group);
    wk_places_free(&r->found);
    wk_side_close(r->base);
    free(r->tuples);
    free(r);
}

static sluice_status make_room(wk_returned *r, sluice_error *err)
{
    if (r->count < r->room)
        return SLUICE_OK;
    uint32_t room = r->room ? r->room * 2 : 16;
    tuple *tuples = realloc(r->tuples, room * sizeof *tuples);
    if (tuples == NULL)
        return pf_fail_memory(err);
    r->tuples = tuples;
    r->room = room;
    return SLUICE_OK;
}

sluice_status wk_returned_add(wk_returned *r, uint64_t place, sluice_error *err)
{
    const uint32_t fragment = (uint32_t)(place >> 32), position = (uint32_t)place;
    wk_key key;

    PF_TRY(wk_side_key(r->base, &r->run->probe->plan, fragment, position, &key, err));
    if (st_key_has_null(key.columns, key.count, key.row))
        return SLUICE_OK;
    PF_TRY(make_room(r, err));
    r->tuples[r->count++] = (tuple){.hash = st_key_hash_row(key.columns, key.count, key.row),
                                    .place = {.side = r->base, .fragment = fragment, .position = position}};
    return r->count == TOGETHER ? wk_returned_flush(r, err) : SLUICE_OK;
}

static int by_hash(const void *a, const void *b)
{
    const tuple *left = a, *right = b;
    return (left->hash > right->hash) - (left->hash < right->hash);
}

static sluice_status report(const wk_returned *r, const wk_place *place, const wk_place *base, sluice_error *err)
{
    wk_event event = {.probe = r->run->number,
                      .item = wk_side_item(place->side, place->fragment),
                      .position = place->position,
                      .has_other = true,
                      .other_in_base = true,
                      .other_item = base->fragment,
                      .other_position = base->position};
    event.argument = r->run->catalogue->items[event.item].argument;
    PF_TRY(wk_side_record(place->side, place->fragment, place->position, &event.record, err));
    return r->run->each(r->run->context, &event, err);
}

/* The rows of the load among what was found that have one of the tuples of a hash. */
static sluice_status match(wk_returned *r, const tuple *tuples, uint32_t count, sluice_error *err)
{
    const wk_run_plan *plan = &r->run->probe->plan;

    wk_group_clear(&r->group, r->exact);
    for (uint32_t i = 0; i < count; i++)
        PF_TRY(wk_group_add(&r->group, &tuples[i].place, plan, err));
    for (uint32_t i = 0; i < r->found.count; i++) {
        uint32_t member;
        PF_TRY(wk_group_find(&r->group, &r->found.items[i], plan, &member, err));
        if (member != UINT32_MAX)
            PF_TRY(report(r, &r->found.items[i], &r->group.members.items[member], err));
    }
    return SLUICE_OK;
}

static sluice_status find_all(wk_returned *r, wk_lookup *lookup, sluice_error *err)
{
    for (uint32_t first = 0, end; first < r->count; first = end) {
        for (end = first + 1; end < r->count && r->tuples[end].hash == r->tuples[first].hash;)
            end++;
        r->found.count = 0;
        PF_TRY(wk_lookup_find(lookup, r->tuples[first].hash, false, &r->found, err));
        if (r->found.count > 0)
            PF_TRY(match(r, r->tuples + first, end - first, err));
    }
    return SLUICE_OK;
}

sluice_status wk_returned_flush(wk_returned *r, sluice_error *err)
{
    const wk_probe_run *run = r->run;
    const wk_run_plan *plan = &run->probe->plan;
    wk_side *load = NULL;
    wk_lookup *lookup = NULL;
    sluice_status status;

    if (r->count == 0)
        return SLUICE_OK;
    qsort(r->tuples, r->count, sizeof *r->tuples, by_hash);
    PF_GOTO(status, done, wk_side_of_load(run->volume, run->probe->type, run->catalogue, &load, err));
    wk_side_set_spool(load, run->spool);
    wk_side_except(load, run->except);
    PF_GOTO(status, done, wk_lookup_open(load, plan->use, plan->unique, run->range, r->count, &lookup, err));
    status = find_all(r, lookup, err);
    r->count = 0;
done:
    wk_lookup_close(lookup);
    wk_side_close(load);
    return status;
}
