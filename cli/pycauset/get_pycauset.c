/* get, for matrices: a value of the metadata by its path, or values of the matrix. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "write to FILE instead of standard output" },
    { "as", 0, "KIND", NULL, "values: csv, npy, raw …; metadata: text, json or raw",
      "by the extension of FILE, else csv or text" },
    { "part", 0, "PART", "real|imag|abs", "values: one part of complex numbers" },
    { "dtype", 0, "TYPE", NULL, "values: convert to f32, i64 …", "their own type" },
    { "stored", 0, NULL, NULL, "values: as stored, without transposition, conjugation and scalar" },
    { "json", 0, NULL, NULL, "metadata: same as --as json" },
    { "stale", 0, NULL, NULL, "include cached results that do not match the payload or view" },
    { "generation", 'g', "N", NULL,
      "metadata: the state of generation N; 'coffer log' lists the generations" },
    { "force", 'f', NULL, NULL, "overwrite an existing output" },
    PYCAUSET_ARRAY_OPTIONS,
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct get_job {
    const cli_args *args;
    const char *path, *what, *output, *as;
    bool force, stale;
} get_job;

/* Options that apply to values only. */
enum { VALUE_OPTIONS = 3 };
static const char *const value_options[VALUE_OPTIONS] = { "part", "dtype", "stored" };

/* ---- Metadata ---- */

enum as { AS_TEXT, AS_JSON, AS_RAW };

typedef struct metadata_job {
    get_job get;
    enum as as;
    coffer__buffer out;
    size_t stale_skipped;
} metadata_job;

/* The results that are not stale, or all of them with --stale. */
static void put_cached(metadata_job *job, coffer__json_writer *json, const coffer_pycauset *matrix,
                       const coffer_pycauset_value *cached)
{
    coffer__json_open_object(json);
    for (size_t i = 0; i < coffer_pycauset_value_count(cached); i++) {
        size_t len;
        bool stale = false;
        const char *name = coffer_pycauset_value_key_at(cached, i, &len);
        coffer_pycauset_cached(matrix, name, &stale);
        if (stale && !job->get.stale) {
            job->stale_skipped++;
            continue;
        }
        coffer__json_key_len(json, name, len);
        pycauset_put_json(json, coffer_pycauset_value_at(cached, i));
    }
    coffer__json_close_object(json);
}

/* The whole metadata or its map "cached", without stale results. */
static void put_map(metadata_job *job, const coffer_pycauset *matrix, const coffer_pycauset_value *value)
{
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    const coffer_pycauset_value *cached = coffer_pycauset_value_find(root, "cached");
    coffer__json_writer json;
    coffer__json_writer_init(&json, &job->out, 2);
    if (value == cached) {
        put_cached(job, &json, matrix, cached);
    } else {
        coffer__json_open_object(&json);
        for (size_t i = 0; i < coffer_pycauset_value_count(root); i++) {
            size_t len;
            const coffer_pycauset_value *member = coffer_pycauset_value_at(root, i);
            const char *key = coffer_pycauset_value_key_at(root, i, &len);
            coffer__json_key_len(&json, key, len);
            if (member == cached && coffer_pycauset_value_kind(cached) == COFFER_PYCAUSET_MAP)
                put_cached(job, &json, matrix, member);
            else
                pycauset_put_json(&json, member);
        }
        coffer__json_close_object(&json);
    }
    coffer__buffer_append(&job->out, "\n", 1);
}

static void put_value(metadata_job *job, const coffer_pycauset_value *value)
{
    size_t len;
    coffer__json_writer json;
    bool is_bytes = coffer_pycauset_value_kind(value) == COFFER_PYCAUSET_BYTES;
    bool is_text = coffer_pycauset_value_kind(value) == COFFER_PYCAUSET_STRING;
    if (job->as == AS_JSON) {
        coffer__json_writer_init(&json, &job->out, 2);
        pycauset_put_json(&json, value);
        coffer__buffer_append(&job->out, "\n", 1);
    } else if (is_bytes ? job->as == AS_RAW || job->get.output : is_text && job->as == AS_RAW) {
        const char *bytes = coffer_pycauset_value_text(value, &len);
        coffer__buffer_append(&job->out, bytes, len);
    } else {
        pycauset_put_text(&job->out, value);
    }
}

