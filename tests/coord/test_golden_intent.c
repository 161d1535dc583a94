/*
 * Intents that an earlier program wrote, one of each kind of writer (tests/golden/intent-1-*.slot, made by
 * make_golden_intents.py): today's reader understands them, field by field as told in the .txt beside each, writes the
 * same bytes again, and recovery settles each of them in a graph that it does not belong to (OW-013, OW-014, OW-016).
 * TEST_GOLDEN_WRITE=1 writes the .txt files.
 */
#include "coord/audit.h"
#include "coord/intent.h"
#include "coord/plan.h"
#include "coord/recover.h"
#include "die.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY 10

/* ---- what an intent says, as text ---- */

static const char *id_text(const pf_id *id, char text[PF_ID_TEXT])
{
    pf_id_text(id, text);
    return text;
}

static void tell_digest(FILE *out, const char *name, const pf_sha256 *digest)
{
    char text[PF_SHA256_TEXT];
    pf_sha256_text(digest, text);
    (void)fprintf(out, "%s %s\n", name, text);
}

static void tell_id(FILE *out, const char *name, const pf_id *id)
{
    char text[PF_ID_TEXT];
    (void)fprintf(out, "%s %s\n", name, id_text(id, text));
}

static void tell_set(FILE *out, const st_change *set)
{
    (void)fprintf(out, " table %llu space %d unique %u property %llu%s hashes %llu", (unsigned long long)set->table,
                  (int)set->space, set->unique, (unsigned long long)set->property, set->whole ? " whole" : "",
                  (unsigned long long)set->hash_count);
    for (uint64_t i = 0; i < set->hash_count && i < 4; i++)
        (void)fprintf(out, " %016llx", (unsigned long long)set->hashes[i]);
    for (uint32_t i = 0; i < set->run_count; i++)
        (void)fprintf(out, " run %s of %s", set->runs[i].run.info.name, set->runs[i].fragment.name);
    (void)fprintf(out, "\n");
}

static void tell_intent(FILE *out, const co_intent *intent)
{
    (void)fprintf(out, "kind %s version %u phase %d\nbranch %s incarnation %llu%s%s tables", intent->kind,
                  intent->version, (int)intent->phase, intent->branch, (unsigned long long)intent->scope.incarnation,
                  intent->scope.all ? " all" : "", intent->scope.visible ? " visible" : "");
    for (uint32_t i = 0; i < intent->scope.table_count; i++)
        (void)fprintf(out, " %llu", (unsigned long long)intent->scope.tables[i]);
    (void)fprintf(out, "\nbase %llu\n", (unsigned long long)intent->base_generation);
    tell_id(out, "operation", &intent->scope.operation);
    tell_id(out, "commit", &intent->scope.commit);
    tell_id(out, "attempt", &intent->scope.attempt);
    tell_id(out, "epoch", &intent->epoch);
    tell_digest(out, "base", &intent->base_digest);
    tell_digest(out, "schema", &intent->schema_identity);
    tell_digest(out, "request", &intent->request);
    tell_digest(out, "delta", &intent->delta);
    tell_digest(out, "plan", &intent->plan_digest);
    for (uint32_t i = 0; i < intent->effect_count; i++) {
        const ad_effect *effect = &intent->effects[i];
        (void)fprintf(out, "effect %d branch %s incarnation %llu from %s to %s\n", (int)effect->kind, effect->branch,
                      (unsigned long long)effect->incarnation, effect->from, effect->to);
    }
}

static void tell_plan(FILE *out, const co_read_set *reads, const st_delta *delta)
{
    const st_commit *commit = &delta->commit;
    tell_digest(out, "reads schema", &reads->schema_identity);
    if (reads->reads_head)
        tell_id(out, "reads head", &reads->head);
    for (uint32_t i = 0; i < reads->count; i++) {
        (void)fprintf(out, "reads %s", co_read_kind_name(reads->reads[i].kind));
        tell_set(out, &reads->reads[i].set);
    }
    (void)fprintf(out, "commit of %s by %s minted %lld inserted %llu updated %llu deleted %llu rejected %llu\n",
                  commit->kind, commit->actor, (long long)commit->minted_us, (unsigned long long)commit->inserted,
                  (unsigned long long)commit->updated, (unsigned long long)commit->deleted,
                  (unsigned long long)commit->rejected);
    for (uint32_t i = 0; i < 2; i++)
        tell_id(out, "parent", &commit->parents[i]);
    if (st_delta_changes_schema(delta))
        tell_digest(out, "new schema", &delta->new_schema);
    for (uint32_t i = 0; i < delta->edit_count; i++) {
        const st_edit *edit = &delta->edits[i].edit;
        (void)fprintf(out, "edit of %llu adds %u deletes %u out %u%s %s\n", (unsigned long long)edit->table,
                      edit->add_count, edit->delete_count, edit->out_count, edit->replace ? " replaces" : "",
                      delta->edits[i].staged ? delta->edits[i].file : "attached");
        for (uint32_t k = 0; k < edit->add_count; k++)
            (void)fprintf(out, "add %s rows %llu\n", edit->adds[k].fragment.name,
                          (unsigned long long)edit->adds[k].fragment.rows);
    }
    for (uint32_t i = 0; i < delta->changes.count; i++) {
        (void)fprintf(out, "changes");
        tell_set(out, &delta->changes.items[i]);
    }
}

/* ---- the files ---- */

