#include "worker/ingest/unpack.h"

#include "platform/memory.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define IN_ROOM    ((size_t)1 << 18)
#define OUT_ROOM   ((size_t)1 << 20)
#define GZIP_ONLY  (16 + MAX_WBITS) /* inflateInit2's word for: gzip, and nothing else */
#define ZSTD_MAGIC 4u               /* bytes by which a frame is known */

typedef struct unpacking {
    const wk_flow *flow;
    uint8_t *in, *out;
    uint64_t members; /* members or frames that came to their end */
    bool pending;     /* there may be more to give without more to take */
} unpacking;

/* ---- errors ---- */

static sluice_status fail_damaged(const unpacking *u, const char *kind, const char *why, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "a compressed input is damaged", "%s: the %s data are damaged: %s",
                          u->flow->name, kind, why);
    pf_hint(err, "get or make the file again; no part of it was loaded");
    return SLUICE_INPUT_SYNTAX;
}

static sluice_status fail_cut(const unpacking *u, const char *kind, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "a compressed input is cut",
                          "%s: the %s data end too early: the file is cut", u->flow->name, kind);
    pf_hint(err, "get or make the file again; no part of it was loaded");
    return SLUICE_INPUT_SYNTAX;
}

static sluice_status fail_junk(const unpacking *u, const char *kind, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_INPUT_SYNTAX, "a compressed input goes on behind its end",
                          "%s: behind the end of the %s data there is something else", u->flow->name, kind);
    pf_hint(err, "what is behind the end may be a part of the input that was damaged; no part of it was loaded");
    return SLUICE_INPUT_SYNTAX;
}

static sluice_status fail_not_packed(const unpacking *u, const char *kind, sluice_error *err)
{
    (void)pf_fail_private(err, SLUICE_UNSUPPORTED_FORMAT, "an input is not compressed as its name says",
                          "%s: this is no %s file, whatever its name says", u->flow->name, kind);
    pf_hint(err, "a file that is not compressed must not be called .gz or .zst");
    return SLUICE_UNSUPPORTED_FORMAT;
}

/* ---- plain ---- */

static sluice_status copy(unpacking *u, sluice_error *err)
{
    for (;;) {
        size_t got = 0;
        PF_TRY(u->flow->take(u->flow->context, u->out, OUT_ROOM, &got, err));
        if (got == 0)
            return SLUICE_OK;
        PF_TRY(u->flow->give(u->flow->context, u->out, got, err));
    }
}

/* ---- gzip ---- */

typedef struct gzip {
    z_stream stream; /* total_in counts from the beginning of the member */
    gz_header header;
} gzip;

/* Every member is asked for its header, because that alone tells "no gzip at all" from "damaged". */
static bool begin_member(gzip *g)
{
    g->header = (gz_header){0};
    return inflateReset(&g->stream) == Z_OK && inflateGetHeader(&g->stream, &g->header) == Z_OK;
}

static sluice_status end_gzip(const unpacking *u, const gzip *g, sluice_error *err)
{
    if (g->stream.total_in == 0 && u->members > 0)
        return SLUICE_OK;
    if (u->members > 0 && g->header.done != 1)
        return fail_junk(u, "gzip", err);
    return fail_cut(u, "gzip", err);
}

static sluice_status fail_inflate(const unpacking *u, const gzip *g, int code, sluice_error *err)
{
    if (code == Z_MEM_ERROR)
        return pf_fail_memory(err);
    if (g->header.done == -1)
        return u->members > 0 ? fail_junk(u, "gzip", err) : fail_not_packed(u, "gzip", err);
    return fail_damaged(u, "gzip", g->stream.msg ? g->stream.msg : "not to be understood", err);
}

static sluice_status inflate_piece(unpacking *u, gzip *g, sluice_error *err)
{
    g->stream.next_out = u->out;
    g->stream.avail_out = (uInt)OUT_ROOM;
    int code = inflate(&g->stream, Z_NO_FLUSH);
    size_t made = OUT_ROOM - g->stream.avail_out;

    if (code != Z_OK && code != Z_STREAM_END && !(code == Z_BUF_ERROR && u->pending))
        return fail_inflate(u, g, code, err);
    if (made > 0)
        PF_TRY(u->flow->give(u->flow->context, u->out, made, err));
    u->pending = code == Z_OK && g->stream.avail_out == 0;
    if (code == Z_STREAM_END) {
        u->members++;
        if (!begin_member(g))
            return pf_fail(err, SLUICE_INTERNAL, "zlib does not begin another member");
    }
    return SLUICE_OK;
}

