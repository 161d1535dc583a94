/*
 * Unix stream sockets, pipes and pairs (see platform/local_socket.h).
 */
#include "platform/local_socket.h"
#include "platform/check.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

void pf_descriptor_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static sluice_status fill_address(const char *path, struct sockaddr_un *ret_address, sluice_error *err)
{
    size_t length = strlen(path);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length > PF_SOCKET_PATH_MAX || length >= sizeof ret_address->sun_path)
        return pf_fail_private(err, SLUICE_USAGE, "the path of a socket is too long",
                               "%s: the path of a socket has 1 to %u bytes", path, PF_SOCKET_PATH_MAX);
    memcpy(ret_address->sun_path, path, length + 1);
    return SLUICE_OK;
}

static int connect_to(int fd, const struct sockaddr_un *address)
{
    int result;
    do {
        result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* What stands at the path of a socket-to-be: nothing, or a socket without a listener, which is taken away. */
static sluice_status clear_path(const char *path, const struct sockaddr_un *address, sluice_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return SLUICE_OK;
    if (!S_ISSOCK(st.st_mode))
        return pf_fail_private(err, SLUICE_ALREADY_EXISTS, "the path of the socket is something else",
                               "%s is there and is no socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return pf_fail_errno(err, errno, "opening a socket");
    bool alive = connect_to(fd, address) == 0 || errno == EAGAIN;
    (void)close(fd);
    if (alive) {
        (void)pf_fail_private(err, SLUICE_ALREADY_EXISTS, "another supervisor listens at this socket",
                              "%s: another supervisor listens here", path);
        pf_hint(err, "one supervisor can host many graphs: add them to its configuration and send it SIGHUP");
        return SLUICE_ALREADY_EXISTS;
    }
    if (unlink(path) != 0 && errno != ENOENT)
        return pf_fail_errno(err, errno, "removing an old socket");
    return SLUICE_OK;
}

sluice_status pf_socket_listen(const char *path, uint32_t mode, int *ret_listener, sluice_error *err)
{
    struct sockaddr_un address;
    sluice_status status = SLUICE_OK;
    PF_TRY(fill_address(path, &address, err));
    PF_TRY(clear_path(path, &address, err));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return pf_fail_errno(err, errno, "opening a socket");
    mode_t before = umask(0777); /* nobody connects before its mode is what it should be */
    int bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
    int bind_error = errno;
    (void)umask(before);
    if (bound != 0)
        status = pf_fail_private(err, bind_error == EACCES ? SLUICE_PERMISSION : SLUICE_USAGE,
                                 "the socket cannot be made at its path", "%s: %s", path, strerrordesc_np(bind_error));
    else if (listen(fd, BACKLOG) != 0 || chmod(path, mode) != 0)
        status = pf_fail_errno(err, errno, "listening at a socket");
    if (status != SLUICE_OK)
        (void)close(fd);
    else
        *ret_listener = fd;
    return status;
}

sluice_status pf_socket_listen_local(const char *place, int *ret_listener, sluice_error *err)
{
    const char *colon = strrchr(place, ':');
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int on = 1;
    sluice_status status = SLUICE_OK;
    if (!colon)
        return pf_fail(err, SLUICE_USAGE, "the place of the HTTP server is not understood");
    bool is_six = place[0] == '[';
    uint16_t port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    four.sin_port = six.sin6_port = port;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return pf_fail_errno(err, errno, "opening a socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bound = is_six ? bind(fd, (const struct sockaddr *)&six, sizeof six)
                       : bind(fd, (const struct sockaddr *)&four, sizeof four);
    if (bound != 0)
        status = pf_fail(err, errno == EADDRINUSE ? SLUICE_ALREADY_EXISTS : SLUICE_USAGE,
                         "the HTTP server cannot listen: %s", strerrordesc_np(errno));
    else if (listen(fd, BACKLOG) != 0)
        status = pf_fail_errno(err, errno, "listening at a socket");
    if (status != SLUICE_OK)
        (void)close(fd);
    else
        *ret_listener = fd;
    return status;
}

void pf_socket_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path);
}

static bool find_peer(int fd, pf_peer *ret_peer)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return false;
    *ret_peer = (pf_peer){.user = who.uid, .group = who.gid, .pid = who.pid};
    return true;
}

sluice_status pf_socket_accept(int listener, int *ret_fd, pf_peer *ret_peer, sluice_error *err)
{
    *ret_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (*ret_fd < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == EPERM)
            return SLUICE_OK;
        return pf_fail_errno(err, errno, "taking a connection");
    }
    if (!find_peer(*ret_fd, ret_peer))
        pf_descriptor_close(ret_fd);
    return SLUICE_OK;
}

sluice_status pf_socket_connect(const char *path, int *ret_fd, pf_peer *ret_peer, sluice_error *err)
{
    struct sockaddr_un address;
    PF_TRY(fill_address(path, &address, err));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return pf_fail_errno(err, errno, "opening a socket");
    if (connect_to(fd, &address) == 0 && find_peer(fd, ret_peer)) {
        *ret_fd = fd;
        return SLUICE_OK;
    }
    int error_number = errno;
    (void)close(fd);
    if (error_number == EACCES || error_number == EPERM)
        return pf_fail_private(err, SLUICE_PERMISSION, "this user may not use the supervisor's socket",
                               "%s: this user may not connect", path);
    return pf_fail_private(err, SLUICE_NOT_FOUND, "no supervisor listens at the socket",
                           "%s: no supervisor listens here", path);
}

