/*
 * A run of any bytes: it is refused, or can be sought anywhere and read to its end.
 */
#include "store/fragment/run.h"
#include "support.h"

#include <string.h>

static void read_run(st_run *run, uint64_t probe)
{
    const uint64_t bounds[] = {0, 1, probe, probe ^ (probe << 7), UINT64_MAX};
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned j = 0; j < 5; j++) {
            st_run_cursor cursor;
            const st_run_entry *entry = NULL;
            uint64_t seen = 0;
            sluice_status status = st_run_seek(run, bounds[i], bounds[j], &cursor, NULL);
            fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
            do {
                if (status == SLUICE_OK)
                    status = st_run_next(&cursor, &entry, NULL);
                fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
                fuzz_demand(seen++ <= st_run_entries(run));
            } while (status == SLUICE_OK && entry);
        }
        bool may;
        sluice_status status = st_run_may_contain(run, bounds[i], &may, NULL);
        fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    }
    sluice_status status = st_run_verify(run, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_run_info info = {.name = FUZZ_NAME, .bytes = size};
    st_run *run;
    pf_volume *volume;
    uint64_t length;

    if (size < 96)
        return 0;
    memcpy(&length, data + size - 16, sizeof length);
    if (length >= 96 && length <= size) {
        info.footer = pf_sha256_of(data + size - length, length);
        memcpy(&info.entries, data + size - length + 24, sizeof info.entries);
    }
    pf_sim_disk *disk = fuzz_disk("keys", data, size, &volume);
    sluice_status status = st_run_open(volume, FUZZ_TABLE, &info, &run, NULL);
    fuzz_demand(status == SLUICE_OK || fuzz_is_refusal(status));
    if (status == SLUICE_OK)
        read_run(run, info.entries * 0x9E3779B97F4A7C15u);
    st_run_close(run);
    fuzz_disk_free(disk, volume);
    return 0;
}
