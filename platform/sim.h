/*
 * The simulated disk: an in-memory file system for tests that keeps, for contents and for names apart, what is in the
 * cache and what has been synced, so that a crash can yield any state that the contract permits (O-02).
 *
 * One pf_sim_disk, any number of actors: each actor is a pf_volume and stands for one process. Locks are held per
 * handle and fall with the actor. Everything is a function of the seed and of the calls made: same seed, same calls,
 * same bytes.
 *
 * Contents: each 512-byte sector holds what was synced last, or what one of the writes since left in it, each sector
 * (or, by the seed, each page) by itself; a size may be durable without data (zeros) and data without size is lost. A
 * failed sync marks pages clean: no later sync makes them durable, and a read of the medium shows what is really there.
 * Names: each change that pf_sync_dir has not covered is kept or lost by itself, but that of the changes of one name a
 * beginning is kept, and that a rename is atomic: after a power loss either its old or its new name is there, never
 * both and never none, across folders too. A rename is durable once both folders were synced. Creating a folder does
 * not sync its parent; a file that was synced is kept or lost with its name when that was not. (In full: sim_names.c,
 * sim_content.c.)
 *
 * A process's death changes nothing but its locks: what it wrote stays in the cache. After its death, or a power loss,
 * every call of an actor answers FENCED and changes nothing; its handles are closed as ever.
 *
 * There is one thread, so nobody else can release a lock while somebody waits for it: a busy lock is
 * LIVE_WRITER_CONTENTION at once, after moving the simulated clock (pf_sim_world_install) to the deadline when there is
 * one. A scheduler that runs each process as a coroutine changes that: it is told of every call before it happens, and
 * of every wait (pf_sim_set_turns).
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
    PF_SIM_LOSE_ALL, /* nothing unsynced survives */
    PF_SIM_KEEP_ALL, /* everything unsynced survives */
    PF_SIM_RANDOM,   /* each name and each sector by the seed */
    PF_SIM_TEAR_LAST /* all kept but for the last write, of which a random subset of sectors survives */
} pf_sim_loss;

sluice_status pf_sim_disk_new(uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err);
void pf_sim_disk_free(pf_sim_disk *disk);
/* An exact copy of the disk (cache and synced state), without actors: to try several crash states of one history. */
sluice_status pf_sim_disk_clone(const pf_sim_disk *disk, uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err);
/* A new actor whose volume root is the folder `root` of the disk, made when absent (and durable). */
sluice_status pf_sim_actor(pf_sim_disk *disk, const char *root, pf_volume **ret_volume, sluice_error *err);

/* The k-th mutating-or-syncing call from now on (1 is the next) of this actor does not happen (before = true) or
 * happens and is the last (before = false); then `fate` strikes. k = 0 disarms. `loss` is for a power loss; with
 * PF_SIM_DIE and PF_SIM_TEAR_LAST a write that is the last one is cut at a page, as a kill inside the system call
 * leaves it. Calls that count: create, publish, remove, make and remove folder, sync file and folder, write, zero fill;
 * in short all that asks the fence, but for locks and opening. */
void pf_sim_crash_at(pf_volume *volume, uint64_t k, bool before, pf_sim_fate fate, pf_sim_loss loss);
/* The k-th such call and those after it fail with this errno: `times` of them, or all for ever (times = 0); k = 0
 * disarms. A failing write may have written a beginning (whole pages, by the seed); a failing sync is final
 * (pf_sim_set_failed_sync); every other failing call has done nothing. */
void pf_sim_fail_at(pf_volume *volume, uint64_t k, int error_number, unsigned times);
/* The same for calls that only look: open, read, list, stat, map, lock. */
void pf_sim_fail_look_at(pf_volume *volume, uint64_t k, int error_number, unsigned times);
/* What of a file whose sync fails had reached the medium all the same. PF_SIM_LOSE_ALL (the default): nothing; its
 * pages are marked clean, so that no later sync brings them there. PF_SIM_KEEP_ALL: all of it, only the answer is an
 * error. PF_SIM_RANDOM: each sector by the seed. A failed sync of a folder leaves its names unsynced, and a later one
 * counts. */
void pf_sim_set_failed_sync(pf_sim_disk *disk, pf_sim_loss outcome);
/* Just before the k-th mutating-or-syncing call from now on `act` runs once: what others do while this process stands
 * still (stop and resume). It may kill this very actor. k = 0 disarms. */
