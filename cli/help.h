/* Help from the tables. */
#ifndef COFFER_CLI_HELP_H
#define COFFER_CLI_HELP_H

#include "cli.h"

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

#endif
