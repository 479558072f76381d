/* Reads and checks the header of a safetensors file. */
#include "outside/models/safetensors.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
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
    uint64_t expected_size; /* of a file that has all tensors */
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

/* Bytes of a file that has all tensors of the header. */
static uint64_t expected_size(const file_header *header)
{
    const coffer__json_value *root = coffer__json_root(header->json);
    uint64_t end = 0, size;
    for (const coffer__json_value *value = coffer__json_first(root); value;
         value = coffer__json_next(root, value)) {
        const coffer__json_value *offsets =
            value->kind == COFFER__JSON_OBJECT ? coffer__json_find(value, "data_offsets") : NULL;
        const coffer__json_value *first =
            offsets && offsets->kind == COFFER__JSON_ARRAY ? coffer__json_first(offsets) : NULL;
        uint64_t tensor_end;
        if (first && offsets->as.count == 2 && coffer__json_u64(&tensor_end, first + first->span) &&
            tensor_end > end)
            end = tensor_end;
    }
    return coffer__add_u64(&size, header->data_offset, end) ? size : UINT64_MAX;
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
    if (!status)
        out->expected_size = expected_size(out);
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
    coffer__free(metadata->ignored_in);
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
                            "the file has %" PRIu64 " bytes instead of %" PRIu64
                            ": tensor \"%s\" ends at %" PRIu64 " of the data, the data at %" PRIu64,
                            header->data_offset + header->data_size, header->expected_size, tensor->key,
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

enum { KEYS_OF_TENSOR = 3 }; /* "dtype", "shape" and "data_offsets" */

typedef struct reading {
    const file_header *header;
    coffer__safetensors_metadata *metadata;
    coffer__safetensors_take take;
    coffer__safetensors_lose lose; /* of a damaged file */
    void *context;
    uint64_t *dims; /* memory kept from one tensor to the next */
    size_t dims_capacity;
} reading;

/* out : its dims are valid until the next call. */
static coffer_status read_tensor(coffer__safetensors_tensor *out, range *place, reading *job,
                                 const coffer__json_value *value, coffer_error *err)
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
    *out = tensor;
    return check_size(header, value, &tensor, err);
}

static coffer_status note_ignored(coffer__safetensors_metadata *metadata, const coffer__json_value *tensor,
                                  coffer_error *err)
{
    metadata->ignored += tensor->as.count - KEYS_OF_TENSOR;
    if (metadata->ignored_in)
        return COFFER_OK;
    metadata->ignored_in = coffer__strndup(tensor->key, tensor->key_len);
    return metadata->ignored_in ? COFFER_OK : coffer__fail_no_memory(err, tensor->key_len);
}

static coffer_status add_tensor(reading *job, range *place, const coffer__json_value *value,
                                coffer_error *err)
{
    coffer__safetensors_tensor tensor;
    coffer_status status = read_tensor(&tensor, place, job, value, err);
    if (!status && value->as.count > KEYS_OF_TENSOR)
        status = note_ignored(job->metadata, value, err);
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
    reading job = { .header = &header, .metadata = metadata, .take = take, .context = context };
    coffer_status status = read_header(&header, src, limits, err);
    if (!status)
        status = read_all(&job, metadata, err);
    coffer__free(job.dims);
    free_header(&header);
    return status;
}

/* ---- A damaged file ---- */

/* Hands an error about the file to the caller; others are returned. */
static coffer_status lose(const reading *job, const char *tensor, const coffer_error *why, coffer_error *err)
{
    if (coffer__is_about_file(why->status))
        return job->lose(job->context, tensor, why, err);
    return coffer__fail_copy(err, why);
}

/* Complete tensors in the order of their bytes; the others are lost. */
static coffer_status find_complete(range *ranges, size_t *count, reading *job,
                                   coffer__safetensors_metadata *metadata, coffer_error *err)
{
    const coffer__json_value *root = coffer__json_root(job->header->json);
    coffer_status status = COFFER_OK;
    for (const coffer__json_value *value = coffer__json_first(root); !status && value;
         value = coffer__json_next(root, value)) {
        coffer__safetensors_tensor tensor;
        coffer_error why = COFFER_ERROR_INIT;
        bool is_metadata = strcmp(value->key, COFFER__SAFETENSORS_METADATA) == 0;
        if (is_metadata)
            coffer__ignore(take_metadata(metadata, job->header, value, &why));
        else if (read_tensor(&tensor, &ranges[*count], job, value, &why) == COFFER_OK)
            ++*count;
        if (why.status)
            status = lose(job, is_metadata ? NULL : value->key, &why, err);
    }
    if (*count)
        qsort(ranges, *count, sizeof *ranges, by_place);
    return status;
}

