/* Folders of files of one kind. The folders right below them are the classes. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/datasets/dataset_columns.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"
#include "outside/archives/folder_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_MAIN, FIELD_PATH, FIELD_LABEL, FIELD_CLASS };

typedef struct folder_input {
    coffer__dataset_input base;
    coffer__folder_list list;
    int *folders;                            /* descriptors */
    const char *const *names, *const *shown; /* shown : in the paths of samples */
    size_t folder_count;
    bool follow_links;
    bool folders_are_classes; /* several folders without folders inside */
    coffer_limits limits;
    size_t at;
    /* The class of the last file, whose number grows with each new one: files are sorted by class. */
    const char *class_name;
    size_t class_len;
    int64_t label;
} folder_input;

static coffer_status open_file(int *fd, const folder_input *input, const coffer__folder_file *file,
                               coffer_error *err)
{
    if (file->entry != COFFER__ENTRY_FILE)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "%s, not a file",
                            coffer__folder_entry_name(file->entry));
    int flags = O_RDONLY | O_NONBLOCK | (input->follow_links ? 0 : O_NOFOLLOW);
    do {
        *fd = coffer__os_open_at(input->folders[file->root], file->path, flags);
    } while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return coffer__fail_errno(err, "cannot open", errno);
    coffer__inputs_note(*fd);
    return COFFER_OK;
}

/* ---- Fields ---- */

/* Arrays have one type; dimensions in which they differ vary. Only their headers are read here. */
static coffer_status survey_arrays(folder_input *input, coffer__array_facts *facts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < input->list.count; i++) {
        coffer_error ignored = COFFER_ERROR_INIT;
        int fd = -1;
        if (open_file(&fd, input, &input->list.files[i], &ignored))
            continue; /* reported when it is packed */
        uint64_t size = 0;
        coffer_source *src = NULL;
        status = coffer__file_size(&size, fd, input->list.files[i].path, err);
        if (!status)
            status = coffer__array_facts_source(&src, fd, size, input->list.files[i].path, err);
        if (!status)
            coffer__array_facts_add(facts, src);
        coffer_source_close(src);
        coffer__file_close(fd);
    }
    return status;
}

static bool most_have_extension(const coffer__folder_list *list, const char *const *extensions)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        for (const char *const *extension = extensions; *extension; extension++)
            count += coffer__file_has_extension(list->files[i].path, *extension);
    return 2 * count >= list->count;
}

static coffer_status add_main_field(folder_input *input, const coffer__file_kind *kind, coffer_error *err)
{
    static const char *const jpeg[] = { ".jpg", ".jpeg", ".jpe", ".jfif", NULL }, *const wav[] = { ".wav",
                                                                                                   NULL };
    coffer_mldf_field *field;
    coffer__array_facts facts = { 0 };
    coffer_status status = coffer__dataset_add_field(&field, &input->base.schema, kind->field,
                                                     strlen(kind->field), kind->type, err);
    if (status)
        return status;
    /* Pictures of other kinds are stored as PNG. */
    if (kind->kind == COFFER_DATASET_IMAGES && !most_have_extension(&input->list, jpeg))
        field->type = COFFER_MLDF_IMAGE_PNG;
    if (kind->kind == COFFER_DATASET_AUDIO && !most_have_extension(&input->list, wav))
        field->type = COFFER_MLDF_AUDIO_COMPRESSED;
    if (kind->kind != COFFER_DATASET_ARRAYS)
        return COFFER_OK;
    status = survey_arrays(input, &facts, err);
    return status ? status : coffer__array_facts_settle(field, &facts, err);
}

/* ---- Classes ---- */

/* A folder as the paths of samples name it, when there are several: without what leads to it from outside. */
static const char *folder_name(const char *name, size_t *len)
{
    while (*name == '/' || strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0)
        name += *name == '/' ? 1 : strcspn(name, "/") + 1;
    *len = strlen(name);
    while (*len && name[*len - 1] == '/')
        --*len;
    return name;
}

static const char *class_of(const folder_input *input, const coffer__folder_file *file, size_t *len)
{
    if (input->folders_are_classes) {
        const char *name = folder_name(input->shown[file->root], len), *end = name + *len;
        const char *last = end;
        while (last > name && last[-1] != '/')
            last--;
        *len = (size_t)(end - last);
        return last;
    }
    const char *slash = strchr(file->path, '/');
    *len = slash ? (size_t)(slash - file->path) : 0;
    return file->path;
}

