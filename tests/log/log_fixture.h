/*
 * What the log's tests share: a small log whose generations have a content that says which they are.
 */
#ifndef TESTS_LOG_FIXTURE_H
#define TESTS_LOG_FIXTURE_H

#include "platform/buffer.h"
#include "store/log/log.h"
#include "tests/support/test.h"

#define LOG_FOLDER      "branches/7"
#define LOG_INCARNATION 7u

/* Makes the folders above and an empty log. */
sluice_status log_fixture_make(pf_volume *volume, sluice_error *err);
/* Generation `number`: its manifest says so; attachments of `attached` bytes derived from (number, flavour). */
void log_fixture_content(uint64_t number, uint32_t flavour, size_t attached, pf_buffer *manifest,
                         pf_buffer *attachments);
/* Settles and appends generation end+1. */
sluice_status log_fixture_append(st_log *log, uint32_t flavour, size_t attached, st_append_outcome *ret_outcome,
                                 sluice_error *err);
/* An opening source whose content names the end of `log` that it continues. */
st_opening_source log_fixture_opening(st_log *log);
/* The record is generation `number` of this flavour and size, byte by byte. */
bool log_fixture_is(const st_record *record, uint64_t number, uint32_t flavour, size_t attached);

#endif
