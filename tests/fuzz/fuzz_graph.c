/*
 * A graph of which one small file holds any bytes: graph.json, a ref, claims, the board, a row of audit/, an intent in
 * quarantine/, the copy that a backup began from. Opening and what reads it works, or is refused. The first byte picks
 * the file; of claims the checks are made right.
 */
#include "coord/audit.h"
#include "coord/board.h"
#include "coord/quarantine.h"
#include "coord/recover.h"
#include "locks/claim.h"
#include "store/graph/internal.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema_text[] = "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}}}";
static char ref_path[96];

static pf_sim_disk *make_graph(void)
{
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    pf_id id;
    char name[80];
    fuzz_demand(pf_sim_disk_new(1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "graph", &volume, NULL) == SLUICE_OK);
    fuzz_demand(st_schema_parse(schema_text, strlen(schema_text), "schema", &schema, NULL) == SLUICE_OK);
    fuzz_demand(st_graph_init_on(volume, schema, ST_MODE_OPTIMISTIC, &id, NULL) == SLUICE_OK);
    st_schema_free(schema);
    pf_volume_close(volume);
    st_ref_file_name("b", name);
    (void)snprintf(ref_path, sizeof ref_path, ST_REFS_FOLDER "/%s", name);
    return disk;
}

static void seal(uint8_t *bytes)
{
    uint64_t check = pf_xxh64_of(bytes, 504);
    for (unsigned i = 0; i < 8; i++)
        bytes[504 + i] = (uint8_t)(check >> (8 * i));
}

/* Puts the bytes over the file from `at` on, or in its place (at = SIZE_MAX). */
static void put(pf_volume *volume, const char *path, size_t at, const uint8_t *bytes, size_t length)
{
    pf_file *file = NULL;
    if (at == SIZE_MAX) {
        (void)pf_remove(volume, path, NULL);
        fuzz_demand(pf_create(volume, path, &file, NULL) == SLUICE_OK);
        at = 0;
    } else {
        fuzz_demand(pf_open(volume, path, PF_WRITE, &file, NULL) == SLUICE_OK);
    }
    if (length)
        fuzz_demand(pf_write(file, at, bytes, length, NULL) == SLUICE_OK);
    (void)pf_close(file, NULL);
}

static bool is_answer(sluice_status status)
{
    return status == SLUICE_OK || status == SLUICE_NOT_FOUND || status == SLUICE_ALREADY_EXISTS ||
           status == SLUICE_RECOVERY_REQUIRED || status == SLUICE_INVALID_NAME || fuzz_is_refusal(status);
}

static sluice_status on_ref(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    (void)context, (void)err;
    fuzz_demand(name ? incarnation > 0 : incarnation == 0);
    return SLUICE_OK;
}

static sluice_status on_audit(void *context, const co_audit_row *row, sluice_error *err)
{
    (void)context, (void)row, (void)err;
    return SLUICE_OK;
}

static sluice_status on_quarantined(void *context, const co_quarantined *item, sluice_error *err)
{
    (void)context, (void)item, (void)err;
    return SLUICE_OK;
}

static void look_at(st_graph *graph)
{
    uint64_t incarnation = 0;
    bool used[CO_SLOTS], empty = false;
    pf_file *intents = NULL;
    lk_claim *claim = NULL;
    fuzz_demand(is_answer(st_ref_list(graph, on_ref, NULL, NULL)));
    fuzz_demand(is_answer(st_ref_read(graph, "b", &incarnation, NULL)));
    fuzz_demand(is_answer(co_audit_list(graph, on_audit, NULL, NULL)));
    fuzz_demand(is_answer(co_quarantine_list(graph, on_quarantined, NULL, NULL)));
    fuzz_demand(pf_open(st_graph_volume(graph), ST_INTENTS_FILE, PF_READ, &intents, NULL) == SLUICE_OK);
    fuzz_demand(is_answer(co_board_look(graph, intents, used, NULL)));
    fuzz_demand(is_answer(co_board_look_quarantine(graph, intents, &empty, NULL)));
    (void)pf_close(intents, NULL);
    fuzz_demand(is_answer(co_recover(graph, CO_RECOVER_PROBE, 0, NULL, 0, NULL, NULL, NULL)));
    fuzz_demand(is_answer(lk_claim_take(st_graph_volume(graph), LK_CLAIM_RETENTION, PF_AT_ONCE, &claim, NULL)));
    if (claim)
        fuzz_demand(is_answer(lk_claim_check(claim, NULL)));
    lk_claim_release(claim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pf_sim_disk *base;
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    uint8_t slot[LK_CLAIM_SIZE] = {0};

    if (size == 0)
        return 0;
    if (!base)
        base = make_graph();
    const uint8_t *bytes = data + 1;
    size_t length = size - 1;
    fuzz_demand(pf_sim_disk_clone(base, 1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "graph", &volume, NULL) == SLUICE_OK);
    switch (data[0] % 7) {
    case 0:
        put(volume, "graph.json", SIZE_MAX, bytes, length);
        break;
    case 1:
        put(volume, ref_path, SIZE_MAX, bytes, length);
        break;
    case 2:
        memcpy(slot, bytes, length < sizeof slot ? length : sizeof slot);
        seal(slot);
        seal(slot + 2048);
        put(volume, ST_CLAIMS_FILE, 0, slot, sizeof slot);
        break;
    case 3: /* behind the frames of slot 0 */
        put(volume, ST_INTENTS_FILE, CO_SLOT_BYTES - 4096, bytes, length < 4096 ? length : 4096);
        break;
    case 4:
        put(volume, "audit/00000000-0000-7000-8000-000000000001-committed.json", SIZE_MAX, bytes, length);
        break;
    case 5:
        put(volume, "quarantine/00000000-0000-7000-8000-000000000001.intent", SIZE_MAX, bytes, length);
        break;
    default:
        put(volume, "backup.before", SIZE_MAX, bytes, length);
        break;
    }
    sluice_status status = st_graph_open_on(volume, PF_WRITE, &graph, NULL);
    fuzz_demand(is_answer(status));
    if (status == SLUICE_OK)
        look_at(graph);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
    return 0;
}
