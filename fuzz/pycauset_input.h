/* Inputs for the targets of matrices: corrects wrong checksums. */
#ifndef COFFER_FUZZ_PYCAUSET_INPUT_H
#define COFFER_FUZZ_PYCAUSET_INPUT_H

#include "base/crc32.h"
#include "formats/pycauset/pycauset_layout.h"
#include "input.h"

/* Checksums of both slots, and of the blocks that they name. */
static void fuzz_repair_checksums(uint8_t *bytes, size_t size)
{
    if (size < COFFER__PYCAUSET_HEADER_SIZE)
        return;
    memcpy(bytes, COFFER__PYCAUSET_MAGIC, COFFER__PYCAUSET_MAGIC_SIZE);
    for (int i = 0; i < 2; i++) {
        uint8_t *slot = bytes + COFFER__PYCAUSET_SLOT_A_AT + i * COFFER__PYCAUSET_SLOT_SIZE;
        uint64_t offset = coffer__load_u64(slot + 24), length = coffer__load_u64(slot + 32);
        coffer__store_u32(slot + COFFER__PYCAUSET_SLOT_CRC_AT,
                          coffer__crc32(0, slot, COFFER__PYCAUSET_SLOT_CRC_AT));
        if (offset < COFFER__PYCAUSET_HEADER_SIZE || offset > size || length > size - offset ||
            length < COFFER__PYCAUSET_BLOCK_HEADER)
            continue;
        uint8_t *block = bytes + offset;
        size_t len = (size_t)length - COFFER__PYCAUSET_BLOCK_HEADER;
        coffer__store_u64(block + 16, len);
        coffer__store_u32(block + 24, coffer__crc32(0, block + COFFER__PYCAUSET_BLOCK_HEADER, len));
    }
}

static bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    return fuzz_input_begin(out, data, size, fuzz_repair_checksums);
}

static coffer_pycauset *fuzz_open(const fuzz_input *input, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.limits = &input->limits;
    opts.blocks_folder = "/nonexistent";
    coffer_status status = coffer_pycauset_open(&matrix, input->source, &opts, err);
    MUST((status == COFFER_OK) == (matrix != NULL));
    MUST(status == COFFER_OK || !err || (err->text[0] && !strchr(err->text, '\n')));
    return matrix;
}

#endif
