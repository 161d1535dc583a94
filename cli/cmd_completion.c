/*
 * completion: what bash, zsh or fish need to complete command lines, made from the table of commands.
 *
 * Commands, options, and the words that options and first operands may be are written into the script. In bash names of
 * branches (behind --branch) and of types (where the operands are GRAPH TYPE or GRAPH [TYPE]) are asked of the graph on
 * the line; they are data there and nothing in them is expanded.
 */
#include "cli/output.h"
#include "platform/check.h"
#include <stdio.h>
#include <string.h>

typedef enum shell_kind { BASH, ZSH, FISH } shell_kind;

/* Inside '...' of the shell; `also` are characters that want a backslash besides. */
static sluice_status print_quoted(cli_run *run, shell_kind shell, const char *text, const char *also, sluice_error *err)
{
    for (; *text; text++) {
        if (*text == '\'')
            PF_TRY(shell == FISH ? cli_print(run, err, "\\'") : cli_print(run, err, "'\\''"));
        else if (strchr(also, *text))
            PF_TRY(cli_print(run, err, "\\%c", *text));
        else
            PF_TRY(cli_write(run, text, 1, err));
    }
    return SLUICE_OK;
}

static sluice_status print_choices(cli_run *run, const char *choices, const char *between, sluice_error *err)
{
    const char *word;
    size_t length;
    for (uint32_t i = 0; (length = cli_choice(choices, i, &word)) > 0; i++)
        PF_TRY(cli_print(run, err, "%s%.*s", i > 0 ? between : "", (int)length, word));
    return SLUICE_OK;
}

/* Is the first operand one of a few words, written a|b|c? */
static bool has_verbs(const cli_command *command)
{
    const char *word;
    return cli_choice(command->operands, 1, &word) > 0;
}

static bool names_command(const cli_command *command)
{
    return strcmp(command->operands, "[COMMAND]") == 0;
}

static bool names_type(const cli_command *command)
{
    return strncmp(command->operands, "GRAPH TYPE", 10) == 0 ? command->operands[10] != '='
                                                             : strncmp(command->operands, "GRAPH [TYPE", 11) == 0;
}

static sluice_status print_command_names(cli_run *run, const char *between, sluice_error *err)
{
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(cli_print(run, err, "%s%s", i > 0 ? between : "", cli_commands[i]->name));
    return SLUICE_OK;
}

static uint32_t option_count(const cli_command *command)
{
    return command->option_count + CLI_COMMON_OPTIONS;
}

static const cli_option *option_of(const cli_command *command, uint32_t which)
{
    return which < command->option_count ? &command->options[which]
                                         : &cli_common_options[which - command->option_count];
}

/* ---- bash ---- */

static const char bash_head[] = "# bash completion for sluice\n"
                                "_sluice()\n"
                                "{\n"
                                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= word\n"
                                "    local command=${COMP_WORDS[1]} graph=${COMP_WORDS[2]/#\\~/$HOME}\n"
                                "    COMPREPLY=()\n"
                                "    if [[ $cur == = ]]; then\n"
                                "        cur=\n"
                                "    elif [[ $prev == = ]]; then\n"
                                "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                                "    fi\n"
                                "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
                                "        words='";
static const char bash_tail[] = "        esac\n"
                                "    fi\n"
                                "    if [[ -z $words ]]; then\n"
                                "        compopt -o filenames 2>/dev/null\n"
                                "        while IFS= read -r word; do\n"
                                "            COMPREPLY+=(\"$word\")\n"
                                "        done < <(compgen -f -- \"$cur\")\n"
                                "        return\n"
                                "    fi\n"
                                "    while IFS= read -r word; do\n"
                                "        [[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$(printf %q \"$word\")\")\n"
                                "    done <<< \"$words\"\n"
                                "}\n"
                                "complete -F _sluice sluice\n";

static sluice_status print_bash_options(cli_run *run, const cli_command *command, sluice_error *err)
{
    const char *before = "";
    PF_TRY(cli_print(run, err, "        %s) words='", command->name));
    for (uint32_t i = 0; i < option_count(command); i++) {
        const cli_option *option = option_of(command, i);
        if (!option->name)
            continue;
        PF_TRY(cli_print(run, err, "%s--%s", before, option->name));
        before = "\n";
    }
    return cli_print(run, err, "' ;;\n");
}

