/* A folder of files of one kind. The folders right below it are the classes. */
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "convert/datasets/dataset_columns.h"
#include "convert/datasets/dataset_input.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"
#include "outside/archives/folder_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* Kinds of files, by extension. */
typedef struct file_kind {
    coffer_dataset_kind kind;
    const char *field, *title;
    const char *extensions[5]; /* NULL-terminated */
} file_kind;

static const file_kind kinds[] = {
    { COFFER_DATASET_IMAGES, "image", "a picture", { ".jpg", ".jpeg", ".jpe", ".png" } },
    { COFFER_DATASET_AUDIO, "audio", "a sound", { ".wav", ".flac" } },
    { COFFER_DATASET_TEXT, "text", "a text", { ".txt", ".text", ".md" } },
    { COFFER_DATASET_ARRAYS, "array", "an array", { ".npy" } },
    { COFFER_DATASET_AUTO,
      "data",
      "of that kind",
      { NULL } }, /* anything else, when there is nothing of the above */
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)
#define OTHER_KIND (KIND_COUNT - 1)

enum { FIELD_MAIN, FIELD_PATH, FIELD_LABEL, FIELD_CLASS };

typedef struct folder_input {
    coffer__dataset_input base;
    coffer__folder_list list;
    int folder;
    coffer_limits limits;
    size_t at;
    /* The class of the last file, whose number grows with each new one: paths are sorted. */
    const char *class_name;
    size_t class_len;
    int64_t label;
} folder_input;

static size_t kind_of_file(const char *path)
{
    for (size_t k = 0; k < OTHER_KIND; k++) {
        for (const char *const *extension = kinds[k].extensions; *extension; extension++) {
            if (coffer__file_has_extension(path, *extension))
                return k;
        }
    }
    return OTHER_KIND;
}

/* The kind of most files; files of an unknown kind count only when there are no others. */
static size_t most_common_kind(const coffer__folder_list *list)
{
    uint64_t counts[KIND_COUNT] = { 0 };
    size_t best = OTHER_KIND;
    for (size_t i = 0; i < list->count; i++)
        counts[kind_of_file(list->files[i].path)]++;
    for (size_t k = OTHER_KIND; k-- > 0;) {
        if (counts[k] && (best == OTHER_KIND || counts[k] >= counts[best]))
            best = k;
    }
    return best;
}

static coffer_status choose_kind(size_t *out, const coffer__folder_list *list, coffer_dataset_kind kind,
                                 coffer_error *err)
{
    *out = most_common_kind(list);
    for (size_t k = 0; kind != COFFER_DATASET_AUTO && k < OTHER_KIND; k++) {
        if (kinds[k].kind == kind)
            *out = k;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (kind_of_file(list->files[i].path) == *out)
            return COFFER_OK;
    }
    if (list->count == 0)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no files in the folder");
    return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "none of its %zu files is %s",
                        list->count, kinds[*out].title);
}

static bool leads_to_folder(int folder, const coffer__folder_file *file)
{
    int fd = file->irregular ? coffer__os_open_at(folder, file->path, O_RDONLY | O_DIRECTORY) : -1;
    coffer__file_close(fd);
    return fd >= 0;
}

/* Leaves the files of one kind. Links and devices among them stay, to be refused one by one, and so do links
 * to folders, so that skipped directories are reported. */
static void keep_kind(coffer__folder_list *list, int folder, size_t kind)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (kind_of_file(list->files[i].path) == kind || leads_to_folder(folder, &list->files[i]))
            list->files[kept++] = list->files[i];
    }
    list->count = kept;
}

static uint16_t image_or_audio_type(const coffer__folder_list *list, const char *first_extension,
                                    uint16_t first, uint16_t other)
{
    size_t of_first = 0;
    for (size_t i = 0; i < list->count; i++)
        of_first += coffer__file_has_extension(list->files[i].path, first_extension);
    return 2 * of_first > list->count ? first : other;
}

