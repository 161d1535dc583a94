/*
 * Sealed files: immutable files of a table, written once and then only mapped. Fragments, runs and deletion files share
 * one way of writing (few large writes, write-behind, one sync) and one way of opening (size first, damage typed and
 * named).
 *
 * A sealed file that is missing, of another size or content is CORRUPT, never NOT_FOUND: an edit names it, so it must
 * be there.
 */
#ifndef STORE_FRAGMENT_SEALED_H
#define STORE_FRAGMENT_SEALED_H

#include "platform/buffer.h"
#include "platform/volume.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sealed files are mapped as they are: little-endian");

#define ST_PATH_MAX 160u /* "tables/<id>/<folder>/<name>", with the terminating zero */

/* The path of a file of a table; INTERNAL when the name is empty, too long or has a slash. */
sluice_status st_sealed_path(uint64_t table, const char *folder, const char *name, char ret_path[ST_PATH_MAX],
                             sluice_error *err);
/* CORRUPT: names the file by its relative path (made of ids only), says what is wrong with it and what can be done. */
sluice_status st_sealed_damaged(sluice_error *err, const char *path, const char *fmt, ...) PF_PRINTF(3, 4);

/* Writing. After any failure only st_output_abandon is left; every call then returns that first failure's code. */
typedef struct st_output {
    pf_file *file;
    uint8_t *staging;
    size_t staged;
    uint64_t written; /* file offset of staging[0] */
    uint64_t behind;  /* write-behind was asked for up to here */
    sluice_status failed;
    /* Sees all bytes in order before they are written, in pieces that begin at multiples of ST_OUTPUT_CHUNK. NULL
     * allowed. */
    void (*see)(void *context, const uint8_t *bytes, size_t length);
    void *context;
} st_output;
#define ST_OUTPUT_CHUNK (1u << 20)

sluice_status st_output_create(pf_volume *volume, const char *path, st_output *ret_output, sluice_error *err);
sluice_status st_output_append(st_output *output, const void *bytes, size_t length, sluice_error *err);
/* Zero bytes up to the next multiple of `boundary` (a power of two, at most 4096). */
sluice_status st_output_align(st_output *output, uint64_t boundary, sluice_error *err);
uint64_t st_output_offset(const st_output *output);
/* Hands what is staged to `see` and to the file. */
sluice_status st_output_flush(st_output *output, sluice_error *err);
/* Flushes, syncs and closes. */
sluice_status st_output_finish(st_output *output, uint64_t *ret_bytes, sluice_error *err);
void st_output_abandon(st_output *output); /* closes and releases; safe on a zeroed or finished one */

/* Opens a sealed file for reading. */
sluice_status st_sealed_open(pf_volume *volume, const char *path, pf_file **ret_file, sluice_error *err);
/* Maps one that must have exactly `bytes` bytes. */
sluice_status st_sealed_map(pf_volume *volume, const char *path, uint64_t bytes, pf_map *ret_map, sluice_error *err);

static inline uint32_t st_get_u32(const uint8_t *bytes)
{
    uint32_t value;
    __builtin_memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t st_get_u64(const uint8_t *bytes)
{
    uint64_t value;
    __builtin_memcpy(&value, bytes, sizeof value);
    return value;
}

static inline void st_put_u32(uint8_t *bytes, uint32_t value)
{
    __builtin_memcpy(bytes, &value, sizeof value);
}

static inline void st_put_u64(uint8_t *bytes, uint64_t value)
{
    __builtin_memcpy(bytes, &value, sizeof value);
}

static inline bool st_all_zero(const uint8_t *bytes, uint64_t length)
{
    return !length || (bytes[0] == 0 && __builtin_memcmp(bytes, bytes + 1, length - 1) == 0);
}

#endif
