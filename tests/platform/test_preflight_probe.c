/*
 * The live probe (F-01, F-02, OD-011 to OD-015): passes here, refuses in its own phase what is broken under it, leaves
 * nothing behind, and takes away what a probe left that was killed in any phase.
 */
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include "platform/failpoint.h"
#include "platform/preflight_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sluice_error err;

static int with_folder(void **state)
{
    char *folder = test_folder_make();
    char *parent = test_path(folder, "parent"), *cache = test_path(folder, "cache");

    assert_int_equal(mkdir(parent, 0700), 0);
    assert_int_equal(mkdir(cache, 0700), 0);
    free(parent);
    free(cache);
    *state = folder;
    return 0;
}

static int without_folder(void **state)
{
    pf_preflight_spoil(NULL, NULL);
    test_folder_remove(*state);
    return 0;
}

static unsigned entries_in(const char *path)
{
    DIR *dir = opendir(path);
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    assert_int_equal(closedir(dir), 0);
    return count - 2;
}

static void assert_nothing_left(void **state)
{
    char *parent = test_path(*state, "parent");

    assert_int_equal(entries_in(parent), 0);
    free(parent);
}

static sluice_status probe(void **state, bool keep)
{
    char *parent = test_path(*state, "parent"), *cache = test_path(*state, "cache");
    sluice_status status = pf_preflight_probe(parent, keep ? cache : NULL, &err);

    free(parent);
    free(cache);
    return status;
}

/* ---- passing ---- */

static void a_good_place_passes_and_nothing_is_left(void **state)
{
    ASSERT_OK(probe(state, false));
    assert_nothing_left(state);
    ASSERT_OK(probe(state, false));
}

static void a_missing_parent_is_not_found(void **state)
{
    char *path = test_path(*state, "none");

    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_preflight_probe(path, NULL, &err));
    free(path);
}

static void failpoints(const char *text)
{
    assert_int_equal(setenv("SLUICE_FAILPOINT", text, 1), 0);
    ASSERT_OK(pf_failpoints_init(&err));
}

/* The one evidence file, to be freed. */
static char *evidence_file(void **state)
{
    char *cache = test_path(*state, "cache"), *found = NULL;
    DIR *dir = opendir(cache);
    const struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "preflight-", 10) == 0) {
            assert_null(found);
            found = test_path(cache, entry->d_name);
        }
    assert_int_equal(closedir(dir), 0);
    assert_non_null(found);
    free(cache);
    return found;
}

