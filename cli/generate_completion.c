/* Completions for bash, zsh and fish. */
#include "args.h"
#include "help.h"

#include <string.h>

/* Completion for bash. */

static void word(FILE *out, const cli_option *option, const void *context)
{
    (void)context;
    if (option->letter)
        fprintf(out, " -%c", option->letter);
    fprintf(out, " --%s", option->name);
}

/* Completes the value of an option. */
static void value_case(FILE *out, const cli_option *option, const void *context)
{
    const cli_verb *verb = context;
    if (!option->argument)
        return;
    fprintf(out, "        '%s --%s'", verb->name, option->name);
    if (option->letter)
        fprintf(out, " | '%s -%c'", verb->name, option->letter);
    if (option->choices) {
        fputs(") words='", out);
        for (const char *at = option->choices; *at; at++)
            fputc(*at == '|' ? ' ' : *at, out);
        fputs("' ;;\n", out);
    } else {
        fprintf(out, ") words=%s ;;\n",
                cli_takes_file(option)   ? "@files"
                : cli_takes_name(option) ? "@names"
                                         : "@nothing");
    }
}

static void list_verbs(FILE *out)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            fprintf(out, "%s%s", i > 0 ? " " : "", cli_verbs[i]->name);
}

static void operands(FILE *out, const cli_verb *verb)
{
    fprintf(out, "        '%s')\n            options='", verb->name);
    cli_each_option(out, verb, word, NULL);
    bool takes_name = strcmp(verb->name, "get") == 0;
    fprintf(out, "'\n            operands=%s\n            ;;\n",
            verb->max_operands == 0 ? "@nothing"
            : takes_name            ? "@files_or_names"
                                    : "@files");
}

void cli_complete_bash(FILE *out)
{
    fputs("# bash completion for coffer, written by 'coffer completion bash'\n"
          "_coffer() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local verb=${COMP_WORDS[1]} verbs='",
          out);
    list_verbs(out);
    fputs("' words='' options='' operands=@files\n"
          "    COMPREPLY=()\n"
          "    # bash splits --name=value at the equals sign\n"
          "    if [[ $current == '=' ]]; then\n"
          "        current=''\n"
          "    elif [[ $previous == '=' ]]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        COMPREPLY=($(compgen -W \"$verbs --help --version\" -- \"$current\"))\n"
          "        return\n"
          "    fi\n"
          "    case \"$verb $previous\" in\n",
          out);
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            cli_each_option(out, cli_verbs[i], value_case, cli_verbs[i]);
    fputs("    esac\n"
          "    case \"$verb\" in\n",
          out);
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            operands(out, cli_verbs[i]);
    fputs("    esac\n"
          "    if [[ -z $words ]]; then\n"
          "        if [[ $current == -* ]]; then\n"
          "            words=$options\n"
          "        elif [[ $verb == help ]]; then\n"
          "            words=$verbs\n"
          "        elif [[ $verb == completion ]]; then\n"
          "            words='bash zsh fish'\n"
          "        else\n"
          "            words=$operands\n"
          "        fi\n"
          "    fi\n"
          "    local word file=''\n"
          "    for word in \"${COMP_WORDS[@]:2:COMP_CWORD-2}\"; do\n"
          "        [[ -z $file && -e $word ]] && file=$word\n"
          "    done\n"
          "    [[ $words == @files_or_names ]] && { [[ $file ]] && words=@names || words=@files; }\n"
          "    case \"$words\" in\n"
          "        @nothing) ;;\n"
          "        @names)\n"
          "            # not compgen -W, which would expand what a name contains\n"
          "            while IFS= read -r word; do\n"
          "                [[ $word == \"$current\"* ]] && COMPREPLY+=(\"$(printf %q \"$word\")\")\n"
          "            done < <(coffer generate names \"$file\" 2>/dev/null)\n"
          "            ;;\n"
          "        @files)\n"
          "            compopt -o filenames 2>/dev/null\n"
          "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
          "            ;;\n"
          "        *) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
          "    esac\n"
          "}\n"
          "complete -F _coffer coffer\n",
          out);
}

/* Completion for zsh and fish. */

