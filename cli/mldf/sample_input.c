#include "mldf/sample_input.h"

#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "io/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

void sample_input_init(sample_input *input)
{
    *input = (sample_input){ .opts = COFFER_MLDF_PACK_OPTS_INIT };
    input->taker.opts = &input->opts;
    input->taker.pixels = input->taker.scaled = (coffer_pixels)COFFER_PIXELS_INIT;
    coffer__buffer_init(&input->value.own, SIZE_MAX);
}

void sample_input_free(sample_input *input)
{
    coffer__dataset_taker_free(&input->taker);
    coffer__buffer_free(&input->value.own);
}

static void clear(coffer__dataset_value *value)
{
    coffer__buffer own = value->own;
    own.len = 0;
    own.failed = false;
    *value = (coffer__dataset_value){ .own = own };
}

static coffer_status put(sample_input *input, coffer_mldf_writer *writer, size_t index, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_writer_field_at(writer, index);
    coffer_status status = COFFER_OK;
    input->opts.raw = field->type == COFFER_MLDF_IMAGE_RAW;
    if (!input->taker.decoder)
        status = coffer_image_decoder_new(&input->taker.decoder, NULL, err);
    if (!status)
        status = coffer__dataset_take(&input->value, field, &input->taker, err);
    return status ? status : coffer__dataset_put(writer, index, &input->value, err);
}

/* A value is a payload of the format, so that a file of 4 GiB is too large whatever it is. */
static coffer_status read_file(coffer__buffer *out, const char *path, coffer_error *err)
{
    enum { PIECE = 1 << 18 };
    int fd;
    size_t got = 1;
    coffer_status status = coffer__file_open(&fd, path, O_RDONLY, 0, err);
    if (status)
        return status;
    while (!status && got > 0) {
        uint8_t *room = coffer__buffer_extend(out, PIECE);
        if (!room || out->len > UINT32_MAX)
            status = room ? coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                         "%s: more than 4 GiB, the most that a value can have", path)
                          : coffer__fail_no_memory(err, PIECE);
        else
            status = coffer__file_read_some(fd, room, PIECE, &got, NULL, err);
        out->len -= status ? 0 : PIECE - got;
    }
    coffer__file_close(fd);
    return status;
}

coffer_status sample_input_text(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                const char *text, coffer_error *err)
{
    const coffer_mldf_field *about = coffer_mldf_writer_field_at(writer, field);
    bool is_file = text[0] == '@' && text[1] != '@';
    coffer_status status = COFFER_OK;
    clear(&input->value);
    if (!is_file && (about->kind == COFFER_MLDF_ENTRY_IMAGE || about->kind == COFFER_MLDF_ENTRY_AUDIO ||
                     coffer__dataset_is_array(about->type)))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field \"%s\" takes its values from files: write @FILE", about->name);
    if (is_file)
        status = read_file(&input->value.own, text + 1, err);
    else
        coffer__buffer_append(&input->value.own, text + (text[0] == '@'), strlen(text) - (text[0] == '@'));
    if (status)
        return status;
    input->value.form = COFFER__DATASET_FILE;
    input->value.bytes = input->value.own.data ? input->value.own.data : (const uint8_t *)"";
    input->value.size = input->value.own.len;
    return put(input, writer, field, err);
}

coffer_status sample_input_plain(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                 const char *text, size_t len, coffer_error *err)
{
    clear(&input->value);
    if (!coffer__buffer_append(&input->value.own, text, len))
        return coffer__fail_no_memory(err, len);
    input->value.form = COFFER__DATASET_FILE;
    input->value.bytes = len ? input->value.own.data : (const uint8_t *)"";
    input->value.size = len;
    return put(input, writer, field, err);
}

coffer_status sample_input_json(sample_input *input, coffer_mldf_writer *writer, size_t field,
                                const coffer__json_value *value, coffer_error *err)
{
    const coffer_mldf_field *about = coffer_mldf_writer_field_at(writer, field);
    coffer__json_writer json;
    if (value->kind == COFFER__JSON_NULL)
        return COFFER_OK;
    clear(&input->value);
    coffer__json_writer_init(&json, &input->value.own, 0);
    if (value->kind == COFFER__JSON_STRING && about->type != COFFER_MLDF_JSON)
        coffer__buffer_append(&input->value.own, value->as.string, value->string_len);
    else
        coffer__json_write_value(&json, value);
    if (input->value.own.failed)
        return coffer__fail_no_memory(err, input->value.own.len);
    input->value.form = COFFER__DATASET_FILE;
    input->value.bytes = input->value.own.data;
    input->value.size = input->value.own.len;
    return put(input, writer, field, err);
}
