/* Tensors under other names, with rows in another order or with other numbers than the file has. Programs
 * store the same model differently: llama.cpp has the two halves of a head's rows in turn, transformers one
 * after the other. */
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/tensors/tensors.h"
#include "quant/quant.h"

#include <inttypes.h>
#include <string.h>

#define MAX_NUMBERS ((uint64_t)1 << 24)

coffer_status coffer__tensors_rename(coffer_tensors *set, size_t tensor, const char *name, coffer_error *err)
{
    coffer__tensors_entry *entry = &set->entries[tensor];
    char *copy = coffer__strdup(name);
    if (!copy)
        return coffer__fail_no_memory(err, strlen(name));
    coffer__free(entry->new_name);
    entry->new_name = copy;
    entry->tensor.name = copy;
    return COFFER_OK;
}

coffer_status coffer__tensors_reorder(coffer_tensors *set, size_t tensor, coffer__row_order order,
                                      uint64_t heads, coffer_error *err)
{
    coffer__tensors_entry *entry = &set->entries[tensor];
    uint64_t rows = entry->tensor.rank ? entry->tensor.dims[0] : 0;
    if (heads == 0 || rows % heads != 0 || rows / heads % 2 != 0 || entry->tensor.rank > 2)
        return coffer__fail(err, COFFER_E_BAD_VALUE, entry->tensor.offset,
                            "\"%s\" has %" PRIu64 " rows, which are not %" PRIu64
                            " heads of an even number of rows",
                            entry->tensor.name, rows, heads);
    entry->row_order = order;
    entry->head_rows = rows / heads;
    return COFFER_OK;
}

coffer_status coffer__tensors_add_number(coffer_tensors *set, size_t tensor, float number, coffer_error *err)
{
    coffer__tensors_entry *entry = &set->entries[tensor];
    uint64_t count = entry->tensor.elements;
    if (count > MAX_NUMBERS)
        return coffer__fail(err, COFFER_E_LIMIT, entry->tensor.offset,
                            "\"%s\" has %" PRIu64 " elements, more than %" PRIu64, entry->tensor.name, count,
                            MAX_NUMBERS);
    float *numbers = coffer__alloc_array((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return coffer__fail_no_memory(err, count * sizeof *numbers);
    coffer_status status = coffer_tensors_read_as(numbers, COFFER_DTYPE_F32, set, tensor, 0, count, err);
    if (status) {
        coffer__free(numbers);
        return status;
    }
    for (uint64_t i = 0; i < count; i++)
        numbers[i] += number;
    coffer__free(entry->numbers);
    entry->numbers = numbers;
    entry->tensor.dtype = COFFER_DTYPE_F32;
    entry->tensor.type_name = "F32";
    entry->tensor.size = count * sizeof *numbers;
    return COFFER_OK;
}

bool coffer__tensors_has_form(const coffer__tensors_entry *entry)
{
    return entry->numbers || entry->row_order != COFFER__ROWS_AS_STORED;
}

/* ---- Rows ---- */

/* The row of the file that readers see as row `row`. */
static uint64_t stored_row(const coffer__tensors_entry *entry, uint64_t row)
{
    uint64_t half = entry->head_rows / 2, in_head = row % entry->head_rows, first = row - in_head;
    if (entry->row_order == COFFER__ROWS_INTERLEAVED)
        return first + in_head % 2 * half + in_head / 2;
    return first + in_head % half * 2 + in_head / half;
}

/* The last region of the payload that begins at or before `offset`. Its size is a multiple of the rows. */
static coffer_status find_region(coffer__quant_region *out, const coffer__tensors_entry *entry,
                                 uint64_t offset, coffer_error *err)
{
    const coffer_tensor *tensor = &entry->tensor;
    coffer__quant_layout layout;
    *out = (coffer__quant_region){ .offset = 0, .size = tensor->size };
    if (!coffer_dtype_is_quantized(tensor->dtype))
        return COFFER_OK;
    coffer_status status = coffer__quant_plan(&layout, tensor->dtype, tensor->rank, tensor->dims, false, err);
    for (int part = 0; !status && part < COFFER__QUANT_PART_COUNT; part++) {
        if (layout.regions[part].size && layout.regions[part].offset <= offset)
            *out = layout.regions[part];
    }
    return status;
}

static coffer_status read_rows(uint8_t *out, const coffer_tensors *set, const coffer__tensors_entry *entry,
                               uint64_t begin, size_t len, coffer__tensors_read_stored read,
                               coffer_error *err)
{
    uint64_t rows = entry->tensor.dims[0];
    coffer_status status = COFFER_OK;
    for (size_t done = 0, now; !status && done < len; done += now) {
        coffer__quant_region region;
        status = find_region(&region, entry, begin + done, err);
        if (status)
            break;
        uint64_t row_bytes = region.size / rows, at = begin + done - region.offset;
        if (row_bytes == 0 || region.size % rows != 0)
            return coffer__fail(err, COFFER_E_UNSUPPORTED, entry->tensor.offset,
                                "the rows of \"%s\" (%s) can only be reordered when they are decoded",
                                entry->tensor.name, entry->tensor.type_name);
        now = len - done;
        if (at >= region.size) { /* padding up to the next region: one byte at a time, at most 63 */
            now = 1;
            status = read(out + done, set, entry, begin + done, now, err);
            continue;
        }
        if (now > row_bytes - at % row_bytes)
            now = (size_t)(row_bytes - at % row_bytes);
        status =
            read(out + done, set, entry,
                 region.offset + stored_row(entry, at / row_bytes) * row_bytes + at % row_bytes, now, err);
    }
    return status;
}

coffer_status coffer__tensors_read_form(void *out, const coffer_tensors *set,
                                        const coffer__tensors_entry *entry, uint64_t begin, size_t len,
                                        coffer__tensors_read_stored read, coffer_error *err)
{
    if (!entry->numbers)
        return read_rows(out, set, entry, begin, len, read, err);
    memcpy(out, (const uint8_t *)entry->numbers + begin, len);
    return COFFER_OK;
}

coffer_status coffer__tensors_decode_form(float *out, const coffer_tensors *set,
                                          const coffer__tensors_entry *entry, uint64_t first, uint64_t count,
                                          coffer_error *err)
{
    if (!coffer__tensors_has_form(entry))
        return set->reader->decode(out, set, entry, first, count, err);
    uint64_t row = entry->tensor.dims[entry->tensor.rank - 1];
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < count; done += row)
        status = set->reader->decode(out + done, set, entry, stored_row(entry, (first + done) / row) * row,
                                     row, err);
    return status;
}
