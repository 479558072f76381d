/* docs/cli as Markdown. */
#include "generate.h"

#include "args.h"
#include "help.h"

#include <string.h>

/* In a table cell, '|' would end it. */
static void cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void options(FILE *out, const char *heading, const cli_option *option)
{
    if (!option || !option->name)
        return;
    fprintf(out, "\n## %s\n\n| option | |\n|---|---|\n", heading);
    for (; option->name; option++) {
        cli_option_form form;
        cli_format_option(form, option);
        fputs("| `", out);
        cell(out, form);
        fputs("` | ", out);
        cli_option_text text;
        cli_describe_option(text, option);
        cell(out, text);
        fputs(" |\n", out);
    }
}

/* Examples are indented by two for the terminal; here a block does that. */
static void examples(FILE *out, const char *text)
{
    while (text && *text) {
        const char *end = text + strcspn(text, "\n");
        while (*text == ' ')
            text++;
        fprintf(out, "%.*s\n", (int)(end - text), text);
        text = *end ? end + 1 : end;
    }
}

static bool is_row_of(const cli_format_verb *row, const cli_verb *verb)
{
    return strcmp(row->verb, verb->name) == 0;
}

static void all_examples(FILE *out, const cli_verb *verb)
{
    if (!cli_has_examples(verb))
        return;
    fputs("\n## Examples\n\n```sh norun\n", out);
    examples(out, verb->examples);
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (is_row_of(cli_format_verbs[i], verb))
            examples(out, cli_format_verbs[i]->examples);
    fputs("```\n", out);
}

void cli_docs_verb(FILE *out, const cli_verb *verb)
{
    fprintf(out, "# coffer %s\n\n", verb->name);
    fprintf(out, "`coffer %s [options]%s%s`: %s\n\n", verb->name, *verb->usage ? " " : "", verb->usage,
            verb->summary);
    for (const char *at = verb->description; *at; at++) {
        fputc(*at, out);
        if (*at == '\n')
            fputc('\n', out);
    }
    fputc('\n', out);
    options(out, "Options", cli_verb_options(verb));
    for (size_t i = 0; cli_format_verbs[i]; i++) {
        char heading[64];
        snprintf(heading, sizeof heading, "Options for %s files", cli_format_verbs[i]->format);
        if (is_row_of(cli_format_verbs[i], verb))
            options(out, heading, cli_format_verbs[i]->options);
    }
    options(out, "Options of every verb", cli_global_options);
    all_examples(out, verb);
}

void cli_docs_overview(FILE *out)
{
    fprintf(out, "# The coffer command\n\n%s\n", cli_purpose);
    const cli_verb *previous = NULL;
    for (size_t i = 0; cli_verbs[i]; i++) {
        const cli_verb *verb = cli_verbs[i];
        if (verb->hidden)
            continue;
        if (!previous || verb->group != previous->group)
            fprintf(out, "\n## %s\n\n| verb | |\n|---|---|\n", cli_group_titles[verb->group]);
        fprintf(out, "| [%s](%s.md) | %s |\n", verb->name, verb->name, verb->summary);
        previous = verb;
    }
    fprintf(out, "\nExit status: %s.\n\n", cli_exit_status);
    fputs("`coffer generate docs docs/cli` writes these pages from the same tables as the help.\n", out);
}
