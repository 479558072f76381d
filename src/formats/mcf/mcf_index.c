/* The TensorIndex: three tables that a file may fill with anything. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/large_pages.h"
#include "base/memory.h"
#include "quant/quant.h"

#include <inttypes.h>
#include <stdio.h>

/* Payload sizes, computed from type and shape and compared with the index. */

bool coffer__mcf_elements(uint64_t *out, uint32_t rank, const uint64_t *dims)
{
    uint64_t elements = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) { /* also when the others overflow */
            *out = 0;
            return true;
        }
        fits = fits && coffer__mul_u64(&elements, elements, dims[i]);
    }
    if (fits)
        *out = elements;
    return fits;
}

bool coffer__mcf_is_blocked(coffer_dtype dtype)
{
    return coffer_dtype_is_quantized(dtype) && dtype != COFFER_DTYPE_INT8 && dtype != COFFER_DTYPE_INT4;
}

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

coffer_status coffer_mcf_payload_size(uint64_t *out, coffer_dtype dtype, uint32_t rank, const uint64_t *dims,
                                      bool activations, coffer_error *err)
{
    coffer__quant_layout layout;
    uint64_t elements, size;
    coffer_status status;
    if (coffer_mcf_dtype_code(dtype) == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "MCF has no type %s",
                            coffer_dtype_name(dtype));
    if (!coffer_dtype_is_quantized(dtype)) {
        if (!coffer__mcf_elements(&elements, rank, dims) ||
            !coffer__mul_u64(&size, elements, coffer_dtype_size(dtype)))
            return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                "the payload of that shape does not fit into 64 bits");
        *out = size;
        return COFFER_OK;
    }
    status = coffer__quant_plan(&layout, dtype, rank, dims, activations, err);
    if (!status)
        *out = layout.size;
    return status;
}

/* ---- Payload ranges and sizes in the index ---- */

coffer_status coffer__mcf_check_payload_range(const coffer__mcf_index *index, size_t position,
                                              uint64_t file_size, const coffer_mcf_section *data,
                                              coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    uint64_t place = coffer__mcf_entry_at(index, position) + COFFER__MCF_ENTRY_OFFSET_AT;
    if (!coffer__range_fits(entry.offset, entry.size, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s takes %" PRIu64 " bytes at %" PRIu64 ", file has %" PRIu64,
                            coffer__mcf_entry_name(index, position).text, entry.size, entry.offset,
                            file_size);
    if (data && entry.size > 0 &&
        (entry.offset < data->offset ||
         !coffer__range_fits(entry.offset - data->offset, entry.size, data->size)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s, %" PRIu64 " bytes at %" PRIu64 ", is not inside TensorData, %" PRIu64
                            " bytes at %" PRIu64,
                            coffer__mcf_entry_name(index, position).text, entry.size, entry.offset,
                            data->size, data->offset);
    return COFFER_OK;
}

/* True when the payload has the size of its codes alone, without the scale. */
static bool lacks_scale(coffer_dtype dtype, uint64_t elements, uint64_t size)
{
    return (dtype == COFFER_DTYPE_INT8 && size == elements) ||
           (dtype == COFFER_DTYPE_INT4 && size == divide_up(elements, 2));
}

coffer_status coffer__mcf_check_payload_size(const coffer__mcf_index *index, size_t position,
                                             bool activations, coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    coffer_dtype dtype = coffer_mcf_dtype_from_code(entry.dtype);
    uint64_t place = coffer__mcf_entry_at(index, position), implied, elements;
    coffer__mcf_name name = coffer__mcf_entry_name(index, position);
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status;
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place, "tensor %s has the unknown type 0x%" PRIx32,
                            name.text, entry.dtype);
    if (!entry.dims)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s has %" PRIu32 " dims starting at %" PRIu32 ", the index has %zu",
                            name.text, entry.rank, entry.dim_off, index->dim_count);
    status = coffer_mcf_payload_size(&implied, dtype, entry.rank, entry.dims, activations, &cause);
    if (status)
        return coffer__fail(err, status, place, "tensor %s: %s", name.text, cause.text);
    if (implied == entry.size)
        return COFFER_OK;
    if (coffer__mcf_elements(&elements, entry.rank, entry.dims) && lacks_scale(dtype, elements, entry.size))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                            "tensor %s: %s payload has no scale region (written by mantle's --quant-embed?)",
                            name.text, coffer_dtype_name(dtype));
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                        "tensor %s has %" PRIu64 " bytes, its type and shape require %" PRIu64, name.text,
                        entry.size, implied);
}

