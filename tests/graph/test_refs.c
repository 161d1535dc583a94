/*
 * Branch names: which are allowed, that creation and removal are exact, and that each cut at any call leaves the name
 * there or not, never half (LESSONS 6, OW-103, OW-104).
 */
#include "small_graph.h"
#include "store/format/document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void names_are_data_and_nearly_anything_goes(void **state)
{
    (void)state;
    static const char *const good[] = {"main",       "a",       "a/b",      "a/b/c",     ".",
                                       "a.b",        ".hidden", "a.",       "-x",        "con",
                                       "COM1",       "a\\b",    "a b",      " ",         "*",
                                       "$(x)",       "%00",     "\xC3\xA9", "e\xCC\x81", "\xF0\x9F\x98\x80",
                                       "~",          "@{0}",    "refs/x",   "x.json",    "{\"a\":1}",
                                       "\"quoted\"", "a:b",     "a=b"};
    static const char *const bad[] = {"",       "/",  "/a",   "a/",   "a//b",     "..",   "a..b",     "../x",
                                      "a/../b", "\n", "a\tb", "\x7f", "\xC2\x85", "\xC3", "\xC0\xAF", "\xED\xA0\x80"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(st_branch_name_is_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(st_branch_name_is_valid(bad[i], strlen(bad[i])));
    char name[257];
    memset(name, 'x', sizeof(name));
    assert_true(st_branch_name_is_valid(name, 255));
    assert_false(st_branch_name_is_valid(name, 256));
    assert_false(st_branch_name_is_valid("a\0b", 3));
}

typedef struct listed {
    char names[16][64];
    uint64_t incarnations[16];
    unsigned count, unreadable;
} listed;

static sluice_status note(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    listed *list = context;
    (void)err;
    if (!name) {
        assert_int_equal(incarnation, 0);
        list->unreadable++;
        return SLUICE_OK;
    }
    (void)snprintf(list->names[list->count], sizeof(list->names[0]), "%s", name);
    list->incarnations[list->count++] = incarnation;
    return SLUICE_OK;
}

static uint64_t listed_as(const listed *list, const char *name)
{
    for (unsigned i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return list->incarnations[i];
    return 0;
}

static void different_names_are_different_branches(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "a/b", "A", "a.json", "\xC3\xA9", "e\xCC\x81"};
    sluice_error err = {0};
    pf_id id;
    uint64_t incarnation;
    listed list = {0};
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE);

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ASSERT_OK(st_ref_create(graph, names[i], 10 + i, &err));
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ASSERT_OK(st_ref_read(graph, names[i], &incarnation, &err));
        assert_int_equal(incarnation, 10 + i);
    }
    ASSERT_OK(st_ref_list(graph, note, &list, &err));
    assert_int_equal(list.count, 7);
    assert_int_equal(list.unreadable, 0);
    assert_int_equal(listed_as(&list, "main"), ST_MAIN_INCARNATION);
    assert_int_equal(listed_as(&list, "a/b"), 11);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_ref_read(graph, "b", &incarnation, &err));
    assert_null(strstr(err.message, "\"b\"")); /* a user's word: on the terminal only */
    assert_non_null(strstr(err.text, "\"b\""));
    ASSERT_FAILS(SLUICE_INVALID_NAME, st_ref_read(graph, "../x", &incarnation, &err));
    ASSERT_FAILS(SLUICE_INVALID_NAME, st_ref_create(graph, "a//b", 9, &err));
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static void a_name_is_created_once_and_never_adopted(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t incarnation;
    pf_sim_disk *disk = small_disk(1, &id);
    st_graph *graph = small_open(disk, PF_WRITE), *other = small_open(disk, PF_WRITE);

    ASSERT_OK(st_ref_create(graph, "x", 5, &err));
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, st_ref_create(other, "x", 6, &err));
    ASSERT_OK(st_ref_create(other, "x", 5, &err)); /* its own, after a lost answer */
    ASSERT_FAILS(SLUICE_ALREADY_EXISTS, st_ref_create(graph, "main", 7, &err));
    /* Removed and made again in between: another incarnation, a conflict, and it stays. */
    ASSERT_OK(st_ref_remove(graph, "x", 5, &err));
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_ref_remove(other, "x", 5, &err));
    ASSERT_OK(st_ref_create(graph, "x", 6, &err));
    ASSERT_FAILS(SLUICE_WRITE_CONFLICT, st_ref_remove(other, "x", 5, &err));
    ASSERT_OK(st_ref_read(other, "x", &incarnation, &err));
    assert_int_equal(incarnation, 6);
    st_graph_close(other);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