static void overwrite(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* With a probe that would fail, only evidence can answer. */
static bool is_answered_by_evidence(void **state)
{
    sluice_status status;

    failpoints("preflight.write=error");
    status = probe(state, true);
    failpoints("");
    assert_true(status == SLUICE_OK || status == SLUICE_IO);
    return status == SLUICE_OK;
}

static void evidence_spares_the_next_probe(void **state)
{
    char *cache = test_path(*state, "cache"), *parent = test_path(*state, "parent"), *file;
    pf_evidence evidence;

    ASSERT_FAILS(SLUICE_NOT_FOUND, pf_preflight_evidence(parent, cache, &evidence, &err));
    assert_false(is_answered_by_evidence(state));
    assert_int_equal(entries_in(cache), 0); /* a failed probe is no evidence */
    ASSERT_OK(probe(state, true));
    assert_int_equal(entries_in(cache), 1);
    assert_true(is_answered_by_evidence(state));
    ASSERT_OK(pf_preflight_evidence(parent, cache, &evidence, &err));
    assert_in_range(evidence.sync_us, 0, 60000000);
    file = evidence_file(state);
    assert_null(strstr(file + strlen(cache), "parent")); /* no path in it, nor in its name */
    free(file);
    free(cache);
    free(parent);
}

static void evidence_that_is_torn_foreign_or_old_denies_nothing(void **state)
{
    char *file, good[512] = {0}, bad[512];
    FILE *stream;

    ASSERT_OK(probe(state, true));
    file = evidence_file(state);
    stream = fopen(file, "re");
    assert_non_null(stream);
    assert_non_null(fgets(good, sizeof good, stream));
    assert_int_equal(fclose(stream), 0);
    /* torn anywhere */
    for (size_t cut = 0; cut + 1 < strlen(good); cut += 7) {
        memcpy(bad, good, cut);
        bad[cut] = 0;
        overwrite(file, bad);
        assert_false(is_answered_by_evidence(state));
    }
    /* of another boot */
    memcpy(bad, good, sizeof bad);
    bad[strlen("sluice-preflight/1 boot=")] ^= 1;
    overwrite(file, bad);
    assert_false(is_answered_by_evidence(state));
    /* writable by others */
    overwrite(file, good);
    assert_true(is_answered_by_evidence(state));
    assert_int_equal(chmod(file, 0660), 0);
    assert_false(is_answered_by_evidence(state));
    assert_int_equal(chmod(file, 0600), 0);
    assert_true(is_answered_by_evidence(state));
    /* a link, a folder */
    assert_int_equal(unlink(file), 0);
    assert_int_equal(symlink("elsewhere", file), 0);
    assert_false(is_answered_by_evidence(state));
    ASSERT_OK(probe(state, true)); /* it cannot be written either */
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    ASSERT_OK(probe(state, true));
    assert_int_equal(rmdir(file), 0);
    ASSERT_OK(probe(state, true)); /* and is made again */
    assert_true(is_answered_by_evidence(state));
    assert_nothing_left(state);
    free(file);
}

/* ---- breaking ---- */

typedef struct fault {
    pf_probe_phase phase;
    const char *shown; /* in details */
    void (*act)(int folder);
} fault;

static pid_t *keeper; /* of the descriptor of a killed process; shared with the child that makes it */

static void act_at(void *context, pf_probe_phase phase, int folder)
{
    const fault *f = context;

    if (phase == f->phase)
        f->act(folder);
}

static void add_a_name(int folder)
{
    assert_int_equal(linkat(folder, "one", folder, "more", 0), 0);
}

static void change_the_size(int folder)
{
    int fd = openat(folder, "one", O_WRONLY | O_CLOEXEC);

    assert_int_equal(ftruncate(fd, 7), 0);
    assert_int_equal(close(fd), 0);
}

/* In the child that will be killed: somebody else keeps its description, so its locks stay. */
static void keep_the_locks(int folder)
{
    pid_t pid = fork();

    (void)folder;
    if (pid == 0) {
        (void)alarm(TEST_WAIT_MS / 1000);
        for (;;)
            (void)pause();
    }
    *keeper = pid;
}

static void take_the_name_away(int folder)
{
    assert_int_equal(unlinkat(folder, "two", 0), 0);
}

static void put_another_in_place(int folder)
{
    int fd;

    assert_int_equal(unlinkat(folder, "two", 0), 0);
    fd = openat(folder, "two", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void change_the_bytes(int folder)
{
    int fd = openat(folder, "two", O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, "x", 1, 100), 1);
    assert_int_equal(close(fd), 0);
}

static void each_broken_promise_is_refused_in_its_phase(void **state)
{
    static fault faults[] = {
        {PF_PROBE_FILE_SYNC, "\"phase\":\"file_sync\",\"cause\":\"links\"", add_a_name},
        {PF_PROBE_FILE_SYNC, "\"phase\":\"file_sync\",\"cause\":\"bytes\"", change_the_size},
        {PF_PROBE_EXCLUSIVE, "\"phase\":\"exclusive\",\"cause\":\"not_excluded\"", take_the_name_away},
        {PF_PROBE_EXCLUSIVE, "\"phase\":\"exclusive\",\"cause\":\"bytes\"", change_the_bytes},
        {PF_PROBE_REPLACED, "\"phase\":\"replace\",\"cause\":\"replaced\"", put_another_in_place},
        {PF_PROBE_REPLACED, "\"phase\":\"replace\",\"cause\":\"replaced\"", change_the_bytes},
        {PF_PROBE_MAP, "\"phase\":\"map\",\"cause\":\"bytes\"", change_the_bytes},
    };

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char *parent = test_path(*state, "parent"), *more;
        pf_preflight_spoil(act_at, &faults[i]);
        ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, probe(state, true));
        assert_non_null(strstr(err.details, faults[i].shown));
        assert_null(strstr(err.message, parent));
        if (i == 0) { /* the name that the fault made is not the probe's to remove */
            assert_int_equal(entries_in(parent), 1);
            more = test_path(*state, "aside");
            assert_int_equal(rename(parent, more), 0);
            assert_int_equal(mkdir(parent, 0700), 0);
            free(more);
        }
        assert_nothing_left(state);
        free(parent);
    }
    pf_preflight_spoil(NULL, NULL);
    ASSERT_OK(probe(state, true));
}

