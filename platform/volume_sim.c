/*
 * The volume port on the simulated disk: actors (one per simulated process), their handles and locks, and where
 * crashes, errors and interruptions strike.
 *
 * Each changing call passes begin_change and ends in end_change. Between the two it happens whole, so a crash lies
 * before or after it; only the last write of a dying process may be cut short. The caller of a struck call gets FENCED,
 * whatever the call did: a dead process learns nothing.
 */
#include "platform/volume_sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const pf_volume_ops sim_ops;

/* ---- death ---- */

void pf_sim_tell_released(const pf_sim_disk *disk)
{
    if (disk->turns)
        disk->turns->released(disk->turns->context);
}

void pf_sim_drop_locks(pf_sim_disk *disk, const sim_file *file)
{
    size_t kept = 0, before = disk->lock_count;

    for (size_t i = 0; i < disk->lock_count; i++)
        if (disk->locks[i].file != file)
            disk->locks[kept++] = disk->locks[i];
    disk->lock_count = kept;
    if (kept != before)
        pf_sim_tell_released(disk);
}

static void kill_actor(sim_actor *actor)
{
    if (actor->dead)
        return;
    actor->dead = true;
    for (sim_file *file = actor->files; file != NULL; file = file->next) {
        pf_sim_drop_locks(actor->disk, file);
        file->open = false;
        pf_sim_handle(actor->disk, file->slot, false);
    }
}

void pf_sim_actors_kill(pf_sim_disk *disk)
{
    for (sim_actor *actor = disk->actors; actor != NULL; actor = actor->next)
        kill_actor(actor);
}

sluice_status pf_sim_fail_dead(sluice_error *err)
{
    return pf_fail(err, SLUICE_FENCED, "this simulated process is dead");
}

static void strike(sim_actor *actor)
{
    if (actor->fate == PF_SIM_POWER_LOSS)
        pf_sim_power_loss(actor->disk, actor->loss);
    if (actor->process != 0)
        pf_sim_kill_process(actor->disk, actor->process);
    kill_actor(actor);
}

/* ---- calls ---- */

static bool due(sim_plan *plan)
{
    return plan->left > 0 && --plan->left == 0;
}

/* The errno that this call fails with, or 0. */
static int failure_of(sim_failing *failing)
{
    if (!due(&failing->plan))
        return 0;
    if (failing->times != 1)
        failing->plan.left = 1;
    if (failing->times > 1)
        failing->times--;
    return failing->error_number;
}

/* Others may run now. */
static void take_turns(sim_actor *actor, bool changes, const char *doing, const char *path)
{
    const pf_sim_turns *turns = actor->disk->turns;

    if (turns && !actor->dead)
        turns->call(turns->context, &actor->base, changes, doing, path);
}

sluice_status pf_sim_begin_change(sim_actor *actor, const char *doing, const char *path, sim_call *ret_call,
                                  sluice_error *err)
{
    *ret_call = (sim_call){0};
    take_turns(actor, true, doing, path);
    if (actor->dead)
        return pf_sim_fail_dead(err);
    if (due(&actor->interrupt)) {
        actor->act(actor->act_context);
        if (actor->dead)
            return pf_sim_fail_dead(err);
    }
    actor->calls++;
    if (due(&actor->crash)) {
        if (actor->crash_before) {
            strike(actor);
            return pf_sim_fail_dead(err);
        }
        ret_call->last = true;
    }
    ret_call->error_number = failure_of(&actor->change_failing);
    return SLUICE_OK;
}

sluice_status pf_sim_end_change(sim_actor *actor, const sim_call *call, sluice_status status, sluice_error *err)
{
    if (!call->last)
        return status;
    strike(actor);
    return pf_sim_fail_dead(err);
}

sluice_status pf_sim_begin_look(sim_actor *actor, const char *doing, const char *path, sluice_error *err)
{
    int error_number;

    take_turns(actor, false, doing, path);
    if (actor->dead)
        return pf_sim_fail_dead(err);
    error_number = failure_of(&actor->look_failing);
    return error_number == 0 ? SLUICE_OK : pf_volume_fail(err, error_number, doing, path);
}

