/*
 * A client of a supervisor (see coord/host/call.h). One request at a time.
 */
#include "coord/host/call.h"
#include "coord/host/host.h"
#include "platform/check.h"
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (UINT32_C(64) << 20) /* bytes of one line of the supervisor */
#define STEP       65536u
#define TAG_SOCKET 1u

struct co_call {
    int fd;
    pf_buffer in;
    size_t taken; /* of `in`: lines that were looked at */
};

sluice_status co_call_open(const char *socket, bool hinted, co_call **ret_call, sluice_error *err)
{
    int fd = -1;
    pf_peer peer = {0};
    PF_TRY(pf_socket_connect(socket, &fd, &peer, err));
    if (hinted && peer.user != pf_user() && peer.user != 0) {
        pf_descriptor_close(&fd);
        return pf_fail(err, SLUICE_NOT_FOUND, "another user listens at the socket");
    }
    co_call *call = calloc(1, sizeof *call);
    if (!call) {
        pf_descriptor_close(&fd);
        return pf_fail_memory(err);
    }
    call->fd = fd;
    *ret_call = call;
    return SLUICE_OK;
}

void co_call_close(co_call *call)
{
    if (!call)
        return;
    pf_descriptor_close(&call->fd);
    pf_buffer_free(&call->in);
    free(call);
}

/* ---- requests ---- */

static void begin(st_json *json, pf_buffer *buffer, const char *method)
{
    st_json_begin(json, buffer);
    st_json_object(json);
    st_json_name(json, "jsonrpc");
    st_json_text(json, "2.0");
    st_json_name(json, "id");
    st_json_number(json, 1);
    st_json_name(json, "method");
    st_json_text(json, method);
    st_json_name(json, "params");
}

static void put_names(st_json *json, const char *name, const char *const *texts, uint32_t count)
{
    st_json_name(json, name);
    st_json_array(json);
    for (uint32_t i = 0; i < count; i++)
        st_json_text(json, texts[i]);
    st_json_array_end(json);
}

static void put_flag(st_json *json, const char *name, bool value)
{
    if (!value)
        return;
    st_json_name(json, name);
    st_json_bool(json, true);
}

static sluice_status encode(const co_call_job *job, pf_buffer *buffer, sluice_error *err)
{
    st_json json;
    begin(&json, buffer, "submit");
    st_json_object(&json);
    if (job->inode != 0) {
        st_json_name(&json, "device");
        st_json_unsigned(&json, job->device);
        st_json_name(&json, "inode");
        st_json_unsigned(&json, job->inode);
    } else {
        st_json_name(&json, "graph");
        st_json_text(&json, job->graph);
    }
    st_json_name(&json, "command");
    st_json_text(&json, job->command);
    put_names(&json, "words", (const char *const *)job->words, job->word_count);
    if (job->input_count > 0)
        put_names(&json, "inputs", job->inputs, job->input_count);
    put_flag(&json, "folder", job->folder >= 0);
    put_flag(&json, "once", job->once);
    put_flag(&json, "terminal", job->terminal);
    put_flag(&json, "stream", job->streams);
    if (!pf_id_is_nil(&job->operation)) {
        st_json_name(&json, "operation_id");
        st_json_id(&json, &job->operation);
    }
    if (job->workers > 0) {
        st_json_name(&json, "workers");
        st_json_unsigned(&json, job->workers);
    }
    if (job->text) {
        st_json_name(&json, "text");
        st_json_bytes_text(&json, job->text, job->text_length);
    }
    st_json_object_end(&json);
    st_json_object_end(&json);
    return st_json_end(&json, true, err);
}

bool co_call_fits(const co_call_job *job)
{
    pf_buffer line = {0};
    bool fits = encode(job, &line, NULL) == SLUICE_OK && line.length < HOST_LINE_MAX;
    pf_buffer_free(&line);
    return fits;
}

static sluice_status send_line(co_call *call, const pf_buffer *line, const int *descriptors, uint32_t count,
                               sluice_error *err)
{
    size_t done = 0;
    return pf_socket_send(call->fd, line->data, line->length, descriptors, count, &done, err);
}

/* ---- answers ---- */

static sluice_status fail_lost(sluice_error *err)
{
    (void)pf_fail(err, SLUICE_IO, "the supervisor ended the connection");
    if (err)
        err->committed = err->acknowledged = SLUICE_UNKNOWN;
    pf_hint(err, "the same request with the same --op-id tells what became of it; without one, see `sluice log GRAPH`");
    return SLUICE_IO;
}

