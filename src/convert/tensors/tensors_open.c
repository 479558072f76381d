/* Finds the reader for a path or file. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/convert.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_tensors_open_opts, COFFER_TENSORS_OPEN_OPTS_INIT)

static const coffer__tensors_reader *const readers[] = {
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

const coffer__tensors_reader *coffer__tensors_find_reader(const char *kind)
{
    for (size_t i = 0; i < READER_COUNT; i++) {
        if (strcmp(readers[i]->kind, kind) == 0)
            return readers[i];
    }
    return NULL;
}

static coffer_status reader_for(const coffer__tensors_reader **out, coffer_source *src, coffer_error *err)
{
    const char *kind = NULL;
    coffer_status status = coffer__kind_of(&kind, src, err);
    if (status)
        return status;
    if (strcmp(kind, COFFER__KIND_PYTORCH) == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a " COFFER__KIND_PYTORCH_TITLE
                            " (Python code); convert it in Python: " COFFER__KIND_PYTORCH_HINT);
    *out = coffer__tensors_find_reader(kind);
    return *out ? COFFER_OK
                : coffer__fail(err, COFFER_E_NOT_RECOGNISED, COFFER_OFFSET_NONE,
                               "%s files contain no tensors", kind);
}

/* ---- Folders ---- */

static bool read_digits(unsigned *out, const char *text, size_t count)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (unsigned)(text[i] - '0');
    }
    return true;
}

bool coffer__tensors_is_shard(const char *name, size_t *stem_len, unsigned *number, unsigned *total)
{
    enum { DIGITS = 5, NUMBER_AT = 1, TOTAL_AT = NUMBER_AT + DIGITS + 4 };
    static const size_t tail = sizeof "-00001-of-00003.safetensors" - 1;
    size_t len = strlen(name);
    if (len <= tail)
        return false;
    *stem_len = len - tail;
    const char *at = name + *stem_len;
    return at[0] == '-' && strncmp(at + NUMBER_AT + DIGITS, "-of-", 4) == 0 &&
           strcmp(at + TOTAL_AT + DIGITS, ".safetensors") == 0 &&
           read_digits(number, at + NUMBER_AT, DIGITS) && read_digits(total, at + TOTAL_AT, DIGITS) &&
           *number >= 1 && *number <= *total;
}

/* The files of tensors in a folder without one of the usual names. */
typedef struct folder_files {
    char *index, *shard, *single; /* names; the first of each kind by name */
    size_t indexes, shards, singles;
    bool one_set;  /* all shards belong to the same model */
    char *pytorch; /* the first checkpoint of PyTorch */
} folder_files;

static bool ends_with(const char *name, const char *extension)
{
    size_t len = strlen(name), extension_len = strlen(extension);
    return len > extension_len && strcmp(name + len - extension_len, extension) == 0;
}

/* Keeps the first by name, so that the order of the folder does not matter. */
static bool keep_first(char **kept, const char *name)
{
    if (*kept && strcmp(*kept, name) <= 0)
        return true;
    coffer__free(*kept);
    *kept = coffer__strdup(name);
    return *kept != NULL;
}

static bool is_same_model(const char *a, const char *b)
{
    size_t a_len, b_len;
    unsigned a_number, b_number, a_total, b_total;
    return coffer__tensors_is_shard(a, &a_len, &a_number, &a_total) &&
           coffer__tensors_is_shard(b, &b_len, &b_number, &b_total) && a_len == b_len && a_total == b_total &&
           memcmp(a, b, a_len) == 0;
}

static bool note_file(folder_files *files, const char *name)
{
    size_t stem;
    unsigned number, total;
    if (ends_with(name, ".safetensors.index.json")) {
        files->indexes++;
        return keep_first(&files->index, name);
    }
    if (coffer__tensors_is_shard(name, &stem, &number, &total)) {
        files->one_set = files->shards++ == 0 || (files->one_set && is_same_model(files->shard, name));
        return keep_first(&files->shard, name);
    }
    if (ends_with(name, ".pt") || ends_with(name, ".pth") || ends_with(name, ".bin"))
        return keep_first(&files->pytorch, name);
    if (!ends_with(name, ".safetensors") && !ends_with(name, ".gguf"))
        return true;
    files->singles++;
    return keep_first(&files->single, name);
}

static coffer_status list_folder(folder_files *files, const char *path, coffer_error *err)
{
    coffer__buffer inside = COFFER__BUFFER_INIT;
    unsigned char type;
    bool fits = coffer__buffer_printf(&inside, "%s/.", path);
    void *folder = fits ? coffer__os_open_folder(coffer__buffer_text(&inside)) : NULL;
    int error_number = errno;
    coffer__buffer_free(&inside);
    if (!fits)
        return coffer__fail_no_memory(err, strlen(path));
    if (!folder)
        return coffer__fail_errno(err, "cannot list the folder", error_number);
    for (const char *name; fits && (name = coffer__os_next_name(folder, &type)) != NULL;)
        fits = name[0] == '.' || note_file(files, name);
    error_number = errno;
    coffer__os_close_folder(folder);
    if (!fits)
        return coffer__fail_no_memory(err, sizeof *files);
    return error_number ? coffer__fail_errno(err, "cannot list the folder", error_number) : COFFER_OK;
}

