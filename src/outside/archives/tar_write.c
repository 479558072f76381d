/* Headers of tar members. */
#include "outside/archives/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OCTAL_MAX ((UINT64_C(1) << 33) - 1) /* what eleven digits can say */

static void put_block(coffer__buffer *out, const char *name, size_t name_len, uint64_t size, char type)
{
    char block[COFFER__TAR_BLOCK] = { 0 };
    unsigned sum = 0;
    memcpy(block, name, name_len < 100 ? name_len : 100);
    snprintf(block + 100, 8, "%07o", 0644u);
    snprintf(block + 108, 8, "%07o", 0u);
    snprintf(block + 116, 8, "%07o", 0u);
    snprintf(block + 124, 12, "%011" PRIo64, size <= OCTAL_MAX ? size : 0);
    snprintf(block + 136, 12, "%011o", 0u);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    coffer__buffer_append(out, block, sizeof block);
}

/* "LEN KEY=VALUE\n", where LEN counts its own digits. */
static void put_record(coffer__buffer *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", len) + rest != len)
        len = strlen(digits) + rest;
    coffer__buffer_printf(out, "%s %s=%s\n", digits, key, value);
}

void coffer__tar_put_header(coffer__buffer *out, const char *name, uint64_t size)
{
    coffer__buffer records = COFFER__BUFFER_INIT;
    size_t len = strlen(name);
    char text[24];
    if (len > 100)
        put_record(&records, "path", name);
    if (size > OCTAL_MAX) {
        snprintf(text, sizeof text, "%" PRIu64, size);
        put_record(&records, "size", text);
    }
    if (records.len) {
        put_block(out, "pax", 3, records.len, 'x');
        coffer__buffer_append(out, records.data, records.len);
        coffer__buffer_fill(out, 0, coffer__tar_padding(records.len));
    }
    if (records.failed)
        out->failed = true;
    coffer__buffer_free(&records);
    put_block(out, name, len, size, '0');
}
