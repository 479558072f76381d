/* All ways to decode a quantized payload give the same bits: from memory, through reads, with the kernels of
 * this processor and with the reference. So do products with rounded vectors.
 *
 * The first bytes of the input say what it is: type, whether it has a zero point, rows, columns. */
#include "base/bytes.h"
#include "coffer/quant.h"
#include "must.h"
#include "quant/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 8

typedef struct payload {
    const uint8_t *bytes;
    uint64_t size;
} payload;

static coffer_status read_payload(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const payload *from = context;
    (void)err;
    MUST(offset <= from->size && len <= from->size - offset);
    memcpy(out, from->bytes + offset, len);
    return COFFER_OK;
}

/* Bit for bit, but for one thing: int8 and int4 may have a NaN both as their scale and as their zero point,
 * and which of two NaNs a product takes after is left to the compiler. */
static void must_be_same(const coffer__quant_layout *layout, const float *a, const float *b, size_t count)
{
    bool two_nans = layout->type->family == COFFER__QUANT_WHOLE;
    for (size_t i = 0; i < count; i++)
        MUST(memcmp(&a[i], &b[i], sizeof *a) == 0 || (two_nans && isnan(a[i]) && isnan(b[i])));
}

static void must_decode(const coffer__quant_layout *layout, payload *from)
{
    size_t cols = (size_t)layout->cols, count = (size_t)layout->rows * cols;
    float *whole = malloc(count * sizeof *whole + 1), *other = malloc(count * sizeof *other + 1);
    MUST(whole && other);
    coffer__quant_decode_rows(whole, layout, from->bytes, 0, layout->rows);
    MUST(coffer__quant_read_rows(other, layout, 0, layout->rows, read_payload, from, NULL) == COFFER_OK);
    must_be_same(layout, whole, other, count);
    for (uint64_t row = 0; row < layout->rows; row++) {
        coffer__quant_decode_rows(other, layout, from->bytes, row, 1);
        must_be_same(layout, whole + row * cols, other, cols);
    }
    if (layout->rows && cols) { /* the first row by the reference */
        coffer__quant_run run = { .elements = cols };
        for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
            run.parts[i] = layout->regions[i].size ? from->bytes + layout->regions[i].offset : NULL;
        coffer__quant_reference.decode_f32[layout->type->index](other, &run);
        must_be_same(layout, whole, other, cols);
    }
    free(whole);
    free(other);
}

/* Rounded products have the same bits with the kernels of this processor and with the plain ones; NaNs count
 * as equal. The numbers of x are the bytes of the payload. */
static void must_multiply(const coffer__quant_layout *layout, bool activations, const payload *from)
{
    enum { VECTORS = 10 };
    size_t rows = (size_t)layout->rows, cols = (size_t)layout->cols;
    float *x = malloc(VECTORS * cols * sizeof *x + 1), *y = malloc(2 * VECTORS * rows * sizeof *y + 1);
    coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
    coffer_quant_product_opts opts = COFFER_QUANT_PRODUCT_OPTS_INIT;
    MUST(x && y);
    for (size_t i = 0; i < VECTORS * cols; i++)
        x[i] = (float)(int8_t)from->bytes[i % from->size] * 0.37f;
    tensor.dtype = layout->type->dtype;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.activations = activations;
    tensor.payload = from->bytes;
    tensor.size = (size_t)from->size;
    opts.inputs = COFFER_QUANT_INPUTS_INT8;
    for (uint32_t vectors = 1; vectors <= VECTORS; vectors += VECTORS - 1) {
        for (size_t i = 0; i < 2; i++) {
            if (i)
                setenv("COFFER_CPU", "generic", 1);
            MUST(coffer_quant_matmul(y + i * vectors * rows, &tensor, x, vectors, &opts, NULL) == COFFER_OK);
            unsetenv("COFFER_CPU");
        }
        for (size_t i = 0; i < vectors * rows; i++)
            MUST(memcmp(&y[i], &y[vectors * rows + i], sizeof *y) == 0 ||
                 (isnan(y[i]) && isnan(y[vectors * rows + i])));
    }
    free(x);
    free(y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_Q8,   COFFER_DTYPE_Q4,  COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4,   COFFER_DTYPE_K3,  COFFER_DTYPE_K2,
                                          COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
    coffer__quant_layout layout;
    if (size < HEAD)
        return 0;
    coffer_dtype type = types[data[0] % 8];
    uint64_t dims[2] = { coffer__load_u16(data + 2), coffer__load_u32(data + 4) };
    bool activations = data[1] & 1;
    if (coffer__quant_plan(&layout, type, 2, dims, activations, NULL) != COFFER_OK)
        return 0;
    MUST(layout.regions[COFFER__QUANT_CODES].offset % COFFER__QUANT_REGION_ALIGN == 0);
    payload from = { data + HEAD, layout.size };
    if (layout.size > size - HEAD || layout.rows * layout.cols > UINT64_C(1) << 20)
        return 0;
    must_decode(&layout, &from);
    if (layout.size && layout.cols)
        must_multiply(&layout, activations, &from);
    return 0;
}
