/* The files of a model next to its tensors: configuration, tokenizer, license. An MCF file has them as
 * sections, a folder as files. */
#include "base/buffer.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/node_diff.h"
#include "base/text.h"
#include "convert/tensors/tensors.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_private.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists ---- */

coffer_status coffer__tensors_files_add(coffer__tensors_files *files, const char *name, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&files->names, &files->capacity, files->count, sizeof *files->names, err);
    if (status)
        return status;
    files->names[files->count] = coffer__strdup(name);
    if (!files->names[files->count])
        return coffer__fail_no_memory(err, strlen(name));
    files->count++;
    return COFFER_OK;
}

void coffer__tensors_files_free(coffer__tensors_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        coffer__free(files->names[i]);
    coffer__free(files->names);
    *files = (coffer__tensors_files){ 0 };
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool has_extension(const char *name, const char *extension)
{
    size_t len = strlen(name), extension_len = strlen(extension);
    return len > extension_len && strcmp(name + len - extension_len, extension) == 0;
}

bool coffer__tensors_is_weights(const char *name)
{
    static const char *const extensions[] = {
        ".safetensors", ".safetensors.index.json", ".gguf", ".bin", ".bin.index.json", ".pt", ".pth", ".mcf"
    };
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (has_extension(name, extensions[i]))
            return true;
    }
    return false;
}

static coffer_status join(coffer__buffer *path, const char *folder, const char *name, coffer_error *err)
{
    path->len = 0;
    coffer__buffer_printf(path, "%s/%s", folder, name);
    return path->failed ? coffer__fail_no_memory(err, strlen(folder)) : COFFER_OK;
}

#define MAX_DEPTH 8

/* The files of a folder and, under their relative paths, of its subfolders that are not hidden. */
static coffer_status list_folder(coffer__tensors_files *out, const char *folder, const char *prefix,
                                 int depth, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT, inner = COFFER__BUFFER_INIT;
    coffer_status status = join(&path, folder, *prefix ? prefix : ".", err);
    void *open = status ? NULL : coffer__os_open_folder(coffer__buffer_text(&path));
    if (!status && !open && !*prefix)
        status = coffer__fail_errno(err, "cannot list the folder", errno);
    unsigned char type;
    for (const char *name; !status && open && (name = coffer__os_next_name(open, &type)) != NULL;) {
        struct stat st;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || coffer__tensors_is_weights(name))
            continue;
        inner.len = 0;
        coffer__buffer_printf(&inner, "%s%s", prefix, name);
        status = inner.failed ? coffer__fail_no_memory(err, strlen(name))
                              : join(&path, folder, coffer__buffer_text(&inner), err);
        if (status || coffer__os_stat(coffer__buffer_text(&path), &st) != 0)
            continue;
        if (S_ISREG(st.st_mode))
            status = coffer__tensors_files_add(out, coffer__buffer_text(&inner), err);
        else if (S_ISDIR(st.st_mode) && name[0] != '.' && depth > 0 && type != DT_LNK &&
                 coffer__buffer_printf(&inner, "/"))
            status = list_folder(out, folder, coffer__buffer_text(&inner), depth - 1, err);
    }
    if (open)
        coffer__os_close_folder(open);
    coffer__buffer_free(&path);
    coffer__buffer_free(&inner);
    return status;
}

bool coffer__tensors_has_files(const coffer_tensors *set)
{
    return set->folder || set->reader->list_files;
}

coffer_status coffer__tensors_files_list(coffer__tensors_files *out, const coffer_tensors *set,
                                         coffer_error *err)
{
    coffer_status status = set->reader->list_files ? set->reader->list_files(out, set, err)
                           : set->folder           ? list_folder(out, set->folder, "", MAX_DEPTH, err)
                                                   : COFFER_OK;
    if (out->count)
        qsort(out->names, out->count, sizeof *out->names, by_text);
    return status;
}

/* ---- Content ---- */

