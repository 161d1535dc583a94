/*
 * The operations of the plan, by the functions that the commands call; and the graph that all histories begin with.
 */
#include "coord/backup.h"
#include "coord/branch.h"
#include "coord/checkpoint.h"
#include "coord/load.h"
#include "coord/maintain.h"
#include "coord/merge.h"
#include "coord/mutate.h"
#include "coord/recover.h"
#include "coord/revert.h"
#include "coord/schema_change.h"
#include "oracle.h"
#include "platform/check.h"
#include "tests/support/folder.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA(more)                                                                                                   \
    "{\"nodes\":{\"P\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\",\"name\":\"string?\",\"v\":\"int64?\"" more    \
    "},\"unique\":[[\"name\"]]},\"T\":{\"key\":\"id\",\"properties\":{\"id\":\"int64\"}}},\"edges\":{\"E\":{\"from\":" \
    "\"P\",\"to\":\"P\",\"key\":[]},"                                                                                  \
    "\"L\":{\"from\":\"P\",\"to\":\"P\",\"key\":[],\"cardinality\":{\"out\":\"0..1\"}}}}"
static const char *const schemas[] = {SCHEMA(""), SCHEMA(",\"x\":{\"type\":\"int32\",\"default\":7}"),
                                      SCHEMA(",\"y\":\"string?\"")};

const char *sim_branch_name(uint32_t branch)
{
    static const char *const names[SIM_BRANCHES] = {"main", "b", "c"};
    return names[branch];
}

static const char *checkpoint_name(uint64_t salt, bool any)
{
    static const char *const names[] = {"k1", "k2", "early"};
    return names[salt % (any ? 3 : 2)];
}

sluice_status sim_open(sim_run *run, uint32_t process, pf_access access, st_graph **ret_graph, sluice_error *err)
{
    pf_volume *volume = NULL;
    PF_TRY(pf_sim_actor(run->disk, "g", &volume, err));
    pf_sim_set_process(volume, process);
    return st_graph_open_on(volume, access, ret_graph, err);
}

/* ---- looking ---- */

static sluice_status number_of(const st_batch *batch, uint32_t column, uint64_t row, pf_buffer *buffer,
                               long *ret_number, sluice_error *err)
{
    *ret_number = SIM_NULL;
    if (st_column_is_null(&batch->columns[column], row))
        return SLUICE_OK;
    buffer->length = 0;
    PF_TRY(st_value_text(&batch->columns[column], row, buffer, err));
    PF_TRY(pf_buffer_append(buffer, "", 1, err));
    const char *text = (const char *)buffer->data;
    *ret_number = strtol(text[0] == 'n' ? text + 1 : text, NULL, 10);
    return SLUICE_OK;
}

/* A row of P, T, E or L put into the state; what cannot be so is CORRUPT. */
static sluice_status put_row(char type, const long values[3], sim_state *state, sluice_error *err)
{
    if (values[0] < 0 || values[0] >= (long)SIM_KEYS)
        return pf_fail(err, SLUICE_CORRUPT, "a key that nobody wrote");
    if (type == 'P') {
        if (state->nodes[values[0]].there)
            return pf_fail(err, SLUICE_CORRUPT, "a key stands twice");
        state->nodes[values[0]] = (sim_node){1, (int16_t)(values[1] == SIM_NULL ? 0 : values[1]), (int16_t)values[2]};
        return SLUICE_OK;
    }
    if (type == 'T') {
        if (state->t >> values[0] & 1)
            return pf_fail(err, SLUICE_CORRUPT, "a key of T stands twice");
        state->t |= (uint16_t)(1u << values[0]);
        return SLUICE_OK;
    }
    if (values[1] < 0 || values[1] >= (long)SIM_KEYS)
        return pf_fail(err, SLUICE_CORRUPT, "an end that nobody wrote");
    uint16_t *set = type == 'E' ? &state->e[values[0]] : &state->l[values[0]];
    if (*set >> values[1] & 1)
        return pf_fail(err, SLUICE_CORRUPT, "an edge stands twice");
    *set |= (uint16_t)(1u << values[1]);
    return SLUICE_OK;
}

