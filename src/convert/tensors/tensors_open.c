/* Finds the reader for a path or file. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/options.h"
#include "convert/kinds.h"
#include "convert/tensors/tensors.h"
#include "io/os.h"

#include <string.h>

COFFER__INIT_FUNCTION(coffer_tensors_open_opts, COFFER_TENSORS_OPEN_OPTS_INIT)

static const coffer__tensor_reader *const readers[] = {
    &coffer__tensors_mcf,  &coffer__tensors_safetensors, &coffer__tensors_safetensors_index,
    &coffer__tensors_gguf, &coffer__tensors_npz,         &coffer__tensors_npy,
};

#define READER_COUNT (sizeof readers / sizeof *readers)

/* File names of tensors in the folder of a model; the first existing one is used. */
static const char *const folder_names[] = {
    "model.safetensors.index.json",
    "model.safetensors",
    "diffusion_pytorch_model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors",
    "adapter_model.safetensors",
    "consolidated.safetensors",
};

#define FOLDER_NAME_COUNT (sizeof folder_names / sizeof *folder_names)

const coffer__tensor_reader *coffer__tensors_reader(const char *kind)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        if (strcmp(readers[i]->kind, kind) == 0)
            return readers[i];
    }
    return NULL;
}

static coffer_status reader_for(const coffer__tensor_reader **out, coffer_source *src, coffer_error *err)
{
    const char *kind = NULL;
    coffer_status status = coffer__kind_of(&kind, src, err);
    if (status)
        return status;
    *out = coffer__tensors_reader(kind);
    return *out ? COFFER_OK
                : coffer__fail(err, COFFER_E_NOT_RECOGNISED, COFFER_OFFSET_NONE,
                               "%s files contain no tensors", kind);
}

static coffer_status open_file(coffer_tensors **out, const char *path, const coffer_tensors_open_opts *opts,
                               coffer_error *err)
{
    coffer_source_opts source_opts = COFFER_SOURCE_OPTS_INIT;
    const coffer__tensor_reader *reader = NULL;
    coffer_source *src = NULL;
    source_opts.access = opts->access;
    coffer_status status = coffer_source_open(&src, path, &source_opts, err);
    if (!status)
        status = reader_for(&reader, src, err);
    if (!status)
        status = coffer__tensors_open_with(out, reader, src, true, opts, err);
    if (status)
        coffer_source_close(src);
    return status;
}

static coffer_status open_folder(coffer_tensors **out, const char *path, const coffer_tensors_open_opts *opts,
                                 coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    struct stat st;
    bool found = false;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !found && !name.failed && i < FOLDER_NAME_COUNT; i++) {
        name.len = 0;
        coffer__buffer_printf(&name, "%s/%s", path, folder_names[i]);
        found = coffer__os_stat(coffer__buffer_text(&name), &st) == 0;
    }
    if (name.failed)
        status = coffer__fail_no_memory(err, strlen(path));
    else if (!found)
        status =
            coffer__fail(err, COFFER_E_NOT_RECOGNISED, COFFER_OFFSET_NONE,
                         "%s: no model.safetensors and no model.safetensors.index.json in the folder", path);
    else
        status = open_file(out, coffer__buffer_text(&name), opts, err);
    coffer__buffer_free(&name);
    return status;
}

coffer_status coffer_tensors_open_path(coffer_tensors **out, const char *path,
                                       const coffer_tensors_open_opts *opts, coffer_error *err)
{
    coffer_tensors_open_opts options = COFFER_TENSORS_OPEN_OPTS_INIT;
    struct stat st;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (coffer__os_stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return open_folder(out, path, &options, err);
    return open_file(out, path, &options, err);
}

coffer_status coffer_tensors_open(coffer_tensors **out, coffer_source *src,
                                  const coffer_tensors_open_opts *opts, coffer_error *err)
{
    coffer_tensors_open_opts options = COFFER_TENSORS_OPEN_OPTS_INIT;
    const coffer__tensor_reader *reader = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = reader_for(&reader, src, err);
    return status ? status : coffer__tensors_open_with(out, reader, src, false, &options, err);
}
