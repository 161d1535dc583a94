/*
 * Substitutions: fragments leave, others come in their place, with the same rows.
 *
 * A substitution was prepared against an older state: it says which deletions it has applied (their rows are not in
 * what comes in). Deletions that came since stand in the dead sets of what leaves; they are handed on: the row ids of
 * (dead now - applied), fragment by fragment, are deleted in what comes in, and there only (an update since then has
 * put the same row id into a later fragment, which must keep it). Each leaving fragment says how many of the incoming
 * ones stand in its place, so that the order of the rows is kept. It does not hold when a leaving fragment is not
 * listed any more, or an applied deletion is gone. A fragment that comes in under the name of one that leaves (new
 * index, new runs) keeps ids, commit and dead rows.
 */
#include "platform/check.h"
#include "store/state/list_edit.h"
#include <stdlib.h>
#include <string.h>

typedef struct leaving {
    const st_edit_out *out;
    const st_edit_add *same; /* comes in again under its name */
    uint64_t first;          /* of the incoming ones that stand in its place */
    bool found;
} leaving;

typedef struct substitution {
    st_list *list;
    const st_bound_edit *bound;
    leaving *outs; /* by name */
    uint32_t count;
    st_row_set *later; /* row ids of deletions to hand on */
    st_item *incoming; /* in the order of the edit, without those of the same name */
    uint32_t incoming_count;
    uint64_t claimed; /* of them: by leaving fragments; the others stand in the place of the first */
    bool placed;
} substitution;

static int compare_outs(const void *a, const void *b)
{
    return strcmp(((const leaving *)a)->out->fragment, ((const leaving *)b)->out->fragment);
}

