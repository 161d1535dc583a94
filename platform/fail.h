/*
 * Making errors: the one way in which a sluice_error is filled.
 *
 * All functions return the code that they were given, so that `return pf_fail(err, SLUICE_IO, ...)` or
 * `status = pf_fail(...); goto done;` is the whole error path. `err` may be NULL (the caller wants the code only).
 * The first error wins: a cleanup that fails after an error must not overwrite it (use a NULL or a second error).
 */
#ifndef PLATFORM_FAIL_H
#define PLATFORM_FAIL_H

#include <sluice/error.h>
#include <stdbool.h>

#define PF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* A text that is safe for everybody: it becomes message and text. */
sluice_status pf_fail(sluice_error *err, sluice_status code, const char *fmt, ...) PF_PRINTF(3, 4);
/* `safe` becomes message (no user words in it); the formatted text, for the terminal, may name names and values. */
sluice_status pf_fail_private(sluice_error *err, sluice_status code, const char *safe, const char *fmt, ...)
    PF_PRINTF(4, 5);
/* From errno: ENOSPC NO_SPACE, EDQUOT QUOTA, EACCES/EPERM/EROFS PERMISSION, ENOENT NOT_FOUND, EEXIST ALREADY_EXISTS,
 * ELOOP/EXDEV UNSUPPORTED_FILESYSTEM (a link or another mount on the way), ENOMEM/EMFILE/ENFILE/EFBIG RESOURCE_LIMIT,
 * anything else IO. `what` names the step ("sync of a log segment"), never a user path. */
sluice_status pf_fail_errno(sluice_error *err, int error_number, const char *what);
/* Out of memory (RESOURCE_LIMIT), and what its message says. */
#define PF_NO_MEMORY "out of memory"
sluice_status pf_fail_memory(sluice_error *err);
/* Sets the hint of an error that is being returned; no effect when err is NULL. One that is too long is left out: half
 * of a command is worse than none. */
void pf_hint(sluice_error *err, const char *fmt, ...) PF_PRINTF(2, 3);
/* `text` as one word of a shell, for a command of a hint. Returns `word`. */
#define PF_WORD_BYTES 1024               /* for names: 255 bytes of which each may want four */
bool pf_is_plain_word(const char *text); /* as it stands */
const char *pf_word(char word[PF_WORD_BYTES], const char *text);
/* Sets details: one JSON object of ids and counts. */
void pf_details(sluice_error *err, const char *fmt, ...) PF_PRINTF(2, 3);
/* Empties an error before a call. */
void pf_error_clear(sluice_error *err);

#ifdef __clang_analyzer__
/* What these functions promise, said so that an analyzer of one file can see it: they never return SLUICE_OK. */
#define pf_fail(err, code, ...)          ((void)(pf_fail)((err), (code), __VA_ARGS__), (code))
#define pf_fail_private(err, code, ...)  ((void)(pf_fail_private)((err), (code), __VA_ARGS__), (code))
#define pf_fail_errno(err, number, what) ((void)(pf_fail_errno)((err), (number), (what)), SLUICE_IO)
#define pf_fail_memory(err)              ((void)(pf_fail_memory)(err), SLUICE_RESOURCE_LIMIT)
#endif

/* Early return before any resource is held. */
#define PF_TRY(call)                                                                                                   \
    do {                                                                                                               \
        sluice_status pf_try_status = (call);                                                                          \
        if (pf_try_status != SLUICE_OK)                                                                                \
            return pf_try_status;                                                                                      \
    } while (0)
/* Once resources are held: jump to the function's one exit, `label`, with `status` set. */
#define PF_GOTO(status, label, call)                                                                                   \
    do {                                                                                                               \
        (status) = (call);                                                                                             \
        if ((status) != SLUICE_OK)                                                                                     \
            goto label;                                                                                                \
    } while (0)

#endif
