#include "worker/ingest/source.h"

#include <string.h>

sluice_status wk_source_read(const wk_source *source, uint64_t offset, void *bytes, size_t length, sluice_error *err)
{
    size_t got = 0;

    PF_TRY(source->read(source->context, offset, bytes, length, &got, err));
    if (got != length)
        return pf_fail(err, SLUICE_INPUT_CHANGED, "an input file became shorter while it was read");
    return SLUICE_OK;
}

static sluice_status read_memory(void *context, uint64_t offset, void *bytes, size_t length, size_t *ret_got,
                                 sluice_error *err)
{
    const wk_memory_source *memory = context;
    size_t left = offset < memory->length ? memory->length - (size_t)offset : 0;

    (void)err;
    *ret_got = left < length ? left : length;
    if (*ret_got > 0)
        memcpy(bytes, (const uint8_t *)memory->bytes + offset, *ret_got);
    return SLUICE_OK;
}

wk_source wk_source_of_memory(wk_memory_source *memory)
{
    return (wk_source){.context = memory, .size = memory->length, .read = read_memory};
}

sluice_status wk_source_skip_mark(const wk_source *source, uint64_t *ret_offset, sluice_error *err)
{
    uint8_t head[3] = {0, 0, 0};
    size_t got = 0;

    *ret_offset = 0;
    PF_TRY(source->read(source->context, 0, head, sizeof head, &got, err));
    if (got >= 3 && head[0] == 0xef && head[1] == 0xbb && head[2] == 0xbf)
        *ret_offset = 3;
    else if (got >= 2 && ((head[0] == 0xff && head[1] == 0xfe) || (head[0] == 0xfe && head[1] == 0xff))) {
        (void)pf_fail(err, SLUICE_INPUT_SYNTAX, "an input is not UTF-8: it begins with the mark of UTF-16 or UTF-32");
        pf_hint(err, "convert it first, for instance: iconv -f UTF-16 -t UTF-8");
        return SLUICE_INPUT_SYNTAX;
    }
    return SLUICE_OK;
}
