/* The table of formats, and the calls that work on a file of any of them. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/options.h"
#include "base/report.h"
#include "formats/format.h"
#include "io/inputs.h"

#include <string.h>

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

bool coffer_format_can(const coffer_format *format, coffer_capability what)
{
    switch (what) {
    case COFFER_CAN_DESCRIBE:
        return format->describe != NULL;
    case COFFER_CAN_CHECK:
        return format->check != NULL;
    case COFFER_CAN_LIST:
        return format->list != NULL;
    case COFFER_CAN_DIFF:
        return format->diff != NULL;
    case COFFER_CAN_REPAIR:
        return format->repair != NULL;
    case COFFER_CAN_COMPACT:
        return format->compact != NULL;
    case COFFER_CAN_COMPRESS:
        return format->compress != NULL;
    case COFFER_CAN_RECOVER:
        return format->recover != NULL;
    case COFFER_CAN_HASH:
        return format->has_hash;
    case COFFER_CAN_SHOW_GENERATIONS:
        return format->has_generations;
    case COFFER_CAN_REPAIR_FROM_COPY:
        return format->repairs_from_copy;
    case COFFER_CAN_OPEN_AS_TENSORS:
        return format->holds_tensors;
    }
    return false;
}

static size_t name_count(const char *const *names)
{
    size_t count = 0;
    while (names && names[count])
        count++;
    return count;
}

size_t coffer_format_list_count(const coffer_format *format)
{
    return name_count(format->lists);
}

const char *coffer_format_list_at(const coffer_format *format, size_t index)
{
    return index < name_count(format->lists) ? format->lists[index] : NULL;
}

size_t coffer_format_part_suffix_count(const coffer_format *format)
{
    return name_count(format->part_suffixes);
}

const char *coffer_format_part_suffix_at(const coffer_format *format, size_t index)
{
    return index < name_count(format->part_suffixes) ? format->part_suffixes[index] : NULL;
}

coffer_status coffer_format_get_version(coffer_format_version *out, const coffer_format *format,
                                        coffer_source *src, coffer_error *err)
{
    coffer_format_version found = COFFER_FORMAT_VERSION_INIT;
    uint8_t bytes[4] = { 0 };
    uint64_t end = (uint64_t)format->version.at + format->version.size;
    if (out->struct_size == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "struct_size is 0");
    if (format->version.size > 0 && coffer_source_size(src) >= end) {
        coffer_status status =
            coffer_source_read_at(bytes, src, format->version.at, format->version.size, err);
        if (status)
            return status;
        uint32_t number = coffer__load_u32(bytes);
        found.has_minor = format->version.has_minor;
        found.is_newer = number > format->version.newest;
        found.major = found.has_minor ? format->version.major : number;
        found.minor = found.has_minor ? number : 0;
        found.newest_major = found.has_minor ? format->version.major : format->version.newest;
        found.newest_minor = found.has_minor ? format->version.newest : 0;
    }
    found.struct_size = out->struct_size;
    memcpy(out, &found, out->struct_size < sizeof found ? out->struct_size : sizeof found);
    return COFFER_OK;
}

COFFER__INIT_FUNCTION(coffer_format_version, COFFER_FORMAT_VERSION_INIT)
COFFER__INIT_FUNCTION(coffer_check_opts, COFFER_CHECK_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_describe_opts, COFFER_DESCRIBE_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_list_opts, COFFER_LIST_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_diff_opts, COFFER_DIFF_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_repair_opts, COFFER_REPAIR_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_compact_opts, COFFER_COMPACT_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_compress_opts, COFFER_COMPRESS_OPTS_INIT)

/* ---- Calls on a file whose format is known ---- */

static coffer_status fail_unsupported(const coffer_format *format, const char *verb, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s has no %s", format->name, verb);
}

coffer_status coffer_format_describe(coffer_node *out, const coffer_format *format, coffer_source *src,
                                     const coffer_describe_opts *opts, coffer_error *err)
{
    coffer_describe_opts options = COFFER_DESCRIBE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!format->describe)
        return fail_unsupported(format, "description", err);
    if (options.generation && !format->has_generations)
        return fail_unsupported(format, "older states", err);
    if (options.hash && !format->has_hash)
        return fail_unsupported(format, "hash of its content", err);
    return format->describe(out, src, &options, err);
}

/* Unless the format itself had something to say about its version. */
static void note_newer_version(coffer_report *out, const coffer_format *format, coffer_source *src)
{
    coffer_format_version version = COFFER_FORMAT_VERSION_INIT;
    if (coffer_format_get_version(&version, format, src, NULL) || !version.is_newer)
        return;
    for (size_t i = 0; i < coffer_report_count(out); i++)
        if (coffer_report_at(out, i)->code == COFFER_E_UNSUPPORTED_VERSION)
            return;
    if (version.has_minor)
        coffer__report_add(out, COFFER_E_UNSUPPORTED_VERSION, COFFER_NOTE, format->version.at,
                           "version %u.%u is newer than %u.%u: its new parts are not understood",
                           version.major, version.minor, version.newest_major, version.newest_minor);
    else
        coffer__report_add(out, COFFER_E_UNSUPPORTED_VERSION, COFFER_NOTE, format->version.at,
                           "version %u is newer than %u: its new parts are not understood", version.major,
                           version.newest_major);
}

