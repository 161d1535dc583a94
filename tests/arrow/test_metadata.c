/*
 * Arrow metadata: schemas, batches and footers survive encoding; columns that Sluice cannot hold are refused by name;
 * bytes that are anything never lead outside, without bound or into a crash.
 */
#include "store/arrow/metadata.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME(text) ((char *)(uintptr_t)(text))

static st_column_spec members[2] = {{.name = NAME("A"), .type = ST_INT64, .property = 70},
                                    {.name = NAME("B"), .type = ST_STRING, .property = 71}};

static st_arrow_schema every_type(st_column_spec specs[ST_STRUCT + 1])
{
    sluice_error err = {0};
    st_arrow_schema schema;
    for (int type = ST_BOOL; type <= ST_STRUCT; type++)
        specs[type] = (st_column_spec){.name = NAME(st_type_name((st_type)type)),
                                       .type = (st_type)type,
                                       .nullable = type % 2,
                                       .property = (uint64_t)type * 1000000007};
    specs[ST_STRUCT].children = members;
    specs[ST_STRUCT].child_count = 2;
    ASSERT_OK(st_arrow_schema_from_specs(specs, ST_STRUCT + 1, &schema, &err));
    ASSERT_OK(st_arrow_pairs_add(&schema.metadata, "key", "va\0lue", 6, &err));
    ASSERT_OK(st_arrow_pairs_add(&schema.metadata, "", "", 0, &err));
    return schema;
}

static void assert_same_fields(const st_arrow_field *a, const st_arrow_field *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].nullable, b[i].nullable);
        assert_int_equal(a[i].kind, b[i].kind);
        assert_int_equal(a[i].width, b[i].width);
        assert_int_equal(a[i].is_signed, b[i].is_signed);
        assert_int_equal(a[i].unit, b[i].unit);
        assert_int_equal(a[i].timezone != NULL, b[i].timezone != NULL);
        if (a[i].timezone)
            assert_string_equal(a[i].timezone, b[i].timezone);
        assert_int_equal(a[i].has_dictionary, b[i].has_dictionary);
        assert_int_equal(a[i].dictionary, b[i].dictionary);
        assert_int_equal(a[i].index_width, b[i].index_width);
        assert_int_equal(a[i].index_signed, b[i].index_signed);
        assert_int_equal(a[i].metadata.count, b[i].metadata.count);
        for (uint32_t m = 0; m < a[i].metadata.count; m++)
            assert_string_equal(a[i].metadata.items[m].value, b[i].metadata.items[m].value);
        assert_int_equal(a[i].child_count, b[i].child_count);
        for (uint32_t m = 0; m < a[i].child_count; m++)
            assert_string_equal(a[i].children[m].name, b[i].children[m].name);
    }
}

static void schemas_survive(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec specs[ST_STRUCT + 1], *back;
    st_arrow_schema schema = every_type(specs);
    st_arrow_message message;
    pf_buffer buffer = {0};
    uint32_t count, length;

    schema.fields[ST_STRING].has_dictionary = true; /* of others' files */
    schema.fields[ST_STRING].dictionary = 5000000000;
    schema.fields[ST_STRING].index_width = 16;
    schema.fields[ST_STRING].index_signed = true;
    ASSERT_OK(st_arrow_encode_schema(&schema, &buffer, &err));
    ASSERT_OK(st_arrow_decode_message(buffer.data, buffer.length, &message, &err));
    assert_int_equal(message.header, ST_ARROW_SCHEMA);
    assert_int_equal(message.schema.field_count, ST_STRUCT + 1);
    assert_same_fields(message.schema.fields, schema.fields, ST_STRUCT + 1);
    assert_memory_equal(st_arrow_pairs_find(&message.schema.metadata, "key", &length), "va\0lue", 7);
    assert_int_equal(length, 6);
    assert_string_equal(st_arrow_pairs_find(&message.schema.metadata, "", &length), "");
    assert_null(st_arrow_pairs_find(&message.schema.metadata, "absent", &length));

    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_arrow_specs_from_schema(&message.schema, &back, &count, &err));
    message.schema.fields[ST_STRING].has_dictionary = false;
    ASSERT_OK(st_arrow_specs_from_schema(&message.schema, &back, &count, &err));
    assert_int_equal(count, ST_STRUCT + 1);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(back[i].name, specs[i].name);
        assert_int_equal(back[i].type, specs[i].type);
        assert_int_equal(back[i].nullable, specs[i].nullable);
        assert_true(back[i].property == specs[i].property);
        st_column_spec_free(&back[i]);
    }
    free(back);
    st_arrow_message_free(&message);
    st_arrow_schema_free(&schema);
    pf_buffer_free(&buffer);
}

