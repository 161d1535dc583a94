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

sluice_status cli_print_receipt(cli_run *run, const co_receipt *receipt, const char *branch, sluice_error *err)
{
    char commit[PF_ID_TEXT];
    if (!receipt->committed)
        return cli_print(run, err, "nothing to do");
    pf_id_text(&receipt->commit, commit);
    return cli_print(run, err, "%scommit %s, generation %llu of %s", receipt->repeated ? "done before: " : "", commit,
                     (unsigned long long)receipt->generation, branch ? branch : "main");
}
