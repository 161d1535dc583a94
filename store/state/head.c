/*
 * Kept heads (store/state/head.h): one for each of a few branches.
 */
#include "store/state/head.h"
#include "store/state/commit_edit.h"
#include <stdlib.h>

#define HEADS 4u

typedef struct kept_heads {
    st_view *heads[HEADS];
    st_view *built; /* its digest and segment are not known yet */
} kept_heads;

static void release_heads(void *data)
{
    kept_heads *kept = data;
    for (uint32_t i = 0; i < HEADS; i++)
        st_view_free(kept->heads[i]);
    st_view_free(kept->built);
    free(kept);
}

/* NULL without memory: then nothing is kept. */
static kept_heads *of(st_graph *graph)
{
    st_kept *kept = st_graph_kept(graph, ST_KEPT_HEADS);
    if (!kept->data) {
        kept->data = calloc(1, sizeof(kept_heads));
        kept->release = release_heads;
    }
    return kept->data;
}

st_view *st_head_kept(st_graph *graph, st_log *log)
{
    const kept_heads *kept = of(graph);
    st_log_position end = st_log_end(log);
    st_view *view = kept ? kept->heads[st_log_incarnation(log) % HEADS] : NULL;
    if (!view || view->incarnation != st_log_incarnation(log) || view->generation != end.number ||
        !pf_sha256_equal(&view->digest, &end.digest))
        return NULL;
    view->shares++;
    return view;
}

void st_head_keep(st_graph *graph, st_view *view)
{
    kept_heads *kept = of(graph);
    if (!kept)
        return;
    st_view **place = &kept->heads[view->incarnation % HEADS];
    view->shares++;
    st_view_free(*place);
    *place = view;
}

void st_head_built(st_graph *graph, st_view *view)
{
    kept_heads *kept = of(graph);
    if (!kept) {
        st_view_free(view);
        return;
    }
    st_view_free(kept->built);
    kept->built = view;
}

void st_head_published(st_graph *graph, st_log *log, const pf_sha256 *digest)
{
    kept_heads *kept = of(graph);
    st_log_position end = st_log_end(log);
    st_view *view = kept ? kept->built : NULL;
    if (!view)
        return;
    kept->built = NULL;
    uint64_t number = 0;
    if (view->incarnation == st_log_incarnation(log) && view->generation == end.number &&
        pf_sha256_equal(&end.digest, digest)) {
        number = view->generation;
        view->digest = *digest;
        for (uint32_t i = 0; i < view->page_count; i++)
            if (view->pages[i].incarnation == view->incarnation && view->pages[i].generation == view->generation)
                view->pages[i].segment = end.segment;
        st_head_keep(graph, view);
    }
    st_record_published(graph, view->incarnation, number, digest);
    st_view_free(view);
}
