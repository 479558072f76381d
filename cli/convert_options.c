#include "verbs.h"

#include "args.h"
#include "help.h"
#include "term.h"

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

/* An option of one conversion. */
typedef struct setting_use {
    const coffer_convert_option *option;
    const char *format; /* of the conversion */
} setting_use;

typedef struct setting_uses {
    setting_use *items;
    size_t count;
} setting_uses;

/* The index of the first use of a format (NULL = any) that has this help. */
static size_t first_with(const setting_uses *uses, const char *help, const char *format)
{
    for (size_t i = 0; i < uses->count; i++) {
        const setting_use *use = &uses->items[i];
        if (is_same(use->option->help, help) && (!format || strcmp(use->format, format) == 0))
            return i;
    }
    return SIZE_MAX;
}

/* "mscan, pycauset: help of both; mcf: another help". uses : of one option. */
static void print_help(FILE *out, const setting_uses *uses)
{
    const char *separator = "";
    for (size_t i = 0; i < uses->count; i++) {
        const char *help = uses->items[i].option->help;
        if (first_with(uses, help, NULL) != i)
            continue;
        fputs(separator, out);
        separator = "";
        for (size_t j = i; j < uses->count; j++) {
            const char *format = uses->items[j].format;
            if (first_with(uses, help, format) != j)
                continue;
            fprintf(out, "%s%s", separator, format);
            separator = ", ";
        }
        fputs(": ", out);
        fputs(help, out);
        separator = "; ";
    }
}

/* all : of every option. */
static char *help_of(const char *name, const setting_uses *all)
{
    char *text = NULL;
    size_t len;
    setting_uses uses = { calloc(all->count + 1, sizeof *uses.items), 0 };
    FILE *out = uses.items ? open_memstream(&text, &len) : NULL;
    for (size_t i = 0; out && i < all->count; i++) {
        if (strcmp(all->items[i].option->name, name) == 0)
            uses.items[uses.count++] = all->items[i];
    }
    if (out)
        print_help(out, &uses);
    free(uses.items);
    if (out && fclose(out) == 0)
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
    setting_uses all = { calloc(most + 1, sizeof *all.items), 0 };
    tables.groups = calloc(most + 1, sizeof *tables.groups);
    tables.options = calloc(OWN_OPTIONS + most + 1, sizeof *tables.options);
    if (!all.items || !tables.groups || !tables.options) {
        fputs("coffer: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    memcpy(tables.options, own_options, sizeof own_options);
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        const char *format = format_of(conversion);
        const coffer_convert_option *option;
        for (size_t j = 0; (option = coffer_conversion_option_at(conversion, j)); j++) {
            add_to_groups(option);
            all.items[all.count++] = (setting_use){ option, format };
        }
    }
    for (size_t i = 0; i < tables.count; i++) {
        const setting_group *group = &tables.groups[i];
        const char *name = group->first->name, *help = help_of(name, &all);
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
    free(all.items);
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

/* convert --list: the conversions of the library, for people, as JSON and as CSV. */

enum { OPTION_COLUMN = 26, LIST_MAX = 256 };

static bool is_about(const coffer_conversion *conversion, const char *kind)
{
    return !kind || strcmp(coffer_conversion_from(conversion), kind) == 0 ||
           strcmp(coffer_conversion_to(conversion), kind) == 0;
}

/* ---- Nodes ---- */

static void add_options(coffer_node *list, const coffer_conversion *conversion)
{
    for (size_t i = 0; i < coffer_conversion_option_count(conversion); i++) {
        const coffer_convert_option *option = coffer_conversion_option_at(conversion, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "name", option->name);
        coffer_node_add_text(map, "argument", option->argument);
        coffer_node_add_text(map, "help", option->help);
        coffer_node_add_text(map, "choices", option->choices);
        coffer_node_add_text(map, "default", option->default_value);
    }
}

static void add_option_names(coffer_node *map, const coffer_conversion *conversion)
{
    char text[LIST_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < coffer_conversion_option_count(conversion) && len < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s--%s", i ? " " : "",
                                coffer_conversion_option_at(conversion, i)->name);
    coffer_node_add_text(map, "options", text);
}

static int print_nodes(const char *kind, bool csv)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_node_new(&root, &err);
    coffer_node *list = status ? NULL : coffer_node_add_list(root, "conversions");
    for (size_t i = 0; i < coffer_conversion_count() && !status; i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (!is_about(conversion, kind))
            continue;
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "from", coffer_conversion_from(conversion));
        coffer_node_add_text(map, "to", coffer_conversion_to(conversion));
        if (csv)
            add_option_names(map, conversion);
        else
            add_options(coffer_node_add_list(map, "options"), conversion);
    }
    if (!status)
        status = coffer_node_status(root, &err);
    int result;
    if (status)
        result = cli_fail("convert", &err, "");
    else
        result = csv ? cli_print_csv(stdout, list) : cli_print_json(stdout, root);
    coffer_node_free(root);
    return result;
}

/* ---- The grid ---- */

/* Whether no conversion before the one at `index` has the kind at either end. */
static bool is_first(const char *kind, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_about(coffer_conversion_at(i), kind))
            return false;
    return true;
}

