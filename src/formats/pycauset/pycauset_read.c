/* Opening a matrix. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_pycauset_open_opts, COFFER_PYCAUSET_OPEN_OPTS_INIT)

static coffer_status check_payload(const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    if (info->type == COFFER_PYCAUSET_UNKNOWN || info->payload_needed <= info->payload_length)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, matrix->metadata_offset,
                        "%" PRIu64 " x %" PRIu64 " of %s need a payload of %" PRIu64
                        " bytes, it has %" PRIu64,
                        info->rows, info->cols, coffer_pycauset_dtype_name(info->dtype), info->payload_needed,
                        info->payload_length);
}

static coffer_status read_state(coffer_pycauset *matrix, coffer_error *err)
{
    coffer_status status =
        coffer__pycauset_read_block(&matrix->metadata, matrix->source, matrix->metadata_offset,
                                    matrix->metadata_length, &matrix->limits, err);
    if (!status)
        status =
            coffer__pycauset_interpret(&matrix->info, matrix->metadata.root, matrix->metadata_offset, err);
    if (!status)
        status = check_payload(matrix, err);
    if (status)
        return status;
    if (matrix->info.type == COFFER_PYCAUSET_UNKNOWN) /* all that the slot says, to be copied as it is */
        matrix->info.payload_needed = coffer__pycauset_slot_payload(&matrix->header, matrix->header.active);
    coffer__pycauset_view_signature(matrix->view_signature, &matrix->info);
    return coffer__pycauset_start_verifying(matrix, err);
}

static coffer_status open_state(coffer_pycauset *matrix, uint64_t generation, coffer_error *err)
{
    coffer_status status = coffer__pycauset_read_header(&matrix->header, matrix->source, err);
    if (!status)
        status = coffer__pycauset_expect_active(&matrix->header, matrix->source, err);
    if (status)
        return status;
    const coffer__pycauset_slot *slot = &matrix->header.slots[matrix->header.active];
    matrix->info.payload_offset = slot->payload_offset;
    matrix->info.payload_length = slot->payload_length;
    matrix->info.active_slot = "AB"[matrix->header.active];
    if (matrix->header.slots[1 - matrix->header.active].fault)
        matrix->info.damaged_slot = "AB"[1 - matrix->header.active];
    /* Blocks are appended: a newer one would be after this one. */
    matrix->info.newer_lost = matrix->info.damaged_slot && slot->metadata_offset + slot->metadata_length <
                                                               coffer_source_size(matrix->source);
    matrix->info.generation = slot->generation;
    matrix->metadata_offset = slot->metadata_offset;
    matrix->metadata_length = slot->metadata_length;
    if (generation != 0 && generation != slot->generation) {
        matrix->info.generation = generation;
        status = coffer__pycauset_find_generation(&matrix->metadata_offset, &matrix->metadata_length,
                                                  matrix->source, generation, &matrix->limits, err);
        if (status)
            return status;
    }
    return read_state(matrix, err);
}

static void ignore_view(coffer_pycauset_info *info)
{
    info->transposed = info->conjugated = false;
    info->scalar_real = 1;
    info->scalar_imag = 0;
    info->rows = info->stored_rows;
    info->cols = info->stored_cols;
    if (info->type != COFFER_PYCAUSET_BLOCK)
        info->value_dtype = info->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : info->dtype;
}

coffer_status coffer__pycauset_open_child(coffer_pycauset **out, coffer_source *src,
                                          const coffer_pycauset_open_opts *opts,
                                          const coffer_pycauset *parent, coffer_error *err)
{
    coffer_pycauset_open_opts options = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_pycauset *matrix = coffer__calloc(1, sizeof *matrix);
    if (!matrix)
        return coffer__fail_no_memory(err, sizeof *matrix);
    matrix->source = src;
    matrix->parent = parent;
    matrix->limits = coffer__limits(options.limits);
    if (options.blocks_folder && !(matrix->blocks_folder = coffer__strdup(options.blocks_folder)))
        status = coffer__fail_no_memory(err, strlen(options.blocks_folder) + 1);
    if (!status)
        status = open_state(matrix, options.generation, err);
    if (!status)
        status = coffer_source_intact(src, err);
    if (status) {
        coffer_pycauset_close(matrix);
        return status;
    }
    coffer__pycauset_settle_value_dtype(matrix);
    if (options.ignore_view)
        ignore_view(&matrix->info);
    *out = matrix;
    return COFFER_OK;
}

