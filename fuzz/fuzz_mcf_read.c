/* Every function that reads accepts any file. */
#include "mcf_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ELEMENTS = 1 << 16 };

static uint64_t seen; /* keeps what is read from being optimized away */

static void walk_sections(const coffer_mcf *model)
{
    uint32_t needs[2] = { COFFER_MCF_TENSOR_INDEX, COFFER_MCF_VOCAB };
    const coffer_mcf_model_info *info = NULL;
    for (size_t i = 0; i < coffer_mcf_section_count(model); i++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        coffer_mcf_section section = *coffer_mcf_section_at(model, i);
        const coffer_mcf_section *first = coffer_mcf_find_section(model, section.type);
        MUST(first != NULL);
        if (coffer_mcf_read_section(&bytes, &len, model, section.type, NULL) == COFFER_OK)
            MUST(len == first->size && bytes[len] == 0);
        coffer_free(bytes);
    }
    seen += coffer_mcf_require(model, needs, 2, NULL) == COFFER_OK;
    if (coffer_mcf_get_model_info(&info, model, NULL) == COFFER_OK) {
        seen += info->model_name ? strlen(info->model_name) : 0;
        for (size_t i = 0; i < info->kv_count; i++)
            seen += strlen(info->kvs[i].key) + strlen(info->kvs[i].text);
    }
}

static void walk_tensor(const coffer_mcf *model, size_t i)
{
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
    const uint8_t *view = coffer_mcf_view(model, i);
    uint64_t rows = coffer_mcf_row_count(&tensor), row = coffer_mcf_row_elements(&tensor);
    uint8_t byte;
    for (uint32_t d = 0; d < tensor.rank && d < 8; d++)
        seen += tensor.dims[d];
    if (view && tensor.size > 0) {
        seen += view[0] + view[tensor.size - 1];
        coffer_status status = coffer_mcf_read(&byte, model, i, tensor.size - 1, 1, NULL);
        MUST(status == COFFER_OK || status == COFFER_E_BAD_CHECKSUM);
        MUST(status || byte == view[tensor.size - 1]);
    }
    MUST(coffer_mcf_read(&byte, model, i, tensor.size, 1, NULL) != COFFER_OK);
    seen += coffer_mcf_quant_at(model, i) != NULL;
    if (rows > 0 && row > 0 && row <= MOST_ELEMENTS) {
        float *values = malloc(row * sizeof *values);
        if (values && coffer_mcf_read_rows_f32(values, model, i, rows - 1, 1, NULL) == COFFER_OK)
            seen += values[0] == values[row - 1];
        free(values);
    }
}

static void walk_tensors(const coffer_mcf *model)
{
    size_t count = coffer_mcf_tensor_count(model);
    uint8_t hash[32];
    for (size_t i = 0; i < count; i++) {
        coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, i);
        size_t found = coffer_mcf_find_tensor(model, tensor.name, tensor.name_len);
        MUST(found < count);
        coffer_mcf_tensor same = *coffer_mcf_tensor_at(model, found);
        MUST(same.name_len == tensor.name_len && memcmp(same.name, tensor.name, tensor.name_len) == 0);
        walk_tensor(model, i);
    }
    if (coffer_mcf_content_hash(
            hash, model, &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 },
            NULL) == COFFER_OK)
        seen += hash[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mcf *model = NULL;
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.lenient = size && data[size - 1] & 4;
    opts.verify = size && data[size - 1] & 8;
    opts.limits = &input.limits;
    if (coffer_mcf_open(&model, input.source, &opts, NULL) == COFFER_OK) {
        walk_sections(model);
        walk_tensors(model);
    }
    coffer_mcf_close(model);
    fuzz_input_close(&input);
    return 0;
}