/* More bytes of the supervisor. */
static sluice_status read_more(co_call *call, sluice_error *err)
{
    size_t got = 0;
    uint32_t count = 0;
    bool again = false, lost = false;
    if (call->taken > 0) {
        memmove(call->in.data, call->in.data + call->taken, call->in.length - call->taken);
        call->in.length -= call->taken;
        call->taken = 0;
    }
    if (call->in.length > ANSWER_MAX)
        return pf_fail(err, SLUICE_IO, "the supervisor's answer has no end");
    PF_TRY(pf_buffer_reserve(&call->in, STEP, err));
    PF_TRY(
        pf_socket_receive(call->fd, call->in.data + call->in.length, STEP, NULL, 0, &count, &lost, &got, &again, err));
    if (got == 0)
        return fail_lost(err);
    call->in.length += got;
    return SLUICE_OK;
}

/* The next whole line that has come, as a tree; NULL: none. */
static sluice_status next_line(co_call *call, st_tree **ret_tree, sluice_error *err)
{
    const char *problem = NULL;
    uint64_t number = 0;
    const uint8_t *from = call->in.data + call->taken;
    const uint8_t *end = call->in.length > call->taken ? memchr(from, '\n', call->in.length - call->taken) : NULL;
    *ret_tree = NULL;
    if (!end)
        return SLUICE_OK;
    call->taken += (size_t)(end - from) + 1;
    if (st_tree_parse((const char *)from, (size_t)(end - from), UINT32_MAX, ret_tree, &problem, &number, err) ==
        SLUICE_OK)
        return SLUICE_OK;
    return pf_fail(err, SLUICE_IO, "the supervisor's answer is not JSON");
}

static const char *text_of(const st_node *object, const char *name)
{
    const st_node *node = object ? st_node_member(object, name) : NULL;
    return node && node->kind == ST_NODE_STRING ? node->text : "";
}

static sluice_truth truth_of(const st_node *object, const char *name)
{
    const st_node *node = st_node_member(object, name);
    return node && node->kind == ST_NODE_BOOL ? (node->boolean ? SLUICE_TRUE : SLUICE_FALSE) : SLUICE_UNKNOWN;
}

static sluice_status code_named(const char *name)
{
    static const sluice_status codes[] = {
#define CODE(code, exit, retryable, action) SLUICE_##code,
        SLUICE_CODES(CODE)
#undef CODE
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(sluice_status_name(codes[i]), name) == 0)
            return codes[i];
    }
    return SLUICE_INTERNAL;
}

static sluice_status take_error(const st_node *error, sluice_error *err)
{
    const st_node *data = st_node_member(error, "data");
    const char *text = text_of(data, "text");
    if (!data || data->kind != ST_NODE_OBJECT)
        return pf_fail(err, SLUICE_INTERNAL, "the supervisor refused the request: %s", text_of(error, "message"));
    sluice_status code = code_named(text_of(data, "code"));
    (void)pf_fail_private(err, code, text_of(error, "message"), "%s", text[0] ? text : text_of(error, "message"));
    if (text_of(data, "hint")[0])
        pf_hint(err, "%s", text_of(data, "hint"));
    if (err) {
        pf_id id;
        err->committed = truth_of(data, "committed");
        err->acknowledged = truth_of(data, "acknowledged");
        if (pf_id_parse(text_of(data, "operation_id"), &id))
            pf_id_text(&id, err->operation_id);
        if (pf_id_parse(text_of(data, "commit_id"), &id))
            pf_id_text(&id, err->commit_id);
    }
    return code;
}

/* ---- one answer ---- */

static sluice_status call_once(co_call *call, const pf_buffer *line, st_tree **ret_tree, sluice_error *err)
{
    PF_TRY(send_line(call, line, NULL, 0, err));
    *ret_tree = NULL;
    for (;;) {
        PF_TRY(next_line(call, ret_tree, err));
        if (*ret_tree)
            return SLUICE_OK;
        PF_TRY(read_more(call, err));
    }
}

sluice_status co_call_ask(co_call *call, const char *method, const char *params, st_tree **ret_tree,
                          const st_node **ret_result, sluice_error *err)
{
    st_json json;
    pf_buffer line = {0};
    sluice_status status;
    *ret_tree = NULL;
    begin(&json, &line, method);
    if (params)
        st_json_raw(&json, params, strlen(params));
    else
        st_json_raw(&json, "{}", 2);
    st_json_object_end(&json);
    PF_GOTO(status, done, st_json_end(&json, true, err));
    PF_GOTO(status, done, call_once(call, &line, ret_tree, err));
    const st_node *root = st_tree_root(*ret_tree);
    const st_node *error = root->kind == ST_NODE_OBJECT ? st_node_member(root, "error") : NULL;
    *ret_result = root->kind == ST_NODE_OBJECT ? st_node_member(root, "result") : NULL;
    if (error)
        status = take_error(error, err);
    else if (!*ret_result)
        status = pf_fail(err, SLUICE_IO, "the supervisor's answer is none");
done:
    pf_buffer_free(&line);
    if (status != SLUICE_OK) {
        st_tree_free(*ret_tree);
        *ret_tree = NULL;
    }
    return status;
}

