/* A written matrix is read back, for any shape, type, layout and view, and check finds nothing. */
#include "base/elements.h"
#include "clean.h"
#include "coffer/coffer.h"
#include "coffer/pycauset.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ROWS = 150, MOST_COLS = 200 };

typedef struct script {
    const uint8_t *data;
    size_t size;
    uint64_t random; /* used after the end of the bytes */
} script;

static uint8_t next_byte(script *s)
{
    if (s->size > 0) {
        s->size--;
        return *s->data++;
    }
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint8_t)(s->random >> 56);
}

static bool is_triangular(coffer_pycauset_type type)
{
    return type == COFFER_PYCAUSET_CAUSAL || type == COFFER_PYCAUSET_TRIANGULAR_FLOAT ||
           type == COFFER_PYCAUSET_TRIANGULAR_INTEGER;
}

static bool is_square(coffer_pycauset_type type)
{
    return is_triangular(type) || type == COFFER_PYCAUSET_SYMMETRIC || type == COFFER_PYCAUSET_ANTISYMMETRIC;
}

static bool has_payload(coffer_pycauset_type type)
{
    return type != COFFER_PYCAUSET_IDENTITY && type != COFFER_PYCAUSET_UNIT_VECTOR;
}

static coffer_pycauset_shape choose_shape(script *s)
{
    static const coffer_dtype dtypes[] = {
        COFFER_DTYPE_BIT, COFFER_DTYPE_I8,  COFFER_DTYPE_I16, COFFER_DTYPE_I32, COFFER_DTYPE_I64,
        COFFER_DTYPE_U8,  COFFER_DTYPE_U16, COFFER_DTYPE_U32, COFFER_DTYPE_U64, COFFER_DTYPE_F16,
        COFFER_DTYPE_F32, COFFER_DTYPE_F64, COFFER_DTYPE_C32, COFFER_DTYPE_C64, COFFER_DTYPE_C128,
    };
    static const double scalars[] = { 1, 1, -1, 0.5 };
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    shape.type = (coffer_pycauset_type)(next_byte(s) % COFFER_PYCAUSET_BLOCK);
    shape.dtype = shape.type == COFFER_PYCAUSET_CAUSAL ? COFFER_DTYPE_BIT : dtypes[next_byte(s) % 15];
    if (shape.type == COFFER_PYCAUSET_ANTISYMMETRIC && !coffer__dtype_has_negatives(shape.dtype))
        shape.dtype = COFFER_DTYPE_I16;
    shape.rows = next_byte(s) % MOST_ROWS;
    shape.cols = is_square(shape.type) ? shape.rows : next_byte(s) % MOST_COLS;
    if (shape.type == COFFER_PYCAUSET_VECTOR || shape.type == COFFER_PYCAUSET_UNIT_VECTOR)
        shape.cols = 1;
    if (shape.type == COFFER_PYCAUSET_UNIT_VECTOR) {
        shape.rows++;
        shape.unit_index = next_byte(s) % shape.rows;
    }
    uint8_t view = next_byte(s);
    shape.has_diagonal = view & 1;
    shape.transposed = view >> 1 & 1;
    shape.conjugated = view >> 2 & 1;
    shape.scalar_real = scalars[view >> 3 & 3];
    shape.scalar_imag = view >> 5 & 1;
    return shape;
}

/* Rows as the writer takes them: zeros where nothing is stored, the mirror image left out. */
static void fill_rows(uint8_t *rows, const coffer_pycauset_shape *shape, size_t element, script *s)
{
    bool diagonal = shape->has_diagonal && shape->type != COFFER_PYCAUSET_CAUSAL;
    for (uint64_t i = 0; i < shape->rows; i++) {
        for (uint64_t j = 0; j < shape->cols; j++) {
            bool stored = !is_triangular(shape->type) || (diagonal ? j >= i : j > i);
            uint8_t *at = rows + (i * shape->cols + j) * element;
            for (size_t k = 0; k < element; k++)
                at[k] = stored ? next_byte(s) : 0;
            if (shape->dtype == COFFER_DTYPE_BIT)
                *at &= 1;
        }
    }
}

static void write_matrix(const char *path, const coffer_pycauset_shape *shape, const uint8_t *rows,
                         size_t row_bytes, bool checksums, uint64_t at_once)
{
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_writer *writer = NULL;
    opts.checksums = checksums;
    opts.durability = COFFER_DURABILITY_NONE;
    opts.overwrite = true;
    MUST(coffer_pycauset_writer_create(&writer, path, shape, &opts, NULL) == COFFER_OK);
    for (uint64_t row = 0; has_payload(shape->type) && row < shape->rows; row += at_once) {
        uint64_t count = shape->rows - row < at_once ? shape->rows - row : at_once;
        MUST(coffer_pycauset_writer_put_rows(writer, rows + row * row_bytes, count, NULL) == COFFER_OK);
    }
    MUST(coffer_pycauset_writer_commit(writer, NULL) == COFFER_OK);
}

