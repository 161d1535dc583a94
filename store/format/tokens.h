/*
 * A strict JSON tokenizer for what comes from users: schema files, JSON Lines, mutations.
 *
 * It reads RFC 8259 and nothing more, keeps the text of every number as it was written (so that 64-bit integers stay
 * exact; cJSON would make doubles of them), knows the line of every token, and allocates nothing. Refused: what is not
 * UTF-8, U+0000 (also escaped), lone surrogates, control characters inside strings, depth over ST_TOKENS_DEPTH,
 * anything behind the one value. Duplicate names are the caller's affair (st_tree_parse refuses them).
 */
#ifndef STORE_FORMAT_TOKENS_H
#define STORE_FORMAT_TOKENS_H

#include "platform/buffer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ST_TOKENS_DEPTH 32u

typedef enum st_token_kind {
    ST_TOKEN_END, /* behind the one value */
    ST_TOKEN_OBJECT,
    ST_TOKEN_OBJECT_END,
    ST_TOKEN_ARRAY,
    ST_TOKEN_ARRAY_END,
    ST_TOKEN_NAME, /* of a member; its value is the next token */
    ST_TOKEN_STRING,
    ST_TOKEN_NUMBER,
    ST_TOKEN_TRUE,
    ST_TOKEN_FALSE,
    ST_TOKEN_NULL
} st_token_kind;

typedef struct st_token {
    st_token_kind kind;
    uint64_t line;    /* on which it begins; the first is 1 */
    const char *text; /* name, string: between the quotes, as written; number: the number */
    size_t length;
    bool escaped; /* name, string: holds escapes, so st_token_decode differs from text */
} st_token;

typedef struct st_tokens {
    const char *at, *end;
    uint64_t line;
    uint64_t arrays; /* bit d: the container at depth d is an array */
    unsigned depth;
    int expect;          /* what may come next; private */
    const char *problem; /* after a failure: what is wrong, in words that hold no text of the input */
} st_tokens;

/* The text must stay as it is while tokens are used. A byte order mark at the start is passed over. */
void st_tokens_begin(st_tokens *tokens, const char *text, size_t length);
/* False at a fault: tokens->problem and tokens->line say which; the tokenizer must not be asked again. */
bool st_tokens_next(st_tokens *tokens, st_token *ret_token);
/* Passes over the value that begins with `token` (already read). */
bool st_tokens_skip(st_tokens *tokens, const st_token *token);
/* Appends a name or string with its escapes resolved (UTF-8). */
sluice_status st_token_decode(const st_token *token, pf_buffer *buffer, sluice_error *err);
/* Writes the same to `to`, which has room for token->length bytes and may be where the text itself begins; returns the
 * length, never more than token->length. */
size_t st_token_decode_to(const st_token *token, char *to);
/* Is it this ASCII name? (Compares decoded text; allocates nothing when there are no escapes.) */
bool st_token_is(const st_token *token, const char *name);

#endif
