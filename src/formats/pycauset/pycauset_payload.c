/* Places in the payload, and the bytes there. */
#include "formats/pycauset/pycauset_payload.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

/* ---- Places ---- */

void coffer__pycauset_grid_init(coffer__pycauset_grid *out, const coffer_pycauset_info *info)
{
    bool vector = info->type == COFFER_PYCAUSET_VECTOR;
    coffer__pycauset_grid grid = {
        .rows = vector ? 1 : info->stored_rows,
        .cols = vector ? info->rows * info->cols : info->stored_cols,
        .dtype = info->dtype,
        .element = coffer_dtype_size(info->dtype == COFFER_DTYPE_C32 ? COFFER_DTYPE_F16 : info->dtype),
        .triangular = coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_RAW_TRIANGULAR,
        .has_diagonal = info->has_diagonal,
        .diagonal = info->type == COFFER_PYCAUSET_DIAGONAL,
        .transposed = vector ? info->rows != 1 : info->transposed && info->type != COFFER_PYCAUSET_DIAGONAL,
        .mirrored = info->type == COFFER_PYCAUSET_SYMMETRIC || info->type == COFFER_PYCAUSET_ANTISYMMETRIC,
        .negative = info->type == COFFER_PYCAUSET_ANTISYMMETRIC,
        .plane_bytes = info->payload_needed / 2,
    };
    if (!grid.triangular)
        (void)coffer__pycauset_dense_row_bytes(&grid.row_bytes, grid.dtype, grid.cols);
    *out = grid;
}

uint64_t coffer__pycauset_grid_first(const coffer__pycauset_grid *grid, uint64_t row)
{
    return grid->diagonal ? row : grid->triangular ? row + !grid->has_diagonal : 0;
}

uint64_t coffer__pycauset_grid_end(const coffer__pycauset_grid *grid, uint64_t row)
{
    return grid->diagonal ? row + 1 : grid->cols;
}

/* For a triangle whose size is known not to overflow. */
static uint64_t triangle_bytes(const coffer__pycauset_grid *grid, uint64_t longest)
{
    uint64_t bytes = 0;
    (void)coffer__pycauset_triangle_bytes(&bytes, grid->dtype, longest);
    return bytes;
}

static uint64_t row_offset(const coffer__pycauset_grid *grid, uint64_t row)
{
    if (grid->diagonal)
        return row * grid->element;
    if (!grid->triangular)
        return row * grid->row_bytes;
    uint64_t longest = grid->cols - !grid->has_diagonal;
    return triangle_bytes(grid, longest) - triangle_bytes(grid, longest - row);
}

uint64_t coffer__pycauset_grid_offset(const coffer__pycauset_grid *grid, uint64_t row, uint64_t col,
                                      unsigned *first_bit)
{
    uint64_t offset = row_offset(grid, row), index = col - coffer__pycauset_grid_first(grid, row);
    if (grid->dtype != COFFER_DTYPE_BIT)
        return offset + index * grid->element;
    if (first_bit)
        *first_bit = index % 8;
    return offset + index / 8;
}

uint64_t coffer__pycauset_grid_length(const coffer__pycauset_grid *grid, unsigned first_bit, uint64_t count)
{
    if (grid->dtype == COFFER_DTYPE_BIT)
        return (first_bit + count + 7) / 8;
    return count * grid->element;
}

uint64_t coffer__pycauset_grid_row_bytes(const coffer__pycauset_grid *grid, uint64_t row)
{
    uint64_t bytes = grid->row_bytes;
    if (grid->triangular)
        (void)coffer__pycauset_triangle_row_bytes(&bytes, grid->dtype,
                                                  grid->cols - coffer__pycauset_grid_first(grid, row));
    return bytes;
}

/* ---- Recipes ---- */

coffer__pycauset_recipe coffer__pycauset_recipe_for(const coffer_pycauset_info *info, coffer_dtype dtype)
{
    bool scaled = info->scalar_real != 1.0 || info->scalar_imag != 0.0;
    coffer__cpu_level level = coffer__cpu();
    return (coffer__pycauset_recipe){
        .stored = info->dtype,
        .to = dtype,
        .scaled = scaled,
        .conjugated = info->conjugated && (coffer_dtype_is_complex(info->dtype) || info->scalar_imag != 0.0),
        .scalar_real = info->scalar_real,
        .scalar_imag = info->scalar_imag,
        .level = level,
        .kernels = coffer__elements_kernels_for(level),
    };
}

bool coffer__pycauset_recipe_changes(const coffer__pycauset_recipe *recipe)
{
    return recipe->scaled || recipe->conjugated || recipe->stored != recipe->to ||
           recipe->stored == COFFER_DTYPE_C32;
}

/* ---- Bytes ---- */

void coffer__pycauset_payload_init(coffer__pycauset_payload *reader, const coffer_pycauset *matrix)
{
    const coffer_pycauset_info *info = &matrix->info;
    memset(reader, 0, sizeof *reader);
    reader->matrix = matrix;
    reader->source = matrix->source;
    reader->payload_offset = info->payload_offset;
    reader->number = coffer_dtype_size(info->dtype) / (coffer_dtype_is_complex(info->dtype) ? 2 : 1);
    if (info->payload_needed <= SIZE_MAX && !(COFFER__BIG_ENDIAN && reader->number > 1))
        reader->view = coffer_source_view(matrix->source, info->payload_offset, (size_t)info->payload_needed);
}

void coffer__pycauset_payload_free(coffer__pycauset_payload *reader)
{
    coffer__free(reader->windows[0].bytes);
    coffer__free(reader->windows[1].bytes);
}

coffer_status coffer__pycauset_payload_get(const uint8_t **out, coffer__pycauset_payload *reader,
                                           unsigned plane, uint64_t offset, size_t len, uint64_t needed_until,
                                           coffer_error *err)
{
    if (reader->view) {
        *out = reader->view + offset;
        return coffer__pycauset_verify_read(reader->matrix, offset, len, err);
    }
    struct coffer__pycauset_payload_window *window = &reader->windows[plane];
    if (!window->bytes && !(window->bytes = coffer__malloc(COFFER__PYCAUSET_PAYLOAD_WINDOW)))
        return coffer__fail_no_memory(err, COFFER__PYCAUSET_PAYLOAD_WINDOW);
    if (offset < window->begin || offset + len > window->end) {
        uint64_t wanted = needed_until > offset + len ? needed_until - offset : len;
        size_t size =
            wanted < COFFER__PYCAUSET_PAYLOAD_WINDOW ? (size_t)wanted : COFFER__PYCAUSET_PAYLOAD_WINDOW;
        window->begin = window->end = 0;
        coffer_status status = coffer__pycauset_verify_read(reader->matrix, offset, size, err);
        if (status)
            return status;
        status =
            coffer_source_read_at(window->bytes, reader->source, reader->payload_offset + offset, size, err);
        if (status)
            return status;
        if (reader->number > 1)
            coffer__swap_numbers(window->bytes, reader->number, size / reader->number);
        window->begin = offset;
        window->end = offset + size;
    }
    *out = window->bytes + (size_t)(offset - window->begin);
    return COFFER_OK;
}

coffer_status coffer__pycauset_payload_intact(coffer__pycauset_payload *reader, coffer_error *err)
{
    return reader->view ? coffer_source_intact(reader->source, err) : COFFER_OK;
}
