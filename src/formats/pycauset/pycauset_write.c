/* Writes a new file, row by row. */
#include "formats/pycauset/pycauset_writer.h"

#include "base/bytes.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <string.h>

#define PIECE 4096 /* elements that are packed or taken apart at a time */

COFFER__INIT_FUNCTION(coffer_pycauset_shape, COFFER_PYCAUSET_SHAPE_INIT)
COFFER__INIT_FUNCTION(coffer_pycauset_writer_opts, COFFER_PYCAUSET_WRITER_OPTS_INIT)

/* ---- Metadata of the shape ---- */

static coffer_status say_view(coffer_pycauset_changes *says, const coffer_pycauset_shape *shape,
                              coffer_error *err)
{
    coffer_status status =
        coffer_pycauset_changes_set_bool(says, "view.is_transposed", shape->transposed, err);
    if (!status)
        status = coffer_pycauset_changes_set_bool(says, "view.is_conjugated", shape->conjugated, err);
    if (status)
        return status;
    if (shape->scalar_imag == 0)
        return coffer_pycauset_changes_set_f64(says, "view.scalar", shape->scalar_real, err);
    status = coffer_pycauset_changes_set_f64(says, "view.scalar.real", shape->scalar_real, err);
    return status ? status
                  : coffer_pycauset_changes_set_f64(says, "view.scalar.imag", shape->scalar_imag, err);
}

static coffer_status say_text(coffer_pycauset_changes *says, const char *path, const char *text,
                              coffer_error *err)
{
    return coffer_pycauset_changes_set_string(says, path, text, strlen(text), err);
}

static coffer_status say_shape(coffer_pycauset_changes *says, const coffer_pycauset_shape *shape,
                               coffer_error *err)
{
    const char *type = coffer_pycauset_type_name(shape->type);
    const char *dtype = coffer_pycauset_dtype_name(shape->dtype);
    bool triangular =
        shape->type == COFFER_PYCAUSET_TRIANGULAR_FLOAT || shape->type == COFFER_PYCAUSET_TRIANGULAR_INTEGER;
    coffer_status status;
    if (!type || !dtype || shape->type == COFFER_PYCAUSET_BLOCK)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "cannot write a matrix of type %s with elements of %s", type ? type : "none",
                            coffer_dtype_name(shape->dtype));
    const char *layout = coffer_pycauset_layout_name(coffer__pycauset_layout_of(shape->type));
    /* Rows and columns are written as they are seen. */
    uint64_t rows = shape->transposed ? shape->cols : shape->rows;
    uint64_t cols = shape->transposed ? shape->rows : shape->cols;
    uint64_t seed = shape->type == COFFER_PYCAUSET_UNIT_VECTOR ? shape->unit_index : 0;
    status = coffer_pycauset_changes_set_u64(says, "rows", rows, err);
    if (!status)
        status = coffer_pycauset_changes_set_u64(says, "cols", cols, err);
    if (!status)
        status = coffer_pycauset_changes_set_u64(says, "seed", seed, err);
    if (!status)
        status = say_text(says, "matrix_type", type, err);
    if (!status)
        status = say_text(says, "data_type", dtype, err);
    if (!status)
        status = say_text(says, "payload_layout.kind", layout, err);
    if (!status)
        status = coffer_pycauset_changes_set_json(says, "payload_layout.params", "{}", 2, err);
    if (status)
        return status;
    if (triangular && shape->has_diagonal)
        status = coffer_pycauset_changes_set_bool(says, "payload_layout.params.has_diagonal", true, err);
    if (status)
        return status;
    return say_view(says, shape, err);
}

/* ---- Making a writer ---- */

static void writer_free(coffer_pycauset_writer *writer)
{
    coffer__pycauset_output_free(&writer->output);
    coffer_pycauset_changes_free(writer->says);
    coffer_pycauset_changes_free(writer->extra);
    coffer__free(writer);
}

