/* The tables as the parser, the help and the generators see them, and what parsing makes of a command line.
 */
#ifndef COFFER_CLI_ARGS_H
#define COFFER_CLI_ARGS_H

#include "cli.h"

typedef struct cli_given {
    const cli_option *option;
    const char *value;      /* NULL for a switch */
    char *owned;            /* value, where the parser changed its spelling */
    const char *word;       /* the word of the command line, with its dashes */
    char letter;            /* the letter that was typed, or 0 */
    size_t operands_before; /* number of operands before it */
} cli_given;

struct cli_args {
    const cli_verb *verb;
    cli_given *given;
    size_t given_count;
    const char **operands;
    size_t operand_count;
};

/* --help, --color, --quiet: every verb has them. */
extern const cli_option cli_global_options[];

/* All tables that hold for a verb: its own, those of its formats (or of one), the global ones. */
enum { CLI_TABLES_MAX = 32 };
typedef struct cli_tables {
    const cli_option *at[CLI_TABLES_MAX];
    size_t count;
} cli_tables;
/* row : NULL = every format. */
void cli_tables_of(cli_tables *out, const cli_verb *verb, const cli_format_verb *row);
/* The option of exactly this name, or NULL. */
const cli_option *cli_tables_find(const cli_tables *tables, const char *name, size_t len);

/* Reads the words after the verb. 0, or CLI_USAGE after a message; out is to be freed in both cases. */
int cli_parse(cli_args *out, const cli_verb *verb, int count, char *const *words);
/* Checks the number of operands against the verb. */
int cli_check_operands(const cli_args *args);
/* Ties the options to the row of the format at hand: what it does not have is a usage error. */
int cli_bind(cli_args *args, const cli_format_verb *row);
/* Whether all options given are of the verb itself or of the row (NULL = none); else CLI_USAGE after a
 * message. For verbs that run for every format, and have a row of their own for some. */
int cli_check_row(const cli_args *args, const cli_format_verb *row, const char *kind);
void cli_args_free(cli_args *args);

/* ---- Names that were meant ---- */

/* How many letters must be changed, added, removed or swapped to get from one to the other. */
size_t cli_distance(const char *a, const char *b);
/* Whether a word that far away is worth suggesting. */
bool cli_is_near(const char *word, size_t distance);

/* "a|b|c" as "a, b, c". */
void cli_print_choices(FILE *out, const char *choices);

#endif