static coffer_status open_file(int *fd, const folder_input *input, const coffer__folder_file *file,
                               coffer_error *err)
{
    if (file->irregular)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "a link or device, not a file");
    do {
        *fd = coffer__os_open_at(input->folder, file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return coffer__fail_errno(err, "cannot open", errno);
    coffer__inputs_note(*fd);
    return COFFER_OK;
}

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

static coffer_status add_main_field(folder_input *input, size_t kind, coffer_error *err)
{
    static const uint16_t types[KIND_COUNT] = { COFFER_MLDF_IMAGE_JPEG, COFFER_MLDF_AUDIO, COFFER_MLDF_TEXT,
                                                COFFER_MLDF_NDARRAY, COFFER_MLDF_BYTES };
    const char *name = kinds[kind].field;
    coffer_mldf_field *field;
    coffer__array_facts facts = { 0 };
    coffer_status status =
        coffer__dataset_add_field(&field, &input->base.schema, name, strlen(name), types[kind], err);
    if (status)
        return status;
    if (kinds[kind].kind == COFFER_DATASET_IMAGES)
        field->type =
            image_or_audio_type(&input->list, ".png", COFFER_MLDF_IMAGE_PNG, COFFER_MLDF_IMAGE_JPEG);
    if (kinds[kind].kind == COFFER_DATASET_AUDIO)
        field->type =
            image_or_audio_type(&input->list, ".flac", COFFER_MLDF_AUDIO_COMPRESSED, COFFER_MLDF_AUDIO);
    if (kinds[kind].kind != COFFER_DATASET_ARRAYS)
        return COFFER_OK;
    status = survey_arrays(input, &facts, err);
    return status ? status : coffer__array_facts_settle(field, &facts, err);
}

static size_t class_len_of(const char *path)
{
    const char *slash = strchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static uint64_t count_classes(const coffer__folder_list *list)
{
    uint64_t count = 0;
    const char *last = NULL;
    size_t last_len = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *path = list->files[i].path;
        size_t len = class_len_of(path);
        if (len && (!last || len != last_len || memcmp(path, last, len) != 0)) {
            count++;
            last = path;
            last_len = len;
        }
    }
    return count;
}

static coffer_status add_fields(folder_input *input, size_t kind, coffer_error *err)
{
    coffer__dataset_schema *schema = &input->base.schema;
    coffer_mldf_field *field;
    coffer_status status = add_main_field(input, kind, err);
    if (!status)
        status = coffer__dataset_add_field(&field, schema, "path", 4, COFFER_MLDF_TEXT, err);
    input->base.class_count = count_classes(&input->list);
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
static void set_class(folder_input *input, coffer__dataset_sample *sample, const char *path)
{
    size_t len = class_len_of(path);
    coffer__dataset_value *label = &sample->values[FIELD_LABEL], *name = &sample->values[FIELD_CLASS];
    if (len && (!input->class_name || len != input->class_len || memcmp(path, input->class_name, len) != 0)) {
        input->class_name = path;
        input->class_len = len;
        input->label++;
    }
    label->form = COFFER__DATASET_SCALAR;
    label->i64 = len ? input->label : -1;
    if (!len)
        return;
    name->form = COFFER__DATASET_FILE;
    name->bytes = (const uint8_t *)path;
    name->size = len;
}

static coffer_status folder_next(bool *more, coffer__dataset_sample *sample, coffer__dataset_input *base,
                                 coffer_error *err)
{
    folder_input *input = (folder_input *)base;
    *more = input->at < input->list.count;
    if (!*more)
        return COFFER_OK;
    const char *path = input->list.files[input->at++].path;
    coffer__dataset_value *value = &sample->values[FIELD_PATH];
    if (!coffer__buffer_printf(&sample->name, "%s", path))
        return coffer__fail_no_memory(err, strlen(path));
    value->form = COFFER__DATASET_FILE;
    value->bytes = (const uint8_t *)path;
    value->size = strlen(path);
    if (base->class_count)
        set_class(input, sample, path);
    return COFFER_OK;
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
    return status;
}

static void folder_close(coffer__dataset_input *base)
{
    folder_input *input = (folder_input *)base;
    coffer__folder_list_free(&input->list);
    coffer__file_close(input->folder);
    coffer__dataset_input_free(base);
}

coffer_status coffer__dataset_open_folder(coffer__dataset_input **out, const char *folder,
                                          coffer__folder_list *list, coffer_dataset_kind kind,
                                          const coffer_limits *limits, coffer_error *err)
{
    folder_input *input = NULL;
    size_t found = OTHER_KIND;
    coffer_status status = coffer__dataset_input_new(&input, sizeof *input, err);
    if (status)
        return status;
    input->base.next = folder_next;
    input->base.load = folder_load;
    input->base.rewind = folder_rewind;
    input->base.close = folder_close;
    input->limits = coffer__limits(limits);
    input->folder = -1;
    input->label = -1;
    input->list = *list;
    *list = (coffer__folder_list){ 0 };
    status = coffer__file_open(&input->folder, folder, O_RDONLY | O_DIRECTORY, 0, err);
    if (!status)
        status = choose_kind(&found, &input->list, kind, err);
    if (!status) {
        keep_kind(&input->list, input->folder, found);
        input->base.count = input->list.count;
        for (size_t i = 0; i < input->list.count; i++)
            coffer__digest_add(input->base.seen, input->list.files[i].path,
                               strlen(input->list.files[i].path) + 1);
        status = add_fields(input, found, err);
    }
    if (status) {
        folder_close(&input->base);
        return status;
    }
    *out = &input->base;
    return COFFER_OK;
}