/* A tensor that begins inside the one before it cannot be told from damage. */
static coffer_status take_complete(const range *ranges, size_t count, reading *job, coffer_error *err)
{
    const file_header *header = job->header;
    uint64_t covered = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        coffer_error why = COFFER_ERROR_INIT;
        range again;
        coffer__safetensors_tensor tensor;
        if (ranges[i].begin < covered) {
            coffer__fail(&why, COFFER_E_OVERLAP, place_of(header, ranges[i].value),
                         "tensor \"%s\" begins at %" PRIu64 ", the one before it ends at %" PRIu64,
                         ranges[i].value->key, ranges[i].begin, covered);
            status = lose(job, ranges[i].value->key, &why, err);
            continue;
        }
        if (ranges[i].begin > covered) {
            coffer__fail(&why, COFFER_E_INCONSISTENT, header->data_offset + covered,
                         "%" PRIu64
                         " bytes before tensor \"%s\" belong to no complete tensor and are dropped",
                         ranges[i].begin - covered, ranges[i].value->key);
            status = lose(job, NULL, &why, err);
        }
        covered = ranges[i].end;
        if (!status)
            status = read_tensor(&tensor, &again, job, ranges[i].value, err);
        if (!status)
            status = job->take(job->context, &tensor, err);
    }
    if (!status && covered < header->data_size) {
        coffer_error why = COFFER_ERROR_INIT;
        coffer__fail(&why, COFFER_E_TRAILING_BYTES, header->data_offset + covered,
                     "%" PRIu64 " bytes after the last complete tensor are dropped",
                     header->data_size - covered);
        status = lose(job, NULL, &why, err);
    }
    return status;
}

/* The end of the JSON object that begins at `text`; 0 when it does not end. */
static size_t object_end(const char *text, size_t len)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && text[i] == '{')
            depth++;
        else if (!quoted && text[i] == '}' && --depth == 0)
            return i + 1;
        if (depth == 0)
            return 0;
    }
    return 0;
}

/* A header whose length is wrong. Its JSON says how many bytes of tensors there are, so the file tells where
 * they begin; between the two there are only spaces. */
static coffer_status find_header(file_header *out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err)
{
    uint64_t size = coffer_source_size(src), most = COFFER__SAFETENSORS_MAX_HEADER;
    size_t len = size < PREFIX ? 0 : (size_t)(size - PREFIX < most ? size - PREFIX : most);
    coffer_error why = COFFER_ERROR_INIT;
    *out = (file_header){ .data_offset = PREFIX };
    if (len > limits->json_bytes)
        len = (size_t)limits->json_bytes;
    out->text = coffer__malloc(len + 1);
    if (!out->text)
        return coffer__fail_no_memory(err, len);
    coffer_status status = coffer_source_read_at(out->text, src, PREFIX, len, err);
    if (status)
        return status;
    out->len = object_end(out->text, len);
    if (!out->len || coffer__json_parse(&out->json, out->text, out->len, PREFIX, limits, &why))
        return COFFER_E_BAD_JSON;
    uint64_t data = expected_size(out) - PREFIX;
    if (data > size - PREFIX - out->len)
        return COFFER_E_BAD_JSON;
    out->data_offset = size - data;
    out->data_size = data;
    out->expected_size = size;
    for (uint64_t i = out->len; i < out->data_offset - PREFIX; i++) {
        if (i >= len || out->text[i] != ' ')
            return COFFER_E_BAD_JSON;
    }
    return COFFER_OK;
}

static coffer_status open_damaged(file_header *header, const reading *job, coffer_source *src,
                                  const coffer_limits *limits, coffer_error *err)
{
    coffer_error why = COFFER_ERROR_INIT, ignored = COFFER_ERROR_INIT;
    coffer_status status = read_header(header, src, limits, &why);
    if (!status || !coffer__is_about_file(status))
        return status ? coffer__fail_copy(err, &why) : COFFER_OK;
    free_header(header);
    if (find_header(header, src, limits, &ignored))
        return coffer__fail_copy(err, &why);
    return lose(job, NULL, &why, err);
}

coffer_status coffer__safetensors_salvage(coffer__safetensors_metadata *metadata, coffer_source *src,
                                          const coffer_limits *limits, coffer__safetensors_take take,
                                          coffer__safetensors_lose lose_part, void *context,
                                          coffer_error *err)
{
    file_header header = { 0 };
    reading job = { .header = &header, .take = take, .lose = lose_part, .context = context };
    size_t count = 0;
    range *ranges = NULL;
    coffer_status status = open_damaged(&header, &job, src, limits, err);
    if (!status) {
        size_t values = (size_t)coffer__json_root(header.json)->as.count;
        ranges = coffer__alloc_array(values + 1, sizeof *ranges);
        status = ranges ? find_complete(ranges, &count, &job, metadata, err)
                        : coffer__fail_no_memory(err, values * sizeof *ranges);
    }
    if (!status)
        status = take_complete(ranges, count, &job, err);
    coffer__free(ranges);
    coffer__free(job.dims);
    free_header(&header);
    return status;
}
