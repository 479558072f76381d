#include "help.h"

#include "args.h"
#include "base/utf8.h"
#include "term.h"
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

enum { FORM_COLUMN = 24, WIDEST_HELP = 100 };

const char cli_purpose[] =
    "Inspects, verifies, repairs, compares and converts model weights (.mcf, safetensors, GGUF), training "
    "sets "
    "(.mldf), memory traces (.mlyze, heaptrack), activation scans (.mscan) and matrices (.pycauset, .npy). A "
    "file is recognized by its content, never by its name.";
const char cli_overview_examples[] = "  coffer info model.safetensors           # what a file contains\n"
                                     "  coffer check --full *.mcf               # verify every byte\n"
                                     "  coffer pack photos/ train.mldf          # one file out of a folder\n"
                                     "  coffer peak run.mlyze                   # where the memory went\n";
const char cli_exit_status[] =
    "0 success, 1 findings or differences, 2 wrong usage, 3 a file could not be read or written";

/* In a narrower place the comment of an example gets a line of its own. */
enum { EXAMPLES_WIDTH = 80 };

static size_t help_width(FILE *out)
{
    unsigned width = term_is_terminal(out) || getenv("COLUMNS") ? term_width(out) : 80;
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
        const char *end = text + strcspn(text, "\n");
        print_wrapped(out, text, (size_t)(end - text), 0, 0);
        text = *end ? end + 1 : end;
    }
}

static void print_heading(FILE *out, const char *text)
{
    fprintf(out, "\n%s", term_on(out, TERM_BOLD));
    print_wrapped(out, text, strlen(text), 4, 0);
    fputs(term_off(out), out);
}

void cli_format_option(cli_option_form out, const cli_option *option)
{
    int len = 0;
    if (option->letter)
        len = snprintf(out, sizeof(cli_option_form), "-%c, ", option->letter);
    snprintf(out + len, sizeof(cli_option_form) - (size_t)len, "--%s%s%s", option->name,
             option->argument ? " " : "", option->argument ? option->argument : "");
}

void cli_describe_option(cli_option_text out, const cli_option *option)
{
    FILE *text = fmemopen(out, sizeof(cli_option_text), "w");
    *out = '\0';
    if (!text)
        return;
    fputs(option->help, text);
    const char *choice = option->choices, *initial = option->initial;
    bool is_choice = false;
    if (choice)
        fputs(": one of ", text);
    while (choice && *choice) {
        size_t len = strcspn(choice, "|");
        fwrite(choice, 1, len, text);
        if (initial && strlen(initial) == len && memcmp(initial, choice, len) == 0) {
            fputs(" (default)", text);
            is_choice = true;
        }
        choice += len;
        if (*choice) {
            fputs(", ", text);
            choice++;
        }
    }
    if (!is_choice && initial)
        fprintf(text, " (default: %s)", initial);
    fclose(text);
}

static void print_option(FILE *out, const cli_option *option)
{
    cli_option_form form;
    cli_option_text text;
    cli_describe_option(text, option);
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
        const char *end = text + strcspn(text, "\n");
        const char *comment = memchr(text, '#', (size_t)(end - text));
        const char *command_end = comment ? comment : end;
        if (comment && coffer__utf8_width(text, (size_t)(end - text)) > help_width(out) &&
            help_width(out) < EXAMPLES_WIDTH) {
            fprintf(out, "  %s", term_on(out, TERM_DIM));
            print_wrapped(out, comment, (size_t)(end - comment), 4, 2);
            fputs(term_off(out), out);
            comment = NULL;
            while (command_end > text && command_end[-1] == ' ')
                command_end--;
        }
        fwrite(text, 1, (size_t)(command_end - text), out);
        if (comment)
            fprintf(out, "%s%.*s%s", term_on(out, TERM_DIM), (int)(end - comment), comment, term_off(out));
        fputc('\n', out);
        text = *end ? end + 1 : end;
    }
}

static bool is_shown(const cli_format_verb *row, const cli_verb *verb, const char *kind)
{
    return strcmp(row->verb, verb->name) == 0 && (!kind || cli_row_is_for(row, kind));
}

static void print_format_options(FILE *out, const cli_verb *verb, const char *kind)
{
    for (size_t i = 0; cli_format_verbs[i]; i++) {
        const cli_format_verb *row = cli_format_verbs[i];
        char heading[160];
        if (!is_shown(row, verb, kind))
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

static void print_all_examples(FILE *out, const cli_verb *verb, const char *kind)
{
    if (!cli_has_examples(verb))
        return;
    print_heading(out, "Examples");
    if (verb->examples)
        print_examples(out, verb->examples);
    for (size_t i = 0; cli_format_verbs[i]; i++)
        if (is_shown(cli_format_verbs[i], verb, kind) && cli_format_verbs[i]->examples)
            print_examples(out, cli_format_verbs[i]->examples);
}

void cli_help_verb(FILE *out, const cli_verb *verb, const char *kind)
{
    fprintf(out, "%scoffer %s%s: ", term_on(out, TERM_BOLD), verb->name, term_off(out));
    print_wrapped(out, verb->summary, strlen(verb->summary), 2, strlen("coffer : ") + strlen(verb->name));
    fputc('\n', out);
    fprintf(out, "usage: coffer %s [options]%s%s\n\n", verb->name, *verb->usage ? " " : "", verb->usage);
    print_paragraphs(out, verb->description);
    print_options(out, "Options", cli_verb_options(verb));
    print_format_options(out, verb, kind);
    print_options(out, "Options of every verb", cli_global_options);
    print_all_examples(out, verb, kind);
}

void cli_help_overview(FILE *out)
{
    fprintf(out, "%scoffer%s %s\n", term_on(out, TERM_BOLD), term_off(out), coffer_version());
    print_paragraphs(out, cli_purpose);
    fputs("\nusage: coffer VERB [options] FILE…\n", out);
    const cli_verb *previous = NULL;
    for (size_t i = 0; cli_verbs[i]; i++) {
        const cli_verb *verb = cli_verbs[i];
        if (verb->hidden)
            continue;
        if (!previous || verb->group != previous->group)
            print_heading(out, cli_group_titles[verb->group]);
        fprintf(out, "  %s%-11s%s  ", term_on(out, TERM_GREEN), verb->name, term_off(out));
        print_wrapped(out, verb->summary, strlen(verb->summary), 15, 15);
        previous = verb;
    }
    print_heading(out, "Examples");
    print_examples(out, cli_overview_examples);
    fputs("\n'coffer help VERB' explains a verb. Exit status: ", out);
    print_wrapped(out, cli_exit_status, strlen(cli_exit_status), 0, 49);
}

static const char *nearest_verb(const char *name)
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
    return cli_is_near(name, best) ? nearest : NULL;
}

int cli_unknown_verb(const char *name)
{
    const char *meant = cli_find_synonym(name), *near = meant ? NULL : nearest_verb(name);
    fputs("coffer: unknown verb '", stderr);
    term_print_text(stderr, name, strlen(name), 60);
    fputc('\'', stderr);
    if (name[0] == '-')
        fputs("; options follow the verb", stderr);
    else if (meant)
        fprintf(stderr, "; use 'coffer %s'", meant);
    else if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, "\ntry 'coffer help%s%s'\n", meant ? " " : "", meant ? meant : "");
    return CLI_USAGE;
}
