/* Edits sections in place: appends new sections and a new directory, then switches the header to it, all
 * under the rollback journal. Payloads never move. */
#include "formats/mcf/mcf_private.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/journal.h"

#include <stdlib.h>

typedef struct change {
    uint32_t type, version;
    bool removed;
    uint8_t *bytes;
    size_t len;
} change;

COFFER__INIT_FUNCTION(coffer_mcf_editor_opts, COFFER_MCF_EDITOR_OPTS_INIT)

struct coffer_mcf_editor {
    coffer_limits limits;
    coffer__update *update;
    coffer_mcf *model; /* header and directory */
    change *changes;   /* one for each type */
    size_t count, capacity;
    bool committed;
};

coffer_status coffer_mcf_editor_open(coffer_mcf_editor **out, const char *path,
                                     const coffer_mcf_editor_opts *opts, coffer_error *err)
{
    coffer_mcf_editor_opts options = COFFER_MCF_EDITOR_OPTS_INIT;
    coffer_mcf_editor *editor;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    editor = coffer__calloc(1, sizeof *editor);
    if (!editor)
        return coffer__fail_no_memory(err, sizeof *editor);
    editor->limits = coffer__limits(options.limits);
    if ((status = coffer__update_open(&editor->update, path, NULL, err)) ||
        (status = coffer__mcf_open_outline(&editor->model, coffer__update_source(editor->update),
                                           &editor->limits, err))) {
        coffer_mcf_editor_close(editor);
        return status;
    }
    *out = editor;
    return COFFER_OK;
}

void coffer_mcf_editor_close(coffer_mcf_editor *editor)
{
    if (!editor)
        return;
    for (size_t i = 0; i < editor->count; i++)
        coffer__free(editor->changes[i].bytes);
    coffer__free(editor->changes);
    coffer_mcf_close(editor->model);
    coffer__update_close(editor->update);
    coffer__free(editor);
}

/* ---- Gathering changes ---- */

static change *find_change(const coffer_mcf_editor *editor, uint32_t type)
{
    for (size_t i = 0; i < editor->count; i++) {
        if (editor->changes[i].type == type)
            return &editor->changes[i];
    }
    return NULL;
}

/* bytes : pass to the editor, also on failure. */
static coffer_status put_change(coffer_mcf_editor *editor, change added, coffer_error *err)
{
    change *old = find_change(editor, added.type);
    coffer_status status = COFFER_OK;
    if (editor->committed)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "the changes are already committed; open the file again to make more");
    else if (!old)
        status = coffer__array_reserve_one(&editor->changes, &editor->capacity, editor->count,
                                           sizeof *editor->changes, err);
    if (status) {
        coffer__free(added.bytes);
        return status;
    }
    if (old)
        coffer__free(old->bytes);
    else
        old = &editor->changes[editor->count++];
    *old = added;
    return COFFER_OK;
}

/* Sections that describe the payloads cannot be edited. */
static coffer_status check_type(uint32_t type, bool removing, coffer_error *err)
{
    if (type == COFFER_MCF_TENSOR_INDEX || type == COFFER_MCF_TENSOR_DATA || type == COFFER_MCF_QUANT_INFO ||
        ((type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY) && !removing))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s belongs to the payloads and cannot be edited",
                            coffer__mcf_section_label(type).text);
    return COFFER_OK;
}

static coffer_status check_content(const coffer_mcf_editor *editor, uint32_t type, const uint8_t *bytes,
                                   size_t len, coffer_error *err)
{
    coffer_mcf_model_info *info = NULL;
    coffer_status status = COFFER_OK;
    if (coffer__mcf_holds_json(type))
        status = coffer__mcf_check_json(type, (const char *)bytes, len, 0, &editor->limits, err);
    else if (type == COFFER_MCF_MODEL_INFO)
        status = coffer__mcf_decode_model_info(&info, bytes, len, 0, NULL, err);
    coffer__mcf_model_info_free(info);
    return status;
}

static uint32_t version_of(const coffer_mcf_editor *editor, uint32_t type)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, type);
    return section ? section->version : COFFER__MCF_SECTION_VERSION;
}

coffer_status coffer_mcf_editor_set_section(coffer_mcf_editor *editor, uint32_t type, const void *bytes,
                                            size_t len, coffer_error *err)
{
    uint8_t *copy;
    coffer_status status = check_type(type, false, err);
    if (status)
        return status;
    copy = coffer__malloc(len + 1);
    if (!copy)
        return coffer__fail_no_memory(err, len + 1);
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = 0;
    if ((status = check_content(editor, type, copy, len, err))) {
        coffer__free(copy);
        return status;
    }
    return put_change(editor, (change){ type, version_of(editor, type), false, copy, len }, err);
}

