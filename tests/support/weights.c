#include "support/weights.h"

#include "support/model.h"

#include <stdlib.h>
#include <string.h>

void weights_fill(float *out, size_t count, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) / (float)(1 << 24) - 0.5f;
        }
        out[i] = sum * 0.05f;
    }
}

static void add_floats(coffer_mcf_writer *writer, const char *name, uint32_t rank, const uint64_t *dims,
                       uint32_t seed)
{
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    weights_fill(values, count, seed);
    assert_int_equal(model_add(writer, name, COFFER_DTYPE_F32, rank, dims, values, NULL), COFFER_OK);
    free(values);
}

void weights_model(const char *path)
{
    static const uint64_t deep[] = { 64, 320 }, wide[] = { 3, 700 }, tall[] = { 130, 33 }, ids[] = { 2, 2 };
    static const int32_t numbers[] = { 1, 2, 3, 4 };
    coffer_mcf_writer *writer = NULL;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    add_floats(writer, "deep.weight", 2, deep, 1);
    add_floats(writer, "wide.weight", 2, wide, 2);
    add_floats(writer, "tall.weight", 2, tall, 3);
    add_floats(writer, "norm.weight", 1, &deep[1], 4);
    assert_int_equal(model_add(writer, "ids", COFFER_DTYPE_I32, 2, ids, numbers, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

void weights_one(const char *path, uint64_t rows, uint64_t cols, const float *values)
{
    uint64_t dims[] = { rows, cols };
    coffer_mcf_writer *writer = NULL;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(model_add(writer, "w", COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}
