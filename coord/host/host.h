/*
 * The inside of the supervisor of several graphs (coord/host/serve.h).
 *
 *   config.c   the configuration
 *   host.c     the main loop: events, signals, time
 *   log.c      one event a line
 *   graph.c    graphs come and go
 *   client.c   connections: bytes in and out, their bounds
 *   rpc.c      requests: what is asked, and whether this user may
 *   status.c   what it says of itself; kept.c, what it said a moment ago
 *   job.c      jobs: admission, queues, the fair choice, ends
 *   ledger.c   what the next supervisor learns of jobs that had not ended
 *   maintain.c what a graph is looked after with; schedule.c, when
 *   runner.c   the processes: forking, orders, output, deaths
 *   http.c     metrics, health, the status page
 *   metrics.c  the text of the metrics
 *   samples.c  the last minutes
 *   lineage.c  the newest commits of a branch
 *   page.c     the status page; draw.c its drawings, assets.c what does not change
 *   region.c   the shared regions of standing runners
 *   work.c     inside a runner
 *   call.c     the client's side (coord/host/call.h)
 *
 * One process, one thread; nothing here waits but for the next event. Everything that a client or a tenant can make
 * grow has a bound: connections, the length of a line, descriptors, rate, waiting jobs, kept output, runners. Whoever
 * exceeds one is refused or disconnected; nobody else notices. Memory of the supervisor is not shared with runners in
 * either direction: a runner has a copy as of its fork, and what it says back is read as bytes. (Runners of one graph
 * share its region, and a count of its disk, which the supervisor does not go by.)
 *
 * Crash rules. Runner: its process is reaped (the only proof), then its job is given to another, a bounded number of
 * times; every attempt has the same operation id, so that what was published before the death is found and not
 * repeated. Supervisor: the kernel ends its runners with it, and each pool below a runner with that; what was admitted
 * and not published is nothing, its clients see their connection end, and the next supervisor reports it.
 */
#ifndef COORD_HOST_HOST_H
#define COORD_HOST_HOST_H

#include "coord/host/config.h"
#include "coord/host/serve.h"
#include "coord/supervisor.h"
#include "locks/oslock.h"
#include "platform/buffer.h"
#include "platform/local_socket.h"
#include "platform/tally.h"
#include "platform/watch.h"
#include "store/format/json.h"
#include "store/format/tree.h"

#define HOST_LINE_MAX        (UINT32_C(1) << 20) /* bytes of a request */
#define HOST_NODES_MAX       65536u              /* values in a request */
#define HOST_WORDS_MAX       4096u
#define HOST_OUTPUT_KEPT     (UINT32_C(256) << 10) /* of each stream of a job, for those who ask later */
#define HOST_UNSENT_SLOW     (UINT32_C(1) << 20)   /* a client with so much unsent output slows its job down */
#define HOST_UNSENT_MAX      (UINT32_C(8) << 20)   /* and with so much is disconnected */
#define HOST_STALLED_MS      30000                 /* or when it takes nothing for so long, or does not end a line */
#define HOST_TURN_LINES      64u                   /* of one client, before others have their turn, */
#define HOST_TURN_BYTES      (UINT32_C(64) << 10)  /* or when its answers come to so much */
#define HOST_KEPT            8u                    /* answers to `status`, each for one user, */
#define HOST_KEPT_MS         10                    /* which are given again for so long */
#define HOST_WAITS_MAX       256u                  /* requests of one connection that wait for a job */
#define HOST_HELD_MAX        512u /* descriptors that the jobs of one graph hold; lines of one user that are not whole */
#define HOST_HELD_BYTES      (UINT64_C(64) << 20) /* of requests and answers of one user */
#define HOST_ENDED_KEPT      256u                 /* jobs whose end is remembered */
#define HOST_LEDGER_SLOTS    512u                 /* jobs of a graph that a killed supervisor leaves to the next */
#define HOST_RUNNERS_MAX     512u
#define HOST_GIVEN_UP_MAX    4u /* epochs of a graph's damaged regions that the next one voids */
#define HOST_TICK_MS         200
#define HOST_TAKEOVER_MS     2000 /* for the last process of a supervisor that was killed to end */
#define HOST_CRASHES_MAX     5u   /* of one job's runners */
#define HOST_DEATHS_MAX      250u /* of one job's runners, by kills from outside */
#define HOST_FATES_MAX       3u   /* runners that look for what became of a job */
#define HOST_FATE_MS         60000
#define HOST_BACKOFF_MS      50
#define HOST_BACKOFF_MAX     10000
#define HOST_PATIENCE_MS     600000 /* maintenance waits so long for places that others want, too */
#define HOST_HTTP_MAX        64u    /* requests at a time */
#define HOST_SAMPLES         150u   /* that are kept */
#define HOST_RECENT          30u    /* steps that `status` tells */
#define HOST_SAMPLE_MS       2000
#define HOST_GATES_SHOWN     64u  /* of a graph */
#define HOST_EXITS           131u /* exit statuses that are counted */
#define HOST_SECONDS_BUCKETS 14u
#define HOST_RUNNER_JOBS     10000u /* a runner that stays is replaced after so many */

