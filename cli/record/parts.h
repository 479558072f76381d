/* Recordings of which only the part files exist. */
#ifndef COFFER_CLI_PARTS_H
#define COFFER_CLI_PARTS_H

#include "cli.h"

/* Makes the files of recordings that were killed, where an operand names one. 0, or the exit status after a
 * message. */
int cli_recover_operands(const cli_args *args);

/* The trace of the parts as they are now, in a temporary folder. */
typedef struct cli_parts {
    char *folder, *path; /* NULL: `path` exists, or has no parts */
    bool running;        /* the recording has not ended */
} cli_parts;

/* 0, or the exit status after a message. After success cli_parts_remove() must follow. */
int cli_parts_copy(cli_parts *out, const char *path);
void cli_parts_remove(cli_parts *parts);

#endif
