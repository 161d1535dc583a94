/*
 * One file on a simulated disk, and checksums that always agree (see support.h).
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

/* Put in place of pf_xxh128_equal by the linker. */
bool __wrap_pf_xxh128_equal(pf_xxh128 a, pf_xxh128 b);
bool __wrap_pf_xxh128_equal(pf_xxh128 a, pf_xxh128 b)
{
    (void)a;
    (void)b;
    return true;
}

void fuzz_demand(bool condition)
{
    if (!condition)
        abort();
}

bool fuzz_is_refusal(sluice_status status)
{
    return status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT || status == SLUICE_RESOURCE_LIMIT;
}

pf_sim_disk *fuzz_disk(const char *folder, const uint8_t *data, size_t size, pf_volume **ret_volume)
{
    pf_sim_disk *disk = NULL;
    pf_file *file = NULL;
    char path[64];

    fuzz_demand(pf_sim_disk_new(1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "graph", ret_volume, NULL) == SLUICE_OK);
    fuzz_demand(pf_make_folder(*ret_volume, "tables", NULL) == SLUICE_OK);
    fuzz_demand(pf_make_folder(*ret_volume, "tables/70", NULL) == SLUICE_OK);
    (void)snprintf(path, sizeof path, "tables/70/%s", folder);
    fuzz_demand(pf_make_folder(*ret_volume, path, NULL) == SLUICE_OK);
    (void)snprintf(path, sizeof path, "tables/70/%s/" FUZZ_NAME, folder);
    fuzz_demand(pf_create(*ret_volume, path, &file, NULL) == SLUICE_OK);
    if (size)
        fuzz_demand(pf_write(file, 0, data, size, NULL) == SLUICE_OK);
    fuzz_demand(pf_close(file, NULL) == SLUICE_OK);
    return disk;
}

void fuzz_disk_free(pf_sim_disk *disk, pf_volume *volume)
{
    pf_volume_close(volume);
    pf_sim_disk_free(disk);
}