_Static_assert(PF_TALLY_PLACES == HOST_RUNNERS_MAX, "a runner's number is its place in the tallies");

typedef struct host_server host_server;

typedef struct host_histogram {
    double sum;
    uint64_t count, buckets[HOST_SECONDS_BUCKETS];
} host_histogram;
typedef struct host_graph host_graph;
typedef struct host_job host_job;
typedef struct host_runner host_runner;
typedef struct host_client host_client;
typedef struct host_waiter host_waiter;

typedef enum host_lane { HOST_SMALL, HOST_POOL, HOST_LANES } host_lane;

typedef enum host_state { HOST_WAITING, HOST_RUNNING, HOST_ENDED } host_state;

typedef struct host_answer { /* what a runner says when its job has ended */
    uint32_t exit, fate;
    pf_id commit; /* with its fate */
} host_answer;
_Static_assert(sizeof(host_answer) == 24, "no padding is sent");

struct host_waiter { /* a request that is answered when its job ends */
    host_waiter *next;
    host_client *client;
    pf_buffer id; /* of the request, as JSON */
    bool streams; /* output is sent as it comes */
};

struct host_job {
    host_job *next, *previous; /* all jobs, oldest first */
    host_job *queued_next;     /* of the graph's queue */
    pf_id id, operation;
    bool operation_given;
    const co_host_command *command;
    host_lane lane;
    host_graph *graph; /* NULL once it is not hosted any more; then the job has ended */
    uint32_t user;
    uint32_t workers; /* places that it takes in its lane */
    uint64_t memory;  /* that it may have, while it runs */
    pf_sha256 request;
    char *line; /* the request's parameters */
    size_t length;
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    uint32_t descriptor_count;
    bool inputs; /* it came with descriptors */
    bool once;   /* some input cannot be read a second time */
    bool reads;  /* it changes nothing: it waits for no writer, and no writer for it */
    bool low;    /* maintenance: it takes places that nobody else wants, is tried once, and counts for itself */
    host_state state;
    host_runner *runner;
    unsigned attempts, crashes;
    int64_t submitted_ns, started_ns, ended_ns;
    int64_t start_by_ns, end_by_ns; /* INT64_MAX: none */
    bool cancelled;
    bool late;           /* it ran past its deadline */
    unsigned fates;      /* runners that looked for what became of it: it has failed, and only that is not known yet */
    pf_buffer output[2]; /* what was said so far, up to the bound */
    int exit;
    sluice_error failed; /* code OK: it ended by itself, with `exit` */
    host_waiter *waiters;
    pf_buffer record;     /* what is kept of it until it has ended; empty: nothing */
    uint32_t ledger_slot; /* + 1 */
};

typedef struct host_sample { /* of one graph, in one step of time */
    uint32_t commits, conflicts, syncs;
    uint32_t queued, running;                /* at its end */
    uint32_t took[HOST_SECONDS_BUCKETS + 1]; /* jobs that took up to each bound; all */
} host_sample;

typedef struct host_sample_base { /* what was counted until the last one */
    uint64_t commits, conflicts, syncs;
    host_histogram took;
} host_sample_base;

typedef struct host_lineage { /* the newest commits of a branch, as `log` told them lately */
    host_job *job;            /* that asks again; NULL: none */
    pf_buffer text;           /* JSON Lines */
    char *branch;             /* which; NULL: nothing is known */
    uint64_t commits;         /* the graph's, when it was asked */
    int64_t asked_ns;
    bool failed;
} host_lineage;

typedef enum host_task { HOST_OPTIMIZE, HOST_GC, HOST_TASKS } host_task;
typedef enum host_outcome { HOST_DONE, HOST_NOTHING, HOST_FAILED, HOST_OUTCOMES } host_outcome;

