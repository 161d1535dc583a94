/*
 * Commands by way of a supervisor (see cli/hosted.h).
 *
 * Files that a command reads are opened here, with the rights of whoever typed it, and handed over open; so a
 * supervisor reads nothing for anybody that he could not read himself. Records of a mutation travel in the request
 * itself while they are few: then a small mutation is one message there and one back.
 */
#include "cli/hosted.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/words.h"
#include "coord/fate.h"
#include "coord/host/call.h"
#include "coord/mutate.h"
#include "platform/local_socket.h"
#include "platform/terminal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HINT_MAX 4096u

typedef struct cli_handover { /* what goes over, and what has to be closed afterwards */
    co_call_job job;
    bool visible; /* the command could go by the files as well */
    pf_input *files[PF_SOCKET_DESCRIPTORS_MAX];
    const char *names[PF_SOCKET_DESCRIPTORS_MAX];
    int descriptors[PF_SOCKET_DESCRIPTORS_MAX];
    pf_buffer text;
    pf_scratch *scratch;
} cli_handover;

/* ---- what is hosted ---- */

static const co_host_command commands[] = {
    {"mutate", true, CO_HOST_WRITES},   {"load", false, CO_HOST_WRITES},    {"optimize", false, CO_HOST_WRITES},
    {"index", false, CO_HOST_WRITES},   {"gc", false, CO_HOST_WRITES},      {"merge", false, CO_HOST_WRITES},
    {"schema", false, CO_HOST_BY_VERB}, {"branch", false, CO_HOST_BY_VERB}, {"checkpoint", false, CO_HOST_BY_VERB},
    {"revert", false, CO_HOST_WRITES},  {"recover", false, CO_HOST_WRITES}, {"scan", false, CO_HOST_READS},
    {"get", false, CO_HOST_READS},      {"count", false, CO_HOST_READS},    {"neighbors", false, CO_HOST_READS},
    {"describe", false, CO_HOST_READS}, {"log", false, CO_HOST_READS},      {"show", false, CO_HOST_READS},
    {"diff", false, CO_HOST_READS},     {"status", false, CO_HOST_READS},   {"verify", false, CO_HOST_READS},
};

static bool is_hosted(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Which operand is the graph. */
static uint32_t graph_operand(const cli_command *command)
{
    return strncmp(command->operands, "GRAPH", 5) == 0 ? 0 : 1;
}

/* Does it only read? Then it goes by the files, where they can be seen: readers wait for nobody. */
static bool only_reads(const cli_run *run)
{
    const char *verb = run->arguments.operands[0];
    if (run->command->effect == CLI_READS)
        return true;
    return graph_operand(run->command) == 1 &&
           (strcmp(verb, "list") == 0 || strcmp(verb, "show") == 0 || strcmp(verb, "plan") == 0);
}

static const cli_value *value_named(const cli_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->command->option_count; i++) {
        if (run->command->options[i].name && strcmp(run->command->options[i].name, name) == 0)
            return cli_option_value(run, i);
    }
    return NULL;
}

static bool is_given(const cli_run *run, const char *name)
{
    const cli_value *value = value_named(run, name);
    return value && value->given;
}

/* ---- the client ---- */

char *cli_find_socket(const char *graph, bool *ret_hinted)
{
    const char *named = getenv("SLUICE_SOCKET");
    pf_buffer path = {0}, hint = {0};
    char *socket = NULL;
    *ret_hinted = !(named && *named);
    if (!*ret_hinted)
        return strdup(named);
    if (graph && pf_buffer_append_format(&path, NULL, "%s/cache/host%c", graph, '\0') == SLUICE_OK &&
        pf_input_read_all((const char *)path.data, HINT_MAX, &hint, NULL) == SLUICE_OK && hint.length > 0 &&
        !memchr(hint.data, '\0', hint.length))
        socket = strndup((const char *)hint.data, hint.length);
    pf_buffer_free(&path);
    pf_buffer_free(&hint);
    return socket;
}

