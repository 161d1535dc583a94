/*
 * version, help: what the program says about itself.
 */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/output.h"
#include "platform/failpoint.h"
#include <stdio.h>
#include <string.h>

#define HELP_INDENT 32
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

static sluice_status print_option(cli_run *run, const cli_option *option, sluice_error *err)
{
    char left[128];
    char letter[8] = "";
    if (option->letter)
        (void)snprintf(letter, sizeof letter, "-%c%s", option->letter, option->name ? ", " : "");
    (void)snprintf(left, sizeof left, "%s%s%s%s%s", letter, option->name ? "--" : "", option->name ? option->name : "",
                   option->value ? " " : "", option->value ? option->value : "");
    if (strlen(left) > HELP_INDENT - 4) {
        PF_TRY(cli_print(run, err, "  %s\n", left));
        left[0] = '\0';
    }
    return cli_print(run, err, "  %-*s%s\n", HELP_INDENT - 2, left, option->help);
}

sluice_status cli_print_help(cli_run *run, const cli_command *command, sluice_error *err)
{
    static const cli_option common[] = {{"json", 0, CLI_FLAG, NULL, "print documents for programs"},
                                        {"help", 'h', CLI_FLAG, NULL, "print this"}};
    PF_TRY(cli_print(run, err, "usage: sluice %s%s%s\n\n%s\n\noptions:\n", command->name,
                     command->operands[0] ? " " : "", command->operands, command->summary));
    for (uint32_t i = 0; i < command->option_count; i++)
        PF_TRY(print_option(run, &command->options[i], err));
    for (uint32_t i = 0; i < sizeof common / sizeof common[0]; i++)
        PF_TRY(print_option(run, &common[i], err));
    return SLUICE_OK;
}

static sluice_status run_help(cli_run *run, sluice_error *err)
{
    if (run->arguments.operand_count > 0) {
        const cli_command *command = cli_find_command(run->arguments.operands[0]);
        if (command)
            return cli_print_help(run, command, err);
        pf_fail_private(err, SLUICE_USAGE, "the command is not known", "unknown command \"%s\"",
                        run->arguments.operands[0]);
        pf_hint(err, "sluice help lists the commands");
        return SLUICE_USAGE;
    }
    PF_TRY(cli_print(run, err,
                     "usage: sluice COMMAND ...\n\n"
                     "A crash-safe property-graph store for one Linux machine, written by many processes at once.\n\n"
                     "commands:\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(cli_print(run, err, "  %-10s  %s\n", cli_commands[i]->name, cli_commands[i]->summary));
    return cli_print(
        run, err,
        "\nsluice help COMMAND says more. Exit statuses: 0 done, 1 failed, 2 usage, 3 conflict, 4 bad data,\n"
        "5 recovery required, 6 corrupt, 7 unsupported, 8 not found or exists, 9 another request had this id,\n"
        "10 no space or a limit, 130 interrupted.\n");
}

const cli_command cli_help = {.name = "help",
                              .operands = "[COMMAND]",
                              .summary = "List the commands, or say how to use one.",
                              .most = 1,
                              .effect = CLI_SAYS,
                              .run = run_help};
