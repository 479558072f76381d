/* heatmap for models: the values of a tensor, the first dimension down, all others across. */
#include "base/buffer.h"
#include "base/fail.h"
#include "draw/heat.h"
#include "pycauset/pycauset_verbs.h"
#include "tensors/tensors_verbs.h"

#include <inttypes.h>

/* The values are in memory while they are drawn. */
#define MOST_ELEMENTS ((uint64_t)1 << 30)

static const cli_option options[] = {
    { "tensor", 't', "NAME", NULL, "tensor to draw", "the largest one" }, HEAT_OUTPUT_OPTION, HEAT_OPTIONS,
    { "threads", 0, "N", NULL, "number of threads", "one per core" },     CLI_DAMAGED_OPTION, { 0 },
};

static size_t find_largest(const coffer_tensors *set)
{
    size_t found = COFFER_INDEX_NONE;
    uint64_t most = 0;
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        if (coffer_tensors_at(set, i)->elements > most) {
            most = coffer_tensors_at(set, i)->elements;
            found = i;
        }
    return found;
}

/* The tensor as a NumPy file of float32 with two dimensions. */
static coffer_status put_matrix(coffer__buffer *out, const coffer_tensors *set, size_t index,
                                coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    uint64_t rows = tensor->rank > 1 ? tensor->dims[0] : 1;
    const uint64_t dims[2] = { rows, rows ? tensor->elements / rows : 0 };
    uint8_t *header = NULL;
    size_t size = 0;
    if (tensor->elements == 0 || tensor->elements > MOST_ELEMENTS)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s has %" PRIu64 " elements; 1 to %" PRIu64 " can be drawn", tensor->name,
                            tensor->elements, MOST_ELEMENTS);
    coffer_status status = coffer_npy_header(&header, &size, COFFER_DTYPE_F32, dims, 2, err);
    if (status)
        return status;
    coffer__buffer_append(out, header, size);
    coffer_free(header);
    void *values = coffer__buffer_extend(out, (size_t)tensor->elements * sizeof(float));
    if (!values)
        return coffer__fail_no_memory(err, tensor->elements * sizeof(float));
    return coffer_tensors_read_as(values, COFFER_DTYPE_F32, set, index, 0, tensor->elements, err);
}

static int draw(const cli_args *args, const coffer_tensors *set)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer file = COFFER__BUFFER_INIT;
    coffer_source *matrix = NULL;
    const char *name = cli_value(args, "tensor");
    size_t index = name ? coffer_tensors_find(set, name) : find_largest(set);
    if (index == COFFER_INDEX_NONE)
        return name ? cli_usage(args, "the model has no tensor '%s'; 'coffer ls' lists them", name)
                    : cli_usage(args, "the model has no tensor with elements");
    coffer_status status = put_matrix(&file, set, index, &err);
    if (!status)
        status = coffer_source_from_memory(&matrix, file.data, file.len, &err);
    int result = status ? cli_fail(cli_operand(args, 0), &err, NULL)
                        : pycauset_draw_heat(args, matrix, coffer_tensors_at(set, index)->name);
    coffer_source_close(matrix);
    coffer__buffer_free(&file);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_tensors *set = NULL;
    if (tensors_open(&set, cli_operand(args, 0), src, &err))
        return cli_fail(cli_operand(args, 0), &err, NULL);
    int result = draw(args, set);
    coffer_tensors_close(set);
    return result;
}

const cli_format_verb cli_tensors_heatmap = {
    .format = "mcf, safetensors, gguf, npz",
    .verb = "heatmap",
    .options = options,
    .examples = "  coffer heatmap model.mcf -t lm_head.weight -o head.png    # the values of a tensor\n",
    .run = run,
};