/* ---- damage ---- */

static void ref_path(const char *name, char path[128])
{
    char digest[PF_SHA256_TEXT];
    pf_sha256 sha = pf_sha256_of(name, strlen(name));
    pf_sha256_text(&sha, digest);
    (void)snprintf(path, 128, "refs/%s.json", digest);
}

static void put_ref(pf_sim_disk *disk, const char *file_of, const char *text)
{
    sluice_error err = {0};
    char path[128];
    pf_file *file;
    pf_volume *volume = small_actor(disk);
    ref_path(file_of, path);
    (void)pf_remove(volume, path, NULL);
    ASSERT_OK(pf_create(volume, path, &file, &err));
    ASSERT_OK(pf_write(file, 0, text, strlen(text), &err));
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);
}

static void a_damaged_ref_is_corrupt_for_that_name_only(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{}\n",
        "{\"format\":\"sluice-ref/1\",\"name\":\"y\",\"incarnation\":\"5\"}\n",        /* of another name */
        "{\"format\":\"sluice-ref/1\",\"name\":\"x\",\"incarnation\":\"0\"}\n",        /* of no incarnation */
        "{\"format\":\"sluice-ref/1\",\"name\":\"x\",\"incarnation\":5}\n",            /* a number */
        "{\"format\":\"sluice-ref/1\",\"name\":\"x\",\"incarnation\":\"5\"}",          /* cut */
        "{\"format\":\"sluice-ref/1\",\"name\":\"x\",\"incarnation\":\"05\"}\n",       /* another form */
        "{\"format\":\"sluice-ref/1\",\"incarnation\":\"5\",\"name\":\"x\"}\n",        /* another order */
        "{\"format\":\"sluice-ref/1\", \"name\":\"x\",\"incarnation\":\"5\"}\n",       /* a space */
        "{\"format\":\"sluice-ref/1\",\"name\":\"x\",\"incarnation\":\"5\",\"a\":1}\n" /* a member more */
    };
    sluice_error err = {0};
    pf_id id;
    uint64_t incarnation;
    pf_sim_disk *disk = small_disk(1, &id);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        listed list = {0};
        put_ref(disk, "x", texts[i]);
        st_graph *graph = small_open(disk, PF_WRITE);
        ASSERT_FAILS(SLUICE_CORRUPT, st_ref_read(graph, "x", &incarnation, &err));
        ASSERT_FAILS(SLUICE_CORRUPT, st_ref_create(graph, "x", 8, &err)); /* never overwritten */
        ASSERT_FAILS(SLUICE_CORRUPT, st_ref_remove(graph, "x", 5, &err));
        ASSERT_OK(st_ref_read(graph, "main", &incarnation, &err));
        ASSERT_OK(st_ref_list(graph, note, &list, &err));
        assert_int_equal(list.count, 1);
        assert_int_equal(list.unreadable, 1);
        st_graph_close(graph);
    }
    put_ref(disk, "x", "{\"format\":\"sluice-ref/2\",\"name\":\"x\",\"incarnation\":\"5\"}\n");
    st_graph *graph = small_open(disk, PF_READ);
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_ref_read(graph, "x", &incarnation, &err));
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

static void other_files_in_refs_are_no_refs(void **state)
{
    (void)state;
    static const char *const names[] = {"refs/notes", "refs/x.json", "refs/0123.json"};
    sluice_error err = {0};
    pf_id id;
    listed list = {0};
    pf_file *file;
    pf_sim_disk *disk = small_disk(1, &id);
    pf_volume *volume = small_actor(disk);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ASSERT_OK(pf_create(volume, names[i], &file, &err));
        ASSERT_OK(pf_close(file, &err));
    }
    pf_volume_close(volume);
    st_graph *graph = small_open(disk, PF_READ);
    ASSERT_OK(st_ref_list(graph, note, &list, &err));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.unreadable, 0);
    st_graph_close(graph);
    pf_sim_disk_free(disk);
}

/* ---- crashes ---- */

/* 0 when the name is not there. */
static uint64_t holds(pf_sim_disk *disk, const char *name)
{
    sluice_error err = {0};
    uint64_t incarnation = 0;
    st_graph *graph = small_open(disk, PF_READ);
    sluice_status status = st_ref_read(graph, name, &incarnation, &err);
    assert_true(status == SLUICE_OK || status == SLUICE_NOT_FOUND);
    st_graph_close(graph);
    return status == SLUICE_OK ? incarnation : 0;
}