static char *read_file(const char *name, size_t *ret_length)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", TEST_GOLDEN_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        print_error("there is no %s\n", path);
        fail();
    }
    char *bytes = calloc(1, CO_SLOT_BYTES + 1);
    assert_non_null(bytes);
    *ret_length = fread(bytes, 1, CO_SLOT_BYTES, file);
    (void)fclose(file);
    return bytes;
}

static void expect_text(const char *name, const char *text)
{
    char file_name[80], path[512];
    size_t length = 0;
    (void)snprintf(file_name, sizeof file_name, "intent-1-%s.txt", name);
    if (getenv("TEST_GOLDEN_WRITE")) {
        (void)snprintf(path, sizeof path, "%s/%s", TEST_GOLDEN_DIR, file_name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *want = read_file(file_name, &length);
    assert_string_equal(text, want);
    free(want);
}

/* ---- one intent ---- */

static void put_slot(pf_volume *volume, const char *name, pf_file **ret_file)
{
    sluice_error err = {0};
    char file_name[80];
    size_t length = 0;
    (void)snprintf(file_name, sizeof file_name, "intent-1-%s.slot", name);
    char *bytes = read_file(file_name, &length);
    assert_true(length > 4096 + CO_FRAME_HEAD);
    ASSERT_OK(pf_open(volume, ST_INTENTS_FILE, PF_WRITE, ret_file, &err));
    ASSERT_OK(pf_write(*ret_file, 0, bytes, CO_SLOT_BYTES, &err)); /* what was cut off were zeros */
    ASSERT_OK(pf_sync(*ret_file, &err));
    free(bytes);
}

static void expect_same_bytes(pf_file *file, const co_intent *intent, const co_read_set *reads, const st_delta *delta)
{
    sluice_error err = {0};
    uint8_t scope[CO_SCOPE_BYTES], stored[CO_SCOPE_BYTES];
    uint8_t *frame = malloc(CO_FRAME_BYTES);
    pf_buffer document = {0}, plan = {0};
    assert_non_null(frame);
    ASSERT_OK(pf_read_exact(file, 0, stored, sizeof stored, &err));
    ASSERT_OK(pf_read_exact(file, 4096, frame, CO_FRAME_BYTES, &err));
    co_scope_encode(&intent->scope, scope);
    assert_memory_equal(scope, stored, sizeof scope);
    ASSERT_OK(co_intent_encode(intent, &document, &err));
    assert_memory_equal(frame + CO_FRAME_HEAD, document.data, document.length);
    ASSERT_OK(co_plan_encode(reads, delta, &plan, &err));
    assert_int_equal(plan.length, intent->plan_length);
    assert_memory_equal(frame + CO_FRAME_HEAD + document.length, plan.data, plan.length);
    pf_buffer_free(&document);
    pf_buffer_free(&plan);
    free(frame);
}

/* The kind that its adapter is registered under. */
static void check_intent(const char *name, const char *kind)
{
    sluice_error err = {0};
    pf_sim_disk *disk = toy_disk(3);
    pf_volume *volume = NULL;
    pf_file *file = NULL;
    co_slot_state state;
    co_intent intent;
    co_read_set reads = {0};
    st_delta delta = {0};
    bool scope_known = false;
    char *text = NULL;
    size_t length = 0;

    for (int64_t key = 1; key <= HISTORY; key++) /* beyond each base */
        die_expect_next_write(disk, key);
    ASSERT_OK(pf_sim_actor(disk, "graph", &volume, &err));
    put_slot(volume, name, &file);
    ASSERT_OK(co_slot_read(file, 0, &state, &intent, &scope_known, &err));
    assert_int_equal(state, CO_SLOT_INTENT);
    assert_string_equal(intent.kind, kind);
    assert_non_null(ad_find(kind));
    if (strcmp(name, kind) == 0)
        ASSERT_OK(co_plan_read(volume, &intent, &reads, &delta, &err));
    else /* it reads one branch and makes another: recovery looks at what it made */
        ASSERT_OK(co_plan_decode(intent.plan.data, intent.plan.length, &reads, &delta, &err));
    expect_same_bytes(file, &intent, &reads, &delta);

    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    tell_intent(out, &intent);
    tell_plan(out, &reads, &delta);
    assert_int_equal(fclose(out), 0);
    expect_text(name, text);
    free(text);
    co_read_set_free(&reads);
    st_delta_free(&delta);
    co_intent_free(&intent);
    ASSERT_OK(pf_close(file, &err));
    pf_volume_close(volume);

    /* Another graph's: nothing of it holds here, so it goes, and stands in nobody's way. */
    die_recover(disk);
    die_expect_settled(disk);
    die_expect_next_write(disk, HISTORY + 1);
    die_expect_whole(disk);
    pf_sim_disk_free(disk);
    pf_sim_world_remove();
}

static void an_intent_of_each_adapter_is_read_and_written_as_it_was(void **state)
{
    (void)state;
    uint32_t count = 0;
    const ad_adapter *const *adapters = ad_all(&count);
    for (uint32_t i = 0; i < count; i++)
        check_intent(adapters[i]->kind, adapters[i]->kind);
}

static void so_is_that_of_a_load_that_makes_its_branch(void **state)
{
    (void)state;
    check_intent("load-branch", "load");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_intent_of_each_adapter_is_read_and_written_as_it_was),
        cmocka_unit_test(so_is_that_of_a_load_that_makes_its_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
