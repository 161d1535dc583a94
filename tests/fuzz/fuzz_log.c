/*
 * A log of which one file holds any bytes: each is read, verified, settled and appended to, or refused. The first byte
 * picks the file; of segments and sectors the checks are made right, and digests always agree.
 */
#include "platform/check.h"
#include "store/log/log.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER      "branches/7"
#define INCARNATION 7u
#define RECORDS_MAX 64u

bool __wrap_pf_sha256_equal(const pf_sha256 *a, const pf_sha256 *b);
bool __wrap_pf_sha256_equal(const pf_sha256 *a, const pf_sha256 *b)
{
    (void)a;
    (void)b;
    return true;
}

static pf_buffer text_of(const char *text)
{
    pf_buffer buffer = {0};
    fuzz_demand(pf_buffer_append(&buffer, text, strlen(text), NULL) == SLUICE_OK);
    return buffer;
}

static sluice_status encode(void *context, pf_buffer *manifest, pf_buffer *attachments, sluice_error *err)
{
    (void)context, (void)attachments;
    return pf_buffer_append(manifest, "{}\n", 3, err);
}

static const st_opening_source opening = {.encode = encode};

static void append(st_log *log, size_t attached)
{
    pf_buffer manifest = text_of("{\"a\":1}\n"), attachments = {0};
    st_append_outcome outcome;
    pf_sha256 digest;
    static const uint8_t zeros[5000];
    fuzz_demand(pf_buffer_append(&attachments, zeros, attached, NULL) == SLUICE_OK);
    sluice_status status = st_log_append(log, &manifest, &attachments, &opening, &outcome, &digest, NULL);
    fuzz_demand(status == SLUICE_OK ? outcome == ST_APPEND_ACKNOWLEDGED : outcome != ST_APPEND_ACKNOWLEDGED);
    pf_buffer_free(&manifest);
    pf_buffer_free(&attachments);
}

/* A log of three generations. */
static pf_sim_disk *make_log(void)
{
    static const pf_sha256 nothing;
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    st_log *log = NULL;
    pf_buffer first = text_of("{}\n"), none = {0};
    fuzz_demand(pf_sim_disk_new(1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "graph", &volume, NULL) == SLUICE_OK);
    fuzz_demand(pf_make_folder(volume, "branches", NULL) == SLUICE_OK);
    fuzz_demand(pf_make_folder(volume, FOLDER, NULL) == SLUICE_OK);
    fuzz_demand(st_log_make(volume, FOLDER, INCARNATION, 0, &nothing, &first, &none, NULL) == SLUICE_OK);
    fuzz_demand(st_log_open(volume, FOLDER, INCARNATION, PF_WRITE, &log, NULL) == SLUICE_OK);
    append(log, 0);
    append(log, 5000);
    append(log, 10);
    st_log_close(log);
    pf_volume_close(volume);
    pf_buffer_free(&first);
    return disk;
}

static void seal(uint8_t *bytes, size_t length, size_t at)
{
    memset(bytes + at, 0, 8);
    uint64_t check = pf_xxh64_of(bytes, length);
    for (unsigned i = 0; i < 8; i++)
        bytes[at + i] = (uint8_t)(check >> (8 * i));
}

static sluice_status read_all(void *context, const st_record *record, sluice_error *err)
{
    (void)context, (void)record, (void)err;
    return SLUICE_OK;
}

static bool is_answer(sluice_status status)
{
    return status == SLUICE_OK || status == SLUICE_NOT_FOUND || status == SLUICE_SUSPECT || fuzz_is_refusal(status);
}

static void look_at(st_log *log)
{
    uint64_t end = st_log_end(log).number, first = st_log_first(log);
    for (uint64_t i = 0; i < RECORDS_MAX && first + i <= end; i++) {
        st_record record = {0};
        fuzz_demand(is_answer(st_log_read(log, first + i, &record, NULL)));
        st_record_free(&record);
        fuzz_demand(is_answer(st_log_read_opening_of(log, first + i, i % 2, &record, NULL)));
        st_record_free(&record);
    }
    st_log_segment *segments = NULL;
    size_t count = 0;
    fuzz_demand(is_answer(st_log_segments(log, &segments, &count, NULL)));
    free(segments);
    fuzz_demand(is_answer(st_log_verify(log, read_all, NULL, NULL)));
}

static void write_to(pf_volume *volume)
{
    st_log *log = NULL;
    sluice_status status = st_log_open(volume, FOLDER, INCARNATION, PF_WRITE, &log, NULL);
    fuzz_demand(is_answer(status));
    if (status != SLUICE_OK)
        return;
    status = st_log_heal(log, &opening, NULL);
    if (status == SLUICE_OK)
        status = st_log_settle(log, NULL);
    fuzz_demand(is_answer(status));
    if (status == SLUICE_OK && st_log_end(log).number < UINT64_MAX / 2)
        append(log, 100);
    st_log_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"log/1.seg", "log/2.seg", "CURRENT", "acknowledged", "suspect", "lineage/1"};
    static pf_sim_disk *base;
    char path[64];
    uint64_t seen = 0;
    pf_sim_disk *disk = NULL;
    pf_volume *volume = NULL;
    pf_file *file = NULL;
    st_log *log = NULL;

    if (size == 0)
        return 0;
    if (!base)
        base = make_log();
    unsigned which = data[0] % (sizeof names / sizeof *names);
    size_t length = size - 1, room = which < 2 ? 256u * 1024 : length;
    uint8_t *bytes = calloc(1, room ? room : 1);
    fuzz_demand(bytes != NULL);
    memcpy(bytes, data + 1, length < room ? length : room);
    for (size_t at = 0; which < 2 && at < length && at < room; at += ST_RECORD_ALIGN)
        seal(bytes + at, ST_RECORD_HEAD, 128);
    for (size_t at = 0; which >= 2 && which < 5 && at + 512 <= room; at += 4096)
        seal(bytes + at, 504, 504);
    fuzz_demand(pf_sim_disk_clone(base, 1, &disk, NULL) == SLUICE_OK);
    fuzz_demand(pf_sim_actor(disk, "graph", &volume, NULL) == SLUICE_OK);
    (void)snprintf(path, sizeof path, FOLDER "/%s", names[which]);
    (void)pf_make_folder(volume, FOLDER "/lineage", NULL);
    (void)pf_remove(volume, path, NULL);
    fuzz_demand(pf_create(volume, path, &file, NULL) == SLUICE_OK);
    if (room)
        fuzz_demand(pf_write(file, 0, bytes, room, NULL) == SLUICE_OK);
    (void)pf_close(file, NULL);
    free(bytes);

    sluice_status status = st_log_open(volume, FOLDER, INCARNATION, PF_READ, &log, NULL);
    fuzz_demand(is_answer(status));
    if (status == SLUICE_OK)
        look_at(log);
    st_log_close(log);
    log = NULL;
    status = st_log_open_damaged(volume, FOLDER, INCARNATION, &log, &seen, NULL);
    fuzz_demand(is_answer(status));
    if (status == SLUICE_OK)
        look_at(log);
    st_log_close(log);
    write_to(volume);
    fuzz_disk_free(disk, volume);
    return 0;
}
