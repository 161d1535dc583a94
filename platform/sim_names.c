/*
 * Names on the simulated disk.
 *
 * A folder has its names twice: as processes see them and as they have been synced. Each change that no sync has
 * covered stands in one list for the whole disk, oldest first. A power loss keeps or loses each change apart from the
 * others, but for what no file system does:
 *   - of the changes of one name, a beginning is kept (never the later without the earlier);
 *   - a rename is one change: after it either the old or the new name is there, never both and never none. It waits
 * until both folders have been synced. It is not kept without the folder that it leads into (making that folder, or
 * moving it there, and so on upwards, but for what the old name stood below too): the old name stands then;
 *   - a folder is removed only with all that was done in it before;
 *   - of the moves of folders a beginning is kept, so no folder ever ends up inside itself.
 * Nothing else is promised: creating a folder does not sync its parent, and a file whose content was synced is lost
 * with its name when that was not (or kept with it: real file systems do both). What stands in a lost folder is lost.
 *
 * A folder's sync makes every change in it durable, and with each the changes that it cannot be without.
 */
#include "platform/sim_disk.h"

#include "platform/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- sorted entries ---- */

static int compare(const char *name, size_t length, const char *with)
{
    int order = strncmp(name, with, length);

    return order != 0 ? order : with[length] == 0 ? 0 : -1;
}

/* Where the name is, or where it belongs. */
static uint32_t place_of(const sim_entries *entries, const char *name, size_t length, bool *ret_found)
{
    uint32_t low = 0, high = entries->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare(name, length, entries->at[middle].name);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_found = false;
    return low;
}

uint32_t pf_sim_entries_find(const sim_entries *entries, const char *name, size_t length)
{
    bool found;
    uint32_t place = place_of(entries, name, length, &found);

    return found ? entries->at[place].slot : SIM_NONE;
}

void pf_sim_entries_add(sim_entries *entries, const char *name, uint32_t slot)
{
    bool found;
    uint32_t place = place_of(entries, name, strlen(name), &found);

    PF_ALWAYS(!found);
    if (entries->count == entries->capacity) {
        entries->capacity = entries->capacity == 0 ? 8 : entries->capacity * 2;
        entries->at = pf_sim_grow(entries->at, entries->capacity, sizeof *entries->at);
    }
    memmove(entries->at + place + 1, entries->at + place, (entries->count - place) * sizeof *entries->at);
    entries->at[place] = (sim_entry){.name = pf_sim_copy_text(name), .slot = slot};
    entries->count++;
}

void pf_sim_entries_drop(sim_entries *entries, const char *name)
{
    bool found;
    uint32_t place = place_of(entries, name, strlen(name), &found);

    PF_ALWAYS(found);
    free(entries->at[place].name);
    entries->count--;
    memmove(entries->at + place, entries->at + place + 1, (entries->count - place) * sizeof *entries->at);
}

void pf_sim_entries_free(sim_entries *entries)
{
    for (uint32_t i = 0; i < entries->count; i++)
        free(entries->at[i].name);
    free(entries->at);
    *entries = (sim_entries){0};
}

static bool entries_equal(const sim_entries *a, const sim_entries *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->at[i].slot != b->at[i].slot || strcmp(a->at[i].name, b->at[i].name) != 0)
            return false;
    return true;
}

void pf_sim_entries_copy(const sim_entries *from, sim_entries *to)
{
    *to = (sim_entries){.count = from->count, .capacity = from->count};
    if (from->count == 0)
        return;
    to->at = pf_sim_grow(NULL, from->count, sizeof *to->at);
    for (uint32_t i = 0; i < from->count; i++)
        to->at[i] = (sim_entry){.name = pf_sim_copy_text(from->at[i].name), .slot = from->at[i].slot};
}

/* ---- the list of changes ---- */

static void change_free(sim_change *change)
{
    free(change->from);
    free(change->to);
}

void pf_sim_changes_free(pf_sim_disk *disk)
{
    for (size_t i = 0; i < disk->change_count; i++)
        change_free(&disk->changes[i]);
    free(disk->changes);
    disk->changes = NULL;
    disk->change_count = disk->change_capacity = 0;
}