void pf_sim_interrupt_at(pf_volume *volume, uint64_t k, void (*act)(void *context), void *context);
/* Mutating-or-syncing calls that this actor has made (the W of O-04). */
uint64_t pf_sim_calls(const pf_volume *volume);
bool pf_sim_is_dead(const pf_volume *volume);
void pf_sim_kill(pf_volume *volume);
/* A process with several volumes: they die together. 0, as in the beginning: it has no other. */
void pf_sim_set_process(pf_volume *volume, uint32_t process);
void pf_sim_kill_process(pf_sim_disk *disk, uint32_t process);
void pf_sim_power_loss(pf_sim_disk *disk, pf_sim_loss loss);
/* Every state that a power loss may leave of a small disk, one after the other:
 *
 *     pf_sim_choices choices = {0};
 *     do {
 *         clone the disk; pf_sim_power_loss_chosen(clone, &choices); recover and check; free the clone
 *     } while (pf_sim_choices_next(&choices));
 *
 * Names: every permitted subset of the unsynced changes. Contents: each version of each unsynced page, each size of
 * each file; tearing inside a page is left to the seeds. The number is the product of all choices, so callers bound
 * their loop. `cut`: a state had more choices than fit, and the last ones kept everything.
 *
 * Who wants some of them only gives the first `count` digits with their options, as an earlier call on the same disk
 * left them; of what comes behind, everything is lost, or kept when `keeps`. */
#define PF_SIM_CHOICES_MAX 192u
typedef struct pf_sim_choices {
    unsigned count, made;
    bool keeps;
    bool cut;
    uint16_t digits[PF_SIM_CHOICES_MAX], options[PF_SIM_CHOICES_MAX];
} pf_sim_choices;
void pf_sim_power_loss_chosen(pf_sim_disk *disk, pf_sim_choices *choices);
bool pf_sim_choices_next(pf_sim_choices *choices); /* false: that was the last state */
/* Bytes free on the disk (default: no bound); writes beyond fail with ENOSPC. */
void pf_sim_set_free_space(pf_sim_disk *disk, uint64_t bytes);
/* Flips bits of a stored byte, in cache and medium (bit rot). NOT_FOUND when absent. */
sluice_status pf_sim_flip(pf_sim_disk *disk, const char *path, uint64_t offset, uint8_t mask, sluice_error *err);
/* For several processes at once, as coroutines of one thread. */
typedef struct pf_sim_turns {
    void *context;
    /* Before each call of an actor that lives: others may run meanwhile, and kill it. `changes`: one of those that
     * pf_sim_crash_at counts. The texts are static, and the path below the actor's root. */
    void (*call)(void *context, pf_volume *volume, bool changes, const char *doing, const char *path);
    /* A lock is busy. Returns when trying again makes sense; false: it is in vain. */
    bool (*wait)(void *context, pf_deadline deadline);
    void (*released)(void *context); /* some lock was let go of */
} pf_sim_turns;
/* `turns` must live as long as the disk, or until it is taken away (NULL). A clone has none. */
void pf_sim_set_turns(pf_sim_disk *disk, const pf_sim_turns *turns);
/* A digest over all names and contents that a fresh process would see; equal digests, equal disks. */
uint64_t pf_sim_digest(const pf_sim_disk *disk);

/* A world (platform/clock.h) on this seed: time moves only by sleeping and by 1 us a look, random bytes are seeded. */
void pf_sim_world_install(uint64_t seed);
/* `look` comes before each look at the clock, `sleep` instead of each sleep; it moves the clock itself. */
typedef struct pf_sim_sleeper {
    void *context;
    void (*look)(void *context);
    void (*sleep)(void *context, int64_t until_ns);
    /* Instead of waiting at a word of shared memory, and of waking who waits at one; NULL: as time passes. */
    void (*word_wait)(void *context, int64_t until_ns);
    void (*word_wake)(void *context);
} pf_sim_sleeper;
void pf_sim_world_set_sleeper(const pf_sim_sleeper *sleeper); /* NULL: nobody; installing a world takes it away */
int64_t pf_sim_world_now(void);                               /* looks without being noticed */
void pf_sim_world_advance(int64_t until_ns);                  /* never back */
void pf_sim_world_remove(void);

#endif
