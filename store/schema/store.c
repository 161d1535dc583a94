/*
 * Accepted schemas on disk: schema/<sha256>.json, named by their content and never changed.
 *
 * Crash rule: the bytes are written and synced under a name of their own ("schema/<uuid>.new") and then published by a
 * rename that replaces nothing, so whatever stands under the final name is whole. Who finds it there already (another
 * writer's, or ours of before a crash) does not know whether file and name are durable: both are synced before they are
 * relied on. A file
 * "*.new" is the litter of a writer that died.
 */
#include "platform/check.h"
#include "platform/ids.h"
#include "store/schema/schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER         "schema"
#define STORED_MAX     (UINT64_C(256) << 20)
#define PATH_MAX_BYTES 128

static void final_path(const pf_sha256 *identity, char ret_path[PATH_MAX_BYTES])
{
    char text[PF_SHA256_TEXT];
    pf_sha256_text(identity, text);
    (void)snprintf(ret_path, PATH_MAX_BYTES, FOLDER "/%s.json", text);
}

static sluice_status read_file(pf_volume *volume, const pf_sha256 *identity, bool sync, pf_buffer *buffer,
                               sluice_error *err)
{
    char path[PATH_MAX_BYTES];
    pf_file *file = NULL;
    pf_stat stat;
    sluice_status status;
    final_path(identity, path);
    PF_TRY(pf_open(volume, path, sync ? PF_WRITE : PF_READ, &file, err));
    PF_GOTO(status, done, pf_file_stat(file, &stat, err));
    if (stat.size == 0 || stat.size > STORED_MAX) {
        status = pf_fail(err, SLUICE_CORRUPT, "%s has an impossible size", path);
        goto done;
    }
    PF_GOTO(status, done, pf_buffer_reserve(buffer, (size_t)stat.size, err));
    PF_GOTO(status, done, pf_read_exact(file, 0, buffer->data, (size_t)stat.size, err));
    buffer->length = (size_t)stat.size;
    pf_sha256 found = pf_sha256_of(buffer->data, buffer->length);
    if (!pf_sha256_equal(&found, identity))
        status = pf_fail(err, SLUICE_CORRUPT, "%s does not have the digest that it is named by", path);
    else if (sync)
        status = pf_sync(file, err);
done:
    if (status == SLUICE_OK)
        return pf_close(file, err);
    (void)pf_close(file, NULL);
    return status;
}

static sluice_status write_file(pf_volume *volume, const pf_buffer *text, const char *path, sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;
    PF_TRY(pf_create(volume, path, &file, err));
    PF_GOTO(status, done, pf_write(file, 0, text->data, text->length, err));
    PF_GOTO(status, done, pf_sync(file, err));
done:
    if (status == SLUICE_OK)
        return pf_close(file, err);
    (void)pf_close(file, NULL);
    return status;
}

sluice_status st_schema_store(pf_volume *volume, const st_schema *schema, pf_sha256 *ret_identity, sluice_error *err)
{
    char path[PATH_MAX_BYTES], fresh[PATH_MAX_BYTES], id_text[PF_ID_TEXT];
    pf_buffer text = {0}, found = {0};
    sluice_status status;
    pf_id id = pf_id_new();
    PF_GOTO(status, done, st_schema_encode(schema, &text, err));
    *ret_identity = pf_sha256_of(text.data, text.length);
    final_path(ret_identity, path);
    status = read_file(volume, ret_identity, true, &found, err);
    if (status == SLUICE_NOT_FOUND) {
        pf_error_clear(err);
        pf_id_text(&id, id_text);
        (void)snprintf(fresh, sizeof(fresh), FOLDER "/%s.new", id_text);
        PF_GOTO(status, done, write_file(volume, &text, fresh, err));
        status = pf_publish(volume, fresh, path, err);
        if (status == SLUICE_ALREADY_EXISTS) { /* another writer was faster: rely on its file instead */
            pf_error_clear(err);
            PF_GOTO(status, done, pf_remove(volume, fresh, err));
            PF_GOTO(status, done, read_file(volume, ret_identity, true, &found, err));
        }
    }
    if (status == SLUICE_OK)
        status = pf_sync_dir(volume, FOLDER, err);
done:
    pf_buffer_free(&text);
    pf_buffer_free(&found);
    return status;
}

sluice_status st_schema_fetch(pf_volume *volume, const pf_sha256 *identity, st_schema **ret_schema, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = read_file(volume, identity, false, &text, err);
    if (status == SLUICE_NOT_FOUND) {
        char path[PATH_MAX_BYTES];
        final_path(identity, path);
        status = pf_fail(err, SLUICE_CORRUPT, "%s is missing", path);
    }
    if (status == SLUICE_OK)
        status = st_schema_decode(text.data, text.length, ret_schema, err);
    pf_buffer_free(&text);
    return status;
}
