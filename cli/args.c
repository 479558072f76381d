/* The parser: options anywhere, --name=value or --name value, abbreviations, one-letter bundles, "--". */
#include "args.h"

#include "base/memory.h"
#include "term.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const cli_option cli_global_options[] = {
    { "cache-dir", 0, "FOLDER", NULL,
      "keep what was read of remote files here for later commands; default: COFFER_CACHE_DIR, else nothing "
      "is kept",
      NULL },
    { "color", 0, "WHEN", "auto|always|never",
      "color the output; auto: on a terminal, unless NO_COLOR is set, or always with CLICOLOR_FORCE",
      "auto" },
    { "download", 0, NULL, NULL, "fetch remote files as a whole where their server has no ranges", NULL },
    { "limit", 0, "NAME=VALUE", NULL,
      "change a limit that protects against malicious files: memory, entries, string, json, json-depth, "
      "unpacked, expanded, unpack-ratio; repeatable",
      NULL },
    { "no-pager", 0, NULL, NULL, "do not send long output on a terminal to a pager (PAGER, else less)",
      NULL },
    { "quiet", 'q', NULL, NULL, "do not show progress", NULL },
    { "help", 'h', NULL, NULL, "show this help; after FILE, only the options for its format", NULL },
    { 0 },
};

const cli_option *cli_verb_options(const cli_verb *verb)
{
    return verb->make_options ? verb->make_options() : verb->options;
}

void cli_tables_of(cli_tables *out, const cli_verb *verb, const cli_format_verb *row)
{
    out->count = 0;
    if (cli_verb_options(verb))
        out->at[out->count++] = cli_verb_options(verb);
    for (size_t i = 0; cli_format_verbs[i] && out->count < CLI_TABLES_MAX - 1; i++) {
        const cli_format_verb *other = cli_format_verbs[i];
        if (other->options && strcmp(other->verb, verb->name) == 0 && (!row || row == other))
            out->at[out->count++] = other->options;
    }
    out->at[out->count++] = cli_global_options;
}

const cli_option *cli_tables_find(const cli_tables *tables, const char *name, size_t len)
{
    for (size_t t = 0; t < tables->count; t++)
        for (const cli_option *option = tables->at[t]; option->name; option++)
            if (strlen(option->name) == len && memcmp(option->name, name, len) == 0)
                return option;
    return NULL;
}

/* ---- Old spellings ---- */

/* was : "--NAME" or "-X", len bytes. */
static bool was_spelled(const cli_option *option, const char *was, size_t len)
{
    for (const cli_old_spelling *old = option->old; old && old->was; old++)
        if (!old->now && strlen(old->was) == len && memcmp(old->was, was, len) == 0)
            return true;
    return false;
}

static const cli_option *find_old(const cli_tables *tables, const char *was, size_t len)
{
    for (size_t t = 0; t < tables->count; t++)
        for (const cli_option *option = tables->at[t]; option->name; option++)
            if (was_spelled(option, was, len))
                return option;
    return NULL;
}

static const char *new_value(const cli_option *option, const char *value)
{
    for (const cli_old_spelling *old = option->old; old && old->was; old++)
        if (old->now && strcasecmp(old->was, value) == 0)
            return old->now;
    return NULL;
}

static bool says_old(const cli_args *args)
{
    return !cli_has(args, "json") && !cli_has(args, "quiet");
}

static void note_old_name(const cli_args *args, const cli_given *given)
{
    char letter[3] = { '-', given->letter, '\0' };
    const char *word = given->letter ? letter : given->word;
    size_t len = given->letter ? 2 : 2 + strcspn(given->word + 2, "=");
    if (was_spelled(given->option, word, len) && says_old(args))
        fprintf(stderr, "coffer %s: %.*s is now --%s\n", args->verb->name, (int)len, word,
                given->option->name);
}

/* ---- Parsing ---- */

typedef struct parser {
    cli_args *args;
    cli_tables tables;
    char *const *words;
    int count, at;
    const char *word; /* being read */
    char letter;      /* of a bundle, or 0 */
} parser;

static const cli_option *find_letter(const cli_tables *tables, char letter)
{
    for (size_t t = 0; t < tables->count; t++)
        for (const cli_option *option = tables->at[t]; option->name; option++)
            if (option->letter == letter)
                return option;
    return find_old(tables, (const char[]){ '-', letter }, 2);
}