static int compare_classes(const void *a, const void *b, void *context)
{
    const folder_input *input = context;
    const coffer__folder_file *x = a, *y = b;
    size_t x_len, y_len;
    const char *x_class = class_of(input, x, &x_len), *y_class = class_of(input, y, &y_len);
    int order = memcmp(x_class, y_class, x_len < y_len ? x_len : y_len);
    if (order == 0)
        order = (x_len > y_len) - (x_len < y_len);
    if (order == 0)
        order = strcmp(x->path, y->path);
    return order ? order : (x->root > y->root) - (x->root < y->root);
}

static bool is_new_class(const folder_input *input, const char *name, size_t len)
{
    return len &&
           (!input->class_name || len != input->class_len || memcmp(name, input->class_name, len) != 0);
}

static void count_classes(folder_input *input)
{
    size_t len, inner = 0;
    for (size_t i = 0; i < input->list.count; i++)
        inner += strchr(input->list.files[i].path, '/') != NULL;
    input->folders_are_classes = input->folder_count > 1 && inner == 0;
    if (input->folder_count > 1 && input->list.count)
        qsort_r(input->list.files, input->list.count, sizeof *input->list.files, compare_classes, input);
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = class_of(input, &input->list.files[i], &len);
        if (!is_new_class(input, name, len))
            continue;
        input->base.class_count++;
        input->class_name = name;
        input->class_len = len;
    }
    input->class_name = NULL;
}

static coffer_status add_fields(folder_input *input, const coffer__file_kind *kind, coffer_error *err)
{
    coffer__dataset_schema *schema = &input->base.schema;
    coffer_mldf_field *field;
    coffer_status status = add_main_field(input, kind, err);
    if (!status)
        status = coffer__dataset_add_field(&field, schema, "path", 4, COFFER_MLDF_TEXT, err);
    count_classes(input);
    if (status || input->base.class_count == 0)
        return status;
    input->base.shares_payloads = true;
    status = coffer__dataset_add_field(&field, schema, "label", 5, COFFER_MLDF_INT, err);
    if (!status)
        status = coffer__dataset_add_field(&field, schema, "class", 5, COFFER_MLDF_TEXT, err);
    if (!status)
        field->flags |= COFFER_MLDF_FIELD_OPTIONAL;
    return status;
}

/* ---- Samples ---- */

static coffer_status folder_rewind(coffer__dataset_input *base, coffer_error *err)
{
    folder_input *input = (folder_input *)base;
    (void)err;
    input->at = 0;
    input->class_name = NULL;
    input->label = -1;
    return COFFER_OK;
}

/* A file next to the class folders does not have a class: its label is −1. */
static void set_class(folder_input *input, coffer__dataset_sample *sample, const coffer__folder_file *file)
{
    size_t len;
    const char *class_name = class_of(input, file, &len);
    coffer__dataset_value *label = &sample->values[FIELD_LABEL], *name = &sample->values[FIELD_CLASS];
    if (is_new_class(input, class_name, len)) {
        input->class_name = class_name;
        input->class_len = len;
        input->label++;
    }
    label->form = COFFER__DATASET_SCALAR;
    label->i64 = len ? input->label : -1;
    if (!len)
        return;
    name->form = COFFER__DATASET_FILE;
    name->bytes = (const uint8_t *)class_name;
    name->size = len;
}

static coffer_status folder_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                 coffer_error *err)
{
    folder_input *input = (folder_input *)base;
    *more = input->at < input->list.count;
    if (!*more)
        return COFFER_OK;
    const coffer__folder_file *file = &input->list.files[input->at++];
    coffer__dataset_value *value = &sample->values[FIELD_PATH];
    size_t len = 0;
    const char *folder = input->folder_count > 1 ? folder_name(input->shown[file->root], &len) : "";
    if (!coffer__buffer_printf(&sample->name, "%.*s%s%s", (int)len, folder, len ? "/" : "", file->path))
        return coffer__fail_no_memory(err, strlen(file->path));
    value->form = COFFER__DATASET_FILE;
    value->bytes = (const uint8_t *)file->path;
    value->size = strlen(file->path);
    if (base->class_count)
        set_class(input, sample, file);
    return len ? coffer__dataset_value_copy(value, sample->name.data, sample->name.len, err) : COFFER_OK;
}

