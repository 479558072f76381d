/* What the targets for matrices share: an input whose checksums are repaired half of the time, so that
 * mutations of slots and metadata are not all stopped there, behind a source that lends its bytes or only
 * lets them be read. */
#ifndef COFFER_FUZZ_PYCAUSET_INPUT_H
#define COFFER_FUZZ_PYCAUSET_INPUT_H

#include "base/crc32.h"
#include "coffer/coffer.h"
#include "coffer/pycauset.h"
#include "formats/pycauset/pycauset_layout.h"
#include "must.h"

#include <stdlib.h>
#include <string.h>

typedef struct fuzz_input {
    uint8_t *bytes;
    size_t size;
    coffer_source *source;
    coffer_limits limits;
} fuzz_input;

static coffer_status fuzz_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const fuzz_input *input = context;
    (void)err;
    MUST(offset <= input->size && len <= input->size - offset);
    memcpy(out, input->bytes + offset, len);
    return COFFER_OK;
}

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

/* False when there is not enough memory, which is nobody's fault. */
static bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    static const coffer_source_ops only_read = { .struct_size = sizeof only_read, .read_at = fuzz_read_at };
    uint8_t choice = size ? data[size - 1] : 0;
    coffer_status status;
    *out = (fuzz_input){ .bytes = malloc(size ? size : 1), .size = size, .limits = COFFER_LIMITS_INIT };
    if (!out->bytes)
        return false;
    out->limits.json_bytes = 1 << 20;
    out->limits.memory_bytes = 1 << 24;
    out->limits.findings = 50;
    if (size)
        memcpy(out->bytes, data, size);
    if (choice & 1)
        fuzz_repair_checksums(out->bytes, size);
    if (choice & 2)
        status = coffer_source_new(&out->source, &only_read, out, size, "input", NULL);
    else
        status = coffer_source_from_memory(&out->source, out->bytes, size, NULL);
    if (status != COFFER_OK)
        free(out->bytes);
    return status == COFFER_OK;
}

static void fuzz_input_close(fuzz_input *input)
{
    coffer_source_close(input->source);
    free(input->bytes);
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
