/*
 * Compressed buffers of Arrow IPC: the plain length in 8 bytes (-1: not compressed after all), then one LZ4 frame or
 * one or more zstd frames.
 */
#ifndef STORE_ARROW_CODEC_H
#define STORE_ARROW_CODEC_H

#include "store/arrow/metadata.h"

#define ST_CODEC_MARK  8u         /* bytes before a compressed buffer: its plain length */
#define ST_CODEC_PLAIN UINT64_MAX /* ... or -1: it is not compressed */

/* Decompressors, each made when first needed. */
typedef struct st_codec {
    struct ZSTD_DCtx_s *zstd;
    struct LZ4F_dctx_s *lz4;
} st_codec;
void st_codec_free(st_codec *codec); /* safe on a zeroed one */

/* The plain bytes of a stored buffer that is not empty: exactly `size` of them into `to`; CORRUPT else. `bytes` stands
 * behind the mark. */
sluice_status st_codec_unpack(st_codec *codec, st_arrow_codec kind, const void *bytes, size_t length, void *to,
                              size_t size, sluice_error *err);

#endif
