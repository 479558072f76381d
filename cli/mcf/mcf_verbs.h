/* Verbs for MCF files only: rows of cli/format_verbs.c. */
#ifndef COFFER_CLI_MCF_VERBS_H
#define COFFER_CLI_MCF_VERBS_H

#include "cli.h"

extern const cli_format_verb cli_mcf_pack;
extern const cli_format_verb cli_mcf_set;

#endif
