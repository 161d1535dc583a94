/*
 * The configuration of `sluice serve`: one JSON file, checked as a whole before anything is done with it.
 *
 *   {
 *     "socket": "/run/sluice/sluice.sock",   where clients connect
 *     "socket_mode": "0600",                 its permission bits
 *     "http": "/run/sluice/http.sock" or "127.0.0.1:9187"    metrics and the status page; absent: none
 *     "http_names": false,                   the page says names, for whoever can connect
 *     "log": "logfmt",                       or "json"
 *     "workers": 4,                          processes that work at a time; absent: one per processor
 *     "connections": 1024,                   clients at a time
 *     "requests_per_second": 10000,          of one connection
 *     "stopped_seconds": 30,                 a process of a job that stands still (SIGSTOP) for so long is ended; 0:
 * never "graphs": [
 *       {"path": "/srv/people",              the graph; relative paths begin at the folder of this file
 *        "name": "people",                   for clients that cannot see the path; absent: the last part of the path
 *        "weight": 1,                        its share of the workers, against the others'
 *        "max_jobs": 4,                      jobs that run at a time
 *        "queue": 64,                        jobs that wait; one more is QUEUE_FULL
 *        "memory": "512M",                   of one job; absent: a part of the machine's by weight
 *        "quota": "10G",                     of disk; absent: none
 *        "maintenance": {"every_seconds": 600,    looked after so often; absent: never
 *          "optimize": {"fragments": 64, "edits": 48, "dead_bytes": "256M", "branches": ["main"]},
 *          "gc": {"bytes": "64M", "keep": 1000, "older_than": "30d"}},
 *        "mode": "optimistic",               or "queued" (one writer after the other), "single" (WRITER_BUSY beside
 * one) "deadline_seconds": 0,              a job that runs longer is ended; 0: none "uids": [1000]} who may use it,
 * "readers" who may read it; absent: the supervisor's own user
 *     ]
 *   }
 *
 * An error names the file, the line, and the path of the member in it.
 */
#ifndef COORD_HOST_CONFIG_H
#define COORD_HOST_CONFIG_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_WORKERS_MAX     256u
#define HOST_GRAPHS_MAX      256u
#define HOST_CONNECTIONS_MAX 4096u
#define HOST_UIDS_MAX        64u
#define HOST_WEIGHT_MAX      1000u
#define HOST_JOBS_MAX        64u   /* of one graph at a time */
#define HOST_QUEUE_MAX       4096u /* of one graph */

typedef enum host_mode { HOST_OPTIMISTIC, HOST_QUEUED, HOST_SINGLE } host_mode;

#define HOST_BRANCHES_MAX 16u

typedef struct host_maintenance_config { /* every_seconds 0: none */
    uint64_t every_seconds;
    bool optimize, gc;
    uint64_t fragments, edits, dead_bytes; /* optimize, when one of them is reached; 0: does not matter */
    char *branches[HOST_BRANCHES_MAX];     /* that are optimized */
    uint32_t branch_count;
    uint64_t gc_bytes, keep; /* gc, when it would free so much; keep 0: not said */
    char older_than[16];     /* "": not said */
} host_maintenance_config;

typedef struct host_users {
    uint32_t uids[HOST_UIDS_MAX];
    uint32_t count;
} host_users;

typedef struct host_graph_config {
    char *path; /* absolute */
    char *name;
    uint32_t weight, max_jobs, queue;
    uint64_t memory, quota; /* 0: none given */
    uint64_t deadline_seconds;
    host_mode mode;
    host_users users;   /* may do everything with it */
    host_users readers; /* may read it, and see its jobs */
    host_maintenance_config maintenance;
} host_graph_config;
void host_graph_config_free(host_graph_config *config); /* safe on a zeroed one */

typedef struct host_config {
    char *socket; /* absolute */
    uint32_t socket_mode;
    bool log_json;   /* else logfmt */
    bool http_names; /* names of graphs, branches and people are shown there */
    char *http;      /* NULL: none; absolute path, or ADDRESS:PORT */
    uint32_t workers;
    uint32_t connections;
    uint32_t requests_per_second;
    uint32_t stopped_seconds;
    host_graph_config *graphs;
    uint32_t graph_count;
} host_config;

/* Reads and checks the file. INPUT_SYNTAX for what is wrong in it, USAGE when it is not there. */
sluice_status host_config_read(const char *file, host_config *ret_config, sluice_error *err);
/* The same of a text; `file` names it in messages, and relative paths begin at `folder` (with a slash at its end). */
sluice_status host_config_parse(const char *file, const char *folder, const char *text, size_t length,
                                host_config *ret_config, sluice_error *err);
void host_config_free(host_config *config); /* safe on a zeroed one */
const char *host_mode_name(host_mode mode);

#endif