static bool has_section(const coffer_mcf_editor *editor, uint32_t type)
{
    const change *pending = find_change(editor, type);
    return pending ? !pending->removed : coffer_mcf_find_section(editor->model, type) != NULL;
}

coffer_status coffer_mcf_editor_remove_section(coffer_mcf_editor *editor, uint32_t type, coffer_error *err)
{
    coffer_status status = check_type(type, true, err);
    if (status)
        return status;
    if (!has_section(editor, type))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "section missing: %s",
                            coffer__mcf_section_label(type).text);
    return put_change(editor, (change){ .type = type, .removed = true }, err);
}

/* ---- ModelInfo ---- */

/* The ModelInfo with the pending changes; an empty one when the file has none. */
static coffer_status current_model_info(coffer_mcf_model_info **out, coffer_mcf_editor *editor,
                                        coffer_error *err)
{
    static const coffer_mcf_model_info empty = COFFER_MCF_MODEL_INFO_INIT;
    const change *pending = find_change(editor, COFFER_MCF_MODEL_INFO);
    coffer__buffer encoded = COFFER__BUFFER_INIT;
    const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, COFFER_MCF_MODEL_INFO);
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status;
    if (pending && !pending->removed)
        return coffer__mcf_decode_model_info(out, pending->bytes, pending->len, 0, NULL, err);
    if (!pending && section) {
        status = coffer_mcf_read_section(&bytes, &len, editor->model, COFFER_MCF_MODEL_INFO, err);
    } else {
        status = coffer__mcf_encode_model_info(&encoded, &empty, err);
        bytes = coffer__buffer_release(&encoded, &len);
    }
    if (status == COFFER_OK)
        status = coffer__mcf_decode_model_info(out, bytes, len, section ? section->offset : 0, NULL, err);
    coffer__free(bytes);
    return status;
}

coffer_status coffer_mcf_editor_set_model_info(coffer_mcf_editor *editor, const char *field, const char *text,
                                               coffer_mcf_kv_type type, coffer_error *err)
{
    coffer_mcf_model_info *info = NULL;
    coffer__buffer encoded = COFFER__BUFFER_INIT;
    uint8_t *bytes;
    size_t len = 0;
    coffer_status status = current_model_info(&info, editor, err);
    if (status == COFFER_OK)
        status = coffer__mcf_change_model_info(&encoded, info, field, text, type, err);
    coffer__mcf_model_info_free(info);
    bytes = coffer__buffer_release(&encoded, &len);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    return put_change(editor,
                      (change){ COFFER_MCF_MODEL_INFO, COFFER__MCF_SECTION_VERSION, false, bytes, len }, err);
}

/* ---- Sums ---- */

coffer_status coffer_mcf_editor_set_checksums(coffer_mcf_editor *editor, const coffer_mcf_work_opts *opts,
                                              coffer_error *err)
{
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    coffer__chunk_sums sums = { 0 };
    coffer__buffer encoded = COFFER__BUFFER_INIT;
    const uint32_t needed = COFFER_MCF_TENSOR_DATA;
    uint8_t *bytes;
    size_t len = 0;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer_mcf_require(editor->model, &needed, 1, err);
    if (status)
        return status;
    const coffer_mcf_section *data = coffer_mcf_find_section(editor->model, COFFER_MCF_TENSOR_DATA);
    coffer__work_opts work = { .threads = options.threads, .progress = options.progress };
    status = coffer__chunk_sums_compute(&sums, coffer__update_source(editor->update), data->offset,
                                        data->size, &work, err);
    if (status == COFFER_OK)
        status = coffer__mcf_sums_encode(&encoded, &sums, err);
    coffer__chunk_sums_free(&sums);
    bytes = coffer__buffer_release(&encoded, &len);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    return put_change(editor,
                      (change){ COFFER_MCF_CHECKSUMS, COFFER__MCF_SECTION_VERSION, false, bytes, len }, err);
}

/* ---- Committing ---- */

/* Drops changes that equal the existing content. */
static coffer_status drop_equal(coffer_mcf_editor *editor, coffer_error *err)
{
    for (size_t i = 0; i < editor->count;) {
        change *of = &editor->changes[i];
        const coffer_mcf_section *section = coffer_mcf_find_section(editor->model, of->type);
        uint8_t *old = NULL;
        size_t len = 0;
        bool equal = of->removed && !section;
        if (!of->removed && section && section->size == of->len) {
            coffer_status status = coffer__mcf_load_section(&old, &len, coffer__update_source(editor->update),
                                                            section, UINT64_MAX, err);
            if (status)
                return status;
            equal = memcmp(old, of->bytes, len) == 0;
            coffer__free(old);
        }
        if (equal) {
            coffer__free(of->bytes);
            *of = editor->changes[--editor->count];
        } else {
            i++;
        }
    }
    return COFFER_OK;
}

