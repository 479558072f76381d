/* Type, layout and metadata of a matrix that is imported. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/matrices/pycauset_input.h"
#include "convert/matrices/pycauset_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef enum wish {
    WISH_DENSE,
    WISH_VECTOR,
    WISH_TRIANGULAR,
    WISH_SYMMETRIC,
    WISH_ANTISYMMETRIC,
    WISH_CAUSAL,
    WISH_DIAGONAL,
    WISH_COUNT
} wish;

static const char *const wish_names[] = { "dense",         "vector", "triangular", "symmetric",
                                          "antisymmetric", "causal", "diagonal" };

static coffer_status choose_wish(wish *out, const coffer__pycauset_input *input,
                                 const coffer__convert_job *job, coffer_error *err)
{
    const char *name = coffer__job_setting(job, "type");
    if (!name) {
        *out = input->half == COFFER__PYCAUSET_SYMMETRIC       ? WISH_SYMMETRIC
               : input->half == COFFER__PYCAUSET_ANTISYMMETRIC ? WISH_ANTISYMMETRIC
               : input->is_vector                              ? WISH_VECTOR
                                                               : WISH_DENSE;
        return COFFER_OK;
    }
    for (unsigned i = 0; i < WISH_COUNT; i++) {
        if (strcmp(wish_names[i], name) == 0) {
            *out = (wish)i;
            return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "type \"%s\" must be one of dense, vector, triangular, symmetric, "
                        "antisymmetric, causal, diagonal",
                        name);
}

static coffer_pycauset_type type_of(wish wanted, coffer_dtype dtype)
{
    bool integer = coffer_dtype_is_integer(dtype);
    switch (wanted) {
    case WISH_VECTOR:
        return COFFER_PYCAUSET_VECTOR;
    case WISH_TRIANGULAR:
        return integer ? COFFER_PYCAUSET_TRIANGULAR_INTEGER : COFFER_PYCAUSET_TRIANGULAR_FLOAT;
    case WISH_SYMMETRIC:
        return COFFER_PYCAUSET_SYMMETRIC;
    case WISH_ANTISYMMETRIC:
        return COFFER_PYCAUSET_ANTISYMMETRIC;
    case WISH_CAUSAL:
        return COFFER_PYCAUSET_CAUSAL;
    case WISH_DIAGONAL:
        return COFFER_PYCAUSET_DIAGONAL;
    default:
        return integer ? COFFER_PYCAUSET_INTEGER : COFFER_PYCAUSET_DENSE_FLOAT;
    }
}

static coffer_status check_wish(wish wanted, const coffer__pycauset_input *input, coffer_dtype dtype,
                                const coffer__convert_job *job, coffer_error *err)
{
    if (input->rows == 0 || input->cols == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 ": a matrix without an element", input->rows,
                            input->cols);
    if (wanted == WISH_VECTOR && input->rows != 1 && input->cols != 1)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 " is not a vector; use --type dense", input->rows,
                            input->cols);
    if (wanted > WISH_VECTOR && input->rows != input->cols)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " × %" PRIu64 ": a %s matrix is square; use --type dense", input->rows,
                            input->cols, wish_names[wanted]);
    if (wanted == WISH_CAUSAL && dtype != COFFER_DTYPE_BIT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a causal matrix consists of bits; use --type triangular --dtype %s",
                            coffer_dtype_name(dtype));
    if (wanted == WISH_ANTISYMMETRIC && !coffer__dtype_has_negatives(dtype))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s has no negative numbers for an antisymmetric matrix; use --dtype i64",
                            coffer_dtype_name(dtype));
    if (coffer__job_has(job, "diagonal") && wanted != WISH_TRIANGULAR)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "--diagonal requires --type triangular");
    return COFFER_OK;
}

void coffer__pycauset_info_of_shape(coffer_pycauset_info *out, const coffer_pycauset_shape *shape)
{
    *out = (coffer_pycauset_info){ .rows = shape->rows,
                                   .cols = shape->cols,
                                   .type = shape->type,
                                   .dtype = shape->dtype,
                                   .has_diagonal = shape->has_diagonal,
                                   .scalar_real = 1 };
}

coffer_status coffer__pycauset_choose_shape(coffer_pycauset_shape *out, const coffer__pycauset_input *input,
                                            const coffer__convert_job *job, coffer_error *err)
{
    wish wanted = WISH_DENSE;
    coffer_dtype dtype = input->dtype == COFFER_DTYPE_BOOL ? COFFER_DTYPE_BIT : input->dtype;
    coffer_status status = choose_wish(&wanted, input, job, err);
    if (!status && wanted == WISH_CAUSAL)
        dtype = COFFER_DTYPE_BIT;
    if (!status)
        status = coffer__pycauset_dtype_setting(&dtype, job, err);
    if (!status)
        status = check_wish(wanted, input, dtype, job, err);
    if (status)
        return status;
    out->type = type_of(wanted, dtype);
    out->dtype = dtype;
    out->has_diagonal = coffer__job_has(job, "diagonal");
    coffer_pycauset_info info;
    coffer__pycauset_info_of_shape(&info, out);
    if (coffer__job_has(job, "portable") && coffer_pycauset_misread(&info)) {
        if (job->notes)
            coffer__report_add(job->notes, COFFER_E_INCONSISTENT, COFFER_NOTE, COFFER_OFFSET_NONE,
                               "stored as a dense matrix: %s", coffer_pycauset_misread(&info));
        wanted = WISH_DENSE;
        out->type = type_of(wanted, dtype);
        out->has_diagonal = false;
    }
    out->rows = wanted == WISH_VECTOR ? input->rows * input->cols : input->rows;
    out->cols = wanted == WISH_VECTOR ? 1 : input->cols;
    return COFFER_OK;
}

/* An element as two words, zeros without a sign and NaNs all alike. Types without a sign are never negated.
 */
