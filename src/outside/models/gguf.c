/* Reads the front of a GGUF file. Every count is checked against the bytes left before it is used. */
#include "outside/models/gguf.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = { 'G', 'G', 'U', 'F' };

/* The least that a key and a tensor take: larger counts cannot be true. */
#define MIN_KEY_BYTES 13    /* an empty name, a type, one byte */
#define MIN_TENSOR_BYTES 24 /* an empty name, rank 0, a type, an offset */

bool coffer__gguf_probe(const uint8_t *head, size_t len)
{
    return len >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

/* ---- Tensors ---- */

static coffer_status measure_tensor(coffer__gguf_tensor *tensor, uint64_t place, coffer_error *err)
{
    const coffer__gguf_type *type = tensor->type;
    uint64_t row = tensor->rank ? tensor->dims[tensor->rank - 1] : 1, elements = 1;
    bool fits = true;
    for (uint32_t i = 0; fits && i < tensor->rank; i++)
        fits = coffer__mul_u64(&elements, elements, tensor->dims[i]);
    if (fits && row % type->elements != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                            "tensor \"%s\" has rows of %" PRIu64 " elements, %s blocks have %u", tensor->name,
                            row, type->name, type->elements);
    if (!fits || !coffer__mul_u64(&tensor->size, elements / type->elements, type->bytes))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                            "the shape of tensor \"%s\" does not fit into 64 bits", tensor->name);
    return COFFER_OK;
}

static coffer_status take_dims(coffer__gguf_tensor *tensor, coffer__gguf_input *input, coffer_error *err)
{
    coffer_status status = coffer__gguf_take_u32(&tensor->rank, input, err);
    if (status)
        return status;
    if (tensor->rank > COFFER__GGUF_MAX_RANK)
        return coffer__fail(err, COFFER_E_BAD_VALUE, input->at - 4,
                            "tensor \"%s\" has %" PRIu32 " dimensions, GGUF has at most %d", tensor->name,
                            tensor->rank, COFFER__GGUF_MAX_RANK);
    for (uint32_t i = tensor->rank; !status && i > 0; i--)
        status = coffer__gguf_take_u64(&tensor->dims[i - 1], input, err);
    return status;
}

/* Reads an entry of the list. *known is false when the rest of the list can be read but the tensor cannot.
 * The offset is from the start of the payloads still. */
static coffer_status take_tensor(bool *known, coffer__gguf_tensor *tensor, coffer__gguf_input *input,
                                 coffer_error *err)
{
    uint64_t place = input->at;
    uint32_t type;
    *known = true;
    input->what = "a tensor";
    coffer_status status = coffer__gguf_take_name(&tensor->name, &tensor->name_len, input, err);
    if (status)
        return status;
    input->what = tensor->name;
    status = take_dims(tensor, input, err);
    if (!status)
        status = coffer__gguf_take_u32(&type, input, err);
    if (!status)
        status = coffer__gguf_take_u64(&tensor->offset, input, err);
    if (status)
        return status;
    tensor->type = coffer__gguf_find_type(type);
    status = tensor->type ? measure_tensor(tensor, place, err)
                          : coffer__fail(err, COFFER_E_BAD_VALUE, place,
                                         "tensor \"%s\" has the type %" PRIu32 ", which is unknown",
                                         tensor->name, type);
    *known = !status;
    return status;
}

/* Bytes of a file that has all payloads. */
static uint64_t expected_size(const coffer__gguf *gguf, uint64_t payloads)
{
    uint64_t expected = 0;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        const coffer__gguf_tensor *tensor = &gguf->tensors[i];
        uint64_t end = 0;
        if (tensor->lost || !coffer__add_u64(&end, tensor->offset, tensor->size) ||
            !coffer__add_u64(&end, end, payloads))
            continue;
        expected = end > expected ? end : expected;
    }
    return expected;
}

/* expected : bytes of the complete file. */
static coffer_status place_tensor(coffer__gguf_tensor *tensor, const coffer__gguf *gguf, uint64_t payloads,
                                  uint64_t expected, coffer_error *err)
{
    uint64_t size = coffer_source_size(gguf->src), end;
    if (tensor->offset % gguf->alignment != 0)
        return coffer__fail(err, COFFER_E_MISALIGNED, COFFER_OFFSET_NONE,
                            "tensor \"%s\" begins at %" PRIu64 ", which is not a multiple of %" PRIu32,
                            tensor->name, tensor->offset, gguf->alignment);
    if (!coffer__add_u64(&tensor->offset, tensor->offset, payloads) ||
        !coffer__add_u64(&end, tensor->offset, tensor->size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "tensor \"%s\" of %" PRIu64 " bytes ends past 64 bits", tensor->name,
                            tensor->size);
    if (tensor->size && end > size)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, tensor->offset < size ? tensor->offset : size,
                            "the file has %" PRIu64 " bytes instead of %" PRIu64
                            ": tensor \"%s\" ends at %" PRIu64,
                            size, expected, tensor->name, end);
    return COFFER_OK;
}