/* Text inside single quotes; zsh's _arguments also wants [ ] and : escaped. */
static void quoted(FILE *out, const char *text, const char *also)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr(also, *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void choices(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc(*text == '|' ? ' ' : *text, out);
}

/* ---- zsh ---- */

static void zsh_option(FILE *out, const cli_option *option, const void *context)
{
    (void)context;
    fputs("                ", out);
    if (option->letter)
        fprintf(out, "'(-%c --%s)'{-%c,--%s%s}'[", option->letter, option->name, option->letter, option->name,
                option->argument ? "=" : "");
    else
        fprintf(out, "'--%s%s[", option->name, option->argument ? "=" : "");
    quoted(out, option->help, "[]:");
    fputc(']', out);
    if (option->argument) {
        fputc(':', out);
        quoted(out, option->argument, "[]:");
        fputc(':', out);
        if (option->choices) {
            fputc('(', out);
            choices(out, option->choices);
            fputc(')', out);
        } else if (cli_takes_file(option)) {
            fputs("_files", out);
        } else if (cli_takes_name(option)) {
            fputs("_coffer_names", out);
        }
    }
    fputs("' \\\n", out);
}

static const char *operands_of(const cli_verb *verb)
{
    if (strcmp(verb->name, "get") == 0)
        return "'1:file:_files' '2:name:_coffer_names'";
    if (strcmp(verb->name, "completion") == 0)
        return "'1:shell:(bash zsh fish)'";
    return verb->max_operands > 0 ? "'*:file:_files'" : "&& true";
}

static void zsh_verb(FILE *out, const cli_verb *verb)
{
    fprintf(out, "        %s)\n            _arguments \\\n", verb->name);
    cli_each_option(out, verb, zsh_option, NULL);
    if (strcmp(verb->name, "help") == 0)
        fputs("                \"1:verb:($names)\"\n", out);
    else
        fprintf(out, "                %s\n", operands_of(verb));
    fputs("            ;;\n", out);
}

void cli_complete_zsh(FILE *out)
{
    fputs("#compdef coffer\n# zsh completion for coffer, written by 'coffer completion zsh'\n"
          "_coffer_names() {\n"
          "    local word\n"
          "    for word in ${words[2,-1]}; do\n"
          "        [[ -e $word ]] && compadd -- ${(f)\"$(coffer generate names $word 2>/dev/null)\"} && "
          "return\n"
          "    done\n"
          "}\n"
          "_coffer() {\n    local -a verbs names\n    verbs=(\n",
          out);
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->hidden)
            continue;
        fprintf(out, "        '%s:", cli_verbs[i]->name);
        quoted(out, cli_verbs[i]->summary, ":");
        fputs("'\n", out);
    }
    fputs("    )\n    names=(${verbs%%:*})\n"
          "    if ((CURRENT == 2)); then\n        _describe verb verbs\n        return\n    fi\n"
          "    local verb=$words[2]\n    shift words\n    ((CURRENT--))\n    case $verb in\n",
          out);
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!cli_verbs[i]->hidden)
            zsh_verb(out, cli_verbs[i]);
    fputs("    esac\n}\n_coffer \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_option(FILE *out, const cli_option *option, const void *context)
{
    const cli_verb *verb = context;
    fprintf(out, "complete -c coffer -n '__fish_seen_subcommand_from %s' -l %s", verb->name, option->name);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    if (option->choices) {
        fputs(" -x -a '", out);
        choices(out, option->choices);
        fputc('\'', out);
    } else if (option->argument) {
        fputs(cli_takes_file(option)   ? " -r -F"
              : cli_takes_name(option) ? " -x -a '(__coffer_names)'"
                                       : " -x",
              out);
    }
    fputs(" -d '", out);
    quoted(out, option->help, "");
    fputs("'\n", out);
}

void cli_complete_fish(FILE *out)
{
    fputs("# fish completion for coffer, written by 'coffer completion fish'\n"
          "function __coffer_names\n"
          "    for word in (commandline -opc)[3..]\n"
          "        test -e $word; and coffer generate names $word 2>/dev/null; and return\n"
          "    end\n"
          "end\n"
          "complete -c coffer -n __fish_use_subcommand -f\n"
          "complete -c coffer -n '__fish_seen_subcommand_from get' -a '(__coffer_names)'\n"
          "complete -c coffer -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n",
          out);
    for (size_t i = 0; cli_verbs[i]; i++) {
        const cli_verb *verb = cli_verbs[i];
        if (verb->hidden)
            continue;
        fprintf(out, "complete -c coffer -n __fish_use_subcommand -a %s -d '", verb->name);
        quoted(out, verb->summary, "");
        fputs("'\n", out);
        if (verb->max_operands == 0 || strcmp(verb->name, "help") == 0)
            fprintf(out, "complete -c coffer -n '__fish_seen_subcommand_from %s' -f\n", verb->name);
        cli_each_option(out, verb, fish_option, verb);
    }
}
