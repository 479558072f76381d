/* Names of lost and damaged tensors, which files of other formats record under a key. */
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/report.h"
#include "convert/tensors/tensor_selection.h"
#include "convert/tensors/tensors.h"
#include "io/source_private.h"
#include "outside/models/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* ---- Lists ---- */

void coffer__tensors_names_free(coffer__tensors_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        coffer__free(names->items[i]);
    coffer__free(names->items);
    *names = (coffer__tensors_names){ 0 };
}

coffer_status coffer__tensors_names_add(coffer__tensors_names *names, const char *text, size_t len,
                                        coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&names->items, &names->capacity, names->count, sizeof *names->items, err);
    if (status)
        return status;
    names->items[names->count] = coffer__strndup(text, len);
    if (!names->items[names->count])
        return coffer__fail_no_memory(err, len);
    names->count++;
    return COFFER_OK;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

void coffer__tensors_names_sort(coffer__tensors_names *names)
{
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, by_text);
}

static int to_text(const void *text, const void *item)
{
    return strcmp(text, *(char *const *)item);
}

bool coffer__tensors_names_have(const coffer__tensors_names *sorted, const char *text)
{
    return sorted->count && bsearch(text, sorted->items, sorted->count, sizeof *sorted->items, to_text);
}

void coffer__tensors_names_put_json(coffer__buffer *out, const coffer__tensors_names *names)
{
    coffer__json_writer json;
    coffer__json_writer_init(&json, out, 0);
    coffer__json_open_array(&json);
    for (size_t i = 0; i < names->count; i++)
        coffer__json_string(&json, names->items[i]);
    coffer__json_close_array(&json);
}

void coffer__tensors_names_put_gguf(coffer__buffer *out, const coffer__tensors_names *names)
{
    coffer__gguf_put_integer(out, COFFER__GGUF_U32, COFFER__GGUF_STRING);
    coffer__gguf_put_integer(out, COFFER__GGUF_U64, names->count);
    for (size_t i = 0; i < names->count; i++)
        coffer__gguf_put_string(out, names->items[i], strlen(names->items[i]));
}

/* ---- Recorded names ---- */

static coffer_status read_gguf_names(coffer__tensors_names *out, const coffer__gguf *gguf, const char *name,
                                     coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(gguf, name);
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (!key || key->type != COFFER__GGUF_ARRAY || key->item_type != COFFER__GGUF_STRING)
        return COFFER_OK;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, gguf, key, err);
    coffer__cursor cursor = coffer__cursor_over(bytes, status ? 0 : len, key->offset);
    for (uint64_t i = 0; !status && i < key->count; i++) {
        size_t text_len = (size_t)coffer__cursor_u64(&cursor);
        const char *text = (const char *)coffer__cursor_bytes(&cursor, text_len);
        status = text ? coffer__tensors_names_add(out, text, text_len, err) : COFFER_OK;
    }
    coffer__free(bytes);
    return status;
}

/* A value that is not a list of texts was not written by Coffer. */
static coffer_status read_json_names(coffer__tensors_names *out, const coffer__safetensors_item *item,
                                     const coffer_limits *limits, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_status status = COFFER_OK;
    if (coffer__json_parse(&json, item->text, item->text_len, 0, limits, NULL))
        return COFFER_OK;
    const coffer__json_value *list = coffer__json_root(json);
    const coffer__json_value *name = list->kind == COFFER__JSON_ARRAY ? coffer__json_first(list) : NULL;
    for (; !status && name; name = coffer__json_next(list, name)) {
        if (name->kind == COFFER__JSON_STRING)
            status = coffer__tensors_names_add(out, name->as.string, name->string_len, err);
    }
    coffer__json_free(json);
    return status;
}

coffer_status coffer__tensors_recorded_names(coffer__tensors_names *out, const coffer_tensors *set,
                                             const char *key, coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(set);
    const coffer__safetensors_metadata *metadata = coffer__safetensors_metadata_of(set);
    coffer_status status = gguf ? read_gguf_names(out, gguf, key, err) : COFFER_OK;
    for (size_t i = 0; !status && metadata && i < metadata->count; i++) {
        if (strcmp(metadata->items[i].key, key) == 0)
            status = read_json_names(out, &metadata->items[i], &set->limits, err);
    }
    return status;
}

