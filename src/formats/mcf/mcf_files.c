/* The Files section: other files of the model's folder, by name. */
#include "formats/mcf/mcf_edit.h"
#include "formats/mcf/mcf_writer.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>

#define NAME_MAX_LEN 1024

bool coffer_mcf_file_name_is_safe(const char *name)
{
    size_t len = strlen(name), part = 0;
    if (len == 0 || len > NAME_MAX_LEN || !coffer__utf8_valid(name, len))
        return false;
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c == '\\' || c == ':' || c == 0x7f || (c < 0x20 && c))
            return false;
        if (c != '/' && c)
            continue;
        size_t n = i - part;
        if (n == 0 || (n == 1 && name[part] == '.') || (n == 2 && name[part] == '.' && name[part + 1] == '.'))
            return false;
        part = i + 1;
    }
    return true;
}

void coffer__mcf_files_free(coffer__mcf_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        coffer__free(files->items[i].name);
        coffer__free(files->items[i].own);
    }
    coffer__free(files->items);
    coffer__free(files->section);
    *files = (coffer__mcf_files){ 0 };
}

size_t coffer__mcf_files_find(const coffer__mcf_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].name, name) == 0)
            return i;
    }
    return COFFER_INDEX_NONE;
}

void coffer__mcf_files_remove(coffer__mcf_files *files, size_t index)
{
    if (index >= files->count || !files->items)
        return;
    coffer__free(files->items[index].name);
    coffer__free(files->items[index].own);
    files->items[index] = files->items[--files->count];
}

/* own : belongs to the list from now on, also on failure; NULL = bytes are in the section. */
static coffer_status add_file(coffer__mcf_files *files, const char *name, size_t name_len,
                              coffer_mcf_file_kind kind, const uint8_t *bytes, uint64_t size, uint8_t *own,
                              coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&files->items, &files->capacity, files->count, sizeof *files->items, err);
    char *copy = status ? NULL : coffer__strndup(name, name_len);
    if (!status && !copy)
        status = coffer__fail_no_memory(err, name_len);
    if (status) {
        coffer__free(own);
        return status;
    }
    files->items[files->count++] = (coffer__mcf_file){ { copy, size, kind }, copy, own ? own : bytes, own };
    return COFFER_OK;
}

coffer_status coffer__mcf_files_put(coffer__mcf_files *files, const char *name, coffer_mcf_file_kind kind,
                                    const void *bytes, size_t len, coffer_error *err)
{
    size_t before = coffer__mcf_files_find(files, name);
    uint8_t *own;
    if (!coffer_mcf_file_name_is_safe(name))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "\"%.64s\" is not a safe file name: use a relative path without \"..\"", name);
    own = coffer__malloc(len + 1);
    if (!own)
        return coffer__fail_no_memory(err, len);
    if (len > 0)
        memcpy(own, bytes, len);
    coffer_status status = add_file(files, name, strlen(name), kind, NULL, len, own, err);
    if (!status && before != COFFER_INDEX_NONE)
        coffer__mcf_files_remove(files, before);
    return status;
}

/* ---- The section ---- */

static coffer_status decode_entry(coffer__mcf_files *files, const uint8_t *entry, const char *names,
                                  uint64_t names_size, size_t len, uint64_t place, coffer_error *err)
{
    char name[NAME_MAX_LEN + 1];
    uint32_t name_at = coffer__load_u32(entry + COFFER__MCF_FILES_NAME_AT);
    uint32_t name_len = coffer__load_u32(entry + COFFER__MCF_FILES_NAME_LEN_AT);
    uint64_t offset = coffer__load_u64(entry + COFFER__MCF_FILES_OFFSET_AT);
    uint64_t size = coffer__load_u64(entry + COFFER__MCF_FILES_SIZE_AT);
    uint32_t kind = coffer__load_u32(entry + COFFER__MCF_FILES_KIND_AT);
    if (!coffer__range_fits(name_at, name_len, names_size) || !coffer__range_fits(offset, size, len))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "Files: a name or a file is outside of the section");
    if (kind > COFFER_MCF_FILE_SAFETENSORS_HEAD)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place + COFFER__MCF_FILES_KIND_AT,
                            "Files: unknown kind %" PRIu32, kind);
    size_t copied = name_len < NAME_MAX_LEN ? name_len : NAME_MAX_LEN;
    if (copied > 0)
        memcpy(name, names + name_at, copied);
    name[copied] = 0;
    if (name_len > NAME_MAX_LEN || strlen(name) != name_len || !coffer_mcf_file_name_is_safe(name))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, place, "Files: a name could lead out of its folder");
    const char *before = files->items && files->count > 0 ? files->items[files->count - 1].name : NULL;
    if (before && strcmp(before, name) >= 0)
        return coffer__fail(err, COFFER_E_NOT_SORTED, place,
                            "Files: \"%.64s\" is not in the order of the names", name);
    return add_file(files, name, name_len, (coffer_mcf_file_kind)kind, files->section + offset, size, NULL,
                    err);
}

