/*
 * JSON-RPC 2.0 over the control socket, one document a line (docs/operations.md "The control socket").
 *
 * Which graphs a user may use is asked in one place (may_use), whether it may change them in another (may_write); a
 * graph or a job of a graph that a user may not use is not there for it, in every method. A job is cancelled by its own
 * user. Nothing of a request but its bytes is believed: who sent it comes from the kernel.
 */
#include "coord/host/host.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define CODE_SYNTAX     (-32700)
#define CODE_REQUEST    (-32600)
#define CODE_METHOD     (-32601)
#define CODE_PARAMETERS (-32602)
#define CODE_FAILED     (-32000) /* data.code says what it is */

typedef struct rpc_request {
    host_server *host;
    host_client *client;
    const st_node *params; /* an object, or NULL */
    pf_buffer id;          /* as JSON; empty: a notification, which is not answered */
    const char *line;
    size_t length;
} rpc_request;

/* ---- answers ---- */

static bool is_owner(const host_client *client)
{
    return client->peer.user == 0 || client->peer.user == pf_user();
}

static bool is_among(const host_users *users, uint32_t user)
{
    for (uint32_t i = 0; i < users->count; i++) {
        if (users->uids[i] == user)
            return true;
    }
    return false;
}

static bool may_write(const host_client *client, const host_graph *graph)
{
    return is_owner(client) || is_among(&graph->config.users, client->peer.user);
}

bool host_may_use(const host_client *client, const host_graph *graph)
{
    return may_write(client, graph) || is_among(&graph->config.readers, client->peer.user);
}

static bool only_reads(const co_host_command *command, const st_node *words)
{
    static const char *const verbs[] = {"list", "show", "plan"};
    for (size_t i = 0; command->effect == CO_HOST_BY_VERB && words->first && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(words->first->text, verbs[i]) == 0)
            return true;
    }
    return command->effect == CO_HOST_READS;
}

static void begin(st_json *json, host_client *client, const pf_buffer *id)
{
    st_json_begin(json, &client->out);
    st_json_object(json);
    st_json_name(json, "jsonrpc");
    st_json_text(json, "2.0");
    st_json_name(json, "id");
    if (id && id->length > 0)
        st_json_raw(json, (const char *)id->data, id->length);
    else
        st_json_null(json);
}

/* A client that cannot be answered is of no use to anybody. */
static void end(host_server *host, host_client *client, st_json *json)
{
    st_json_object_end(json);
    if (st_json_end(json, true, NULL) != SLUICE_OK || client->out.length - client->sent > HOST_UNSENT_MAX)
        client->broken = true;
    client->told = host->changes;
    host_client_touch(host, client);
}

/* `text` and `hint` are for the terminal of the client, whose own request they speak of. */
static void put_error(st_json *json, const sluice_error *error)
{
    st_json_name(json, "error");
    st_json_object(json);
    st_json_name(json, "code");
    st_json_number(json, CODE_FAILED);
    st_json_name(json, "message");
    st_json_lossy_text(json, error->message, strlen(error->message));
    st_json_name(json, "data");
    st_json_object(json);
    st_json_name(json, "code");
    st_json_text(json, sluice_status_name(error->code));
    st_json_named_text(json, "text", error->text);
    st_json_named_text(json, "hint", error->hint);
    st_json_named_truth(json, "committed", error->committed);
    st_json_named_truth(json, "acknowledged", error->acknowledged);
    st_json_named_text(json, "operation_id", error->operation_id);
    st_json_named_text(json, "commit_id", error->commit_id);
    st_json_name(json, "retryable");
    st_json_bool(json, sluice_status_retryable(error->code));
    st_json_name(json, "action");
    st_json_text(json, sluice_action_name(sluice_status_action(error->code)));
    st_json_object_end(json);
    st_json_object_end(json);
}

static void answer_error(const rpc_request *request, const sluice_error *error)
{
    st_json json;
    if (request->id.length == 0)
        return;
    begin(&json, request->client, &request->id);
    put_error(&json, error);
    end(request->host, request->client, &json);
}

