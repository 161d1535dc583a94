/*
 * One file on a simulated disk, and checksums that always agree (see support.h).
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

uint64_t fuzz_fault(const wk_fault *fault, uint64_t line)
{
    fuzz_demand(fault->code != SLUICE_OK && fault->code != SLUICE_INTERNAL);
    return pf_xxh64_of(fault->text, strlen(fault->text)) + line;
}

uint64_t fuzz_read_rows(const wk_input *input, const wk_columns *columns, size_t piece, uint64_t *ret_rows)
{
    wk_chunk place = {.first = input->mark, .first_line = 1};
    wk_chunk_view view = {.input = input, .columns = columns, .start = input->mark, .place = &place, .piece = piece};
    wk_rows *rows = NULL;
    void *reader = NULL;
    wk_record *record = NULL;
    uint64_t digest = 0;

    fuzz_demand(wk_rows_make(input, columns, &rows, NULL) == SLUICE_OK);
    fuzz_demand(input->format->open(&view, &reader, NULL) == SLUICE_OK);
    for (;;) {
        wk_fault fault = {0};
        fuzz_demand(input->format->next(reader, &record, NULL) == SLUICE_OK);
        if (record == NULL)
            break;
        if (record->number == 0 && !input->dialect->no_header)
            continue;
        fuzz_demand(wk_rows_add(rows, record, &fault, NULL) == SLUICE_OK);
        if (fault.present)
            digest = digest * 31 + fuzz_fault(&fault, record->line);
    }
    *ret_rows = wk_rows_length(rows);
    input->format->close(reader);
    wk_rows_free(rows);
    return digest;
}