static sluice_status read_type(st_snapshot *snapshot, char type, sim_state *state, sluice_error *err)
{
    const char name[2] = {type, '\0'};
    const st_type_def *def = NULL;
    const st_batch *batch = NULL;
    st_scan *scan = NULL;
    pf_buffer buffer = {0};
    sluice_status status;
    uint32_t columns = type == 'P' ? 3 : type == 'T' ? 1 : 2;
    PF_TRY(st_snapshot_type(snapshot, name, &def, err));
    PF_TRY(st_scan_open(snapshot, def, NULL, 0, &scan, err));
    for (;;) {
        PF_GOTO(status, done, st_scan_next(scan, &batch, err));
        if (!batch)
            break;
        for (uint64_t row = 0; row < batch->rows; row++) {
            long values[3] = {0};
            for (uint32_t i = 0; i < columns; i++)
                PF_GOTO(status, done, number_of(batch, i, row, &buffer, &values[i], err));
            PF_GOTO(status, done, put_row(type, values, state, err));
        }
    }
done:
    pf_buffer_free(&buffer);
    st_scan_close(scan);
    return status;
}

sluice_status sim_read_state(sim_run *run, st_snapshot *snapshot, sim_state *ret_state, sluice_error *err)
{
    (void)run;
    memset(ret_state, 0, sizeof *ret_state);
    PF_TRY(read_type(snapshot, 'P', ret_state, err));
    PF_TRY(read_type(snapshot, 'T', ret_state, err));
    PF_TRY(read_type(snapshot, 'E', ret_state, err));
    return read_type(snapshot, 'L', ret_state, err);
}

/* ---- writers ---- */

static wk_executor alone(void)
{
    return (wk_executor){.workers = 1, .epoch = pf_id_new()};
}

static sim_result result_of(const co_receipt *receipt)
{
    return (sim_result){.committed = receipt->committed,
                        .repeated = receipt->repeated,
                        .restarts = receipt->restarts,
                        .commit = receipt->commit,
                        .incarnation = receipt->incarnation,
                        .followed = receipt->followed};
}

static sluice_status do_mutate(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                               sluice_error *err)
{
    sim_step steps[SIM_STEPS_MAX];
    char text[1024];
    sim_steps_text(steps, sim_steps_of(op->salt, steps), text, sizeof text);
    co_mutate_options options = {.path = "m.jsonl", .branch = sim_branch_name(op->branch), .operation = operation};
    wk_executor executor = sim_pool_executor(actor);
    co_mutate_result got = {0};
    PF_TRY(co_mutate_text(actor->graph, &options, &executor, text, strlen(text), &got, err));
    *result = result_of(&got.receipt);
    return SLUICE_OK;
}

static sluice_status do_load(sim_run *run, sim_actor_state *actor, const sim_op *op, pf_id operation,
                             sim_result *result, sluice_error *err)
{
    static const char types[] = "PEL";
    char paths[3][512], names[3][2];
    co_load_input inputs[3];
    co_load_options options = {.inputs = inputs,
                               .input_count = op->kind == SIM_OP_UPSERT ? 1 : 3,
                               .operation = operation,
                               .branch = sim_branch_name(op->branch),
                               .memory = 64u << 20,
                               .max_errors = UINT64_MAX};
    for (uint32_t i = 0; i < options.input_count; i++) {
        char type = op->kind == SIM_OP_UPSERT ? 'U' : types[i];
        (void)snprintf(paths[i], sizeof paths[i], "%s/%c%u.csv", run->folder, type, (unsigned)(op->salt % SIM_KEYS));
        names[i][0] = types[i];
        names[i][1] = '\0';
        inputs[i] = (co_load_input){.type = names[i], .path = paths[i]};
    }
    if (op->kind == SIM_OP_UPSERT)
        options.mode = CO_LOAD_UPSERT;
    if (op->kind == SIM_OP_OVERWRITE)
        options.mode = CO_LOAD_OVERWRITE;
    if (op->kind == SIM_OP_LOAD_BRANCH) {
        options.create_branch = true;
        options.branch = sim_branch_name(op->other);
    }
    co_load_result got = {0};
    PF_TRY(co_load_inline(actor->graph, &options, &got, err));
    *result = result_of(&got.receipt);
    co_load_result_free(&got);
    return SLUICE_OK;
}