/* ---- walking ---- */

/* The slot that a path below `root` names; 0 or an errno. */
static int walk(const pf_sim_disk *disk, uint32_t root, const char *path, uint32_t *ret_slot)
{
    uint32_t slot = root;

    while (*path != 0) {
        size_t length = strcspn(path, "/");
        const sim_inode *inode = pf_sim_look(disk, slot);
        if (!inode->folder)
            return ENOTDIR;
        slot = pf_sim_entries_find(&inode->names, path, length);
        if (slot == SIM_NONE)
            return ENOENT;
        path += length;
        path += *path == '/';
    }
    *ret_slot = slot;
    return 0;
}

/* The root folder may have been removed under its actor's feet: then nothing is found below it. */
int pf_sim_find_place(const sim_actor *actor, const char *path, sim_place *ret_place)
{
    char folder[PF_PATH_MAX];
    const sim_inode *inode;
    int error_number;

    pf_path_split(path, folder, &ret_place->name);
    if (actor->disk->slots[actor->root].inode == NULL)
        return ENOENT;
    error_number = walk(actor->disk, actor->root, folder, &ret_place->folder);
    if (error_number != 0)
        return error_number;
    inode = pf_sim_look(actor->disk, ret_place->folder);
    if (!inode->folder)
        return ENOTDIR;
    ret_place->slot = pf_sim_entries_find(&inode->names, ret_place->name, strlen(ret_place->name));
    return 0;
}

static int find_folder(const sim_actor *actor, const char *path, uint32_t *ret_slot)
{
    int error_number;

    if (actor->disk->slots[actor->root].inode == NULL)
        return ENOENT;
    error_number = walk(actor->disk, actor->root, path, ret_slot);
    if (error_number != 0)
        return error_number;
    return pf_sim_look(actor->disk, *ret_slot)->folder ? 0 : ENOTDIR;
}

/* ---- names ---- */

static sluice_status handle_new(sim_actor *actor, const char *path, pf_access access, uint32_t slot, pf_file **ret_file,
                                sluice_error *err)
{
    sim_file *file = calloc(1, sizeof *file);
    sluice_status status;

    if (file == NULL)
        return pf_fail_memory(err);
    status = pf_file_init(&file->base, &actor->base, path, access, err);
    if (status != SLUICE_OK) {
        free(file);
        return status;
    }
    file->slot = slot;
    file->open = true;
    file->next = actor->files;
    actor->files = file;
    pf_sim_handle(actor->disk, slot, true);
    *ret_file = &file->base;
    return SLUICE_OK;
}

static sluice_status do_create(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_place place;
    sim_call call;
    sluice_status status = SLUICE_OK;

    PF_TRY(pf_sim_begin_change(actor, "creating", path, &call, err));
    if (call.error_number == 0)
        call.error_number = pf_sim_find_place(actor, path, &place);
    if (call.error_number == 0 && place.slot != SIM_NONE)
        call.error_number = EEXIST;
    if (call.error_number != 0) {
        status = pf_volume_fail(err, call.error_number, "creating", path);
    } else {
        place.slot = pf_sim_slot_new(actor->disk, false);
        pf_sim_names_add(actor->disk, place.folder, place.name, place.slot);
        if (!call.last)
            status = handle_new(actor, path, PF_WRITE, place.slot, ret_file, err);
    }
    return pf_sim_end_change(actor, &call, status, err);
}

static sluice_status do_open(pf_volume *volume, const char *path, pf_access access, pf_file **ret_file,
                             sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_place place;
    int error_number;

    PF_TRY(pf_sim_begin_look(actor, "opening", path, err));
    error_number = pf_sim_find_place(actor, path, &place);
    if (error_number == 0 && place.slot == SIM_NONE)
        error_number = ENOENT;
    if (error_number == 0 && pf_sim_look(actor->disk, place.slot)->folder)
        error_number = EISDIR;
    if (error_number != 0)
        return pf_volume_fail(err, error_number, "opening", path);
    return handle_new(actor, path, access, place.slot, ret_file, err);
}