void pf_sim_changes_copy(const pf_sim_disk *from, pf_sim_disk *to)
{
    to->changes = NULL;
    to->change_capacity = to->change_count = from->change_count;
    if (from->change_count == 0)
        return;
    to->changes = pf_sim_grow(NULL, from->change_count, sizeof *to->changes);
    for (size_t i = 0; i < from->change_count; i++) {
        to->changes[i] = from->changes[i];
        to->changes[i].from = from->changes[i].from != NULL ? pf_sim_copy_text(from->changes[i].from) : NULL;
        to->changes[i].to = from->changes[i].to != NULL ? pf_sim_copy_text(from->changes[i].to) : NULL;
    }
}

static void note_change(pf_sim_disk *disk, sim_change_kind kind, uint32_t slot, uint32_t from_folder, const char *from,
                        uint32_t to_folder, const char *to)
{
    if (disk->change_count == disk->change_capacity) {
        disk->change_capacity = disk->change_capacity == 0 ? 8 : disk->change_capacity * 2;
        disk->changes = pf_sim_grow(disk->changes, disk->change_capacity, sizeof *disk->changes);
    }
    disk->changes[disk->change_count++] = (sim_change){
        .kind = kind,
        .folder = pf_sim_look(disk, slot)->folder,
        .slot = slot,
        .from_folder = from_folder,
        .to_folder = to_folder,
        .from = from != NULL ? pf_sim_copy_text(from) : NULL,
        .to = to != NULL ? pf_sim_copy_text(to) : NULL,
        .from_synced = from == NULL,
        .to_synced = to == NULL,
    };
    disk->slots[slot].pending++;
}

void pf_sim_names_add(pf_sim_disk *disk, uint32_t folder, const char *name, uint32_t slot)
{
    pf_sim_entries_add(&pf_sim_own(disk, folder)->names, name, slot);
    pf_sim_link(disk, slot, true);
    disk->slots[slot].parent = folder;
    note_change(disk, SIM_ADD, slot, SIM_NONE, NULL, folder, name);
}

void pf_sim_names_drop(pf_sim_disk *disk, uint32_t folder, const char *name, uint32_t slot)
{
    note_change(disk, SIM_DROP, slot, folder, name, SIM_NONE, NULL);
    pf_sim_entries_drop(&pf_sim_own(disk, folder)->names, name);
    pf_sim_link(disk, slot, false);
}

void pf_sim_names_move(pf_sim_disk *disk, uint32_t from_folder, const char *from, uint32_t to_folder, const char *to,
                       uint32_t slot)
{
    note_change(disk, SIM_MOVE, slot, from_folder, from, to_folder, to);
    pf_sim_entries_drop(&pf_sim_own(disk, from_folder)->names, from);
    pf_sim_entries_add(&pf_sim_own(disk, to_folder)->names, to, slot);
    disk->slots[slot].parent = to_folder;
}

/* ---- what a change cannot be without ---- */

static bool has_name(const sim_change *change, uint32_t folder, const char *name)
{
    return (change->from_folder == folder && strcmp(change->from, name) == 0) ||
           (change->to_folder == folder && strcmp(change->to, name) == 0);
}

static bool touches(const sim_change *change, uint32_t folder)
{
    return change->from_folder == folder || change->to_folder == folder;
}

/* `later` cannot have happened where `earlier` has not. */
static bool needs(const sim_change *later, const sim_change *earlier)
{
    if (later->kind != SIM_ADD && has_name(earlier, later->from_folder, later->from))
        return true;
    if (later->kind != SIM_DROP && has_name(earlier, later->to_folder, later->to))
        return true;
    if (later->folder && later->kind == SIM_DROP && touches(earlier, later->slot))
        return true;
    return later->folder && later->kind == SIM_MOVE && earlier->folder && earlier->kind == SIM_MOVE;
}