/* ---- The file ---- */

/* The caller's function for a damaged file; `lose` is NULL when damage is an error. */
typedef struct damage_policy {
    coffer__gguf_lose lose;
    void *context;
} damage_policy;

/* Marks a tensor as lost, or fails. */
static coffer_status lose(coffer__gguf_tensor *tensor, const damage_policy *policy, const coffer_error *why,
                          coffer_error *err)
{
    if (!policy->lose || !coffer__is_about_file(why->status))
        return coffer__fail_copy(err, why);
    tensor->lost = true;
    return policy->lose(policy->context, tensor->name, why, err);
}

static void drop_lost(coffer__gguf *gguf)
{
    size_t kept = 0;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        if (gguf->tensors[i].lost)
            coffer__free(gguf->tensors[i].name);
        else
            gguf->tensors[kept++] = gguf->tensors[i];
    }
    gguf->tensor_count = kept;
}

static int by_name(const void *left, const void *right)
{
    return strcmp((*(const coffer__gguf_key *const *)left)->name,
                  (*(const coffer__gguf_key *const *)right)->name);
}

static coffer_status check_duplicate_keys(const coffer__gguf *gguf, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const coffer__gguf_key **sorted = coffer__alloc_array(gguf->key_count, sizeof *sorted);
    if (!sorted)
        return coffer__fail_no_memory(err, gguf->key_count * sizeof *sorted);
    for (size_t i = 0; i < gguf->key_count; i++)
        sorted[i] = &gguf->keys[i];
    if (gguf->key_count)
        qsort(sorted, gguf->key_count, sizeof *sorted, by_name);
    for (size_t i = 1; !status && i < gguf->key_count; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status = coffer__fail(err, COFFER_E_DUPLICATE, sorted[i]->offset, "duplicate key \"%s\"",
                                  sorted[i]->name);
    }
    coffer__free(sorted);
    return status;
}