static void batches_and_footers_survive(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_arrow_node nodes[2] = {{10, 3}, {10, 0}};
    st_arrow_buffer buffers[3] = {{0, 2}, {64, 40}, {128, (uint64_t)1 << 40}};
    for (st_arrow_codec codec = ST_ARROW_PLAIN; codec <= ST_ARROW_ZSTD; codec++) {
        st_arrow_batch batch = {10, nodes, 2, buffers, 3, NULL, 0, codec};
        st_arrow_message message;
        pf_buffer buffer = {0};
        ASSERT_OK(st_arrow_encode_batch(&batch, ((uint64_t)1 << 40) + 128, &buffer, &err));
        ASSERT_OK(st_arrow_decode_message(buffer.data, buffer.length, &message, &err));
        assert_int_equal(message.header, ST_ARROW_RECORD_BATCH);
        assert_true(message.body_length == ((uint64_t)1 << 40) + 128);
        assert_int_equal(message.batch.length, 10);
        assert_int_equal(message.batch.codec, codec);
        assert_int_equal(message.batch.node_count, 2);
        assert_int_equal(message.batch.buffer_count, 3);
        assert_memory_equal(message.batch.nodes, nodes, sizeof nodes);
        assert_memory_equal(message.batch.buffers, buffers, sizeof buffers);
        st_arrow_message_free(&message);
        pf_buffer_free(&buffer);
    }
    st_column_spec specs[ST_STRUCT + 1];
    st_arrow_block blocks[2] = {{8, 300, 64}, {372, 256, (uint64_t)1 << 33}};
    st_arrow_footer footer = {.schema = every_type(specs), .batches = blocks, .batch_count = 2}, back;
    pf_buffer buffer = {0};
    ASSERT_OK(st_arrow_pairs_add(&footer.metadata, "sums", "abc", 3, &err));
    ASSERT_OK(st_arrow_encode_footer(&footer, &buffer, &err));
    ASSERT_OK(st_arrow_decode_footer(buffer.data, buffer.length, &back, &err));
    assert_same_fields(back.schema.fields, footer.schema.fields, ST_STRUCT + 1);
    assert_int_equal(back.batch_count, 2);
    assert_int_equal(back.dictionary_count, 0);
    assert_int_equal(back.batches[1].offset, 372);
    assert_int_equal(back.batches[1].metadata_length, 256);
    assert_true(back.batches[1].body_length == (uint64_t)1 << 33);
    uint32_t length;
    assert_string_equal(st_arrow_pairs_find(&back.metadata, "sums", &length), "abc");
    st_arrow_footer_free(&back);
    st_arrow_schema_free(&footer.schema);
    st_arrow_pairs_free(&footer.metadata);
    pf_buffer_free(&buffer);
}