coffer_status coffer__tensors_lost_names(coffer__tensors_names *out, const coffer_tensors *set,
                                         coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(set);
    coffer_status status = coffer__tensors_recorded_names(out, set, COFFER__TENSORS_LOST_KEY, err);
    for (size_t i = 0; !status && model && i < coffer_mcf_damage_count(model); i++) {
        const coffer_mcf_damage *damage = coffer_mcf_damage_at(model, i);
        if (damage->reason == COFFER_MCF_DAMAGE_LOST && !damage->section)
            status = coffer__tensors_names_add(out, damage->name, damage->name_len, err);
    }
    return status;
}

void coffer__tensors_note_lost(coffer_report *notes, const coffer__tensors_names *lost)
{
    if (notes && lost->count)
        coffer__report_add(notes, COFFER_E_MISSING, COFFER_WARNING, COFFER_OFFSET_NONE,
                           "%zu tensors were lost in an earlier repair (\"%s\"%s); 'coffer check' lists them",
                           lost->count, lost->items[0], lost->count > 1 ? ", …" : "");
}

/* ---- Damage of the input ---- */

static coffer_status add_sections(coffer__tensors_names *out, const coffer_mcf *model, coffer_source *src,
                                  coffer_error *err)
{
    coffer_report *accepted = coffer__source_damage_report(src);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < coffer_mcf_section_count(model); i++) {
        uint32_t type = coffer_mcf_section_at(model, i)->type;
        const char *name = coffer_mcf_section_name(type);
        uint8_t *bytes = NULL;
        size_t len;
        /* The copy of the directory says nothing about the model, and the output has none. */
        if (!name || type == COFFER_MCF_TENSOR_DATA || type == COFFER_MCF_TENSOR_INDEX ||
            type == COFFER_MCF_DIRECTORY_COPY)
            continue;
        coffer_source_keep_damaged(src, NULL);
        bool damaged = coffer_mcf_read_section(&bytes, &len, model, type, NULL) == COFFER_E_BAD_CHECKSUM;
        coffer_source_keep_damaged(src, accepted);
        coffer_free(bytes);
        if (damaged)
            status = coffer__tensors_names_add(out, name, strlen(name), err);
    }
    return status;
}

static coffer_status add_damaged(coffer__tensors_names *out, const coffer_mcf *model,
                                 const coffer__selection *selection, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < selection->count; i++) {
        const coffer__chosen_tensor *chosen = &selection->items[i];
        coffer_mcf_damage *damages = NULL;
        size_t count = 0;
        status = coffer_mcf_tensor_damage(&damages, &count, model,
                                          coffer__tensors_entry_at(chosen->set, chosen->index)->index, err);
        if (!status && count)
            status = coffer__tensors_names_add(out, chosen->tensor->name, strlen(chosen->tensor->name), err);
        coffer_free(damages);
    }
    return status;
}

coffer_status coffer__tensors_damaged_names(coffer__tensors_names *out, const coffer_tensors *set,
                                            const coffer__selection *selection, coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(set);
    coffer_source *src = set->part_count ? set->parts[0].src : NULL;
    coffer_status status = coffer__tensors_recorded_names(out, set, COFFER__TENSORS_DAMAGED_KEY, err);
    for (size_t i = 0; !status && i < selection->count; i++) { /* recorded under the name in the file */
        const coffer__tensors_entry *entry = coffer__tensors_entry_at(set, selection->items[i].index);
        if (entry->damaged && entry->new_name)
            status = coffer__tensors_names_add(out, entry->new_name, strlen(entry->new_name), err);
    }
    if (!status && model && src && coffer__source_damage_report(src)) {
        status = add_damaged(out, model, selection, err);
        if (!status)
            status = add_sections(out, model, src, err);
    }
    coffer__tensors_names_sort(out);
    return status;
}
