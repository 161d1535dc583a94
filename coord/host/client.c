/*
 * Connections to the control socket (see coord/host/host.h).
 *
 * A client is closed when it has closed its own side and everything is answered, and at once when it breaks a rule. Its
 * jobs go on. Descriptors that came wait for the line that names them.
 */
#include "coord/host/host.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define READ_STEP 65536u
#define SECOND_NS INT64_C(1000000000)
#define BURST_NS  SECOND_NS /* what a silent client may send at once: the allowance of a second */

static uint32_t tag_of(const host_client *client)
{
    return HOST_TAG(HOST_TAG_CLIENT, client->slot);
}

static void listen_to(host_server *host, host_client *client)
{
    bool writes = client->out.length > client->sent;
    bool reads = !client->closed && !client->pending && client->out.length - client->sent <= HOST_UNSENT_SLOW;
    if (reads == client->reads && writes == client->writes)
        return;
    client->reads = reads;
    client->writes = writes;
    pf_watch_descriptor_change(host->watch, client->fd, tag_of(client), reads, writes);
}

void host_client_touch(host_server *host, host_client *client)
{
    if (client->dirty)
        return;
    client->dirty = true;
    host->dirty[host->dirty_count++] = client;
}

/* Whoever is no operator gets at most half of the places that others leave: however many one takes, or several of them
 * together, the next one finds some. Root and the supervisor's own user get any. */
static bool has_place(const host_server *host, uint32_t user)
{
    uint32_t own = 0;
    if (user == 0 || user == pf_user())
        return true;
    for (uint32_t i = 0; i < host->config.connections; i++)
        own += host->clients[i] && host->clients[i]->peer.user == user;
    return own < (host->config.connections - (host->client_count - own)) / 2;
}

sluice_status host_clients_accept(host_server *host, sluice_error *err)
{
    pf_peer peer;
    int fd = -1;
    sluice_status status = pf_socket_accept(host->listener, &fd, &peer, err);
    if (status == SLUICE_RESOURCE_LIMIT) { /* no descriptor is left: until the next tick, others come first */
        host->deaf = true;
        pf_watch_descriptor_change(host->watch, host->listener, HOST_TAG(HOST_TAG_LISTENER, 0), false, false);
        return SLUICE_OK;
    }
    if (status != SLUICE_OK || fd < 0)
        return status;
    host->connections++;
    uint32_t slot = 0;
    while (slot < host->config.connections && host->clients[slot])
        slot++;
    bool welcome = slot < host->config.connections && has_place(host, peer.user);
    host_client *client = welcome ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        host->refused_connections++;
        pf_descriptor_close(&fd);
        return SLUICE_OK;
    }
    *client = (host_client){.slot = slot,
                            .fd = fd,
                            .reads = true,
                            .peer = peer,
                            .tokens_ns = pf_monotonic_ns() - BURST_NS,
                            .told = host->changes};
    host->clients[slot] = client;
    host->client_count++;
    status = pf_watch_descriptor(host->watch, fd, tag_of(client), true, false, err);
    if (status != SLUICE_OK)
        host_client_close(host, client);
    return status;
}

static void forget_waiters(host_server *host, host_client *client)
{
    for (host_job *job = host->oldest; job && client->waits > 0; job = job->next) {
        host_waiter **at = &job->waiters;
        while (*at) {
            host_waiter *waiter = *at;
            if (waiter->client != client) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            pf_buffer_free(&waiter->id);
            free(waiter);
            client->waits--;
        }
        host_runner_pace(host, job);
    }
}

static void set_pending(host_server *host, host_client *client, bool pending)
{
    if (client->pending != pending)
        host->pending += pending ? 1u : UINT32_MAX;
    client->pending = pending;
}

void host_client_close(host_server *host, host_client *client)
{
    forget_waiters(host, client);
    set_pending(host, client, false);
    pf_watch_descriptor_forget(host->watch, client->fd);
    pf_descriptor_close(&client->fd);
    for (uint32_t i = 0; i < client->descriptor_count; i++)
        pf_descriptor_close(&client->descriptors[i]);
    pf_buffer_free(&client->in);
    pf_buffer_free(&client->out);
    host->clients[client->slot] = NULL;
    host->client_count--;
    free(client);
}

/* True while it may go on: one request costs its part of a second. */
static bool take_token(const host_server *host, host_client *client)
{
    int64_t now = pf_monotonic_ns();
    int64_t cost = SECOND_NS / host->config.requests_per_second;
    if (client->tokens_ns < now - BURST_NS)
        client->tokens_ns = now - BURST_NS;
    client->tokens_ns += cost;
    return client->tokens_ns <= now;
}

/* Whole lines that have come, as many as one turn allows: the rest is taken when others have had theirs. A line without
 * an end stays, up to the bound. */
