/* Training a zstd dictionary on what a field holds. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "coffer/mldf_select.h"
#include "formats/mldf/mldf_private.h"

#include <zdict.h>

/* Training works best with many values, a hundred times the size of the dictionary in all. */
#define VALUES_MAX ((uint64_t)100000)
#define BYTES_PER_DICTIONARY_BYTE 100
#define SMALLEST 256
#define SIZE_DEFAULT ((size_t)110 << 10) /* as the zstd command */

COFFER__INIT_FUNCTION(coffer_mldf_train_opts, COFFER_MLDF_TRAIN_OPTS_INIT)

typedef struct lesson {
    coffer__buffer bytes; /* values, one after the other */
    size_t *sizes;
    unsigned count;
} lesson;

static coffer_status read_lesson(lesson *values, const coffer_mldf *set, size_t field, size_t most,
                                 coffer_error *err)
{
    uint64_t samples = set->header.samples, wanted = samples < VALUES_MAX ? samples : VALUES_MAX;
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_status status = COFFER_OK;
    values->sizes = coffer__alloc_array(wanted ? (size_t)wanted : 1, sizeof *values->sizes);
    if (!values->sizes)
        return coffer__fail_no_memory(err, wanted * sizeof *values->sizes);
    for (uint64_t i = 0; i < wanted && values->bytes.len < most && !status; i++) {
        /* Evenly over the set, and no sample twice. */
        uint64_t sample = samples / wanted * i + samples % wanted * i / wanted;
        status = coffer_mldf_read(&value, NULL, set, sample, field, err);
        if (status)
            break;
        if (value.size == 0 || value.size > most - values->bytes.len)
            continue;
        if (!coffer__buffer_append(&values->bytes, value.data, value.size))
            status = coffer__fail_no_memory(err, value.size);
        values->sizes[values->count++] = value.size;
    }
    coffer_free(value.data);
    return status;
}

coffer_status coffer_mldf_train_dictionary(coffer_bytes *out, const coffer_mldf *set, size_t field,
                                           const coffer_mldf_train_opts *opts, coffer_error *err)
{
    coffer_mldf_train_opts options = COFFER_MLDF_TRAIN_OPTS_INIT;
    lesson values = { .bytes = COFFER__BUFFER_INIT };
    size_t most, trained;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__mldf_check_index(set, 0, field, err);
    if (status)
        return status;
    size_t size = options.size ? options.size : SIZE_DEFAULT;
    if (!coffer__mldf_has_payload(set->schema.fields[field].kind) || size < SMALLEST || size > UINT32_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a dictionary of %zu bytes for the field %s cannot be trained", size,
                            set->schema.fields[field].name);
    if (!coffer__mul_size(&most, size, BYTES_PER_DICTIONARY_BYTE) || most > set->limits.memory_bytes)
        most = (size_t)set->limits.memory_bytes;
    status = read_lesson(&values, set, field, most, err);
    if (!status)
        status = coffer__mldf_bytes_reserve(out, size, err);
    if (status)
        goto out;
    trained = ZDICT_trainFromBuffer(out->data, size, values.bytes.data, values.sizes, values.count);
    if (ZDICT_isError(trained))
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "field %s: %u values with %zu bytes are too few, or too different, to train a "
                              "dictionary (%s)",
                              set->schema.fields[field].name, values.count, values.bytes.len,
                              ZDICT_getErrorName(trained));
    else
        out->size = trained;
out:
    coffer__buffer_free(&values.bytes);
    coffer__free(values.sizes);
    return status;
}