static coffer_status take_uuid(coffer_pycauset_writer *writer, const char *uuid, coffer_error *err)
{
    if (!uuid)
        return COFFER_OK;
    if (!coffer__pycauset_is_uuid(uuid))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the payload_uuid \"%s\" is not %d hexadecimal digits", uuid,
                            COFFER__PYCAUSET_UUID_SIZE);
    memcpy(writer->uuid, uuid, sizeof writer->uuid);
    return COFFER_OK;
}

/* The shape as a reader will interpret it. */
static coffer_status take_shape(coffer_pycauset_writer *writer, coffer_error *err)
{
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer_error why = COFFER_ERROR_INIT;
    const coffer_pycauset_value *root;
    coffer_status status = coffer__pycauset_apply(&root, &memory, NULL, writer->says, NULL, err);
    if (!status && coffer__pycauset_interpret(&writer->info, root, COFFER_OFFSET_NONE, &why))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s", why.text);
    coffer__arena_free(&memory);
    return status;
}

coffer_status coffer__pycauset_writer_new(coffer_pycauset_writer **out, const char *path,
                                          coffer_pycauset_changes *says,
                                          const coffer_pycauset_writer_opts *opts, coffer_error *err)
{
    coffer_pycauset_writer_opts options = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_writer *writer = coffer__calloc(1, sizeof *writer);
    coffer_status status;
    if (!writer) {
        coffer_pycauset_changes_free(says);
        return coffer__fail_no_memory(err, sizeof *writer);
    }
    writer->says = says;
    writer->output.stream.fd = writer->output.imaginary.fd = -1;
    writer->level = coffer__cpu();
    status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = take_uuid(writer, options.payload_uuid, err);
    if (!status)
        status = take_shape(writer, err);
    if (status)
        goto out;
    writer->checksums = options.checksums;
    if (writer->info.type != COFFER_PYCAUSET_BLOCK)
        coffer__pycauset_grid_init(&writer->grid, &writer->info);
    status = coffer__pycauset_output_open(&writer->output, path, &options,
                                          writer->info.dtype == COFFER_DTYPE_C32 ? 2 : 1, err);
    if (status)
        goto out;
    *out = writer;
    return COFFER_OK;
out:
    writer_free(writer);
    return status;
}

coffer_status coffer_pycauset_writer_create(coffer_pycauset_writer **out, const char *path,
                                            const coffer_pycauset_shape *shape,
                                            const coffer_pycauset_writer_opts *opts, coffer_error *err)
{
    coffer_pycauset_shape known = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_changes *says = NULL;
    coffer_status status = coffer__take_options(&known, sizeof known, shape, err);
    if (!status)
        status = coffer__pycauset_system_changes_new(&says, err);
    if (status)
        return status;
    status = say_shape(says, &known, err);
    if (status) {
        coffer_pycauset_changes_free(says);
        return status;
    }
    return coffer__pycauset_writer_new(out, path, says, opts, err);
}

/* ---- Rows ---- */

static coffer_status put_bits(coffer_pycauset_writer *writer, const uint8_t *flags, uint64_t count,
                              uint64_t *bytes, coffer_error *err)
{
    uint8_t packed[PIECE / 8];
    for (uint64_t done = 0; done < count; done += PIECE) {
        size_t n = (size_t)(count - done < PIECE ? count - done : PIECE), len = (n + 63) / 64 * 8;
        coffer__pycauset_pack_bits(packed, flags + done, n, writer->level);
        coffer_status status = coffer__pycauset_output_put(&writer->output, packed, len, err);
        if (status)
            return status;
        *bytes += len;
    }
    return COFFER_OK;
}