static sluice_status do_publish(pf_volume *volume, const char *from, const char *to, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_place source, target;
    sim_call call;
    sluice_status status = SLUICE_OK;

    PF_TRY(pf_sim_begin_change(actor, "renaming", from, &call, err));
    if (call.error_number == 0)
        call.error_number = pf_sim_find_place(actor, from, &source);
    if (call.error_number == 0)
        call.error_number = pf_sim_find_place(actor, to, &target);
    if (call.error_number == 0 && source.slot == SIM_NONE)
        call.error_number = ENOENT;
    if (call.error_number == 0 && target.slot != SIM_NONE)
        call.error_number = EEXIST;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "renaming to", to);
    else
        pf_sim_names_move(actor->disk, source.folder, source.name, target.folder, target.name, source.slot);
    return pf_sim_end_change(actor, &call, status, err);
}

static sluice_status remove_entry(pf_volume *volume, const char *path, bool folder, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_place place;
    sim_call call;
    sluice_status status = SLUICE_OK;

    PF_TRY(pf_sim_begin_change(actor, "removing", path, &call, err));
    if (call.error_number == 0)
        call.error_number = pf_sim_find_place(actor, path, &place);
    if (call.error_number == 0 && place.slot == SIM_NONE)
        call.error_number = ENOENT;
    if (call.error_number == 0 && pf_sim_look(actor->disk, place.slot)->folder != folder)
        call.error_number = folder ? ENOTDIR : EISDIR;
    if (call.error_number == 0 && folder && pf_sim_look(actor->disk, place.slot)->names.count > 0)
        call.error_number = ENOTEMPTY;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "removing", path);
    else
        pf_sim_names_drop(actor->disk, place.folder, place.name, place.slot);
    return pf_sim_end_change(actor, &call, status, err);
}

static sluice_status do_remove(pf_volume *volume, const char *path, sluice_error *err)
{
    return remove_entry(volume, path, false, err);
}

static sluice_status do_remove_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    return remove_entry(volume, path, true, err);
}

static sluice_status do_make_folder(pf_volume *volume, const char *path, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_place place;
    sim_call call;
    sluice_status status = SLUICE_OK;

    PF_TRY(pf_sim_begin_change(actor, "making the folder", path, &call, err));
    if (call.error_number == 0)
        call.error_number = pf_sim_find_place(actor, path, &place);
    if (call.error_number == 0 && place.slot != SIM_NONE)
        call.error_number = EEXIST;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "making the folder", path);
    else
        pf_sim_names_add(actor->disk, place.folder, place.name, pf_sim_slot_new(actor->disk, true));
    return pf_sim_end_change(actor, &call, status, err);
}

static sluice_status do_sync_dir(pf_volume *volume, const char *path, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_call call;
    sluice_status status = SLUICE_OK;
    uint32_t slot;

    PF_TRY(pf_sim_begin_change(actor, "syncing the folder", path, &call, err));
    if (call.error_number == 0)
        call.error_number = find_folder(actor, path, &slot);
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "syncing the folder", path);
    else
        pf_sim_names_sync(actor->disk, slot);
    return pf_sim_end_change(actor, &call, status, err);
}

static sluice_status do_list(pf_volume *volume, const char *path, pf_list_fn *each, void *context, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sluice_status status = SLUICE_OK;
    sim_entries names;
    pf_kind *kinds;
    uint32_t slot;
    int error_number;

    PF_TRY(pf_sim_begin_look(actor, "listing", path, err));
    error_number = find_folder(actor, path, &slot);
    if (error_number != 0)
        return pf_volume_fail(err, error_number, "listing", path);
    pf_sim_entries_copy(&pf_sim_look(actor->disk, slot)->names, &names); /* the callback may change the folder */
    kinds = pf_sim_grow(NULL, names.count + 1, sizeof *kinds);
    for (uint32_t i = 0; i < names.count; i++)
        kinds[i] = pf_sim_look(actor->disk, names.at[i].slot)->folder ? PF_KIND_FOLDER : PF_KIND_FILE;
    for (uint32_t i = 0; i < names.count && status == SLUICE_OK; i++)
        status = each(context, names.at[i].name, kinds[i], err);
    pf_sim_entries_free(&names);
    free(kinds);
    return status;
}