coffer_status coffer__mcf_files_decode(coffer__mcf_files *out, uint8_t *bytes, size_t len, uint64_t base,
                                       coffer_error *err)
{
    coffer__mcf_files files = { .section = bytes };
    coffer_status status = COFFER_OK;
    size_t count = len < COFFER__MCF_FILES_HEADER ? 0 : coffer__load_u32(bytes + COFFER__MCF_FILES_COUNT_AT);
    uint64_t tables = COFFER__MCF_FILES_HEADER + (uint64_t)count * COFFER__MCF_FILES_ENTRY;
    if (len < COFFER__MCF_FILES_HEADER ||
        coffer__load_u32(bytes + COFFER__MCF_FILES_VERSION_AT) != COFFER__MCF_SECTION_VERSION)
        status =
            coffer__fail(err, COFFER_E_BAD_VALUE, base, "Files has %zu bytes and an unknown version", len);
    else if (tables > len || coffer__load_u64(bytes + COFFER__MCF_FILES_NAMES_SIZE_AT) > len - tables)
        status = coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base,
                              "Files has %zu bytes, which is too few for %zu files", len, count);
    for (size_t i = 0; !status && i < count; i++) {
        const uint8_t *entry = bytes + COFFER__MCF_FILES_HEADER + i * COFFER__MCF_FILES_ENTRY;
        status = decode_entry(&files, entry, (const char *)bytes + tables,
                              coffer__load_u64(bytes + COFFER__MCF_FILES_NAMES_SIZE_AT), len,
                              base + (uint64_t)(entry - bytes), err);
    }
    if (status)
        coffer__mcf_files_free(&files);
    else
        *out = files;
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const coffer__mcf_file *)a)->name, ((const coffer__mcf_file *)b)->name);
}

static size_t padding(size_t len)
{
    return (0 - len) % COFFER__MCF_SECTION_ALIGNMENT;
}