static coffer_status read_in_folder(uint8_t **out, size_t *len, const coffer_tensors *set, const char *name,
                                    coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_source *src = NULL;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = COFFER_ACCESS_READ;
    uint8_t *bytes = NULL;
    coffer_status status = join(&path, set->folder, name, err);
    if (!status)
        status = coffer__source_open_other(&src, coffer__buffer_text(&path), &opts, err);
    coffer__buffer_free(&path);
    if (status)
        return status;
    uint64_t size = coffer_source_size(src);
    if (size > set->limits.json_bytes)
        status = coffer__fail_other(err,
                                    coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                                 "%" PRIu64 " bytes, the limit is %" PRIu64, size,
                                                 set->limits.json_bytes),
                                    name);
    else if (!(bytes = coffer__malloc((size_t)size + 1)))
        status = coffer__fail_no_memory(err, size);
    else
        status = coffer_source_read_at(bytes, src, 0, (size_t)size, err);
    coffer_source_close(src);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    *out = bytes;
    *len = (size_t)size;
    return COFFER_OK;
}

coffer_status coffer__tensors_file_read(uint8_t **out, size_t *len, const coffer_tensors *set,
                                        const char *name, coffer_error *err)
{
    return set->reader->read_file ? set->reader->read_file(out, len, set, name, err)
                                  : read_in_folder(out, len, set, name, err);
}

/* ---- Comparison ---- */

typedef struct file_content {
    uint8_t *bytes; /* NULL when the model does not have the file */
    size_t len;
    coffer_node *node; /* of JSON; NULL for other files */
} file_content;

/* A pack of a folder moves the chat template into this file. */
static const char template_name[] = "chat_template.jinja";
static const char template_target[] = "tokenizer_config.json";
static const char template_key[] = "chat_template";

static void free_content(file_content *content)
{
    coffer__free(content->bytes);
    coffer_node_free(content->node);
}

/* JSON that cannot be parsed is compared as bytes. */
static coffer_status parse(file_content *content, const coffer_tensors *set, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_error ignored = COFFER_ERROR_INIT;
    if (coffer__json_parse_python(&json, (const char *)content->bytes, content->len, 0, &set->limits,
                                  &ignored))
        return COFFER_OK;
    coffer_status status = coffer_node_new(&content->node, err);
    if (!status) {
        coffer__json_add_node(content->node, "json", coffer__json_root(json));
        status = coffer_node_status(content->node, err);
    }
    coffer__json_free(json);
    return status;
}

/* Size and checksum, in the place of a value. */
static coffer_status summarize(file_content *content, coffer_error *err)
{
    coffer_node_free(content->node);
    content->node = NULL;
    if (!content->bytes)
        return COFFER_OK;
    coffer_status status = coffer_node_new(&content->node, err);
    if (!status) {
        coffer__size_text size;
        coffer_node_add_printf(content->node, "json", "%s, CRC-32 %08" PRIx32,
                               coffer__size_text_of(size, content->len),
                               coffer__crc32(0, content->bytes, content->len));
        status = coffer_node_status(content->node, err);
    }
    return status;
}

/* The name of a file as a step of a path. */
static void put_step(coffer__buffer *out, const char *name)
{
    for (; *name; name++)
        coffer__buffer_printf(out, "%s%c", *name == '.' || *name == '\\' ? "\\" : "", *name);
}

/* Adds the template that `set` has as a file of its own to its tokenizer_config.json, which may not exist. */
static coffer_status fold(file_content *content, const coffer_tensors *set, coffer_error *err)
{
    uint8_t *text = NULL;
    size_t len = 0;
    coffer__json *json = NULL;
    coffer_error ignored = COFFER_ERROR_INIT;
    const char *bytes = content->bytes ? (const char *)content->bytes : "{}";
    if (coffer__json_parse_python(&json, bytes, content->bytes ? content->len : 2, 0, &set->limits, &ignored))
        return COFFER_OK; /* compared as bytes */
    const coffer__json_value *root = coffer__json_root(json);
    coffer_status status = coffer__tensors_file_read(&text, &len, set, template_name, err);
    if (!status)
        status = coffer_node_new(&content->node, err);
    coffer_node *map = status ? NULL : coffer_node_add_map(content->node, "json");
    for (const coffer__json_value *at = coffer__json_first(root); map && at; at = coffer__json_next(root, at))
        coffer__json_add_node(map, at->key, at);
    if (map && !coffer__json_find(root, template_key))
        coffer_node_add_text_len(map, template_key, (const char *)text, len);
    if (!status)
        status = coffer_node_status(content->node, err);
    coffer__json_free(json);
    coffer__free(text);
    return status;
}

