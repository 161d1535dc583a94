/*
 * A log: the commit authority of one branch, and (in control/) of the graph.
 *
 * Layout, below the log's folder F ("branches/<incarnation>" or "control"):
 *   F/log/<number>.seg  segments: preallocated, zeroed; an opening record, then generation records, each on a 4 KiB
 * boundary F/CURRENT           two sectors of 512 bytes at 0 and 4096: names the active segment (number, SHA-256 of its
 * opening record) F/acknowledged      one sector: highest acknowledged number, written before the publish lock is
 * released, synced lazily F/suspect           exists while an I/O error in the log has not been healed F/locks
 * byte-range locks (locks/oslock.h); never mapped, never authority Record head (256 bytes) and opening records:
 * DECISIONS "Log record", docs/format.md.
 *
 * CURRENT-the-authority is the last whole record of the chain that begins at the active segment's opening record. Only
 * the holder of the publish lock appends, at the end of the chain. A record is whole when head check, SHA-256, length,
 * salt, number and parent all fit. Behind the end: zeros, or a torn record that is nothing and is overwritten. An end
 * below the acknowledged mark, or a whole successor behind a damaged record, is CORRUPT; nothing is ever elected.
 * Readers take the mark first, and call a record damaged only after reading it again.
 *
 * An end above the mark may be the work of a publisher that died: who builds on it calls st_log_settle first (under the
 * publish lock), which writes the same bytes and CURRENT again, syncs them and advances the mark.
 */
#ifndef STORE_LOG_LOG_H
#define STORE_LOG_LOG_H

#include "platform/buffer.h"
#include "platform/digest.h"
#include "platform/volume.h"

#define ST_RECORD_ALIGN  4096u
#define ST_RECORD_HEAD   256u
#define ST_SEGMENT_FIRST (256u * 1024u)
#define ST_SEGMENT_MAX   (4u * 1024u * 1024u)

typedef enum st_record_kind { ST_RECORD_OPENING = 1, ST_RECORD_GENERATION = 2 } st_record_kind;

typedef struct st_log st_log;

typedef struct st_log_position {
    uint64_t number;       /* generation; 0 before the first */
    pf_sha256 digest;      /* of its record; zero before the first; a new branch's: the fork commit's generation */
    uint64_t segment;      /* active segment */
    uint64_t acknowledged; /* the mark as last read */
} st_log_position;

typedef struct st_record {
    st_record_kind kind;
    uint64_t number;
    pf_sha256 parent, own;
    uint64_t segment, offset;
    const char *manifest; /* JSON and LF */
    size_t manifest_length;
    const uint8_t *attachments;
    size_t attachments_length;
    uint8_t *storage; /* owned */
    bool collected;   /* its segment is gone: the manifest is what its lineage kept, without attachments */
} st_record;
void st_record_free(st_record *record); /* safe on a zeroed one */

/* Encodes the opening record of the next segment: all state pages and the receipt table as of the end of the log at the
 * moment of the call (which, when healing, may be another one than the handle knew before). */
typedef struct st_opening_source {
    void *context;
    sluice_status (*encode)(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err);
} st_opening_source;

/* Makes a log in the existing, empty folder: first segment with its opening record (which continues `number` and
 * `digest`), acknowledged (= number), locks, suspect absent, CURRENT; everything synced, the folder too. */
sluice_status st_log_make(pf_volume *volume, const char *folder, uint64_t incarnation, uint64_t number,
                          const pf_sha256 *digest, const pf_buffer *opening_manifest,
                          const pf_buffer *opening_attachments, sluice_error *err);
/* Reads CURRENT, checks the opening record, follows the chain to its end. Reads one segment at most. */
sluice_status st_log_open(pf_volume *volume, const char *folder, uint64_t incarnation, pf_access access,
                          st_log **ret_log, sluice_error *err);
void st_log_close(st_log *log); /* NULL allowed */
/* Follows the chain (and segment switches) from the last end known. */
sluice_status st_log_refresh(st_log *log, sluice_error *err);
st_log_position st_log_end(const st_log *log);
uint64_t st_log_incarnation(const st_log *log);
/* The record of generation `number` (in any segment that still exists); NOT_FOUND when it was never there or is
 * collected. */
sluice_status st_log_read(st_log *log, uint64_t number, st_record *ret_record, sluice_error *err);
/* The same as it was read and found whole when the log was last refreshed; false: it was not, is large, or was asked
 * for since. */
bool st_log_take_followed(st_log *log, uint64_t number, st_record *ret_record);
/* The same, and when its segment is gone what its lineage kept of it (`collected`): for whom commits are enough. */
sluice_status st_log_read_lineage(st_log *log, uint64_t number, st_record *ret_record, sluice_error *err);
/* The active segment's opening record. */
sluice_status st_log_read_opening(st_log *log, st_record *ret_record, sluice_error *err);
/* The opening record of the segment that holds generation `number`; or, `behind`, of the one that continues it.
 * NOT_FOUND. */
sluice_status st_log_read_opening_of(st_log *log, uint64_t number, bool behind, st_record *ret_record,
                                     sluice_error *err);
/* The digest of a generation of the active segment, as last refreshed; NULL: it is none of these. */
const pf_sha256 *st_log_active_digest(st_log *log, uint64_t number);
/* The first generation number that can still be read. */
uint64_t st_log_first(const st_log *log);