static sluice_status do_merge(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                              sluice_error *err)
{
    co_merge_options options = {.source = sim_branch_name(op->other),
                                .into = sim_branch_name(op->branch),
                                .operation = operation,
                                .delete_source = op->kind == SIM_OP_MERGE_DELETE};
    wk_executor executor = sim_pool_executor(actor);
    co_merge_result got = {0};
    sluice_status status = co_merge(actor->graph, &options, &executor, &got, err);
    if (status == SLUICE_OK)
        *result = result_of(&got.receipt);
    co_merge_result_free(&got);
    return status;
}

static sluice_status do_maintain(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                                 sluice_error *err)
{
    co_maintain_options options = {.kind = op->kind == SIM_OP_INDEX ? CO_INDEX : CO_OPTIMIZE,
                                   .branch = sim_branch_name(op->branch),
                                   .memory = 64u << 20,
                                   .operation = operation};
    co_maintain_result got = {0};
    PF_TRY(co_maintain_inline(actor->graph, &options, &got, err));
    *result = result_of(&got.receipt);
    co_maintain_result_free(&got);
    return SLUICE_OK;
}

static sluice_status do_revert(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                               sluice_error *err)
{
    co_revert_request request = {
        .branch = sim_branch_name(op->branch), .to = "early", .operation = operation, .operation_given = true};
    co_receipt got = {0};
    PF_TRY(co_revert(actor->graph, &request, &got, err));
    *result = result_of(&got);
    return SLUICE_OK;
}

static sluice_status do_schema(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                               sluice_error *err)
{
    const char *text = schemas[1 + op->salt % 2];
    co_schema_request request = {.branch = sim_branch_name(op->branch),
                                 .text = text,
                                 .length = strlen(text),
                                 .file = "schema.json",
                                 .allow_data_loss = true,
                                 .operation = operation,
                                 .operation_given = true};
    co_receipt got = {0};
    PF_TRY(co_schema_apply(actor->graph, &request, &got, err));
    *result = result_of(&got);
    return SLUICE_OK;
}

/* ---- control operations ---- */

static sluice_status do_branch(sim_actor_state *actor, const sim_op *op, pf_id operation, sim_result *result,
                               sluice_error *err)
{
    co_branch_request request = {.name = sim_branch_name(op->other), .operation = operation, .operation_given = true};
    co_branch_receipt got = {0};
    if (op->kind == SIM_OP_BRANCH_DELETE) {
        PF_TRY(co_branch_delete(actor->graph, &request, &got, err));
    } else {
        request.from = op->branch == op->other ? NULL : sim_branch_name(op->branch);
        PF_TRY(co_branch_create(actor->graph, &request, &got, err));
    }
    *result = (sim_result){.incarnation = got.incarnation, .repeated = got.repeated};
    return SLUICE_OK;
}

static sluice_status do_checkpoint(sim_actor_state *actor, const sim_op *op, pf_id operation, sluice_error *err)
{
    co_checkpoint_receipt got = {0};
    bool deletes = op->kind == SIM_OP_CHECKPOINT_DELETE; /* nobody makes "early" anew */
    co_checkpoint_request request = {.name = checkpoint_name(op->salt, deletes),
                                     .branch = sim_branch_name(op->branch),
                                     .operation = operation,
                                     .operation_given = true};
    if (deletes)
        return co_checkpoint_delete(actor->graph, &request, &got, err);
    return co_checkpoint_create(actor->graph, &request, &got, err);
}

static sluice_status do_gc(sim_actor_state *actor, const sim_op *op, sluice_error *err)
{
    co_gc_options options = {.keep = op->kind == SIM_OP_GC_KEEP ? 1 + op->salt % 3 : 0};
    co_gc_report report = {0};
    return co_gc_with(actor->graph, &options, &report, err);
}

/* ---- readers ---- */

/* One of main's last four. */
static uint64_t old_generation(const sim_run *run, uint64_t salt)
{
    uint64_t last = 1;
    for (uint32_t i = 0; i < run->commit_count; i++)
        if (!run->commits[i].gone && run->commits[i].incarnation == ST_MAIN_INCARNATION &&
            run->commits[i].generation > last)
            last = run->commits[i].generation;
    uint64_t back = salt / 12 % 4;
    return last > back ? last - back : 1;
}

