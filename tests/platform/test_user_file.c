/*
 * Files of the user's: inputs that change are noticed, streams are read to their end, outputs report what went wrong.
 */
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include "platform/clock.h"
#include "platform/user_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static sluice_error err;

static int with_folder(void **state)
{
    *state = test_folder_make();
    return 0;
}

static int without_folder(void **state)
{
    test_folder_remove(*state);
    return 0;
}

static void put(const char *path, const char *text)
{
    pf_output *output;

    ASSERT_OK(pf_output_open(path, PF_OUTPUT_REPLACE, &output, &err));
    ASSERT_OK(pf_output_write(output, text, strlen(text), &err));
    ASSERT_OK(pf_output_close(output, false, &err));
}

static void a_regular_input_is_read_by_ranges(void **state)
{
    char *path = test_path(*state, "people.csv"), got[16];
    pf_input *input;
    size_t size;

    put(path, "0123456789");
    ASSERT_OK(pf_input_open(path, &input, &err));
    assert_true(pf_input_is_regular(input));
    assert_string_equal(pf_input_name(input), path);
    ASSERT_OK(pf_input_read_at(input, 7, got, sizeof got, &size, &err));
    assert_int_equal(size, 3);
    assert_memory_equal(got, "789", 3);
    ASSERT_OK(pf_input_read(input, got, 4, &size, &err));
    ASSERT_OK(pf_input_read(input, got, 16, &size, &err));
    assert_int_equal(size, 6);
    assert_memory_equal(got, "456789", 6);
    ASSERT_OK(pf_input_read(input, got, 16, &size, &err));
    assert_int_equal(size, 0);
    pf_input_close(input);
    free(path);
}

static void a_missing_input_is_a_usage_error(void **state)
{
    char *path = test_path(*state, "none.csv");
    pf_input *input;

    ASSERT_FAILS(SLUICE_USAGE, pf_input_open(path, &input, &err));
    assert_null(strstr(err.message, "none.csv"));
    assert_non_null(strstr(err.text, "none.csv"));
    ASSERT_FAILS(SLUICE_USAGE, pf_input_open(*state, &input, &err)); /* a folder */
    ASSERT_FAILS(SLUICE_USAGE, pf_input_open("", &input, &err));
    free(path);
}

static void a_changed_input_is_noticed(void **state)
{
    char *path = test_path(*state, "a.csv"), *other = test_path(*state, "b.csv");
    pf_input_identity before;
    pf_input *input;
    struct stat st;
    int fd;

    put(path, "one");
    ASSERT_OK(pf_input_open(path, &input, &err));
    ASSERT_OK(pf_input_identify(input, &before, &err));
    assert_int_equal(before.size, 3);
    ASSERT_OK(pf_input_check(input, &before, &err));
    /* the same length, and the modification time set back */
    assert_int_equal(stat(path, &st), 0);
    for (unsigned i = 0; i < 1000; i++) { /* until the clock of the file system has ticked */
        struct stat now;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "two", 3, 0), 3);
        assert_int_equal(futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(stat(path, &now), 0);
        if (now.st_ctim.tv_nsec != st.st_ctim.tv_nsec)
            break;
        pf_backoff(i, PF_FOREVER);
    }
    ASSERT_FAILS(SLUICE_INPUT_CHANGED, pf_input_check(input, &before, &err));
    ASSERT_OK(pf_input_identify(input, &before, &err));
    ASSERT_OK(pf_input_check(input, &before, &err));
    /* another file under the same name */
    put(other, "two");
    assert_int_equal(rename(other, path), 0);
    ASSERT_FAILS(SLUICE_INPUT_CHANGED, pf_input_check(input, &before, &err));
    assert_int_equal(unlink(path), 0);
    ASSERT_FAILS(SLUICE_INPUT_CHANGED, pf_input_check(input, &before, &err));
    pf_input_close(input);
    free(path);
    free(other);
}

static int feed(void *context)
{
    int fd = open(context, O_WRONLY | O_CLOEXEC);

    for (int i = 0; i < 1000; i++)
        if (write(fd, "0123456789", 10) != 10)
            return 1;
    return close(fd);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    char *path = test_path(*state, "pipe");
    pf_input_identity identity;
    pf_buffer all = {0};
    pf_input *input;
    pid_t child;

    assert_int_equal(mkfifo(path, 0600), 0);
    child = test_child(feed, path);
    ASSERT_OK(pf_input_open(path, &input, &err));
    assert_false(pf_input_is_regular(input));
    ASSERT_OK(pf_input_identify(input, &identity, &err));
    ASSERT_OK(pf_input_check(input, &identity, &err));
    for (size_t got = 1; got > 0;) {
        ASSERT_OK(pf_buffer_reserve(&all, 4096, &err));
        ASSERT_OK(pf_input_read(input, all.data + all.length, 4096, &got, &err));
        all.length += got;
    }
    assert_int_equal(all.length, 10000);
    assert_memory_equal(all.data + 9990, "0123456789", 10);
    pf_input_close(input);
    test_child_expect_exit(child, 0);
    pf_buffer_free(&all);
    free(path);
}

