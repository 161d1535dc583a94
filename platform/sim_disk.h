/*
 * Inside the simulated disk (platform/sim.h): its state and what its files share. Nobody else includes this.
 *
 * Two images of everything. *Cached* is what processes see; *durable* is what has been synced. Between them stand, for
 * each file, the writes since its last sync (one record per page and call, with the page as it was after the write),
 * and for the whole disk the list of changes of names that no folder sync has covered yet, in the order in which they
 * were made.
 *
 * Everything is copy-on-write: a clone shares inodes, inodes share pages, and whoever changes one takes a copy of its
 * own first. What differs from disk to disk at no cost (links, open handles, parents) lies in the slots, which a clone
 * copies.
 *
 * The simulation is an instrument of tests: running out of memory ends the program.
 */
#ifndef PLATFORM_SIM_DISK_H
#define PLATFORM_SIM_DISK_H

#include "platform/sim.h"
#include "platform/volume_impl.h"

#define SIM_PAGE    4096u
#define SIM_SECTOR  512u
#define SIM_SECTORS (SIM_PAGE / SIM_SECTOR)
#define SIM_ROOT    0u /* slot of the disk's root folder */
#define SIM_NONE    UINT32_MAX
#define SIM_DEVICE  UINT64_C(0x51)

typedef struct sim_page {
    uint32_t references;
    uint8_t bytes[SIM_PAGE];
} sim_page;

typedef struct sim_page_write { /* one page of one unsynced write */
    uint64_t serial;            /* of the call, over the whole disk */
    uint64_t page;
    uint64_t size_before; /* of the file, before the call */
    uint64_t size_after;  /* of the file, once this page's part was written */
    sim_page *content;    /* the whole page after it */
    uint8_t sectors;      /* which of its sectors the write touched */
} sim_page_write;

typedef struct sim_entry {
    char *name;
    uint32_t slot;
} sim_entry;

typedef struct sim_entries { /* in ascending byte order of names */
    sim_entry *at;
    uint32_t count, capacity;
} sim_entries;

typedef struct sim_inode {
    uint32_t references; /* disks that share it */
    bool folder;
    /* a file */
    uint64_t size, durable_size;
    sim_page **cached, **durable; /* NULL: a hole */
    uint64_t page_count;          /* of both arrays */
    uint64_t allocated;           /* pages of `cached` that are no holes */
    sim_page_write *writes;
    size_t write_count, write_capacity;
    bool dropped; /* a failed sync made pages clean that the medium does not have */
    /* a folder */
    sim_entries names, durable_names;
} sim_inode;

typedef struct sim_slot {
    sim_inode *inode;                /* NULL once nothing refers to it; slots are never used again */
    uint32_t links, durable_links;   /* names that stand for it, 0 or 1 */
    uint32_t handles;                /* open ones of live actors */
    uint32_t pending;                /* changes below that speak of it */
    uint32_t parent, durable_parent; /* of a folder */
} sim_slot;

typedef enum sim_change_kind { SIM_ADD, SIM_DROP, SIM_MOVE } sim_change_kind;

typedef struct sim_change { /* of names, not covered by a sync yet */
    sim_change_kind kind;
    bool folder; /* the thing is one */
    uint32_t slot;
    uint32_t from_folder, to_folder; /* SIM_NONE where the kind has none */
    char *from, *to;
    bool from_synced, to_synced; /* the folder was synced since; true where the kind has none */
} sim_change;

typedef struct sim_actor sim_actor;

typedef struct sim_file {
    pf_file base;
    uint32_t slot;
    bool open; /* false: its actor died */
    struct sim_file *next;
} sim_file;

typedef struct sim_lock {
    const sim_file *file;
    uint32_t slot;
    uint64_t start, length;
    pf_lock_mode mode;
} sim_lock;

struct pf_sim_disk {
    uint32_t references; /* the test and each actor */
    uint64_t random;     /* state of the seeded choices */
    uint64_t serial;     /* of the last writing call */
    pf_sim_loss failed_sync;
    pf_sim_choices *choices; /* during a power loss whose outcome is chosen; else NULL */
    bool bounded;
    uint64_t capacity, used; /* pages, when bounded; used is kept always */
    sim_slot *slots;
    uint32_t slot_count, slot_capacity;
    sim_change *changes;
    size_t change_count, change_capacity;
    sim_actor *actors;
    const pf_sim_turns *turns; /* NULL: one process after the other */
    sim_lock *locks;
    size_t lock_count, lock_capacity;
};

/* ---- sim_disk.c ---- */

