/*
 * Reading the configuration of `sluice serve` (see coord/host/config.h). The first fault in the order of the checks
 * ends it.
 */
#include "coord/host/config.h"
#include "platform/local_socket.h"
#include "platform/process.h"
#include "platform/user_file.h"
#include "store/format/tree.h"
#include "store/schema/nearest.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_BYTES_MAX (UINT64_C(1) << 20)
#define CONFIG_NODES_MAX 65536u
#define NAME_MAX_BYTES   255u
#define QUOTA_LEAST      (UINT64_C(8) << 20) /* an empty graph has 4 MiB; with less it could not take a row */

typedef struct config_parser {
    const char *file;
    const char *folder;
    host_config *config;
    sluice_error *err;
} config_parser;

static sluice_status fault(const config_parser *parser, const st_node *at, const char *fmt, ...) PF_PRINTF(3, 4);

static sluice_status fault(const config_parser *parser, const st_node *at, const char *fmt, ...)
{
    char path[512], text[768], safe[80];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    st_node_path(at, path, sizeof path);
    (void)snprintf(safe, sizeof safe, "a fault in line %llu of the configuration", (unsigned long long)at->line);
    return pf_fail_private(parser->err, SLUICE_INPUT_SYNTAX, safe, "%s:%llu: %s%s%s", parser->file,
                           (unsigned long long)at->line, path, path[0] ? ": " : "", text);
}

static sluice_status expect(const config_parser *parser, const st_node *node, st_node_kind kind)
{
    if (node->kind == kind)
        return SLUICE_OK;
    return fault(parser, node, "%s was expected, not %s", st_node_kind_name(kind), st_node_kind_name(node->kind));
}

static sluice_status expect_members(const config_parser *parser, const st_node *object, const char *const *names)
{
    PF_TRY(expect(parser, object, ST_NODE_OBJECT));
    for (const st_node *member = object->first; member; member = member->next) {
        st_nearest nearest;
        bool known = false;
        st_nearest_begin(&nearest, member->name);
        for (const char *const *name = names; *name && !known; name++) {
            known = strcmp(*name, member->name) == 0;
            st_nearest_offer(&nearest, *name);
        }
        if (known)
            continue;
        sluice_status status = fault(parser, member, "unknown name");
        if (nearest.best)
            pf_hint(parser->err, "did you mean \"%s\"?", nearest.best);
        return status;
    }
    return SLUICE_OK;
}

/* A whole number from `least` to `most`; what is absent leaves *value as it is. */
static sluice_status read_number(const config_parser *parser, const st_node *object, const char *name, uint64_t least,
                                 uint64_t most, uint64_t *value)
{
    const st_node *node = st_node_member(object, name);
    char *end = NULL;
    if (!node)
        return SLUICE_OK;
    PF_TRY(expect(parser, node, ST_NODE_NUMBER));
    unsigned long long number = node->text[0] == '-' ? 0 : strtoull(node->text, &end, 10);
    if (!end || *end != '\0' || node->length > 19 || number < least || number > most)
        return fault(parser, node, "%s is not a whole number from %llu to %llu", node->text, (unsigned long long)least,
                     (unsigned long long)most);
    *value = number;
    return SLUICE_OK;
}

static sluice_status read_u32(const config_parser *parser, const st_node *object, const char *name, uint32_t least,
                              uint32_t most, uint32_t *value)
{
    uint64_t wide = *value;
    PF_TRY(read_number(parser, object, name, least, most, &wide));
    *value = (uint32_t)wide;
    return SLUICE_OK;
}

/* "512M", or a number of bytes. */
static sluice_status read_size(const config_parser *parser, const st_node *object, const char *name, uint64_t least,
                               uint64_t *value)
{
    static const char units[] = "KMGT";
    const st_node *node = st_node_member(object, name);
    char *end = NULL;
    if (!node)
        return SLUICE_OK;
    if (node->kind == ST_NODE_NUMBER)
        return read_number(parser, object, name, least, INT64_MAX, value);
    PF_TRY(expect(parser, node, ST_NODE_STRING));
    bool digit = node->text[0] >= '0' && node->text[0] <= '9';
    unsigned long long number = digit && node->length < 19 ? strtoull(node->text, &end, 10) : 0;
    const char *unit = end && *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    bool good = end && (*end == '\0' || (unit && end[1] == '\0')) && number <= (uint64_t)INT64_MAX >> shift;
    if (!good)
        return fault(parser, node, "\"%s\" is not a size such as \"512M\"", node->text);
    *value = (uint64_t)number << shift;
    if (*value < least)
        return fault(parser, node, "\"%s\" is too little: the least is %lluM", node->text,
                     (unsigned long long)(least >> 20));
    return SLUICE_OK;
}

