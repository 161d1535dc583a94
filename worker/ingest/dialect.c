#include "worker/ingest/dialect.h"

#include "store/format/utf8.h"
#include <string.h>
#include <strings.h>

typedef struct extension {
    const char *name;
    wk_format format;
    char delimiter;
} extension;

static const extension extensions[] = {
    {"csv", WK_FORMAT_CSV, ','},     {"tsv", WK_FORMAT_CSV, '\t'},  {"jsonl", WK_FORMAT_JSONL, 0},
    {"ndjson", WK_FORMAT_JSONL, 0},  {"arrow", WK_FORMAT_ARROW, 0}, {"arrows", WK_FORMAT_ARROW, 0},
    {"feather", WK_FORMAT_ARROW, 0},
};

static const extension *find_extension(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strlen(extensions[i].name) == length && strncasecmp(extensions[i].name, name, length) == 0)
            return &extensions[i];
    return NULL;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length > end_length && strncasecmp(text + length - end_length, end, end_length) == 0;
}

/* The length of a name, or of a format's, without what says how it is packed. */
static size_t take_packing(const char *name, wk_packing *packing)
{
    size_t length = strlen(name);

    if (ends_with(name, length, ".gz")) {
        *packing = WK_PACKING_GZIP;
        return length - 3;
    }
    if (ends_with(name, length, ".zst")) {
        *packing = WK_PACKING_ZSTD;
        return length - 4;
    }
    return length;
}

static sluice_status find_format(const char *format, const char *path, const extension **ret_extension,
                                 wk_packing *ret_packing, sluice_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    *ret_packing = WK_PACKING_NONE;
    size_t length = take_packing(name, ret_packing);
    if (format != NULL) {
        *ret_extension = find_extension(format, take_packing(format, ret_packing));
        if (*ret_extension == NULL)
            return pf_fail_private(
                err, SLUICE_USAGE, "unknown input format",
                "\"%s\" is no input format (csv, tsv, jsonl, ndjson, arrow, arrows, feather; with .gz "
                "or .zst behind it when it is compressed)",
                format);
        return SLUICE_OK;
    }
    size_t dot = length;
    while (dot > 0 && name[dot - 1] != '.')
        dot--;
    *ret_extension = dot <= 1 ? &extensions[0] : find_extension(name + dot, length - dot);
    if (*ret_extension == NULL) {
        (void)pf_fail_private(err, SLUICE_USAGE, "unknown extension of an input file",
                              "%s: the format of a file with this extension is not known", path);
        pf_hint(err, "give the format, for instance --format csv");
        return SLUICE_USAGE;
    }
    return SLUICE_OK;
}

/* A byte that can structure text without ever being part of a character or of a line end. */
static bool can_structure(char byte)
{
    return byte > 0 && byte != '\n' && byte != '\r';
}

static sluice_status check_bytes(const wk_dialect *dialect, sluice_error *err)
{
    if (!can_structure(dialect->delimiter) || !can_structure(dialect->quote) ||
        (dialect->escape != 0 && !can_structure(dialect->escape)))
        return pf_fail(err, SLUICE_USAGE, "delimiter, quote and escape are one ASCII character each, and no line end");
    if (dialect->delimiter == dialect->quote || dialect->delimiter == dialect->escape)
        return pf_fail(err, SLUICE_USAGE, "the delimiter is also the quote or the escape");
    return SLUICE_OK;
}

static sluice_status check_flags(const wk_dialect *dialect, sluice_error *err)
{
    if (dialect->no_header && dialect->header_first_only)
        return pf_fail(err, SLUICE_USAGE, "--no-header and --header first exclude each other");
    if (dialect->columns != NULL && !dialect->no_header)
        return pf_fail(err, SLUICE_USAGE, "--columns goes with --no-header");
    if (dialect->columns != NULL && !st_utf8_is_valid(dialect->columns, strlen(dialect->columns)))
        return pf_fail(err, SLUICE_USAGE, "--columns is not valid UTF-8");
    if (dialect->null_token == NULL)
        return SLUICE_OK;
    if (!st_utf8_is_valid(dialect->null_token, strlen(dialect->null_token)))
        return pf_fail(err, SLUICE_USAGE, "the null token is not valid UTF-8");
    for (const char *at = dialect->null_token; *at; at++)
        if (*at == dialect->delimiter || *at == '\n' || *at == '\r')
            return pf_fail(err, SLUICE_USAGE, "the null token holds a delimiter or a line end");
    if (dialect->null_token[0] == dialect->quote)
        return pf_fail(err, SLUICE_USAGE, "the null token begins with the quote");
    return SLUICE_OK;
}

sluice_status wk_dialect_resolve(const wk_dialect *given, const char *path, wk_dialect *ret_dialect,
                                 wk_format *ret_format, wk_packing *ret_packing, sluice_error *err)
{
    const extension *found = NULL;

    PF_TRY(find_format(given->format, path, &found, ret_packing, err));
    *ret_format = found->format;
    *ret_dialect = *given;
    ret_dialect->format = found->name;
    if (ret_dialect->quote == 0)
        ret_dialect->quote = '"';
    if (ret_dialect->delimiter == 0)
        ret_dialect->delimiter = found->delimiter ? found->delimiter : ',';
    PF_TRY(check_bytes(ret_dialect, err));
    return check_flags(ret_dialect, err);
}
