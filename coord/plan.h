/*
 * A plan as bytes: the read set and the delta of one prepared write, which recovery arbitrates and publishes with.
 *
 * "SLUICPLN", u64 length of the read set, u64 length of the delta (little-endian), then both as their own encoders
 * wrote them. Its SHA-256 stands in the intent's frame; the bytes stand there too when they fit, else in the attempt's
 * side file.
 */
#ifndef COORD_PLAN_H
#define COORD_PLAN_H

#include "coord/intent.h"
#include "coord/read_set.h"

sluice_status co_plan_encode(const co_read_set *reads, const st_delta *delta, pf_buffer *buffer, sluice_error *err);
/* CORRUPT when the bytes are not exactly a plan. */
sluice_status co_plan_decode(const void *bytes, size_t length, co_read_set *ret_reads, st_delta *ret_delta,
                             sluice_error *err);
/* Writes the side file of an intent, and syncs it and the attempt's folder. */
sluice_status co_plan_write(pf_volume *volume, const co_intent *intent, const pf_buffer *plan, sluice_error *err);
/* The plan of an intent, from its frame or its side file, with length, digest, commit and delta checked against the
 * frame. CORRUPT when it is not there or not the one. */
sluice_status co_plan_read(pf_volume *volume, const co_intent *intent, co_read_set *ret_reads, st_delta *ret_delta,
                           sluice_error *err);

/* A plan's bytes from a side file, as long as `length` and with this digest; CORRUPT when they are not. */
sluice_status co_plan_fetch(pf_volume *volume, const char *path, uint64_t length, const pf_sha256 *digest,
                            pf_buffer *buffer, sluice_error *err);

#endif
