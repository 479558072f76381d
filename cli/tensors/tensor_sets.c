#include "tensors/tensor_sets.h"

#include "base/fail.h"
#include "base/glob.h"
#include "base/memory.h"
#include "base/report.h"

#include <string.h>

#define CHECK_CHUNK ((size_t)1 << 20)

coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err)
{
    if (strcmp(path, "-") == 0)
        return coffer_tensors_from_source(out, src, NULL, err);
    return coffer_tensors_open(out, path, NULL, err);
}

const char *tensors_type(const coffer_tensor *tensor)
{
    return tensor->dtype == COFFER_DTYPE_NONE ? tensor->type_name : coffer_dtype_name(tensor->dtype);
}

const char *tensors_title(const coffer_tensors *set)
{
    static const struct {
        const char *kind, *title;
    } titles[] = {
        { "safetensors", "safetensors model" },
        { "gguf", "GGUF model" },
        { "npz", "NumPy archive" },
        { "npy", "NumPy array" },
    };
    const char *kind = coffer_tensors_kind(set);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (strcmp(titles[i].kind, kind) == 0)
            return titles[i].title;
    return kind;
}

bool tensors_in_several_files(const coffer_tensors *set)
{
    for (size_t i = 1; i < coffer_tensors_count(set); i++)
        if (strcmp(coffer_tensors_at(set, 0)->file, coffer_tensors_at(set, i)->file) != 0)
            return true;
    return false;
}

uint64_t tensors_size(const coffer_tensors *set)
{
    uint64_t size = 0;
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        size += coffer_tensors_at(set, i)->size;
    return size;
}

/* ---- info ---- */

typedef struct type_total {
    const char *name;
    uint64_t tensors, parameters, size;
} type_total;

/* How many tensors, elements and bytes there are of each type, in the order in which the types appear. */
static void add_types(coffer_node *list, const coffer_tensors *set)
{
    enum { MOST_TYPES = 64 };
    type_total types[MOST_TYPES];
    size_t count = 0;
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        size_t at = 0;
        while (at < count && strcmp(types[at].name, tensors_type(tensor)) != 0)
            at++;
        if (at == MOST_TYPES)
            continue;
        if (at == count)
            types[count++] = (type_total){ .name = tensors_type(tensor) };
        types[at].tensors++;
        types[at].parameters += tensor->elements;
        types[at].size += tensor->size;
    }
    for (size_t i = 0; i < count; i++) {
        coffer_node *map = coffer__node_map(list, NULL);
        coffer__node_text(map, "dtype", types[i].name);
        coffer__node_u64(map, "tensors", types[i].tensors, COFFER_UNIT_NONE);
        coffer__node_u64(map, "parameters", types[i].parameters, COFFER_UNIT_NONE);
        coffer__node_u64(map, "size", types[i].size, COFFER_UNIT_BYTES);
    }
}

coffer_status tensors_describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    uint64_t elements = 0;
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        elements += coffer_tensors_at(set, i)->elements;
    coffer__node_u64(out, "tensors", coffer_tensors_count(set), COFFER_UNIT_NONE);
    coffer__node_u64(out, "parameters", elements, COFFER_UNIT_NONE);
    add_types(coffer__node_list(out, "dtypes"), set);
    return coffer_tensors_describe(coffer__node_map(out, "metadata"), set, err);
}

/* ---- check ---- */

/* Opening a set has looked at all of its structure; what is left are payloads that cannot be read. */
coffer_status tensors_check(coffer_report *out, const coffer_tensors *set, const coffer_check_opts *opts,
                            coffer_error *err)
{
    uint64_t done = 0, total = tensors_size(set);
    if (!opts->full)
        return COFFER_OK;
    uint8_t *chunk = coffer__malloc(CHECK_CHUNK);
    if (!chunk)
        return coffer__fail_no_memory(err, CHECK_CHUNK);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; status == COFFER_OK && i < coffer_tensors_count(set); i++) {
        uint64_t size = coffer_tensors_at(set, i)->size;
        for (uint64_t at = 0; status == COFFER_OK && at < size; at += CHECK_CHUNK) {
            coffer_error found = COFFER_ERROR_INIT;
            size_t len = size - at < CHECK_CHUNK ? (size_t)(size - at) : CHECK_CHUNK;
            if (coffer_tensors_read(chunk, set, i, at, len, &found) != COFFER_OK) {
                coffer__report_add_error(out, COFFER_ERROR, &found);
                break;
            }
            done += len;
            if (opts->progress && opts->progress->step(opts->progress->context, done, total) != 0)
                status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
        }
    }
    coffer__free(chunk);
    return status == COFFER_OK ? coffer__report_status(out, err) : status;
}

/* ---- ls ---- */

static void add_entry(coffer_node *list, const coffer_tensor *tensor, bool with_file)
{
    coffer_node *map = coffer__node_map(list, NULL);
    coffer__node_text(map, "name", tensor->name);
    coffer__node_text(map, "dtype", tensors_type(tensor));
    coffer_node *shape = coffer__node_list(map, "shape");
    for (uint32_t i = 0; i < tensor->rank; i++)
        coffer__node_u64(shape, NULL, tensor->dims[i], COFFER_UNIT_NONE);
    if (tensor->offset == COFFER_OFFSET_NONE)
        coffer__node_null(map, "offset");
    else
        coffer__node_u64(map, "offset", tensor->offset, COFFER_UNIT_OFFSET);
    coffer__node_u64(map, "size", tensor->size, COFFER_UNIT_BYTES);
    const char *slash = strrchr(tensor->file, '/');
    if (with_file)
        coffer__node_text(map, "file", slash ? slash + 1 : tensor->file);
}

coffer_status tensors_list(coffer_node *out, const coffer_tensors *set, const coffer_list_opts *opts,
                           coffer_error *err)
{
    if (opts->what && strcmp(opts->what, "tensors") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a %s has no list \"%s\"; it has tensors", tensors_title(set), opts->what);
    coffer_node *list = coffer__node_list(out, "entries");
    bool with_file = tensors_in_several_files(set);
    for (size_t i = 0; i < coffer_tensors_count(set); i++) {
        const coffer_tensor *tensor = coffer_tensors_at(set, i);
        if (!opts->glob || coffer__glob_match(opts->glob, tensor->name, strlen(tensor->name)))
            add_entry(list, tensor, with_file);
    }
    return COFFER_OK;
}

/* ---- diff ---- */

coffer_status tensors_diff(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                           const coffer_diff_opts *opts, coffer_error *err)
{
    coffer_tensors_work work = COFFER_TENSORS_WORK_INIT;
    work.tolerance = opts->tolerance;
    work.max_shown = opts->max_shown;
    work.threads = opts->threads;
    work.progress = opts->progress;
    return coffer_tensors_diff(out, a, b, &work, err);
}
