/* The key of encrypted payloads: from a file or from the environment, never from the command line, where
 * every user of the machine can read it. */
#ifndef COFFER_CLI_KEY_H
#define COFFER_CLI_KEY_H

#include "cli.h"

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