/* The same snapshot, read again and again while others write and collect; or for the first time when they have. */
static sluice_status do_read(sim_run *run, sim_actor_state *actor, uint32_t number, sluice_error *err)
{
    const sim_op *op = &run->plan->ops[number];
    st_snapshot *snapshot = NULL;
    sim_state first, again;
    sluice_status status;
    if (op->kind == SIM_OP_READ_AT) {
        PF_TRY(st_snapshot_open_commit(
            actor->graph, &(st_reach){.incarnation = ST_MAIN_INCARNATION, .generation = old_generation(run, op->salt)},
            &snapshot, err));
        sim_run_holds(run, number);
        fibers_stop(run->fibers, 2 * (op->salt % 4000));
    } else {
        PF_TRY(st_snapshot_open(actor->graph, sim_branch_name(op->branch), NULL, &snapshot, err));
    }
    PF_GOTO(status, done, sim_read_state(run, snapshot, &first, err));
    for (unsigned i = 0; i < 1 + op->salt % 3; i++) {
        PF_GOTO(status, done, sim_read_state(run, snapshot, &again, err));
        if (memcmp(&first, &again, sizeof first) != 0)
            sim_wrong(run, "a snapshot changed under its reader");
    }
    sim_oracle_seen(run, st_snapshot_view(snapshot), &first, "a reader");
    run->counts->snapshots++;
done:
    st_snapshot_close(snapshot);
    return status;
}

/* What the copy holds, as somebody who opens it sees it. */
static void check_backup(sim_run *run, const char *root)
{
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_graph *graph = NULL;
    st_snapshot *snapshot = NULL;
    sim_state state;
    sluice_status status;
    run->quiet = true;
    PF_GOTO(status, done, pf_sim_actor(run->disk, root, &volume, &err));
    PF_GOTO(status, done, st_graph_open_on(volume, PF_READ, &graph, &err));
    PF_GOTO(status, done, st_snapshot_open(graph, NULL, NULL, &snapshot, &err));
    PF_GOTO(status, done, sim_read_state(run, snapshot, &state, &err));
    sim_oracle_seen(run, st_snapshot_view(snapshot), &state, "a backup");
    run->counts->backups++;
done:
    if (status != SLUICE_OK)
        sim_wrong(run, "a backup cannot be read: %s", err.text);
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    run->quiet = false;
}

static sluice_status do_backup(sim_run *run, sim_actor_state *actor, const sim_op *op, sluice_error *err)
{
    char root[16];
    pf_volume *volume = NULL;
    co_backup_report report = {0};
    (void)snprintf(root, sizeof root, "copy%u", (unsigned)(op->salt % 2));
    PF_TRY(pf_sim_actor(run->disk, root, &volume, err));
    pf_sim_set_process(volume, actor->process);
    PF_TRY(co_backup_on(actor->graph, volume, NULL, NULL, &report, err));
    if (!pf_sim_is_dead(st_graph_volume(actor->graph)))
        check_backup(run, root);
    return SLUICE_OK;
}

sluice_status sim_op_run(sim_run *run, sim_actor_state *actor, uint32_t number, sim_result *ret_result,
                         sluice_error *err)
{
    const sim_op *op = &run->plan->ops[number];
    pf_id operation = sim_operation(run, number);
    switch (op->kind) {
    case SIM_OP_MUTATE:
        return do_mutate(actor, op, operation, ret_result, err);
    case SIM_OP_LOAD:
    case SIM_OP_UPSERT:
    case SIM_OP_OVERWRITE:
    case SIM_OP_LOAD_BRANCH:
        return do_load(run, actor, op, operation, ret_result, err);
    case SIM_OP_MERGE:
    case SIM_OP_MERGE_DELETE:
        return op->branch == op->other ? SLUICE_OK : do_merge(actor, op, operation, ret_result, err);
    case SIM_OP_OPTIMIZE:
    case SIM_OP_INDEX:
        return do_maintain(actor, op, operation, ret_result, err);
    case SIM_OP_REVERT:
        return do_revert(actor, op, operation, ret_result, err);
    case SIM_OP_SCHEMA:
        return do_schema(actor, op, operation, ret_result, err);
    case SIM_OP_BRANCH_CREATE:
    case SIM_OP_BRANCH_DELETE:
        return do_branch(actor, op, operation, ret_result, err);
    case SIM_OP_CHECKPOINT_CREATE:
    case SIM_OP_CHECKPOINT_DELETE:
        return do_checkpoint(actor, op, operation, err);
    case SIM_OP_GC:
    case SIM_OP_GC_KEEP:
        return do_gc(actor, op, err);
    case SIM_OP_BACKUP:
        return do_backup(run, actor, op, err);
    case SIM_OP_READ:
    case SIM_OP_READ_AT:
        return do_read(run, actor, number, err);
    case SIM_OP_TOY:
    case SIM_OP_WIDE:
    case SIM_OP_ROW:
    case SIM_OP_BLIND:
        return sim_op_toy(run, actor, number, ret_result, err);
    case SIM_OP_RECOVER:
        return co_recover(actor->graph, CO_RECOVER_FULL, 0, NULL, 0, NULL, NULL, err);
    case SIM_OP_KINDS:
        break;
    }
    return pf_fail(err, SLUICE_INTERNAL, "no such operation");
}

