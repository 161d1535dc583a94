/*
 * Filling errors (see platform/fail.h). Texts are formatted into a buffer of our own first, so that an error's old text
 * may be an argument of its new one; what does not fit is cut at a character's edge, never inside one.
 */
#include "platform/fail.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The length of `text` without an incomplete UTF-8 sequence at its end. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 4) {
        start--;
        unsigned char byte = (unsigned char)text[start];
        if ((byte & 0xC0) == 0x80)
            continue;
        size_t want = byte < 0x80             ? 1
                      : (byte & 0xE0) == 0xC0 ? 2
                      : (byte & 0xF0) == 0xE0 ? 3
                      : (byte & 0xF8) == 0xF0 ? 4
                                              : 1;
        return length - start < want ? start : length;
    }
    return length;
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size);
    if (length == size)
        length = whole_characters(from, size - 1);
    memmove(to, from, length);
    to[length] = '\0';
}

static void copy_format(char *to, size_t size, const char *fmt, va_list args) PF_PRINTF(3, 0);
static void copy_format(char *to, size_t size, const char *fmt, va_list args)
{
    char text[sizeof(((sluice_error *)0)->text) + 1];
    int length = vsnprintf(text, sizeof text, fmt, args);
    if (length < 0)
        text[0] = '\0';
    copy_text(to, size, text);
}

void pf_error_clear(sluice_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

sluice_status(pf_fail)(sluice_error *err, sluice_status code, const char *fmt, ...)
{
    if (!err)
        return code;
    char text[sizeof err->text];
    va_list args;
    va_start(args, fmt);
    copy_format(text, sizeof text, fmt, args);
    va_end(args);
    pf_error_clear(err);
    err->code = code;
    copy_text(err->text, sizeof err->text, text);
    copy_text(err->message, sizeof err->message, text);
    return code;
}

sluice_status(pf_fail_private)(sluice_error *err, sluice_status code, const char *safe, const char *fmt, ...)
{
    if (!err)
        return code;
    char text[sizeof err->text];
    char message[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    copy_format(text, sizeof text, fmt, args);
    va_end(args);
    copy_text(message, sizeof message, safe);
    pf_error_clear(err);
    err->code = code;
    copy_text(err->text, sizeof err->text, text);
    copy_text(err->message, sizeof err->message, message);
    return code;
}

static sluice_status code_of_errno(int error_number)
{
    switch (error_number) {
    case ENOSPC:
        return SLUICE_NO_SPACE;
    case EDQUOT:
        return SLUICE_QUOTA;
    case EACCES:
    case EPERM:
    case EROFS:
        return SLUICE_PERMISSION;
    case ENOENT:
        return SLUICE_NOT_FOUND;
    case EEXIST:
        return SLUICE_ALREADY_EXISTS;
    case ELOOP:
    case EXDEV:
        return SLUICE_UNSUPPORTED_FILESYSTEM;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return SLUICE_RESOURCE_LIMIT;
    default:
        return SLUICE_IO;
    }
}

sluice_status(pf_fail_errno)(sluice_error *err, int error_number, const char *what)
{
    const char *description = strerrordesc_np(error_number); /* never translated, never allocated */
    return pf_fail(err, code_of_errno(error_number), "%s: %s", what,
                   description ? description : "unknown system error");
}

sluice_status(pf_fail_memory)(sluice_error *err)
{
    return pf_fail(err, SLUICE_RESOURCE_LIMIT, PF_NO_MEMORY);
}

void pf_hint(sluice_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    char hint[sizeof err->hint];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(hint, sizeof hint, fmt, args);
    va_end(args);
    copy_text(err->hint, sizeof err->hint, length >= 0 && (size_t)length < sizeof hint ? hint : "");
}

bool pf_is_plain_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+@%:,";
    return text[0] && text[strspn(text, plain)] == '\0';
}

const char *pf_word(char word[PF_WORD_BYTES], const char *text)
{
    size_t at = 0;
    if (pf_is_plain_word(text)) {
        copy_text(word, PF_WORD_BYTES, text);
        return word;
    }
    word[at++] = '\'';
    for (; *text && at < PF_WORD_BYTES - 6; text++) {
        if (*text == '\'') {
            memcpy(word + at, "'\\'", 3);
            at += 3;
        }
        word[at++] = *text;
    }
    word[at++] = '\'';
    word[at] = '\0';
    return word;
}

void pf_details(sluice_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    va_list args;
    va_start(args, fmt);
    copy_format(err->details, sizeof err->details, fmt, args);
    va_end(args);
}
