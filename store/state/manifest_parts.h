/*
 * Parts that generation manifests and opening manifests share: places of state pages, skip pointers, lists of
 * attachments.
 */
#ifndef STORE_STATE_MANIFEST_PARTS_H
#define STORE_STATE_MANIFEST_PARTS_H

#include "store/state/manifest.h"

/* "pages"; `places` (opening records) says which attachment of this record repeats each page, else NULL. */
void st_pages_write(st_json *json, const st_state_page *pages, const uint32_t *places, uint32_t count);
sluice_status st_pages_read(const cJSON *document, st_state_page **ret_pages, uint32_t **ret_places,
                            uint32_t *ret_count, sluice_error *err);
/* "skips": of generation `number`. */
void st_skips_write(st_json *json, const st_skip *skips, uint32_t count);
sluice_status st_skips_read(const cJSON *document, uint64_t number, st_skip **ret_skips, uint32_t *ret_count,
                            sluice_error *err);
/* The skips of generation `number` + 1, whose parent (`number`, `digest`) has `skips`. */
sluice_status st_skips_next(uint64_t number, const pf_sha256 *digest, const st_skip *skips, uint32_t count,
                            st_skip **ret_skips, uint32_t *ret_count, sluice_error *err);
/* "attachments". */
void st_attachments_write(st_json *json, const st_attachments *attachments);
sluice_status st_attachments_read(const cJSON *document, st_attachments *ret_attachments, sluice_error *err);
void st_commit_free(st_commit *commit);
/* "ancestry" of a merge commit; nothing for another. */
void st_merged_write(st_json *json, const st_commit *commit);
sluice_status st_merged_read(const cJSON *object, st_commit *commit, sluice_error *err);

#endif
