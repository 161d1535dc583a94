/* What is left after an end in the middle (aftermath.h). */
#include "aftermath.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>

/* ---- recording ---- */

static pf_sim_disk *copy_of(const pf_sim_disk *disk, uint64_t seed)
{
    sluice_error err = {0};
    pf_sim_disk *copy = NULL;
    ASSERT_OK(pf_sim_disk_clone(disk, seed, &copy, &err));
    return copy;
}

static void on_call(void *context, pf_volume *volume, bool changes, const char *doing, const char *path)
{
    recording *of = context;
    (void)volume, (void)doing, (void)path;
    if (!changes)
        return;
    if (of->count == of->room) {
        of->room = of->room ? 2 * of->room : 64;
        of->disks = realloc(of->disks, of->room * sizeof *of->disks);
        assert_non_null(of->disks);
    }
    of->disks[of->count] = copy_of(of->of, of->count);
    if (of->noticed)
        of->noticed(of->context, of->count);
    of->count++;
}

/* Nobody else runs: waiting is in vain. */
static bool on_wait(void *context, pf_deadline deadline)
{
    (void)context;
    pf_sim_world_advance(deadline.monotonic_ns);
    return false;
}

static void on_released(void *context)
{
    (void)context;
}

void recording_begin(recording *of, pf_sim_disk *disk)
{
    of->of = disk;
    of->turns = (pf_sim_turns){.context = of, .call = on_call, .wait = on_wait, .released = on_released};
    pf_sim_set_turns(disk, &of->turns);
}

void recording_end(recording *of)
{
    pf_sim_set_turns(of->of, NULL);
}

void recording_free(recording *of)
{
    for (uint32_t i = 0; i < of->count; i++)
        pf_sim_disk_free(of->disks[i]);
    free(of->disks);
    *of = (recording){0};
}

/* ---- what has been tried ---- */

static uint32_t place_of(const seen_disks *seen, uint64_t digest)
{
    uint32_t at = (uint32_t)(digest % seen->room);
    while (seen->table[at] && seen->table[at] != digest)
        at = (at + 1) % seen->room;
    return at;
}

bool seen_add(seen_disks *seen, uint64_t digest)
{
    digest |= 1; /* 0 is an empty place */
    if (2 * seen->count >= seen->room) {
        seen_disks more = {.room = seen->room ? 2 * seen->room : 1024, .count = seen->count};
        more.table = calloc(more.room, sizeof *more.table);
        assert_non_null(more.table);
        for (uint32_t i = 0; i < seen->room; i++)
            if (seen->table[i])
                more.table[place_of(&more, seen->table[i])] = seen->table[i];
        free(seen->table);
        *seen = more;
    }
    uint32_t at = place_of(seen, digest);
    if (seen->table[at])
        return false;
    seen->table[at] = digest;
    seen->count++;
    return true;
}

void seen_free(seen_disks *seen)
{
    free(seen->table);
    *seen = (seen_disks){0};
}

uint64_t seen_digest(const pf_sim_disk *disk)
{
    pf_sim_disk *lost = copy_of(disk, 0);
    pf_sim_power_loss(lost, PF_SIM_LOSE_ALL);
    uint64_t digest = pf_sim_digest(disk) * UINT64_C(0x9e3779b97f4a7c15) ^ pf_sim_digest(lost);
    pf_sim_disk_free(lost);
    return digest;
}

/* ---- losses of power ---- */

typedef struct walk {
    const pf_sim_disk *moment;
    const aftermath_bounds *bounds;
    uint64_t salt;
    seen_disks *seen;
    aftermath_fn *each;
    void *context;
    aftermath_counts *counts;
    /* Choices made so far, of which the others are made by one more each; in order, so by how many differ. */
    struct walk_node {
        pf_sim_choices choices; /* as the disk completed them */
        uint32_t free;          /* the first one that may still differ */
        uint32_t differ;
    } * nodes;
    uint32_t head, count, room;
    uint64_t start; /* disks tried before */
} walk;

static void try_disk(walk *w, pf_sim_disk *disk)
{
    w->counts->tried++;
    if (seen_add(w->seen, pf_sim_digest(disk) ^ w->salt)) {
        w->counts->distinct++;
        w->each(w->context, disk);
    }
    pf_sim_disk_free(disk);
}

static void try_choices(walk *w, const pf_sim_choices *choices, uint32_t free, uint32_t differ)
{
    pf_sim_disk *disk = copy_of(w->moment, 0);
    if (w->count == w->room) {
        w->room = w->room ? 2 * w->room : 64;
        w->nodes = realloc(w->nodes, w->room * sizeof *w->nodes);
        assert_non_null(w->nodes);
    }
    struct walk_node *node = &w->nodes[w->count++];
    *node = (struct walk_node){.choices = *choices, .free = free, .differ = differ};
    pf_sim_power_loss_chosen(disk, &node->choices);
    try_disk(w, disk);
}

/* The disks that differ from the node's by one more choice; false: not all of them. */
static bool differ_more(walk *w, uint32_t number, bool wanted)
{
    pf_sim_choices whole = w->nodes[number].choices;
    uint32_t free = w->nodes[number].free, differ = w->nodes[number].differ;
    for (uint32_t i = free; i < whole.count; i++) {
        for (uint16_t digit = 0; digit < whole.options[i]; digit++) {
            pf_sim_choices other = whole;
            if (digit == whole.digits[i])
                continue;
            if (!wanted && w->counts->tried - w->start >= w->bounds->disks)
                return false;
            other.digits[i] = digit;
            other.count = i + 1;
            try_choices(w, &other, i + 1, differ + 1);
        }
    }
    return true;
}

/* From "all is lost", or from "all is kept". True when there are no more. */
static bool walk_from(walk *w, bool keeps)
{
    const aftermath_bounds *bounds = w->bounds;
    bool whole = true;
    w->start = w->counts->tried;
    w->head = w->count = 0;
    try_choices(w, &(pf_sim_choices){.keeps = keeps}, 0, 0);
    for (; w->head < w->count; w->head++) {
        uint32_t differ = w->nodes[w->head].differ;
        bool wanted = (differ == 0 && bounds->singles) || (differ == 1 && bounds->pairs);
        if (w->nodes[w->head].free >= w->nodes[w->head].choices.count)
            continue;
        whole = differ_more(w, w->head, wanted) && whole;
    }
    return whole && !w->nodes[0].choices.cut;
}

void aftermath_each(const pf_sim_disk *moment, const aftermath_bounds *bounds, uint64_t salt, seen_disks *seen,
                    aftermath_fn *each, void *context, aftermath_counts *counts)
{
    walk w = {.moment = moment,
              .bounds = bounds,
              .salt = salt,
              .seen = seen,
              .each = each,
              .context = context,
              .counts = counts};
    counts->moments++;
    bool whole = walk_from(&w, false);
    bool unsynced = w.count > 1;
    counts->whole += whole;
    if (!whole)
        (void)walk_from(&w, true);
    for (uint32_t i = 0; unsynced && i < (whole ? (bounds->samples + 3) / 4 : bounds->samples); i++) {
        pf_sim_disk *disk = copy_of(moment, salt + i);
        pf_sim_power_loss(disk, i % 4 == 0 ? PF_SIM_TEAR_LAST : PF_SIM_RANDOM);
        try_disk(&w, disk);
    }
    free(w.nodes);
}
