/* The file that a verb reads, whatever its kind: coffer_file, with the messages of the command. */
#ifndef COFFER_CLI_INPUT_FILE_H
#define COFFER_CLI_INPUT_FILE_H

#include "cli.h"

/* For verbs that have nothing to report about a file that is not recognized: 0, or the exit status after a
 * message. */
int cli_file_open_known(coffer_file **out, const char *path);
/* For cli_fail: check and repair, which it would recommend, can do little for files of other programs. */
const char *cli_file_hint(const coffer_file *file);
/* Whether a file of another program can become one of the library's formats. */
bool cli_file_can_be_converted(const coffer_file *file);

#endif