/* The deepest map on the path that exists; `path` is shortened to it. */
static const coffer_pycauset_value *find_parent(const coffer_pycauset_value *root, char *path)
{
    for (char *dot; (dot = strrchr(path, '.'));) {
        *dot = '\0';
        const coffer_pycauset_value *parent = coffer_pycauset_value_find(root, path);
        if (coffer_pycauset_value_kind(parent) == COFFER_PYCAUSET_MAP)
            return parent;
    }
    *path = '\0';
    return root;
}

static int fail_unknown(const get_job *job, const coffer_pycauset *matrix)
{
    coffer__buffer keys = COFFER__BUFFER_INIT;
    char *path = coffer__strdup(job->what);
    const coffer_pycauset_value *parent =
        path ? find_parent(coffer_pycauset_metadata(matrix), path) : coffer_pycauset_metadata(matrix);
    for (size_t i = 0; i < coffer_pycauset_value_count(parent); i++)
        coffer__buffer_printf(&keys, "%s%s", i ? ", " : "", coffer_pycauset_value_key_at(parent, i, NULL));
    int status =
        cli_usage(job->args, "no \"%s\" in %s; %s has %s", job->what, job->path,
                  path && *path ? path : "the metadata", keys.len ? coffer__buffer_text(&keys) : "nothing");
    coffer__free(path);
    coffer__buffer_free(&keys);
    return status;
}

/* "cached.NAME" is the result itself. *stale: it exists but is not returned. */
static const coffer_pycauset_value *find_cached(const coffer_pycauset *matrix, const char *what,
                                                bool with_stale, bool *stale)
{
    static const char prefix[] = "cached.";
    const coffer_pycauset_value *value = coffer_pycauset_value_find(coffer_pycauset_metadata(matrix), what);
    coffer__buffer name = COFFER__BUFFER_INIT;
    if (strncmp(what, prefix, sizeof prefix - 1) != 0)
        return value;
    const char *at = what + sizeof prefix - 1;
    for (; *at && *at != '.'; at++) {
        at += *at == '\\' && at[1] == '.';
        coffer__buffer_append(&name, at, 1);
    }
    const coffer_pycauset_value *result = coffer_pycauset_cached(matrix, coffer__buffer_text(&name), stale);
    coffer__buffer_free(&name);
    *stale = *stale && !with_stale;
    if (!result && with_stale && !*at)
        result = coffer_pycauset_value_find(value, "value");
    return *at ? value : result;
}

static int fail_stale(const get_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer__fail(&err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                 "%s is stale: it was computed for another payload or view", job->what);
    return cli_fail(job->path, &err, "compute it again, or add --stale to print it anyway");
}

static void print_skipped(const metadata_job *job)
{
    if (job->stale_skipped)
        fprintf(stderr, "%scoffer:%s skipped %zu stale cached result%s; --stale includes %s\n",
                term_on(stderr, TERM_YELLOW), term_off(stderr), job->stale_skipped,
                job->stale_skipped == 1 ? "" : "s", job->stale_skipped == 1 ? "it" : "them");
}

static int get_metadata(metadata_job *job, const coffer_pycauset *matrix)
{
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    bool stale = false;
    const coffer_pycauset_value *value = strcmp(job->get.what, "metadata") == 0
                                             ? root
                                             : find_cached(matrix, job->get.what, job->get.stale, &stale);
    if (stale)
        return fail_stale(&job->get);
    if (!value)
        return fail_unknown(&job->get, matrix);
    bool holds_results = value == root || value == coffer_pycauset_value_find(root, "cached");
    if (holds_results && coffer_pycauset_value_kind(value) == COFFER_PYCAUSET_MAP)
        put_map(job, matrix, value);
    else
        put_value(job, value);
    int result = cli_write_out(job->get.output, job->get.force, job->out.data, job->out.len);
    print_skipped(job);
    return result;
}

/* ---- Values, written by the conversions ---- */

/* "3,4", "10..20,0:5", "7", "-1", ":,2", "[3,4]" or "values"; keys do not begin like that. */
bool pycauset_is_tile(const char *what)
{
    bool negative = what[0] == '-' && isdigit((unsigned char)what[1]);
    return isdigit((unsigned char)what[0]) || negative || what[0] == ':' || what[0] == '[' ||
           strncmp(what, "..", 2) == 0 || strcmp(what, "values") == 0;
}

static bool is_everything(const char *range)
{
    return !*range || strcmp(range, "..") == 0 || strcmp(range, ":") == 0;
}

