/*
 * Values of look-ups (sluice/lookup.h), to and from columns.
 */
#ifndef LIB_VALUE_H
#define LIB_VALUE_H

#include "store/arrow/column.h"
#include "store/schema/schema.h"
#include <sluice/lookup.h>

/* A key as row 0 of columns, over values that stay the caller's. Not to be moved once it is filled. */
typedef struct lib_key {
    st_column columns[ST_KEY_MEMBERS_MAX];
    const st_column *pointers[ST_KEY_MEMBERS_MAX];
    st_column whole; /* the one member, or a struct of all */
    uint64_t words[ST_KEY_MEMBERS_MAX];
    int32_t offsets[ST_KEY_MEMBERS_MAX][2];
    uint32_t count;
} lib_key;
/* USAGE: not a key of this type of nodes. */
sluice_status lib_key_fill(lib_key *key, const st_type_def *type, const sluice_value *values, size_t count,
                           sluice_error *err);
/* The members of a type's key; of one without it 1. */
uint32_t lib_key_width(const st_type_def *type);
/* The type of member `i`. */
st_type lib_key_type(const st_type_def *type, uint32_t i);

sluice_value lib_value_at(const st_column *column, uint64_t row);
/* An integer-like value of 64 bits, as hashes keep it. */
sluice_value lib_value_of_word(st_type type, uint64_t word);

#endif
