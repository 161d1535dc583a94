/*
 * Faults of the input: what is wrong, and where.
 *
 * Every rule reports faults of this form, and of all of them the least by (argument, record, column) is the one that a
 * strict load ends with, at any worker count. Two faults of one place are ordered by the rule that found them (row
 * rules come before key rules). The text names column, value and rule; file and line are put in front when the error is
 * made.
 */
#ifndef WORKER_INGEST_FAULT_H
#define WORKER_INGEST_FAULT_H

#include "platform/fail.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WK_FAULT_TEXT 640u
#define WK_SHOWN_MAX  64u /* bytes of a value that a message shows */

typedef struct wk_fault {
    bool present;
    uint32_t argument; /* number of the input in the command */
    uint64_t record;   /* in the file, the header counted */
    uint32_t column;   /* of the input, from 0; 0 for the record as a whole */
    uint32_t rule;     /* phase that found it: breaks ties */
    uint64_t line;     /* on which the record begins, or where the fault lies; 0: not yet known, or of no line */
    sluice_status code;
    char text[WK_FAULT_TEXT];
    char hint[512]; /* as an error's */
} wk_fault;

bool wk_fault_before(const wk_fault *a, const wk_fault *b);
/* Keeps the lesser of the two; an absent one is above all. */
void wk_fault_least(wk_fault *least, const wk_fault *other);
/* Sets code and text of a fault (not its place). */
void wk_fault_set(wk_fault *fault, sluice_status code, const char *fmt, ...) PF_PRINTF(3, 4);
/* Takes code, text and hint from an error. */
void wk_fault_from_error(wk_fault *fault, const sluice_error *error);
/* The error that a load ends with: "FILE:LINE: text", or "FILE: text". The message names the rule only. */
sluice_status wk_fault_fail(const wk_fault *fault, const char *file, sluice_error *err);

/* A value for a message: in quotes, cut after WK_SHOWN_MAX bytes, control characters and what is not UTF-8 as \xNN. */
#define WK_SHOWN_ROOM (WK_SHOWN_MAX * 4u + 8u)
const char *wk_shown(const void *text, size_t length, char ret_shown[WK_SHOWN_ROOM]);

#endif
