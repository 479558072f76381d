/* Input shared by the targets for files. Half of the time the checksums are corrected, so that mutations of
 * the body get past the header. The source gives views of its bytes, or only reads. */
#ifndef COFFER_FUZZ_INPUT_H
#define COFFER_FUZZ_INPUT_H

#include "coffer/coffer.h"
#include "must.h"

#include <stdio.h>
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

/* Other magic bytes make it another format's business. */
static inline bool fuzz_input_is(const fuzz_input *input, const char *name)
{
    const coffer_format *format;
    return !coffer_identify(&format, input->source, NULL) && strcmp(coffer_format_name(format), name) == 0;
}

/* False when out of memory, which is not an error of the target. */
static bool fuzz_input_begin(fuzz_input *out, const uint8_t *data, size_t size,
                             void (*repair)(uint8_t *bytes, size_t size))
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
        repair(out->bytes, size);
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

#endif