coffer_status coffer__mcf_files_encode(coffer__buffer *out, coffer__mcf_files *files, coffer_error *err)
{
    static const uint8_t zeros[COFFER__MCF_FILES_ENTRY] = { 0 };
    size_t names = 0, tables = COFFER__MCF_FILES_HEADER + files->count * COFFER__MCF_FILES_ENTRY;
    uint32_t name_at = 0;
    if (files->count > 0)
        qsort(files->items, files->count, sizeof *files->items, by_name);
    for (size_t i = 0; i < files->count; i++)
        names += strlen(files->items[i].name);
    uint64_t at = tables + names + padding(tables + names);
    uint8_t *head = coffer__buffer_extend(out, tables);
    if (!head)
        return coffer__fail_no_memory(err, tables);
    memset(head, 0, tables);
    coffer__store_u32(head + COFFER__MCF_FILES_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(head + COFFER__MCF_FILES_COUNT_AT, (uint32_t)files->count);
    coffer__store_u64(head + COFFER__MCF_FILES_NAMES_SIZE_AT, names);
    for (size_t i = 0; i < files->count; i++) {
        const coffer__mcf_file *item = &files->items[i];
        uint8_t *entry = head + COFFER__MCF_FILES_HEADER + i * COFFER__MCF_FILES_ENTRY;
        uint32_t name_len = (uint32_t)strlen(item->name);
        coffer__store_u32(entry + COFFER__MCF_FILES_NAME_AT, name_at);
        coffer__store_u32(entry + COFFER__MCF_FILES_NAME_LEN_AT, name_len);
        coffer__store_u64(entry + COFFER__MCF_FILES_OFFSET_AT, at);
        coffer__store_u64(entry + COFFER__MCF_FILES_SIZE_AT, item->file.size);
        coffer__store_u32(entry + COFFER__MCF_FILES_KIND_AT, (uint32_t)item->file.kind);
        at += item->file.size + padding((size_t)item->file.size);
        name_at += name_len;
    }
    for (size_t i = 0; i < files->count; i++)
        coffer__buffer_append(out, files->items[i].name, strlen(files->items[i].name));
    coffer__buffer_append(out, zeros, padding(tables + names));
    for (size_t i = 0; i < files->count; i++) {
        size_t size = (size_t)files->items[i].file.size;
        coffer__buffer_append(out, files->items[i].bytes, size);
        coffer__buffer_append(out, zeros, padding(size));
    }
    return out->failed ? coffer__fail_no_memory(err, (size_t)at) : COFFER_OK;
}

/* ---- Reading ---- */

struct coffer__mcf_public_files {
    coffer__mcf_files files;
    coffer_mcf_file *list; /* for callers */
};

void coffer__mcf_public_files_free(struct coffer__mcf_public_files *files)
{
    if (!files)
        return;
    coffer__mcf_files_free(&files->files);
    coffer__free(files->list);
    coffer__free(files);
}

static coffer_status load_files(struct coffer__mcf_public_files **out, const coffer_mcf *model,
                                coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_FILES);
    struct coffer__mcf_public_files *files = coffer__calloc(1, sizeof *files);
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = files ? COFFER_OK : coffer__fail_no_memory(err, sizeof *files);
    if (!status && section) {
        status = coffer__mcf_verify_section_read(model, section, err);
        if (!status)
            status = coffer__mcf_load_section(&bytes, &len, model->source, section,
                                              model->limits.memory_bytes, err);
        if (!status)
            status = coffer__mcf_files_decode(&files->files, bytes, len, section->offset, err);
    }
    if (!status) {
        files->list = coffer__alloc_array(files->files.count, sizeof *files->list);
        if (!files->list)
            status = coffer__fail_no_memory(err, files->files.count * sizeof *files->list);
    }
    for (size_t i = 0; !status && i < files->files.count; i++)
        files->list[i] = files->files.items[i].file;
    if (status)
        coffer__mcf_public_files_free(files);
    else
        *out = files;
    return status;
}

/* Built once; when two threads build it at the same time, one copy is dropped. */
static coffer_status files_of(struct coffer__mcf_public_files **out, const coffer_mcf *model,
                              coffer_error *err)
{
    struct coffer__mcf_public_files *_Atomic *place = &((coffer_mcf *)(uintptr_t)model)->files;
    struct coffer__mcf_public_files *files = atomic_load(place), *nothing = NULL;
    coffer_status status = files ? COFFER_OK : load_files(&files, model, err);
    if (status)
        return status;
    if (files != atomic_load(place) && !atomic_compare_exchange_strong(place, &nothing, files)) {
        coffer__mcf_public_files_free(files);
        files = nothing;
    }
    *out = files;
    return COFFER_OK;
}

coffer_status coffer_mcf_get_files(const coffer_mcf_file **out, size_t *count, const coffer_mcf *model,
                                   coffer_error *err)
{
    struct coffer__mcf_public_files *files = NULL;
    coffer_status status = files_of(&files, model, err);
    if (status)
        return status;
    *out = files->list;
    *count = files->files.count;
    return COFFER_OK;
}

coffer_status coffer_mcf_read_file(uint8_t **out, size_t *len, const coffer_mcf *model, const char *name,
                                   coffer_error *err)
{
    struct coffer__mcf_public_files *files = NULL;
    coffer_status status = files_of(&files, model, err);
    if (status)
        return status;
    size_t index = coffer__mcf_files_find(&files->files, name);
    if (index == COFFER_INDEX_NONE)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the model has no file %.64s", name);
    const coffer__mcf_file *item = &files->files.items[index];
    size_t size = (size_t)item->file.size;
    uint8_t *bytes = coffer__malloc(size + 1);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    if (size > 0)
        memcpy(bytes, item->bytes, size);
    bytes[size] = 0;
    *out = bytes;
    *len = size;
    return COFFER_OK;
}