coffer_status coffer_format_check(coffer_report *out, const coffer_format *format, coffer_source *src,
                                  const coffer_check_opts *opts, coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!format->check)
        return fail_unsupported(format, "check", err);
    status = format->check(out, src, &options, err);
    if (!status)
        note_newer_version(out, format, src);
    return status;
}

static bool has_list(const coffer_format *format, const char *name)
{
    for (size_t i = 0; format->lists && format->lists[i]; i++)
        if (strcmp(format->lists[i], name) == 0)
            return true;
    return false;
}

coffer_status coffer_format_list(coffer_node *out, const coffer_format *format, coffer_source *src,
                                 const coffer_list_opts *opts, coffer_error *err)
{
    coffer_list_opts options = COFFER_LIST_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!format->list)
        return fail_unsupported(format, "list", err);
    if (options.where_count && !has_list(format, "samples"))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "conditions choose samples of training sets; this is a %s file", format->name);
    return format->list(out, src, &options, err);
}

coffer_status coffer_format_diff(coffer_node *out, const coffer_format *format, coffer_source *a,
                                 coffer_source *b, const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_diff_opts options = COFFER_DIFF_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!format->diff)
        return fail_unsupported(format, "diff", err);
    if (!(options.tolerance >= 0)) /* also refuses NaN */
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the tolerance is %g, it must be at least 0", options.tolerance);
    return format->diff(out, a, b, &options, err);
}

coffer_status coffer_format_repair(coffer_report *out, const coffer_format *format, coffer_source *src,
                                   const char *out_path, const coffer_repair_opts *opts, coffer_error *err)
{
    coffer_repair_opts options = COFFER_REPAIR_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (!format->repair)
        return fail_unsupported(format, "repair", err);
    if (options.to_generation && !format->has_generations)
        return fail_unsupported(format, "older states", err);
    if (options.copy && !format->repairs_from_copy)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s does not support repair from a copy", format->name);
    return format->repair(out, src, out_path, &options, err);
}

/* ---- Calls on any file ---- */

coffer_status coffer_identify_path(const coffer_format **out, const char *path, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, path, NULL, err);
    if (status)
        return status;
    status = coffer_identify(out, src, err);
    coffer_source_close(src);
    return status;
}

coffer_status coffer_describe(coffer_node *out, coffer_source *src, const coffer_describe_opts *opts,
                              coffer_error *err)
{
    const coffer_format *format;
    coffer_status status = coffer_identify(&format, src, err);
    return status ? status : coffer_format_describe(out, format, src, opts, err);
}

coffer_status coffer_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                           coffer_error *err)
{
    const coffer_format *format;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer_identify(&format, src, &found);
    if (!status)
        return coffer_format_check(out, format, src, opts, err);
    if (status == COFFER_E_NOT_RECOGNISED || status == COFFER_E_BAD_MAGIC) {
        coffer__report_add_error(out, COFFER_ERROR, &found);
        return coffer__report_status(out, err);
    }
    return coffer__fail_copy(err, &found);
}

coffer_status coffer_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                          coffer_error *err)
{
    const coffer_format *format;
    coffer_status status = coffer_identify(&format, src, err);
    return status ? status : coffer_format_list(out, format, src, opts, err);
}

coffer_status coffer_diff(coffer_node *out, coffer_source *a, coffer_source *b, const coffer_diff_opts *opts,
                          coffer_error *err)
{
    const coffer_format *format, *other;
    coffer_status status = coffer_identify(&format, a, err);
    if (!status)
        status = coffer__fail_input(err, coffer_identify(&other, b, err), coffer_source_name(b));
    if (status)
        return status;
    if (format != other)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is %s, %s is %s: only files of one format can be compared",
                            coffer_source_name(a), format->name, coffer_source_name(b), other->name);
    return coffer_format_diff(out, format, a, b, opts, err);
}

coffer_status coffer_repair(coffer_report *out, coffer_source *src, const char *out_path,
                            const coffer_repair_opts *opts, coffer_error *err)
{
    const coffer_format *format;
    coffer_status status = coffer_identify(&format, src, err);
    return status ? status : coffer_format_repair(out, format, src, out_path, opts, err);
}

/* Identifies a file that is written again; without out_path the new file replaces it. */
static coffer_status begin_rewrite(const coffer_format **format, bool *overwrite, const char *path,
                                   const char *out_path, coffer_error *err)
{
    coffer_status status = coffer_identify_path(format, path, err);
    if (!status && !out_path) {
        *overwrite = true;
        coffer__inputs_allow(path);
    }
    return status;
}

coffer_status coffer_compact(coffer_node *out, const char *path, const char *out_path,
                             const coffer_compact_opts *opts, coffer_error *err)
{
    coffer_compact_opts options = COFFER_COMPACT_OPTS_INIT;
    const coffer_format *format;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = begin_rewrite(&format, &options.overwrite, path, out_path, err);
    if (status)
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
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = begin_rewrite(&format, &options.overwrite, path, out_path, err);
    if (status)
        return status;
    if (!format->compress)
        return fail_unsupported(format, "compressed form of its own", err);
    return format->compress(out, path, out_path, &options, err);
}
