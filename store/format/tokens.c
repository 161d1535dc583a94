/*
 * The JSON tokenizer (tokens.h): one pass, a bit per level instead of a stack of containers, no allocation.
 */
#include "store/format/tokens.h"
#include "platform/check.h"
#include "store/format/utf8.h"
#include <string.h>

_Static_assert(ST_TOKENS_DEPTH < 64, "one bit per level");

/* What may come next. */
enum {
    EXPECT_VALUE,          /* the document's value, an array's element after a comma, a member's value */
    EXPECT_FIRST_ELEMENT,  /* a value or "]" */
    EXPECT_FIRST_NAME,     /* a name or "}" */
    EXPECT_NAME,           /* a name after a comma */
    EXPECT_COMMA_OR_CLOSE, /* after an element or a member's value */
    EXPECT_NOTHING         /* the document is complete */
};

static bool fault(st_tokens *tokens, const char *problem)
{
    tokens->problem = problem;
    return false;
}

void st_tokens_begin(st_tokens *tokens, const char *text, size_t length)
{
    *tokens = (st_tokens){.at = text, .end = text + length, .line = 1, .expect = EXPECT_VALUE};
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        tokens->at += 3;
}

static void skip_space(st_tokens *tokens)
{
    while (tokens->at < tokens->end) {
        char c = *tokens->at;
        if (c == '\n')
            tokens->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return;
        tokens->at++;
    }
}

static void value_done(st_tokens *tokens)
{
    tokens->expect = tokens->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA_OR_CLOSE;
}

static bool in_array(const st_tokens *tokens)
{
    return tokens->depth > 0 && (tokens->arrays >> tokens->depth & 1);
}

static bool open_container(st_tokens *tokens, st_token *ret_token, bool array)
{
    if (tokens->depth == ST_TOKENS_DEPTH)
        return fault(tokens, "nested too deeply");
    tokens->at++;
    tokens->depth++;
    tokens->arrays = (tokens->arrays & ~(UINT64_C(1) << tokens->depth)) | (uint64_t)array << tokens->depth;
    tokens->expect = array ? EXPECT_FIRST_ELEMENT : EXPECT_FIRST_NAME;
    ret_token->kind = array ? ST_TOKEN_ARRAY : ST_TOKEN_OBJECT;
    return true;
}

