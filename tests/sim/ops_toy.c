/*
 * The small writer of tests/coord as an operation: it inserts one key of T and moves one file, cache/from<n> to
 * cache/to<n>, which is an effect that is visible by itself: it stands with the commit, and without it it does not. A
 * wide one reads so much that its plan lies in a side file. A row moves nothing and is not armed, and a blind one reads
 * nothing either.
 */
#include "invariants.h"
#include "platform/check.h"
#include "tests/coord/toy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const ad_adapter authority_first = {
    .kind = "mutate", .version = 1, .arms = false, .replays = true, .retry_budget = 3};

#define WIDE_READS 4200u

void sim_toy_path(uint32_t op, bool done, char ret_path[64])
{
    (void)snprintf(ret_path, 64, "cache/%s%" PRIu32, done ? "to" : "from", op);
}

void sim_toy_begin(sim_run *run, pf_volume *volume)
{
    bool some = false;
    for (uint32_t i = 0; i < run->plan->op_count; i++) {
        char path[64];
        pf_file *file = NULL;
        if (!sim_op_is_toy(run->plan->ops[i].kind))
            continue;
        sim_toy_path(i, false, path);
        PF_ALWAYS(pf_create(volume, path, &file, NULL) == SLUICE_OK && pf_sync(file, NULL) == SLUICE_OK);
        PF_ALWAYS(pf_close(file, NULL) == SLUICE_OK);
        some = true;
    }
    PF_ALWAYS(!some || pf_sync_dir(volume, "cache", NULL) == SLUICE_OK);
}

static void read_much(void *context)
{
    toy_writer *toy = context;
    co_read read = {.kind = CO_READ_KEY_ABSENT, .set = {.table = toy->table, .hash_count = WIDE_READS}};
    read.set.hashes = malloc(WIDE_READS * sizeof *read.set.hashes);
    PF_ALWAYS(read.set.hashes);
    for (uint64_t i = 0; i < WIDE_READS; i++)
        read.set.hashes[i] = (i + 1) * 0x1000193u;
    PF_ALWAYS(co_read_set_add(&toy->write->reads, &read, NULL) == SLUICE_OK);
}

static void read_nothing(void *context)
{
    toy_writer *toy = context;
    co_read_set_free(&toy->write->reads);
}

sluice_status sim_op_toy(sim_run *run, sim_actor_state *actor, uint32_t number, sim_result *ret_result,
                         sluice_error *err)
{
    const sim_op *op = &run->plan->ops[number];
    toy_writer toy = toy_of("T", sim_toy_key(op->salt, op->kind == SIM_OP_BLIND), 1);
    co_receipt receipt = {0};
    wk_executor executor = sim_pool_executor(actor);
    const toy_options options = {.operation = sim_operation(run, number),
                                 .given = true,
                                 .executor = &executor,
                                 .branch = sim_branch_name(op->branch)};
    toy.effect_count = 1;
    toy.effects[0] = (ad_effect){.kind = AD_EFFECT_MOVE};
    sim_toy_path(number, false, toy.effects[0].from);
    sim_toy_path(number, true, toy.effects[0].to);
    toy.context = &toy;
    if (op->kind == SIM_OP_WIDE)
        toy.after_plan = read_much;
    if (op->kind == SIM_OP_BLIND)
        toy.after_plan = read_nothing;
    if (op->kind == SIM_OP_ROW || op->kind == SIM_OP_BLIND) {
        toy.adapter = &authority_first;
        toy.attached = true;
        toy.effect_count = 0;
    }
    PF_TRY(toy_write(actor->graph, &toy, &options, &receipt, err));
    *ret_result = (sim_result){.committed = receipt.committed,
                               .repeated = receipt.repeated,
                               .restarts = receipt.restarts,
                               .commit = receipt.commit,
                               .incarnation = receipt.incarnation};
    return SLUICE_OK;
}
