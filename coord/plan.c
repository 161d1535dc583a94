/*
 * Plans as bytes, inline or in side files (coord/plan.h). Crash rule: the side file and its name are durable before the
 * frame that holds its digest is written; it is never changed afterwards.
 */
#include "coord/plan.h"
#include "coord/bytes.h"
#include "platform/sabotage.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 24u
static const char magic[8] = {'S', 'L', 'U', 'I', 'C', 'P', 'L', 'N'};

sluice_status co_plan_encode(const co_read_set *reads, const st_delta *delta, pf_buffer *buffer, sluice_error *err)
{
    uint8_t head[HEAD] = {0};
    size_t start = buffer->length;
    memcpy(head, magic, sizeof magic);
    PF_TRY(pf_buffer_append(buffer, head, sizeof head, err));
    PF_TRY(co_read_set_encode(reads, buffer, err));
    size_t reads_end = buffer->length;
    PF_TRY(st_delta_encode(delta, buffer, err));
    co_put_u64(buffer->data + start + 8, reads_end - start - HEAD);
    co_put_u64(buffer->data + start + 16, buffer->length - reads_end);
    if (buffer->length - start > CO_PLAN_BYTES_MAX)
        return pf_fail(err, SLUICE_RESOURCE_LIMIT, "a plan of %zu bytes is larger than an intent may name",
                       buffer->length - start);
    return SLUICE_OK;
}

sluice_status co_plan_decode(const void *bytes, size_t length, co_read_set *ret_reads, st_delta *ret_delta,
                             sluice_error *err)
{
    const uint8_t *at = bytes;
    if (length < HEAD || memcmp(at, magic, sizeof magic) != 0)
        return pf_fail(err, SLUICE_CORRUPT, "a plan has no head");
    uint64_t reads = co_get_u64(at + 8), delta = co_get_u64(at + 16);
    if (reads > length - HEAD || delta != length - HEAD - reads)
        return pf_fail(err, SLUICE_CORRUPT, "a plan has other lengths than it says");
    PF_TRY(co_read_set_decode(at + HEAD, (size_t)reads, ret_reads, err));
    sluice_status status = st_delta_decode(at + HEAD + reads, (size_t)delta, ret_delta, err);
    if (status != SLUICE_OK)
        co_read_set_free(ret_reads);
    return status;
}

sluice_status co_plan_write(pf_volume *volume, const co_intent *intent, const pf_buffer *plan, sluice_error *err)
{
    char path[96], folder[64], id[PF_ID_TEXT];
    pf_file *file = NULL;
    co_plan_path(intent, path);
    pf_id_text(&intent->scope.attempt, id);
    (void)snprintf(folder, sizeof folder, "attempts/%s", id);
    PF_TRY(pf_create(volume, path, &file, err));
    sluice_status status = pf_write(file, 0, plan->data, plan->length, err);
    if (status == SLUICE_OK && !PF_SABOTAGE(plan_not_synced))
        status = pf_sync(file, err);
    sluice_status closed = pf_close(file, status == SLUICE_OK ? err : NULL);
    PF_TRY(status);
    PF_TRY(closed);
    return pf_sync_dir(volume, folder, err);
}

static sluice_status check_digest(const pf_buffer *plan, const pf_sha256 *digest, sluice_error *err)
{
    pf_sha256 found = pf_sha256_of(plan->data, plan->length);
    return pf_sha256_equal(&found, digest) ? SLUICE_OK
                                           : pf_fail(err, SLUICE_CORRUPT, "the plan of an intent has another digest");
}

sluice_status co_plan_fetch(pf_volume *volume, const char *path, uint64_t length, const pf_sha256 *digest,
                            pf_buffer *buffer, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_error open_error = {0};
    sluice_status status = pf_open(volume, path, PF_READ, &file, &open_error);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "the plan of an intent is gone");
    if (status != SLUICE_OK) {
        if (err)
            *err = open_error;
        return status;
    }
    PF_GOTO(status, done, pf_buffer_reserve(buffer, (size_t)length, err));
    PF_GOTO(status, done, pf_read_exact(file, 0, buffer->data, (size_t)length, err));
    buffer->length = (size_t)length;
    status = check_digest(buffer, digest, err);
done:
    (void)pf_close(file, NULL); /* only read */
    return status;
}

sluice_status co_plan_read(pf_volume *volume, const co_intent *intent, co_read_set *ret_reads, st_delta *ret_delta,
                           sluice_error *err)
{
    pf_buffer side = {0};
    const pf_buffer *plan = &intent->plan;
    sluice_status status = SLUICE_OK;
    if (intent->plan_inline) {
        PF_GOTO(status, done, check_digest(plan, &intent->plan_digest, err));
    } else {
        char path[96];
        co_plan_path(intent, path);
        PF_GOTO(status, done, co_plan_fetch(volume, path, intent->plan_length, &intent->plan_digest, &side, err));
        plan = &side;
    }
    PF_GOTO(status, done, co_plan_decode(plan->data, plan->length, ret_reads, ret_delta, err));
    pf_sha256 delta = st_delta_digest(ret_delta);
    if (!pf_sha256_equal(&delta, &intent->delta) || !pf_id_equal(&ret_delta->commit.id, &intent->scope.commit) ||
        ret_reads->incarnation != intent->scope.incarnation) {
        co_read_set_free(ret_reads);
        st_delta_free(ret_delta);
        status = pf_fail(err, SLUICE_CORRUPT, "the plan of an intent is another write's");
    }
done:
    pf_buffer_free(&side);
    return status;
}
