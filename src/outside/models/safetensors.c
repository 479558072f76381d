/* Reads and checks the header of a safetensors file. */
#include "outside/models/safetensors.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_error.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX 8 /* the length of the header */

static const coffer__safetensors_type types[] = {
    { "F32", COFFER_DTYPE_F32, 32 },
    { "BF16", COFFER_DTYPE_BF16, 16 },
    { "F16", COFFER_DTYPE_F16, 16 },
    { "F64", COFFER_DTYPE_F64, 64 },
    { "I64", COFFER_DTYPE_I64, 64 },
    { "I32", COFFER_DTYPE_I32, 32 },
    { "I16", COFFER_DTYPE_I16, 16 },
    { "I8", COFFER_DTYPE_I8, 8 },
    { "U8", COFFER_DTYPE_U8, 8 },
    { "U16", COFFER_DTYPE_U16, 16 },
    { "U32", COFFER_DTYPE_U32, 32 },
    { "U64", COFFER_DTYPE_U64, 64 },
    { "BOOL", COFFER_DTYPE_BOOL, 8 },
    { "C64", COFFER_DTYPE_C64, 64 },
    { "F8_E4M3", COFFER_DTYPE_F8_E4M3, 8 },
    { "F8_E5M2", COFFER_DTYPE_F8_E5M2, 8 },
    { "F8_E8M0", COFFER_DTYPE_NONE, 8 },
    { "F8_E4M3FNUZ", COFFER_DTYPE_NONE, 8 },
    { "F8_E5M2FNUZ", COFFER_DTYPE_NONE, 8 },
    { "F6_E2M3", COFFER_DTYPE_NONE, 6 },
    { "F6_E3M2", COFFER_DTYPE_NONE, 6 },
    { "F4", COFFER_DTYPE_NONE, 4 },
};

#define TYPE_COUNT (sizeof types / sizeof *types)

const coffer__safetensors_type *coffer__safetensors_type_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0)
            return &types[i];
    }
    return NULL;
}

const coffer__safetensors_type *coffer__safetensors_type_of(coffer_dtype dtype)
{
    for (size_t i = 0; dtype != COFFER_DTYPE_NONE && i < TYPE_COUNT; i++) {
        if (types[i].dtype == dtype)
            return &types[i];
    }
    return NULL;
}

bool coffer__safetensors_probe(const uint8_t *head, size_t len)
{
    if (len <= PREFIX)
        return false;
    uint64_t header_len = coffer__load_u64(head);
    return header_len >= 2 && header_len <= COFFER__SAFETENSORS_MAX_HEADER && head[PREFIX] == '{';
}

/* ---- The header's text ---- */

/* The position of the header, for offsets in errors. */
typedef struct file_header {
    char *text;
    size_t len;
    coffer__json *json;
    uint64_t data_offset, data_size;
} file_header;

/* A place within one of the tensors, to sort by. */
typedef struct range {
    uint64_t begin, end;
    const coffer__json_value *value;
} range;

static uint64_t place_of(const file_header *header, const coffer__json_value *value)
{
    uint64_t index = (uint64_t)(value - coffer__json_root(header->json));
    return PREFIX + coffer__json_key_position(header->text, header->len, index);
}

static coffer_status read_header(file_header *out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err)
{
    uint8_t prefix[PREFIX];
    uint64_t size = coffer_source_size(src);
    if (size < PREFIX)
        return coffer__fail(err, COFFER_E_TRUNCATED, 0,
                            "a safetensors file begins with 8 bytes of length, the file has %" PRIu64, size);
    coffer_status status = coffer_source_read_at(prefix, src, 0, PREFIX, err);
    if (status)
        return status;
    uint64_t len = coffer__load_u64(prefix);
    if (len > COFFER__SAFETENSORS_MAX_HEADER || len > limits->json_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, 0, "the header has %" PRIu64 " bytes, the limit is %" PRIu64,
                            len,
                            COFFER__SAFETENSORS_MAX_HEADER < limits->json_bytes
                                ? COFFER__SAFETENSORS_MAX_HEADER
                                : limits->json_bytes);
    if (len > size - PREFIX)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "the header ends at %" PRIu64 ", file has %" PRIu64, len + PREFIX, size);
    out->len = (size_t)len;
    out->data_offset = PREFIX + len;
    out->data_size = size - out->data_offset;
    out->text = coffer__malloc(out->len + 1);
    if (!out->text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer_source_read_at(out->text, src, PREFIX, out->len, err);
    if (!status)
        status = coffer__json_parse(&out->json, out->text, out->len, PREFIX, limits, err);
    if (!status && coffer__json_root(out->json)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail(err, COFFER_E_BAD_JSON, PREFIX, "the header is not a JSON object");
    return status;
}

static void free_header(file_header *header)
{
    coffer__json_free(header->json);
    coffer__free(header->text);
}

/* ---- Metadata ---- */

coffer_status coffer__safetensors_metadata_add(coffer__safetensors_metadata *metadata, const char *key,
                                               const char *text, size_t text_len, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&metadata->items, &metadata->capacity, metadata->count,
                                                     sizeof *metadata->items, err);
    if (status)
        return status;
    coffer__safetensors_item item = { coffer__strdup(key), coffer__strndup(text, text_len), text_len };
    metadata->items[metadata->count++] = item;
    return item.key && item.text ? COFFER_OK : coffer__fail_no_memory(err, text_len);
}

