/*
 * The hash join behind arbitration (coord/read_join.h).
 *
 * The hash space is cut into slices so that the smaller side's hashes of each fit into memory; that side's slice is
 * gathered and sorted in memory, the larger side is walked past it, or looked up point by point where that is much
 * cheaper. Runs are opened while they are needed and not longer: a set may name thousands.
 */
#include "coord/read_join.h"
#include "platform/check.h"
#include "platform/memory.h"
#include "store/fragment/key.h"
#include <stdlib.h>
#include <string.h>

#define SLICE      (UINT64_C(24) << 20) /* bytes of the smaller side's hashes in memory at once, */
#define SLICE_PART 8u                   /* if they are no more than this part of the process's memory */
#define SLICE_MIN  (UINT64_C(1) << 20)
#define POINT_COST 16u /* one look-up in a run costs about as much as walking past this many entries */
#define NO_RUN     UINT32_MAX

typedef struct hash_hit { /* a hash of the smaller side, and where it stands */
    uint64_t hash;
    uint64_t position;
    uint32_t run; /* NO_RUN: from the list */
} hash_hit;

typedef struct open_fragment { /* a fragment opened to confirm keys; one is kept per side */
    st_fragment *fragment;
    uint32_t run;
} open_fragment;

typedef struct join_state {
    st_graph *graph;
    const pf_sha256 *identity;
    st_schema *schema; /* fetched at the first hit */
    const st_change *small, *large;
    const st_change *touched; /* the side whose files were read last: whose fault damage is */
    bool mine_is_small;
    co_join_rule rule;
    open_fragment small_place, large_place;
    hash_hit *hits;
    size_t hit_count, hit_room;
} join_state;

/* Does a run of this side count under the rule? */
static bool counts(const join_state *join, const st_change *side, uint32_t run)
{
    bool theirs = (side == join->small) != join->mine_is_small;
    return !theirs || !join->rule.runs_of || side->runs[run].table == join->rule.runs_of;
}

static uint64_t size_of(const join_state *join, const st_change *side)
{
    uint64_t size = side->hash_count;
    for (uint32_t i = 0; i < side->run_count; i++)
        if (counts(join, side, i))
            size += side->runs[i].run.info.entries;
    return size;
}

static sluice_status keep_hit(join_state *join, uint64_t hash, uint64_t position, uint32_t run, sluice_error *err)
{
    if (join->hit_count == join->hit_room) {
        size_t room = join->hit_room ? join->hit_room * 2 : 1024;
        hash_hit *grown = realloc(join->hits, room * sizeof *grown);
        if (!grown)
            return pf_fail_memory(err);
        join->hits = grown;
        join->hit_room = room;
    }
    join->hits[join->hit_count++] = (hash_hit){hash, position, run};
    return SLUICE_OK;
}

