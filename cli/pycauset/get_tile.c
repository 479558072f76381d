/* Values of a matrix, written by the conversions. */
#include "base/buffer.h"
#include "base/json_write.h"
#include "get_pycauset.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool get_is_tile(const char *what)
{
    return isdigit((unsigned char)what[0]) || strncmp(what, "..", 2) == 0 || strcmp(what, "values") == 0;
}

static bool is_everything(const char *range)
{
    return !*range || strcmp(range, "..") == 0;
}

const char *const get_value_options[GET_VALUE_OPTIONS] = { "part", "dtype", "stored" };

static int convert(const get_job *job, coffer_source *src, const char *rows, const char *cols)
{
    coffer_setting settings[GET_VALUE_OPTIONS + 2];
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    term_progress bar;
    opts.to = job->as ? job->as : job->output ? NULL : "csv";
    if (!job->output && term_is_terminal(stdout) && !coffer_convert_is_text(opts.to))
        return cli_usage(job->args, "refusing to write binary %s to a terminal; use -o FILE or redirect",
                         opts.to);
    if (!is_everything(rows))
        settings[opts.setting_count++] = (coffer_setting){ "rows", rows };
    if (!is_everything(cols))
        settings[opts.setting_count++] = (coffer_setting){ "cols", cols };
    for (size_t i = 0; i < GET_VALUE_OPTIONS; i++)
        if (cli_has(job->args, get_value_options[i]))
            settings[opts.setting_count++] =
                (coffer_setting){ get_value_options[i], cli_value(job->args, get_value_options[i]) };
    opts.settings = settings;
    opts.overwrite = job->force;
    term_progress_start(&bar, "writing", NULL);
    opts.progress = &bar.progress;
    coffer_status status = coffer_convert(src, job->output ? job->output : "-", &opts, &err);
    term_progress_end(&bar);
    if (status == COFFER_OK)
        return CLI_OK;
    return cli_fail(status == COFFER_E_EXISTS ? job->output : cli_culprit(job->path, job->output, &err), &err,
                    NULL);
}

/* ---- One complex number ---- */

/* "3,4". CSV has no complex numbers, but a single one is printed as Python writes it. */
static bool is_element(uint64_t *row, uint64_t *col, const char *what)
{
    char *comma, *end;
    errno = 0;
    *row = strtoull(what, &comma, 10);
    if (!isdigit((unsigned char)what[0]) || *comma != ',' || !isdigit((unsigned char)comma[1]))
        return false;
    *col = strtoull(comma + 1, &end, 10);
    return !*end && !errno;
}

static void put_real(coffer__buffer *out, double value, bool always_signed)
{
    coffer__json_writer json;
    coffer__buffer_printf(out, "%s", always_signed && (isnan(value) || !signbit(value)) ? "+" : "");
    coffer__json_writer_init(&json, out, 0);
    if (isfinite(value))
        coffer__json_write_f64(&json, value);
    else
        coffer__buffer_printf(out, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

static int print_complex(const cli_args *args, const coffer_pycauset *matrix)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__buffer text = COFFER__BUFFER_INIT;
    uint64_t row = 0, col = 0;
    double real, imag;
    is_element(&row, &col, cli_operand(args, 1));
    if (coffer_pycauset_get(&real, &imag, matrix, row, col, &err) != COFFER_OK)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    put_real(&text, real, false);
    put_real(&text, imag, true);
    printf("%sj\n", coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return CLI_OK;
}

static bool holds_complex(coffer_source *src)
{
    coffer_pycauset *matrix = NULL;
    bool complex_values = coffer_pycauset_open(&matrix, src, NULL, NULL) == COFFER_OK &&
                          coffer_dtype_is_complex(coffer_pycauset_get_info(matrix)->value_dtype);
    coffer_pycauset_close(matrix);
    return complex_values;
}

int get_tile(const get_job *job, coffer_source *src)
{
    uint64_t row, col;
    bool as_text = !job->as && !job->output && !cli_has(job->args, "part") && !cli_has(job->args, "stored");
    static const char *const others[] = { "generation", "stale", "json" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cli_has(job->args, others[i]))
            return cli_usage(job->args, "--%s applies to metadata only, and %s selects values", others[i],
                             job->what);
    if (as_text && is_element(&row, &col, job->what) && holds_complex(src))
        return pycauset_with_matrix(job->args, src, 0, print_complex);
    if (strcmp(job->what, "values") == 0)
        return convert(job, src, "", "");
    coffer__buffer rows = COFFER__BUFFER_INIT;
    const char *comma = strchr(job->what, ',');
    coffer__buffer_append(&rows, job->what, comma ? (size_t)(comma - job->what) : strlen(job->what));
    int result = convert(job, src, coffer__buffer_text(&rows), comma ? comma + 1 : "");
    coffer__buffer_free(&rows);
    return result;
}
