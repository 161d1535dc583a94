/*
 * epoll over a signalfd, an eventfd and the pidfds of children (see platform/watch.h).
 *
 * A forked child has copies of all of these descriptors until it closes them, and a pidfd that is closed here while a
 * child still has its copy would stay in the epoll set: so children are taken out by name before their pidfd is closed.
 */
#include "platform/watch.h"
#include "platform/check.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What epoll hands back: the kind in the high half, a child's tag in the low one. */
#define DATA(kind, tag) ((uint64_t)(kind) << 32 | (tag))

struct pf_watch {
    int epoll;
    int signals;
    int bell;
    sigset_t before; /* the mask of the process before it was opened */
};

static sluice_status add(const pf_watch *watch, int fd, uint64_t data, sluice_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = data}};
    if (epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return pf_fail_errno(err, errno, "watching a descriptor");
    return SLUICE_OK;
}

static void interrupts_of(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGINT);
    (void)sigaddset(ret_set, SIGTERM);
}

void pf_hold_interrupts(void)
{
    sigset_t interrupts;
    interrupts_of(&interrupts);
    (void)sigprocmask(SIG_BLOCK, &interrupts, NULL);
}

sluice_status pf_watch_open(pf_watch **ret_watch, sluice_error *err)
{
    sigset_t interrupts;
    sluice_status status = SLUICE_OK;
    pf_watch *watch = malloc(sizeof *watch);
    if (!watch)
        return pf_fail_memory(err);
    *watch = (pf_watch){.epoll = -1, .signals = -1, .bell = -1};
    interrupts_of(&interrupts);
    (void)sigprocmask(SIG_BLOCK, &interrupts, &watch->before);
    watch->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch->signals = signalfd(-1, &interrupts, SFD_CLOEXEC | SFD_NONBLOCK);
    watch->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->epoll < 0 || watch->signals < 0 || watch->bell < 0) {
        status = pf_fail_errno(err, errno, "opening a supervisor's descriptors");
        goto fail;
    }
    PF_GOTO(status, fail, add(watch, watch->signals, DATA(PF_EVENT_INTERRUPT, 0), err));
    PF_GOTO(status, fail, add(watch, watch->bell, DATA(PF_EVENT_BELL, 0), err));
    *ret_watch = watch;
    return SLUICE_OK;
fail:
    pf_watch_close(watch);
    return status;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void pf_watch_close(pf_watch *watch)
{
    if (!watch)
        return;
    close_fd(watch->epoll);
    close_fd(watch->signals);
    close_fd(watch->bell);
    (void)sigprocmask(SIG_SETMASK, &watch->before, NULL);
    free(watch);
}

sluice_status pf_watch_child(pf_watch *watch, const pf_child *child, uint32_t tag, sluice_error *err)
{
    return add(watch, child->pidfd, DATA(PF_EVENT_CHILD, tag), err);
}

static struct epoll_event descriptor_event(uint32_t tag, bool reads, bool writes)
{
    return (struct epoll_event){.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u),
                                .data = {.u64 = DATA(PF_EVENT_DESCRIPTOR, tag)}};
}

