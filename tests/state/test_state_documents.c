/*
 * The documents of table state: golden bytes, the way back, and that hostile bytes are refused or are another document.
 */
#include "store/state/change.h"
#include "store/state/list.h"
#include "store/state/manifest_parts.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define ZEROS   "0000000000000000000000000000000000000000000000000000000000000000"
#define ELEVENS "1111111111111111111111111111111111111111111111111111111111111111"

static void assert_text(const pf_buffer *buffer, const char *text)
{
    if (buffer->length != strlen(text) || memcmp(buffer->data, text, buffer->length) != 0)
        fail_msg("got\n%.*s\nnot\n%s", (int)buffer->length, (const char *)buffer->data, text);
}

static pf_sha256 elevens(void)
{
    pf_sha256 digest;
    memset(digest.bytes, 0x11, sizeof(digest.bytes));
    return digest;
}

/* Decodes one kind of document and encodes it again. */
typedef sluice_status recode_fn(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err);

/* Each flipped byte and each cut is refused as damaged, or gives a document that encodes to just these other bytes. */
static void assert_hostile_bytes_are_harmless(const char *golden, recode_fn *recode)
{
    size_t length = strlen(golden);
    uint8_t *copy = malloc(length);
    pf_buffer again = {0};
    assert_non_null(copy);
    for (size_t at = 0; at < length; at++) {
        for (unsigned mask = 1; mask < 256; mask <<= 2) {
            sluice_error err = {0};
            memcpy(copy, golden, length);
            copy[at] = (uint8_t)(copy[at] ^ mask);
            again.length = 0;
            sluice_status status = recode(copy, length, &again, &err);
            if (status == SLUICE_OK) {
                assert_int_equal(again.length, length);
                assert_memory_equal(again.data, copy, length);
            } else if (status != SLUICE_CORRUPT && status != SLUICE_UNSUPPORTED_FORMAT) {
                fail_msg("byte %zu with %02x: %s", at, mask, sluice_status_name(status));
            }
        }
    }
    for (size_t cut = 0; cut < length; cut++) {
        sluice_error err = {0};
        ASSERT_FAILS(SLUICE_CORRUPT, recode(golden, cut, &again, &err));
    }
    pf_buffer_free(&again);
    free(copy);
}

/* ---- edits ---- */

static const char edit_golden[] =
    "{\"format\":\"sluice-edit/1\",\"table\":\"64\",\"add\":["
    "{\"fragment\":\"a-0.arrow\",\"rows\":\"10\",\"bytes\":\"1000\",\"footer\":\"" ELEVENS
    "\",\"ids\":\"bound\",\"runs\":["
    "{\"use\":\"key\",\"run\":\"a-0.run\",\"entries\":\"10\",\"bytes\":\"300\",\"footer\":\"" ZEROS "\"},"
    "{\"use\":\"unique\",\"unique\":2,\"run\":\"a-1.run\",\"entries\":\"9\",\"bytes\":\"290\",\"footer\":\"" ZEROS
    "\"}],"
    "\"dead\":{\"file\":\"a-0\",\"rows\":\"3\",\"digest\":\"" ELEVENS "\"}},"
    "{\"fragment\":\"a-1.arrow\",\"rows\":\"1\",\"bytes\":\"100\",\"footer\":\"" ZEROS "\",\"ids\":\"given\","
    "\"first\":\"18446744073709551614\",\"runs\":[],\"dead\":null},"
    "{\"fragment\":\"a-2.arrow\",\"rows\":\"1\",\"bytes\":\"100\",\"footer\":\"" ZEROS
    "\",\"ids\":\"column\",\"runs\":[],\"index\":{\"ordinal\":3,"
    "\"out\":{\"file\":\"a-3.out\",\"entries\":\"1\",\"bytes\":\"200\",\"footer\":\"" ELEVENS "\"},"
    "\"in\":{\"file\":\"a-3.in\",\"entries\":\"2\",\"bytes\":\"201\",\"footer\":\"" ZEROS "\"}},"
    "\"dead\":null}],"
    "\"delete\":[\"5\",\"1099511627776\"],"
    "\"substitute\":[{\"fragment\":\"b-0.arrow\",\"bytes\":\"77\",\"applied\":null,\"incoming\":2}],\"replace\":false}"
    "\n";

