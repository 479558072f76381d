/* The files of a verb: the one it reads, whatever its kind, and the key of encrypted values. */
#ifndef COFFER_CLI_FILES_H
#define COFFER_CLI_FILES_H

#include "cli.h"

/* The file that a verb reads, whatever its kind: coffer_file, with the messages of the command. */

/* For verbs that have nothing to report about a file that is not recognized: 0, or the exit status after a
 * message. */
int cli_file_open_known(coffer_file **out, const char *path);
/* The name of a file without its folder, for headings. */
const char *cli_base_name(const char *path);
/* For cli_fail: check and repair, which it would recommend, can do little for files of other programs. */
const char *cli_file_hint(const coffer_file *file);
/* Says on stderr that a file has a newer version than this program knows: for standard input, which main
 * cannot look at before the verb runs. */
void cli_warn_version(const char *path, coffer_source *src);
/* The same for the operands of a verb, and what cli_format_notices has to say about them. CLI_OK, or
 * CLI_FINDINGS after a notice. */
int cli_look_at_operands(const cli_args *args);
/* Whether a file of another program can become one of the library's formats. */
bool cli_file_can_be_converted(const coffer_file *file);

/* The key of encrypted payloads: from a file or from the environment, never from the command line, where
 * every user of the machine can read it. */
typedef struct cli_key {
    uint8_t bytes[COFFER_MLDF_KEY_SIZE];
    const uint8_t *at; /* bytes, or NULL without a key */
} cli_key;

#define CLI_KEY_OPTION                                                                             \
    {                                                                                              \
        "key-file", 0, "FILE", NULL, "key of encrypted values: 32 bytes or 64 hexadecimal digits", \
            "$COFFER_KEY"                                                                          \
    }

/* 0, or the exit status after a message. out is to be wiped after a success. */
int cli_key_read(cli_key *out, const cli_args *args);
void cli_key_wipe(cli_key *key);

#endif