static sluice_status never_wait(int fd, sluice_error *err)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return pf_fail_errno(err, errno, "setting up a descriptor");
    return SLUICE_OK;
}

static sluice_status set_up_ends(int ends[2], sluice_error *err)
{
    sluice_status status = never_wait(ends[0], err);
    if (status != SLUICE_OK) {
        pf_descriptor_close(&ends[0]);
        pf_descriptor_close(&ends[1]);
    }
    return status;
}

sluice_status pf_socket_pair(int ret_ends[2], sluice_error *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_ends) != 0)
        return pf_fail_errno(err, errno, "making a channel");
    return set_up_ends(ret_ends, err);
}

sluice_status pf_pipe_make(int ret_ends[2], sluice_error *err)
{
    if (pipe2(ret_ends, O_CLOEXEC) != 0)
        return pf_fail_errno(err, errno, "making a pipe");
    return set_up_ends(ret_ends, err);
}

sluice_status pf_socket_send(int fd, const void *bytes, size_t length, const int *descriptors, uint32_t count,
                             size_t *ret_done, sluice_error *err)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * PF_SOCKET_DESCRIPTORS_MAX)];
    } control;
    *ret_done = 0;
    PF_ALWAYS(count <= PF_SOCKET_DESCRIPTORS_MAX);
    while (*ret_done < length) {
        union {
            const void *given;
            void *wanted; /* an iovec knows no const */
        } from = {.given = (const char *)bytes + *ret_done};
        struct iovec part = {.iov_base = from.wanted, .iov_len = length - *ret_done};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (count > 0) {
            memset(&control, 0, sizeof control);
            message.msg_control = control.room;
            message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(sizeof(int) * count);
            memcpy(CMSG_DATA(head), descriptors, sizeof(int) * count);
        }
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return SLUICE_OK;
        if (sent < 0)
            return pf_fail_errno(err, errno, "sending to another process");
        *ret_done += (size_t)sent;
        count = 0;
    }
    return SLUICE_OK;
}

static void take_descriptors(struct msghdr *message, int *ret_descriptors, uint32_t room, uint32_t *ret_count,
                             bool *ret_lost)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (*ret_count < room) {
                ret_descriptors[(*ret_count)++] = fd;
            } else {
                (void)close(fd);
                *ret_lost = true;
            }
        }
    }
    *ret_lost |= (message->msg_flags & MSG_CTRUNC) != 0;
}

sluice_status pf_socket_receive(int fd, void *bytes, size_t room, int *ret_descriptors, uint32_t descriptor_room,
                                uint32_t *ret_count, bool *ret_lost, size_t *ret_got, bool *ret_again,
                                sluice_error *err)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * PF_SOCKET_DESCRIPTORS_MAX)];
    } control;
    struct iovec part = {.iov_base = bytes, .iov_len = room};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    *ret_count = 0;
    *ret_got = 0;
    *ret_again = *ret_lost = false;
    do {
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        *ret_again = true;
        return SLUICE_OK;
    }
    if (got < 0 && errno == ECONNRESET)
        return SLUICE_OK; /* closed, with something unread */
    if (got < 0)
        return pf_fail_errno(err, errno, "receiving from another process");
    take_descriptors(&message, ret_descriptors, descriptor_room, ret_count, ret_lost);
    *ret_got = (size_t)got;
    return SLUICE_OK;
}

sluice_status pf_pipe_read(int fd, void *bytes, size_t room, size_t *ret_got, bool *ret_again, sluice_error *err)
{
    ssize_t got;
    *ret_got = 0;
    *ret_again = false;
    do {
        got = read(fd, bytes, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        *ret_again = true;
        return SLUICE_OK;
    }
    if (got < 0)
        return pf_fail_errno(err, errno, "reading a pipe");
    *ret_got = (size_t)got;
    return SLUICE_OK;
}

void pf_socket_finish(int fd)
{
    (void)shutdown(fd, SHUT_WR);
}

sluice_status pf_descriptor_become(int fd, int target, sluice_error *err)
{
    if (dup2(fd, target) < 0)
        return pf_fail_errno(err, errno, "placing a descriptor");
    return SLUICE_OK;
}

uint32_t pf_user(void)
{
    return geteuid();
}

sluice_status pf_working_folder(int *ret_fd, sluice_error *err)
{
    *ret_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 ? SLUICE_OK : pf_fail_errno(err, errno, "opening the working folder");
}

sluice_status pf_working_folder_set(int fd, sluice_error *err)
{
    return fchdir(fd) == 0 ? SLUICE_OK : pf_fail_errno(err, errno, "entering a working folder");
}

sluice_status pf_folder_identity(const char *path, uint64_t *ret_device, uint64_t *ret_inode, bool *ret_open,
                                 sluice_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return pf_fail_errno(err, errno, "looking at a folder");
    if (!S_ISDIR(st.st_mode))
        return pf_fail(err, SLUICE_NOT_FOUND, "a path names no folder");
    *ret_device = st.st_dev;
    *ret_inode = st.st_ino;
    *ret_open = access(path, R_OK | X_OK) == 0;
    return SLUICE_OK;
}

static uint64_t counted; /* nftw has no context */

static int count_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)path;
    (void)where;
    if (kind == FTW_F || kind == FTW_D)
        counted += (uint64_t)st->st_blocks * 512;
    return 0;
}

uint64_t pf_folder_bytes(const char *path)
{
    counted = 0;
    (void)nftw(path, count_entry, 16, FTW_PHYS | FTW_MOUNT);
    return counted;
}
