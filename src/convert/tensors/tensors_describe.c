/* Describing, listing and checking a set of tensors. */
#include "base/buffer.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/text.h"
#include "base/work.h"
#include "convert/tensors/tensors.h"
#include "outside/models/safetensors.h"

#include <inttypes.h>
#include <string.h>

#define CHECK_CHUNK ((size_t)1 << 20)

const char *coffer_tensor_dtype_name(const coffer_tensor *tensor)
{
    return tensor->dtype == COFFER_DTYPE_NONE ? tensor->type_name : coffer_dtype_name(tensor->dtype);
}

const char *coffer_tensors_title(const coffer_tensors *set)
{
    return set->reader->title;
}

bool coffer_tensors_is_sharded(const coffer_tensors *set)
{
    for (size_t i = 1; i < set->count; i++) {
        if (strcmp(set->entries[0].tensor.file, set->entries[i].tensor.file) != 0)
            return true;
    }
    return false;
}

uint64_t coffer_tensors_size(const coffer_tensors *set)
{
    uint64_t size = 0;
    for (size_t i = 0; i < set->count; i++)
        size += set->entries[i].tensor.size;
    return size;
}

/* ---- Describing ---- */

typedef struct type_total {
    const char *name;
    uint64_t tensors, parameters, size;
} type_total;

/* Totals by type, in the order in which the types appear. A set with more types than fit is hostile; the rest
 * is added up under one name. */
static void add_types(coffer_node *list, const coffer_tensors *set)
{
    enum { MAX_TYPES = 64 };
    type_total types[MAX_TYPES];
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const coffer_tensor *tensor = &set->entries[i].tensor;
        size_t found = 0;
        while (found < count && strcmp(types[found].name, coffer_tensor_dtype_name(tensor)) != 0)
            found++;
        if (found == MAX_TYPES)
            found = MAX_TYPES - 1;
        else if (found == count) {
            const char *name = count == MAX_TYPES - 1 ? "others" : coffer_tensor_dtype_name(tensor);
            types[count++] = (type_total){ .name = name };
        }
        types[found].tensors++;
        types[found].parameters += tensor->elements;
        types[found].size += tensor->size;
    }
    for (size_t i = 0; i < count; i++) {
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "dtype", types[i].name);
        coffer_node_add_u64(map, "tensors", types[i].tensors, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "parameters", types[i].parameters, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "size", types[i].size, COFFER_UNIT_BYTES);
    }
}

coffer_status coffer_tensors_describe(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    uint64_t elements = 0;
    for (size_t i = 0; i < set->count; i++)
        elements += set->entries[i].tensor.elements;
    if (strcmp(coffer_tensors_kind(set), "npy") == 0 && set->count == 1) { /* one array, not a model */
        const coffer_tensor *array = &set->entries[0].tensor;
        coffer_node_add_text(out, "dtype", coffer_tensor_dtype_name(array));
        coffer_node *shape = coffer_node_add_list(out, "shape");
        for (uint32_t i = 0; i < array->rank; i++)
            coffer_node_add_u64(shape, NULL, array->dims[i], COFFER_UNIT_NONE);
        coffer_node_add_u64(out, "elements", elements, COFFER_UNIT_NONE);
        return coffer_node_status(out, err);
    }
    coffer_node_add_u64(out, "tensors", set->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "parameters", elements, COFFER_UNIT_NONE);
    add_types(coffer_node_add_list(out, "dtypes"), set);
    return coffer_tensors_metadata(coffer_node_add_map(out, "metadata"), set, err);
}

/* The files in the model by size and checksum. */
static coffer_status describe_files(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    coffer__tensors_files files = { 0 };
    coffer_status status = coffer__tensors_files_list(&files, set, err);
    for (size_t i = 0; !status && i < files.count; i++) {
        uint8_t *bytes = NULL;
        size_t len = 0;
        status = coffer__tensors_file_read(&bytes, &len, set, files.names[i], err);
        if (status)
            break;
        coffer_node *file = coffer_node_add_map(out, files.names[i]);
        coffer_node_add_u64(file, "size", len, COFFER_UNIT_BYTES);
        coffer_node_add_printf(file, "crc32", "%08" PRIx32, coffer__crc32(0, bytes, len));
        coffer__free(bytes);
    }
    coffer__tensors_files_free(&files);
    return status;
}

