#include "worker/ingest/names.h"

#include "platform/check.h"
#include "worker/ingest/stream.h"
#include <stdlib.h>
#include <string.h>

void wk_name_type_make(uint64_t table, wk_name_type *ret_type)
{
    static char name[] = "name";

    memset(ret_type, 0, sizeof *ret_type);
    ret_type->property = (st_property){.id = UINT64_MAX, .name = name, .type = ST_STRING, .nullable = true};
    ret_type->unique.properties = &ret_type->member;
    ret_type->unique.count = 1;
    ret_type->type = (st_type_def){.table = table,
                                   .name = name,
                                   .properties = &ret_type->property,
                                   .property_count = 1,
                                   .uniques = &ret_type->unique,
                                   .unique_count = 1};
    ret_type->spec = (st_column_spec){.name = name, .type = ST_STRING, .nullable = true, .property = UINT64_MAX};
}

typedef struct wanted { /* a text that is looked for */
    uint64_t hash;
    uint64_t row;
} wanted;

static int by_hash(const void *a, const void *b)
{
    const wanted *left = a, *right = b;
    return (left->hash > right->hash) - (left->hash < right->hash);
}

typedef struct finding {
    const wk_names *names;
    const st_column *texts;
    wk_run_plan plan;
    wk_side *side;
    wk_lookup *lookup;
    wk_places places;
    wanted *wanted;
} finding;

/* The first of the places whose name is the text. */
static sluice_status find_one(finding *f, uint64_t row, uint64_t *ret_id, sluice_error *err)
{
    *ret_id = 0;
    for (uint32_t i = 0; i < f->places.count; i++) {
        const wk_place *place = &f->places.items[i];
        wk_key key;
        PF_TRY(wk_side_key(f->side, &f->plan, place->fragment, place->position, &key, err));
        if (!st_key_equal(&f->texts, row, key.columns, key.row, 1))
            continue;
        const wk_staged *item = &f->names->catalogue->items[wk_side_item(f->side, place->fragment)];
        *ret_id = item->add.first_row + place->position;
        return SLUICE_OK;
    }
    return SLUICE_OK;
}

static sluice_status find_all(finding *f, uint64_t rows, uint64_t *ret_ids, sluice_error *err)
{
    static const wk_range all = {0, UINT64_MAX};

    PF_TRY(wk_side_of_load(f->names->volume, &f->names->type->type, f->names->catalogue, &f->side, err));
    PF_TRY(wk_lookup_open(f->side, ST_RUN_UNIQUE, 0, all, rows, &f->lookup, err));
    for (uint64_t i = 0; i < rows; i++)
        f->wanted[i] = (wanted){st_key_hash_row(&f->texts, 1, i), i};
    qsort(f->wanted, rows, sizeof *f->wanted, by_hash);
    for (uint64_t i = 0; i < rows; i++) {
        if (i == 0 || f->wanted[i].hash != f->wanted[i - 1].hash) {
            f->places.count = 0;
            PF_TRY(wk_lookup_find(f->lookup, f->wanted[i].hash, false, &f->places, err));
        }
        PF_TRY(find_one(f, f->wanted[i].row, &ret_ids[f->wanted[i].row], err));
    }
    return SLUICE_OK;
}

sluice_status wk_names_find(const wk_names *names, const st_column *texts, uint64_t rows, uint64_t *ret_ids,
                            sluice_error *err)
{
    finding f = {.names = names,
                 .texts = texts,
                 .plan = {.use = ST_RUN_UNIQUE, .count = 1},
                 .wanted = malloc((rows + 1) * sizeof *f.wanted)};
    sluice_status status = f.wanted ? find_all(&f, rows, ret_ids, err) : pf_fail_memory(err);

    wk_places_free(&f.places);
    wk_lookup_close(f.lookup);
    wk_side_close(f.side);
    free(f.wanted);
    return status;
}
