/*
 * Receipts of writes, printed (cli/receipt.h).
 */
#include "cli/receipt.h"

void cli_put_receipt(st_json *json, const co_receipt *receipt, const char *branch)
{
    st_json_name(json, "commit");
    if (!receipt->committed) {
        st_json_null(json);
        return;
    }
    st_json_object(json);
    st_json_name(json, "id");
    st_json_id(json, &receipt->commit);
    st_json_name(json, "generation");
    st_json_unsigned(json, receipt->generation);
    st_json_name(json, "index");
    st_json_unsigned(json, receipt->index);
    st_json_name(json, "branch");
    st_json_text(json, branch ? branch : "main");
    st_json_object_end(json);
}

void cli_put_changes(st_json *json, uint64_t inserted, uint64_t updated, uint64_t deleted)
{
    st_json_name(json, "inserted");
    st_json_unsigned(json, inserted);
    st_json_name(json, "updated");
    st_json_unsigned(json, updated);
    st_json_name(json, "deleted");
    st_json_unsigned(json, deleted);
}

void cli_put_operation(st_json *json, const co_receipt *receipt)
{
    st_json_name(json, "repeated");
    st_json_bool(json, receipt->repeated);
    st_json_name(json, "operation_id");
    st_json_id(json, &receipt->operation);
}

void cli_put_cost(st_json *json, double seconds, uint64_t memory_peak)
{
    st_json_name(json, "seconds");
    st_json_double(json, seconds);
    st_json_name(json, "memory_peak");
    st_json_unsigned(json, memory_peak);
}

void cli_receipt_stands(cli_run *run, const co_receipt *receipt)
{
    run->stands = (cli_stands){.changed = receipt->committed,
                               .acknowledged = receipt->acknowledged,
                               .commit = receipt->commit,
                               .operation = receipt->operation};
}

sluice_status cli_print_receipt(cli_run *run, const co_receipt *receipt, const char *branch, sluice_error *err)
{
    char commit[PF_ID_TEXT];
    if (!receipt->committed)
        return cli_print(run, err, "nothing to do");
    pf_id_text(&receipt->commit, commit);
    return cli_print(run, err, "%scommit %s, generation %llu of %s", receipt->repeated ? "done before: " : "", commit,
                     (unsigned long long)receipt->generation, branch ? branch : "main");
}

static const char *did_what(const cli_named *named)
{
    return named->creates ? "created" : named->dry_run && !named->repeated ? "would delete" : "deleted";
}

static sluice_status print_named_line(cli_run *run, const cli_named *named, sluice_error *err)
{
    char id[PF_ID_TEXT];
    PF_TRY(cli_print(run, err, "%s%s %s", named->repeated ? "done before: " : "", did_what(named), named->name));
    if (!pf_id_is_nil(&named->commit)) {
        pf_id_text(&named->commit, id);
        PF_TRY(cli_print(run, err, " at commit %s, generation %llu", id, (unsigned long long)named->generation));
    }
    return cli_print(run, err, "\n");
}

sluice_status cli_print_named(cli_run *run, const cli_named *named, sluice_error *err)
{
    cli_json document;
    run->stands = (cli_stands){
        .changed = !named->dry_run, .acknowledged = true, .commit = named->commit, .operation = named->operation};
    if (!run->arguments.json)
        return print_named_line(run, named, err);
    cli_json_begin(&document);
    st_json *json = &document.json;
    st_json_object(json);
    st_json_name(json, named->kind);
    st_json_text(json, named->name);
    if (named->incarnation) {
        st_json_name(json, "incarnation");
        st_json_unsigned(json, named->incarnation);
    }
    st_json_name(json, "commit");
    if (pf_id_is_nil(&named->commit)) {
        st_json_null(json);
    } else {
        st_json_object(json);
        st_json_name(json, "id");
        st_json_id(json, &named->commit);
        st_json_name(json, "generation");
        st_json_unsigned(json, named->generation);
        st_json_name(json, "index");
        st_json_unsigned(json, named->index);
        st_json_object_end(json);
    }
    st_json_name(json, "dry_run");
    st_json_bool(json, named->dry_run);
    st_json_name(json, "repeated");
    st_json_bool(json, named->repeated);
    st_json_name(json, "operation_id");
    st_json_id(json, &named->operation);
    st_json_object_end(json);
    return cli_json_end(run, &document, err);
}