static void add_extensions(term_table *table, const char *kind)
{
    char text[LIST_MAX] = "";
    size_t len = 0;
    const char *extension;
    for (size_t i = 0; (extension = coffer_convert_extension_at(kind, i)) && len < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "", extension);
    term_table_cell(table, text);
}

static void add_targets(term_table *table, const char *kind)
{
    char text[LIST_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < coffer_conversion_count() && len < sizeof text; i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (strcmp(coffer_conversion_from(conversion), kind) == 0)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? " " : "",
                                    coffer_conversion_to(conversion));
    }
    if (!len)
        term_table_style(table, TERM_DIM);
    term_table_cell(table, len ? text : "(output only)");
}

static void add_kind(term_table *table, const char *kind)
{
    term_table_cell(table, kind);
    add_extensions(table, kind);
    add_targets(table, kind);
}

static void print_grid(void)
{
    term_table *table = term_table_new();
    term_table_column(table, "from", TERM_LEFT);
    term_table_column(table, "extensions", TERM_LEFT);
    term_table_column(table, "to", TERM_LEFT);
    term_table_uncut(table);
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const char *from = coffer_conversion_from(coffer_conversion_at(i));
        const char *to = coffer_conversion_to(coffer_conversion_at(i));
        if (is_first(from, i))
            add_kind(table, from);
        if (strcmp(from, to) != 0 && is_first(to, i))
            add_kind(table, to);
    }
    term_table_print(table, stdout);
    printf("%s'coffer convert --list KIND' shows the options of its conversions%s\n",
           term_on(stdout, TERM_DIM), term_off(stdout));
}

/* ---- Details ---- */

static void print_options(const coffer_conversion *conversion)
{
    for (size_t i = 0; i < coffer_conversion_option_count(conversion); i++) {
        const coffer_convert_option *given = coffer_conversion_option_at(conversion, i);
        const cli_option option = { .name = given->name,
                                    .argument = given->argument,
                                    .choices = given->choices,
                                    .help = given->help,
                                    .initial = given->default_value };
        cli_option_form form;
        cli_option_text text;
        cli_format_option(form, &option);
        cli_describe_option(text, &option);
        printf("  %-*s  %s\n", OPTION_COLUMN - 4, form, text);
    }
}

/* Conversions with the same options share a table in the library. */
static bool has_same_options(const coffer_conversion *a, const coffer_conversion *b)
{
    return coffer_conversion_option_at(a, 0) == coffer_conversion_option_at(b, 0);
}

static bool is_printed(size_t index, const char *kind)
{
    const coffer_conversion *conversion = coffer_conversion_at(index);
    for (size_t i = 0; i < index; i++)
        if (is_about(coffer_conversion_at(i), kind) && has_same_options(coffer_conversion_at(i), conversion))
            return true;
    return false;
}

static void print_details(const char *kind)
{
    bool any = false;
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (!is_about(conversion, kind) || is_printed(i, kind))
            continue;
        if (any)
            putchar('\n');
        any = true;
        for (size_t j = i; j < coffer_conversion_count(); j++) {
            const coffer_conversion *other = coffer_conversion_at(j);
            if (is_about(other, kind) && has_same_options(other, conversion))
                printf("%s%s → %s%s\n", term_on(stdout, TERM_BOLD), coffer_conversion_from(other),
                       coffer_conversion_to(other), term_off(stdout));
        }
        print_options(conversion);
    }
}

int cli_convert_list(const cli_args *args)
{
    const char *kind = cli_operand(args, 0);
    if (cli_check_output(args))
        return CLI_USAGE;
    if (cli_operand_count(args) > 1)
        return cli_usage(args, "--list takes one kind of file, not two");
    if (kind && is_first(kind, coffer_conversion_count()))
        return cli_usage(args, "no conversion from or to '%s'; 'coffer convert --list' lists the kinds",
                         kind);
    if (cli_has(args, "json") || cli_has(args, "csv"))
        return print_nodes(kind, cli_has(args, "csv"));
    if (kind)
        print_details(kind);
    else
        print_grid();
    return CLI_OK;
}
