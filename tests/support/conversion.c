#include "support/conversion.h"

#include "support/matrix.h"

#include <stdlib.h>
#include <string.h>

void matrix_make(const char *name, const coffer_pycauset_shape *shape)
{
    test_matrix made;
    test_matrix_make(&made, shape, 1);
    test_matrix_write(&made, temp_path(temp_folder, name), 3, NULL);
    test_matrix_free(&made);
}

coffer_status matrix_convert(coffer_error *err, const char *in, const char *out, ...)
{
    coffer_setting settings[8];
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    va_list arguments;
    va_start(arguments, out);
    for (;;) {
        const char *name = va_arg(arguments, const char *);
        if (!name)
            break;
        settings[opts.setting_count].name = name;
        settings[opts.setting_count++].value = va_arg(arguments, const char *);
    }
    va_end(arguments);
    opts.settings = settings;
    coffer_status status = coffer_source_open(&src, temp_path(temp_folder, in), NULL, err);
    if (!status)
        status = coffer_convert(src, temp_path(temp_folder, out), &opts, err);
    coffer_source_close(src);
    return status;
}

void matrix_check_refused(coffer_status got, const coffer_error *err, coffer_status expected,
                          const char *part, int line)
{
    if (got != expected || !strstr(err->text, part))
        fail_msg("line %d: gives %s (%s), expected %s (%s)", line, coffer_status_name(got), err->text,
                 coffer_status_name(expected), part);
}

double *matrix_values(coffer_pycauset_info *info, const char *name)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    coffer_pycauset *matrix = NULL;
    if (coffer_source_open(&src, temp_path(temp_folder, name), NULL, &err) ||
        coffer_pycauset_open(&matrix, src, NULL, &err))
        fail_msg("%s: %s", name, err.text);
    coffer_pycauset_info found = *coffer_pycauset_get_info(matrix);
    double *values = malloc((size_t)(found.rows * found.cols) * 16 + 1);
    assert_non_null(values);
    if (coffer_pycauset_read_rows(values, matrix, 0, found.rows, COFFER_DTYPE_C128, &err))
        fail_msg("%s: %s", name, err.text);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    if (info)
        *info = found;
    return values;
}

void matrix_assert_same(const char *a, const char *b)
{
    coffer_pycauset_info info_a, info_b;
    double *values_a = matrix_values(&info_a, a), *values_b = matrix_values(&info_b, b);
    if (info_a.rows != info_b.rows || info_a.cols != info_b.cols)
        fail_msg("%s is %d × %d, %s %d × %d", a, (int)info_a.rows, (int)info_a.cols, b, (int)info_b.rows,
                 (int)info_b.cols);
    for (size_t i = 0; i < 2 * info_a.rows * info_a.cols; i++) {
        if (values_a[i] != values_b[i])
            fail_msg("%s and %s differ at element %zu: %g, %g", a, b, i / 2, values_a[i], values_b[i]);
    }
    free(values_a);
    free(values_b);
}

void matrix_assert_values(const char *name, uint64_t rows, uint64_t cols, const double *values)
{
    coffer_pycauset_info info;
    double *found = matrix_values(&info, name);
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.cols, cols);
    for (size_t i = 0; i < rows * cols; i++) {
        if (found[2 * i] != values[i] || found[2 * i + 1] != 0)
            fail_msg("%s: element %zu is %g + %gi, expected %g", name, i, found[2 * i], found[2 * i + 1],
                     values[i]);
    }
    free(found);
}