static void a_named_pipe_is_open_before_its_writer_and_ends_after_it(void **state)
{
    char *path = test_path(*state, "pipe"), got[16];
    pf_input *input, *same;
    bool ready = true;
    size_t size = 0, total = 0;
    pid_t child;

    assert_int_equal(mkfifo(path, 0600), 0);
    ASSERT_OK(pf_input_open(path, &input, &err));
    ASSERT_OK(pf_input_open(path, &same, &err));
    assert_true(pf_input_is_same_stream(input, same));
    pf_input_close(same);
    ASSERT_OK(pf_input_wait(input, 0, &ready, &err));
    assert_false(ready); /* neither bytes nor the end */
    child = test_child(feed, path);
    do {
        ASSERT_OK(pf_input_read(input, got, sizeof got, &size, &err));
        total += size;
    } while (size > 0);
    assert_int_equal(total, 10000);
    test_child_expect_exit(child, 0);
    ASSERT_OK(pf_input_wait(input, 0, &ready, &err));
    assert_true(ready);
    pf_input_close(input);
    free(path);
}

static void a_file_read_twice_is_no_stream_read_twice(void **state)
{
    char *path = test_path(*state, "people.csv");
    pf_input *input, *same;
    bool ready = false;

    put(path, "0123456789");
    ASSERT_OK(pf_input_open(path, &input, &err));
    ASSERT_OK(pf_input_open(path, &same, &err));
    assert_false(pf_input_is_same_stream(input, same));
    ASSERT_OK(pf_input_wait(input, 0, &ready, &err));
    assert_true(ready);
    pf_input_close(input);
    pf_input_close(same);
    free(path);
}

static void a_small_file_is_read_whole_up_to_a_limit(void **state)
{
    char *path = test_path(*state, "schema");
    pf_buffer all = {0};

    put(path, "0123456789");
    ASSERT_OK(pf_buffer_append_text(&all, "x", &err));
    ASSERT_OK(pf_input_read_all(path, 10, &all, &err));
    assert_int_equal(all.length, 11);
    assert_memory_equal(all.data, "x0123456789", 11);
    ASSERT_FAILS(SLUICE_RESOURCE_LIMIT, pf_input_read_all(path, 9, &all, &err));
    assert_int_equal(all.length, 11);
    pf_buffer_free(&all);
    free(path);
}