static sluice_status copy(const config_parser *parser, const char *text, char **ret_copy)
{
    *ret_copy = strdup(text);
    return *ret_copy ? SLUICE_OK : pf_fail_memory(parser->err);
}

/* Relative paths begin at the folder of the configuration file. */
static sluice_status read_path(const config_parser *parser, const st_node *node, char **ret_path)
{
    PF_TRY(expect(parser, node, ST_NODE_STRING));
    if (node->length == 0 || strlen(node->text) != node->length)
        return fault(parser, node, "this is no path");
    if (node->text[0] == '/')
        return copy(parser, node->text, ret_path);
    size_t folder = strlen(parser->folder);
    char *path = malloc(folder + node->length + 1);
    if (!path)
        return pf_fail_memory(parser->err);
    memcpy(path, parser->folder, folder);
    memcpy(path + folder, node->text, node->length + 1);
    *ret_path = path;
    return SLUICE_OK;
}

static sluice_status read_choice(const config_parser *parser, const st_node *object, const char *name,
                                 const char *const *choices, uint32_t count, uint32_t *value)
{
    const st_node *node = st_node_member(object, name);
    if (!node)
        return SLUICE_OK;
    PF_TRY(expect(parser, node, ST_NODE_STRING));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(node->text, choices[i]) == 0) {
            *value = i;
            return SLUICE_OK;
        }
    }
    return fault(parser, node, "\"%s\" is not one of optimistic, queued, single", node->text);
}

static const char *const modes[] = {"optimistic", "queued", "single"};

const char *host_mode_name(host_mode mode)
{
    return modes[mode];
}

static sluice_status read_users(const config_parser *parser, const st_node *object, const char *name, host_users *users)
{
    const st_node *list = st_node_member(object, name);
    if (!list)
        return SLUICE_OK;
    PF_TRY(expect(parser, list, ST_NODE_ARRAY));
    if (list->count > HOST_UIDS_MAX)
        return fault(parser, list, "more than %u users", HOST_UIDS_MAX);
    for (const st_node *item = list->first; item; item = item->next) {
        char *end = NULL;
        PF_TRY(expect(parser, item, ST_NODE_NUMBER));
        unsigned long long user = item->text[0] == '-' ? UINT64_MAX : strtoull(item->text, &end, 10);
        if (!end || *end != '\0' || user >= UINT32_MAX)
            return fault(parser, item, "%s is no user id", item->text);
        users->uids[users->count++] = (uint32_t)user;
    }
    return SLUICE_OK;
}

/* Names stand in messages and in lists for people: no control characters, no edges that cannot be seen. */
static bool name_is_valid(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_BYTES || name[0] == ' ' || name[length - 1] == ' ')
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f || name[i] == '/')
            return false;
    }
    return true;
}

static sluice_status read_name(const config_parser *parser, const st_node *object, host_graph_config *graph)
{
    const st_node *node = st_node_member(object, "name");
    if (node) {
        PF_TRY(expect(parser, node, ST_NODE_STRING));
        if (!name_is_valid(node->text, node->length))
            return fault(parser, node, "a name has 1 to %u bytes, no control characters and no \"/\"", NAME_MAX_BYTES);
        return copy(parser, node->text, &graph->name);
    }
    size_t length = strlen(graph->path);
    while (length > 1 && graph->path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && graph->path[start - 1] != '/')
        start--;
    if (!name_is_valid(graph->path + start, length - start))
        return fault(parser, object, "the last part of the path is no name: give one with \"name\"");
    graph->name = strndup(graph->path + start, length - start);
    return graph->name ? SLUICE_OK : pf_fail_memory(parser->err);
}

/* ---- maintenance ---- */

