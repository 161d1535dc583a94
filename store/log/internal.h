/*
 * What the files of store/log share: the forms on disk, and a log in memory. Nobody outside includes this.
 *
 * record.c   one record: head and body, made and checked in memory
 * sector.c   a checksummed sector, the form of CURRENT, the mark and the suspect file's head
 * opening.c  what the log itself says in an opening record
 * segment.c  one segment: made, read, followed to its end, indexed
 * from_mark.c  opening a segment for reading from the mark on
 * current.c  the file CURRENT
 * mark.c     the file acknowledged
 * suspect.c  the file suspect; healing
 * lineage.c  what stays of a segment that collection took
 * log.c      opening, refreshing, reading by number
 * append.c   settling, switching segments, appending
 * log_verify.c  reading everything
 * copy.c     a log as of a cut, copied to another volume or put back to one
 */
#ifndef STORE_LOG_INTERNAL_H
#define STORE_LOG_INTERNAL_H

#include "store/log/log.h"

#define ST_SECTOR       512u
#define ST_RECORD_MAX   (256u * 1024u * 1024u) /* bytes of one record; more is RESOURCE_LIMIT */
#define ST_CURRENT_SIZE 8192u
#define ST_MARK_SIZE    4096u /* of which the first sector is used */
/* An opening record names at most so many earlier segments; older ones are found through the oldest that it names. */
#define ST_EARLIER_MAX 64u

/* ---- record.c ---- */

typedef struct st_head {
    st_record_kind kind;
    uint32_t manifest_length;
    uint64_t number, body_length, attachments_length, incarnation;
    uint8_t salt[16];
    pf_sha256 parent, own;
} st_head;

typedef enum st_head_state { ST_HEAD_NONE, ST_HEAD_VALID, ST_HEAD_NEWER } st_head_state;

/* What a record has to be in order to continue a chain. */
typedef struct st_expected {
    st_record_kind kind;
    uint64_t number, incarnation;
    uint8_t salt[16];
    pf_sha256 parent;
} st_expected;

/* Encodes a record: head, manifest (JSON and LF), attachments, padding to ST_RECORD_ALIGN. Own digest into *ret_own. */
sluice_status st_record_encode(const st_expected *place, const void *manifest, size_t manifest_length,
                               const void *attachments, size_t attachments_length, pf_buffer *ret_bytes,
                               pf_sha256 *ret_own, sluice_error *err);
/* Gives an encoded record another salt: the same record in another segment. Its own digest stays. */
void st_record_resalt(uint8_t *bytes, const uint8_t salt[16]);
/* Decodes ST_RECORD_HEAD bytes; ST_HEAD_NONE: they are no head of ours, or a damaged one. */
st_head_state st_head_decode(const uint8_t *bytes, st_head *ret_head);
uint64_t st_head_record_size(const st_head *head);
bool st_head_fits(const st_head *head, const st_expected *expected);
/* Own digest, padding and manifest ending are right. `bytes` (record size) is changed meanwhile and restored. */
bool st_record_body_is_whole(const st_head *head, uint8_t *bytes);
/* A record over `bytes`, which it takes over (storage) when `owned`. */
void st_record_view(const st_head *head, uint64_t segment, uint64_t offset, uint8_t *bytes, bool owned,
                    st_record *ret_record);
bool st_bytes_are_zero(const uint8_t *bytes, size_t length);

/* ---- segment.c ---- */

typedef struct st_entry { /* a generation record of a segment */
    uint64_t number, offset, size;
    pf_sha256 own;
} st_entry;

typedef struct st_earlier { /* an earlier segment, as an opening record names it */
    uint64_t number;        /* of the segment */
    uint64_t first;         /* the first generation in it */
    pf_sha256 opening;
} st_earlier;

#define ST_FOLLOWED 8u

