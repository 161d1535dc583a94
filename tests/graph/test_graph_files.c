/*
 * Graphs on real files: modes, what opening costs and refuses, moved roots, two inits at once.
 */
#include "small_graph.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    char *folder, *path;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    f->folder = test_folder_make();
    f->path = test_path(f->folder, "graph");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    free(f->path);
    test_folder_remove(f->folder);
    free(f);
    return 0;
}

static sluice_status init(const char *path, pf_id *ret_id, sluice_error *err)
{
    st_schema *schema = small_schema();
    sluice_status status = st_graph_init(path, schema, ST_MODE_OPTIMISTIC, ret_id, err);
    st_schema_free(schema);
    return status;
}

static int check_mode(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)walk;
    assert_true(kind == FTW_F || kind == FTW_D);
    if ((stat->st_mode & 07777) != (kind == FTW_D ? 0700 : 0600))
        fail_msg("%s has mode %o", path, (unsigned)stat->st_mode & 07777);
    return 0;
}

static void files_are_0600_and_folders_0700_whatever_the_umask(void **state)
{
    static const mode_t masks[] = {0, 0777, 022};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        sluice_error err = {0};
        pf_id id;
        uint64_t block;
        st_graph *graph;
        char name[16];
        (void)snprintf(name, sizeof(name), "graph%zu", i);
        char *path = test_path(f->folder, name);
        mode_t before = umask(masks[i]);
        ASSERT_OK(init(path, &id, &err));
        ASSERT_OK(st_graph_open(path, PF_WRITE, &graph, &err));
        ASSERT_OK(st_control_take_row_block(graph, pf_deadline_in_ms(TEST_WAIT_MS), &block, &err));
        ASSERT_OK(st_ref_create(graph, "x", 9, &err));
        st_graph_close(graph);
        (void)umask(before);
        assert_int_equal(nftw(path, check_mode, 16, FTW_PHYS), 0);
        free(path);
    }
}

static void a_graph_is_made_opened_and_described(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    pf_id id, other;
    st_graph *graph;

    ASSERT_FAILS(SLUICE_NOT_FOUND, st_graph_open(f->path, PF_READ, &graph, &err));
    ASSERT_OK(init(f->path, &id, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, init(f->path, &other, &err));
    for (pf_access access = PF_READ; access <= PF_WRITE; access++) {
        ASSERT_OK(st_graph_open(f->path, access, &graph, &err));
        assert_true(pf_id_equal(st_graph_id(graph), &id));
        assert_int_equal(st_graph_mode(graph), ST_MODE_OPTIMISTIC);
        assert_int_equal(st_graph_access(graph), access);
        assert_true(st_graph_filesystem(graph)->class_name[0] != '\0');
        small_expect_empty(graph);
        st_graph_close(graph);
    }
}

static void an_empty_folder_becomes_a_graph_and_a_used_one_does_not(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    pf_id id;
    struct stat stat_;
    assert_int_equal(mkdir(f->path, 0700), 0);
    char *left = test_path(f->path, PF_PROBE_PREFIX "0123456789abcdef"); /* of a probe that was killed */
    assert_int_equal(mkdir(left, 0700), 0);
    free(left);
    char *file = test_path(f->path, "notes");
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, init(f->path, &id, &err));
    assert_int_equal(unlink(file), 0);
    free(file);
    ASSERT_OK(init(f->path, &id, &err));
    char *format = test_path(f->path, "FORMAT");
    assert_int_equal(stat(format, &stat_), 0);
    assert_int_equal(stat_.st_size, 15);
    free(format);
}

static void reading_changes_nothing(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    pf_id id;
    st_graph *graph;
    ASSERT_OK(init(f->path, &id, &err));
    ASSERT_OK(st_graph_open(f->path, PF_READ, &graph, &err));
    small_expect_empty(graph);
    const pf_counters *did = pf_volume_counters(st_graph_volume(graph));
    assert_int_equal(did->writes + did->creates + did->file_syncs + did->directory_syncs + did->renames + did->removes +
                         did->locks,
                     0);
    assert_int_equal(did->lists, 0);
    assert_in_range(did->opens, 1, 14);
    st_graph_close(graph);
}

