#include "support/safetensors.h"

#include "base/bytes.h"
#include "support/temp.h"

#include <stdlib.h>

uint8_t *safetensors_make(size_t *len, const char *header, size_t data_len)
{
    size_t header_len = strlen(header);
    uint8_t *bytes = malloc(8 + header_len + data_len + 1);
    assert_non_null(bytes);
    coffer__store_u64(bytes, header_len);
    memcpy(bytes + 8, header, header_len);
    for (size_t i = 0; i < data_len; i++)
        bytes[8 + header_len + i] = (uint8_t)(i + 1);
    *len = 8 + header_len + data_len;
    return bytes;
}

void safetensors_write(const char *path, const char *header, size_t data_len)
{
    size_t len;
    uint8_t *bytes = safetensors_make(&len, header, data_len);
    temp_write(path, bytes, len);
    free(bytes);
}
