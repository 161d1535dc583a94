#include "toy.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

void toy_make(toy_spec *toy, uint32_t phases, uint32_t tasks)
{
    assert_true(phases <= TOY_PHASES && tasks <= TOY_TASKS);
    *toy = (toy_spec){.phases = phases, .tasks = tasks};
    toy->folder = test_folder_make();
    toy->shared = test_shared(sizeof *toy->shared);
}

void toy_free(toy_spec *toy)
{
    test_folder_remove(toy->folder);
    toy->folder = NULL;
}

uint64_t toy_expected(const toy_spec *toy)
{
    uint64_t own = (uint64_t)toy->tasks * (toy->tasks + 1) / 2;
    uint64_t sum = 0;
    for (uint32_t phase = 1; phase <= toy->phases; phase++)
        sum = own + (phase == 1 ? 0 : toy->tasks * sum);
    return sum;
}

uint32_t toy_repeats(const toy_spec *toy)
{
    uint32_t repeats = 0;
    for (uint32_t phase = 1; phase <= toy->phases; phase++) {
        for (uint32_t i = 0; i < toy->tasks; i++)
            repeats += toy->shared->ended[phase][i] > 1 ? toy->shared->ended[phase][i] - 1 : 0;
    }
    return repeats;
}

uint32_t toy_missing(const toy_spec *toy)
{
    uint32_t missing = 0;
    for (uint32_t phase = 1; phase <= toy->phases; phase++) {
        for (uint32_t i = 0; i < toy->tasks; i++)
            missing += toy->shared->ended[phase][i] == 0;
    }
    return missing;
}

/* Everything below runs in workers: no assertion of cmocka's, statuses only. */

static sluice_status fail_machine(sluice_error *err, const char *what)
{
    return pf_fail_errno(err, errno, what);
}

static void name_of(const toy_spec *toy, uint32_t phase, uint32_t index, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/task-%u-%u", toy->folder, phase, index);
}

/* Whole or not there at all: written aside, then renamed. */
static sluice_status write_value(const toy_spec *toy, uint32_t phase, uint32_t index, uint64_t value, sluice_error *err)
{
    char path[512];
    char aside[600];
    name_of(toy, phase, index, path, sizeof path);
    (void)snprintf(aside, sizeof aside, "%s.%d", path, (int)getpid());
    FILE *file = fopen(aside, "w");
    if (!file)
        return fail_machine(err, "making a task's file");
    (void)fprintf(file, "%llu", (unsigned long long)value);
    if (fclose(file) != 0 || rename(aside, path) != 0)
        return fail_machine(err, "writing a task's file");
    return SLUICE_OK;
}

static sluice_status add_up(const toy_spec *toy, uint32_t phase, uint64_t *ret_sum, sluice_error *err)
{
    *ret_sum = 0;
    for (uint32_t i = 0; i < toy->tasks; i++) {
        char path[512];
        unsigned long long value = 0;
        name_of(toy, phase, i, path, sizeof path);
        FILE *file = fopen(path, "r");
        if (!file)
            return fail_machine(err, "opening a finished task's file");
        int got = fscanf(file, "%llu", &value);
        (void)fclose(file);
        if (got != 1)
            return pf_fail(err, SLUICE_CORRUPT, "a finished task's file is empty");
        *ret_sum += value;
    }
    return SLUICE_OK;
}

/* A signal that ends the process, at whatever instruction it is at when the time has come. */
static void plan_death(const toy_spec *toy, uint32_t number)
{
    uint32_t left = toy->shared->kills_left;
    while (left > 0 && !atomic_compare_exchange_weak(&toy->shared->kills_left, &left, left - 1))
        continue;
    if (left == 0)
        return;
    uint32_t random = toy->seed * 2654435761u + number * 40503u + 12345u;
    random ^= random >> 15;
    random *= 2246822519u;
    random ^= random >> 13;
    struct itimerval timer = {.it_value = {.tv_usec = (suseconds_t)(1 + random % toy->kill_us)}};
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

static sluice_status toy_open(const void *spec, wk_executor *executor, void **ret_context, sluice_error *err)
{
    static toy_spec mine; /* this worker's */
    mine = *(const toy_spec *)spec;
    mine.executor = executor;
    uint32_t number = atomic_fetch_add(&mine.shared->pid_count, 1);
    if (number < TOY_PIDS)
        mine.shared->pids[number] = getpid();
    if (mine.at_open)
        PF_TRY(mine.at_open(&mine, err));
    plan_death(&mine, number);
    *ret_context = &mine;
    return SLUICE_OK;
}

static void toy_close(void *context)
{
    toy_spec *mine = context;
    atomic_fetch_add(&mine->shared->mark[7], 1);
}

static sluice_status toy_task(void *context, uint32_t phase, uint32_t index, sluice_error *err)
{
    toy_spec *mine = context;
    uint64_t before = 0;
    if (mine->at_task)
        PF_TRY(mine->at_task(mine, phase, index, err));
    if (phase > 1)
        PF_TRY(add_up(mine, phase - 1, &before, err));
    if (mine->task_us > 0)
        pf_sleep_until(pf_monotonic_ns() + mine->task_us * 1000);
    mine->executor->advance(mine->executor->context, 10, 100);
    PF_TRY(write_value(mine, phase, index, before + index + 1, err));
    atomic_fetch_add(&mine->shared->ended[phase][index], 1);
    return SLUICE_OK;
}

static sluice_status toy_conduct(void *context, wk_executor *executor, void *result, sluice_error *err)
{
    toy_spec *mine = context;
    toy_result *answer = result;
    atomic_fetch_add(&mine->shared->conductors, 1);
    for (uint32_t phase = 1; phase <= mine->phases; phase++)
        PF_TRY(executor->run(executor->context, phase, mine->tasks, err));
    if (mine->at_conduct)
        PF_TRY(mine->at_conduct(mine, err));
    PF_TRY(add_up(mine, mine->phases, &answer->sum, err));
    answer->epoch = executor->epoch;
    answer->conductor = getpid();
    return SLUICE_OK;
}

wk_job toy_job(const toy_spec *toy)
{
    return (wk_job){.spec = toy,
                    .result_size = sizeof(toy_result),
                    .open = toy_open,
                    .close = toy_close,
                    .task = toy_task,
                    .conduct = toy_conduct};
}

sluice_status toy_run(const toy_spec *toy, unsigned workers, toy_result *ret_result, sluice_error *err)
{
    const wk_job job = toy_job(toy);
    const co_pool_options options = {.workers = workers};
    return co_pool_run(&job, &options, ret_result, err);
}
