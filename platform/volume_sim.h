/*
 * Inside the volume port on the simulated disk: what volume_sim.c (actors, crashes, names) and volume_sim_file.c
 * (contents, locks) share. Nobody else includes this.
 */
#ifndef PLATFORM_VOLUME_SIM_H
#define PLATFORM_VOLUME_SIM_H

#include "platform/check.h"
#include "platform/sim_disk.h"

typedef struct sim_plan { /* the k-th call from now on */
    uint64_t left;        /* calls until it strikes; 0: not armed */
} sim_plan;

typedef struct sim_failing {
    sim_plan plan;
    int error_number;
    unsigned times; /* 0: for ever */
} sim_failing;

struct sim_actor {
    pf_volume base;
    pf_sim_disk *disk;
    sim_actor *next;
    sim_file *files;
    uint32_t root;
    char *root_path;
    uint32_t process;
    bool dead;
    uint64_t calls;
    sim_plan crash;
    bool crash_before;
    pf_sim_fate fate;
    pf_sim_loss loss;
    sim_failing change_failing, look_failing;
    sim_plan interrupt;
    void (*act)(void *context);
    void *act_context;
};

typedef struct sim_call {
    bool last;        /* the process dies when it is done */
    int error_number; /* it is to fail with this */
} sim_call;

typedef struct sim_place { /* a name in its folder */
    uint32_t folder;
    const char *name;
    uint32_t slot; /* SIM_NONE: not there */
} sim_place;

static inline sim_actor *sim_actor_of(pf_volume *volume)
{
    PF_ALWAYS(volume->simulated);
    return (sim_actor *)volume;
}

static inline sim_file *sim_file_of(pf_file *file)
{
    return (sim_file *)file;
}

/* Brackets of a call that changes something. The first refuses a dead actor, counts, and strikes; the last is the
 * answer. */
sluice_status pf_sim_begin_change(sim_actor *actor, const char *doing, const char *path, sim_call *ret_call,
                                  sluice_error *err);
sluice_status pf_sim_end_change(sim_actor *actor, const sim_call *call, sluice_status status, sluice_error *err);
/* A call that only looks, at `path`. */
sluice_status pf_sim_begin_look(sim_actor *actor, const char *doing, const char *path, sluice_error *err);
sluice_status pf_sim_fail_dead(sluice_error *err);
/* The place of a name below the actor's root; 0 or an errno. */
int pf_sim_find_place(const sim_actor *actor, const char *path, sim_place *ret_place);
void pf_sim_fill_stat(const pf_sim_disk *disk, uint32_t slot, pf_stat *ret_stat);
/* Tells the scheduler that a lock was let go of. */
void pf_sim_tell_released(const pf_sim_disk *disk);
void pf_sim_drop_locks(pf_sim_disk *disk, const sim_file *file);

/* ---- volume_sim_file.c ---- */

sluice_status pf_sim_op_read(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                             sluice_error *err);
sluice_status pf_sim_op_read_medium(pf_file *file, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                    sluice_error *err);
sluice_status pf_sim_op_write(pf_file *file, uint64_t offset, const void *bytes, size_t length, size_t *ret_written,
                              sluice_error *err);
sluice_status pf_sim_op_zero_fill(pf_file *file, uint64_t size, uint64_t *ret_written, sluice_error *err);
sluice_status pf_sim_op_sync(pf_file *file, sluice_error *err);
void pf_sim_op_write_behind(pf_file *file, uint64_t offset, uint64_t length);
sluice_status pf_sim_op_file_stat(pf_file *file, pf_stat *ret_stat, sluice_error *err);
sluice_status pf_sim_op_file_check_identity(pf_file *file, sluice_error *err);
sluice_status pf_sim_op_map(pf_file *file, pf_map *ret_map, sluice_error *err);
sluice_status pf_sim_op_file_close(pf_file *base, sluice_error *err);
sluice_status pf_sim_op_lock_try(pf_file *base, uint64_t start, uint64_t length, pf_lock_mode mode, bool *ret_busy,
                                 sluice_error *err);
bool pf_sim_op_lock_wait(pf_file *file, unsigned attempt, pf_deadline deadline);
sluice_status pf_sim_op_unlock(pf_file *base, uint64_t start, uint64_t length, sluice_error *err);
sluice_status pf_sim_op_lock_is_free(pf_file *base, uint64_t start, uint64_t length, bool *ret_free, sluice_error *err);

#endif
