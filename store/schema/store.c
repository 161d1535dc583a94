/*
 * Accepted schemas on disk: schema/<sha256>.json, named by their content and never changed.
 *
 * Crash rule: st_document_create publishes whole, synced files only. Who finds one there already (another writer's, or
 * ours of before a crash) does not know whether file and name are durable: both are synced before they are relied on.
 */
#include "platform/check.h"
#include "store/format/document.h"
#include "store/schema/schema.h"
#include <stdio.h>
#include <string.h>

#define FOLDER     "schema"
#define STORED_MAX (256u << 20)

void st_schema_path(const pf_sha256 *identity, char ret_path[ST_SCHEMA_PATH])
{
    char text[PF_SHA256_TEXT];
    pf_sha256_text(identity, text);
    (void)snprintf(ret_path, ST_SCHEMA_PATH, FOLDER "/%s.json", text);
}

static sluice_status read_stored(pf_volume *volume, const pf_sha256 *identity, pf_buffer *buffer, sluice_error *err)
{
    char path[ST_SCHEMA_PATH];
    sluice_error probe = {0};
    st_schema_path(identity, path);
    sluice_status status = st_document_read(volume, path, STORED_MAX, buffer, &probe);
    if (status == SLUICE_NOT_FOUND)
        return pf_fail(err, SLUICE_CORRUPT, "%s is missing", path);
    if (status != SLUICE_OK) {
        if (err)
            *err = probe;
        return status;
    }
    pf_sha256 found = pf_sha256_of(buffer->data, buffer->length);
    if (!pf_sha256_equal(&found, identity))
        return pf_fail(err, SLUICE_CORRUPT, "%s does not have the digest that it is named by", path);
    return SLUICE_OK;
}

/* Makes a file that was found durable, and its name. */
static sluice_status rely_on(pf_volume *volume, const char *path, sluice_error *err)
{
    pf_file *file = NULL;
    PF_TRY(pf_open(volume, path, PF_WRITE, &file, err));
    sluice_status status = pf_sync(file, err);
    sluice_status closed = pf_close(file, status == SLUICE_OK ? err : NULL);
    PF_TRY(status);
    PF_TRY(closed);
    return pf_sync_dir(volume, FOLDER, err);
}

sluice_status st_schema_store(pf_volume *volume, const st_schema *schema, pf_sha256 *ret_identity, sluice_error *err)
{
    pf_buffer text = {0}, found = {0};
    sluice_error probe = {0};
    sluice_status status;
    PF_GOTO(status, done, st_schema_encode(schema, &text, err));
    *ret_identity = pf_sha256_of(text.data, text.length);
    char path[ST_SCHEMA_PATH];
    st_schema_path(ret_identity, path);
    status = st_document_create(volume, FOLDER, path + sizeof(FOLDER), text.data, text.length, &probe);
    if (status == SLUICE_ALREADY_EXISTS) {
        PF_GOTO(status, done, read_stored(volume, ret_identity, &found, err));
        status = rely_on(volume, path, err);
    } else if (status != SLUICE_OK && err) {
        *err = probe;
    }
done:
    pf_buffer_free(&text);
    pf_buffer_free(&found);
    return status;
}

sluice_status st_schema_fetch(pf_volume *volume, const pf_sha256 *identity, st_schema **ret_schema, sluice_error *err)
{
    pf_buffer text = {0};
    sluice_status status = read_stored(volume, identity, &text, err);
    if (status == SLUICE_OK)
        status = st_schema_decode(text.data, text.length, ret_schema, err);
    pf_buffer_free(&text);
    return status;
}
