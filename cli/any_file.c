#include "any_file.h"

#include "base/fail.h"
#include "base/report.h"
#include "formats/format.h"
#include "tensors/tensor_sets.h"

#include <string.h>
#include <sys/stat.h>

static bool is_unknown(coffer_status status)
{
    return status == COFFER_E_NOT_RECOGNISED || status == COFFER_E_BAD_MAGIC;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder that holds no model fails as the system would have it. Models that are folders are all of one
 * kind, also those that cannot be read. */
static coffer_status open_folder(cli_file *file, coffer_error *err)
{
    coffer_status status = coffer_tensors_open_path(&file->set, file->path, NULL, &file->unknown);
    if (is_unknown(status))
        return coffer_source_open(&file->src, file->path, NULL, err);
    file->kind = status == COFFER_OK ? coffer_tensors_kind(file->set) : "safetensors";
    return COFFER_OK;
}

/* What no format knows may be a model of another program's. Where it is one, but a bad one, what is wrong
 * with it says more than that no format knows it. */
static void look_for_tensors(cli_file *file)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = tensors_open(&file->set, file->path, file->src, &err);
    if (status == COFFER_OK) {
        file->kind = coffer_tensors_kind(file->set);
        file->unknown = (coffer_error)COFFER_ERROR_INIT;
    } else if (!is_unknown(status)) {
        coffer_convert_kind(&file->kind, file->src, NULL);
        file->unknown = err;
    }
}

coffer_status cli_file_open(cli_file *out, const char *path, coffer_error *err)
{
    cli_file file = { .path = path, .unknown = COFFER_ERROR_INIT };
    coffer_status status;
    if (is_folder(path)) {
        status = open_folder(&file, err);
    } else {
        status = coffer_source_open(&file.src, path, NULL, err);
        if (status == COFFER_OK && coffer_identify(&file.format, file.src, &file.unknown) == COFFER_OK)
            file.kind = coffer_format_name(file.format);
        else if (status == COFFER_OK && is_unknown(file.unknown.status))
            look_for_tensors(&file);
    }
    if (status == COFFER_OK)
        *out = file;
    return status;
}

int cli_file_open_known(cli_file *out, const char *path)
{
    cli_file file;
    coffer_error err = COFFER_ERROR_INIT;
    if (cli_file_open(&file, path, &err) != COFFER_OK)
        return cli_fail(path, &err, cli_open_hint(&err));
    if (file.unknown.status) {
        int status = cli_fail(path, &file.unknown, cli_file_hint(&file));
        cli_file_close(&file);
        return status;
    }
    *out = file;
    return CLI_OK;
}

static bool is_format(const char *name)
{
    for (size_t i = 0; i < coffer_format_count(); i++) {
        if (strcmp(coffer_format_name(coffer_format_at(i)), name) == 0)
            return true;
    }
    return false;
}

/* Whether one of our formats can be made of it. */
static bool can_be_converted(coffer_source *src)
{
    const char *kind;
    if (!src || coffer_convert_kind(&kind, src, NULL) != COFFER_OK)
        return false;
    for (size_t i = 0; i < coffer_conversion_count(); i++) {
        const coffer_conversion *conversion = coffer_conversion_at(i);
        if (strcmp(coffer_conversion_from(conversion), kind) == 0 &&
            is_format(coffer_conversion_to(conversion)))
            return true;
    }
    return false;
}

const char *cli_file_hint(const cli_file *file)
{
    if (file->kind && !file->format)
        return "";
    if (is_unknown(file->unknown.status) && can_be_converted(file->src))
        return "'coffer convert % OUT' makes a file of it that can be asked; 'coffer convert --list' shows "
               "which";
    return NULL;
}

void cli_file_close(cli_file *file)
{
    coffer_tensors_close(file->set);
    coffer_source_close(file->src);
    *file = (cli_file){ .path = file->path };
}

const char *cli_file_title(const cli_file *file)
{
    if (file->format)
        return coffer_format_title(file->format);
    return file->set ? coffer_tensors_title(file->set) : "format not recognized";
}

uint64_t cli_file_size(const cli_file *file)
{
    /* The index of a model in several files is none of them. */
    if (file->set && (!file->src || coffer_tensors_is_sharded(file->set)))
        return coffer_tensors_size(file->set);
    return file->src ? coffer_source_size(file->src) : 0;
}

coffer_status cli_file_describe(coffer_node *out, const cli_file *file, const coffer_describe_opts *opts,
                                coffer_error *err)
{
    if (!file->set)
        return coffer_describe(out, file->src, opts, err);
    if (opts->hash || opts->generation)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "%s has no %s", file->kind,
                            opts->hash ? "hash of its content; 'coffer pack' makes a file that has one"
                                       : "older states");
    return coffer_tensors_describe(out, file->set, err);
}

coffer_status cli_file_check(coffer_report *out, const cli_file *file, const coffer_check_opts *opts,
                             coffer_error *err)
{
    if (file->set)
        return coffer_tensors_check(out, file->set, opts, err);
    if (!file->unknown.status)
        return coffer_check(out, file->src, opts, err);
    coffer__report_add_error(out, COFFER_ERROR, &file->unknown);
    return coffer__report_status(out, err);
}

coffer_status cli_file_list(coffer_node *out, const cli_file *file, const coffer_list_opts *opts,
                            coffer_error *err)
{
    return file->set ? coffer_tensors_list(out, file->set, opts, err)
                     : coffer_list(out, file->src, opts, err);
}

/* opened : to be closed by the caller; stays NULL where the file is open as a set already. */
static coffer_status set_of(const coffer_tensors **out, coffer_tensors **opened, const cli_file *file,
                            coffer_error *err)
{
    coffer_status status = file->set ? COFFER_OK : tensors_open(opened, file->path, file->src, err);
    if (status == COFFER_OK)
        *out = file->set ? file->set : *opened;
    return status;
}

coffer_status cli_file_diff(coffer_node *out, const cli_file *a, const cli_file *b,
                            const coffer_diff_opts *opts, coffer_error *err)
{
    const coffer_tensors *set_a, *set_b;
    coffer_tensors *opened_a = NULL, *opened_b = NULL;
    if (a->format && a->format == b->format && a->format->diff)
        return coffer_diff(out, a->src, b->src, opts, err);
    coffer_status status = set_of(&set_a, &opened_a, a, err);
    if (status == COFFER_OK)
        status = set_of(&set_b, &opened_b, b, err);
    if (status == COFFER_OK)
        status = tensors_diff(out, set_a, set_b, opts, err);
    else if (is_unknown(status))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "%s is %s, %s is %s: only files that hold the same can be compared", a->path,
                              a->kind, b->path, b->kind);
    coffer_tensors_close(opened_a);
    coffer_tensors_close(opened_b);
    return status;
}
