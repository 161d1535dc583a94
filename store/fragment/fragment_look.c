/*
 * What a fragment says of itself (fragment.h, st_fragment_look): for when no edit is left that names it. Nothing binds
 * the footer then; it has to be one, of this table, and whoever reads goes on to check all that it names.
 */
#include "store/arrow/ipc.h"
#include "store/fragment/fragment.h"
#include "store/fragment/fragment_format.h"
#include "store/fragment/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TAIL (4u + ST_IPC_MAGIC_LENGTH) /* behind the footer: its length and the magic */

static bool text_is(const st_arrow_pairs *pairs, const char *key, const char *expected)
{
    uint32_t length;
    const char *value = st_arrow_pairs_find(pairs, key, &length);
    return value && length == strlen(expected) && memcmp(value, expected, length) == 0;
}

static bool has_field(const st_arrow_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->field_count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return true;
    return false;
}

/* The sum of "<rows>,<rows>,"; false when it is none. */
static bool sum_rows(const char *text, uint32_t length, uint64_t *ret_rows)
{
    uint64_t rows = 0;
    *ret_rows = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (text[i] == ',') {
            if (!pf_add_u64(*ret_rows, rows, ret_rows))
                return false;
            rows = 0;
        } else if (text[i] < '0' || text[i] > '9' || rows > ST_COLUMN_ROWS_MAX) {
            return false;
        } else {
            rows = rows * 10 + (uint64_t)(text[i] - '0');
        }
    }
    return rows == 0;
}

static sluice_status take(const char *path, uint64_t table, const st_arrow_footer *footer, st_fragment_info *info,
                          pf_buffer *type, sluice_error *err)
{
    char text[24];
    uint32_t length = 0;
    (void)snprintf(text, sizeof text, "%" PRIu64, table);
    if (!text_is(&footer->schema.metadata, ST_FRAGMENT_KEY_FORM, ST_FRAGMENT_FORMAT) ||
        !text_is(&footer->schema.metadata, ST_FRAGMENT_KEY_TABLE, text))
        return st_sealed_damaged(err, path, "it is no fragment of this table");
    const char *rows = st_arrow_pairs_find(&footer->metadata, ST_FRAGMENT_KEY_ROWS, &length);
    if (!rows || !sum_rows(rows, length, &info->rows))
        return st_sealed_damaged(err, path, "it does not say how many rows it has");
    info->explicit_ids =
        has_field(&footer->schema, ST_FRAGMENT_ROW_ID) && has_field(&footer->schema, ST_FRAGMENT_COMMIT);
    const char *said = st_arrow_pairs_find(&footer->metadata, ST_FRAGMENT_KEY_TYPE, &length);
    return said ? pf_buffer_append(type, said, length, err) : SLUICE_OK;
}

static sluice_status look(const char *path, uint64_t table, const pf_map *map, st_fragment_info *info, pf_buffer *type,
                          sluice_error *err)
{
    const uint8_t *bytes = map->data;
    st_arrow_footer footer = {0};
    if (map->length < ST_IPC_FILE_START + TAIL ||
        memcmp(bytes + map->length - ST_IPC_MAGIC_LENGTH, ST_IPC_MAGIC, ST_IPC_MAGIC_LENGTH) != 0)
        return st_sealed_damaged(err, path, "it is no Arrow file");
    uint32_t length = st_get_u32(bytes + map->length - TAIL);
    if (length > map->length - TAIL - ST_IPC_FILE_START)
        return st_sealed_damaged(err, path, "its footer has no valid length");
    const uint8_t *at = bytes + map->length - TAIL - length;
    info->bytes = map->length;
    info->footer = pf_sha256_of(at, length);
    if (st_arrow_decode_footer(at, length, &footer, NULL) != SLUICE_OK)
        return st_sealed_damaged(err, path, "its footer cannot be read");
    sluice_status status = take(path, table, &footer, info, type, err);
    st_arrow_footer_free(&footer);
    return status;
}

sluice_status st_fragment_look(pf_volume *volume, uint64_t table, const char *name, st_fragment_info *ret_info,
                               pf_buffer *type, sluice_error *err)
{
    char path[ST_PATH_MAX];
    pf_file *file = NULL;
    pf_map map = {0};
    st_fragment_info info = {0};
    sluice_status status;
    PF_TRY(st_sealed_path(table, ST_FRAGMENT_FOLDER, name, path, err));
    if (strlen(name) >= sizeof info.name)
        return st_sealed_damaged(err, path, "no fragment has such a name");
    memcpy(info.name, name, strlen(name) + 1);
    PF_TRY(st_sealed_open(volume, path, &file, err));
    PF_GOTO(status, done, pf_map_file(file, &map, err));
    PF_GOTO(status, done, look(path, table, &map, &info, type, err));
    *ret_info = info;
done:
    pf_unmap(&map);
    (void)pf_close(file, NULL); /* it was only read */
    return status;
}