/* F-07: a control file with a second name, or writable by others, or a link, is refused. */
static void mistreated_control_files_are_refused(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    pf_id id;
    st_graph *graph;
    ASSERT_OK(init(f->path, &id, &err));
    char *info = test_path(f->path, "graph.json"), *other = test_path(f->folder, "other");

    assert_int_equal(link(info, other), 0);
    ASSERT_FAILS(SLUICE_CORRUPT, st_graph_open(f->path, PF_READ, &graph, &err));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(chmod(info, 0620), 0);
    ASSERT_FAILS(SLUICE_PERMISSION, st_graph_open(f->path, PF_READ, &graph, &err));
    assert_int_equal(chmod(info, 0600), 0);
    assert_int_equal(rename(info, other), 0);
    assert_int_equal(symlink(other, info), 0);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, st_graph_open(f->path, PF_READ, &graph, &err));
    assert_int_equal(unlink(info), 0);
    ASSERT_FAILS(SLUICE_CORRUPT, st_graph_open(f->path, PF_READ, &graph, &err));
    assert_int_equal(mkfifo(info, 0600), 0); /* never waited for */
    ASSERT_FAILS(SLUICE_CORRUPT, st_graph_open(f->path, PF_READ, &graph, &err));
    assert_int_equal(unlink(info), 0);
    assert_int_equal(rename(other, info), 0);
    ASSERT_OK(st_graph_open(f->path, PF_READ, &graph, &err));
    st_graph_close(graph);
    free(info);
    free(other);
}

/* OD-015: the folder is moved away under an open handle and a copy put in its place: nothing is acknowledged into the
 * old one. */
static void a_root_that_was_moved_away_takes_no_change(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    pf_id id;
    uint64_t block;
    st_graph *graph;
    char *away = test_path(f->folder, "away");
    ASSERT_OK(init(f->path, &id, &err));
    ASSERT_OK(st_graph_open(f->path, PF_WRITE, &graph, &err));
    ASSERT_OK(st_control_take_row_block(graph, pf_deadline_in_ms(TEST_WAIT_MS), &block, &err));
    assert_int_equal(rename(f->path, away), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    ASSERT_FAILS(SLUICE_FENCED, st_control_take_row_block(graph, pf_deadline_in_ms(TEST_WAIT_MS), &block, &err));
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(rename(away, f->path), 0);
    ASSERT_OK(st_control_take_row_block(graph, pf_deadline_in_ms(TEST_WAIT_MS), &block, &err));
    assert_true(block == 3 * ST_ROW_BLOCK);
    st_graph_close(graph);
    free(away);
}

static int init_in_child(void *context)
{
    sluice_error err = {0};
    pf_id id;
    sluice_status status = init(context, &id, &err);
    return status == SLUICE_OK ? 10 : status == SLUICE_ALREADY_EXISTS ? 11 : 1;
}

static void of_several_inits_at_once_one_makes_the_graph(void **state)
{
    fixture *f = *state;
    sluice_error err = {0};
    st_graph *graph;
    pid_t children[4];
    int made = 0;
    for (int i = 0; i < 4; i++)
        children[i] = test_child(init_in_child, f->path);
    for (int i = 0; i < 4; i++) {
        int status = test_child_wait(children[i]);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 10, 11);
        made += WEXITSTATUS(status) == 10;
    }
    assert_int_equal(made, 1);
    ASSERT_OK(st_graph_open(f->path, PF_WRITE, &graph, &err));
    small_expect_empty(graph);
    st_graph_close(graph);
}

/* Killed at random moments, the next one finishes. */
static void an_init_that_is_killed_is_finished_by_the_next(void **state)
{
    fixture *f = *state;
    for (unsigned round = 0; round < 12; round++) {
        sluice_error err = {0};
        pf_id id;
        st_graph *graph;
        char name[16];
        (void)snprintf(name, sizeof(name), "graph%u", round);
        char *path = test_path(f->folder, name);
        pid_t child = test_child(init_in_child, path);
        pf_sleep_until(pf_monotonic_ns() + (int64_t)round * 3000000);
        (void)kill(child, SIGKILL);
        (void)test_child_wait(child);
        sluice_status status = init(path, &id, &err);
        assert_true(status == SLUICE_OK || status == SLUICE_ALREADY_EXISTS);
        ASSERT_OK(st_graph_open(path, PF_WRITE, &graph, &err));
        small_expect_empty(graph);
        st_graph_close(graph);
        free(path);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_0600_and_folders_0700_whatever_the_umask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_graph_is_made_opened_and_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_folder_becomes_a_graph_and_a_used_one_does_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reading_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistreated_control_files_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_root_that_was_moved_away_takes_no_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_several_inits_at_once_one_makes_the_graph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_init_that_is_killed_is_finished_by_the_next, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
