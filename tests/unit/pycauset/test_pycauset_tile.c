#include "support/matrix.h"
#include "support/temp.h"

#include "base/bytes.h"
#include "base/elements.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct open_matrix {
    char *folder, path[300];
    coffer_source *src;
    coffer_pycauset *m;
} open_matrix;

static void must(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s: %s", coffer_status_name(status), err->text);
}

static void open_written_with(open_matrix *out, const test_matrix *matrix, coffer_access access,
                              const coffer_pycauset_writer_opts *how)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = access;
    snprintf(out->path, sizeof out->path, "%s/m.pycauset", out->folder);
    test_matrix_write(matrix, out->path, 7, how);
    must(coffer_source_open(&out->src, out->path, &opts, &err), &err);
    must(coffer_pycauset_open(&out->m, out->src, NULL, &err), &err);
}

static void open_written(open_matrix *out, const test_matrix *matrix, coffer_access access)
{
    open_written_with(out, matrix, access, NULL);
}

static void close_written(open_matrix *m)
{
    coffer_pycauset_close(m->m);
    coffer_source_close(m->src);
}

/* Compares a tile, asked for as pairs of doubles with a gap between the rows, with the slow way. */
static void check_tile(const open_matrix *m, const test_matrix *matrix, const coffer_pycauset_tile *tile)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t stride = (size_t)tile->cols * 16 + 8;
    uint8_t *got = malloc(stride * (size_t)tile->rows + 1);
    memset(got, 0xAA, stride * (size_t)tile->rows);
    must(coffer_pycauset_read_tile(got, stride, m->m, tile, COFFER_DTYPE_C128, &err), &err);
    for (uint64_t i = 0; i < tile->rows; i++) {
        const uint8_t *row = got + i * stride;
        for (uint64_t j = 0; j < tile->cols; j++) {
            double expected[2], pair[2];
            memcpy(pair, row + 16 * j, sizeof pair);
            test_matrix_value(expected, matrix, tile->row + i, tile->col + j);
            if (pair[0] != expected[0] || pair[1] != expected[1])
                fail_msg("type %s %s: (%llu, %llu) is %g%+gi, not %g%+gi",
                         coffer_pycauset_type_name(matrix->shape.type),
                         coffer_dtype_name(matrix->shape.dtype), (unsigned long long)(tile->row + i),
                         (unsigned long long)(tile->col + j), pair[0], pair[1], expected[0], expected[1]);
        }
        for (uint64_t k = 0; k < 8; k++)
            assert_int_equal(row[16 * tile->cols + k], 0xAA);
    }
    free(got);
}

static void check_all_tiles(const open_matrix *m, const test_matrix *matrix)
{
    uint64_t rows = test_matrix_seen_rows(matrix), cols = test_matrix_seen_cols(matrix);
    coffer_pycauset_tile whole = COFFER_PYCAUSET_TILE(0, rows, 0, cols);
    check_tile(m, matrix, &whole);
    uint64_t seed = rows * 31 + cols;
    for (int i = 0; i < 6 && rows > 0 && cols > 0; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 12345;
        coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE((seed >> 20) % rows, 0, (seed >> 40) % cols, 0);
        tile.rows = (seed >> 28) % (rows - tile.row) + 1;
        tile.cols = (seed >> 48) % (cols - tile.col) + 1;
        check_tile(m, matrix, &tile);
    }
    /* As the values' own type, without a gap. */
    coffer_error err = COFFER_ERROR_INIT;
    coffer_dtype dtype = coffer_pycauset_get_info(m->m)->value_dtype;
    size_t count = (size_t)(rows * cols);
    uint8_t *got = malloc(count * 16 + 1);
    double *pairs = malloc(count * 16 + 1);
    must(coffer_pycauset_read_rows(got, m->m, 0, rows, COFFER_DTYPE_NONE, &err), &err);
    coffer__elements_convert(pairs, COFFER_DTYPE_C128, got, dtype, count);
    for (size_t i = 0; i < count; i++) {
        double expected[2];
        test_matrix_value(expected, matrix, i / cols, i % cols);
        assert_true(pairs[2 * i] == expected[0] && pairs[2 * i + 1] == expected[1]);
    }
    free(got);
    free(pairs);
}