static bool close_container(st_tokens *tokens, st_token *ret_token, bool array)
{
    if (tokens->depth == 0 || in_array(tokens) != array)
        return fault(tokens, array ? "\"]\" closes nothing that is open" : "\"}\" closes nothing that is open");
    tokens->at++;
    tokens->depth--;
    value_done(tokens);
    ret_token->kind = array ? ST_TOKEN_ARRAY_END : ST_TOKEN_OBJECT_END;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four hex digits at p; -1 when they are not. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* One escape at p (behind the backslash): its code point, and how many bytes it takes; false with the problem. */
static bool read_escape(const char *p, const char *end, uint32_t *ret_point, size_t *ret_length,
                        const char **ret_problem)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = p < end ? memchr(letters, *p, sizeof(letters) - 1) : NULL;
    *ret_problem = "unknown escape in a string";
    if (letter) {
        *ret_point = (uint32_t)values[letter - letters];
        *ret_length = 1;
        return true;
    }
    if (p == end || *p != 'u')
        return false;
    int32_t high = hex4(p + 1, end);
    if (high < 0)
        return false;
    if (high == 0) {
        *ret_problem = "U+0000 in a string";
        return false;
    }
    *ret_length = 5;
    *ret_point = (uint32_t)high;
    if (high < 0xD800 || high > 0xDFFF)
        return true;
    int32_t low = high <= 0xDBFF && end - p >= 7 && p[5] == '\\' && p[6] == 'u' ? hex4(p + 7, end) : -1;
    if (low < 0xDC00 || low > 0xDFFF) {
        *ret_problem = "half of a surrogate pair in a string";
        return false;
    }
    *ret_length = 11;
    *ret_point = 0x10000u + (((uint32_t)high - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u);
    return true;
}

static bool read_string(st_tokens *tokens, st_token *ret_token)
{
    const char *begin = ++tokens->at;
    while (tokens->at < tokens->end && *tokens->at != '"') {
        if ((unsigned char)*tokens->at < 0x20)
            return fault(tokens, *tokens->at == '\n' ? "the line ends inside a string"
                                 : *tokens->at       ? "control character in a string"
                                                     : "U+0000 in a string");
        if (*tokens->at != '\\') {
            tokens->at++;
            continue;
        }
        uint32_t point;
        size_t length;
        ret_token->escaped = true;
        if (!read_escape(tokens->at + 1, tokens->end, &point, &length, &tokens->problem))
            return false;
        tokens->at += 1 + length;
    }
    if (tokens->at == tokens->end)
        return fault(tokens, "the text ends inside a string");
    ret_token->text = begin;
    ret_token->length = (size_t)(tokens->at - begin);
    tokens->at++;
    return st_utf8_is_valid(ret_token->text, ret_token->length) || fault(tokens, "not UTF-8");
}

static size_t digits(const char *p, const char *end)
{
    size_t count = 0;
    while (p + count < end && p[count] >= '0' && p[count] <= '9')
        count++;
    return count;
}

static bool read_number(st_tokens *tokens, st_token *ret_token)
{
    const char *p = tokens->at, *end = tokens->end;
    if (*p == '-')
        p++;
    size_t whole = digits(p, end);
    if (whole == 0 || (whole > 1 && *p == '0'))
        return fault(tokens, whole ? "a number begins with a superfluous zero" : "not a value");
    p += whole;
    if (p < end && *p == '.') {
        size_t fraction = digits(p + 1, end);
        if (fraction == 0)
            return fault(tokens, "no digit behind the point of a number");
        p += 1 + fraction;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        size_t exponent = digits(p, end);
        if (exponent == 0)
            return fault(tokens, "no digit in the exponent of a number");
        p += exponent;
    }
    ret_token->kind = ST_TOKEN_NUMBER;
    ret_token->text = tokens->at;
    ret_token->length = (size_t)(p - tokens->at);
    tokens->at = p;
    return true;
}

static bool read_word(st_tokens *tokens, st_token *ret_token)
{
    static const struct {
        const char *word;
        size_t length;
        st_token_kind kind;
    } words[] = {{"true", 4, ST_TOKEN_TRUE}, {"false", 5, ST_TOKEN_FALSE}, {"null", 4, ST_TOKEN_NULL}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((size_t)(tokens->end - tokens->at) >= words[i].length &&
            memcmp(tokens->at, words[i].word, words[i].length) == 0) {
            ret_token->kind = words[i].kind;
            tokens->at += words[i].length;
            return true;
        }
    }
    return fault(tokens, "not a value");
}

static bool read_value(st_tokens *tokens, st_token *ret_token)
{
    char c = *tokens->at;
    if (c == '{' || c == '[')
        return open_container(tokens, ret_token, c == '[');
    if (c == '"') {
        ret_token->kind = ST_TOKEN_STRING;
        if (!read_string(tokens, ret_token))
            return false;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        if (!read_number(tokens, ret_token))
            return false;
    } else if (!read_word(tokens, ret_token)) {
        return false;
    }
    value_done(tokens);
    return true;
}

static bool read_name(st_tokens *tokens, st_token *ret_token)
{
    if (*tokens->at != '"')
        return fault(tokens, "a name in quotes was expected");
    ret_token->kind = ST_TOKEN_NAME;
    if (!read_string(tokens, ret_token))
        return false;
    skip_space(tokens);
    if (tokens->at == tokens->end || *tokens->at != ':')
        return fault(tokens, "no \":\" behind a name");
    tokens->at++;
    tokens->expect = EXPECT_VALUE;
    return true;
}

bool st_tokens_next(st_tokens *tokens, st_token *ret_token)
{
    skip_space(tokens);
    *ret_token = (st_token){.kind = ST_TOKEN_END, .line = tokens->line, .text = tokens->at};
    if (tokens->at == tokens->end) {
        if (tokens->expect == EXPECT_NOTHING)
            return true;
        return fault(tokens, "the text ends too early");
    }
    if (tokens->expect == EXPECT_NOTHING)
        return fault(tokens, "something follows behind the end");
    if (tokens->expect == EXPECT_COMMA_OR_CLOSE && *tokens->at == ',') {
        tokens->at++;
        tokens->expect = in_array(tokens) ? EXPECT_VALUE : EXPECT_NAME;
        return st_tokens_next(tokens, ret_token); /* once: a comma is never followed by EXPECT_COMMA_OR_CLOSE */
    }
    if (*tokens->at == '}' && (tokens->expect == EXPECT_COMMA_OR_CLOSE || tokens->expect == EXPECT_FIRST_NAME))
        return close_container(tokens, ret_token, false);
    if (*tokens->at == ']' && (tokens->expect == EXPECT_COMMA_OR_CLOSE || tokens->expect == EXPECT_FIRST_ELEMENT))
        return close_container(tokens, ret_token, true);
    if (tokens->expect == EXPECT_COMMA_OR_CLOSE)
        return fault(tokens, in_array(tokens) ? "\",\" or \"]\" was expected" : "\",\" or \"}\" was expected");
    if (tokens->expect == EXPECT_NAME || tokens->expect == EXPECT_FIRST_NAME)
        return read_name(tokens, ret_token);
    return read_value(tokens, ret_token);
}

bool st_tokens_skip(st_tokens *tokens, const st_token *token)
{
    if (token->kind != ST_TOKEN_OBJECT && token->kind != ST_TOKEN_ARRAY)
        return true;
    unsigned outside = tokens->depth - 1;
    st_token inner;
    while (tokens->depth > outside)
        if (!st_tokens_next(tokens, &inner))
            return false;
    return true;
}

size_t st_token_decode_to(const st_token *token, char *to)
{
    PF_ASSERT(token->kind == ST_TOKEN_NAME || token->kind == ST_TOKEN_STRING);
    const char *p = token->text, *end = token->text + token->length;
    char *begin = to;
    while (p < end) {
        const char *stop = token->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;
        if (!stop)
            stop = end;
        memmove(to, p, (size_t)(stop - p));
        to += stop - p;
        p = stop;
        if (p == end)
            break;
        uint32_t point = 0;
        size_t length = 0;
        const char *problem;
        PF_ALWAYS(read_escape(p + 1, end, &point, &length, &problem)); /* checked when the token was read */
        to += st_utf8_put(point, (uint8_t *)to);                       /* shorter than any escape */
        p += 1 + length;
    }
    return (size_t)(to - begin);
}

sluice_status st_token_decode(const st_token *token, pf_buffer *buffer, sluice_error *err)
{
    if (token->length == 0)
        return SLUICE_OK;
    PF_TRY(pf_buffer_reserve(buffer, token->length, err));
    buffer->length += st_token_decode_to(token, (char *)buffer->data + buffer->length);
    return SLUICE_OK;
}

bool st_token_is(const st_token *token, const char *name)
{
    if (!token->escaped)
        return token->length == strlen(name) && memcmp(token->text, name, token->length) == 0;
    const char *p = token->text, *end = token->text + token->length;
    for (; p < end && *name; name++) {
        uint32_t point = (unsigned char)*p;
        size_t length = 0;
        const char *problem;
        if (*p == '\\')
            PF_ALWAYS(read_escape(p + 1, end, &point, &length, &problem));
        if (point != (unsigned char)*name)
            return false;
        p += 1 + length;
    }
    return p == end && !*name;
}
