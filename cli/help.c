#include "help.h"

#include "args.h"
#include "base/utf8.h"
#include "term.h"
#include "verbs.h"

#include <string.h>

enum { FORM_COLUMN = 24, WIDEST_HELP = 100 };

const char cli_purpose[] =
    "Looks into, checks, repairs, compares and converts the files that machine learning leaves "
    "behind. A file's format is told by its content, never by its name.";
const char cli_overview_examples[] =
    "  coffer info scan.mscan                  # what is in it\n"
    "  coffer check --full *.mscan             # is it whole, down to the last byte\n"
    "  coffer stats scan.mscan --by param      # which parameters did most\n";
const char cli_exit_status[] =
    "0 fine, 1 findings or differences, 2 wrong usage, 3 a file could not be read or written";

static size_t help_width(FILE *out)
{
    unsigned width = term_is_terminal(out) ? term_width(out) : 80;
    return width < 40 ? 40 : width > WIDEST_HELP ? WIDEST_HELP : width;
}

/* One paragraph, broken at spaces; every line after the first is indented. */
static void print_wrapped(FILE *out, const char *text, size_t len, size_t indent, size_t column)
{
    const char *end = text + len;
    size_t width = help_width(out);
    bool first = true;
    while (text < end) {
        const char *word_end = memchr(text, ' ', (size_t)(end - text));
        size_t word = (size_t)((word_end ? word_end : end) - text);
        size_t columns = coffer__utf8_width(text, word);
        if (!first && column + 1 + columns > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, word, out);
        column += columns;
        first = false;
        text += word + (word_end ? 1 : 0);
    }
    fputc('\n', out);
}

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strchrnul(text, '\n');
        print_wrapped(out, text, (size_t)(end - text), 0, 0);
        text = *end ? end + 1 : end;
    }
}

static void print_heading(FILE *out, const char *text)
{
    fprintf(out, "\n%s%s%s\n", term_on(out, TERM_BOLD), text, term_off(out));
}

void cli_format_option(cli_option_form out, const cli_option *option)
{
    int len = 0;
    if (option->letter)
        len = snprintf(out, sizeof(cli_option_form), "-%c, ", option->letter);
    snprintf(out + len, sizeof(cli_option_form) - (size_t)len, "--%s%s%s", option->name,
             option->argument ? " " : "", option->argument ? option->argument : "");
}

static void print_option(FILE *out, const cli_option *option)
{
    cli_option_form form;
    char text[512];
    FILE *help = fmemopen(text, sizeof text, "w");
    if (!help)
        return;
    fputs(option->help, help);
    if (option->choices) {
        fputs(" (", help);
        cli_print_choices(help, option->choices);
        fputc(')', help);
    }
    fclose(help);
    cli_format_option(form, option);
    fprintf(out, "  %s%s", option->letter ? "" : "    ", form);
    size_t column = 2 + (option->letter ? 0u : 4u) + coffer__utf8_width(form, strlen(form));
    if (column + 2 > FORM_COLUMN) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", (int)(FORM_COLUMN - column), "");
    print_wrapped(out, text, strlen(text), FORM_COLUMN, FORM_COLUMN);
}

static void print_options(FILE *out, const char *heading, const cli_option *options)
{
    if (!options || !options->name)
        return;
    print_heading(out, heading);
    for (; options->name; options++)
        print_option(out, options);
}

/* Examples, with what follows '#' dimmed. */
static void print_examples(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strchrnul(text, '\n');
        const char *comment = memchr(text, '#', (size_t)(end - text));
        const char *command_end = comment ? comment : end;
        fwrite(text, 1, (size_t)(command_end - text), out);
        if (comment)
            fprintf(out, "%s%.*s%s", term_on(out, TERM_DIM), (int)(end - comment), comment, term_off(out));
        fputc('\n', out);
        text = *end ? end + 1 : end;
    }
}

static void print_format_options(FILE *out, const cli_verb *verb)
{
    for (size_t i = 0; cli_format_verbs[i]; i++) {
        const cli_format_verb *row = cli_format_verbs[i];
        char heading[64];
        if (strcmp(row->verb, verb->name) != 0)
            continue;
        snprintf(heading, sizeof heading, "Options for %s files", row->format);
        print_options(out, heading, row->options);
    }
}

bool cli_has_examples(const cli_verb *verb)
{
    bool any = verb->examples != NULL;
    for (size_t i = 0; cli_format_verbs[i]; i++)
        any |= strcmp(cli_format_verbs[i]->verb, verb->name) == 0 && cli_format_verbs[i]->examples;
    return any;
}

static void print_all_examples(FILE *out, const cli_verb *verb)
{
    if (!cli_has_examples(verb))
        return;
    print_heading(out, "Examples");
    if (verb->examples)
        print_examples(out, verb->examples);
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (strcmp(cli_format_verbs[i]->verb, verb->name) == 0 && cli_format_verbs[i]->examples)
            print_examples(out, cli_format_verbs[i]->examples);
}

void cli_help_verb(FILE *out, const cli_verb *verb)
{
    fprintf(out, "%scoffer %s%s: %s\n\n", term_on(out, TERM_BOLD), verb->name, term_off(out), verb->summary);
    fprintf(out, "usage: coffer %s [options]%s%s\n\n", verb->name, *verb->usage ? " " : "", verb->usage);
    print_paragraphs(out, verb->description);
    print_options(out, "Options", cli_verb_options(verb));
    print_format_options(out, verb);
    print_options(out, "Options of every verb", cli_global_options);
    print_all_examples(out, verb);
}

void cli_help_overview(FILE *out)
{
    fprintf(out, "%scoffer%s %s\n", term_on(out, TERM_BOLD), term_off(out), coffer_version());
    print_paragraphs(out, cli_purpose);
    fputs("\nusage: coffer VERB [options] FILE…\n", out);
    print_heading(out, "Verbs");
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->hidden)
            continue;
        fprintf(out, "  %s%-11s%s  ", term_on(out, TERM_GREEN), cli_verbs[i]->name, term_off(out));
        print_wrapped(out, cli_verbs[i]->summary, strlen(cli_verbs[i]->summary), 15, 15);
    }
    print_heading(out, "Examples");
    print_examples(out, cli_overview_examples);
    fputs("\n'coffer help VERB' tells more. Exit status: ", out);
    print_wrapped(out, cli_exit_status, strlen(cli_exit_status), 0, 45);
}

int cli_unknown_verb(const char *name)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; cli_verbs[i]; i++) {
        size_t distance = cli_distance(name, cli_verbs[i]->name);
        if (distance < best && !cli_verbs[i]->hidden) {
            best = distance;
            nearest = cli_verbs[i]->name;
        }
    }
    fputs("coffer: there is no verb '", stderr);
    term_print_text(stderr, name, strlen(name), 60);
    if (name[0] == '-')
        fputs("'; options stand after the verb", stderr);
    else if (cli_is_near(name, best))
        fprintf(stderr, "'; did you mean '%s'?", nearest);
    else
        fputc('\'', stderr);
    fputs("\ntry 'coffer help'\n", stderr);
    return CLI_USAGE;
}
