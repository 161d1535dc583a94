/*
 * Inputs on the command line (cli/inputs.h).
 */
#include "cli/inputs.h"
#include <stdlib.h>
#include <string.h>

enum { IGNORE_UNKNOWN, FORMAT, DELIMITER, QUOTE, ESCAPE, NULL_TOKEN, NO_HEADER, COLUMNS, HEADER, OPTIONS };
_Static_assert(OPTIONS == CLI_INPUT_OPTION_COUNT, "one name for each option");

sluice_status cli_inputs_parse(const cli_run *run, cli_inputs *ret_inputs, sluice_error *err)
{
    uint32_t count = run->arguments.operand_count - 1;
    *ret_inputs = (cli_inputs){.items = calloc((size_t)count + 1, sizeof(co_load_input)),
                               .names = calloc((size_t)count + 1, sizeof(char *)),
                               .count = count};
    if (!ret_inputs->items || !ret_inputs->names)
        return pf_fail_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const char *word = run->arguments.operands[i + 1];
        const char *equals = strchr(word, '=');
        if (!equals || equals == word || !equals[1]) {
            pf_fail_private(err, SLUICE_USAGE, "an input is not TYPE=FILE", "\"%s\" is not TYPE=FILE", word);
            pf_hint(err, "for example: Person=people.csv; - is standard input");
            return SLUICE_USAGE;
        }
        ret_inputs->names[i] = strndup(word, (size_t)(equals - word));
        if (!ret_inputs->names[i])
            return pf_fail_memory(err);
        ret_inputs->items[i] = (co_load_input){.type = ret_inputs->names[i], .path = equals + 1};
    }
    return SLUICE_OK;
}

void cli_inputs_free(cli_inputs *inputs)
{
    for (uint32_t i = 0; inputs->names && i < inputs->count; i++)
        free(inputs->names[i]);
    free(inputs->names);
    free(inputs->items);
    *inputs = (cli_inputs){0};
}

static char byte_of(const cli_run *run, uint32_t which)
{
    const cli_value *value = cli_option_value(run, which);
    return value->given ? (char)value->number : '\0';
}

void cli_inputs_fill(const cli_run *run, uint32_t first, const cli_inputs *inputs, co_load_options *options)
{
    options->inputs = inputs->items;
    options->input_count = inputs->count;
    options->ignore_unknown = cli_option_value(run, first + IGNORE_UNKNOWN)->given;
    options->dialect = (wk_dialect){.delimiter = byte_of(run, first + DELIMITER),
                                    .quote = byte_of(run, first + QUOTE),
                                    .escape = byte_of(run, first + ESCAPE),
                                    .null_token = cli_text_or(run, first + NULL_TOKEN, NULL),
                                    .no_header = cli_option_value(run, first + NO_HEADER)->given,
                                    .header_first_only = cli_option_value(run, first + HEADER)->number == 1,
                                    .columns = cli_text_or(run, first + COLUMNS, NULL),
                                    .format = cli_text_or(run, first + FORMAT, NULL)};
}

sluice_status cli_inputs_check(const cli_run *run, uint32_t first, sluice_error *err)
{
    if (cli_option_value(run, first + COLUMNS)->given && !cli_option_value(run, first + NO_HEADER)->given)
        return pf_fail(err, SLUICE_USAGE, "--columns goes with --no-header");
    return SLUICE_OK;
}
