#include "convert/datasets/dataset_manifest.h"

#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/mldf_tar.h"
#include "io/file.h"
#include "io/source_private.h"
#include "outside/archives/folder_walk.h"

#include <string.h>

#define EXTENSION_MAX 16

/* The part after the last dot, in lower case; false when there is nothing like it. */
static bool extension_of(char out[EXTENSION_MAX], const char *text, size_t len)
{
    size_t dot = len;
    while (dot && text[dot - 1] != '.' && text[dot - 1] != '/')
        dot--;
    if (dot < 2 || text[dot - 1] != '.' || dot == len || len - dot >= EXTENSION_MAX)
        return false;
    for (size_t i = dot; i < len; i++) {
        char c = text[i];
        out[i - dot] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[len - dot] = 0;
    return true;
}

static uint32_t types_of(const coffer__tar_extension *known)
{
    switch (known->kind) {
    case COFFER__TAR_IMAGE:
        return COFFER__CAN_IMAGE;
    case COFFER__TAR_AUDIO:
        return COFFER__CAN_AUDIO;
    case COFFER__TAR_VIDEO:
        return COFFER__CAN_VIDEO;
    case COFFER__TAR_ARRAY:
        return COFFER__CAN_ARRAY;
    case COFFER__TAR_JSON:
    case COFFER__TAR_TEXT:
        return COFFER__CAN_TEXT;
    default:
        return 0;
    }
}

/* Opens the file that a value names. */
static coffer_status open_named(int *fd, int folder, const char *text, size_t len, coffer_error *err)
{
    char *path = coffer__strndup(text, len);
    if (!path)
        return coffer__fail_no_memory(err, len + 1);
    coffer_status status = strlen(path) == len ? coffer__folder_open_inside(fd, folder, path, err)
                                               : coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                                                              "\"%s\" has a NUL in it", path);
    coffer__free(path);
    return status;
}

static coffer_status look_at_file(coffer__manifest *manifest, coffer__column *column, bool is_array,
                                  const char *text, size_t len, coffer_error *err)
{
    uint64_t size = 0;
    coffer_source *src = NULL;
    int fd = -1;
    coffer_status status = open_named(&fd, manifest->folder, text, len, err);
    if (!status && is_array) {
        status = coffer__file_size(&size, fd, "array", err);
        if (!status)
            status = coffer__array_facts_source(&src, fd, size, "array", err);
        if (!status)
            coffer__array_facts_add(&column->arrays, src);
        coffer_source_close(src);
    }
    coffer__file_close(fd);
    return status;
}

coffer_status coffer__manifest_judge_path(uint32_t *can, coffer__manifest *manifest, coffer__column *column,
                                          const char *text, size_t len, coffer_error *err)
{
    char extension[EXTENSION_MAX];
    *can = 0;
    if (manifest->folder < 0 || !(column->can & COFFER__CAN_PATH) || !extension_of(extension, text, len))
        return COFFER_OK;
    const coffer__tar_extension *known = coffer__tar_extension_of(extension);
    uint32_t types = known ? types_of(known) : 0;
    if (types == 0) {
        /* A file of a kind that is not read in: its path stays, and that is reported. */
        if (column->seen == 0 && look_at_file(manifest, column, false, text, len, NULL) == COFFER_OK)
            column->names_files = true;
        return COFFER_OK;
    }
    bool is_array = types == COFFER__CAN_ARRAY;
    column->names_files = column->names_files || types != COFFER__CAN_TEXT;
    if (column->seen == 0 || is_array) {
        coffer_status status = look_at_file(manifest, column, is_array, text, len, err);
        if (status == COFFER_E_NOT_FOUND && column->seen == 0)
            return COFFER_OK; /* a text that looks like a path */
        if (status)
            return status;
    }
    column->firsts += known->is_first;
    *can = COFFER__CAN_PATH | types;
    return COFFER_OK;
}

coffer_status coffer__manifest_settle(coffer__manifest *manifest, coffer_error *err)
{
    if (manifest->columns.count == 0)
        return coffer__fail_other(err,
                                  coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "no samples in it"),
                                  coffer__source_other_name(manifest->src));
    const uint32_t of_files =
        COFFER__CAN_PATH | COFFER__CAN_IMAGE | COFFER__CAN_AUDIO | COFFER__CAN_ARRAY | COFFER__CAN_VIDEO;
    for (size_t i = 0; i < manifest->columns.count; i++) {
        coffer__column *column = &manifest->columns.items[i];
        if (!(column->can & COFFER__CAN_PATH) && !column->given_type)
            column->can &= ~of_files;
        if (column->names_files && !(column->can & COFFER__CAN_PATH) && !manifest->base.kept_as_text)
            manifest->base.kept_as_text = column->name;
    }
    manifest->base.count = manifest->sample;
    return coffer__columns_settle(&manifest->base.schema, &manifest->columns, manifest->sample, err);
}

coffer_status coffer__manifest_load(coffer__dataset_sample *sample, const coffer__dataset_input *input,
                                    coffer_error *err)
{
    const coffer__manifest *manifest = (const coffer__manifest *)input;
    coffer_status status = COFFER_OK;
    for (size_t f = 0; !status && f < input->schema.count; f++) {
        coffer__dataset_value *value = &sample->values[f];
        int fd = -1;
        if (!value->is_path)
            continue;
        char *path = coffer__strndup((const char *)value->bytes, value->size);
        if (!path)
            return coffer__fail_no_memory(err, value->size);
        status = coffer__folder_open_inside(&fd, manifest->folder, path, err);
        if (!status)
            status =
                coffer__dataset_read_file(&value->own, sample, fd, manifest->limits.memory_bytes, path, err);
        value->is_path = false;
        value->bytes = value->own.data;
        value->size = value->own.len;
        coffer__file_close(fd);
        coffer__free(path);
    }
    return status;
}

void coffer__manifest_close(coffer__manifest *manifest)
{
    coffer__columns_free(&manifest->columns);
    coffer__dataset_input_free(&manifest->base);
}