static void a_column_of_another_type_is_refused_by_name(void **state)
{
    (void)state;
    static const st_arrow_field foreign[] = {
        {.kind = ST_ARROW_NULL},
        {.kind = ST_ARROW_INT, .width = 16, .is_signed = true},
        {.kind = ST_ARROW_INT, .width = 32},
        {.kind = ST_ARROW_FLOATING_POINT, .unit = ST_ARROW_HALF},
        {.kind = ST_ARROW_DATE, .unit = ST_ARROW_MILLISECONDS_OF_DATE},
        {.kind = ST_ARROW_TIMESTAMP, .unit = ST_ARROW_MICROSECOND},
        {.kind = ST_ARROW_TIMESTAMP, .unit = ST_ARROW_NANOSECOND, .timezone = NAME("UTC")},
        {.kind = ST_ARROW_TIMESTAMP, .unit = ST_ARROW_MICROSECOND, .timezone = NAME("Europe/Paris")},
        {.kind = ST_ARROW_FIXED_SIZE_BINARY, .width = 8},
        {.kind = ST_ARROW_LARGE_UTF8},
        {.kind = 12},
        {.kind = ST_ARROW_STRUCT},
    };
    sluice_error err = {0};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        st_arrow_field field = foreign[i];
        field.name = NAME("secret");
        st_arrow_schema schema = {.fields = &field, .field_count = 1};
        st_column_spec *specs;
        uint32_t count;
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_arrow_specs_from_schema(&schema, &specs, &count, &err));
        assert_null(specs);
        assert_null(strstr(err.message, "secret")); /* names are for the terminal only */
        if (field.kind != ST_ARROW_STRUCT)
            assert_non_null(strstr(err.text, "secret"));
    }
}

static void malformed_property_ids_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "0", "01", "1x", "-1", " 1", "18446744073709551616", "99999999999999999999"};
    sluice_error err = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        st_arrow_field field = {.name = NAME("a"), .kind = ST_ARROW_BOOL};
        st_arrow_schema schema = {.fields = &field, .field_count = 1};
        st_column_spec *specs;
        uint32_t count;
        ASSERT_OK(st_arrow_pairs_add(&field.metadata, "sluice.property", texts[i], strlen(texts[i]), &err));
        ASSERT_FAILS(SLUICE_CORRUPT, st_arrow_specs_from_schema(&schema, &specs, &count, &err));
        st_arrow_pairs_free(&field.metadata);
    }
}