static void answer_protocol(host_server *host, host_client *client, const pf_buffer *id, int code, const char *message)
{
    st_json json;
    begin(&json, client, id);
    st_json_name(&json, "error");
    st_json_object(&json);
    st_json_name(&json, "code");
    st_json_number(&json, code);
    st_json_name(&json, "message");
    st_json_text(&json, message);
    st_json_object_end(&json);
    end(host, client, &json);
}

static void answer_parameters(const rpc_request *request, const char *message)
{
    if (request->id.length > 0)
        answer_protocol(request->host, request->client, &request->id, CODE_PARAMETERS, message);
}

/* ---- parameters ---- */

static const st_node *member(const rpc_request *request, const char *name, st_node_kind kind)
{
    const st_node *node = request->params ? st_node_member(request->params, name) : NULL;
    return node && node->kind == kind ? node : NULL;
}

static bool is_true(const rpc_request *request, const char *name, bool otherwise)
{
    const st_node *node = member(request, name, ST_NODE_BOOL);
    return node ? node->boolean : otherwise;
}

static uint64_t number_of(const rpc_request *request, const char *name)
{
    const st_node *node = member(request, name, ST_NODE_NUMBER);
    char *rest = NULL;
    unsigned long long value = node && node->text[0] != '-' ? strtoull(node->text, &rest, 10) : 0;
    return rest && *rest == '\0' && node->length < 20 ? value : 0;
}

/* The graph by its name, or by the identity of its folder; NULL: there is none for this user. */
static host_graph *find_graph(const rpc_request *request)
{
    const st_node *name = member(request, "graph", ST_NODE_STRING);
    uint64_t device = number_of(request, "device");
    uint64_t inode = number_of(request, "inode");
    for (host_graph *graph = request->host->graphs; graph; graph = graph->next) {
        bool meant = inode != 0 ? graph->inode == inode && graph->device == device
                                : name && strcmp(name->text, graph->config.name) == 0;
        if (meant && !graph->leaving && host_may_use(request->client, graph))
            return graph;
    }
    return NULL;
}

static sluice_status not_hosted(sluice_error *err)
{
    return pf_fail(err, SLUICE_NOT_FOUND, "this graph is not hosted here for this user");
}

static host_job *find_job(const rpc_request *request, sluice_error *err)
{
    const st_node *text = member(request, "job", ST_NODE_STRING);
    pf_id id;
    host_job *job = text && pf_id_parse(text->text, &id) ? host_job_find(request->host, &id) : NULL;
    bool visible = job && (job->graph ? host_may_use(request->client, job->graph)
                                      : job->user == request->client->peer.user || request->client->peer.user == 0);
    if (visible)
        return job;
    (void)pf_fail(err, SLUICE_NOT_FOUND, "no such job is known here");
    pf_hint(err, "`sluice jobs` lists them");
    return NULL;
}

/* ---- what a job says ---- */

static void put_output(st_json *json, const char *name, const pf_buffer *output)
{
    st_json_name(json, name);
    st_json_lossy_text(json, output->length > 0 ? (const char *)output->data : "", output->length);
}

/* In whole milliseconds. */
static double seconds_of(int64_t nanoseconds)
{
    int64_t milliseconds = nanoseconds / 1000000;
    return (double)milliseconds / 1000;
}

static void put_job(st_json *json, const host_job *job)
{
    int64_t now = pf_monotonic_ns();
    int64_t began = job->started_ns ? job->started_ns : job->state == HOST_ENDED ? job->ended_ns : now;
    int64_t ended = job->state == HOST_ENDED ? job->ended_ns : now;
    st_json_name(json, "job");
    st_json_id(json, &job->id);
    st_json_name(json, "graph");
    if (job->graph)
        st_json_text(json, job->graph->config.name);
    else
        st_json_null(json);
    st_json_name(json, "command");
    st_json_text(json, job->command->name);
    st_json_name(json, "state");
    st_json_text(json, host_state_name(job));
    st_json_name(json, "operation_id");
    st_json_id(json, &job->operation);
    st_json_name(json, "user");
    st_json_unsigned(json, job->user);
    st_json_name(json, "attempts");
    st_json_unsigned(json, job->attempts);
    st_json_name(json, "workers");
    st_json_unsigned(json, job->workers);
    st_json_name(json, "maintenance");
    st_json_bool(json, job->low);
    st_json_name(json, "waited_seconds");
    st_json_double(json, seconds_of(began - job->submitted_ns));
    st_json_name(json, "seconds");
    st_json_double(json, seconds_of(job->started_ns ? ended - began : 0));
}