static const struct {
    pf_sim_fate fate;
    pf_sim_loss loss;
} ends[] = {{PF_SIM_DIE, PF_SIM_LOSE_ALL},
            {PF_SIM_POWER_LOSS, PF_SIM_LOSE_ALL},
            {PF_SIM_POWER_LOSS, PF_SIM_KEEP_ALL},
            {PF_SIM_POWER_LOSS, PF_SIM_RANDOM},
            {PF_SIM_POWER_LOSS, PF_SIM_TEAR_LAST}};

/* Runs `act` on a clone with each crash; `after` looks at what is left and says whether it was done. */
static void crash_everywhere(const pf_sim_disk *base, sluice_status (*act)(st_graph *, sluice_error *),
                             bool (*after)(pf_sim_disk *))
{
    unsigned done = 0, runs = 0;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        for (uint64_t k = 1;; k++) {
            bool died = false;
            for (int before = 0; before < 2; before++)
                for (unsigned seed = 0; seed < 6; seed++) {
                    sluice_error err = {0};
                    pf_sim_disk *disk;
                    ASSERT_OK(pf_sim_disk_clone(base, seed * 17 + k, &disk, &err));
                    st_graph *graph = small_open(disk, PF_WRITE);
                    pf_volume *volume = st_graph_volume(graph);
                    pf_sim_crash_at(volume, k, before == 1, ends[i].fate, ends[i].loss);
                    sluice_status status = act(graph, &err);
                    died = pf_sim_is_dead(volume);
                    assert_true(died || status == SLUICE_OK);
                    st_graph_close(graph);
                    done += after(disk);
                    runs++;
                    pf_sim_disk_free(disk);
                }
            if (!died)
                break;
        }
    assert_true(done > 0);
    assert_true(done < runs);
}

static sluice_status create_x(st_graph *graph, sluice_error *err)
{
    return st_ref_create(graph, "x", 5, err);
}

static sluice_status remove_x(st_graph *graph, sluice_error *err)
{
    return st_ref_remove(graph, "x", 5, err);
}

static bool created_or_not(pf_sim_disk *disk)
{
    sluice_error err = {0};
    uint64_t found = holds(disk, "x");
    assert_true(found == 0 || found == 5);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_ref_create(graph, "x", 5, &err)); /* the same call again: its own, or made now */
    st_graph_close(graph);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(holds(disk, "x"), 5);
    return found == 5;
}

static bool removed_or_not(pf_sim_disk *disk)
{
    sluice_error err = {0};
    uint64_t found = holds(disk, "x");
    assert_true(found == 0 || found == 5);
    st_graph *graph = small_open(disk, PF_WRITE);
    if (found)
        ASSERT_OK(st_ref_remove(graph, "x", 5, &err));
    else
        ASSERT_OK(st_ref_create(graph, "x", 6, &err));
    st_graph_close(graph);
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    assert_int_equal(holds(disk, "x"), found ? 0 : 6);
    return found == 0;
}

static void a_creation_cut_short_is_done_or_not_done(void **state)
{
    (void)state;
    pf_id id;
    pf_sim_disk *disk = small_disk(3, &id);
    crash_everywhere(disk, create_x, created_or_not);
    pf_sim_disk_free(disk);
}

static void a_removal_cut_short_is_done_or_not_done(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    pf_sim_disk *disk = small_disk(3, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_ref_create(graph, "x", 5, &err));
    st_graph_close(graph);
    crash_everywhere(disk, remove_x, removed_or_not);
    pf_sim_disk_free(disk);
}

/* The maker died between rename and sync; whoever writes on the strength of the name makes it durable first (OD-004).
 */
