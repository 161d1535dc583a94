/*
 * Inputs that cannot be read by ranges where they are: compressed ones, and streams (standard input, pipes, devices).
 * One task each copies their plain bytes into the attempt's folder, "input-<n>", whole or absent; all later phases read
 * that file.
 *
 * A compressed file is read again when its worker dies. A stream gives its bytes once, so the mark "input-<n>.begun" is
 * left before the first of them is taken; who finds it without the finished file ends the load.
 */
#include "coord/load_job.h"
#include "platform/check.h"
#include "platform/failpoint.h"
#include "worker/ingest/unpack.h"
#include <inttypes.h>
#include <stdio.h>

#define CANCEL_SLICE_MS 100 /* how long a waiting reader does not look whether the job was taken back */

typedef struct spooling {
    load_job *job;
    const load_input *input;
    wk_spool_file file;
    uint64_t taken;
} spooling;

static void input_name(uint32_t input, char ret_name[WK_SPOOL_NAME])
{
    (void)snprintf(ret_name, WK_SPOOL_NAME, "input-%u", input);
}

static sluice_status check_cancelled(const load_job *job, sluice_error *err)
{
    const wk_executor *executor = job->executor;

    if (executor->cancelled && executor->cancelled(executor->context))
        return pf_fail(err, SLUICE_CANCELLED, "cancelled before the write was armed");
    return SLUICE_OK;
}

static sluice_status take(void *context, void *bytes, size_t length, size_t *ret_got, sluice_error *err)
{
    spooling *s = context;
    bool ready = false;

    do {
        PF_TRY(check_cancelled(s->job, err));
        PF_TRY(pf_input_wait(s->input->file, CANCEL_SLICE_MS, &ready, err));
    } while (!ready);
    if (pf_input_is_regular(s->input->file))
        PF_TRY(pf_input_read_at(s->input->file, s->taken, bytes, length, ret_got, err));
    else
        PF_TRY(pf_input_read(s->input->file, bytes, length, ret_got, err));
    s->taken += *ret_got;
    return SLUICE_OK;
}

static sluice_status give(void *context, const void *bytes, size_t length, sluice_error *err)
{
    spooling *s = context;
    sluice_error error;

    sluice_status status = wk_spool_append(&s->file, bytes, length, &error);
    if (status == SLUICE_NO_SPACE || status == SLUICE_QUOTA) {
        (void)pf_fail_private(err, status, "no space for the plain bytes of an input",
                              "%s: no space left for its plain bytes, which are kept in the graph's folder while it is "
                              "loaded (%" PRIu64 " so far)",
                              pf_input_name(s->input->file), s->file.length);
        return status;
    }
    if (status != SLUICE_OK) {
        if (err)
            *err = error;
        return status;
    }
    return PF_FAILPOINT(LOAD_WHILE_SPOOLING, err);
}

static sluice_status begin_stream(load_job *job, const char *name, const load_input *input, sluice_error *err)
{
    char mark[WK_SPOOL_NAME + 8];
    bool first = false;

    if (pf_input_is_regular(input->file))
        return SLUICE_OK;
    (void)snprintf(mark, sizeof mark, "%s.begun", name);
    PF_TRY(wk_spool_put(&job->spool, mark, "", 0, &first, err));
    if (first)
        return SLUICE_OK;
    (void)pf_fail_private(err, SLUICE_IO, "the worker that read a stream ended before the stream",
                          "%s: the worker that read it ended too early, and its bytes cannot be had twice",
                          pf_input_name(input->file));
    pf_hint(err, "nothing was changed: start the load again, with the whole input");
    return SLUICE_IO;
}

/* A file that somebody writes to meanwhile looks damaged: then say what it really is. */
static sluice_status spool(spooling *s, sluice_error *err)
{
    const load_input *input = s->input;
    wk_flow flow = {.context = s, .name = pf_input_name(input->file), .take = take, .give = give};
    sluice_error error;

    pf_error_clear(&error);
    sluice_status status = wk_unpack(input->packing, &flow, &error);
    if (status == SLUICE_OK || status == SLUICE_INPUT_SYNTAX || status == SLUICE_UNSUPPORTED_FORMAT)
        PF_TRY(pf_input_check(input->file, &input->identity, err));
    if (status != SLUICE_OK && err)
        *err = error;
    return status;
}

/* The n-th input that is spooled. */
static uint32_t find_input(const load_spec *spec, uint32_t task)
{
    for (uint32_t i = 0; i < spec->input_count; i++)
        if (spec->inputs[i].spooled && task-- == 0)
            return i;
    PF_NEVER("a task for every spooled input");
    return 0;
}

sluice_status load_spool_task(load_job *job, uint32_t task, sluice_error *err)
{
    uint32_t number = find_input(job->spec, task);
    char name[WK_SPOOL_NAME];
    spooling s = {.job = job, .input = &job->spec->inputs[number]};
    bool done = false;

    input_name(number, name);
    PF_TRY(wk_spool_has(&job->spool, name, &done, err));
    if (done)
        return SLUICE_OK;
    PF_TRY(PF_FAILPOINT(LOAD_BEFORE_SPOOLING, err));
    PF_TRY(begin_stream(job, name, s.input, err));
    PF_TRY(wk_spool_clean(&job->spool, name, err));
    PF_TRY(wk_spool_begin(&job->spool, name, &s.file, err));
    sluice_status status = spool(&s, err);
    if (status != SLUICE_OK) {
        wk_spool_abandon(&s.file);
        return status;
    }
    PF_TRY(wk_spool_end(&s.file, NULL, err));
    return PF_FAILPOINT(LOAD_AFTER_SPOOLING, err);
}

static sluice_status read_spool(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                sluice_error *err)
{
    return pf_read(context, offset, bytes, length, ret_got, err);
}

sluice_status load_spool_open(load_job *job, uint32_t input, sluice_error *err)
{
    load_file *file = &job->files[input];
    char name[WK_SPOOL_NAME], path[WK_SPOOL_PATH];
    pf_stat stat = {0};

    input_name(input, name);
    wk_spool_path(&job->spool, name, path);
    if (file->spool == NULL)
        PF_TRY(pf_open(job->spool.volume, path, PF_READ, &file->spool, err));
    PF_TRY(pf_file_stat(file->spool, &stat, err));
    file->input.source = (wk_source){.context = file->spool, .size = stat.size, .read = read_spool};
    return SLUICE_OK;
}
