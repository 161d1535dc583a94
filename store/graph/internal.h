/*
 * What the files of store/graph share. Nobody outside includes this.
 *
 * layout.c   which folders and files a graph has; making them; FORMAT and graph.json
 * init.c     making a graph
 * open.c     opening one
 * branch.c   a branch's folder and log; branch_name.c what it may be called
 * refs.c     branch names
 * control.c  the control state and its log; control_document.c its encoding; boundary.c what collection let go of
 * reserve.c  the reserve file
 * cut.c      a graph as it stood; cut_files.c the files that a backup keeps of it
 */
#ifndef STORE_GRAPH_INTERNAL_H
#define STORE_GRAPH_INTERNAL_H

#include "locks/oslock.h"
#include "store/format/json.h"
#include "store/graph/cut.h"
#include "store/graph/graph.h"

#define ST_FORMAT_FILE    "FORMAT"
#define ST_FORMAT_NEW     "FORMAT.new" /* a graph in the making: becomes FORMAT by its last step */
#define ST_FORMAT_TEXT    "sluice-graph/1\n"
#define ST_INFO_FILE      "graph.json"
#define ST_RESERVE_FILE   "reserve"
#define ST_GRAPH_LOCKS    "locks/graph"
#define ST_CONTROL_FOLDER "control"
#define ST_RESERVE_SIZE   (1024u * 1024u)
#define ST_GRAPH_INIT     62u /* byte of locks/graph: whoever makes the graph */

typedef struct st_open_log {
    uint64_t incarnation;
    st_log *log;
} st_open_log;

struct st_graph {
    pf_volume *volume;
    pf_access access;
    pf_id id;
    st_write_mode mode;
    pf_filesystem filesystem;
    st_log *control; /* opened at first use */
    lk_lockfile *control_locks;
    st_control now; /* control/ as of its generation `now_at`; 0: not read yet */
    uint64_t now_at;
    st_open_log *logs;
    uint32_t log_count;
    uint64_t *durable_refs; /* incarnations whose ref this handle has synced */
    uint32_t durable_count;
    struct st_kept_ref { /* the ref that was read last: refs never change, they go */
        char *name;
        pf_file *file;
        uint64_t incarnation;
    } ref;
    const st_cut *cut; /* the graph is seen as of this; NULL: as it is */
    st_cut *owned_cut; /* the same, when this handle read it */
    bool borrowed;     /* the volume is another handle's */
    st_kept kept[ST_KEPT_KINDS];
    bool damaged;      /* st_graph_open_damaged */
    uint64_t seen;     /* ... the newest generation of which a damaged log has a trace; 0: none was opened as damaged */
    bool substitute;   /* ... and a schema was taken for another one */
    pf_buffer offered; /* ... what stands in when none is left: an accepted schema as its document; empty: nothing */
};

/* ---- refs.c ---- */

void st_ref_forget(st_graph *graph); /* closes what is kept of a ref */

/* ---- layout.c ---- */

typedef struct st_graph_info { /* graph.json */
    pf_id id;
    int64_t created_us;
    st_write_mode mode;
} st_graph_info;

/* Is `name` an entry of a graph's folder that we make? */
bool st_layout_knows(const char *name, pf_kind kind);
/* SLUICE_OK: a graph of this version. NOT_FOUND: no FORMAT. UNSUPPORTED_FORMAT: another one. */
sluice_status st_layout_check_format(pf_volume *volume, sluice_error *err);
/* Removes what an init that was cut short left of files that are made once; folders stay. */
sluice_status st_layout_clear(pf_volume *volume, sluice_error *err);
/* Makes all folders and the preallocated files, everything synced but the root. */
sluice_status st_layout_make(pf_volume *volume, sluice_error *err);
sluice_status st_info_write(pf_volume *volume, const st_graph_info *info, sluice_error *err);
sluice_status st_info_read(pf_volume *volume, st_graph_info *ret_info, sluice_error *err);
/* Creates a file of `size` zeros, synced. */
sluice_status st_make_zero_file(pf_volume *volume, const char *path, uint64_t size, sluice_error *err);
/* Creates a file with these bytes, synced. */
sluice_status st_make_file(pf_volume *volume, const char *path, const void *bytes, size_t length, sluice_error *err);

/* ---- control.c, control_document.c ---- */

sluice_status st_control_encode(const st_control *control, pf_buffer *buffer, sluice_error *err);
sluice_status st_control_decode(const void *bytes, size_t length, st_control *ret_control, sluice_error *err);
void st_boundaries_encode(st_json *json, const st_control *control);
sluice_status st_boundaries_decode(const cJSON *document, st_control *control, sluice_error *err);
/* Makes control/'s log with generation 1, this state. */
sluice_status st_control_make(pf_volume *volume, const st_control *first, sluice_error *err);
/* Opens the log of control/ if it is not open yet. */
sluice_status st_control_log(st_graph *graph, st_log **ret_log, sluice_error *err);

/* ---- cut_files.c ---- */

/* Removes a folder with its files and folders; one that is not there is gone already. */
sluice_status st_remove_tree(pf_volume *volume, const char *folder, sluice_error *err);

/* ---- branch.c ---- */

/* Opens a log as it is, or as of the graph's cut. */
sluice_status st_graph_open_log(st_graph *graph, const char *folder, uint64_t incarnation, st_log **ret_log,
                                sluice_error *err);

sluice_status st_branch_make_on(pf_volume *volume, uint64_t incarnation, uint64_t number, const pf_sha256 *digest,
                                const pf_buffer *opening_manifest, const pf_buffer *opening_attachments,
                                sluice_error *err);

/* ---- refs.c ---- */

void st_ref_file_name(const char *name, char ret_name[80]);
sluice_status st_ref_encode(const char *name, uint64_t incarnation, pf_buffer *buffer, sluice_error *err);

#endif