static void answer_job(host_server *host, host_client *client, const pf_buffer *id, const host_job *job,
                       bool with_output)
{
    st_json json;
    begin(&json, client, id);
    if (job->state == HOST_ENDED && job->failed.code != SLUICE_OK) {
        put_error(&json, &job->failed);
    } else {
        st_json_name(&json, "result");
        st_json_object(&json);
        put_job(&json, job);
        if (job->state == HOST_ENDED) {
            st_json_name(&json, "exit");
            st_json_number(&json, job->exit);
        }
        if (job->state == HOST_ENDED && with_output) {
            put_output(&json, "stdout", &job->output[0]);
            put_output(&json, "stderr", &job->output[1]);
        }
        st_json_object_end(&json);
    }
    end(host, client, &json);
}

void host_rpc_ended(host_server *host, host_job *job)
{
    while (job->waiters) {
        host_waiter *waiter = job->waiters;
        job->waiters = waiter->next;
        answer_job(host, waiter->client, &waiter->id, job, !waiter->streams);
        waiter->client->waits--;
        pf_buffer_free(&waiter->id);
        free(waiter);
    }
}

static void put_notification(host_server *host, host_client *client, const host_job *job, unsigned stream,
                             const uint8_t *bytes, size_t length)
{
    st_json json;
    st_json_begin(&json, &client->out);
    st_json_object(&json);
    st_json_name(&json, "jsonrpc");
    st_json_text(&json, "2.0");
    st_json_name(&json, "method");
    st_json_text(&json, "output");
    st_json_name(&json, "params");
    st_json_object(&json);
    st_json_name(&json, "job");
    st_json_id(&json, &job->id);
    st_json_name(&json, "stream");
    st_json_number(&json, (int64_t)stream + 1);
    st_json_name(&json, "text");
    st_json_lossy_text(&json, bytes, length);
    st_json_object_end(&json);
    end(host, client, &json);
}

bool host_rpc_output(host_server *host, host_job *job, unsigned stream, const uint8_t *bytes, size_t length)
{
    bool slow = false;
    for (host_waiter *waiter = job->waiters; waiter; waiter = waiter->next) {
        if (waiter->streams && length > 0)
            put_notification(host, waiter->client, job, stream, bytes, length);
        slow |= waiter->streams && waiter->client->out.length - waiter->client->sent > HOST_UNSENT_SLOW;
    }
    return slow;
}

/* ---- waiting ---- */

/* The answer comes when the job has ended, which may be now. */
static sluice_status wait_for(const rpc_request *request, host_job *job, bool streams, sluice_error *err)
{
    host_client *client = request->client;
    if (request->id.length == 0)
        return SLUICE_OK;
    if (job->state == HOST_ENDED) {
        answer_job(request->host, client, &request->id, job, true);
        return SLUICE_OK;
    }
    if (client->waits >= HOST_WAITS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "%u requests of this connection wait for jobs", client->waits);
    host_waiter *waiter = calloc(1, sizeof *waiter);
    if (!waiter || pf_buffer_append(&waiter->id, request->id.data, request->id.length, err) != SLUICE_OK) {
        free(waiter);
        return pf_fail_memory(err);
    }
    waiter->client = client;
    waiter->streams = streams;
    waiter->next = job->waiters;
    job->waiters = waiter;
    client->waits++;
    for (unsigned stream = 0; streams && stream < 2; stream++) { /* what was said before */
        if (job->output[stream].length > 0)
            put_notification(request->host, client, job, stream, job->output[stream].data, job->output[stream].length);
    }
    return SLUICE_OK;
}

/* ---- methods ---- */

