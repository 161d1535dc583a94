/*
 * version: what the program says about itself.
 */
#include "cli/command.h"
#include "cli/output.h"
#include "platform/failpoint.h"

#define FORMAT_NAME "sluice-graph/1"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#else
#define SANITIZED false
#endif
#else
#define SANITIZED false
#endif
#ifdef NDEBUG
#define ASSERTIONS false
#else
#define ASSERTIONS true
#endif
#if SLUICE_JEMALLOC
#define JEMALLOC true
#else
#define JEMALLOC false
#endif

static const struct {
    const char *name;
    bool value;
} build_flags[] = {{"assertions", ASSERTIONS},
                   {"failpoints", SLUICE_FAILPOINTS != 0},
                   {"sanitizers", SANITIZED},
                   {"jemalloc", JEMALLOC}};
#define BUILD_FLAGS (sizeof build_flags / sizeof build_flags[0])

enum { VERSION_FAILPOINTS, VERSION_OPTIONS };
static const cli_option version_options[VERSION_OPTIONS] = {
    [VERSION_FAILPOINTS] = {"failpoints", 0, CLI_FLAG, NULL, "list the failpoints of this build"},
};

static sluice_status list_failpoints(cli_run *run, sluice_error *err)
{
    for (int i = 0; SLUICE_FAILPOINTS && i < PF_FAILPOINT_COUNT; i++)
        PF_TRY(cli_print(run, err, "%s\n", pf_failpoint_name((pf_failpoint)i)));
    return SLUICE_OK;
}

static sluice_status run_version(cli_run *run, sluice_error *err)
{
    if (cli_option_value(run, VERSION_FAILPOINTS)->given)
        return list_failpoints(run, err);
    if (run->arguments.json) {
        cli_json document;
        cli_json_begin(&document);
        st_json *json = &document.json;
        st_json_object(json);
        st_json_name(json, "version");
        st_json_text(json, SLUICE_VERSION);
        st_json_name(json, "format");
        st_json_text(json, FORMAT_NAME);
        st_json_name(json, "compiler");
        st_json_text(json, COMPILER);
        st_json_name(json, "build");
        st_json_object(json);
        for (size_t i = 0; i < BUILD_FLAGS; i++) {
            st_json_name(json, build_flags[i].name);
            st_json_bool(json, build_flags[i].value);
        }
        st_json_object_end(json);
        st_json_object_end(json);
        return cli_json_end(run, &document, err);
    }
    PF_TRY(cli_print(run, err, "sluice %s\nformat %s\nbuilt by %s", SLUICE_VERSION, FORMAT_NAME, COMPILER));
    for (size_t i = 0; i < BUILD_FLAGS; i++)
        PF_TRY(cli_print(run, err, ", %s%s", build_flags[i].value ? "" : "no ", build_flags[i].name));
    return cli_print(run, err, "\n");
}

const cli_command cli_version = {.name = "version",
                                 .operands = "",
                                 .summary =
                                     "Print the version, how this program was built, and the format that it writes.",
                                 .options = version_options,
                                 .option_count = VERSION_OPTIONS,
                                 .effect = CLI_SAYS,
                                 .run = run_version};
