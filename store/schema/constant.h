/*
 * Constants of a schema (st_value): defaults, bounds, members of an enumeration. Made from text or JSON, compared,
 * written.
 */
#ifndef STORE_SCHEMA_CONSTANT_H
#define STORE_SCHEMA_CONSTANT_H

#include "store/schema/scalar.h"
#include "store/schema/schema.h"

/* A value of `type` from its text; *ret_parse says when the text is none. The error is only for lack of memory. */
sluice_status st_constant_read(st_type type, const char *text, size_t length, st_value *ret_value, st_parse *ret_parse,
                               sluice_error *err);
/* Its text, as st_constant_read takes it. Not for null. */
sluice_status st_constant_write(const st_value *value, pf_buffer *buffer, sluice_error *err);
/* -1, 0, 1; both present, not null, of one type; floats in IEEE order with NaN equal to itself and above all. */
int st_constant_compare(const st_value *a, const st_value *b);
void st_constant_free(st_value *value); /* its insides; safe on a zeroed one */

#endif