/* ---- Writing and editing ---- */

coffer_status coffer_mcf_writer_add_file(coffer_mcf_writer *writer, const char *name,
                                         coffer_mcf_file_kind kind, const void *bytes, size_t len,
                                         coffer_error *err)
{
    if (writer->area_begun)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "add files before the first tensor");
    if (coffer__mcf_files_find(&writer->files, name) != COFFER_INDEX_NONE)
        return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "file %.64s was already added",
                            name);
    return coffer__mcf_files_put(&writer->files, name, kind, bytes, len, err);
}

coffer_status coffer__mcf_write_files(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    if (writer->files.count == 0)
        return COFFER_OK;
    coffer_status status = coffer__mcf_files_encode(&bytes, &writer->files, err);
    if (!status)
        status = coffer__mcf_add_raw_section(writer, COFFER_MCF_FILES, COFFER__MCF_SECTION_VERSION,
                                             bytes.data, bytes.len, err);
    coffer__buffer_free(&bytes);
    coffer__mcf_files_free(&writer->files);
    return status;
}

static coffer_status current_files(coffer__mcf_files *out, coffer_mcf_editor *editor, coffer_error *err)
{
    const coffer__mcf_change *pending = coffer__mcf_find_change(editor, COFFER_MCF_FILES);
    const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, COFFER_MCF_FILES);
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = COFFER_OK;
    if (pending ? pending->removed : !section)
        return COFFER_OK;
    if (pending) {
        len = pending->len;
        bytes = coffer__malloc(len);
        if (!bytes)
            return coffer__fail_no_memory(err, len);
        memcpy(bytes, pending->bytes, len);
    } else {
        status = coffer__mcf_verify_section_read(editor->model, section, err);
        if (!status)
            status = coffer__mcf_load_section(&bytes, &len, coffer__update_source(editor->update), section,
                                              editor->limits.memory_bytes, err);
    }
    return status ? status : coffer__mcf_files_decode(out, bytes, len, section ? section->offset : 0, err);
}

/* Frees the list. */
static coffer_status store_files(coffer_mcf_editor *editor, coffer__mcf_files *files, coffer_error *err)
{
    coffer__buffer encoded = COFFER__BUFFER_INIT;
    coffer__mcf_change change = { .type = COFFER_MCF_FILES,
                                  .version = COFFER__MCF_SECTION_VERSION,
                                  .removed = files->count == 0 };
    coffer_status status = change.removed ? COFFER_OK : coffer__mcf_files_encode(&encoded, files, err);
    coffer__mcf_files_free(files);
    change.bytes = coffer__buffer_release(&encoded, &change.len);
    if (status) {
        coffer__free(change.bytes);
        return status;
    }
    return coffer__mcf_put_change(editor, change, err);
}

coffer_status coffer_mcf_editor_set_file(coffer_mcf_editor *editor, const char *name, const void *bytes,
                                         size_t len, coffer_error *err)
{
    coffer__mcf_files files = { 0 };
    if (coffer_mcf_section_by_name(name))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s is a section", name);
    coffer_status status = current_files(&files, editor, err);
    if (status)
        return status;
    size_t before = coffer__mcf_files_find(&files, name);
    if (bytes)
        status = coffer__mcf_files_put(&files, name, COFFER_MCF_FILE_WHOLE, bytes, len, err);
    else if (before == COFFER_INDEX_NONE)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the model has no file %.64s", name);
    else
        coffer__mcf_files_remove(&files, before);
    if (status) {
        coffer__mcf_files_free(&files);
        return status;
    }
    return store_files(editor, &files, err);
}

coffer_status coffer__mcf_forget_file(coffer_mcf_editor *editor, const char *name, coffer_error *err)
{
    coffer__mcf_files files = { 0 };
    coffer_status status = current_files(&files, editor, err);
    size_t before = !status && name ? coffer__mcf_files_find(&files, name) : COFFER_INDEX_NONE;
    if (before == COFFER_INDEX_NONE) {
        coffer__mcf_files_free(&files);
        return status;
    }
    coffer__mcf_files_remove(&files, before);
    return store_files(editor, &files, err);
}
