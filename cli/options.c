/*
 * Parsing the command line (see cli/options.h).
 */
#include "cli/options.h"
#include "platform/check.h"
#include "store/schema/nearest.h"
#include <string.h>

#define WORD_MAX 64u /* longer words are near to nothing */

const cli_option cli_common_options[CLI_COMMON_OPTIONS] = {
    {"json", 0, CLI_FLAG, NULL, "print documents for programs"},
    {"help", 'h', CLI_FLAG, NULL, "say how to use the command"},
};
#define COMMON_JSON 0u

size_t cli_choice(const char *choices, uint32_t which, const char **ret_word)
{
    for (*ret_word = choices; which > 0; which--) {
        *ret_word += strcspn(*ret_word, "| ");
        if (**ret_word != '|')
            return 0;
        (*ret_word)++;
    }
    return strcspn(*ret_word, "| ");
}

/* Option `which` of a command's own and, behind them, the common ones. */
static const cli_option *option_at(const cli_option *options, uint32_t count, uint32_t which)
{
    return which < count ? &options[which] : &cli_common_options[which - count];
}

static void hint_at_nearest(const cli_option *options, uint32_t count, const char *word, size_t length,
                            sluice_error *err)
{
    char name[WORD_MAX + 1];
    st_nearest nearest;
    if (length > WORD_MAX)
        return;
    memcpy(name, word, length);
    name[length] = '\0';
    st_nearest_begin(&nearest, name);
    for (uint32_t i = 0; i < count + CLI_COMMON_OPTIONS; i++) {
        const cli_option *option = option_at(options, count, i);
        if (option->name)
            st_nearest_offer(&nearest, option->name);
    }
    if (nearest.best)
        pf_hint(err, "did you mean --%s?", nearest.best);
}

static bool parse_number(const char *text, uint64_t *ret_number, const char **ret_end)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (!pf_mul_u64(number, 10, &number) || !pf_add_u64(number, (uint64_t)(*at - '0'), &number))
            return false;
    }
    *ret_number = number;
    *ret_end = at;
    return at > text && number <= INT64_MAX;
}

static bool parse_size(const char *text, uint64_t *ret_size)
{
    static const char units[] = "KMGT";
    uint64_t factor = 1;
    const char *end;
    if (!parse_number(text, ret_size, &end))
        return false;
    if (*end) {
        const char *unit = strchr(units, *end & ~0x20);
        if (!unit || (strcmp(end + 1, "") != 0 && strcmp(end + 1, "iB") != 0 && strcmp(end + 1, "B") != 0))
            return false;
        factor = UINT64_C(1) << (10 * (unit - units + 1));
    }
    return pf_mul_u64(*ret_size, factor, ret_size) && *ret_size <= INT64_MAX;
}

static bool parse_choice(const char *choices, const char *text, uint64_t *ret_which)
{
    size_t length = strlen(text);
    for (uint64_t which = 0;; which++) {
        size_t span = strcspn(choices, "|");
        if (span == length && memcmp(choices, text, span) == 0) {
            *ret_which = which;
            return true;
        }
        if (!choices[span])
            return false;
        choices += span + 1;
    }
}

static sluice_status parse_value(const cli_option *option, const char *text, cli_value *value, sluice_error *err)
{
    const char *end = "";
    bool good = true;
    value->text = text;
    switch (option->kind) {
    case CLI_FLAG:
    case CLI_TEXT:
        break;
    case CLI_NUMBER:
        good = parse_number(text, &value->number, &end) && !*end;
        break;
    case CLI_SIZE:
        good = parse_size(text, &value->number);
        break;
    case CLI_ID:
        good = pf_id_parse(text, &value->id) && !pf_id_is_nil(&value->id);
        break;
    case CLI_BYTE:
        if (strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0)
            value->number = '\t';
        else if ((good = text[0] && !text[1] && !((unsigned char)text[0] & 0x80)))
            value->number = (unsigned char)text[0];
        break;
    case CLI_CHOICE:
        good = parse_choice(option->value, text, &value->number);
        break;
    }
    if (good)
        return SLUICE_OK;
    pf_fail_private(err, SLUICE_USAGE, "the value of an option is not understood", "%s%s: \"%s\" is not %s%s",
                    option->name ? "--" : "-", option->name ? option->name : "n", text,
                    option->kind == CLI_NUMBER   ? "a number"
                    : option->kind == CLI_SIZE   ? "a size such as 512M"
                    : option->kind == CLI_ID     ? "a UUID"
                    : option->kind == CLI_BYTE   ? "one ASCII character"
                    : option->kind == CLI_CHOICE ? (strchr(option->value, '|') ? "one of " : "the word ")
                                                 : "understood",
                    option->kind == CLI_CHOICE ? option->value : "");
    if (option->kind == CLI_CHOICE)
        pf_hint(err, "--%s %s: %s", option->name, option->value, option->help);
    return SLUICE_USAGE;
}

