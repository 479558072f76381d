/* Man pages, completions and docs from the tables. */
#ifndef COFFER_CLI_GENERATE_H
#define COFFER_CLI_GENERATE_H

#include "cli.h"

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