static sluice_status recode_edit(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err)
{
    st_edit edit = {0};
    PF_TRY(st_edit_decode(bytes, length, &edit, err));
    sluice_status status = st_edit_encode(&edit, ret_again, err);
    st_edit_free(&edit);
    return status;
}

static void an_edit_has_its_golden_form(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_run_ref runs[2] = {{.use = ST_RUN_KEY, .info = {.name = "a-0.run", .entries = 10, .bytes = 300}},
                          {.use = ST_RUN_UNIQUE, .unique = 2, .info = {.name = "a-1.run", .entries = 9, .bytes = 290}}};
    st_edit_add adds[3] = {
        {.fragment = {.name = "a-0.arrow", .rows = 10, .bytes = 1000, .footer = elevens()},
         .runs = runs,
         .run_count = 2,
         .dead = {.present = true, .name = "a-0", .rows = 3, .digest = elevens()},
         .first_row = 12345, /* bound in G: no part of the edit */
         .commit = {{1}}},
        {.fragment = {.name = "a-1.arrow", .rows = 1, .bytes = 100},
         .first_row = UINT64_MAX - 1,
         .first_row_given = true},
        {.fragment = {.name = "a-2.arrow", .rows = 1, .bytes = 100, .explicit_ids = true},
         .index = {.present = true,
                   .ordinal = 3,
                   .out = {.name = "a-3.out", .entries = 1, .bytes = 200, .footer = elevens()},
                   .in = {.name = "a-3.in", .entries = 2, .bytes = 201}}},
    };
    uint64_t rows[2] = {5, UINT64_C(1) << 40};
    st_edit_out out = {.fragment = "b-0.arrow", .bytes = 77, .incoming = 2};
    st_edit edit = {
        .table = 64, .adds = adds, .add_count = 3, .delete_rows = rows, .delete_count = 2, .out = &out, .out_count = 1};
    pf_buffer text = {0};
    ASSERT_OK(st_edit_encode(&edit, &text, &err));
    assert_text(&text, edit_golden);
    pf_buffer_free(&text);
    st_edit again = {0};
    ASSERT_OK(st_edit_decode(edit_golden, strlen(edit_golden), &again, &err));
    assert_int_equal(again.add_count, 3);
    assert_int_equal(again.adds[0].first_row, 0);
    assert_int_equal(again.adds[0].runs[1].unique, 2);
    assert_true(again.adds[1].first_row_given && again.adds[1].first_row == UINT64_MAX - 1);
    assert_int_equal(again.delete_rows[1], UINT64_C(1) << 40);
    st_edit_free(&again);
    assert_hostile_bytes_are_harmless(edit_golden, recode_edit);
}

static const char attached_golden[] =
    "{\"format\":\"sluice-edit/1\",\"table\":\"64\",\"add\":["
    "{\"fragment\":\"c-0.arrow\",\"rows\":\"2\",\"bytes\":\"1000\",\"footer\":\"" ELEVENS
    "\",\"attached\":true,\"ids\":\"bound\",\"runs\":[],\"dead\":null}],"
    "\"delete\":null,\"substitute\":null,\"replace\":false}\n";

static void an_attached_fragment_has_its_golden_form_and_names_no_file(void **state)
{
    (void)state;
    sluice_error err = {0};
    uint8_t content[1000] = {0};
    st_edit_add add = {.fragment = {.name = "c-0.arrow",
                                    .rows = 2,
                                    .bytes = sizeof(content),
                                    .footer = elevens(),
                                    .attached = true,
                                    .content = content}};
    st_edit edit = {.table = 64, .adds = &add, .add_count = 1}, again = {0};
    pf_buffer text = {0};
    ASSERT_OK(st_edit_encode(&edit, &text, &err));
    assert_text(&text, attached_golden);
    pf_buffer_free(&text);
    ASSERT_OK(st_edit_objects(&edit, NULL, NULL, &err)); /* nothing to be asked about */
    ASSERT_OK(st_edit_decode(attached_golden, strlen(attached_golden), &again, &err));
    assert_true(again.adds[0].fragment.attached);
    assert_null(again.adds[0].fragment.content); /* the record has it */
    st_edit_free(&again);
    assert_hostile_bytes_are_harmless(attached_golden, recode_edit);
}

