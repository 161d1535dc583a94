/*
 * What the fuzz targets share: the input as a file of table 70 on a simulated disk, read and thrown away.
 */
#ifndef TESTS_FUZZ_SUPPORT_H
#define TESTS_FUZZ_SUPPORT_H

#include "platform/digest.h"
#include "platform/sim.h"
#include "worker/ingest/rows.h"

#include <stddef.h>
#include <stdint.h>

#define FUZZ_TABLE 70u
#define FUZZ_NAME  "input"

/* Makes a disk with tables/70/<folder>/input. */
pf_sim_disk *fuzz_disk(const char *folder, const uint8_t *data, size_t size, pf_volume **ret_volume);
void fuzz_disk_free(pf_sim_disk *disk, pf_volume *volume);
/* Ends the process unless `condition`: what a target may demand of any input. */
void fuzz_demand(bool condition);
/* What hostile bytes may lead to. */
bool fuzz_is_refusal(sluice_status status);

/* Reads a text file in pieces of so many bytes: how many rows are taken, and a digest over the faults of the others. */
uint64_t fuzz_read_rows(const wk_input *input, const wk_columns *columns, size_t piece, uint64_t *ret_rows);
uint64_t fuzz_fault(const wk_fault *fault, uint64_t line); /* what the digest has of it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