static void take_lines(host_server *host, host_client *client)
{
    size_t start = 0, unsent = client->out.length;
    bool pending = false;
    for (uint32_t lines = 0; !client->broken && start < client->in.length; lines++) {
        const uint8_t *from = client->in.data + start;
        const uint8_t *end = memchr(from, '\n', client->in.length - start);
        if (!end)
            break;
        pending = lines == HOST_TURN_LINES || client->out.length - unsent > HOST_TURN_BYTES;
        if (pending)
            break;
        if (!take_token(host, client)) {
            client->broken = true;
            break;
        }
        host->requests++;
        host_rpc(host, client, (const char *)from, (size_t)(end - from));
        start += (size_t)(end - from) + 1;
    }
    if (start > 0) {
        memmove(client->in.data, client->in.data + start, client->in.length - start);
        client->in.length -= start;
    }
    if (client->in.length == 0 || pending)
        client->begun_ns = 0;
    else if (start > 0 || client->begun_ns == 0)
        client->begun_ns = pf_monotonic_ns();
    set_pending(host, client, pending);
    if (client->in.length > HOST_LINE_MAX || client->out.length - client->sent > HOST_UNSENT_MAX)
        client->broken = true;
}

/* The next one that has lines left and takes its answers; NULL: none. */
static host_client *find_pending(const host_server *host)
{
    for (uint32_t i = 1; host->pending > 0 && i <= host->config.connections; i++) {
        host_client *client = host->clients[(host->turn + i) % host->config.connections];
        if (client && client->pending && !client->broken && client->out.length - client->sent <= HOST_UNSENT_SLOW)
            return client;
    }
    return NULL;
}

bool host_clients_wait(const host_server *host)
{
    return find_pending(host) != NULL;
}

void host_clients_go_on(host_server *host)
{
    host_client *client = find_pending(host);
    if (!client)
        return;
    host->turn = client->slot;
    take_lines(host, client);
    host_client_touch(host, client);
}

/* What waits for the end of its line, and what a client does not take, is the supervisor's: one user has a part of it.
 */
static bool holds_too_much(const host_server *host, const host_client *client)
{
    uint64_t bytes = 0, descriptors = 0;
    for (uint32_t i = 0; i < host->config.connections; i++) {
        const host_client *other = host->clients[i];
        if (!other || other->peer.user != client->peer.user)
            continue;
        descriptors += other->descriptor_count;
        bytes += other->in.length + other->out.length;
    }
    return descriptors > HOST_HELD_MAX || bytes > HOST_HELD_BYTES;
}

static void read_some(host_server *host, host_client *client)
{
    size_t got = 0;
    bool again = false, lost = false;
    uint32_t count = 0;
    if (pf_buffer_reserve(&client->in, READ_STEP, NULL) != SLUICE_OK) {
        client->broken = true;
        return;
    }
    uint32_t room = PF_SOCKET_DESCRIPTORS_MAX - client->descriptor_count;
    sluice_status status =
        pf_socket_receive(client->fd, client->in.data + client->in.length, READ_STEP,
                          client->descriptors + client->descriptor_count, room, &count, &lost, &got, &again, NULL);
    client->descriptor_count += status == SLUICE_OK ? count : 0;
    client->broken |= status != SLUICE_OK || lost;
    if (count > 0 || client->in.length + client->out.length > READ_STEP)
        client->broken |= holds_too_much(host, client);
    if (again || client->broken)
        return;
    client->closed |= got == 0;
    client->in.length += got;
    take_lines(host, client);
}

void host_client_event(host_server *host, uint32_t slot, bool readable, bool writable)
{
    host_client *client = host->clients[slot];
    (void)writable; /* the flush tries anyway */
    if (!client)
        return;
    if (readable && !client->closed && !client->pending)
        read_some(host, client);
    host_client_touch(host, client);
}

static void send_some(host_client *client)
{
    size_t done = 0;
    if (client->out.length == client->sent)
        return;
    if (pf_socket_send(client->fd, client->out.data + client->sent, client->out.length - client->sent, NULL, 0, &done,
                       NULL) != SLUICE_OK)
        client->broken = true;
    client->sent += done;
    if (done > 0 || client->stalled_since_ns == 0)
        client->stalled_since_ns = pf_monotonic_ns();
    if (client->sent == client->out.length) {
        client->out.length = client->sent = 0;
        client->stalled_since_ns = 0;
        if (client->out.capacity > READ_STEP)
            pf_buffer_free(&client->out);
    }
}

static void flush(host_server *host, host_client *client)
{
    client->dirty = false;
    if (!client->broken)
        send_some(client);
    bool finished = client->closed && !client->pending && client->waits == 0 && client->out.length == client->sent;
    if (client->broken || finished)
        host_client_close(host, client);
    else
        listen_to(host, client);
}

void host_clients_flush(host_server *host)
{
    while (host->dirty_count > 0)
        flush(host, host->dirty[--host->dirty_count]);
}

static bool is_over(int64_t now, int64_t since_ns)
{
    return since_ns != 0 && now - since_ns > HOST_STALLED_MS * INT64_C(1000000);
}

void host_clients_tick(host_server *host, int64_t now)
{
    if (host->deaf) {
        host->deaf = false;
        pf_watch_descriptor_change(host->watch, host->listener, HOST_TAG(HOST_TAG_LISTENER, 0), true, false);
    }
    for (uint32_t i = 0; i < host->config.connections; i++) {
        host_client *client = host->clients[i];
        if (!client)
            continue;
        client->broken |= is_over(now, client->stalled_since_ns) || is_over(now, client->begun_ns);
        if (client->broken || client->stalled_since_ns != 0)
            host_client_touch(host, client);
    }
}