coffer_status coffer_tensors_metadata(coffer_node *out, const coffer_tensors *set, coffer_error *err)
{
    coffer_status status = set->reader->describe ? set->reader->describe(out, set, err) : COFFER_OK;
    if (!status && set->reader->list_files)
        status = describe_files(out, set, err);
    return status ? status : coffer_node_status(out, err);
}

/* ---- One value ---- */

/* The child whose name begins the path and reaches farthest: names may contain dots themselves. */
static const coffer_node *find_member(const coffer_node *map, const char **path)
{
    const coffer_node *found = NULL;
    size_t found_len = 0;
    for (const coffer_node *child = coffer_node_first(map); child; child = coffer_node_next(child)) {
        const char *name = coffer_node_get_name(child);
        size_t len = name ? strlen(name) : 0;
        bool begins = len > 0 && strncmp(*path, name, len) == 0 && ((*path)[len] == '.' || !(*path)[len]);
        if (begins && len > found_len) {
            found = child;
            found_len = len;
        }
    }
    *path += found_len;
    if (**path == '.')
        ++*path;
    return found;
}

static coffer_status copy_value(coffer_node *out, const char *name, const coffer_node *root,
                                coffer_error *err)
{
    const coffer_node *value = root;
    for (const char *path = name; value && *path;)
        value = find_member(value, &path);
    if (!value)
        return COFFER_E_NOT_FOUND;
    coffer_node_add_copy(out, name, value);
    return coffer_node_status(out, err);
}

coffer_status coffer_tensors_metadata_value(coffer_node *out, const coffer_tensors *set, const char *name,
                                            coffer_error *err)
{
    static const char prefix[] = "kv.";
    coffer_node *root = NULL;
    coffer_status status = COFFER_E_NOT_FOUND;
    if (set->reader->describe_value)
        status = set->reader->describe_value(out, set, name, err);
    if (status != COFFER_E_NOT_FOUND)
        return status ? status : coffer_node_status(out, err);
    status = coffer_node_new(&root, err);
    if (!status)
        status = coffer_tensors_metadata(root, set, err);
    if (!status)
        status = copy_value(out, name, root, err);
    if (status == COFFER_E_NOT_FOUND && strncmp(name, prefix, sizeof prefix - 1) == 0)
        status = copy_value(out, name + sizeof prefix - 1, root, err);
    coffer_node_free(root);
    if (status == COFFER_E_NOT_FOUND)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no key \"%s\"", name);
    return status;
}

/* ---- Listing ---- */

static void add_entry(coffer_node *list, const coffer_tensor *tensor, bool with_file)
{
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_text(map, "name", tensor->name);
    coffer_node_add_text(map, "dtype", coffer_tensor_dtype_name(tensor));
    coffer_node *shape = coffer_node_add_list(map, "shape");
    for (uint32_t i = 0; i < tensor->rank; i++)
        coffer_node_add_u64(shape, NULL, tensor->dims[i], COFFER_UNIT_NONE);
    coffer_node_add_offset(map, "offset", tensor->offset);
    coffer_node_add_u64(map, "size", tensor->size, COFFER_UNIT_BYTES);
    const char *slash = strrchr(tensor->file, '/');
    if (with_file)
        coffer_node_add_text(map, "file", slash ? slash + 1 : tensor->file);
}

coffer_status coffer_tensors_list(coffer_node *out, const coffer_tensors *set, const coffer_list_opts *opts,
                                  coffer_error *err)
{
    coffer_list_opts options = COFFER_LIST_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    if (options.what && strcmp(options.what, "tensors") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a %s has no list \"%s\"; it has tensors", coffer_tensors_title(set),
                            options.what);
    coffer_node *list = coffer_node_add_list(out, "entries");
    bool with_file = coffer_tensors_is_sharded(set);
    for (size_t i = 0; i < set->count; i++) {
        const coffer_tensor *tensor = &set->entries[i].tensor;
        if (!options.glob || coffer__glob_match(options.glob, tensor->name, strlen(tensor->name)))
            add_entry(list, tensor, with_file);
    }
    if (options.natural)
        coffer__node_sort_by_name(out, "entries");
    return coffer_node_status(out, err);
}

