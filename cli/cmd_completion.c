/*
 * completion: what bash, zsh or fish need to complete command lines, made from the table of commands.
 *
 * Commands, options, and the words that options and first operands may be are written into the script. Names of
 * branches (behind --branch, --into, --from), of types (where the operands are GRAPH TYPE or GRAPH [TYPE]) and of
 * columns (behind
 * --columns) are asked of the graph on the line, by `sluice completion branches GRAPH` and so on; they are data there
 * and nothing in them is expanded.
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

/* What the values of an option are called by: "branches", "columns"; NULL: nothing in the graph. */
static const char *names_of_option(const cli_option *option)
{
    static const char *const branches[] = {"branch", "into", "from"};
    for (uint32_t i = 0; option->name && option->kind == CLI_TEXT && i < sizeof branches / sizeof branches[0]; i++)
        if (strcmp(option->name, branches[i]) == 0)
            return "branches";
    return option->name && strcmp(option->name, "columns") == 0 ? "columns" : NULL;
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

static const char bash_head[] =
    "# bash completion for sluice\n"
    "_sluice()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= word before=\n"
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
                                "        [[ $word != \"$cur\"* ]] || COMPREPLY+=(\"$before$(printf %q \"$word\")\")\n"
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
                         "        '%s 3 '[!-]*) words=$(command sluice completion types \"$graph\" 2>/dev/null) ;;\n",
                         command->name));
    if (strcmp(command->operands, "GRAPH SOURCE") == 0)
        PF_TRY(cli_print(
            run, err, "        '%s 3 '[!-]*) words=$(command sluice completion branches \"$graph\" 2>/dev/null) ;;\n",
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
    PF_TRY(cli_print(
        run, err,
        "        esac\n        case \"$command $COMP_CWORD $prev\" in\n"
        "        *' --branch'|*' --into'|*' --from')"
        " words=$(command sluice completion branches \"$graph\" 2>/dev/null) ;;\n"
        "        *' --columns') before=${cur%%\"${cur##*,}\"} cur=${cur##*,}\n"
        "            words=$(command sluice completion columns \"$graph\" \"${COMP_WORDS[3]}\" 2>/dev/null) ;;\n"));
    for (uint32_t i = 0; cli_commands[i]; i++)
        PF_TRY(print_bash_values(run, cli_commands[i], err));
    return cli_print(run, err, "%s", bash_tail);
}

/* ---- zsh ---- */

/* The graph stands behind the command, or behind its verb. */
static const char zsh_head[] = "#compdef sluice\n"
                               "_sluice_names()\n"
                               "{\n"
                               "    local -a names\n"
                               "    local at=2 type=\n"
                               "    [[ $words[1] == (branch|checkpoint|schema) ]] && at=3\n"
                               "    [[ $1 == columns ]] && type=${(Q)words[at+1]} && compset -P '*,'\n"
                               "    names=(\"${(@f)$(command sluice completion $1 ${~${(Q)words[at]}} $type"
                               " 2>/dev/null)}\")\n"
                               "    compadd -a names\n"
                               "}\n"
                               "_sluice()\n"
                               "{\n"
                               "    local -a commands\n"
                               "    commands=(\n";
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
        const char *names = names_of_option(option);
        PF_TRY(names ? cli_print(run, err, ": _sluice_names %s", names) : cli_print(run, err, ":_files"));
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
    if (names_type(command))
        return cli_print(run, err,
                         " \\\n            '1:graph:_files' '2:type: _sluice_names types' '*:operand: ' ;;\n");
    if (strcmp(command->operands, "GRAPH SOURCE") == 0)
        return cli_print(run, err, " \\\n            '1:graph:_files' '2:branch: _sluice_names branches' ;;\n");
    return cli_print(run, err, " \\\n            '*:operand:_files' ;;\n");
}

static sluice_status print_zsh(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "%s", zsh_head));
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

static const char fish_head[] =
    "# fish completion for sluice\n"
    "function __sluice_names\n"
    "    set -l words (commandline -opc)\n"
    "    set -l graph $words[3]\n"
    "    contains -- \"$words[2]\" branch checkpoint schema; and set graph $words[4]\n"
    "    set graph (string replace -r '^~' $HOME -- $graph)\n"
    "    set -l type; test $argv[1] = columns; and set type $words[4]\n"
    "    set -l names (command sluice completion $argv[1] $graph $type 2>/dev/null)\n"
    "    if test $argv[1] = columns\n"
    "        set -l before (commandline -ct | string replace -rf '^(--columns=)?(.*,)?.*$' '$2')\n"
    "        set names $before$names\n"
    "    end\n"
    "    printf '%s\\n' $names\n"
    "end\n";

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
    const char *names = names_of_option(option);
    PF_TRY(cli_print(run, err, "complete -c sluice -n '__fish_seen_subcommand_from %s'", command->name));
    if (option->letter)
        PF_TRY(cli_print(run, err, " -s %c", option->letter));
    if (option->name)
        PF_TRY(cli_print(run, err, " -l %s", option->name));
    if (option->kind == CLI_CHOICE) {
        PF_TRY(cli_print(run, err, " -x -a '"));
        PF_TRY(print_choices(run, option->value, " ", err));
        PF_TRY(cli_print(run, err, "'"));
    } else if (names) {
        PF_TRY(cli_print(run, err, " -x -a '(__sluice_names %s)'", names));
    } else if (option->kind != CLI_FLAG) {
        PF_TRY(cli_print(run, err, " -r"));
    }
    PF_TRY(cli_print(run, err, " -d '"));
    PF_TRY(print_quoted(run, FISH, option->help, "\\", err));
    return cli_print(run, err, "'\n");
}