static st_arrow_schema nested(unsigned depth)
{
    st_arrow_field *field = calloc(1, sizeof *field);
    assert_non_null(field);
    st_arrow_schema schema = {.fields = field, .field_count = 1};
    for (unsigned d = 0;; d++) {
        *field = (st_arrow_field){.name = strdup("s"), .kind = ST_ARROW_STRUCT};
        if (d == depth)
            return schema;
        field->children = calloc(1, sizeof *field);
        assert_non_null(field->children);
        field->child_count = 1;
        field = field->children;
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    sluice_error err = {0};
    for (unsigned depth = 14; depth < 17; depth++) {
        st_arrow_schema schema = nested(depth);
        st_arrow_message message;
        pf_buffer buffer = {0};
        ASSERT_OK(st_arrow_encode_schema(&schema, &buffer, &err));
        if (depth < ST_ARROW_DEPTH_MAX) {
            ASSERT_OK(st_arrow_decode_message(buffer.data, buffer.length, &message, &err));
            st_arrow_message_free(&message);
        } else {
            ASSERT_FAILS(SLUICE_CORRUPT, st_arrow_decode_message(buffer.data, buffer.length, &message, &err));
        }
        pf_buffer_free(&buffer);
        st_arrow_schema_free(&schema);
    }
}

/* One text, referred to a great many times: a small buffer must not become a large schema. */
static void repeated_references_do_not_multiply_memory(void **state)
{
    (void)state;
    sluice_error err = {0};
    enum { TEXT = 100000, PAIRS = 20000 };
    pf_buffer buffer = {0};
    ASSERT_OK(pf_buffer_reserve(&buffer, TEXT + 5 * PAIRS * 4 + 1000, &err));
    /* By hand: root -> message -> schema -> vector of PAIRS references to one pair whose value is TEXT long. */
    uint8_t *b = buffer.data;
    memset(b, 0, TEXT + 5 * PAIRS * 4 + 1000);
#define U16(at, v) memcpy(b + (at), &(uint16_t){(uint16_t)(v)}, 2)
#define U32(at, v) memcpy(b + (at), &(uint32_t){(uint32_t)(v)}, 4)
    U32(0, 32 - 0);          /* root: message at 32 */
    U16(8, 10), U16(10, 16); /* vtable of the message at 8: version, header type, header */
    U16(12, 4), U16(14, 6), U16(16, 8);
    U32(32, 32 - 8);         /* message */
    U16(36, 4), b[38] = 1;   /* V5, schema */
    U32(40, 80 - 40);        /* header: schema at 80 */
    U16(56, 10), U16(58, 8); /* vtable of the schema at 56: only slot 2 */
    U16(60, 0), U16(62, 0), U16(64, 4);
    U32(80, 80 - 56);
    U32(84, 200 - 84);         /* metadata vector at 200 */
    U16(100, 8), U16(102, 12); /* vtable of the pair at 100 */
    U16(104, 4), U16(106, 8);
    U32(120, 120 - 100); /* pair at 120: key and value are the same text */
    uint32_t text = 204 + 4 * PAIRS;
    U32(124, text - 124);
    U32(128, text - 128);
    U32(200, PAIRS);
    for (uint32_t i = 0; i < PAIRS; i++)
        U32(204 + 4 * i, 120u - (204 + 4 * i)); /* backwards: outside */
    U32(text, TEXT);
    memset(b + text + 4, 'x', TEXT);
    buffer.length = text + 4 + TEXT + 1;
    st_arrow_message message;
    ASSERT_FAILS(SLUICE_CORRUPT, st_arrow_decode_message(b, buffer.length, &message, &err));
    /* The pair behind the vector, so that every reference is within bounds. */
    uint32_t pair = ((uint32_t)buffer.length + 3u) & ~3u;
    U16(pair, 8), U16(pair + 2, 12), U16(pair + 4, 4), U16(pair + 6, 8);
    U32(pair + 8, 8);
    uint32_t again = pair + 20;
    U32(pair + 12, again - (pair + 12));
    U32(pair + 16, again - (pair + 16));
    U32(again, TEXT / 2);
    memset(b + again + 4, 'x', TEXT / 2);
    buffer.length = again + 4 + TEXT / 2 + 1;
    for (uint32_t i = 0; i < PAIRS; i++)
        U32(204 + 4 * i, pair + 8 - (204 + 4 * i));
    ASSERT_FAILS(SLUICE_CORRUPT, st_arrow_decode_message(b, buffer.length, &message, &err));
    U32(200, 3); /* a few are fine: it was the multitude */
    ASSERT_OK(st_arrow_decode_message(b, buffer.length, &message, &err));
    assert_int_equal(message.schema.metadata.count, 3);
    assert_int_equal(message.schema.metadata.items[2].value_length, TEXT / 2);
    st_arrow_message_free(&message);
    pf_buffer_free(&buffer);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void decode_both(const uint8_t *bytes, size_t length)
{
    st_arrow_message message;
    st_arrow_footer footer;
    sluice_error err = {0};
    uint8_t *copy = malloc(length ? length : 1); /* of exactly this length, for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    sluice_status status = st_arrow_decode_message(copy, length, &message, &err);
    assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
    if (status == SLUICE_OK)
        st_arrow_message_free(&message);
    status = st_arrow_decode_footer(copy, length, &footer, &err);
    assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
    if (status == SLUICE_OK)
        st_arrow_footer_free(&footer);
    free(copy);
}

static void anything_may_be_decoded(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_column_spec specs[ST_STRUCT + 1];
    st_arrow_block block = {8, 300, 64};
    st_arrow_footer footer = {.schema = every_type(specs), .batches = &block, .batch_count = 1};
    st_arrow_node nodes[2] = {{10, 3}, {10, 0}};
    st_arrow_buffer buffers[3] = {{0, 2}, {64, 40}, {128, 8}};
    st_arrow_batch batch = {10, nodes, 2, buffers, 3, NULL, 0, ST_ARROW_ZSTD};
    pf_buffer images[3] = {0};
    ASSERT_OK(st_arrow_encode_schema(&footer.schema, &images[0], &err));
    ASSERT_OK(st_arrow_encode_batch(&batch, 136, &images[1], &err));
    ASSERT_OK(st_arrow_encode_footer(&footer, &images[2], &err));
    uint64_t seed = 1;
    for (int i = 0; i < 3; i++) {
        for (size_t cut = 0; cut < images[i].length; cut += 3)
            decode_both(images[i].data, cut);
        for (int round = 0; round < 8000; round++) {
            uint8_t kept[4];
            size_t at = next(&seed) % (images[i].length - 3), length = 1 + next(&seed) % 4;
            memcpy(kept, images[i].data + at, 4);
            for (size_t k = 0; k < length; k++)
                images[i].data[at + k] = (uint8_t)(round % 2 ? next(&seed) : next(&seed) % 3 - 1);
            decode_both(images[i].data, images[i].length);
            if (round % 5) /* else the damage stays and adds up */
                memcpy(images[i].data + at, kept, 4);
        }
        pf_buffer_free(&images[i]);
    }
    st_arrow_schema_free(&footer.schema);
}

