/*
 * Control documents as files: read whole, and created exclusively.
 */
#ifndef STORE_FORMAT_DOCUMENT_H
#define STORE_FORMAT_DOCUMENT_H

#include "platform/buffer.h"
#include "platform/volume.h"

/* Reads a whole file of at most `max` bytes (more: CORRUPT); NOT_FOUND when absent. What pf_open refuses is refused.
 * The buffer is emptied first. */
sluice_status st_document_read(pf_volume *volume, const char *path, size_t max, pf_buffer *ret_bytes,
                               sluice_error *err);
/* Exclusive creation of folder/name: written and synced under a temporary name, renamed without replace, the folder
 * synced. ALREADY_EXISTS when the name is there. After any other error the file may be there all the same, whole (only
 * the sync of its folder failed): who needs to know looks. */
sluice_status st_document_create(pf_volume *volume, const char *folder, const char *name, const void *bytes,
                                 size_t length, sluice_error *err);
/* A name that st_document_create left behind when it was cut short: nobody's, to be removed by collection. */
bool st_document_is_temporary(const char *name);

#endif