sluice_status cli_connect(const cli_run *run, const char *given, const char *graph, co_call **ret_call,
                          sluice_error *err)
{
    bool hinted = false;
    char *socket = given ? strdup(given) : cli_find_socket(graph, &hinted);
    if (!socket) {
        (void)pf_fail(err, SLUICE_USAGE, "%s: which supervisor is meant is not said", run->command->name);
        pf_hint(err, "give --socket PATH, or set SLUICE_SOCKET");
        return SLUICE_USAGE;
    }
    sluice_status status = co_call_open(socket, hinted, ret_call, err);
    free(socket);
    return status;
}

static sluice_status add_descriptor(cli_handover *handover, const char *name, int descriptor, sluice_error *err)
{
    if (handover->job.input_count + 1 >= PF_SOCKET_DESCRIPTORS_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a hosted job has at most %u inputs", PF_SOCKET_DESCRIPTORS_MAX - 1);
    handover->names[handover->job.input_count] = name;
    handover->descriptors[handover->job.input_count++] = descriptor;
    return SLUICE_OK;
}

static sluice_status add_input(cli_handover *handover, const char *path, sluice_error *err)
{
    uint32_t at = handover->job.input_count;
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(handover->names[i], path) == 0 && pf_input_is_regular(handover->files[i]))
            return SLUICE_OK; /* one descriptor is enough */
    }
    if (at + 1 >= PF_SOCKET_DESCRIPTORS_MAX)
        return add_descriptor(handover, path, -1, err);
    PF_TRY(pf_input_open(path, &handover->files[at], err));
    handover->job.once |= !pf_input_is_regular(handover->files[at]);
    return add_descriptor(handover, path, pf_input_descriptor(handover->files[at]), err);
}

static sluice_status add_mutation(cli_handover *handover, const char *path, sluice_error *err)
{
    PF_TRY(pf_input_read_all(path, CO_MUTATE_BYTES_MAX, &handover->text, err));
    handover->job.text = handover->text.data ? (const char *)handover->text.data : "";
    handover->job.text_length = handover->text.length;
    if (co_call_fits(&handover->job))
        return SLUICE_OK;
    handover->job.text = NULL;
    PF_TRY(pf_scratch_open(&handover->scratch, err));
    PF_TRY(pf_scratch_append(handover->scratch, handover->text.data, handover->text.length, err));
    return add_descriptor(handover, path, pf_scratch_descriptor(handover->scratch), err);
}

static sluice_status add_inputs(const cli_run *run, cli_handover *handover, sluice_error *err)
{
    const cli_arguments *arguments = &run->arguments;
    if (run->command == &cli_mutate)
        return add_mutation(handover, arguments->operand_count > 1 ? arguments->operands[1] : "-", err);
    if (run->command == &cli_schema && arguments->operand_count > 2)
        return add_input(handover, arguments->operands[2], err);
    for (uint32_t i = 1; run->command == &cli_load && i < arguments->operand_count; i++) {
        const char *equals = strchr(arguments->operands[i], '=');
        if (equals && equals[1]) /* else the command says what is wrong */
            PF_TRY(add_input(handover, equals + 1, err));
    }
    return SLUICE_OK;
}

static sluice_status print_output(void *context, unsigned stream, const char *text, size_t length, sluice_error *err)
{
    cli_run *run = context;
    if (stream == 1)
        return cli_write(run, text, length, err);
    PF_TRY(pf_output_flush(run->out, err));
    (void)fwrite(text, 1, length, stderr);
    (void)fflush(stderr);
    return SLUICE_OK;
}

static void close_handover(cli_handover *handover)
{
    for (uint32_t i = 0; i < PF_SOCKET_DESCRIPTORS_MAX; i++)
        pf_input_close(handover->files[i]);
    pf_scratch_close(handover->scratch);
    pf_buffer_free(&handover->text);
    pf_descriptor_close(&handover->job.folder);
}

