/* The table of conversions. A new one is a row here and a function in a file of its own. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "convert/convert.h"
#include "io/inputs.h"
#include "io/source_private.h"
#include "outside/archives/unpack.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* The calls of conversions on their job: typed settings, and progress. */

const char *coffer__job_setting(const coffer__convert_job *job, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < job->setting_count; i++) {
        if (strcmp(job->settings[i].name, name) == 0)
            value = job->settings[i].value ? job->settings[i].value : "";
    }
    return value;
}

coffer_dtype coffer__dtype_of_setting(const char *text)
{
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        if (strcasecmp(coffer_dtype_name((coffer_dtype)i), text) == 0)
            return (coffer_dtype)i;
    }
    return COFFER_DTYPE_NONE;
}

/* Digits only. */
static bool parse_whole(uint64_t *out, const char *text, size_t len, uint64_t max)
{
    coffer__number number;
    return coffer__number_parse(&number, text, len) && number.kind == COFFER__NUMBER_U64 &&
           coffer__number_as_u64(out, &number, max);
}

coffer_status coffer__job_number(uint64_t *out, const coffer__convert_job *job, const char *name,
                                 uint64_t max, coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    if (text && !parse_whole(out, text, strlen(text), max))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected a number from 0 to %" PRIu64 ", not \"%s\"", name, max, text);
    return COFFER_OK;
}

coffer_status coffer__job_range(uint64_t *begin, uint64_t *end, const coffer__convert_job *job,
                                const char *name, coffer_error *err)
{
    const char *text = coffer__job_setting(job, name);
    uint64_t from = 0, to = UINT64_MAX;
    bool good;
    if (!text)
        return COFFER_OK;
    const char *dots = strstr(text, "..");
    if (dots) {
        good = dots == text || parse_whole(&from, text, (size_t)(dots - text), UINT64_MAX);
        good = good && (!dots[2] || parse_whole(&to, dots + 2, strlen(dots + 2), UINT64_MAX));
    } else {
        good = parse_whole(&from, text, strlen(text), UINT64_MAX - 1);
        to = from + 1;
    }
    if (!good || from > to)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s: expected A..B, A.., ..B or A, not \"%s\"", name, text);
    *begin = from;
    *end = to;
    return COFFER_OK;
}

coffer_status coffer__job_json_file(char **text, size_t *len, const coffer__convert_job *job,
                                    const char *name, coffer_error *err)
{
    const char *path = coffer__job_setting(job, name);
    coffer_source *src = NULL;
    char *read = NULL;
    coffer_status status = coffer__source_open_other(&src, path, NULL, err);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    if (size > job->limits.json_bytes)
        status = coffer__fail_other(err,
                                    coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                 "%" PRIu64 " bytes of JSON, the limit is %" PRIu64, size,
                                                 job->limits.json_bytes),
                                    path);
    if (!status) {
        read = coffer__malloc((size_t)size + 1);
        status = read ? coffer_source_read_at(read, src, 0, (size_t)size, err)
                      : coffer__fail_no_memory(err, size + 1);
    }
    coffer_source_close(src);
    if (status) {
        coffer__free(read);
        return status;
    }
    read[size] = '\0';
    *text = read;
    *len = (size_t)size;
    return COFFER_OK;
}

coffer_status coffer__job_progress(const coffer__convert_job *job, uint64_t done, uint64_t total,
                                   coffer_error *err)
{
    return coffer__progress_step(job->progress, done, total, err);
}