static sluice_status read_branches(const config_parser *parser, const st_node *object, host_maintenance_config *into)
{
    const st_node *list = st_node_member(object, "branches");
    if (!list) {
        into->branches[0] = strdup("main");
        into->branch_count = 1;
        return into->branches[0] ? SLUICE_OK : pf_fail_memory(parser->err);
    }
    PF_TRY(expect(parser, list, ST_NODE_ARRAY));
    if (list->count == 0 || list->count > HOST_BRANCHES_MAX)
        return fault(parser, list, "1 to %u branches are looked after", HOST_BRANCHES_MAX);
    for (const st_node *item = list->first; item; item = item->next) {
        PF_TRY(expect(parser, item, ST_NODE_STRING));
        if (item->length == 0 || strlen(item->text) != item->length)
            return fault(parser, item, "this is no branch");
        PF_TRY(copy(parser, item->text, &into->branches[into->branch_count]));
        into->branch_count++;
    }
    return SLUICE_OK;
}

static sluice_status read_optimize(const config_parser *parser, const st_node *object, host_maintenance_config *into)
{
    static const char *const names[] = {"fragments", "edits", "dead_bytes", "branches", NULL};
    into->optimize = object != NULL;
    if (!object)
        return SLUICE_OK;
    PF_TRY(expect_members(parser, object, names));
    PF_TRY(read_number(parser, object, "fragments", 2, INT32_MAX, &into->fragments));
    PF_TRY(read_number(parser, object, "edits", 1, INT32_MAX, &into->edits));
    PF_TRY(read_size(parser, object, "dead_bytes", 1, &into->dead_bytes));
    if (into->fragments + into->edits + into->dead_bytes == 0)
        return fault(parser, object, "when is not said: \"fragments\", \"edits\" or \"dead_bytes\"");
    return read_branches(parser, object, into);
}

static sluice_status read_gc(const config_parser *parser, const st_node *object, host_maintenance_config *into)
{
    static const char *const names[] = {"bytes", "keep", "older_than", NULL};
    into->gc = object != NULL;
    if (!object)
        return SLUICE_OK;
    PF_TRY(expect_members(parser, object, names));
    if (!st_node_member(object, "bytes"))
        return fault(parser, object, "\"bytes\" is missing: how much it must free to be worth it");
    PF_TRY(read_size(parser, object, "bytes", 1, &into->gc_bytes));
    PF_TRY(read_number(parser, object, "keep", 1, INT64_MAX, &into->keep));
    const st_node *older = st_node_member(object, "older_than");
    if (!older)
        return SLUICE_OK;
    PF_TRY(expect(parser, older, ST_NODE_STRING));
    size_t digits = strspn(older->text, "0123456789");
    if (digits == 0 || digits > 9 || older->length != digits + 1 || !strchr("smhdw", older->text[digits]))
        return fault(parser, older, "\"%s\" is no duration: a number and s, m, h, d or w, like 30d", older->text);
    memcpy(into->older_than, older->text, digits + 2);
    return SLUICE_OK;
}

static sluice_status read_maintenance(const config_parser *parser, const st_node *graph, host_maintenance_config *into)
{
    static const char *const names[] = {"every_seconds", "optimize", "gc", NULL};
    const st_node *object = st_node_member(graph, "maintenance");
    if (!object)
        return SLUICE_OK;
    PF_TRY(expect_members(parser, object, names));
    into->every_seconds = 600;
    PF_TRY(read_number(parser, object, "every_seconds", 1, 2592000, &into->every_seconds));
    PF_TRY(read_optimize(parser, st_node_member(object, "optimize"), into));
    PF_TRY(read_gc(parser, st_node_member(object, "gc"), into));
    return into->optimize || into->gc ? SLUICE_OK : fault(parser, object, "what is not said: \"optimize\" or \"gc\"");
}

