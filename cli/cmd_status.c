/*
 * status: what a graph holds, who holds it, and what waits to be settled. Reads only; what it shows may be over when it
 * is printed.
 */
#include "cli/error.h"
#include "cli/output.h"
#include "coord/recover.h"
#include "locks/oslock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct type_status {
    char *name;
    bool edge;
    uint64_t rows, bytes, fragments;
    uint64_t indexed; /* fragments that adjacency covers */
} type_status;

typedef struct branch_status {
    char *name;   /* NULL: its ref cannot be read */
    bool damaged; /* so are its records: nothing below is known */
    uint64_t incarnation;
    st_log_position end;
    pf_id head;
    int64_t time_us;
    bool suspect;
    type_status *types;
    uint32_t type_count;
} branch_status;

typedef struct gate_status {
    uint32_t branch; /* which of the branches */
    char *gate;
} gate_status;

typedef struct graph_status {
    st_graph *graph;
    branch_status *branches;
    uint32_t branch_count;
    gate_status *gates;
    uint32_t gate_count;
    uint64_t unknown_entries; /* of the graph's folder: not ours, kept (L-051) */
    co_recovered *intents;
    uint32_t intent_count;
} graph_status;

static void free_status(graph_status *status)
{
    for (uint32_t i = 0; i < status->branch_count; i++) {
        for (uint32_t k = 0; k < status->branches[i].type_count; k++)
            free(status->branches[i].types[k].name);
        free(status->branches[i].types);
        free(status->branches[i].name);
    }
    for (uint32_t i = 0; i < status->gate_count; i++)
        free(status->gates[i].gate);
    free(status->branches);
    free(status->gates);
    free(status->intents);
    st_graph_close(status->graph);
}

/* Room for one more element; NULL when there is no memory. */
static void *grow(void *array, uint32_t count, size_t size)
{
    return reallocarray(array, (size_t)count + 1, size);
}

/* ---- gathering ---- */

static sluice_status add_branch(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    graph_status *status = context;
    branch_status *branches = grow(status->branches, status->branch_count, sizeof *branches);
    if (!branches)
        return pf_fail_memory(err);
    status->branches = branches;
    branch_status *branch = &branches[status->branch_count++];
    *branch = (branch_status){.name = name ? strdup(name) : NULL, .damaged = !name, .incarnation = incarnation};
    return !name || branch->name ? SLUICE_OK : pf_fail_memory(err);
}

static sluice_status add_intent(void *context, const co_recovered *line, sluice_error *err)
{
    graph_status *status = context;
    co_recovered *intents = grow(status->intents, status->intent_count, sizeof *intents);
    if (!intents)
        return pf_fail_memory(err);
    status->intents = intents;
    intents[status->intent_count++] = *line;
    return SLUICE_OK;
}

static sluice_status gather_types(graph_status *status, branch_status *branch, const st_view *view, sluice_error *err)
{
    branch->types = calloc((size_t)view->table_count + 1, sizeof *branch->types);
    if (!branch->types)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < view->table_count; i++) {
        const st_table_entry *entry = &view->tables[i];
        st_table_list list = {0};
        if (!entry->live)
            continue;
        PF_TRY(st_table_materialise(status->graph, view, entry->id, &list, err));
        type_status *type = &branch->types[branch->type_count++];
        *type = (type_status){.name = strdup(entry->name),
                              .edge = entry->edge,
                              .rows = entry->rows,
                              .bytes = entry->bytes,
                              .fragments = list.count};
        for (uint32_t k = 0; k < list.count; k++)
            type->indexed += list.fragments[k].index.present;
        st_table_list_free(&list);
        if (!type->name)
            return pf_fail_memory(err);
    }
    return SLUICE_OK;
}

static sluice_status add_gate(graph_status *status, uint32_t branch, const char *kind, const char *name,
                              sluice_error *err)
{
    gate_status *gates = grow(status->gates, status->gate_count, sizeof *gates);
    if (!gates)
        return pf_fail_memory(err);
    status->gates = gates;
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", kind, name[0] ? " " : "", name) < 0)
        return pf_fail_memory(err);
    gates[status->gate_count++] = (gate_status){.branch = branch, .gate = text};
    return SLUICE_OK;
}