/* realloc that ends the program when there is no memory. */
void *pf_sim_grow(void *memory, size_t count, size_t size);
char *pf_sim_copy_text(const char *text);
uint64_t pf_sim_random(pf_sim_disk *disk);
/* True once in `out_of` times `times` (0 <= times <= out_of). */
bool pf_sim_chance(pf_sim_disk *disk, unsigned times, unsigned out_of);
/* One of `options` ways in a power loss whose outcome is chosen: 0 loses all, the last one nothing. */
unsigned pf_sim_choose(pf_sim_disk *disk, size_t options);
uint32_t pf_sim_slot_new(pf_sim_disk *disk, bool folder);
/* The inode of a slot, to be looked at; and one of the disk's own, to be changed. */
const sim_inode *pf_sim_look(const pf_sim_disk *disk, uint32_t slot);
sim_inode *pf_sim_own(pf_sim_disk *disk, uint32_t slot);
/* Gives the slot's inode up when no name, handle, durable name or pending change is left. */
void pf_sim_release(pf_sim_disk *disk, uint32_t slot);
/* A live file came or went (links and handles): its pages count as used while either is there. */
void pf_sim_link(pf_sim_disk *disk, uint32_t slot, bool add);
void pf_sim_handle(pf_sim_disk *disk, uint32_t slot, bool add);
void pf_sim_disk_hold(pf_sim_disk *disk);

/* ---- sim_content.c ---- */

void pf_sim_page_drop(sim_page *page);           /* NULL allowed */
bool pf_sim_page_is_zeros(const sim_page *page); /* a hole, too */
/* Writes, page by page, as far as there is space: false with *ret_written short when there was none. */
bool pf_sim_content_write(pf_sim_disk *disk, uint32_t slot, uint64_t offset, const void *bytes, size_t length,
                          uint64_t serial, uint64_t *ret_written);
bool pf_sim_content_zero(pf_sim_disk *disk, uint32_t slot, uint64_t size, uint64_t serial, uint64_t *ret_written);
size_t pf_sim_content_read(const sim_inode *inode, uint64_t offset, void *bytes, size_t length);
/* Drops clean cached pages of the range, so that what is read next comes from the medium. */
void pf_sim_content_forget_clean(pf_sim_disk *disk, uint32_t slot, uint64_t offset, uint64_t length);
void pf_sim_content_sync(pf_sim_disk *disk, uint32_t slot);
/* A sync that failed: all pages are clean now; what of them reached the medium is the disk's failed_sync policy. */
void pf_sim_content_fail_sync(pf_sim_disk *disk, uint32_t slot);
/* What is left of a file after a power loss becomes both images. keep: chance of a unsynced unit in eighths (random).
 */
void pf_sim_content_lose(pf_sim_disk *disk, uint32_t slot, pf_sim_loss loss, unsigned keep);
void pf_sim_content_free(sim_inode *inode);
void pf_sim_content_copy(const sim_inode *from, sim_inode *to);

/* ---- sim_names.c ---- */

void pf_sim_entries_free(sim_entries *entries);
void pf_sim_entries_copy(const sim_entries *from, sim_entries *to);
/* The slot of a name, or SIM_NONE. */
uint32_t pf_sim_entries_find(const sim_entries *entries, const char *name, size_t length);
void pf_sim_entries_add(sim_entries *entries, const char *name, uint32_t slot);
void pf_sim_entries_drop(sim_entries *entries, const char *name);
/* Changes the cached image and notes the change. */
void pf_sim_names_add(pf_sim_disk *disk, uint32_t folder, const char *name, uint32_t slot);
void pf_sim_names_drop(pf_sim_disk *disk, uint32_t folder, const char *name, uint32_t slot);
void pf_sim_names_move(pf_sim_disk *disk, uint32_t from_folder, const char *from, uint32_t to_folder, const char *to,
                       uint32_t slot);
void pf_sim_names_sync(pf_sim_disk *disk, uint32_t folder);
/* Chooses what of the unsynced changes survives a power loss, and makes the durable image the cached one. */
void pf_sim_names_lose(pf_sim_disk *disk, pf_sim_loss loss, unsigned keep);
void pf_sim_changes_free(pf_sim_disk *disk);
void pf_sim_changes_copy(const pf_sim_disk *from, pf_sim_disk *to);

/* ---- volume_sim.c ---- */

void pf_sim_actors_kill(pf_sim_disk *disk);

/* ---- sim_world.c ---- */

/* Time passes until the deadline, when the simulated clock is installed and there is one. */
void pf_sim_world_pass(pf_deadline deadline);

#endif