/* ---- a job ---- */

typedef struct call_listener {
    co_call_output_fn *output;
    void *context;
    bool done, hosted;
    int exit;
} call_listener;

static sluice_status put(const call_listener *to, unsigned stream, const st_node *text, sluice_error *err)
{
    if (!text || text->kind != ST_NODE_STRING || text->length == 0)
        return SLUICE_OK;
    return to->output(to->context, stream, text->text, text->length, err);
}

static sluice_status take_line(call_listener *to, const st_node *root, sluice_error *err)
{
    const st_node *params = st_node_member(root, "params");
    const st_node *error = st_node_member(root, "error");
    const st_node *result = st_node_member(root, "result");
    const st_node *exit = result ? st_node_member(result, "exit") : NULL;
    if (params) {
        const st_node *stream = st_node_member(params, "stream");
        return put(to, stream && strcmp(stream->text, "2") == 0 ? 2 : 1, st_node_member(params, "text"), err);
    }
    to->done = true;
    if (error) {
        sluice_status status = take_error(error, err);
        to->hosted = status != SLUICE_NOT_FOUND;
        return status;
    }
    if (!exit || exit->kind != ST_NODE_NUMBER)
        return pf_fail(err, SLUICE_IO, "the supervisor's answer is none");
    to->exit = (int)strtol(exit->text, NULL, 10);
    PF_TRY(put(to, 2, st_node_member(result, "stderr"), err));
    return put(to, 1, st_node_member(result, "stdout"), err);
}

static sluice_status take_lines(co_call *call, call_listener *to, sluice_error *err)
{
    while (!to->done) {
        st_tree *tree = NULL;
        PF_TRY(next_line(call, &tree, err));
        if (!tree)
            return SLUICE_OK;
        const st_node *root = st_tree_root(tree);
        sluice_status status = root->kind == ST_NODE_OBJECT
                                   ? take_line(to, root, err)
                                   : pf_fail(err, SLUICE_IO, "the supervisor's answer is none");
        st_tree_free(tree);
        PF_TRY(status);
    }
    return SLUICE_OK;
}

static sluice_status interrupt(co_call *call, unsigned times, sluice_error *err)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\"}\n";
    size_t done = 0;
    if (times == 1)
        return pf_socket_send(call->fd, cancel, sizeof cancel - 1, NULL, 0, &done, err);
    (void)pf_fail(err, SLUICE_CANCELLED, "left by a second signal; the supervisor goes on with the job");
    if (err)
        err->committed = err->acknowledged = SLUICE_UNKNOWN;
    pf_hint(err, "`sluice jobs` shows what becomes of it");
    return SLUICE_CANCELLED;
}

static sluice_status await_end(co_call *call, pf_watch *watch, call_listener *to, sluice_error *err)
{
    unsigned interrupts = 0;
    while (!to->done) {
        pf_event event = {0};
        PF_TRY(pf_watch_next(watch, PF_FOREVER, &event, err));
        if (event.kind == PF_EVENT_INTERRUPT)
            PF_TRY(interrupt(call, ++interrupts, err));
        if (event.kind != PF_EVENT_DESCRIPTOR)
            continue;
        PF_TRY(read_more(call, err));
        PF_TRY(take_lines(call, to, err));
    }
    return SLUICE_OK;
}

sluice_status co_call_run(co_call *call, const co_call_job *job, co_call_output_fn *output, void *context,
                          bool *ret_hosted, int *ret_exit, sluice_error *err)
{
    call_listener to = {.output = output, .context = context, .hosted = true};
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    uint32_t count = job->input_count + (job->folder >= 0);
    pf_buffer line = {0};
    pf_watch *watch = NULL;
    sluice_status status;
    *ret_hosted = true;
    if (count > PF_SOCKET_DESCRIPTORS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a hosted job has at most %u inputs", PF_SOCKET_DESCRIPTORS_MAX - 1);
    if (job->input_count > 0)
        memcpy(descriptors, job->descriptors, job->input_count * sizeof(int));
    if (job->folder >= 0)
        descriptors[job->input_count] = job->folder;
    PF_GOTO(status, done, encode(job, &line, err));
    PF_GOTO(status, done, pf_watch_open(&watch, err));
    PF_GOTO(status, done, pf_watch_descriptor(watch, call->fd, TAG_SOCKET, true, false, err));
    PF_GOTO(status, done, send_line(call, &line, descriptors, count, err));
    status = await_end(call, watch, &to, err);
    *ret_hosted = to.hosted;
    *ret_exit = to.exit;
done:
    pf_watch_close(watch);
    pf_buffer_free(&line);
    return status;
}