static void a_name_is_made_durable_before_it_is_relied_on(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t incarnation, block;
    pf_sim_disk *disk = small_disk(3, &id);
    st_graph *maker = small_open(disk, PF_WRITE);
    pf_sim_crash_at(st_graph_volume(maker), 4, false, PF_SIM_DIE, PF_SIM_KEEP_ALL); /* create, write, sync, rename */
    (void)st_ref_create(maker, "x", 5, &err);
    assert_true(pf_sim_is_dead(st_graph_volume(maker)));
    st_graph_close(maker);

    st_graph *reader = small_open(disk, PF_READ);
    uint64_t before = pf_sim_calls(st_graph_volume(reader));
    ASSERT_OK(st_ref_read(reader, "x", &incarnation, &err));
    assert_int_equal(pf_sim_calls(st_graph_volume(reader)), before); /* a reader changes and syncs nothing */
    st_graph_close(reader);

    st_graph *writer = small_open(disk, PF_WRITE);
    ASSERT_OK(st_ref_read(writer, "x", &incarnation, &err));
    before = pf_volume_counters(st_graph_volume(writer))->directory_syncs;
    ASSERT_OK(st_ref_read(writer, "x", &incarnation, &err)); /* once per incarnation and handle */
    ASSERT_OK(st_ref_read(writer, "main", &incarnation, &err));
    assert_int_equal(pf_volume_counters(st_graph_volume(writer))->directory_syncs, before);
    ASSERT_OK(st_control_take_row_block(writer, PF_AT_ONCE, &block, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    st_graph_close(writer);
    assert_int_equal(holds(disk, "x"), 5);
    pf_sim_disk_free(disk);
}

/* Likewise for the absence of one. */
static void an_absence_is_made_durable_before_it_is_relied_on(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_id id;
    uint64_t incarnation;
    pf_sim_disk *disk = small_disk(3, &id);
    st_graph *graph = small_open(disk, PF_WRITE);
    ASSERT_OK(st_ref_create(graph, "x", 5, &err));
    pf_sim_crash_at(st_graph_volume(graph), 2, true, PF_SIM_DIE, PF_SIM_KEEP_ALL); /* removed, not synced */
    (void)st_ref_remove(graph, "x", 5, &err);
    assert_true(pf_sim_is_dead(st_graph_volume(graph)));
    st_graph_close(graph);
    graph = small_open(disk, PF_WRITE);
    ASSERT_FAILS(SLUICE_NOT_FOUND, st_ref_read(graph, "x", &incarnation, &err));
    pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
    st_graph_close(graph);
    assert_int_equal(holds(disk, "x"), 0);
    pf_sim_disk_free(disk);
}

/* The rename's answer is an error, or the sync's is. */
static void an_error_says_whether_the_name_is_there(void **state)
{
    (void)state;
    for (uint64_t k = 1; k <= 5; k++) {
        sluice_error err = {0};
        pf_id id;
        pf_sim_disk *disk = small_disk(3, &id);
        st_graph *graph = small_open(disk, PF_WRITE);
        pf_sim_fail_at(st_graph_volume(graph), k, EIO, 1);
        ASSERT_FAILS(SLUICE_IO, st_ref_create(graph, "x", 5, &err));
        assert_int_equal(err.committed == SLUICE_TRUE, holds(disk, "x") == 5);
        assert_int_equal(err.committed == SLUICE_TRUE, k == 5);
        ASSERT_OK(st_ref_create(graph, "x", 5, &err));
        st_graph_close(graph);
        pf_sim_power_loss(disk, PF_SIM_LOSE_ALL);
        assert_int_equal(holds(disk, "x"), 5);
        pf_sim_disk_free(disk);
    }
}

static void temporary_names_are_told_from_others(void **state)
{
    (void)state;
    assert_true(st_document_is_temporary("a.json.0190a5d0-0000-7000-8000-000000000000.new"));
    assert_false(st_document_is_temporary("a.json"));
    assert_false(st_document_is_temporary("a.json.new"));
    assert_false(st_document_is_temporary(".0190a5d0-0000-7000-8000-000000000000.new"));
    assert_false(st_document_is_temporary("a.json.0190a5d0-0000-7000-8000-00000000000z.new"));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_data_and_nearly_anything_goes),
        cmocka_unit_test(different_names_are_different_branches),
        cmocka_unit_test(a_name_is_created_once_and_never_adopted),
        cmocka_unit_test(a_damaged_ref_is_corrupt_for_that_name_only),
        cmocka_unit_test(other_files_in_refs_are_no_refs),
        cmocka_unit_test(a_creation_cut_short_is_done_or_not_done),
        cmocka_unit_test(a_removal_cut_short_is_done_or_not_done),
        cmocka_unit_test(a_name_is_made_durable_before_it_is_relied_on),
        cmocka_unit_test(an_absence_is_made_durable_before_it_is_relied_on),
        cmocka_unit_test(an_error_says_whether_the_name_is_there),
        cmocka_unit_test(temporary_names_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
