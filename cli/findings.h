/* Findings, as check and repair show them. */
#ifndef COFFER_CLI_FINDINGS_H
#define COFFER_CLI_FINDINGS_H

#include "cli.h"

/* An indented table: severity, code, offset, text; and how many more there were. */
void cli_print_findings(FILE *out, const coffer_report *report);
/* Adds the list "findings" with the public keys code, severity, offset and text. */
void cli_add_findings(coffer_node *root, const coffer_report *report);
/* "coffer: PATH: note: text" on standard error, a line for each. */
void cli_print_notes(const char *path, const coffer_report *notes);
/* Adds the list "notes" with the keys severity and text. */
void cli_add_notes(coffer_node *root, const coffer_report *notes);
/* "2 errors, 1 warning"; "" when there are neither. */
typedef char cli_findings_text[96];
const char *cli_count_findings(cli_findings_text out, const coffer_report *report);

#endif