typedef struct st_segment {
    uint64_t number; /* 0: none */
    bool collected;  /* the file is its lineage; the entries are places of manifests there */
    pf_file *file;
    uint64_t size;
    uint64_t incarnation;
    uint8_t salt[16];
    pf_sha256 opening; /* digest of the opening record */
    uint64_t opening_size;
    uint64_t opening_check; /* XXH3-64 of its manifest; 0 in a lineage */
    uint64_t base;          /* the generation that the opening record continues */
    pf_sha256 base_digest;  /* its digest */
    bool repeats;           /* the first record is generation `base` once more */
    uint64_t oldest;        /* the first generation of the log that could still be read when this segment was opened */
    st_earlier *earlier;    /* ascending */
    uint32_t earlier_count;
    st_entry *entries; /* without gaps up to the end; of a segment opened from the mark on, not from the first */
    size_t entry_count, entry_capacity;
    pf_sha256 before; /* then: the parent of the first entry */
    bool from_mark;   /* it was opened so: what lies before the mark was not looked at */
    uint64_t end;     /* offset behind the last whole record */
    bool capped;      /* it is followed up to generation `cap` and no further, whatever stands there */
    uint64_t cap;
    struct st_followed { /* small records that were followed last, whole, until they are asked for */
        uint8_t *bytes;  /* NULL: none */
        uint64_t offset;
    } followed[ST_FOLLOWED];
    uint32_t next_followed; /* whose place the next one takes */
} st_segment;

/* First line of an opening record's manifest; the caller's own manifest follows. */
typedef struct st_opening_line {
    bool repeats;
    uint64_t oldest;
    const st_earlier *earlier;
    uint32_t earlier_count;
} st_opening_line;

/* ---- opening.c ---- */

sluice_status st_opening_line_encode(uint64_t segment, const st_opening_line *line, pf_buffer *buffer,
                                     sluice_error *err);
/* Decodes the line at the head of an opening record's manifest into segment->repeats, oldest, earlier; its length. */
sluice_status st_opening_line_decode(const char *manifest, size_t length, st_segment *segment, size_t *ret_line,
                                     sluice_error *err);

typedef struct st_segment_plan { /* a segment to be made */
    uint64_t number, incarnation;
    uint64_t base;
    pf_sha256 base_digest;
    st_opening_line line;
    const pf_buffer *manifest, *attachments; /* of the opening record, the caller's part */
    const uint8_t *behind; /* one record to stand right behind the opening record, or NULL; its salt is replaced */
    uint64_t behind_size;
    uint64_t room; /* at least so many bytes behind the opening record */
} st_segment_plan;

typedef enum st_source { ST_FROM_CACHE, ST_FROM_MEDIUM } st_source;

sluice_status st_segment_corrupt(const st_segment *segment, const char *what, sluice_error *err);
/* Room for records, aligned so that their attachments are aligned too. */
sluice_status st_segment_allocate(uint64_t size, uint8_t **ret_bytes, sluice_error *err);
sluice_status st_segment_open_file(pf_volume *volume, const char *folder, pf_access access, st_segment *segment,
                                   sluice_error *err);
/* Takes over what the opening record in `bytes` says, whose head and manifest are right. */
sluice_status st_segment_take_manifest(st_segment *segment, const st_head *head, uint8_t *bytes, sluice_error *err);
void st_segment_path(const char *folder, uint64_t number, char ret_path[128]);
/* Makes the segment's file, whole and synced, its name too. An orphan of that number is removed first. */
sluice_status st_segment_make(pf_volume *volume, const char *folder, const st_segment_plan *plan,
                              st_segment *ret_segment, sluice_error *err);
/* Opens a segment, reads it in one go, checks the opening record against `opening` and follows it to its end. */
sluice_status st_segment_open(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                              const pf_sha256 *opening, pf_access access, st_source source, st_segment *ret_segment,
                              sluice_error *err);
/* The same, up to generation `cap` and no further. */
sluice_status st_segment_open_until(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                                    const pf_sha256 *opening, uint64_t cap, pf_access access, st_segment *ret_segment,
                                    sluice_error *err);
/* Whatever can be found in a segment that is damaged: the newest whole record is its end, what is lost before it has a
 * place in the index and cannot be read. *ret_seen: the newest generation of which there is a trace. */
sluice_status st_segment_open_damaged(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                                      st_segment *ret_segment, uint64_t *ret_seen, sluice_error *err);
/* Opens an earlier segment for single reads: the opening record is read, of the others only the heads, up to generation
 * `last`. (Behind it may stand what a healed segment put aside.) */
sluice_status st_segment_index(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                               const pf_sha256 *opening, uint64_t last, st_segment *ret_segment, sluice_error *err);
/* lineage.c: opens what stays of a collected segment; its entries are those of the chain. NOT_FOUND. */
sluice_status st_lineage_open(pf_volume *volume, const char *folder, uint64_t number, uint64_t incarnation,
                              const pf_sha256 *opening, st_segment *ret_segment, sluice_error *err);
