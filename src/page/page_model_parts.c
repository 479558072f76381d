/* Parts of a model container other than its tensors: texts such as its configuration, and the stored quality
 * of quantized tensors. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "coffer/mcf.h"
#include "page/page_model.h"

#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 60000, MOST_TEXTS = 64 };

coffer_status coffer__page_open_container(coffer_mcf **out, const coffer_file *file, coffer_error *err)
{
    coffer_mcf_open_opts opts = COFFER_MCF_OPEN_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    const char *kind = coffer_file_kind(file);
    opts.lenient = true;
    if (!kind || strcmp(kind, "mcf") != 0)
        return COFFER_OK;
    coffer_status status = coffer_mcf_open(out, coffer_file_source(file), &opts, &found);
    return status && !coffer__is_about_file(status) ? coffer__fail_copy(err, &found) : COFFER_OK;
}

/* ---- Quality ---- */

/* "tensors.snr_db": NaN for tensors without a record. */
static void add_quality(coffer_chunks *chunks, const coffer_mcf *model, const coffer_tensors *set,
                        size_t tensors)
{
    double *snr = NULL;
    for (size_t i = 0; i < coffer_mcf_tensor_count(model); i++) {
        const coffer_mcf_quality *quality = coffer_mcf_quality_at(model, i);
        size_t tensor = quality ? coffer_tensors_find(set, coffer_mcf_tensor_at(model, i)->name) : tensors;
        if (tensor >= tensors)
            continue;
        if (!snr) {
            snr = coffer__chunks_f64(chunks, "tensors.snr_db", tensors);
            for (size_t j = 0; snr && j < tensors; j++)
                snr[j] = NAN;
        }
        if (!snr)
            return;
        snr[tensor] = (double)quality->snr_db;
    }
}

/* ---- Texts ---- */

typedef struct documents {
    coffer_chunks *chunks;
    uint32_t names[MOST_TEXTS], texts[MOST_TEXTS];
    double sizes[MOST_TEXTS];
    size_t count, left_out, cut, room;
} documents;

/* Takes the bytes over. */
static void add_text(documents *to, const char *name, uint8_t *bytes, size_t size)
{
    size_t len = size < to->room ? size : to->room;
    while (len < size && len > 0 && (bytes[len] & 0xc0) == 0x80)
        len--; /* not inside a character */
    bool is_text = !memchr(bytes, 0, size) && coffer__utf8_valid(bytes, len);
    if (!is_text || to->count == MOST_TEXTS) {
        to->left_out += is_text;
    } else {
        to->names[to->count] = coffer__chunks_text(to->chunks, name);
        to->texts[to->count] = coffer__chunks_text_len(to->chunks, (const char *)bytes, len);
        to->sizes[to->count++] = (double)size;
        to->cut += len < size;
    }
    coffer_free(bytes);
}

static coffer_status add_sections(documents *to, const coffer_mcf *model, coffer_error *err)
{
    static const uint32_t types[] = { COFFER_MCF_CONFIG,
                                      COFFER_MCF_GENERATION_CONFIG,
                                      COFFER_MCF_TOKENIZER_CONFIG,
                                      COFFER_MCF_TOKENIZER,
                                      COFFER_MCF_VOCAB,
                                      COFFER_MCF_MERGES };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        coffer_error found = COFFER_ERROR_INIT;
        uint8_t *bytes = NULL;
        size_t size = 0;
        if (!coffer_mcf_find_section(model, types[i]))
            continue;
        coffer_status status = coffer_mcf_read_section(&bytes, &size, model, types[i], &found);
        if (!status)
            add_text(to, coffer_mcf_section_name(types[i]), bytes, size);
        else if (coffer__is_about_file(status) || status == COFFER_E_LIMIT)
            to->left_out++;
        else
            return coffer__fail_copy(err, &found);
    }
    return COFFER_OK;
}

/* Files of the folder that the model was packed from. */
static coffer_status add_files(documents *to, const coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_file *files = NULL;
    coffer_error found = COFFER_ERROR_INIT;
    size_t count = 0;
    coffer_status status = coffer_mcf_get_files(&files, &count, model, &found);
    for (size_t i = 0; i < count && !status; i++) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        if (files[i].kind != COFFER_MCF_FILE_WHOLE || files[i].size > to->room)
            continue;
        status = coffer_mcf_read_file(&bytes, &size, model, files[i].name, &found);
        if (!status)
            add_text(to, files[i].name, bytes, size);
    }
    return status && !coffer__is_about_file(status) ? coffer__fail_copy(err, &found) : COFFER_OK;
}

static void put_columns(documents *from)
{
    coffer_chunks *chunks = from->chunks;
    uint32_t *name = coffer__chunks_u32(chunks, "documents.name", from->count);
    uint32_t *text = coffer__chunks_u32(chunks, "documents.text", from->count);
    double *size = coffer__chunks_f64(chunks, "documents.size", from->count);
    if (!size)
        return;
    memcpy(name, from->names, from->count * sizeof *name);
    memcpy(text, from->texts, from->count * sizeof *text);
    memcpy(size, from->sizes, from->count * sizeof *size);
    if (from->cut)
        coffer__chunks_note(chunks, "texts of the model that are cut after %zu bytes: %zu", from->room,
                            from->cut);
    if (from->left_out)
        coffer__chunks_note(chunks, "texts of the model that are not shown: %zu", from->left_out);
}

coffer_status coffer__page_add_parts(coffer_chunks *chunks, const coffer_mcf *model,
                                     const coffer_tensors *set, size_t tensors, uint32_t detail,
                                     coffer_error *err)
{
    documents to = { .chunks = chunks, .room = TEXT_BYTES / detail };
    if (!model)
        return COFFER_OK;
    add_quality(chunks, model, set, tensors);
    coffer_status status = add_sections(&to, model, err);
    if (!status)
        status = add_files(&to, model, err);
    put_columns(&to);
    return status;
}
