/*
 * Inputs on the command line: TYPE=FILE operands and the flags that say how to read them.
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "cli/command.h"
#include "coord/load.h"

/* A row of a command's table of options; `first` is the index of the first of them. */
#define CLI_INPUT_OPTIONS                                                                                              \
    {"ignore-unknown", 0, CLI_FLAG, NULL, "leave out columns that the schema does not know"},                          \
        {"format", 0, CLI_TEXT, "F",                                                                                   \
         "csv, tsv, jsonl, arrow or arrows, with .gz or .zst if compressed (default: by name; csv for -)"},            \
        {"delimiter", 0, CLI_BYTE, "C", "between fields (default: comma; tab for .tsv)"},                              \
        {"quote", 0, CLI_BYTE, "C", "around fields (default: \")"},                                                    \
        {"escape", 0, CLI_BYTE, "C", "before a quote inside quotes (default: none, a quote is doubled)"},              \
        {"null", 0, CLI_TEXT, "TOKEN", "an unquoted field with this text is null, too"},                               \
        {"no-header", 0, CLI_FLAG, NULL, "files have no heading: the names come from --columns"},                      \
        {"columns", 0, CLI_TEXT, "A,B", "names of the columns for --no-header"},                                       \
    {                                                                                                                  \
        "header", 0, CLI_CHOICE, "each|first", "every file has a heading (default), or only a type's first one"        \
    }
#define CLI_INPUT_OPTION_COUNT 9

typedef struct cli_inputs {
    co_load_input *items;
    char **names; /* of the types */
    uint32_t count;
} cli_inputs;

/* Operands from the second on. Freed by cli_inputs_free, also when this fails. */
sluice_status cli_inputs_parse(const cli_run *run, cli_inputs *ret_inputs, sluice_error *err);
void cli_inputs_free(cli_inputs *inputs); /* safe on a zeroed one */
/* The inputs, and what the flags say about them. */
void cli_inputs_fill(const cli_run *run, uint32_t first, const cli_inputs *inputs, co_load_options *options);
sluice_status cli_inputs_check(const cli_run *run, uint32_t first, sluice_error *err);

#endif