static coffer_status put_planes(coffer_pycauset_writer *writer, const uint8_t *pairs, uint64_t count,
                                coffer_error *err)
{
    uint8_t real[2 * PIECE], imag[2 * PIECE];
    for (uint64_t done = 0; done < count; done += PIECE, pairs += 4 * PIECE) {
        size_t n = (size_t)(count - done < PIECE ? count - done : PIECE);
        for (size_t i = 0; i < n; i++) {
            memcpy(real + 2 * i, pairs + 4 * i, 2);
            memcpy(imag + 2 * i, pairs + 4 * i + 2, 2);
        }
        coffer__swap_numbers(real, 2, n);
        coffer__swap_numbers(imag, 2, n);
        coffer_status status = coffer__pycauset_output_put(&writer->output, real, 2 * n, err);
        if (!status)
            status = coffer__pycauset_output_put_imaginary(&writer->output, imag, 2 * n, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status put_numbers(coffer_pycauset_writer *writer, const uint8_t *elements, size_t bytes,
                                 coffer_error *err)
{
    if (!COFFER__BIG_ENDIAN)
        return coffer__pycauset_output_put(&writer->output, elements, bytes, err);
    coffer_dtype dtype = writer->info.dtype;
    size_t number = coffer_dtype_size(dtype) / (coffer_dtype_is_complex(dtype) ? 2 : 1);
    if (number < 2)
        return coffer__pycauset_output_put(&writer->output, elements, bytes, err);
    uint8_t swapped[PIECE];
    coffer_status status = COFFER_OK;
    for (size_t done = 0; done < bytes && !status; done += PIECE) {
        size_t len = bytes - done < PIECE ? bytes - done : PIECE;
        memcpy(swapped, elements + done, len);
        coffer__swap_numbers(swapped, number, len / number);
        status = coffer__pycauset_output_put(&writer->output, swapped, len, err);
    }
    return status;
}

/* The elements that a row holds, padded. */
static coffer_status put_row(coffer_pycauset_writer *writer, const uint8_t *elements, uint64_t count,
                             uint64_t padded_to, coffer_error *err)
{
    static const uint8_t zeros[COFFER__PYCAUSET_BIT_ROW_BYTES];
    uint64_t bytes = 0;
    coffer_status status;
    bool planes = writer->info.dtype == COFFER_DTYPE_C32;
    if (writer->info.dtype == COFFER_DTYPE_BIT) {
        status = put_bits(writer, elements, count, &bytes, err);
    } else if (planes) {
        bytes = 2 * count;
        status = put_planes(writer, elements, count, err);
    } else {
        bytes = count * writer->grid.element;
        status = put_numbers(writer, elements, (size_t)bytes, err);
    }
    size_t padding = (size_t)((padded_to - bytes % padded_to) % padded_to);
    if (!status && padding > 0)
        status = coffer__pycauset_output_put(&writer->output, zeros, padding, err);
    if (!status && padding > 0 && planes)
        status = coffer__pycauset_output_put_imaginary(&writer->output, zeros, padding, err);
    return status;
}

static coffer_status put_vector_bits(coffer_pycauset_writer *writer, const uint8_t *flags, uint64_t count,
                                     coffer_error *err)
{
    uint64_t bytes = 0;
    coffer_status status = COFFER_OK;
    while (count > 0 && !status) {
        if (writer->bit_count == 0 && count >= 64) {
            uint64_t whole = count / 64 * 64;
            status = put_bits(writer, flags, whole, &bytes, err);
            flags += whole;
            count -= whole;
            continue;
        }
        size_t part = 64 - writer->bit_count < count ? 64 - writer->bit_count : (size_t)count;
        memcpy(writer->bits + writer->bit_count, flags, part);
        writer->bit_count += part;
        flags += part;
        count -= part;
        if (writer->bit_count == 64) {
            writer->bit_count = 0;
            status = put_bits(writer, writer->bits, 64, &bytes, err);
        }
    }
    return status;
}

/* The first element of a row's beginning that is not 0; count when all are. */
static uint64_t first_nonzero(const uint8_t *elements, coffer_dtype dtype, uint64_t count)
{
    /* A complex number is 0 when both its parts are. */
    static const coffer_dtype parts[] = { [COFFER_DTYPE_C32] = COFFER_DTYPE_F16,
                                          [COFFER_DTYPE_C64] = COFFER_DTYPE_F32,
                                          [COFFER_DTYPE_C128] = COFFER_DTYPE_F64 };
    unsigned each = coffer_dtype_is_complex(dtype) ? 2 : 1;
    coffer_dtype part = each == 2 ? parts[dtype] : dtype;
    uint8_t flags[PIECE];
    for (uint64_t done = 0; done < each * count; done += PIECE) {
        size_t n = (size_t)(each * count - done < PIECE ? each * count - done : PIECE);
        coffer__elements_convert(flags, COFFER_DTYPE_BOOL, elements + done * coffer_dtype_size(part), part,
                                 n);
        const uint8_t *found = memchr(flags, 1, n);
        if (found)
            return (done + (uint64_t)(found - flags)) / each;
    }
    return count;
}

static bool all_bytes_zero(const uint8_t *bytes, uint64_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)(len - 1)) == 0);
}