static const coffer_conversion conversions[] = {
    { "mscan", "npy", coffer__mscan_export_array_options, coffer__mscan_to_array },
    { "mscan", "csv", coffer__mscan_export_text_options, coffer__mscan_to_csv },
    { "mscan", "jsonl", coffer__mscan_export_text_options, coffer__mscan_to_jsonl },
    { "mscan", "raw", coffer__mscan_export_array_options, coffer__mscan_to_array },
    { "npy", "mscan", coffer__mscan_import_options, coffer__mscan_from_npy },
    { "csv", "mscan", coffer__mscan_import_options, coffer__mscan_from_csv },
    { "jsonl", "mscan", coffer__mscan_import_options, coffer__mscan_from_jsonl },
    { "pycauset", "npy", coffer__pycauset_to_array_options, coffer__pycauset_to_npy },
    { "pycauset", "mtx", coffer__pycauset_to_mtx_options, coffer__pycauset_to_mtx },
    { "pycauset", "hdf5", coffer__pycauset_to_hdf5_options, coffer__pycauset_to_hdf5 },
    { "pycauset", "csv", coffer__pycauset_to_csv_options, coffer__pycauset_to_csv },
    { "pycauset", "raw", coffer__pycauset_to_array_options, coffer__pycauset_to_raw },
    { "npy", "pycauset", coffer__pycauset_from_npy_options, coffer__pycauset_from_npy },
    { "npz", "pycauset", coffer__pycauset_from_npz_options, coffer__pycauset_from_npz },
    { "mtx", "pycauset", coffer__pycauset_from_mtx_options, coffer__pycauset_from_mtx },
    { "hdf5", "pycauset", coffer__pycauset_from_hdf5_options, coffer__pycauset_from_hdf5 },
    { "csv", "pycauset", coffer__pycauset_from_csv_options, coffer__pycauset_from_csv },
    { "raw", "pycauset", coffer__pycauset_from_raw_options, coffer__pycauset_from_raw },
    { "npy", "hdf5", coffer__array_to_hdf5_options, coffer__array_to_array },
    { "npy", "csv", coffer__array_to_csv_options, coffer__array_to_array },
    { "npy", "mtx", coffer__array_to_mtx_options, coffer__array_to_array },
    { "mtx", "npy", coffer__array_to_npy_options, coffer__array_to_array },
    { "mtx", "hdf5", coffer__array_to_hdf5_options, coffer__array_to_array },
    { "mtx", "csv", coffer__array_to_csv_options, coffer__array_to_array },
    { "hdf5", "npy", coffer__hdf5_to_array_options, coffer__array_to_array },
    { "hdf5", "csv", coffer__hdf5_to_csv_options, coffer__array_to_array },
    { "hdf5", "mtx", coffer__hdf5_to_mtx_options, coffer__array_to_array },
    { "csv", "npy", coffer__csv_to_npy_options, coffer__array_to_array },
    { "csv", "hdf5", coffer__csv_to_hdf5_options, coffer__array_to_array },
    { "csv", "mtx", coffer__csv_to_mtx_options, coffer__array_to_array },
    { "safetensors", "mcf", coffer__to_mcf_options, coffer__to_mcf },
    { "safetensors-index", "mcf", coffer__to_mcf_options, coffer__to_mcf },
    { "gguf", "mcf", coffer__gguf_to_mcf_options, coffer__to_mcf },
    { "npz", "mcf", coffer__to_mcf_options, coffer__to_mcf },
    { "npy", "mcf", coffer__to_mcf_options, coffer__to_mcf },
    { "mcf", "safetensors", coffer__to_safetensors_options, coffer__to_safetensors },
    { "safetensors", "safetensors", coffer__to_safetensors_options, coffer__to_safetensors },
    { "safetensors-index", "safetensors", coffer__to_safetensors_options, coffer__to_safetensors },
    { "gguf", "safetensors", coffer__gguf_to_safetensors_options, coffer__to_safetensors },
    { "mcf", "gguf", coffer__to_gguf_options, coffer__to_gguf },
    { "mcf", "npy", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "mcf", "csv", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "safetensors", "npy", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "safetensors", "csv", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "safetensors-index", "npy", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "safetensors-index", "csv", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "gguf", "npy", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "gguf", "csv", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "npz", "npy", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "npz", "csv", coffer__tensors_to_array_options, coffer__tensors_to_array },
    { "npz", "safetensors", coffer__to_safetensors_options, coffer__to_safetensors },
    { "mlyze", "mlyze", coffer__mlyze_cut_options, coffer__mlyze_to_mlyze },
    { "mlyze", "collapsed", coffer__mlyze_collapsed_options, coffer__mlyze_to_collapsed },
    { "mlyze", "speedscope", coffer__mlyze_profile_options, coffer__mlyze_to_speedscope },
    { "mlyze", "pprof", coffer__mlyze_profile_options, coffer__mlyze_to_pprof },
    { "mlyze", "chrome", coffer__mlyze_chrome_options, coffer__mlyze_to_chrome },
    { "mlyze", "massif", coffer__mlyze_massif_options, coffer__mlyze_to_massif },
    { "mlyze", "dhat", coffer__mlyze_profile_options, coffer__mlyze_to_dhat },
    { "mlyze", "csv", coffer__mlyze_csv_options, coffer__mlyze_to_csv },
    { "mlyze", "heaptrack", coffer__mlyze_heaptrack_options, coffer__mlyze_to_heaptrack },
    { "collapsed", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_collapsed },
    { "pprof", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_pprof },
    { "massif", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_massif },
    { "dhat", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_dhat },
    { "heaptrack", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_heaptrack },
    { "memray", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_memray },
    { "tracemalloc", "mlyze", coffer__mlyze_import_options, coffer__mlyze_from_tracemalloc },
    { "mldf", "tar", coffer__mldf_export_options, coffer__mldf_to_tar },
    { "mldf", "tfrecord", coffer__mldf_export_options, coffer__mldf_to_tfrecord },
    { "mldf", "jsonl", coffer__mldf_export_jsonl_options, coffer__mldf_to_jsonl },
    { "mldf", "csv", coffer__mldf_export_csv_options, coffer__mldf_to_csv },
    { "mldf", "npy", coffer__mldf_export_options, coffer__mldf_to_npy },
    { "mldf", "npz", coffer__mldf_export_options, coffer__mldf_to_npz },
    { "tar", "mldf", coffer__mldf_import_options, coffer__mldf_from_tar },
    { "tfrecord", "mldf", coffer__mldf_import_options, coffer__mldf_from_tfrecord },
    { "beton", "mldf", coffer__mldf_import_options, coffer__mldf_from_beton },
    { "jsonl", "mldf", coffer__mldf_import_manifest_options, coffer__mldf_from_jsonl },
    { "csv", "mldf", coffer__mldf_import_manifest_options, coffer__mldf_from_csv },
    { "npy", "mldf", coffer__mldf_import_array_options, coffer__mldf_from_npy },
    { "npz", "mldf", coffer__mldf_import_array_options, coffer__mldf_from_npz },
};