static coffer_status add_item(coffer__safetensors_metadata *metadata, const file_header *header,
                              const coffer__json_value *value, coffer_error *err)
{
    if (value->kind != COFFER__JSON_STRING)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place_of(header, value),
                            "\"%s\" of the metadata is not a string", value->key);
    if (strlen(value->key) != value->key_len)
        return coffer__fail(err, COFFER_E_BAD_TEXT, place_of(header, value),
                            "a key of the metadata contains a NUL: \"%s\"", value->key);
    return coffer__safetensors_metadata_add(metadata, value->key, value->as.string, value->string_len, err);
}

void coffer__safetensors_metadata_free(coffer__safetensors_metadata *metadata)
{
    for (size_t i = 0; i < metadata->count; i++) {
        coffer__free(metadata->items[i].key);
        coffer__free(metadata->items[i].text);
    }
    coffer__free(metadata->items);
    *metadata = (coffer__safetensors_metadata){ 0 };
}

static coffer_status take_metadata(coffer__safetensors_metadata *metadata, const file_header *header,
                                   const coffer__json_value *map, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (map->kind == COFFER__JSON_NULL)
        return COFFER_OK;
    if (map->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place_of(header, map), "the metadata is not an object");
    if (metadata->count)
        return COFFER_OK;
    for (const coffer__json_value *at = coffer__json_first(map); !status && at;
         at = coffer__json_next(map, at))
        status = add_item(metadata, header, at, err);
    return status;
}

/* ---- Tensors ---- */

static coffer_status fail_in(const file_header *header, const coffer__json_value *tensor,
                             coffer_status status, const char *what, coffer_error *err)
{
    return coffer__fail(err, status, place_of(header, tensor), "tensor \"%s\": %s", tensor->key, what);
}

static coffer_status read_type(const coffer__safetensors_type **out, const file_header *header,
                               const coffer__json_value *tensor, coffer_error *err)
{
    const coffer__json_value *dtype = coffer__json_find(tensor, "dtype");
    if (!dtype)
        return fail_in(header, tensor, COFFER_E_MISSING, "no \"dtype\"", err);
    if (dtype->kind != COFFER__JSON_STRING)
        return fail_in(header, tensor, COFFER_E_BAD_VALUE, "\"dtype\" is not a string", err);
    *out = coffer__safetensors_type_by_name(dtype->as.string, dtype->string_len);
    if (!*out)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place_of(header, tensor),
                            "tensor \"%s\": unknown type \"%s\"", tensor->key, dtype->as.string);
    if ((*out)->bits % 8)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, place_of(header, tensor),
                            "tensor \"%s\" is %s: types smaller than a byte are not supported", tensor->key,
                            (*out)->name);
    return COFFER_OK;
}

static coffer_status read_shape(coffer__safetensors_tensor *out, uint64_t **memory, size_t *capacity,
                                const file_header *header, const coffer__json_value *tensor,
                                coffer_error *err)
{
    const coffer__json_value *shape = coffer__json_find(tensor, "shape");
    coffer_status status = COFFER_OK;
    if (!shape)
        return fail_in(header, tensor, COFFER_E_MISSING, "no \"shape\"", err);
    if (shape->kind != COFFER__JSON_ARRAY || shape->as.count > UINT32_MAX)
        return fail_in(header, tensor, COFFER_E_BAD_VALUE, "\"shape\" is not a list", err);
    for (const coffer__json_value *at = coffer__json_first(shape); at; at = coffer__json_next(shape, at)) {
        status = coffer__array_reserve_one(memory, capacity, out->rank, sizeof **memory, err);
        if (status)
            return status;
        if (!coffer__json_u64(&(*memory)[out->rank], at))
            return fail_in(header, tensor, COFFER_E_BAD_VALUE, "a dimension is not a nonnegative integer",
                           err);
        out->rank++;
    }
    out->dims = *memory;
    return COFFER_OK;
}

static coffer_status read_range(range *out, const file_header *header, const coffer__json_value *tensor,
                                coffer_error *err)
{
    const coffer__json_value *offsets = coffer__json_find(tensor, "data_offsets");
    if (!offsets)
        return fail_in(header, tensor, COFFER_E_MISSING, "no \"data_offsets\"", err);
    const coffer__json_value *first =
        offsets->kind == COFFER__JSON_ARRAY ? coffer__json_first(offsets) : NULL;
    if (!first || offsets->as.count != 2 || !coffer__json_u64(&out->begin, first) ||
        !coffer__json_u64(&out->end, first + first->span))
        return fail_in(header, tensor, COFFER_E_BAD_VALUE,
                       "\"data_offsets\" are not two nonnegative integers", err);
    out->value = tensor;
    if (out->begin > out->end)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place_of(header, tensor),
                            "tensor \"%s\" begins at %" PRIu64 " and ends at %" PRIu64, tensor->key,
                            out->begin, out->end);
    if (out->end > header->data_size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place_of(header, tensor),
                            "tensor \"%s\" ends at %" PRIu64 " of the data, file has %" PRIu64, tensor->key,
                            out->end, header->data_size);
    return COFFER_OK;
}