static sluice_status unpack_gzip(unpacking *u, sluice_error *err)
{
    gzip g = {0};
    sluice_status status = SLUICE_OK;

    if (inflateInit2(&g.stream, GZIP_ONLY) != Z_OK)
        return pf_fail_memory(err);
    if (!begin_member(&g)) {
        status = pf_fail(err, SLUICE_INTERNAL, "zlib does not begin");
        goto done;
    }
    for (;;) {
        if (g.stream.avail_in == 0 && !u->pending) {
            size_t got = 0;
            PF_GOTO(status, done, u->flow->take(u->flow->context, u->in, IN_ROOM, &got, err));
            if (got == 0)
                break;
            g.stream.next_in = u->in;
            g.stream.avail_in = (uInt)got;
        }
        PF_GOTO(status, done, inflate_piece(u, &g, err));
    }
    status = end_gzip(u, &g, err);
done:
    (void)inflateEnd(&g.stream);
    return status;
}

/* ---- zstd ---- */

/* A window takes half of this process's memory at most. */
static int window_log(void)
{
    uint64_t most = pf_memory_part(2, UINT64_C(1) << 20, UINT64_C(1) << WK_UNPACK_WINDOW_LOG);
    return 63 - __builtin_clzll(most);
}

typedef struct zstd {
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    uint64_t taken; /* bytes of the frame at hand */
} zstd;

static sluice_status fail_zstd(const unpacking *u, size_t code, sluice_error *err)
{
    switch ((int)ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return pf_fail_memory(err);
    case ZSTD_error_prefix_unknown:
        return u->members > 0 ? fail_junk(u, "zstd", err) : fail_not_packed(u, "zstd", err);
    case ZSTD_error_frameParameter_windowTooLarge:
        (void)pf_fail_private(err, SLUICE_RESOURCE_LIMIT, "a compressed input needs more memory than is allowed",
                              "%s: unpacking it needs a window of more than %u MiB", u->flow->name,
                              1u << (window_log() - 20));
        pf_hint(err, window_log() < WK_UNPACK_WINDOW_LOG ? "give --memory more, or unpack it first: zstd -d --long=31"
                                                         : "unpack it first: zstd -d --long=31");
        return SLUICE_RESOURCE_LIMIT;
    case ZSTD_error_dictionary_wrong:
        return pf_fail_private(err, SLUICE_UNSUPPORTED_FORMAT, "a compressed input needs a dictionary",
                               "%s: unpacking it needs a dictionary", u->flow->name);
    default:
        return fail_damaged(u, "zstd", ZSTD_getErrorName(code), err);
    }
}

static sluice_status end_zstd(const unpacking *u, const zstd *z, sluice_error *err)
{
    if (z->taken == 0 && u->members > 0)
        return SLUICE_OK;
    if (u->members > 0 && z->taken < ZSTD_MAGIC)
        return fail_junk(u, "zstd", err);
    return fail_cut(u, "zstd", err);
}

static sluice_status decompress_piece(unpacking *u, zstd *z, sluice_error *err)
{
    ZSTD_outBuffer out = {.dst = u->out, .size = OUT_ROOM};
    size_t before = z->in.pos;
    size_t hint = ZSTD_decompressStream(z->stream, &out, &z->in);

    if (ZSTD_isError(hint))
        return fail_zstd(u, hint, err);
    if (out.pos > 0)
        PF_TRY(u->flow->give(u->flow->context, u->out, out.pos, err));
    z->taken += z->in.pos - before;
    u->pending = hint != 0 && out.pos == out.size;
    if (hint == 0) {
        u->members++;
        z->taken = 0;
    }
    return SLUICE_OK;
}

static sluice_status unpack_zstd(unpacking *u, sluice_error *err)
{
    zstd z = {.stream = ZSTD_createDStream()};
    sluice_status status;

    if (z.stream == NULL)
        return pf_fail_memory(err);
    if (ZSTD_isError(ZSTD_DCtx_setParameter(z.stream, ZSTD_d_windowLogMax, window_log()))) {
        status = pf_fail(err, SLUICE_INTERNAL, "zstd does not take the limit of its window");
        goto done;
    }
    for (;;) {
        if (z.in.pos == z.in.size && !u->pending) {
            size_t got = 0;
            PF_GOTO(status, done, u->flow->take(u->flow->context, u->in, IN_ROOM, &got, err));
            if (got == 0)
                break;
            z.in = (ZSTD_inBuffer){.src = u->in, .size = got};
        }
        PF_GOTO(status, done, decompress_piece(u, &z, err));
    }
    status = end_zstd(u, &z, err);
done:
    (void)ZSTD_freeDStream(z.stream);
    return status;
}

sluice_status wk_unpack(wk_packing packing, const wk_flow *flow, sluice_error *err)
{
    unpacking u = {.flow = flow, .in = malloc(IN_ROOM), .out = malloc(OUT_ROOM)};
    sluice_status status = SLUICE_OK;

    if (u.in == NULL || u.out == NULL)
        status = pf_fail_memory(err);
    else if (packing == WK_PACKING_GZIP)
        status = unpack_gzip(&u, err);
    else if (packing == WK_PACKING_ZSTD)
        status = unpack_zstd(&u, err);
    else
        status = copy(&u, err);
    free(u.in);
    free(u.out);
    return status;
}