static sluice_status hand_over(cli_run *run, co_call *call, cli_handover *handover, sluice_error *err)
{
    bool hosted = false;
    sluice_error failed = {0};
    PF_TRY(add_inputs(run, handover, err));
    if (is_given(run, "rejects")) /* a file of the user's, written there */
        PF_TRY(pf_working_folder(&handover->job.folder, err));
    sluice_status status = co_call_run(call, &handover->job, print_output, run, &hosted, &run->served_exit, &failed);
    run->served = hosted && status == SLUICE_OK;
    if (!hosted && handover->visible) {
        run->text = handover->text; /* standard input was read already */
        handover->text = (pf_buffer){0};
        return SLUICE_OK;
    }
    if (status != SLUICE_OK && err)
        *err = failed;
    return status;
}

sluice_status cli_serve_elsewhere(cli_run *run, char *const *words, uint32_t count, sluice_error *err)
{
    const cli_command *command = run->command;
    const char *graph = run->arguments.operands[graph_operand(command)];
    const cli_value *operation = value_named(run, "op-id");
    const cli_value *workers = value_named(run, "workers");
    cli_handover handover = {.job = {.graph = graph,
                                     .command = command->name,
                                     .words = words,
                                     .word_count = count,
                                     .inputs = handover.names,
                                     .descriptors = handover.descriptors,
                                     .folder = -1,
                                     .terminal = pf_is_terminal(2),
                                     .streams = command != &cli_mutate}};
    co_call *call = NULL;
    if (!is_hosted(command->name) || (command == &cli_load && is_given(run, "infer")))
        return SLUICE_OK;
    bool hinted = false;
    bool visible = false; /* else only a supervisor can do anything with it */
    (void)pf_folder_identity(graph, &handover.job.device, &handover.job.inode, &visible, NULL);
    char *socket = visible && only_reads(run) ? NULL : cli_find_socket(visible ? graph : NULL, &hinted);
    if (!socket)
        return SLUICE_OK;
    sluice_status status = co_call_open(socket, hinted, &call, err);
    free(socket);
    if (status != SLUICE_OK)
        return visible && (status == SLUICE_NOT_FOUND || status == SLUICE_PERMISSION) ? SLUICE_OK : status;
    if (operation && operation->given)
        handover.job.operation = operation->id;
    if (workers && workers->given)
        handover.job.workers = (unsigned)workers->number;
    handover.visible = visible;
    status = hand_over(run, call, &handover, err);
    co_call_close(call);
    close_handover(&handover);
    return status;
}

/* ---- the runner ---- */

/* The supervisor writes no file for another user. */
static sluice_status check_paths(const cli_run *run, sluice_error *err)
{
    if (!run->hosted->foreign || (!is_given(run, "rejects") && !is_given(run, "schema-out")))
        return SLUICE_OK;
    (void)pf_fail(err, SLUICE_PERMISSION, "a supervisor of another user writes no file for this one");
    pf_hint(err, "without --rejects, rows that are left out are named on standard error");
    return SLUICE_PERMISSION;
}

static bool adds(const cli_command *command)
{
    return command == &cli_load || command == &cli_mutate || command == &cli_merge || command == &cli_schema ||
           command == &cli_optimize || command == &cli_index || command == &cli_revert;
}

/* What the supervisor decides, not the words: the place of the graph, the operation, limits. */
static sluice_status settle(cli_run *run, sluice_error *err)
{
    static char operation[PF_ID_TEXT];
    const co_host_task *task = run->hosted;
    PF_TRY(check_paths(run, err));
    if (task->full && adds(run->command)) {
        *err = *task->full;
        return task->full->code;
    }
    run->graph_said = run->arguments.operands[graph_operand(run->command)];
    run->arguments.operands[graph_operand(run->command)] = task->graph_path;
    for (uint32_t i = 0; i < run->command->option_count; i++) {
        const char *name = run->command->options[i].name;
        cli_value *value = &run->arguments.values[i];
        if (name && strcmp(name, "op-id") == 0 && !value->given && !only_reads(run)) {
            pf_id_text(&task->operation, operation);
            *value = (cli_value){.given = true, .text = operation, .id = task->operation};
        } else if (name && strcmp(name, "workers") == 0) {
            *value = (cli_value){.given = true, .text = "", .number = task->workers};
        } else if (name && strcmp(name, "memory") == 0 && task->memory > 0 &&
                   (!value->given || value->number > task->memory)) {
            *value = (cli_value){.given = true, .text = "", .number = task->memory};
        }
    }
    return SLUICE_OK;
}

