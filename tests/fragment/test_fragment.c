/*
 * Fragments: what was written is read, of every type and at every size; no damage goes unseen by verify, none that a
 * reader touches by the reader (LESSONS N-03, F-09); bytes that carry right checksums around wrong content do no harm.
 *
 * "test_fragment --write-sample DIR" writes the files that tests/interop opens with other programs.
 */
#include "sample.h"
#include "store/arrow/metadata.h"
#include "table_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "0190-1.arrow"

/* Reads all columns of all batches; *ret_wrong counts the rows that differ from the sample's (its columns `numbers`).
 */
static sluice_status read_some(pf_volume *volume, const st_fragment_info *info, const uint32_t *numbers,
                               uint32_t expected, uint64_t first, bool verify, uint64_t *ret_wrong, sluice_error *err)
{
    st_fragment *fragment = NULL;
    uint64_t row = first;
    sluice_status status = st_fragment_open(volume, TABLE, info, &fragment, err);

    *ret_wrong = 0;
    if (status == SLUICE_OK && verify)
        status = st_fragment_verify(fragment, err);
    for (uint32_t b = 0; status == SLUICE_OK && b < st_fragment_batches(fragment); b++) {
        st_column columns[64];
        uint32_t count = st_fragment_columns(fragment);
        for (uint32_t c = 0; status == SLUICE_OK && c < count && c < 64; c++)
            status = st_fragment_column(fragment, b, c, &columns[c], err);
        for (uint64_t i = 0; status == SLUICE_OK && i < st_fragment_batch_rows(fragment, b); i++)
            *ret_wrong += count != expected || !sample_row_is(columns, numbers, count, i, row++);
    }
    st_fragment_close(fragment);
    return status;
}

static sluice_status read_all(pf_volume *volume, const st_fragment_info *info, uint64_t first, bool verify,
                              uint64_t *ret_wrong, sluice_error *err)
{
    return read_some(volume, info, NULL, SAMPLE_COLUMNS, first, verify, ret_wrong, err);
}

static void every_type_comes_back_at_every_size(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 7, 63, 64, 65, 127, 128, 129, 1000, 9999};
    static const uint64_t batches[] = {1000000, 64, 1};
    sluice_error err = {0};
    table_dir dir = table_dir_simulate();
    unsigned n = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t b = 0; b < 3 && (b < 2 || counts[c] < 130); b++) {
            for (int compress = 0; compress < 2; compress++) {
                char name[32];
                uint64_t wrong;
                snprintf(name, sizeof name, "%u.arrow", n++);
                st_fragment_info info = sample_write(dir.volume, TABLE, name, 5, counts[c], batches[b], compress);
                ASSERT_OK(read_all(dir.volume, &info, 5, true, &wrong, &err));
                assert_int_equal(wrong, 0);
            }
        }
    }
    table_dir_remove(&dir);
}

static void its_structure_is_known_once_it_is_open(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_fragment_info info = sample_write(dir.volume, TABLE, NAME, 0, 250, 100, false);
    st_fragment *fragment;
    ASSERT_OK(st_fragment_open(dir.volume, TABLE, &info, &fragment, &err));
    assert_int_equal(st_fragment_batches(fragment), 3);
    assert_int_equal(st_fragment_batch_rows(fragment, 2), 50);
    assert_int_equal(st_fragment_columns(fragment), SAMPLE_COLUMNS);
    for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++) {
        const st_column_spec *spec = st_fragment_spec(fragment, c), *want = &sample_specs[c];
        assert_string_equal(spec->name, want->name);
        assert_int_equal(spec->type, want->type);
        assert_int_equal(spec->nullable, want->nullable);
        assert_true(spec->property == want->property);
        assert_int_equal(spec->child_count, want->child_count);
        for (uint32_t m = 0; m < want->child_count; m++) {
            assert_string_equal(spec->children[m].name, want->children[m].name);
            assert_int_equal(spec->children[m].type, want->children[m].type);
            assert_true(spec->children[m].property == want->children[m].property);
        }
    }
    assert_int_equal(st_fragment_find_property(fragment, 7), 6);
    assert_int_equal(st_fragment_find_property(fragment, 70), -1);
    assert_int_equal(st_fragment_find_property(fragment, 0), -1);
    assert_int_equal(st_fragment_find_name(fragment, "_row_id"), 11);
    assert_int_equal(st_fragment_find_name(fragment, "from"), 10);
    assert_int_equal(st_fragment_find_name(fragment, "text"), -1); /* a property: found by its id only */
    const uint64_t positions[] = {0, 99, 100, 199, 200, 249};
    for (size_t i = 0; i < 6; i++) {
        uint32_t batch;
        uint64_t row;
        st_fragment_locate(fragment, positions[i], &batch, &row);
        assert_int_equal(batch, positions[i] / 100);
        assert_int_equal(row, positions[i] % 100);
    }
    uint32_t beyond;
    uint64_t row;
    st_column first, again;
    st_fragment_locate(fragment, 250, &beyond, &row);
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_column(fragment, beyond, 2, &first, &err));
    ASSERT_OK(st_fragment_column(fragment, 0, 2, &first, &err));
    ASSERT_OK(st_fragment_column(fragment, 0, 2, &again, &err));
    assert_ptr_equal(first.values, again.values);
    assert_int_equal((uintptr_t)first.values % 64, 0); /* mapped, aligned */
    st_fragment_close(fragment);
    table_dir_remove(&dir);
}