static void check_kind(const char *folder, const coffer_pycauset_shape *shape, uint64_t seed)
{
    static const coffer_access accesses[] = { COFFER_ACCESS_MAP, COFFER_ACCESS_READ };
    test_matrix matrix;
    test_matrix_make(&matrix, shape, seed);
    for (int i = 0; i < 2; i++) {
        open_matrix m = { .folder = (char *)(uintptr_t)folder };
        open_written(&m, &matrix, accesses[i]);
        check_all_tiles(&m, &matrix);
        close_written(&m);
    }
    test_matrix_free(&matrix);
}

static void every_kind_of_matrix_reads_back_as_it_was_written(void **state)
{
    (void)state;
    char *folder = temp_make();
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 71, 67);
        check_kind(folder, &shape, i);
    }
    temp_remove(folder);
}

static void views_turn_conjugate_and_scale_every_kind(void **state)
{
    (void)state;
    static const double scalars[][2] = { { 1, 0 }, { 2, 0 }, { -0.5, 0 }, { 1, 2 }, { 0, -1 } };
    char *folder = temp_make();
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        for (unsigned v = 1; v < 4 * 5; v++) {
            coffer_pycauset_shape shape = test_matrix_kind(i, 21, 30);
            if ((i + v) % 3 != 0 && v > 5)
                continue;
            shape.transposed = v & 1;
            shape.conjugated = v >> 1 & 1;
            shape.scalar_real = scalars[v / 4][0];
            shape.scalar_imag = scalars[v / 4][1];
            check_kind(folder, &shape, i * 20 + v);
        }
    }
    temp_remove(folder);
}

static void sizes_around_the_edges_of_words_and_bands_are_right(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0, 1, 2, 63, 64, 65, 127, 128, 129, 130 };
    char *folder = temp_make();
    for (size_t i = 0; i < test_matrix_kinds(); i += 15) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            coffer_pycauset_shape shape = test_matrix_kind(i, sizes[k], sizes[(k * 3 + 1) % 10]);
            if (shape.type == COFFER_PYCAUSET_UNIT_VECTOR && sizes[k] == 0)
                continue;
            shape.transposed = k % 2;
            check_kind(folder, &shape, k);
        }
    }
    temp_remove(folder);
}

static void wide_rows_go_through_in_pieces(void **state)
{
    (void)state;
    char *folder = temp_make();
    for (size_t i = 0; i < 15; i += 2) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 3, 40001);
        shape.transposed = i % 4 == 2;
        check_kind(folder, &shape, i);
        shape = test_matrix_kind(6 * 15 + i, 70003, 1);
        check_kind(folder, &shape, i);
    }
    temp_remove(folder);
}

static void every_type_can_be_asked_for(void **state)
{
    (void)state;
    static const coffer_dtype wanted[] = { COFFER_DTYPE_BOOL, COFFER_DTYPE_U8,   COFFER_DTYPE_I64,
                                           COFFER_DTYPE_F32,  COFFER_DTYPE_BF16, COFFER_DTYPE_C64 };
    char *folder = temp_make();
    coffer_error err = COFFER_ERROR_INIT;
    for (size_t i = 0; i < test_matrix_kinds(); i += 3) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 9, 70);
        test_matrix matrix;
        open_matrix m = { .folder = folder };
        test_matrix_make(&matrix, &shape, i);
        open_written(&m, &matrix, COFFER_ACCESS_AUTO);
        size_t count = (size_t)(shape.rows * shape.cols);
        for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
            uint8_t got[71 * 71 * 16], expected[71 * 71 * 16], own[71 * 71 * 16];
            coffer_status status = coffer_pycauset_read_rows(got, m.m, 0, shape.rows, wanted[w], &err);
            if (coffer_dtype_is_complex(shape.dtype) && !coffer_dtype_is_complex(wanted[w])) {
                assert_int_equal(status, COFFER_E_UNSUPPORTED);
                continue;
            }
            must(status, &err);
            must(coffer_pycauset_read_rows(own, m.m, 0, shape.rows, COFFER_DTYPE_NONE, &err), &err);
            coffer__elements_convert(expected, wanted[w], own, coffer_pycauset_get_info(m.m)->value_dtype,
                                     count);
            assert_memory_equal(got, expected, count * coffer_dtype_size(wanted[w]));
        }
        close_written(&m);
        test_matrix_free(&matrix);
    }
    temp_remove(folder);
}

