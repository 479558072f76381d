/* Writes a model with a quantized tensor, opens it, and multiplies the tensor with a vector straight from the
 * file's bytes: the weights are never decoded to memory.
 *
 *   quant_matvec [FILE [TENSOR]]     multiplies a tensor of FILE with ones; without arguments it makes
 *                                    quantized.mcf first */
#include <coffer/coffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 64 };

/* Row r is 1/(r + 1), 2/(r + 1) ... 7/(r + 1), and over again: four bits hold it exactly up to the scale. */
static void fill(float *values)
{
    int i;
    for (i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i % COLUMNS % 7 + 1) / (float)(i / COLUMNS + 1);
}

static coffer_status write_tensor(coffer_mcf_writer *writer, coffer_error *err)
{
    static const uint64_t dims[] = { ROWS, COLUMNS };
    static const char name[] = "model.layers.0.mlp.up_proj.weight";
    coffer_mcf_new_tensor tensor = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_K4, name, strlen(name), 2, dims, NULL
    };
    coffer_quant_tensor shape = COFFER_QUANT_TENSOR_INIT;
    float values[ROWS * COLUMNS];
    uint64_t size = 0;
    void *payload;
    coffer_status status;
    shape.dtype = tensor.dtype;
    shape.rows = ROWS;
    shape.cols = COLUMNS;
    fill(values);
    status = coffer_quant_size(&size, &shape, err);
    payload = malloc((size_t)size + 1);
    if (!payload)
        status = COFFER_E_NO_MEMORY;
    if (status == COFFER_OK)
        status = coffer_quant_encode(payload, &shape, values, NULL, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_begin_tensor(writer, &tensor, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_write(writer, payload, (size_t)size, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_end_tensor(writer, err);
    free(payload);
    return status;
}

static coffer_status make_model(const char *path, coffer_error *err)
{
    coffer_mcf_writer *writer = NULL;
    coffer_status status = coffer_mcf_writer_create(&writer, path, NULL, err);
    if (status == COFFER_OK)
        status = write_tensor(writer, err);
    if (status == COFFER_OK)
        return coffer_mcf_writer_commit(writer, err);
    coffer_mcf_writer_discard(writer);
    return status;
}

static coffer_status multiply(const coffer_mcf *model, size_t index, coffer_error *err)
{
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, index);
    coffer_quant_tensor weights = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    uint64_t i, rows = coffer_mcf_row_count(&tensor), columns = coffer_mcf_row_elements(&tensor);
    float *x = malloc((size_t)columns * sizeof *x + 1), *y = malloc((size_t)rows * sizeof *y + 1);
    coffer_status status = x && y ? COFFER_OK : COFFER_E_NO_MEMORY;
    weights.dtype = tensor.dtype;
    weights.rows = rows;
    weights.cols = columns;
    weights.payload = coffer_mcf_view(model, index); /* the mapped file itself */
    weights.size = (size_t)tensor.size;
    for (i = 0; x && i < columns; i++)
        x[i] = 1.0f;
    if (status == COFFER_OK)
        status = coffer_quant_workers_new(&opts.workers, NULL, err);
    if (status == COFFER_OK)
        status = coffer_quant_matvec(y, &weights, x, &opts, err);
    if (status == COFFER_OK) {
        printf("%.*s, %s: %llu rows of %llu in %llu bytes\n", (int)tensor.name_len, tensor.name,
               coffer_dtype_name(tensor.dtype), (unsigned long long)rows, (unsigned long long)columns,
               (unsigned long long)tensor.size);
        for (i = 0; i < rows && i < 10; i++)
            printf("  %.1f\n", (double)y[i]);
    }
    coffer_quant_workers_free(opts.workers);
    free(x);
    free(y);
    return status;
}

static coffer_status run(const char *path, const char *name, coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *source = NULL;
    coffer_mcf *model = NULL;
    size_t index = 0;
    coffer_status status;
    opts.access = COFFER_ACCESS_MAP;
    status = coffer_source_open(&source, path, &opts, err);
    if (status == COFFER_OK)
        status = coffer_mcf_open(&model, source, NULL, err);
    if (status == COFFER_OK && name)
        index = coffer_mcf_find_tensor(model, name, strlen(name));
    if (status == COFFER_OK && index < coffer_mcf_tensor_count(model))
        status = multiply(model, index, err);
    else if (status == COFFER_OK)
        puts("the model has no tensor of this name");
    coffer_mcf_close(model);
    coffer_source_close(source);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "quantized.mcf";
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = argc > 1 ? COFFER_OK : make_model(path, &err);
    if (status == COFFER_OK)
        status = run(path, argc > 2 ? argv[2] : NULL, &err);
    if (status != COFFER_OK)
        fprintf(stderr, "%s: %s\n", path, err.text);
    return status == COFFER_OK ? 0 : 1;
}
