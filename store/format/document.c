/*
 * Control documents as files (see store/format/document.h). A published file never has two links: it is renamed without
 * replace, so that a creation cut short leaves its temporary name or the target, never both (L-015).
 */
#include "store/format/document.h"

#include "platform/check.h"
#include "platform/ids.h"
#include "platform/sabotage.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUFFIX ".new"

sluice_status st_document_read(pf_volume *volume, const char *path, size_t max, pf_buffer *ret_bytes, sluice_error *err)
{
    pf_file *file = NULL;
    pf_stat stat;
    sluice_status status;

    ret_bytes->length = 0;
    PF_TRY(pf_open(volume, path, PF_READ, &file, err));
    PF_GOTO(status, done, pf_file_stat(file, &stat, err));
    if (stat.size > max) {
        status = pf_fail(err, SLUICE_CORRUPT, "%s has %" PRIu64 " bytes, and may have %zu", path, stat.size, max);
        goto done;
    }
    PF_GOTO(status, done, pf_buffer_reserve(ret_bytes, stat.size, err));
    PF_GOTO(status, done, pf_read_exact(file, 0, ret_bytes->data, stat.size, err));
    ret_bytes->length = stat.size;
done:
    (void)pf_close(file, NULL);
    return status;
}

static sluice_status write_temporary(pf_volume *volume, const char *path, const void *bytes, size_t length,
                                     sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_TRY(pf_create(volume, path, &file, err));
    PF_GOTO(status, done, pf_write(file, 0, bytes, length, err));
    PF_GOTO(status, done, pf_sync(file, err));
    status = pf_close(file, err);
    file = NULL;
done:
    (void)pf_close(file, NULL);
    return status;
}

/* After a rename that reported an error: was it performed all the same? Then the temporary name is gone. */
static bool was_published(pf_volume *volume, const char *temporary, const char *path)
{
    pf_stat stat;
    return pf_stat_path(volume, temporary, &stat, NULL) == SLUICE_NOT_FOUND &&
           pf_stat_path(volume, path, &stat, NULL) == SLUICE_OK;
}

sluice_status st_document_create(pf_volume *volume, const char *folder, const char *name, const void *bytes,
                                 size_t length, sluice_error *err)
{
    char path[256], temporary[256], unique[PF_ID_TEXT];
    pf_stat stat;
    pf_id id = pf_id_new();
    sluice_status status;

    pf_id_text(&id, unique);
    int path_length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    int temporary_length = snprintf(temporary, sizeof(temporary), "%s/%s.%s" SUFFIX, folder, name, unique);
    PF_ALWAYS(path_length > 0 && temporary_length > 0 && (size_t)temporary_length < sizeof(temporary));
    if (pf_stat_path(volume, path, &stat, NULL) == SLUICE_OK)
        return pf_fail(err, SLUICE_ALREADY_EXISTS, "%s is already there", path);
    PF_GOTO(status, failed, write_temporary(volume, temporary, bytes, length, err));
    status = pf_publish(volume, temporary, path, err);
    if (status != SLUICE_OK && !was_published(volume, temporary, path))
        goto failed;
    return PF_SABOTAGE(document_name_not_synced) ? SLUICE_OK : pf_sync_dir(volume, folder, err);
failed:
    (void)pf_remove(volume, temporary, NULL); /* what stays is litter under a name that nobody reads */
    return status;
}

bool st_document_is_temporary(const char *name)
{
    size_t length = strlen(name), suffix = sizeof(SUFFIX) - 1, unique = PF_ID_TEXT; /* a dot and 36 characters */
    pf_id id;
    char text[PF_ID_TEXT];
    if (length <= suffix + unique || strcmp(name + length - suffix, SUFFIX) != 0 ||
        name[length - suffix - unique] != '.')
        return false;
    memcpy(text, name + length - suffix - unique + 1, PF_ID_TEXT - 1);
    text[PF_ID_TEXT - 1] = '\0';
    return pf_id_parse(text, &id);
}