static void a_tile_outside_the_matrix_is_refused(void **state)
{
    (void)state;
    static const coffer_pycauset_tile tiles[] = {
        COFFER_PYCAUSET_TILE(0, 6, 0, 1),          COFFER_PYCAUSET_TILE(5, 1, 0, 1),
        COFFER_PYCAUSET_TILE(0, 1, 0, 8),          COFFER_PYCAUSET_TILE(UINT64_MAX, 2, 0, 1),
        COFFER_PYCAUSET_TILE(0, 1, 3, UINT64_MAX),
    };
    char *folder = temp_make();
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 5, 7);
    test_matrix matrix;
    open_matrix m = { .folder = folder };
    uint8_t got[1000];
    test_matrix_make(&matrix, &shape, 1);
    open_written(&m, &matrix, COFFER_ACCESS_AUTO);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        assert_int_equal(coffer_pycauset_read_tile(got, 0, m.m, &tiles[i], COFFER_DTYPE_F64, &err),
                         COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_tile narrow = COFFER_PYCAUSET_TILE(0, 2, 0, 3);
    assert_int_equal(coffer_pycauset_read_tile(got, 23, m.m, &narrow, COFFER_DTYPE_F64, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_read_tile(got, 0, m.m, &narrow, COFFER_DTYPE_BIT, &err),
                     COFFER_E_UNSUPPORTED);
    coffer_pycauset_tile empty = COFFER_PYCAUSET_TILE(5, 0, 7, 0);
    assert_int_equal(coffer_pycauset_read_tile(got, 0, m.m, &empty, COFFER_DTYPE_F64, &err), COFFER_OK);
    close_written(&m);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

static void single_elements_are_those_of_the_tile(void **state)
{
    (void)state;
    char *folder = temp_make();
    for (size_t i = 0; i < test_matrix_kinds(); i += 7) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset_shape shape = test_matrix_kind(i, 6, 9);
        test_matrix matrix;
        open_matrix m = { .folder = folder };
        shape.transposed = true;
        shape.scalar_imag = 1;
        test_matrix_make(&matrix, &shape, i);
        open_written(&m, &matrix, COFFER_ACCESS_AUTO);
        for (uint64_t r = 0; r < test_matrix_seen_rows(&matrix); r++) {
            for (uint64_t c = 0; c < test_matrix_seen_cols(&matrix); c++) {
                double expected[2], real, imag;
                test_matrix_value(expected, &matrix, r, c);
                must(coffer_pycauset_get(&real, &imag, m.m, r, c, &err), &err);
                assert_true(real == expected[0] && imag == expected[1]);
            }
        }
        close_written(&m);
        test_matrix_free(&matrix);
    }
    temp_remove(folder);
}

/* The elements of a file are little-endian: where the machine is not, there is nothing to point at. */
static void skip_on_big_endian(void)
{
    if (COFFER__BIG_ENDIAN)
        skip();
}

static void the_view_points_at_the_stored_elements(void **state)
{
    (void)state;
    skip_on_big_endian();
    char *folder = temp_make();
    for (int transposed = 0; transposed < 2; transposed++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset_shape shape = test_matrix_kind(10, 5, 7); /* f32 */
        coffer_pycauset_view view = COFFER_PYCAUSET_VIEW_INIT;
        test_matrix matrix;
        open_matrix m = { .folder = folder };
        shape.transposed = transposed;
        shape.scalar_real = 3; /* not applied */
        test_matrix_make(&matrix, &shape, 2);
        open_written(&m, &matrix, COFFER_ACCESS_MAP);
        must(coffer_pycauset_get_view(&view, m.m, &err), &err);
        assert_int_equal(view.dtype, COFFER_DTYPE_F32);
        for (uint64_t r = 0; r < view.rows; r++) {
            for (uint64_t c = 0; c < view.cols; c++) {
                float value;
                double expected[2];
                memcpy(&value,
                       (const char *)view.data + (int64_t)r * view.row_stride + (int64_t)c * view.col_stride,
                       sizeof value);
                test_matrix_value(expected, &matrix, r, c);
                assert_true((double)value * 3 == expected[0]);
            }
        }
        close_written(&m);
        open_written(&m, &matrix, COFFER_ACCESS_READ);
        assert_int_equal(coffer_pycauset_get_view(&view, m.m, &err), COFFER_E_UNSUPPORTED);
        close_written(&m);
        test_matrix_free(&matrix);
    }
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset_shape shape = test_matrix_kind(i, 5, 7);
        coffer_pycauset_view view = COFFER_PYCAUSET_VIEW_INIT;
        test_matrix matrix;
        open_matrix m = { .folder = folder };
        test_matrix_make(&matrix, &shape, 2);
        open_written(&m, &matrix, COFFER_ACCESS_MAP);
        bool strided = (shape.type == COFFER_PYCAUSET_DENSE_FLOAT || shape.type == COFFER_PYCAUSET_INTEGER ||
                        shape.type == COFFER_PYCAUSET_VECTOR) &&
                       shape.dtype != COFFER_DTYPE_BIT && shape.dtype != COFFER_DTYPE_C32;
        assert_int_equal(coffer_pycauset_get_view(&view, m.m, &err),
                         strided ? COFFER_OK : COFFER_E_UNSUPPORTED);
        close_written(&m);
        test_matrix_free(&matrix);
    }
    temp_remove(folder);
}