static void equal_rows_give_equal_bytes(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_fragment_info a = sample_write(dir.volume, TABLE, "a.arrow", 0, 500, 64, false);
    st_fragment_info b = sample_write(dir.volume, TABLE, "b.arrow", 0, 500, 64, false);
    assert_memory_equal(&a.footer, &b.footer, sizeof a.footer);
    pf_buffer x = table_dir_read(&dir, "fragments/a.arrow"), y = table_dir_read(&dir, "fragments/b.arrow");
    assert_int_equal(x.length, y.length);
    assert_memory_equal(x.data, y.data, x.length);
    pf_buffer_free(&x);
    pf_buffer_free(&y);
    table_dir_remove(&dir);
}

static void one_flipped_byte_anywhere_is_found(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {0, 2, 6, 10}; /* of every layout one, so that the file is small */
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    for (int compress = 0; compress < 2; compress++) {
        const char *name = compress ? "z.arrow" : "p.arrow";
        char path[64];
        uint64_t wrong, seen = 0;
        st_fragment_info info = sample_write_some(dir.volume, TABLE, name, numbers, 4, 10, 6, compress);
        snprintf(path, sizeof path, "fragments/%s", name);
        pf_buffer bytes = table_dir_read(&dir, path);
        assert_int_equal(bytes.length, info.bytes);
        for (size_t i = 0; i < bytes.length; i++) {
            bytes.data[i] ^= 0x40;
            table_dir_write(&dir, path, bytes.data, bytes.length);
            assert_int_equal(read_some(dir.volume, &info, numbers, 4, 0, true, &wrong, &err), SLUICE_CORRUPT);
            assert_non_null(strstr(err.message, path));
            sluice_status status = read_some(dir.volume, &info, numbers, 4, 0, false, &wrong, &err);
            assert_true(status == SLUICE_CORRUPT || (status == SLUICE_OK && wrong == 0)); /* not touched: padding */
            seen += status == SLUICE_CORRUPT;
            bytes.data[i] ^= 0x40;
        }
        assert_true(seen > bytes.length / 3);
        for (size_t length = 0; length < bytes.length; length++) {
            table_dir_write(&dir, path, bytes.data, length);
            assert_int_equal(read_some(dir.volume, &info, numbers, 4, 0, false, &wrong, &err), SLUICE_CORRUPT);
        }
        pf_buffer_free(&bytes);
    }
    table_dir_remove(&dir);
}

static void damage_in_one_column_leaves_the_others_readable(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_fragment_info info = sample_write(dir.volume, TABLE, NAME, 0, 100, 50, false);
    pf_buffer bytes = table_dir_read(&dir, "fragments/" NAME);
    const char *needle = memmem(bytes.data, bytes.length, "row-61", 6);
    assert_non_null(needle);
    bytes.data[(const uint8_t *)needle - bytes.data] = 'R'; /* of column "text" in batch 1 */
    table_dir_write(&dir, "fragments/" NAME, bytes.data, bytes.length);
    st_fragment *fragment;
    ASSERT_OK(st_fragment_open(dir.volume, TABLE, &info, &fragment, &err));
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++) {
            st_column column;
            for (int again = 0; again < 2; again++)
                assert_int_equal(st_fragment_column(fragment, b, c, &column, &err),
                                 b == 1 && c == 6 ? SLUICE_CORRUPT : SLUICE_OK);
        }
    }
    assert_non_null(strstr(err.message, "tables/70/fragments/" NAME));
    assert_non_null(strstr(err.hint, "salvage"));
    st_fragment_close(fragment);
    pf_buffer_free(&bytes);
    table_dir_remove(&dir);
}

