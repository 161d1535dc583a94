/*
 * The simulated disk as a whole: making, cloning, freeing it; slots and their inodes; space; bit rot; the digest.
 */
#include "platform/sim_disk.h"

#include "platform/check.h"
#include "platform/digest.h"

#include <stdlib.h>
#include <string.h>

#define PATH_DEPTH_MAX (PF_PATH_MAX / 2u)

/* ---- memory and chance ---- */

void *pf_sim_grow(void *memory, size_t count, size_t size)
{
    void *grown = reallocarray(memory, count, size);

    PF_ALWAYS(grown != NULL);
    return grown;
}

char *pf_sim_copy_text(const char *text)
{
    char *copy = strdup(text);

    PF_ALWAYS(copy != NULL);
    return copy;
}

uint64_t pf_sim_random(pf_sim_disk *disk) /* splitmix64 */
{
    uint64_t z = disk->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool pf_sim_chance(pf_sim_disk *disk, unsigned times, unsigned out_of)
{
    return pf_sim_random(disk) % out_of < times;
}

/* ---- slots ---- */

const sim_inode *pf_sim_look(const pf_sim_disk *disk, uint32_t slot)
{
    PF_ALWAYS(slot < disk->slot_count && disk->slots[slot].inode != NULL);
    return disk->slots[slot].inode;
}

static void inode_drop(sim_inode *inode)
{
    if (--inode->references > 0)
        return;
    pf_sim_content_free(inode);
    pf_sim_entries_free(&inode->names);
    pf_sim_entries_free(&inode->durable_names);
    free(inode);
}

sim_inode *pf_sim_own(pf_sim_disk *disk, uint32_t slot)
{
    sim_inode *shared = disk->slots[slot].inode, *own;

    PF_ALWAYS(shared != NULL);
    if (shared->references == 1)
        return shared;
    own = pf_sim_grow(NULL, 1, sizeof *own);
    *own = (sim_inode){.references = 1, .folder = shared->folder};
    pf_sim_content_copy(shared, own);
    pf_sim_entries_copy(&shared->names, &own->names);
    pf_sim_entries_copy(&shared->durable_names, &own->durable_names);
    inode_drop(shared);
    disk->slots[slot].inode = own;
    return own;
}

uint32_t pf_sim_slot_new(pf_sim_disk *disk, bool folder)
{
    sim_inode *inode = pf_sim_grow(NULL, 1, sizeof *inode);

    *inode = (sim_inode){.references = 1, .folder = folder};
    if (disk->slot_count == disk->slot_capacity) {
        disk->slot_capacity = disk->slot_capacity == 0 ? 32 : disk->slot_capacity * 2;
        disk->slots = pf_sim_grow(disk->slots, disk->slot_capacity, sizeof *disk->slots);
    }
    disk->slots[disk->slot_count] = (sim_slot){.inode = inode, .parent = SIM_NONE, .durable_parent = SIM_NONE};
    return disk->slot_count++;
}

void pf_sim_release(pf_sim_disk *disk, uint32_t slot)
{
    sim_slot *s = &disk->slots[slot];

    if (slot == SIM_ROOT || s->inode == NULL || s->links > 0 || s->durable_links > 0 || s->handles > 0 ||
        s->pending > 0)
        return;
    inode_drop(s->inode);
    s->inode = NULL;
}

static bool is_live(const sim_slot *slot)
{
    return slot->links > 0 || slot->handles > 0;
}

static void change_live(pf_sim_disk *disk, uint32_t slot, uint32_t *counter, bool add)
{
    sim_slot *s = &disk->slots[slot];
    bool before = is_live(s), after;

    PF_ALWAYS(add || *counter > 0);
    *counter = add ? *counter + 1 : *counter - 1;
    after = is_live(s);
    if (before != after && s->inode != NULL)
        disk->used = after ? disk->used + s->inode->allocated : disk->used - s->inode->allocated;
}

void pf_sim_link(pf_sim_disk *disk, uint32_t slot, bool add)
{
    change_live(disk, slot, &disk->slots[slot].links, add);
}

void pf_sim_handle(pf_sim_disk *disk, uint32_t slot, bool add)
{
    change_live(disk, slot, &disk->slots[slot].handles, add);
    pf_sim_release(disk, slot);
}

/* ---- the disk ---- */

sluice_status pf_sim_disk_new(uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err)
{
    pf_sim_disk *disk = calloc(1, sizeof *disk);

    if (disk == NULL)
        return pf_fail_memory(err);
    disk->references = 1;
    disk->random = seed;
    disk->failed_sync = PF_SIM_LOSE_ALL;
    (void)pf_sim_slot_new(disk, true);
    disk->slots[SIM_ROOT].links = 1;
    disk->slots[SIM_ROOT].durable_links = 1;
    *ret_disk = disk;
    return SLUICE_OK;
}

void pf_sim_disk_hold(pf_sim_disk *disk)
{
    disk->references++;
}

void pf_sim_disk_free(pf_sim_disk *disk)
{
    if (disk == NULL || --disk->references > 0)
        return;
    pf_sim_changes_free(disk);
    for (uint32_t i = 0; i < disk->slot_count; i++)
        if (disk->slots[i].inode != NULL)
            inode_drop(disk->slots[i].inode);
    free(disk->slots);
    free(disk->locks);
    free(disk);
}

sluice_status pf_sim_disk_clone(const pf_sim_disk *disk, uint64_t seed, pf_sim_disk **ret_disk, sluice_error *err)
{
    pf_sim_disk *clone = calloc(1, sizeof *clone);

    if (clone == NULL)
        return pf_fail_memory(err);
    *clone = *disk;
    clone->references = 1;
    clone->random = seed;
    clone->actors = NULL;
    clone->turns = NULL;
    clone->locks = NULL;
    clone->lock_count = clone->lock_capacity = 0;
    clone->slot_capacity = disk->slot_count;
    clone->slots = pf_sim_grow(NULL, disk->slot_count, sizeof *clone->slots);
    memcpy(clone->slots, disk->slots, disk->slot_count * sizeof *clone->slots);
    pf_sim_changes_copy(disk, clone);
    for (uint32_t i = 0; i < clone->slot_count; i++) {
        sim_slot *slot = &clone->slots[i];
        if (slot->inode == NULL)
            continue;
        slot->inode->references++;
        if (slot->handles > 0) {
            slot->handles = 1;
            pf_sim_handle(clone, i, false);
        }
    }
    *ret_disk = clone;
    return SLUICE_OK;
}

void pf_sim_set_free_space(pf_sim_disk *disk, uint64_t bytes)
{
    disk->bounded = true;
    disk->capacity = disk->used + bytes / SIM_PAGE;
}

void pf_sim_set_failed_sync(pf_sim_disk *disk, pf_sim_loss outcome)
{
    disk->failed_sync = outcome;
}

void pf_sim_power_loss(pf_sim_disk *disk, pf_sim_loss loss)
{
    static const unsigned chances[] = {1, 4, 4, 7}; /* eighths: mostly lost, even, mostly kept */
    unsigned keep = chances[pf_sim_random(disk) % 4];

    pf_sim_actors_kill(disk);
    pf_sim_names_lose(disk, loss, keep);
    disk->used = 0;
    for (uint32_t i = 0; i < disk->slot_count; i++) {
        if (disk->slots[i].inode == NULL)
            continue;
        if (!disk->slots[i].inode->folder)
            pf_sim_content_lose(disk, i, loss, keep);
        disk->used += disk->slots[i].inode->allocated;
    }
}

/* ---- chosen power losses ---- */

unsigned pf_sim_choose(pf_sim_disk *disk, size_t options)
{
    pf_sim_choices *choices = disk->choices;
    unsigned at = choices->made;

    PF_ALWAYS(options > 0 && options <= UINT16_MAX);
    if (at == PF_SIM_CHOICES_MAX) {
        choices->cut = true;
        return (unsigned)options - 1;
    }
    choices->made++;
    if (at == choices->count) {
        choices->options[at] = (uint16_t)options;
        choices->digits[at] = choices->keeps ? (uint16_t)(options - 1) : 0;
        choices->count++;
    }
    PF_ALWAYS(choices->options[at] == options); /* the same disk again */
    return choices->digits[at];
}

void pf_sim_power_loss_chosen(pf_sim_disk *disk, pf_sim_choices *choices)
{
    choices->made = 0;
    disk->choices = choices;
    pf_sim_power_loss(disk, PF_SIM_RANDOM);
    disk->choices = NULL;
}

/* Counts up like an odometer whose wheels have different sizes; the wheels behind the one that moved are forgotten. */
bool pf_sim_choices_next(pf_sim_choices *choices)
{
    while (choices->count > 0) {
        unsigned last = choices->count - 1;
        if (choices->digits[last] + 1u < choices->options[last]) {
            choices->digits[last]++;
            return true;
        }
        choices->count--;
    }
    return false;
}

/* ---- bit rot ---- */

/* The file at a path from the disk's root, or SIM_NONE. */
static uint32_t find_file(const pf_sim_disk *disk, const char *path)
{
    uint32_t slot = SIM_ROOT;

    while (*path != 0) {
        size_t length = strcspn(path, "/");
        const sim_inode *folder = pf_sim_look(disk, slot);
        if (!folder->folder)
            return SIM_NONE;
        slot = pf_sim_entries_find(&folder->names, path, length);
        if (slot == SIM_NONE)
            return SIM_NONE;
        path += length;
        path += strspn(path, "/");
    }
    return pf_sim_look(disk, slot)->folder ? SIM_NONE : slot;
}

static void flip_page(sim_page **page, uint64_t at, uint8_t mask)
{
    sim_page *own;

    if (*page == NULL)
        return;
    own = pf_sim_grow(NULL, 1, sizeof *own);
    *own = **page;
    own->references = 1;
    own->bytes[at] ^= mask;
    pf_sim_page_drop(*page);
    *page = own;
}

sluice_status pf_sim_flip(pf_sim_disk *disk, const char *path, uint64_t offset, uint8_t mask, sluice_error *err)
{
    uint32_t slot = find_file(disk, path);
    uint64_t page = offset / SIM_PAGE, at = offset % SIM_PAGE;
    sim_inode *inode;

    if (slot == SIM_NONE || offset >= pf_sim_look(disk, slot)->size)
        return pf_fail(err, SLUICE_NOT_FOUND, "no such byte on the simulated disk");
    inode = pf_sim_own(disk, slot);
    if (inode->cached[page] == NULL) { /* a hole has no byte of its own: give it a page of zeros */
        inode->cached[page] = pf_sim_grow(NULL, 1, sizeof(sim_page));
        *inode->cached[page] = (sim_page){.references = 1};
        inode->allocated++;
        disk->used++;
    }
    flip_page(&inode->cached[page], at, mask);
    flip_page(&inode->durable[page], at, mask);
    for (size_t i = 0; i < inode->write_count; i++)
        if (inode->writes[i].page == page)
            flip_page(&inode->writes[i].content, at, mask);
    return SLUICE_OK;
}

/* ---- digest ---- */

static uint64_t mix(uint64_t digest, const void *bytes, size_t length)
{
    uint64_t pair[3] = {digest, length, length > 0 ? pf_xxh64_of(bytes, length) : 0};

    return pf_xxh64_of(pair, sizeof pair);
}

/* Pages of zeros count by where what differs from them lies, so that a hole costs nothing. */
static uint64_t mix_file(uint64_t digest, const sim_inode *inode)
{
    digest = mix(digest, &inode->size, sizeof inode->size);
    for (uint64_t at = 0; at < inode->size; at += SIM_PAGE) {
        const sim_page *page = inode->cached[at / SIM_PAGE];
        size_t length = inode->size - at < SIM_PAGE ? (size_t)(inode->size - at) : SIM_PAGE;
        if (pf_sim_page_is_zeros(page))
            continue;
        digest = mix(digest, &at, sizeof at);
        digest = mix(digest, page->bytes, length);
    }
    return digest;
}

/* Walks the tree with a stack of its own: one folder and a place in it per level. */
uint64_t pf_sim_digest(const pf_sim_disk *disk)
{
    struct {
        uint32_t slot, next;
    } stack[PATH_DEPTH_MAX];
    unsigned depth = 1;
    uint64_t digest = 0;

    stack[0].slot = SIM_ROOT;
    stack[0].next = 0;
    while (depth > 0) {
        const sim_inode *folder = pf_sim_look(disk, stack[depth - 1].slot);
        const sim_entry *entry;
        const sim_inode *inode;
        if (stack[depth - 1].next == folder->names.count) {
            digest = mix(digest, "]", 1);
            depth--;
            continue;
        }
        entry = &folder->names.at[stack[depth - 1].next++];
        inode = pf_sim_look(disk, entry->slot);
        digest = mix(digest, entry->name, strlen(entry->name));
        if (!inode->folder) {
            digest = mix_file(digest, inode);
            continue;
        }
        digest = mix(digest, "[", 1);
        PF_ALWAYS(depth < PATH_DEPTH_MAX);
        stack[depth].slot = entry->slot;
        stack[depth++].next = 0;
    }
    return digest;
}
