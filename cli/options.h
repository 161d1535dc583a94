/*
 * The command line: words into options and operands.
 *
 *   --flag=VALUE, --flag VALUE, -f VALUE, -fVALUE; options may stand anywhere; "--" ends them; "-" is an operand, and
 * so is a word like -5 (no option is a digit). An option may be given once. Whatever is not understood is USAGE, with
 * the nearest right name as hint.
 *
 * A command has a table of options and an enum of their indexes in it; parsed values are looked up by that index. Every
 * command also takes --json and --help.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "platform/fail.h"
#include "platform/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_OPTIONS_MAX 32

typedef enum cli_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_NUMBER, /* 0 .. 2^63 - 1 */
    CLI_SIZE,   /* bytes, with K, M, G, T (powers of 1024; also KiB, MiB, ...) */
    CLI_ID,     /* a UUID */
    CLI_BYTE,   /* one ASCII character, or "tab" */
    CLI_CHOICE  /* one of the words in `value`, separated by | */
} cli_kind;

typedef struct cli_option {
    const char *name; /* without the dashes; NULL: only the letter */
    char letter;      /* 0: none */
    cli_kind kind;
    const char *value; /* its name in the help, or the choices; NULL for a flag */
    const char *help;
} cli_option;

typedef struct cli_value {
    bool given;
    const char *text;
    uint64_t number; /* NUMBER, SIZE, BYTE; CHOICE: which */
    pf_id id;
} cli_value;

typedef struct cli_arguments {
    cli_value values[CLI_OPTIONS_MAX];
    const char **operands; /* points into a caller's array of as many as there are words */
    uint32_t operand_count;
    bool json, help;
} cli_arguments;

/* What every command takes besides its own options: --json and --help. */
#define CLI_COMMON_OPTIONS 2u
extern const cli_option cli_common_options[CLI_COMMON_OPTIONS];
/* The i-th word that a CLI_CHOICE (or the first operand of a command) may be: its length, 0 when there are fewer. */
size_t cli_choice(const char *choices, uint32_t which, const char **ret_word);

/* `operands` has room for `count` words. Only json and help are set when it fails. */
sluice_status cli_parse(const cli_option *options, uint32_t option_count, char *const *words, uint32_t count,
                        const char **operands, cli_arguments *ret_arguments, sluice_error *err);

#endif