static coffer_status check_table(const char *what, uint64_t offset, uint64_t len, size_t section_len,
                                 uint64_t base, coffer_error *err)
{
    if (coffer__range_fits(offset, len, section_len))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                        "TensorIndex: %s take %" PRIu64 " bytes at %" PRIu64 ", the section has %zu", what,
                        len, offset, section_len);
}

/* Counts are u32: count × entry size fits into 64 bits. */
static coffer_status find_tables(coffer__mcf_index *index, size_t len, bool any_version, coffer_error *err)
{
    const uint8_t *raw = index->raw;
    uint64_t base = index->base;
    uint32_t version;
    coffer_status status;
    if (len < COFFER__MCF_INDEX_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                            "TensorIndex has %zu bytes, its header takes %d", len, COFFER__MCF_INDEX_HEADER);
    version = coffer__load_u32(raw + COFFER__MCF_INDEX_VERSION_AT);
    if (version != COFFER__MCF_INDEX_VERSION && !any_version)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "TensorIndex has version %" PRIu32 ", this program reads %d", version,
                            COFFER__MCF_INDEX_VERSION);
    index->flags = coffer__load_u32(raw + COFFER__MCF_INDEX_FLAGS_AT);
    index->count = coffer__load_u32(raw + COFFER__MCF_INDEX_COUNT_AT);
    index->dim_count = coffer__load_u32(raw + COFFER__MCF_INDEX_DIM_COUNT_AT);
    index->entries_off = coffer__load_u64(raw + COFFER__MCF_INDEX_ENTRIES_AT);
    index->dims_off = coffer__load_u64(raw + COFFER__MCF_INDEX_DIMS_AT);
    index->strings_off = coffer__load_u64(raw + COFFER__MCF_INDEX_STRINGS_AT);
    index->strings_size = coffer__load_u64(raw + COFFER__MCF_INDEX_STRINGS_SIZE_AT);
    status = check_table("entries", index->entries_off, (uint64_t)index->count * COFFER__MCF_ENTRY, len, base,
                         err);
    if (!status)
        status = check_table("dims", index->dims_off, (uint64_t)index->dim_count * sizeof(uint64_t), len,
                             base, err);
    if (!status)
        status = check_table("names", index->strings_off, index->strings_size, len, base, err);
    if (status)
        return status;
    index->entries = raw + index->entries_off;
    index->strings = (const char *)raw + index->strings_off;
    return COFFER_OK;
}

/* Entries may share names and dims. When all of them share long ones, a small file takes hours to sort and
 * any memory to copy: beyond what the tables hold, an entry has this much on average. */
#define SHARED_NAME 256
#define SHARED_DIMS 64

static coffer_status check_shares(const coffer__mcf_index *index, coffer_error *err)
{
    uint64_t names = 0, dims = 0;
    uint64_t max_names = index->strings_size + (uint64_t)index->count * SHARED_NAME;
    uint64_t max_dims = index->dim_count + (uint64_t)index->count * SHARED_DIMS;
    for (size_t i = 0; i < index->count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(index, i);
        names += entry.name ? entry.name_len : 0;
        dims += entry.dims ? entry.rank : 0;
    }
    if (names > max_names)
        return coffer__fail(err, COFFER_E_LIMIT, index->base,
                            "TensorIndex: names of %" PRIu64 " bytes in total share %" PRIu64
                            " bytes, the limit is %" PRIu64,
                            names, index->strings_size, max_names);
    if (dims > max_dims)
        return coffer__fail(err, COFFER_E_LIMIT, index->base,
                            "TensorIndex: %" PRIu64 " dims in total share %zu, the limit is %" PRIu64, dims,
                            index->dim_count, max_dims);
    return COFFER_OK;
}

