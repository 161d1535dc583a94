/*
 * The control socket and the configuration of a supervisor: any bytes are refused or answered, one document a line;
 * jobs that come to be wait, since nothing is started here.
 */
#include "coord/host/host.h"

#include <stdlib.h>
#include <string.h>

static void demand(bool holds)
{
    if (!holds)
        abort();
}

static void drop_jobs(host_server *host)
{
    while (host->oldest) {
        host_job *job = host->oldest;
        if (job->state != HOST_ENDED) {
            sluice_error error = {.code = SLUICE_CANCELLED};
            host_job_end(host, job, 0, &error);
        }
        host->oldest = job->next;
        host_job_free(job);
    }
    host->newest = NULL;
}

/* Every line of an answer is a JSON object. */
static void check_answers(const pf_buffer *out)
{
    size_t start = 0;
    while (start < out->length) {
        const uint8_t *end = memchr(out->data + start, '\n', out->length - start);
        demand(end != NULL);
        size_t length = (size_t)(end - (out->data + start));
        st_tree *tree = NULL;
        const char *problem = NULL;
        uint64_t line = 0;
        demand(st_tree_parse((const char *)out->data + start, length, UINT32_MAX, &tree, &problem, &line, NULL) ==
               SLUICE_OK);
        demand(st_tree_root(tree)->kind == ST_NODE_OBJECT);
        st_tree_free(tree);
        start += length + 1;
    }
}

static void fuzz_requests(const char *text, size_t size)
{
    static const co_host_command commands[] = {{"mutate", true, CO_HOST_WRITES}, {"load", false, CO_HOST_WRITES}};
    static const co_host_program program = {.commands = commands, .command_count = 2};
    static char name[] = "g", path[] = "/g";
    static host_server host;
    static host_graph graph;
    static pf_tallies tallies;
    host_client client = {.fd = -1, .peer = {.user = pf_user()}};
    graph = (host_graph){.config = {.path = path, .name = name, .weight = 1, .max_jobs = 1, .queue = 2},
                         .ready = true,
                         .tallies = &tallies};
    host.program = &program;
    host.config = (host_config){.workers = 1};
    host.graphs = &graph;
    host.dirty_count = 0;
    while (size > 0 && !client.broken) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        host_rpc(&host, &client, text, length);
        length += end != NULL;
        text += length;
        size -= length;
    }
    drop_jobs(&host);
    demand(client.waits == 0);
    if (!client.broken)
        check_answers(&client.out);
    pf_buffer_free(&client.out);
}

static void fuzz_configuration(const char *text, size_t size)
{
    host_config config;
    sluice_error error = {0};
    sluice_status status = host_config_parse("c.json", "/", text, size, &config, &error);
    demand(status == SLUICE_OK || status == SLUICE_INPUT_SYNTAX || status == SLUICE_RESOURCE_LIMIT);
    if (status == SLUICE_OK)
        demand(config.socket && config.workers > 0);
    host_config_free(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'c')
        fuzz_configuration((const char *)data + 1, size - 1);
    else
        fuzz_requests((const char *)data + 1, size - 1);
    return 0;
}