static void locks_that_outlive_their_process_are_refused(void **state)
{
    static fault f = {PF_PROBE_LOCK_CHILD, NULL, keep_the_locks};

    keeper = test_shared(sizeof *keeper);
    pf_preflight_spoil(act_at, &f);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FILESYSTEM, probe(state, true));
    assert_non_null(strstr(err.details, "\"phase\":\"lock\",\"cause\":\"not_released\""));
    assert_true(*keeper > 0);
    assert_int_equal(kill(*keeper, SIGKILL), 0);
    assert_nothing_left(state);
}

static void an_error_in_any_phase_leaves_nothing(void **state)
{
    static const char *const phases[] = {"create",  "write",    "file_sync", "lock",   "exclusive",
                                         "replace", "dir_sync", "map",       "cleanup"};

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "preflight.%s=error", phases[i]);
        failpoints(text);
        ASSERT_FAILS(SLUICE_IO, probe(state, true));
        assert_nothing_left(state);
    }
    failpoints("");
    ASSERT_OK(probe(state, true));
}

/* ---- dying ---- */

typedef struct victim {
    const char *parent, *failpoint;
} victim;

static int probe_and_die(void *context)
{
    const victim *v = context;
    sluice_error e;

    if (setenv("SLUICE_FAILPOINT", v->failpoint, 1) != 0 || pf_failpoints_init(&e) != SLUICE_OK)
        return 1;
    (void)pf_preflight_probe(v->parent, NULL, &e);
    return 0;
}

static void a_probe_killed_in_any_phase_is_swept_by_the_next(void **state)
{
    static const char *const phases[] = {"create",  "write",    "file_sync", "lock",   "exclusive",
                                         "replace", "dir_sync", "map",       "cleanup"};
    char *parent = test_path(*state, "parent");

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "preflight.%s=kill", phases[i]);
        test_child_expect_signal(test_child(probe_and_die, &(victim){parent, text}), SIGKILL);
        assert_int_equal(entries_in(parent), i > 0); /* it did leave something, but for the first */
        ASSERT_OK(pf_preflight_probe(parent, NULL, &err));
        assert_nothing_left(state);
    }
    free(parent);
}

static void residue_is_swept_even_when_evidence_spares_the_probe(void **state)
{
    char *parent = test_path(*state, "parent");

    ASSERT_OK(probe(state, true));
    test_child_expect_signal(test_child(probe_and_die, &(victim){parent, "preflight.map=kill"}), SIGKILL);
    assert_int_equal(entries_in(parent), 1);
    ASSERT_OK(probe(state, true));
    assert_nothing_left(state);
    free(parent);
}

typedef struct sleeper {
    const char *parent;
    volatile unsigned stands, go;
} sleeper;

static void stand_still(void *context, pf_probe_phase phase, int folder)
{
    sleeper *s = context;

    (void)folder;
    if (phase == PF_PROBE_REPLACE) {
        s->stands = 1;
        test_wait_for(&s->go, 1);
    }
}

static int probe_slowly(void *context)
{
    sleeper *s = context;
    sluice_error e;

    pf_preflight_spoil(stand_still, s);
    return pf_preflight_probe(s->parent, NULL, &e) == SLUICE_OK ? 0 : 1;
}

