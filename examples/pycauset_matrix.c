/* Streams a matrix into a file, annotates it, reads a part of it, and looks at it in place.
 *
 *   cc pycauset_matrix.c $(pkg-config --cflags --libs coffer) -lm && ./a.out waves.pycauset */
#include <coffer/coffer.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ROWS 240
#define COLS 320

static int fail(const char *what, const coffer_error *err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, err->text, coffer_status_name(err->status));
    return 1;
}

/* Two drops in a pond. */
static double height(unsigned row, unsigned col)
{
    double near = hypot(row - 80.0, col - 90.0), far = hypot(row - 170.0, col - 240.0);
    return cos(near / 6) * exp(-near / 90) + cos(far / 9) * exp(-far / 120);
}

/* One row is in memory at a time, whatever the size; the file appears under its name at commit. */
static coffer_status create(const char *path, coffer_error *err)
{
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_writer *writer = NULL;
    unsigned row, col;
    shape.rows = ROWS;
    shape.cols = COLS;
    opts.checksums = true;
    coffer_status status = coffer_pycauset_writer_create(&writer, path, &shape, &opts, err);
    if (status != COFFER_OK)
        return status;
    for (row = 0; status == COFFER_OK && row < ROWS; row++) {
        double values[COLS];
        for (col = 0; col < COLS; col++)
            values[col] = height(row, col);
        status = coffer_pycauset_writer_put_rows(writer, values, 1, err);
    }
    if (status == COFFER_OK)
        return coffer_pycauset_writer_commit(writer, err);
    coffer_pycauset_writer_discard(writer);
    return status;
}

/* All changes in one commit: after a crash the file has none of them or all. The payload is not touched. */
static coffer_status annotate(const char *path, double norm, coffer_error *err)
{
    static const char label[] = "two drops", pond[] = "{\"width_m\": 3.2, \"drops\": [[80, 90], [170, 240]]}";
    coffer_pycauset_changes *changes = NULL;
    coffer_pycauset_editor *editor = NULL;
    uint64_t generation = 0;
    coffer_status status = coffer_pycauset_changes_new(&changes, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_string(changes, "properties.label", label, strlen(label), err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_json(changes, "properties.pond", pond, strlen(pond), err);
    if (status == COFFER_OK)
        status = coffer_pycauset_changes_set_cached(changes, "frobenius", norm, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_editor_open(&editor, path, NULL, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_editor_commit(&generation, editor, changes, err);
    if (status == COFFER_OK)
        printf("annotated: generation %llu\n", (unsigned long long)generation);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    return status;
}

/* Only the bytes of the tile are read. */
static coffer_status print_tile(const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(78, 4, 88, 5); /* row, rows, col, cols */
    float values[4][5];
    unsigned row, col;
    coffer_status status = coffer_pycauset_read_tile(values, 0, matrix, &tile, COFFER_DTYPE_F32, err);
    for (row = 0; status == COFFER_OK && row < 4; row++) {
        for (col = 0; col < 5; col++)
            printf("  %6.3f", (double)values[row][col]);
        putchar('\n');
    }
    return status;
}

/* No copy: the stored bytes themselves, with the strides that make up for a transposition. */
static coffer_status sum_in_place(const coffer_pycauset *matrix, coffer_error *err)
{
    coffer_pycauset_view view = COFFER_PYCAUSET_VIEW_INIT;
    double sum = 0;
    uint64_t row, col;
    coffer_status status = coffer_pycauset_get_view(&view, matrix, err);
    if (status != COFFER_OK)
        return status;
    for (row = 0; row < view.rows; row++)
        for (col = 0; col < view.cols; col++) {
            double value;
            memcpy(&value,
                   (const char *)view.data + (int64_t)row * view.row_stride + (int64_t)col * view.col_stride,
                   sizeof value);
            sum += value;
        }
    printf("sum, read in place: %.3f\n", sum);
    return COFFER_OK;
}

static coffer_status measure(double *norm, const coffer_pycauset *matrix, coffer_error *err)
{
    coffer_pycauset_stats *stats = NULL;
    coffer_status status = coffer_pycauset_stats_new(&stats, matrix, NULL, err);
    if (status)
        return status;
    const coffer_pycauset_summary *total = coffer_pycauset_stats_total(stats);
    printf("from %.3f to %.3f, mean %.3f, norm %.3f\n", total->min, total->max, total->mean,
           total->frobenius);
    *norm = total->frobenius;
    coffer_pycauset_stats_free(stats);
    return COFFER_OK;
}

static coffer_status look(double *norm, const char *path, coffer_error *err)
{
    coffer_source *source = NULL;
    coffer_pycauset *matrix = NULL;
    coffer_status status = coffer_source_open(&source, path, NULL, err);
    if (status == COFFER_OK)
        status = coffer_pycauset_open(&matrix, source, NULL, err);
    if (status == COFFER_OK) {
        const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
        const coffer_pycauset_value *metadata = coffer_pycauset_metadata(matrix);
        const char *label =
            coffer_pycauset_value_text(coffer_pycauset_value_find(metadata, "properties.label"), NULL);
        printf("%llu x %llu %s, generation %llu, label %s\n", (unsigned long long)info->rows,
               (unsigned long long)info->cols, coffer_pycauset_dtype_name(info->dtype),
               (unsigned long long)info->generation, label ? label : "(none)");
        status = measure(norm, matrix, err);
    }
    if (status == COFFER_OK)
        status = print_tile(matrix, err);
    if (status == COFFER_OK)
        status = sum_in_place(matrix, err);
    coffer_pycauset_close(matrix);
    coffer_source_close(source);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "example.pycauset";
    coffer_error err = COFFER_ERROR_INIT;
    double norm = 0;
    if (create(path, &err) != COFFER_OK || look(&norm, path, &err) != COFFER_OK)
        return fail(path, &err);
    if (annotate(path, norm, &err) != COFFER_OK || look(&norm, path, &err) != COFFER_OK)
        return fail(path, &err);
    return 0;
}