/* ---- Only the bytes that are needed ---- */

typedef struct counting {
    coffer_source *inner;
    uint64_t bytes, calls, low, high;
} counting;

static coffer_status counted_read(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    counting *c = context;
    c->bytes += len;
    c->calls++;
    c->low = offset < c->low ? offset : c->low;
    c->high = offset + len > c->high ? offset + len : c->high;
    return coffer_source_read_at(out, c->inner, offset, len, err);
}

typedef struct counted_matrix {
    open_matrix m;
    counting c;
    coffer_source *src;
    coffer_pycauset *counted;
} counted_matrix;

static void open_counted(counted_matrix *out, const test_matrix *matrix, const char *folder)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops, .read_at = counted_read };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer_opts how = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    how.overwrite = true;
    how.checksums = false; /* to verify them, whole groups are read */
    out->m.folder = (char *)(uintptr_t)folder;
    open_written_with(&out->m, matrix, COFFER_ACCESS_READ, &how);
    out->c.inner = out->m.src;
    must(coffer_source_new(&out->src, &ops, &out->c, coffer_source_size(out->m.src), "counted", &err), &err);
    must(coffer_pycauset_open(&out->counted, out->src, NULL, &err), &err);
}

static void close_counted(counted_matrix *m)
{
    coffer_pycauset_close(m->counted);
    coffer_source_close(m->src);
    close_written(&m->m);
}

static uint64_t bytes_for(counted_matrix *m, coffer_pycauset_tile tile)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *got = malloc((size_t)(tile.rows * tile.cols) * 16 + 1);
    m->c = (counting){ m->c.inner, 0, 0, UINT64_MAX, 0 };
    must(coffer_pycauset_read_tile(got, 0, m->counted, &tile, COFFER_DTYPE_C128, &err), &err);
    free(got);
    return m->c.bytes;
}

static void opening_reads_no_byte_of_the_payload(void **state)
{
    (void)state;
    char *folder = temp_make();
    coffer_pycauset_shape shape = test_matrix_kind(11, 300, 200);
    test_matrix matrix;
    counted_matrix m = { 0 };
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_true(m.c.bytes <= 4096 + 4096 && m.c.calls <= 4);
    close_counted(&m);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

static void rows_and_tiles_touch_only_their_own_bytes(void **state)
{
    (void)state;
    char *folder = temp_make();
    coffer_pycauset_shape shape = test_matrix_kind(11, 300, 200); /* dense f64 */
    test_matrix matrix;
    counted_matrix m = { 0 };
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(7, 5, 0, 200)), 5 * 200 * 8);
    assert_int_equal(m.c.low, 4096 + 7 * 200 * 8);
    assert_int_equal(m.c.calls, 1);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(7, 5, 11, 3)), 5 * 3 * 8);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(299, 1, 199, 1)), 8);
    close_counted(&m);
    test_matrix_free(&matrix);
    shape.transposed = true;
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(7, 5, 11, 90)), 5 * 90 * 8);
    close_counted(&m);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

