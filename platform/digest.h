/*
 * Digests: SHA-256 (libcrypto) for the chain and for names, XXH3 (xxHash) for data. Streaming SHA for large inputs.
 */
#ifndef PLATFORM_DIGEST_H
#define PLATFORM_DIGEST_H

#include "platform/fail.h"
#include <stddef.h>
#include <stdint.h>

typedef struct pf_sha256 {
    uint8_t bytes[32];
} pf_sha256;
#define PF_SHA256_TEXT 65

typedef struct pf_sha256_stream pf_sha256_stream;

pf_sha256 pf_sha256_of(const void *bytes, size_t length);
void pf_sha256_text(const pf_sha256 *digest, char ret_text[PF_SHA256_TEXT]); /* 64 lower-case hex digits */
bool pf_sha256_parse(const char *text, pf_sha256 *ret_digest);               /* exactly 64 lower-case hex digits */
bool pf_sha256_equal(const pf_sha256 *a, const pf_sha256 *b);
sluice_status pf_sha256_begin(pf_sha256_stream **ret_stream, sluice_error *err);
void pf_sha256_add(pf_sha256_stream *stream, const void *bytes, size_t length);
pf_sha256 pf_sha256_end(pf_sha256_stream *stream); /* frees the stream */

typedef struct pf_xxh128 {
    uint64_t low, high;
} pf_xxh128;
#define PF_XXH128_TEXT 33
uint64_t pf_xxh64_of(const void *bytes, size_t length);
pf_xxh128 pf_xxh128_of(const void *bytes, size_t length);
bool pf_xxh128_equal(pf_xxh128 a, pf_xxh128 b);
void pf_xxh128_text(pf_xxh128 digest, char ret_text[PF_XXH128_TEXT]);
bool pf_xxh128_parse(const char *text, pf_xxh128 *ret_digest);

#endif