static coffer_status compare_contents(coffer__node_changes *changes, const char *name, file_content *a,
                                      file_content *b, const coffer_tensors *set, coffer_error *err)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    bool folded = a->node || b->node;
    if (!folded && a->bytes && b->bytes && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0)
        return COFFER_OK;
    if (a->bytes && b->bytes && has_extension(name, ".json")) {
        status = a->node ? COFFER_OK : parse(a, set, err);
        if (!status && !b->node)
            status = parse(b, set, err);
    }
    if (!status && !(a->node && b->node)) {
        status = summarize(a, err);
        if (!status)
            status = summarize(b, err);
    }
    put_step(&path, name);
    if (!status && path.failed)
        status = coffer__fail_no_memory(err, path.len);
    if (!status)
        status = coffer__node_diff(changes, coffer__buffer_text(&path),
                                   a->node ? coffer_node_find(a->node, "json") : NULL,
                                   b->node ? coffer_node_find(b->node, "json") : NULL, err);
    coffer__buffer_free(&path);
    return status;
}

/* a, b : NULL when the model does not have the file. folded : the model whose template is folded in. */
static coffer_status compare_file(coffer__node_changes *changes, const char *name, const coffer_tensors *a,
                                  const coffer_tensors *b, const coffer_tensors *folded, bool fold_left,
                                  coffer_error *err)
{
    file_content left = { 0 }, right = { 0 };
    coffer_status status = a ? coffer__tensors_file_read(&left.bytes, &left.len, a, name, err) : COFFER_OK;
    if (!status && b)
        status = coffer__tensors_file_read(&right.bytes, &right.len, b, name, err);
    if (!status && folded && strcmp(name, template_target) == 0)
        status = fold(fold_left ? &left : &right, folded, err);
    if (!status)
        status = compare_contents(changes, name, &left, &right, a ? a : b, err);
    free_content(&left);
    free_content(&right);
    return status;
}

static size_t find_name(const coffer__tensors_files *files, const char *name)
{
    size_t i = 0;
    while (i < files->count && strcmp(files->names[i], name) != 0)
        i++;
    return i;
}

static void remove_name(coffer__tensors_files *files, size_t index)
{
    coffer__free(files->names[index]);
    memmove(files->names + index, files->names + index + 1,
            (files->count - index - 1) * sizeof *files->names);
    files->count--;
}

coffer_status coffer__tensors_files_diff(coffer__node_changes *changes, const coffer_tensors *a,
                                         const coffer_tensors *b, coffer_error *err)
{
    coffer__tensors_files left = { 0 }, right = { 0 };
    coffer_status status = coffer__tensors_files_list(&left, a, err);
    if (!status)
        status = coffer__tensors_files_list(&right, b, err);
    size_t in_left = find_name(&left, template_name), in_right = find_name(&right, template_name);
    bool fold_left = in_left < left.count && in_right == right.count;
    bool fold_right = in_right < right.count && in_left == left.count;
    if (!status && fold_left && find_name(&right, template_target) < right.count)
        remove_name(&left, in_left);
    else if (!status && fold_right && find_name(&left, template_target) < left.count)
        remove_name(&right, in_right);
    else
        fold_left = fold_right = false;
    const coffer_tensors *folded = fold_left ? a : fold_right ? b : NULL;
    for (size_t i = 0, j = 0; !status && (i < left.count || j < right.count);) {
        int order = i == left.count ? 1 : j == right.count ? -1 : strcmp(left.names[i], right.names[j]);
        status = compare_file(changes, order <= 0 ? left.names[i] : right.names[j], order <= 0 ? a : NULL,
                              order >= 0 ? b : NULL, folded, fold_left, err);
        i += order <= 0;
        j += order >= 0;
    }
    coffer__tensors_files_free(&left);
    coffer__tensors_files_free(&right);
    return status;
}