coffer_status coffer_pycauset_open(coffer_pycauset **out, coffer_source *src,
                                   const coffer_pycauset_open_opts *opts, coffer_error *err)
{
    return coffer__pycauset_open_child(out, src, opts, NULL, err);
}

coffer_status coffer_pycauset_open_path(coffer_pycauset **out, const char *path,
                                        const coffer_pycauset_open_opts *opts, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (!status)
        status = coffer_pycauset_open(out, source, opts, err);
    if (status)
        coffer_source_close(source);
    else
        (*out)->owns_source = true;
    return status;
}

void coffer_pycauset_close(coffer_pycauset *matrix)
{
    if (!matrix)
        return;
    coffer__pycauset_blocks_free(atomic_load(&matrix->blocks));
    coffer__pycauset_tree_free(&matrix->metadata);
    coffer__chunk_verifier_free(matrix->verifier);
    coffer__free(matrix->blocks_folder);
    if (matrix->owns_source)
        coffer_source_close(matrix->source);
    coffer__free(matrix);
}

static const char *text_at(const coffer_pycauset *matrix, const char *path)
{
    const char *text =
        coffer_pycauset_value_text(coffer_pycauset_value_find(matrix->metadata.root, path), NULL);
    return text ? text : "?";
}

coffer_status coffer__pycauset_fail_unknown(const coffer_pycauset *matrix, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, matrix->metadata_offset,
                        "matrix_type \"%s\" with data_type \"%s\" and layout \"%s\" is not known to this "
                        "version: only the metadata can be read",
                        text_at(matrix, "matrix_type"), text_at(matrix, "data_type"),
                        text_at(matrix, "payload_layout.kind"));
}

const coffer_pycauset_info *coffer_pycauset_get_info(const coffer_pycauset *matrix)
{
    return &matrix->info;
}

const coffer_pycauset_value *coffer_pycauset_metadata(const coffer_pycauset *matrix)
{
    return matrix->metadata.root;
}

const coffer_pycauset_value *coffer_pycauset_cached(const coffer_pycauset *matrix, const char *name,
                                                    bool *stale)
{
    const coffer_pycauset_value *root = matrix->metadata.root;
    const coffer_pycauset_value *entry =
        coffer__pycauset_get_key(coffer__pycauset_get_key(root, "cached"), name);
    bool fresh = entry && coffer__pycauset_is_fresh(entry, root, matrix->view_signature);
    if (stale)
        *stale = entry && !fresh;
    return fresh ? coffer__pycauset_get_key(entry, "value") : NULL;
}

/* Interprets the keys of the metadata that describe the payload. */

/* ---- Single keys ---- */

static coffer_status fail_missing(const char *key, uint64_t offset, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_MISSING, offset, "the metadata has no \"%s\"", key);
}

static coffer_status read_u64(uint64_t *out, const coffer_pycauset_value *root, const char *key,
                              uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *value = coffer__pycauset_get_key(root, key);
    if (!value)
        return fail_missing(key, offset, err);
    if (!coffer__pycauset_is_u64(out, value))
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset, "\"%s\" is not an integer of at least 0", key);
    return COFFER_OK;
}

static coffer_status expect_name(const coffer_pycauset_value *value, const char *key, uint64_t offset,
                                 coffer_error *err)
{
    if (!value)
        return fail_missing(key, offset, err);
    if (value->kind != COFFER_PYCAUSET_STRING)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset, "\"%s\" is not a string", key);
    return COFFER_OK;
}

