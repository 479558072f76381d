/* Arrays of a set as small grids of means. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_set.h"

#include <math.h>
#include <string.h>

enum { SIDE = 32 };
/* A larger array is not drawn. */
#define MOST_ELEMENTS ((uint64_t)1 << 24)

typedef struct arrays {
    coffer__page_gallery *gallery;
    const coffer_mldf_field *field;
    float *values;
    coffer__buffer cells;
} arrays;

/* The first dimension down, all others across; a single dimension is one row. */
static void reduce(arrays *from, uint64_t rows, uint64_t columns, uint32_t width, uint32_t height)
{
    for (uint32_t y = 0; y < height; y++) {
        double sums[SIDE] = { 0 };
        uint64_t counts[SIDE] = { 0 };
        for (uint64_t i = rows * y / height; i < rows * (y + 1) / height; i++)
            coffer__page_sum_row(sums, counts, from->values + i * columns, columns, width);
        for (uint32_t x = 0; x < width; x++) {
            float mean = counts[x] ? (float)(sums[x] / (double)counts[x]) : NAN;
            coffer__buffer_append(&from->cells, &mean, sizeof mean);
        }
    }
}

static coffer_status add_array(arrays *from, uint64_t sample, size_t field, uint32_t *width, uint32_t *height,
                               coffer_error *err)
{
    uint64_t dims[COFFER_MLDF_MAX_DIMS], elements = 1;
    coffer_bytes *bytes = &from->gallery->bytes;
    coffer_status status = coffer_mldf_get_array(bytes, dims, from->gallery->set, sample, field, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < from->field->ndim; i++)
        elements *= dims[i]; /* the size of the bytes was checked against them */
    if (elements == 0 || elements > MOST_ELEMENTS)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "the array is empty or too large");
    coffer__free(from->values);
    from->values = coffer__alloc_array((size_t)elements, sizeof *from->values);
    if (!from->values)
        return coffer__fail_no_memory(err, elements * sizeof *from->values);
    if (!coffer_dtype_convert(from->values, COFFER_DTYPE_F32, bytes->data, from->field->dtype,
                              (size_t)elements))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s cannot be drawn",
                            coffer_dtype_name(from->field->dtype));
    uint64_t rows = from->field->ndim > 1 ? dims[0] : 1, columns = elements / rows;
    *width = columns < SIDE ? (uint32_t)columns : SIDE;
    *height = rows < SIDE ? (uint32_t)rows : SIDE;
    reduce(from, rows, columns, *width, *height);
    return from->cells.failed ? coffer__fail_no_memory(err, from->cells.len) : COFFER_OK;
}

void coffer__page_add_arrays(coffer__page_gallery *gallery, size_t field)
{
    coffer_chunks *chunks = gallery->chunks;
    coffer_error err = COFFER_ERROR_INIT;
    arrays from = { .gallery = gallery,
                    .field = coffer_mldf_field_at(gallery->set, field),
                    .cells = COFFER__BUFFER_INIT };
    size_t bad = 0;
    uint32_t *width = coffer__chunks_u32(chunks, "arrays.width", gallery->count);
    uint32_t *height = coffer__chunks_u32(chunks, "arrays.height", gallery->count);
    for (size_t i = 0; height && i < gallery->count; i++) {
        coffer_status status = add_array(&from, gallery->numbers[i], field, &width[i], &height[i], &err);
        chunks->failed |= status == COFFER_E_NO_MEMORY;
        bad += status != COFFER_OK;
    }
    float *cells = coffer__chunks_f32(chunks, "arrays.cells", from.cells.len / sizeof *cells);
    if (cells && from.cells.len)
        memcpy(cells, from.cells.data, from.cells.len);
    coffer_node_add_u64(chunks->view, "array_field", field, COFFER_UNIT_NONE);
    if (bad)
        coffer__chunks_note(chunks, "%zu of %zu arrays cannot be drawn; the last: %s", bad, gallery->count,
                            err.text);
    coffer__free(from.values);
    coffer__buffer_free(&from.cells);
}
