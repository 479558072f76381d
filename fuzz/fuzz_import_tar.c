/* The importer of tar files writes a training set without findings, or fails. Half of the inputs get correct
 * checksums. */
#include "mldf_import.h"

#include <string.h>

enum { BLOCK = 512 };

static void repair_header(uint8_t *block)
{
    unsigned sum = 0;
    char digits[8];
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += block[i];
    snprintf(digits, sizeof digits, "%06o", sum);
    memcpy(block + 148, digits, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size % 2)
        return fuzz_import("tar", data, size);
    uint8_t *copy = malloc(size ? size : 1);
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    for (size_t at = 0; size - at >= BLOCK; at += BLOCK) {
        if (memcmp(copy + at + 257, "ustar", 5) == 0)
            repair_header(copy + at);
    }
    int result = fuzz_import("tar", copy, size);
    free(copy);
    return result;
}
