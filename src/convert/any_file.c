/* Files of any kind: one of the library's formats, a set of tensors, or another kind of file that the
 * conversions read. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "coffer/convert.h"
#include "coffer/dataset.h"
#include "coffer/file.h"
#include "convert/convert.h"
#include "convert/outside_files.h"
#include "convert/tensors/tensors.h"
#include "io/os.h"
#include "outside/archives/unpack.h"

#include <string.h>

struct coffer_file {
    char *path;
    coffer_source *src;          /* NULL for a folder */
    const coffer_format *format; /* NULL: not of the library */
    coffer_tensors *set;         /* of a file without a format; else NULL */
    const coffer__outside_file *outside;
    const char *kind;     /* NULL when not recognized */
    coffer_error unknown; /* status 0 when the file is recognized */
};

static bool is_unknown(coffer_status status)
{
    return status == COFFER_E_NOT_RECOGNISED || status == COFFER_E_BAD_MAGIC;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A model may consist of several files, which only its path leads to. */
static coffer_status open_tensors(coffer_tensors **out, const coffer_file *file, coffer_error *err)
{
    if (file->src && strcmp(file->path, "-") == 0)
        return coffer_tensors_open(out, file->src, NULL, err);
    return coffer_tensors_open_path(out, file->path, NULL, err);
}

static coffer_status fail_unknown(const coffer_file *file, coffer_error *err)
{
    return coffer__fail_copy(err, &file->unknown);
}

/* Opening a folder without a model fails as a folder. All models that are folders are of one kind, also those
 * that cannot be read. */
static coffer_status open_folder(coffer_file *file, coffer_error *err)
{
    coffer_status status = coffer_tensors_open_path(&file->set, file->path, NULL, &file->unknown);
    if (is_unknown(status) || status == COFFER_E_NOT_FOUND)
        return coffer_source_open(&file->src, file->path, NULL, err);
    if (status == COFFER_E_INVALID_ARGUMENT || status == COFFER_E_IO || status == COFFER_E_UNSUPPORTED)
        return fail_unknown(file, err);
    file->kind = status ? "safetensors" : coffer_tensors_kind(file->set);
    return COFFER_OK;
}

/* One of the library's formats inside a gzip or zstd stream: its plain bytes are used from here on. */
static void open_packed(coffer_file *file, const char *kind)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_source *plain = NULL;
    file->kind = kind;
    file->unknown = (coffer_error)COFFER_ERROR_INIT;
    if (coffer__unpack_to_source(&plain, file->src, &limits, &file->unknown))
        return;
    coffer_source_close(file->src);
    file->src = plain;
    file->format = coffer_format_by_name(kind);
}

/* For a damaged model, its own error says more than the one that lists the known formats. */
static void look_outside(coffer_file *file)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *kind = NULL;
    coffer_status status = open_tensors(&file->set, file, &err);
    if (!status) {
        file->kind = coffer_tensors_kind(file->set);
        file->unknown = (coffer_error)COFFER_ERROR_INIT;
        return;
    }
    if (coffer_convert_kind(&kind, file->src, NULL) != COFFER_OK)
        kind = NULL;
    if (kind && coffer__kind_is_packed_format(kind, file->src)) {
        open_packed(file, kind);
        return;
    }
    if (!is_unknown(status)) {
        file->kind = kind;
        file->unknown = err;
        return;
    }
    file->outside = kind ? coffer__outside_file_find(kind) : NULL;
    if (file->outside) {
        file->kind = kind;
        file->unknown = (coffer_error)COFFER_ERROR_INIT;
    }
}

static coffer_status open_any(coffer_file *file, coffer_error *err)
{
    if (is_folder(file->path))
        return open_folder(file, err);
    coffer_status status = coffer_source_open(&file->src, file->path, NULL, err);
    if (status)
        return status;
    status = coffer_identify(&file->format, file->src, &file->unknown);
    if (!status)
        file->kind = coffer_format_name(file->format);
    else if (is_unknown(status))
        look_outside(file);
    return COFFER_OK;
}

coffer_status coffer_file_open(coffer_file **out, const char *path, coffer_error *err)
{
    coffer_file *file = coffer__calloc(1, sizeof *file);
    if (!file)
        return coffer__fail_no_memory(err, sizeof *file);
    file->unknown = (coffer_error)COFFER_ERROR_INIT;
    file->path = coffer__strdup(path);
    coffer_status status = file->path ? open_any(file, err) : coffer__fail_no_memory(err, strlen(path) + 1);
    if (status) {
        coffer_file_close(file);
        return status;
    }
    *out = file;
    return COFFER_OK;
}