typedef struct word_parser {
    const cli_option *options;
    uint32_t option_count;
    char *const *words;
    uint32_t count;
    uint32_t at; /* the word after the current one */
    cli_arguments *arguments;
} word_parser;

static sluice_status take_option(word_parser *parser, uint32_t which, const char *inline_value, sluice_error *err)
{
    const cli_option *option = option_at(parser->options, parser->option_count, which);
    char name[2] = {option->letter, '\0'};
    const char *shown = option->name ? option->name : name;
    const char *dashes = option->name ? "--" : "-";
    if (which >= parser->option_count) {
        if (inline_value)
            return pf_fail(err, SLUICE_USAGE, "--%s takes no value", shown);
        if (which - parser->option_count == COMMON_JSON)
            parser->arguments->json = true;
        else
            parser->arguments->help = true;
        return SLUICE_OK;
    }
    cli_value *value = &parser->arguments->values[which];
    if (value->given)
        return pf_fail(err, SLUICE_USAGE, "%s%s is given twice", dashes, shown);
    value->given = true;
    if (option->kind == CLI_FLAG)
        return inline_value ? pf_fail(err, SLUICE_USAGE, "%s%s takes no value", dashes, shown) : SLUICE_OK;
    if (!inline_value) {
        if (parser->at == parser->count)
            return pf_fail(err, SLUICE_USAGE, "%s%s wants a value: %s", dashes, shown, option->value);
        inline_value = parser->words[parser->at++];
    }
    return parse_value(option, inline_value, value, err);
}

static sluice_status take_long(word_parser *parser, const char *word, sluice_error *err)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    for (uint32_t i = 0; i < parser->option_count + CLI_COMMON_OPTIONS; i++) {
        const char *name = option_at(parser->options, parser->option_count, i)->name;
        if (name && strlen(name) == length && memcmp(name, word, length) == 0)
            return take_option(parser, i, value, err);
    }
    pf_fail_private(err, SLUICE_USAGE, "an option is not known", "unknown option --%.*s",
                    (int)(length < 200 ? length : 200), word);
    hint_at_nearest(parser->options, parser->option_count, word, length, err);
    return SLUICE_USAGE;
}

static sluice_status take_letter(word_parser *parser, const char *word, sluice_error *err)
{
    for (uint32_t i = 0; i < parser->option_count + CLI_COMMON_OPTIONS; i++) {
        const cli_option *option = option_at(parser->options, parser->option_count, i);
        if (option->letter == word[0])
            return take_option(parser, i, word[1] ? word + 1 : NULL, err);
    }
    return pf_fail_private(err, SLUICE_USAGE, "an option is not known", "unknown option -%s", word);
}

/* --json and --help count wherever they stand before "--", also in a line that is otherwise wrong. */
static void look_for_common(char *const *words, uint32_t count, cli_arguments *arguments)
{
    for (uint32_t i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        arguments->json |= strcmp(words[i], "--json") == 0;
        arguments->help |= strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0;
    }
}

sluice_status cli_parse(const cli_option *options, uint32_t option_count, char *const *words, uint32_t count,
                        const char **operands, cli_arguments *ret_arguments, sluice_error *err)
{
    word_parser parser = {options, option_count, words, count, 0, ret_arguments};
    PF_ASSERT(option_count <= CLI_OPTIONS_MAX);
    *ret_arguments = (cli_arguments){.operands = operands};
    look_for_common(words, count, ret_arguments);
    bool ended = false;
    while (parser.at < count) {
        const char *word = words[parser.at++];
        if (ended || word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9'))
            operands[ret_arguments->operand_count++] = word;
        else if (strcmp(word, "--") == 0)
            ended = true;
        else if (word[1] == '-')
            PF_TRY(take_long(&parser, word + 2, err));
        else
            PF_TRY(take_letter(&parser, word + 1, err));
    }
    return SLUICE_OK;
}
