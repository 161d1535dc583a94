/*
 * Adjacency of any bytes: it is refused, or any node can be sought in it and its entries read.
 */
#include "store/fragment/adjacency.h"
#include "support.h"

#include <string.h>

static void read_adjacency(st_adjacency *adjacency, uint64_t probe)
{
    const uint64_t hashes[] = {0, 1, probe, probe ^ (probe << 7), UINT64_MAX};
    for (unsigned i = 0; i < 5; i++) {
        uint64_t entry = 0, end = 0;
        sluice_status status = st_adjacency_find(adjacency, hashes[i], &entry, &end, NULL);
        fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
        fuzz_demand(status != SLUICE_OK || (entry <= end && end <= st_adjacency_edges(adjacency)));
        for (; status == SLUICE_OK && entry < end; entry++) {
            st_adjacent found;
            status = st_adjacency_get(adjacency, entry, &found, NULL);
            fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
        }
    }
    sluice_status status = st_adjacency_verify(adjacency, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_run_info info = {.name = FUZZ_NAME, .bytes = size};
    st_adjacency *adjacency = NULL;
    pf_volume *volume;
    uint64_t length;

    if (size < 104)
        return 0;
    memcpy(&length, data + size - 16, sizeof length);
    if (length >= 104 && length <= size) {
        info.footer = pf_sha256_of(data + size - length, length);
        memcpy(&info.entries, data + size - length + 32, sizeof info.entries);
    }
    pf_sim_disk *disk = fuzz_disk("indexes", data, size, &volume);
    sluice_status status =
        st_adjacency_open(volume, FUZZ_TABLE, &info, (st_adjacency_direction)(data[0] & 1), &adjacency, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    if (status == SLUICE_OK)
        read_adjacency(adjacency, info.entries * 0x9E3779B97F4A7C15u);
    st_adjacency_close(adjacency);
    fuzz_disk_free(disk, volume);
    return 0;
}
