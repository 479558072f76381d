/* A training set as tf.train.Example records. Whole numbers become int64 lists, real ones float lists (32
 * bits is all they have), everything else bytes; arrays of more than one dimension have "NAME/shape" beside
 * them. */
#include "base/bytes.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"
#include "convert/datasets/mldf_export.h"
#include "outside/records/tfrecord.h"

#include <inttypes.h>
#include <string.h>

#define PROGRESS_STEP 256

typedef struct record_export {
    coffer__mldf_export common;
    coffer__buffer features, example, frame, numbers, key;
} record_export;

static coffer_status put_shape(record_export *export, const char *name, coffer_error *err)
{
    int64_t dims[COFFER_MLDF_MAX_DIMS];
    for (uint32_t i = 0; i < export->common.ndim; i++)
        dims[i] = (int64_t) export->common.dims[i];
    export->key.len = 0;
    coffer__buffer_printf(&export->key, "%s/shape", name);
    if (export->key.failed)
        return coffer__fail_no_memory(err, strlen(name));
    coffer__tf_put_int64s(&export->features, coffer__buffer_text(&export->key), dims, export->common.ndim);
    return COFFER_OK;
}

static coffer_status put_array(record_export *export, const char *name, coffer_error *err)
{
    const coffer__mldf_export *common = &export->common;
    bool real = coffer_dtype_is_float(common->dtype);
    coffer_dtype to = real ? COFFER_DTYPE_F32 : COFFER_DTYPE_I64;
    size_t width = coffer_dtype_size(common->dtype);
    if (width == 0 || coffer_dtype_is_complex(common->dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "field \"%s\": TFRecord has no numbers of type %s", name,
                            coffer_dtype_name(common->dtype));
    size_t count = common->bytes.size / width;
    export->numbers.len = 0;
    void *numbers = coffer__buffer_extend(&export->numbers, (count ? count : 1) * coffer_dtype_size(to));
    if (!numbers)
        return coffer__fail_no_memory(err, count * coffer_dtype_size(to));
    coffer__elements_convert(numbers, to, common->bytes.data, common->dtype, count);
    if (real)
        coffer__tf_put_floats(&export->features, name, numbers, count);
    else
        coffer__tf_put_int64s(&export->features, name, numbers, count);
    return common->ndim == 1 ? COFFER_OK : put_shape(export, name, err);
}

static coffer_status put_value(record_export *export, size_t index, coffer_error *err)
{
    const coffer__mldf_export *common = &export->common;
    const coffer_mldf_field *field = coffer__mldf_export_field(common, index);
    float real = (float)common->entry.f64;
    switch (field->kind) {
    case COFFER_MLDF_ENTRY_INT:
        coffer__tf_put_int64s(&export->features, field->name, &common->entry.i64, 1);
        return COFFER_OK;
    case COFFER_MLDF_ENTRY_FLOAT:
        coffer__tf_put_floats(&export->features, field->name, &real, 1);
        return COFFER_OK;
    default:
        break;
    }
    if (common->has_dims && field->kind != COFFER_MLDF_ENTRY_IMAGE)
        return put_array(export, field->name, err);
    coffer__tf_put_bytes(&export->features, field->name, common->bytes.data, common->bytes.size);
    return common->has_dims ? put_shape(export, field->name, err) : COFFER_OK;
}

static coffer_status put_sample(record_export *export, uint64_t sample, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    export->features.len = export->example.len = export->frame.len = 0;
    for (size_t i = 0; !status && i < export->common.field_count; i++) {
        status = coffer__mldf_export_read(&export->common, sample, i, err);
        if (!status && export->common.entry.present)
            status = put_value(export, i, err);
    }
    if (status)
        return status;
    coffer__tf_put_example(&export->example, &export->features);
    coffer__tfrecord_put_front(&export->frame, export->example.len);
    coffer__buffer_append(&export->frame, export->example.data, export->example.len);
    coffer__tfrecord_put_back(&export->frame, export->example.data, export->example.len);
    if (export->frame.failed || export->example.failed)
        return coffer__fail_no_memory(err, export->example.len);
    return coffer__sink_write(export->common.sink, export->frame.data, export->frame.len, err);
}

coffer_status coffer__mldf_to_tfrecord(const coffer__convert_job *job, coffer_error *err)
{
    record_export export = { .features = COFFER__BUFFER_INIT,
                             .example = COFFER__BUFFER_INIT,
                             .frame = COFFER__BUFFER_INIT,
                             .numbers = COFFER__BUFFER_INIT,
                             .key = COFFER__BUFFER_INIT };
    coffer__mldf_export *common = &export.common;
    coffer_status status = coffer__mldf_export_open(common, job, err);
    if (!status)
        status = coffer__mldf_export_create(common, err);
    for (uint64_t i = common->begin; !status && i < common->end; i++) {
        status = put_sample(&export, coffer__mldf_export_sample(common, i), err);
        if (!status && (i - common->begin) % PROGRESS_STEP == 0)
            status = coffer__job_progress(job, i - common->begin, common->end - common->begin, err);
    }
    if (!status)
        status = coffer__mldf_export_commit(common, err);
    coffer__mldf_export_close(common);
    coffer__buffer_free(&export.features);
    coffer__buffer_free(&export.example);
    coffer__buffer_free(&export.frame);
    coffer__buffer_free(&export.numbers);
    coffer__buffer_free(&export.key);
    return status;
}
