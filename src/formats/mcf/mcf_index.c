/* The TensorIndex: three tables that a file may fill with anything. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <stdio.h>

static coffer_status check_table(const char *what, uint64_t offset, uint64_t len, size_t section_len,
                                 uint64_t base, coffer_error *err)
{
    if (coffer__range_fits(offset, len, section_len))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                        "TensorIndex: %s take %llu bytes at %llu, the section has %zu", what,
                        (unsigned long long)len, (unsigned long long)offset, section_len);
}

/* Counts are u32: count × entry size fits into 64 bits. */
static coffer_status find_tables(coffer__mcf_index *index, size_t len, coffer_error *err)
{
    const uint8_t *raw = index->raw;
    uint64_t base = index->base;
    uint32_t version;
    coffer_status status;
    if (len < COFFER__MCF_INDEX_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                            "TensorIndex has %zu bytes, its header takes %d", len, COFFER__MCF_INDEX_HEADER);
    version = coffer__load_u32(raw + COFFER__MCF_INDEX_VERSION_AT);
    if (version != COFFER__MCF_INDEX_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "TensorIndex has version %lu, this program reads %d", (unsigned long)version,
                            COFFER__MCF_INDEX_VERSION);
    index->flags = coffer__load_u32(raw + COFFER__MCF_INDEX_FLAGS_AT);
    index->count = coffer__load_u32(raw + COFFER__MCF_INDEX_COUNT_AT);
    index->dim_count = coffer__load_u32(raw + COFFER__MCF_INDEX_DIM_COUNT_AT);
    index->entries_off = coffer__load_u64(raw + COFFER__MCF_INDEX_ENTRIES_AT);
    index->dims_off = coffer__load_u64(raw + COFFER__MCF_INDEX_DIMS_AT);
    index->strings_off = coffer__load_u64(raw + COFFER__MCF_INDEX_STRINGS_AT);
    index->strings_size = coffer__load_u64(raw + COFFER__MCF_INDEX_STRINGS_SIZE_AT);
    if ((status = check_table("entries", index->entries_off, (uint64_t)index->count * COFFER__MCF_ENTRY, len,
                              base, err)) ||
        (status = check_table("dims", index->dims_off, (uint64_t)index->dim_count * sizeof(uint64_t), len,
                              base, err)) ||
        (status = check_table("names", index->strings_off, index->strings_size, len, base, err)))
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
                            "TensorIndex: names of %llu bytes in total share %llu bytes, the limit is %llu",
                            (unsigned long long)names, (unsigned long long)index->strings_size,
                            (unsigned long long)max_names);
    if (dims > max_dims)
        return coffer__fail(err, COFFER_E_LIMIT, index->base,
                            "TensorIndex: %llu dims in total share %zu, the limit is %llu",
                            (unsigned long long)dims, index->dim_count, (unsigned long long)max_dims);
    return COFFER_OK;
}

coffer_status coffer__mcf_index_parse(coffer__mcf_index *out, uint8_t *raw, size_t len, uint64_t base,
                                      coffer_error *err)
{
    coffer__mcf_index index = { .base = base, .raw = raw };
    coffer_status status = find_tables(&index, len, err);
    if (status == COFFER_OK) {
        index.dims = coffer__alloc_array(index.dim_count, sizeof *index.dims);
        if (!index.dims)
            status = coffer__fail_no_memory(err, index.dim_count * sizeof *index.dims);
    }
    if (status == COFFER_OK)
        status = check_shares(&index, err);
    if (status) {
        coffer__mcf_index_free(&index);
        return status;
    }
    for (size_t i = 0; i < index.dim_count; i++)
        index.dims[i] = coffer__load_u64(raw + index.dims_off + i * sizeof(uint64_t));
    *out = index;
    return COFFER_OK;
}

coffer_status coffer__mcf_index_load(coffer__mcf_index *out, coffer_source *src,
                                     const coffer_mcf_section *section, const coffer_limits *limits,
                                     coffer_error *err)
{
    uint64_t max;
    uint8_t *raw;
    size_t len;
    coffer_status status;
    /* An entry, its dims and its name: what that many tensors may reasonably take. */
    if (!coffer__mul_u64(&max, limits->entries, (uint64_t)4 * COFFER__MCF_ENTRY))
        max = UINT64_MAX;
    status = coffer__mcf_load_section(&raw, &len, src, section, max, err);
    if (status)
        return status;
    status = coffer__mcf_index_parse(out, raw, len, section->offset, err);
    if (status == COFFER_OK && out->count > limits->entries) {
        status = coffer__fail(err, COFFER_E_LIMIT, section->offset, "%zu tensors, the limit is %llu",
                              out->count, (unsigned long long)limits->entries);
        coffer__mcf_index_free(out);
    }
    return status;
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
    uint32_t *from = coffer__alloc_array(count, sizeof *from), *to = coffer__alloc_array(count, sizeof *to);
    if (!from || !to) {
        coffer__free(from);
        coffer__free(to);
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
                to[i] = take_left ? from[left++] : from[right++];
            }
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    coffer__free(to);
    *out = from;
    return COFFER_OK;
}