static int by_offset(const void *left, const void *right)
{
    const coffer__gguf_tensor *a = *(const coffer__gguf_tensor *const *)left;
    const coffer__gguf_tensor *b = *(const coffer__gguf_tensor *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

coffer_status coffer__gguf_sort_by_offset(coffer__gguf_tensor ***out, const coffer__gguf *gguf,
                                          coffer_error *err)
{
    coffer__gguf_tensor **sorted = coffer__alloc_array(gguf->tensor_count, sizeof *sorted);
    if (!sorted)
        return coffer__fail_no_memory(err, gguf->tensor_count * sizeof *sorted);
    for (size_t i = 0; i < gguf->tensor_count; i++)
        sorted[i] = &gguf->tensors[i];
    if (gguf->tensor_count)
        qsort(sorted, gguf->tensor_count, sizeof *sorted, by_offset);
    *out = sorted;
    return COFFER_OK;
}

/* Payloads do not share bytes, but for those that are the same range. */
static coffer_status check_overlap(const coffer__gguf *gguf, const damage_policy *policy, coffer_error *err)
{
    const coffer__gguf_tensor *last = NULL;
    coffer__gguf_tensor **sorted = NULL;
    coffer_status status = coffer__gguf_sort_by_offset(&sorted, gguf, err);
    for (size_t i = 0; !status && i < gguf->tensor_count; i++) {
        coffer__gguf_tensor *tensor = sorted[i];
        coffer_error why = COFFER_ERROR_INIT;
        if (!tensor->size || tensor->lost)
            continue;
        bool same = last && last->offset == tensor->offset && last->size == tensor->size;
        if (last && !same && tensor->offset < last->offset + last->size) {
            coffer__fail(&why, COFFER_E_OVERLAP, tensor->offset,
                         "tensor \"%s\" begins at %" PRIu64 ", inside of \"%s\", which ends at %" PRIu64,
                         tensor->name, tensor->offset, last->name, last->offset + last->size);
            status = lose(tensor, policy, &why, err);
            continue;
        }
        last = tensor;
    }
    coffer__free(sorted);
    return status;
}

static coffer_status check_version(coffer__gguf *gguf, coffer__gguf_input *input, coffer_error *err)
{
    const uint8_t *bytes;
    coffer_status status;
    input->what = "the header";
    status = coffer__gguf_take(&bytes, input, sizeof magic, err);
    if (status)
        return status;
    if (!coffer__gguf_probe(bytes, sizeof magic))
        return coffer__fail(err, COFFER_E_BAD_MAGIC, 0, "the file does not begin with GGUF");
    status = coffer__gguf_take_u32(&gguf->version, input, err);
    if (status)
        return status;
    if (gguf->version != 0 && (gguf->version & 0xFFFF) == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, 4,
                            "a big-endian GGUF file: convert it with gguf-convert-endian first");
    if (gguf->version != 2 && gguf->version != 3)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, 4,
                            "GGUF version %" PRIu32 " is not supported, only 2 and 3", gguf->version);
    return COFFER_OK;
}

static coffer_status take_counts(uint64_t *tensors, uint64_t *keys, const coffer__gguf *gguf,
                                 coffer__gguf_input *input, coffer_error *err)
{
    uint64_t left, most = gguf->limits.entries;
    coffer_status status = coffer__gguf_take_u64(tensors, input, err);
    if (!status)
        status = coffer__gguf_take_u64(keys, input, err);
    if (status)
        return status;
    left = input->size - input->at;
    if (*tensors > left / MIN_TENSOR_BYTES)
        return coffer__fail(err, COFFER_E_TRUNCATED, 8, "%" PRIu64 " tensors in %" PRIu64 " bytes", *tensors,
                            left);
    if (*keys > left / MIN_KEY_BYTES)
        return coffer__fail(err, COFFER_E_TRUNCATED, 16, "%" PRIu64 " keys in %" PRIu64 " bytes", *keys,
                            left);
    if (*tensors > most || *keys > most)
        return coffer__fail(err, COFFER_E_LIMIT, 8,
                            "%" PRIu64 " tensors and %" PRIu64 " keys, the limit is %" PRIu64, *tensors,
                            *keys, most);
    return COFFER_OK;
}

/* ggml takes a power of two of the type u32, and so do we. */
static coffer_status find_alignment(coffer__gguf *gguf, coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(gguf, "general.alignment");
    uint8_t bytes[4];
    gguf->alignment = COFFER__GGUF_ALIGNMENT;
    if (!key)
        return COFFER_OK;
    if (key->type != COFFER__GGUF_U32)
        return coffer__fail(err, COFFER_E_BAD_VALUE, key->offset, "general.alignment is of type %s, not u32",
                            coffer__gguf_value_name(key->type));
    coffer_status status = coffer_source_read_at(bytes, gguf->src, key->offset, sizeof bytes, err);
    if (status)
        return status;
    gguf->alignment = coffer__load_u32(bytes);
    if (gguf->alignment == 0 || (gguf->alignment & (gguf->alignment - 1)) != 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, key->offset,
                            "general.alignment is %" PRIu32 ", which is not a power of two", gguf->alignment);
    return COFFER_OK;
}

static coffer_status take_lists(coffer__gguf *gguf, coffer__gguf_input *input, const damage_policy *policy,
                                coffer_error *err)
{
    uint64_t tensors, keys;
    coffer_status status = check_version(gguf, input, err);
    if (!status)
        status = take_counts(&tensors, &keys, gguf, input, err);
    for (uint64_t i = 0; !status && i < keys; i++) {
        status = coffer__array_reserve_one(&gguf->keys, &gguf->key_capacity, gguf->key_count,
                                           sizeof *gguf->keys, err);
        if (status)
            break;
        coffer__gguf_key *key = &gguf->keys[gguf->key_count++];
        memset(key, 0, sizeof *key);
        status = coffer__gguf_take_key(key, input, err);
    }
    for (uint64_t i = 0; !status && i < tensors; i++) {
        status = coffer__array_reserve_one(&gguf->tensors, &gguf->tensor_capacity, gguf->tensor_count,
                                           sizeof *gguf->tensors, err);
        if (status)
            break;
        coffer__gguf_tensor *tensor = &gguf->tensors[gguf->tensor_count++];
        memset(tensor, 0, sizeof *tensor);
        coffer_error why = COFFER_ERROR_INIT;
        bool known;
        if (take_tensor(&known, tensor, input, &why))
            status = known ? coffer__fail_copy(err, &why) : lose(tensor, policy, &why, err);
    }
    return status;
}

static coffer_status read_front(coffer__gguf *gguf, coffer__gguf_input *input, const damage_policy *policy,
                                coffer_error *err)
{
    uint64_t payloads;
    coffer_status status = take_lists(gguf, input, policy, err);
    if (!status)
        status = check_duplicate_keys(gguf, err);
    if (!status)
        status = find_alignment(gguf, err);
    if (status)
        return status;
    if (!coffer__align_up(&payloads, input->at, gguf->alignment))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, input->at, "the payloads begin past 64 bits");
    gguf->front = input->at;
    gguf->payloads = payloads;
    uint64_t expected = expected_size(gguf, payloads);
    for (size_t i = 0; !status && i < gguf->tensor_count; i++) {
        coffer_error why = COFFER_ERROR_INIT;
        if (!gguf->tensors[i].lost && place_tensor(&gguf->tensors[i], gguf, payloads, expected, &why))
            status = lose(&gguf->tensors[i], policy, &why, err);
    }
    if (!status)
        status = check_overlap(gguf, policy, err);
    drop_lost(gguf);
    return status;
}

