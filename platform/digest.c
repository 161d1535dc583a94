/*
 * Digests by libcrypto and xxHash, and their hexadecimal forms (see platform/digest.h).
 *
 * SHA-256 is called by its own functions and not by EVP: the first use of that sets up all of libcrypto, its
 * configuration file read, which takes longer than opening a graph; and each use costs some allocations.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "platform/digest.h"
#include "platform/check.h"
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void hex_text(const uint8_t *bytes, size_t count, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * count] = '\0';
}

/* What a digit is worth, and one more; 0: none of ours. */
static const uint8_t hex_digits[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};

static bool hex_parse(const char *text, size_t count, uint8_t *ret_bytes)
{
    for (size_t i = 0; i < count; i++) {
        unsigned high = hex_digits[(uint8_t)text[2 * i]];
        unsigned low = high ? hex_digits[(uint8_t)text[2 * i + 1]] : 0; /* not behind the text's end */
        if (low == 0)
            return false;
        ret_bytes[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    return text[2 * count] == '\0';
}

pf_sha256 pf_sha256_of(const void *bytes, size_t length)
{
    SHA256_CTX context;
    pf_sha256 digest;
    PF_ALWAYS(SHA256_Init(&context) == 1 && SHA256_Update(&context, bytes, length) == 1 &&
              SHA256_Final(digest.bytes, &context) == 1);
    return digest;
}

void pf_sha256_text(const pf_sha256 *digest, char ret_text[PF_SHA256_TEXT])
{
    hex_text(digest->bytes, sizeof digest->bytes, ret_text);
}

bool pf_sha256_parse(const char *text, pf_sha256 *ret_digest)
{
    pf_sha256 digest;
    if (!hex_parse(text, sizeof digest.bytes, digest.bytes))
        return false;
    *ret_digest = digest;
    return true;
}

bool pf_sha256_equal(const pf_sha256 *a, const pf_sha256 *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct pf_sha256_stream {
    SHA256_CTX context;
};

sluice_status pf_sha256_begin(pf_sha256_stream **ret_stream, sluice_error *err)
{
    pf_sha256_stream *stream = malloc(sizeof *stream);
    if (!stream)
        return pf_fail_memory(err);
    PF_ALWAYS(SHA256_Init(&stream->context) == 1);
    *ret_stream = stream;
    return SLUICE_OK;
}

void pf_sha256_add(pf_sha256_stream *stream, const void *bytes, size_t length)
{
    PF_ALWAYS(SHA256_Update(&stream->context, bytes, length) == 1);
}

pf_sha256 pf_sha256_end(pf_sha256_stream *stream)
{
    pf_sha256 digest;
    PF_ALWAYS(SHA256_Final(digest.bytes, &stream->context) == 1);
    free(stream);
    return digest;
}

uint64_t pf_xxh64_of(const void *bytes, size_t length)
{
    return XXH3_64bits(bytes, length);
}

pf_xxh128 pf_xxh128_of(const void *bytes, size_t length)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, length);
    return (pf_xxh128){.low = hash.low64, .high = hash.high64};
}

bool pf_xxh128_equal(pf_xxh128 a, pf_xxh128 b)
{
    return a.low == b.low && a.high == b.high;
}

void pf_xxh128_text(pf_xxh128 digest, char ret_text[PF_XXH128_TEXT])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, (XXH128_hash_t){.low64 = digest.low, .high64 = digest.high});
    hex_text(canonical.digest, sizeof canonical.digest, ret_text);
}

bool pf_xxh128_parse(const char *text, pf_xxh128 *ret_digest)
{
    XXH128_canonical_t canonical;
    if (!hex_parse(text, sizeof canonical.digest, canonical.digest))
        return false;
    XXH128_hash_t hash = XXH128_hashFromCanonical(&canonical);
    *ret_digest = (pf_xxh128){.low = hash.low64, .high = hash.high64};
    return true;
}