static sluice_status read_graph(const config_parser *parser, const st_node *object, host_graph_config *graph)
{
    static const char *const names[] = {"path", "name", "weight",  "max_jobs",         "queue",       "memory", "quota",
                                        "mode", "uids", "readers", "deadline_seconds", "maintenance", NULL};
    uint32_t mode = HOST_OPTIMISTIC;
    *graph = (host_graph_config){.weight = 1, .max_jobs = 4, .queue = 64};
    PF_TRY(expect_members(parser, object, names));
    const st_node *path = st_node_member(object, "path");
    if (!path)
        return fault(parser, object, "\"path\" is missing");
    PF_TRY(read_path(parser, path, &graph->path));
    PF_TRY(read_name(parser, object, graph));
    PF_TRY(read_u32(parser, object, "weight", 1, HOST_WEIGHT_MAX, &graph->weight));
    PF_TRY(read_u32(parser, object, "max_jobs", 1, HOST_JOBS_MAX, &graph->max_jobs));
    PF_TRY(read_u32(parser, object, "queue", 1, HOST_QUEUE_MAX, &graph->queue));
    PF_TRY(read_size(parser, object, "memory", UINT64_C(64) << 20, &graph->memory));
    PF_TRY(read_size(parser, object, "quota", QUOTA_LEAST, &graph->quota));
    PF_TRY(read_number(parser, object, "deadline_seconds", 0, 31536000, &graph->deadline_seconds));
    PF_TRY(read_choice(parser, object, "mode", modes, sizeof modes / sizeof modes[0], &mode));
    graph->mode = (host_mode)mode;
    PF_TRY(read_maintenance(parser, object, &graph->maintenance));
    PF_TRY(read_users(parser, object, "readers", &graph->readers));
    return read_users(parser, object, "uids", &graph->users);
}

static sluice_status check_twins(const config_parser *parser, const st_node *list)
{
    const host_config *config = parser->config;
    const st_node *item = list->first;
    for (uint32_t i = 0; item && i < config->graph_count; i++, item = item->next) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(config->graphs[i].path, config->graphs[j].path) == 0)
                return fault(parser, item, "this path is the path of graphs[%u], too", j);
            if (strcmp(config->graphs[i].name, config->graphs[j].name) == 0)
                return fault(parser, item, "the name \"%s\" is the name of graphs[%u], too", config->graphs[i].name, j);
        }
    }
    return SLUICE_OK;
}

static sluice_status read_graphs(const config_parser *parser, const st_node *root)
{
    const st_node *list = st_node_member(root, "graphs");
    uint32_t at = 0;
    if (!list)
        return fault(parser, root, "\"graphs\" is missing");
    PF_TRY(expect(parser, list, ST_NODE_ARRAY));
    if (list->count > HOST_GRAPHS_MAX)
        return fault(parser, list, "more than %u graphs", HOST_GRAPHS_MAX);
    parser->config->graphs = calloc((size_t)list->count + 1, sizeof *parser->config->graphs);
    if (!parser->config->graphs)
        return pf_fail_memory(parser->err);
    parser->config->graph_count = list->count;
    for (const st_node *item = list->first; item; item = item->next)
        PF_TRY(read_graph(parser, item, &parser->config->graphs[at++]));
    return check_twins(parser, list);
}

static sluice_status read_mode(const config_parser *parser, const st_node *root)
{
    const st_node *node = st_node_member(root, "socket_mode");
    char *end = NULL;
    if (!node)
        return SLUICE_OK;
    PF_TRY(expect(parser, node, ST_NODE_STRING));
    unsigned long mode = node->text[0] == '0' ? strtoul(node->text, &end, 8) : 0;
    if (!end || *end != '\0' || (mode & ~0666ul) != 0 || (mode & 0600) != 0600)
        return fault(parser, node, "\"%s\" is not one of \"0600\", \"0660\", \"0666\"", node->text);
    parser->config->socket_mode = (uint32_t)mode;
    return SLUICE_OK;
}

static sluice_status read_http(const config_parser *parser, const st_node *root)
{
    const st_node *node = st_node_member(root, "http");
    if (!node)
        return SLUICE_OK;
    PF_TRY(expect(parser, node, ST_NODE_STRING));
    const char *colon = strrchr(node->text, ':');
    if (!colon || strchr(node->text, '/'))
        return read_path(parser, node, &parser->config->http);
    size_t host = (size_t)(colon - node->text);
    char *end = NULL;
    unsigned long port = strtoul(colon + 1, &end, 10);
    bool local =
        (host == 9 && memcmp(node->text, "127.0.0.1", 9) == 0) || (host == 5 && memcmp(node->text, "[::1]", 5) == 0);
    if (!local || end == colon + 1 || *end != '\0' || port > 65535)
        return fault(parser, node, "\"%s\" is neither 127.0.0.1:PORT nor [::1]:PORT nor the path of a socket",
                     node->text);
    return copy(parser, node->text, &parser->config->http);
}

