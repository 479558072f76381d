/* The safetensors reader accepts a file or fails with an error; an accepted file survives a round trip
 * through a model. Half of the inputs get a correct header length. */
#include "base/bytes.h"
#include "tensors_cycle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The header ends at the brace that closes the first one, or at the end of the input. */
static void repair_length(uint8_t *bytes, size_t size)
{
    size_t depth = 0, at;
    for (at = 8; at < size; at++) {
        if (bytes[at] == '{')
            depth++;
        else if (bytes[at] == '}' && --depth == 0)
            break;
    }
    coffer__store_u64(bytes, at < size ? at - 7 : size - 8);
}

static void read_all(const coffer_tensors *set)
{
    static uint8_t bytes[4096];
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        MUST(coffer_tensors_find(set, tensor->name) == i);
        if (tensor->size <= sizeof bytes)
            MUST(coffer_tensors_read(bytes, set, i, 0, (size_t)tensor->size, NULL) == COFFER_OK);
    }
}

static void must_be_same(const coffer_tensors *a, const char *path, bool model)
{
    coffer_tensors *b = NULL;
    if (model)
        return;
    MUST(coffer_tensors_open_path(&b, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_tensors_count(a) == coffer_tensors_count(b));
    for (size_t i = 0; i < coffer_tensors_count(a); i++) {
        const coffer_tensor *x = coffer_tensors_at(a, i), *y = coffer_tensors_at(b, i);
        MUST(strcmp(x->name, y->name) == 0);
        MUST(strcmp(x->type_name, y->type_name) == 0);
        MUST(x->rank == y->rank && x->size == y->size);
        MUST(x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0);
        uint8_t *bytes = malloc((size_t)x->size * 2 + 1);
        MUST(bytes);
        MUST(coffer_tensors_read(bytes, a, i, 0, (size_t)x->size, NULL) == COFFER_OK);
        MUST(coffer_tensors_read(bytes + x->size, b, i, 0, (size_t)x->size, NULL) == COFFER_OK);
        MUST(memcmp(bytes, bytes + x->size, (size_t)x->size) == 0);
        free(bytes);
    }
    coffer_tensors_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.json_bytes = 1 << 20;
    const tensors_cycle cycle = { "safetensors", &limits, NULL, 0, false, must_be_same };
    uint8_t *bytes = malloc(size + 1);
    MUST(bytes);
    memcpy(bytes, data, size);
    if (size > 8 && size % 2)
        repair_length(bytes, size);
    must_cycle(&cycle, bytes, size, read_all);
    free(bytes);
    return 0;
}