/* The unsynced change before `before` that put this folder where it then stood, or SIZE_MAX when that is durable. */
static size_t placing(const pf_sim_disk *disk, uint32_t folder, size_t before)
{
    for (size_t i = before; i > 0; i--)
        if (disk->changes[i - 1].slot == folder && disk->changes[i - 1].kind != SIM_DROP)
            return i - 1;
    return SIZE_MAX;
}

/* The folder above `folder` as it stood before the change `before`, and the change that put it there (SIZE_MAX:
 * durable). */
static uint32_t above(const pf_sim_disk *disk, uint32_t folder, size_t *before, size_t *ret_placing)
{
    *ret_placing = placing(disk, folder, *before);
    if (*ret_placing == SIZE_MAX)
        return disk->slots[folder].durable_parent;
    *before = *ret_placing;
    return disk->changes[*ret_placing].to_folder;
}

static bool is_at_or_above(const pf_sim_disk *disk, uint32_t folder, uint32_t start, size_t before)
{
    size_t ignored;

    while (start != folder && start != SIM_ROOT && start != SIM_NONE)
        start = above(disk, start, &before, &ignored);
    return start == folder;
}

/* Calls of `visit` for each unsynced change that puts the target folder of the rename `index`, or one above it, into
 * its place; stops when it answers false. Folders that the old name stood below too do not matter: with them both names
 * are lost. */
static bool for_each_placing(const pf_sim_disk *disk, size_t index, bool (*visit)(size_t placing, bool *flags),
                             bool *flags)
{
    const sim_change *change = &disk->changes[index];
    size_t before = index, at;

    for (uint32_t folder = change->to_folder; folder != SIM_ROOT && folder != SIM_NONE;) {
        if (is_at_or_above(disk, folder, change->from_folder, index))
            return true;
        folder = above(disk, folder, &before, &at);
        if (at != SIZE_MAX && !visit(at, flags))
            return false;
    }
    return true;
}

static bool is_flagged(size_t at, bool *flags)
{
    return flags[at];
}

static bool set_flag(size_t at, bool *flags)
{
    flags[at] = true;
    return true;
}

static bool refuse(size_t at, bool *flags)
{
    (void)at;
    (void)flags;
    return false;
}

/* ---- making changes durable ---- */

static void apply(pf_sim_disk *disk, const sim_change *change)
{
    if (change->kind != SIM_ADD)
        pf_sim_entries_drop(&pf_sim_own(disk, change->from_folder)->durable_names, change->from);
    if (change->kind != SIM_DROP) {
        pf_sim_entries_add(&pf_sim_own(disk, change->to_folder)->durable_names, change->to, change->slot);
        disk->slots[change->slot].durable_parent = change->to_folder;
    }
    if (change->kind == SIM_ADD)
        disk->slots[change->slot].durable_links++;
    if (change->kind == SIM_DROP)
        disk->slots[change->slot].durable_links--;
}

/* Applies the flagged changes in order and takes them off the list; true when there was one. */
static bool apply_flagged(pf_sim_disk *disk, const bool *flags)
{
    size_t kept = 0, count = disk->change_count;

    for (size_t i = 0; i < count; i++) {
        sim_change change = disk->changes[i];
        if (!flags[i]) {
            disk->changes[kept++] = change;
            continue;
        }
        apply(disk, &change);
        disk->slots[change.slot].pending--;
        pf_sim_release(disk, change.slot);
        change_free(&change);
    }
    disk->change_count = kept;
    return kept < count;
}

static bool is_ripe(const sim_change *change)
{
    return change->from_synced && change->to_synced;
}

/* Flags what a sync has made durable: the ripe changes, and from the newest to the oldest what each cannot be without.
 * A ripe rename into a folder whose own name is not durable goes on waiting, unless something durable needs it. */
static void flag_durable(const pf_sim_disk *disk, bool *flags)
{
    for (size_t i = disk->change_count; i > 0; i--) {
        const sim_change *change = &disk->changes[i - 1];
        if (is_ripe(change) && (change->kind != SIM_MOVE || for_each_placing(disk, i - 1, refuse, flags)))
            flags[i - 1] = true;
        if (!flags[i - 1])
            continue;
        for (size_t j = i - 1; j > 0; j--)
            if (needs(change, &disk->changes[j - 1]))
                flags[j - 1] = true;
        if (change->kind == SIM_MOVE)
            (void)for_each_placing(disk, i - 1, set_flag, flags);
    }
}