/* Elements that a triangular matrix does not store must be 0. */
static coffer_status check_implied(const coffer_pycauset_writer *writer, uint64_t row, uint64_t col,
                                   const uint8_t *elements, coffer_dtype dtype, uint64_t count,
                                   coffer_error *err)
{
    if (writer->grid.mirrored || all_bytes_zero(elements, count * coffer_dtype_size(dtype)))
        return COFFER_OK;
    uint64_t found = first_nonzero(elements, dtype, count);
    if (found == count)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "element (%" PRIu64 ", %" PRIu64 ") is not 0: %s does not store it", row, col + found,
                        coffer_pycauset_type_name(writer->info.type));
}

static coffer_status put_rows(coffer_pycauset_writer *writer, const uint8_t *rows, uint64_t count,
                              coffer_error *err)
{
    const coffer__pycauset_grid *grid = &writer->grid;
    coffer_dtype dtype = grid->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : grid->dtype;
    uint64_t cols = writer->info.stored_cols;
    size_t size = coffer_dtype_size(dtype);
    uint64_t padded_to = grid->triangular             ? 8
                         : dtype == COFFER_DTYPE_BOOL ? COFFER__PYCAUSET_BIT_ROW_BYTES
                                                      : 1;
    coffer_status status = COFFER_OK;
    if (writer->info.type == COFFER_PYCAUSET_VECTOR && dtype == COFFER_DTYPE_BOOL)
        return put_vector_bits(writer, rows, count * cols, err);
    if (padded_to == 1 && !grid->diagonal) /* nothing between the rows */
        return put_row(writer, rows, count * cols, 1, err);
    for (uint64_t i = 0; i < count && !status; i++, rows += cols * size) {
        uint64_t first = coffer__pycauset_grid_first(grid, writer->rows + i);
        status = put_row(writer, rows + first * size,
                         coffer__pycauset_grid_end(grid, writer->rows + i) - first, padded_to, err);
    }
    return status;
}

/* All that can be wrong with the rows themselves, so that nothing is written of them. */
static coffer_status check_rows(const coffer_pycauset_writer *writer, const uint8_t *rows, uint64_t count,
                                coffer_error *err)
{
    const coffer_pycauset_info *info = &writer->info;
    coffer_dtype dtype = info->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : info->dtype;
    coffer_status status = COFFER_OK;
    if (coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_LAYOUT_NONE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s has no rows to write",
                            coffer_pycauset_type_name(info->type));
    if (count > info->stored_rows - writer->rows)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " rows after %" PRIu64 " of %" PRIu64, count, writer->rows,
                            info->stored_rows);
    bool implied = writer->grid.triangular || writer->grid.diagonal;
    for (uint64_t i = 0; implied && i < count && !status; i++) {
        uint64_t row = writer->rows + i, end = coffer__pycauset_grid_end(&writer->grid, row);
        const uint8_t *elements = rows + i * info->stored_cols * coffer_dtype_size(dtype);
        status = check_implied(writer, row, 0, elements, dtype,
                               coffer__pycauset_grid_first(&writer->grid, row), err);
        if (!status)
            status = check_implied(writer, row, end, elements + end * coffer_dtype_size(dtype), dtype,
                                   info->stored_cols - end, err);
    }
    return status;
}