#define CONVERSION_COUNT (sizeof conversions / sizeof *conversions)

COFFER__INIT_FUNCTION(coffer_convert_opts, COFFER_CONVERT_OPTS_INIT)

size_t coffer_conversion_count(void)
{
    return CONVERSION_COUNT;
}

const coffer_conversion *coffer_conversion_at(size_t index)
{
    return index < CONVERSION_COUNT ? &conversions[index] : NULL;
}

const char *coffer_conversion_from(const coffer_conversion *conversion)
{
    return conversion->from;
}

const char *coffer_conversion_to(const coffer_conversion *conversion)
{
    return conversion->to;
}

size_t coffer_conversion_option_count(const coffer_conversion *conversion)
{
    size_t count = 0;
    while (conversion->options[count].name)
        count++;
    return count;
}

const coffer_convert_option *coffer_conversion_option_at(const coffer_conversion *conversion, size_t index)
{
    return index < coffer_conversion_option_count(conversion) ? &conversion->options[index] : NULL;
}

static const coffer_conversion *find_conversion(const char *from, const char *to)
{
    for (size_t i = 0; i < CONVERSION_COUNT; i++) {
        if (strcmp(conversions[i].from, from) == 0 && strcmp(conversions[i].to, to) == 0)
            return &conversions[i];
    }
    return NULL;
}

/* "npy, csv": the kinds that `kind` can be converted to, or from. */
static void put_reachable(coffer__buffer *out, const char *kind, bool from_kind)
{
    const char *separator = "";
    for (size_t i = 0; i < CONVERSION_COUNT; i++) {
        const char *here = from_kind ? conversions[i].from : conversions[i].to;
        const char *there = from_kind ? conversions[i].to : conversions[i].from;
        if (strcmp(here, kind) != 0)
            continue;
        coffer__buffer_printf(out, "%s%s", separator, there);
        separator = ", ";
    }
    if (!*separator)
        coffer__buffer_printf(out, "nothing");
}

static coffer_status fail_no_conversion(const char *from, const char *to, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, "no conversion from %s to %s; from %s to: ", from, to, from);
    put_reachable(&text, from, true);
    coffer__buffer_printf(&text, "; to %s from: ", to);
    put_reachable(&text, to, false);
    if (strcmp(from, COFFER__KIND_PYTORCH) == 0) {
        text.len = 0;
        coffer__buffer_printf(&text, "a " COFFER__KIND_PYTORCH_TITLE
                                     " (Python code); convert it in Python: " COFFER__KIND_PYTORCH_HINT);
    }
    if (strcmp(from, "arrow") == 0 || strcmp(to, "arrow") == 0)
        coffer__buffer_printf(&text, " (Parquet and Arrow are not supported; pyarrow reads JSONL)");
    coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s", coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return COFFER_E_UNSUPPORTED;
}

static coffer_status fail_no_target(const char *from, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, "the name has no extension of a known format; from %s to: ", from);
    put_reachable(&text, from, true);
    coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s", coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return coffer__fail_output(err, COFFER_E_INVALID_ARGUMENT);
}

static const coffer_convert_option *find_option(const coffer_conversion *conversion, const char *name)
{
    for (const coffer_convert_option *option = conversion->options; option->name; option++) {
        if (strcmp(option->name, name) == 0)
            return option;
    }
    return NULL;
}