/* ---- Checking ---- */

typedef struct check_pass {
    const coffer_tensors *set;
    const coffer_progress *progress;
    uint8_t *chunk;
    uint64_t done, total;
} check_pass;

static coffer_status check_payload(coffer_report *out, check_pass *pass, size_t tensor, coffer_error *err)
{
    uint64_t size = pass->set->entries[tensor].tensor.size;
    for (uint64_t begin = 0; begin < size; begin += CHECK_CHUNK) {
        coffer_error found = COFFER_ERROR_INIT;
        size_t len = size - begin < CHECK_CHUNK ? (size_t)(size - begin) : CHECK_CHUNK;
        if (coffer_tensors_read(pass->chunk, pass->set, tensor, begin, len, &found))
            return coffer__report_take(out, COFFER_ERROR, &found, err);
        pass->done += len;
        coffer_status status = coffer__progress_step(pass->progress, pass->done, pass->total, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status report_recorded(coffer_report *out, const coffer_tensors *set, coffer_error *err)
{
    coffer__tensors_names lost = { 0 }, damaged = { 0 };
    coffer_status status = coffer__tensors_recorded_names(&lost, set, COFFER__TENSORS_LOST_KEY, err);
    if (!status)
        status = coffer__tensors_recorded_names(&damaged, set, COFFER__TENSORS_DAMAGED_KEY, err);
    for (size_t i = 0; !status && i < lost.count; i++) {
        if (coffer_tensors_find(set, lost.items[i]) == COFFER_INDEX_NONE)
            coffer__report_add(out, COFFER_E_MISSING, COFFER_ERROR, COFFER_OFFSET_NONE,
                               "tensor \"%s\" was lost when the file was repaired", lost.items[i]);
    }
    for (size_t i = 0; !status && i < damaged.count; i++) {
        size_t found = coffer_tensors_find(set, damaged.items[i]);
        const coffer_tensor *tensor = found == COFFER_INDEX_NONE ? NULL : coffer_tensors_at(set, found);
        coffer__report_add(out, COFFER_E_BAD_CHECKSUM, COFFER_ERROR,
                           tensor ? tensor->offset : COFFER_OFFSET_NONE,
                           "%s\"%s\" was damaged when the file was written", tensor ? "tensor " : "",
                           damaged.items[i]);
    }
    coffer__tensors_names_free(&lost);
    coffer__tensors_names_free(&damaged);
    return status;
}

coffer_status coffer_tensors_check(coffer_report *out, const coffer_tensors *set,
                                   const coffer_check_opts *opts, coffer_error *err)
{
    coffer_check_opts options = COFFER_CHECK_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    coffer__size_text size;
    if (!status && !set->reader->has_checksums)
        coffer__report_set_limits(out, "no checksums in this format");
    else if (!status && !options.full)
        coffer__report_set_limits(out, "structure only; --full verifies %s",
                                  coffer__size_text_of(size, coffer_tensors_size(set)));
    if (!status)
        status = report_recorded(out, set, err);
    if (!status && set->reader->check)
        status = set->reader->check(out, set, options.full, err);
    if (status || !options.full)
        return status ? status : coffer__report_status(out, err);
    check_pass pass = { .set = set, .progress = options.progress, .total = coffer_tensors_size(set) };
    pass.chunk = coffer__malloc(CHECK_CHUNK);
    if (!pass.chunk)
        return coffer__fail_no_memory(err, CHECK_CHUNK);
    for (size_t i = 0; !status && i < set->count; i++) {
        if (!set->entries[i].damaged) /* reported above */
            status = check_payload(out, &pass, i, err);
    }
    coffer__free(pass.chunk);
    return status ? status : coffer__report_status(out, err);
}