sluice_status st_lineage_read_entry(const st_segment *segment, const st_entry *entry, st_record *ret_record,
                                    sluice_error *err);
/* Follows to the end from where it stands. */
sluice_status st_segment_follow(st_segment *segment, sluice_error *err);
/* Room for one more entry, so that the next note cannot fail. */
sluice_status st_segment_reserve(st_segment *segment, sluice_error *err);
sluice_status st_segment_note(st_segment *segment, const st_head *head, sluice_error *err);
uint64_t st_segment_end_number(const st_segment *segment);
const pf_sha256 *st_segment_end_digest(const st_segment *segment);
/* The first generation that is in it (or would be). */
uint64_t st_segment_first(const st_segment *segment);
const st_entry *st_segment_find(const st_segment *segment, uint64_t number); /* NULL when not in it */
/* The record, when it was followed a moment ago and nobody has asked for it since. */
bool st_segment_take_followed(st_segment *segment, const st_entry *entry, st_record *ret_record);
sluice_status st_segment_read_entry(const st_segment *segment, const st_entry *entry, st_record *ret_record,
                                    sluice_error *err);
/* `bytes` are the segment's records of [from, from + length), each whole (CORRUPT). They are changed meanwhile and
 * restored. */
sluice_status st_segment_check_bytes(const st_segment *segment, uint64_t from, uint8_t *bytes, uint64_t length,
                                     sluice_error *err);
/* Reads the opening record; its manifest is the caller's part. */
sluice_status st_segment_read_opening(const st_segment *segment, st_record *ret_record, sluice_error *err);
void st_segment_close(st_segment *segment); /* safe on a zeroed one */
/* What a record in this segment behind its last one has to be. */
st_expected st_segment_next(const st_segment *segment);
/* The room behind the opening record of segment `number`. */
uint64_t st_segment_room(uint64_t number);

/* ---- sector.c ---- */

/* 512 bytes: magic, numbers and a digest in fixed places, XXH3-64 of all before it in the last eight. */
typedef enum st_sector_state { ST_SECTOR_ZERO, ST_SECTOR_VALID, ST_SECTOR_BAD } st_sector_state;
typedef struct st_sector {
    uint64_t first, second;
    pf_sha256 digest;
} st_sector;
void st_sector_encode(const char magic[8], const st_sector *sector, uint8_t bytes[ST_SECTOR]);
st_sector_state st_sector_decode(const char magic[8], const uint8_t bytes[ST_SECTOR], st_sector *ret_sector);
/* Makes a file of zeros but for a sector at `at`; synced, its folder is not. */
sluice_status st_sector_file_make(pf_volume *volume, const char *path, uint64_t size, uint64_t at,
                                  const uint8_t bytes[ST_SECTOR], sluice_error *err);
void st_put64(uint8_t *to, uint64_t value); /* little-endian */
uint64_t st_get64(const uint8_t *from);

/* ---- current.c ---- */

typedef struct st_current {
    uint64_t sequence, segment;
    pf_sha256 opening;
} st_current;
sluice_status st_current_make(pf_volume *volume, const char *folder, const st_current *current, sluice_error *err);
sluice_status st_current_open(pf_volume *volume, const char *folder, pf_access access, pf_file **ret_file,
                              sluice_error *err);
sluice_status st_current_read(pf_file *file, st_source source, st_current *ret_current, sluice_error *err);
/* Writes current->sequence into its sector. The caller syncs. */
sluice_status st_current_write(pf_file *file, const st_current *current, sluice_error *err);

/* ---- mark.c ---- */

typedef struct st_mark_place { /* where it stands, for who only reads; zeros: it is not said */
    uint64_t offset;           /* of the generation's record */
    uint64_t opening_check;    /* XXH3-64 of the manifest of the segment's opening record */
    uint8_t own[16];           /* the first half of the record's digest */
} st_mark_place;