static void an_edit_that_says_otherwise_is_corruption(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_fragment_info info = sample_write(dir.volume, TABLE, NAME, 0, 10, 50, false), other = info;
    st_fragment *fragment;
    other.rows++;
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    other = info;
    other.explicit_ids = false;
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    other = info;
    other.footer.bytes[0] ^= 1;
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    other = info;
    other.bytes++;
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    other = info;
    memcpy(other.name, "absent.arrow", sizeof "absent.arrow");
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    assert_null(fragment);
    ASSERT_OK(pf_make_folder(dir.volume, "tables/71", &err));
    ASSERT_OK(pf_make_folder(dir.volume, "tables/71/fragments", &err));
    st_fragment_writer *writer;
    ASSERT_OK(st_fragment_create(dir.volume, 71, NAME, sample_specs, 1, false, &writer, &err));
    ASSERT_OK(st_fragment_finish(writer, &other, &err));
    ASSERT_OK(pf_publish(dir.volume, "tables/71/fragments/" NAME, "tables/70/fragments/foreign.arrow", &err));
    memcpy(other.name, "foreign.arrow", sizeof "foreign.arrow");
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_open(dir.volume, TABLE, &other, &fragment, &err));
    table_dir_remove(&dir);
}

static bool refuse(void *context)
{
    return !*(bool *)context;
}

