/* The file that a verb reads, whatever its kind: coffer_file, with the messages of the command. */
#ifndef COFFER_CLI_INPUT_FILE_H
#define COFFER_CLI_INPUT_FILE_H

#include "cli.h"

/* For verbs that have nothing to report about a file that is not recognized: 0, or the exit status after a
 * message. */
int cli_file_open_known(coffer_file **out, const char *path);
/* For cli_fail: check and repair, which it would recommend, can do little for files of other programs. */
const char *cli_file_hint(const coffer_file *file);
/* Says on stderr that a file has a newer version than this program knows. main does it for the operands of
 * every verb, cli_open and cli_file_open_known for standard input. */
void cli_warn_version(const char *path, coffer_source *src);
void cli_warn_versions(const cli_args *args);
/* Whether a file of another program can become one of the library's formats. */
bool cli_file_can_be_converted(const coffer_file *file);

#endif