static coffer_status fail_unknown_setting(const coffer_conversion *conversion, const char *name,
                                          coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text,
                          "the conversion from %s to %s has no option \"%s\"; it has:", conversion->from,
                          conversion->to, name);
    for (const coffer_convert_option *option = conversion->options; option->name; option++)
        coffer__buffer_printf(&text, " %s", option->name);
    coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s", coffer__buffer_text(&text));
    coffer__buffer_free(&text);
    return COFFER_E_INVALID_ARGUMENT;
}

/* Whether `value` is one of "a|b|c". */
static bool is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    for (;;) {
        const char *end = strchr(choices, '|');
        size_t choice_len = end ? (size_t)(end - choices) : strlen(choices);
        if (choice_len == len && memcmp(choices, value, len) == 0)
            return true;
        if (!end)
            return false;
        choices = end + 1;
    }
}

static coffer_status fail_no_choice(const coffer_convert_option *option, const char *value, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (const char *letter = option->choices; *letter; letter++)
        coffer__buffer_append(&text, *letter == '|' ? ", " : letter, *letter == '|' ? 2 : 1);
    coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s must be one of %s, not \"%s\"",
                 option->name, coffer__buffer_text(&text), value);
    coffer__buffer_free(&text);
    return COFFER_E_INVALID_ARGUMENT;
}

static coffer_status check_settings(const coffer_conversion *conversion, const coffer_convert_opts *opts,
                                    coffer_error *err)
{
    for (size_t i = 0; i < opts->setting_count; i++) {
        const coffer_setting *setting = &opts->settings[i];
        const coffer_convert_option *option = find_option(conversion, setting->name);
        if (!option)
            return fail_unknown_setting(conversion, setting->name, err);
        if (option->argument && !setting->value)
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "the option \"%s\" requires a value: %s", option->name, option->argument);
        if (option->choices && !is_choice(option->choices, setting->value))
            return fail_no_choice(option, setting->value, err);
    }
    return COFFER_OK;
}

static coffer_status choose_kinds(const char **from, const char **to, coffer_source *in, const char *out_path,
                                  const coffer_convert_opts *opts, coffer_error *err)
{
    const char *given[2] = { opts->from, opts->to };
    for (size_t i = 0; i < 2; i++) {
        if (given[i] && !coffer__kind_find(given[i]))
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "\"%s\" is not a kind of file that can be converted", given[i]);
    }
    *from = opts->from;
    if (!*from) {
        coffer_status status = coffer__kind_of(from, in, err);
        if (status)
            return status;
    }
    *to = opts->to ? opts->to : coffer__kind_by_name(out_path);
    return *to ? COFFER_OK : fail_no_target(*from, err);
}

/* Settings that raise limits, for conversions that have them. */
static coffer_status raise_limits(coffer_limits *limits, const coffer_convert_opts *opts, coffer_error *err)
{
    coffer__convert_job job = { .settings = opts->settings, .setting_count = opts->setting_count };
    return coffer__job_number(&limits->unpacked_bytes, &job, "max-unpacked", UINT64_MAX, err);
}

coffer_status coffer_convert(coffer_source *in, const char *out_path, const coffer_convert_opts *opts,
                             coffer_error *err)
{
    coffer_convert_opts options = COFFER_CONVERT_OPTS_INIT;
    coffer__convert_job job = { 0 };
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    status = choose_kinds(&job.from, &job.to, in, out_path, &options, err);
    if (status)
        return status;
    const coffer_conversion *conversion = find_conversion(job.from, job.to);
    if (!conversion)
        return fail_no_conversion(job.from, job.to, err);
    status = check_settings(conversion, &options, err);
    if (status)
        return status;
    coffer_source *unpacked = NULL;
    job.limits = coffer__limits(options.limits);
    status = raise_limits(&job.limits, &options, err);
    if (!status && coffer__kind_is_packed_format(job.from, in))
        status = coffer__unpack_to_source(&unpacked, in, &job.limits, err);
    if (status)
        return status;
    job.in = unpacked ? unpacked : in;
    job.key = options.key;
    job.out_path = out_path;
    job.overwrite = options.overwrite;
    job.settings = options.settings;
    job.setting_count = options.setting_count;
    job.progress = options.progress;
    job.notes = options.notes;
    coffer__inputs_scope scope;
    coffer__inputs_enter(&scope, in);
    status = conversion->run(&job, err);
    coffer__inputs_leave(&scope);
    coffer_source_close(unpacked);
    return !status && job.notes ? coffer__report_status(job.notes, err) : status;
}