static coffer_status read_types(coffer_pycauset_info *out, const coffer_pycauset_value *root, uint64_t offset,
                                coffer_error *err)
{
    const coffer_pycauset_value *layout = coffer__pycauset_get_key(root, "payload_layout");
    const coffer_pycauset_value *type = coffer__pycauset_get_key(root, "matrix_type");
    const coffer_pycauset_value *dtype = coffer__pycauset_get_key(root, "data_type");
    coffer_status status;
    if (!layout)
        return fail_missing("payload_layout", offset, err);
    if (layout->kind != COFFER_PYCAUSET_MAP)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset, "\"payload_layout\" is not a map");
    layout = coffer__pycauset_get_key(layout, "kind");
    status = expect_name(type, "matrix_type", offset, err);
    if (!status)
        status = expect_name(dtype, "data_type", offset, err);
    if (!status)
        status = expect_name(layout, "payload_layout.kind", offset, err);
    if (status)
        return status;
    /* Names of a newer program do not lock the metadata. */
    if (!coffer__pycauset_type_by_name(&out->type, type) ||
        !coffer__pycauset_dtype_by_name(&out->dtype, dtype) ||
        !coffer__pycauset_layout_by_name(&out->layout, layout)) {
        out->type = COFFER_PYCAUSET_UNKNOWN;
        out->dtype = COFFER_DTYPE_NONE;
        out->layout = COFFER_PYCAUSET_LAYOUT_NONE;
    }
    return COFFER_OK;
}

static coffer_status read_flag(bool *out, const coffer_pycauset_value *map, const char *key, const char *path,
                               uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *value = coffer__pycauset_get_key(map, key);
    if (value && value->kind != COFFER_PYCAUSET_BOOL)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset, "\"%s\" is not a bool", path);
    *out = coffer_pycauset_value_bool(value);
    return COFFER_OK;
}

static coffer_status read_scalar(coffer_pycauset_info *out, const coffer_pycauset_value *scalar,
                                 uint64_t offset, coffer_error *err)
{
    out->scalar_real = 1.0;
    out->scalar_imag = 0.0;
    if (!scalar || coffer__pycauset_is_f64(&out->scalar_real, scalar) ||
        (coffer__pycauset_is_f64(&out->scalar_real, coffer__pycauset_get_key(scalar, "real")) &&
         coffer__pycauset_is_f64(&out->scalar_imag, coffer__pycauset_get_key(scalar, "imag"))))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                        "\"view.scalar\" is neither a number nor a map of \"real\" and \"imag\"");
}

static coffer_status read_view(coffer_pycauset_info *out, const coffer_pycauset_value *root, uint64_t offset,
                               coffer_error *err)
{
    const coffer_pycauset_value *view = coffer__pycauset_get_key(root, "view");
    coffer_status status;
    if (view && view->kind != COFFER_PYCAUSET_MAP)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset, "\"view\" is not a map");
    status = read_flag(&out->transposed, view, "is_transposed", "view.is_transposed", offset, err);
    if (!status)
        status = read_flag(&out->conjugated, view, "is_conjugated", "view.is_conjugated", offset, err);
    if (status)
        return status;
    return read_scalar(out, coffer__pycauset_get_key(view, "scalar"), offset, err);
}

/* ---- How they fit together ---- */