static coffer_status open_file(coffer__gguf **out, coffer_source *src, const coffer_limits *limits,
                               const damage_policy *policy, coffer_error *err)
{
    coffer__gguf_input input = { .src = src,
                                 .size = coffer_source_size(src),
                                 .string_max = limits->string_bytes };
    coffer__gguf *gguf = coffer__calloc(1, sizeof *gguf);
    coffer_status status;
    if (!gguf)
        return coffer__fail_no_memory(err, sizeof *gguf);
    gguf->src = src;
    gguf->limits = *limits;
    input.memory = coffer__malloc(COFFER__GGUF_WINDOW);
    status = input.memory ? read_front(gguf, &input, policy, err)
                          : coffer__fail_no_memory(err, COFFER__GGUF_WINDOW);
    coffer__free(input.memory);
    if (status) {
        coffer__gguf_close(gguf);
        return status;
    }
    *out = gguf;
    return COFFER_OK;
}

coffer_status coffer__gguf_open(coffer__gguf **out, coffer_source *src, const coffer_limits *limits,
                                coffer_error *err)
{
    static const damage_policy none = { NULL, NULL };
    return open_file(out, src, limits, &none, err);
}

coffer_status coffer__gguf_salvage(coffer__gguf **out, coffer_source *src, const coffer_limits *limits,
                                   coffer__gguf_lose lose_tensor, void *context, coffer_error *err)
{
    const damage_policy damaged = { lose_tensor, context };
    return open_file(out, src, limits, &damaged, err);
}

void coffer__gguf_close(coffer__gguf *gguf)
{
    if (!gguf)
        return;
    for (size_t i = 0; i < gguf->key_count; i++)
        coffer__free(gguf->keys[i].name);
    for (size_t i = 0; i < gguf->tensor_count; i++)
        coffer__free(gguf->tensors[i].name);
    coffer__free(gguf->keys);
    coffer__free(gguf->tensors);
    coffer__free(gguf);
}

const coffer__gguf_key *coffer__gguf_find(const coffer__gguf *gguf, const char *name)
{
    for (size_t i = 0; i < gguf->key_count; i++) {
        if (strcmp(gguf->keys[i].name, name) == 0)
            return &gguf->keys[i];
    }
    return NULL;
}

coffer_status coffer__gguf_read_value(uint8_t **out, size_t *len, const coffer__gguf *gguf,
                                      const coffer__gguf_key *key, coffer_error *err)
{
    uint64_t head = key->type == COFFER__GGUF_STRING  ? COFFER__GGUF_MIN_STRING
                    : key->type == COFFER__GGUF_ARRAY ? COFFER__GGUF_MIN_ARRAY
                                                      : 0;
    uint64_t size = key->size - head;
    if (size > gguf->limits.json_bytes || size >= SIZE_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, key->offset,
                            "the value of %s has %" PRIu64 " bytes, the limit is %" PRIu64, key->name, size,
                            gguf->limits.json_bytes);
    uint8_t *bytes = coffer__malloc((size_t)size + 1);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    coffer_status status = coffer_source_read_at(bytes, gguf->src, key->offset + head, (size_t)size, err);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    bytes[size] = 0;
    *out = bytes;
    *len = (size_t)size;
    return COFFER_OK;
}
