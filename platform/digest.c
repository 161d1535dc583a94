/*
 * Digests by libcrypto and xxHash, and their hexadecimal forms (see platform/digest.h). A SHA-256 that cannot be
 * computed (no memory inside libcrypto) ends the process: no caller could go on with a wrong digest.
 */
#include "platform/digest.h"
#include "platform/check.h"
#include <openssl/evp.h>
#include <openssl/sha.h>
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

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static bool hex_parse(const char *text, size_t count, uint8_t *ret_bytes)
{
    if (strnlen(text, 2 * count + 1) != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

pf_sha256 pf_sha256_of(const void *bytes, size_t length)
{
    pf_sha256 digest;
    PF_ALWAYS(SHA256(bytes, length, digest.bytes) != NULL);
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

/* The stream is libcrypto's own context under a name that callers can hold without its headers. */
static EVP_MD_CTX *context_of(pf_sha256_stream *stream)
{
    return (EVP_MD_CTX *)(void *)stream;
}

sluice_status pf_sha256_begin(pf_sha256_stream **ret_stream, sluice_error *err)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return pf_fail_memory(err);
    }
    *ret_stream = (pf_sha256_stream *)(void *)context;
    return SLUICE_OK;
}

void pf_sha256_add(pf_sha256_stream *stream, const void *bytes, size_t length)
{
    PF_ALWAYS(EVP_DigestUpdate(context_of(stream), bytes, length) == 1);
}

pf_sha256 pf_sha256_end(pf_sha256_stream *stream)
{
    pf_sha256 digest;
    PF_ALWAYS(EVP_DigestFinal_ex(context_of(stream), digest.bytes, NULL) == 1);
    EVP_MD_CTX_free(context_of(stream));
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