sluice_status pf_watch_descriptor(pf_watch *watch, int fd, uint32_t tag, bool reads, bool writes, sluice_error *err)
{
    struct epoll_event event = descriptor_event(tag, reads, writes);
    if (epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return pf_fail_errno(err, errno, "watching a descriptor");
    return SLUICE_OK;
}

void pf_watch_descriptor_change(pf_watch *watch, int fd, uint32_t tag, bool reads, bool writes)
{
    struct epoll_event event = descriptor_event(tag, reads, writes);
    PF_ALWAYS(epoll_ctl(watch->epoll, EPOLL_CTL_MOD, fd, &event) == 0);
}

void pf_watch_descriptor_forget(pf_watch *watch, int fd)
{
    (void)epoll_ctl(watch->epoll, EPOLL_CTL_DEL, fd, NULL); /* fails only when it never came to be watched */
}

sluice_status pf_watch_hangups(pf_watch *watch, sluice_error *err)
{
    sigset_t signals;
    interrupts_of(&signals);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    if (signalfd(watch->signals, &signals, SFD_CLOEXEC | SFD_NONBLOCK) < 0)
        return pf_fail_errno(err, errno, "opening a supervisor's descriptors");
    return SLUICE_OK;
}

void pf_watch_forget(pf_watch *watch, const pf_child *child)
{
    (void)epoll_ctl(watch->epoll, EPOLL_CTL_DEL, child->pidfd, NULL); /* fails only when it never came to be watched */
}

static int milliseconds_until(pf_deadline deadline)
{
    if (deadline.monotonic_ns == INT64_MAX)
        return -1;
    if (pf_deadline_passed(deadline))
        return 0;
    int64_t left = (deadline.monotonic_ns - pf_monotonic_ns() + 999999) / 1000000;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Takes what made the descriptor ready, so that it is not told twice. False: somebody else took it. */
static bool consume(const pf_watch *watch, pf_event *event)
{
    struct signalfd_siginfo information;
    uint64_t rings;
    switch (event->kind) {
    case PF_EVENT_INTERRUPT:
        if (read(watch->signals, &information, sizeof information) != (ssize_t)sizeof information)
            return false;
        event->signal = information.ssi_signo;
        return true;
    case PF_EVENT_BELL:
        return read(watch->bell, &rings, sizeof rings) == (ssize_t)sizeof rings;
    case PF_EVENT_CHILD:
    case PF_EVENT_DESCRIPTOR:
    case PF_EVENT_NONE:
        break;
    }
    return true;
}

sluice_status pf_watch_next(pf_watch *watch, pf_deadline deadline, pf_event *ret_event, sluice_error *err)
{
    for (;;) {
        struct epoll_event ready;
        int count = epoll_wait(watch->epoll, &ready, 1, milliseconds_until(deadline));
        if (count < 0 && errno != EINTR)
            return pf_fail_errno(err, errno, "waiting for workers");
        if (count == 1) {
            *ret_event = (pf_event){.kind = (pf_event_kind)(ready.data.u64 >> 32),
                                    .tag = (uint32_t)ready.data.u64,
                                    .readable = (ready.events & ~(uint32_t)EPOLLOUT) != 0,
                                    .writable = (ready.events & EPOLLOUT) != 0};
            if (consume(watch, ret_event))
                return SLUICE_OK;
        }
        if (count <= 0 && pf_deadline_passed(deadline)) {
            *ret_event = (pf_event){.kind = PF_EVENT_NONE};
            return SLUICE_OK;
        }
    }
}

int pf_watch_bell(const pf_watch *watch)
{
    return watch->bell;
}

void pf_bell_ring(int bell)
{
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(bell, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    PF_ALWAYS(written == (ssize_t)sizeof one || errno == EAGAIN); /* EAGAIN: it rings already */
}

uint64_t pf_memory_kills(void)
{
    char line[128];
    unsigned long long kills = 0;
    FILE *file = fopen("/proc/vmstat", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "oom_kill %llu", &kills) == 1)
            break;
    }
    (void)fclose(file);
    return kills;
}

sluice_status pf_death_pipe_make(pf_death_pipe *ret_pipe, sluice_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return pf_fail_errno(err, errno, "making a pipe");
    *ret_pipe = (pf_death_pipe){.supervisor = ends[1], .worker = ends[0]};
    return SLUICE_OK;
}

void pf_death_pipe_close(pf_death_pipe *pipe)
{
    close_fd(pipe->supervisor);
    close_fd(pipe->worker);
    *pipe = (pf_death_pipe){.supervisor = -1, .worker = -1};
}

bool pf_supervisor_is_gone(int worker_end)
{
    struct pollfd end = {.fd = worker_end, .events = POLLIN};
    return poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void pf_close_other_descriptors(const int *keep, uint32_t count)
{
    unsigned first = 3;
    for (;;) {
        unsigned next = UINT_MAX;
        for (uint32_t i = 0; i < count; i++) {
            if (keep[i] >= 0 && (unsigned)keep[i] >= first && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        }
        if (next > first)
            PF_ALWAYS(close_range(first, next == UINT_MAX ? UINT_MAX : next - 1, 0) == 0);
        if (next == UINT_MAX)
            return;
        first = next + 1;
    }
}

void pf_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void pf_forbid_core(void)
{
    struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    PF_ALWAYS(setrlimit(RLIMIT_CORE, &none) == 0);
}

void pf_drop_interrupts(void)
{
    const struct timespec at_once = {0};
    sigset_t interrupts;
    interrupts_of(&interrupts);
    while (sigtimedwait(&interrupts, NULL, &at_once) >= 0 || errno == EINTR)
        continue;
}

void pf_child_interrupt(const pf_child *child)
{
    if (child->pidfd >= 0)
        (void)pidfd_send_signal(child->pidfd, SIGINT, NULL, 0); /* fails only when it is gone already */
}

bool pf_child_is_stopped(const pf_child *child)
{
    siginfo_t what = {0};
    return child->pidfd >= 0 && waitid(P_PIDFD, (id_t)child->pidfd, &what, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           what.si_pid == child->pid && what.si_code == CLD_STOPPED;
}

void pf_notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* Best effort: a manager that does not hear it acts by its own rules. */
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    (void)close(fd);
}

int64_t pf_watchdog_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    char *end = NULL, own[24];
    (void)snprintf(own, sizeof own, "%lld", (long long)getpid());
    if (pid && strcmp(pid, own) != 0)
        return 0; /* it is meant for another process */
    unsigned long long microseconds = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    return end && *end == '\0' && microseconds < 86400000000ull ? (int64_t)(microseconds / 2000) : 0;
}

void pf_leave(int status)
{
    _exit(status);
}