/* Elements that are stored come back bit by bit while the view changes nothing but their order. */
static void compare_stored(const coffer_pycauset *m, const coffer_pycauset_shape *shape, const uint8_t *rows,
                           size_t element)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(m);
    size_t count = (size_t)(shape->rows * shape->cols);
    bool bits_kept = shape->scalar_real == 1 && shape->scalar_imag == 0 &&
                     !(shape->conjugated && coffer_dtype_is_complex(shape->dtype));
    uint8_t *got = malloc(count * 16 + 1);
    MUST(got);
    MUST(coffer_pycauset_read_rows(got, m, 0, info->rows, COFFER_DTYPE_NONE, NULL) == COFFER_OK);
    for (size_t k = 0; bits_kept && has_payload(shape->type) && k < count; k++) {
        uint64_t i = k / shape->cols, j = k % shape->cols;
        size_t seen = shape->transposed ? (size_t)(j * shape->rows + i) : k;
        bool mirrored =
            shape->type == COFFER_PYCAUSET_SYMMETRIC || shape->type == COFFER_PYCAUSET_ANTISYMMETRIC;
        bool turned = shape->type == COFFER_PYCAUSET_ANTISYMMETRIC && shape->transposed;
        if ((mirrored && j < i) || (turned && j > i))
            continue; /* not stored, or the negative */
        MUST(memcmp(got + seen * element, rows + k * element, element) == 0);
    }
    free(got);
}

/* A tile is a part of the whole. */
static void compare_tile(const coffer_pycauset *m, script *s)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(m);
    size_t size = coffer_dtype_size(info->value_dtype);
    if (info->rows == 0 || info->cols == 0)
        return;
    coffer_pycauset_tile tile = { sizeof tile, next_byte(s) % info->rows, 0, next_byte(s) % info->cols, 0 };
    tile.rows = next_byte(s) % (info->rows - tile.row) + 1;
    tile.cols = next_byte(s) % (info->cols - tile.col) + 1;
    uint8_t *whole = malloc((size_t)(info->rows * info->cols) * 16),
            *part = malloc((size_t)(tile.rows * tile.cols) * 16);
    MUST(whole && part);
    MUST(coffer_pycauset_read_rows(whole, m, 0, info->rows, COFFER_DTYPE_NONE, NULL) == COFFER_OK);
    MUST(coffer_pycauset_read_tile(part, 0, m, &tile, COFFER_DTYPE_NONE, NULL) == COFFER_OK);
    for (uint64_t i = 0; i < tile.rows; i++)
        MUST(memcmp(part + i * tile.cols * size, whole + ((tile.row + i) * info->cols + tile.col) * size,
                    (size_t)tile.cols * size) == 0);
    free(whole);
    free(part);
}

static void check_counts(const coffer_pycauset *m)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(m);
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_pycauset_stats *stats = NULL;
    opts.threads = 1;
    MUST(coffer_pycauset_stats_new(&stats, m, &opts, NULL) == COFFER_OK);
    const coffer_pycauset_summary *total = coffer_pycauset_stats_total(stats);
    MUST(total->elements == info->rows * info->cols);
    MUST(total->nans + total->infinities <= total->nonzero && total->nonzero <= total->elements);
    MUST(!(total->min > total->max));
    coffer_pycauset_stats_free(stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    script s = { data, size, size };
    char path[64];
    coffer_source_opts source_opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_pycauset *m = NULL;
    coffer_pycauset_shape shape = choose_shape(&s);
    uint8_t how = next_byte(&s);
    size_t element = shape.dtype == COFFER_DTYPE_BIT ? 1 : coffer_dtype_size(shape.dtype);
    size_t row_bytes = (size_t)shape.cols * element;
    uint8_t *rows = malloc((size_t)shape.rows * row_bytes + 1);
    MUST(rows);
    fill_rows(rows, &shape, element, &s);
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d-matrix",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
    write_matrix(path, &shape, rows, row_bytes, how & 1, how % 17 + 1);
    source_opts.access = how & 2 ? COFFER_ACCESS_READ : COFFER_ACCESS_AUTO;
    MUST(coffer_source_open(&src, path, &source_opts, NULL) == COFFER_OK);
    MUST(coffer_pycauset_open(&m, src, NULL, NULL) == COFFER_OK);
    MUST(fuzz_is_clean(src, NULL));
    compare_stored(m, &shape, rows, element);
    compare_tile(m, &s);
    check_counts(m);
    coffer_pycauset_close(m);
    coffer_source_close(src);
    unlink(path);
    free(rows);
    return 0;
}
