/*
 * Arrays of Arrow as anybody makes them: any supported layout, any offset, dictionaries; and their values, one by one.
 *
 * An array says where its bytes are; it owns nothing. Numbers are read unaligned. A row's bit is that of offset + row,
 * in the validity bits as well. Texts lie in parts: [start, start + length) of a buffer, so that a slice needs no more
 * of it than its own texts. What was checked once (st_arrow_first_bad) is relied on after that.
 *
 * The supported kinds are the flat ones that a property can come from: null, bool, integers of 8 to 64 bits, floats of
 * 16 to 64, decimals of 32 to 128, text and bytes of every layout, dates, timestamps; each of them also by a
 * dictionary.
 */
#ifndef STORE_ARROW_ARRAY_H
#define STORE_ARROW_ARRAY_H

#include "store/arrow/metadata.h"

typedef struct st_arrow_part {
    const uint8_t *bytes;
    uint64_t start, length;
} st_arrow_part;

typedef struct st_arrow_array {
    const st_arrow_field *field; /* with a dictionary: kind and the like are those of its values */
    uint64_t length, offset;
    const uint8_t *validity; /* NULL: no nulls */
    const uint8_t *parent;   /* validity of the struct that it is a member of; NULL: no nulls, or no struct */
    uint64_t parent_offset;
    const uint8_t *values; /* fixed-width values, bits, offsets, views, or indexes into the dictionary */
    const st_arrow_part *parts;
    uint32_t part_count;
    const struct st_arrow_dictionary *dictionary;
} st_arrow_array;

typedef struct st_arrow_dictionary { /* its values, as they came: one array, and one more with each delta */
    const st_arrow_array *chunks;    /* none of them with a dictionary */
    const uint64_t *firsts;          /* number of each chunk's first value */
    uint32_t chunk_count;
    uint64_t length;
} st_arrow_dictionary;

typedef enum st_arrow_class {
    ST_CLASS_NOTHING, /* null */
    ST_CLASS_SIGNED,
    ST_CLASS_UNSIGNED,
    ST_CLASS_FLOATING,
    ST_CLASS_EXACT, /* decimal */
    ST_CLASS_TRUTH,
    ST_CLASS_TEXT,
    ST_CLASS_BYTES,
    ST_CLASS_DAY,
    ST_CLASS_MOMENT
} st_arrow_class;

typedef struct st_arrow_value {
    st_arrow_class class;
    int64_t i64;          /* SIGNED, DAY (since 1970), MOMENT (microseconds since 1970) */
    uint64_t u64;         /* UNSIGNED */
    double f64;           /* FLOATING */
    bool single;          /* FLOATING: of 32 bits or fewer */
    bool truth;           /* TRUTH */
    const uint8_t *bytes; /* TEXT (any bytes: not yet known to be UTF-8), BYTES */
    uint64_t length;
    __int128 digits; /* EXACT: digits * 10^-scale */
    int32_t scale;
} st_arrow_value;

/* Can values of this field be read? */
bool st_arrow_field_is_flat(const st_arrow_field *field);
/* What its values are, once they are no nulls; NOTHING for the null type and for a field that is not flat. */
st_arrow_class st_arrow_field_class(const st_arrow_field *field);
/* "int64", "timestamp[ns, UTC]", "dictionary of utf8": for messages. */
#define ST_ARROW_TYPE_TEXT 96u
const char *st_arrow_field_text(const st_arrow_field *field, char ret_text[ST_ARROW_TYPE_TEXT]);
/* Bytes of one fixed-width value; 0 for bits, texts, null. For a field with a dictionary: of one index. */
uint64_t st_arrow_field_width(const st_arrow_field *field);

/* The first row whose index, offsets or view lead out of their buffers; `length` when there is none. */
uint64_t st_arrow_first_bad(const st_arrow_array *array);
/* Value `row` of a checked array. CONSTRAINT_TYPE for one that cannot be said exactly (finer than a microsecond, no
 * whole day, beyond the range of a timestamp), with the reason behind a placeless "it ...". */
sluice_status st_arrow_get(const st_arrow_array *array, uint64_t row, st_arrow_value *ret_value, sluice_error *err);

#endif
