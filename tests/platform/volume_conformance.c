/*
 * The shared battery of the volume port (see volume_conformance.h). A case uses nothing but platform/volume.h, and
 * closes what it opened.
 */
#include "volume_conformance.h"

#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static sluice_error err;

static void put(pf_volume *volume, const char *path, const void *bytes, size_t length)
{
    pf_file *file;

    ASSERT_OK(pf_create(volume, path, &file, &err));
    ASSERT_OK(pf_write(file, 0, bytes, length, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_close(file, &err));
}

static void assert_content(pf_volume *volume, const char *path, const void *bytes, size_t length)
{
    uint8_t got[256];
    size_t size;
    pf_file *file;

    assert_true(length < sizeof got);
    ASSERT_OK(pf_open(volume, path, PF_READ, &file, &err));
    ASSERT_OK(pf_read(file, 0, got, sizeof got, &size, &err));
    assert_int_equal(size, length);
    assert_memory_equal(got, bytes, length);
    ASSERT_OK(pf_close(file, &err));
}

/* ---- names ---- */

static void a_name_is_created_once(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context), *other = place->open(place->context);
    pf_file *file, *second;

    ASSERT_OK(pf_create(volume, "claims", &file, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_create(volume, "claims", &second, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_create(other, "claims", &second, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_make_folder(other, "claims", &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(other);
    pf_volume_close(volume);
}

static void what_is_not_there_is_not_found(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *file;
    pf_stat st;

    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_open(volume, "a/b", PF_WRITE, &file, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_create(volume, "a/b", &file, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_make_folder(volume, "a/b", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_remove(volume, "a", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_remove_folder(volume, "a", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_publish(volume, "a", "b", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_sync_dir(volume, "a", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "a", &st, &err));
    pf_volume_close(volume);
}

static void a_wrong_kind_of_entry_is_corrupt(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *file;
    pf_stat st;

    put(volume, "file", "x", 1);
    ASSERT_OK(pf_make_folder(volume, "folder", &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "folder", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "folder", PF_WRITE, &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_open(volume, "file/x", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_create(volume, "file/x", &file, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_make_folder(volume, "file/x", &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_stat_path(volume, "file/x", &st, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_remove(volume, "folder", &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_remove_folder(volume, "file", &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_sync_dir(volume, "file", &err));
    pf_volume_close(volume);
}

static void a_malformed_path_is_our_own_error(const conformance_place *place)
{
    static const char *const bad[] = {"", ".", "..", "/a", "a/", "a//b", "a/../b", "./a", "a/."};
    pf_volume *volume = place->open(place->context);
    char longest[2000];
    pf_file *file;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ASSERT_FAILS(SLUICE_INTERNAL, pf_create(volume, bad[i], &file, &err));
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    ASSERT_FAILS(SLUICE_INTERNAL, pf_create(volume, longest, &file, &err));
    longest[256] = 0;
    ASSERT_FAILS(SLUICE_INTERNAL, pf_create(volume, longest, &file, &err));
    longest[255] = 0;
    put(volume, longest, "x", 1);
    pf_volume_close(volume);
}

static void publishing_never_replaces(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_stat st;

    ASSERT_OK(pf_make_folder(volume, "refs", &err));
    put(volume, "a", "new", 3);
    put(volume, "refs/b", "old", 3);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_publish(volume, "a", "refs/b", &err));
    assert_content(volume, "refs/b", "old", 3);
    assert_content(volume, "a", "new", 3);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_publish(volume, "a", "refs", &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_publish(volume, "a", "a", &err));
    ASSERT_OK(pf_publish(volume, "a", "refs/c", &err));
    assert_content(volume, "refs/c", "new", 3);
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "a", &st, &err));
    ASSERT_OK(pf_stat_path(volume, "refs/c", &st, &err));
    assert_int_equal(st.links, 1);
    pf_volume_close(volume);
}

static void a_folder_is_renamed_with_all_in_it(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_stat st;

    ASSERT_OK(pf_make_folder(volume, "attempts", &err));
    ASSERT_OK(pf_make_folder(volume, "attempts/1", &err));
    ASSERT_OK(pf_make_folder(volume, "trash", &err));
    put(volume, "attempts/1/plan", "p", 1);
    ASSERT_OK(pf_publish(volume, "attempts/1", "trash/7", &err));
    assert_content(volume, "trash/7/plan", "p", 1);
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "attempts/1", &st, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_publish(volume, "attempts", "trash/7", &err));
    pf_volume_close(volume);
}

static void only_an_empty_folder_is_removed(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_stat st;

    ASSERT_OK(pf_make_folder(volume, "a", &err));
    put(volume, "a/x", "1", 1);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_remove_folder(volume, "a", &err));
    ASSERT_OK(pf_remove(volume, "a/x", &err));
    ASSERT_OK(pf_remove_folder(volume, "a", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_stat_path(volume, "a", &st, &err));
    pf_volume_close(volume);
}

typedef struct names {
    char text[512];
    unsigned left; /* entries until the walk is stopped */
} names;

static sluice_status note_name(void *context, const char *name, pf_kind kind, sluice_error *error)
{
    names *seen = context;

    if (seen->left-- == 0)
        return pf_fail(error, SLUICE_CANCELLED, "enough");
    size_t length = strlen(seen->text);
    assert_true(snprintf(seen->text + length, sizeof seen->text - length, "%s%s", name,
                         kind == PF_KIND_FOLDER ? "/ "
                         : kind == PF_KIND_FILE ? " "
                                                : "? ") < (int)(sizeof seen->text - length));
    return SLUICE_OK;
}

static void a_list_is_in_byte_order_and_stops_on_demand(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    names seen = {.left = 100};

    put(volume, "b", "", 0);
    put(volume, "B", "", 0);
    put(volume, "\xc3\xa4", "", 0);
    put(volume, "10", "", 0);
    put(volume, "9", "", 0);
    put(volume, ".hidden", "", 0);
    ASSERT_OK(pf_make_folder(volume, "a", &err));
    put(volume, "a/inner", "", 0);
    ASSERT_OK(pf_list(volume, "", note_name, &seen, &err));
    assert_string_equal(seen.text, ".hidden 10 9 B a/ b \xc3\xa4 ");
    seen = (names){.left = 2};
    ASSERT_FAILS(SLUICE_CANCELLED, pf_list(volume, ".", note_name, &seen, &err));
    assert_string_equal(seen.text, ".hidden 10 ");
    seen = (names){.left = 100};
    ASSERT_OK(pf_list(volume, "a", note_name, &seen, &err));
    assert_string_equal(seen.text, "inner ");
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_list(volume, "c", note_name, &seen, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_list(volume, "b", note_name, &seen, &err));
    pf_volume_close(volume);
}

static void a_stat_tells_kind_size_and_identity(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_stat by_name, by_handle, root;
    pf_file *file;

    put(volume, "a", "12345", 5);
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_OK(pf_stat_path(volume, "a", &by_name, &err));
    ASSERT_OK(pf_file_stat(file, &by_handle, &err));
    assert_int_equal(by_name.kind, PF_KIND_FILE);
    assert_int_equal(by_name.size, 5);
    assert_int_equal(by_name.mode, 0600);
    assert_int_equal(by_name.links, 1);
    assert_int_equal(by_name.inode, by_handle.inode);
    assert_int_equal(by_name.device, by_handle.device);
    ASSERT_OK(pf_stat_path(volume, "", &root, &err));
    assert_int_equal(root.kind, PF_KIND_FOLDER);
    assert_int_equal(root.mode, 0700);
    assert_int_not_equal(root.inode, by_name.inode);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

/* ---- contents ---- */

static void what_is_written_is_read_by_others(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context), *other = place->open(place->context);
    uint8_t pattern[9000], got[9000];
    pf_file *file, *reader;
    size_t size;

    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 7 + i / 251);
    ASSERT_OK(pf_create(volume, "a", &file, &err));
    ASSERT_OK(pf_write(file, 5000, pattern + 5000, 4000, &err));
    ASSERT_OK(pf_write(file, 0, pattern, 100, &err));
    ASSERT_OK(pf_open(other, "a", PF_READ, &reader, &err));
    ASSERT_OK(pf_read(reader, 0, got, sizeof got, &size, &err));
    assert_int_equal(size, 9000);
    assert_memory_equal(got, pattern, 100);
    for (size_t i = 100; i < 5000; i++)
        assert_int_equal(got[i], 0); /* a hole */
    assert_memory_equal(got + 5000, pattern + 5000, 4000);
    ASSERT_OK(pf_write(file, 100, pattern + 100, 4900, &err));
    ASSERT_OK(pf_read_exact(reader, 0, got, sizeof got, &err));
    assert_memory_equal(got, pattern, sizeof got);
    ASSERT_OK(pf_read(reader, 8990, got, 100, &size, &err));
    assert_int_equal(size, 10);
    ASSERT_OK(pf_read(reader, 9000, got, 100, &size, &err));
    assert_int_equal(size, 0);
    ASSERT_OK(pf_read(reader, 1 << 30, got, 100, &size, &err));
    assert_int_equal(size, 0);
    ASSERT_FAILS(SLUICE_CORRUPT, pf_read_exact(reader, 8990, got, 11, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_read(reader, UINT64_MAX, got, 1, &size, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_read(reader, INT64_MAX, got, 1, &size, &err));
    ASSERT_OK(pf_close(reader, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(other);
    pf_volume_close(volume);
}

static void the_medium_is_read_at_any_offset(const conformance_place *place)
{
    static const struct {
        size_t offset, length;
    } cuts[] = {{0, 1}, {0, 4096}, {1, 4096}, {4095, 2}, {511, 513}, {4096, 4096}, {8191, 1809}, {9999, 1}, {0, 10000}};
    pf_volume *volume = place->open(place->context);
    uint8_t pattern[10000], got[10000];
    pf_file *file;

    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 13 + i / 253);
    put(volume, "a", pattern, sizeof pattern);
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        memset(got, 0xee, sizeof got);
        ASSERT_OK(pf_read_medium(file, cuts[i].offset, got, cuts[i].length, &err));
        assert_memory_equal(got, pattern + cuts[i].offset, cuts[i].length);
    }
    ASSERT_FAILS(SLUICE_CORRUPT, pf_read_medium(file, 9999, got, 2, &err));
    ASSERT_FAILS(SLUICE_CORRUPT, pf_read_medium(file, 20000, got, 1, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void zeros_occupy_blocks_and_leave_old_bytes(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    uint8_t got[100];
    pf_file *file;
    pf_stat st;

    ASSERT_OK(pf_create(volume, "a", &file, &err));
    ASSERT_OK(pf_write(file, 0, "head", 4, &err));
    ASSERT_OK(pf_zero_fill(file, 3000000, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_file_stat(file, &st, &err));
    assert_int_equal(st.size, 3000000);
    assert_true(st.allocated >= 3000000);
    ASSERT_OK(pf_read_exact(file, 0, got, 100, &err));
    assert_memory_equal(got, "head\0\0\0\0", 8);
    ASSERT_OK(pf_read_exact(file, 2999900, got, 100, &err));
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(got[i], 0);
    ASSERT_OK(pf_zero_fill(file, 10, &err)); /* never shrinks */
    ASSERT_OK(pf_file_stat(file, &st, &err));
    assert_int_equal(st.size, 3000000);
    pf_write_behind(file, 0, 3000000);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_mapping_outlives_its_handle(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_map map, empty, never = {0};
    pf_file *file;

    put(volume, "a", "mapped bytes", 12);
    put(volume, "b", "", 0);
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_OK(pf_map_file(file, &map, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_remove(volume, "a", &err));
    assert_int_equal(map.length, 12);
    assert_memory_equal(map.data, "mapped bytes", 12);
    pf_unmap(&map);
    assert_null(map.data);
    pf_unmap(&map);
    pf_unmap(&never);
    ASSERT_OK(pf_open(volume, "b", PF_READ, &file, &err));
    ASSERT_OK(pf_map_file(file, &empty, &err));
    assert_null(empty.data);
    assert_int_equal(empty.length, 0);
    pf_unmap(&empty);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_removed_file_lives_on_in_its_handles(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *file, *again;
    uint8_t got[3];

    put(volume, "a", "old", 3);
    ASSERT_OK(pf_open(volume, "a", PF_WRITE, &file, &err));
    ASSERT_OK(pf_remove(volume, "a", &err));
    put(volume, "a", "new", 3);
    ASSERT_OK(pf_read_exact(file, 0, got, 3, &err));
    assert_memory_equal(got, "old", 3);
    ASSERT_FAILS(SLUICE_FENCED, pf_file_check_identity(file, &err));
    ASSERT_OK(pf_open(volume, "a", PF_WRITE, &again, &err));
    ASSERT_OK(pf_file_check_identity(again, &err));
    ASSERT_OK(pf_close(again, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_handle_for_reading_writes_nothing(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *file;

    put(volume, "a", "x", 1);
    ASSERT_OK(pf_open(volume, "a", PF_READ, &file, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_write(file, 0, "y", 1, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_zero_fill(file, 10, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_close(file, &err));
    assert_content(volume, "a", "x", 1);
    pf_volume_close(volume);
}

/* ---- locks ---- */

static void expect_free(pf_file *file, uint64_t start, uint64_t length, bool want)
{
    bool is_free = !want;

    ASSERT_OK(pf_lock_is_free(file, start, length, &is_free, &err));
    assert_int_equal(is_free, want);
}

static void locks_exclude_by_handle_and_range(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context), *other = place->open(place->context);
    pf_file *a, *b, *c;

    put(volume, "locks", "", 0);
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &a, &err));
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &b, &err)); /* the same process */
    ASSERT_OK(pf_open(other, "locks", PF_WRITE, &c, &err));
    ASSERT_OK(pf_lock(a, 10, 5, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_lock(a, 10, 5, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    expect_free(a, 10, 5, true); /* its own lock does not count */
    expect_free(b, 14, 1, false);
    expect_free(b, 15, 1, true);
    expect_free(c, 0, 11, false);
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(b, 12, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(c, 0, 11, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_lock(c, 15, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_unlock(a, 10, 5, &err));
    ASSERT_OK(pf_lock(b, 12, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_lock(c, 12, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(a, 12, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_unlock(b, 12, 1, &err));
    ASSERT_FAILS(SLUICE_LIVE_WRITER_CONTENTION, pf_lock(a, 12, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_close(c, &err)); /* lets go of all of c's */
    ASSERT_OK(pf_lock(a, 12, 4, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_lock(b, (uint64_t)INT64_MAX - 1, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_lock(b, INT64_MAX, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_FAILS(SLUICE_INTERNAL, pf_lock(b, 3, 0, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_close(b, &err));
    ASSERT_OK(pf_close(a, &err));
    pf_volume_close(other);
    pf_volume_close(volume);
}

static void closing_one_handle_keeps_the_locks_of_another(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *a, *b, *c;

    put(volume, "locks", "", 0);
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &a, &err));
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &b, &err));
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &c, &err));
    ASSERT_OK(pf_lock(a, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    ASSERT_OK(pf_close(b, &err));
    expect_free(c, 0, 1, false);
    ASSERT_OK(pf_close(a, &err));
    expect_free(c, 0, 1, true);
    ASSERT_OK(pf_close(c, &err));
    pf_volume_close(volume);
}

static void a_lock_on_a_replaced_file_is_refused(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    pf_file *file, *other;

    put(volume, "locks", "", 0);
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &file, &err));
    ASSERT_OK(pf_open(volume, "locks", PF_WRITE, &other, &err));
    ASSERT_OK(pf_publish(volume, "locks", "aside", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    put(volume, "locks", "", 0);
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_EXCLUSIVE, PF_AT_ONCE, &err));
    expect_free(other, 0, 1, true); /* the refused lock is not kept */
    ASSERT_OK(pf_close(other, &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

/* ---- fence and counters ---- */

static bool ask(void *context)
{
    return *(bool *)context;
}

static void a_fenced_owner_changes_nothing(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context), *other = place->open(place->context);
    names seen = {.left = 100};
    bool allowed = true;
    pf_file *file, *made;
    pf_stat st;
    uint8_t got;

    pf_volume_set_fence(volume, ask, &allowed);
    put(volume, "a", "x", 1);
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_open(volume, "a", PF_WRITE, &file, &err));
    allowed = false;
    ASSERT_FAILS(SLUICE_FENCED, pf_create(volume, "b", &made, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_open(volume, "a", PF_WRITE, &made, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_publish(volume, "a", "b", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_remove(volume, "a", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_make_folder(volume, "g", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_remove_folder(volume, "f", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_sync_dir(volume, "", &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_volume_sync_name(volume, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_write(file, 0, "y", 1, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_zero_fill(file, 100, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_sync(file, &err));
    ASSERT_FAILS(SLUICE_FENCED, pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_read_exact(file, 0, &got, 1, &err)); /* looking is allowed */
    ASSERT_OK(pf_stat_path(volume, "a", &st, &err));
    ASSERT_OK(pf_list(other, "", note_name, &seen, &err));
    assert_string_equal(seen.text, "a f/ ");
    assert_content(other, "a", "x", 1);
    allowed = true;
    ASSERT_OK(pf_sync(file, &err)); /* a refused sync is no failed sync */
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(other);
    pf_volume_close(volume);
}

static void every_call_is_counted(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);
    const pf_counters *counters = pf_volume_counters(volume);
    names seen = {.left = 100};
    uint8_t bytes[100] = {0};
    bool is_free;
    pf_file *file;
    pf_map map;
    pf_stat st;
    size_t got;

    pf_volume_counters_reset(volume);
    ASSERT_OK(pf_make_folder(volume, "f", &err));
    ASSERT_OK(pf_create(volume, "f/a", &file, &err));
    ASSERT_OK(pf_write(file, 0, bytes, 100, &err));
    ASSERT_OK(pf_zero_fill(file, 1100, &err));
    ASSERT_OK(pf_read(file, 1050, bytes, 100, &got, &err));
    ASSERT_OK(pf_sync(file, &err));
    ASSERT_OK(pf_map_file(file, &map, &err));
    pf_unmap(&map);
    ASSERT_OK(pf_file_stat(file, &st, &err));
    ASSERT_OK(pf_lock(file, 0, 1, PF_LOCK_SHARED, PF_AT_ONCE, &err));
    ASSERT_OK(pf_unlock(file, 0, 1, &err));
    ASSERT_OK(pf_lock_is_free(file, 0, 1, &is_free, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_sync_dir(volume, "f", &err));
    ASSERT_OK(pf_publish(volume, "f/a", "f/b", &err));
    ASSERT_OK(pf_open(volume, "f/b", PF_READ, &file, &err));
    ASSERT_OK(pf_close(file, &err));
    ASSERT_OK(pf_stat_path(volume, "f/b", &st, &err));
    ASSERT_OK(pf_list(volume, "f", note_name, &seen, &err));
    ASSERT_OK(pf_remove(volume, "f/b", &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_remove(volume, "f/b", &err)); /* failed calls count */
    assert_int_equal(counters->creates, 2);
    assert_int_equal(counters->opens, 1);
    assert_int_equal(counters->reads, 1);
    assert_int_equal(counters->writes, 2);
    assert_int_equal(counters->file_syncs, 1);
    assert_int_equal(counters->directory_syncs, 1);
    assert_int_equal(counters->renames, 1);
    assert_int_equal(counters->removes, 2);
    assert_int_equal(counters->lists, 1);
    assert_int_equal(counters->locks, 2);
    assert_int_equal(counters->maps, 1);
    assert_int_equal(counters->stats, 2);
    assert_int_equal(counters->calls, 17);
    assert_int_equal(counters->bytes_read, 50);
    assert_int_equal(counters->bytes_written, 1100);
    pf_volume_close(volume);
}

static void the_root_knows_itself(const conformance_place *place)
{
    pf_volume *volume = place->open(place->context);

    ASSERT_OK(pf_volume_check_identity(volume, &err));
    ASSERT_OK(pf_volume_sync_name(volume, &err));
    assert_int_equal(pf_volume_counters(volume)->directory_syncs, 1);
    ASSERT_OK(pf_sync_dir(volume, "", &err));
    ASSERT_OK(pf_sync_dir(volume, ".", &err));
    pf_volume_close(volume);
}

#define CASE(name)                                                                                                     \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
const conformance_case conformance_cases[] = {
    CASE(a_name_is_created_once),
    CASE(what_is_not_there_is_not_found),
    CASE(a_wrong_kind_of_entry_is_corrupt),
    CASE(a_malformed_path_is_our_own_error),
    CASE(publishing_never_replaces),
    CASE(a_folder_is_renamed_with_all_in_it),
    CASE(only_an_empty_folder_is_removed),
    CASE(a_list_is_in_byte_order_and_stops_on_demand),
    CASE(a_stat_tells_kind_size_and_identity),
    CASE(what_is_written_is_read_by_others),
    CASE(the_medium_is_read_at_any_offset),
    CASE(zeros_occupy_blocks_and_leave_old_bytes),
    CASE(a_mapping_outlives_its_handle),
    CASE(a_removed_file_lives_on_in_its_handles),
    CASE(a_handle_for_reading_writes_nothing),
    CASE(locks_exclude_by_handle_and_range),
    CASE(closing_one_handle_keeps_the_locks_of_another),
    CASE(a_lock_on_a_replaced_file_is_refused),
    CASE(a_fenced_owner_changes_nothing),
    CASE(every_call_is_counted),
    CASE(the_root_knows_itself),
};
const unsigned conformance_case_count = sizeof conformance_cases / sizeof conformance_cases[0];