/* What may stand behind the word before: the choices of an option, or the operand whose turn it is. */
static sluice_status print_bash_values(cli_run *run, const cli_command *command, sluice_error *err)
{
    for (uint32_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        if (option->kind != CLI_CHOICE || !option->name)
            continue;
        PF_TRY(cli_print(run, err, "        '%s '*' --%s') words='", command->name, option->name));
        PF_TRY(print_choices(run, option->value, "\n", err));
        PF_TRY(cli_print(run, err, "' ;;\n"));
    }
    if (has_verbs(command) || names_command(command)) {
        PF_TRY(cli_print(run, err, "        '%s 2 '*) words='", command->name));
        PF_TRY(names_command(command) ? print_command_names(run, "\n", err)
                                      : print_choices(run, command->operands, "\n", err));
        PF_TRY(cli_print(run, err, "' ;;\n"));
    }
    if (names_type(command))
        PF_TRY(cli_print(run, err,
                         "        '%s 3 '[!-]*) words=$(command sluice count \"$graph\" --json 2>/dev/null |"
                         " grep -oE '\"[^\"]+\":' | tr -d '\":') ;;\n",
                         command->name));
    return SLUICE_OK;
}

static sluice_status print_bash(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "%s", bash_head));
    PF_TRY(print_command_names(run, "\n", err));
    PF_TRY(cli_print(run, err, "'\n    elif [[ $cur == -* ]]; then\n        case $command in\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(print_bash_options(run, cli_commands[i], err));
    PF_TRY(cli_print(run, err, "        esac\n    else\n        case $command in\n"));
    for (uint32_t i = 0; cli_commands[i]; i++) {
        if (has_verbs(cli_commands[i]))
            PF_TRY(cli_print(run, err, "        %s) graph=${COMP_WORDS[3]/#\\~/$HOME} ;;\n", cli_commands[i]->name));
    }
    PF_TRY(cli_print(run, err,
                     "        esac\n        case \"$command $COMP_CWORD $prev\" in\n"
                     "        *' --branch') words=$(command sluice branch list \"$graph\" --json 2>/dev/null |"
                     " grep -oE '\"branch\":\"[^\"]+\"' | cut -d '\"' -f 4) ;;\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(print_bash_values(run, cli_commands[i], err));
    return cli_print(run, err, "%s", bash_tail);
}

/* ---- zsh ---- */

static const char zsh_tail[] = "    esac\n"
                               "}\n"
                               "if [[ $funcstack[1] == _sluice ]]; then\n"
                               "    _sluice \"$@\"\n"
                               "else\n"
                               "    compdef _sluice sluice\n"
                               "fi\n";

static sluice_status print_zsh_option(cli_run *run, const cli_option *option, const char *name, const char *joint,
                                      sluice_error *err)
{
    PF_TRY(cli_print(run, err, " \\\n            '%s%s[", name, option->kind == CLI_FLAG ? "" : joint));
    PF_TRY(print_quoted(run, ZSH, option->help, "[]\\", err));
    PF_TRY(cli_print(run, err, "]"));
    if (option->kind == CLI_CHOICE) {
        PF_TRY(cli_print(run, err, ":value:("));
        PF_TRY(print_choices(run, option->value, " ", err));
        PF_TRY(cli_print(run, err, ")"));
    } else if (option->kind != CLI_FLAG) {
        PF_TRY(cli_print(run, err, ":"));
        PF_TRY(print_quoted(run, ZSH, option->value, ":\\", err));
        PF_TRY(cli_print(run, err, ":_files"));
    }
    return cli_print(run, err, "'");
}

static sluice_status print_zsh_command(cli_run *run, const cli_command *command, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "    %s)\n        _arguments", command->name));
    for (uint32_t i = 0; i < option_count(command); i++) {
        const cli_option *option = option_of(command, i);
        char name[80] = "-";
        if (option->letter) {
            name[1] = option->letter;
            PF_TRY(print_zsh_option(run, option, name, "+", err));
        }
        if (option->name) {
            PF_ASSERT(strlen(option->name) < sizeof name - 2);
            (void)snprintf(name, sizeof name, "--%s", option->name);
            PF_TRY(print_zsh_option(run, option, name, "=", err));
        }
    }
    if (has_verbs(command) || names_command(command)) {
        PF_TRY(cli_print(run, err, " \\\n            '1:word:("));
        PF_TRY(names_command(command) ? print_command_names(run, " ", err)
                                      : print_choices(run, command->operands, " ", err));
        PF_TRY(cli_print(run, err, ")'"));
    }
    return cli_print(run, err, " \\\n            '*:operand:_files' ;;\n");
}

static sluice_status print_zsh(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "#compdef sluice\n_sluice()\n{\n    local -a commands\n    commands=(\n"));
    for (uint32_t i = 0; cli_commands[i]; i++) {
        PF_TRY(cli_print(run, err, "        '%s:", cli_commands[i]->name));
        PF_TRY(print_quoted(run, ZSH, cli_commands[i]->summary, "\\", err));
        PF_TRY(cli_print(run, err, "'\n"));
    }
    PF_TRY(cli_print(run, err,
                     "    )\n    if (( CURRENT == 2 )); then\n        _describe -t commands command commands\n"
                     "        return\n    fi\n    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(print_zsh_command(run, cli_commands[i], err));
    return cli_print(run, err, "%s", zsh_tail);
}

/* ---- fish ---- */

static sluice_status print_fish_words(cli_run *run, const cli_command *command, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "complete -c sluice -n '__fish_seen_subcommand_from %s' -f -a '", command->name));
    PF_TRY(names_command(command) ? print_command_names(run, " ", err)
                                  : print_choices(run, command->operands, " ", err));
    return cli_print(run, err, "'\n");
}