static void triangular_rows_and_bits_touch_only_their_own_bytes(void **state)
{
    (void)state;
    char *folder = temp_make();
    coffer_pycauset_shape shape = test_matrix_kind(2 * 15 + 11, 100, 100); /* strictly triangular f64 */
    test_matrix matrix;
    counted_matrix m = { 0 };
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(10, 1, 0, 100)), 89 * 8);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(10, 2, 0, 100)), (89 + 88) * 8);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(50, 50, 0, 50)),
                     0); /* all below the diagonal */
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(0, 4, 90, 2)), 4 * 2 * 8);
    close_counted(&m);
    test_matrix_free(&matrix);
    shape = test_matrix_kind(4 * 15 + 11, 100, 100); /* symmetric f64 */
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(10, 2, 90, 3)), 2 * 3 * 8);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(90, 3, 10, 2)), 2 * 3 * 8);
    close_counted(&m);
    test_matrix_free(&matrix);
    shape = test_matrix_kind(0, 64, 4096); /* bits: rows of 512 bytes */
    test_matrix_make(&matrix, &shape, 3);
    open_counted(&m, &matrix, folder);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(3, 2, 0, 4096)), 2 * 512);
    assert_int_equal(bytes_for(&m, (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(3, 2, 100, 8)), 2 * 2);
    close_counted(&m);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

static void a_handle_opened_by_path_owns_its_source(void **state)
{
    (void)state;
    char *folder = temp_make();
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 5, 7);
    coffer_pycauset *m = NULL;
    coffer_pycauset_history *history = NULL;
    test_matrix matrix;
    double got, expected[2];
    const char *path = temp_path(folder, "m.pycauset");
    test_matrix_make(&matrix, &shape, 1);
    assert_int_equal(coffer_pycauset_open_path(&m, path, NULL, &err), COFFER_E_IO);
    assert_null(m);
    assert_int_equal(coffer_pycauset_history_open_path(&history, path, NULL, &err), COFFER_E_IO);
    assert_null(history);
    test_matrix_write(&matrix, path, 5, NULL);
    must(coffer_pycauset_open_path(&m, path, NULL, &err), &err);
    must(coffer_pycauset_get(&got, NULL, m, 4, 6, &err), &err);
    test_matrix_value(expected, &matrix, 4, 6);
    assert_true(got == expected[0]);
    coffer_pycauset_close(m);
    must(coffer_pycauset_history_open_path(&history, path, NULL, &err), &err);
    assert_int_equal(coffer_pycauset_history_count(history), 1);
    coffer_pycauset_history_close(history);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

/* A program built against an older header has a shorter view, and one that forgot _INIT says so by 0. */
static void a_shorter_view_is_filled_as_far_as_it_goes(void **state)
{
    (void)state;
    skip_on_big_endian();
    char *folder = temp_make();
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 5, 7);
    coffer_pycauset_view view = COFFER_PYCAUSET_VIEW_INIT;
    coffer_pycauset_tile tile = { .struct_size = 0 };
    test_matrix matrix;
    open_matrix m = { .folder = folder };
    double got;
    test_matrix_make(&matrix, &shape, 1);
    open_written(&m, &matrix, COFFER_ACCESS_MAP);
    view.struct_size = offsetof(coffer_pycauset_view, row_stride);
    view.row_stride = -1;
    must(coffer_pycauset_get_view(&view, m.m, &err), &err);
    assert_true(view.rows == 5 && view.cols == 7 && view.row_stride == -1);
    view.struct_size = 0;
    assert_int_equal(coffer_pycauset_get_view(&view, m.m, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_read_tile(&got, 0, m.m, &tile, COFFER_DTYPE_F64, &err),
                     COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_tile_init(&tile, sizeof tile);
    assert_int_equal(tile.struct_size, sizeof tile);
    close_written(&m);
    test_matrix_free(&matrix);
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_matrix_reads_back_as_it_was_written),
        cmocka_unit_test(views_turn_conjugate_and_scale_every_kind),
        cmocka_unit_test(sizes_around_the_edges_of_words_and_bands_are_right),
        cmocka_unit_test(wide_rows_go_through_in_pieces),
        cmocka_unit_test(every_type_can_be_asked_for),
        cmocka_unit_test(a_tile_outside_the_matrix_is_refused),
        cmocka_unit_test(a_handle_opened_by_path_owns_its_source),
        cmocka_unit_test(a_shorter_view_is_filled_as_far_as_it_goes),
        cmocka_unit_test(single_elements_are_those_of_the_tile),
        cmocka_unit_test(the_view_points_at_the_stored_elements),
        cmocka_unit_test(opening_reads_no_byte_of_the_payload),
        cmocka_unit_test(rows_and_tiles_touch_only_their_own_bytes),
        cmocka_unit_test(triangular_rows_and_bits_touch_only_their_own_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