void pf_sim_fill_stat(const pf_sim_disk *disk, uint32_t slot, pf_stat *ret_stat)
{
    const sim_inode *inode = pf_sim_look(disk, slot);

    *ret_stat = (pf_stat){
        .kind = inode->folder ? PF_KIND_FOLDER : PF_KIND_FILE,
        .size = inode->size,
        .device = SIM_DEVICE,
        .inode = slot,
        .links = disk->slots[slot].links,
        .owner = 0,
        .mode = inode->folder ? 0700 : 0600,
        .allocated = inode->allocated * SIM_PAGE,
    };
}

static sluice_status do_stat_path(pf_volume *volume, const char *path, pf_stat *ret_stat, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    uint32_t slot;
    int error_number = 0;

    PF_TRY(pf_sim_begin_look(actor, "examining", path, err));
    if (actor->disk->slots[actor->root].inode == NULL)
        error_number = ENOENT;
    if (error_number == 0)
        error_number = walk(actor->disk, actor->root, path, &slot);
    if (error_number != 0)
        return pf_volume_fail(err, error_number, "examining", path);
    pf_sim_fill_stat(actor->disk, slot, ret_stat);
    return SLUICE_OK;
}

/* ---- actors ---- */

static sluice_status do_check_identity(pf_volume *volume, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    uint32_t slot;

    PF_TRY(pf_sim_begin_look(actor, "examining", "the graph's folder", err));
    if (walk(actor->disk, SIM_ROOT, actor->root_path, &slot) != 0 || slot != actor->root)
        return pf_fail(err, SLUICE_FENCED, "the graph's folder was moved or replaced");
    return SLUICE_OK;
}

static sluice_status do_sync_name(pf_volume *volume, sluice_error *err)
{
    sim_actor *actor = sim_actor_of(volume);
    sluice_status status = SLUICE_OK;
    const sim_slot *root;
    sim_call call;

    PF_TRY(pf_sim_begin_change(actor, "syncing the folder above", "", &call, err));
    root = &actor->disk->slots[actor->root];
    if (call.error_number == 0 && root->links == 0)
        call.error_number = ENOENT;
    if (call.error_number != 0)
        status = pf_volume_fail(err, call.error_number, "syncing the folder above", "the graph's");
    else if (root->parent != SIM_NONE)
        pf_sim_names_sync(actor->disk, root->parent);
    return pf_sim_end_change(actor, &call, status, err);
}

static void do_close(pf_volume *volume)
{
    sim_actor *actor = sim_actor_of(volume);
    sim_actor **at = &actor->disk->actors;

    while (*at != actor)
        at = &(*at)->next;
    *at = actor->next;
    pf_sim_disk_free(actor->disk);
    free(actor->root_path);
    free(actor);
}

/* Finds the folder, making what is missing of it, durable. */
static sluice_status make_root(pf_sim_disk *disk, const char *path, uint32_t *ret_slot, sluice_error *err)
{
    uint32_t slot = SIM_ROOT;

    while (*path != 0) {
        size_t length = strcspn(path, "/");
        uint32_t child = pf_sim_entries_find(&pf_sim_look(disk, slot)->names, path, length);
        if (child == SIM_NONE) {
            char name[PF_COMPONENT_MAX + 1];
            if (length == 0 || length > PF_COMPONENT_MAX)
                return pf_fail(err, SLUICE_INTERNAL, "the path of a simulated root is malformed");
            memcpy(name, path, length);
            name[length] = 0;
            child = pf_sim_slot_new(disk, true);
            pf_sim_names_add(disk, slot, name, child);
            pf_sim_names_sync(disk, slot);
        }
        if (!pf_sim_look(disk, child)->folder)
            return pf_volume_fail(err, ENOTDIR, "opening", path);
        slot = child;
        path += length;
        path += *path == '/';
    }
    *ret_slot = slot;
    return SLUICE_OK;
}

