/*
 * Golden files: what earlier builds wrote is read, and the same content still gives the same bytes (compressed
 * fragments are only read, since their bytes depend on the version of zstd).
 *
 * A change of format needs a new version and new files beside these. "test_golden --write DIR" writes them below
 * DIR/tables/70 and prints what their edits would hold.
 */
#include "sample.h"
#include "store/fragment/adjacency.h"
#include "store/fragment/deletion.h"
#include "store/fragment/run.h"
#include "table_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    20u
#define BATCH   12u
#define ENTRIES 30u

static st_run_info write_run(pf_volume *volume)
{
    sluice_error err = {0};
    st_run_entry entries[ENTRIES];
    st_run_info info;
    test_random random = {1};
    for (uint64_t i = 0; i < ENTRIES; i++)
        entries[i] = (st_run_entry){i % 5 ? test_random_next(&random) : 7, i};
    ASSERT_OK(st_run_write(volume, TABLE, "run-2.run", entries, ENTRIES, &info, &err));
    return info;
}

static st_run_info write_adjacency(pf_volume *volume)
{
    sluice_error err = {0};
    st_adjacency_cover covers[2] = {{.fragment = "0190-1.arrow", .rows = ENTRIES / 3},
                                    {.fragment = "0190-2.arrow", .rows = ENTRIES - ENTRIES / 3}};
    uint64_t hashes[ENTRIES];
    const uint64_t *far[2] = {hashes, hashes + ENTRIES / 3};
    st_run_entry near[ENTRIES];
    st_run_info info;
    test_random random = {2};
    for (uint64_t i = 0; i < ENTRIES; i++) {
        uint64_t second = i >= covers[0].rows;
        hashes[i] = test_random_next(&random);
        near[i] = (st_run_entry){i % 5 ? test_random_next(&random) : 7, second << 32 | (i - second * covers[0].rows)};
    }
    ASSERT_OK(st_adjacency_write(volume, TABLE, "adjacency-1.out", ST_ADJACENCY_OUT, covers, 2, near, ENTRIES, far,
                                 &info, &err));
    return info;
}

static bool is_deleted(uint64_t row)
{
    return (row < 100 && row % 7 == 3) || (row >= 5000 && row < 5100) || row == ((uint64_t)3 << 40) + 9;
}

static st_dead_ref write_deletions(pf_volume *volume)
{
    sluice_error err = {0};
    st_row_set *set;
    st_dead_ref ref;
    ASSERT_OK(st_row_set_new(&set, &err));
    for (uint64_t row = 0; row < 6000; row++)
        if (is_deleted(row))
            ASSERT_OK(st_row_set_add(set, row, &err));
    ASSERT_OK(st_row_set_add(set, ((uint64_t)3 << 40) + 9, &err));
    ASSERT_OK(st_deletion_write(volume, TABLE, "deletions-1.rows", set, &ref, &err));
    st_row_set_free(set);
    return ref;
}

static int write_golden(const char *root)
{
    static const char *const folders[] = {"tables",         "tables/70",           "tables/70/fragments",
                                          "tables/70/keys", "tables/70/deletions", "tables/70/indexes"};
    sluice_error err = {0};
    pf_volume *volume;
    char text[PF_SHA256_TEXT];
    ASSERT_OK(pf_volume_open(root, PF_WRITE, &volume, &err));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        ASSERT_OK(pf_make_folder(volume, folders[i], &err));
    for (int compress = 0; compress < 2; compress++) {
        st_fragment_info info = sample_write(volume, TABLE, compress ? "fragment-1-zstd.arrow" : "fragment-1.arrow", 0,
                                             ROWS, BATCH, compress);
        pf_sha256_text(&info.footer, text);
        printf("%s %llu %s\n", info.name, (unsigned long long)info.bytes, text);
    }
    st_run_info run = write_run(volume);
    pf_sha256_text(&run.footer, text);
    printf("%s %llu %s\n", run.name, (unsigned long long)run.bytes, text);
    st_run_info adjacency = write_adjacency(volume);
    pf_sha256_text(&adjacency.footer, text);
    printf("%s %llu %s\n", adjacency.name, (unsigned long long)adjacency.bytes, text);
    st_dead_ref dead = write_deletions(volume);
    pf_sha256_text(&dead.digest, text);
    printf("%s %llu %s\n", dead.name, (unsigned long long)dead.rows, text);
    pf_volume_close(volume);
    return 0;
}