static int run_task(co_host_task *task)
{
    return cli_run_words(task->command, task->words, task->word_count, task, settle);
}

/* Branches and checkpoints have receipts in control/, by other rules: they are asked for again. */
static co_host_fate find_fate(co_host_task *task, pf_id *ret_commit)
{
    const cli_command *command = cli_find_command(task->command);
    cli_run run = {.command = command, .hosted = task};
    const char **operands = calloc((size_t)task->word_count + 2, sizeof *operands);
    co_host_fate found = CO_FATE_UNKNOWN;
    st_graph *graph = NULL;
    co_fate fate = {0};
    if (!operands ||
        cli_parse(command->options, command->option_count, task->words, task->word_count, operands, &run.arguments,
                  NULL) != SLUICE_OK ||
        command == &cli_branch || command == &cli_checkpoint)
        goto done;
    const cli_value *branch = value_named(&run, command == &cli_merge ? "into" : "branch");
    const cli_value *operation = value_named(&run, "op-id");
    if (!operation || command->effect != CLI_WRITES) {
        found = CO_FATE_NOTHING; /* it makes no commit */
    } else if (st_graph_open(task->graph_path, PF_WRITE, &graph, NULL) == SLUICE_OK &&
               co_find_fate(graph, branch && branch->given ? branch->text : "main",
                            operation->given ? &operation->id : &task->operation, &fate, NULL) == SLUICE_OK) {
        found = fate.committed ? CO_FATE_COMMITTED : CO_FATE_NOTHING;
        *ret_commit = fate.commit;
    }
done:
    st_graph_close(graph);
    free(operands);
    return found;
}

const co_host_program cli_host_program = {.commands = commands,
                                          .command_count = sizeof commands / sizeof commands[0],
                                          .run = run_task,
                                          .find_fate = find_fate};

/* ---- answers ---- */

const char *cli_node_text(const st_node *object, const char *name)
{
    const st_node *node = st_node_member(object, name);
    return node && (node->kind == ST_NODE_STRING || node->kind == ST_NODE_NUMBER) ? node->text : "";
}

/* The depth is bounded by ST_TOKENS_DEPTH. NOLINTNEXTLINE(misc-no-recursion) */
void cli_put_node(st_json *json, const st_node *node)
{
    switch (node->kind) {
    case ST_NODE_OBJECT:
    case ST_NODE_ARRAY:
        (node->kind == ST_NODE_OBJECT ? st_json_object : st_json_array)(json);
        for (const st_node *part = node->first; part; part = part->next) {
            if (node->kind == ST_NODE_OBJECT)
                st_json_name(json, part->name);
            cli_put_node(json, part);
        }
        (node->kind == ST_NODE_OBJECT ? st_json_object_end : st_json_array_end)(json);
        break;
    case ST_NODE_STRING:
        st_json_bytes_text(json, node->text, node->length);
        break;
    case ST_NODE_NUMBER:
        st_json_raw(json, node->text, node->length);
        break;
    case ST_NODE_BOOL:
        st_json_bool(json, node->boolean);
        break;
    case ST_NODE_NULL:
        st_json_null(json);
        break;
    }
}

sluice_status cli_print_nodes(cli_run *run, const st_node *list, const char *const *columns, uint32_t count,
                              uint32_t right, sluice_error *err)
{
    cli_table table = {0};
    sluice_status status;
    PF_GOTO(status, done, cli_table_begin(run->out, count, &table, err));
    for (uint32_t i = right; i < count; i++)
        cli_table_right(&table, i);
    for (uint32_t i = 0; i < count; i++)
        PF_GOTO(status, done, cli_table_text(&table, columns[i], err));
    for (const st_node *object = list ? list->first : NULL; object; object = object->next) {
        for (uint32_t i = 0; i < count; i++)
            PF_GOTO(status, done, cli_table_text(&table, cli_node_text(object, columns[i]), err));
    }
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    return status;
}
