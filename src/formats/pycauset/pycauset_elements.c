/* Single elements that change in place: which bytes of the payload they are. */
#include "formats/pycauset/pycauset_payload.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An element at its place in the payload. */
typedef struct placed {
    uint64_t row, col; /* stored */
    size_t order;      /* in the caller's list */
    uint8_t value[16]; /* in the stored type; a bit is a byte */
} placed;

typedef struct plan_job {
    const coffer_pycauset_info *info;
    coffer__pycauset_grid grid;
    coffer_dtype dtype; /* of a value: BOOL for bits */
} plan_job;

/* ---- Values ---- */

static bool is_whole(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_BOOL || coffer_dtype_is_integer(dtype);
}

static void to_pair(double out[2], const void *value, coffer_dtype dtype)
{
    coffer__elements_convert(out, COFFER_DTYPE_C128, value, dtype, 1);
}

/* An integer must keep its value; 2^63 and 2^64 as a double are one past the largest integer. */
static bool fits_whole(const void *value, coffer_dtype from, const void *converted, coffer_dtype to)
{
    double given[2], kept[2];
    uint8_t back[16];
    if (is_whole(from)) {
        coffer__elements_convert(back, from, converted, to, 1);
        return memcmp(back, value, coffer_dtype_size(from)) == 0;
    }
    to_pair(given, value, from);
    to_pair(kept, converted, to);
    return given[1] == 0 && given[0] == kept[0] &&
           given[0] < (to == COFFER_DTYPE_U64 ? ldexp(1, 64) : ldexp(1, 63));
}

/* Real numbers are rounded, but do not become infinite. */
static bool fits_real(const void *value, coffer_dtype from, const void *converted, coffer_dtype to)
{
    double given[2], kept[2];
    to_pair(given, value, from);
    to_pair(kept, converted, to);
    if (!coffer_dtype_is_complex(to) && given[1] != 0)
        return false;
    return (!isfinite(given[0]) || isfinite(kept[0])) && (!isfinite(given[1]) || isfinite(kept[1]));
}

static coffer_status cast(uint8_t out[16], const plan_job *job, const coffer__pycauset_element *element,
                          coffer_error *err)
{
    double pair[2];
    uint8_t value[16];
    coffer_dtype from = element->dtype;
    memcpy(value, element->value, sizeof value);
    if (coffer_dtype_is_complex(from) && !coffer_dtype_is_complex(job->dtype)) {
        to_pair(pair, value, from);
        if (pair[1] == 0) {
            memcpy(value, pair, sizeof pair[0]);
            from = COFFER_DTYPE_F64;
        }
    }
    bool fits = coffer__elements_can_convert(job->dtype, from);
    if (fits) {
        coffer__elements_convert(out, job->dtype, value, from, 1);
        fits = is_whole(job->dtype) ? fits_whole(value, from, out, job->dtype)
                                    : fits_real(value, from, out, job->dtype);
    }
    if (fits)
        return COFFER_OK;
    to_pair(pair, element->value, element->dtype);
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "element (%" PRIu64 ", %" PRIu64 "): %.17g%s is not a value of the type %s",
                        element->row, element->col, pair[0], pair[1] != 0 ? " with an imaginary part" : "",
                        coffer_dtype_name(job->info->dtype));
}

static void negate(uint8_t value[16], coffer_dtype dtype)
{
    double pair[2];
    int64_t whole;
    if (is_whole(dtype)) {
        coffer__elements_convert(&whole, COFFER_DTYPE_I64, value, dtype, 1);
        whole = (int64_t)(0 - (uint64_t)whole);
        coffer__elements_convert(value, dtype, &whole, COFFER_DTYPE_I64, 1);
        return;
    }
    to_pair(pair, value, dtype);
    pair[0] = -pair[0];
    pair[1] = -pair[1];
    if (coffer_dtype_is_complex(dtype))
        coffer__elements_convert(value, dtype, pair, COFFER_DTYPE_C128, 1);
    else
        coffer__elements_convert(value, dtype, pair, COFFER_DTYPE_F64, 1);
}

static void conjugate(uint8_t value[16], coffer_dtype dtype)
{
    double pair[2];
    if (!coffer_dtype_is_complex(dtype))
        return;
    to_pair(pair, value, dtype);
    pair[1] = -pair[1];
    coffer__elements_convert(value, dtype, pair, COFFER_DTYPE_C128, 1);
}

/* ---- Places ---- */

static coffer_status check_matrix(const coffer_pycauset_info *info, coffer_error *err)
{
    if (info->type == COFFER_PYCAUSET_BLOCK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "the elements of a block matrix are in its children: change the child's file");
    if (info->type == COFFER_PYCAUSET_UNKNOWN)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "the type of the matrix is not known to this version");
    if (coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_LAYOUT_NONE)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s has no stored elements; convert it to a dense matrix first",
                            coffer_pycauset_type_name(info->type));
    return COFFER_OK;
}