/* Written by pyarrow 26 with lz4: columns of kinds that Sluice has not. */
static void files_of_others_are_understood_and_refused_by_type(void **state)
{
    (void)state;
    static uint8_t bytes[16384];
    FILE *file = fopen(TEST_GOLDEN_DIR "/foreign.arrow", "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    sluice_error err = {0};
    st_arrow_footer footer;
    st_arrow_message message;
    st_column_spec *specs;
    uint32_t length, count;
    memcpy(&length, bytes + size - 10, 4);
    ASSERT_OK(st_arrow_decode_footer(bytes + size - 10 - length, length, &footer, &err));
    assert_string_equal(st_arrow_pairs_find(&footer.schema.metadata, "who", &length), "pyarrow");
    assert_int_equal(footer.schema.field_count, 9);
    const st_arrow_field *fields = footer.schema.fields;
    assert_string_equal(fields[0].name, "dict");
    assert_true(fields[0].has_dictionary && fields[0].index_width == 16 && fields[0].index_signed);
    assert_int_equal(fields[0].kind, ST_ARROW_LARGE_UTF8);
    assert_int_equal(fields[1].kind, ST_ARROW_LARGE_UTF8);
    assert_true(fields[2].kind == ST_ARROW_INT && fields[2].width == 8 && fields[2].is_signed && !fields[2].nullable);
    assert_true(fields[3].kind == ST_ARROW_TIMESTAMP && fields[3].unit == ST_ARROW_NANOSECOND && !fields[3].timezone);
    assert_true(fields[4].kind == 12 && fields[4].child_count == 1 && fields[4].children[0].width == 64);
    assert_true(fields[5].kind == ST_ARROW_FLOATING_POINT && fields[5].unit == ST_ARROW_HALF);
    assert_int_equal(fields[7].kind, ST_ARROW_NULL);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_arrow_specs_from_schema(&footer.schema, &specs, &count, &err));

    assert_true(footer.batch_count == 1 && footer.dictionary_count == 1);
    ASSERT_OK(st_arrow_decode_message(bytes + footer.dictionaries[0].offset + 8,
                                      footer.dictionaries[0].metadata_length - 8, &message, &err));
    assert_true(message.header == ST_ARROW_DICTIONARY && message.batch.length == 2 && !message.is_delta);
    st_arrow_message_free(&message);
    ASSERT_OK(st_arrow_decode_message(bytes + footer.batches[0].offset + 8, footer.batches[0].metadata_length - 8,
                                      &message, &err));
    assert_true(message.header == ST_ARROW_RECORD_BATCH && message.batch.length == 3);
    assert_int_equal(message.batch.codec, ST_ARROW_LZ4);
    assert_int_equal(message.body_length, footer.batches[0].body_length);
    st_arrow_message_free(&message);
    st_arrow_footer_free(&footer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_survive),
        cmocka_unit_test(batches_and_footers_survive),
        cmocka_unit_test(a_column_of_another_type_is_refused_by_name),
        cmocka_unit_test(malformed_property_ids_are_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(repeated_references_do_not_multiply_memory),
        cmocka_unit_test(anything_may_be_decoded),
        cmocka_unit_test(files_of_others_are_understood_and_refused_by_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
