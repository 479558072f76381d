/* Completion for bash. */
#include "generate.h"

#include <string.h>

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
