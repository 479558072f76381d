/* A file of importances fails with an error, or gives vectors of valid weights. */
#include "base/memory.h"
#include "convert/quantize/importance.h"
#include "must.h"

#include <math.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_read(const coffer_tensors *set)
{
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        uint8_t last;
        MUST(tensor->rank == 1 && tensor->dims[0] == tensor->elements);
        MUST(tensor->size == tensor->elements * sizeof(float));
        MUST(coffer__imatrix_calls(set, i) <= INT32_MAX);
        if (tensor->size)
            MUST(coffer_tensors_read(&last, set, i, tensor->size - 1, 1, NULL) == COFFER_OK);
    }
}

static void must_weigh(const char *path, const coffer_tensors *set)
{
    coffer__importance *importance = NULL;
    if (coffer__importance_open(&importance, path, NULL, NULL))
        return;
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        float *vector = NULL;
        coffer_error err = COFFER_ERROR_INIT;
        if (coffer__importance_read(&vector, importance, tensor->name, tensor->elements, &err))
            MUST(err.text[0] != 0);
        for (uint64_t k = 0; vector && k < tensor->elements; k++)
            MUST(isfinite(vector[k]) && vector[k] >= 0);
        coffer__free(vector);
    }
    coffer__importance_close(importance);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_tensors_open_opts opts = COFFER_TENSORS_OPEN_OPTS_INIT;
    coffer_tensors *set = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    char path[64];
    MUST(coffer_source_from_memory(&src, data, size, NULL) == COFFER_OK);
    if (coffer__tensors_open_with(&set, &coffer__tensors_imatrix, src, false, &opts, &err)) {
        MUST(err.text[0] != 0);
    } else {
        const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(path, sizeof path, "%s/coffer-fuzz-%d.dat", folder, (int)getpid());
        FILE *file = fopen(path, "wb");
        MUST(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
        must_read(set);
        must_weigh(path, set);
        unlink(path);
    }
    coffer_tensors_close(set);
    coffer_source_close(src);
    return 0;
}