void coffer_file_close(coffer_file *file)
{
    if (!file)
        return;
    coffer_tensors_close(file->set);
    coffer_source_close(file->src);
    coffer__free(file->path);
    coffer__free(file);
}

const coffer_error *coffer_file_unknown(const coffer_file *file)
{
    return file->unknown.status ? &file->unknown : NULL;
}

const char *coffer_file_kind(const coffer_file *file)
{
    return file->kind;
}

const char *coffer_file_title(const coffer_file *file)
{
    if (file->format)
        return coffer_format_title(file->format);
    if (file->outside)
        return file->outside->title;
    if (file->kind && strcmp(file->kind, COFFER__KIND_PYTORCH) == 0)
        return COFFER__KIND_PYTORCH_TITLE;
    const coffer__tensors_reader *reader = file->kind ? coffer__tensors_find_reader(file->kind) : NULL;
    return file->set ? coffer_tensors_title(file->set) : reader ? reader->title : "format not recognized";
}

uint64_t coffer_file_size(const coffer_file *file)
{
    /* The index of a model in several files does not count. */
    if (file->set && (!file->src || coffer_tensors_is_sharded(file->set)))
        return coffer_tensors_size(file->set);
    return file->src ? coffer_source_size(file->src) : 0;
}

coffer_source *coffer_file_source(const coffer_file *file)
{
    return file->src;
}

const coffer_format *coffer_file_format(const coffer_file *file)
{
    return file->format;
}

const coffer_tensors *coffer_file_tensors(const coffer_file *file)
{
    return file->set;
}

static coffer_status fail_unsupported(const coffer_file *file, const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s has no %s", file->kind, what);
}

coffer_status coffer_file_describe(coffer_node *out, const coffer_file *file,
                                   const coffer_describe_opts *opts, coffer_error *err)
{
    coffer_describe_opts options = COFFER_DESCRIBE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (file->unknown.status)
        return fail_unknown(file, err);
    if (file->format)
        return coffer_format_describe(out, file->format, file->src, &options, err);
    if (options.hash)
        return fail_unsupported(file, "hash of its content; 'coffer pack' makes a file that has one", err);
    if (options.generation)
        return fail_unsupported(file, "older states", err);
    if (file->set)
        return coffer_tensors_describe(out, file->set, err);
    return file->outside->describe(out, file->src, options.limits, err);
}

/* A set that cannot be opened has findings already. */
static coffer_status check_decode(coffer_report *out, const coffer_file *file, const coffer_check_opts *opts,
                                  coffer_error *err)
{
    coffer_mldf_open_opts open = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_decode_opts decode = COFFER_MLDF_DECODE_OPTS_INIT;
    coffer_mldf *set = NULL;
    if (strcmp(coffer_format_name(file->format), "mldf") != 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a file of format %s has no pictures or sounds to decode",
                            coffer_format_name(file->format));
    open.key = opts->key;
    open.limits = opts->limits;
    if (coffer_mldf_open(&set, file->src, &open, NULL) != COFFER_OK)
        return COFFER_OK;
    decode.threads = opts->threads;
    decode.limits = opts->limits;
    decode.progress = opts->progress;
    coffer_status status = coffer_mldf_check_decode(out, set, &decode, err);
    coffer_mldf_close(set);
    return status;
}

coffer_status coffer_file_check(coffer_report *out, const coffer_file *file, const coffer_check_opts *opts,
                                coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (file->unknown.status) {
        coffer__report_add_error(out, COFFER_ERROR, &file->unknown);
        return coffer__report_status(out, err);
    }
    if (file->format) {
        status = coffer_format_check(out, file->format, file->src, &options, err);
        return status || !options.decode ? status : check_decode(out, file, &options, err);
    }
    if (file->set)
        return coffer_tensors_check(out, file->set, &options, err);
    status = file->outside->check(out, file->src, &options, &found);
    if (status)
        status = coffer__report_take(out, COFFER_ERROR, &found, err);
    return status ? status : coffer__report_status(out, err);
}

coffer_status coffer_file_list(coffer_node *out, const coffer_file *file, const coffer_list_opts *opts,
                               coffer_error *err)
{
    coffer_list_opts options = COFFER_LIST_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (file->unknown.status)
        return fail_unknown(file, err);
    if (file->format)
        return coffer_format_list(out, file->format, file->src, &options, err);
    if (options.where_count)
        return fail_unsupported(file, "samples to choose from", err);
    if (file->set)
        return coffer_tensors_list(out, file->set, &options, err);
    if (options.what)
        return fail_unsupported(file, "lists to choose from", err);
    if (!file->outside->list)
        return fail_unsupported(file, "list", err);
    return file->outside->list(out, file->src, &options, err);
}