static pf_buffer golden(const char *name)
{
    static uint8_t bytes[65536];
    sluice_error err = {0};
    char path[4096];
    pf_buffer buffer = {0};
    snprintf(path, sizeof path, "%s/%s", TEST_GOLDEN_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    ASSERT_OK(pf_buffer_append(&buffer, bytes, fread(bytes, 1, sizeof bytes, file), &err));
    fclose(file);
    return buffer;
}

static pf_sha256 digest_of(const char *text)
{
    pf_sha256 digest;
    assert_true(pf_sha256_parse(text, &digest));
    return digest;
}

static void assert_same_file(const table_dir *dir, const char *written, const char *name)
{
    pf_buffer now = table_dir_read(dir, written), then = golden(name);
    assert_int_equal(now.length, then.length);
    assert_memory_equal(now.data, then.data, now.length);
    pf_buffer_free(&now);
    pf_buffer_free(&then);
}

static void check_fragment(table_dir *dir, const st_fragment_info *info)
{
    sluice_error err = {0};
    st_fragment *fragment;
    char path[128];
    uint64_t row = 0;
    pf_buffer bytes = golden(info->name);
    snprintf(path, sizeof path, "fragments/%s", info->name);
    table_dir_write(dir, path, bytes.data, bytes.length);
    pf_buffer_free(&bytes);
    ASSERT_OK(st_fragment_open(dir->volume, TABLE, info, &fragment, &err));
    ASSERT_OK(st_fragment_verify(fragment, &err));
    for (uint32_t b = 0; b < st_fragment_batches(fragment); b++) {
        st_column columns[SAMPLE_COLUMNS];
        for (uint32_t c = 0; c < SAMPLE_COLUMNS; c++)
            ASSERT_OK(st_fragment_column(fragment, b, c, &columns[c], &err));
        for (uint64_t i = 0; i < st_fragment_batch_rows(fragment, b); i++)
            assert_true(sample_row_is(columns, NULL, SAMPLE_COLUMNS, i, row++));
    }
    assert_int_equal(row, ROWS);
    st_fragment_close(fragment);
}

static void fragments_of_version_1_are_read(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_fragment_info plain = {.name = "fragment-1.arrow", .rows = ROWS, .bytes = 12426, .explicit_ids = true},
                     zstd = {.name = "fragment-1-zstd.arrow", .rows = ROWS, .bytes = 12170, .explicit_ids = true};
    plain.footer = digest_of("9a5fba37434b59a34db82b9cacf62e09d130224d3e003107e02a7c39309b8586");
    zstd.footer = digest_of("5ec1f3a605489a59f04f0495cffdd47434697f2aa7fde273c505c29d19e3d62a");
    check_fragment(&dir, &plain);
    check_fragment(&dir, &zstd);
    table_dir_remove(&dir);
}

static void fragments_are_written_as_in_version_1(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    sample_write(dir.volume, TABLE, "new.arrow", 0, ROWS, BATCH, false);
    assert_same_file(&dir, "fragments/new.arrow", "fragment-1.arrow");
    table_dir_remove(&dir);
}

static void check_run(table_dir *dir, const char *name, st_run_info *info)
{
    sluice_error err = {0};
    pf_buffer bytes = golden(name);
    table_dir_write(dir, "keys/golden.run", bytes.data, bytes.length);
    pf_buffer_free(&bytes);
    st_run *run;
    st_run_cursor cursor;
    const st_run_entry *entry;
    uint64_t seen = 0;
    ASSERT_OK(st_run_open(dir->volume, TABLE, info, &run, &err));
    ASSERT_OK(st_run_verify(run, &err));
    ASSERT_OK(st_run_seek(run, 7, 7, &cursor, &err));
    for (uint64_t i = 0; i < 6; i++) {
        ASSERT_OK(st_run_next(&cursor, &entry, &err));
        assert_true(entry->hash == 7 && entry->position == 5 * i);
    }
    ASSERT_OK(st_run_next(&cursor, &entry, &err));
    assert_null(entry);
    ASSERT_OK(st_run_seek(run, 0, UINT64_MAX, &cursor, &err));
    for (uint64_t many;; seen += many) {
        ASSERT_OK(st_run_next_many(&cursor, &entry, &many, &err));
        if (many == 0)
            break;
        bool may;
        ASSERT_OK(st_run_may_contain(run, entry->hash, &may, &err));
        assert_true(may);
    }
    assert_int_equal(seen, ENTRIES);
    st_run_close(run);
}

static void runs_of_version_1_are_read(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_run_info info = {.name = "golden.run", .entries = ENTRIES, .bytes = 760};
    info.footer = digest_of("1ca24c179774524babd91a348d073bc2de7c7883d0c6bba3e5270621fe3829f6");
    check_run(&dir, "run-1.run", &info);
    table_dir_remove(&dir);
}

static void runs_are_those_of_version_2(void **state)
{
    (void)state;
    table_dir dir = table_dir_make();
    st_run_info info = {.name = "golden.run", .entries = ENTRIES, .bytes = 520};
    info.footer = digest_of("5ff9c8e480a9e4ca35eb752fd14bcfc2d941818750a5d3edcf7229fc8c93927c");
    check_run(&dir, "run-2.run", &info);
    write_run(dir.volume);
    assert_same_file(&dir, "keys/run-2.run", "run-2.run");
    table_dir_remove(&dir);
}

static void adjacency_is_that_of_version_1(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_run_info info = {.name = "golden.out", .entries = ENTRIES, .bytes = 1232};
    info.footer = digest_of("420308a33f4f4f6ccc7b63fe90fe2e946081a9c02c54620b41ddac5237c3bab9");
    pf_buffer bytes = golden("adjacency-1.out");
    table_dir_write(&dir, "indexes/golden.out", bytes.data, bytes.length);
    pf_buffer_free(&bytes);
    st_adjacency *adjacency;
    uint64_t first, end;
    ASSERT_OK(st_adjacency_open(dir.volume, TABLE, &info, ST_ADJACENCY_OUT, &adjacency, &err));
    ASSERT_OK(st_adjacency_verify(adjacency, &err));
    ASSERT_OK(st_adjacency_find(adjacency, 7, &first, &end, &err));
    assert_int_equal(end - first, ENTRIES / 5);
    for (uint64_t i = 0; i < ENTRIES / 5; i++) {
        st_adjacent edge;
        ASSERT_OK(st_adjacency_get(adjacency, first + i, &edge, &err));
        assert_int_equal(edge.ordinal * (ENTRIES / 3) + edge.position, 5 * i);
    }
    st_adjacency_close(adjacency);
    write_adjacency(dir.volume);
    assert_same_file(&dir, "indexes/adjacency-1.out", "adjacency-1.out");
    table_dir_remove(&dir);
}

static void deletions_are_those_of_version_1(void **state)
{
    (void)state;
    sluice_error err = {0};
    table_dir dir = table_dir_make();
    st_dead_ref ref = {.present = true, .name = "golden.rows", .rows = 115};
    ref.digest = digest_of("3af7d44d725531a66bd61f71243e98d5d382395ea485afa253a7e2b7c080abcc");
    pf_buffer bytes = golden("deletions-1.rows");
    table_dir_write(&dir, "deletions/golden.rows", bytes.data, bytes.length);
    pf_buffer_free(&bytes);
    st_row_set *set;
    ASSERT_OK(st_deletion_read(dir.volume, TABLE, &ref, &set, &err));
    for (uint64_t row = 0; row < 6000; row++)
        assert_int_equal(st_row_set_contains(set, row), is_deleted(row));
    assert_true(st_row_set_contains(set, ((uint64_t)3 << 40) + 9));
    st_row_set_free(set);
    write_deletions(dir.volume);
    assert_same_file(&dir, "deletions/deletions-1.rows", "deletions-1.rows");
    table_dir_remove(&dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_of_version_1_are_read), cmocka_unit_test(fragments_are_written_as_in_version_1),
        cmocka_unit_test(runs_of_version_1_are_read),      cmocka_unit_test(runs_are_those_of_version_2),
        cmocka_unit_test(adjacency_is_that_of_version_1),  cmocka_unit_test(deletions_are_those_of_version_1),
    };
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_golden(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
