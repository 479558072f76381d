/* Inputs for the targets of model containers: corrects a wrong header. */
#ifndef COFFER_FUZZ_MCF_INPUT_H
#define COFFER_FUZZ_MCF_INPUT_H

#include "formats/mcf/mcf_layout.h"
#include "input.h"

/* Writes numbers into the header that match the size of the file. */
static void fuzz_repair_header(uint8_t *bytes, size_t size)
{
    uint64_t directory;
    if (size < COFFER__MCF_HEADER_SIZE)
        return;
    memcpy(bytes, COFFER__MCF_MAGIC, COFFER__MCF_MAGIC_SIZE);
    coffer__store_u16(bytes + COFFER__MCF_MAJOR_AT, COFFER__MCF_MAJOR);
    coffer__store_u32(bytes + COFFER__MCF_HEADER_SIZE_AT, COFFER__MCF_HEADER_SIZE);
    coffer__store_u64(bytes + COFFER__MCF_FILE_SIZE_AT, size);
    directory = coffer__load_u64(bytes + COFFER__MCF_DIRECTORY_AT);
    if (directory < COFFER__MCF_HEADER_SIZE || directory > size)
        directory = COFFER__MCF_HEADER_SIZE;
    coffer__store_u64(bytes + COFFER__MCF_DIRECTORY_AT, directory);
    if (coffer__load_u32(bytes + COFFER__MCF_SECTION_COUNT_AT) >
        (size - directory) / COFFER__MCF_DIRECTORY_ENTRY)
        coffer__store_u32(bytes + COFFER__MCF_SECTION_COUNT_AT,
                          (uint32_t)((size - directory) / COFFER__MCF_DIRECTORY_ENTRY));
}

static bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    return fuzz_input_begin(out, data, size, fuzz_repair_header);
}

#endif