/* A lock byte that could not be taken now is held by somebody. */
static sluice_status gather_gates(graph_status *status, uint32_t branch, const st_view *view, sluice_error *err)
{
    static const struct {
        uint64_t byte;
        const char *name;
    } special[] = {{LK_BYTE_ADMISSION, "admission"},
                   {LK_BYTE_SCHEMA, "schema"},
                   {LK_BYTE_BRANCH, "branch"},
                   {LK_BYTE_PUBLISH, "publish"}};
    char path[96];
    pf_file *file = NULL;
    bool is_free;
    sluice_status result;
    st_branch_folder(status->branches[branch].incarnation, path);
    size_t length = strlen(path);
    (void)snprintf(path + length, sizeof path - length, "/locks");
    PF_TRY(pf_open(st_graph_volume(status->graph), path, PF_READ, &file, err));
    for (unsigned i = 0; i < sizeof special / sizeof special[0]; i++) {
        PF_GOTO(result, done, pf_lock_is_free(file, special[i].byte, 1, &is_free, err));
        if (!is_free)
            PF_GOTO(result, done, add_gate(status, branch, special[i].name, "", err));
    }
    for (uint32_t i = 0; i < view->table_count; i++) {
        PF_GOTO(result, done, pf_lock_is_free(file, view->tables[i].id, 1, &is_free, err));
        if (!is_free)
            PF_GOTO(result, done, add_gate(status, branch, "table", view->tables[i].name, err));
    }
done:
    (void)pf_close(file, NULL);
    return result;
}

static sluice_status gather_branch(graph_status *status, uint32_t which, sluice_error *err)
{
    branch_status *branch = &status->branches[which];
    st_log *log;
    st_view *view = NULL;
    sluice_status result;
    PF_TRY(st_graph_log(status->graph, branch->incarnation, &log, err));
    PF_TRY(st_view_load(status->graph, log, true, &view, err));
    branch->end = st_log_end(log);
    branch->head = view->head;
    branch->time_us = view->head_time_us;
    branch->suspect = st_log_check_suspect(log, NULL) != SLUICE_OK;
    PF_GOTO(result, done, gather_types(status, branch, view, err));
    result = gather_gates(status, which, view, err);
done:
    st_view_free(view);
    return result;
}

/* A branch that was deleted meanwhile is left out; one that cannot be read is shown as damaged, and the others too. */
static sluice_status gather_or_mark(graph_status *status, uint32_t which, sluice_error *err)
{
    branch_status *branch = &status->branches[which];
    uint64_t now = 0;
    uint32_t gates = status->gate_count;
    sluice_error local = {0};
    if (branch->damaged)
        return SLUICE_OK;
    sluice_status result = gather_branch(status, which, &local);
    if (result == SLUICE_OK)
        return SLUICE_OK;
    while (status->gate_count > gates)
        free(status->gates[--status->gate_count].gate);
    if (st_ref_read(status->graph, branch->name, &now, NULL) == SLUICE_NOT_FOUND || now != branch->incarnation) {
        branch->incarnation = 0;
        return SLUICE_OK;
    }
    branch->damaged = result == SLUICE_CORRUPT || result == SLUICE_NOT_FOUND || result == SLUICE_UNSUPPORTED_FORMAT;
    if (!branch->damaged && err)
        *err = local;
    return branch->damaged ? SLUICE_OK : result;
}

/* Keeps the order; gates name branches by their place. */
static void drop_gone(graph_status *status)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < status->branch_count; i++) {
        branch_status *branch = &status->branches[i];
        for (uint32_t g = 0; g < status->gate_count; g++)
            if (status->gates[g].branch == i)
                status->gates[g].branch = kept;
        if (branch->incarnation || branch->damaged) {
            status->branches[kept++] = *branch;
            continue;
        }
        for (uint32_t k = 0; k < branch->type_count; k++)
            free(branch->types[k].name);
        free(branch->types);
        free(branch->name);
    }
    status->branch_count = kept;
}

static sluice_status gather(cli_run *run, graph_status *status, sluice_error *err)
{
    PF_TRY(st_graph_open(run->arguments.operands[0], PF_READ, &status->graph, err));
    PF_TRY(st_ref_list(status->graph, add_branch, status, err));
    for (uint32_t i = 0; i < status->branch_count; i++)
        PF_TRY(gather_or_mark(status, i, err));
    drop_gone(status);
    PF_TRY(st_graph_unknown_entries(status->graph, &status->unknown_entries, err));
    return co_recover(status->graph, CO_RECOVER_PROBE, 0, NULL, 0, add_intent, status, err);
}

