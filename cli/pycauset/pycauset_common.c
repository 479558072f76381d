/* Shared by the verbs for matrices. */
#include "pycauset_verbs.h"

#include <math.h>

int pycauset_with_matrix(const cli_args *args, coffer_source *src, uint64_t generation,
                         int (*work)(const cli_args *args, const coffer_pycauset *matrix))
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset *matrix = NULL;
    opts.generation = generation;
    coffer_status status = coffer_pycauset_open(&matrix, src, &opts, &err);
    if (status)
        return cli_fail(cli_operand(args, 0), &err,
                        status == COFFER_E_NOT_FOUND ? "'coffer log' lists the generations" : NULL);
    int result = work(args, matrix);
    coffer_pycauset_close(matrix);
    return result;
}

const char *pycauset_element_type(const coffer_pycauset_info *info)
{
    return info->dtype == COFFER_DTYPE_NONE ? "mixed" : coffer_dtype_name(info->dtype);
}

/* ---- Metadata as text and JSON ---- */

static void put_hex(coffer__buffer *out, const coffer_pycauset_value *value)
{
    static const char digits[] = "0123456789abcdef";
    size_t len;
    const char *bytes = coffer_pycauset_value_text(value, &len);
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)bytes[i];
        coffer__buffer_append(out, (char[2]){ digits[byte >> 4], digits[byte & 15] }, 2);
    }
}

static void put_bytes_json(coffer__json_writer *json, const coffer_pycauset_value *value)
{
    coffer__buffer hex = COFFER__BUFFER_INIT;
    put_hex(&hex, value);
    json->out->failed |= hex.failed;
    coffer__json_string_len(json, coffer__buffer_text(&hex), hex.len);
    coffer__buffer_free(&hex);
}

static void put_children(coffer__json_writer *json, const coffer_pycauset_value *value, bool is_map)
{
    for (size_t i = 0; i < coffer_pycauset_value_count(value); i++) {
        size_t len;
        if (is_map) {
            const char *key = coffer_pycauset_value_key_at(value, i, &len);
            coffer__json_key_len(json, key, len);
        }
        pycauset_put_json(json, coffer_pycauset_value_at(value, i));
    }
}

/* Recurses as deep as the format lets values nest. */
void pycauset_put_json(coffer__json_writer *json, const coffer_pycauset_value *value)
{
    size_t len;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        coffer__json_write_bool(json, coffer_pycauset_value_bool(value));
        break;
    case COFFER_PYCAUSET_I64:
        coffer__json_write_i64(json, coffer_pycauset_value_i64(value));
        break;
    case COFFER_PYCAUSET_U64:
        coffer__json_write_u64(json, coffer_pycauset_value_u64(value));
        break;
    case COFFER_PYCAUSET_F64:
        coffer__json_write_f64(json, coffer_pycauset_value_f64(value));
        break;
    case COFFER_PYCAUSET_STRING: {
        const char *text = coffer_pycauset_value_text(value, &len);
        coffer__json_string_len(json, text, len);
        break;
    }
    case COFFER_PYCAUSET_BYTES:
        put_bytes_json(json, value);
        break;
    case COFFER_PYCAUSET_ARRAY:
        coffer__json_open_array(json);
        put_children(json, value, false);
        coffer__json_close_array(json);
        break;
    case COFFER_PYCAUSET_MAP:
        coffer__json_open_object(json);
        put_children(json, value, true);
        coffer__json_close_object(json);
        break;
    }
}

void pycauset_put_text(coffer__buffer *out, const coffer_pycauset_value *value)
{
    coffer_pycauset_kind kind = coffer_pycauset_value_kind(value);
    double number = coffer_pycauset_value_f64(value);
    coffer__json_writer json;
    size_t len;
    if (kind == COFFER_PYCAUSET_STRING) {
        const char *text = coffer_pycauset_value_text(value, &len);
        coffer__buffer_append(out, text, len);
    } else if (kind == COFFER_PYCAUSET_BYTES) {
        put_hex(out, value);
    } else if (kind == COFFER_PYCAUSET_F64 && !isfinite(number)) {
        coffer__buffer_printf(out, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    } else {
        coffer__json_writer_init(&json, out, 2);
        pycauset_put_json(&json, value);
    }
    coffer__buffer_append(out, "\n", 1);
}