static coffer_status check_layout(const coffer_pycauset_info *info, uint64_t offset, coffer_error *err)
{
    coffer_pycauset_layout implied = coffer__pycauset_layout_of(info->type);
    if (info->type == COFFER_PYCAUSET_UNKNOWN)
        return COFFER_OK;
    /* A matrix without a payload may have the layout none or, as the pycauset program writes, raw_dense. */
    bool fits = info->layout == implied ||
                (implied == COFFER_PYCAUSET_LAYOUT_NONE && info->layout == COFFER_PYCAUSET_RAW_DENSE);
    if (!fits)
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset, "%s with the layout %s, it must be %s",
                            coffer_pycauset_type_name(info->type), coffer_pycauset_layout_name(info->layout),
                            coffer_pycauset_layout_name(implied));
    if (info->dtype == COFFER_DTYPE_NONE && info->type != COFFER_PYCAUSET_BLOCK)
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset, "MIXED is for block matrices, this is %s",
                            coffer_pycauset_type_name(info->type));
    if (info->type == COFFER_PYCAUSET_ANTISYMMETRIC && !coffer__dtype_has_negatives(info->dtype))
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset,
                            "ANTISYMMETRIC with the type %s, which has no negative numbers",
                            coffer_pycauset_dtype_name(info->dtype));
    if (info->type == COFFER_PYCAUSET_CAUSAL && info->dtype != COFFER_DTYPE_BIT)
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset, "CAUSAL with the type %s, it must be BIT",
                            coffer_pycauset_dtype_name(info->dtype));
    if (info->type == COFFER_PYCAUSET_DIAGONAL && info->dtype == COFFER_DTYPE_BIT)
        return coffer__fail(err, COFFER_E_INCONSISTENT, offset, "DIAGONAL with the type BIT");
    return COFFER_OK;
}

static coffer_status check_shape(const coffer_pycauset_info *info, uint64_t offset, coffer_error *err)
{
    bool vector = info->type == COFFER_PYCAUSET_VECTOR || info->type == COFFER_PYCAUSET_UNIT_VECTOR;
    bool square = coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_RAW_TRIANGULAR ||
                  info->type == COFFER_PYCAUSET_DIAGONAL;
    if (square && info->rows != info->cols)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "%s of %" PRIu64 " x %" PRIu64 ", it must be square",
                            coffer_pycauset_type_name(info->type), info->rows, info->cols);
    if (vector && info->rows != 1 && info->cols != 1)
        return coffer__fail(err, COFFER_E_BAD_VALUE, offset,
                            "%s of %" PRIu64 " x %" PRIu64 ", one of them must be 1",
                            coffer_pycauset_type_name(info->type), info->rows, info->cols);
    return COFFER_OK;
}

static coffer_status read_unit_index(coffer_pycauset_info *out, const coffer_pycauset_value *root,
                                     uint64_t offset, coffer_error *err)
{
    uint64_t length = out->rows == 1 ? out->cols : out->rows;
    coffer_status status;
    out->unit_index = 0;
    if (out->type != COFFER_PYCAUSET_UNIT_VECTOR)
        return COFFER_OK;
    status = read_u64(&out->unit_index, root, "seed", offset, err);
    if (!status && out->unit_index >= length)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                            "the 1 of the unit vector is at %" PRIu64 ", it has %" PRIu64 " elements",
                            out->unit_index, length);
    return status;
}

static coffer_dtype value_dtype_of(const coffer_pycauset_info *info)
{
    bool plain = info->scalar_real == 1.0 && info->scalar_imag == 0.0;
    if (info->dtype == COFFER_DTYPE_NONE)
        return info->scalar_imag != 0.0 ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
    if (!plain)
        return coffer_dtype_is_complex(info->dtype) || info->scalar_imag != 0.0 ? COFFER_DTYPE_C128
                                                                                : COFFER_DTYPE_F64;
    return info->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : info->dtype;
}

static coffer_status read_diagonal(coffer_pycauset_info *out, const coffer_pycauset_value *root,
                                   uint64_t offset, coffer_error *err)
{
    const coffer_pycauset_value *params = coffer_pycauset_value_find(root, "payload_layout.params");
    out->has_diagonal = out->type == COFFER_PYCAUSET_SYMMETRIC || out->type == COFFER_PYCAUSET_ANTISYMMETRIC;
    if (out->type == COFFER_PYCAUSET_TRIANGULAR_FLOAT || out->type == COFFER_PYCAUSET_TRIANGULAR_INTEGER)
        return read_flag(&out->has_diagonal, params, "has_diagonal", "payload_layout.params.has_diagonal",
                         offset, err);
    return COFFER_OK;
}