/* The one option that `name` abbreviates. *other is set when a second one begins like it. */
static const cli_option *find_abbreviated(const cli_tables *tables, const char *name, size_t len,
                                          const cli_option **other)
{
    const cli_option *found = NULL;
    *other = NULL;
    for (size_t t = 0; t < tables->count; t++)
        for (const cli_option *option = tables->at[t]; option->name; option++) {
            if (strncmp(option->name, name, len) != 0)
                continue;
            if (!found)
                found = option;
            else if (strcmp(found->name, option->name) != 0)
                *other = option;
        }
    return found;
}

static const char *nearest_option(const cli_tables *tables, const char *name)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t t = 0; t < tables->count; t++)
        for (const cli_option *option = tables->at[t]; option->name; option++) {
            size_t distance = cli_distance(name, option->name);
            if (distance < best) {
                best = distance;
                nearest = option->name;
            }
        }
    return cli_is_near(name, best) ? nearest : NULL;
}

static int unknown_option(const parser *p, const char *name, int len)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", len, name);
    const char *nearest = nearest_option(&p->tables, text);
    if (nearest)
        return cli_usage(p->args, "unknown option --%.*s; did you mean --%s?", len, name, nearest);
    return cli_usage(p->args, "unknown option --%.*s", len, name);
}

void cli_print_choices(FILE *out, const char *choices)
{
    for (; *choices; choices++) {
        if (*choices == '|')
            fputs(", ", out);
        else
            fputc(*choices, out);
    }
}

/* The value in "a|b|c", in capitals or not; NULL when it is not one of them. */
static const char *find_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    for (;; choices++) {
        size_t choice = strcspn(choices, "|");
        if (choice == len && strncasecmp(choices, value, len) == 0)
            return choices;
        choices += choice;
        if (!*choices)
            return NULL;
    }
}

/* Checks the value and gives it the spelling of the table. */
static int check_choice(const cli_args *args, cli_given *given)
{
    const cli_option *option = given->option;
    if (!option->choices)
        return CLI_OK;
    const char *now = new_value(option, given->value);
    if (now && says_old(args))
        fprintf(stderr, "coffer %s: --%s %s is now --%s %s\n", args->verb->name, option->name, given->value,
                option->name, now);
    if (now)
        given->value = now;
    const char *choice = find_choice(option->choices, given->value);
    size_t len = strlen(given->value);
    if (choice && memcmp(choice, given->value, len) == 0)
        return CLI_OK;
    if (choice) {
        given->owned = coffer__strndup(choice, len);
        if (!given->owned)
            return cli_usage(args, "out of memory");
        given->value = given->owned;
        return CLI_OK;
    }
    char list[256];
    FILE *out = fmemopen(list, sizeof list, "w");
    if (out) {
        cli_print_choices(out, option->choices);
        fclose(out);
    }
    return cli_usage(args, "--%s must be one of %s, not '%s'", option->name, out ? list : option->choices,
                     given->value);
}

static int add_given(parser *p, const cli_option *option, const char *value)
{
    cli_given *given = &p->args->given[p->args->given_count++];
    *given = (cli_given){ .option = option,
                          .value = value,
                          .word = p->word,
                          .letter = p->letter,
                          .operands_before = p->args->operand_count };
    return CLI_OK;
}

/* Checks values and mentions old spellings, once --json and --quiet have been seen. */
static int check_given(cli_args *args)
{
    for (size_t i = 0; i < args->given_count; i++) {
        note_old_name(args, &args->given[i]);
        int status = check_choice(args, &args->given[i]);
        if (status)
            return status;
    }
    return CLI_OK;
}

static int add_with_next_word(parser *p, const cli_option *option)
{
    if (p->at >= p->count)
        return cli_usage(p->args, "--%s needs a value: --%s %s", option->name, option->name,
                         option->argument);
    return add_given(p, option, p->words[p->at++]);
}

static int parse_long(parser *p, const char *name)
{
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const cli_option *other = NULL, *option = cli_tables_find(&p->tables, name, len);
    if (!option && len > 0)
        option = find_old(&p->tables, p->word, len + 2);
    if (!option && len > 0)
        option = find_abbreviated(&p->tables, name, len, &other);
    if (!option)
        return unknown_option(p, name, (int)len);
    if (other)
        return cli_usage(p->args, "--%.*s may mean --%s or --%s", (int)len, name, option->name, other->name);
    if (!option->argument)
        return equals ? cli_usage(p->args, "--%s takes no value", option->name) : add_given(p, option, NULL);
    return equals ? add_given(p, option, equals + 1) : add_with_next_word(p, option);
}