typedef struct host_maintenance {
    host_job *job;     /* of this moment; NULL: none. Never two */
    host_task task;    /* its, or the next one's */
    uint32_t branch;   /* which of those that are optimized */
    unsigned failures; /* in a row: each doubles the pause */
    int64_t next_ns;   /* 0: not planned yet */
    uint64_t runs[HOST_TASKS][HOST_OUTCOMES];
    bool ran; /* below is known: of the last run that was no look at nothing */
    host_task last_task;
    host_outcome last_outcome;
    int64_t last_us;
} host_maintenance;

struct host_graph {
    host_graph *next;
    host_graph_config config;
    uint32_t number; /* for logs, which name nothing */
    bool listed;     /* in the configuration that is being read */
    bool leaving;    /* not in the configuration any more: gone when its jobs have ended */
    bool ready;
    sluice_error problem; /* not ready: why */
    uint64_t device, inode;
    pf_volume *volume;
    lk_lockfile *locks; /* holds the host byte */
    shm_region region;  /* of its standing runners, when seats > 0 */
    uint32_t seats;
    bool seat_taken[SHM_WORKERS_MAX];
    pf_id given_up[HOST_GIVEN_UP_MAX]; /* epochs of damaged regions, the newest */
    uint32_t given_up_count;
    co_latch_watch latches[2];
    host_job *queue; /* waiting, first in first out */
    uint32_t queued, running;
    uint32_t writing; /* of those that run, the ones that may change something */
    host_mode mode;   /* of its jobs: the configuration's, else the graph's own */
    pf_file *ledger;  /* NULL: nothing is kept */
    bool ledger_used[HOST_LEDGER_SLOTS];
    pf_shared_memory disk;     /* how many bytes it has, as its runners count them (platform/allowance.h) */
    uint32_t held;             /* descriptors of its jobs that have not ended */
    uint64_t pass[HOST_LANES]; /* what it has had, by weight: who has had least is next */
    unsigned crashes;          /* in a row */
    int64_t not_before_ns;     /* no job is started before */
    uint64_t done, failed, refused, restarts;
    uint64_t refusals[PF_TALLY_CODES]; /* by code */
    uint64_t exits[HOST_EXITS];
    pf_shared_memory tally_memory;
    pf_tallies *tallies; /* what its runners and their pools count; never NULL */
    host_histogram waited, took;
    host_maintenance maintenance;
    host_lineage lineage;
    host_sample samples[HOST_SAMPLES];
    host_sample_base sample_base;
};

typedef enum host_runner_state {
    HOST_RUNNER_NONE,
    HOST_RUNNER_IDLE,
    HOST_RUNNER_BUSY,
    HOST_RUNNER_LEAVING,
    HOST_RUNNER_DEAD /* reaped; what it held is still to be given back */
} host_runner_state;

struct host_runner {
    host_runner_state state;
    pf_child child;
    host_graph *graph;
    host_job *job;
    int channel;
    int output[2];      /* its standard output and error */
    bool reads[2];      /* they are listened to */
    uint8_t tail[2][4]; /* of each, the beginning of a character whose rest is to come */
    uint32_t tail_length[2];
    pf_buffer orders;
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX]; /* to go with the first byte of `orders`; they are the job's */
    uint32_t descriptor_count;
    uint8_t answer[sizeof(host_answer)];
    uint32_t answer_length;
    bool stays;
    uint64_t jobs;
    int64_t idle_since_ns, stopped_since_ns;
    uint64_t memory_kills;
    bool seated; /* `token` is its place in the graph's region */
    shm_token token;
    int wait_status; /* of a dead one */
};

struct host_client {
    uint32_t slot;
    int fd;
    pf_peer peer;
    pf_buffer in, out;
    size_t sent; /* of `out` */
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    uint32_t descriptor_count;
    uint32_t waits;
    bool closed;        /* nothing more comes from it; it goes when everything is answered */
    bool broken;        /* goes at once */
    bool dirty;         /* in host->dirty */
    bool pending;       /* whole lines are left for its next turn; nothing more is read before */
    uint64_t told;      /* of host->changes: what it was told last */
    bool reads, writes; /* what it is watched for */
    int64_t tokens_ns;  /* rate: the time at which its allowance was full */
    int64_t stalled_since_ns;
    int64_t begun_ns; /* the line that has not ended yet; 0: none */
};

