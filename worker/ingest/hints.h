/*
 * Hints: what helps with a fault of an input. Each, followed, makes the load go on: a flag to add to the command, or
 * what to write in the file instead. Faults without a hint of their own get the one of their rule (load_fail).
 */
#ifndef WORKER_INGEST_HINTS_H
#define WORKER_INGEST_HINTS_H

#include "worker/ingest/header.h"

#define WK_HINT_UNCLOSED "close the quote; one that is part of a text stands in quotes and is written twice"

/* Sets the hint of a fault; what it shows of the input must be printable already (wk_shown). */
void wk_hint(wk_fault *fault, const char *fmt, ...) PF_PRINTF(2, 3);
/* Of a text that is no value of a type. */
void wk_hint_type(st_type type, wk_fault *fault);
/* An unquoted text that was no value of its column: does it say that there is none? */
void wk_hint_null(const char *text, size_t length, wk_fault *fault);
/* A field with text behind its closing quote. */
void wk_hint_quote(const char *text, size_t length, bool has_escape, wk_fault *fault);
/* A carriage return alone. */
void wk_hint_line_end(wk_fault *fault);
/* A record with too few or too many values. */
void wk_hint_count(uint64_t given, uint32_t wanted, wk_fault *fault);
/* A first line of CSV that does not fit the type: another delimiter? No heading? Else the hint stays as it is. */
void wk_hint_heading(const wk_name *names, uint32_t count, const st_type_def *type, wk_fault *fault);

#endif