static int parse_letters(parser *p, const char *letters)
{
    for (; *letters; letters++) {
        p->letter = *letters;
        const cli_option *option = find_letter(&p->tables, *letters);
        if (!option)
            return cli_usage(p->args, "unknown option -%c",
                             isprint((unsigned char)*letters) ? *letters : '?');
        if (option->argument)
            return letters[1] ? add_given(p, option, letters + 1) : add_with_next_word(p, option);
        int status = add_given(p, option, NULL);
        if (status)
            return status;
    }
    return CLI_OK;
}

static bool is_operand(const char *word)
{
    return word[0] != '-' || word[1] == '\0' || isdigit((unsigned char)word[1]);
}

/* True when the operand ends the options. */
static bool add_operand(cli_args *args, const char *word)
{
    args->operands[args->operand_count++] = word;
    return args->verb->options_first;
}

int cli_parse(cli_args *out, const cli_verb *verb, int count, char *const *words)
{
    parser p = { .args = out, .words = words, .count = count };
    size_t letters = 0;
    bool options_ended = false;
    for (int i = 0; i < count; i++)
        letters += strlen(words[i]);
    *out = (cli_args){ .verb = verb };
    /* A bundle holds one option a letter, so the letters of the line bound the options. */
    out->given = coffer__calloc(letters + 1, sizeof *out->given);
    out->operands = coffer__calloc((size_t)count + 1, sizeof *out->operands);
    if (!out->given || !out->operands)
        return cli_usage(out, "out of memory");
    cli_tables_of(&p.tables, verb, NULL);
    while (p.at < count) {
        const char *word = words[p.at++];
        int status = CLI_OK;
        p.word = word;
        p.letter = 0;
        if (options_ended || is_operand(word))
            options_ended = add_operand(out, word) || options_ended;
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            status = word[1] == '-' ? parse_long(&p, word + 2) : parse_letters(&p, word + 1);
        if (status)
            return status;
    }
    /* Where the verb means something else for each format, cli_bind knows whose choices hold. */
    return verb->run ? check_given(out) : CLI_OK;
}

int cli_check_operands(const cli_args *args)
{
    const cli_verb *verb = args->verb;
    if (args->operand_count < verb->min_operands)
        return cli_usage(args, "needs %s", verb->usage);
    if (verb->max_operands == 0 && args->operand_count > 0)
        return cli_usage(args, "takes options only, not '%s'", args->operands[0]);
    if (args->operand_count > verb->max_operands)
        return cli_usage(args, "unexpected argument '%s'; usage: coffer %s %s",
                         args->operands[verb->max_operands], verb->name, verb->usage);
    return CLI_OK;
}

int cli_bind(cli_args *args, const cli_format_verb *row)
{
    cli_tables tables;
    cli_tables_of(&tables, args->verb, row);
    for (size_t i = 0; i < args->given_count; i++) {
        cli_given *given = &args->given[i];
        const char *name = given->option->name;
        /* A letter may mean another option for each format. */
        const cli_option *option = given->letter ? find_letter(&tables, given->letter)
                                                 : cli_tables_find(&tables, name, strlen(name));
        if (!option)
            return cli_usage(args, "--%s does not apply to %s files", name, row->format);
        if (!option->argument != !given->option->argument)
            return cli_usage(args, "-%c %s a value for %s files", given->letter,
                             option->argument ? "takes" : "does not take", row->format);
        given->option = option;
    }
    return check_given(args);
}

int cli_check_row(const cli_args *args, const cli_format_verb *row, const char *kind)
{
    cli_tables tables = { .at = { cli_verb_options(args->verb), cli_global_options }, .count = 2 };
    if (row)
        tables.at[tables.count++] = row->options;
    for (size_t i = 0; i < args->given_count; i++) {
        const char *name = args->given[i].option->name;
        if (!cli_tables_find(&tables, name, strlen(name)))
            return cli_usage(args, "--%s does not apply to %s files", name, kind);
    }
    return CLI_OK;
}

void cli_args_free(cli_args *args)
{
    for (size_t i = 0; i < args->given_count; i++)
        coffer__free(args->given[i].owned);
    coffer__free(args->given);
    coffer__free(args->operands);
    *args = (cli_args){ 0 };
}
