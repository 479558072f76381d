/* Man pages, and the pages of docs/cli. */
#include "help.h"

#include "args.h"
#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

/* docs/cli as Markdown. */

/* In a table cell, '|' would end it. */
static void cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_option_rows(FILE *out, const char *heading, const cli_option *option)
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
static void put_examples(FILE *out, const char *text)
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

static void put_all_examples(FILE *out, const cli_verb *verb)
{
    if (!cli_has_examples(verb))
        return;
    fputs("\n## Examples\n\n```sh norun\n", out);
    put_examples(out, verb->examples);
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (is_row_of(cli_format_verbs[i], verb))
            put_examples(out, cli_format_verbs[i]->examples);
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
    put_option_rows(out, "Options", cli_verb_options(verb));
    for (size_t i = 0; cli_format_verbs[i]; i++) {
        char heading[160];
        snprintf(heading, sizeof heading, "Options for %s files", cli_format_verbs[i]->format);
        if (is_row_of(cli_format_verbs[i], verb))
            put_option_rows(out, heading, cli_format_verbs[i]->options);
    }
    put_option_rows(out, "Options of every verb", cli_global_options);
    put_all_examples(out, verb);
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

/* Man pages. */

/* Text as roff: the hyphen is a minus, characters beyond ASCII are named, no line looks like a request. */
static void roff_len(FILE *out, const char *text, size_t len)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + len;
    bool line_start = true;
    while (at < end) {
        uint32_t c;
        size_t bytes = coffer__utf8_decode(&c, at, end);
        at += bytes > 0 ? bytes : 1;
        if (line_start && (c == '.' || c == '\''))
            fputs("\\&", out);
        line_start = c == '\n';
        if (c == '\\')
            fputs("\\e", out);
        else if (c == '-')
            fputs("\\-", out);
        else if (c == '\'')
            fputs("\\(aq", out);
        else if (c < 0x80)
            fputc((int)c, out);
        else
            fprintf(out, "\\[u%04X]", (unsigned)c);
    }
}

static void roff(FILE *out, const char *text)
{
    roff_len(out, text, strlen(text));
}

static void title(FILE *out, const char *name, const char *summary)
{
    char upper[64];
    size_t len = 0;
    for (; name[len] && len < sizeof upper - 1; len++)
        upper[len] = (char)toupper((unsigned char)name[len]);
    upper[len] = '\0';
    fprintf(out, ".TH \"%s\" \"1\" \"\" \"coffer %s\" \"User Commands\"\n.SH NAME\n", upper,
            coffer_version());
    roff(out, name);
    fputs(" \\- ", out);
    roff(out, summary);
    fputc('\n', out);
}

static void paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = text + strcspn(text, "\n");
        if (end > text) {
            fputs(".PP\n", out);
            roff_len(out, text, (size_t)(end - text));
            fputc('\n', out);
        }
        text = *end ? end + 1 : end;
    }
}

static void man_options(FILE *out, const cli_option *option)
{
    for (; option->name; option++) {
        cli_option_form form;
        cli_format_option(form, option);
        fputs(".TP\n.B ", out);
        roff(out, form);
        fputc('\n', out);
        cli_option_text text;
        cli_describe_option(text, option);
        roff(out, text);
        fputc('\n', out);
    }
}

/* Examples are lines of a shell, as they are. */
static void man_examples(FILE *out, const char *text)
{
    fputs(".PP\n.nf\n", out);
    roff(out, text);
    fputs(".fi\n", out);
}

static void all_options(FILE *out, const cli_verb *verb)
{
    fputs(".SH OPTIONS\n", out);
    if (cli_verb_options(verb))
        man_options(out, cli_verb_options(verb));
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (is_row_of(cli_format_verbs[i], verb) && cli_format_verbs[i]->options) {
            fprintf(out, ".SS For %s files\n", cli_format_verbs[i]->format);
            man_options(out, cli_format_verbs[i]->options);
        }
    fputs(".SS Of every verb\n", out);
    man_options(out, cli_global_options);
}

static void man_all_examples(FILE *out, const cli_verb *verb)
{
    if (!cli_has_examples(verb))
        return;
    fputs(".SH EXAMPLES\n", out);
    if (verb->examples)
        man_examples(out, verb->examples);
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (is_row_of(cli_format_verbs[i], verb) && cli_format_verbs[i]->examples)
            man_examples(out, cli_format_verbs[i]->examples);
}

static void exit_status(FILE *out)
{
    fputs(".SH EXIT STATUS\n", out);
    roff(out, cli_exit_status);
    fputs(".\n", out);
}

void cli_man_verb(FILE *out, const cli_verb *verb)
{
    char name[64];
    snprintf(name, sizeof name, "coffer-%s", verb->name);
    title(out, name, verb->summary);
    fputs(".SH SYNOPSIS\n.B coffer ", out);
    roff(out, verb->name);
    fputs("\n[options] ", out);
    roff(out, verb->usage);
    fputs("\n.SH DESCRIPTION\n", out);
    paragraphs(out, verb->description);
    all_options(out, verb);
    man_all_examples(out, verb);
    exit_status(out);
    fputs(".SH SEE ALSO\n.BR coffer (1)\n", out);
}

void cli_man_overview(FILE *out)
{
    title(out, "coffer", "inspect, verify, repair, compare and convert machine-learning files");
    fputs(".SH SYNOPSIS\n.B coffer\nVERB [options] FILE ...\n.SH DESCRIPTION\n", out);
    paragraphs(out, cli_purpose);
    fputs(".SH VERBS\n", out);
    const cli_verb *previous = NULL;
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->hidden)
            continue;
        if (!previous || previous->group != cli_verbs[i]->group)
            fprintf(out, ".SS %s\n", cli_group_titles[cli_verbs[i]->group]);
        previous = cli_verbs[i];
        fputs(".TP\n.B ", out);
        roff(out, cli_verbs[i]->name);
        fputc('\n', out);
        roff(out, cli_verbs[i]->summary);
        fputc('\n', out);
    }
    fputs(".SH OPTIONS OF EVERY VERB\n", out);
    man_options(out, cli_global_options);
    fputs(".SH EXAMPLES\n", out);
    man_examples(out, cli_overview_examples);
    exit_status(out);
    fputs(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nwhen set and not empty, no color by default\n"
          ".TP\n.B COLUMNS\nwidth of the output on a terminal\n"
          ".TP\n.B COFFER_CPU\ngeneric, avx2, avx512 or neon: the most the program may use of the processor\n"
          ".SH SEE ALSO\n",
          out);
    bool first = true;
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->hidden)
            continue;
        fprintf(out, "%s.BR coffer\\-%s (1)", first ? "" : " ,\n", cli_verbs[i]->name);
        first = false;
    }
    fputc('\n', out);
}