static coffer_status check_size(const file_header *header, const coffer__json_value *value,
                                const coffer__safetensors_tensor *tensor, coffer_error *err)
{
    uint64_t elements = 1, size = 0;
    bool fits = true;
    for (uint32_t i = 0; i < tensor->rank; i++)
        fits = fits && coffer__mul_u64(&elements, elements, tensor->dims[i]);
    fits = fits && coffer__mul_u64(&size, elements, tensor->type->bits / 8);
    if (!fits)
        return fail_in(header, value, COFFER_E_SIZE_MISMATCH,
                       "the size of the shape does not fit into 64 bits", err);
    if (size != tensor->size)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place_of(header, value),
                            "tensor \"%s\" has %" PRIu64 " bytes, its type and shape require %" PRIu64,
                            value->key, tensor->size, size);
    return COFFER_OK;
}

typedef struct reading {
    const file_header *header;
    coffer__safetensors_take take;
    void *context;
    uint64_t *dims; /* memory kept from one tensor to the next */
    size_t dims_capacity;
} reading;

static coffer_status add_tensor(reading *job, range *place, const coffer__json_value *value,
                                coffer_error *err)
{
    const file_header *header = job->header;
    coffer__safetensors_tensor tensor = { .name = value->key, .name_len = value->key_len };
    if (value->kind != COFFER__JSON_OBJECT)
        return fail_in(header, value, COFFER_E_BAD_VALUE, "is not an object", err);
    coffer_status status = read_type(&tensor.type, header, value, err);
    if (!status)
        status = read_shape(&tensor, &job->dims, &job->dims_capacity, header, value, err);
    if (!status)
        status = read_range(place, header, value, err);
    if (status)
        return status;
    tensor.size = place->end - place->begin;
    tensor.offset = header->data_offset + place->begin;
    status = check_size(header, value, &tensor, err);
    return status ? status : job->take(job->context, &tensor, err);
}

static int by_place(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Bytes outside of all tensors could hide another file; shared ones could not be changed. */
static coffer_status check_coverage(range *ranges, size_t count, const file_header *header, coffer_error *err)
{
    uint64_t covered = 0;
    if (count)
        qsort(ranges, count, sizeof *ranges, by_place);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin < covered)
            return coffer__fail(err, COFFER_E_OVERLAP, place_of(header, ranges[i].value),
                                "tensor \"%s\" begins at %" PRIu64 ", \"%s\" before it ends at %" PRIu64,
                                ranges[i].value->key, ranges[i].begin, ranges[i - 1].value->key, covered);
        if (ranges[i].begin > covered)
            return coffer__fail(err, COFFER_E_INCONSISTENT, header->data_offset + covered,
                                "%" PRIu64 " bytes before tensor \"%s\" belong to no tensor",
                                ranges[i].begin - covered, ranges[i].value->key);
        covered = ranges[i].end;
    }
    if (covered != header->data_size)
        return coffer__fail(err, COFFER_E_TRAILING_BYTES, header->data_offset + covered,
                            "%" PRIu64 " bytes after the last tensor", header->data_size - covered);
    return COFFER_OK;
}

static coffer_status read_all(reading *job, coffer__safetensors_metadata *metadata, coffer_error *err)
{
    const coffer__json_value *root = coffer__json_root(job->header->json);
    size_t count = 0;
    range *ranges = coffer__alloc_array((size_t)root->as.count, sizeof *ranges);
    coffer_status status = ranges ? COFFER_OK : coffer__fail_no_memory(err, root->as.count * sizeof *ranges);
    for (const coffer__json_value *value = coffer__json_first(root); !status && value;
         value = coffer__json_next(root, value)) {
        if (strcmp(value->key, COFFER__SAFETENSORS_METADATA) == 0)
            status = take_metadata(metadata, job->header, value, err);
        else
            status = add_tensor(job, &ranges[count++], value, err);
    }
    if (!status)
        status = check_coverage(ranges, count, job->header, err);
    coffer__free(ranges);
    return status;
}

coffer_status coffer__safetensors_read(coffer__safetensors_metadata *metadata, coffer_source *src,
                                       const coffer_limits *limits, coffer__safetensors_take take,
                                       void *context, coffer_error *err)
{
    file_header header = { 0 };
    reading job = { .header = &header, .take = take, .context = context };
    coffer_status status = read_header(&header, src, limits, err);
    if (!status)
        status = read_all(&job, metadata, err);
    coffer__free(job.dims);
    free_header(&header);
    return status;
}