/* ---- the graph that all begin with ---- */

static pf_sim_disk *bases[2]; /* optimistic, single */
static char *base_folder;

static void must(sluice_status status, const sluice_error *err)
{
    if (status == SLUICE_OK)
        return;
    (void)fprintf(stderr, "the first graph cannot be made: %s\n", err->text);
    abort();
}

static void write_inputs(void)
{
    static const char types[] = "PELU";
    for (unsigned s = 0; s < SIM_KEYS; s++) {
        for (const char *type = types; *type; type++) {
            char name[16], text[256];
            (void)snprintf(name, sizeof name, "%c%u.csv", *type, s);
            sim_load_text(s, *type, text, sizeof text);
            char *path = test_path(base_folder, name);
            FILE *file = fopen(path, "w");
            PF_ALWAYS(file && fputs(text, file) >= 0 && fclose(file) == 0);
            free(path);
        }
    }
}

static void say(st_graph *graph, const char *branch, const char *text)
{
    sluice_error err = {0};
    co_mutate_options options = {.path = "m.jsonl", .branch = branch};
    wk_executor executor = alone();
    co_mutate_result result = {0};
    must(co_mutate_text(graph, &options, &executor, text, strlen(text), &result, &err), &err);
}

pf_sim_disk *sim_base(bool single, const char **ret_folder)
{
    pf_sim_disk *base = bases[single];
    sluice_error err = {0};
    pf_volume *volume = NULL;
    st_schema *schema = NULL;
    st_graph *graph = NULL;
    pf_id id;
    *ret_folder = base_folder;
    if (base)
        return base;
    if (!base_folder) {
        base_folder = test_folder_make();
        write_inputs();
    }
    *ret_folder = base_folder;
    pf_sim_world_install(1);
    must(pf_sim_disk_new(1, &base, &err), &err);
    must(pf_sim_actor(base, "g", &volume, &err), &err);
    must(st_schema_parse(schemas[0], strlen(schemas[0]), "schema", &schema, &err), &err);
    must(st_graph_init_on(volume, schema, single ? ST_MODE_SINGLE : ST_MODE_OPTIMISTIC, &id, &err), &err);
    pf_volume_close(volume);
    st_schema_free(schema);
    must(pf_sim_actor(base, "g", &volume, &err), &err);
    must(st_graph_open_on(volume, PF_WRITE, &graph, &err), &err);
    say(graph, NULL,
        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":0,\"name\":\"n1\",\"v\":0}}\n"
        "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":1,\"name\":\"n2\",\"v\":1}}\n"
        "{\"op\":\"insert\",\"edge\":\"E\",\"from\":0,\"to\":1}\n");
    must(co_checkpoint_create(graph, &(co_checkpoint_request){.name = "early", .operation = pf_id_new()},
                              &(co_checkpoint_receipt){0}, &err),
         &err);
    must(co_branch_create(graph, &(co_branch_request){.name = "b", .operation = pf_id_new()}, &(co_branch_receipt){0},
                          &err),
         &err);
    say(graph, "b", "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":2,\"name\":\"n3\"}}\n");
    say(graph, NULL, "{\"op\":\"insert\",\"node\":\"P\",\"set\":{\"id\":3,\"v\":3}}\n");
    st_graph_close(graph);
    pf_sim_world_remove();
    return bases[single] = base;
}

void sim_base_free(void)
{
    for (unsigned i = 0; i < 2; i++) {
        pf_sim_disk_free(bases[i]);
        bases[i] = NULL;
    }
    if (base_folder)
        test_folder_remove(base_folder);
    base_folder = NULL;
}
