/*
 * The different keys among entries of one hash: usually one, but nothing may break when somebody makes hashes collide,
 * so many are found by a second, seeded hash.
 */
#ifndef WORKER_INGEST_GROUP_H
#define WORKER_INGEST_GROUP_H

#include "worker/ingest/stream.h"

typedef struct wk_group {
    bool exact;                /* an equal hash is an equal key: there is only one key */
    wk_places members;         /* one place per different key */
    const wk_run_plan **plans; /* how each member's key is read */
    uint64_t *counts;          /* per member: how often it came; kept by the caller */
    uint32_t room;
    uint32_t *table;  /* open addressing over members, once there are many */
    uint64_t *strong; /* seeded hash per member */
    uint64_t seed;    /* of these hashes; 0: not drawn yet */
    uint32_t table_size;
    pf_buffer scratch;
} wk_group;

void wk_group_free(wk_group *group); /* safe on a zeroed one */
void wk_group_clear(wk_group *group, bool exact);
/* The member whose key is that of `place`, UINT32_MAX when there is none. */
sluice_status wk_group_find(wk_group *group, const wk_place *place, const wk_run_plan *plan, uint32_t *ret_member,
                            sluice_error *err);
sluice_status wk_group_add(wk_group *group, const wk_place *place, const wk_run_plan *plan, sluice_error *err);

#endif