static const co_host_command *find_command(const host_server *host, const char *name)
{
    for (uint32_t i = 0; i < host->program->command_count; i++) {
        if (strcmp(host->program->commands[i].name, name) == 0)
            return &host->program->commands[i];
    }
    return NULL;
}

/* What makes two requests of one operation the same one. */
static sluice_status digest_of(const st_node *command, const st_node *words, const st_node *text, pf_sha256 *ret_digest,
                               sluice_error *err)
{
    pf_sha256_stream *stream = NULL;
    PF_TRY(pf_sha256_begin(&stream, err));
    pf_sha256_add(stream, command->text, command->length + 1);
    for (const st_node *word = words->first; word; word = word->next)
        pf_sha256_add(stream, word->text, word->length + 1);
    if (text)
        pf_sha256_add(stream, text->text, text->length);
    *ret_digest = pf_sha256_end(stream);
    return SLUICE_OK;
}

static bool words_are_good(const st_node *words)
{
    if (words->count > HOST_WORDS_MAX)
        return false;
    for (const st_node *word = words->first; word; word = word->next) {
        if (word->kind != ST_NODE_STRING || strlen(word->text) != word->length)
            return false;
    }
    return true;
}

static host_job *find_twin(const rpc_request *request, const host_graph *graph, const pf_id *operation,
                           const pf_sha256 *digest)
{
    for (host_job *job = request->host->newest; job; job = job->previous) {
        bool good = job->state != HOST_ENDED || (job->failed.code == SLUICE_OK && job->exit == 0 && !job->inputs);
        if (job->graph == graph && job->operation_given && pf_id_equal(&job->operation, operation) &&
            memcmp(&job->request, digest, sizeof *digest) == 0 && good)
            return job;
    }
    return NULL;
}

/* What a submit asks for, its descriptors in hand: they are the line's, whatever becomes of it. */
typedef struct rpc_order {
    const co_host_command *command;
    const st_node *name, *words, *text;
    bool has_operation;
    pf_id operation;
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    uint32_t descriptor_count;
} rpc_order;

static bool read_order(const rpc_request *request, rpc_order *order)
{
    host_client *client = request->client;
    const st_node *inputs = member(request, "inputs", ST_NODE_ARRAY);
    const st_node *given = member(request, "operation_id", ST_NODE_STRING);
    uint32_t wanted = (inputs ? inputs->count : 0) + is_true(request, "folder", false);
    bool enough = wanted <= client->descriptor_count;
    order->descriptor_count = enough ? wanted : client->descriptor_count;
    memcpy(order->descriptors, client->descriptors, order->descriptor_count * sizeof(int));
    client->descriptor_count -= order->descriptor_count;
    memmove(client->descriptors, client->descriptors + order->descriptor_count, client->descriptor_count * sizeof(int));
    order->name = member(request, "command", ST_NODE_STRING);
    order->words = member(request, "words", ST_NODE_ARRAY);
    order->text = member(request, "text", ST_NODE_STRING);
    order->command = order->name ? find_command(request->host, order->name->text) : NULL;
    order->has_operation = given != NULL;
    return enough && order->command && order->words && words_are_good(order->words) &&
           (!inputs || words_are_good(inputs)) && (!given || pf_id_parse(given->text, &order->operation));
}

/* Takes the order's descriptors over. */
static sluice_status make_job(const rpc_request *request, host_graph *graph, rpc_order *order, host_job **ret_job,
                              sluice_error *err)
{
    host_job *job = calloc(1, sizeof *job);
    if (!job)
        return pf_fail_memory(err);
    job->line = malloc(request->length + 1);
    if (!job->line) {
        free(job);
        return pf_fail_memory(err);
    }
    memcpy(job->line, request->line, request->length);
    job->line[request->length] = '\0';
    job->length = request->length;
    job->id = pf_id_new();
    job->operation = order->has_operation ? order->operation : pf_id_new();
    job->operation_given = order->has_operation;
    job->command = order->command;
    job->lane = order->command->small ? HOST_SMALL : HOST_POOL;
    job->reads = only_reads(order->command, order->words);
    job->graph = graph;
    job->user = request->client->peer.user;
    job->inputs = order->descriptor_count > 0;
    host_ledger_describe(job, order->words);
    job->once = is_true(request, "once", false);
    uint64_t workers = number_of(request, "workers");
    job->workers = workers < HOST_WORKERS_MAX ? (uint32_t)workers : HOST_WORKERS_MAX;
    uint64_t within = number_of(request, "start_within_ms");
    job->start_by_ns = within > 0 && within < 86400000 ? pf_monotonic_ns() + (int64_t)within * 1000000 : INT64_MAX;
    job->end_by_ns = INT64_MAX;
    memcpy(job->descriptors, order->descriptors, order->descriptor_count * sizeof(int));
    job->descriptor_count = order->descriptor_count;
    order->descriptor_count = 0;
    *ret_job = job;
    return SLUICE_OK;
}

