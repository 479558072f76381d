/* Help from the tables. */
#ifndef COFFER_CLI_HELP_H
#define COFFER_CLI_HELP_H

#include "cli.h"

void cli_help_overview(FILE *out);
void cli_help_verb(FILE *out, const cli_verb *verb);
/* "coffer: there is no verb …", with the nearest one; gives CLI_USAGE. */
int cli_unknown_verb(const char *name);

/* What the command is for, for the overview and the man page. */
extern const char cli_purpose[];
extern const char cli_overview_examples[];
extern const char cli_exit_status[];

/* Whether the verb, or its meaning for a format, comes with examples. */
bool cli_has_examples(const cli_verb *verb);

/* "-o, --output FILE" */
typedef char cli_option_form[80];
void cli_format_option(cli_option_form out, const cli_option *option);

#endif