typedef struct words {
    uint64_t part[2];
} words;

static uint64_t real_bits(double value, bool negate)
{
    uint64_t bits;
    if (isnan(value))
        return UINT64_MAX;
    value = negate ? 0 - value : value;
    if (value == 0)
        return 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double load_f32(const uint8_t *at)
{
    uint32_t bits = coffer__load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double load_f64(const uint8_t *at)
{
    uint64_t bits = coffer__load_u64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Halves by their bits: the sign is one of them. */
static uint64_t half_bits(uint16_t bits, bool negate)
{
    if ((bits & 0x7fff) == 0)
        return 0;
    if ((bits & 0x7fff) > 0x7c00)
        return UINT64_MAX;
    return negate ? bits ^ 0x8000u : bits;
}

static uint64_t integer_bits(const uint8_t *at, size_t size, bool negate)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    bits = COFFER__LE64(bits);
    if (negate)
        bits = 0 - bits;
    return size == 8 ? bits : bits & ((UINT64_C(1) << 8 * size) - 1);
}

static words load(const uint8_t *at, coffer_dtype dtype, bool negate)
{
    switch (dtype) {
    case COFFER_DTYPE_F16:
        return (words){ { half_bits(coffer__load_u16(at), negate), 0 } };
    case COFFER_DTYPE_C32:
        return (words){ { half_bits(coffer__load_u16(at), negate),
                          half_bits(coffer__load_u16(at + 2), negate) } };
    case COFFER_DTYPE_F32:
        return (words){ { real_bits(load_f32(at), negate), 0 } };
    case COFFER_DTYPE_C64:
        return (words){ { real_bits(load_f32(at), negate), real_bits(load_f32(at + 4), negate) } };
    case COFFER_DTYPE_F64:
        return (words){ { real_bits(load_f64(at), negate), 0 } };
    case COFFER_DTYPE_C128:
        return (words){ { real_bits(load_f64(at), negate), real_bits(load_f64(at + 8), negate) } };
    default:
        return (words){ { integer_bits(at, coffer_dtype_size(dtype), negate), 0 } };
    }
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t fingerprint(uint64_t place, words element)
{
    return mix(mix(mix(place) + element.part[0]) + element.part[1]);
}

void coffer__mirror_check_add(coffer__mirror_check *check, const void *rows, coffer_dtype dtype,
                              uint64_t first_row, uint64_t count, uint64_t cols)
{
    const uint8_t *at = rows;
    size_t size = coffer_dtype_size(dtype);
    for (uint64_t row = first_row; row < first_row + count; row++) {
        for (uint64_t col = 0; col < cols; col++, at += size) {
            if (col > row)
                check->upper += fingerprint(row * cols + col, load(at, dtype, false));
            else if (col < row)
                check->lower += fingerprint(col * cols + row, load(at, dtype, check->negative));
        }
    }
}

bool coffer__mirror_check_holds(const coffer__mirror_check *check)
{
    return check->upper == check->lower;
}

/* Metadata out of a JSON file, as the conversions from pycauset write it. */

/* Keys that describe the payload of the other file; the new file has its own. */
static bool is_about_payload(const coffer__json_value *value)
{
    static const char *const keys[] = { "rows",
                                        "cols",
                                        "matrix_type",
                                        "data_type",
                                        "payload_layout",
                                        "payload_uuid",
                                        "seed",
                                        "view",
                                        "cached",
                                        "block_manifest",
                                        "object_type",
                                        "n",
                                        "payload_checksums",
                                        "commit",
                                        "element_changes" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i]) == value->key_len && memcmp(keys[i], value->key, value->key_len) == 0)
            return true;
    }
    return false;
}

/* A path of one key: quotes dots, which would separate keys. */
static void put_path(coffer__buffer *out, const char *key, size_t len)
{
    out->len = 0;
    for (size_t i = 0; i < len; i++) {
        if (key[i] == '.' || key[i] == '\\')
            coffer__buffer_append(out, "\\", 1);
        coffer__buffer_append(out, &key[i], 1);
    }
}

static coffer_status set_keys(coffer_pycauset_changes *changes, const coffer__json_value *root,
                              coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT, text = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (const coffer__json_value *value = coffer__json_first(root); value && !status;
         value = coffer__json_next(root, value)) {
        coffer__json_writer writer;
        if (is_about_payload(value))
            continue;
        text.len = 0;
        put_path(&path, value->key, value->key_len);
        coffer__json_writer_init(&writer, &text, 0);
        coffer__json_write_value(&writer, value);
        const char *name = coffer__buffer_text(&path);
        if (path.failed || text.failed)
            status = coffer__fail_no_memory(err, text.len);
        else
            status = coffer_pycauset_changes_set_json(changes, name, (const char *)text.data, text.len, err);
    }
    coffer__buffer_free(&path);
    coffer__buffer_free(&text);
    return status;
}

coffer_status coffer__pycauset_import_metadata(coffer_pycauset_changes *changes,
                                               const coffer__convert_job *job, coffer_error *err)
{
    char *text = NULL;
    size_t len;
    coffer__json *json = NULL;
    const char *path = coffer__job_setting(job, "metadata");
    if (!path)
        return COFFER_OK;
    coffer_status status = coffer__job_json_file(&text, &len, job, "metadata", err);
    if (status)
        return status;
    status = coffer__json_parse(&json, text, len, 0, &job->limits, err);
    if (!status && coffer__json_root(json)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail(err, COFFER_E_BAD_JSON, 0, "metadata is an object");
    if (!status)
        status = set_keys(changes, coffer__json_root(json), err);
    coffer__fail_other(err, status, path);
    coffer__json_free(json);
    coffer__free(text);
    return status;
}
