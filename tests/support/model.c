#include "support/model.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

const coffer_mcf_writer_opts model_overwrite = {
    .struct_size = sizeof model_overwrite,
    .overwrite = true,
};

coffer_status model_add(coffer_mcf_writer *writer, const char *name, coffer_dtype dtype, uint32_t rank,
                        const uint64_t *dims, const void *bytes, coffer_error *err)
{
    coffer_mcf_new_tensor tensor = {
        sizeof(coffer_mcf_new_tensor), dtype, name, strlen(name), rank, dims, NULL
    };
    uint64_t size = 0;
    coffer_status status;
    if ((status = coffer_mcf_payload_size(&size, dtype, rank, dims, false, err)) ||
        (status = coffer_mcf_writer_begin_tensor(writer, &tensor, err)) ||
        (status = coffer_mcf_writer_write(writer, bytes, (size_t)size, err)))
        return status;
    return coffer_mcf_writer_end_tensor(writer, err);
}

coffer_status model_create(const char *path, const coffer_mcf_writer_opts *opts, coffer_error *err)
{
    float numbers[6] = { 0, 1, 2, 3, 4, 5 };
    static const uint8_t bytes[4] = { 1, 2, 3, 4 };
    static const char config[] = "{\"model_type\": \"llama\"}";
    const uint64_t matrix[2] = { 2, 3 }, row[1] = { 4 };
    const coffer_mcf_kv kvs[2] = { { sizeof(coffer_mcf_kv), COFFER_MCF_KV_STRING, "z.text", 0, 0, "x", 1 },
                                   { sizeof(coffer_mcf_kv), COFFER_MCF_KV_U32, "a.number", 7, 0, NULL, 0 } };
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_mcf_writer *writer = NULL;
    coffer_status status = coffer_mcf_writer_create(&writer, path, opts ? opts : &model_overwrite, err);
    if (status)
        return status;
    coffer__swap_numbers(numbers, sizeof numbers[0], 6);
    info.arch = 1;
    info.model_name = "small";
    info.kvs = kvs;
    info.kv_count = 2;
    if ((status = coffer_mcf_writer_set_model_info(writer, &info, err)) ||
        (status =
             coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, config, sizeof config - 1, err)) ||
        (status = model_add(writer, "b", COFFER_DTYPE_U8, 1, row, bytes, err)) ||
        (status = model_add(writer, "c", COFFER_DTYPE_F32, 2, matrix, numbers, err)) ||
        (status = model_add(writer, "a", COFFER_DTYPE_F32, 2, matrix, numbers, err))) {
        coffer_mcf_writer_discard(writer);
        return status;
    }
    return coffer_mcf_writer_commit(writer, err);
}

coffer_source *model_source(const char *path)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    if (coffer_source_open(&src, path, NULL, &err) != COFFER_OK)
        fail_msg("%s: %s", path, err.text);
    return src;
}

coffer_source *model_source_of(const void *bytes, size_t len)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    return src;
}

coffer_mcf *model_open(coffer_source *src)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mcf *model = NULL;
    if (coffer_mcf_open(&model, src, NULL, &err) != COFFER_OK)
        fail_msg("%s: %s", coffer_source_name(src), err.text);
    return model;
}

void model_assert_clean(const char *path)
{
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    coffer_report *report = model_check(src, true);
    if (coffer_report_count(report) > 0)
        fail_msg("%s: %s", path, coffer_report_at(report, 0)->text);
    coffer_report_free(report);
    coffer_mcf_close(model);
    coffer_source_close(src);
}
