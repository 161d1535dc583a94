/*
 * The far ends of a node's edges, asked for again and again: by adjacency where it covers a fragment (nearby.h), by the
 * fragment's sorted run of ends elsewhere. Everything that is opened for one question stays open for the next.
 */
#ifndef STORE_READ_LINKS_H
#define STORE_READ_LINKS_H

#include "store/read/nearby.h"

typedef struct st_links st_links;
/* Of a type of edges; ST_OUT: from `from` to `to`, ST_IN the other way. Lives at most as long as the snapshot. */
sluice_status st_links_open(st_snapshot *snapshot, const st_type_def *edge, st_direction direction,
                            st_links **ret_links, sluice_error *err);
void st_links_close(st_links *links); /* NULL allowed */
/* The types at the end that is sought (in = 0) and at the far one (1). */
const st_type_def *st_links_end(const st_links *links, bool far);
/* Can both ends' keys be told from their hashes, so that far ends are words? */
bool st_links_are_words(const st_links *links);
/* The far keys of the edges at the node whose key is row 0 of `near` (of several members: a struct); valid until the
 * next call. Only where they are words, which narrower keys are widened to. */
sluice_status st_links_words(st_links *links, const st_column *near, const uint64_t **ret_words, uint64_t *ret_count,
                             sluice_error *err);
/* The same for any keys: calls `each` with the members of the far key and their row. */
typedef sluice_status st_link_fn(void *context, const st_column *members, uint32_t count, uint64_t row,
                                 sluice_error *err);
sluice_status st_links_each(st_links *links, const st_column *near, st_link_fn *each, void *context, sluice_error *err);

#endif
