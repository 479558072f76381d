/* The table of quantized types, and the plan of a payload. */
#include "base/checked.h"
#include "base/fail.h"
#include "quant/quant.h"

#include <inttypes.h>

static const coffer__quant_type types[COFFER__QUANT_TYPE_COUNT] = {
    { COFFER_DTYPE_Q8, COFFER__QUANT_BLOCKS, 8, COFFER__QUANT_BLOCK, 0, 0 },
    { COFFER_DTYPE_Q4, COFFER__QUANT_BLOCKS, 4, COFFER__QUANT_BLOCK, 0, 1 },
    { COFFER_DTYPE_K6, COFFER__QUANT_SUPERS, 6, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 2 },
    { COFFER_DTYPE_K4, COFFER__QUANT_SUPERS, 4, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 3 },
    { COFFER_DTYPE_K3, COFFER__QUANT_SUPERS, 3, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 4 },
    { COFFER_DTYPE_K2, COFFER__QUANT_SUPERS, 2, COFFER__QUANT_BLOCK, COFFER__QUANT_SUPER, 5 },
    { COFFER_DTYPE_INT8, COFFER__QUANT_WHOLE, 8, 0, 0, 6 },
    { COFFER_DTYPE_INT4, COFFER__QUANT_WHOLE, 4, 0, 0, 7 },
};

const coffer__quant_type *coffer__quant_find_type(coffer_dtype dtype)
{
    for (size_t i = 0; i < COFFER__QUANT_TYPE_COUNT; i++) {
        if (types[i].dtype == dtype)
            return &types[i];
    }
    return NULL;
}

/* Rows and columns; false when the columns overflow. Up to one dimension there is a single row. */
static bool fold_shape(coffer__quant_layout *layout, uint32_t rank, const uint64_t *dims)
{
    layout->rows = rank > 1 ? dims[0] : 1;
    layout->cols = 1;
    for (uint32_t i = rank > 1; i < rank; i++) {
        if (!coffer__mul_u64(&layout->cols, layout->cols, dims[i]))
            return false;
    }
    return true;
}

/* Sizes of the regions of a tensor that has elements; false on overflow. */
static bool measure_regions(coffer__quant_layout *layout, bool activations)
{
    uint64_t *scales = &layout->regions[COFFER__QUANT_SCALES].size;
    uint64_t *subs = &layout->regions[COFFER__QUANT_SUBS].size;
    uint64_t *codes = &layout->regions[COFFER__QUANT_CODES].size;
    uint64_t blocks, elements;

    if (layout->type->family == COFFER__QUANT_WHOLE) {
        if (!coffer__mul_u64(&elements, layout->rows, layout->cols))
            return false;
        *scales = sizeof(float);
        *subs = activations ? sizeof(float) : 0;
        *codes = layout->type->bits == 8 ? elements : coffer__divide_up(elements, 2);
        return true;
    }
    layout->blocks_per_row = coffer__divide_up(layout->cols, COFFER__QUANT_BLOCK);
    if (!coffer__mul_u64(&blocks, layout->rows, layout->blocks_per_row) ||
        !coffer__mul_u64(codes, blocks, layout->type->bits * COFFER__QUANT_BLOCK / 8u))
        return false;
    if (layout->type->family == COFFER__QUANT_BLOCKS)
        return coffer__mul_u64(scales, blocks, sizeof(uint16_t));
    layout->supers_per_row =
        coffer__divide_up(layout->blocks_per_row, COFFER__QUANT_SUPER / COFFER__QUANT_BLOCK);
    *subs = blocks;
    *scales = layout->rows * layout->supers_per_row * sizeof(uint16_t); /* fewer than the codes, which fit */
    return true;
}

static bool place_regions(coffer__quant_layout *layout)
{
    uint64_t end = 0;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++) {
        coffer__quant_region *region = &layout->regions[i];
        if (!region->size)
            continue;
        if (!coffer__align_up(&region->offset, end, COFFER__QUANT_REGION_ALIGN) ||
            !coffer__add_u64(&end, region->offset, region->size))
            return false;
    }
    layout->size = end;
    return true;
}

coffer_status coffer__quant_plan(coffer__quant_layout *out, coffer_dtype dtype, uint32_t rank,
                                 const uint64_t *dims, bool activations, coffer_error *err)
{
    coffer__quant_layout layout = { .type = coffer__quant_find_type(dtype) };
    const char *name = coffer_dtype_name(dtype);
    if (!layout.type)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s is not a quantized type", name);
    if (layout.type->family != COFFER__QUANT_WHOLE && rank != 2)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "a %s tensor has 2 dimensions, not %" PRIu32, name, rank);
    if (layout.type->family != COFFER__QUANT_WHOLE && activations)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s is for weights only", name);
    bool fits = fold_shape(&layout, rank, dims);
    if (fits && layout.rows && layout.cols)
        fits = measure_regions(&layout, activations) && place_regions(&layout);
    if (!fits)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "a %s tensor of %" PRIu64 " rows of %" PRIu64
                            " columns does not fit into 64 bits",
                            name, layout.rows, layout.cols);
    *out = layout;
    return COFFER_OK;
}