/* ---- printing ---- */

static void put_types(st_json *json, const branch_status *branch)
{
    st_json_name(json, "types");
    st_json_array(json);
    for (uint32_t k = 0; k < branch->type_count; k++) {
        const type_status *type = &branch->types[k];
        st_json_object(json);
        st_json_name(json, "type");
        st_json_text(json, type->name);
        st_json_name(json, "kind");
        st_json_text(json, type->edge ? "edge" : "node");
        st_json_name(json, "rows");
        st_json_unsigned(json, type->rows);
        st_json_name(json, "bytes");
        st_json_unsigned(json, type->bytes);
        st_json_name(json, "fragments");
        st_json_unsigned(json, type->fragments);
        st_json_name(json, "indexed");
        st_json_unsigned(json, type->indexed);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static void put_branches(st_json *json, const graph_status *status)
{
    char time[CLI_TIME_TEXT];
    st_json_name(json, "branches");
    st_json_array(json);
    for (uint32_t i = 0; i < status->branch_count; i++) {
        const branch_status *branch = &status->branches[i];
        cli_time_text(branch->time_us, time);
        st_json_object(json);
        st_json_name(json, "branch");
        if (branch->name)
            st_json_text(json, branch->name);
        else
            st_json_null(json);
        st_json_name(json, "damaged");
        st_json_bool(json, branch->damaged);
        if (branch->damaged) {
            st_json_object_end(json);
            continue;
        }
        st_json_name(json, "incarnation");
        st_json_unsigned(json, branch->incarnation);
        st_json_name(json, "generation");
        st_json_unsigned(json, branch->end.number);
        st_json_name(json, "acknowledged");
        st_json_unsigned(json, branch->end.acknowledged);
        st_json_name(json, "head");
        st_json_id(json, &branch->head);
        st_json_name(json, "time");
        st_json_text(json, time);
        st_json_name(json, "suspect");
        st_json_bool(json, branch->suspect);
        put_types(json, branch);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static void put_intents(st_json *json, const graph_status *status)
{
    st_json_name(json, "intents");
    st_json_array(json);
    for (uint32_t i = 0; i < status->intent_count; i++) {
        const co_recovered *intent = &status->intents[i];
        st_json_object(json);
        st_json_name(json, "id");
        st_json_id(json, &intent->operation);
        st_json_name(json, "kind");
        st_json_text(json, intent->kind);
        st_json_name(json, "stage");
        st_json_text(json, intent->stage);
        st_json_name(json, "classification");
        st_json_text(json, intent->classification);
        st_json_object_end(json);
    }
    st_json_array_end(json);
    st_json_name(json, "gates");
    st_json_array(json);
    for (uint32_t i = 0; i < status->gate_count; i++) {
        st_json_object(json);
        st_json_name(json, "branch");
        st_json_text(json, status->branches[status->gates[i].branch].name);
        st_json_name(json, "gate");
        st_json_text(json, status->gates[i].gate);
        st_json_object_end(json);
    }
    st_json_array_end(json);
}

static const char *mode_name(st_write_mode mode)
{
    return mode == ST_MODE_SINGLE ? "single" : mode == ST_MODE_QUEUED ? "queued" : "optimistic";
}

static sluice_status print_document(cli_run *run, const graph_status *status, sluice_error *err)
{
    const pf_filesystem *filesystem = st_graph_filesystem(status->graph);
    cli_json document;
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, "graph_id");
    st_json_id(json, st_graph_id(status->graph));
    st_json_name(json, "mode");
    st_json_text(json, mode_name(st_graph_mode(status->graph)));
    st_json_name(json, "filesystem");
    st_json_text(json, filesystem->class_name);
    st_json_name(json, "journal");
    st_json_bool(json, filesystem->journal);
    put_branches(json, status);
    put_intents(json, status);
    st_json_name(json, "unknown_entries");
    st_json_unsigned(json, status->unknown_entries);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}

static sluice_status print_types(cli_run *run, const branch_status *branch, sluice_error *err)
{
    static const char *const heads[] = {"type", "kind", "rows", "size", "fragments", "indexed"};
    cli_table table = {0};
    char size[CLI_SIZE_TEXT];
    sluice_status status;
    PF_GOTO(status, done, cli_table_begin(run->out, 6, &table, err));
    for (uint32_t i = 0; i < 6; i++) {
        if (i >= 2)
            cli_table_right(&table, i);
        PF_GOTO(status, done, cli_table_text(&table, heads[i], err));
    }
    for (uint32_t i = 0; i < branch->type_count; i++) {
        cli_size_text(branch->types[i].bytes, size);
        PF_GOTO(status, done, cli_table_text(&table, branch->types[i].name, err));
        PF_GOTO(status, done, cli_table_text(&table, branch->types[i].edge ? "edge" : "node", err));
        PF_GOTO(status, done, cli_table_number(&table, branch->types[i].rows, err));
        PF_GOTO(status, done, cli_table_text(&table, size, err));
        PF_GOTO(status, done, cli_table_number(&table, branch->types[i].fragments, err));
        PF_GOTO(status, done, cli_table_number(&table, branch->types[i].indexed, err));
    }
    status = cli_table_end(&table, err);
done:
    cli_table_free(&table);
    return status;
}

static sluice_status print_branch(cli_run *run, const branch_status *branch, sluice_error *err)
{
    char id[PF_ID_TEXT];
    char time[CLI_TIME_TEXT];
    pf_buffer name = {0};
    if (branch->damaged)
        return cli_print(run, err, "\nbranch %s: CORRUPT, run sluice verify\n", branch->name ? branch->name : "?");
    pf_id_text(&branch->head, id);
    cli_time_text(branch->time_us, time);
    sluice_status status = cli_append_visible(&name, branch->name, strlen(branch->name), err);
    if (status == SLUICE_OK)
        status = cli_print(run, err, "\nbranch %.*s: generation %llu, head %s, %s%s%s\n", (int)name.length,
                           (const char *)name.data, (unsigned long long)branch->end.number, id, time,
                           branch->end.acknowledged < branch->end.number ? ", its end is not acknowledged yet" : "",
                           branch->suspect ? ", SUSPECT after an I/O error: run sluice recover" : "");
    pf_buffer_free(&name);
    PF_TRY(status);
    return print_types(run, branch, err);
}

static sluice_status print_lines(cli_run *run, const graph_status *status, sluice_error *err)
{
    const pf_filesystem *filesystem = st_graph_filesystem(status->graph);
    char id[PF_ID_TEXT];
    pf_id_text(st_graph_id(status->graph), id);
    PF_TRY(cli_print(run, err, "graph %s, %s writers, on %s%s\n", id, mode_name(st_graph_mode(status->graph)),
                     filesystem->class_name,
                     filesystem->journal ? "" : " without a journal: check the file system after a power loss"));
    for (uint32_t i = 0; i < status->branch_count; i++)
        PF_TRY(print_branch(run, &status->branches[i], err));
    if (status->intent_count > 0)
        PF_TRY(cli_print(run, err, "\n"));
    for (uint32_t i = 0; i < status->intent_count; i++) {
        pf_id_text(&status->intents[i].operation, id);
        PF_TRY(cli_print(run, err, "intent %s: %s, %s, %s\n", id, status->intents[i].kind, status->intents[i].stage,
                         status->intents[i].classification));
    }
    for (uint32_t i = 0; i < status->gate_count; i++)
        PF_TRY(cli_print(run, err, "held: %s of %s\n", status->gates[i].gate,
                         status->branches[status->gates[i].branch].name));
    if (status->unknown_entries > 0)
        PF_TRY(cli_print(run, err, "\n%llu %s not Sluice's in the graph's folder\n",
                         (unsigned long long)status->unknown_entries,
                         status->unknown_entries == 1 ? "entry that is" : "entries that are"));
    return SLUICE_OK;
}

static sluice_status run_status(cli_run *run, sluice_error *err)
{
    graph_status gathered = {0};
    sluice_status status = gather(run, &gathered, err);
    if (status == SLUICE_OK)
        status = run->arguments.json ? print_document(run, &gathered, err) : print_lines(run, &gathered, err);
    free_status(&gathered);
    return status;
}

const cli_command cli_status = {.name = "status",
                                .operands = "GRAPH",
                                .summary = "Show branches, sizes, intents that wait, and gates that are held.",
                                .least = 1,
                                .most = 1,
                                .effect = CLI_READS,
                                .run = run_status};
