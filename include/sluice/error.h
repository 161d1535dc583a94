/*
 * The errors of Sluice: a closed list of codes, and the value that every function fills when it does not succeed.
 *
 * Errors are values. Every function returns a sluice_status (SLUICE_OK is 0) and fills a caller-owned sluice_error; on
 * SLUICE_OK the error is left untouched. No function prints, exits or keeps global state.
 *
 * Two texts, for two readers:
 *   message  may be logged, stored and sent: ids, counts and phases only; never names, values, paths or host names.
 *   text     for the user's own terminal: may name the file, line, column and value that failed.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, exit status, retryable, action). docs/errors.md explains each; a test compares the two. */
#define SLUICE_CODES(X)                                                                                                \
    X(WRITE_CONFLICT, 3, true, RETRY)                                                                                  \
    X(READ_SET_CHANGED, 3, true, REFRESH)                                                                              \
    X(WRITER_BUSY, 3, true, RETRY)                                                                                     \
    X(REBASE_EXHAUSTED, 3, true, RETRY)                                                                                \
    X(LIVE_WRITER_CONTENTION, 3, true, RETRY)                                                                          \
    X(QUEUE_FULL, 3, true, RETRY)                                                                                      \
    X(MERGE_CONFLICT, 3, false, FIX)                                                                                   \
    X(KEY_CONFLICT, 4, false, FIX)                                                                                     \
    X(CONSTRAINT_TYPE, 4, false, FIX)                                                                                  \
    X(CONSTRAINT_NULL, 4, false, FIX)                                                                                  \
    X(CONSTRAINT_UNIQUE, 4, false, FIX)                                                                                \
    X(CONSTRAINT_ENDPOINT, 4, false, FIX)                                                                              \
    X(CONSTRAINT_CARDINALITY, 4, false, FIX)                                                                           \
    X(CONSTRAINT_CHECK, 4, false, FIX)                                                                                 \
    X(INPUT_SYNTAX, 4, false, FIX)                                                                                     \
    X(INPUT_CHANGED, 4, true, RETRY)                                                                                   \
    X(RECOVERY_REQUIRED, 5, false, RECOVER)                                                                            \
    X(SUSPECT, 5, false, RECOVER)                                                                                      \
    X(FENCED, 5, false, RECOVER)                                                                                       \
    X(CORRUPT, 6, false, RECOVER)                                                                                      \
    X(UNSUPPORTED_FILESYSTEM, 7, false, FIX)                                                                           \
    X(UNSUPPORTED_FORMAT, 7, false, FIX)                                                                               \
    X(NOT_FOUND, 8, false, FIX)                                                                                        \
    X(ALREADY_EXISTS, 8, false, FIX)                                                                                   \
    X(IDEMPOTENCY_CONFLICT, 9, false, FIX)                                                                             \
    X(NO_SPACE, 10, true, FIX)                                                                                         \
    X(QUOTA, 10, true, FIX)                                                                                            \
    X(RESOURCE_LIMIT, 10, false, FIX)                                                                                  \
    X(IO, 1, false, NONE)                                                                                              \
    X(TIMEOUT, 1, true, RETRY)                                                                                         \
    X(CANCELLED, 1, true, NONE)                                                                                        \
    X(INTERNAL, 1, false, NONE)                                                                                        \
    X(USAGE, 2, false, FIX)                                                                                            \
    X(INVALID_NAME, 2, false, FIX)                                                                                     \
    X(PERMISSION, 2, false, FIX)

typedef enum sluice_status {
    SLUICE_OK = 0,
#define SLUICE_CODE_ENUM(code, exit, retryable, action) SLUICE_##code,
    SLUICE_CODES(SLUICE_CODE_ENUM)
#undef SLUICE_CODE_ENUM
} sluice_status;

typedef enum sluice_action {
    SLUICE_ACTION_NONE,
    SLUICE_ACTION_RETRY,
    SLUICE_ACTION_REFRESH,
    SLUICE_ACTION_RECOVER,
    SLUICE_ACTION_FIX
} sluice_action;

/* What is known about an outcome. UNKNOWN only where CURRENT cannot be read, or the operation waits for recovery. */
typedef enum sluice_truth { SLUICE_FALSE, SLUICE_TRUE, SLUICE_UNKNOWN } sluice_truth;

/* Where an operation stood; the stages A to H of docs/protocol.md, and what is outside them. */
typedef enum sluice_phase {
    SLUICE_PHASE_NONE,
    SLUICE_PHASE_OPEN,
    SLUICE_PHASE_BARRIER,
    SLUICE_PHASE_PREPARE,
    SLUICE_PHASE_GATES,
    SLUICE_PHASE_REVALIDATE,
    SLUICE_PHASE_ARM,
    SLUICE_PHASE_EFFECTS,
    SLUICE_PHASE_PUBLISH,
    SLUICE_PHASE_FINALIZE,
    SLUICE_PHASE_READ,
    SLUICE_PHASE_RECOVER
} sluice_phase;

typedef struct sluice_error {
    sluice_status code;
    sluice_phase phase;
    sluice_truth committed;
    sluice_truth acknowledged;
    char message[256];     /* safe to log, store and send */
    char text[1536];       /* for the user's own terminal */
    char hint[512];        /* what to do, where that helps; may be empty; for the terminal */
    char operation_id[37]; /* canonical UUID text, or empty */
    char commit_id[37];    /* canonical UUID text, or empty */
    char details[512];     /* one JSON object of ids and counts, or empty */
} sluice_error;

/* The code's name without prefix ("KEY_CONFLICT"), "OK" for SLUICE_OK; static storage. */
const char *sluice_status_name(sluice_status status);
/* The exit status of the command line for this code (INTERFACE: 0 to 10). */
int sluice_status_exit(sluice_status status);
bool sluice_status_retryable(sluice_status status);
sluice_action sluice_status_action(sluice_status status);
/* "retry", "refresh", "recover", "fix", "none"; static storage. */
const char *sluice_action_name(sluice_action action);
/* "barrier", "prepare", ... ; "none" for SLUICE_PHASE_NONE; static storage. */
const char *sluice_phase_name(sluice_phase phase);

#ifdef __cplusplus
}
#endif
#endif