/* Chooses what is unambiguous: one index, one set of shards or one file. */
static coffer_status choose_file(const char **out, const folder_files *files, coffer_error *err)
{
    const char *first = files->index ? files->index : files->shard ? files->shard : files->single;
    if (!first && files->pytorch)
        *out = files->pytorch;
    else if (!first)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                            "no model in the folder: no .safetensors, .safetensors.index.json or .gguf file");
    else if (files->indexes == 1)
        *out = files->index;
    else if (files->indexes == 0 && files->shards && files->one_set && !files->singles)
        *out = files->shard;
    else if (files->indexes == 0 && files->shards == 0 && files->singles == 1)
        *out = files->single;
    else
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the folder has %zu models (%s and others): name one of the files",
                            files->indexes + files->shards + files->singles, first);
    return COFFER_OK;
}

/* The path of the file in the folder (coffer__free). */
static coffer_status find_in_folder(char **out, const char *path, coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    folder_files files = { 0 };
    const char *chosen = NULL;
    struct stat st;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !chosen && !name.failed && i < FOLDER_NAME_COUNT; i++) {
        name.len = 0;
        coffer__buffer_printf(&name, "%s/%s", path, folder_names[i]);
        if (!name.failed && coffer__os_stat(coffer__buffer_text(&name), &st) == 0)
            chosen = folder_names[i];
    }
    if (!chosen)
        status = list_folder(&files, path, err);
    if (!status && !chosen)
        status = choose_file(&chosen, &files, err);
    if (!status) {
        name.len = 0;
        coffer__buffer_printf(&name, "%s/%s%c", path, chosen, 0);
        *out = name.failed ? NULL : (char *)coffer__buffer_release(&name, NULL);
        if (!*out)
            status = coffer__fail_no_memory(err, strlen(path));
    }
    coffer__buffer_free(&name);
    coffer__free(files.index);
    coffer__free(files.shard);
    coffer__free(files.single);
    coffer__free(files.pytorch);
    return status;
}

/* ---- Opening ---- */

static coffer_status open_file(coffer_source **src, const coffer__tensors_reader **reader, const char *path,
                               coffer_access access, coffer_error *err)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = access;
    coffer_status status = coffer_source_open(src, path, &opts, err);
    if (status)
        return status;
    status = reader_for(reader, *src, err);
    if (status) {
        coffer_source_close(*src);
        *src = NULL;
    }
    return status;
}

coffer_status coffer__tensors_open_source(coffer_source **src, const coffer__tensors_reader **reader,
                                          const char *path, coffer_access access, coffer_error *err)
{
    struct stat st;
    char *found = NULL;
    size_t stem;
    unsigned number, total;
    if (coffer__os_stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return open_file(src, reader, path, access, err);
    coffer_status status = find_in_folder(&found, path, err);
    if (!status)
        status = coffer__fail_input(err, open_file(src, reader, found, access, err),
                                    found ? found + coffer__file_folder_len(found) : NULL);
    if (!status && coffer__tensors_is_shard(found + coffer__file_folder_len(found), &stem, &number, &total))
        *reader = &coffer__tensors_safetensors_shards;
    coffer__free(found);
    return status;
}

coffer_status coffer_tensors_open_path(coffer_tensors **out, const char *path,
                                       const coffer_tensors_open_opts *opts, coffer_error *err)
{
    coffer_tensors_open_opts options = COFFER_TENSORS_OPEN_OPTS_INIT;
    const coffer__tensors_reader *reader = NULL;
    coffer_source *src = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__tensors_open_source(&src, &reader, path, options.access, err);
    if (status)
        return status;
    const char *opened = coffer_source_name(src);
    bool is_folder = strcmp(opened, path) != 0;
    status = coffer__tensors_open_with(out, reader, src, true, &options, err);
    if (!status && is_folder) {
        (*out)->folder = coffer__strdup(path);
        if ((*out)->folder)
            return COFFER_OK;
        coffer_tensors_close(*out);
        *out = NULL;
        return coffer__fail_no_memory(err, strlen(path));
    }
    if (!status)
        return COFFER_OK;
    /* The message names the file in a folder. */
    if (is_folder)
        coffer__fail_input(err, status, opened + coffer__file_folder_len(opened));
    coffer_source_close(src);
    return status;
}

coffer_status coffer_tensors_open(coffer_tensors **out, coffer_source *src,
                                  const coffer_tensors_open_opts *opts, coffer_error *err)
{
    coffer_tensors_open_opts options = COFFER_TENSORS_OPEN_OPTS_INIT;
    const coffer__tensors_reader *reader = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = reader_for(&reader, src, err);
    return status ? status : coffer__tensors_open_with(out, reader, src, false, &options, err);
}
