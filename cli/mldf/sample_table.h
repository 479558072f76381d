/* Samples as a table, as comma-separated values, or as JSON, one per line. */
#ifndef COFFER_CLI_SAMPLE_TABLE_H
#define COFFER_CLI_SAMPLE_TABLE_H

#include "cli.h"
#include "mldf/sample_value.h"

/* The samples at positions [first, end), with the reader's fields, as --json and --csv say. A table shows
 * "(unreadable)" for a value that cannot be read, and the exit status is 1. */
int sample_table_print(sample_reader *reader, const cli_args *args, uint64_t first, uint64_t end);

#endif
