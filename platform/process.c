/*
 * Processes, the shared mapping and futex waits of the machine (see platform/process.h).
 *
 * All signals are blocked from before fork until the child has set itself up, so no handler of the parent ever runs in
 * a child. The parent-death signal is set first and the parent looked at again after, which closes the race with a
 * parent that died in between. The shared memory is sealed in this order: size, our mapping, then all further change.
 */
#include "platform/process.h"
#include "platform/check.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_LOST_PARENT 111 /* exit status of a child whose parent died before it could be set up */

static void become_child(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(CHILD_LOST_PARENT);
    PF_ALWAYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    PF_ALWAYS(setsid() >= 0);
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL); /* fails for SIGKILL, SIGSTOP and libc's own, which is right */
    (void)signal(SIGXFSZ, SIG_IGN);    /* a file at its limit of size is an error, not an end */
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

sluice_status pf_fork(pf_child *ret_child, bool *ret_in_child, sluice_error *err)
{
    sigset_t all;
    sigset_t before;
    pid_t parent = getpid();
    (void)fflush(NULL);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        become_child(parent);
        *ret_child = (pf_child){.pid = getpid(), .pidfd = -1};
        *ret_in_child = true;
        return SLUICE_OK;
    }
    int fork_error = errno;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return pf_fail_errno(err, fork_error == EAGAIN ? ENOMEM : fork_error, "starting a process");
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        int open_error = errno;
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        return pf_fail_errno(err, open_error, "watching a process");
    }
    *ret_child = (pf_child){.pid = pid, .pidfd = pidfd};
    *ret_in_child = false;
    return SLUICE_OK;
}

/* The time left as poll's argument: rounded up, so that a wait never ends before its deadline. */
static int poll_timeout(pf_deadline deadline)
{
    if (deadline.monotonic_ns == INT64_MAX)
        return -1;
    if (pf_deadline_passed(deadline))
        return 0;
    int64_t left = (deadline.monotonic_ns - pf_monotonic_ns() + 999999) / 1000000;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

sluice_status pf_child_wait(pf_child *child, pf_deadline deadline, bool *ret_ended, int *ret_wait_status,
                            sluice_error *err)
{
    *ret_ended = false;
    for (;;) {
        struct pollfd ready = {.fd = child->pidfd, .events = POLLIN};
        int count = poll(&ready, 1, poll_timeout(deadline));
        if (count < 0 && errno != EINTR)
            return pf_fail_errno(err, errno, "waiting for a process");
        if (count > 0)
            break;
        if (count == 0 && pf_deadline_passed(deadline))
            return SLUICE_OK;
    }
    int wait_status = 0;
    pid_t pid;
    do {
        pid = waitpid(child->pid, &wait_status, 0);
    } while (pid < 0 && errno == EINTR);
    if (pid < 0)
        return pf_fail_errno(err, errno, "reaping a process");
    (void)close(child->pidfd);
    *child = (pf_child){.pid = -1, .pidfd = -1};
    *ret_ended = true;
    *ret_wait_status = wait_status;
    return SLUICE_OK;
}

void pf_child_kill(const pf_child *child)
{
    if (child->pidfd >= 0)
        (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0); /* fails only when it is gone already */
}

unsigned pf_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

pid_t pf_parent_pid(void)
{
    return getppid();
}

pid_t pf_pid(void)
{
    return getpid();
}

sluice_status pf_shared_memory_make(size_t length, pf_shared_memory *ret_memory, sluice_error *err)
{
    void *address = MAP_FAILED;
    int error_number = 0;
    if (length == 0 || length > PF_SHARED_MEMORY_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "shared memory of %zu bytes is beyond the limit", length);
    int fd = memfd_create("sluice-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return pf_fail_errno(err, errno, "making shared memory");
    /* Real pages now: a hole would be SIGBUS later. */
    do {
        error_number = posix_fallocate(fd, 0, (off_t)length);
    } while (error_number == EINTR);
    if (error_number)
        goto fail;
    address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (address == MAP_FAILED ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
        error_number = errno;
        goto fail;
    }
    *ret_memory = (pf_shared_memory){.address = address, .length = length, .fd = fd};
    return SLUICE_OK;
fail:
    if (address != MAP_FAILED)
        (void)munmap(address, length);
    (void)close(fd);
    return pf_fail_errno(err, error_number == ENOSPC ? ENOMEM : error_number, "making shared memory");
}

void pf_shared_memory_free(pf_shared_memory *memory)
{
    if (!memory->address)
        return;
    PF_ALWAYS(munmap(memory->address, memory->length) == 0);
    (void)close(memory->fd);
    *memory = (pf_shared_memory){.fd = -1};
}

void pf_futex_wait(const uint32_t *word, uint32_t value, pf_deadline deadline)
{
    struct timespec until;
    struct timespec *limit = NULL;
    const pf_world *world = pf_world_now();
    if (world->word_wait) {
        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
            world->word_wait(world->context, deadline.monotonic_ns);
        return;
    }
    if (deadline.monotonic_ns != INT64_MAX) {
        if (deadline.monotonic_ns <= 0)
            return;
        until.tv_sec = (time_t)(deadline.monotonic_ns / 1000000000);
        until.tv_nsec = (long)(deadline.monotonic_ns % 1000000000);
        limit = &until;
    }
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
    PF_ALWAYS(result == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

void pf_futex_wake_all(const uint32_t *word)
{
    const pf_world *world = pf_world_now();
    if (world->word_wake) {
        world->word_wake(world->context);
        return;
    }
    PF_ALWAYS(syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0) >= 0);
}
