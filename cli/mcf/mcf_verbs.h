/* Verbs for MCF files only: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_MCF_VERBS_H
#define COFFER_CLI_MCF_VERBS_H

#include "cli.h"

extern const cli_format_verb cli_mcf_pack;
extern const cli_format_verb cli_mcf_set;
extern const cli_format_verb cli_mcf_unpack;

/* Prints a line to standard error for each record of damage in a model that was written. CLI_FINDINGS when
 * it has any, CLI_OK for other files too. */
int cli_report_damage(const char *path);

#endif