static sluice_status print_fish_option(cli_run *run, const cli_command *command, const cli_option *option,
                                       sluice_error *err)
{
    PF_TRY(cli_print(run, err, "complete -c sluice -n '__fish_seen_subcommand_from %s'", command->name));
    if (option->letter)
        PF_TRY(cli_print(run, err, " -s %c", option->letter));
    if (option->name)
        PF_TRY(cli_print(run, err, " -l %s", option->name));
    if (option->kind == CLI_CHOICE) {
        PF_TRY(cli_print(run, err, " -x -a '"));
        PF_TRY(print_choices(run, option->value, " ", err));
        PF_TRY(cli_print(run, err, "'"));
    } else if (option->kind != CLI_FLAG) {
        PF_TRY(cli_print(run, err, " -r"));
    }
    PF_TRY(cli_print(run, err, " -d '"));
    PF_TRY(print_quoted(run, FISH, option->help, "\\", err));
    return cli_print(run, err, "'\n");
}

static sluice_status print_fish(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "# fish completion for sluice\n"));
    for (uint32_t i = 0; cli_commands[i]; i++) {
        const cli_command *command = cli_commands[i];
        PF_TRY(cli_print(run, err, "complete -c sluice -n __fish_use_subcommand -f -a %s -d '", command->name));
        PF_TRY(print_quoted(run, FISH, command->summary, "\\", err));
        PF_TRY(cli_print(run, err, "'\n"));
        if (has_verbs(command) || names_command(command))
            PF_TRY(print_fish_words(run, command, err));
        for (uint32_t j = 0; j < option_count(command); j++)
            PF_TRY(print_fish_option(run, command, option_of(command, j), err));
    }
    return SLUICE_OK;
}

static sluice_status run_completion(cli_run *run, sluice_error *err)
{
    const char *name = run->arguments.operands[0];
    if (strcmp(name, "bash") == 0)
        return print_bash(run, err);
    if (strcmp(name, "zsh") == 0)
        return print_zsh(run, err);
    if (strcmp(name, "fish") == 0)
        return print_fish(run, err);
    pf_fail_private(err, SLUICE_USAGE, "the shell is not known", "no completion is made for \"%s\"", name);
    pf_hint(err, "sluice completion bash, zsh or fish");
    return SLUICE_USAGE;
}

const cli_command cli_completion = {.name = "completion",
                                    .operands = "bash|zsh|fish",
                                    .summary = "Print what a shell needs to complete command lines.",
                                    .least = 1,
                                    .most = 1,
                                    .effect = CLI_SAYS,
                                    .run = run_completion};