static sluice_status print_fish(cli_run *run, sluice_error *err)
{
    PF_TRY(cli_print(run, err, "%s", fish_head));
    for (uint32_t i = 0; cli_commands[i]; i++) {
        const cli_command *command = cli_commands[i];
        PF_TRY(cli_print(run, err, "complete -c sluice -n __fish_use_subcommand -f -a %s -d '", command->name));
        PF_TRY(print_quoted(run, FISH, command->summary, "\\", err));
        PF_TRY(cli_print(run, err, "'\n"));
        if (has_verbs(command) || names_command(command))
            PF_TRY(print_fish_words(run, command, err));
        const char *names = names_type(command)                              ? "types"
                            : strcmp(command->operands, "GRAPH SOURCE") == 0 ? "branches"
                                                                             : NULL;
        if (names)
            PF_TRY(cli_print(
                run, err,
                "complete -c sluice -n '__fish_seen_subcommand_from %s; and test (count (commandline -opc)) -eq 3'"
                " -f -a '(__sluice_names %s)'\n",
                command->name, names));
        for (uint32_t j = 0; j < option_count(command); j++)
            PF_TRY(print_fish_option(run, command, option_of(command, j), err));
    }
    return SLUICE_OK;
}

/* ---- names ---- */

static sluice_status print_branch_name(void *context, const char *name, uint64_t incarnation, sluice_error *err)
{
    (void)incarnation;
    return name ? cli_print(context, err, "%s\n", name) : SLUICE_OK;
}

static sluice_status print_columns(cli_run *run, const st_type_def *type, sluice_error *err)
{
    if (type->edge)
        PF_TRY(cli_print(run, err, "from\nto\n"));
    for (uint32_t i = 0; i < type->property_count; i++)
        PF_TRY(cli_print(run, err, "%s\n", type->properties[i].name));
    return cli_print(run, err, "_row_id\n");
}

/* One a line, as they are: the graph is only read, and by its files. */
static sluice_status print_names(cli_run *run, const char *what, sluice_error *err)
{
    st_graph *graph = NULL;
    st_snapshot *snapshot = NULL;
    const st_type_def *type = NULL;
    sluice_status status;
    PF_GOTO(status, done, st_graph_open(run->arguments.operands[1], PF_READ, &graph, err));
    if (strcmp(what, "branches") == 0) {
        status = st_ref_list(graph, print_branch_name, run, err);
        goto done;
    }
    PF_GOTO(status, done, st_snapshot_open(graph, NULL, NULL, &snapshot, err));
    const st_schema *schema = st_snapshot_view(snapshot)->schema;
    if (strcmp(what, "columns") == 0) {
        PF_GOTO(status, done, st_snapshot_type(snapshot, run->arguments.operands[2], &type, err));
        status = print_columns(run, type, err);
    }
    for (uint32_t i = 0; strcmp(what, "types") == 0 && i < schema->type_count && status == SLUICE_OK; i++)
        status = cli_print(run, err, "%s\n", schema->types[i].name);
done:
    st_snapshot_close(snapshot);
    st_graph_close(graph);
    return status;
}

static sluice_status run_completion(cli_run *run, sluice_error *err)
{
    const char *name = run->arguments.operands[0];
    uint32_t operands = run->arguments.operand_count;
    if (strcmp(name, "columns") == 0 ? operands == 3
                                     : (strcmp(name, "types") == 0 || strcmp(name, "branches") == 0) && operands >= 2)
        return print_names(run, name, err);
    if (strcmp(name, "bash") == 0)
        return print_bash(run, err);
    if (strcmp(name, "zsh") == 0)
        return print_zsh(run, err);
    if (strcmp(name, "fish") == 0)
        return print_fish(run, err);
    pf_fail_private(err, SLUICE_USAGE, "the shell is not known", "no completion is made for \"%s\"", name);
    pf_hint(err, "usage: sluice completion bash|zsh|fish, sluice completion types|branches GRAPH, sluice completion "
                 "columns GRAPH TYPE");
    return SLUICE_USAGE;
}

const cli_command cli_completion = {.name = "completion",
                                    .operands = "bash|zsh|fish|types|branches|columns [GRAPH [TYPE]]",
                                    .summary = "Print what a shell needs to complete command lines.",
                                    .least = 1,
                                    .most = 3,
                                    .effect = CLI_SAYS,
                                    .run = run_completion};
