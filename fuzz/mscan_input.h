/* Inputs for the targets of scans: corrects a wrong header. */
#ifndef COFFER_FUZZ_MSCAN_INPUT_H
#define COFFER_FUZZ_MSCAN_INPUT_H

#include "formats/mscan/mscan_layout.h"
#include "input.h"

/* Writes numbers into the header that match the size of the file. */
static void fuzz_repair_header(uint8_t *bytes, size_t size)
{
    if (size < COFFER__MSCAN_HEADER_SIZE)
        return;
    uint32_t header_len = coffer__load_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT);
    if (header_len < COFFER__MSCAN_HEADER_SIZE || header_len > size)
        header_len = (uint32_t)size;
    memcpy(bytes, COFFER__MSCAN_MAGIC, COFFER__MSCAN_MAGIC_SIZE);
    coffer__store_u16(bytes + COFFER__MSCAN_VERSION_AT, COFFER__MSCAN_VERSION);
    coffer__store_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT, header_len);
    coffer__store_u32(bytes + COFFER__MSCAN_COUNT_AT,
                      (uint32_t)((size - header_len) / COFFER__MSCAN_RECORD_SIZE));
}

static bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    return fuzz_input_begin(out, data, size, fuzz_repair_header);
}

#endif