/* ---- a log as it stood (copy.c) ---- */

typedef struct st_log_cut { /* where it ended */
    uint64_t incarnation;
    uint64_t segment; /* the active one, with the digest of its opening record */
    pf_sha256 opening;
    uint64_t number; /* the last generation, with the digest of its record */
    pf_sha256 digest;
} st_log_cut;
/* Where it ends, as this handle knows it; at the mark, when there is one and the end is above it. */
st_log_cut st_log_cut_of(const st_log *log);
/* The log as it stood, for reading: neither CURRENT nor the mark is asked, and what stands behind is not there. CORRUPT
 * when it is not the log that it was. */
sluice_status st_log_open_at(pf_volume *volume, const char *folder, const st_log_cut *until, st_log **ret_log,
                             sluice_error *err);
/* A log that cannot be opened as it is, for reading what is left (salvage): CURRENT and the mark are not asked; the
 * newest segment with a whole opening record counts as the active one, the newest whole record in it as the end.
 * *ret_seen: the newest generation of which there is a trace. */
sluice_status st_log_open_damaged(pf_volume *volume, const char *folder, uint64_t incarnation, st_log **ret_log,
                                  uint64_t *ret_seen, sluice_error *err);
/* The newest generation that there may have been: its end, what the mark says, or one more when something stands behind
 * the end of which no mark says that it is nothing. */
uint64_t st_log_trace(const st_log *log);
/* The digest of generation `number` in its chain; *ret_known false when it is not retained. */
sluice_status st_log_digest_at(st_log *log, uint64_t number, bool *ret_known, pf_sha256 *ret_digest, sluice_error *err);

typedef struct st_copied {
    uint64_t files, bytes;               /* written */
    uint64_t reused_files, reused_bytes; /* there already */
} st_copied;
/* Copies a log as of its cut into `folder` of another volume, synced, CURRENT and mark last. `have`: where the copy
 * that is there ends, which continues as this log does (st_log_digest_at) and under no eye that minds a log half
 * copied; NULL: nothing is there, the folder is made. */
sluice_status st_log_copy(st_log *log, pf_volume *to, const char *folder, const st_log_cut *have, st_copied *copied,
                          sluice_error *err);
/* Puts a log back to a cut of its own: what stands behind becomes zeros, CURRENT and mark are made anew; synced. May be
 * begun again any number of times. */
sluice_status st_log_put_back(pf_volume *volume, const char *folder, const st_log_cut *cut, sluice_error *err);

/* ---- below: only under this log's publish lock ---- */

/* Makes the end acknowledged when it is above the mark. */
sluice_status st_log_settle(st_log *log, sluice_error *err);
typedef enum st_append_outcome {
    ST_APPEND_ACKNOWLEDGED, /* flushed, mark written */
    ST_APPEND_NOT,          /* surely not in the chain */
    ST_APPEND_VISIBLE,      /* whole in the chain, but its flush failed: the log is now suspect */
    ST_APPEND_UNKNOWN       /* the log could not be read again */
} st_append_outcome;
/* Appends generation end+1: one write and one flush, preceded by a segment switch when it does not fit. The log must be
 * settled and refreshed. After any failure the outcome is found by reading again; *ret_outcome is always set. */
sluice_status st_log_append(st_log *log, const pf_buffer *manifest, const pf_buffer *attachments,
                            const st_opening_source *opening, st_append_outcome *ret_outcome, pf_sha256 *ret_digest,
                            sluice_error *err);
/* Syncs the mark when this handle wrote it since: on closing (st_log_close does it) and after a segment
 * switch. */
sluice_status st_log_sync_mark(st_log *log, sluice_error *err);
/* SLUICE_OK, or SUSPECT when a mark file is there or was set by this process. */
sluice_status st_log_check_suspect(st_log *log, sluice_error *err);
/* Verifies the medium past the cache, opens a new segment that carries the newest record again, removes the mark last.
 */
sluice_status st_log_heal(st_log *log, const st_opening_source *opening, sluice_error *err);

/* ---- segments that go (collection, under its claim) ---- */

typedef struct st_log_segment {
    uint64_t number;
    uint64_t first, last; /* the generations that count as its; first > last: none */
    bool active;
    bool collected; /* its lineage stands; the segment's own file may, too, when collection was cut short */
} st_log_segment;
/* Every segment, oldest first; malloc'd. */
sluice_status st_log_segments(st_log *log, st_log_segment **ret_segments, size_t *ret_count, sluice_error *err);
/* Makes F/lineage/<number>, whole and synced: what stays of a segment that is not the active one. `compact` gives of a
 * record's manifest what is to be kept. Done already is done. */
typedef sluice_status st_log_compact_fn(void *context, const st_record *record, pf_buffer *ret_manifest,
                                        sluice_error *err);
sluice_status st_log_keep_lineage(st_log *log, uint64_t number, st_log_compact_fn *compact, void *context,
                                  sluice_error *err);
/* "F/log/<number>.seg" */
void st_log_segment_path(const st_log *log, uint64_t number, char ret_path[128]);

/* Reads and checks every record of every segment (verify); calls `each` per record, not for those whose segment is
 * gone: of these the chain of digests is followed. */
typedef sluice_status st_log_record_fn(void *context, const st_record *record, sluice_error *err);
sluice_status st_log_verify(st_log *log, st_log_record_fn *each, void *context, sluice_error *err);

#endif
