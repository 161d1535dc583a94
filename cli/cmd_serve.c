/*
 * serve: hosts several graphs until it is told to end (coord/host/serve.h does the work).
 */
#include "cli/hosted.h"
#include "cli/output.h"

enum { SERVE_CONFIG, SERVE_CHECK, SERVE_OPTIONS };
static const cli_option serve_options[SERVE_OPTIONS] = {
    [SERVE_CONFIG] = {"config", 'c', CLI_TEXT, "FILE",
                      "what to host, and how (docs/operations.md \"Hosting several graphs\")"},
    [SERVE_CHECK] = {"check", 0, CLI_FLAG, NULL, "say whether the file is in order, and host nothing"},
};

static sluice_status check(cli_run *run, const char *file, sluice_error *err)
{
    cli_json document;
    uint32_t graphs = 0;
    PF_TRY(co_serve_check(file, &graphs, err));
    if (!run->arguments.json)
        return cli_print(run, err, "%s is in order: %u graph%s\n", file, graphs, graphs == 1 ? "" : "s");
    cli_json_begin(&document);
    st_json_object(&document.json);
    st_json_name(&document.json, "ok");
    st_json_bool(&document.json, true);
    st_json_name(&document.json, "graphs");
    st_json_unsigned(&document.json, graphs);
    st_json_object_end(&document.json);
    return cli_json_end(run, &document, err);
}

static sluice_status run_serve(cli_run *run, sluice_error *err)
{
    const char *file = cli_text_or(run, SERVE_CONFIG, NULL);
    if (!file) {
        (void)pf_fail(err, SLUICE_USAGE, "serve: --config is missing");
        pf_hint(err, "usage: sluice serve --config FILE");
        return SLUICE_USAGE;
    }
    return cli_option_value(run, SERVE_CHECK)->given ? check(run, file, err) : co_serve(file, &cli_host_program, err);
}

const cli_command cli_serve = {.name = "serve",
                               .operands = "--config FILE",
                               .summary =
                                   "Host several graphs: jobs of many clients, fairly and apart from each other.",
                               .options = serve_options,
                               .option_count = SERVE_OPTIONS,
                               .least = 0,
                               .most = 0,
                               .effect = CLI_SAYS,
                               .run = run_serve};