static coffer_status folder_load(coffer__dataset_sample *sample, const coffer__dataset_input *base,
                                 coffer_error *err)
{
    const folder_input *input = (const folder_input *)base;
    const coffer__folder_file *file = &input->list.files[sample->index];
    coffer__dataset_value *value = &sample->values[FIELD_MAIN];
    int fd = -1;
    coffer_status status = open_file(&fd, input, file, err);
    if (!status)
        status =
            coffer__dataset_read_file(&value->own, sample, fd, input->limits.memory_bytes, file->path, err);
    coffer__file_close(fd);
    value->form = COFFER__DATASET_FILE;
    value->bytes = value->own.data;
    value->size = value->own.len;
    coffer_video_info video = COFFER_VIDEO_INFO_INIT;
    if (!status && base->schema.fields[FIELD_MAIN].type == COFFER_MLDF_VIDEO_COMPRESSED)
        status = coffer_video_probe(&video, value->bytes, value->size, err);
    return status;
}

static void folder_close(coffer__dataset_input *base)
{
    folder_input *input = (folder_input *)base;
    coffer__folder_list_free(&input->list);
    for (size_t i = 0; input->folders && i < input->folder_count; i++)
        coffer__file_close(input->folders[i]);
    coffer__free(input->folders);
    coffer__dataset_input_free(base);
}

/* Counting ends where the sum is large enough for the size of pages not to matter. */
static void sum_sizes(folder_input *input)
{
    coffer__buffer path = COFFER__BUFFER_INIT;
    struct stat st;
    for (size_t i = 0; i < input->list.count && input->base.bytes < COFFER__DATASET_LARGE; i++) {
        const coffer__folder_file *file = &input->list.files[i];
        path.len = 0;
        coffer__buffer_printf(&path, "%s/%s", input->names[file->root], file->path);
        if (!path.failed && coffer__os_stat(coffer__buffer_text(&path), &st) == 0 && st.st_size > 0)
            input->base.bytes += (uint64_t)st.st_size;
    }
    coffer__buffer_free(&path);
}

static coffer_status open_folders(folder_input *input, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    input->folders = coffer__alloc_array(input->folder_count, sizeof *input->folders);
    if (!input->folders)
        return coffer__fail_no_memory(err, input->folder_count * sizeof *input->folders);
    for (size_t i = 0; i < input->folder_count; i++)
        input->folders[i] = -1;
    for (size_t i = 0; !status && i < input->folder_count; i++)
        status = coffer__file_open(&input->folders[i], input->names[i], O_RDONLY | O_DIRECTORY, 0, err);
    return status;
}

coffer_status coffer__dataset_open_folders(coffer__dataset_input **out, const char *const *folders,
                                           size_t folder_count, coffer__folder_list *list,
                                           const coffer_mldf_pack_opts *opts, const coffer_limits *limits,
                                           coffer_error *err)
{
    folder_input *input = NULL;
    const coffer__file_kind *kind = NULL;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->base.next = folder_next;
    input->base.load = folder_load;
    input->base.rewind = folder_rewind;
    input->base.close = folder_close;
    input->base.unit = "files";
    input->limits = coffer__limits(limits);
    input->names = folders;
    input->shown = opts->input_names ? opts->input_names : folders;
    input->folder_count = folder_count;
    input->follow_links = opts->follow_links;
    input->label = -1;
    input->list = *list;
    *list = (coffer__folder_list){ 0 };
    status = open_folders(input, err);
    if (!status)
        status = coffer__dataset_sort_out(&kind, &input->list, input->folders, &input->base, opts, err);
    if (!status)
        status = add_fields(input, kind, err);
    if (status) {
        folder_close(&input->base);
        return status;
    }
    input->base.count = input->list.count;
    sum_sizes(input);
    for (size_t i = 0; i < input->list.count; i++)
        coffer__digest_add(input->base.seen, input->list.files[i].path,
                           strlen(input->list.files[i].path) + 1);
    *out = &input->base;
    return COFFER_OK;
}