static coffer_status check_view(const coffer_pycauset_info *info, const coffer__pycauset_element *element,
                                coffer_error *err)
{
    if (element->row >= info->rows || element->col >= info->cols)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "element (%" PRIu64 ", %" PRIu64 ") is out of range: the matrix is %" PRIu64
                            " x %" PRIu64,
                            element->row, element->col, info->rows, info->cols);
    if (info->scalar_real != 1.0 || info->scalar_imag != 0.0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the view multiplies every element by a scalar; set view.scalar=1 first");
    return COFFER_OK;
}

/* Where the element of the view is stored, and its value there. */
static coffer_status place(placed *out, const plan_job *job, const coffer__pycauset_element *element,
                           coffer_error *err)
{
    const coffer__pycauset_grid *grid = &job->grid;
    uint64_t row = element->row, col = element->col, spare;
    coffer_status status = cast(out->value, job, element, err);
    if (!status && !element->stored)
        status = check_view(job->info, element, err);
    if (status)
        return status;
    if (!element->stored) {
        if (job->info->conjugated)
            conjugate(out->value, job->dtype);
        if (grid->transposed) {
            spare = row;
            row = col;
            col = spare;
        }
        if (grid->mirrored && col < row) {
            spare = row;
            row = col;
            col = spare;
            if (grid->negative)
                negate(out->value, job->dtype);
        }
    }
    if (row >= grid->rows || col < coffer__pycauset_grid_first(grid, row) ||
        col >= coffer__pycauset_grid_end(grid, row))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "element (%" PRIu64 ", %" PRIu64 ") is always 0 in %s: it is not stored",
                            element->row, element->col, coffer_pycauset_type_name(job->info->type));
    out->row = row;
    out->col = col;
    return COFFER_OK;
}

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->col != y->col)
        return x->col < y->col ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static coffer_status place_all(placed *out, size_t *kept, const plan_job *job,
                               const coffer__pycauset_element *elements, size_t count, bool first_wins,
                               coffer_error *err)
{
    for (size_t i = 0; i < count; i++) {
        coffer_status status = place(&out[i], job, &elements[i], err);
        if (status)
            return status;
        out[i].order = i;
    }
    qsort(out, count, sizeof *out, by_place);
    *kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool again = *kept > 0 && out[*kept - 1].row == out[i].row && out[*kept - 1].col == out[i].col;
        if (again && !first_wins)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "element (%" PRIu64 ", %" PRIu64 ") is set twice", elements[out[i].order].row,
                                elements[out[i].order].col);
        if (!again)
            out[(*kept)++] = out[i];
    }
    return COFFER_OK;
}

/* ---- Patches ---- */

