/* Inputs for the targets of training sets: corrects a wrong header. */
#ifndef COFFER_FUZZ_MLDF_INPUT_H
#define COFFER_FUZZ_MLDF_INPUT_H

#include "formats/mldf/mldf_private.h"
#include "input.h"

/* Puts the pointers of the header inside the file, and the table where it is whole entries. */
static void fuzz_repair_header(uint8_t *bytes, size_t size)
{
    static const size_t pointers[] = { COFFER__MLDF_DESCRIPTORS_AT, COFFER__MLDF_METADATA_AT,
                                       COFFER__MLDF_DATA_AT, COFFER__MLDF_TABLE_AT };
    uint8_t *header = bytes + COFFER__MLDF_HEADER_AT;
    if (size < COFFER__MLDF_HEAD_SIZE)
        return;
    memcpy(bytes, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE);
    coffer__store_u16(header, COFFER__MLDF_MAJOR);
    header[COFFER__MLDF_FLAGS_AT] |= COFFER_MLDF_LITTLE_ENDIAN;
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        uint64_t place = coffer__load_u64(header + pointers[i]);
        if (place > size)
            coffer__store_u64(header + pointers[i], place % (size + 1));
    }
    uint64_t table = coffer__load_u64(header + COFFER__MLDF_TABLE_AT);
    table += (size - table) % COFFER__MLDF_TABLE_ENTRY;
    coffer__store_u64(header + COFFER__MLDF_TABLE_AT, table);
    coffer__store_u16(header + COFFER__MLDF_FIELDS_AT,
                      coffer__load_u16(header + COFFER__MLDF_FIELDS_AT) % 17);
    if (coffer__load_u64(header + COFFER__MLDF_SAMPLES_AT) > size)
        coffer__store_u64(header + COFFER__MLDF_SAMPLES_AT, size % 19);
}

static bool fuzz_input_open(fuzz_input *out, const uint8_t *data, size_t size)
{
    return fuzz_input_begin(out, data, size, fuzz_repair_header);
}

/* A key for some of the inputs. */
static const uint8_t *fuzz_key(const uint8_t *data, size_t size)
{
    static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "fuzz";
    return size && data[size - 1] & 4 ? key : NULL;
}

static coffer_mldf *fuzz_open_set(const fuzz_input *input, const uint8_t *data, size_t size)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    opts.limits = &input->limits;
    opts.verify = size && data[size - 1] & 8;
    opts.key = fuzz_key(data, size);
    return coffer_mldf_open(&set, input->source, &opts, NULL) == COFFER_OK ? set : NULL;
}

#endif