static void a_writer_that_failed_stays_failed(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_fragment_writer *writer;
    st_fragment_info info;
    st_column columns[SAMPLE_COLUMNS];
    sample rows;
    sample_begin(&rows);
    for (uint64_t i = 0; i < 40000; i++)
        sample_append(&rows, i);
    sample_view(&rows, columns);

    ASSERT_OK(st_fragment_create(dir.volume, TABLE, NAME, sample_specs, SAMPLE_COLUMNS, false, &writer, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, st_fragment_create(dir.volume, TABLE, NAME, sample_specs, SAMPLE_COLUMNS, false,
                                                           &(st_fragment_writer *){NULL}, &err));
    st_column wrong[SAMPLE_COLUMNS];
    memcpy(wrong, columns, sizeof wrong);
    wrong[3] = columns[2];
    ASSERT_FAILS(SLUICE_INTERNAL, st_fragment_write(writer, wrong, wrong[0].length, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, st_fragment_write(writer, columns, columns[0].length, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, st_fragment_finish(writer, &info, &err));

    bool fenced = false;
    pf_volume_set_fence(dir.volume, refuse, &fenced);
    ASSERT_OK(st_fragment_create(dir.volume, TABLE, "2.arrow", sample_specs, SAMPLE_COLUMNS, false, &writer, &err));
    fenced = true;
    ASSERT_FAILS(SLUICE_FENCED, st_fragment_write(writer, columns, columns[0].length, &err));
    fenced = false;
    ASSERT_FAILS(SLUICE_FENCED, st_fragment_write(writer, columns, columns[0].length, &err));
    ASSERT_FAILS(SLUICE_FENCED, st_fragment_finish(writer, &info, &err));

    ASSERT_OK(st_fragment_create(dir.volume, TABLE, "3.arrow", sample_specs, SAMPLE_COLUMNS, false, &writer, &err));
    ASSERT_OK(st_fragment_write(writer, columns, columns[0].length, &err));
    st_fragment_abandon(writer);
    st_fragment_abandon(NULL);
    sample_end(&rows);
    table_dir_remove(&dir);
}

static void nulls_in_a_required_column_are_refused(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_column_spec spec = sample_specs[2];
    st_column_builder *builder;
    st_fragment_writer *writer;
    st_column column;
    spec.nullable = false;
    ASSERT_OK(st_column_builder_new(&spec, &builder, &err));
    ASSERT_OK(st_append_null(builder, &err));
    st_builder_view(builder, &column);
    ASSERT_OK(st_fragment_create(dir.volume, TABLE, NAME, &spec, 1, false, &writer, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, st_fragment_write(writer, &column, column.length, &err));
    st_fragment_abandon(writer);
    st_column_builder_free(builder);
    table_dir_remove(&dir);
}

static void writing_is_a_few_large_calls_and_one_sync(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    pf_volume_counters_reset(dir.volume);
    st_fragment_info info = sample_write(dir.volume, TABLE, NAME, 0, 60000, 20000, false);
    const pf_counters *counters = pf_volume_counters(dir.volume);
    assert_int_equal(counters->creates, 1);
    assert_int_equal(counters->file_syncs, 1);
    assert_int_equal(counters->directory_syncs, 0);
    assert_int_equal(counters->bytes_written, info.bytes);
    assert_in_range(counters->writes, 1, info.bytes / (1 << 20) + 1);
    table_dir_remove(&dir);
}

/* ---- hostile bytes: changed content behind right checksums ---- */

typedef struct sealed {
    pf_buffer bytes; /* the file as it was written */
    uint64_t footer_at, heads_at, sums_at;
    st_arrow_footer footer;
    st_arrow_message *messages;
} sealed;

static sealed take_apart(table_dir *dir, const char *path)
{
    sluice_error err = {0};
    sealed file = {.bytes = table_dir_read(dir, path)};
    uint32_t length;
    memcpy(&length, file.bytes.data + file.bytes.length - 10, 4);
    file.footer_at = file.bytes.length - 10 - length;
    ASSERT_OK(st_arrow_decode_footer(file.bytes.data + file.footer_at, length, &file.footer, &err));
    const char *heads = st_arrow_pairs_find(&file.footer.metadata, "sluice.messages", &length);
    const uint8_t *at = memmem(file.bytes.data, file.bytes.length, heads, length);
    assert_non_null(at);
    file.heads_at = (uint64_t)(at - file.bytes.data);
    const char *sums = st_arrow_pairs_find(&file.footer.metadata, "sluice.checksums", &length);
    at = memmem(file.bytes.data, file.bytes.length, sums, length);
    assert_non_null(at);
    file.sums_at = (uint64_t)(at - file.bytes.data);
    file.messages = calloc(file.footer.batch_count, sizeof *file.messages);
    assert_non_null(file.messages);
    for (uint32_t b = 0; b < file.footer.batch_count; b++) {
        const st_arrow_block *block = &file.footer.batches[b];
        ASSERT_OK(st_arrow_decode_message(file.bytes.data + block->offset + 8, block->metadata_length - 8,
                                          &file.messages[b], &err));
    }
    return file;
}

static void put_hex(uint8_t *at, const uint8_t *bytes, uint64_t length)
{
    char text[PF_XXH128_TEXT];
    pf_xxh128_text(pf_xxh128_of(bytes, length), text);
    memcpy(at, text, 32);
}

/* Gives changed bytes the checksums that fit them, where the original file had its parts. */
static pf_sha256 reseal(const sealed *file, uint8_t *bytes)
{
    uint64_t sum = file->sums_at;
    put_hex(bytes + file->heads_at, bytes + 8, file->footer.batches[0].offset - 8);
    for (uint32_t b = 0; b < file->footer.batch_count; b++) {
        const st_arrow_block *block = &file->footer.batches[b];
        const st_arrow_batch *batch = &file->messages[b].batch;
        put_hex(bytes + file->heads_at + 32 * (b + 1), bytes + block->offset, block->metadata_length);
        for (uint32_t i = 0; i < batch->buffer_count; i++, sum += 32)
            put_hex(bytes + sum, bytes + block->offset + block->metadata_length + batch->buffers[i].offset,
                    batch->buffers[i].length);
    }
    return pf_sha256_of(bytes + file->footer_at, file->bytes.length - 10 - file->footer_at);
}

static void hostile_bytes_are_refused_or_harmless(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    unsigned accepted = 0, refused = 0;
    for (int compress = 0; compress < 2; compress++) {
        const char *name = compress ? "z.arrow" : "p.arrow";
        char path[64];
        snprintf(path, sizeof path, "fragments/%s", name);
        st_fragment_info info = sample_write(dir.volume, TABLE, name, 0, 20, 12, compress), hostile = info;
        sealed file = take_apart(&dir, path);
        test_random random = {(uint64_t)compress};
        for (int round = 0; round < 2500; round++) {
            uint8_t *copy = malloc(file.bytes.length);
            assert_non_null(copy);
            memcpy(copy, file.bytes.data, file.bytes.length);
            for (uint64_t changes = 1 + test_random_next(&random) % 3; changes; changes--) {
                uint64_t at = test_random_next(&random) % (file.bytes.length - 8) + 8;
                if (at % 2 && file.footer_at < at) /* structure is at the footer's end and in the messages */
                    at = file.sums_at - 1 - test_random_next(&random) % (file.sums_at - file.footer_at);
                uint8_t value = (uint8_t)test_random_next(&random);
                copy[at] = round % 3 == 0 ? value : round % 3 == 1 ? (uint8_t)(copy[at] + 1) : copy[at] ^ 0x80;
            }
            hostile.footer = reseal(&file, copy);
            table_dir_write(&dir, path, copy, file.bytes.length);
            uint64_t wrong;
            sluice_status status = read_all(dir.volume, &hostile, 0, round % 2, &wrong, &err);
            assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT || status == SLUICE_UNSUPPORTED_FORMAT);
            status == SLUICE_OK ? accepted++ : refused++;
            st_fragment_info seen;
            pf_buffer said = {0};
            status = st_fragment_look(dir.volume, TABLE, hostile.name, &seen, &said, &err);
            assert_true(status == SLUICE_OK || status == SLUICE_CORRUPT);
            pf_buffer_free(&said);
            free(copy);
        }
        for (uint32_t b = 0; b < file.footer.batch_count; b++)
            st_arrow_message_free(&file.messages[b]);
        free(file.messages);
        st_arrow_footer_free(&file.footer);
        pf_buffer_free(&file.bytes);
    }
    assert_true(accepted > 50 && refused > 1000); /* both outcomes were reached */
    table_dir_remove(&dir);
}

static void a_fragment_says_by_itself_what_it_is(void **state)
{
    static const char type[] = "what its type was";
    (void)state;
    table_dir dir = table_dir_simulate();
    st_fragment_writer *writer = NULL;
    st_fragment_info info, seen;
    pf_buffer said = {0};
    sluice_error err = {0};
    ASSERT_OK(st_fragment_create(dir.volume, TABLE, NAME, sample_specs, SAMPLE_COLUMNS, false, &writer, &err));
    ASSERT_OK(st_fragment_describe(writer, type, sizeof type - 1, &err));
    ASSERT_OK(st_fragment_finish(writer, &info, &err));
    ASSERT_OK(st_fragment_look(dir.volume, TABLE, NAME, &seen, &said, &err));
    assert_int_equal(said.length, sizeof type - 1);
    assert_memory_equal(said.data, type, said.length);
    assert_memory_equal(&seen.footer, &info.footer, sizeof info.footer);
    assert_int_equal(seen.bytes, info.bytes);
    assert_int_equal(seen.rows, info.rows);
    ASSERT_FAILS(SLUICE_CORRUPT, st_fragment_look(dir.volume, TABLE, "absent.arrow", &seen, &said, &err));
    pf_buffer_free(&said);
    table_dir_remove(&dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back_at_every_size),
        cmocka_unit_test(its_structure_is_known_once_it_is_open),
        cmocka_unit_test(equal_rows_give_equal_bytes),
        cmocka_unit_test(one_flipped_byte_anywhere_is_found),
        cmocka_unit_test(damage_in_one_column_leaves_the_others_readable),
        cmocka_unit_test(an_edit_that_says_otherwise_is_corruption),
        cmocka_unit_test(a_writer_that_failed_stays_failed),
        cmocka_unit_test(nulls_in_a_required_column_are_refused),
        cmocka_unit_test(writing_is_a_few_large_calls_and_one_sync),
        cmocka_unit_test(hostile_bytes_are_refused_or_harmless),
        cmocka_unit_test(a_fragment_says_by_itself_what_it_is),
    };
    if (argc == 3 && strcmp(argv[1], "--write-sample") == 0) {
        sample_write_all(argv[2]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
