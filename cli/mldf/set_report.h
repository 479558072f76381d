/* Reports a new set, as a line or as JSON. */
#ifndef COFFER_CLI_SET_REPORT_H
#define COFFER_CLI_SET_REPORT_H

#include "cli.h"

/* "train.mldf: samples: 60,000, fields: 2, 47.1 MiB", or file, format, size, samples, fields. */
int mldf_report_set(const char *path, bool json);
/* The members of the JSON object alone. */
coffer_status mldf_describe_set(coffer_node *out, const char *path, coffer_error *err);
/* The line alone. */
void mldf_print_set(const coffer_node *described);

#endif
