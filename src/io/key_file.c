#include "io/key_file.h"

#include "base/fail.h"
#include "io/file.h"
#include "io/streams.h"

#include <ctype.h>
#include <sodium.h>
#include <string.h>

enum { HEX_DIGITS = 2 * COFFER__KEY_SIZE, LONGEST = HEX_DIGITS + 16 /* and white space */ };

bool coffer__key_from_hex(uint8_t out[COFFER__KEY_SIZE], const char *text, size_t len)
{
    size_t size = 0;
    return len == HEX_DIGITS && sodium_hex2bin(out, COFFER__KEY_SIZE, text, len, NULL, &size, NULL) == 0 &&
           size == COFFER__KEY_SIZE;
}

static bool take(uint8_t out[COFFER__KEY_SIZE], const char *text, size_t len)
{
    if (len == COFFER__KEY_SIZE) {
        memcpy(out, text, len);
        return true;
    }
    while (len > HEX_DIGITS && isspace((unsigned char)text[len - 1]))
        len--;
    return coffer__key_from_hex(out, text, len);
}

coffer_status coffer__key_file_read(uint8_t out[COFFER__KEY_SIZE], const char *path, coffer_error *err)
{
    char text[LONGEST];
    size_t len = 0, got = 1;
    coffer__stream from;
    coffer_status status = coffer__stream_open(&from, path, err);
    if (status)
        return status;
    if (from.has_first)
        text[len++] = (char)from.first;
    while (!status && got > 0 && len < LONGEST) {
        status = coffer__file_read_some(from.fd, text + len, LONGEST - len, &got, NULL, err);
        if (!status)
            len += got;
    }
    coffer__file_close(from.fd);
    if (!status && !take(out, text, len)) {
        sodium_memzero(out, COFFER__KEY_SIZE);
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "a key is 32 bytes or 64 hexadecimal digits; the file is neither");
    }
    sodium_memzero(text, sizeof text);
    return status;
}