/* The same from bytes, which the index owns from now on, also on failure; base : their offset in the file. */
static coffer_status index_parse(coffer__mcf_index *out, uint8_t *raw, size_t len, uint64_t base,
                                 bool any_version, coffer_error *err)
{
    coffer__mcf_index index = { .base = base, .raw = raw };
    coffer_status status = find_tables(&index, len, any_version, err);
    if (!status) {
        index.dims = coffer__alloc_array(index.dim_count, sizeof *index.dims);
        if (!index.dims)
            status = coffer__fail_no_memory(err, index.dim_count * sizeof *index.dims);
    }
    if (!status)
        status = check_shares(&index, err);
    if (status) {
        coffer__mcf_index_free(&index);
        return status;
    }
    coffer__expect_filled(index.dims, index.dim_count * sizeof *index.dims);
    for (size_t i = 0; i < index.dim_count; i++)
        index.dims[i] = coffer__load_u64(raw + index.dims_off + i * sizeof(uint64_t));
    *out = index;
    return COFFER_OK;
}

static coffer_status index_load(coffer__mcf_index *out, coffer_source *src, const coffer_mcf_section *section,
                                const coffer_limits *limits, bool any_version, coffer_error *err)
{
    uint64_t max;
    uint8_t *raw;
    size_t len;
    coffer_status status;
    /* A generous size for that many entries with dims and names. */
    if (!coffer__mul_u64(&max, limits->entries, (uint64_t)4 * COFFER__MCF_ENTRY))
        max = UINT64_MAX;
    status = coffer__mcf_load_section(&raw, &len, src, section, max, err);
    if (status)
        return status;
    status = index_parse(out, raw, len, section->offset, any_version, err);
    if (!status && out->count > limits->entries) {
        status = coffer__fail(err, COFFER_E_LIMIT, section->offset, "%zu tensors, the limit is %" PRIu64,
                              out->count, limits->entries);
        coffer__mcf_index_free(out);
    }
    return status;
}

coffer_status coffer__mcf_index_load(coffer__mcf_index *out, coffer_source *src,
                                     const coffer_mcf_section *section, const coffer_limits *limits,
                                     coffer_error *err)
{
    return index_load(out, src, section, limits, false, err);
}

coffer_status coffer__mcf_index_rescue(coffer__mcf_index *out, coffer_source *src,
                                       const coffer_mcf_section *section, const coffer_limits *limits,
                                       coffer_error *err)
{
    return index_load(out, src, section, limits, true, err);
}

void coffer__mcf_index_free(coffer__mcf_index *index)
{
    coffer__free(index->dims);
    coffer__free(index->raw);
    *index = (coffer__mcf_index){ 0 };
}

coffer__mcf_entry coffer__mcf_index_entry(const coffer__mcf_index *index, size_t position)
{
    const uint8_t *bytes = index->entries + position * COFFER__MCF_ENTRY;
    coffer__mcf_entry entry;
    entry.name_off = coffer__load_u32(bytes + COFFER__MCF_ENTRY_NAME_AT);
    entry.name_len = coffer__load_u32(bytes + COFFER__MCF_ENTRY_NAME_LEN_AT);
    entry.dtype = coffer__load_u32(bytes + COFFER__MCF_ENTRY_DTYPE_AT);
    entry.rank = coffer__load_u32(bytes + COFFER__MCF_ENTRY_RANK_AT);
    entry.dim_off = coffer__load_u32(bytes + COFFER__MCF_ENTRY_DIM_AT);
    entry.reserved = coffer__load_u32(bytes + COFFER__MCF_ENTRY_RESERVED_AT);
    entry.offset = coffer__load_u64(bytes + COFFER__MCF_ENTRY_OFFSET_AT);
    entry.size = coffer__load_u64(bytes + COFFER__MCF_ENTRY_SIZE_AT);
    entry.name = coffer__range_fits(entry.name_off, entry.name_len, index->strings_size)
                     ? index->strings + entry.name_off
                     : NULL;
    entry.dims = index->dims;
    if (entry.rank > 0)
        entry.dims = coffer__range_fits(entry.dim_off, entry.rank, index->dim_count)
                         ? index->dims + entry.dim_off
                         : NULL;
    return entry;
}