static const char changes_golden[] =
    "{\"format\":\"sluice-changes/1\",\"items\":["
    "{\"table\":\"64\",\"space\":\"row-updated\",\"unique\":0,\"property\":\"3\",\"whole\":false,"
    "\"hashes\":\"00000000000000050000000000000007\",\"runs\":[]},"
    "{\"table\":\"64\",\"space\":\"row-updated\",\"unique\":0,\"whole\":true,\"hashes\":\"\",\"runs\":[]}]}\n";

static sluice_status recode_changes(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err)
{
    const st_edit_source none = {0};
    st_changes changes = {0};
    PF_TRY(st_changes_decode(bytes, length, &none, &changes, err));
    sluice_status status = st_changes_encode(&changes, &none, ret_again, err);
    st_changes_free(&changes);
    return status;
}

static void a_change_set_has_its_golden_form(void **state)
{
    (void)state;
    sluice_error err = {0};
    const st_edit_source none = {0};
    uint64_t hashes[] = {5, 7};
    st_change items[] = {{.table = 64, .space = ST_SPACE_ROW_UPDATED, .property = 3, .hashes = hashes, .hash_count = 2},
                         {.table = 64, .space = ST_SPACE_ROW_UPDATED, .whole = true}};
    st_changes changes = {items, 2}, again = {0};
    pf_buffer text = {0};
    ASSERT_OK(st_changes_encode(&changes, &none, &text, &err));
    assert_text(&text, changes_golden);
    pf_buffer_free(&text);
    ASSERT_OK(st_changes_decode(changes_golden, strlen(changes_golden), &none, &again, &err));
    assert_int_equal(again.items[0].property, 3);
    assert_int_equal(again.items[0].hashes[1], 7);
    st_changes_free(&again);
    assert_hostile_bytes_are_harmless(changes_golden, recode_changes);
}

static void an_edit_names_no_path(void **state)
{
    static const char *const names[] = {"../x.arrow", "a/b.arrow",    ".hidden",      "",
                                        "a b.arrow",  "a\\\\b.arrow", "\\u00e9.arrow"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        sluice_error err = {0};
        st_edit edit = {0};
        pf_buffer text = {0};
        ASSERT_OK(pf_buffer_append_format(
            &text, &err,
            "{\"format\":\"sluice-edit/"
            "1\",\"table\":\"64\",\"add\":[{\"fragment\":\"%s\",\"rows\":\"1\",\"bytes\":\"1\","
            "\"footer\":\"" ZEROS
            "\",\"ids\":\"bound\",\"runs\":[],\"dead\":null}],\"delete\":null,\"substitute\":null,"
            "\"replace\":false}\n",
            names[i]));
        ASSERT_FAILS(SLUICE_CORRUPT, st_edit_decode(text.data, text.length, &edit, &err));
        pf_buffer_free(&text);
    }
}