coffer_status coffer_pycauset_writer_put_rows(coffer_pycauset_writer *writer, const void *rows,
                                              uint64_t count, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->failure, err);
    if (!status)
        status = check_rows(writer, rows, count, err);
    if (status)
        return status;
    coffer_error failure = COFFER_ERROR_INIT;
    status = put_rows(writer, rows, count, &failure);
    if (!status)
        writer->rows += count;
    return coffer__sticky_keep(&writer->failure, status, &failure, err);
}

/* ---- The end ---- */

coffer_status coffer_pycauset_writer_set_metadata(coffer_pycauset_writer *writer,
                                                  const coffer_pycauset_changes *changes, coffer_error *err)
{
    if (writer->extra)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the metadata of a new file can be set only once");
    if (changes->element_count > 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the elements of a new file are its rows: write them instead of changing them");
    bool wants_sums = coffer__pycauset_wants_checksums(changes);
    if (wants_sums && writer->rows > 0 && !writer->output.sums_wanted)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "checksums must be requested before the first row");
    writer->output.sums_wanted |= wants_sums;
    return coffer__pycauset_changes_copy(&writer->extra, changes, err);
}

/* From what the payload is and from its bytes; how it is seen does not count. */
static void name_content(coffer_pycauset_writer *writer)
{
    const coffer_pycauset_info *info = &writer->info;
    uint8_t facts[6 * 8];
    const uint64_t numbers[6] = { info->type,        info->dtype,       info->has_diagonal,
                                  info->stored_rows, info->stored_cols, info->unit_index };
    if (writer->uuid[0])
        return;
    for (size_t i = 0; i < 6; i++)
        coffer__store_u64(facts + 8 * i, numbers[i]);
    coffer__digest_add(writer->output.digest, facts, sizeof facts);
    coffer__digest_hex(writer->uuid, writer->output.digest);
}

static coffer_status compose_block(coffer__buffer *out, coffer_pycauset_writer *writer, coffer_error *err)
{
    coffer__arena memory = COFFER__ARENA_INIT;
    coffer__buffer sums = COFFER__BUFFER_INIT;
    const coffer_pycauset_value *root = NULL;
    coffer_status status = say_text(writer->says, "payload_uuid", writer->uuid, err);
    coffer__pycauset_put_sums(&sums, writer->output.sums.sums, writer->output.sums.count);
    if (!status && sums.failed)
        status = coffer__fail_no_memory(err, writer->output.sums.count * 4);
    if (!status && writer->checksums)
        status = coffer_pycauset_changes_set_checksums(writer->says, err);
    if (!status)
        status = coffer__pycauset_apply(&root, &memory, NULL, writer->says, &sums, err);
    if (!status && writer->extra)
        status = coffer__pycauset_apply(&root, &memory, root, writer->extra, &sums, err);
    if (!status)
        status = coffer__pycauset_encode_block(out, root, err);
    coffer__buffer_free(&sums);
    coffer__arena_free(&memory);
    return status;
}

static coffer_status finish(coffer_pycauset_writer *writer, coffer_error *err)
{
    coffer__buffer block = COFFER__BUFFER_INIT;
    uint64_t packed = 0;
    coffer_status status = coffer__sticky_check(&writer->failure, err);
    if (status)
        return status;
    if (coffer__pycauset_layout_of(writer->info.type) != COFFER_PYCAUSET_LAYOUT_NONE &&
        writer->rows != writer->info.stored_rows)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " of %" PRIu64 " rows were written", writer->rows,
                            writer->info.stored_rows);
    status = put_bits(writer, writer->bits, writer->bit_count, &packed, err);
    if (!status)
        status = coffer__pycauset_output_finish(&writer->output, err);
    if (status)
        return status;
    name_content(writer);
    status = compose_block(&block, writer, err);
    if (!status)
        status = coffer__pycauset_output_commit(&writer->output, &block, err);
    coffer__buffer_free(&block);
    return status;
}

coffer_status coffer_pycauset_writer_commit(coffer_pycauset_writer *writer, coffer_error *err)
{
    coffer_status status = finish(writer, err);
    writer_free(writer);
    return status;
}

void coffer_pycauset_writer_discard(coffer_pycauset_writer *writer)
{
    if (writer)
        writer_free(writer);
}
