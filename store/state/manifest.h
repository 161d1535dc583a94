/*
 * Manifests of records: what store/log keeps as text, taken apart. A generation publishes commits; an opening record
 * repeats the state that its segment continues and adds the table of receipts. Both list attachments and place table
 * entries in state pages.
 */
#ifndef STORE_STATE_MANIFEST_H
#define STORE_STATE_MANIFEST_H

#include "store/state/codec.h"

#define ST_ATTACHMENT_ALIGN 64u
#define ST_NO_ATTACHMENT    UINT32_MAX

/* Does the generation publish a merge? */
bool st_generation_merges(const st_generation *generation);

typedef struct st_attachment {
    uint64_t offset, length; /* within the record's attachments */
    pf_xxh128 check;
} st_attachment;

typedef struct st_attachments {
    st_attachment *items;
    uint32_t count, capacity;
} st_attachments;

/* Appends bytes as one more attachment; *ret_number is its number. */
sluice_status st_attach(st_attachments *list, pf_buffer *bytes, const void *content, size_t length,
                        uint32_t *ret_number, sluice_error *err);
/* The bytes of one attachment, checked (CORRUPT). They are the record's. */
sluice_status st_attachment_get(const st_record *record, const st_attachments *list, uint32_t number,
                                const void **ret_bytes, size_t *ret_length, sluice_error *err);
void st_attachments_free(st_attachments *list);

/* ---- generations ---- */

sluice_status st_manifest_encode(const st_generation *generation, const st_attachments *attachments, pf_buffer *buffer,
                                 sluice_error *err);
/* With the attachments; st_generation_decode is this without them. */
sluice_status st_manifest_decode(const st_record *record, st_generation *ret_generation,
                                 st_attachments *ret_attachments, sluice_error *err);

/* ---- opening records ---- */

typedef struct st_fork { /* where a branch began; incarnation 0: main, from nothing */
    uint64_t incarnation, generation;
    uint32_t index;
} st_fork;

#define ST_FORKS_MAX 65536u /* branches on the way back to main: bounds walks over hostile records */

typedef struct st_opening {
    uint64_t incarnation, number; /* the generation that is continued; 0: none yet */
    uint32_t index;               /* of its last commit; of the fork commit, for a new branch */
    pf_sha256 schema_identity;
    pf_id head;
    int64_t head_time_us;
    uint64_t row_block, next_row;
    st_fork fork;
    st_state_page *pages; /* as generations address them */
    uint32_t *places;     /* the attachment of this record that repeats each */
    uint32_t page_count;
    st_skip *skips; /* of the continued generation */
    uint32_t skip_count;
    uint64_t merge;    /* as of a view of the continued generation */
    uint32_t receipts; /* the attachment that holds the table */
} st_opening;

sluice_status st_opening_encode(const st_opening *opening, const st_attachments *attachments, pf_buffer *buffer,
                                sluice_error *err);
sluice_status st_opening_decode(const st_record *record, st_opening *ret_opening, st_attachments *ret_attachments,
                                sluice_error *err);
void st_opening_free(st_opening *opening);

/* ---- receipts: the table of an opening record ---- */

typedef struct st_receipt_table {
    st_receipt *items; /* in publication order */
    uint32_t count, capacity;
    int64_t floor_us; /* commits up to this time may have been dropped; INT64_MIN: none was */
} st_receipt_table;

#define ST_RECEIPTS_MAX    10000u
#define ST_RECEIPTS_AGE_US (INT64_C(30) * 24 * 3600 * 1000000)

sluice_status st_receipts_add(st_receipt_table *table, const st_receipt *receipt, sluice_error *err);
/* Drops what is beyond the bounds, oldest first; `now_us` is the time of the newest commit. */
void st_receipts_trim(st_receipt_table *table, int64_t now_us);
sluice_status st_receipts_encode(const st_receipt_table *table, pf_buffer *buffer, sluice_error *err);
sluice_status st_receipts_decode(const void *bytes, size_t length, st_receipt_table *ret_table, sluice_error *err);
void st_receipts_free(st_receipt_table *table);
/* The active segment's opening record with its table (NULL: not wanted). */
sluice_status st_opening_read(st_log *log, st_opening *ret_opening, st_receipt_table *ret_table, sluice_error *err);
/* The receipts of a log up to generation `until`: that table, and the commits behind it. */
sluice_status st_receipts_collect(st_graph *graph, st_log *log, uint64_t from, uint64_t until, st_receipt_table *table,
                                  sluice_error *err);

#endif
