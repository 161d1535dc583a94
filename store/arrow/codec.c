#include "store/arrow/codec.h"

#include <lz4frame.h>
#include <zstd.h>

void st_codec_free(st_codec *codec)
{
    ZSTD_freeDCtx(codec->zstd);
    (void)LZ4F_freeDecompressionContext(codec->lz4);
    *codec = (st_codec){0};
}

static sluice_status damaged(sluice_error *err)
{
    return pf_fail(err, SLUICE_CORRUPT, "a buffer does not decompress");
}

static sluice_status unpack_zstd(st_codec *codec, const void *bytes, size_t length, void *to, size_t size,
                                 sluice_error *err)
{
    if (!codec->zstd)
        codec->zstd = ZSTD_createDCtx();
    if (!codec->zstd)
        return pf_fail_memory(err);
    size_t got = ZSTD_decompressDCtx(codec->zstd, to, size, bytes, length);
    return ZSTD_isError(got) || got != size ? damaged(err) : SLUICE_OK;
}

/* One frame, to its end, and nothing behind it. */
static sluice_status unpack_lz4(st_codec *codec, const uint8_t *bytes, size_t length, uint8_t *to, size_t size,
                                sluice_error *err)
{
    size_t in = 0, out = 0, hint = 1;

    if (!codec->lz4 && LZ4F_isError(LZ4F_createDecompressionContext(&codec->lz4, LZ4F_VERSION)))
        return pf_fail_memory(err);
    LZ4F_resetDecompressionContext(codec->lz4);
    while (hint != 0) {
        size_t taken = length - in, given = size - out;
        hint = LZ4F_decompress(codec->lz4, to + out, &given, bytes + in, &taken, NULL);
        if (LZ4F_isError(hint) || (hint != 0 && taken == 0 && given == 0))
            return damaged(err);
        in += taken;
        out += given;
    }
    return in == length && out == size ? SLUICE_OK : damaged(err);
}

sluice_status st_codec_unpack(st_codec *codec, st_arrow_codec kind, const void *bytes, size_t length, void *to,
                              size_t size, sluice_error *err)
{
    return kind == ST_ARROW_LZ4 ? unpack_lz4(codec, bytes, length, to, size, err)
                                : unpack_zstd(codec, bytes, length, to, size, err);
}