typedef struct host_kept { /* an answer to `status` */
    bool made;
    uint32_t user;
    bool detail;
    uint64_t changes; /* as of then */
    int64_t made_ns;
    pf_buffer text; /* an object, as JSON */
} host_kept;

typedef struct host_http_held { /* a request that waits for commits to be read */
    struct MHD_Connection *connection;
    const host_graph *graph;
    int64_t until_ns;
} host_http_held;

struct host_server {
    const char *config_file;
    uint32_t graphs_ever;
    const co_host_program *program;
    host_config config;
    pf_watch *watch;
    pf_shared_memory failpoints; /* passages, counted over all runners */
    int listener;
    bool deaf;               /* nobody is let in until the next tick */
    struct MHD_Daemon *http; /* NULL: none */
    int http_epoll;
    host_http_held http_held[HOST_HTTP_MAX];
    host_graph *graphs;
    host_job *oldest, *newest;
    uint32_t ended;
    host_runner runners[HOST_RUNNERS_MAX];
    host_client *clients[HOST_CONNECTIONS_MAX];
    uint32_t client_count;
    host_client *dirty[HOST_CONNECTIONS_MAX]; /* to be flushed, at the end of a turn: nobody is closed before */
    uint32_t dirty_count;
    uint32_t used[HOST_LANES];
    uint64_t memory, memory_used; /* that there is; that running jobs may have */
    uint64_t pass[HOST_LANES];    /* of the graph that was served last */
    bool draining;
    unsigned interrupts;
    bool over;
    int64_t began_ns, began_us; /* by the two clocks */
    int64_t next_tick_ns, next_watchdog_ns, next_sample_ns;
    uint32_t sample_at;  /* the newest in every ring */
    int64_t watchdog_ms; /* 0: nobody asks for it */
    uint64_t requests, connections, refused_connections;
    uint64_t changes; /* grows with whatever may change what a client is told */
    host_kept kept[HOST_KEPT];
    uint64_t renderings; /* answers to `status` that were made, and not given again */
    uint32_t pending;    /* clients with lines left */
    uint32_t turn;       /* the slot of the one that had a turn last */
};

/* What descriptors in the watch are; the number in the low 16 bits. */
typedef enum host_tag {
    HOST_TAG_LISTENER,
    HOST_TAG_CLIENT,
    HOST_TAG_CHANNEL,
    HOST_TAG_OUTPUT,
    HOST_TAG_ERRORS,
    HOST_TAG_HTTP
} host_tag;
#define HOST_TAG(kind, number) ((uint32_t)(kind) << 16 | (uint32_t)(number))

/* One line on standard error, in logfmt or JSON: ids, counts, durations; never names, values or paths. */
void host_log_as(bool json);
void host_log(const char *level, const char *event, const char *fmt, ...) PF_PRINTF(3, 4);

/* ---- graph.c ---- */

/* Takes the graphs of a configuration over: new ones are opened, changed ones changed, missing ones leave. Never fails
 * as a whole: a graph that cannot be hosted says so in its state. */
void host_graphs_apply(host_server *host, host_config *config);
/* Those that have left, with nothing of theirs at work any more. */
void host_graphs_sweep(host_server *host);
void host_graphs_close(host_server *host);

/* ---- client.c ---- */

sluice_status host_clients_accept(host_server *host, sluice_error *err);
void host_client_event(host_server *host, uint32_t slot, bool readable, bool writable);
void host_client_touch(host_server *host, host_client *client); /* something was put into `out`, or it is broken */
/* The end of a turn: sends what can be sent, and closes who is done or broken. */
void host_clients_flush(host_server *host);
void host_client_close(host_server *host, host_client *client);
void host_clients_tick(host_server *host, int64_t now);
/* Has some client lines left that could be taken now? A turn of the next such one. */
bool host_clients_wait(const host_server *host);
void host_clients_go_on(host_server *host);

/* ---- rpc.c ---- */

/* One line without its end. The client may be broken afterwards, never gone. */
void host_rpc(host_server *host, host_client *client, const char *line, size_t length);
/* The answer of a job that has ended, to everyone who waits for it; they are its waiters no more. */
void host_rpc_ended(host_server *host, host_job *job);
/* To those who are sent output as it comes; returns whether one of them is slow. */
bool host_rpc_output(host_server *host, host_job *job, unsigned stream, const uint8_t *bytes, size_t length);

bool host_may_use(const host_client *client, const host_graph *graph);

/* ---- status.c ---- */

