/*
 * Unix stream sockets, pipes and pairs between processes of this machine: the control socket of a supervisor, and its
 * channels to the processes that it starts.
 *
 * Descriptors are close-on-exec and, but for those of pf_socket_connect, never wait: what cannot be done at once is
 * told by *ret_done = 0 or *ret_again. Who is at the other end of a connection is said by the kernel, as of its
 * connect. Descriptors that are sent ride on the first byte of a message; those that are received are the caller's to
 * close.
 */
#ifndef PLATFORM_LOCAL_SOCKET_H
#define PLATFORM_LOCAL_SOCKET_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PF_SOCKET_PATH_MAX        107u /* bytes of a socket's path */
#define PF_SOCKET_DESCRIPTORS_MAX 64u  /* that one message carries */

typedef struct pf_peer {
    uint32_t user, group;
    int64_t pid;
} pf_peer;

/* Listens at the path, whose permission bits are `mode`. A socket that nobody listens at any more is replaced;
 * ALREADY_EXISTS when somebody does, or when the path is something else. */
sluice_status pf_socket_listen(const char *path, uint32_t mode, int *ret_listener, sluice_error *err);
/* Listens at ADDRESS:PORT of this machine's loopback ("127.0.0.1:9187", "[::1]:9187"; port 0: any). ALREADY_EXISTS when
 * somebody listens there. */
sluice_status pf_socket_listen_local(const char *place, int *ret_listener, sluice_error *err);
/* Removes the path when it is a socket. */
void pf_socket_remove(const char *path);
/* The next connection; *ret_fd -1 when none waits (or its client is gone again). */
sluice_status pf_socket_accept(int listener, int *ret_fd, pf_peer *ret_peer, sluice_error *err);
/* NOT_FOUND when nobody listens there, PERMISSION when this user may not. The descriptor waits in its calls. *ret_peer:
 * who listens. */
sluice_status pf_socket_connect(const char *path, int *ret_fd, pf_peer *ret_peer, sluice_error *err);

/* Two connected ends; [0] never waits, [1] does. */
sluice_status pf_socket_pair(int ret_ends[2], sluice_error *err);
/* [0]: reads, never waits; [1]: writes, and waits. */
sluice_status pf_pipe_make(int ret_ends[2], sluice_error *err);

/* Sends what can be sent now (all, where the descriptor waits); descriptors go with the first byte. IO when the other
 * end is gone. */
sluice_status pf_socket_send(int fd, const void *bytes, size_t length, const int *descriptors, uint32_t count,
                             size_t *ret_done, sluice_error *err);
/* What is there, up to `room` bytes and `descriptor_room` descriptors (more are closed, and *ret_lost is set).
 * *ret_again: nothing now; *ret_got 0 without that: the other end has closed. */
sluice_status pf_socket_receive(int fd, void *bytes, size_t room, int *ret_descriptors, uint32_t descriptor_room,
                                uint32_t *ret_count, bool *ret_lost, size_t *ret_got, bool *ret_again,
                                sluice_error *err);
/* The same of a pipe. */
sluice_status pf_pipe_read(int fd, void *bytes, size_t room, size_t *ret_got, bool *ret_again, sluice_error *err);
/* No more will be sent. */
void pf_socket_finish(int fd);

void pf_descriptor_close(int *fd); /* -1 allowed, and left behind */
/* `fd` under the number `target`, which is not closed on exec; `fd` stays. */
sluice_status pf_descriptor_become(int fd, int target, sluice_error *err);

/* Effective user of this process. */
uint32_t pf_user(void);
/* The folder that relative paths begin at, as a descriptor to hand over; and the other way round. */
sluice_status pf_working_folder(int *ret_fd, sluice_error *err);
sluice_status pf_working_folder_set(int fd, sluice_error *err);
/* Which folder a path names, links not followed at its end, and whether this user may look into it. NOT_FOUND. */
sluice_status pf_folder_identity(const char *path, uint64_t *ret_device, uint64_t *ret_inode, bool *ret_open,
                                 sluice_error *err);

/* Bytes of disk below a folder, at this moment; what vanishes meanwhile does not count. */
uint64_t pf_folder_bytes(const char *path);

#endif
