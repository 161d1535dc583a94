/*
 * Control documents of any bytes: each is refused, or what it says can be thrown away whole. The first byte picks the
 * document; of an intents slot the checks are made right.
 */
#include "coord/intent.h"
#include "coord/plan.h"
#include "store/graph/cut.h"
#include "store/graph/internal.h"
#include "store/state/change.h"
#include "store/state/list.h"
#include "store/state/manifest.h"
#include "store/state/page.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static sluice_status control(const uint8_t *data, size_t size)
{
    st_control value = {0};
    sluice_status status = st_control_decode(data, size, &value, NULL);
    st_control_free(&value);
    return status;
}

static sluice_status cut(const uint8_t *data, size_t size)
{
    st_cut value = {0};
    sluice_status status = st_cut_decode(data, size, &value, NULL);
    st_cut_free(&value);
    return status;
}

static sluice_status schema(const uint8_t *data, size_t size)
{
    st_schema *value = NULL;
    sluice_status status = st_schema_decode(data, size, &value, NULL);
    st_schema_free(value);
    return status;
}

static sluice_status edit(const uint8_t *data, size_t size)
{
    st_edit value = {0};
    sluice_status status = st_edit_decode(data, size, &value, NULL);
    st_edit_free(&value);
    return status;
}

static sluice_status delta(const uint8_t *data, size_t size)
{
    st_delta value = {0};
    sluice_status status = st_delta_decode(data, size, &value, NULL);
    st_delta_free(&value);
    return status;
}

static sluice_status changes(const uint8_t *data, size_t size)
{
    st_changes value = {0};
    sluice_status status = st_changes_decode(data, size, NULL, &value, NULL);
    st_changes_free(&value);
    return status;
}

static sluice_status state_page(const uint8_t *data, size_t size)
{
    st_table_entry *entries = NULL;
    uint32_t count = 0;
    sluice_status status = st_state_page_decode(data, size, &entries, &count, NULL);
    for (uint32_t i = 0; i < count; i++)
        st_table_entry_free(&entries[i]);
    free(entries);
    return status;
}

static sluice_status list_page(const uint8_t *data, size_t size)
{
    st_list_node node = {0};
    sluice_status status = st_list_node_decode(FUZZ_TABLE, data, size, &node, NULL);
    st_list_node_free(&node);
    return status;
}

/* A record's manifest is its first line; attachments are behind it. */
static st_record record_of(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) + 1 : size;
    return (st_record){.number = 3,
                       .manifest = (const char *)data,
                       .manifest_length = length,
                       .attachments = data + length,
                       .attachments_length = size - length};
}

static sluice_status manifest(const uint8_t *data, size_t size)
{
    st_record record = record_of(data, size);
    st_generation value = {0};
    st_attachments attachments = {0};
    sluice_status status = st_manifest_decode(&record, &value, &attachments, NULL);
    st_generation_free(&value);
    st_attachments_free(&attachments);
    return status;
}

static sluice_status opening(const uint8_t *data, size_t size)
{
    st_record record = record_of(data, size);
    st_opening value = {0};
    st_attachments attachments = {0};
    sluice_status status = st_opening_decode(&record, &value, &attachments, NULL);
    st_opening_free(&value);
    st_attachments_free(&attachments);
    return status;
}

static sluice_status receipts(const uint8_t *data, size_t size)
{
    st_receipt_table value = {0};
    sluice_status status = st_receipts_decode(data, size, &value, NULL);
    st_receipts_free(&value);
    return status;
}

static sluice_status intent(const uint8_t *data, size_t size)
{
    co_intent value = {0};
    sluice_status status = co_intent_decode(data, size, &value, NULL);
    co_intent_free(&value);
    return status;
}

static sluice_status plan(const uint8_t *data, size_t size)
{
    co_read_set reads = {0};
    st_delta value = {0};
    sluice_status status = co_plan_decode(data, size, &reads, &value, NULL);
    co_read_set_free(&reads);
    st_delta_free(&value);
    return status;
}

static void make_check_right(uint8_t *bytes, size_t length, size_t at)
{
    memset(bytes + at, 0, 16);
    pf_xxh128 check = pf_xxh128_of(bytes, length);
    memcpy(bytes + at, &check.low, 8);
    memcpy(bytes + at + 8, &check.high, 8);
}

static sluice_status slot(const uint8_t *data, size_t size)
{
    static const size_t frames[] = {4096, 16384};
    uint8_t *bytes = calloc(1, CO_SLOT_BYTES);
    pf_volume *volume = NULL;
    pf_file *file = NULL;
    co_slot_state state;
    co_intent value = {0};
    bool scope = false;

    fuzz_demand(bytes != NULL);
    memcpy(bytes, data, size < CO_SLOT_BYTES ? size : CO_SLOT_BYTES);
    make_check_right(bytes, CO_SCOPE_BYTES, 344);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t lengths[2];
        memcpy(lengths, bytes + frames[i] + 24, sizeof lengths);
        uint64_t length = CO_FRAME_HEAD + (uint64_t)lengths[0] + lengths[1];
        if (length <= CO_FRAME_BYTES)
            make_check_right(bytes + frames[i], length, 32);
    }
    pf_sim_disk *disk = fuzz_disk("x", bytes, CO_SLOT_BYTES, &volume);
    fuzz_demand(pf_open(volume, "tables/70/x/" FUZZ_NAME, PF_READ, &file, NULL) == SLUICE_OK);
    fuzz_demand(co_slot_read(file, 0, &state, &value, &scope, NULL) == SLUICE_OK);
    co_intent_free(&value);
    (void)pf_close(file, NULL);
    fuzz_disk_free(disk, volume);
    free(bytes);
    return SLUICE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sluice_status (*const documents[])(const uint8_t *, size_t) = {
        control,   cut,      schema,  edit,     delta,  changes, state_page,
        list_page, manifest, opening, receipts, intent, plan,    slot};

    if (size == 0)
        return 0;
    sluice_status status = documents[data[0] % (sizeof documents / sizeof documents[0])](data + 1, size - 1);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    return 0;
}