/* opened : to be closed by the caller; stays NULL where the file is open as a set already. */
static coffer_status set_of(const coffer_tensors **out, coffer_tensors **opened, const coffer_file *file,
                            coffer_error *err)
{
    coffer_status status = file->set ? COFFER_OK : open_tensors(opened, file, err);
    if (!status)
        *out = file->set ? file->set : *opened;
    return status;
}

static coffer_status diff_sets(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                               const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_tensors_diff_opts options = COFFER_TENSORS_DIFF_OPTS_INIT;
    options.threads = opts->threads;
    options.tolerance = opts->tolerance;
    options.max_shown = opts->max_shown;
    options.progress = opts->progress;
    return coffer_tensors_diff(out, a, b, &options, err);
}

static bool is_array_kind(const char *kind)
{
    static const char *const kinds[] = { "pycauset", "npy", "mtx", "hdf5" };
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], kind) == 0)
            return true;
    }
    return false;
}

/* Two arrays of which not both are sets of tensors are compared as matrices. */
static bool are_matrices(const coffer_file *a, const coffer_file *b)
{
    return is_array_kind(a->kind) && is_array_kind(b->kind) && a->src && b->src && !(a->set && b->set);
}

/* opened : to be closed by the caller; NULL for a file that is a matrix already. */
static coffer_status matrix_of(coffer_source **out, coffer_source **opened, const coffer_file *file,
                               const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_convert_opts convert = COFFER_CONVERT_OPTS_INIT;
    convert.limits = opts->limits;
    convert.progress = opts->progress;
    *out = file->src;
    if (file->format)
        return COFFER_OK;
    coffer_status status = coffer_convert_to_matrix(opened, file->src, &convert, err);
    if (!status)
        *out = *opened;
    return status;
}

static coffer_status diff_matrices(coffer_node *out, const coffer_file *a, const coffer_file *b,
                                   const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_source *first, *second, *opened_a = NULL, *opened_b = NULL;
    coffer_status status = matrix_of(&first, &opened_a, a, opts, err);
    if (!status)
        status = coffer__fail_input(err, matrix_of(&second, &opened_b, b, opts, err), b->path);
    if (!status)
        status = coffer_format_diff(out, coffer_format_by_name("pycauset"), first, second, opts, err);
    coffer_source_close(opened_a);
    coffer_source_close(opened_b);
    return status;
}

coffer_status coffer_file_diff(coffer_node *out, const coffer_file *a, const coffer_file *b,
                               const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_diff_opts options = COFFER_DIFF_OPTS_INIT;
    const coffer_tensors *set_a, *set_b;
    coffer_tensors *opened_a = NULL, *opened_b = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (a->unknown.status || b->unknown.status)
        return fail_unknown(a->unknown.status ? a : b, err);
    if (a->format && a->format == b->format && coffer_format_can(a->format, COFFER_CAN_DIFF))
        return coffer_format_diff(out, a->format, a->src, b->src, &options, err);
    if (are_matrices(a, b))
        return diff_matrices(out, a, b, &options, err);
    status = set_of(&set_a, &opened_a, a, err);
    if (!status)
        status = set_of(&set_b, &opened_b, b, err);
    if (!status)
        status = diff_sets(out, set_a, set_b, &options, err);
    else if (is_unknown(status))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "%s is %s, %s is %s: only files with the same kind of content can be compared",
                              a->path, a->kind, b->path, b->kind);
    coffer_tensors_close(opened_a);
    coffer_tensors_close(opened_b);
    return status;
}

bool coffer_file_kind_can(const char *kind, coffer_capability what)
{
    const coffer_format *format = coffer_format_by_name(kind);
    if (format)
        return coffer_format_can(format, what);
    const coffer__tensors_reader *reader = coffer__tensors_find_reader(kind);
    bool holds_tensors = reader != NULL;
    const coffer__outside_file *outside = coffer__outside_file_find(kind);
    switch (what) {
    case COFFER_CAN_DESCRIBE:
    case COFFER_CAN_CHECK:
        return holds_tensors || outside;
    case COFFER_CAN_LIST:
        return holds_tensors || (outside && outside->list);
    case COFFER_CAN_DIFF:
    case COFFER_CAN_OPEN_AS_TENSORS:
        return holds_tensors;
    case COFFER_CAN_REPAIR: /* coffer_tensors_repair */
        return reader && reader->repairs;
    default:
        return false;
    }
}