static int by_offset(const void *a, const void *b)
{
    const coffer__pycauset_patch *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Adds a patch of bytes that are little-endian in the file. */
static coffer_status add_patch(coffer__pycauset_patches *out, coffer_source *src, const plan_job *job,
                               uint64_t offset, const uint8_t *value, size_t size, size_t number,
                               coffer_error *err)
{
    coffer__pycauset_patch *patch = &out->items[out->count];
    *patch = (coffer__pycauset_patch){ .offset = offset, .size = size };
    memcpy(patch->after, value, size);
    if (number > 1)
        coffer__swap_numbers(patch->after, number, size / number);
    out->count++;
    return coffer_source_read_at(patch->before, src, job->info->payload_offset + offset, size, err);
}

/* Bits of one byte are one patch: they come in order. */
static coffer_status add_bit(coffer__pycauset_patches *out, coffer_source *src, const plan_job *job,
                             uint64_t offset, unsigned bit, bool value, coffer_error *err)
{
    uint8_t mask = (uint8_t)(1U << bit), nothing = 0;
    coffer_status status = COFFER_OK;
    if (out->count == 0 || out->items[out->count - 1].offset != offset) {
        status = add_patch(out, src, job, offset, &nothing, 1, 1, err);
        if (status)
            return status;
        out->items[out->count - 1].after[0] = out->items[out->count - 1].before[0];
    }
    uint8_t *byte = out->items[out->count - 1].after;
    *byte = (uint8_t)(value ? *byte | mask : *byte & ~mask);
    return COFFER_OK;
}

static coffer_status patch_element(coffer__pycauset_patches *out, coffer_source *src, const plan_job *job,
                                   const placed *element, coffer_error *err)
{
    unsigned bit = 0;
    uint64_t offset = coffer__pycauset_grid_offset(&job->grid, element->row, element->col, &bit);
    size_t size = coffer_dtype_size(job->dtype);
    if (job->info->dtype == COFFER_DTYPE_BIT)
        return add_bit(out, src, job, offset, bit, element->value[0] != 0, err);
    if (job->info->dtype != COFFER_DTYPE_C32)
        return add_patch(out, src, job, offset, element->value, size,
                         size / (coffer_dtype_is_complex(job->dtype) ? 2 : 1), err);
    coffer_status status = add_patch(out, src, job, offset, element->value, 2, 2, err);
    if (!status)
        status = add_patch(out, src, job, job->grid.plane_bytes + offset, element->value + 2, 2, 2, err);
    return status;
}

/* ---- The record ---- */

static void record_value(coffer_pycauset_value *out, coffer_pycauset_value *parts, const uint8_t *value,
                         coffer_dtype dtype)
{
    double pair[2];
    if (is_whole(dtype)) {
        int64_t whole;
        coffer__elements_convert(&whole, COFFER_DTYPE_I64, value, dtype, 1);
        out->kind = whole < 0 ? COFFER_PYCAUSET_I64 : COFFER_PYCAUSET_U64;
        out->as.i64 = whole;
        if (dtype == COFFER_DTYPE_U64) {
            out->kind = COFFER_PYCAUSET_U64;
            memcpy(&out->as.u64, value, sizeof out->as.u64);
        } else if (whole >= 0) {
            out->as.u64 = (uint64_t)whole;
        }
        return;
    }
    to_pair(pair, value, dtype);
    if (!coffer_dtype_is_complex(dtype)) {
        out->kind = COFFER_PYCAUSET_F64;
        out->as.f64 = pair[0];
        return;
    }
    for (int i = 0; i < 2; i++)
        parts[i] = (coffer_pycauset_value){ .kind = COFFER_PYCAUSET_F64, .as.f64 = pair[i] };
    out->kind = COFFER_PYCAUSET_ARRAY;
    out->as.children = parts;
    out->count = 2;
}

/* The value that the file has now. */
static coffer_status read_old(uint8_t out[16], coffer_source *src, const plan_job *job, const placed *element,
                              coffer_error *err)
{
    unsigned bit = 0;
    uint64_t offset = job->info->payload_offset +
                      coffer__pycauset_grid_offset(&job->grid, element->row, element->col, &bit);
    size_t size = coffer_dtype_size(job->dtype);
    size_t number = size / (coffer_dtype_is_complex(job->dtype) ? 2 : 1);
    coffer_status status;
    if (job->info->dtype == COFFER_DTYPE_C32) {
        status = coffer_source_read_at(out, src, offset, 2, err);
        if (!status)
            status = coffer_source_read_at(out + 2, src, offset + job->grid.plane_bytes, 2, err);
    } else {
        status = coffer_source_read_at(out, src, offset, size, err);
    }
    if (!status && number > 1)
        coffer__swap_numbers(out, number, size / number);
    if (!status && job->info->dtype == COFFER_DTYPE_BIT)
        out[0] = (uint8_t)(out[0] >> bit & 1);
    return status;
}

static coffer_status record(coffer_pycauset_value *out, coffer__arena *memory, coffer_source *src,
                            const plan_job *job, const placed *elements, size_t count, coffer_error *err)
{
    enum { KEYS = 4, PARTS = 4 };
    static const char *const keys[KEYS] = { "col", "new", "old", "row" };
    coffer_pycauset_value *maps = coffer__arena_take(memory, count * sizeof *maps);
    coffer_pycauset_value *members = coffer__arena_take(memory, count * (KEYS + PARTS) * sizeof *members);
    if (!maps || !members)
        return coffer__fail_no_memory(err, count * (KEYS + PARTS + 1) * sizeof *maps);
    for (size_t i = 0; i < count; i++, members += KEYS + PARTS) {
        uint8_t old[16] = { 0 };
        coffer_status status = read_old(old, src, job, &elements[i], err);
        if (status)
            return status;
        memset(members, 0, (KEYS + PARTS) * sizeof *members);
        for (int k = 0; k < KEYS; k++) {
            members[k].key = keys[k];
            members[k].key_len = (uint16_t)strlen(keys[k]);
            members[k].kind = COFFER_PYCAUSET_U64;
        }
        members[0].as.u64 = elements[i].col;
        members[3].as.u64 = elements[i].row;
        record_value(&members[1], members + KEYS, elements[i].value, job->dtype);
        record_value(&members[2], members + KEYS + 2, old, job->dtype);
        maps[i] =
            (coffer_pycauset_value){ .kind = COFFER_PYCAUSET_MAP, .as.children = members, .count = KEYS };
    }
    *out = (coffer_pycauset_value){ .kind = COFFER_PYCAUSET_ARRAY,
                                    .as.children = maps,
                                    .count = (uint32_t)count };
    return COFFER_OK;
}

/* ---- The calls ---- */

coffer_status coffer__pycauset_plan_elements(coffer__pycauset_patches *out, coffer__arena *memory,
                                             coffer_source *src, const coffer_pycauset_info *info,
                                             const coffer__pycauset_element *elements, size_t count,
                                             bool first_wins, coffer_error *err)
{
    plan_job job = { .info = info,
                     .dtype = info->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : info->dtype };
    coffer__pycauset_patches patches = { .items = NULL };
    size_t kept = 0;
    coffer_status status = check_matrix(info, err);
    if (status)
        return status;
    coffer__pycauset_grid_init(&job.grid, info);
    placed *places = coffer__alloc_array(count, sizeof *places);
    patches.items = coffer__alloc_array(2 * count, sizeof *patches.items);
    if (!places || !patches.items)
        status = coffer__fail_no_memory(err, count * (sizeof *places + 2 * sizeof *patches.items));
    if (!status)
        status = place_all(places, &kept, &job, elements, count, first_wins, err);
    for (size_t i = 0; i < kept && !status; i++)
        status = patch_element(&patches, src, &job, &places[i], err);
    if (!status)
        status = record(&patches.record, memory, src, &job, places, kept, err);
    coffer__free(places);
    if (status) {
        coffer__pycauset_patches_free(&patches);
        return status;
    }
    qsort(patches.items, patches.count, sizeof *patches.items, by_offset);
    *out = patches;
    return COFFER_OK;
}

void coffer__pycauset_patches_free(coffer__pycauset_patches *patches)
{
    coffer__free(patches->items);
    patches->items = NULL;
    patches->count = 0;
}

static coffer_status add_element(coffer_pycauset_changes *changes, const coffer__pycauset_element *element,
                                 size_t most, coffer_error *err)
{
    if (changes->element_count >= most)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "one commit changes at most %zu elements", most);
    coffer_status status = coffer__array_reserve_one(&changes->elements, &changes->element_capacity,
                                                     changes->element_count, sizeof *element, err);
    if (!status)
        changes->elements[changes->element_count++] = *element;
    return status;
}