static sluice_status find_or_admit(const rpc_request *request, rpc_order *order, host_job **ret_job, sluice_error *err)
{
    pf_sha256 digest;
    host_graph *graph = find_graph(request);
    if (!graph)
        return not_hosted(err);
    if (!may_write(request->client, graph) && !only_reads(order->command, order->words))
        return pf_fail(err, SLUICE_PERMISSION, "this user may read the graph, and not change it");
    PF_TRY(digest_of(order->name, order->words, order->text, &digest, err));
    *ret_job = order->has_operation ? find_twin(request, graph, &order->operation, &digest) : NULL;
    if (*ret_job)
        return SLUICE_OK;
    PF_TRY(make_job(request, graph, order, ret_job, err));
    (*ret_job)->request = digest;
    return host_job_admit(request->host, *ret_job, err);
}

static void submit(const rpc_request *request)
{
    rpc_order order = {0};
    sluice_error error = {0};
    host_job *job = NULL;
    sluice_status status = SLUICE_OK;
    if (!read_order(request, &order)) {
        answer_parameters(request, "submit takes a command that is hosted, its words, and a descriptor for each input");
    } else {
        status = find_or_admit(request, &order, &job, &error);
        if (status == SLUICE_OK && is_true(request, "wait", true))
            status = wait_for(request, job, is_true(request, "stream", false), &error);
        else if (status == SLUICE_OK && request->id.length > 0)
            answer_job(request->host, request->client, &request->id, job, false);
    }
    if (status != SLUICE_OK)
        answer_error(request, &error);
    for (uint32_t i = 0; i < order.descriptor_count; i++)
        pf_descriptor_close(&order.descriptors[i]);
}

static void watch(const rpc_request *request)
{
    sluice_error error = {0};
    host_job *job = find_job(request, &error);
    if (!job || wait_for(request, job, true, &error) != SLUICE_OK)
        answer_error(request, &error);
}

/* Without a job: whatever this connection waits for. */
static void cancel_waited(const rpc_request *request)
{
    for (host_job *job = request->host->oldest; job; job = job->next) {
        const host_waiter *waiter = job->waiters;
        while (waiter && waiter->client != request->client)
            waiter = waiter->next;
        if (waiter)
            (void)host_job_cancel(request->host, job, NULL); /* what cannot be cancelled is waited for */
    }
}

static void cancel(const rpc_request *request)
{
    sluice_error error = {0};
    st_json json;
    if (!member(request, "job", ST_NODE_STRING)) {
        cancel_waited(request);
        return;
    }
    host_job *job = find_job(request, &error);
    bool own = job && (is_owner(request->client) || job->user == request->client->peer.user);
    if (job && !own)
        (void)pf_fail(&error, SLUICE_PERMISSION, "the job is another user's");
    if (!own || host_job_cancel(request->host, job, &error) != SLUICE_OK) {
        answer_error(request, &error);
        return;
    }
    if (request->id.length == 0)
        return;
    begin(&json, request->client, &request->id);
    st_json_name(&json, "result");
    st_json_object(&json);
    put_job(&json, job);
    st_json_object_end(&json);
    end(request->host, request->client, &json);
}