typedef struct planned {
    coffer_mcf_section section;
    size_t place; /* in the old directory: of two of one type the first counts */
} planned;

static int by_type(const void *a, const void *b)
{
    const planned *x = a, *y = b;
    if (x->section.type != y->section.type)
        return x->section.type < y->section.type ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_change_type(const void *a, const void *b)
{
    uint32_t x = ((const change *)a)->type, y = ((const change *)b)->type;
    return (x > y) - (x < y);
}

static uint64_t aligned(uint64_t offset)
{
    return offset + (0 - offset) % COFFER__MCF_SECTION_ALIGNMENT;
}

/* The new directory: unchanged sections, and new ones after the end. All sections of a changed type are
 * dropped. */
static size_t plan_directory(planned *out, uint64_t *end, const coffer_mcf_editor *editor)
{
    size_t count = 0;
    for (size_t i = 0; i < editor->model->section_count; i++) {
        if (!find_change(editor, editor->model->sections[i].type))
            out[count++] = (planned){ editor->model->sections[i], i };
    }
    for (size_t i = 0; i < editor->count; i++) {
        const change *of = &editor->changes[i];
        if (of->removed)
            continue;
        *end = aligned(*end);
        out[count++] = (planned){ { of->type, of->version, *end, of->len }, 0 };
        *end += of->len;
    }
    *end = aligned(*end);
    if (count > 0)
        qsort(out, count, sizeof *out, by_type);
    return count;
}

static coffer_status append_aligned(coffer_mcf_editor *editor, uint64_t *at, const uint8_t *bytes, size_t len,
                                    coffer_error *err)
{
    static const uint8_t zeros[COFFER__MCF_SECTION_ALIGNMENT] = { 0 };
    coffer_status status = coffer__update_append(editor->update, zeros, (size_t)(aligned(*at) - *at), err);
    if (status == COFFER_OK)
        status = coffer__update_append(editor->update, bytes, len, err);
    *at = aligned(*at) + len;
    return status;
}

/* Writes, under the journal, the new sections, the directory and the fields of the header. */
static coffer_status write_changes(coffer_mcf_editor *editor, const uint8_t *directory, size_t directory_len,
                                   const coffer__mcf_header *header, coffer_error *err)
{
    coffer__range fields = { COFFER__MCF_SECTION_COUNT_AT,
                             COFFER__MCF_FLAGS_AT - COFFER__MCF_SECTION_COUNT_AT };
    uint64_t at = coffer_source_size(coffer__update_source(editor->update));
    uint8_t front[COFFER__MCF_HEADER_SIZE];
    coffer_status status = coffer__update_begin(editor->update, &fields, 1, err);
    for (size_t i = 0; status == COFFER_OK && i < editor->count; i++) {
        if (!editor->changes[i].removed)
            status = append_aligned(editor, &at, editor->changes[i].bytes, editor->changes[i].len, err);
    }
    coffer__mcf_store_header(front, header);
    if (status || (status = append_aligned(editor, &at, directory, directory_len, err)) ||
        (status = coffer__update_overwrite(editor->update, fields.offset, front + fields.offset,
                                           (size_t)fields.length, err)))
        return status;
    return coffer__update_commit(editor->update, err);
}

coffer_status coffer_mcf_editor_commit(coffer_mcf_editor *editor, coffer_error *err)
{
    planned *sections = NULL;
    coffer__mcf_header header = editor->model->header;
    uint8_t *directory = NULL;
    size_t room = editor->model->section_count + editor->count, count, len;
    uint64_t end = coffer_source_size(coffer__update_source(editor->update));
    coffer_status status = drop_equal(editor, err);
    if (status || editor->committed || editor->count == 0)
        return status;
    if (editor->count > 1)
        qsort(editor->changes, editor->count, sizeof *editor->changes, by_change_type);
    sections = coffer__alloc_array(room, sizeof *sections);
    directory = coffer__alloc_array(room, COFFER__MCF_DIRECTORY_ENTRY);
    if (!sections || !directory) {
        status = coffer__fail_no_memory(err, room * sizeof *sections);
        goto out;
    }
    count = plan_directory(sections, &end, editor);
    if (count == 0) {
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "the last section cannot be removed");
        goto out;
    }
    len = count * COFFER__MCF_DIRECTORY_ENTRY;
    for (size_t i = 0; i < count; i++)
        coffer__mcf_store_directory(directory + i * COFFER__MCF_DIRECTORY_ENTRY, &sections[i].section, 1);
    header.section_count = (uint32_t)count;
    header.directory = end;
    header.file_size = end + len;
    status = write_changes(editor, directory, len, &header, err);
    editor->committed = status == COFFER_OK;
out:
    coffer__free(sections);
    coffer__free(directory);
    return status;
}
