#include "mldf/sample_input.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

/* A value is a payload of the format, so that a file of 4 GiB is too large whatever it is. */
static coffer_status set_from_file(coffer_mldf_value_input *input, coffer_mldf_writer *writer, size_t field,
                                   const char *path, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    uint8_t *bytes = size <= UINT32_MAX ? coffer__malloc((size_t)size + 1) : NULL;
    if (size > UINT32_MAX)
        status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "%s: more than 4 GiB, the most that a value can have", path);
    else if (!bytes)
        status = coffer__fail_no_memory(err, size);
    if (!status)
        status = coffer_source_read_at(bytes, src, 0, (size_t)size, err);
    if (!status)
        status = coffer_mldf_value_input_set(input, writer, field, bytes, (size_t)size, err);
    coffer__free(bytes);
    coffer_source_close(src);
    return status;
}

static bool is_array(uint16_t type)
{
    return type == COFFER_MLDF_NDARRAY || type == COFFER_MLDF_SPECTROGRAM ||
           type == COFFER_MLDF_CODEC_TOKENS || type == COFFER_MLDF_VIDEO_FRAMES ||
           type == COFFER_MLDF_OPTICAL_FLOW || type == COFFER_MLDF_TEXT_PACKED;
}

coffer_status sample_input_text(coffer_mldf_value_input *input, coffer_mldf_writer *writer, size_t field,
                                const char *text, coffer_error *err)
{
    const coffer_mldf_field *about = coffer_mldf_writer_field_at(writer, field);
    if (text[0] == '@' && text[1] != '@')
        return set_from_file(input, writer, field, text + 1, err);
    if (about->kind == COFFER_MLDF_ENTRY_IMAGE || about->kind == COFFER_MLDF_ENTRY_AUDIO ||
        is_array(about->type))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field \"%s\" takes its values from files: write @FILE", about->name);
    text += text[0] == '@';
    return coffer_mldf_value_input_set(input, writer, field, text, strlen(text), err);
}