/* With a graph: of that one only. */
static void list(const rpc_request *request)
{
    st_json json;
    bool one = member(request, "graph", ST_NODE_STRING) || number_of(request, "inode") != 0;
    const host_graph *only = one ? find_graph(request) : NULL;
    sluice_error error = {0};
    if (request->id.length == 0)
        return;
    if (one && !only) {
        (void)not_hosted(&error);
        answer_error(request, &error);
        return;
    }
    begin(&json, request->client, &request->id);
    st_json_name(&json, "result");
    st_json_object(&json);
    st_json_name(&json, "jobs");
    st_json_array(&json);
    for (const host_job *job = request->host->oldest; job; job = job->next) {
        if (!job->graph || (only && job->graph != only) || !host_may_use(request->client, job->graph))
            continue;
        st_json_object(&json);
        put_job(&json, job);
        st_json_object_end(&json);
    }
    st_json_array_end(&json);
    st_json_object_end(&json);
    end(request->host, request->client, &json);
}

static void status_of(const rpc_request *request)
{
    host_client *client = request->client;
    const pf_buffer *kept;
    st_json json;
    uint64_t told = client->told; /* a look is no news */
    if (request->id.length == 0)
        return;
    kept = host_status_kept(request->host, client, is_true(request, "detail", false));
    if (!kept) {
        client->broken = true;
        return;
    }
    begin(&json, client, &request->id);
    st_json_name(&json, "result");
    st_json_raw(&json, (const char *)kept->data, kept->length);
    end(request->host, client, &json);
    client->told = told;
}

/* ---- requests ---- */

static void call(rpc_request *request, const char *method)
{
    static const struct {
        const char *name;
        void (*run)(const rpc_request *request);
    } methods[] = {{"submit", submit}, {"list", list}, {"watch", watch}, {"cancel", cancel}, {"status", status_of}};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strcmp(methods[i].name, method) == 0) {
            methods[i].run(request);
            return;
        }
    }
    if (request->id.length > 0)
        answer_protocol(request->host, request->client, &request->id, CODE_METHOD,
                        "the methods are submit, list, watch, cancel and status");
}

static sluice_status read_id(const st_node *id, pf_buffer *ret_id, sluice_error *err)
{
    st_json json;
    if (!id)
        return SLUICE_OK;
    st_json_begin(&json, ret_id);
    if (id->kind == ST_NODE_STRING)
        st_json_bytes_text(&json, id->text, id->length);
    else if (id->kind == ST_NODE_NUMBER)
        st_json_raw(&json, id->text, id->length);
    else
        st_json_null(&json);
    return st_json_end(&json, false, err);
}

void host_rpc(host_server *host, host_client *client, const char *line, size_t length)
{
    rpc_request request = {.host = host, .client = client, .line = line, .length = length};
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t number = 0;
    if (st_tree_parse(line, length, HOST_NODES_MAX, &tree, &problem, &number, NULL) != SLUICE_OK) {
        answer_protocol(host, client, NULL, CODE_SYNTAX, problem ? problem : "the request is too large");
        return;
    }
    const st_node *root = st_tree_root(tree);
    bool object = root->kind == ST_NODE_OBJECT;
    const st_node *version = object ? st_node_member(root, "jsonrpc") : NULL;
    const st_node *method = object ? st_node_member(root, "method") : NULL;
    const st_node *params = object ? st_node_member(root, "params") : NULL;
    const st_node *id = object ? st_node_member(root, "id") : NULL;
    bool good = version && version->kind == ST_NODE_STRING && strcmp(version->text, "2.0") == 0 && method &&
                method->kind == ST_NODE_STRING && (!params || params->kind == ST_NODE_OBJECT) &&
                (!id || (id->kind != ST_NODE_OBJECT && id->kind != ST_NODE_ARRAY && id->length <= 256));
    if (!good) {
        answer_protocol(host, client, NULL, CODE_REQUEST, "a request is a JSON-RPC 2.0 object with named parameters");
    } else if (read_id(id, &request.id, NULL) == SLUICE_OK) {
        request.params = params;
        call(&request, method->text);
    } else {
        client->broken = true;
    }
    pf_buffer_free(&request.id);
    st_tree_free(tree);
    host_client_touch(host, client);
}