uint64_t coffer__mcf_entry_at(const coffer__mcf_index *index, size_t position)
{
    return index->base + index->entries_off + position * COFFER__MCF_ENTRY;
}

coffer__mcf_name coffer__mcf_entry_name(const coffer__mcf_index *index, size_t position)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    coffer__mcf_name name;
    int shown = entry.name_len < 64 ? (int)entry.name_len : 64;
    if (entry.name && entry.name_len > 0)
        snprintf(name.text, sizeof name.text, "\"%.*s\"%s", shown, entry.name,
                 entry.name_len > 64 ? "…" : "");
    else
        snprintf(name.text, sizeof name.text, "#%zu", position);
    return name;
}

/* ---- Order ---- */

int coffer__mcf_compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t common = a_len < b_len ? a_len : b_len;
    int order = common > 0 ? memcmp(a, b, common) : 0;
    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_entries(const coffer__mcf_index *index, size_t a, size_t b)
{
    coffer__mcf_entry x = coffer__mcf_index_entry(index, a), y = coffer__mcf_index_entry(index, b);
    return coffer__mcf_compare_names(x.name, x.name ? x.name_len : 0, y.name, y.name ? y.name_len : 0);
}

bool coffer__mcf_index_is_sorted(const coffer__mcf_index *index)
{
    for (size_t i = 1; i < index->count; i++) {
        if (compare_entries(index, i - 1, i) > 0)
            return false;
    }
    return true;
}

/* A merge sort: stable, and no index of a hostile file makes it slow. */
coffer_status coffer__mcf_index_order(uint32_t **out, const coffer__mcf_index *index, coffer_error *err)
{
    size_t count = index->count;
    uint32_t *from = coffer__alloc_array(count, sizeof *from),
             *spare = coffer__alloc_array(count, sizeof *spare);
    if (!from || !spare) {
        coffer__free(from);
        coffer__free(spare);
        return coffer__fail_no_memory(err, 2 * count * sizeof *from);
    }
    for (size_t i = 0; i < count; i++)
        from[i] = (uint32_t)i;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - start < 2 * width ? count : start + 2 * width;
            size_t left = start, right = middle;
            for (size_t i = start; i < end; i++) {
                bool take_left =
                    left < middle && (right == end || compare_entries(index, from[left], from[right]) <= 0);
                spare[i] = take_left ? from[left++] : from[right++];
            }
        }
        uint32_t *swap = from;
        from = spare;
        spare = swap;
    }
    coffer__free(spare);
    *out = from;
    return COFFER_OK;
}

int coffer__mcf_index_compare(const coffer__mcf_index *index, size_t position, const char *name,
                              size_t name_len)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    return coffer__mcf_compare_names(entry.name, entry.name ? entry.name_len : 0, name, name_len);
}

size_t coffer__mcf_index_find(const coffer__mcf_index *index, const uint32_t *order, const char *name,
                              size_t name_len)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coffer__mcf_index_compare(index, order ? order[middle] : middle, name, name_len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == index->count)
        return COFFER_INDEX_NONE;
    size_t found = order ? order[low] : low;
    return coffer__mcf_index_compare(index, found, name, name_len) == 0 ? found : COFFER_INDEX_NONE;
}