typedef struct host_runner_view {
    uint32_t number;
    const host_graph *graph;
    const char *state, *command, *stage; /* "" for none */
    unsigned attempt;
    uint64_t jobs, memory;
    int64_t pid, busy_ns;
} host_runner_view;

/* The members of the answer to `status`, of what this client may know. */
/* `detail`: also their last minutes, processes and gates. */
void host_status_put(st_json *json, const host_server *host, const host_client *client, bool detail);
bool host_runner_look(const host_server *host, uint32_t number, int64_t now, host_runner_view *ret_view);
const char *host_graph_state(const host_graph *graph, int64_t now);
uint64_t host_graph_conflicts(const host_graph *graph);

/* ---- kept.c ---- */

/* The answer to `status` for this client: one that was made lately, unless the client was told since of what is newer.
 * NULL: no memory. Until the next call. */
const pf_buffer *host_status_kept(host_server *host, const host_client *client, bool detail);
void host_status_forget(host_server *host); /* users may see something else from now on */

/* ---- http.c ---- */

sluice_status host_http_open(host_server *host, sluice_error *err); /* where the configuration wants it */
void host_http_run(host_server *host);
void host_http_tick(host_server *host, int64_t now);
void host_http_wake(host_server *host, const host_graph *graph); /* who waits for its lineage; NULL: for any */
void host_http_close(host_server *host);

/* ---- metrics.c ---- */

extern const double host_seconds_bounds[HOST_SECONDS_BUCKETS];
void host_count_seconds(host_histogram *histogram, int64_t nanoseconds);
void host_metrics_put(pf_buffer *page, const host_server *host);

/* ---- job.c ---- */

/* Admits a job: takes `job` over, also when it is refused. */
sluice_status host_job_admit(host_server *host, host_job *job, sluice_error *err);
host_job *host_job_find(host_server *host, const pf_id *id);
void host_job_free(host_job *job);
/* The end of a turn: starts what can be started, and forgets jobs that ended long ago. */
void host_dispatch(host_server *host);
/* The end of a job, in any state: `failed` NULL for one that ended by itself. */
void host_job_end(host_server *host, host_job *job, int exit, const sluice_error *failed);
/* A runner has found out what became of a job that failed: its end. */
void host_job_fate(host_server *host, host_job *job, const host_answer *answer);
/* Its runner died: once more, or the end. */
void host_job_lost(host_server *host, host_job *job, bool crashed, const char *how);
/* WRITER_BUSY: it runs, in queued mode. */
sluice_status host_job_cancel(host_server *host, host_job *job, sluice_error *err);
void host_jobs_tick(host_server *host, int64_t now);
/* One of the supervisor's own, for a graph that is ready. Takes `job` over. */
void host_job_add(host_server *host, host_job *job);
int64_t host_next_start(const host_server *host); /* when a graph's pause ends; INT64_MAX: none */
const char *host_state_name(const host_job *job);

/* ---- samples.c ---- */

void host_samples_tick(host_server *host, int64_t now);
/* The sum of the graphs (`only` NULL: all) over `count` steps from `number` of HOST_SAMPLES on, 0 the oldest. */
void host_sample_get(const host_server *host, const host_graph *only, uint32_t number, uint32_t count,
                     host_sample *ret_sample);
/* How long that share of its jobs took at most, about; 0 without any. */
double host_sample_seconds(const host_sample *sample, double share);

/* ---- lineage.c ---- */

/* Asks for the newest commits of the branch, unless what is known is new enough. */
void host_lineage_ask(host_server *host, host_graph *graph, const char *branch);
bool host_lineage_is_known(const host_graph *graph, const char *branch); /* lately */
void host_lineage_ended(host_server *host, host_graph *graph, const host_job *job);
void host_lineage_free(host_graph *graph);

/* ---- draw.c, page.c ---- */

typedef struct host_plot {
    const char *title, *unit;
    uint32_t lines; /* 1 or 2 */
    const char *names[2];
    double values[2][HOST_SAMPLES];
    double now[2]; /* what is said as the value */
} host_plot;

void host_draw_plot(pf_buffer *page, const host_plot *plot);
/* The commits that `log` told, as a drawing and a table; `names`: with messages and authors. */
void host_draw_lineage(pf_buffer *page, const pf_buffer *text, bool names);
void host_put_escaped(pf_buffer *page, const char *text, size_t length); /* for HTML: a text that may be anything */
void host_put_id(pf_buffer *page, const pf_id *id);
void host_page_put(pf_buffer *page, const host_server *host);
void host_page_put_graph(pf_buffer *page, const host_server *host, const host_graph *graph, const char *branch);
extern const char host_page_style[], host_page_script[], host_page_icon[];

