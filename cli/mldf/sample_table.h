/* Samples as a table, or as JSON, one a line. */
#ifndef COFFER_CLI_SAMPLE_TABLE_H
#define COFFER_CLI_SAMPLE_TABLE_H

#include "cli.h"
#include "mldf/sample_value.h"

/* Samples [first, end). Prints an error in the cell of a value that cannot be read; the exit status is
 * then 1. */
int sample_table_print(sample_reader *reader, const char *path, uint64_t first, uint64_t end, bool json);

#endif
