/* Help, man pages, completions and docs from the tables. */
#ifndef COFFER_CLI_HELP_H
#define COFFER_CLI_HELP_H

#include "cli.h"

/* Help from the tables. */
void cli_help_overview(FILE *out);
/* kind : the options and examples for files of this kind only ("mcf"); NULL = for all. */
void cli_help_verb(FILE *out, const cli_verb *verb, const char *kind);
/* "coffer: unknown verb …", with the verb that was meant; returns CLI_USAGE. */
int cli_unknown_verb(const char *name);

/* The purpose of the command, for the overview and the man page. */
extern const char cli_purpose[];
extern const char cli_overview_examples[];
extern const char cli_exit_status[];

/* Whether the verb, or its meaning for a format, comes with examples. */
bool cli_has_examples(const cli_verb *verb);

/* "-o, --output FILE" */
typedef char cli_option_form[80];
void cli_format_option(cli_option_form out, const cli_option *option);
/* Its help with choices and default: "element type: one of f32 (default), f16". */
typedef char cli_option_text[640];
void cli_describe_option(cli_option_text out, const cli_option *option);

/* Man pages, completions and docs from the tables. */
void cli_man_overview(FILE *out);
void cli_man_verb(FILE *out, const cli_verb *verb);

void cli_docs_overview(FILE *out);
void cli_docs_verb(FILE *out, const cli_verb *verb);

void cli_complete_bash(FILE *out);
void cli_complete_zsh(FILE *out);
void cli_complete_fish(FILE *out);

/* Calls `each` for every option of a verb and its formats once, by name; the global ones last. */
typedef void (*cli_option_visitor)(FILE *out, const cli_option *option, const void *context);
void cli_each_option(FILE *out, const cli_verb *verb, cli_option_visitor each, const void *context);
/* Whether the option's argument is a file name. */
bool cli_takes_file(const cli_option *option);
/* Whether it is a name inside the file that the verb reads. */
bool cli_takes_name(const cli_option *option);

#endif