typedef struct st_mark {
    uint64_t number;  /* highest acknowledged generation */
    uint64_t segment; /* the segment in which that was said: CURRENT named it durably */
    st_mark_place place;
} st_mark;
sluice_status st_mark_make(pf_volume *volume, const char *folder, const st_mark *mark, sluice_error *err);
/* A mark that is missing or torn reads as zero. *file is opened when it is not yet. */
sluice_status st_mark_read(pf_volume *volume, const char *folder, pf_access access, pf_file **file, st_mark *ret_mark,
                           sluice_error *err);
/* Writes it without a sync; a missing file is made. */
sluice_status st_mark_write(pf_volume *volume, const char *folder, pf_file **file, const st_mark *mark,
                            sluice_error *err);

/* ---- from_mark.c ---- */

/* Where the newest record stands. */
st_mark_place st_segment_place(const st_segment *segment);
/* Opens the mark's segment for reading, from the mark on; *ret_opened false: something does not fit, and it is to be
 * opened whole. */
sluice_status st_segment_open_from(pf_volume *volume, const char *folder, const st_mark *mark, uint64_t incarnation,
                                   const pf_sha256 *opening, st_segment *ret_segment, bool *ret_opened,
                                   sluice_error *err);
/* Is the generation in it, and not indexed yet? */
bool st_segment_lacks(const st_segment *segment, uint64_t number);
/* Indexes backwards until generation `number`. */
sluice_status st_segment_index_back(st_segment *segment, uint64_t number, sluice_error *err);

/* ---- the log ---- */

#define ST_LOG_FOLDER_MAX 64u
#define ST_LOG_OLD_OPEN   4u

struct st_log {
    pf_volume *volume;
    char folder[ST_LOG_FOLDER_MAX];
    uint64_t incarnation;
    pf_access access;
    pf_file *current_file, *mark_file;
    st_current current;
    st_mark mark;
    bool mark_unsynced; /* this handle wrote it since its last sync */
    bool suspect;       /* found by this handle; the file may not have been made */
    bool cut;           /* opened as of `until`: neither CURRENT nor the mark is read */
    st_log_cut until;
    st_segment active;
    st_segment old[ST_LOG_OLD_OPEN]; /* indexes of earlier segments, by last use */
};

typedef struct st_stop { /* an earlier segment, on the way through all of them */
    st_earlier at;
    uint64_t last; /* the last generation that counts as its */
} st_stop;
/* All earlier segments, oldest first: the lists of the opening records, followed back. Malloc'd. */
sluice_status st_log_stops(st_log *log, st_stop **ret_stops, size_t *ret_count, sluice_error *err);
/* The last generation of the i-th segment that `from` names; what stands behind it there was put aside. */
uint64_t st_segment_last_of(const st_segment *from, uint32_t i);
/* The index of an earlier segment up to generation `last`, or its lineage; one without either is CORRUPT. */
sluice_status st_log_open_stop(const st_log *log, const st_earlier *earlier, uint64_t last, st_segment *ret_segment,
                               sluice_error *err);
/* The same for the i-th that `from` names. */
sluice_status st_log_open_earlier(const st_log *log, const st_segment *from, uint32_t i, st_segment *ret_segment,
                                  sluice_error *err);
/* Reads the active segment whole, as who writes does, when it was opened from the mark on. */
sluice_status st_log_read_whole(st_log *log, sluice_error *err);
/* `segment` becomes the active one; the one before stays at hand as an earlier one. */
void st_log_adopt(st_log *log, st_segment *segment);
bool st_log_is_settled(const st_log *log);
/* After an I/O error: the log is suspect for every process. `record` (may be NULL): the newest one, perhaps seen. */
void st_log_mark_suspect(st_log *log, const pf_buffer *record);
/* Writes and, when it must, syncs the mark for the active segment and its end. */
sluice_status st_log_advance_mark(st_log *log, bool sync, sluice_error *err);
/* Makes the segment of the plan, durably names it in CURRENT with `sequence`, makes it the active one. */
sluice_status st_log_switch_to(st_log *log, const st_segment_plan *plan, uint64_t sequence, sluice_error *err);
/* The list of earlier segments for the next one: those of the active one and the active one itself. */
sluice_status st_log_next_earlier(const st_log *log, st_earlier **ret_earlier, uint32_t *ret_count, sluice_error *err);
/* Runs the caller's encoder. */
sluice_status st_log_encode_opening(const st_opening_source *opening, pf_buffer *manifest, pf_buffer *attachments,
                                    sluice_error *err);

#endif