static sluice_status read_root(const config_parser *parser, const st_node *root)
{
    static const char *const names[] = {
        "socket",          "socket_mode", "http",   "workers", "connections", "requests_per_second",
        "stopped_seconds", "http_names",  "graphs", "log",     NULL};
    host_config *config = parser->config;
    PF_TRY(expect_members(parser, root, names));
    const st_node *socket = st_node_member(root, "socket");
    if (!socket)
        return fault(parser, root, "\"socket\" is missing");
    PF_TRY(read_path(parser, socket, &config->socket));
    if (strlen(config->socket) > PF_SOCKET_PATH_MAX)
        return fault(parser, socket, "the path of a socket has at most %u bytes", PF_SOCKET_PATH_MAX);
    PF_TRY(read_mode(parser, root));
    PF_TRY(read_http(parser, root));
    const st_node *http_names = st_node_member(root, "http_names");
    if (http_names)
        PF_TRY(expect(parser, http_names, ST_NODE_BOOL));
    config->http_names = http_names && http_names->boolean;
    const st_node *log = st_node_member(root, "log");
    if (log)
        PF_TRY(expect(parser, log, ST_NODE_STRING));
    config->log_json = log && strcmp(log->text, "json") == 0;
    if (log && !config->log_json && strcmp(log->text, "logfmt") != 0)
        return fault(parser, log, "\"%s\" is neither logfmt nor json", log->text);
    PF_TRY(read_u32(parser, root, "workers", 1, HOST_WORKERS_MAX, &config->workers));
    PF_TRY(read_u32(parser, root, "connections", 1, HOST_CONNECTIONS_MAX, &config->connections));
    PF_TRY(read_u32(parser, root, "requests_per_second", 1, 1000000, &config->requests_per_second));
    PF_TRY(read_u32(parser, root, "stopped_seconds", 0, 86400, &config->stopped_seconds));
    return read_graphs(parser, root);
}

sluice_status host_config_parse(const char *file, const char *folder, const char *text, size_t length,
                                host_config *ret_config, sluice_error *err)
{
    st_tree *tree = NULL;
    const char *problem = NULL;
    uint64_t line = 0;
    unsigned processors = pf_processors();
    *ret_config = (host_config){.socket_mode = 0600,
                                .workers = processors < HOST_WORKERS_MAX ? processors : HOST_WORKERS_MAX,
                                .connections = 1024,
                                .requests_per_second = 10000,
                                .stopped_seconds = 30};
    sluice_status status = st_tree_parse(text, length, CONFIG_NODES_MAX, &tree, &problem, &line, err);
    if (status == SLUICE_INPUT_SYNTAX)
        return pf_fail_private(err, SLUICE_INPUT_SYNTAX, "the configuration is not JSON", "%s:%llu: %s", file,
                               (unsigned long long)line, problem);
    if (status != SLUICE_OK)
        return status;
    const config_parser parser = {.file = file, .folder = folder, .config = ret_config, .err = err};
    status = read_root(&parser, st_tree_root(tree));
    st_tree_free(tree);
    if (status != SLUICE_OK)
        host_config_free(ret_config);
    return status;
}

sluice_status host_config_read(const char *file, host_config *ret_config, sluice_error *err)
{
    pf_buffer text = {0};
    char *folder = NULL;
    sluice_status status;
    *ret_config = (host_config){0};
    PF_GOTO(status, done, pf_path_folder(file, &folder, err));
    PF_GOTO(status, done, pf_input_read_all(file, CONFIG_BYTES_MAX, &text, err));
    status = host_config_parse(file, folder, text.data ? (const char *)text.data : "", text.length, ret_config, err);
done:
    free(folder);
    pf_buffer_free(&text);
    return status;
}

void host_graph_config_free(host_graph_config *config)
{
    for (uint32_t i = 0; i < config->maintenance.branch_count; i++)
        free(config->maintenance.branches[i]);
    free(config->path);
    free(config->name);
    *config = (host_graph_config){0};
}

void host_config_free(host_config *config)
{
    for (uint32_t i = 0; config->graphs && i < config->graph_count; i++)
        host_graph_config_free(&config->graphs[i]);
    free(config->graphs);
    free(config->socket);
    free(config->http);
    *config = (host_config){0};
}