void pf_sim_names_sync(pf_sim_disk *disk, uint32_t folder)
{
    bool *flags, more = true;

    for (size_t i = 0; i < disk->change_count; i++) {
        disk->changes[i].from_synced |= disk->changes[i].from_folder == folder;
        disk->changes[i].to_synced |= disk->changes[i].to_folder == folder;
    }
    while (more && disk->change_count > 0) { /* again: what became durable may set a waiting rename free */
        flags = pf_sim_grow(NULL, disk->change_count, sizeof *flags);
        memset(flags, 0, disk->change_count * sizeof *flags);
        flag_durable(disk, flags);
        more = apply_flagged(disk, flags);
        free(flags);
    }
}

/* ---- losing ---- */

static bool wants_to_stay(pf_sim_disk *disk, const sim_change *change, pf_sim_loss loss, unsigned keep)
{
    switch (loss) {
    case PF_SIM_LOSE_ALL:
        return is_ripe(change);
    case PF_SIM_KEEP_ALL:
    case PF_SIM_TEAR_LAST:
        return true;
    case PF_SIM_RANDOM:
        break;
    }
    if (disk->choices != NULL)
        return is_ripe(change) || pf_sim_choose(disk, 2) == 1;
    return pf_sim_chance(disk, keep, 8) || is_ripe(change);
}

static void flag_kept(pf_sim_disk *disk, pf_sim_loss loss, unsigned keep, bool *flags)
{
    for (size_t i = 0; i < disk->change_count; i++) {
        const sim_change *change = &disk->changes[i];
        bool possible = true;
        for (size_t j = 0; j < i && possible; j++)
            possible = flags[j] || !needs(change, &disk->changes[j]);
        if (possible && change->kind == SIM_MOVE)
            possible = for_each_placing(disk, i, is_flagged, flags);
        flags[i] = possible && wants_to_stay(disk, change, loss, keep);
    }
}

/* Counts again, from the root, what the durable names reach; the rest is gone. */
static void keep_what_is_reached(pf_sim_disk *disk)
{
    uint32_t *queue = pf_sim_grow(NULL, disk->slot_count, sizeof *queue);
    uint32_t head = 0, tail = 0;

    for (uint32_t i = 0; i < disk->slot_count; i++) {
        sim_slot *slot = &disk->slots[i];
        slot->links = slot->durable_links = i == SIM_ROOT;
        slot->handles = slot->pending = 0;
    }
    queue[tail++] = SIM_ROOT;
    while (head < tail) {
        uint32_t folder = queue[head++];
        const sim_inode *inode = pf_sim_look(disk, folder);
        if (!entries_equal(&inode->names, &inode->durable_names)) {
            sim_inode *own = pf_sim_own(disk, folder);
            pf_sim_entries_free(&own->names);
            pf_sim_entries_copy(&own->durable_names, &own->names);
            inode = own;
        }
        for (uint32_t i = 0; i < inode->names.count; i++) {
            uint32_t child = inode->names.at[i].slot;
            sim_slot *slot = &disk->slots[child];
            PF_ALWAYS(slot->inode != NULL && slot->links == 0); /* one name each, and no folder inside itself */
            slot->links = slot->durable_links = 1;
            slot->parent = slot->durable_parent = folder;
            if (slot->inode->folder)
                queue[tail++] = child;
        }
    }
    free(queue);
    for (uint32_t i = 0; i < disk->slot_count; i++)
        pf_sim_release(disk, i);
}

void pf_sim_names_lose(pf_sim_disk *disk, pf_sim_loss loss, unsigned keep)
{
    if (disk->change_count > 0) {
        bool *flags = pf_sim_grow(NULL, disk->change_count, sizeof *flags);
        flag_kept(disk, loss, keep, flags);
        (void)apply_flagged(disk, flags);
        free(flags);
    }
    pf_sim_changes_free(disk);
    keep_what_is_reached(disk);
}
