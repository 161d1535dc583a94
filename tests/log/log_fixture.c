/* See log_fixture.h. */
#include "log_fixture.h"

#include <inttypes.h>
#include <string.h>

sluice_status log_fixture_make(pf_volume *volume, sluice_error *err)
{
    static const pf_sha256 nothing;
    const pf_buffer none = {0};
    pf_buffer opening = {0};
    sluice_status status;

    PF_GOTO(status, done, pf_make_folder(volume, "branches", err));
    PF_GOTO(status, done, pf_make_folder(volume, LOG_FOLDER, err));
    PF_GOTO(status, done, pf_buffer_append_text(&opening, "{\"opens\":\"0\"}\n", err));
    PF_GOTO(status, done, st_log_make(volume, LOG_FOLDER, LOG_INCARNATION, 0, &nothing, &opening, &none, err));
    PF_GOTO(status, done, pf_sync_dir(volume, "branches", err));
    PF_GOTO(status, done, pf_sync_dir(volume, "", err));
done:
    pf_buffer_free(&opening);
    return status;
}

void log_fixture_content(uint64_t number, uint32_t flavour, size_t attached, pf_buffer *manifest,
                         pf_buffer *attachments)
{
    manifest->length = 0;
    attachments->length = 0;
    assert_int_equal(
        pf_buffer_append_format(manifest, NULL, "{\"generation\":\"%" PRIu64 "\",\"flavour\":%u}\n", number, flavour),
        SLUICE_OK);
    assert_int_equal(pf_buffer_reserve(attachments, attached + 1, NULL), SLUICE_OK);
    uint64_t word = number * UINT64_C(0x9E3779B97F4A7C15) + flavour;
    for (size_t i = 0; i < attached; i++) {
        if (i % 8 == 0) {
            word ^= word >> 29;
            word *= UINT64_C(0xBF58476D1CE4E5B9);
        }
        attachments->data[i] = (uint8_t)(word >> (8 * (i % 8)));
    }
    attachments->length = attached;
}

static sluice_status encode_opening(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    (void)attachments;
    return pf_buffer_append_format(manifest, err, "{\"opens\":\"%" PRIu64 "\"}\n", st_log_end(context).number);
}

st_opening_source log_fixture_opening(st_log *log)
{
    return (st_opening_source){.context = log, .encode = encode_opening};
}

sluice_status log_fixture_append(st_log *log, uint32_t flavour, size_t attached, st_append_outcome *ret_outcome,
                                 sluice_error *err)
{
    pf_buffer manifest = {0}, attachments = {0};
    st_opening_source opening = log_fixture_opening(log);
    pf_sha256 digest;
    sluice_status status;

    *ret_outcome = ST_APPEND_NOT;
    PF_GOTO(status, done, st_log_settle(log, err));
    log_fixture_content(st_log_end(log).number + 1, flavour, attached, &manifest, &attachments);
    status = st_log_append(log, &manifest, &attachments, &opening, ret_outcome, &digest, err);
done:
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return status;
}

bool log_fixture_is(const st_record *record, uint64_t number, uint32_t flavour, size_t attached)
{
    pf_buffer manifest = {0}, attachments = {0};
    log_fixture_content(number, flavour, attached, &manifest, &attachments);
    bool same = record->kind == ST_RECORD_GENERATION && record->number == number &&
                record->manifest_length == manifest.length &&
                memcmp(record->manifest, manifest.data, manifest.length) == 0 &&
                record->attachments_length == attached &&
                (attached == 0 || memcmp(record->attachments, attachments.data, attached) == 0);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
    return same;
}
