/*
 * The simulated disk: an in-memory file system for tests that keeps, for contents and for names apart, what is in the
 * cache and what has been synced, so that a crash can yield any state that the contract permits (O-02).
 *
 * One pf_sim_disk, any number of actors: each actor is a pf_volume and stands for one process. Locks are held per handle
 * and fall with the actor. Everything is a function of the seed and of the calls made: same seed, same calls, same bytes.
 *
 * Contents: unsynced writes are kept, lost or torn per 512-byte sector, each independently; a size may be durable without
 * data (zeros) and data without size is lost. Names: every create, rename, remove not yet synced is kept or lost, in any
 * order per folder; a rename is never split into both or neither name. A failed sync marks pages clean and drops them at
 * the next power loss.
 */
#ifndef PLATFORM_SIM_H
#define PLATFORM_SIM_H

#include "platform/volume.h"

typedef struct pf_sim_disk pf_sim_disk;

typedef enum pf_sim_fate {
    PF_SIM_DIE,       /* the actor's process dies: its locks fall, its unsynced writes stay in the cache */
    PF_SIM_POWER_LOSS /* every actor dies and the disk takes a state chosen by pf_sim_power_loss's policy */
} pf_sim_fate;

typedef enum pf_sim_loss {
    PF_SIM_LOSE_ALL,  /* nothing unsynced survives */
    PF_SIM_KEEP_ALL,  /* everything unsynced survives */
    PF_SIM_RANDOM,    /* each name and each sector by the seed */
    PF_SIM_TEAR_LAST  /* all kept but for the last write, of which a random subset of sectors survives */
} pf_sim_loss;

sluice_status pf_sim_disk_new(uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err);
void pf_sim_disk_free(pf_sim_disk *disk);
/* An exact copy of the disk (cache and synced state), without actors: to try several crash states of one history. */
sluice_status pf_sim_disk_clone(const pf_sim_disk *disk, uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err);
/* A new actor whose volume root is the folder `root` of the disk, made when absent (and durable). */
sluice_status pf_sim_actor(pf_sim_disk *disk, const char *root, pf_volume **ret_volume, sluice_error *err);

/* The k-th mutating-or-syncing call from now on (1 is the next) of this actor does not happen (before = true) or happens
 * and is the last (before = false); then `fate` strikes. k = 0 disarms. */
void pf_sim_crash_at(pf_volume *volume, uint64_t k, bool before, pf_sim_fate fate, pf_sim_loss loss);
/* The k-th such call fails with this errno, once (times = 1) or for ever (times = 0). */
void pf_sim_fail_at(pf_volume *volume, uint64_t k, int error_number, unsigned times);
/* Mutating-or-syncing calls that this actor has made (the W of O-04). */
uint64_t pf_sim_calls(const pf_volume *volume);
bool pf_sim_is_dead(const pf_volume *volume);
void pf_sim_kill(pf_volume *volume);
void pf_sim_power_loss(pf_sim_disk *disk, pf_sim_loss loss);
/* Bytes free on the disk (default: no bound); writes beyond fail with ENOSPC. */
void pf_sim_set_free_space(pf_sim_disk *disk, uint64_t bytes);
/* Flips bits of a stored byte, in cache and medium (bit rot). NOT_FOUND when absent. */
sluice_status pf_sim_flip(pf_sim_disk *disk, const char *path, uint64_t offset, uint8_t mask, sluice_error *err);
/* A digest over all names and contents that a fresh process would see; equal digests, equal disks. */
uint64_t pf_sim_digest(const pf_sim_disk *disk);

/* A world (platform/clock.h) on this seed: time moves only by sleeping and by 1 us a look, random bytes are seeded. */
void pf_sim_world_install(uint64_t seed);
void pf_sim_world_remove(void);

#endif