static void an_edit_that_makes_no_sense_is_refused(void **state)
{
#define EDIT(add, deleted, substitute, replace)                                                                        \
    "{\"format\":\"sluice-edit/1\",\"table\":\"64\",\"add\":[" add "],\"delete\":" deleted                             \
    ",\"substitute\":" substitute ",\"replace\":" replace "}\n"
#define ADD(rows, more) "{\"fragment\":\"f\",\"rows\":\"" rows "\",\"bytes\":\"1\",\"footer\":\"" ZEROS "\"," more
    static const char *const bad[] = {
        EDIT(ADD("0", "\"ids\":\"bound\",\"runs\":[],\"dead\":null}"), "null", "null", "false"),
        EDIT(ADD("4294967296", "\"ids\":\"bound\",\"runs\":[],\"dead\":null}"), "null", "null", "false"),
        EDIT(ADD("1", "\"ids\":\"given\",\"first\":\"0\",\"runs\":[],\"dead\":null}"), "null", "null", "false"),
        EDIT(ADD("9", "\"ids\":\"given\",\"first\":\"18446744073709551615\",\"runs\":[],\"dead\":null}"), "null",
             "null", "false"),
        EDIT(ADD("1",
                 "\"ids\":\"bound\",\"runs\":[],\"dead\":{\"file\":\"d\",\"rows\":\"2\",\"digest\":\"" ZEROS "\"}}"),
             "null", "null", "false"),
        EDIT("", "[]", "null", "false"),
        EDIT("", "[\"2\",\"1\"]", "null", "false"),
        EDIT("", "[\"2\",\"2\"]", "null", "false"),
        EDIT("", "[2]", "null", "false"),
        EDIT("", "null", "[]", "false"),
        EDIT("", "null", "[{\"fragment\":\"b\",\"bytes\":\"1\",\"applied\":null}]", "true"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        sluice_error err = {0};
        st_edit edit = {0};
        ASSERT_FAILS(SLUICE_CORRUPT, st_edit_decode(bad[i], strlen(bad[i]), &edit, &err));
    }
}

/* ---- list pages ---- */

static const char leaf_golden[] =
    "{\"format\":\"sluice-list/1\",\"table\":\"64\",\"level\":0,\"items\":["
    "{\"fragment\":\"a-0.arrow\",\"rows\":\"10\",\"bytes\":\"1000\",\"footer\":\"" ELEVENS
    "\",\"ids\":\"bound\",\"low\":\"100\","
    "\"high\":\"109\",\"commit\":\"01010101-0101-7101-8101-010101010101\",\"runs\":[],\"dead\":[0,3,9]},"
    "{\"fragment\":\"a-1.arrow\",\"rows\":\"2\",\"bytes\":\"100\",\"footer\":\"" ZEROS
    "\",\"ids\":\"column\",\"low\":\"7\","
    "\"high\":\"5000\",\"commit\":\"01010101-0101-7101-8101-010101010101\",\"runs\":[],"
    "\"dead\":{\"file\":\"x-d0\",\"rows\":\"1\",\"digest\":\"" ZEROS "\"}}]}\n";
static const char inner_golden[] = "{\"format\":\"sluice-list/1\",\"table\":\"64\",\"level\":2,\"pages\":["
                                   "{\"file\":\"x-l0.json\",\"digest\":\"" ELEVENS
                                   "\",\"level\":1,\"fragments\":\"256\",\"low\":\"100\",\"high\":\"900\"}]}\n";

static sluice_status recode_node(uint32_t level, const void *bytes, size_t length, pf_buffer *ret_again,
                                 sluice_error *err)
{
    st_list_node node = {.level = level};
    sluice_status status = st_list_node_decode(64, bytes, length, &node, err);
    if (status == SLUICE_OK)
        status = st_list_node_encode(64, &node, ret_again, err);
    st_list_node_free(&node);
    return status;
}

static sluice_status recode_leaf(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err)
{
    return recode_node(0, bytes, length, ret_again, err);
}

static sluice_status recode_inner(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err)
{
    return recode_node(2, bytes, length, ret_again, err);
}

static void list_pages_have_their_golden_form(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_list_node node = {.level = 0};
    pf_buffer again = {0};
    ASSERT_OK(st_list_node_decode(64, leaf_golden, strlen(leaf_golden), &node, &err));
    assert_int_equal(node.count, 2);
    assert_int_equal(node.items[0].add.first_row, 100);
    assert_int_equal(node.items[0].dead_count, 3);
    assert_true(node.items[0].dead_loaded && !node.items[1].dead_loaded);
    ASSERT_OK(st_list_node_encode(64, &node, &again, &err));
    assert_text(&again, leaf_golden);
    st_list_node_free(&node);
    again.length = 0;
    ASSERT_OK(recode_inner(inner_golden, strlen(inner_golden), &again, &err));
    assert_text(&again, inner_golden);
    ASSERT_FAILS(SLUICE_CORRUPT, recode_leaf(inner_golden, strlen(inner_golden), &again, &err));
    node = (st_list_node){.level = 0};
    ASSERT_FAILS(SLUICE_CORRUPT, st_list_node_decode(65, leaf_golden, strlen(leaf_golden), &node, &err));
    st_list_node_free(&node);
    pf_buffer_free(&again);
    assert_hostile_bytes_are_harmless(leaf_golden, recode_leaf);
    assert_hostile_bytes_are_harmless(inner_golden, recode_inner);
}

/* ---- state pages ---- */

static const char page_golden[] =
    "{\"format\":\"sluice-state/1\",\"entries\":["
    "{\"id\":\"64\",\"name\":\"Person\",\"kind\":\"node\",\"state\":\"live\",\"list\":["
    "{\"file\":\"x-l0.json\",\"digest\":\"" ZEROS "\",\"level\":0,\"fragments\":\"3\",\"low\":\"1\",\"high\":\"9\"}],"
    "\"edits\":[{\"inc\":\"1\",\"gen\":\"18446744073709551615\",\"index\":4294967295,\"at\":0}],\"rows\":\"10\","
    "\"bytes\":\"1000\"},"
    "{\"id\":\"70\",\"name\":\"a\\\"b\",\"kind\":\"edge\",\"state\":\"tombstoned\",\"list\":[],\"edits\":[],\"rows\":"
    "\"0\","
    "\"bytes\":\"0\"}]}\n";

static sluice_status recode_page(const void *bytes, size_t length, pf_buffer *ret_again, sluice_error *err)
{
    st_table_entry *entries = NULL;
    uint32_t count = 0, taken = 0;
    sluice_status status = st_state_page_decode(bytes, length, &entries, &count, err);
    if (status == SLUICE_OK)
        status = st_state_page_encode(entries, count, ret_again, &taken, err);
    for (uint32_t i = 0; i < count; i++)
        st_table_entry_free(&entries[i]);
    free(entries);
    return status;
}

static void state_pages_have_their_golden_form(void **state)
{
    (void)state;
    sluice_error err = {0};
    pf_buffer again = {0};
    ASSERT_OK(recode_page(page_golden, strlen(page_golden), &again, &err));
    assert_text(&again, page_golden);
    pf_buffer_free(&again);
    assert_hostile_bytes_are_harmless(page_golden, recode_page);
}

static void a_state_page_ends_at_its_bound_and_holds_at_least_one_entry(void **state)
{
    (void)state;
    sluice_error err = {0};
    static char name[] = "T";
    static st_edit_place places[300];
    st_table_entry entries[300];
    pf_buffer page = {0};
    uint32_t taken = 0, pages = 0;
    for (uint32_t i = 0; i < 300; i++)
        entries[i] = (st_table_entry){.id = 64 + i, .name = name, .live = true};
    for (uint32_t first = 0; first < 300; first += taken, pages++) {
        page.length = 0;
        ASSERT_OK(st_state_page_encode(entries + first, 300 - first, &page, &taken, &err));
        assert_true(taken > 0 && page.length <= ST_STATE_PAGE_MAX);
        st_table_entry *again = NULL;
        uint32_t count = 0;
        ASSERT_OK(st_state_page_decode(page.data, page.length, &again, &count, &err));
        assert_int_equal(count, taken);
        for (uint32_t i = 0; i < count; i++)
            st_table_entry_free(&again[i]);
        free(again);
    }
    assert_int_equal(pages, 2);
    for (uint32_t i = 0; i < 300; i++)
        places[i] = (st_edit_place){1, UINT64_MAX, 7, 7};
    entries[0].edits = places;
    entries[0].edit_count = 300;
    page.length = 0;
    ASSERT_OK(st_state_page_encode(entries, 300, &page, &taken, &err));
    assert_int_equal(taken, 1);
    assert_true(page.length > ST_STATE_PAGE_MAX);
    pf_buffer_free(&page);
}

/* ---- receipts ---- */

static st_receipt receipt(uint8_t n, int64_t time_us)
{
    return (st_receipt){
        .operation = {{n, 1}}, .commit = {{n, 2}}, .incarnation = 1, .generation = n, .index = 3, .time_us = time_us};
}

static void the_table_of_receipts_comes_back_and_is_bounded(void **state)
{
    (void)state;
    sluice_error err = {0};
    st_receipt_table table = {.floor_us = INT64_MIN}, again = {0};
    pf_buffer bytes = {0};
    int64_t day = INT64_C(24) * 3600 * 1000000, now = 100 * day;
    for (uint8_t n = 1; n <= 5; n++) {
        st_receipt one = receipt(n, now - (60 - 10 * n) * day); /* 50, 40, 30, 20, 10 days old */
        ASSERT_OK(st_receipts_add(&table, &one, &err));
    }
    st_receipts_trim(&table, now);
    assert_int_equal(table.count, 3); /* what is exactly 30 days old is kept */
    assert_int_equal(table.floor_us, now - 40 * day);
    ASSERT_OK(st_receipts_encode(&table, &bytes, &err));
    assert_int_equal(bytes.length, 32 + 3 * 96);
    ASSERT_OK(st_receipts_decode(bytes.data, bytes.length, &again, &err));
    assert_int_equal(again.count, 3);
    assert_int_equal(again.floor_us, table.floor_us);
    assert_int_equal(again.items[0].generation, 3);
    assert_int_equal(again.items[0].operation.bytes[0], 3);
    assert_int_equal(again.items[2].time_us, now - 10 * day);
    st_receipts_free(&again);
    ASSERT_FAILS(SLUICE_CORRUPT, st_receipts_decode(bytes.data, bytes.length - 1, &again, &err));
    bytes.data[12] = 4; /* another count */
    ASSERT_FAILS(SLUICE_CORRUPT, st_receipts_decode(bytes.data, bytes.length, &again, &err));
    bytes.data[12] = 3;
    bytes.data[8] = 2; /* another version */
    ASSERT_FAILS(SLUICE_UNSUPPORTED_FORMAT, st_receipts_decode(bytes.data, bytes.length, &again, &err));
    for (uint32_t n = 0; n < ST_RECEIPTS_MAX; n++) {
        st_receipt one = receipt(9, now);
        ASSERT_OK(st_receipts_add(&table, &one, &err));
    }
    st_receipts_trim(&table, now);
    assert_int_equal(table.count, ST_RECEIPTS_MAX);
    assert_int_equal(table.floor_us, now - 10 * day);
    st_receipts_free(&table);
    pf_buffer_free(&bytes);
}

/* ---- skip pointers ---- */

static void skips_lead_to_any_ancestor_in_few_steps(void **state)
{
    (void)state;
    sluice_error err = {0};
    enum { LAST = 1000 };
    static st_skip *skips[LAST + 1];
    static uint32_t counts[LAST + 1];
    pf_sha256 digests[1] = {elevens()};
    for (uint64_t n = 1; n <= LAST; n++)
        ASSERT_OK(st_skips_next(n - 1, &digests[0], skips[n - 1], counts[n - 1], &skips[n], &counts[n], &err));
    assert_int_equal(counts[1], 0);
    for (uint64_t target = 1; target < LAST; target += 13) {
        uint64_t at = LAST;
        unsigned steps = 0;
        while (at != target) {
            uint32_t k = counts[at];
            while (k > 0 && skips[at][k - 1].number < target)
                k--;
            assert_true(k > 0);
            at = skips[at][k - 1].number;
            steps++;
        }
        assert_true(steps <= 20);
    }
    for (uint64_t n = 1; n <= LAST; n++)
        free(skips[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_has_its_golden_form),
        cmocka_unit_test(an_attached_fragment_has_its_golden_form_and_names_no_file),
        cmocka_unit_test(a_change_set_has_its_golden_form),
        cmocka_unit_test(an_edit_names_no_path),
        cmocka_unit_test(an_edit_that_makes_no_sense_is_refused),
        cmocka_unit_test(list_pages_have_their_golden_form),
        cmocka_unit_test(state_pages_have_their_golden_form),
        cmocka_unit_test(a_state_page_ends_at_its_bound_and_holds_at_least_one_entry),
        cmocka_unit_test(the_table_of_receipts_comes_back_and_is_bounded),
        cmocka_unit_test(skips_lead_to_any_ancestor_in_few_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