static int convert(const get_job *job, coffer_source *src, const char *rows, const char *cols)
{
    coffer_setting settings[VALUE_OPTIONS + 2];
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
    for (size_t i = 0; i < VALUE_OPTIONS; i++)
        if (cli_has(job->args, value_options[i]))
            settings[opts.setting_count++] =
                (coffer_setting){ value_options[i], cli_value(job->args, value_options[i]) };
    opts.settings = settings;
    opts.overwrite = job->force;
    term_progress_start(&bar, "writing", NULL);
    opts.progress = &bar.progress;
    coffer_status status = coffer_convert(src, job->output ? job->output : "-", &opts, &err);
    term_progress_end(&bar);
    if (!status)
        return CLI_OK;
    return cli_fail_between(job->path, job->output, &err, NULL);
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

static int get_tile(const get_job *job, coffer_source *src)
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
    /* Brackets, as in Python, may be around it. */
    size_t len = strlen(job->what), open = job->what[0] == '[';
    if (open && job->what[len - 1] != ']')
        return cli_usage(job->args, "'%s' has no ']' at its end", job->what);
    coffer__buffer rows = COFFER__BUFFER_INIT, cols = COFFER__BUFFER_INIT;
    const char *text = job->what + open, *comma = strchr(text, ',');
    size_t rest = len - 2 * open, first = comma ? (size_t)(comma - text) : rest;
    coffer__buffer_append(&rows, text, first);
    if (comma)
        coffer__buffer_append(&cols, comma + 1, rest - first - 1);
    int result = convert(job, src, coffer__buffer_text(&rows), coffer__buffer_text(&cols));
    coffer__buffer_free(&rows);
    coffer__buffer_free(&cols);
    return result;
}

/* ---- The verb ---- */

static get_job read_job(const cli_args *args)
{
    get_job job = { .args = args, .path = cli_operand(args, 0), .what = cli_operand(args, 1) };
    job.output = cli_value(args, "output");
    job.as = cli_value(args, "as");
    job.force = cli_has(args, "force");
    job.stale = cli_has(args, "stale");
    if (!job.what)
        job.what = "metadata";
    return job;
}

static int run_on(const cli_args *args, const coffer_pycauset *matrix)
{
    static const char *const names[] = { [AS_TEXT] = "text", [AS_JSON] = "json", [AS_RAW] = "raw" };
    metadata_job job = { .get = read_job(args), .out = COFFER__BUFFER_INIT };
    const char *as = cli_has(args, "json") ? "json" : job.get.as ? job.get.as : "text";
    while (job.as < AS_RAW && strcmp(names[job.as], as) != 0)
        job.as++;
    for (size_t i = 0; i < VALUE_OPTIONS; i++)
        if (cli_has(args, value_options[i]))
            return cli_usage(args, "--%s applies to values only, and %s is metadata", value_options[i],
                             job.get.what);
    if (strcmp(names[job.as], as) != 0)
        return cli_usage(args, "--as must be text, json or raw for metadata, not %s", as);
    int result = get_metadata(&job, matrix);
    coffer__buffer_free(&job.out);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    get_job job = read_job(args);
    uint64_t generation;
    if (!cli_number(&generation, args, "generation", 0, 1, UINT64_MAX))
        return CLI_USAGE;
    coffer_source *scratch = NULL;
    int status = pycauset_open_array(&scratch, args, cli_operand(args, 0), src);
    if (status)
        return status;
    if (scratch) { /* a file of another program: its values, unless something of the metadata is asked for */
        if (!cli_operand(args, 1))
            job.what = "values";
        src = scratch;
    }
    status = pycauset_is_tile(job.what) ? get_tile(&job, src)
                                        : pycauset_with_matrix(args, src, generation, run_on);
    coffer_source_close(scratch);
    return status;
}

int pycauset_get_array(const cli_args *args, coffer_source *src)
{
    return run(args, src);
}

const cli_format_verb cli_pycauset_get = {
    .format = "pycauset, hdf5, mtx",
    .verb = "get",
    .options = options,
    .examples = "  coffer get m.pycauset                           # all metadata, as JSON\n"
                "  coffer get m.pycauset properties.label          # one value of it\n"
                "  coffer get m.pycauset 3,4                       # the element in row 3, column 4\n"
                "  coffer get m.pycauset 10..20,0..5               # ten rows, five columns, as CSV\n"
                "  coffer get m.mtx -1,:                           # the last row of a Matrix Market file\n"
                "  coffer get data.h5 :5 --dataset runs/first      # five rows of an HDF5 dataset\n"
                "  coffer get m.pycauset ..,2 -o column.npy        # a column, for NumPy\n",
    .run = run,
};