/* ---- maintain.c ---- */

void host_maintenance_tick(host_server *host, int64_t now);
/* A job that the supervisor makes for itself: the request is what a client would have sent. NULL: no memory. */
host_job *host_job_make_own(const host_server *host, host_graph *graph, const char *command, const char *const *words,
                            uint32_t count);
void host_maintenance_ended(host_graph *graph, const host_job *job); /* its job has */
void host_maintenance_stop(host_server *host, host_graph *graph);    /* takes its job back, if there is one */
/* "off", "idle", "waiting", "running", "backing-off". */
const char *host_maintenance_state(const host_graph *graph, int64_t now);
uint64_t host_maintenance_pause(const host_graph *graph); /* in seconds, with what failures add */
extern const char *const host_task_names[HOST_TASKS];
extern const char *const host_outcome_names[HOST_OUTCOMES];

/* ---- ledger.c ---- */

/* What there is to keep of a job; `words` of its request. */
void host_ledger_describe(host_job *job, const st_node *words);
void host_ledger_note(host_job *job); /* it was admitted */
void host_ledger_drop(host_job *job); /* it has ended */
/* Of a graph that was taken in: jobs that a killed supervisor left are added, to be looked for. */
void host_ledger_open(host_server *host, host_graph *graph);
void host_ledger_close(host_graph *graph);

/* ---- schedule.c ---- */

void host_schedule_keep(const host_graph *graph);
void host_schedule_forget(const host_graph *graph);
bool host_schedule_read(host_graph *graph); /* false: nothing that could be believed was kept */

/* ---- runner.c ---- */

/* Gives the job to a runner. RESOURCE_LIMIT or what fork says when there is none. */
sluice_status host_runner_start(host_server *host, host_job *job, sluice_error *err);
/* Is there a standing runner of the graph that waits, or a place for another? */
bool host_runner_can_start(const host_server *host, const host_graph *graph);
/* A runner ahead of need. */
void host_runner_ahead(host_server *host, host_graph *graph);
void host_runner_channel(host_server *host, uint32_t number, bool readable, bool writable);
void host_runner_output(host_server *host, uint32_t number, unsigned stream);
void host_runner_ended(host_server *host, uint32_t number);
void host_runners_dismiss(host_server *host, const host_graph *graph); /* the idle ones; NULL: of all graphs */
void host_runners_tick(host_server *host, int64_t now);
bool host_runners_left(const host_server *host);
void host_runners_kill(host_server *host);
/* Listens to a job's output again, or not, as its clients keep up. */
void host_runner_pace(host_server *host, host_job *job);

/* ---- region.c ---- */

/* Gives a runner that is about to be forked its place, making the region when there is none. */
sluice_status host_region_seat(host_graph *graph, host_runner *runner, sluice_error *err);
void host_region_unseat(host_runner *runner); /* once it is reaped */
/* Gives back what a reaped runner held; false: not yet, a latch is busy. */
bool host_region_bury(host_runner *runner);
bool host_region_is_damaged(const host_graph *graph);
void host_region_free(host_graph *graph);
void host_regions_tick(host_server *host, int64_t now);
/* In a forked runner: gives up what is shared with other graphs' runners; also its own region unless it is seated. */
void host_regions_leave(host_server *host, const host_graph *own, bool seated);

/* ---- work.c ---- */

/* What goes to a runner ahead of a request's parameters. */
typedef struct host_order {
    uint64_t length; /* of the parameters */
    uint64_t memory, quota;
    pf_id operation;
    uint32_t command; /* in the program's table */
    uint32_t descriptors;
    uint32_t attempt, workers;
    uint32_t foreign;
    uint32_t stopped_seconds;
    uint32_t looks; /* for what became of the job, instead of running it */
    uint32_t spare;
} host_order;
_Static_assert(sizeof(host_order) == 72, "no padding is sent");

typedef struct host_place {
    const co_host_program *program;
    const char *graph_path;
    int channel;
    bool stays;
    shm_region *region; /* of a runner that stays */
    shm_token token;
    const pf_id *given_up; /* the epochs of damaged regions before this one */
    uint32_t given_up_count;
    uint64_t *disk; /* shared by all runners of the graph */
} host_place;
/* The whole life of a runner; returns its exit status. */
int host_work(const host_place *place);

#endif