static void a_live_probe_is_left_alone_by_others(void **state)
{
    sleeper *s = test_shared(sizeof *s);
    char *parent = test_path(*state, "parent");
    pid_t child;

    s->parent = parent;
    child = test_child(probe_slowly, s);
    test_wait_for(&s->stands, 1);
    ASSERT_OK(probe(state, false));
    assert_int_equal(entries_in(parent), 1);
    s->go = 1;
    test_child_expect_exit(child, 0);
    assert_nothing_left(state);
    free(parent);
}

static void only_what_a_probe_makes_is_swept(void **state)
{
    char *parent = test_path(*state, "parent");
    char *odd = test_path(parent, ".sluice-probe-precious"), *inner = test_path(odd, "data");
    char *file = test_path(parent, ".sluice-probe-file"), *link = test_path(parent, ".sluice-probe-link");

    assert_int_equal(mkdir(odd, 0700), 0);
    overwrite(inner, "precious");
    overwrite(file, "a file");
    assert_int_equal(symlink(odd, link), 0);
    ASSERT_OK(probe(state, false));
    assert_int_equal(access(inner, F_OK), 0);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(entries_in(parent), 3);
    free(parent);
    free(odd);
    free(inner);
    free(file);
    free(link);
}

static void a_probe_whose_folder_is_swept_too_early_starts_again(void **state)
{
    /* Two probes at once, again and again: each sweeps what the other has just made and not locked yet. */
    char *parent = test_path(*state, "parent");

    for (unsigned i = 0; i < 20; i++) {
        pid_t a = test_child(probe_and_die, &(victim){parent, ""});
        pid_t b = test_child(probe_and_die, &(victim){parent, ""});
        ASSERT_OK(pf_preflight_probe(parent, NULL, &err));
        test_child_expect_exit(a, 0);
        test_child_expect_exit(b, 0);
        assert_nothing_left(state);
    }
    free(parent);
}

static void sweep_now(void *context, pf_probe_phase phase, int folder)
{
    sluice_error e;

    (void)folder;
    if (phase != PF_PROBE_CLEANUP)
        return;
    pf_preflight_spoil(NULL, NULL);
    assert_int_equal(pf_preflight_probe(context, NULL, &e), SLUICE_OK);
}

static void a_probe_whose_folder_is_swept_while_it_cleans_up_passes(void **state)
{
    char *parent = test_path(*state, "parent");

    pf_preflight_spoil(sweep_now, parent); /* another probe comes between the removal of the lock and of the folder */
    ASSERT_OK(pf_preflight_probe(parent, NULL, &err));
    assert_nothing_left(state);
    free(parent);
}

static void many_probes_at_once_all_pass(void **state)
{
    /* Sixteen commands meet a graph that has no evidence yet: each sweeps while others make, clean up and remove. */
    char *parent = test_path(*state, "parent");
    victim one = {parent, ""};
    pid_t children[16];

    for (unsigned round = 0; round < 10; round++) {
        for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
            children[i] = test_child(probe_and_die, &one);
        for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
            test_child_expect_exit(children[i], 0);
        assert_nothing_left(state);
    }
    free(parent);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, with_folder, without_folder)
    const struct CMUnitTest tests[] = {
        WITH(a_good_place_passes_and_nothing_is_left),
        WITH(a_missing_parent_is_not_found),
        WITH(evidence_spares_the_next_probe),
        WITH(evidence_that_is_torn_foreign_or_old_denies_nothing),
        WITH(each_broken_promise_is_refused_in_its_phase),
        WITH(locks_that_outlive_their_process_are_refused),
        WITH(an_error_in_any_phase_leaves_nothing),
        WITH(a_probe_killed_in_any_phase_is_swept_by_the_next),
        WITH(residue_is_swept_even_when_evidence_spares_the_probe),
        WITH(a_live_probe_is_left_alone_by_others),
        WITH(only_what_a_probe_makes_is_swept),
        WITH(a_probe_whose_folder_is_swept_too_early_starts_again),
        WITH(a_probe_whose_folder_is_swept_while_it_cleans_up_passes),
        WITH(many_probes_at_once_all_pass),
    };
    return cmocka_run_group_tests_name("preflight probe", tests, NULL, NULL);
}
