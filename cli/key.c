#include "key.h"

#include "base/fail.h"
#include "io/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "COFFER_KEY";

enum { HEX_DIGITS = 2 * COFFER_MLDF_KEY_SIZE, FILE_MAX = HEX_DIGITS + 16 /* and white space */ };

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_hex(uint8_t out[COFFER_MLDF_KEY_SIZE], const char *text, size_t len)
{
    if (len != HEX_DIGITS)
        return false;
    for (size_t i = 0; i < COFFER_MLDF_KEY_SIZE; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool read_text_or_bytes(uint8_t out[COFFER_MLDF_KEY_SIZE], const char *text, size_t len)
{
    if (len == COFFER_MLDF_KEY_SIZE) {
        memcpy(out, text, len);
        return true;
    }
    while (len > HEX_DIGITS && isspace((unsigned char)text[len - 1]))
        len--;
    return read_hex(out, text, len);
}

/* A pipe is welcome too: --key-file <(pass show training-set). */
static coffer_status read_file(char *out, size_t *len, const char *path, coffer_error *err)
{
    int fd;
    size_t got = 1;
    *len = 0;
    coffer_status status = coffer__file_open(&fd, path, O_RDONLY, 0, err);
    if (status != COFFER_OK)
        return status;
    while (status == COFFER_OK && got > 0 && *len < FILE_MAX) {
        status = coffer__file_read_some(fd, out + *len, FILE_MAX - *len, &got, path, err);
        *len += status == COFFER_OK ? got : 0;
    }
    coffer__file_close(fd);
    return status;
}

static int read_key_file(cli_key *out, const char *path)
{
    char text[FILE_MAX];
    size_t len;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = read_file(text, &len, path, &err);
    if (status == COFFER_OK && !read_text_or_bytes(out->bytes, text, len))
        status = coffer__fail(&err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "a key is 32 bytes or 64 hexadecimal digits; this file is neither");
    explicit_bzero(text, sizeof text);
    out->at = status == COFFER_OK ? out->bytes : NULL;
    return status == COFFER_OK ? CLI_OK
                               : cli_fail(path, &err,
                                          status == COFFER_E_INVALID_ARGUMENT
                                              ? "'head -c 32 /dev/urandom >KEYFILE' makes a new key"
                                              : NULL);
}

int cli_key_read(cli_key *out, const cli_args *args)
{
    const char *path = cli_value(args, "key-file"), *text = getenv(variable);
    out->at = NULL;
    if (path)
        return read_key_file(out, path);
    if (!text || !*text)
        return CLI_OK;
    if (!read_hex(out->bytes, text, strlen(text)))
        return cli_usage(args, "the environment's %s must be a key of 64 hexadecimal digits", variable);
    out->at = out->bytes;
    return CLI_OK;
}

void cli_key_wipe(cli_key *key)
{
    explicit_bzero(key->bytes, sizeof key->bytes);
    key->at = NULL;
}