coffer_status coffer__pycauset_interpret(coffer_pycauset_info *out, const coffer_pycauset_value *root,
                                         uint64_t offset, coffer_error *err)
{
    coffer_status status = read_u64(&out->rows, root, "rows", offset, err);
    if (!status)
        status = read_u64(&out->cols, root, "cols", offset, err);
    if (!status)
        status = read_types(out, root, offset, err);
    if (!status)
        status = read_view(out, root, offset, err);
    if (!status)
        status = read_diagonal(out, root, offset, err);
    if (!status)
        status = check_layout(out, offset, err);
    if (!status)
        status = check_shape(out, offset, err);
    if (!status)
        status = read_unit_index(out, root, offset, err);
    if (status)
        return status;
    out->stored_rows = out->transposed ? out->cols : out->rows;
    out->stored_cols = out->transposed ? out->rows : out->cols;
    out->value_dtype = value_dtype_of(out);
    if (!coffer__pycauset_payload_needed(&out->payload_needed, out))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, offset,
                            "%" PRIu64 " x %" PRIu64 " of %s are more bytes than a file can have", out->rows,
                            out->cols, coffer_pycauset_dtype_name(out->dtype));
    return COFFER_OK;
}

/* ---- Signatures ---- */

bool coffer__pycauset_is_uuid(const char *text)
{
    return strlen(text) == COFFER__PYCAUSET_UUID_SIZE &&
           strspn(text, "0123456789abcdefABCDEF") == COFFER__PYCAUSET_UUID_SIZE;
}

/* As printf's %g does it in the C locale, whatever the locale is. */
static void format_g(char *out, size_t size, double value)
{
    char text[40], digits[7] = "";
    if ((value == 0.0 && !signbit(value)) || value == 1.0) { /* nearly always: opening is to be quick */
        snprintf(out, size, "%d", value == 1.0);
        return;
    }
    if (isnan(value) || isinf(value)) {
        snprintf(out, size, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    snprintf(text, sizeof text, "%.5e", value);
    const char *sign = text[0] == '-' ? "-" : "", *exponent_at = strchr(text, 'e');
    int exponent = (int)strtol(exponent_at + 1, NULL, 10), last = 5;
    digits[0] = text[sign[0] != '\0'];
    memcpy(digits + 1, exponent_at - 5, 5);
    while (last > 0 && digits[last] == '0')
        digits[last--] = '\0';
    if (exponent < -4 || exponent >= 6)
        snprintf(out, size, "%s%c%s%se%c%02d", sign, digits[0], last > 0 ? "." : "", digits + 1,
                 exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(out, size, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if (last <= exponent)
        snprintf(out, size, "%s%s%.*s", sign, digits, exponent - last, "00000");
    else
        snprintf(out, size, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

void coffer__pycauset_view_signature(char out[COFFER__PYCAUSET_SIGNATURE_SIZE],
                                     const coffer_pycauset_info *info)
{
    char real[32], imag[32];
    format_g(real, sizeof real, info->scalar_real);
    format_g(imag, sizeof imag, info->scalar_imag);
    snprintf(out, COFFER__PYCAUSET_SIGNATURE_SIZE, "t=%d;c=%d;sr=%s;si=%s", info->transposed,
             info->conjugated, real, imag);
}

bool coffer__pycauset_is_fresh(const coffer_pycauset_value *entry, const coffer_pycauset_value *root,
                               const char *view_signature)
{
    const coffer_pycauset_value *signature = coffer__pycauset_get_key(entry, "signature");
    const coffer_pycauset_value *signed_uuid = coffer__pycauset_get_key(signature, "payload_uuid");
    const coffer_pycauset_value *uuid = coffer__pycauset_get_key(root, "payload_uuid");
    return coffer__pycauset_get_key(entry, "value") && signed_uuid && uuid &&
           uuid->kind == COFFER_PYCAUSET_STRING && coffer__pycauset_equal(uuid, signed_uuid) &&
           coffer__pycauset_text_is(coffer__pycauset_get_key(signature, "view_signature"), view_signature);
}
