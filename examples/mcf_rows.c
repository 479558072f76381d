/* Writes a small model, opens it, and uses a tensor as rows of float32, whatever type it is stored in.
 *
 *   mcf_rows [FILE [TENSOR]]     shows a tensor of FILE; without arguments it makes tiny.mcf first */
#include <coffer/coffer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 4 };

static coffer_status add_tensor(coffer_mcf_writer *writer, const char *name, const float *values,
                                coffer_error *err)
{
    static const uint64_t dims[] = { ROWS, COLUMNS };
    coffer_mcf_new_tensor tensor = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_F32, name, strlen(name), 2, dims, NULL
    };
    coffer_status status = coffer_mcf_writer_begin_tensor(writer, &tensor, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_write(writer, values, sizeof(float) * ROWS * COLUMNS, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_end_tensor(writer, err);
    return status;
}

/* The two tensors are equal, as tied embeddings are: the file holds the numbers once. */
static coffer_status make_model(const char *path, coffer_error *err)
{
    static const char config[] = "{\"model_type\": \"llama\"}";
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_mcf_writer *writer = NULL;
    float values[ROWS * COLUMNS];
    coffer_status status = coffer_mcf_writer_create(&writer, path, NULL, err);
    int i;
    for (i = 0; i < ROWS * COLUMNS; i++)
        values[i] = 0.5f * (float)i;
    info.arch = coffer_mcf_arch_by_name("llama");
    info.model_name = "tiny";
    if (status == COFFER_OK)
        status = coffer_mcf_writer_set_model_info(writer, &info, err);
    if (status == COFFER_OK)
        status = coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, config, strlen(config), err);
    if (status == COFFER_OK)
        status = add_tensor(writer, "model.embed_tokens.weight", values, err);
    if (status == COFFER_OK)
        status = add_tensor(writer, "lm_head.weight", values, err);
    if (status == COFFER_OK)
        return coffer_mcf_writer_commit(writer, err);
    coffer_mcf_writer_discard(writer);
    return status;
}

/* One row at a time: nothing else of the tensor is touched. */
static coffer_status print_rows(const coffer_mcf *model, size_t index, coffer_error *err)
{
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, index);
    uint64_t row, rows = coffer_mcf_row_count(&tensor), columns = coffer_mcf_row_elements(&tensor);
    float *values = malloc((size_t)columns * sizeof *values + 1);
    coffer_status status = COFFER_OK;
    printf("%.*s: %llu rows of %llu\n", (int)tensor.name_len, tensor.name, (unsigned long long)rows,
           (unsigned long long)columns);
    for (row = 0; values && status == COFFER_OK && row < rows; row++) {
        uint64_t i;
        status = coffer_mcf_read_rows_f32(values, model, index, row, 1, err);
        for (i = 0; status == COFFER_OK && i < columns; i++)
            printf("%s%g", i > 0 ? " " : "  ", (double)values[i]);
        puts("");
    }
    free(values);
    return status;
}

static coffer_status show(const char *path, const char *name, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_mcf *model = NULL;
    size_t index;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (status == COFFER_OK)
        status = coffer_mcf_open(&model, source, NULL, err);
    if (status == COFFER_OK) {
        index = coffer_mcf_find_tensor(model, name, strlen(name));
        if (index != SIZE_MAX)
            status = print_rows(model, index, err);
        else
            printf("no tensor is named %s\n", name);
    }
    coffer_mcf_close(model);
    coffer_source_close(source);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "tiny.mcf";
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = argc > 1 ? COFFER_OK : make_model(path, &err);
    if (status == COFFER_OK)
        status = show(path, argc > 2 ? argv[2] : "lm_head.weight", &err);
    if (status != COFFER_OK)
        fprintf(stderr, "%s: %s\n", path, err.text);
    return status == COFFER_OK ? 0 : 1;
}
