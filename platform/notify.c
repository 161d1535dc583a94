/* See notify.h. */
#include "platform/notify.h"

#include "platform/volume_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS                                                                                                         \
    (IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

#define MINUTE_MS 60000

struct pf_notify {
    int fd;
};

static sluice_status fail_notify(int error_number, sluice_error *err)
{
    if (error_number != ENOSPC && error_number != EMFILE)
        return pf_fail_errno(err, error_number, "watching a folder");
    (void)pf_fail(err, SLUICE_RESOURCE_LIMIT, "the system has no watch left for a folder");
    pf_hint(err, "raise fs.inotify.max_user_watches or max_user_instances");
    return SLUICE_RESOURCE_LIMIT;
}

static sluice_status add_folder(pf_notify *notify, pf_posix_volume *volume, const char *folder, sluice_error *err)
{
    char path[40];
    sluice_status status = SLUICE_OK;
    int fd = pf_posix_open_beneath(volume, folder, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return pf_volume_fail(err, errno, "opening", folder);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (inotify_add_watch(notify->fd, path, EVENTS) < 0)
        status = fail_notify(errno, err);
    (void)close(fd);
    return status;
}

sluice_status pf_notify_open(pf_volume *volume, const char *const *folders, uint32_t count, pf_notify **ret_notify,
                             sluice_error *err)
{
    sluice_status status = SLUICE_OK;
    if (pf_volume_is_sim(volume))
        return pf_fail(err, SLUICE_USAGE, "a simulated volume tells nobody");
    pf_notify *notify = malloc(sizeof *notify);
    if (!notify)
        return pf_fail_memory(err);
    notify->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (notify->fd < 0)
        status = fail_notify(errno, err);
    for (uint32_t i = 0; i < count && status == SLUICE_OK; i++)
        status = add_folder(notify, pf_posix_of(volume), folders[i], err);
    if (status == SLUICE_OK)
        *ret_notify = notify;
    else
        pf_notify_close(notify);
    return status;
}

void pf_notify_close(pf_notify *notify)
{
    if (!notify)
        return;
    if (notify->fd >= 0)
        (void)close(notify->fd);
    free(notify);
}

int pf_notify_descriptor(const pf_notify *notify)
{
    return notify->fd;
}

void pf_notify_take(pf_notify *notify)
{
    char events[4096];
    while (read(notify->fd, events, sizeof events) > 0 || errno == EINTR)
        continue;
}

sluice_status pf_notify_wait(pf_notify *notify, pf_deadline deadline, bool *ret_something, sluice_error *err)
{
    struct pollfd waits = {.fd = notify->fd, .events = POLLIN};
    int64_t left = 0;
    if (!pf_deadline_passed(deadline))
        left = (deadline.monotonic_ns - pf_monotonic_ns()) / 1000000 + 1;
    int ready = poll(&waits, 1, left < 0 ? 0 : left > MINUTE_MS ? MINUTE_MS : (int)left);
    *ret_something = ready > 0;
    if (ready < 0 && errno != EINTR)
        return pf_fail_errno(err, errno, "waiting for a change");
    pf_notify_take(notify);
    return SLUICE_OK;
}
