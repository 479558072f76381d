#include "key.h"

#include "io/key_file.h"

#include <stdlib.h>
#include <string.h>

static const char variable[] = "COFFER_KEY";

static int read_key_file(cli_key *out, const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer__key_file_read(out->bytes, path, &err);
    if (status != COFFER_OK)
        return cli_fail(path, &err,
                        status == COFFER_E_INVALID_ARGUMENT
                            ? "'head -c 32 /dev/urandom >KEYFILE' makes a new key"
                            : NULL);
    out->at = out->bytes;
    return CLI_OK;
}

int cli_key_read(cli_key *out, const cli_args *args)
{
    const char *path = cli_value(args, "key-file"), *text = getenv(variable);
    out->at = NULL;
    if (path)
        return read_key_file(out, path);
    if (!text || !*text)
        return CLI_OK;
    if (!coffer__key_from_hex(out->bytes, text, strlen(text)))
        return cli_usage(args, "the environment's %s must be a key of 64 hexadecimal digits", variable);
    out->at = out->bytes;
    return CLI_OK;
}

void cli_key_wipe(cli_key *key)
{
    explicit_bzero(key->bytes, sizeof key->bytes);
    key->at = NULL;
}
