/* Collects the changes of an edit in place; mcf_edit_commit.c writes them. */
#include "formats/mcf/mcf_edit.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

COFFER__INIT_FUNCTION(coffer_mcf_editor_opts, COFFER_MCF_EDITOR_OPTS_INIT)

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
    status = coffer__update_open(&editor->update, path, NULL, err);
    if (!status)
        status = coffer__mcf_open_outline(&editor->model, coffer__update_source(editor->update),
                                          &editor->limits, err);
    if (status) {
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
    coffer__mcf_sums_free(&editor->payloads);
    coffer_mcf_close(editor->model);
    coffer__update_close(editor->update);
    coffer__free(editor);
}

/* ---- Gathering changes ---- */

coffer__mcf_change *coffer__mcf_find_change(const coffer_mcf_editor *editor, uint32_t type)
{
    for (size_t i = 0; i < editor->count; i++) {
        if (editor->changes[i].type == type)
            return &editor->changes[i];
    }
    return NULL;
}

coffer_status coffer__mcf_put_change(coffer_mcf_editor *editor, coffer__mcf_change added, coffer_error *err)
{
    coffer__mcf_change *old = coffer__mcf_find_change(editor, added.type);
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
        type == COFFER_MCF_DIRECTORY_COPY ||
        ((type == COFFER_MCF_CHECKSUMS || type == COFFER_MCF_QUALITY || type == COFFER_MCF_DAMAGE) &&
         !removing))
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
    status = check_content(editor, type, copy, len, err);
    if (status) {
        coffer__free(copy);
        return status;
    }
    status =
        coffer__mcf_put_change(editor,
                               (coffer__mcf_change){ type, version_of(editor, type), false, copy, len }, err);
    return status ? status : coffer__mcf_forget_file(editor, coffer_mcf_section_name(type), err);
}

static bool has_section(const coffer_mcf_editor *editor, uint32_t type)
{
    const coffer__mcf_change *pending = coffer__mcf_find_change(editor, type);
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
    return coffer__mcf_put_change(editor, (coffer__mcf_change){ .type = type, .removed = true }, err);
}

/* ---- ModelInfo ---- */

/* The ModelInfo with the pending changes; an empty one when the file has none. */
static coffer_status current_model_info(coffer_mcf_model_info **out, coffer_mcf_editor *editor,
                                        coffer_error *err)
{
    static const coffer_mcf_model_info empty = COFFER_MCF_MODEL_INFO_INIT;
    const coffer__mcf_change *pending = coffer__mcf_find_change(editor, COFFER_MCF_MODEL_INFO);
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
    if (!status)
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
    if (!status)
        status = coffer__mcf_change_model_info(&encoded, info, field, text, type, err);
    coffer__mcf_model_info_free(info);
    bytes = coffer__buffer_release(&encoded, &len);
    if (status) {
        coffer__free(bytes);
        return status;
    }
    return coffer__mcf_put_change(
        editor, (coffer__mcf_change){ COFFER_MCF_MODEL_INFO, COFFER__MCF_SECTION_VERSION, false, bytes, len },
        err);
}
