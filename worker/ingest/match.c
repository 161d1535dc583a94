#include "worker/ingest/match.h"

#include "worker/ingest/group.h"
#include <stdlib.h>

typedef struct matching {
    const wk_match *request;
    uint64_t *places, count;
    wk_side *load, *base;
    wk_run_plan *plans;
    wk_stream *stream;
    wk_lookup *lookup;
    wk_places found;
    wk_group group;
} matching;

static sluice_status match_hash(matching *m, uint64_t hash, bool exact, sluice_error *err)
{
    const wk_match *request = m->request;
    uint64_t next;

    wk_group_clear(&m->group, exact);
    for (uint32_t i = 0; i < m->found.count; i++)
        PF_TRY(wk_group_add(&m->group, &m->found.items[i], &m->plans[0], err));
    while (wk_stream_peek(m->stream, &next) && next == hash) {
        wk_place place;
        uint32_t member;
        PF_TRY(wk_stream_next(m->stream, &place, err));
        if (place.position < request->low || place.position >= request->high)
            continue;
        PF_TRY(wk_group_find(&m->group, &place, &m->plans[0], &member, err));
        if (member == UINT32_MAX)
            continue;
        m->count++;
        if (m->places)
            m->places[place.position - request->low] =
                wk_row_code(m->group.members.items[member].fragment, m->group.members.items[member].position);
    }
    return SLUICE_OK;
}

static sluice_status match(matching *m, wk_catalogue *alone, sluice_error *err)
{
    static const wk_range all = {0, UINT64_MAX};
    const wk_match *request = m->request;
    uint32_t plan_count = 0;
    uint64_t hash;
    bool exact = false;

    PF_TRY(wk_side_of_load(request->volume, request->type, alone, &m->load, err));
    PF_TRY(wk_side_of_base(request->base, request->type, &m->base, err));
    PF_TRY(wk_run_plans(request->type, &m->plans, &plan_count, err));
    PF_ASSERT(m->plans[0].use == ST_RUN_KEY);
    PF_TRY(wk_run_is_exact(request->schema, request->type, &m->plans[0], &exact, err));
    PF_TRY(wk_stream_open(m->load, ST_RUN_KEY, 0, all, &m->stream, err));
    PF_TRY(wk_lookup_open(m->base, ST_RUN_KEY, 0, all, request->high - request->low, &m->lookup, err));
    while (wk_stream_peek(m->stream, &hash) && (m->places || m->count == 0)) {
        m->found.count = 0;
        PF_TRY(wk_lookup_find(m->lookup, hash, exact, &m->found, err));
        PF_TRY(match_hash(m, hash, exact, err));
    }
    return SLUICE_OK;
}

sluice_status wk_match_rows(const wk_match *request, uint64_t *places, uint64_t *ret_count, sluice_error *err)
{
    st_row_set *dead = request->dead;
    wk_catalogue alone = {.items = (wk_staged *)(uintptr_t)request->staged, .count = 1, .dead = &dead};
    matching m = {.request = request, .places = places};
    sluice_status status = match(&m, &alone, err);

    *ret_count = m.count;
    wk_group_free(&m.group);
    wk_places_free(&m.found);
    wk_lookup_close(m.lookup);
    wk_stream_close(m.stream);
    wk_side_close(m.load);
    wk_side_close(m.base);
    free(m.plans);
    return status;
}
