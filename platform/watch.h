/*
 * What a supervisor and its workers need of the machine beyond platform/process.h: one wait for the ends of children,
 * for signals and for a bell that children ring; the death pipe; and how a forked worker sheds what it must not keep.
 */
#ifndef PLATFORM_WATCH_H
#define PLATFORM_WATCH_H

#include "platform/process.h"

/* SIGINT and SIGTERM wait from here on: a watch opened later gets those that came before it, and one that comes after
 * the watch is closed changes nothing any more. Called once, by a command that must not end half-way for them. */
void pf_hold_interrupts(void);

/* ---- the supervisor's wait ---- */

typedef struct pf_watch pf_watch;

typedef enum pf_event_kind {
    PF_EVENT_NONE, /* the deadline passed */
    PF_EVENT_CHILD,
    PF_EVENT_INTERRUPT, /* SIGINT or SIGTERM; SIGHUP where the watch was asked for it */
    PF_EVENT_BELL,
    PF_EVENT_DESCRIPTOR
} pf_event_kind;

typedef struct pf_event {
    pf_event_kind kind;
    uint32_t tag;            /* of the child or descriptor */
    uint32_t signal;         /* of an interrupt */
    bool readable, writable; /* a descriptor: readable also when its other end is gone */
} pf_event;

/* From here to the close SIGINT and SIGTERM do not act on this process but arrive as events; pf_fork's children have
 * them as usual. To be opened by a process of one thread. */
sluice_status pf_watch_open(pf_watch **ret_watch, sluice_error *err);
void pf_watch_close(pf_watch *watch); /* NULL allowed; signals act as before again */
/* PF_EVENT_CHILD with this tag once the child has ended, and until it is forgotten: forget it, then pf_child_wait. */
sluice_status pf_watch_child(pf_watch *watch, const pf_child *child, uint32_t tag, sluice_error *err);
void pf_watch_forget(pf_watch *watch, const pf_child *child);
/* PF_EVENT_DESCRIPTOR with this tag whenever it can be read, and with `writes` also when it can be written. Taken out
 * before it is closed. */
sluice_status pf_watch_descriptor(pf_watch *watch, int fd, uint32_t tag, bool reads, bool writes, sluice_error *err);
void pf_watch_descriptor_change(pf_watch *watch, int fd, uint32_t tag, bool reads, bool writes);
void pf_watch_descriptor_forget(pf_watch *watch, int fd);
/* SIGHUP, too, arrives as an event from here on. */
sluice_status pf_watch_hangups(pf_watch *watch, sluice_error *err);
/* One event, or NONE at the deadline. */
sluice_status pf_watch_next(pf_watch *watch, pf_deadline deadline, pf_event *ret_event, sluice_error *err);
/* The bell's descriptor, for children to ring; rings before an answer are one. */
int pf_watch_bell(const pf_watch *watch);
void pf_bell_ring(int bell);

/* How many processes the kernel has ended on this machine because memory was short (0 when it does not tell): a SIGKILL
 * with this number unchanged came from somebody else. */
uint64_t pf_memory_kills(void);

/* ---- the death pipe ---- */

/* Nothing is ever written: the workers' end reads end-of-file once every copy of the supervisor's end is gone. */
typedef struct pf_death_pipe {
    int supervisor;
    int worker;
} pf_death_pipe;
sluice_status pf_death_pipe_make(pf_death_pipe *ret_pipe, sluice_error *err);
void pf_death_pipe_close(pf_death_pipe *pipe);
bool pf_supervisor_is_gone(int worker_end);

/* ---- in a forked worker ---- */

/* Closes every descriptor but 0, 1, 2 and those listed (any order; negative ones are nobody's). Allocates nothing. */
void pf_close_other_descriptors(const int *keep, uint32_t count);
/* As many descriptors as this process may have. */
void pf_raise_descriptors(void);
/* No core file: it would hold rows. */
void pf_forbid_core(void);
/* Takes back interrupts that were held and that nobody has looked at. */
void pf_drop_interrupts(void);
/* SIGINT to a child, as its user would send it. */
void pf_child_interrupt(const pf_child *child);
/* Is the child stopped (SIGSTOP), now? */
bool pf_child_is_stopped(const pf_child *child);
/* Tells the service manager that started this process (NOTIFY_SOCKET), if one did: "READY=1", "STOPPING=1", ... */
void pf_notify_manager(const char *state);
/* How often the service manager wants to hear "WATCHDOG=1" (half of its bound), in milliseconds; 0: never. */
int64_t pf_watchdog_ms(void);
/* Ends this process without running what the parent registered for its own end. */
_Noreturn void pf_leave(int status);

#endif
