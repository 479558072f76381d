/* The table of formats, and the calls that work on a file of any of them. */
#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"

static const coffer_format *const formats[] = {
    &coffer__mcf_format,   &coffer__mldf_format,     &coffer__mlyze_format,
    &coffer__mscan_format, &coffer__pycauset_format,
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

size_t coffer_format_count(void)
{
    return FORMAT_COUNT;
}

const coffer_format *coffer_format_at(size_t index)
{
    return index < FORMAT_COUNT ? formats[index] : NULL;
}

const coffer_format *coffer_format_by_name(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    }
    return NULL;
}

const char *coffer_format_name(const coffer_format *format)
{
    return format->name;
}

const char *coffer_format_extension(const coffer_format *format)
{
    return format->extension;
}

const char *coffer_format_title(const coffer_format *format)
{
    return format->title;
}

static coffer_status fail_unsupported(const coffer_format *format, const char *verb, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s has no %s", format->name, verb);
}

coffer_status coffer_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                              coffer_error *err)
{
    coffer_describe_opts options = COFFER_DESCRIBE_OPTS_INIT;
    const coffer_format *format;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = coffer_identify(&format, src, err)))
        return status;
    if (!format->describe)
        return fail_unsupported(format, "description", err);
    if (options.generation && !format->has_generations)
        return fail_unsupported(format, "older states", err);
    if (options.hash && !format->has_hash)
        return fail_unsupported(format, "hash of its content", err);
    return format->describe(out, src, &options, err);
}

coffer_status coffer_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                           coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    const coffer_format *format;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    status = coffer_identify(&format, src, &found);
    if (status == COFFER_E_NOT_RECOGNISED || status == COFFER_E_BAD_MAGIC) {
        coffer__report_add_error(out, COFFER_ERROR, &found);
        return coffer__report_status(out, err);
    }
    if (status)
        return coffer__fail_copy(err, &found);
    if (!format->check)
        return fail_unsupported(format, "check", err);
    return format->check(out, src, &options, err);
}

coffer_status coffer_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                          coffer_error *err)
{
    coffer_list_opts options = COFFER_LIST_OPTS_INIT;
    const coffer_format *format;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = coffer_identify(&format, src, err)))
        return status;
    if (!format->list)
        return fail_unsupported(format, "list", err);
    return format->list(out, src, &options, err);
}

coffer_status coffer_diff(coffer_node *out, coffer_source *a, coffer_source *b, const coffer_diff_opts *opts,
                          coffer_error *err)
{
    coffer_diff_opts options = COFFER_DIFF_OPTS_INIT;
    const coffer_format *format, *other;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = coffer_identify(&format, a, err)) || (status = coffer_identify(&other, b, err)))
        return status;
    if (format != other)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is %s, %s is %s: only files of one format can be compared",
                            coffer_source_name(a), format->name, coffer_source_name(b), other->name);
    if (!format->diff)
        return fail_unsupported(format, "diff", err);
    if (!(options.tolerance >= 0)) /* also refuses NaN */
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the tolerance is %g, it must be at least 0", options.tolerance);
    return format->diff(out, a, b, &options, err);
}

coffer_status coffer_repair(coffer_report *out, coffer_source *src, const char *out_path,
                            const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_repair_opts options = COFFER_REPAIR_OPTS_INIT;
    const coffer_format *format;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = coffer_identify(&format, src, err)))
        return status;
    if (!format->repair)
        return fail_unsupported(format, "repair", err);
    if (options.to_generation && !format->has_generations)
        return fail_unsupported(format, "older states", err);
    if (options.copy && !format->repairs_from_copy)
        return fail_unsupported(format, "way to take parts from a copy", err);
    return format->repair(out, src, out_path, &options, err);
}

/* The format of the file at a path. */
static coffer_status identify_path(const coffer_format **out, const char *path, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (status)
        return status;
    status = coffer_identify(out, src, err);
    coffer_source_close(src);
    return status;
}

coffer_status coffer_compact(coffer_node *out, const char *path, const char *out_path,
                             const coffer_compact_opts *opts, coffer_error *err)
{
    coffer_compact_opts options = COFFER_COMPACT_OPTS_INIT;
    const coffer_format *format;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = identify_path(&format, path, err)))
        return status;
    if (!format->compact)
        return fail_unsupported(format, "dead bytes to drop", err);
    return format->compact(out, path, out_path, &options, err);
}

coffer_status coffer_compress(coffer_node *out, const char *path, const char *out_path,
                              const coffer_compress_opts *opts, coffer_error *err)
{
    coffer_compress_opts options = COFFER_COMPRESS_OPTS_INIT;
    const coffer_format *format;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = identify_path(&format, path, err)))
        return status;
    if (!format->compress)
        return fail_unsupported(format, "compressed form of its own", err);
    return format->compress(out, path, out_path, &options, err);
}

coffer_status coffer_recover(const coffer_format **format, coffer_report *out, const char *path,
                             const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_repair_opts options = COFFER_REPAIR_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (!formats[i]->recover)
            continue;
        status = formats[i]->recover(out, path, &options, err);
        if (status == COFFER_E_NOT_FOUND)
            continue;
        if (status == COFFER_OK && format)
            *format = formats[i];
        return status;
    }
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                        "%s: no recording left its parts beside it", path);
}