coffer_status coffer_pycauset_changes_set_element(coffer_pycauset_changes *changes, uint64_t row,
                                                  uint64_t col, const void *value, coffer_dtype dtype,
                                                  coffer_error *err)
{
    coffer__pycauset_element element = { .row = row, .col = col, .dtype = dtype };
    size_t size = coffer_dtype_size(dtype);
    if (size == 0 || size > sizeof element.value || dtype == COFFER_DTYPE_BIT ||
        !coffer__elements_can_convert(COFFER_DTYPE_C128, dtype))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "an element cannot be set from a value of this type");
    memcpy(element.value, value, size);
    return add_element(changes, &element, COFFER__PYCAUSET_MAX_ELEMENTS, err);
}

static bool read_value(coffer__pycauset_element *out, const coffer_pycauset_value *value)
{
    double pair[2];
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_I64:
        out->dtype = COFFER_DTYPE_I64;
        memcpy(out->value, &value->as.i64, sizeof value->as.i64);
        return true;
    case COFFER_PYCAUSET_U64:
        out->dtype = COFFER_DTYPE_U64;
        memcpy(out->value, &value->as.u64, sizeof value->as.u64);
        return true;
    case COFFER_PYCAUSET_F64:
        out->dtype = COFFER_DTYPE_F64;
        memcpy(out->value, &value->as.f64, sizeof value->as.f64);
        return true;
    default:
        break;
    }
    out->dtype = COFFER_DTYPE_C128;
    if (coffer_pycauset_value_kind(value) != COFFER_PYCAUSET_ARRAY || value->count != 2 ||
        !coffer__pycauset_is_f64(&pair[0], &value->as.children[0]) ||
        !coffer__pycauset_is_f64(&pair[1], &value->as.children[1]))
        return false;
    memcpy(out->value, pair, sizeof pair);
    return true;
}

coffer_status coffer__pycauset_elements_of_record(coffer_pycauset_changes *out,
                                                  const coffer_pycauset_value *record, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool good = coffer_pycauset_value_kind(record) == COFFER_PYCAUSET_ARRAY;
    for (uint32_t i = 0; good && !status && i < record->count; i++) {
        coffer__pycauset_element element = { .stored = true };
        const coffer_pycauset_value *map = &record->as.children[i];
        good = coffer__pycauset_is_u64(&element.row, coffer__pycauset_get_key(map, "row")) &&
               coffer__pycauset_is_u64(&element.col, coffer__pycauset_get_key(map, "col")) &&
               read_value(&element, coffer__pycauset_get_key(map, "old"));
        if (good)
            status = add_element(out, &element, SIZE_MAX / sizeof element, err);
    }
    if (good)
        return status;
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "\"%s\" is not a list of changed elements", COFFER__PYCAUSET_ELEMENTS_KEY);
}