sluice_status pf_sim_actor(pf_sim_disk *disk, const char *root, pf_volume **ret_volume, sluice_error *err)
{
    sim_actor *actor;
    uint32_t slot = SIM_ROOT;

    PF_TRY(make_root(disk, root, &slot, err));
    actor = calloc(1, sizeof *actor);
    if (actor == NULL)
        return pf_fail_memory(err);
    actor->base = (pf_volume){.ops = &sim_ops, .access = PF_WRITE, .simulated = true};
    actor->disk = disk;
    actor->root = slot;
    actor->root_path = pf_sim_copy_text(root);
    actor->next = disk->actors;
    disk->actors = actor;
    pf_sim_disk_hold(disk);
    *ret_volume = &actor->base;
    return SLUICE_OK;
}

void pf_sim_crash_at(pf_volume *volume, uint64_t k, bool before, pf_sim_fate fate, pf_sim_loss loss)
{
    sim_actor *actor = sim_actor_of(volume);

    actor->crash.left = k;
    actor->crash_before = before;
    actor->fate = fate;
    actor->loss = loss;
}

void pf_sim_fail_at(pf_volume *volume, uint64_t k, int error_number, unsigned times)
{
    sim_actor_of(volume)->change_failing =
        (sim_failing){.plan = {.left = k}, .error_number = error_number, .times = times};
}

void pf_sim_fail_look_at(pf_volume *volume, uint64_t k, int error_number, unsigned times)
{
    sim_actor_of(volume)->look_failing =
        (sim_failing){.plan = {.left = k}, .error_number = error_number, .times = times};
}

void pf_sim_interrupt_at(pf_volume *volume, uint64_t k, void (*act)(void *context), void *context)
{
    sim_actor *actor = sim_actor_of(volume);

    actor->interrupt.left = k;
    actor->act = act;
    actor->act_context = context;
}

uint64_t pf_sim_calls(const pf_volume *volume)
{
    PF_ALWAYS(volume->simulated);
    return ((const sim_actor *)volume)->calls;
}

bool pf_sim_is_dead(const pf_volume *volume)
{
    PF_ALWAYS(volume->simulated);
    return ((const sim_actor *)volume)->dead;
}

void pf_sim_set_process(pf_volume *volume, uint32_t process)
{
    sim_actor_of(volume)->process = process;
}

void pf_sim_kill_process(pf_sim_disk *disk, uint32_t process)
{
    for (sim_actor *actor = disk->actors; actor != NULL; actor = actor->next)
        if (actor->process == process)
            kill_actor(actor);
}

void pf_sim_set_turns(pf_sim_disk *disk, const pf_sim_turns *turns)
{
    disk->turns = turns;
}

void pf_sim_kill(pf_volume *volume)
{
    kill_actor(sim_actor_of(volume));
}

static const pf_volume_ops sim_ops = {
    .close = do_close,
    .check_identity = do_check_identity,
    .sync_name = do_sync_name,
    .create = do_create,
    .open = do_open,
    .publish = do_publish,
    .remove = do_remove,
    .make_folder = do_make_folder,
    .remove_folder = do_remove_folder,
    .sync_dir = do_sync_dir,
    .list = do_list,
    .stat_path = do_stat_path,
    .read = pf_sim_op_read,
    .read_medium = pf_sim_op_read_medium,
    .write = pf_sim_op_write,
    .sync = pf_sim_op_sync,
    .write_behind = pf_sim_op_write_behind,
    .zero_fill = pf_sim_op_zero_fill,
    .file_stat = pf_sim_op_file_stat,
    .file_check_identity = pf_sim_op_file_check_identity,
    .map = pf_sim_op_map,
    .file_close = pf_sim_op_file_close,
    .lock_try = pf_sim_op_lock_try,
    .lock_wait = pf_sim_op_lock_wait,
    .unlock = pf_sim_op_unlock,
    .lock_is_free = pf_sim_op_lock_is_free,
};
