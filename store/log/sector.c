/*
 * One checksummed sector of 512 bytes: what is small enough to be written in place, because a sector arrives whole or
 * not at all. 0 magic · 8 u64 · 16 u64 · 24 digest[32] · zeros · 504 u64 XXH3-64 of the 504 bytes before.
 * Little-endian.
 */
#include "store/log/internal.h"

#include <string.h>

#define AT_FIRST  8u
#define AT_SECOND 16u
#define AT_DIGEST 24u
#define AT_REST   56u
#define AT_CHECK  504u

void st_put64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

uint64_t st_get64(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

void st_sector_encode(const char magic[8], const st_sector *sector, uint8_t bytes[ST_SECTOR])
{
    memset(bytes, 0, ST_SECTOR);
    memcpy(bytes, magic, 8);
    st_put64(bytes + AT_FIRST, sector->first);
    st_put64(bytes + AT_SECOND, sector->second);
    memcpy(bytes + AT_DIGEST, sector->digest.bytes, sizeof(sector->digest.bytes));
    st_put64(bytes + AT_CHECK, pf_xxh64_of(bytes, AT_CHECK));
}

st_sector_state st_sector_decode(const char magic[8], const uint8_t bytes[ST_SECTOR], st_sector *ret_sector)
{
    *ret_sector = (st_sector){0};
    if (st_bytes_are_zero(bytes, ST_SECTOR))
        return ST_SECTOR_ZERO;
    if (memcmp(bytes, magic, 8) != 0 || st_get64(bytes + AT_CHECK) != pf_xxh64_of(bytes, AT_CHECK) ||
        !st_bytes_are_zero(bytes + AT_REST, AT_CHECK - AT_REST))
        return ST_SECTOR_BAD;
    ret_sector->first = st_get64(bytes + AT_FIRST);
    ret_sector->second = st_get64(bytes + AT_SECOND);
    memcpy(ret_sector->digest.bytes, bytes + AT_DIGEST, sizeof(ret_sector->digest.bytes));
    return ST_SECTOR_VALID;
}

sluice_status st_sector_file_make(pf_volume *volume, const char *path, uint64_t size, uint64_t at,
                                  const uint8_t bytes[ST_SECTOR], sluice_error *err)
{
    pf_file *file = NULL;
    sluice_status status;

    PF_TRY(pf_create(volume, path, &file, err));
    PF_GOTO(status, done, pf_zero_fill(file, size, err));
    PF_GOTO(status, done, pf_write(file, at, bytes, ST_SECTOR, err));
    PF_GOTO(status, done, pf_sync(file, err));
    status = pf_close(file, err);
    file = NULL;
done:
    (void)pf_close(file, NULL);
    return status;
}