static int by_hash(const void *a, const void *b)
{
    const hash_hit *left = a, *right = b;
    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

/* The smaller side's hashes in [low, high], sorted. */
static sluice_status gather(join_state *join, uint64_t low, uint64_t high, sluice_error *err)
{
    const st_change *side = join->small;
    join->hit_count = 0;
    for (uint64_t i = 0; i < side->hash_count; i++)
        if (side->hashes[i] >= low && side->hashes[i] <= high)
            PF_TRY(keep_hit(join, side->hashes[i], 0, NO_RUN, err));
    for (uint32_t i = 0; i < side->run_count; i++) {
        if (!counts(join, side, i))
            continue;
        join->touched = side;
        st_run *run = NULL;
        sluice_status status =
            st_run_open(st_graph_volume(join->graph), side->runs[i].table, &side->runs[i].run.info, &run, err);
        st_run_cursor cursor;
        if (status == SLUICE_OK)
            status = st_run_seek(run, low, high, &cursor, err);
        const st_run_entry *entry = NULL;
        while (status == SLUICE_OK && (status = st_run_next(&cursor, &entry, err)) == SLUICE_OK && entry)
            status = keep_hit(join, entry->hash, entry->position, i, err);
        st_run_close(run);
        PF_TRY(status);
    }
    if (join->hit_count)
        qsort(join->hits, join->hit_count, sizeof *join->hits, by_hash);
    return SLUICE_OK;
}

/* The first hit with this hash or a greater one. */
static size_t find(const join_state *join, uint64_t hash)
{
    size_t low = 0, high = join->hit_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (join->hits[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- the key behind a hash ---- */

typedef struct key_columns {
    st_column columns[ST_KEY_MEMBERS_MAX + 2]; /* an edge's identity: its two ends, and its key properties */
    uint32_t count;
    uint64_t row;
} key_columns;

static bool add_column(st_fragment *fragment, uint32_t batch, int column, key_columns *key, sluice_error *err,
                       sluice_status *ret_status)
{
    st_column found;
    if (column < 0)
        return false;
    *ret_status = st_fragment_column(fragment, batch, (uint32_t)column, &found, err);
    if (*ret_status != SLUICE_OK)
        return false;
    uint32_t members = found.type == ST_STRUCT ? found.child_count : 1;
    if (key->count + members > sizeof key->columns / sizeof key->columns[0])
        return false;
    for (uint32_t i = 0; i < members; i++)
        key->columns[key->count++] = found.type == ST_STRUCT ? found.children[i] : found;
    return true;
}

/* The columns of the key that a run of this use indexes. *ret_known false: the fragment does not have them all. */
static sluice_status load_key(const st_schema *schema, uint64_t table, const st_run_ref *run, st_fragment *fragment,
                              uint64_t position, key_columns *ret_key, bool *ret_known, sluice_error *err)
{
    const st_type_def *type = st_schema_find_table(schema, table);
    sluice_status status = SLUICE_OK;
    uint32_t batch = 0;
    *ret_known = false;
    ret_key->count = 0;
    if (!type)
        return SLUICE_OK;
    st_fragment_locate(fragment, position, &batch, &ret_key->row);

    bool from = type->edge && (run->use == ST_RUN_KEY || run->use == ST_RUN_FROM);
    bool to = type->edge && (run->use == ST_RUN_KEY || run->use == ST_RUN_TO);
    if (from && !add_column(fragment, batch, st_fragment_find_name(fragment, "from"), ret_key, err, &status))
        return status;
    if (to && !add_column(fragment, batch, st_fragment_find_name(fragment, "to"), ret_key, err, &status))
        return status;
    const uint32_t *properties = NULL;
    const st_unique *tuple = st_type_find_unique(type, run->unique);
    uint32_t count = 0;
    if (run->use == ST_RUN_KEY) {
        properties = type->key;
        count = type->key_count;
    } else if (run->use == ST_RUN_UNIQUE && tuple) {
        properties = tuple->properties;
        count = tuple->count;
    }
    for (uint32_t i = 0; i < count; i++) {
        int column = st_fragment_find_property(fragment, type->properties[properties[i]].id);
        if (!add_column(fragment, batch, column, ret_key, err, &status))
            return status;
    }
    *ret_known = ret_key->count > 0;
    return SLUICE_OK;
}

static sluice_status open_place(join_state *join, open_fragment *place, const st_change *side, uint32_t run,
                                sluice_error *err)
{
    if (place->fragment && place->run == run)
        return SLUICE_OK;
    st_fragment_close(place->fragment);
    place->fragment = NULL;
    place->run = run;
    return st_fragment_open(st_graph_volume(join->graph), side->runs[run].table, &side->runs[run].fragment,
                            &place->fragment, err);
}

/* Is an equal hash an equal key? Where one side has nothing to look at, it is. */
static sluice_status confirm(join_state *join, const hash_hit *hit, uint32_t run, uint64_t position, bool *ret_equal,
                             sluice_error *err)
{
    *ret_equal = true;
    if (hit->run == NO_RUN || run == NO_RUN)
        return SLUICE_OK;
    const st_run_ref *small = &join->small->runs[hit->run].run, *large = &join->large->runs[run].run;
    bool ends = (small->use == ST_RUN_FROM || small->use == ST_RUN_TO) &&
                (large->use == ST_RUN_FROM || large->use == ST_RUN_TO);
    if (join->rule.same_direction && ends && small->use != large->use) {
        *ret_equal = false;
        return SLUICE_OK;
    }
    if (!join->schema)
        PF_TRY(st_schema_fetch(st_graph_volume(join->graph), join->identity, &join->schema, err));
    key_columns a, b;
    bool known_a = false, known_b = false;
    join->touched = join->small;
    PF_TRY(open_place(join, &join->small_place, join->small, hit->run, err));
    PF_TRY(load_key(join->schema, join->small->runs[hit->run].table, small, join->small_place.fragment, hit->position,
                    &a, &known_a, err));
    join->touched = join->large;
    PF_TRY(open_place(join, &join->large_place, join->large, run, err));
    PF_TRY(load_key(join->schema, join->large->runs[run].table, large, join->large_place.fragment, position, &b,
                    &known_b, err));
    if (!known_a || !known_b || a.count != b.count)
        return SLUICE_OK;
    const st_column *left[sizeof a.columns / sizeof a.columns[0]], *right[sizeof a.columns / sizeof a.columns[0]];
    for (uint32_t i = 0; i < a.count; i++) {
        left[i] = &a.columns[i];
        right[i] = &b.columns[i];
    }
    *ret_equal = st_key_equal(left, a.row, right, b.row, a.count);
    return SLUICE_OK;
}

/* One entry of the larger side against all hits of its hash. */
static sluice_status match(join_state *join, uint64_t hash, uint32_t run, uint64_t position, bool *ret_meet,
                           sluice_error *err)
{
    for (size_t i = find(join, hash); i < join->hit_count && join->hits[i].hash == hash && !*ret_meet; i++)
        PF_TRY(confirm(join, &join->hits[i], run, position, ret_meet, err));
    return SLUICE_OK;
}

static sluice_status walk(join_state *join, st_run *run, uint32_t number, uint64_t low, uint64_t high, bool *ret_meet,
                          sluice_error *err)
{
    st_run_cursor cursor;
    const st_run_entry *entry = NULL;
    PF_TRY(st_run_seek(run, low, high, &cursor, err));
    while (!*ret_meet) {
        join->touched = join->large;
        PF_TRY(st_run_next(&cursor, &entry, err));
        if (!entry)
            return SLUICE_OK;
        PF_TRY(match(join, entry->hash, number, entry->position, ret_meet, err));
    }
    return SLUICE_OK;
}

static sluice_status pass_run(join_state *join, uint32_t number, uint64_t low, uint64_t high, bool *ret_meet,
                              sluice_error *err)
{
    const st_change *side = join->large;
    st_run *run = NULL;
    join->touched = side;
    PF_TRY(
        st_run_open(st_graph_volume(join->graph), side->runs[number].table, &side->runs[number].run.info, &run, err));
    sluice_status status = SLUICE_OK;
    if (join->hit_count > side->runs[number].run.info.entries / POINT_COST) {
        status = walk(join, run, number, low, high, ret_meet, err);
        goto done;
    }
    for (size_t i = 0; i < join->hit_count && !*ret_meet; i++) {
        uint64_t hash = join->hits[i].hash;
        bool may = false;
        join->touched = side;
        if (i > 0 && join->hits[i - 1].hash == hash)
            continue;
        PF_GOTO(status, done, st_run_may_contain(run, hash, &may, err));
        if (may)
            PF_GOTO(status, done, walk(join, run, number, hash, hash, ret_meet, err));
    }
done:
    st_run_close(run);
    return status;
}

static sluice_status join_slice(join_state *join, uint64_t low, uint64_t high, bool *ret_meet, sluice_error *err)
{
    const st_change *side = join->large;
    PF_TRY(gather(join, low, high, err));
    if (join->hit_count == 0)
        return SLUICE_OK;
    for (uint64_t i = 0; i < side->hash_count && !*ret_meet; i++)
        if (side->hashes[i] >= low && side->hashes[i] <= high)
            PF_TRY(match(join, side->hashes[i], NO_RUN, 0, ret_meet, err));
    for (uint32_t i = 0; i < side->run_count && !*ret_meet; i++)
        if (counts(join, side, i))
            PF_TRY(pass_run(join, i, low, high, ret_meet, err));
    return SLUICE_OK;
}

sluice_status co_join(st_graph *graph, const pf_sha256 *identity, const st_change *mine, const st_change *theirs,
                      co_join_rule rule, bool *ret_meet, sluice_error *err)
{
    join_state join = {
        .graph = graph, .identity = identity, .small = mine, .large = theirs, .mine_is_small = true, .rule = rule};
    sluice_error join_error = {0};
    *ret_meet = false;
    uint64_t small = size_of(&join, mine), large = size_of(&join, theirs);
    if (small > large) {
        join.small = theirs;
        join.large = mine;
        join.mine_is_small = false;
        small = large;
    }
    if (small == 0)
        return SLUICE_OK;
    uint64_t in_memory = pf_memory_part(SLICE_PART, SLICE_MIN, SLICE) / sizeof(hash_hit);
    uint64_t slices = (small - 1) / in_memory + 1, width = UINT64_MAX / slices;
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; i < slices && status == SLUICE_OK && !*ret_meet; i++) {
        uint64_t low = i * width + (i ? 1 : 0), high = i + 1 == slices ? UINT64_MAX : (i + 1) * width;
        status = join_slice(&join, low, high, ret_meet, &join_error);
    }
    if (status == SLUICE_CORRUPT && join.touched == theirs) { /* unreadable: they may have written anything (K-02) */
        *ret_meet = true;
        status = SLUICE_OK;
    } else if (status != SLUICE_OK && err) {
        *err = join_error;
    }
    st_fragment_close(join.small_place.fragment);
    st_fragment_close(join.large_place.fragment);
    st_schema_free(join.schema);
    free(join.hits);
    return status;
}