static void an_output_is_new_or_replaced_as_asked(void **state)
{
    char *path = test_path(*state, "out"), *deep = test_path(*state, "no/out");
    pf_buffer all = {0};
    pf_output *output;

    ASSERT_OK(pf_output_open(path, PF_OUTPUT_NEW, &output, &err));
    ASSERT_OK(pf_output_write(output, "12345", 5, &err));
    assert_int_equal(pf_output_bytes(output), 5);
    ASSERT_OK(pf_output_close(output, true, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_output_open(path, PF_OUTPUT_NEW, &output, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_open(deep, PF_OUTPUT_NEW, &output, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_open(*state, PF_OUTPUT_REPLACE, &output, &err));
    put(path, "ab");
    ASSERT_OK(pf_input_read_all(path, 100, &all, &err));
    assert_int_equal(all.length, 2);
    pf_buffer_free(&all);
    free(path);
    free(deep);
}

static void a_given_up_output_leaves_nothing_of_its_own(void **state)
{
    char *path = test_path(*state, "out"), *old = test_path(*state, "old");
    pf_output *output;

    ASSERT_OK(pf_output_open(path, PF_OUTPUT_NEW, &output, &err));
    ASSERT_OK(pf_output_write(output, "12345", 5, &err));
    pf_output_discard(output);
    assert_int_equal(access(path, F_OK), -1);
    put(old, "x");
    ASSERT_OK(pf_output_open(old, PF_OUTPUT_REPLACE, &output, &err));
    pf_output_discard(output);
    assert_int_equal(access(old, F_OK), 0);
    free(path);
    free(old);
}

static unsigned count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

static void expect_content(const char *path, const char *text)
{
    pf_buffer all = {0};

    ASSERT_OK(pf_input_read_all(path, 100, &all, &err));
    assert_int_equal(all.length, strlen(text));
    assert_memory_equal(all.data, text, all.length);
    pf_buffer_free(&all);
}

static void a_swapped_output_has_its_name_only_once_it_is_whole(void **state)
{
    char *path = test_path(*state, "out"), *link = test_path(*state, "link");
    struct stat st;
    pf_output *output;

    ASSERT_OK(pf_output_open(path, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_OK(pf_output_write(output, "new", 3, &err));
    ASSERT_OK(pf_output_flush(output, &err));
    assert_int_equal(access(path, F_OK), -1);
    ASSERT_OK(pf_output_close(output, true, &err));
    expect_content(path, "new");

    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("out", link), 0);
    ASSERT_OK(pf_output_open(link, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_OK(pf_output_write(output, "newer", 5, &err));
    ASSERT_OK(pf_output_flush(output, &err));
    expect_content(path, "new");
    ASSERT_OK(pf_output_close(output, true, &err));
    expect_content(path, "newer");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);

    ASSERT_OK(pf_output_open(path, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_OK(pf_output_write(output, "given up", 8, &err));
    ASSERT_OK(pf_output_flush(output, &err));
    pf_output_discard(output);
    expect_content(path, "newer");
    assert_int_equal(count_files(*state), 2);
    free(path);
    free(link);
}

static void a_swapped_output_that_could_not_have_its_name_is_refused_at_once(void **state)
{
    char *deep = test_path(*state, "no/out"), *slash = test_path(*state, "out/");
    pf_output *output;

    ASSERT_FAILS(SLUICE_USAGE, pf_output_open(deep, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_open(slash, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_open(*state, PF_OUTPUT_SWAP, &output, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_open("", PF_OUTPUT_SWAP, &output, &err));
    assert_int_equal(count_files(*state), 0);
    ASSERT_OK(pf_output_open("/dev/null", PF_OUTPUT_SWAP, &output, &err)); /* no file to be replaced */
    ASSERT_OK(pf_output_write(output, "x", 1, &err));
    ASSERT_OK(pf_output_close(output, true, &err));
    free(deep);
    free(slash);
}

static void a_path_is_inside_of_a_folder_whatever_it_is_called(void **state)
{
    char *folder = test_path(*state, "g"), *beside = test_path(*state, "gg"), *file = test_path(*state, "g/new"),
         *dots = test_path(*state, "gg/../g/new"), *link = test_path(*state, "l"), *linked = test_path(*state, "l/new"),
         *other = test_path(*state, "gg/new"), *missing = test_path(*state, "no/new");

    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(symlink("g", link), 0);
    assert_true(pf_path_is_inside(file, folder));
    assert_true(pf_path_is_inside(dots, folder));
    assert_true(pf_path_is_inside(linked, folder));
    assert_false(pf_path_is_inside(other, folder));
    assert_false(pf_path_is_inside(folder, folder));
    assert_false(pf_path_is_inside(missing, folder));
    char *const all[] = {folder, beside, file, dots, link, linked, other, missing};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void large_and_small_writes_keep_their_order(void **state)
{
    char *path = test_path(*state, "out");
    size_t large = 700000, total = 0;
    uint8_t *bytes = malloc(large);
    pf_buffer all = {0};
    pf_output *output;

    assert_non_null(bytes);
    ASSERT_OK(pf_output_open(path, PF_OUTPUT_NEW, &output, &err));
    for (unsigned i = 0; i < 6; i++) {
        size_t length = i % 2 == 0 ? 1000 + i : large;
        memset(bytes, (int)('a' + i), length);
        ASSERT_OK(pf_output_write(output, bytes, length, &err));
        total += length;
    }
    ASSERT_OK(pf_output_close(output, false, &err));
    ASSERT_OK(pf_input_read_all(path, 10000000, &all, &err));
    assert_int_equal(all.length, total);
    for (size_t i = 1; i < all.length; i++)
        assert_true(all.data[i] == all.data[i - 1] || all.data[i] == all.data[i - 1] + 1);
    pf_buffer_free(&all);
    free(bytes);
    free(path);
}

/* Runs in a child, which may be bounded. */
static int write_beyond_a_limit(void *context)
{
    static uint8_t bytes[1 << 20];
    struct rlimit limit = {.rlim_cur = 100000, .rlim_max = 100000};
    pf_output *output;
    sluice_error e;

    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || pf_output_open(context, PF_OUTPUT_NEW, &output, &e) != SLUICE_OK)
        return 1;
    if (pf_output_write(output, bytes, sizeof bytes, &e) != SLUICE_RESOURCE_LIMIT)
        return 2;
    if (pf_output_write(output, bytes, 1, &e) != SLUICE_RESOURCE_LIMIT) /* it sticks */
        return 3;
    return pf_output_close(output, false, &e) == SLUICE_RESOURCE_LIMIT ? 0 : 4;
}

static void a_failed_write_is_told_by_every_later_call(void **state)
{
    char *path = test_path(*state, "out");

    test_child_expect_exit(test_child(write_beyond_a_limit, path), 0);
    free(path);
}

static void a_full_device_is_told_at_the_close_at_the_latest(void **state)
{
    pf_output *output;

    (void)state;
    ASSERT_OK(pf_output_open("/dev/full", PF_OUTPUT_REPLACE, &output, &err));
    ASSERT_OK(pf_output_write(output, "x", 1, &err));
    ASSERT_FAILS(SLUICE_NO_SPACE, pf_output_close(output, false, &err));
}

static int read_standard_input(void *context)
{
    int ends[2];
    pf_input *input;
    char got[8];
    size_t size;
    sluice_error e;

    (void)context;
    if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[0], STDIN_FILENO) < 0 || write(ends[1], "hello", 5) != 5)
        return 1;
    (void)close(ends[1]);
    if (pf_input_open("-", &input, &e) != SLUICE_OK || pf_input_is_regular(input))
        return 2;
    if (pf_input_read(input, got, sizeof got, &size, &e) != SLUICE_OK || size != 5 || memcmp(got, "hello", 5) != 0)
        return 3;
    if (pf_input_read(input, got, sizeof got, &size, &e) != SLUICE_OK || size != 0)
        return 4;
    pf_input_close(input);
    return 0;
}

static void a_dash_is_standard_input(void **state)
{
    (void)state;
    test_child_expect_exit(test_child(read_standard_input, NULL), 0);
}

static void a_folder_for_outputs_is_made_once(void **state)
{
    char *path = test_path(*state, "export"), *deep = test_path(*state, "a/b");

    ASSERT_OK(pf_output_make_folder(path, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, pf_output_make_folder(path, &err));
    ASSERT_FAILS(SLUICE_USAGE, pf_output_make_folder(deep, &err));
    free(path);
    free(deep);
}

static void a_scratch_file_has_no_name_and_is_read_by_ranges(void **state)
{
    char *folder = test_path(*state, ""), *missing = test_path(*state, "missing"), text[16] = "";
    pf_scratch *scratch = NULL;
    size_t got = 0;

    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    ASSERT_OK(pf_scratch_open(&scratch, &err));
    ASSERT_OK(pf_scratch_append(scratch, "0123", 4, &err));
    ASSERT_OK(pf_scratch_append(scratch, "456789", 6, &err));
    assert_int_equal(pf_scratch_bytes(scratch), 10);
    assert_int_equal(count_files(folder), 0);
    ASSERT_OK(pf_scratch_read_at(scratch, 3, text, 4, &got, &err));
    assert_int_equal(got, 4);
    assert_memory_equal(text, "3456", 4);
    ASSERT_OK(pf_scratch_read_at(scratch, 8, text, 9, &got, &err));
    assert_int_equal(got, 2);
    pf_scratch_close(scratch);
    assert_int_equal(setenv("TMPDIR", missing, 1), 0);
    ASSERT_FAILS(SLUICE_IO, pf_scratch_open(&scratch, &err));
    assert_non_null(strstr(err.hint, "TMPDIR"));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    free(folder);
    free(missing);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, with_folder, without_folder)
    const struct CMUnitTest tests[] = {
        WITH(a_regular_input_is_read_by_ranges),
        WITH(a_missing_input_is_a_usage_error),
        WITH(a_changed_input_is_noticed),
        WITH(a_pipe_is_read_to_its_end),
        WITH(a_named_pipe_is_open_before_its_writer_and_ends_after_it),
        WITH(a_file_read_twice_is_no_stream_read_twice),
        WITH(a_small_file_is_read_whole_up_to_a_limit),
        WITH(an_output_is_new_or_replaced_as_asked),
        WITH(a_given_up_output_leaves_nothing_of_its_own),
        WITH(a_swapped_output_has_its_name_only_once_it_is_whole),
        WITH(a_swapped_output_that_could_not_have_its_name_is_refused_at_once),
        WITH(a_path_is_inside_of_a_folder_whatever_it_is_called),
        WITH(large_and_small_writes_keep_their_order),
        WITH(a_failed_write_is_told_by_every_later_call),
        WITH(a_full_device_is_told_at_the_close_at_the_latest),
        WITH(a_dash_is_standard_input),
        WITH(a_folder_for_outputs_is_made_once),
        WITH(a_scratch_file_has_no_name_and_is_read_by_ranges),
    };
    return cmocka_run_group_tests_name("the user's files", tests, NULL, NULL);
}
