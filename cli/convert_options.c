#include "convert_options.h"

#include <stdlib.h>
#include <string.h>

static const cli_option own_options[] = {
    { "from", 0, "KIND", NULL, "kind of the input", "by its content, else by its name" },
    { "to", 0, "KIND", NULL, "kind of the output", "by its extension" },
    CLI_DAMAGED_OPTION,
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    { "list", 0, NULL, NULL, "list the conversions; followed by a kind such as npy: their options" },
    { "json", 0, NULL, NULL, "one JSON object: file, output, size, notes; with --list the conversions" },
    { "csv", 0, NULL, NULL, "with --list: print comma-separated values with a header line" },
};
enum { OWN_OPTIONS = sizeof own_options / sizeof own_options[0] };

/* One-letter forms are the command's own. */
static const struct {
    const char *name;
    char letter;
} letters[] = { { "param", 'p' }, { "tokens", 't' }, { "sequence", 's' } };

static const cli_old_spelling field_old[] = { { "--fields", NULL }, { 0 } };

/* An option of one name, which may mean something else in other conversions. */
typedef struct setting_group {
    const coffer_convert_option *first;
    bool same_choices, same_default;
} setting_group;

typedef struct option_tables {
    cli_option *options; /* ends with a NULL name */
    setting_group *groups;
    size_t count; /* of groups */
} option_tables;

static option_tables tables;

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void add_to_groups(const coffer_convert_option *option)
{
    for (size_t i = 0; i < tables.count; i++) {
        setting_group *group = &tables.groups[i];
        if (strcmp(group->first->name, option->name) == 0) {
            group->same_choices = group->same_choices && is_same(group->first->choices, option->choices);
            group->same_default =
                group->same_default && is_same(group->first->default_value, option->default_value);
            return;
        }
    }
    tables.groups[tables.count++] = (setting_group){ option, true, true };
}

/* The library's format at one end of a conversion. */
static const char *format_of(const coffer_conversion *conversion)
{
    const char *from = coffer_conversion_from(conversion);
    return coffer_format_by_name(from) ? from : coffer_conversion_to(conversion);
}

static const coffer_convert_option *find_option(const coffer_conversion *conversion, const char *name)
{
    for (size_t i = 0; i < coffer_conversion_option_count(conversion); i++) {
        const coffer_convert_option *option = coffer_conversion_option_at(conversion, i);
        if (strcmp(option->name, name) == 0)
            return option;
    }
    return NULL;
}

/* The index of the first conversion of a format (NULL = any) that has the option with this help. */
static size_t first_with(const char *name, const char *help, const char *format)
{
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        const coffer_convert_option *option = find_option(conversion, name);
        if (option && strcmp(option->help, help) == 0 &&
            (!format || strcmp(format_of(conversion), format) == 0))
            return i;
    }
    return SIZE_MAX;
}

/* "mscan, pycauset: help of both; mcf: another help". */
static void print_help(FILE *out, const char *name)
{
    const char *separator = "";
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_convert_option *option = find_option(coffer_conversion_at(i), name);
        if (!option || first_with(name, option->help, NULL) != i)
            continue;
        fputs(separator, out);
        separator = "";
        for (size_t j = i; j < coffer_conversion_count(); j++) {
            const char *format = format_of(coffer_conversion_at(j));
            if (first_with(name, option->help, format) != j)
                continue;
            fprintf(out, "%s%s", separator, format);
            separator = ", ";
        }
        fputs(": ", out);
        fputs(option->help, out);
        separator = "; ";
    }
}

static char *help_of(const char *name)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    print_help(out, name);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static char letter_of(const char *name)
{
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (strcmp(letters[i].name, name) == 0)
            return letters[i].letter;
    return 0;
}

static void build(void)
{
    size_t most = 0;
    for (size_t i = 0; i < coffer_conversion_count(); i++)
        most += coffer_conversion_option_count(coffer_conversion_at(i));
    tables.groups = calloc(most + 1, sizeof *tables.groups);
    tables.options = calloc(OWN_OPTIONS + most + 1, sizeof *tables.options);
    if (!tables.groups || !tables.options) {
        fputs("coffer: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    memcpy(tables.options, own_options, sizeof own_options);
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        for (size_t j = 0; j < coffer_conversion_option_count(conversion); j++)
            add_to_groups(coffer_conversion_option_at(conversion, j));
    }
    for (size_t i = 0; i < tables.count; i++) {
        const setting_group *group = &tables.groups[i];
        const char *name = group->first->name, *help = help_of(name);
        tables.options[OWN_OPTIONS + i] = (cli_option){
            .name = name,
            .letter = letter_of(name),
            .argument = group->first->argument,
            .choices = group->same_choices ? group->first->choices : NULL,
            .help = help ? help : group->first->help,
            .initial = group->same_default ? group->first->default_value : NULL,
            .old = strcmp(name, "field") == 0 ? field_old : NULL,
        };
    }
}

const cli_option *cli_convert_options(void)
{
    if (!tables.options)
        build();
    return tables.options;
}

bool cli_is_convert_setting(const cli_option *option)
{
    return option >= tables.options + OWN_OPTIONS && option < tables.options + OWN_OPTIONS + tables.count;
}