static leaving *find_out(const substitution *sub, const char *name)
{
    uint32_t low = 0, high = sub->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(sub->outs[middle].out->fragment, name);
        if (order == 0)
            return &sub->outs[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static sluice_status does_not_hold(const char *why, sluice_error *err)
{
    return pf_fail(err, SLUICE_WRITE_CONFLICT, "a substitution does not hold any more: %s", why);
}

static sluice_status prepare(substitution *sub, sluice_error *err)
{
    const st_edit *edit = &sub->bound->edit;
    sub->outs = calloc(edit->out_count, sizeof(*sub->outs));
    sub->incoming = calloc((size_t)edit->add_count + 1, sizeof(*sub->incoming));
    if (!sub->outs || !sub->incoming)
        return pf_fail_memory(err);
    sub->count = edit->out_count;
    for (uint32_t i = 0; i < edit->out_count; i++) {
        sub->outs[i] = (leaving){.out = &edit->out[i], .first = sub->claimed};
        sub->claimed += edit->out[i].incoming;
    }
    qsort(sub->outs, sub->count, sizeof(*sub->outs), compare_outs);
    for (uint32_t i = 1; i < sub->count; i++)
        if (compare_outs(&sub->outs[i - 1], &sub->outs[i]) == 0)
            return pf_fail(err, SLUICE_CORRUPT, "a substitution takes a fragment out twice");
    return st_row_set_new(&sub->later, err);
}

/* The dead positions now, without those that were applied. */
static sluice_status later_positions(const substitution *sub, const st_item *item, const st_dead_ref *applied,
                                     uint64_t **ret_later, uint64_t *ret_count, sluice_error *err)
{
    st_row_set *done = NULL;
    uint64_t met = 0;
    *ret_count = 0;
    *ret_later = malloc((item->dead_count + 1) * sizeof(**ret_later));
    if (!*ret_later)
        return pf_fail_memory(err);
    if (applied->present)
        PF_TRY(st_deletion_read(st_graph_volume(sub->list->graph), sub->list->table, applied, &done, err));
    for (uint64_t i = 0; i < item->dead_count; i++) {
        if (done && st_row_set_contains(done, item->dead[i]))
            met++;
        else
            (*ret_later)[(*ret_count)++] = item->dead[i];
    }
    bool all = !done || met == st_row_set_count(done);
    st_row_set_free(done);
    return all ? SLUICE_OK : does_not_hold("a deletion that it applied is gone", err);
}

/* First walk: everything that leaves is there, and what to hand on. */
static sluice_status look_at(void *context, st_item *item, sluice_error *err)
{
    substitution *sub = context;
    leaving *out = find_out(sub, item->add.fragment.name);
    uint64_t *later = NULL, count = 0;
    if (!out)
        return SLUICE_OK;
    out->found = true;
    PF_TRY(st_item_load_dead(sub->list, item, err));
    sluice_status status = later_positions(sub, item, &out->out->applied, &later, &count, err);
    if (status == SLUICE_OK && !out->same)
        status =
            st_row_ids_of(st_graph_volume(sub->list->graph), sub->list->table, item, later, count, sub->later, err);
    free(later);
    return status;
}

/* What comes in under a new name, with the later deletions. */
static sluice_status make_incoming(substitution *sub, sluice_error *err)
{
    const st_edit *edit = &sub->bound->edit;
    for (uint32_t i = 0; i < edit->add_count; i++) {
        uint64_t no_row = 0;
        bool changed;
        if (find_out(sub, edit->adds[i].fragment.name))
            continue;
        st_item *item = &sub->incoming[sub->incoming_count];
        PF_TRY(st_list_make_item(sub->list, &edit->adds[i], &sub->bound->commit, &no_row, item, err));
        sub->incoming_count++;
        if (st_row_set_count(sub->later) > 0)
            PF_TRY(st_item_delete(sub->list, item, sub->later, &changed, err));
    }
    return SLUICE_OK;
}

/* The item of a fragment that comes in again: new runs, the old rest. */
static sluice_status renew(st_item *item, const st_edit_add *same, sluice_error *err)
{
    st_edit_add fresh;
    PF_TRY(st_add_copy(same, &fresh, err));
    fresh.first_row = item->add.first_row;
    fresh.commit = item->add.commit;
    fresh.dead = item->add.dead;
    st_add_free(&item->add);
    item->add = fresh;
    return SLUICE_OK;
}

/* Incoming fragments [first, first + count) go behind what the page holds. */
static sluice_status place(substitution *sub, uint64_t first, uint64_t count, st_list_node *page, sluice_error *err)
{
    for (uint64_t k = first; k < first + count; k++) {
        st_item item = sub->incoming[k];
        sub->incoming[k] = (st_item){0};
        PF_TRY(st_list_push_item(page, &item, err));
    }
    return SLUICE_OK;
}

/* Second walk, over one page: builds its items anew. */
static sluice_status rewrite_page(substitution *sub, st_list_node *leaf, sluice_error *err)
{
    st_list_node fresh = {.ref = leaf->ref, .loaded = true};
    bool any = false;
    for (uint32_t i = 0; i < leaf->count && !any; i++)
        any = find_out(sub, leaf->items[i].add.fragment.name) != NULL;
    if (!any)
        return SLUICE_OK;
    uint32_t next = 0;
    sluice_status status = SLUICE_OK;
    for (; next < leaf->count && status == SLUICE_OK; next++) {
        st_item *item = &leaf->items[next];
        leaving *out = find_out(sub, item->add.fragment.name);
        if (out && !sub->placed)
            status = place(sub, sub->claimed, sub->incoming_count - sub->claimed, &fresh, err);
        if (out && status == SLUICE_OK)
            status = place(sub, out->first, out->out->incoming, &fresh, err);
        sub->placed |= out != NULL;
        if (status == SLUICE_OK && out && out->same)
            status = renew(item, out->same, err);
        if (status != SLUICE_OK)
            break;
        if (out && !out->same) {
            st_item_free(item);
        } else {
            status = st_list_push_item(&fresh, item, err);
            *item = (st_item){0};
        }
    }
    for (; next < leaf->count; next++)
        st_item_free(&leaf->items[next]);
    free(leaf->items);
    fresh.changed = true;
    *leaf = fresh;
    return status;
}

static sluice_status rewrite(substitution *sub, st_list_node *node, sluice_error *err)
{
    if (node->level == 0)
        return rewrite_page(sub, node, err);
    for (uint32_t i = 0; i < node->count; i++) {
        PF_TRY(rewrite(sub, &node->children[i], err));
        node->changed = node->changed || node->children[i].changed;
    }
    return SLUICE_OK;
}

static sluice_status match_names(substitution *sub, sluice_error *err)
{
    const st_edit *edit = &sub->bound->edit;
    uint64_t fresh = 0;
    for (uint32_t i = 0; i < edit->add_count; i++) {
        leaving *out = find_out(sub, edit->adds[i].fragment.name);
        fresh += out == NULL;
        bool says_ids = edit->adds[i].first_row_given && edit->adds[i].commit_given;
        if (!out && !edit->adds[i].fragment.explicit_ids && !says_ids)
            return pf_fail(err, SLUICE_CORRUPT, "a substitution brings in a fragment without row ids");
        if (out && (out->same || out->out->applied.present))
            return pf_fail(err, SLUICE_CORRUPT, "a substitution brings a fragment in again that it has changed");
        if (out)
            out->same = &edit->adds[i];
    }
    if (sub->claimed > fresh)
        return pf_fail(err, SLUICE_CORRUPT, "a substitution places more fragments than it brings in");
    return SLUICE_OK;
}

sluice_status st_list_substitute(st_list *list, const st_bound_edit *bound, sluice_error *err)
{
    substitution sub = {.list = list, .bound = bound};
    sluice_status status;
    PF_GOTO(status, done, prepare(&sub, err));
    PF_GOTO(status, done, match_names(&sub, err));
    PF_GOTO(status, done, st_list_load(list, err));
    PF_GOTO(status, done, st_list_each(list, look_at, &sub, err));
    for (uint32_t i = 0; i < sub.count; i++) {
        if (!sub.outs[i].found) {
            status = does_not_hold("a fragment that it takes out is not listed", err);
            goto done;
        }
    }
    PF_GOTO(status, done, make_incoming(&sub, err));
    PF_GOTO(status, done, rewrite(&sub, &list->root, err));
done:
    for (uint32_t i = 0; i < sub.incoming_count; i++)
        st_item_free(&sub.incoming[i]);
    free(sub.incoming);
    free(sub.outs);
    st_row_set_free(sub.later);
    return status;
}
