/*
 * What the tests of the simulated disk share: disks and actors whose making must succeed, and what a fresh process sees
 * of a disk now or after a power loss.
 */
#ifndef TESTS_PLATFORM_SIM_HELP_H
#define TESTS_PLATFORM_SIM_HELP_H

#include "platform/sim.h"

#define SIM_SEEDS 64u

pf_sim_disk *sim_disk_new(uint64_t seed);
pf_sim_disk *sim_clone_of(const pf_sim_disk *disk, uint64_t seed);
pf_volume *sim_actor(pf_sim_disk *disk);
pf_file *sim_created(pf_volume *volume, const char *path);
pf_file *sim_opened(pf_volume *volume, const char *path);
void sim_write_text(pf_file *file, uint64_t offset, const char *text);
/* Creates, writes, syncs, closes; the name is left unsynced. */
void sim_put(pf_volume *volume, const char *path, const char *text);
void sim_fill(pf_file *file, uint64_t sector, uint64_t count, uint8_t with);
/* What a process sees that looks at the disk after a power loss: a fresh actor's view. */
bool sim_exists(pf_sim_disk *disk, const char *path);
size_t sim_content(pf_sim_disk *disk, const char *path, void *bytes, size_t length);
void sim_expect_text(pf_sim_disk *disk, const char *path, const char *text);
/* The disk after a power loss, for one seed; the original stays. Freed by the caller. */
pf_sim_disk *sim_after_loss(const pf_sim_disk *disk, uint64_t seed, pf_sim_loss loss);
/* In how many of SEEDS random power losses the path is there. */
unsigned sim_times_there(const pf_sim_disk *disk, const char *path);
bool sim_there_after(const pf_sim_disk *disk, const char *path, pf_sim_loss loss);

#define SOMETIMES(times) assert_true((times) > 0 && (times) < SIM_SEEDS)
#define ALWAYS(times)    assert_int_equal((times), SIM_SEEDS)

#endif
